"""Many processes: strong and weak scaling of a gas and of settled piles (paper 004, Tables 2 to 4), and a model of what a step costs.

The gas: spheres at 1 % of the volume in a closed box without gravity, random velocities (1 m/s rms along each axis), restitution 1, steps
of 1/500 s; at random places, where the paper's start from a grid. The piles: settled spheres ten layers deep, 50 sweeps a step, the same
pile for every process, side by side. Runs are jobs under mpiexec; the first steps, in which the seams between piles close, are not counted.
"at best" is what the cores of this machine allow: processes beyond their number take turns. The paper's machine: Itanium2 cores at 1.6 GHz.

The model (``gravel.bench.cost_model``) is fitted to the runs of Gauss-Seidel with a core for each process but one, and checked on that
one. A process that has the memory for itself is faster than with others beside it, and that is no cost of messages: what bodies and
contacts cost is taken from runs of several processes that know nothing of each other. What the model says of more processes is a
prediction, not a measurement. The first run of all compiles: run with --quick before, whose own figures mean nothing.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from gravel import checks
from gravel.bench.cost_model import Load, Network, amid, fitted, resized, seconds_of, talk_of
from gravel.bench.settled import Tile, settled_tile, tiled_scene
from gravel.engine import available_cores, largest_thread_count
from gravel.model.materials import Material
from gravel.mpi.domain import Bisection, Domain, Grid
from gravel.mpi.launch import job_of
from gravel.scene import Scene
from gravel.scenes.gas import RADIUS, SPEED
from gravel.scenes.setup import box_walls
from gravel.shapes import Plane, Sphere
from gravel.simulation import Simulation
from gravel.solvers import SOLVERS
from gravel.state import MOVABLE

THREADS = 1  # of each process, where nobody says how many
STEPS = 50
LATENCY, BANDWIDTH = 1.5, 0.4  # us; GB/s of one process: InfiniBand HDR100 (100 Gbit/s), shared by the 32 processes of a machine
SPACING = RADIUS * (4 / 3 * np.pi / 0.01) ** (1 / 3)  # m, of the gas: 1 % of the volume
SWEEPS = 50  # in a step of a pile
BAR = 1.3  # 2 processes of a thread may take so much longer than a process of 2 threads
METHODS = ("gauss-seidel", "ffd")
FACES, NEIGHBOURS = {"gas": 6, "pile": 4}, {"gas": 26, "pile": 8}  # of a process amid many: blocks in space, piles side by side
PREDICTED, STRONG = (10**2, 10**3, 10**4, 10**5), 10**9  # processes; spheres, as many as in the paper's largest run
PAPER_STRONG = {"4x4": 543.7, "8x4": 193.8, "8x8": 72.0, "16x8": 25.94, "16x16": 9.82, "32x16": 5.25}  # s, Table 2, the best of each number
PAPER_WEAK = {  # s, Tables 3 and 4, by spheres a core
    25**3: {"128x1x1": 266.1, "16x8x1": 392.0, "8x4x4": 545.3, "9120x1x1": 264.9},
    50**3: {"128x1x1": 1059.73, "16x8x1": 1139.79, "8x4x4": 1400.87, "9120x1x1": 1066.73, "24x20x19": 1613.73},
}


class Sizes(NamedTuple):
    strong: tuple[int, int, int]  # spheres of the gas along x, y and z
    gas: tuple[int, ...]  # spheres of a process along each axis
    tile: tuple[int, int]  # spheres of a tile, and steps to settle it
    piles: tuple[tuple[int, int], ...]  # tiles of a process
    both: tuple[int, int]  # tiles of the pile for processes against threads
    grids: tuple[tuple[int, int, int], ...]  # processes
    warm_up: dict[str, int]  # steps


FULL = Sizes(
    *((128, 128, 16), (25, 50), (4000, 1200), ((2, 2), (6, 5)), (8, 8)),
    *(((1, 1, 1), (2, 1, 1), (4, 1, 1), (2, 2, 1)), {"gas": 5, "pile": 60}),
)
QUICK = Sizes((16, 16, 4), (6,), (200, 300), ((1, 1),), (2, 1), ((1, 1, 1), (2, 1, 1)), {"gas": 2, "pile": 2})


class Case(NamedTuple):
    """A run to be measured."""

    kind: str  # "gas", "pile", or "heap": a pile on one side, grains that fall freely on the other
    block: tuple[int, ...]  # spheres along x, y and z, or tiles along x and y
    grid: tuple[int, int, int]  # processes
    solver: str
    threads: int
    steps: int
    warm_up: int
    twins: int = 1  # processes that each run all of it, side by side, and know nothing of each other
    balance: float | None = None  # at which a heap is cut anew

    @property
    def ranks(self) -> int:
        return int(np.prod(self.grid))

    @property
    def processes(self) -> int:
        """Of the job."""
        return max(self.ranks, self.twins)


class Measured(NamedTuple):
    seconds: float  # a step, s
    spheres: int
    load: Load  # of a process: of that with the most bodies, and the mean of what else they do
    copies: float
    balance: float  # work of the busiest process over the mean


# --- the work of each process of a job
def measure(case: Case, tile: Tile | None) -> Measured:
    """Run a case; all processes of the job call it."""
    scene, high = gas(case.block) if case.kind == "gas" else pile(case.block, tile)
    settings = {} if case.kind == "gas" else {"iterations": SWEEPS, "tolerance": 0.0}
    domain: Domain | None = Grid(*case.grid, low=-high, high=high) if case.ranks > 1 else None
    if case.kind == "heap":
        shrink_one_side(scene)
        domain = Bisection(balance=case.balance, every=5)
    simulation = Simulation(scene, 1 / 500, SOLVERS[case.solver](**settings), threads=case.threads, domain=domain)
    for _ in range(case.warm_up):
        simulation.step()
    processes, reports, shared = simulation.processes, [], []
    processes.barrier()
    started = time.perf_counter()
    for _ in range(case.steps):
        reports.append(simulation.step())
        shared.append(len(processes.sync.indices) if processes.size > 1 else 0)
    processes.barrier()
    seconds = (time.perf_counter() - started) / case.steps
    mean = lambda values: float(np.mean(list(values)))  # noqa: E731
    shared_work = mean(r.iterations * n for r, n in zip(reports, shared))
    bodies, shared_work = processes.largest(float(simulation.movable.sum()), shared_work)
    load = Load(
        ranks=processes.size,
        bodies=bodies,
        contact_work=mean(r.contacts * r.iterations for r in reports) / processes.size,
        shared_work=shared_work,
        messages=mean(r.traffic.messages for r in reports) / processes.size,
        bytes=mean(r.traffic.bytes for r in reports) / processes.size,
        iterations=mean(r.iterations for r in reports),
    )
    return Measured(
        seconds, spheres_of(case, tile), load, mean(r.traffic.copies for r in reports), mean(r.traffic.balance for r in reports)
    )


def gas(block):
    """(scene, upper corner of its box, which lies around the origin)."""
    rng, numbers = np.random.default_rng(0), np.array(block)
    material = Material(density=1000, friction=0.0, restitution=1.0)
    high = 0.5 * SPACING * numbers
    scene = Scene(gravity=(0, 0, 0))
    box_walls(scene, high[0], high[1], material)
    for up in (1, -1):
        scene.add_body(Plane((0, 0, up), offset=-high[2]), material=material, fixed=True)
    places = places_apart(int(np.prod(numbers)), RADIUS - high, rng)
    scene.add_bodies(Sphere(RADIUS), places, material, velocities=rng.normal(0, SPEED, places.shape))
    return scene, high


def places_apart(number, low, rng):
    """(number, 3) places at random between ``low`` and -low, none nearer to another than a diameter: those that are go elsewhere. From a
    grid, nobody would reach a border between processes in the steps that are measured."""
    places = rng.uniform(low, -low, (number, 3))
    while len(pairs := cKDTree(places).query_pairs(2 * RADIUS, output_type="ndarray")):
        again = np.unique(pairs[:, 1])
        places[again] = rng.uniform(low, -low, (len(again), 3))
    return places


def pile(block, tile):
    """(scene, upper corner of its box); the height does not matter, since it is not cut."""
    return tiled_scene(tile, *block), 0.5 * tile.side * np.array([*block, 1.0])


def shrink_one_side(scene):
    """Grains at x > 0 become so small that they touch nothing and fall."""
    some = (scene.bodies.position[:, 0] > 0) & (scene.bodies.status == MOVABLE)
    scene.bodies.extent[some] *= 0.3


def spheres_of(case, tile):
    return int(np.prod(case.block)) * (1 if case.kind == "gas" else len(tile.places))


def work(folder):
    """One process of a job: measure the cases in a folder, and leave what came out there."""
    folder = pathlib.Path(folder)
    cases = [Case(*values) for values in json.loads((folder / "cases.json").read_text())]
    with np.load(folder / "tile.npz") as file:
        tile = Tile(file["places"], file["radii"], float(file["side"]))
    warnings.simplefilter("ignore")  # piles side by side overlap a little, until the seams have closed
    from mpi4py import MPI

    found = []
    for case in cases:
        MPI.COMM_WORLD.Barrier()  # twins begin together
        found.append(measure(case, tile))
    if MPI.COMM_WORLD.rank == 0:
        (folder / "found.json").write_text(json.dumps(found))


# --- jobs
class Jobs:
    """Starts them, and keeps what was measured."""

    def __init__(self, folder, tile):
        self.folder, self.tile = pathlib.Path(folder), tile
        np.savez(self.folder / "tile.npz", **tile._asdict())
        self.runs: list[tuple[Case, Measured]] = []

    def run(self, cases):
        """(case, what was measured) of cases with the same number of processes, in one job."""
        (self.folder / "cases.json").write_text(json.dumps(cases))
        processes = cases[0].processes
        command, environment = job_of(processes, "gravel.bench.scaling", [str(self.folder)])
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the job of {processes} processes failed with code {done.returncode}:\n{done.stderr[-2000:]}")
        found = json.loads((self.folder / "found.json").read_text())
        runs = [(case, Measured(s, n, Load(*load), *rest)) for case, (s, n, load, *rest) in zip(cases, found)]
        self.runs += runs
        return runs


# --- the tables
def run(quick, threads, steps=None, latency=None, bandwidth=None):
    """``steps`` that are measured of a gas (a fifth of them of a pile); ``latency`` us and ``bandwidth`` GB/s of the network that
    predictions are for."""
    steps = checks.count("steps", 3 if quick else STEPS, minimum=1) if steps is None else checks.count("steps", steps, minimum=1)
    latency = checks.number("latency", LATENCY if latency is None else latency, minimum=0.0)
    bandwidth = checks.number("bandwidth", BANDWIDTH if bandwidth is None else bandwidth, above=0.0)
    sizes = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as folder:
        jobs = Jobs(folder, settled_tile(*sizes.tile))
        yield from strong(jobs, sizes, threads, steps)
        yield from weak(jobs, sizes, threads, steps)
        yield balance(jobs, sizes, steps)
        check = yield from threads_or_processes(jobs, sizes, steps)
    yield from model(jobs.runs, check, Network(1e-6 * latency, 1e9 * bandwidth))


def strong(jobs, sizes, threads, steps):
    first: dict[str, float] = {}
    for cases in by_processes(Case("gas", sizes.strong, g, m, threads, steps, sizes.warm_up["gas"]) for g in sizes.grids for m in METHODS):
        for case, found in jobs.run(cases):
            alone, seconds = first.setdefault(case.solver, found.seconds), 1e3 * found.seconds
            yield {
                **row_of("strong, gas", case, found),
                "s for 1000 steps": seconds,
                "core s": seconds * min(case.ranks * case.threads, available_cores()),
                "speedup": alone / found.seconds,
                "at best": min(case.ranks, max(available_cores() // case.threads, 1)),
            }
    for grid, seconds in PAPER_STRONG.items():
        cores = int(np.prod([int(n) for n in grid.split("x")]))
        yield {"paper 004, Table 2, cores": cores, "grid": grid, "s for 1000 steps": seconds, "core s": seconds * cores}


def weak(jobs, sizes, threads, steps):
    blocks = [("gas", (n, n, n)) for n in sizes.gas] + [("pile", block) for block in sizes.piles]
    cases = []
    for grid in sizes.grids:
        for kind, block in blocks:
            whole = tuple(n * p for n, p in zip(block, grid))
            cases.append(Case(kind, whole, grid, METHODS[0], threads, steps_of(kind, steps), sizes.warm_up[kind]))
    twins = min(available_cores() // threads, max(case.ranks for case in cases))
    cases += [case._replace(twins=twins) for case in cases if case.ranks == 1 < twins]
    first: dict[tuple, float] = {}
    for some in by_processes(cases):
        for case, found in jobs.run(some):
            share = (case.kind, found.spheres // case.ranks)
            alone, room = first.setdefault(share, found.seconds), case.processes * case.threads / available_cores()
            yield {
                **row_of(f"weak, {case.kind}", case, found),
                "spheres a process": share[1],
                "ms a step": 1e3 * found.seconds,
                "efficiency": alone / found.seconds,
                "at best": min(1.0, 1 / room),
            }
    for spheres, table in PAPER_WEAK.items():
        for grid, seconds in table.items():
            yield {"paper 004, Tables 3 and 4, gas, spheres a core": spheres, "grid": grid, "ms a step": seconds}  # of 1 000 steps


def balance(jobs, sizes, steps):
    """A heap on one side of its box, on 2 processes with as many grains each: as they are cut at first, and cut anew by what they cost."""
    case = Case("heap", sizes.both, (2, 1, 1), METHODS[0], 1, steps_of("pile", steps), sizes.warm_up["pile"])
    (_, before), (_, after) = jobs.run([case, case._replace(balance=0.1)])
    del jobs.runs[-2:]  # what they cost is no matter of the model
    return {
        "one-sided heap, spheres": before.spheres,
        "steps": case.steps,
        "as many grains each, ms a step": 1e3 * before.seconds,
        "balance": before.balance,
        "cut anew, ms a step": 1e3 * after.seconds,
        "then": after.balance,
        "gain": before.seconds / after.seconds,
    }


def threads_or_processes(jobs, sizes, steps):
    """2 processes of one thread against one process of 2 threads; returns the run that the model is checked on."""
    rest = (steps_of("pile", steps), sizes.warm_up["pile"])
    (check,) = jobs.run([Case("pile", sizes.both, (2, 1, 1), METHODS[0], 1, *rest)])
    threads = min(2, largest_thread_count())
    ((_, one),) = jobs.run([Case("pile", sizes.both, (1, 1, 1), METHODS[0], threads, *rest)])
    two = check[1]
    yield {
        "pile, spheres": two.spheres,
        "steps": rest[0],
        "2 processes x 1 thread, ms a step": 1e3 * two.seconds,
        f"1 process x {threads} threads": 1e3 * one.seconds,
        "ratio": two.seconds / one.seconds,
        "bar": BAR,
    }
    return check


def by_processes(cases):
    """Lists of cases with the same number of processes, for one job each."""
    lists: dict[int, list[Case]] = {}
    for case in cases:
        lists.setdefault(case.processes, []).append(case)
    return lists.values()


def steps_of(kind, steps):
    return steps if kind == "gas" else max(steps // 5, 1)


def row_of(name, case, found):
    grid = "x".join(map(str, case.grid)) if case.twins == 1 else f"{case.twins} alone, side by side"
    return {
        **{name: found.spheres, "solver": case.solver, "grid": grid, "threads": case.threads, "steps": case.steps},
        **{"iterations": found.load.iterations, "copies": found.copies, "messages": found.load.messages * case.ranks},
        "MB": 1e-6 * found.load.bytes * case.ranks,
    }


# --- the model
def model(runs, check, network):
    """Fit the costs to the runs but ``check``, try them on it, and predict."""
    rest = [(c, m) for c, m in runs if c.solver == METHODS[0] and c.threads == 1 and c.processes <= available_cores() and m is not check[1]]
    rest = [(c, m) for c, m in rest if c.processes > 1] or rest  # with the memory as busy as it is where all cores are
    costs = fitted([m.load for _, m in rest], [m.seconds for _, m in rest])
    off = [seconds_of(costs, m.load) / m.seconds - 1 for _, m in rest]
    yield {
        "model, fitted to runs": len(rest),
        "ns a body": 1e9 * costs.body,
        "ns a contact and iteration": 1e9 * costs.contact,
        "ns a shared body and iteration": 1e9 * costs.shared,
        "us a message": 1e6 * costs.message,
        "ns a kB": 1e12 * costs.byte,
        "us a round of sums": 1e6 * costs.round,
        "worst error %": 100 * max(map(abs, off)),
    }
    case, found = check
    said = seconds_of(costs, found.load)
    yield {
        "model, the run left out, spheres": found.spheres,
        "grid": "x".join(map(str, case.grid)),
        "measured, ms a step": 1e3 * found.seconds,
        "predicted, ms a step": 1e3 * said,
        "ratio": said / found.seconds,
    }
    yield {"PREDICTIONS below assume": assumptions(network)}
    for kind in ("gas", "pile"):
        pairs = [m for c, m in rest if c.kind == kind and c.grid == (2, 1, 1)]
        if pairs:
            yield from predict(kind, max(pairs, key=lambda found: found.load.bodies).load, costs, network)


def assumptions(network):
    return (
        f"a network with {1e6 * network.latency:g} us and {1e-9 * network.bandwidth:g} GB/s a process on top of what messages cost here "
        "(defaults: InfiniBand HDR100, 100 Gbit/s, for 32 processes); a core and its memory's speed for each process; equal loads; "
        "messages to neighbours only, one after the other; as many iterations as here"
    )


def predict(kind, pair, costs, network):
    """Weak scaling of what one of two processes has here, and strong scaling of the paper's billion."""
    alone = seconds_of(costs, pair._replace(ranks=1, shared_work=0.0, messages=0.0, bytes=0.0))
    dimensions, first = (3 if kind == "gas" else 2), None
    for ranks in PREDICTED:
        load = amid(pair, ranks, FACES[kind], NEIGHBOURS[kind])
        seconds = seconds_of(costs, load, network)
        yield prediction(f"PREDICTION, weak, {kind}", load, seconds, alone / seconds, talk_of(costs, load, network))
    for ranks in PREDICTED:
        load = amid(pair, ranks, FACES[kind], NEIGHBOURS[kind])
        load = resized(load, STRONG / ranks / pair.bodies, dimensions)
        seconds = seconds_of(costs, load, network)
        first = first or seconds * ranks
        yield prediction(f"PREDICTION, strong, {kind}", load, seconds, first / (seconds * ranks), talk_of(costs, load, network))


def prediction(name, load, seconds, efficiency, talk):
    spheres = load.bodies * load.ranks
    return {
        name: float(spheres),
        "processes": load.ranks,
        "ms a step": 1e3 * seconds,
        "efficiency": efficiency,
        "talk %": 100 * talk / seconds,
        "GB of ids a process": 8e-9 * spheres,
    }


if __name__ == "__main__":
    work(sys.argv[1])
