"""Simulation: the step, the run, the reports. The first page to read.

``Simulation.step`` is one straight line from poses to poses; every stage is a method of the engine, in the file of its
name. ``run`` repeats it and calls observers around it, never inside.
"""

import hashlib
import math
import time as clock_module
import warnings
from dataclasses import dataclass, field

import numpy as np

from gravel import checks
from gravel.contacts import ContactTable, checked_threads
from gravel.cpu.ahead import start as compile_ahead
from gravel.cpu.collide.bounds import Margin
from gravel.cpu.collide.exclude import make_excluded
from gravel.cpu.engine import BROAD_PHASES, ELLIPSOID_METHODS, Engine, make_rules
from gravel.cpu.solve.blocks import Scalars
from gravel.cpu.threads import use_threads
from gravel.joints.kinds import ANGLE, OFFSET_Z
from gravel.materials import Material, pair_table
from gravel.motion import pose_at
from gravel.queries import bodies_in_box, cast_rays
from gravel.rotations import conjugate, multiply, to_rotation_vector
from gravel.scene import Scene, body_block
from gravel.shapes.geometry import add_geometry
from gravel.solvers import GaussSeidel, Solver
from gravel.state import IMMOVABLE, MATERIAL, MOVABLE, REMOVED

PAPER_SCHEME = {"warm_start": False, "recovery": 1.0, "recovery_speed": math.inf}
OVERLAP = 1e-2  # of the smaller body's radius: what counts as an overlap within a machine at the start
MARGIN_SHARE = 0.005  # of a body's bounding radius: contacts this near count, so that resting ones do not flicker


class SimulationError(RuntimeError):
    """A step that could not be taken. The simulation still holds the last good state."""

    def __init__(self, message, body=None, time=None, step=None):
        super().__init__(message)
        self.body, self.time, self.step = body, time, step


@dataclass(frozen=True)
class StepReport:
    """How one step went."""

    step: int
    time: float  # s, at the end of the step
    contacts: int
    iterations: int
    residual: float  # m/s, largest over contacts and joint rows
    residual_rms: float  # m/s
    converged: bool  # residual <= the solver's tolerance
    max_penetration: float  # m, found at the start of the step
    kinetic_energy: float  # J, at its end
    impacts: int  # collisions with restitution
    joint_violation: float  # m, largest error of what a joint holds, at the end of the step
    broken: int  # joints that broke
    broad_phase: str  # which one found the pairs
    seconds: dict = field(repr=False)  # per stage


class Simulation:
    """A scene in motion.

    ``dt`` s; ``solver`` (default GaussSeidel); ``broad_phase`` "grid", "bvh" (a tree, for very different sizes), "sap" (sweep
    and prune), "brute", or "auto", which chooses the grid or the tree by the bodies' sizes (each step's report says which);
    ``precision`` "single" or "double" of velocities and impulses (poses are always double); ``threads`` None: all;
    ``friction`` "cone" (convex, as in the papers) or "coulomb" (no sliding gap); ``margin`` m within which gaps are contacts
    (None: 1 % of the grains' radius).

    A step takes back the share ``recovery`` of a penetration, at most at ``recovery_speed`` m/s; ``warm_start`` starts the
    solver from the last step's impulses.
    ``**PAPER_SCHEME`` gives the plain scheme of the papers. Impacts slower than ``restitution_threshold`` m/s do not bounce
    (None: 5 dt |gravity|). ``bounds`` ((x, y, z), (x, y, z)): a body that leaves them stops the run with an error.
    ``ellipsoid_method``: see ``find_contacts``.

    ``joints`` "direct" solves all joints at once in every iteration, so that their error does not depend on the length of chains;
    "iterative" treats their rows like contacts, as the papers do. ``integrator`` "midpoint" looks at contacts, joints and forces
    half a step ahead (Moreau's rule, second order), "euler" at the start of the step; "auto": midpoint where there are joints.
    """

    def __init__(
        self,
        scene,
        dt,
        solver=None,
        broad_phase="auto",
        device="cpu",
        precision="single",
        threads=None,
        friction="cone",
        margin=None,
        recovery=0.03,
        recovery_speed=1.0,
        warm_start=True,
        restitution_threshold=None,
        bounds=None,
        ellipsoid_method="direct",
        joints="direct",
        integrator="auto",
    ):
        if not isinstance(scene, Scene):
            raise TypeError(f"scene must be a Scene, not {scene!r}")
        if len(scene) == 0:
            raise ValueError("scene must hold at least one body; add some with scene.add_body or scene.add_bodies")
        self.scene = scene
        self.dt = checks.number("dt", dt, above=0.0)
        self.solver = GaussSeidel(tolerance=1e-4) if solver is None else solver
        if not isinstance(self.solver, Solver):
            raise TypeError(f"solver must be a solver such as GaussSeidel(), not {solver!r}")
        checks.choice("broad_phase", broad_phase, BROAD_PHASES)
        checks.choice("ellipsoid_method", ellipsoid_method, ELLIPSOID_METHODS)
        checks.choice("device", device, ("cpu",))
        checks.choice("precision", precision, ("single", "double"))
        checks.choice("friction", friction, ("cone", "coulomb"))
        checks.choice("joints", joints, ("direct", "iterative"))
        checks.choice("integrator", integrator, ("auto", "midpoint", "euler"))
        self.threads = checked_threads(threads)
        self.joint_mode, self.integrator = joints, integrator
        self.device, self.precision, self.friction, self.broad_phase = device, precision, friction, broad_phase
        self.ellipsoid_method = ellipsoid_method
        self.margin = None if margin is None else checks.number("margin", margin, minimum=0.0)
        self.recovery = checks.number("recovery", recovery, minimum=0.0, maximum=1.0)
        self.recovery_speed = (
            float(recovery_speed) if recovery_speed == math.inf else checks.number("recovery_speed", recovery_speed, above=0.0)
        )
        if not isinstance(warm_start, (bool, np.bool_)):
            raise TypeError(f"warm_start must be True or False, not {warm_start!r}")
        self.warm_start = bool(warm_start)
        self.restitution_threshold = (
            None if restitution_threshold is None else checks.number("restitution_threshold", restitution_threshold, minimum=0.0)
        )
        real = np.float32 if precision == "single" else np.float64
        self.bodies = scene.bodies.copy(real)
        self.world = _world(bounds, self.bodies)
        self.geometries = list(scene.geometries)
        self.gravity = scene.gravity.copy()
        self.materials, self.pairs, self.ignored = (
            list(scene.materials),
            {pair: dict(values) for pair, values in scene.pairs.items()},
            scene.ignored.copy(),
        )
        self.motions = dict(scene.motions)
        self.motion_starts = {b: (self.bodies.position[b].copy(), self.bodies.quaternion[b].copy(), 0.0) for b in self.motions}
        self._forces = self._torques = np.empty((0, 3))
        for body, (force, torque) in scene.forces.items():
            self.forces[body], self.torques[body] = force, torque
        self.engine = Engine(real, broad_phase)
        self.mechanism = scene.mechanism.copy()
        self.mechanism.solve_directly = joints == "direct"
        if self.mechanism.open:
            self.mechanism.assemble(self.bodies)
        self._align(range(len(self.mechanism)))
        self.steps = 0
        self._refused = False  # whether the last step was: the engine then holds contacts of no step that was taken
        self.compiling = False  # whether the first step had to compile kernels
        self.start_time = 0.0
        self.report = None
        self._rules = None

    # --- the step
    def step(self):
        """Advance by ``dt``; returns a ``StepReport``."""
        use_threads(self.threads, self.bodies.count)
        if self.report is None:
            self.compiling = compile_ahead(self)
        engine, seconds = self.engine, {}
        self._refused = True  # until the step is taken
        lap = _Lap(seconds)
        engine.place(self.bodies, self.rules)
        self._prescribe()
        lap("motion")
        self._join()
        engine.find_bounds()
        lap("bounds")
        engine.find_pairs()
        lap("broad phase")
        engine.find_contacts()
        lap("narrow phase")
        engine.match(self.warm_start)
        lap("match")
        impacts = engine.bounce()
        lap("impacts")
        engine.add_forces(self._forces, self._torques)
        lap("velocities")
        engine.measure_joints()
        self._drive()
        problem = engine.assemble(self.warm_start)
        lap("assemble")
        outcome = self.solver.run(problem, self.friction == "coulomb")
        lap("solve")
        fault, energy = engine.commit(self.world)
        self._refuse_fault(fault)
        self._follow()
        violation, broken = self._report_joints()
        self.steps += 1
        self._refused = False
        if self.steps == 1:
            self._warn_of_overlaps()
        lap("positions")
        self.report = StepReport(
            self.steps,
            self.time,
            engine.contact_total,
            outcome.iterations,
            outcome.residual,
            outcome.residual_rms,
            outcome.residual <= self.solver.tolerance,
            engine.penetration,
            energy,
            impacts,
            violation,
            broken,
            engine.phase,
            seconds,
        )
        return self.report

    @property
    def time(self):
        """Simulated time, s."""
        return self.start_time + self.steps * self.dt

    @property
    def rules(self):
        """What holds in every step, as the engine wants it."""
        if self._rules is None:
            margin = Margin(0.0, MARGIN_SHARE) if self.margin is None else Margin(self.margin, 0.0)
            threshold = self.restitution_threshold
            if threshold is None:
                threshold = 5 * self.dt * float(np.linalg.norm(self.gravity))
            scalars = Scalars(float(self.friction == "coulomb"), self.dt, self.recovery, min(self.recovery_speed, 1e30))
            self._rules = make_rules(
                self.dt,
                self.gravity,
                pair_table(self.materials, self.pairs),
                self.ignored,
                margin,
                self.geometries,
                self.ellipsoid_method,
                scalars,
                threshold,
                self.midpoint,
            )
        return self._rules

    @property
    def midpoint(self):
        """Whether the step looks half a step ahead."""
        return len(self.mechanism) > 0 if self.integrator == "auto" else self.integrator == "midpoint"

    def _prescribe(self):
        """Bodies with a motion get the velocity that takes them from where the step looks to where the next one will."""
        self._targets = {}
        placed, look = self.engine.bodies, 0.5 * self.dt if self.midpoint else 0.0
        for body, motion in self.motions.items():
            start_position, start_quaternion, since = self.motion_starts[body]
            pose = lambda time: pose_at(motion, time - since, start_position, start_quaternion)  # noqa: B023, E731
            if self.midpoint:
                placed.position[body], placed.quaternion[body] = pose(self.time + look)
            position, quaternion = pose(self.time + look + self.dt)
            turn = to_rotation_vector(multiply(quaternion, conjugate(placed.quaternion[body])))
            placed.velocity[body, :3] = (position - placed.position[body]) / self.dt
            placed.velocity[body, 4:7] = turn / self.dt
            self._targets[body] = pose(self.time + self.dt) if self.midpoint else (position, quaternion)

    def _follow(self):
        for body, (position, quaternion) in self._targets.items():
            self.bodies.position[body], self.bodies.quaternion[body] = position, quaternion

    def _join(self):
        """The engine gets the joints, and the pairs of bodies that may not touch."""
        stage = self.mechanism.prepare(self.bodies, self.midpoint) if len(self.mechanism) else None
        if self.engine.joints is not stage or (self.mechanism.apart and self.engine.excluded is None):
            self.engine.joints = stage
            self._part()

    def _align(self, joints):
        """Velocities that these joints, and those connected with them, do not allow are taken out, unless they hang on a body with a
        motion of its own, whose velocity only the step knows."""
        if len(self.mechanism):
            stage = self.mechanism.prepare(self.bodies, self.midpoint)
            stage.align(self.bodies, self.mechanism.connected(joints, self.motions))
            stage.look(self.bodies)

    def _warn_of_overlaps(self):
        """Bodies of one machine that overlap at the start, and that its joints may keep from parting."""
        if not len(self.mechanism) or self.engine.penetration == 0.0:
            return
        machine, table = self.mechanism.machine_of_bodies(), ContactTable.of_step(self.engine)
        for a, b, gap in zip(table.body_a.tolist(), table.body_b.tolist(), table.gap.tolist()):
            size = min(self.bodies.extent[a, 3], self.bodies.extent[b, 3])
            if gap < -OVERLAP * size and machine.get(a, -1) == machine.get(b, -2):
                warnings.warn(
                    f"bodies {a} and {b} of one machine overlap by {-gap:.3g} m at the start; if its joints keep them from parting, forces "
                    f"grow without end: place them apart, or let them pass through each other with scene.ignore_pair({a}, {b})",
                    stacklevel=3,
                )
                return

    def _part(self):
        """Bodies that are joined may not touch, unless their joint allows it or is broken."""
        pairs = self.mechanism.pairs_apart()
        self.engine.excluded = make_excluded(pairs, self.bodies.count) if pairs else None

    def _drive(self):
        """Motors and springs that are functions of time or place are asked for their values."""
        if self.mechanism.functions:
            self.mechanism.evaluate(self.time + (0.5 * self.dt if self.midpoint else 0.0), self.dt)

    def _report_joints(self):
        """(largest violation, how many joints broke) after the bodies have moved."""
        if not len(self.mechanism):
            return 0.0, 0
        violation, broken = self.engine.joints.report(self.engine.table, self.dt), self.mechanism.break_overloaded()
        if broken:
            self._part()
        return violation, broken

    def _refuse_fault(self, body):
        if body >= 0:
            where = ", ".join(f"{x:g}" for x in self.bodies.position[body])
            raise SimulationError(
                f"body {body} at ({where}) m would get a velocity that is not finite or leave the bounds "
                f"in step {self.steps + 1}, t = {self.time:g} s; the state before that step is kept",
                body,
                self.time,
                self.steps + 1,
            )

    # --- the state
    @property
    def positions(self):
        """(N, 3) m, no copy."""
        return self.bodies.position

    @property
    def quaternions(self):
        """(N, 4) w x y z, no copy."""
        return self.bodies.quaternion

    @property
    def velocities(self):
        """(N, 3) m/s, no copy."""
        return self.bodies.velocity[:, :3]

    @property
    def angular_velocities(self):
        """(N, 3) rad/s, world frame, no copy."""
        return self.bodies.velocity[:, 4:7]

    @property
    def alive(self):
        """(N,) False for bodies that were removed."""
        return self.bodies.status != REMOVED

    @property
    def movable(self):
        """(N,) True for bodies that forces can move."""
        return self.bodies.status == MOVABLE

    @property
    def masses(self):
        """(N,) kg; infinite for bodies that forces cannot move."""
        with np.errstate(divide="ignore"):
            return 1.0 / self.bodies.inverse_mass[:, 0]

    @property
    def forces(self):
        """(N, 3) N, forces applied in every step at the centres of mass; write to it."""
        self._need_forces()
        return self._forces

    @property
    def torques(self):
        """(N, 3) N m, world frame; write to it."""
        self._need_forces()
        return self._torques

    def _need_forces(self):
        missing = self.bodies.count - len(self._forces)
        if missing:
            self._forces = np.concatenate([self._forces, np.zeros((missing, 3))])
            self._torques = np.concatenate([self._torques, np.zeros((missing, 3))])

    @property
    def contacts(self):
        """The contacts of the last step with their impulses, a ``ContactTable``."""
        if self._refused:
            raise SimulationError("contacts are not known after a refused step: take a good step first")
        return ContactTable.of_step(self.engine) if self.report else ContactTable.empty()

    @property
    def joints(self):
        """The joints with their positions, speeds, reactions and efforts, a ``JointTable``; one row per joint id."""
        self.mechanism.prepare(self.bodies, self.midpoint)
        return self.mechanism.table()

    def cast_rays(self, origins, directions, reach=math.inf):
        """What rays hit first, a ``RayHits``: see ``gravel.queries.cast_rays``."""
        return cast_rays(self.bodies, self.geometries, origins, directions, reach)

    def bodies_in_box(self, low, high):
        """Ids of the bodies whose bounding boxes overlap a box, see ``gravel.queries.bodies_in_box``."""
        return bodies_in_box(self.bodies, self.geometries, low, high)

    def state_hash(self):
        """A fingerprint of all bodies' states: equal if and only if they are equal to the last bit."""
        digest = hashlib.sha256(np.array([self.time]).tobytes())
        for name in ("tag", "position", "quaternion", "velocity"):
            digest.update(np.ascontiguousarray(getattr(self.bodies, name)).tobytes())
        return digest.hexdigest()[:32]

    # --- bodies that come and go
    def add_bodies(
        self,
        shape,
        positions,
        material=None,
        *,
        quaternions=None,
        velocities=None,
        angular_velocities=None,
        masses=None,
        inertias=None,
        fixed=False,
        group=0,
        motion=None,
    ):
        """Add bodies while the simulation runs; arguments and ids as in ``Scene.add_bodies``."""
        material = Material() if material is None else material
        block, geometry = body_block(
            shape, positions, material, quaternions, velocities, angular_velocities, masses, inertias, fixed, group, motion
        )
        if material not in self.materials:
            self.materials.append(material)
        block["tag"][:, MATERIAL] = self.materials.index(material)
        block["geometry"][:] = add_geometry(self.geometries, geometry)
        ids = self.bodies.append(block)
        if motion is not None:
            for b in ids.tolist():
                self.motions[b] = motion
                self.motion_starts[b] = (self.bodies.position[b].copy(), self.bodies.quaternion[b].copy(), self.time)
        if len(self._forces):
            self._need_forces()
        self._rules = None
        return ids

    def remove(self, ids):
        """Take bodies out: they touch nothing and stay where they are. Their ids are not used again."""
        ids = checks.array("ids", np.atleast_1d(ids), (None,), dtype=np.int64)
        if len(ids) and (ids.min() < 0 or ids.max() >= self.bodies.count):
            raise ValueError(f"ids must be below {self.bodies.count}, not {ids.min()} to {ids.max()}")
        self.bodies.status[ids] = REMOVED
        self.bodies.velocity[ids] = 0
        for b in ids.tolist():
            self.motions.pop(b, None)
        if len(self.mechanism):
            self.mechanism.prepare(self.bodies, self.midpoint)
            self.mechanism.release_bodies(ids.tolist())

    def add_joint(self, joint):
        """Join two bodies as they lie now; returns the joint's id."""
        self.mechanism.keep()
        joint = self.mechanism.add(joint, self.bodies)
        self._align([joint])
        self._rules = None
        return joint

    def release_joint(self, joint):
        """Take a joint out: its bodies go their own ways, and may touch each other from now on."""
        self._check_joint(joint)
        self.mechanism.prepare(self.bodies, self.midpoint).anchors.broken[joint] = 1
        self._part()

    def set_motor(self, joint, motor, coordinate=None):
        """Replace the motor of a joint that was made with one. ``coordinate`` "slide" or "angle", where a joint has both."""
        self._check_joint(joint)
        if coordinate is not None:
            checks.choice("coordinate", coordinate, ("slide", "angle"))
        self.mechanism.set_motor(joint, motor, {None: None, "slide": OFFSET_Z, "angle": ANGLE}[coordinate])

    def _check_joint(self, joint):
        if checks.count("joint", joint) >= len(self.mechanism):
            raise ValueError(f"joint must be an id below {len(self.mechanism)}, not {joint}")

    def set_motion(self, body, motion):
        """A body follows ``motion`` from now on; None: it stays where it is (a gate opens, a piston stops)."""
        checks.count("body", body)
        if body >= self.bodies.count:
            raise ValueError(f"body must be an id below {self.bodies.count}, not {body}")
        if self.bodies.status[body] != IMMOVABLE:
            raise ValueError(f"body {body} must be fixed or have a motion to get another, but forces move it")
        if motion is not None and not callable(motion) and not hasattr(motion, "pose"):
            raise TypeError(f"motion must be a function of time or a ready motion, not {motion!r}")
        if motion is None:
            self.motions.pop(int(body), None)
            self.bodies.velocity[body] = 0
        else:
            self.motions[int(body)] = motion
            self.motion_starts[int(body)] = (self.bodies.position[body].copy(), self.bodies.quaternion[body].copy(), self.time)

    # --- the run
    def run(self, until, save=None, every=None, progress=False, observers=(), checkpoint=None, checkpoint_every=None):
        """Step until the time ``until``, s; returns a ``RunReport``. See ``gravel.run``."""
        from gravel.run import run

        return run(self, until, save, every, progress, observers, checkpoint, checkpoint_every)

    def save(self, path):
        """Write a checkpoint, from which ``Simulation.load`` continues bit for bit."""
        from gravel.io.checkpoint import save

        save(self, path)

    @staticmethod
    def load(path, threads=None, motions=None, laws=None):
        """The simulation that a checkpoint holds; see ``gravel.io.checkpoint.load``."""
        from gravel.io.checkpoint import load

        return load(path, threads, motions, laws)


class _Lap:
    """Seconds since the last call, by stage."""

    def __init__(self, seconds):
        self.seconds, self.last = seconds, clock_module.perf_counter()

    def __call__(self, stage):
        now = clock_module.perf_counter()
        self.seconds[stage], self.last = now - self.last, now


def _world(bounds, bodies):
    """(2, 3) bounds that no body may leave; by default far outside the scene."""
    if bounds is not None:
        world = checks.array("bounds", bounds, (2, 3))
        if (world[0] >= world[1]).any():
            raise ValueError(f"bounds must be (lower, upper) with lower < upper, not {bounds!r}")
        return world
    low, high = bodies.position.min(axis=0), bodies.position.max(axis=0)
    reach = 1e3 * max(1.0, float(np.linalg.norm(high - low)))
    return np.stack([low - reach, high + reach])
