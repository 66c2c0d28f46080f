"""The joint rows of a cone problem as the solvers see them: treated like contact rows, or solved at once.

Gauss-Seidel calls ``begin`` and ``sweep``; the gradient solvers call ``apply``, ``gradient`` and ``finish``. Impulses and velocities
change in place. Impulses are in double precision whatever the velocities are: there are few.
"""

import numpy as np

from gravel.host.joints import direct
from gravel.host.joints import rows as joint_rows

PAUSE = 8  # passes beside contacts that take the curvature of the gauges for known
RISES = 6  # passes one after the other in which it changes by more and more, before it is given up


class JointBlock:
    def __init__(self, rows, members=None, system=None, real=np.float64):
        m = len(rows.eta)
        self.rows, self.members = rows, members
        self.system = system  # None: row by row
        self.most_yield = direct.most_yield(real)
        self.impulse, self.held = np.zeros(m), np.zeros(m, np.uint8)
        self.memory = np.zeros(m)  # impulses of the last step that was taken
        self.last = np.zeros(m)  # of the sweep before, for momentum
        self.first_bias = np.zeros(m)  # as it is before any velocities are found
        self.own_rows = None if system is None else rows._replace(body=rows.member)  # between members, not among all bodies
        # what the curvature of rows that are solved at once follows from; step 0: their bias stays
        self.curves, self.step, self.parts = None, 0.0, 1

    def renew(self, warm):
        """The rows have changed: starting impulses within their bounds; nothing is factorised yet."""
        self.impulse[:] = self.memory if warm else 0.0
        direct.begin_rows(self.rows, self.held, self.impulse, self.most_yield)
        self.doubted = True  # whether gradient solvers should take the bias from the next velocities
        self.change, self.rises, self.pause = np.inf, 0, 0  # of the bias by the last pass; how often it grew; passes that need not look
        self.first_bias[:] = self.rows.bias
        if self.system is not None:
            self.system.state[0] = 0

    @property
    def count(self):
        return len(self.rows.eta)

    def warm_start(self, velocity):
        """Apply the starting impulses to the velocities."""
        joint_rows.apply_joints(self.rows, self.impulse, velocity)

    def sweep(self, velocity, refines=False):
        """One pass: all rows at once (``refines``: to the last digit), or one after the other. Beside contacts the bias follows the
        velocities from pass to pass, as long as that takes it anywhere."""
        if self.system is None:
            joint_rows.sweep_joints(self.rows, self.impulse, velocity)
        elif refines and self.pause < np.inf:
            self.pause = np.inf if self._solve(self.impulse, velocity, True, direct.ROUNDS) == np.inf else 0
        elif self.pause > 0:
            self.pause -= 1
            self._solve(self.impulse, velocity, True, -1)
        else:
            self._plan_renewal(self._solve(self.impulse, velocity, True, 0), direct.slack_of(velocity.dtype))

    def _plan_renewal(self, change, slack):
        """The bias has changed by so much in a pass. Where that is next to nothing, the next passes need not look; where it grows from
        pass to pass, bodies turn by a radian a step, and the first bias is the one to keep."""
        self.rises = self.rises + 1 if change >= self.change else 0
        self.change = change
        self.pause = PAUSE if change <= slack else np.inf if self.rises >= RISES else 0
        if self.pause == np.inf:
            self.rows.bias[:] = self.first_bias

    def _solve(self, impulse, velocity, revises, rounds):
        system_of_rows = (
            self.own_rows,
            self.members,
            self.held,
            self.system,
            impulse,
            velocity,
            direct.slack_of(velocity.dtype),
            self.most_yield,
        )
        return direct.solve_rows(*system_of_rows, revises, rounds if self.step > 0.0 else -1, self.curves, self.step, self.parts)

    def foresee(self, velocity):
        """Impulses of all rows from these velocities, in the absence of contacts; nothing is kept, and ``renew`` is next."""
        impulse = self.memory.copy()
        direct.begin_rows(self.rows, self.held, impulse, self.most_yield)
        joint_rows.apply_joints(self.rows, impulse, velocity)
        self.system.state[0] = 0
        self._solve(impulse, velocity, True, -1)
        return impulse

    def restart_momentum(self):
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
        """Velocities take the impulses x in. Solved directly, the bilateral rows' are found here, whatever x says of them. Their
        bias is that of the velocities found first, and again when it is ``doubted``: in between gradients are those of one problem."""
        self.trial = x.astype(float)
        if self.system is None:
            return joint_rows.apply_joints(self.rows, self.trial, velocity)
        bounded = np.isfinite(self.rows.lower) | np.isfinite(self.rows.upper)
        if not np.array_equal(self.held, bounded):
            self.held[:] = bounded
            self.system.state[0] = 0
        self.trial[~bounded] = 0.0
        joint_rows.apply_joints(self.rows, self.trial, velocity)
        if self.doubted:
            self._solve(self.trial, velocity, False, direct.ROUNDS)
            self.doubted = False
        self._solve(self.trial, velocity, False, -1)

    def gradient(self, velocity, out):
        """out := J v + b + c p after ``apply``; nothing is left of the rows that were solved."""
        values = np.empty(self.count)
        joint_rows.joint_gradient(self.rows, self.trial, velocity, values)
        out[:] = values if self.system is None else np.where(self.held > 0, values, 0.0)

    def finish(self):
        """The impulses of the last ``apply`` are the solution."""
        self.impulse[:] = self.trial


NO_JOINTS = JointBlock(joint_rows.NO_ROWS)
