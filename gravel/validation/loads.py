"""Loads at rest: stacks, and structures that must stand or fall."""

import numpy as np

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.shapes import Box, Cylinder, Plane, Sphere
from gravel.validation.case import Curve, Outcome, case, largest
from gravel.validation.running import G, advance, on_floor, record, simulate


@case("Loads in a stack")
def stack() -> Outcome:
    r"""In a stack of eight boxes, each face carries the weight above it: $F_k = (8 - k)\, m g$ on the box $k$ below, and the floor
    carries all of it. At defaults the bound is 1 %: the tolerance is tight enough to read forces of single steps."""
    stone, count = Material(density=2000, friction=0.5), 8
    scene = on_floor(stone)
    boxes = scene.add_bodies(Box((0.1, 0.1, 0.1)), [(0, 0, 0.1 + 0.2 * k) for k in range(count)], stone)
    sim = advance(simulate(scene), 0.2)
    table, weight, faces = sim.contacts, G * sim.masses[boxes[0]], np.arange(count)
    loads = np.array([table.impulse[table.body_b == box, 2].sum() for box in boxes]) / sim.dt
    curve = Curve("load", faces, weight * (count - faces), loads)
    return largest("face, from the floor up", "load, N", [curve], weight, "of a box", 1e-6, 0.01)


@case("Plate on three balls")
def plate_on_balls() -> Outcome:
    r"""A plate lies on three balls at $p_1, p_2, p_3$, its centre at $p$: $\sum F_i = m g$ and $\sum F_i (p_i - p) = 0$ give all three
    forces. They are read from the contact table at each of 500 steps of 1/500 s, half a second after the steel plate fell on the glass
    balls from 1 mm. At defaults every single force is within 1 %."""
    r, middle, corners = 0.03, np.array([-0.04, -0.05]), np.array([(-0.3, -0.2), (0.25, -0.15), (0.05, 0.3)])
    steel, glass = Material(density=7800, friction=0.4), Material(density=2500, friction=0.4)
    scene = on_floor(steel)
    balls = scene.add_bodies(Sphere(r), np.column_stack([corners, np.full(3, r)]), glass)
    plate = scene.add_body(Box((0.4, 0.4, 0.003)), (*middle, 2 * r + 0.004), steel)

    def forces(sim):
        table = sim.contacts
        pairs = [((table.body_a == ball) & (table.body_b == plate)) | ((table.body_a == plate) & (table.body_b == ball)) for ball in balls]
        return [np.abs(table.impulse[pair, 2]).sum() / sim.dt for pair in pairs]

    sim = advance(simulate(scene, 1 / 500), 0.5)
    times, found = record(sim, 1.0, forces)
    weight = G * sim.masses[plate]
    wanted = np.linalg.solve([np.ones(3), *(corners - middle).T], [weight, 0, 0])
    curves = [Curve(f"ball {k + 1}", times, np.full(len(times), wanted[k]), found[:, k]) for k in range(3)]
    error = float(max(np.abs(curve.difference() / curve.formula).max() for curve in curves))
    return Outcome("time, s", "force, N", curves, error, "of the force", 1e-6, 0.01)


def overhanging(share):
    """How far the top of five bricks sinks in 0.6 s, each as far out over the next as the harmonic series allows, times ``share``."""
    length, width, height = 0.2, 0.1, 0.05
    scene, clay = Scene(), Material(friction=0.5, density=2000)
    scene.add_body(Box((0.5, 0.2, 0.25)), (-0.5, 0, 0.25), clay, fixed=True)
    end, level = 0.0, 0.5
    for k in range(5, 0, -1):
        end += share * length / (2 * k)
        top = scene.add_body(Box((length / 2, width / 2, height / 2)), (end - length / 2, 0, level + height / 2), clay)
        level += height
    sim = advance(simulate(scene, 1 / 500), 0.6)
    return level - height / 2 - sim.positions[top, 2]


@case("Bricks that hang out")
def overhang() -> Outcome:
    r"""Five bricks of length $L$ can overhang by $\tfrac{L}{2} (1 + \tfrac{1}{2} + \dots + \tfrac{1}{5})$ and no further. The figure
    shows whether the top brick has sunk by more than a millimetre after 0.6 s, as a function of the share of that limit."""
    shares = np.array([0.9, 0.94, 0.98, 1.02, 1.06, 1.1])
    fell = np.array([float(overhanging(share) > 1e-3) for share in shares])
    return largest("overhang, of the limit", "falls", [Curve("bricks", shares, (shares > 1).astype(float), fell)], 1.0, "(absolute)", 0.0)


def logs_apart(share):
    """How far the upper of three logs sinks in 1 s with ``share`` of the floor's friction that they need."""
    r, wood, floor = 0.1, Material(friction=0.6, density=700), Material(friction=0.5)
    scene, turn = Scene(), (np.sqrt(0.5), np.sqrt(0.5), 0, 0)
    scene.add_body(Plane(), material=floor, fixed=True)
    places = [(-r, 0, r), (r, 0, r), (0, 0, r + np.sqrt(3) * r)]
    top = [scene.add_body(Cylinder(r, 0.2), place, wood, quaternion=turn) for place in places][-1]
    scene.set_pair(wood, floor, friction=share * (2 - np.sqrt(3)) / 3)
    sim = advance(simulate(scene, 1 / 500), 1.0)
    return places[-1][2] - sim.positions[top, 2]


@case("Three logs")
def three_logs() -> Outcome:
    r"""Two logs on a floor with a third on top are stable only if the floor's friction is at least $(2 - \sqrt 3) / 3 = 0.0893$: the
    upper log pushes the lower ones apart at 30° from the vertical, and each carries half of its weight besides its own."""
    shares = np.array([0.85, 0.9, 0.95, 1.05, 1.1, 1.15])
    fell = np.array([float(logs_apart(share) > 1e-4) for share in shares])
    curve = Curve("logs", shares, (shares < 1).astype(float), fell)
    return largest("friction, of what is needed", "rolls apart", [curve], 1.0, "(absolute)", 0.0)
