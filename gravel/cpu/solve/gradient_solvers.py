"""Jacobi, accelerated and spectral projected gradient: solvers that see the problem only through its gradient.

In: a problem with ``cones``, ``start`` and ``gradient(x, out)`` = N x + r. Out: x in place, and how it went. The vectors
are described in ``gravel.cpu.solve.cones``. In Coulomb mode the De Saxcé term mu |u_t| is frozen while the convex problem is
solved and renewed every few iterations (a fixed point of cone problems, Cadoux 2009).
"""

import math
from typing import NamedTuple

import numpy as np

from gravel.cpu.solve import cones as steps

RENEW = 10  # iterations between two updates of the De Saxcé terms


class Outcome(NamedTuple):
    iterations: int
    residual: float
    residual_rms: float
    history: list


class Monitor:
    """Residual of each iterate, when to stop, and the best iterate so far."""

    def __init__(self, problem, coulomb, tolerance, history):
        self.problem, self.coulomb, self.tolerance = problem, coulomb, tolerance
        self.history = [] if history else None
        self.sums = np.empty((problem.size // (3 * steps.WIDTH * steps.CHUNK) + 2, 3))
        self.best = math.inf
        self.best_rms = math.inf
        self.best_x = None
        self.slip = np.zeros(problem.cones.friction.shape if coulomb else (0, 0), problem.start.dtype)

    def gradient(self, x, out):
        self.problem.gradient(x, out)

    def accept(self, iteration, x, g):
        """Take note of an iterate; True if it is good enough."""
        worst, rms = steps.measure(self.problem.cones, x, g, self.coulomb, self.sums)
        if not math.isfinite(worst + rms):
            raise FloatingPointError(f"the solver diverged in iteration {iteration}; use a smaller step or another solver")
        if self.history is not None:
            self.history.append(worst)
        if worst < self.best:
            self.best, self.best_rms = worst, rms
            if self.best_x is None:
                self.best_x = x.copy()
            else:
                self.best_x[:] = x
        if self.coulomb and (iteration % RENEW == 0):
            steps.slip_terms(self.problem.cones, g, self.slip)
        return worst <= self.tolerance

    def finish(self, iterations):
        self.problem.finish(self.best_x)
        return Outcome(iterations, self.best, self.best_rms, self.history or [])


def jacobi(problem, coulomb, tolerance, iterations, history, relaxation, overrelaxation):
    """x <- lambda P(x - omega eta (N x + r)) + (1 - lambda) x, all rows at once (papers 000 and 001, Algorithm 1)."""
    monitor = Monitor(problem, coulomb, tolerance, history)
    x, g = problem.start.copy(), np.empty_like(problem.start)
    monitor.gradient(x, g)
    done = 0
    while not monitor.accept(done, x, g) and done < iterations:
        if coulomb:
            steps.slip_terms(problem.cones, g, monitor.slip)
        steps.step_and_project(problem.cones, x, g, monitor.slip, overrelaxation, relaxation, x, monitor.sums)
        monitor.gradient(x, g)
        done += 1
    return monitor.finish(done)


def accelerated(problem, coulomb, tolerance, iterations, history):
    """Nesterov's method with adaptive step and restart (Mazhar et al. 2015).

    The gradient is linear, so the one at the extrapolated point follows from the last two iterates': one application of
    the operator per iteration.
    """
    monitor = Monitor(problem, coulomb, tolerance, history)
    old = problem.start.copy()
    g_old, x, g, y, g_y = (np.empty_like(old) for _ in range(5))
    monitor.gradient(old, g_old)
    y[:], g_y[:] = old, g_old
    zero = np.zeros_like(old)
    theta, step, done = 1.0, 1.0, 0
    good = monitor.accept(0, old, g_old)
    while not good and done < iterations:
        for _ in range(60):  # the step shrinks until the quadratic model bounds the energy
            square, _ = steps.step_and_project(problem.cones, y, g_y, monitor.slip, step, 1.0, x, monitor.sums)
            monitor.gradient(x, g)
            done += 1
            if steps.dot_of_differences(x, y, g, g_y, monitor.sums) <= square / step * (1 + 1e-6):
                break
            if done >= iterations:
                break
            step *= 0.5
        renewed = coulomb and done % RENEW == 0
        good = monitor.accept(done, x, g)
        uphill = steps.dot_of_differences(g_y, zero, x, old, monitor.sums) > 0.0
        if uphill or renewed:
            theta = 1.0
            y[:], g_y[:] = x, g
        else:
            theta_new = 0.5 * theta * (math.sqrt(theta * theta + 4.0) - theta)
            beta = theta * (1.0 - theta) / (theta * theta + theta_new)
            theta = theta_new
            steps.extrapolate(x, old, beta, y)
            steps.extrapolate(g, g_old, beta, g_y)
        old, x = x, old
        g_old, g = g, g_old
        step *= 1.1
    return monitor.finish(done)


def spectral(problem, coulomb, tolerance, iterations, history, memory=10):
    """Spectral projected gradient: Barzilai and Borwein's steps with a non-monotone line search (Birgin et al. 2000)."""
    monitor = Monitor(problem, coulomb, tolerance, history)
    x = problem.start.copy()
    g, target, g_target = (np.empty_like(x) for _ in range(3))
    monitor.gradient(x, g)
    changes, step, done = [0.0], 1.0, 0  # of the energy since the start
    good = monitor.accept(0, x, g)
    while not good and done < iterations:
        square, slope = steps.step_and_project(problem.cones, x, g, monitor.slip, step, 1.0, target, monitor.sums)
        if square == 0.0:
            if not coulomb:
                break
            done += 1  # the convex problem is solved: on with the De Saxcé terms of its solution
            steps.slip_terms(problem.cones, g, monitor.slip)
            changes = [0.0]
            good = monitor.accept(done, x, g)
            continue
        monitor.gradient(target, g_target)
        done += 1
        curvature = steps.dot_of_differences(target, x, g_target, g, monitor.sums)
        length, ceiling = 1.0, max(changes[-memory:])
        while (
            slope < 0.0 and changes[-1] + length * slope + 0.5 * length**2 * curvature > ceiling + 1e-4 * length * slope and length > 1e-6
        ):
            length *= 0.5
        changes.append(changes[-1] + length * slope + 0.5 * length**2 * curvature)
        if length < 1.0:
            steps.extrapolate(x, target, -length, target)
            steps.extrapolate(g, g_target, -length, g_target)
        step = min(max(square / curvature, 1e-6), 1e6) if curvature > 0.0 else 1.0
        x, target = target, x
        g, g_target = g_target, g
        good = monitor.accept(done, x, g)
        if coulomb and done % RENEW == 0:
            changes = [0.0]  # another problem from here on: the search starts anew
    return monitor.finish(done)
