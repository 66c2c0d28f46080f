"""Solvers: what to do with a cone problem, and how far.

A solver is an object with its settings. ``solver.solve(problem)`` solves a ``ConeProblem`` alone; ``Simulation`` calls
``run`` with the problem of each step. All report the same residual (design: max over rows of |x - P(x - eta u)| / eta, a
velocity in m/s), always computed from the impulses and velocities they return.
"""

from dataclasses import dataclass, fields

from gravel import checks
from gravel.cpu.solve import gradient_solvers
from gravel.cpu.solve.gradient_solvers import Outcome


@dataclass(frozen=True)
class Solver:
    """Settings that every solver has. It stops after ``iterations`` or when the residual is at most ``tolerance``, m/s."""

    iterations: int = 50
    tolerance: float = 0.0

    def __post_init__(self):
        checks.count(f"{type(self).__name__} iterations", self.iterations, minimum=1)
        checks.number(f"{type(self).__name__} tolerance", self.tolerance, minimum=0.0)

    def solve(self, problem, friction="cone", history=False):
        """Solve a ``ConeProblem``; returns its ``Solution``. ``history=True`` keeps the residual of the iterations."""
        work = problem.prepare(checks.choice("friction", friction, ("cone", "coulomb")))
        return problem.solution(work, self.run(work, friction == "coulomb", history), self.tolerance)

    def describe(self):
        """One line: name and settings."""
        settings = ", ".join(f"{f.name}={getattr(self, f.name):g}" for f in fields(self))
        return f"{type(self).__name__}({settings})"


@dataclass(frozen=True)
class GaussSeidel(Solver):
    """Contact after contact takes its best impulse, coloured and vectorised: the default. The residual is looked at every
    ``check_every`` iterations, and after the last."""

    check_every: int = 10

    def __post_init__(self):
        super().__post_init__()
        checks.count("GaussSeidel check_every", self.check_every, minimum=1)

    def run(self, work, coulomb, history=False):
        iterations = self.iterations
        stride = 1 if history else self.check_every if self.tolerance > 0.0 else iterations
        work.begin()
        done, seen, worst, rms = 0, [work.measure()[0]] if history else [], None, None
        while done < iterations:
            passes = min(stride, iterations - done)
            work.sweep(passes)
            done += passes
            worst, rms = work.measure()
            if history:
                seen.append(worst)
            if worst <= self.tolerance:
                break
        return Outcome(done, worst, rms, seen)


@dataclass(frozen=True)
class Jacobi(Solver):
    """The papers' iteration: all rows at once, damped by ``relaxation`` (lambda) and ``overrelaxation`` (omega)."""

    relaxation: float = 1.0
    overrelaxation: float = 0.3

    def __post_init__(self):
        super().__post_init__()
        checks.number("Jacobi relaxation", self.relaxation, above=0.0, maximum=1.0)
        checks.number("Jacobi overrelaxation", self.overrelaxation, above=0.0, maximum=2.0)

    def run(self, work, coulomb, history=False):
        return gradient_solvers.jacobi(
            work, float(coulomb), self.tolerance, self.iterations, history, self.relaxation, self.overrelaxation
        )


@dataclass(frozen=True)
class APGD(Solver):
    """Accelerated projected gradient descent: Nesterov's momentum, adaptive step, restart."""

    def run(self, work, coulomb, history=False):
        return gradient_solvers.accelerated(work, float(coulomb), self.tolerance, self.iterations, history)


@dataclass(frozen=True)
class BarzilaiBorwein(Solver):
    """Spectral projected gradient: step lengths from the last change of gradient."""

    def run(self, work, coulomb, history=False):
        return gradient_solvers.spectral(work, float(coulomb), self.tolerance, self.iterations, history)


SOLVERS = {"gauss-seidel": GaussSeidel, "jacobi": Jacobi, "apgd": APGD, "bb": BarzilaiBorwein}
