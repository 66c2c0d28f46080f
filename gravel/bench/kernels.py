"""The GPU's kernels: registers and memory of each for an A100 that need not be there, and a MODEL of their time.

"kernel": what the compiler says for sm_80. "local" memory is arrays of a thread's own and what found no register, which is "spilled";
1 024 bytes of "shared" memory are Warp's. "sweep of": what one contact moves in one iteration of Gauss-Seidel with momentum, counted from
the types of the arrays, and its operations in single precision, all branches counted. "pile": what a settled pile on the engine (device
warp:cpu) has; colours, pairs and rounds of the model are its.

"MODEL": bytes over the bandwidth, or operations over the peak if that is longer, of a GPU at its best; 2.5 us for each kernel, 10 us when
the host waits for a number. Nothing of it is measured. It lies between "all in cache", where velocities, bounds of neighbours and
workers' sums cost nothing after the first access, and "none", where each access goes to memory. A GPU's cache can hold the velocities of
all bodies where "fits" says so; the C1060 has none. Contacts per body: 2.6, or the paper's.

Papers 000 (Tables 1, 3) and 001 (Table 1, the same figures): Tesla C1060, measured, Algorithm 1 (Jacobi); they do not say how many
iterations. Paper 003 (Tables 4, 5): GTX 940M, measured, collisions and the whole frame of its Box Collider, where each sphere touches
forty others.
"""

import contextlib
import tempfile
from collections import Counter

import numpy as np
from scipy import ndimage

from gravel.bench.settled import settled_tile, tiled_scene
from gravel.simulation import Simulation
from gravel.solvers import GaussSeidel

ARCH, ITERATIONS, PER_BODY, MAIN = 80, 50, 2.6, 1_000_000
PAPER_TABLE_1 = {16000: 570.0, 32000: 1000.0, 64000: 1970.0, 128000: 4550.0}  # ms, cone problem, papers 000 and 001
PAPER_TABLE_3 = {  # paper 000: contacts; ms of the whole step, collision detection, solver
    100000: (361440, 6197.2, 543.6, 5424.3),
    500000: (1765772, 29256.5, 2456.8, 25777.3),
    1000000: (3548594, 58151.8, 4947.3, 51168.6),
}
PAPER_003 = {50000: (2.16896, 2.3872)}  # ms: Table 4, 5


def run(quick, threads):
    try:
        import warp  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("benchmark 'kernels' needs Warp: pip install 'gravel[gpu]'", name="warp") from error
    from gravel.bench import kernel_model as model

    with tempfile.TemporaryDirectory() as folder:
        compiled = compile_kernels(folder, quick)
    yield from (row_of(one) for one in compiled)
    operations = {one.name: one.operations for one in compiled}
    yield from sweeps(model, operations)
    measured = settled_counts(500 if quick else 4000, 300 if quick else 1200)
    yield measured
    yield from predictions(model, measured, operations)


def compile_kernels(folder, quick):
    """All kernels; or, quickly, those of the solver."""
    from gravel.gpu import compile as compiler

    kernels = compiler.kernels_of_engine()
    if quick:
        kernels = {name: kernel for name, kernel in kernels.items() if name.startswith(("solve.blocks.", "solve.cones."))}
    return compiler.compile_kernels(kernels, ARCH, folder, details=True)


def row_of(one):
    return {
        "kernel": one.name,
        "registers": one.registers,
        "local bytes": one.local,
        "spilled": one.spilled,
        "shared": one.shared,
        "constant": one.constant,
    }


def sweeps(model, operations):
    """What one contact moves in a sweep."""
    for balls in (True, False):
        for rolling in (False, True):
            name = f"solve.blocks.sweep[{', '.join(key for key, has in (('balls', balls), ('rolling', rolling)) if has)}]"
            work = model.sweep_of_contact(balls, rolling, operations[name])
            yield {
                "sweep of": ("balls" if balls else "any bodies") + (", rolling friction" if rolling else ""),
                "bytes of a contact": int(work.streamed),
                "of its two bodies": int(work.cached),
                "operations, at most": int(work.operations),
            }


def settled_counts(bodies, steps):
    """What the model takes from the engine: a step of a settled pile on the kernels themselves."""
    tile = settled_tile(bodies, steps)
    solver = GaussSeidel(iterations=2, tolerance=0.0)
    simulation = Simulation(tiled_scene(tile, 1, 1), 1 / 500, solver, device="warp:cpu", broad_phase="grid")
    simulation.step()
    with counted_launches() as (launched, threads):
        simulation.step()
    detector, problem = simulation.engine.detector, simulation.engine.problem
    return {
        "pile": bodies,
        "contacts per body": simulation.report.contacts / bodies,
        "pairs per contact": detector.pair_count / simulation.report.contacts,
        "bodies in 27 cells": bodies_around(tile.places, detector.phases["grid"].cells.width),
        "colours": int(np.count_nonzero(np.diff(problem.starts))),
        "rounds of colouring": launched["nominate"],
        "looks at a contact in them": threads["nominate"] / simulation.report.contacts,
    }


@contextlib.contextmanager
def counted_launches():
    """How often each kernel is started meanwhile, and with how many threads in all, by name."""
    import warp as wp

    launched, threads, launch = Counter(), Counter(), wp.launch

    def counting(kernel, dim, *arguments, **options):
        launched[kernel.func.__name__] += 1
        threads[kernel.func.__name__] += int(np.prod(dim))
        return launch(kernel, dim, *arguments, **options)

    wp.launch = counting
    try:
        yield launched, threads
    finally:
        wp.launch = launch


def bodies_around(places, width):
    """Mean number of bodies in the 27 cells around a body, itself among them."""
    cells = np.floor(places / width).astype(int)
    cells -= cells.min(axis=0)
    held = np.zeros(cells.max(axis=0) + 1, int)
    np.add.at(held, tuple(cells.T), 1)
    return float(ndimage.convolve(held, np.ones((3, 3, 3), int), mode="constant")[tuple(cells.T)].mean())


def predictions(model, measured, operations):
    def load_of(bodies, contacts=None):
        contacts = contacts or PER_BODY * bodies
        counts = (measured[name] for name in ("bodies in 27 cells", "colours", "rounds of colouring", "looks at a contact in them"))
        return model.Load(bodies, contacts, measured["pairs per contact"] * contacts, *counts)

    sweep_operations = operations["solve.blocks.sweep[balls]"]
    in_jacobi = ("solve.cones.projected_step", "solve.blocks.apply[balls]", "solve.blocks.gradient[balls]", "solve.cones.measure")
    jacobi_operations = sum(operations[name] for name in in_jacobi)

    def row(gpu, bodies, solver, contacts=None):
        load = load_of(bodies, contacts)
        if solver == "Jacobi":
            load = load._replace(colours=0, rounds=0, looks=0.0)
            iteration = model.jacobi(load, jacobi_operations)
        else:
            iteration = model.sweep(load, True, False, sweep_operations)
        made = {"MODEL": gpu.name, "spheres": bodies, "contacts": int(load.contacts), "solver": f"{solver}, {ITERATIONS} iterations"}
        stages = model.stages_of(load, iteration, ITERATIONS)
        for words, hits in (("all in cache", True), ("none", False)):
            if hits and not model.holds(gpu, load):
                continue
            times = {name: 1e3 * model.seconds_of(work, gpu, hits) for name, work in stages.items()}
            made[f"{words}: ms an iteration"] = times["solve"] / ITERATIONS
            made[f"{words}: detection"] = times["detection"]
            made[f"{words}: solve"] = times["solve"]
            made[f"{words}: step"] = sum(times.values())
        made["fits"] = "yes" if model.holds(gpu, load) else "no"
        return made

    old, a100, *_ = model.GPUS
    for bodies, paper in PAPER_TABLE_1.items():
        yield {**row(old, bodies, "Jacobi"), "papers 000 and 001, Table 1, measured, cone problem": paper}
    for bodies, (contacts, total, collision, solver) in PAPER_TABLE_3.items():
        paper = {"paper 000, Table 3, measured, step": total, "its detection": collision, "its solver": solver}
        yield {**row(old, bodies, "Jacobi", contacts), **paper}
    for bodies, (collisions, frame) in PAPER_003.items():
        words = {"paper 003, Table 4, measured, another GPU and scene, collisions": collisions, "Table 5, frame": frame}
        yield {**row(old, bodies, "Gauss-Seidel"), **words}
    for gpu in model.GPUS:
        for bodies in (100000, MAIN):
            for solver in ("Gauss-Seidel", "Jacobi"):
                yield row(gpu, bodies, solver)
    best = row(a100, MAIN, "Gauss-Seidel")
    yield {
        "MODEL, main line": f"{MAIN} spheres, {PER_BODY} contacts each, {measured['colours']} colours, {ITERATIONS} sweeps, {a100.name}",
        "ms a step, all in cache": best["all in cache: step"],
        "none": best["none: step"],
        "aim": 20,
    }
