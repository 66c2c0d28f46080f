"""Grains: counts of contacts, columns, outlets and shear, against laws of granular matter."""

import numpy as np

from gravel import scenes
from gravel.detection.find import find_contacts
from gravel.measures import stress
from gravel.model.materials import Material
from gravel.packing.pack import pack
from gravel.packing.regions import BoxRegion
from gravel.packing.sizes import UniformSizes
from gravel.scene import Scene
from gravel.scenes.flow import Outflow
from gravel.shapes import Box, Plane, Sphere
from gravel.simulation import Simulation
from gravel.validation.case import Curve, Outcome, case, largest
from gravel.validation.running import G

RADIUS, DENSITY = 0.01, 2500.0  # m, kg/m3, of balls at rest and in flow


@case("Overlaps of random balls", only="defaults")
def random_overlaps() -> Outcome:
    r"""Of $N$ points at random in a unit cube, $\tfrac{1}{2} N (N - 1) F(s)$ pairs are nearer than $s$, with
    $F = \tfrac{4}{3} \pi s^3 - \tfrac{3}{2} \pi s^4 + \tfrac{8}{5} s^5 - \tfrac{1}{6} s^6$ (the distances in a cube, for $s \le 1$).
    Balls of diameter $s$ overlap as often; the count of a sample scatters by about its square root, and the bound is four times that."""
    count, sizes = 20_000, np.array([0.005, 0.01, 0.015, 0.02, 0.025, 0.03])
    places = np.random.default_rng(7).uniform(0, 1, (count, 3))
    share = 4 / 3 * np.pi * sizes**3 - 1.5 * np.pi * sizes**4 + 1.6 * sizes**5 - sizes**6 / 6
    wanted = 0.5 * count * (count - 1) * share
    found = np.array([len(find_contacts(Sphere(size / 2), places)) for size in sizes], float)
    error = float(np.max(np.abs(found - wanted) / np.sqrt(wanted)))
    return Outcome("diameter, of the cube", "contacts", [Curve("contacts", sizes, wanted, found)], error, "of √(contacts)", 4.0)


def shaft(half, wall):
    """A scene with four upright walls, the bodies 0 to 3."""
    scene = Scene()
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        scene.add_body(Plane((x, y, 0), offset=-half), material=wall, fixed=True)
    return scene


def column(half=0.08, height=0.9, settle=0.6):
    """A tall square column of balls on a floor, body 4, that has been lowered a little once they rest: so the walls hold them up."""
    glass = Material(density=DENSITY, friction=0.4)
    scene = shaft(half, glass)
    scene.add_body(Plane(), material=glass, motion=lambda t: ((0, 0, -0.004 * max(t - settle, 0.0)), (1, 0, 0, 0)))
    balls = pack(Sphere(RADIUS), BoxRegion((-half, -half, 0), (half, half, height)), fraction=0.5, seed=3)
    balls.add_to(scene, glass)
    sim = Simulation(scene, 1e-3)
    sim.run(until=settle + 0.2)
    return sim


@case("Janssen's law", slow=True, only="defaults")
def janssen() -> Outcome:
    r"""In a column of area $A$ and circumference $U$ the walls carry most of the weight:
    $\sigma_z = \rho g \lambda (1 - e^{-z/\lambda})$ at the depth $z$, with $\lambda = A / (U \mu K)$ (Janssen 1895). The mobilised
    friction $\mu$ and the ratio $K$ of wall stress to vertical stress are those of the whole column in the same states; the law
    predicts the profile over depth. 2 700 balls, a column 8 diameters wide, means over 0.2 s while the floor sinks at 4 mm/s."""
    half, layers, sim = 0.08, 10, column()
    top = np.sort(sim.positions[5:, 2])[-30:].mean() + RADIUS
    edges = np.linspace(0.0, top, layers + 1)
    vertical, push, hold = np.zeros(layers), 0.0, 0.0
    for _ in range(20):
        sim.run(until=sim.time + 0.01)
        vertical += [stress(sim, ((-half, -half, a), (half, half, b)))[2, 2] / 20 for a, b in zip(edges[:-1], edges[1:])]
        table = sim.contacts
        walls = table.impulse[table.body_a < 4] / sim.dt
        push, hold = push + np.linalg.norm(walls[:, :2], axis=1).sum() / 20, hold + walls[:, 2].sum() / 20
    weight = G * sim.masses[5:].sum()
    lateral = push / (8 * half * top)
    length = (2 * half) ** 2 / (8 * half * (hold / push) * (lateral / vertical.mean()))
    depth = top - 0.5 * (edges[:-1] + edges[1:])
    head = weight / ((2 * half) ** 2 * top)  # bulk density times g
    curve = Curve("σ over depth", depth, head * length * (1 - np.exp(-depth / length)) / 1e3, vertical / 1e3)
    return largest("depth, m", "vertical stress, kPa", [curve], head * length / 1e3, "of the limit", 0.15)


def discharge(hole, half=0.15, count=2500):
    """(mass flow in kg/s, bulk density in kg/m3) of balls through a square hole of half width ``hole`` in a flat floor."""
    glass = Material(density=DENSITY, friction=0.4)
    scene, thick = shaft(half, glass), 0.02
    sides = (
        (hole + half, 0, half, 2 * half),
        (-hole - half, 0, half, 2 * half),
        (0, hole + half, hole, half),
        (0, -hole - half, hole, half),
    )
    for x, y, half_x, half_y in sides:
        scene.add_body(Box((half_x, half_y, thick)), (x, y, -thick), glass, fixed=True)
    plug = scene.add_body(Box((hole, hole, thick)), (0, 0, -thick), glass, fixed=True)
    balls = pack(
        Sphere, BoxRegion((-half, -half, 0), (half, half, 0.25)), sizes=UniformSizes(0.9 * RADIUS, 1.1 * RADIUS), count=count, seed=5
    )
    grains = balls.add_to(scene, glass)
    sim, outflow = Simulation(scene, 1e-3), Outflow(grains, -0.1)
    sim.run(until=0.4)
    height = np.sort(sim.positions[grains, 2])[-100:].mean() + RADIUS
    density = sim.masses[grains].sum() / (4 * half**2 * height)
    sim.remove(plug)
    sim.run(until=1.6, observers=[(outflow, 0.01)])
    return outflow.rate(), density


@case("Beverloo's law", slow=True, only="defaults")
def beverloo() -> Outcome:
    r"""Balls of diameter $d$ flow from a hole of side $D$ at $W = C \rho_b \sqrt g\, \tfrac{4}{\pi} (D - k d)^{5/2}$, with $C = 0.58$ and
    $k = 1.5$ (Beverloo et al. 1961; square holes by their hydraulic diameter). $\rho_b$ is the bulk density before the hole opens.
    2 500 balls, a flat floor."""
    holes = RADIUS * np.array([5.0, 6.0, 7.0, 8.0])
    rates, densities = np.array([discharge(hole) for hole in holes]).T
    wanted = [Outflow.beverloo(2 * hole, RADIUS, density, packing=1.0) for hole, density in zip(holes, densities)]
    curve = Curve("flow", holes / RADIUS, np.array(wanted), rates)
    error = float(np.max(np.abs(rates / curve.formula - 1)))
    return Outcome("side of the hole, diameters", "flow, kg/s", [curve], error, "of the flow", 0.2)


@case("Profile of a sheared cell", slow=True, only="defaults")
def shear_profile() -> Outcome:
    r"""A periodic cell with Lees and Edwards' boundaries: $v_x = \dot\gamma z$ at every height, without walls. The scene `simple-shear`
    with 300 balls, means over five layers from a strain of 1 to 2."""
    setup, heights, speeds = scenes.build("simple-shear", 300, 0), [], []

    def note(sim):
        if sim.cell.shear_strain >= 1.0:
            heights.append((sim.positions[:, 2] - sim.cell.low[2]) / sim.cell.lengths[2])
            speeds.append(sim.velocities[:, 0] / (sim.cell.shear_rate * sim.cell.lengths[2]))

    Simulation(setup.scene, setup.dt, **setup.options).run(until=setup.time, observers=[(note, 0.0025)])
    layer, speed = np.minimum((5 * np.concatenate(heights)).astype(int), 4), np.concatenate(speeds)
    means, middles = np.array([speed[layer == k].mean() for k in range(5)]), (np.arange(5) + 0.5) / 5
    return largest(
        "height, of the cell", "speed, of that across", [Curve("v", middles, middles - 0.5, means)], 1.0, "of the speed across", 0.06
    )
