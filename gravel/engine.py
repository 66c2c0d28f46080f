"""What computes: the protocols of an engine and of the cone problem it assembles, and the one place that knows the engines.

Everything above speaks to these protocols only. An engine owns the working state in rows of its own order; bodies go by their
ids here. Rules and joints go in as plain arrays, tables come out as plain arrays. Describing a scene loads no engine:
``make_engine`` imports the one that is asked for.

An engine runs the stages of a step in this order (``Simulation.step`` calls them, and nothing else does):

    begin, set_motion, detect, match, prepare_contacts, apply_restitution, add_forces, measure_joints, set_laws, assemble,
    (a solver), fault, commit

Nothing of the state that users see changes before ``commit``. Detection alone is ``begin`` and ``detect``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from gravel import checks

if TYPE_CHECKING:
    from gravel.contacts import ContactTable
    from gravel.joints.rows import JointArrays, JointState
    from gravel.problem import ConeProblem, MatrixConeProblem
    from gravel.shapes.geometry import Geometry

DEVICES = ("cpu", "warp:cpu", "cuda")  # and "cuda:1" and so on
BROAD_PHASES = ("auto", "grid", "bvh", "sap", "brute")
ELLIPSOID_METHODS = ("direct", "method-1", "method-2")
GROUPS = 32  # collision groups of a scene, one bit each


class Margin(NamedTuple):
    """A contact is kept when its gap is below absolute + share * (sizes of its movable bodies)."""

    absolute: float  # m
    share: float  # of the bounding radius of a movable body


class Rules(NamedTuple):
    """What holds for all bodies in every step."""

    step: float = 0.0  # h, s
    midpoint: bool = False  # the step looks at the bodies half a step ahead, which makes it second order
    gravity: np.ndarray = np.zeros(3)  # m/s2
    contact_values: np.ndarray = np.zeros((1, 1, 5))  # (materials, materials, 5) in the order of materials.PAIR_FIELDS
    ignored: np.ndarray = np.zeros((GROUPS, GROUPS), bool)  # pairs of groups that pass through each other
    margin: Margin = Margin(0.0, 0.0)
    geometries: Sequence[Geometry] = ()  # that bodies refer to by number
    ellipsoid_method: str = "direct"
    coulomb: bool = False  # the De Saxcé term removes the sliding gap of the cone model
    recovery: float = 0.0  # share of a penetration that a step may take back
    recovery_speed: float = 0.0  # and the speed at which it may, m/s
    threshold: float = 0.0  # speed below which nothing bounces, m/s


class Lattice(NamedTuple):
    """By what a periodic cell repeats itself, at one moment."""

    low: np.ndarray  # (3,) m, its lower corner; -inf along axes that do not repeat
    length: np.ndarray  # (3,) m; inf
    direction: int  # axis along which shear moves the images ...
    gradient: int  # ... that lie above each other along this one
    tilt: float  # m: how far the image above is shifted
    rate: np.ndarray  # (3,) m/s, at which the lengths grow
    tilt_rate: float  # m/s


class CellTooSmall(ValueError):
    """A body is too large for the periodic cell: it could touch another in two ways."""

    def __init__(self, body: int, radius: float, needed: float):
        super().__init__(
            f"body {body} reaches {radius:.3g} m from its centre, with its travel in a step: the periodic cell must be at least "
            f"{needed:.3g} m long for it"
        )
        self.body = body


class Partition(NamedTuple):
    """Space shared out among processes: a tree of cuts or, where there are centres, to whichever of them is nearest."""

    rank: int  # of this process
    axis: np.ndarray  # (k,) along which each cut of the tree divides what lies before it
    cut: np.ndarray  # (k,) m: below it goes the first child, from there on the second
    child: np.ndarray  # (k, 2) number of a cut, or -1 - rank of a process
    centre: np.ndarray  # (processes, 3) m, or none; their coordinates along one axis may all be zero: it does not count
    plain: np.ndarray  # (3,) 1 along the axes that count for the distance from centres
    border: np.ndarray  # (f, 4) half spaces n . x <= d that hold this process's part


class Driven(NamedTuple):
    """Bodies that follow a motion, in one step."""

    id: np.ndarray  # (k,)
    position: np.ndarray  # (k, 3) where the step looks
    quaternion: np.ndarray  # (k, 4)
    velocity: np.ndarray  # (k, 6) linear and angular, that takes them on
    end_position: np.ndarray  # (k, 3) at the end of the step
    end_quaternion: np.ndarray  # (k, 4)


class Detection(NamedTuple):
    contacts: int
    penetration: float  # m, the deepest
    broad_phase: str  # which one found the pairs


class Commit(NamedTuple):
    energy: float  # J, kinetic
    violation: float  # m, largest error of what a joint holds


Lap = Callable[[str], None]  # a stopwatch: takes down the seconds since its last call under the name of a stage


def no_lap(stage: str) -> None:
    """A stopwatch for those who do not look."""


class SharedBodySync(Protocol):
    """Synchronises the bodies that a problem shares with those of other processes. One process: ``NO_SYNC``."""

    single_process: bool
    indices: np.ndarray  # of the shared bodies, in the vectors of the problem

    def snapshot(self, values: Any) -> None:
        """Take a copy of the values of the shared bodies: (n, 8) values of the bodies in the order of the problem, mostly velocities."""

    def allreduce_increments(self, values: Any, split: bool = False) -> None:
        """All-reduce the increments since ``snapshot`` over the ranks that share each body. ``split``: each rank has used its share of the
        body's mass (mass splitting), so the increments are averaged."""

    def broadcast_joint_bodies(self, values: Any) -> None:
        """All ranks that hold a part of a machine get the values of its owner."""

    def broadcast_from_owner(self, values: Any) -> None:
        """All ranks that act on a body get the values of its owner."""

    def locked_bodies(self, turn: int) -> np.ndarray:
        """Indices of the shared bodies that only another process may act on in this turn."""

    def allreduce_sums(self, sums: np.ndarray) -> None:
        """All-reduce numbers (bodies, columns) of the bodies, mostly integers, over the ranks that share each body."""

    def gather_half_contacts(self, half_contacts: Any) -> Any:
        """Half contacts (columns, one row per contact and body that can move): from those that were found here to all those of the bodies
        that this process owns."""

    def return_impulses(self, impulse: np.ndarray) -> np.ndarray:
        """The way back of ``gather_half_contacts``: the impulse (m, 3) of each row that was passed to it."""

    def total(self, *numbers: float) -> tuple[float, ...]:
        """Sums over all processes."""

    def largest(self, *numbers: float) -> tuple[float, ...]:
        """Maxima over all processes."""

    def total_and_largest(self, total: float, largest: float) -> tuple[float, float]:
        """The sum of one number and the maximum of another, over all processes."""


class NoSync:
    """A single process: nothing to synchronise."""

    single_process, indices = True, np.empty(0, np.int64)

    def snapshot(self, values: Any) -> None:
        pass

    def allreduce_increments(self, values: Any, split: bool = False) -> None:
        pass

    def broadcast_joint_bodies(self, values: Any) -> None:
        pass

    def broadcast_from_owner(self, values: Any) -> None:
        pass

    def locked_bodies(self, turn: int) -> np.ndarray:
        return np.empty(0, np.int64)

    def allreduce_sums(self, sums: np.ndarray) -> None:
        pass

    def gather_half_contacts(self, half_contacts: Any) -> Any:
        return half_contacts

    def return_impulses(self, impulse: np.ndarray) -> np.ndarray:
        return impulse

    def total(self, *numbers: float) -> tuple[float, ...]:
        return numbers

    def largest(self, *numbers: float) -> tuple[float, ...]:
        return numbers

    def total_and_largest(self, total: float, largest: float) -> tuple[float, float]:
        return total, largest


NO_SYNC: SharedBodySync = NoSync()


class Problem(Protocol):
    """A cone problem as solvers see it: impulses x, gradient g = N x + r = D^T v + b, cones K. Vectors are the engine's own
    (``start`` makes one, ``blank`` another of its kind) and go only through these methods. Sums, maxima and velocities are those
    of all processes (``share``)."""

    contacts: int
    coulomb: bool
    sync: SharedBodySync

    # --- sweeps: impulses and velocities change in place
    def warm_start(self) -> None:
        """Apply the starting impulses to the velocities, once."""

    def sweep(self, iterations: int, max_momentum: float, tolerance: float) -> int:
        """Gauss-Seidel: every row in turn takes the impulse that is best for it alone, from where the last two sweeps point (momentum
        up to ``max_momentum``). Ends early when no row's velocity changes by more than ``tolerance``; returns how many iterations were
        made, 0 where there is nothing left to do."""

    def restart_momentum(self) -> None:
        """The next sweep starts without momentum."""

    def measure(self) -> tuple[float, float]:
        """(largest, root mean square) residual of impulses and velocities as they stand, m/s."""

    # --- every body by itself
    def solve_bodies(self, samples: int) -> None:
        """Fast frictional dynamics: each body finds its new velocity from its own contacts, with so many directions of friction; the
        impulse of a contact becomes the mean of what its bodies have found."""

    # --- vectors
    def start(self) -> Any:
        """A new vector: the starting impulses."""

    def blank(self) -> Any:
        """A new vector of zeros."""

    def gradient(self, x: Any, out: Any) -> None:
        """out := N x + r"""

    def projected_step(self, y: Any, g: Any, step: float, relaxation: float, out: Any) -> tuple[float, float]:
        """out := relaxation P(y - step eta (g + s n)) + (1 - relaxation) y; returns (|d|^2, g . d) of d = out - y in the metric of the
        steps eta. s: the De Saxcé terms as of the last ``update_de_saxce``."""

    def residual(self, x: Any, g: Any) -> tuple[float, float]:
        """(largest, root mean square) residual of x, whose gradient is g, m/s."""

    def update_de_saxce(self, g: Any) -> None:
        """De Saxcé terms mu |u_t| from the gradient, in Coulomb mode."""

    def dot(self, a: Any, b: Any, c: Any, d: Any) -> float:
        """(a - b) . (c - d)"""

    def extrapolate(self, x: Any, old: Any, beta: float, out: Any) -> None:
        """out := x + beta (x - old)"""

    def copy(self, x: Any, out: Any) -> None:
        """out := x"""

    def finish(self, x: Any) -> None:
        """x becomes the impulses, and the velocities follow."""


class Engine(Protocol):
    """What ``Simulation`` needs of an engine. One whose problems have no ``solve_bodies`` says so: ``lacks_local_solvers = True``."""

    # --- bodies
    def add(self, block: Mapping[str, Any]) -> None:
        """New bodies: fields by name (``state.FIELDS``), ``id`` among them."""

    def remove(self, ids: np.ndarray) -> None:
        """Take bodies out; their rows serve others. Ids that are gone already are passed over."""

    def ids(self) -> np.ndarray:
        """(n,) ids of the bodies that are there, in the order of the engine's rows."""

    def kinds(self) -> tuple[frozenset[int], frozenset[int]]:
        """Kinds of shapes that the last detection found, of all bodies and of those that can move."""

    def field(self, name: str) -> np.ndarray:
        """(n, ...) a field in that order; to be read, and only until the engine is called again."""

    def pick(self, name: str, ids: Sequence[int] | np.ndarray) -> np.ndarray:
        """(k, ...) a field of some bodies; of those that are gone, what the field says (``state.Field.gone``)."""

    def set_field(self, name: str, columns: slice, values: np.ndarray) -> None:
        """Columns of a field, in that order."""

    # --- sleep
    def sleep(self, ids: np.ndarray, islands: np.ndarray) -> None:
        """Bodies fall asleep, each as part of an island (a number, not 0): they stand still, and touch nothing but what is awake."""

    def wake(self, islands: np.ndarray | None) -> None:
        """The bodies of these islands wake, None: all; they go on with the impulses that they fell asleep with. Sleepers wake by
        ``set_field``, too, where it changes their pose, velocity, force or torque, and all where it changes a body that cannot move."""

    def touched_sleepers(self) -> np.ndarray:
        """The islands that a body which is awake and can move touches, by the last ``detect``."""

    # --- what holds
    def set_rules(self, rules: Rules) -> None: ...

    def set_joints(self, joints: JointArrays | None) -> None:
        """The joints from here on, with what they carry over from the last step."""

    def set_filtered_pairs(self, pairs: np.ndarray) -> None:
        """Collision filter: (p, 2) ids of bodies whose pairs are dropped."""

    def set_cell(self, now: Lattice | None, end: Lattice | None) -> None:
        """Space repeats itself from here on: by ``now`` where the step looks, by ``end`` at its end. None: it does not."""

    def set_surfaces(self, ids: np.ndarray, velocities: np.ndarray) -> None:
        """Surfaces that move while their bodies stay: linear and angular velocities (k, 6) in the bodies' frames."""

    # --- the step
    def predict_poses(self) -> None:
        """Poses at which the step evaluates contacts, joints and forces: the present ones, or half a step ahead (Moreau's midpoint
        rule)."""

    def set_motion(self, driven: Driven) -> None:
        """Bodies with a motion: where they are in this step, how fast, and where they end."""

    def detect(self, lap: Lap = no_lap) -> Detection:
        """Bounds, order, broad phase, narrow phase; the stopwatch is told of each."""

    def match(self, warm: bool) -> None:
        """Warm start: contacts find the impulses they had in the last step."""

    def prepare_contacts(self) -> None:
        """What the later stages need to know of the bodies at contacts: their inertia in the world frame, the velocities of their
        surfaces."""

    def apply_restitution(self, impacts_first: bool) -> tuple[int, float]:
        """Impacts with restitution, one after the other, unless the solver gives them theirs; returns how many, and the largest
        penetration, m, that they leave."""

    def add_forces(self) -> None:
        """Free velocities: gravity, forces, torques."""

    def measure_joints(self) -> tuple[np.ndarray, np.ndarray]:
        """Gauges of the joint rows where the step looks: (value, rate), scaled."""

    def set_laws(self, row: int, values: Mapping[str, float]) -> None:
        """New numbers for the law of a joint row: a motor was replaced, or is a function."""

    def assemble(self, warm: bool) -> Problem:
        """Contacts and joints as one cone problem."""

    def find_invalid_body(self, world: np.ndarray) -> int:
        """The lowest id of a body that would leave the world (2, 3) or get a velocity that is not finite; -1: there is none."""

    def commit(self) -> Commit:
        """Take the step."""

    # --- many processes
    def set_partition(self, partition: Partition, sync: SharedBodySync) -> None:
        """This process owns the bodies whose ``rank`` is its own, and solves the contacts in its part of space."""

    def put(self, block: Mapping[str, Any]) -> None:
        """Fields of bodies by name, ``id`` among them: those that are here get these values, the others are added."""

    def border(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows (k,) of the bodies of this process that the next step may make reach beyond its part, and how far each reaches, m."""

    def touched(self, ids: np.ndarray) -> np.ndarray:
        """(k,) 1 for those of some bodies that a contact of the last ``detect`` acts on."""

    def problem_indices(self, ids: np.ndarray) -> np.ndarray:
        """(k,) indices of bodies in the vectors of the problem that ``assemble`` gives; -1: they are not there."""

    def moved_contacts(self, ids: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Contacts of the last step that another process solves in this one, and which: (rank, (ids a, ids b, features, impulses,
        torques)). Of bodies that can move, only those at the border and those of others can have such (``ids``)."""

    def adopt(self, known: tuple[np.ndarray, ...]) -> None:
        """Contacts start from the impulses that other processes have cached, after ``match``."""

    # --- joints before and after steps
    def close_joints(self) -> None:
        """One step of Newton's method that moves the bodies towards closed joints."""

    def align_joints(self, joints: np.ndarray) -> None:
        """Velocities that some joints (a mask) do not allow are taken out."""

    def break_joints(self, joints: Sequence[int] | np.ndarray) -> None:
        """Break these joints (ids)."""

    def joint_state(self) -> JointState:
        """Coordinates, reactions and violations as they are now."""

    # --- out
    def contacts(self) -> ContactTable:
        """The contacts of the last detection, with the impulses that the step gave them."""

    def virial(self) -> np.ndarray:
        """(3, 3) N s m, of the last step: sum over the contacts of impulse times the vector between what it pushes apart."""

    def memory(self) -> dict[str, np.ndarray]:
        """What beside fields, rules and joints a bitwise continuation needs."""

    def restore(self, memory: Mapping[str, np.ndarray]) -> None: ...

    def warm_up(self, on_status: Callable[[str], None], joints: bool, several: bool = False) -> Callable[[], None]:
        """Prepare what the first step needs; ``joints``: whether there will be some; ``several``: other processes need the same.
        ``on_status(message)`` is called with what takes a while, until the function that is returned is called."""

    def compile(self, joints: bool) -> None:
        """All kernels that steps need, in this process, those with threads too; ``joints``: whether there will be some."""

    def cast_rays(self, origins: np.ndarray, directions: np.ndarray, reach: float) -> tuple[np.ndarray, ...]:
        """What rays hit first, the columns of ``queries.RayHits``; directions have length one."""

    def bounding_boxes(self) -> tuple[np.ndarray, np.ndarray]:
        """(n, 3) lower and upper corners of the bodies' boxes, in the order of ``ids``; planes are endless."""

    # --- detection box by box
    def refill(self, block: Mapping[str, Any]) -> None:
        """Other bodies instead of all."""

    def split(self, positions: np.ndarray, radii: np.ndarray, bodies: np.ndarray, axis: int, at: float) -> tuple[np.ndarray, np.ndarray]:
        """Those of some bodies that reach below ``at`` along an axis, and those that reach above it."""

    def find_pairs_within(self, budget: Callable[[int, int], bool]) -> bool:
        """Candidate pairs, if ``budget(pairs, room for them)`` allows as many."""

    def count_contacts_in(self, low: np.ndarray, high: np.ndarray) -> int:
        """How many of the contacts of those pairs belong to a box of space."""

    def contacts_in(self, low: np.ndarray, high: np.ndarray) -> ContactTable:
        """Those contacts."""


def make_engine(device: str = "cpu", precision: str = "single", broad_phase: str = "auto", threads: int | None = None) -> Engine:
    """The engine for a device; its settings are checked here."""
    if not str(device).startswith("cuda:"):
        checks.choice("device", device, DEVICES)
    checks.choice("precision", precision, ("single", "double"))
    checks.choice("broad_phase", broad_phase, BROAD_PHASES)
    threads = checked_threads(threads)
    if device != "cpu":
        return _make_gpu_engine(device, precision, broad_phase)
    from gravel.cpu.engine import CpuEngine

    return CpuEngine(np.float32 if precision == "single" else np.float64, broad_phase, threads)


def compile_usual_kernels(precision: str, part: int, parts: int) -> None:
    """Compile, in this process, one of some parts of the kernels that most scenes need."""
    from gravel.cpu import precompile

    kinds = precompile.usual_features(precision)
    for features in kinds[part * len(kinds) // parts : (part + 1) * len(kinds) // parts]:
        precompile.compile_here(features, threads=True)


def finest_precision(device: str) -> str:
    """The best that a device has."""
    return "double" if device == "cpu" else "single"


def warp_devices() -> dict[str, str]:
    """The devices that Warp has here, and what each is."""
    from gravel.gpu.devices import describe_devices

    return describe_devices()


def _make_gpu_engine(device: str, precision: str, broad_phase: str) -> Engine:
    try:
        from gravel.gpu.engine import GpuEngine, check_settings
    except ModuleNotFoundError as error:
        if error.name != "warp":
            raise
        raise ModuleNotFoundError(f"device {device!r} needs Warp: pip install 'gravel[gpu]'", name="warp") from error
    check_settings(device, precision, broad_phase)
    return GpuEngine(device, broad_phase)


def make_problem(problem: ConeProblem, coulomb: bool) -> Problem:
    """The engine's form of a problem given by arrays."""
    from gravel.cpu.solve.contact_arrays import block_problem_from_arrays

    return block_problem_from_arrays(problem, coulomb)


def make_matrix_problem(problem: MatrixConeProblem, coulomb: bool) -> Problem:
    """The engine's form of a problem given by matrices."""
    from gravel.cpu.solve.matrix_problem import MatrixProblem

    return MatrixProblem(problem.W, problem.q, problem.mu, coulomb)


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def largest_thread_count() -> int:
    """How many threads an engine may use: what NUMBA_NUM_THREADS allows, else the cores of this process."""
    return int(os.environ.get("NUMBA_NUM_THREADS", 0)) or available_cores()


def threading_layer() -> str:
    """What runs the threads of the CPU engine."""
    from gravel.host.threads import layer

    return layer()


def checked_threads(n: int | None) -> int:
    """A number of threads as users give it; None: what OMP_NUM_THREADS says, at most all, or all."""
    most = largest_thread_count()
    if n is None:
        asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]  # a list speaks of nested regions, too
        return min(int(asked), most) if asked.isdigit() and int(asked) > 0 else most
    n = checks.count("threads", n, minimum=1)
    if n > most:
        raise ValueError(f"threads must be at most {most} on this machine, not {n}")
    return n
