"""Simulation: the step, the run, the reports. The first page to read.

``Simulation.step`` is one straight line from poses to poses, and the one place that knows its order. Collaborators in ``gravel.running``
upload what has changed, the stages of the engine (``gravel.engine``) run, and each collaborator takes what it needs after. ``run`` repeats
the step and calls observers around it, never inside.
"""

import math
import os
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.contacts import ContactTable
from gravel.engine import Problem, checked_threads, make_engine, no_lap
from gravel.interrupts import DeferInterrupt
from gravel.joints.drives import Motor
from gravel.joints.kinds import AnyJoint
from gravel.model.cell import Deformation
from gravel.model.materials import DEFAULT, Material
from gravel.model.motion import Motion, SurfaceVelocity, surface_of
from gravel.running import bodies, rules, sanity_checks, start
from gravel.running.access import StateAccess
from gravel.running.communicator import Communicator
from gravel.running.detect import detect_awake
from gravel.running.periodic import advance_cell, upload_cell
from gravel.running.processes import make_processes
from gravel.running.report import StepRecord, StepReport
from gravel.running.run import RunReport
from gravel.running.run import run as run_steps
from gravel.running.settings import CHANGEABLE, FOR_LIFE, Settings, refuse_unknown
from gravel.running.sleep import Sleep
from gravel.scene import Scene, body_block
from gravel.shapes import Shape
from gravel.shapes.geometry import Geometries
from gravel.solvers import Solver

if TYPE_CHECKING:
    from gravel.view.viewer.show import View

PAPER_SCHEME = {"friction": "cone", "warm_start": False, "recovery": 1.0, "recovery_speed": math.inf, "integrator": "euler"}


class Simulation(StateAccess):
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

    team: Communicator  # the processes that share the scene, as files see them
    tell: Callable[[str], None]  # progress callback while kernels compile

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
        self._settings = Settings(
            dt=dt, solver=solver, gravity=scene.gravity, friction=friction, integrator=integrator, ellipsoid_method=ellipsoid_method,
            margin=margin, recovery=recovery, recovery_speed=recovery_speed, warm_start=warm_start, sleep=sleep,
            restitution_threshold=restitution_threshold,
        )  # fmt: skip
        self.scene, self.steps, self.start_time = scene, 0, 0.0
        self.joint_mode = checks.choice("joints", joints, ("direct", "iterative"))
        self.processes = self.team = make_processes(domain)
        threads = self.processes.threads() if threads is None else threads
        self.device, self.precision, self.broad_phase, self.threads = device, precision, broad_phase, checked_threads(threads)
        self.engine = make_engine(device, precision, broad_phase, self.threads)
        sanity_checks.check_device(self.engine, device, self.solver)
        self.world = start.world_bounds(bounds, scene, self.processes)
        self.geometries, self.ignored = Geometries(scene.geometries), scene.ignored.copy()
        self.cell = None if scene.cell is None else scene.cell.copy()
        self.run_id = uuid.uuid4().hex  # of this very run: kept by its checkpoints, copies and results, so that they know each other
        self.origin: dict = {}  # what made the scene, if that is known: a built-in scene's name, bodies and seed
        self.until: float | None = None  # s, up to which the run goes that is under way, or the last one went
        self.report: StepReport | None = None
        self.on_status = no_lap
        self._make_parts(scene)
        self._rules.check(self._materials.contact_values())
        sanity_checks.warn_of_arms(self.engine, self.materials.kinds, self.body_names)
        if self._machines.solved_here:
            self._warm_up.begin(self.on_status)()
        self._machines.assemble(self.motions)
        self._made = True

    def __setattr__(self, name, value):
        """Settings (``gravel.running.settings``) are checked as in the constructor and hold from the next step on. Attributes that do not
        exist are refused: a misspelt one would do nothing."""
        known = name in CHANGEABLE or name in self.__dict__ or name.startswith("__")
        if self.__dict__.get("_made") and (name in FOR_LIFE or not known):
            refuse_unknown(name, {n for n in (*dir(type(self)), *self.__dict__) if not n.startswith("_")})
        super().__setattr__(name, value)

    def _change_setting(self, name, value):
        """``time`` goes on when ``dt`` changes."""
        value = CHANGEABLE[name](value)
        if name == "solver":
            sanity_checks.check_device(self.engine, self.device, value)
            sanity_checks.check_solver(value, self._materials.contact_values(), len(self.mechanism))
        if name == "dt" and self.steps:
            self.start_time = self.time - self.steps * value
        if name == "sleep":
            self._sleepers.restart()
        setattr(self._settings, name, value)
        self._sleepers.wake_all_pending = True

    # --- the step
    def step(self) -> StepReport:
        """Advance by ``dt``; returns a ``StepReport``."""
        with self._exclusive.claim(), self._warm_up.before_first_step(self.on_status):
            record, goal = StepRecord(), rules.goal(self._settings)
            problem = self._build_problem(self.warm_start, record)
            record.solved(self.solver.iterate(problem, goal, aim=self.aim))
            sanity_checks.refuse_fault(self.engine, self.processes, self.world, self.body_names, self._refusal)
            with DeferInterrupt():  # state, count and report belong together
                record.commit, record.broken = self.engine.commit(), self._machines.break_overloaded()
                advance_cell(self.cell, self.engine, self.processes, self.dt)
                self.steps += 1
                self._sleepers.let_sleep(self.sleep, self.gravity, self.time)
                self._contacts.step_taken()
                self.views.refresh()
                self.report = record.report(self.steps, self.time, goal, self.views.own_count, self.engine, self.processes)
            self._warnings.give(self, record.penetration)
        self._pages.after_step(self)
        return self.report

    def _build_problem(self, warm, record):
        """From the state to the cone problem of the step."""
        engine, processes, lap, times = self.engine, self.processes, record.lap, self._settings.times(self.time)
        self.views.flush_writes()
        self._rules.upload()
        self._machines.upload()
        self._contacts.step_begins()
        upload_cell(self.cell, engine, processes, times)
        driven = self._prescribed.upload(times)
        processes.exchange_halo(engine)
        self.views.follow_migration()
        lap("copies")
        self._sleepers.wake_disturbed(self.sleep, driven, self.dt)
        record.found = detect_awake(engine, driven, lap, self._refusal)
        processes.build_shared_body_groups(engine)
        lap("meeting")
        engine.match(warm)
        if warm:
            processes.migrate_warm_start(engine)
        lap("match")
        engine.prepare_contacts()
        record.bounced(*engine.apply_restitution(not self.solver.local))
        engine.add_forces()
        lap("velocities")
        self._machines.drive(times)
        problem = engine.assemble(warm)
        processes.apply_mass_splitting(problem)
        lap("assemble")
        return problem

    def next_problem(self, warm_start: bool = False) -> Problem:
        """The cone problem of the next step in the engine's form, for a solver to be tried on (``solver.run(problem)``). The state
        stays as it is; ``contacts`` are not known until a step is taken."""
        with self._exclusive.claim():
            return self._build_problem(warm_start, StepRecord())

    # --- changes between steps
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
        name: str | None = None,
    ) -> np.ndarray:
        """Add bodies while the simulation runs; arguments and ids as in ``Scene.add_bodies``. Of several processes all must call it: with
        the same bodies, of which each keeps its part or, if ``local``, each with bodies of its own, which may be none."""
        material = DEFAULT if material is None else material
        surface = None if surface_velocity is None else surface_of(surface_velocity)
        block, geometry = body_block(
            shape, positions, material, quaternions, velocities, angular_velocities, masses, inertias, fixed, group, motion
        )
        with self._exclusive.claim():
            ids = self._population.add(block, geometry, material, motion is not None or surface is not None, local, name)
            self._prescribed.add(block, motion, surface, self.time)
            if fixed or motion is not None:
                self._sleepers.wake_all_pending = True  # sleepers do not see what cannot move
        return ids

    def remove(self, ids: ArrayLike) -> None:
        """Take bodies out, ``ids`` (n,) or one: they touch nothing and are nowhere any more. Their ids are not used again. Of several
        processes all must call it; those go that any of them names."""
        with self._exclusive.claim():
            self._population.remove(bodies.checked_ids(ids, self.count))

    def wake(self, ids: ArrayLike | None = None) -> None:
        """Wake bodies, ``ids`` (n,) or one, with all that rests on them or under them, None: all that sleep. They may fall asleep again."""
        with self._exclusive.claim():
            self.views.flush_writes()
            self._sleepers.wake(None if ids is None else bodies.checked_ids(ids, self.count))

    def set_pair(self, material_a: Material, material_b: Material, **values: float) -> None:
        """Change the contact values of one pair of materials from now on; arguments as in ``Scene.set_pair``. After ``load``, the
        materials are other objects than before: ``material_of`` tells which."""
        with self._exclusive.claim():
            self._materials.set_pair(material_a, material_b, values, self._rules.check)
            self._sleepers.wake_all_pending = True

    def set_material(self, ids: ArrayLike, material: Material) -> None:
        """Bodies, ``ids`` (n,) or one, are made of ``material`` from now on, as far as contacts go; they keep their mass."""
        with self._exclusive.claim():
            self._materials.set_material(bodies.checked_ids(ids, self.count), material, self._rules.check)
            self._sleepers.wake_all_pending = True

    def add_joint(self, joint: AnyJoint) -> int:
        """Join two bodies as they lie now; returns the joint's id."""
        sanity_checks.check_solver(self.solver, self._materials.contact_values(), len(self.mechanism) + 1)
        with self._exclusive.claim():
            return self._machines.add(joint, self.views, self.motions)

    def release_joint(self, joint: int) -> None:
        """Take a joint out: its bodies go their own ways, and may touch each other from now on."""
        with self._exclusive.claim():
            self._machines.release(joint)

    def set_motor(self, joint: int, motor: Motor, coordinate: str | None = None) -> None:
        """Replace the motor of a joint that was made with one. ``coordinate`` "slide" or "angle", where a joint has both."""
        self._machines.set_motor(joint, motor, coordinate)

    def set_motion(self, body: int, motion: Motion | None) -> None:
        """A body follows ``motion`` from now on; None: it stays where it is (a gate opens, a piston stops)."""
        body = bodies.checked_body(body, self.engine, self.count)
        self.views.flush_writes()
        self._prescribed.set_motion(body, motion, self.time)
        if motion is None:
            self.velocities[body] = self.angular_velocities[body] = 0
        self._sleepers.wake_all_pending = True

    def set_surface_velocity(self, body: int, surface_velocity: SurfaceVelocity | None) -> None:
        """The surface of a body moves so from now on, see ``Scene.add_bodies``; None: with the body."""
        self._prescribed.set_surface(bodies.checked_body(body, self.engine, self.count), surface_velocity)
        self._sleepers.wake_all_pending = True

    def deform(self, deformation: Deformation | None) -> None:
        """The periodic cell deforms so from now on; None: it keeps its size and shape."""
        if self.cell is None:
            raise ValueError("deformation is that of a periodic cell, but this scene has none: Scene(periodic=((x0, x1), ...))")
        self.cell.deform(deformation)
        self._sleepers.wake_all_pending = True

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
        interrupt: str = "raise",
    ) -> RunReport:
        return run_steps(self, until, save, every, progress, observers, checkpoint, checkpoint_every, contacts, surfaces, interrupt)

    run.__doc__ = run_steps.__doc__  # of all arguments, and of the report

    def view(self, browser: bool | None = None, host: str = "127.0.0.1", port: int = 0, **facts: Any) -> "View":
        """Show it in a page that follows it as it steps, and may pause it (extra view). ``browser``: whether to open one (None: not in a
        notebook, where the page is shown inline). ``host``: who can reach it, by default this machine alone; ``port`` 0: any that is
        free."""
        return self._pages.open(self, browser, host, port, **facts)

    def refresh_pages(self) -> None:
        """A run has ended: pages that follow it show its last state."""
        self._pages.after_run(self)

    # --- files and copies
    def flush(self) -> None:
        """Copy what users wrote into the engine, and what the engine knows of the joints into the mechanism, before a file is written."""
        with self._exclusive.claim():
            self.views.flush_writes()
            self._sleepers.wake_pending()
            self._machines.keep()

    def know_contacts(self, contacts: ContactTable) -> None:
        """The contacts of the last step, of a simulation that has been read from a file or copied."""
        self._contacts.give(contacts)

    def restore_watch(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what ``watch_arrays`` gave; see ``gravel.running.sleep.SleepTracker``."""
        self._sleepers.watch.from_arrays(arrays)

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
        twin._materials.copy_from(self._materials)
        twin.report, twin._warnings = self.report, replace(self._warnings)
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
