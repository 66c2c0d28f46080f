"""Random close packing of frictionless spheres, the packing that `pack` makes of them, and bodies that come and go.

- "jammed": equal spheres without friction in a periodic cell, pressed until they are jammed. The cell shrinks by a small strain at
  once, the spheres with it; then it stays as it is, and overlaps push the spheres apart. Before each step the spheres get the velocity
  of the cell, so that nothing is left of their motion: they move as little as contacts ask for. Where they find no room, all of that
  is taken back and tried with half the strain; at the smallest strain they are jammed. Counted are contacts that carry force while
  these last overlaps push. References: fraction 0.64 (Berryman 1983), 0.6366 measured (Scott & Kilgour 1969); 6 contacts of each
  sphere that is no rattler, as many as it takes to hold all spheres in all directions (O'Hern et al. 2003).
- "shaken": the same spheres by `pack` alone, as dense as asked for. No forces are known there: neighbours within a thousandth of a
  diameter are counted.
- "inserted": 500 balls alive, ten of them replaced in each step: time of a step by how many there have been.
"""

import math
import time
from collections import deque
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from gravel.measures import coordination, packing_fraction, stress
from gravel.model.cell import Deformation
from gravel.model.materials import Material
from gravel.packing.pack import pack
from gravel.packing.regions import BoxRegion
from gravel.scene import Scene
from gravel.shapes import Plane, Sphere
from gravel.simulation import Simulation
from gravel.solvers import GaussSeidel

RADIUS = 0.01  # m
START = 0.61  # fraction
STEP = 1e-3  # s
FIRST_STRAIN, LAST_STRAIN = 2e-4, 1e-5  # by which the cell shrinks at once, at first and at the end
APART = 1e-5  # diameters: overlaps below do not count
PATIENCE = 40  # steps in which the spheres must find room
COUNTED = 10  # steps over which contacts and stress are averaged
ITERATIONS, TOLERANCE = 300, 1e-6  # of the solver; diameters in a step

FRACTIONS, CONTACTS = (0.62, 0.645), (5.9, 6.1)  # the bars
DENSEST = 0.64  # that pack reaches with a periodic box
NEAR = 1e-3  # of a diameter

ALIVE, REPLACED = 500, 10  # bodies, and how many of them in a step
COLUMNS = 10  # of bodies side by side, along x and along y


def run(quick, threads):
    begin = time.perf_counter()
    yield row_of(jammed(1000 if quick else 10000, 0, threads), time.perf_counter() - begin)
    yield shaken(1000 if quick else 10000)
    yield from inserted((1000, 10000, 20000) if quick else (1000, 10000, 100000, 1000000), threads)


class Jammed(NamedTuple):
    """Spheres that can be pressed no further; means over the last steps."""

    simulation: Simulation
    fraction: float
    contacts: float  # of each sphere that is no rattler
    contacts_of_all: float
    stress: float  # Pa
    penetration: float  # of a radius, the deepest


def jammed(n: int, seed: int, threads: int | None = None) -> Jammed:
    """n frictionless spheres in a periodic cell that shrinks until they are jammed."""
    simulation, strain = loose_spheres(n, seed, threads), FIRST_STRAIN
    while True:
        places, low, high = simulation.positions.copy(), simulation.cell.low, simulation.cell.high
        press(simulation, strain)
        if part(simulation):
            continue
        if strain <= LAST_STRAIN:
            return Jammed(simulation, *map(float, np.mean([pushed(simulation) for _ in range(COUNTED)], axis=0)))
        simulation.positions[:], simulation.cell.low, simulation.cell.high = places, low, high
        strain *= 0.5


def part(simulation):
    """Whether the spheres find room in a cell that stays as it is."""
    for _ in range(PATIENCE):
        press(simulation, 0.0)
        if simulation.report.max_penetration < APART * 2 * RADIUS:
            return True
    return False


def pushed(simulation):
    """What is measured after a step in which overlaps push: in the order of ``Jammed``."""
    press(simulation, 0.0)
    pressure = float(np.trace(stress(simulation, kinetic=False))) / 3
    contacts = coordination(simulation, rattlers=False), coordination(simulation)
    return packing_fraction(simulation), *contacts, pressure, simulation.report.max_penetration / RADIUS


def loose_spheres(n, seed, threads):
    side = 2 * RADIUS * (n * math.pi / 6 / START) ** (1 / 3)
    borders = ((0.0, side),) * 3
    scene = Scene(gravity=(0, 0, 0), periodic=borders)
    packing = pack(Sphere(RADIUS), BoxRegion((0, 0, 0), (side,) * 3), count=n, periodic=borders, seed=seed)
    packing.add_to(scene, Material(friction=0.0, restitution=0.0))
    solver = GaussSeidel(iterations=ITERATIONS, tolerance=TOLERANCE * 2 * RADIUS / STEP)
    return Simulation(scene, STEP, solver, precision="double", margin=0.02 * RADIUS, recovery=0.5, threads=threads)


def press(simulation, strain):
    """One step in which the cell shrinks by a strain along each axis, and the spheres with it as far as contacts allow."""
    cell, rate = simulation.cell, strain / STEP
    simulation.deform(Deformation(strain_rate=(-rate,) * 3))
    simulation.velocities[:] = -rate * (simulation.positions - 0.5 * (cell.low + cell.high))
    simulation.step()


def row_of(result, seconds):
    met = FRACTIONS[0] <= result.fraction <= FRACTIONS[1] and CONTACTS[0] <= result.contacts <= CONTACTS[1]
    return {
        "jammed": result.simulation.count,
        "fraction": result.fraction,
        "references": "0.64, 0.6366",
        "contacts without rattlers": result.contacts,
        "reference": 6,
        "with rattlers": result.contacts_of_all,
        "bars 0.62 to 0.645 and 5.9 to 6.1": "met" if met else "missed",
        "stress, Pa": result.stress,
        "deepest penetration, radii": result.penetration,
        "steps": result.simulation.steps,
        "s": seconds,
    }


def shaken(n):
    side = 2 * RADIUS * (n * math.pi / 6 / DENSEST) ** (1 / 3)
    begin = time.perf_counter()
    packing = pack(Sphere(RADIUS), BoxRegion((0, 0, 0), (side,) * 3), count=n, periodic=((0.0, side),) * 3)
    seconds = time.perf_counter() - begin
    pairs = cKDTree(packing.positions % side, boxsize=side).query_pairs(2 * RADIUS * (1 + NEAR), output_type="ndarray")
    return {"shaken": n, "fraction": packing.fraction, "neighbours within 0.001 diameters": 2 * len(pairs) / n, "s": seconds}


def inserted(marks, threads):
    """Balls fall onto a floor; the oldest go when new ones come."""
    scene, rng = Scene(), np.random.default_rng(1)
    scene.add_body(Plane(), fixed=True)
    ages = deque(scene.add_bodies(Sphere(0.05), places_of(range(ALIVE), rng)).tolist())
    simulation, total, times = Simulation(scene, STEP, GaussSeidel(iterations=20), threads=threads), ALIVE, deque(maxlen=40)
    while total < marks[-1]:
        simulation.remove([ages.popleft() for _ in range(REPLACED)])
        ages.extend(simulation.add_bodies(Sphere(0.05), places_of(range(total, total + REPLACED), rng)).tolist())
        total += REPLACED
        times.append(sum(simulation.step().seconds.values()))
        if total in marks:
            yield {"inserted": total, "alive": len(ages), "ms per step": 1e3 * float(np.median(times))}


def places_of(numbers, rng):
    """On a lattice of 0.12 m that is filled again and again; who was there before has left."""
    k = np.array(numbers) % ALIVE
    places = np.stack([k % COLUMNS, k // COLUMNS % COLUMNS, k // COLUMNS**2], axis=1) * 0.12 + (0, 0, 0.06)
    return places + rng.uniform(-0.005, 0.005, places.shape)
