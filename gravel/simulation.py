"""Simulation: the step, the run, the reports. The first page to read.

``Simulation.step`` is one straight line from poses to poses; every stage is a method of the engine (``gravel.engine``), and this is
the one place that knows their order. ``run`` repeats it and calls observers around it, never inside.
"""

import hashlib
import math
import os
import threading
import time as clock_module
import uuid
import weakref
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.contacts import ContactTable
from gravel.detection.queries import RayHits, bodies_in_box, cast_rays
from gravel.engine import CellTooSmall, Driven, Margin, Problem, Rules, checked_threads, make_engine, no_lap
from gravel.errors import SimulationError
from gravel.interrupts import HeldBack
from gravel.joints.drives import Motor
from gravel.joints.kinds import SLIDES, TURNS, AnyJoint
from gravel.joints.table import JointTable, joint_table
from gravel.model.cell import Deformation
from gravel.model.materials import DEFAULT, Material
from gravel.model.motion import Motion, SurfaceVelocity, pose_at, surface_at, surface_of
from gravel.printing import formatting, tables
from gravel.rotations import conjugate, multiply, to_rotation_vector
from gravel.running import sanity_checks
from gravel.running.communicator import Team
from gravel.running.processes import Traffic, make_processes
from gravel.running.settings import CHANGEABLE, FOR_LIFE, refuse_unknown
from gravel.running.sleep import NO_MOVERS, Sleep, Watch, awake_ids, carrying_ids, islands_at_rest, movers_of
from gravel.scene import Scene, body_block
from gravel.shapes import Shape
from gravel.shapes.described import names_of_kinds, shape_of_body
from gravel.shapes.geometry import NONE, Geometries
from gravel.solvers import Goal, Solver
from gravel.state import IMMOVABLE, LINEAR, MATERIAL, REMOVED, SHAPE, SLEEPING, STATUS, LocalViews, Views, can_move

if TYPE_CHECKING:
    import pandas

    from gravel.running.run import RunReport
    from gravel.view.viewer.show import View

PAPER_SCHEME = {"friction": "cone", "warm_start": False, "recovery": 1.0, "recovery_speed": math.inf, "integrator": "euler"}
MARGIN_SHARE = 0.005  # of a body's bounding radius: contacts this near count, so that resting ones do not flicker
# Of |gravity| dt: up to these a step has converged, if the solver does not say. The root mean square tells how well the whole is solved;
# the largest of many thousands of contacts lags far behind it, and is bounded more loosely.
TOLERANCE, RMS_TOLERANCE = 0.2, 0.01
AIM = 5e-5  # of |gravity| dt: the largest residual that the solver goes on to as long as that costs little, so that small stacks stand
WEIGHTLESS = 0.01  # m/s that stand for |gravity| dt where nothing has weight
REPORT_UNITS = {
    "time": "s",
    "residual": "m/s",
    "residual_rms": "m/s",
    "max_penetration": "m",
    "kinetic_energy": "J",
    "joint_violation": "m",
}
ASSEMBLY_ROUNDS = 100  # of Newton's method, to close joints at the start
LARGE = 4.0  # times the median radius of what moves: fixed bodies of this size are known to all processes


@dataclass(frozen=True, repr=False)
class StepReport:
    """How one step went.

    - ``step``: its number, from 1 on
    - ``time`` s, simulated, at the end of the step
    - ``contacts``: how many there were, gaps within the margin included
    - ``iterations`` of the solver
    - ``residual`` m/s: what is left of the error, the largest over contacts and joint rows
    - ``residual_rms`` m/s: the root mean square of the same
    - ``converged``: whether the residuals are at most the tolerances (``Simulation.tolerance``, ``Simulation.rms_tolerance``)
    - ``max_penetration`` m, found at the start of the step; contacts that a blow with restitution parts in it do not count
    - ``kinetic_energy`` J, at its end
    - ``impacts``: how many collisions with restitution there were
    - ``joint_violation`` m: the largest error of what a joint holds, at the end of the step
    - ``broken``: how many joints broke
    - ``broad_phase``: the name of the one that found the pairs
    - ``bodies``: how many there are
    - ``traffic``: what several processes had to tell each other, a ``Traffic``
    - ``seconds`` s of wall clock, by stage
    """

    step: int
    time: float
    contacts: int
    iterations: int
    residual: float
    residual_rms: float
    converged: bool
    max_penetration: float
    kinetic_energy: float
    impacts: int
    joint_violation: float
    broken: int
    broad_phase: str
    bodies: int
    traffic: Traffic
    seconds: dict = field(repr=False)

    def __repr__(self) -> str:
        shown = ("step", "time", "bodies", "contacts", "iterations", "residual", "converged", "max_penetration", "kinetic_energy")
        seldom = ("impacts", "joint_violation", "broken")  # told where there are any
        values = {name: getattr(self, name) for name in (*shown, *(name for name in seldom if getattr(self, name)))}
        rounded = {name: formatting.rough(value) if isinstance(value, float) else value for name, value in values.items()}
        return formatting.call(self, **rounded)

    def _repr_html_(self) -> str:
        values = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name not in ("traffic", "seconds")}
        stages = {f"{name} took": seconds for name, seconds in self.seconds.items()}
        return tables.pairs_html({**values, **stages}, {**REPORT_UNITS, **dict.fromkeys(stages, "s")}, f"step {self.step}")


class Simulation:
    """A scene in motion.

    ``dt`` s; ``solver`` (default GaussSeidel); ``broad_phase`` "grid", "bvh" (a tree, for very different sizes), "sap" (sweep
    and prune), "brute" (all pairs), or "auto", which chooses by the bodies' number and sizes (each step's report says which);
    ``precision`` "single" or "double" of velocities and impulses (poses are always double); ``device`` "cpu", "cuda" (a GPU, "cuda:1"
    another; extra gpu) or "warp:cpu" (its kernels on one thread of the CPU); ``threads`` None: OMP_NUM_THREADS or all;
    ``friction`` "coulomb", or "cone" (convex, as in the papers: what slides at v is lifted off by dt mu v); ``margin`` m within which gaps
    are contacts (None: 1 % of the grains' radius).

    A step takes back the share ``recovery`` of a penetration, at most at ``recovery_speed`` m/s; ``warm_start`` starts the
    solver from the last step's impulses.
    ``**PAPER_SCHEME`` gives the plain scheme of the papers. Impacts slower than ``restitution_threshold`` m/s do not bounce
    (None: 5 dt |gravity|). ``bounds`` ((x, y, z), (x, y, z)): a body that leaves them stops the run with an error.
    ``ellipsoid_method``: see ``find_contacts``.

    ``joints`` "direct" solves all joints at once in every iteration, so that their error does not depend on the length of chains;
    "iterative" treats their rows like contacts, as the papers do. ``integrator`` "midpoint" looks at contacts, joints and forces
    half a step ahead (Moreau's rule, second order), "euler" at the start of the step, as the papers do.

    ``domain``: how processes that mpiexec started share out space: ``Grid``, ``Hexagons`` or ``Bisection``; "auto": by bisection, if there
    are several; None: this process works alone. Arrays are then those of the bodies that this process owns (``ids``), reports are of all.

    ``sleep`` Sleep(): bodies that have been at rest for a while cost nearly nothing until they are disturbed, see ``Sleep``. None: all
    are awake.

    Settings may change while it runs: ``sim.gravity = (0, 0, -1.6)``, and so ``dt``, ``solver``, ``friction``, ``integrator``, ``margin``,
    ``recovery``, ``recovery_speed``, ``warm_start``, ``restitution_threshold``, ``ellipsoid_method`` and ``sleep``.
    """

    dt: float
    solver: Solver
    gravity: np.ndarray
    friction: str
    integrator: str
    ellipsoid_method: str
    margin: float | None
    recovery: float
    recovery_speed: float
    warm_start: bool
    restitution_threshold: float | None
    sleep: Sleep | None
    team: Team  # the processes that share the scene, as files see them
    _watch: Watch

    def __init__(
        self,
        scene: Scene,
        dt: float,
        solver: Solver | None = None,
        broad_phase: str = "auto",
        device: str = "cpu",
        precision: str = "single",
        threads: int | None = None,
        friction: str = "coulomb",
        margin: float | None = None,
        recovery: float = 0.03,
        recovery_speed: float = 1.0,
        warm_start: bool = True,
        restitution_threshold: float | None = None,
        bounds: ArrayLike | None = None,
        ellipsoid_method: str = "direct",
        joints: str = "direct",
        integrator: str = "midpoint",
        sleep: Sleep | None = None,
        domain: Any = "auto",
    ):
        if not isinstance(scene, Scene):
            raise TypeError(f"scene must be a Scene, not {scene!r}")
        if len(scene) == 0 and scene.common is None:
            raise ValueError("scene must hold at least one body; add some with scene.add_body or scene.add_bodies")
        self._made = False  # until then, attributes are new
        self._rules: Rules | None = None
        self.steps = 0
        self.start_time = 0.0
        self.scene = scene
        self.dt, self.friction, self.integrator = dt, friction, integrator
        self.solver = solver  # type: ignore[assignment]  # None: the default
        self.ellipsoid_method, self.margin, self.recovery, self.recovery_speed = ellipsoid_method, margin, recovery, recovery_speed
        self.warm_start, self.restitution_threshold, self.sleep = warm_start, restitution_threshold, sleep
        self.joint_mode = checks.choice("joints", joints, ("direct", "iterative"))
        self.processes = self.team = make_processes(domain)
        threads = self.processes.threads() if threads is None else threads
        self.device, self.precision, self.broad_phase, self.threads = device, precision, broad_phase, checked_threads(threads)
        self.engine = make_engine(device, precision, broad_phase, self.threads)
        sanity_checks.check_device(self, self.solver)
        self.world = self._world(bounds, scene)
        self.geometries = Geometries(scene.geometries)
        self.gravity = scene.gravity
        self.materials, self.ignored = scene.materials.copy(), scene.ignored.copy()
        common = len(scene) if scene.common is None else scene.common
        self._check_alike(scene)
        self.processes.begin(self.engine, _block_with_forces(scene), _large_bodies(scene), _joined_bodies(scene), common)
        count = int(self.processes.largest(scene.bodies.id.max(initial=-1))[0]) + 1
        self._material_of = self._by_id(scene, count)  # the number of each body's material; the engine knows its row
        self._mark_materials()
        local = (LocalViews, self.processes.rank) if self.processes.size > 1 else (Views,)
        self.views = local[0](self.engine, count, self._refusal, *local[1:])
        self.motions = dict(scene.motions)
        self.surfaces = dict(scene.surfaces)
        self._surfaces_told: dict | None = None  # what the engine was told of them last
        self.cell = None if scene.cell is None else scene.cell.copy()
        self.motion_starts = {b: (scene.bodies.position[b].copy(), scene.bodies.quaternion[b].copy(), 0.0) for b in self.motions}
        self.run_id = uuid.uuid4().hex  # of this very run: kept by its checkpoints, copies and results, so that they know each other
        self.origin: dict = {}  # what made the scene, if that is known: a built-in scene's name, bodies and seed
        self.until: float | None = None  # s, up to which the run goes that is under way, or the last one went
        self.report: StepReport | None = None
        self.tell: Callable[[str], None] = no_lap  # is told in words what keeps the first step waiting
        self._refused = False  # whether the last step was: the engine then holds contacts of no step that was taken
        self._known_contacts: ContactTable | None = None  # of a copy that has not stepped yet
        self._stepped = False  # whether a step was taken by this object: the first may have to compile
        self._under_way = _nobody  # who is changing the engine, if anybody is
        self._deepest = 0.0  # m, penetration up to which nothing needs to be said
        self._widest = 0.0  # m, likewise of open joints
        self._warned_of_speed = self._warned_of_lift = False
        self._pages: list[Any] = []  # pages that follow it, see ``view``
        sanity_checks.check_cohesion(self, self.materials.contact_values())
        sanity_checks.warn_of_arms(self)
        self.mechanism = scene.mechanism.copy()
        sanity_checks.check_solver(self.solver, self.materials.contact_values(), len(self.mechanism))
        self._settle_joints()
        self._movers = NO_MOVERS  # bodies with a motion that have moved in this step
        self._roused = False  # whether something has changed that wakes all: they do before the next step
        self._made = True

    def __repr__(self) -> str:
        if not self.__dict__.get("_made"):
            return "Simulation(not made yet)"
        here = {"process": f"{self.processes.rank} of {self.processes.size}"} if self.processes.size > 1 else {}
        counts = {"steps": self.steps, "bodies": self.views.own, "joints": len(self.mechanism)}
        solver = type(self.solver).__name__
        time, dt = formatting.rough(self.time), formatting.rough(self.dt)
        return formatting.call(self, time=time, **counts, dt=dt, solver=solver, device=self.device, **here)

    def _repr_html_(self) -> str | None:
        from gravel.printing.notebook import html_of

        return html_of(self, self.views.own)

    def __setattr__(self, name, value):
        """Settings (``gravel.running.settings``) are checked as in the constructor and hold from the next step on; ``time`` goes on when
        ``dt`` changes. Attributes that there are not are refused: a misspelt one would do nothing."""
        if name in CHANGEABLE:
            value = CHANGEABLE[name](value)
            if name == "solver" and getattr(self, "_made", False):
                sanity_checks.check_device(self, value)
                sanity_checks.check_solver(value, self.materials.contact_values(), len(self.mechanism))
            if name == "dt" and self.steps:
                super().__setattr__("start_time", self.time - self.steps * value)
            super().__setattr__("_rules", None)
            super().__setattr__("_roused", True)
            if name == "sleep":
                super().__setattr__("_watch", Watch())
        elif getattr(self, "_made", False) and (name in FOR_LIFE or not (name in self.__dict__ or _is_own_method(name))):
            refuse_unknown(name, {n for n in (*dir(type(self)), *self.__dict__) if not n.startswith("_")})
        super().__setattr__(name, value)

    # --- the step
    def step(self) -> StepReport:
        """Advance by ``dt``; returns a ``StepReport``."""
        with _Alone(self):
            report = self._take_step() if self._stepped else self._take_first_step()
        for page in self._pages:
            page(self)
        return report

    def _take_first_step(self):
        prepared = self._warm_up()
        try:
            return self._take_step()
        finally:
            prepared()

    def _warm_up(self):
        self._renew_rules()
        return self.engine.warm_up(lambda words: self.tell(words), self._solves_joints, self.processes.size > 1)

    def _take_step(self):
        lap = _Lap()
        problem, found, impacts = self._prepare(self.warm_start, lap)
        goal = Goal(self.tolerance, self.rms_tolerance)
        outcome = self.solver.iterate(problem, goal, aim=self.aim)
        lap("solve")
        self._refuse_fault(self.engine.fault(self.world))
        with HeldBack():  # state, count and report belong together
            taken = self.engine.commit()
            broken = self._break_overloaded()
            self._advance_cell()
            self.steps += 1
            self._let_sleep()
            self._refused, self._stepped, self._known_contacts = False, True, None
            self.views.renew()
            lap("positions")
            contacts, energy, impacts, bodies = self.processes.total(found.contacts, taken.energy, impacts, self.views.own)
            penetration, violation = self.processes.largest(found.penetration, taken.violation)
            traffic = self.processes.end(self.engine)
            self.report = StepReport(
                self.steps,
                self.time,
                int(contacts),
                outcome.iterations,
                outcome.residual,
                outcome.residual_rms,
                goal.excess(outcome.residual, outcome.residual_rms) <= 1.0,
                penetration,
                energy,
                int(impacts),
                violation,
                broken,
                found.broad_phase,
                int(bodies),
                traffic,
                lap.seconds,
            )
        if self.steps == 1:
            sanity_checks.warn_of_overlaps(self, found.penetration)
        if found.penetration > self._deepest:
            sanity_checks.warn_of_depth(self, self.report)
        if violation > self._widest:
            sanity_checks.warn_of_open_joints(self, self.report)
        if not self._warned_of_speed:
            sanity_checks.warn_of_speed(self)
        if self.friction == "cone" and not self._warned_of_lift:
            sanity_checks.warn_of_lift(self, self.report)
        return self.report

    def _prepare(self, warm, lap):
        """From the state to the cone problem of a step: (problem, what was detected, impacts)."""
        engine = self.engine
        self.views.take_back()
        self._renew_rules()
        self._join()
        self._refused = True  # until the step is taken
        self._tell_of_cell()
        self._tell_of_surfaces()
        self.processes.renew(engine)
        self.views.follow()
        lap("copies")
        driven = self._driven() if self.motions else None
        self._wake_disturbed(driven)
        found = self._detect(driven, lap)
        while len(touched := engine.touched_sleepers()):  # what is awake meets them awake; they may touch others that sleep
            engine.wake(touched)
            found = self._detect(driven, lap)
        self.processes.meet(engine)
        lap("meeting")
        engine.match(warm)
        if warm:
            self.processes.hand_over(engine)
        lap("match")
        impacts, penetration = engine.bounce(not self.solver.local)
        found = found._replace(penetration=penetration)
        lap("impacts")
        engine.add_forces()
        lap("velocities")
        self._drive()
        problem = engine.assemble(warm)
        self.processes.open(problem)
        lap("assemble")
        return problem, found, impacts

    def _detect(self, driven, lap):
        """From the state to the contacts where the step looks."""
        self.engine.begin()
        if driven is not None:
            self.engine.set_motion(driven)
        lap("motion")
        try:
            return self.engine.detect(lap)
        except CellTooSmall as error:
            raise self._refusal(str(error), error.body) from None

    def next_problem(self, warm_start: bool = False) -> Problem:
        """The cone problem of the next step in the engine's form, for a solver to be tried on (``solver.run(problem)``). The state
        stays as it is; ``contacts`` are not known until a step is taken."""
        with _Alone(self):
            return self._prepare(warm_start, no_lap)[0]

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self.start_time + self.steps * self.dt

    def _world(self, bounds, scene):
        """(2, 3) bounds that no body may leave; by default far outside the scene."""
        if bounds is not None:
            world = checks.array("bounds", bounds, (2, 3))
            if (world[0] >= world[1]).any():
                raise ValueError(f"bounds must be (lower, upper) with lower < upper, not {bounds!r}")
            return world
        low, high = scene.bodies.position.min(axis=0, initial=np.inf), scene.bodies.position.max(axis=0, initial=-np.inf)
        low, high = -np.array(self.processes.largest(*-low)), np.array(self.processes.largest(*high))
        reach = 1e3 * max(1.0, float(np.linalg.norm(high - low)))
        world = np.stack([low - reach, high + reach])
        if scene.cell is not None:  # machines are not brought back, they may go far
            world[:, scene.cell.periodic] = [[-np.inf], [np.inf]]
        return world

    def _check_alike(self, scene):
        """Materials and shapes go by their numbers: they must be the same on all processes."""
        alike = [*map(repr, scene.materials.kinds), len(scene.geometries), len(scene.mechanism), scene.common]
        if any(other != alike for other in self.processes.all_of(alike)):
            raise ValueError("scene must have the same materials, shapes and joints on all processes, in the same order")

    def _by_id(self, scene, count):
        """The number of each body's material, by id."""
        numbers = np.full(count, -1, np.int32)
        numbers[scene.bodies.id] = scene.bodies.tag[:, MATERIAL]
        if scene.common is not None:
            for ids, own in self.processes.all_of((scene.bodies.id, scene.bodies.tag[:, MATERIAL])):
                numbers[ids] = own
        return array("i", numbers.tobytes())

    def _renew_rules(self):
        """The engine is told what holds in every step, when that has changed."""
        if self._rules is not None:
            return
        if self.sleep is not None and self.processes.size > 1:
            raise ValueError(
                f"sleep must be None where {self.processes.size} processes share a simulation: bodies sleep on one process only"
            )
        threshold = self.restitution_threshold
        if threshold is None:
            threshold = 5 * self.dt * math.hypot(*self.gravity)
        rules = Rules(
            step=self.dt,
            midpoint=self.midpoint,
            gravity=self.gravity,
            contact_values=self.materials.contact_values(),
            ignored=self.ignored,
            margin=Margin(0.0, MARGIN_SHARE) if self.margin is None else Margin(self.margin, 0.0),
            geometries=self.geometries,
            ellipsoid_method=self.ellipsoid_method,
            coulomb=self.friction == "coulomb",
            recovery=self.recovery,
            recovery_speed=self.recovery_speed,
            threshold=threshold,
        )
        sanity_checks.check_cohesion(self, rules.contact_values)
        sanity_checks.check_solver(self.solver, rules.contact_values, len(self.mechanism))
        self.engine.set_rules(rules)
        self._rules = rules

    @property
    def tolerance(self) -> float:
        """m/s: the largest residual with which a step counts as converged. Where the solver does not say: 20 % of the speed that a body
        gains by gravity in a step, or 2e-3 where there is no gravity."""
        return TOLERANCE * (self._gain or WEIGHTLESS) if self.solver.tolerance is None else self.solver.tolerance

    @property
    def rms_tolerance(self) -> float:
        """m/s: the root mean square of the residuals with which a step counts as converged. Where the solver does not say: 1 % of the
        speed that a body gains by gravity in a step, or 1e-4 where there is no gravity; else infinite."""
        return RMS_TOLERANCE * (self._gain or WEIGHTLESS) if self.solver.tolerance is None else math.inf

    @property
    def aim(self) -> Goal | None:
        """Residuals, m/s, towards which the solver goes on where that costs little; None where the solver has its own tolerance."""
        return Goal(AIM * (self._gain or WEIGHTLESS)) if self.solver.tolerance is None else None

    @property
    def _gain(self):
        """m/s that a body gains by gravity in a step."""
        return self.dt * math.hypot(*self.gravity)

    @property
    def typical_radius(self) -> float:
        """m, median bounding radius of the bodies that can move; 0 where there are none."""
        radii = self.engine.field("extent")[can_move(self.engine.field("tag")[:, STATUS]), 3]
        return float(np.median(radii)) if len(radii) else 0.0

    @property
    def midpoint(self) -> bool:
        """Whether the step looks half a step ahead."""
        return self.integrator == "midpoint"

    def _driven(self):
        """Bodies with a motion get the velocity that takes them from where the step looks to where the next one will."""
        ids, dt, look = list(self.motions), self.dt, 0.5 * self.dt if self.midpoint else 0.0
        poses = lambda time: [_array_pose(self._motion_pose(body, time)) for body in ids]  # noqa: E731
        ahead = poses(self.time + look + dt)
        if self.midpoint:
            position, quaternion = map(np.array, zip(*poses(self.time + look)))
            end = poses(self.time + dt)
        else:
            position, quaternion = self.engine.pick("position", ids), self.engine.pick("quaternion", ids)
            end = ahead
        turns = to_rotation_vector(multiply([turned for _, turned in ahead], conjugate(quaternion)))
        velocity = np.hstack([(np.array([place for place, _ in ahead]) - position) / dt, turns / dt])
        return Driven(np.array(ids), position, quaternion, velocity, *map(np.array, zip(*end)))

    def _motion_pose(self, body, time):
        start_position, start_quaternion, since = self.motion_starts[body]
        return pose_at(self.motions[body], time - since, start_position, start_quaternion, f"the motion of body {body}")

    def _refusal(self, words, body):
        """The error for what the next step cannot take."""
        message = f"{words} in step {self.steps + 1}, t = {self.time:g} s; the state before that step is kept"
        return SimulationError(message, body, self.time, self.steps + 1)

    def _refuse_fault(self, body):
        (body,) = map(int, self.processes.largest(body))
        if body >= 0:
            known = self.engine.pick("tag", [body])[0, STATUS] != REMOVED
            where = f" at ({', '.join(f'{x:g}' for x in self.engine.pick('position', [body])[0])}) m" if known else ""
            raise self._refusal(f"body {body}{where} would get a velocity that is not finite or leave the bounds", body)

    # --- periodic space and moving surfaces in the step
    def _tell_of_cell(self):
        if self.cell is not None:
            self.cell.check_step(self.dt)
            now = self.cell.lattice(0.5 * self.dt if self.midpoint else 0.0)
            self.engine.set_cell(now, self.cell.lattice(self.dt))
            self.processes.set_cell(now)

    def _advance_cell(self):
        """The cell a step later; where it follows a stress, at the rates that this step's stress gives it."""
        if self.cell is None:
            return
        self.cell.advance(self.dt)
        law = self.cell.deformation
        if law is not None and law.controls_stress:
            velocity, status = self.engine.field("velocity")[:, LINEAR], self.engine.field("tag")[:, STATUS]
            movable = can_move(status) & (self.engine.field("rank") == self.processes.rank)
            mass = 1.0 / self.engine.field("inverse_mass")[movable, 0]
            velocity = velocity[movable].astype(float)
            all_mass, *momentum = self.processes.total(mass.sum(), *(mass @ velocity))
            velocity -= np.array(momentum) / all_mass
            total = self.engine.virial() / self.dt + np.einsum("n,ni,nj->ij", mass, velocity, velocity)
            self.cell.follow(np.array(self.processes.total(*np.diagonal(total))) / self.cell.volume, float(all_mass), self.dt)

    def _tell_of_surfaces(self):
        time = self.time + (0.5 * self.dt if self.midpoint else 0.0)
        if self._surfaces_told == self.surfaces and not any(map(callable, self.surfaces.values())):
            return
        values = [surface_at(surface, time, body) for body, surface in self.surfaces.items()]
        self.engine.set_surfaces(np.array(list(self.surfaces), np.int64), np.array(values, float).reshape(-1, 6))
        self._surfaces_told = dict(self.surfaces)

    # --- sleep in the step
    def _wake_disturbed(self, driven):
        """Those wake whom a body with a motion comes near; all where something has changed."""
        if self._roused:
            self.engine.wake(None)
            self._roused = False
        if self.sleep is None:
            return
        self._movers = NO_MOVERS if driven is None else movers_of(driven, self.engine, self.dt, self.cell is not None)
        if len(self._movers.reach):
            sleepers = self.engine.ids()[self.engine.field("tag")[:, STATUS] == SLEEPING]
            self._wake_islands_of(sleepers[self._movers.near(self.engine, sleepers)])

    def _wake_islands_of(self, ids):
        self.engine.wake(np.unique(self.engine.pick("island", ids)))

    def _let_sleep(self):
        """At the end of a step: islands that have been at rest for long enough fall asleep."""
        if self.sleep is None or not self._watch.is_due(self.time, self.sleep.time):
            return
        if self._watch.look(self.engine, self.sleep.speed_for(self.gravity, self.typical_radius), self.sleep.time):
            if len(self._watch.ids) and (self.cell is None or self.cell.deformation is None):
                self._find_sleepers(self._watch.ids)
            self._watch.begin(self.engine, self.time)

    def _find_sleepers(self, calm):
        """``calm``: ids of the bodies that have been at rest."""
        engine, carrying = self.engine, carrying_ids(self.engine, self.surfaces)
        awake = awake_ids(engine)
        restless, machine = ~np.isin(awake, calm) | self._movers.near(engine, awake), {}
        if len(self.mechanism):
            state = engine.joint_state()
            machine, driven = self.mechanism.machine_of_bodies(state), {*self.motions, *carrying.tolist()}
            driven = self.mechanism.driven_machines(state, driven)
            restless |= np.isin(awake, [body for body, number in machine.items() if number in driven])
        engine.sleep(*islands_at_rest(awake, restless, engine.contacts(), carrying, machine))

    def watch_arrays(self) -> dict[str, np.ndarray]:
        """Who has been at rest since when, for a file."""
        return self._watch.to_arrays()

    def restore_watch(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what ``watch_arrays`` gave; see ``gravel.running.sleep.Watch``."""
        self._watch.from_arrays(arrays)

    # --- joints in the step
    def _settle_joints(self):
        """Before the first step: joints are closed where that was asked for, and velocities fit them."""
        if self._solves_joints:
            self._warm_up()()
        if self.mechanism.open and self._solves_joints:
            self.engine.set_joints(self.mechanism.arrays(directly=True))
            reach = max(self.mechanism.row_values["scale"], default=1.0)
            for _ in range(ASSEMBLY_ROUNDS):
                if np.max(self.engine.joint_state().violation) <= 1e-10 * reach:
                    break
                self.engine.close_joints()
            violation = self.engine.joint_state().violation
            if not np.max(violation) <= 1e-7 * reach:
                worst = self.mechanism.names[int(np.nanargmax(violation))]
                raise ValueError(f"the joints cannot be assembled: {worst} is still {np.max(violation):g} m from being closed")
        self.mechanism.open = False
        self._align(range(len(self.mechanism)))

    def _join(self):
        """The engine is told of the joints, and of the pairs of bodies that may not touch, when they have changed."""
        if self.mechanism.changed:
            self.engine.set_joints(self.mechanism.arrays(self.joint_mode == "direct") if self._solves_joints else None)
            self.mechanism.changed = False
            self._part()

    def _part(self):
        """Bodies that are joined may not touch, unless their joint allows it or is broken."""
        broken = self.engine.joint_state().broken if self._solves_joints else np.zeros(len(self.mechanism), np.uint8)
        (broken,) = self.processes.of_joints(broken)
        self.engine.exclude(self.mechanism.pairs_apart(broken))

    @property
    def _solves_joints(self):
        """Whether there are joints, and this is the process that solves them."""
        return len(self.mechanism) > 0 and self.processes.solves_joints

    def _align(self, joints):
        """Velocities that these joints, and those connected with them, do not allow are taken out, unless they hang on a body with a
        motion of its own, whose velocity only the step knows."""
        self._join()
        if self._solves_joints:
            self.engine.align_joints(self.mechanism.connected(joints, self.engine.joint_state(), self.motions))

    def _drive(self):
        """Joints are measured; motors and springs that are functions of time or place are asked for their values."""
        if self._solves_joints:
            value, rate = self.engine.measure_joints()
            look = 0.5 * self.dt if self.midpoint else 0.0
            for row, numbers in self.mechanism.evaluate(self.time + look, self.time + self.dt, self.dt, value, rate):
                self.engine.set_laws(row, numbers)

    def _break_overloaded(self):
        """Joints whose load is too high break; returns how many."""
        if not len(self.mechanism):
            return 0
        broken = self.mechanism.overloaded(self.engine.joint_state()) if self._solves_joints else ()
        if len(broken):
            self.engine.break_joints(broken)
        (number,) = map(int, self.processes.total(len(broken)))
        if number:
            self._part()
        return number

    # --- the state: arrays by id, taken back before the next step and fresh when asked for again (``gravel.state.Views``)
    @property
    def ids(self) -> np.ndarray:
        """(N,) ids of the bodies that arrays are of, in their order: every id that was ever given or, of several processes, those of the
        bodies that this one owns."""
        return self.views.ids

    @property
    def positions(self) -> np.ndarray:
        """(N, 3) m; NaN for bodies that were removed. Write to it: the next step takes it."""
        return self.views.lend("positions")

    @property
    def quaternions(self) -> np.ndarray:
        """(N, 4) w x y z; NaN for bodies that were removed. Write to it."""
        return self.views.lend("quaternions")

    @property
    def velocities(self) -> np.ndarray:
        """(N, 3) m/s; write to it."""
        return self.views.lend("velocities")

    @property
    def angular_velocities(self) -> np.ndarray:
        """(N, 3) rad/s, world frame; write to it."""
        return self.views.lend("angular_velocities")

    @property
    def forces(self) -> np.ndarray:
        """(N, 3) N, forces applied in every step at the centres of mass; write to it."""
        return self.views.lend("forces")

    @property
    def torques(self) -> np.ndarray:
        """(N, 3) N m, world frame, applied in every step; write to it."""
        return self.views.lend("torques")

    @property
    def windings(self) -> np.ndarray:
        """(N, 3) how often bodies have left a periodic cell along each axis, upwards less downwards; to be read."""
        return self.views.winding

    @property
    def unwrapped_positions(self) -> np.ndarray:
        """(N, 3) m, to be read: where bodies would be if a periodic cell did not bring them back to its other side."""
        return self.positions if self.cell is None else self.positions + self.cell.shifts(self.windings)

    @property
    def bodies(self) -> Views:
        """All fields of the bodies by id, to be read: ``sim.bodies.extent`` (see ``gravel.state.FIELDS``)."""
        return self.views

    @property
    def count(self) -> int:
        """How many ids were ever given, those of removed bodies included: the length of the arrays."""
        return self.views.count

    def own_ids(self) -> np.ndarray:
        """Ids of the bodies that this process writes into files: each body that is there is written by one of ``team``."""
        return self.views.present("id")["id"]

    @property
    def alive(self) -> np.ndarray:
        """(N,) False for bodies that were removed."""
        return self.views.status != REMOVED

    @property
    def movable(self) -> np.ndarray:
        """(N,) True for bodies that forces can move."""
        return can_move(self.views.status)

    @property
    def asleep(self) -> np.ndarray:
        """(N,) True for bodies that sleep (``Sleep``), to be read."""
        asleep = self.views.status == SLEEPING
        asleep &= not self._roused
        asleep.flags.writeable = False
        return asleep

    def wake(self, ids: ArrayLike | None = None) -> None:
        """Wake bodies, ``ids`` (n,) or one, with all that rests on them or under them, None: all that sleep. They may fall asleep again."""
        if ids is not None:
            ids = self._checked_ids(ids)
        with _Alone(self):
            self.views.take_back()
            if ids is None:
                self.engine.wake(None)
            else:
                self._wake_islands_of(ids)

    @property
    def masses(self) -> np.ndarray:
        """(N,) kg, to be read; infinite for bodies that forces cannot move, zero for those that were removed."""
        with np.errstate(divide="ignore"):
            masses = 1.0 / self.views.inverse_mass[:, 0]
        masses.flags.writeable = False
        return masses

    @property
    def inertias(self) -> np.ndarray:
        """(N, 3) kg m2, principal moments about the body's axes, to be read; infinite for bodies that forces cannot turn, zero for
        those that were removed."""
        with np.errstate(divide="ignore"):
            moments = 1.0 / self.views.inverse_mass[:, 1:]
        moments.flags.writeable = False
        return moments

    @property
    def radii(self) -> np.ndarray:
        """(N,) m, of the ball about the centre of each body that holds it all, to be read; infinite for planes, zero for bodies that were
        removed."""
        return self.views.extent[:, 3]

    @property
    def shapes(self) -> np.ndarray:
        """(N,) names of the bodies' kinds of shape, "sphere", "box" and so on (``gravel.shapes.kinds.NAMES``), to be read; empty
        for bodies that were removed. ``shape_of`` gives sizes, and ``sim.bodies.extent`` those of all bodies."""
        tag = self.views.tag
        names = names_of_kinds(tag[:, SHAPE], tag[:, STATUS] != REMOVED)
        names.flags.writeable = False
        return names

    def shape_of(self, body: int) -> Shape:
        """The shape of a body, such as Sphere(0.01), in the frame that its pose places: of a hull, mesh or compound that can move, about
        its centre of mass and along its principal axes. Ground comes back as a Mesh, spheres that are joined as a Clump."""
        tag = self.engine.pick("tag", [self._check_present(body)])[0]
        number = int(self.engine.pick("geometry", [body])[0])
        return shape_of_body(
            int(tag[SHAPE]), self.engine.pick("extent", [body])[0], None if number == NONE else self.geometries[number]
        )

    def _check_present(self, body):
        """The id of a body that is there."""
        if checks.count("body", body) >= self.count:
            raise ValueError(f"body must be an id below {self.count}, not {body}")
        if self.engine.pick("tag", [body])[0, STATUS] == REMOVED:
            raise ValueError(f"body must be one that is there, but body {body} was removed")
        return int(body)

    @property
    def contacts(self) -> ContactTable:
        """The contacts of the last step with their impulses, a ``ContactTable``."""
        if not self.knows_contacts:
            raise SimulationError("contacts are not known after a refused step: take a good step first")
        if self._known_contacts is not None:
            return self._known_contacts
        return self.engine.contacts() if self._stepped else ContactTable.empty()

    @property
    def contact_lag(self) -> float:
        """s: how long before the present time the contacts of the last step were found; points and poses belong together there."""
        return 0.5 * self.dt if self.midpoint else self.dt

    @property
    def knows_contacts(self) -> bool:
        """Whether ``contacts`` are those of a step that was taken, or none was yet."""
        return not self._refused

    def know_contacts(self, contacts: ContactTable) -> None:
        """The contacts of the last step, of a simulation that has been read from a file or copied."""
        self._known_contacts = contacts

    @property
    def joints(self) -> JointTable:
        """The joints with their positions, speeds, reactions and efforts, a ``JointTable``; one row per joint id."""
        self._join()
        if not self.processes.solves_joints:
            raise SimulationError("joints are known to the process that solves them: sim.gather('joints') brings them to the first")
        return joint_table(self.mechanism.coordinates, self.engine.joint_state())

    def cast_rays(self, origins: ArrayLike, directions: ArrayLike, reach: float = math.inf) -> RayHits:
        """What rays hit first, a ``RayHits``: see ``gravel.detection.queries.cast_rays``."""
        return cast_rays(self._engine_now(), origins, directions, reach)

    def bodies_in_box(self, low: ArrayLike, high: ArrayLike) -> np.ndarray:
        """Ids of the bodies whose bounding boxes overlap a box, see ``gravel.detection.queries.bodies_in_box``."""
        return bodies_in_box(self._engine_now(), low, high)

    def _engine_now(self):
        """The engine with all that users wrote."""
        self.views.take_back()
        self._renew_rules()
        return self.engine

    def to_pandas(self) -> "pandas.DataFrame":
        """The bodies that are there as a pandas DataFrame, a row for each id: shape, material, sizes, pose and velocities. Vectors
        are columns such as ``position_x``, and ``attrs["units"]`` has their units."""
        there = self.alive
        columns = {name: getattr(self, source)[there] for name, (source, _) in tables.BODIES.items()}
        columns["material"] = self.material_numbers[self.ids[there]]
        return tables.data_frame(columns, tables.BODY_UNITS, tables.need("pandas", "to_pandas").Index(self.ids[there], name="id"))

    def state_hash(self) -> str:
        """A fingerprint of all bodies' states: equal if and only if they are equal to the last bit, on any number of processes."""
        digest = hashlib.sha256(np.array([self.time]).tobytes())
        pieces = self.processes.all_of(self.views.present("id", "tag", "position", "quaternion", "velocity"))
        order = np.argsort(np.concatenate([piece["id"] for piece in pieces]), kind="stable")
        for name in pieces[0]:
            values = np.concatenate([piece[name] for piece in pieces])[order]
            digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()[:32]

    def gather(self, *names: str) -> Any:
        """Bring arrays of all bodies, by id as on one process, to the first process: ``x, v = sim.gather("positions", "velocities")``; also
        "contacts" and "joints". The others get None. All processes must call it."""
        from gravel.running.gather import gather

        return gather(self, names)

    # --- bodies that come and go
    def add_bodies(
        self,
        shape: Shape,
        positions: ArrayLike,
        material: Material | None = None,
        *,
        quaternions: ArrayLike | None = None,
        velocities: ArrayLike | None = None,
        angular_velocities: ArrayLike | None = None,
        masses: ArrayLike | None = None,
        inertias: ArrayLike | None = None,
        fixed: bool = False,
        group: int = 0,
        motion: Motion | None = None,
        surface_velocity: SurfaceVelocity | None = None,
        local: bool = False,
    ) -> np.ndarray:
        """Add bodies while the simulation runs; arguments and ids as in ``Scene.add_bodies``. Of several processes all must call it: with
        the same bodies, of which each keeps its part or, if ``local``, each with bodies of its own, which may be none."""
        material = DEFAULT if material is None else material
        surface = None if surface_velocity is None else surface_of(surface_velocity)
        block, geometry = body_block(
            shape, positions, material, quaternions, velocities, angular_velocities, masses, inertias, fixed, group, motion
        )
        with _Alone(self):
            known = len(self.materials.kinds)
            number = self.materials.number_of(material)
            self._rules = self._rules if len(self.materials.kinds) == known else None
            block["tag"][MATERIAL] = self.materials.row[number]
            if geometry is not None:
                known = len(self.geometries)
                block["geometry"] = self.geometries.number_of(geometry)
                self._rules = self._rules if len(self.geometries) == known else None
            before, total = self.processes.count_new(len(block["position"]), local)
            ids = block["id"] = np.arange(self.count + before, self.count + before + len(block["position"]))
            self._material_of += array("i", [-1]) * (self.count - len(self._material_of))
            for many, kind in self.processes.all_of((len(ids), number)) if local else [(total, number)]:
                self._material_of += array("i", [kind]) * many
            self.views.end(self.count + total)
            large = np.full(len(ids), fixed or motion is not None) & self._is_large(block, motion, surface)
            self.processes.add(self.engine, block, large, local)
            self.views.renew()
        if fixed or motion is not None:
            self._roused = True  # sleepers do not see what cannot move
        if motion is not None:
            for body, position, quaternion in zip(ids.tolist(), block["position"], np.array(block["quaternion"])):
                self.motions[body], self.motion_starts[body] = motion, (position.copy(), quaternion, self.time)
        if surface is not None:
            self.surfaces.update((body, surface) for body in ids.tolist())
        return ids

    def remove(self, ids: ArrayLike) -> None:
        """Take bodies out, ``ids`` (n,) or one: they touch nothing and are nowhere any more. Their ids are not used again. Of several
        processes all must call it; those go that any of them names."""
        ids = self.processes.union(self._checked_ids(ids))
        with _Alone(self):
            self.views.take_back()
            self.engine.wake(None)
            for body in ids.tolist() if self.motions or self.surfaces else ():
                self.motions.pop(body, None)
                self.surfaces.pop(body, None)
            if len(self.mechanism):
                self._join()
                if self._solves_joints:
                    self.engine.break_joints(self.mechanism.joints_of(ids.tolist(), self.engine.joint_state().broken))
                self._part()
            self.processes.remove(self.engine, ids)
            self.views.renew()

    def _is_large(self, block, motion, surface):
        """Whether fixed bodies that come are such that all processes shall know them."""
        (radius,) = self.processes.largest(self.typical_radius)
        return np.asarray(block["extent"])[:, 3] > LARGE * radius if motion is None and surface is None else True

    def _checked_ids(self, ids) -> np.ndarray:
        ids = checks.array("ids", np.atleast_1d(ids), (None,), dtype=np.int64)
        if len(ids) and (ids.min() < 0 or ids.max() >= self.count):
            raise ValueError(f"ids must be below {self.count}, not {ids.min()} to {ids.max()}")
        return ids

    @property
    def pairs(self) -> dict[tuple[int, int], dict]:
        """(i, j), i <= j -> contact values that were given for ``materials[i]`` and ``materials[j]``."""
        return self.materials.pairs

    def set_pair(self, material_a: Material, material_b: Material, **values: float) -> None:
        """Change the contact values of one pair of materials from now on; arguments as in ``Scene.set_pair``. After ``load``, the
        materials are other objects than before: ``material_of`` tells which."""
        for name, material in (("material_a", material_a), ("material_b", material_b)):
            if isinstance(material, Material) and material not in self.materials and material in self.materials.kinds:
                raise ValueError(f"{name} must be what material_of(body) gives, not another Material that is equal to it")
        self._change_materials(lambda: self.materials.set_pair(material_a, material_b, values))

    def set_material(self, ids: ArrayLike, material: Material) -> None:
        """Bodies, ``ids`` (n,) or one, are made of ``material`` from now on, as far as contacts go; they keep their mass."""
        bodies = self._checked_ids(ids)
        if not self.alive[bodies].all():
            raise ValueError(f"ids must be those of bodies that are there, but body {bodies[~self.alive[bodies]][0]} was removed")

        def change():
            number = self.materials.number_of(material)
            for body in bodies.tolist():
                self._material_of[body] = number

        self._change_materials(change)

    def _change_materials(self, change):
        """Call a function that changes materials or who has them; what it does is taken back if it, or its outcome, is refused."""
        with _Alone(self):
            before = self.materials, self._material_of
            self.materials, self._material_of = self.materials.copy(), self._material_of[:]
            try:
                change()
                self._mark_materials()
                sanity_checks.check_cohesion(self, self.materials.contact_values())
                sanity_checks.check_solver(self.solver, self.materials.contact_values(), len(self.mechanism))
            except (TypeError, ValueError):
                self.materials, self._material_of = before
                self._mark_materials()
                raise
            self._rules, self._roused = None, True

    def material_of(self, body: int) -> Material:
        """The material of a body: the object with which it was made, or after ``load`` the one that stands for it."""
        if checks.count("body", body) >= self.count or self._material_of[body] < 0:
            raise ValueError(f"body must be one that is there, but {body} is not")
        return self.materials[self._material_of[body]]

    @property
    def material_numbers(self) -> np.ndarray:
        """(N,) numbers in ``materials`` of the bodies' materials, to be read; -1 where an id was never used."""
        numbers = np.full(self.count, -1, np.int32)
        numbers[: len(self._material_of)] = np.frombuffer(self._material_of, np.int32)
        numbers.flags.writeable = False
        return numbers

    def _mark_materials(self):
        """The engine is told the row of each body's material in the table of contact values."""
        number = np.frombuffer(self._material_of, np.int32)[self.engine.ids()]
        self.engine.set_field("tag", slice(MATERIAL, MATERIAL + 1), np.array(self.materials.row, np.int32)[number, None])

    def add_joint(self, joint: AnyJoint) -> int:
        """Join two bodies as they lie now; returns the joint's id."""
        if self.processes.size > 1:
            raise SimulationError("joints must be part of the scene where several processes share it: scene.add_joint")
        sanity_checks.check_solver(self.solver, self.materials.contact_values(), len(self.mechanism) + 1)
        with _Alone(self):
            self.views.take_back()
            self.engine.wake(None)
            self._keep_joints()
            number = self.mechanism.add(joint, _Present(self.engine, self.count))
            self._rules = None
            self._align([number])
            self.views.renew()
        return number

    def settle(self) -> None:
        """What users wrote goes to the engine, and what the engine knows of the joints to the mechanism: before a file is written."""
        with _Alone(self):
            self.views.take_back()
            if self._roused:
                self.engine.wake(None)
                self._roused = False
            self._keep_joints()

    def _keep_joints(self):
        self._join()
        if self._solves_joints or not len(self.mechanism):
            self.mechanism.keep(self.engine.joint_state())

    def release_joint(self, joint: int) -> None:
        """Take a joint out: its bodies go their own ways, and may touch each other from now on."""
        self._check_joint(joint)
        with _Alone(self):
            self._join()
            self.engine.wake(None)
            if self._solves_joints:
                self.engine.break_joints([joint])
            self._part()

    def set_motor(self, joint: int, motor: Motor, coordinate: str | None = None) -> None:
        """Replace the motor of a joint that was made with one. ``coordinate`` "slide" or "angle", where a joint has both."""
        self._check_joint(joint)
        if coordinate is not None:
            checks.choice("coordinate", coordinate, ("slide", "angle"))
        self._join()
        gauges = {None: None, "slide": SLIDES, "angle": TURNS}[coordinate]
        law = self.mechanism.set_motor(joint, motor, gauges)
        if self._solves_joints:
            self.engine.set_laws(*law)

    def _check_joint(self, joint):
        if checks.count("joint", joint) >= len(self.mechanism):
            raise ValueError(f"joint must be an id below {len(self.mechanism)}, not {joint}")

    def set_motion(self, body: int, motion: Motion | None) -> None:
        """A body follows ``motion`` from now on; None: it stays where it is (a gate opens, a piston stops)."""
        self._check_present(body)
        self.views.take_back()
        if self.engine.pick("tag", [body])[0, STATUS] != IMMOVABLE:
            raise ValueError(f"body {body} must be fixed or have a motion to get another, but forces move it")
        if motion is not None and not callable(motion) and not hasattr(motion, "pose"):
            raise TypeError(f"motion must be a function of time or a ready motion, not {motion!r}")
        self._roused = True
        if motion is None:
            self.motions.pop(int(body), None)
            self.velocities[body] = self.angular_velocities[body] = 0
        else:
            self.motions[int(body)] = motion
            self.motion_starts[int(body)] = (self.positions[body].copy(), self.quaternions[body].copy(), self.time)

    def set_surface_velocity(self, body: int, surface_velocity: SurfaceVelocity | None) -> None:
        """The surface of a body moves so from now on, see ``Scene.add_bodies``; None: with the body."""
        if checks.count("body", body) >= self.count:
            raise ValueError(f"body must be an id below {self.count}, not {body}")
        if not self.alive[body]:
            raise ValueError(f"body must be one that is there, but body {body} was removed")
        surface = None if surface_velocity is None else surface_of(surface_velocity)
        self._roused = True
        if surface is None:
            self.surfaces.pop(int(body), None)
        else:
            self.surfaces[int(body)] = surface

    def deform(self, deformation: Deformation | None) -> None:
        """The periodic cell deforms so from now on; None: it keeps its size and shape."""
        if self.cell is None:
            raise ValueError("deformation is that of a periodic cell, but this scene has none: Scene(periodic=((x0, x1), ...))")
        self.cell.deform(deformation)
        self._roused = True

    # --- the run
    def run(
        self,
        until: float,
        save: str | os.PathLike | None = None,
        every: float | None = None,
        progress: bool = False,
        observers: Iterable = (),
        checkpoint: str | os.PathLike | None = None,
        checkpoint_every: float | None = None,
        contacts: bool = False,
        surfaces: bool | str = "auto",
    ) -> "RunReport":
        """Step until the time ``until``, s; returns a ``RunReport``. See ``gravel.running.run``."""
        from gravel.running.run import run

        return run(self, until, save, every, progress, observers, checkpoint, checkpoint_every, contacts, surfaces)

    def view(self, browser: bool | None = None, host: str = "127.0.0.1", port: int = 0, **facts: Any) -> "View":
        """Show it in a page that follows it as it steps, and may pause it (extra view). ``browser``: whether to open one (None: not in a
        notebook, where the page is shown inline). ``host``: who can reach it, by default this machine alone; ``port`` 0: any that is
        free."""
        from gravel.view.viewer.show import view_of

        if self.processes.size > 1:
            raise SimulationError("a simulation that several processes share cannot be viewed while it runs: gravel view its result file")
        made = view_of(self, browser, host, port, **facts)
        self._pages.append(made.source)
        made.when_closed = lambda: self._pages.remove(made.source)
        return made

    def refresh_pages(self) -> None:
        """A run has ended: pages that follow it show its last state."""
        for page in self._pages:
            page.rest(self)

    def save(self, path: str | os.PathLike) -> None:
        """Write a checkpoint, from which ``Simulation.load`` continues bit for bit."""
        from gravel.io.checkpoint import save

        save(self, path)

    def copy(self) -> "Simulation":
        """A twin with the same state and the same future, bit for bit, that goes its own way. Motions, motors and springs that are
        Python functions are shared with it."""
        from gravel.io.checkpoint import from_bytes, to_bytes

        functions = self.motions, self.mechanism.function_laws(), self.surfaces
        twin = from_bytes(to_bytes(self, contacts=False), self.threads, *functions)
        twin.materials, twin._material_of = self.materials.copy(), self._material_of[:]
        twin.report, twin._deepest, twin._widest, twin._warned_of_speed = self.report, self._deepest, self._widest, self._warned_of_speed
        twin._warned_of_lift = self._warned_of_lift
        if self.knows_contacts:
            twin.know_contacts(self.contacts)
        return twin

    def __deepcopy__(self, memo) -> "Simulation":
        return self.copy()

    __copy__ = copy

    def __reduce__(self):
        """Pickled as a checkpoint, and with its functions, which pickle must be able to import."""
        from gravel.io.checkpoint import from_bytes, to_bytes

        return from_bytes, (to_bytes(self), self.threads, self.motions, self.mechanism.function_laws(), self.surfaces)

    @staticmethod
    def load(
        path: str | os.PathLike,
        threads: int | None = None,
        motions: dict | None = None,
        laws: dict | None = None,
        surfaces: dict | None = None,
        domain: Any = "auto",
        device: str | None = None,
    ) -> "Simulation":
        """The simulation that a checkpoint holds; see ``gravel.io.checkpoint.load``."""
        from gravel.io.checkpoint import load

        return load(path, threads, motions, laws, surfaces, domain, device)


def _nobody():
    return None


def _is_own_method(name):
    """Whether this is one of the simulation's inner methods, which a subclass or a test may replace."""
    return name.startswith("_") and hasattr(Simulation, name)


_gate = threading.Lock()  # whoever looks whether anybody is at work, and says that it is now, does so alone
if hasattr(os, "register_at_fork"):  # nobody stands in the gate while the process is doubled
    os.register_at_fork(before=_gate.acquire, after_in_parent=_gate.release, after_in_child=_gate.release)


class _Alone:
    """Whatever changes the engine does so alone: neither another thread nor a function that a step calls can come in between.

    The simulation knows this object by a weak reference. An interrupt may come at any moment, also while the block is left: with the
    object, the mark that it leaves goes by itself, where a lock would stay closed."""

    def __init__(self, simulation):
        self.simulation = simulation

    def __enter__(self):
        with _gate:
            if self.simulation._under_way() is not None:
                raise SimulationError("a step of this simulation is under way, in another thread or around this call: wait for its end")
            self.simulation._under_way = weakref.ref(self)

    def __exit__(self, *_):
        self.simulation._under_way = _nobody


class _Lap:
    """Seconds since the last call, by stage."""

    def __init__(self):
        self.seconds, self.last = {}, clock_module.perf_counter()

    def __call__(self, stage):
        now = clock_module.perf_counter()
        self.seconds[stage], self.last = self.seconds.get(stage, 0.0) + now - self.last, now


class _Present:
    """Fields of single bodies of an engine by id, as joints look at them."""

    def __init__(self, engine, count):
        self.count = count
        for name in ("position", "quaternion", "inverse_mass"):
            setattr(self, name, _OfBody(engine, name))
        self.status = _OfBody(engine, "tag", STATUS)


class _OfBody:
    def __init__(self, engine, name, column=None):
        self.engine, self.name, self.column = engine, name, column

    def __getitem__(self, body):
        row = self.engine.pick(self.name, [body])[0]
        return row if self.column is None else row[self.column]


def _array_pose(pose):
    return np.asarray(pose[0], float), np.asarray(pose[1], float)


def _large_bodies(scene):
    """Mask of the bodies that all processes shall know: fixed ones that are large, and whatever is driven."""
    status, radius = scene.bodies.status, scene.bodies.extent[:, 3]
    moves = can_move(status)
    large = ~moves & (radius > LARGE * (np.median(radius[moves]) if moves.any() else 0.0))
    driven = np.isin(scene.bodies.id, [*scene.motions, *scene.surfaces, *scene.driven])
    return large | (~moves & (driven | _joined_bodies(scene)))


def _joined_bodies(scene):
    """Mask of the bodies that have joints."""
    return np.isin(scene.bodies.id, [*scene.mechanism.bodies(), *scene.joined])


def _block_with_forces(scene):
    """The fields of a scene's bodies, with the forces on them."""
    block = scene.bodies.block()
    if scene.forces:
        block["force"], block["torque"] = scene.bodies.force.copy(), scene.bodies.torque.copy()
        for body, (force, torque) in scene.forces.items():
            block["force"][body], block["torque"][body] = force, torque
    return block
