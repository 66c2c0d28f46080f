"""A model of the GPU engine's time: bytes that its kernels move, counted from the types of the arrays they read and write, over a GPU's
bandwidth; operations over its peak; and a fixed time for each kernel that is started. Nothing here is measured on a GPU.

Two bounds for memory: "streamed" bytes come from the GPU's memory in any case; "cached" ones are read and written again by others soon
(velocities of bodies, bounds of neighbours, sums of workers), and cost nothing where the cache holds them, all where it does not. What a
thread reads at random counts as whole sectors of 32 bytes there; a velocity row is one. Double precision is not counted as slower.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import warp as wp

from gravel.gpu.devices import WORKERS
from gravel.gpu.solve.colours import AT_ONCE
from gravel.gpu.structs import Bodies, ContactCache, Contacts, Proxies, Rows, Unknowns
from gravel.state import FIELD

SECTOR = 32  # bytes
LAUNCH = 2.5e-6  # s, for each kernel of a graph or queue that is not empty
WAIT = 10e-6  # s, when the host reads a number
SORT_LAUNCHES, SCAN_LAUNCHES, SORT_PASSES = 6, 2, 4  # of sorting numbers of 32 bits by 8 at a time; of adding up
MEASURES = 2  # looks at the residual in a step, with Gauss-Seidel
# of arrays of two dimensions
COLUMNS = {"sphere": 4, "extent": 4, "tag": 4, "mass": 2, "velocity": 8, "normal": 3, "arm": 3, "impulse": 3, "torque": 3}
INDEX = 4  # bytes of a whole number
VELOCITY = SECTOR
SUMS = 2 * (4 + 8)  # bytes that a worker reads and writes of its largest change and its sum


class Gpu(NamedTuple):
    name: str
    bandwidth: float  # bytes/s
    peak: float  # operations/s in single precision
    cache: float  # bytes that all its processors share


GPUS = (
    Gpu("Tesla C1060", 102e9, 622e9, 0.0),
    Gpu("A100 40 GB", 1555e9, 19.5e12, 40e6),
    Gpu("RTX 4090", 1008e9, 82.6e12, 72e6),
)


class Load(NamedTuple):
    """What a step has to do."""

    bodies: float
    contacts: float
    pairs: float  # candidates of the broad phase
    around: float  # bodies in the 27 cells around a body
    colours: int
    rounds: int  # of colouring
    looks: float  # at each contact, in all of these rounds: those that have a colour are left out by and by


class Work(NamedTuple):
    streamed: float = 0.0  # bytes
    cached: float = 0.0  # bytes
    operations: float = 0.0
    launches: float = 0.0
    waits: float = 0.0

    def times(self, n: float) -> "Work":
        return Work(*(n * value for value in self))


def sum_of(parts: Iterable[Work]) -> Work:
    return Work(*(sum(values) for values in zip(*parts)))


def seconds_of(work: Work, gpu: Gpu, hits: bool) -> float:
    """Time of some work, s; ``hits``: whether the cache holds all that it might."""
    moved = work.streamed + (0.0 if hits else work.cached)
    return max(moved / gpu.bandwidth, work.operations / gpu.peak) + work.launches * LAUNCH + work.waits * WAIT


def holds(gpu: Gpu, load: Load) -> bool:
    """Whether the velocities of all bodies fit into the cache."""
    return load.bodies * VELOCITY <= gpu.cache


def size(struct, *names: str) -> int:
    """Bytes of these fields of one contact or body."""
    total = 0
    for name in names:
        kind = struct.vars[name].type
        columns = 1
        if kind.ndim == 2:
            columns = math.prod(FIELD[name].shape) if struct is Bodies else COLUMNS[name]
        total += columns * wp.types.type_size_in_bytes(kind.dtype)
    return total


def picked(struct, *names: str, extra: int = 0) -> Work:
    """These fields of a contact that is found at random, and a field of ``extra`` bytes: from memory at least themselves, at worst the
    sectors they lie in."""
    sizes = [*(size(struct, name) for name in names), extra]
    return Work(sum(sizes), sum(SECTOR * math.ceil(one / SECTOR) - one for one in sizes))


# --- solvers
def sweep_reads(balls: bool, rolling: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(fields of ``Rows``, of ``Unknowns``) that a sweep reads of each contact; it writes the latter."""
    shape = ("balls",) if balls else ("arm_a", "arm_b", "response")
    rows = ("a", "b", "normal", "bias", "friction", "mass", *shape, *(("rolling",) if rolling else ()))
    return rows, ("impulse", "last_impulse", *(("torque", "last_torque") if rolling else ()))


def sweep_of_contact(balls: bool, rolling: bool, operations: float) -> Work:
    """One contact in one sweep. Each body's velocity row is read and written; a body that is no ball has a row of inertia besides."""
    rows, unknowns = sweep_reads(balls, rolling)
    bodies = 2 * (2 * VELOCITY + (0 if balls else SECTOR))
    return Work(size(Rows, *rows) + 2 * size(Unknowns, *unknowns), bodies, operations)


def sweep(load: Load, balls: bool, rolling: bool, operations: float) -> Work:
    """One iteration of Gauss-Seidel with momentum: a kernel for each colour, and five more."""
    contacts = sweep_of_contact(balls, rolling, operations).times(load.contacts)
    carried = Work(2 * VELOCITY, 2 * VELOCITY, 3 * 8).times(load.bodies)  # velocities of the last sweep, and of this one
    workers = Work(cached=SUMS * WORKERS * (load.colours + 1))
    return sum_of([contacts, carried, workers, Work(launches=load.colours + 5)])


def jacobi(load: Load, operations: float) -> Work:
    """One iteration of Algorithm 1 for balls without rolling friction: project; body by body, the impulses of its contacts (the paper's
    reduction); the gradient; the residual, which the host reads; and a copy of the best so far."""
    vector, steps = 12, 8
    project = Work(size(Rows, "normal", "friction") + steps + 3 * vector)
    end = sum_of([Work(INDEX), picked(Rows, "normal", "mass", "balls", extra=vector)]).times(2)
    gradient = Work(size(Rows, "a", "b", "normal", "bias", "mass", "balls") + vector, 2 * VELOCITY)
    residual = Work(size(Rows, "normal", "friction") + steps + 2 * vector)
    kept = Work(2 * vector)
    of_contact = sum_of([project, end, gradient, residual, kept, Work(operations=operations)])
    of_body = Work(2 * INDEX + VELOCITY, 3 * VELOCITY)  # the free velocity, then the body's own
    workers = Work(cached=3 * SUMS * WORKERS)
    return sum_of([of_contact.times(load.contacts), of_body.times(load.bodies), workers, Work(launches=9, waits=4)])


# --- the rest of a step
def sort(n: float, launches: int = SORT_LAUNCHES) -> Work:
    """Sorting n pairs of whole numbers: each pass reads and writes both; one look at all keys before."""
    return Work((SORT_PASSES * 4 * INDEX + INDEX) * n, launches=launches)


def scan(n: float) -> Work:
    return Work(2 * INDEX * n, launches=SCAN_LAUNCHES)


def detection(load: Load) -> Work:
    """Bounds, cells, candidate pairs and contacts of balls, and the impulses that they had in the last step."""
    pose = size(Bodies, "position", "quaternion", "velocity")
    ahead = Work(2 * pose + size(Bodies, "inverse_mass", "tag"))
    proxies = ("id", "sphere", "extent", "tag", "mass")
    bounds = Work(size(Bodies, "id", "position", "velocity", "inverse_mass", "extent", "tag") + size(Proxies, *proxies) + VELOCITY)
    cells = Work(2 * size(Proxies, "sphere") + 2 * INDEX + 4 * INDEX, 2 * SECTOR)
    look = Work(
        size(Proxies, "sphere", "tag") + 4 * INDEX,
        27 * SECTOR + load.around * INDEX + 0.5 * load.around * size(Proxies, "sphere"),
    )
    seen = ("sphere", "extent", "tag", "velocity")  # of both bodies of a pair; from memory once
    pair = Work(2 * 2 * INDEX + 2 * INDEX + 2 * 16 + 2 * INDEX, 2 * 2 * SECTOR * len(seen))
    found = size(Contacts, "a", "b", "feature", "normal", "arm", "gap")
    known = picked(ContactCache, "a", "b", "feature", "impulse")
    contact = sum_of([Work(found + INDEX + 3 * INDEX + size(ContactCache, "impulse"), 4 * SECTOR), known])
    look_again = Work(2 * size(Proxies, *seen) + size(Proxies, "id") + 2 * INDEX)
    kept = Work(2 * INDEX * load.pairs / load.bodies)  # partners, written down by the search and copied to the list of pairs
    bodies = sum_of([ahead, bounds, cells, look, kept, look_again]).times(load.bodies)
    of_pairs, of_contacts = pair.times(load.pairs), contact.times(load.contacts)
    passes = Work(launches=15, waits=6)
    return sum_of([bodies, of_pairs, of_contacts, sort(load.bodies), scan(load.bodies).times(2), scan(load.pairs), passes])


def around_the_sweeps(load: Load) -> Work:
    """Colours, rows, incidence and the impulses of the last step; the residual; poses and what is remembered for the next step."""
    colouring = Work(2 * INDEX + size(Contacts, "a", "b"), 4 * SECTOR).times(2 * load.looks)
    rows, unknowns = sweep_reads(True, False)
    source = size(Contacts, "a", "b", "normal", "arm", "gap") + INDEX
    assembled = Work(source + size(Rows, *rows) + 2 * size(Unknowns, *unknowns), 6 * SECTOR)
    ends = Work(4 * INDEX + size(Rows, "a", "b", "mass"), 2 * SECTOR)
    applied = sum_of([Work(INDEX), picked(Rows, "normal", "mass", "balls", extra=12)]).times(2)
    residual = Work(size(Rows, *rows) + size(Unknowns, "impulse"), 2 * VELOCITY).times(MEASURES)
    remembered = size(ContactCache, "a", "b", "feature", "impulse") + size(Contacts, "a", "b", "feature")
    kept = Work(2 * size(Unknowns, *unknowns) + remembered, 3 * SECTOR)
    contacts = sum_of([colouring, assembled, ends, applied, residual, kept]).times(load.contacts)
    pose = size(Bodies, "position", "quaternion", "velocity")
    moved = Work(2 * pose + size(Bodies, "inverse_mass", "tag") + 8, VELOCITY)
    given = Work(size(Proxies, "sphere", "tag", "mass", "id") + 2 * VELOCITY, VELOCITY)  # to the rows; the velocities of the last sweep
    bodies = sum_of([given, moved, Work(size(Bodies, "position", "tag"), VELOCITY)]).times(load.bodies)
    passes = Work(launches=2 * load.rounds + 20, waits=load.rounds / AT_ONCE + 8)
    return sum_of([contacts, bodies, sort(load.contacts), sort(2 * load.contacts), scan(load.bodies), passes])


def stages_of(load: Load, iteration: Work, iterations: int) -> dict[str, Work]:
    """A whole step."""
    return {"detection": detection(load), "solve": iteration.times(iterations), "rest": around_the_sweeps(load)}
