"""Shared by the built-in scenes: the setup they return, checks, and ways to place grains and walls."""

from dataclasses import dataclass, field

import numpy as np

from gravel.rotations import conjugate, rotate
from gravel.running.gather import gathered
from gravel.shapes import Plane


@dataclass
class Setup:
    scene: object
    dt: float  # s
    time: float  # s, how long the scene should run
    check: object  # function(simulation, run report) -> list of Check
    observers: list = field(default_factory=list)
    options: dict = field(default_factory=dict)  # further arguments of Simulation
    curve: object = None  # a Curve that the observers fill
    joint_names: dict = field(default_factory=dict)  # of a machine -> ids

    def watchers(self):
        """The observers, as a run calls them: what they look at is all of the simulation, however many processes share it."""
        return [(_of_whole(function), seconds) for function, seconds in (o if isinstance(o, tuple) else (o, 0.0) for o in self.observers)]

    def checks(self, simulation, report):
        """What the scene says of its physics after a run, a list of ``Check``."""
        return self.check(gathered(simulation), report)


def _of_whole(function):
    return lambda simulation: function(gathered(simulation))


class Curve:
    """A table that a scene fills while it runs, one row a sample; ``gravel run`` leaves it as a CSV file beside the result."""

    def __init__(self, *columns):
        """``columns``: names with their units, as in "stress Pa"."""
        self.columns, self.rows = columns, []

    def add(self, *values):
        self.rows.append(tuple(float(value) for value in values))

    def __getitem__(self, name):
        """A column by its name, without the unit."""
        place = [column.split()[0] for column in self.columns].index(name)
        return np.array([row[place] for row in self.rows])

    def is_long_enough(self, column, until):
        """Whether a column, which grows while the scene runs, has come so far; if not, there is nothing to judge."""
        return len(self.rows) > 0 and float(self[column].max()) >= until

    def write(self, path):
        with open(path, "w") as file:
            file.write(",".join(self.columns) + "\n")
            file.writelines(",".join(f"{value:.9g}" for value in row) + "\n" for row in self.rows)


@dataclass(frozen=True)
class Check:
    """One statement about the physics of a run."""

    name: str
    passed: bool
    detail: str


def lattice(n, low, high, spacing, jitter, rng):
    """(n, 3) places above ``low``: layers that fill the rectangle low to high in x and y, as high as it takes."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    count = np.maximum(np.floor((high[:2] - low[:2]) / spacing + 1e-9).astype(int), 1)
    k = np.arange(n)
    cell = np.stack([k % count[0], k // count[0] % count[1], k // (count[0] * count[1])], axis=1)
    corner = np.append(0.5 * (low[:2] + high[:2]) - 0.5 * (count - 1) * spacing, low[2] + 0.5 * spacing)
    return corner + cell * spacing + rng.uniform(-jitter, jitter, (n, 3))


def staggered(n, half_x, half_y, radius, rng):
    """(n, 3) places for grains in a rectangle, layers shifted against each other so that they settle densely."""
    shift = 0.4 * radius
    inner = np.array([half_x - shift - 0.03 * radius, half_y - shift - 0.03 * radius, 0])
    places = lattice(n, -inner, inner, 2.04 * radius, 0.02 * radius, rng)
    places[:, :2] += shift * (-1) ** np.floor(places[:, 2:] / (2.04 * radius))
    return places + (0, 0, 0.02 * radius)


def prism_walls(scene, sides, radius, material, **options):
    """Upright planes around a regular polygon with the given distance from axis to wall; returns their ids."""
    angles = 2 * np.pi * np.arange(sides) / sides
    return [
        scene.add_body(Plane((-np.cos(a), -np.sin(a), 0), offset=-radius), material=material, fixed=not options, **options) for a in angles
    ]


def box_walls(scene, half_x, half_y, material, **options):
    """Four upright planes around a rectangle; returns their ids."""
    normals = ((1, 0, 0, half_x), (-1, 0, 0, half_x), (0, 1, 0, half_y), (0, -1, 0, half_y))
    options = {"fixed": "motion" not in options, **options}
    return [scene.add_body(Plane((x, y, z), offset=-half), material=material, **options) for x, y, z, half in normals]


def unfinished_check(curve):
    """What to say where a curve is too short to be judged."""
    return Check("the test was run to its end", False, f"only {len(curve.rows)} samples were taken")


def inside_check(simulation, report, low, high, slack):
    """Nobody is outside a box, with some slack for the penetration of walls."""
    x = simulation.positions[simulation.movable]
    outside = int(np.count_nonzero(((x < np.asarray(low) - slack) | (x > np.asarray(high) + slack)).any(axis=1)))
    return Check("nobody outside", outside == 0, f"{outside} of {len(x)} bodies outside")


def penetration_check(simulation, report, radius, share):
    """The worst penetration stays below a share of the radius."""
    depth = report.max_penetration / radius
    return Check("penetration", depth <= share, f"worst {100 * depth:.3g} % of the radius, allowed {100 * share:g} %")


def mass_check(simulation, expected):
    """No grain is lost: those that are there and those that were taken out are all."""
    there, gone = int(np.count_nonzero(simulation.movable)), int(np.count_nonzero(~simulation.alive))
    return Check("no grain lost", there + gone == expected, f"{there} there, {gone} taken out, {expected} at the start")


def random_turns(n, rng):
    """(n, 4) quaternions, every direction alike."""
    turns = rng.normal(size=(n, 4))
    return turns / np.linalg.norm(turns, axis=1, keepdims=True)


def rest_checks(simulation, floor, radius):
    """The heap has come to rest: hardly a speed is left, and its floor carries it. Walls carry some of it by friction, or, where the heap
    has risen a little as its overlaps were taken back, hold it down."""
    speed = np.sqrt(np.mean(np.sum(simulation.velocities[simulation.movable].astype(float) ** 2, axis=1)))
    weight = 9.81 * simulation.masses[simulation.movable].sum()
    table = simulation.contacts
    carried = table[table.body_a == floor].impulse[:, 2].sum() / simulation.dt
    now = simulation.report.max_penetration / radius
    return [
        Check("it rests", speed < 0.02, f"rms speed {1e3 * speed:.3g} mm/s, allowed 20"),
        Check("penetration at rest", now < 0.03, f"{100 * now:.3g} % of the radius, allowed 3 %"),
        Check("the floor carries it", 0.6 < carried / weight < 1.15, f"floor force {carried / weight:.3f} of the weight"),
    ]


def mechanical_energy(simulation):
    """Kinetic energy and that in the field of gravity, J."""
    move = simulation.movable
    mass, spin = simulation.masses[move], rotate(conjugate(simulation.quaternions[move]), simulation.angular_velocities[move])
    moving = mass * (simulation.velocities[move].astype(float) ** 2).sum(axis=1)
    turning = (spin**2 / simulation.bodies.inverse_mass[move, 1:]).sum(axis=1)
    return float(0.5 * (moving + turning).sum() - (mass[:, None] * simulation.positions[move] * simulation.gravity).sum())


def joints_check(report, size, share):
    """The joints stay closed, to a share of the machine's size."""
    open_by = report.joint_violation / size
    return Check("joints closed", open_by <= share, f"worst {open_by:.2g} of {size:g} m, allowed {share:g}")
