"""Solvers: what to do with a cone problem, and how far. Written once, against ``gravel.engine.Problem``, for every engine.

A solver is an object with its settings. ``solver.solve(problem)`` solves a ``ConeProblem`` alone; ``Simulation`` calls
``run`` with the problem of each step. All report the same residual (design: max over rows of |x - P(x - eta u)| / eta, a
velocity in m/s), always computed from the impulses and velocities they return.

The gradient solvers see a problem only through g = N x + r. In Coulomb mode the De Saxcé term mu |u_t| is frozen while the convex
problem is solved and renewed every few iterations (a fixed point of cone problems, Cadoux 2009).
"""

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from gravel import checks
from gravel.engine import Problem

if TYPE_CHECKING:
    from gravel.problem import ConeProblem, MatrixConeProblem, Solution

RENEW = 10  # iterations between two updates of the De Saxcé terms
SHRINKS = 60  # times that APGD may halve its step in one iteration
CLOSE = 1.5  # times the tolerance: when no sweep changes more, the residual is mostly below it, and is measured
WORSE = 10.0  # times the best residual so far: then sweeps restart with less momentum
LESS = 0.85  # factor on the momentum then
IDLE = 90  # iterations without a better residual: then momentum restarts at full strength: slow problems need it most
MEMORY = 10  # iterates among which the spectral method's energy may rise
CHEAP = 200_000  # updates of contacts in a step, some 2 ms of one core: up to these, a step goes on from the goal to the aim
PATIENCE = 1.5  # times its iterations that a solver may take on the way to the aim


class Goal(NamedTuple):
    """Residuals at which a solver may stop, m/s: the largest of all rows, and their root mean square."""

    largest: float
    rms: float = math.inf

    def excess(self, largest: float, rms: float) -> float:
        """How many times too large residuals are; they are good at 1 and below."""
        return max(self._ratio(largest, self.largest), self._ratio(rms, self.rms))

    @staticmethod
    def _ratio(value: float, bound: float) -> float:
        return value / bound if bound > 0.0 else math.inf if value > 0.0 else 0.0


class Outcome(NamedTuple):
    """How a solver went: iterations, residuals in m/s, and the residual after each iteration, if asked for."""

    iterations: int
    residual: float
    residual_rms: float
    history: list[float]


@dataclass(frozen=True)
class Solver:
    """Settings that every solver has. It stops after ``iterations`` or when the largest residual is at most ``tolerance``, m/s. None: in
    a simulation when, by the speed that a body gains by gravity in a step, the residuals' root mean square is at most 1 % and the largest
    at most 20 %, and with ``GaussSeidel`` far below that as long as the step has cost little (small scenes may take
    1.5 times the ``iterations`` for it); for a problem alone 0."""

    iterations: int = 300
    tolerance: float | None = None
    local: ClassVar[bool] = False  # each body by itself: one pass, restitution of its own, and no joints, rolling friction or cohesion

    def __post_init__(self) -> None:
        checks.count(f"{type(self).__name__} iterations", self.iterations, minimum=1)
        if self.tolerance is not None:
            checks.number(f"{type(self).__name__} tolerance", self.tolerance, minimum=0.0)

    def solve(self, problem: "ConeProblem | MatrixConeProblem", friction: str = "cone", history: bool = False) -> "Solution":
        """Solve a ``ConeProblem``; returns its ``Solution``. ``history=True`` keeps the residual of the iterations."""
        work = problem.prepare(checks.choice("friction", friction, ("cone", "coulomb")))
        return problem.solution(work, self.run(work, history), self.tolerance or 0.0)

    def run(self, work: Problem, history: bool = False) -> Outcome:
        """Iterate on the engine's form of a problem; impulses and velocities are left in it."""
        return self.iterate(work, Goal(self.tolerance or 0.0), history)

    def iterate(self, work: Problem, goal: Goal, history: bool = False, aim: Goal | None = None) -> Outcome:
        """The same, to a goal that is known by now; on towards ``aim``, below it, where the solver does so and that costs little."""
        raise NotImplementedError

    def describe(self) -> str:
        """One line: name and settings."""
        settings = ((f.name, getattr(self, f.name)) for f in fields(self))
        words = ", ".join(f"{name}={value if isinstance(value, int) else f'{value:.12g}'}" for name, value in settings if value is not None)
        return f"{type(self).__name__}({words})"


@dataclass(frozen=True)
class GaussSeidel(Solver):
    """Contact after contact takes its best impulse, coloured and vectorised: the default.

    A whole sweep is one map, which gets Nesterov's momentum: it starts from where the last two sweeps point, y = x + beta (x -
    x_before), with beta up to ``momentum`` (0: plain sweeps). The residual is measured when a sweep changes no contact's velocity by
    much more than the tolerance, every ``check_every`` iterations, and after the last."""

    iterations: int = 600
    momentum: float = 0.9
    check_every: int = 15

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("GaussSeidel momentum", self.momentum, minimum=0.0, maximum=1.0)
        checks.count("GaussSeidel check_every", self.check_every, minimum=1)

    def iterate(self, work: Problem, goal: Goal, history: bool = False, aim: Goal | None = None) -> Outcome:
        stride, max_momentum = 1 if history else self.check_every, self.momentum
        cheap = 0 if aim is None else int(CHEAP / max(work.sync.total(work.contacts)[0], 1.0))  # iterations that small problems may take
        cheap = min(cheap, int(PATIENCE * self.iterations))
        target, most = (aim, max(self.iterations, cheap)) if aim is not None and cheap > 0 else (goal, self.iterations)
        tolerance = CLOSE * target.largest
        work.warm_start()
        done, seen, worst, rms, best, idle = 0, [work.measure()[0]] if history else [], math.inf, math.inf, math.inf, 0
        while done < most:
            iterations = min(stride, most - done, cheap - done if done < cheap else stride)
            made = work.sweep(iterations, max_momentum, tolerance)
            done += made
            worst, rms = work.measure()
            if history:
                seen.append(worst)
            if target is not goal and done >= cheap:  # from here on the goal has to do
                target, tolerance = goal, CLOSE * goal.largest
            excess = target.excess(worst, rms)
            if excess <= 1.0 or made == 0:  # good, or as good as it gets
                break
            if made < iterations:  # the sweeps take the rest for converged: they must look closer
                tolerance *= max(0.5 / excess, 0.1)
            idle = 0 if worst < 0.9 * best else idle + made
            best = min(best, worst)
            harms = worst > WORSE * best
            if max_momentum > 0.0 and (harms or idle >= IDLE):
                max_momentum, idle = LESS * max_momentum if harms else max_momentum, 0
                work.restart_momentum()
        return Outcome(done, worst, rms, seen)


@dataclass(frozen=True)
class Jacobi(Solver):
    """The papers' iteration: x <- lambda P(x - omega eta (N x + r)) + (1 - lambda) x, all rows at once (000 and 001, Algorithm 1),
    damped by ``relaxation`` (lambda) and ``overrelaxation`` (omega)."""

    relaxation: float = 1.0
    overrelaxation: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("Jacobi relaxation", self.relaxation, above=0.0, maximum=1.0)
        checks.number("Jacobi overrelaxation", self.overrelaxation, above=0.0, maximum=2.0)

    def iterate(self, work: Problem, goal: Goal, history: bool = False, aim: Goal | None = None) -> Outcome:
        x, g, done = work.start(), work.blank(), 0
        best = Best(work, goal, history)
        work.gradient(x, g)
        while not best.accept(done, x, g) and done < self.iterations:
            work.update_de_saxce(g)
            work.projected_step(x, g, self.overrelaxation, self.relaxation, x)
            work.gradient(x, g)
            done += 1
        return best.finish(done)


@dataclass(frozen=True)
class APGD(Solver):
    """Accelerated projected gradient descent: Nesterov's momentum, adaptive step, restart (Mazhar et al. 2015).

    The gradient is linear, so the one at the extrapolated point follows from the last two iterates': one application of the
    operator per iteration."""

    def iterate(self, work: Problem, goal: Goal, history: bool = False, aim: Goal | None = None) -> Outcome:
        old = work.start()
        g_old, x, g, y, g_y, zero = (work.blank() for _ in range(6))
        best = Best(work, goal, history)
        work.gradient(old, g_old)
        work.copy(old, y)
        work.copy(g_old, g_y)
        theta, step, done = 1.0, 1.0, 0
        good = best.accept(0, old, g_old)
        while not good and done < self.iterations:
            for _ in range(SHRINKS):  # the step shrinks until the quadratic model bounds the energy
                square, _ = work.projected_step(y, g_y, step, 1.0, x)
                work.gradient(x, g)
                done += 1
                if done >= self.iterations or work.dot(x, y, g, g_y) <= square / step * (1 + 1e-6):
                    break
                step *= 0.5
            renewed = work.coulomb and done % RENEW == 0
            good = best.accept(done, x, g)
            if renewed or work.dot(g_y, zero, x, old) > 0.0:  # another problem, or uphill: start anew
                theta = 1.0
                work.copy(x, y)
                work.copy(g, g_y)
            else:
                theta_new = 0.5 * theta * (math.sqrt(theta * theta + 4.0) - theta)
                beta = theta * (1.0 - theta) / (theta * theta + theta_new)
                theta = theta_new
                work.extrapolate(x, old, beta, y)
                work.extrapolate(g, g_old, beta, g_y)
            old, x = x, old
            g_old, g = g, g_old
            step *= 1.1
        return best.finish(done)


@dataclass(frozen=True)
class BarzilaiBorwein(Solver):
    """Spectral projected gradient: step lengths from the last change of gradient, with a non-monotone line search (Birgin et al.
    2000)."""

    def iterate(self, work: Problem, goal: Goal, history: bool = False, aim: Goal | None = None) -> Outcome:
        x = work.start()
        g, target, g_target = (work.blank() for _ in range(3))
        best = Best(work, goal, history)
        work.gradient(x, g)
        changes, step, done = [0.0], 1.0, 0  # of the energy since the start
        good = best.accept(0, x, g)
        while not good and done < self.iterations:
            square, slope = work.projected_step(x, g, step, 1.0, target)
            if square == 0.0:
                if not work.coulomb:
                    break
                done += 1  # the convex problem is solved: on with the De Saxcé terms of its solution
                work.update_de_saxce(g)
                changes = [0.0]
                good = best.accept(done, x, g)
                continue
            work.gradient(target, g_target)
            done += 1
            curvature = work.dot(target, x, g_target, g)
            length = _line_search(slope, curvature, changes[-1], max(changes[-MEMORY:]))
            changes.append(changes[-1] + length * slope + 0.5 * length**2 * curvature)
            if length < 1.0:
                work.extrapolate(x, target, -length, target)
                work.extrapolate(g, g_target, -length, g_target)
            step = min(max(square / curvature, 1e-6), 1e6) if curvature > 0.0 else 1.0
            x, target = target, x
            g, g_target = g_target, g
            good = best.accept(done, x, g)
            if work.coulomb and done % RENEW == 0:
                changes = [0.0]  # another problem from here on: the search starts anew
        return best.finish(done)


@dataclass(frozen=True)
class FFD(Solver):
    """Fast frictional dynamics (Kaufman et al. 2005; paper 004, Algorithm 2): every body by itself finds the velocity nearest to its free
    one that its contacts allow, then friction along ``samples`` directions around each normal, the first against the slip.

    One pass over the bodies, whatever ``tolerance`` says of its outcome: quick, and far less exact than the others. Fit for gases, fast
    flows and very many bodies; heaps creep. It gives restitution itself, makes no difference between cone and Coulomb friction, and
    knows no joints, rolling friction or cohesion. See docs/FFD.md."""

    iterations: int = 1
    samples: int = 8
    local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.iterations != 1:
            raise ValueError(f"FFD iterations must be 1, not {self.iterations}: it takes the bodies once")
        checks.count("FFD samples", self.samples, minimum=3)

    def iterate(self, work: Problem, goal: Goal, history: bool = False, aim: Goal | None = None) -> Outcome:
        work.solve_bodies(self.samples)
        worst, rms = work.measure()
        return Outcome(1, worst, rms, [worst] if history else [])


def _line_search(slope: float, curvature: float, now: float, ceiling: float) -> float:
    """The share of a step after which the energy is low enough below the highest of the last ones."""
    length = 1.0
    while slope < 0.0 and now + length * slope + 0.5 * length**2 * curvature > ceiling + 1e-4 * length * slope and length > 1e-6:
        length *= 0.5
    return length


class Best:
    """The best iterate so far, the residual of each, and when to stop."""

    def __init__(self, work: Problem, goal: Goal, history: bool):
        self.work, self.goal = work, goal
        self.history: list[float] | None = [] if history else None
        self.residual = self.rms = math.inf
        self.x: Any = None

    def accept(self, iteration: int, x: Any, g: Any) -> bool:
        """Take note of an iterate; True if it is good enough."""
        worst, rms = self.work.residual(x, g)
        if not math.isfinite(worst + rms):
            raise FloatingPointError(f"the solver diverged in iteration {iteration}; use a smaller step or another solver")
        if self.history is not None:  # while a step shrinks, nothing is accepted: the last residual holds on
            self.history += self.history[-1:] * (iteration - len(self.history)) + [worst]
        good = self.goal.excess(worst, rms) <= 1.0
        if good or worst < self.residual:
            self.residual, self.rms = worst, rms
            if self.x is None:
                self.x = self.work.blank()
            self.work.copy(x, self.x)
        if iteration % RENEW == 0:
            self.work.update_de_saxce(g)
        return good

    def finish(self, iterations: int) -> Outcome:
        self.work.finish(self.x)
        return Outcome(iterations, self.residual, self.rms, self.history or [])


SOLVERS = {"gauss-seidel": GaussSeidel, "jacobi": Jacobi, "apgd": APGD, "bb": BarzilaiBorwein, "ffd": FFD}
