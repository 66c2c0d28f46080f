"""The engine's own state: whole calls as users make them, a gas, a million with shuffled ids, bodies that come and go.

- "contacts of ... spheres": `find_contacts` of packed spheres from call to table, and the part of it that is detection.
- "gas": spheres at 1 % fill in a box; nearly all of a step is the broad phase and the positions. PhysX took 193 ms for a step of
  262 144 on 2 cores of an AMD EPYC (as filed with the project's bars).
- "settled" and "shuffled": a step of the same pile, its ids along the lattice it was built on and then at random; `sim.contacts`.
- "crowd": spheres that nearly touch, between walls and in a periodic cell, 20 sweeps.
- "come and go": the step after all of a thousand bodies were replaced, early and late in a thousand rounds, and the memory held.
"""

import resource
import time

import numpy as np

from gravel.bench.collide import best, packed
from gravel.bench.settled import settled_pile
from gravel.detection.find import detect, find_contacts, run_detection
from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes.setup import box_walls
from gravel.shapes import Plane, Sphere
from gravel.simulation import Simulation
from gravel.solvers import GaussSeidel


def run(quick, threads, device="cpu"):
    yield whole_call(64000 if quick else 1000000, threads, device)
    yield gas(32 if quick else 64, threads, device)
    yield crowd(16 if quick else 64, threads, device)
    yield from settled_and_shuffled(4000 if quick else 1000000, threads, device)
    yield from come_and_go(50 if quick else 1000, threads, device)


def whole_call(n, threads, device):
    shape, places = packed(n, np.random.default_rng(1))
    engine = detect(shape, places, threads=threads, device=device)
    return {
        f"contacts of {len(places)} spheres": len(engine.contacts()),
        "s, whole call": best(lambda: find_contacts(shape, places, threads=threads, device=device), 5),
        "s, detection": best(lambda: run_detection(engine), 5),
    }


def gas(side, threads, device):
    """side^3 spheres, each in a cell of 1 m, moving at about 1 m/s."""
    rng, n = np.random.default_rng(1), side**3
    scene, smooth = Scene(gravity=(0, 0, 0)), Material(friction=0.0)
    for axis in np.eye(3):
        scene.add_body(Plane(axis, -1.0), material=smooth, fixed=True)
        scene.add_body(Plane(-axis, -float(side)), material=smooth, fixed=True)
    places = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3) + rng.uniform(-0.3, 0.3, (n, 3))
    scene.add_bodies(Sphere((0.01 * 3 / 4 / np.pi) ** (1 / 3)), places, smooth, velocities=rng.normal(size=(n, 3)))
    simulation = Simulation(scene, 0.01, threads=threads, device=device)
    return {"gas": n, **step_times(simulation, 5, 21)}


def crowd(side, threads, device):
    """side^3 spheres on a lattice, a hair apart, that move a little."""
    rng, n = np.random.default_rng(1), side**3
    places = (np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3) + 0.5) / side
    velocities, row = rng.normal(scale=0.1, size=(n, 3)), {"crowd": n}
    for name in ("walls", "periodic"):
        scene = Scene(gravity=(0, 0, 0), periodic=((0, 1),) * 3 if name == "periodic" else None)
        for axis in np.eye(3) if name == "walls" else ():
            scene.add_body(Plane(axis), fixed=True)
            scene.add_body(Plane(-axis, -1.0), fixed=True)
        scene.add_bodies(Sphere(0.49 / side), places, velocities=velocities)
        simulation = Simulation(scene, 0.05 / side, GaussSeidel(iterations=20, tolerance=0.0), threads=threads, device=device)
        row[f"ms a step, {name}"] = step_times(simulation, 3, 11)["ms per step"]
        row[f"contacts, {name}"] = simulation.report.contacts
    return {**row, "periodic over walls": row["ms a step, periodic"] / row["ms a step, walls"]}


def settled_and_shuffled(bodies, threads, device):
    simulation = settled_pile(bodies, GaussSeidel(iterations=50, tolerance=0.0), steps=12, threads=threads, device=device)
    kinds = {"settled": simulation, "shuffled": None}
    for kind in kinds:
        if kind == "shuffled":
            simulation = shuffled(simulation, threads, device)
        row = {kind: int(simulation.movable.sum()), **step_times(simulation, 12 if kind == "shuffled" else 0, 7)}
        len(simulation.contacts)  # compiles
        start = time.perf_counter()
        row["contacts"] = len(simulation.contacts)
        yield {**row, "ms, sim.contacts": 1e3 * (time.perf_counter() - start)}


def shuffled(simulation, threads, device):
    """The same pile, its bodies added in another order."""
    order = np.random.default_rng(2).permutation(np.flatnonzero(simulation.movable))
    stone, half = Material(density=2500, friction=0.5), -float(simulation.positions[1, 0])
    scene = Scene()
    scene.add_body(Plane(), material=stone, fixed=True)
    box_walls(scene, half, half, stone)
    scene.add_bodies(Sphere(simulation.bodies.extent[order, 0]), simulation.positions[order], stone)
    return Simulation(scene, simulation.dt, simulation.solver, threads=threads, device=device)


def come_and_go(rounds, threads, device):
    scene = Scene()
    scene.add_body(Plane(), fixed=True)
    places = np.stack(np.meshgrid(*[np.arange(10)] * 3), -1).reshape(-1, 3) * 0.12 + (0, 0, 0.06)
    ids = scene.add_bodies(Sphere(0.05), places)
    solver, times = GaussSeidel(iterations=5, tolerance=0.0), []
    simulation = Simulation(scene, 1e-3, solver, threads=threads, device=device)
    for k in range(1, rounds + 1):
        simulation.remove(ids)
        ids = simulation.add_bodies(Sphere(0.05), places)
        times.append(sum(simulation.step().seconds.values()))
        if k in (rounds // 20 + 5, rounds):
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            yield {"come and go": k, "ms per step": 1e3 * float(np.median(times[-40:])), "ids": simulation.count, "peak memory GB": memory}


def step_times(simulation, before, steps):
    for _ in range(before):
        simulation.step()
    reports = [simulation.step() for _ in range(steps)]
    seconds = [sum(report.seconds.values()) for report in reports]
    middle = reports[int(np.argsort(seconds)[steps // 2])].seconds
    stages = {name: 1e3 * middle[name] for name in ("order", "broad phase", "solve", "positions")}
    return {"ms per step": 1e3 * float(np.median(seconds)), **stages}
