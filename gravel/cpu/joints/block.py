"""The joint rows of a cone problem as the solvers see them: treated like contact rows, or solved at once.

Gauss-Seidel calls ``begin`` and ``sweep``; the gradient solvers call ``apply``, ``gradient`` and ``finish``. Impulses and velocities
change in place. Impulses are in double precision whatever the velocities are: there are few.
"""

import numpy as np

from gravel.cpu.joints import direct
from gravel.cpu.joints import rows as joint_rows


class JointBlock:
    def __init__(self, rows, members=None, system=None, real=np.float64):
        m = len(rows.eta)
        self.rows, self.members = rows, members
        self.system = system  # None: row by row
        self.most_yield = direct.most_yield(real)
        self.impulse, self.held = np.zeros(m), np.zeros(m, np.uint8)
        self.memory = np.zeros(m)  # impulses of the last step that was taken
        self.last = np.zeros(m)  # of the sweep before, for momentum
        self.own_rows = None if system is None else rows._replace(body=rows.member)  # between members, not among all bodies

    def renew(self, warm):
        """The rows have changed: starting impulses within their bounds; nothing is factorised yet."""
        self.impulse[:] = self.memory if warm else 0.0
        direct.begin_rows(self.rows, self.held, self.impulse, self.most_yield)
        if self.system is not None:
            self.system.state[0] = 0

    @property
    def count(self):
        return len(self.rows.eta)

    def begin(self, velocity):
        """Velocities take the starting impulses in."""
        joint_rows.apply_joints(self.rows, self.impulse, velocity)

    def sweep(self, velocity, refines=False):
        """One pass: all rows at once (``refines``: to the last digit), or one after the other."""
        if self.system is None:
            joint_rows.sweep_joints(self.rows, self.impulse, velocity)
        else:
            slack = direct.slack_of(velocity.dtype), self.most_yield
            direct.solve_rows(self.own_rows, self.members, self.held, self.system, self.impulse, velocity, *slack, True, refines)

    def calm(self):
        """The next sweep starts without momentum."""
        self.last[:] = self.impulse

    def sweep_on(self, velocity, beta):
        """One pass from the impulses carried on by ``beta`` (the velocities are already); returns what it adds to (y - x_next) .
        (x_next - x) in the metric of the steps eta, and the largest change in m/s."""
        before = self.impulse.copy()
        self.impulse += beta * (before - self.last)
        if self.system is not None and self.held.any():  # the direct solution takes rows at a bound to be there
            back = np.where(self.held > 0, before - self.impulse, 0.0)
            joint_rows.apply_joints(self.rows, back, velocity)
            self.impulse += back
        carried = self.impulse.copy()
        self.sweep(velocity)
        self.last[:] = before
        change = self.impulse - carried
        return float(-change @ ((self.impulse - before) / self.rows.eta)), float(np.abs(change / self.rows.eta).max(initial=0.0))

    def measure_residual(self, velocity):
        """(largest, sum of squares), m/s"""
        return joint_rows.joint_residual(self.rows, self.impulse, velocity)

    def apply(self, x, velocity):
        """Velocities take the impulses x in. Solved directly, the bilateral rows' are found here, whatever x says of them."""
        self.trial = x.astype(float)
        if self.system is None:
            return joint_rows.apply_joints(self.rows, self.trial, velocity)
        bounded = np.isfinite(self.rows.lower) | np.isfinite(self.rows.upper)
        if not np.array_equal(self.held, bounded):
            self.held[:] = bounded
            self.system.state[0] = 0
        self.trial[~bounded] = 0.0
        joint_rows.apply_joints(self.rows, self.trial, velocity)
        direct.solve_rows(self.own_rows, self.members, self.held, self.system, self.trial, velocity, 0.0, self.most_yield, False, False)

    def gradient(self, velocity, out):
        """out := J v + b + c p after ``apply``; nothing is left of the rows that were solved."""
        values = np.empty(self.count)
        joint_rows.joint_gradient(self.rows, self.trial, velocity, values)
        out[:] = values if self.system is None else np.where(self.held > 0, values, 0.0)

    def finish(self):
        """The impulses of the last ``apply`` are the solution."""
        self.impulse[:] = self.trial
