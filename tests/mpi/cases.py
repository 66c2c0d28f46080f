"""What the tests of several processes run under mpiexec: ``mpiexec -n 4 python -m mpi4py tests/mpi/cases.py CASE ...`` prints one line of
JSON a case, on the first process. The same cases run on one process are what the others are compared with."""

import hashlib
import json
import sys
import warnings

import numpy as np

import gravel as gv

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def domain_for(size):
    """Another kind of domain for each number of processes."""
    return {2: gv.Bisection(balance=None), 3: gv.Hexagons(), 4: gv.Grid(2, 1, 2), 8: gv.Grid(2, 2, 2)}.get(size, "auto")


def mixed_scene(seed=0, periodic=None, deformation=None):
    """Bodies of many kinds in disorder, some within others, between fixed bodies large and small."""
    rng = np.random.default_rng(seed)
    scene = gv.Scene(periodic=periodic, deformation=deformation)
    rough = gv.Material(density=2500, friction=0.4)
    if periodic is None:
        scene.add_body(gv.Plane(offset=-0.55), material=rough, fixed=True)
        scene.add_body(gv.Box((0.8, 0.8, 0.05)), (0, 0, -0.6), rough, fixed=True)
    kinds = [
        (gv.Sphere(rng.uniform(0.03, 0.06, 150)), 150),
        (gv.Box((0.05, 0.03, 0.04)), 60),
        (gv.Ellipsoid((0.06, 0.04, 0.03)), 40),
        (gv.Capsule(0.02, 0.05), 40),
        (gv.ConvexHull(rng.normal(size=(20, 3)) * 0.03), 30),
        (gv.Clump([[0.02, 0, 0], [-0.02, 0, 0]], [0.03, 0.03]), 20),
    ]
    for shape, n in kinds:
        turns = rng.normal(size=(n, 4))
        velocities = rng.normal(size=(n, 3))
        scene.add_bodies(shape, rng.uniform(-0.49, 0.49, (n, 3)), rough, quaternions=turns, velocities=velocities)
    scene.add_bodies(gv.Sphere(0.04), rng.uniform(-0.49, 0.49, (40, 3)), rough, fixed=True)
    return scene


def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()[:16]


def first_contacts(scene, **options):
    sim = gv.Simulation(scene, 1e-3, solver=gv.GaussSeidel(5, tolerance=0.0), domain=domain_for(SIZE), **options)
    sim.step()
    table = sim.gather("contacts")
    if table is None:
        return {}
    order = np.lexsort((table.gap, table.body_b, table.body_a))
    a, b, gap = table.body_a[order], table.body_b[order], table.gap[order]
    return {"contacts": len(a), "pairs": digest(a, b), "gaps": digest(gap), "report": sim.report.contacts}


@case
def contacts_of_all_kinds():
    return first_contacts(mixed_scene())


@case
def contacts_in_a_periodic_cell():
    return first_contacts(mixed_scene(1, periodic=((-0.5, 0.5),) * 3))


@case
def contacts_in_a_sheared_cell():
    cell = gv.Deformation(shear_rate=0.3)
    scene = mixed_scene(2, periodic=((-0.5, 0.5), (-0.5, 0.5), (-0.5, 0.5)), deformation=cell)
    scene.cell.tilt = 0.21
    return first_contacts(scene)


def gas(steps, bodies=300, speed=20.0):
    """Balls that bounce without loss in a periodic box, some of them across several parts in a step."""
    rng = np.random.default_rng(3)
    scene = gv.Scene(gravity=(0, 0, 0), periodic=((-0.5, 0.5),) * 3)
    glass = gv.Material(density=2500, friction=0.0, restitution=1.0)
    places = np.stack(np.meshgrid(*[np.arange(7)] * 3, indexing="ij"), -1).reshape(-1, 3)[:bodies] / 7 - 0.45
    velocities = rng.normal(size=(bodies, 3)) * speed
    scene.add_bodies(gv.Sphere(0.02), places, glass, velocities=velocities)
    sim = gv.Simulation(scene, 1e-3, precision="double", domain=domain_for(SIZE))
    fewest = most = bodies
    impacts = 0
    for _ in range(steps):
        report = sim.step()
        fewest, most, impacts = min(fewest, report.bodies), max(most, report.bodies), impacts + report.impacts
    v = sim.gather("velocities")
    if v is None:
        return {}
    mass = 2500 * 4 / 3 * np.pi * 0.02**3
    return {
        "bodies": [fewest, most],
        "impacts": impacts,
        "momentum": float(np.abs(v.sum(axis=0) - velocities.sum(axis=0)).max() / np.abs(velocities).sum()),
        "energy": float(0.5 * mass * (v**2).sum() / (0.5 * mass * (velocities**2).sum()) - 1),
        "finite": bool(np.isfinite(v).all() and len(v) == bodies),
    }


@case
def short_gas():
    return gas(100)


@case
def on_a_device():
    """Balls and boxes that fly into each other, on the kernels of the GPU engine: the contacts of the first step, then what is left of the
    momentum."""
    rng = np.random.default_rng(5)
    scene = gv.Scene(gravity=(0, 0, 0))
    rough = gv.Material(density=2500, friction=0.4)
    places = rng.uniform(-0.3, 0.3, (240, 3))
    velocities = -4.0 * places + rng.normal(size=places.shape)
    masses = np.repeat([4 / 3 * np.pi * 0.03**3, 8 * 0.03 * 0.025 * 0.02], 120) * 2500
    scene.add_bodies(gv.Sphere(0.03), places[:120], rough, velocities=velocities[:120])
    scene.add_bodies(gv.Box((0.03, 0.025, 0.02)), places[120:], rough, velocities=velocities[120:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some overlap
        sim = gv.Simulation(scene, 1e-3, gv.GaussSeidel(40, tolerance=0.0), device="warp:cpu", domain=domain_for(SIZE))
        sim.step()
    table = sim.gather("contacts")
    for _ in range(15):
        sim.step()
    v, x = sim.gather("velocities"), sim.gather("positions")
    if table is None:
        return {}
    order = np.lexsort((table.gap, table.body_b, table.body_a))
    momentum = masses @ (v - velocities)
    return {
        "contacts": len(table),
        "pairs": digest(table.body_a[order], table.body_b[order]),
        "gaps": digest(table.gap[order]),
        "momentum": float(np.abs(momentum).max() / (masses @ np.abs(velocities)).max()),
        "energy": float(0.5 * masses @ (v**2).sum(axis=1)),
        "middle": float(np.abs(masses @ (x - places - 16e-3 * velocities)).max() / masses.sum()),
    }


@case
def long_gas():
    return gas(2000)


@case
def fast_bodies():
    """Balls that fly through space that is cut into thin slices: most cross several of them in a step, to where nobody expects them."""
    rng = np.random.default_rng(9)
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.ignore(0, 0)
    places, velocities = rng.uniform(-0.5, 0.5, (200, 3)), rng.normal(size=(200, 3)) * (60.0, 1.0, 1.0)
    scene.add_bodies(gv.Sphere(0.005), places, velocities=velocities)
    size = (-0.5,) * 3, (0.5,) * 3
    sim = gv.Simulation(scene, 1e-2, precision="double", domain=gv.Grid(SIZE, 1, 1, *size) if SIZE > 1 else "auto")
    far = not sim.processes.messenger.all_near if SIZE > 1 else False
    counts = {sim.step().bodies for _ in range(20)}
    sim.velocities[:] *= -1
    counts |= {sim.step().bodies for _ in range(20)}
    x = sim.gather("positions")
    return {} if x is None else {"counts": sorted(counts), "off": float(np.abs(x - places).max()), "far": bool(far)}


def bed(n=600, seed=4, tight=False):
    """A bed of grains that falls together; ``tight``: they touch from the start."""
    rng = np.random.default_rng(seed)
    scene = gv.Scene()
    sand = gv.Material(density=2500, friction=0.5)
    for normal, offset in (((0, 0, 1), 0), ((1, 0, 0), -0.5), ((-1, 0, 0), -0.5), ((0, 1, 0), -0.3), ((0, -1, 0), -0.3)):
        scene.add_body(gv.Plane(normal, offset), material=sand, fixed=True)
    k = np.arange(n)
    places = np.stack([k % 10, k // 10 % 6, k // 60], 1) * 0.1 + (-0.45, -0.25, 0.05)
    sizes = (0.998, 1.004) if tight else (0.85, 0.99)
    scene.add_bodies(gv.Sphere(0.05 * rng.uniform(*sizes, n)), places + rng.uniform(-1e-4, 1e-4, (n, 3)), sand)
    return scene


@case
def settled_bed():
    sim = gv.Simulation(bed(), 1 / 500, solver=gv.GaussSeidel(60, tolerance=0.0), domain=domain_for(SIZE))
    for _ in range(150):
        report = sim.step()
    depth = [sim.step() for _ in range(20)]
    x, v = sim.gather("positions", "velocities") if SIZE > 1 else (sim.positions, sim.velocities)
    if x is None:
        return {}
    return {
        "residual": float(np.median([r.residual_rms for r in depth])),
        "worst": float(np.median([r.residual for r in depth])),
        "penetration": max(r.max_penetration for r in depth),
        "height": float(x[5:, 2].mean()),
        "speed": float(np.sqrt((v.astype(float) ** 2).sum(axis=1).mean())),
        "bodies": report.bodies,
    }


@case
def same_bits_again():
    hashes = []
    for _ in range(2):
        sim = gv.Simulation(bed(200), 1 / 500, solver=gv.GaussSeidel(20), domain=domain_for(SIZE))
        for _ in range(30):
            sim.step()
        hashes.append(sim.state_hash())
    return {"hashes": hashes}


@case
def gradient_solvers():
    """Residuals after the same iterations, from the same start."""
    found = {}
    for solver in (gv.Jacobi(40, tolerance=0.0), gv.APGD(40, tolerance=0.0), gv.BarzilaiBorwein(40, tolerance=0.0)):
        for friction in ("cone", "coulomb"):
            scene = bed(300, tight=True)
            sim = gv.Simulation(scene, 1 / 500, solver=solver, precision="double", friction=friction, domain=domain_for(SIZE))
            for _ in range(3):
                report = sim.step()
            found[f"{type(solver).__name__} {friction}"] = [report.residual, report.residual_rms, report.kinetic_energy]
    return found


@case
def wide_gauss_seidel():
    """Boxes on each other and balls on them, solved far: the velocities are unique."""
    rng = np.random.default_rng(5)
    scene = gv.Scene()
    stone = gv.Material(density=2500, friction=0.5)
    scene.add_body(gv.Plane(), material=stone, fixed=True)
    k = np.arange(48)
    places = np.stack([k % 4 + 0.5 * (k // 12 % 2), k // 4 % 3, k // 12], 1) * (0.2, 0.2, 0.1) + (-0.3, -0.2, 0.05)
    scene.add_bodies(gv.Box((0.1, 0.1, 0.05)), places, stone, velocities=rng.normal(size=(48, 3)) * 0.1)
    scene.add_bodies(gv.Sphere(0.05), places[-12:] + (0, 0, 0.0999), stone)
    sim = gv.Simulation(scene, 1e-3, solver=gv.GaussSeidel(4000, tolerance=2e-6), domain=domain_for(SIZE))
    report = sim.step()
    v = sim.gather("velocities")
    if v is None:
        return {}
    return {"converged": report.converged, "energy": report.kinetic_energy, "velocities": v.ravel().tolist()}


def machine_scene():
    """A pendulum of three links, whose base is carried around, swings through grains."""
    scene = bed(300, seed=6)
    steel = gv.Material(density=3000, friction=0.3)
    links, last, place = [], None, np.array([-0.35, 0.0, 0.62])
    for _ in range(3):
        middle = place + (0.12, 0, 0)
        link = scene.add_body(gv.Box((0.1, 0.03, 0.03)), middle, steel)
        scene.add_joint(gv.Revolute(last, link, point=place, axis=(0, 1, 0)))
        links.append(link)
        last, place = link, place + (0.24, 0, 0)
    return scene, links


@case
def machine_in_grains():
    scene, links = machine_scene()
    sim = gv.Simulation(scene, 1 / 500, solver=gv.GaussSeidel(400, tolerance=1e-6), domain=domain_for(SIZE))
    touched = False
    for _ in range(80):
        report = sim.step()
        touched |= any(np.isin(links, [*sim.contacts.body_a, *sim.contacts.body_b]))
    touched = any(sim.processes.allgather(bool(touched)))
    x, joints = sim.gather("positions", "joints") if SIZE > 1 else (sim.positions, sim.joints)
    if x is None:
        return {}
    return {
        "links": x[links].ravel().tolist(),
        "angles": joints.angle.tolist(),
        "violation": report.joint_violation,
        "touched": touched,
    }


@case
def come_and_go():
    """Bodies are added by all and by each, and removed; one part may be empty."""
    scene = gv.Scene()
    sand = gv.Material(density=2500, friction=0.5)
    scene.add_body(gv.Plane(), material=sand, fixed=True)
    scene.add_bodies(gv.Sphere(0.05), [[0.2 * k, 0, 0.2] for k in range(10)], sand)
    sim = gv.Simulation(scene, 1 / 500, domain=domain_for(SIZE))
    sim.step()
    new = sim.add_bodies(gv.Sphere(0.05), [[0.2 * k, 0.3, 0.2] for k in range(10)], sand)
    own = sim.add_bodies(gv.Sphere(0.05), [[0.2 * k, 0.6 + 0.3 * sim.processes.rank, 0.2] for k in range(3)], sand, local=True)
    sim.add_bodies(gv.Box((3, 3, 0.1)), [[0, 0, -0.5]], sand, fixed=True)
    counts = [sim.step().bodies]
    sim.remove(new[:4])
    sim.remove(own[:1])
    counts.append(sim.step().bodies)
    for _ in range(100):
        report = sim.step()
    x, alive = sim.gather("positions", "alive") if SIZE > 1 else (sim.positions, sim.alive)
    ids = sim.processes.allgather(own.tolist())
    if x is None:
        return {}
    return {
        "counts": [*counts, report.bodies],
        "alive": int(alive.sum()),
        "own": sorted(sum(ids, [])),
        "low": float(np.nanmin(x[1:-1, 2])) if SIZE == 1 else float(np.nanmin(x[np.flatnonzero(alive)][1:-1, 2])),
        "new": new.tolist(),
    }


@case
def own_bodies_from_the_start():
    """Each process adds only its share of a bed, in a place where it is not at home; together it is the bed of one."""
    from mpi4py import MPI

    scene, whole, rank = gv.Scene(), bed(240), MPI.COMM_WORLD.rank
    sand = gv.Material(density=2500, friction=0.5)
    for normal, offset in (((0, 0, 1), 0), ((1, 0, 0), -0.5), ((-1, 0, 0), -0.5), ((0, 1, 0), -0.3), ((0, -1, 0), -0.3)):
        scene.add_body(gv.Plane(normal, offset), material=sand, fixed=True)
    mine = 5 + np.arange(240).reshape(SIZE, -1)[SIZE - 1 - rank]
    ids = scene.add_bodies(gv.Sphere(whole.bodies.extent[mine, 0]), whole.bodies.position[mine], sand, local=True)
    sim = gv.Simulation(scene, 1 / 500, solver=gv.GaussSeidel(30), domain=domain_for(SIZE))
    first = sim.step()
    contacts = [first.contacts]
    for _ in range(40):
        report = sim.step()
        contacts.append(report.contacts)
    sim.set_pair(sand, sand, friction=0.1)
    report = sim.step()
    x = sim.gather("positions")
    given = sim.processes.allgather(ids.tolist())
    if x is None:
        return {}
    return {"bodies": report.bodies, "contacts": contacts[:20], "ids": sorted(sum(given, [])), "height": float(x[5:, 2].mean())}


@case
def empty_parts():
    """All bodies in one corner: the other processes have nothing to do."""
    size = SIZE
    domain = gv.Grid(size, 1, 1, low=(0, 0, 0), high=(100, 1, 1)) if size > 1 else "auto"
    sim = gv.Simulation(bed(120), 1 / 500, domain=domain)
    for _ in range(20):
        report = sim.step()
    return {"bodies": report.bodies, "mine": sim.processes.allgather(len(sim.ids)), "converged": report.converged}


@case
def local_arrays():
    """What one process sees and writes: its own bodies."""
    sim = gv.Simulation(bed(200), 1 / 500, domain=domain_for(SIZE))
    sim.step()
    ids, x = sim.ids, sim.positions
    sim.velocities[:] = 0
    sim.velocities[sim.masses < np.inf] += (0, 0, 1.0)
    old = x.copy()
    sim.step()
    rose = sim.gather("positions")
    all_ids = sim.processes.allgather(ids.tolist())
    kept = sim.processes.allgather(bool(np.array_equal(old, x)))
    if rose is None:
        return {}
    return {
        "ids": sorted(sum(all_ids, [])) if SIZE > 1 else list(range(205)),
        "speed": float(np.median(sim.velocities[:, 2])) if SIZE == 1 else None,
        "rose": float(rose[5:, 2].mean()),
        "stale": all(kept) if SIZE > 1 else True,
    }


def starts(sim):
    """Starting impulses of the last step's contacts, by pair of balls, on the one with the higher id."""
    found, table = {}, sim.engine.detector.contacts
    for first, count in zip(table.start, table.count):
        for c in range(first, first + count):
            a, b = (int(sim.engine.detector.proxies.id[i]) for i in (table.a[c], table.b[c]))
            found[min(a, b), max(a, b)] = sim.engine.step.impulse[c] * (1 if a < b else -1)
    return found


@case
def cut_anew():
    """Space is shared out anew in the middle of a run, by costs that are made up: nobody is lost, and the next step starts from all the
    impulses of the last one, though other processes have them now."""
    domain = gv.Bisection(balance=None) if SIZE > 1 else "auto"
    sim = gv.Simulation(bed(300), 1 / 500, solver=gv.GaussSeidel(20), domain=domain)
    for _ in range(150):
        before = sim.step()
    had, tables = len(sim.ids), sim.processes.allgather(sim.contacts)
    ended = {(int(a), int(b)): p for t in tables for a, b, p in zip(t.body_a, t.body_b, t.impulse)}
    if SIZE > 1:
        sim.processes.cut_by_cost(sim.engine, 3.0 if sim.processes.rank == 0 else 1.0)
    after = sim.step()
    started = {pair: p for part in sim.processes.allgather(starts(sim)) for pair, p in part.items()}
    both = started.keys() & ended.keys()
    return {
        "bodies": [before.bodies, after.bodies],
        "owned": [sim.processes.allgather(had), sim.processes.allgather(len(sim.ids))],
        "pairs": [len(ended), len(both), after.contacts - len(started)],
        "lost": sum(not np.array_equal(started[pair], ended[pair]) for pair in both),
    }


@case
def ffd():
    """Every body by itself: the same bits on any number of processes. Balls and boxes that fall together, some pushed, some bouncing."""
    rng = np.random.default_rng(8)
    scene = gv.Scene()
    stone, rubber = gv.Material(density=2500, friction=0.5), gv.Material(density=1200, friction=0.4, restitution=0.6)
    scene.add_body(gv.Plane(), material=stone, fixed=True)
    k = np.arange(160)
    places = np.stack([k % 8, k // 8 % 4, k // 32], 1) * 0.12 + (-0.42, -0.18, 0.06) + rng.uniform(-0.005, 0.005, (160, 3))
    scene.add_bodies(gv.Sphere(0.05), places[::2], stone, velocities=rng.normal(size=(80, 3)))
    scene.add_bodies(gv.Box((0.05, 0.04, 0.03)), places[1::2], rubber, quaternions=rng.normal(size=(80, 4)))
    scene.set_force(5, (3.0, 0, 1.0), (0, 0, 0.01))
    sim = gv.Simulation(scene, 1 / 500, solver=gv.FFD(), domain=domain_for(SIZE))
    hashes = []
    for step in range(80):
        report = sim.step()
        if step % 20 == 19:
            hashes.append(sim.state_hash())
    return {"hashes": hashes, "contacts": report.contacts, "residual": report.residual, "energy": report.kinetic_energy}


@case
def named_bodies():
    """Names of bodies that all add, of each process's own, and of some that come later; in a result and a checkpoint, too."""
    import pathlib
    import tempfile

    from mpi4py import MPI

    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True, name="floor")
    scene.add_bodies(gv.Sphere(0.05), [(0.2 * k - 1, 0, 0.05) for k in range(10)], name="row")
    own = 6 // SIZE
    scene.add_bodies(gv.Sphere(0.05), [(0.2 * k - 1, 1 + MPI.COMM_WORLD.rank, 0.05) for k in range(own)], local=True, name="own")
    sim = gv.Simulation(scene, 1e-3)
    sim.add_bodies(gv.Sphere(0.05), [(0, 5, 1)], name="late")
    folder = pathlib.Path(MPI.COMM_WORLD.bcast(tempfile.mkdtemp()))
    sim.run(until=0.002, save=folder / "a.vtkhdf", every=0.002)
    sim.save(folder / "a.h5")
    found = {"names": sim.body_names.to_values(), "loaded": gv.Simulation.load(folder / "a.h5").body_names.to_values()}
    rows = {name: sum(MPI.COMM_WORLD.allgather(len(sim.rows_of(name)))) for name in ("row", "own", "late")}
    with gv.open_result(folder / "a.vtkhdf") as result:
        frame = result[-1]
        return {**found, "rows": rows, "result": result.body_names.to_values(), "ids": frame.ids[frame.rows_of("own")].tolist()}


def main():
    global SIZE
    warnings.simplefilter("ignore")
    from mpi4py import MPI

    SIZE = MPI.COMM_WORLD.size
    for name in sys.argv[1:]:
        result = CASES[name]()
        if MPI.COMM_WORLD.rank == 0:
            print(json.dumps({"case": name, **result}), flush=True)


if __name__ == "__main__":
    main()
