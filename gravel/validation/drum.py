"""A rotating drum: the angle of its bed, compared with LAMMPS from the same initial state."""

import json

import numpy as np

from gravel.model.materials import Material
from gravel.model.motion import ConstantVelocity
from gravel.scene import Scene
from gravel.scenes.drum import drum_mesh, surface_angle
from gravel.shapes import Plane, Sphere
from gravel.validation.case import Curve, Outcome, case
from gravel.validation.column_start import DATA
from gravel.validation.running import G, simulate

FILE = DATA / "drum_lammps.json"
RADIUS, DENSITY, FRICTION, RESTITUTION, WALL = 0.01, 2500.0, 0.5, 0.3, 0.8  # m (mean), kg/m3, of grains, -, friction of the drum
DRUM, WIDTH, GRAINS = 0.15, 0.12, 600  # m: radius and length of the drum
FROUDES = (0.03, 0.15)  # rate squared times radius over g
SECONDS, EVERY = (1.5, 9.0), 0.02  # s: the angle's mean is taken from the first to the second, of frames so far apart


def rate_of(froude: float) -> float:
    """Of the drum, rad/s."""
    return float(np.sqrt(froude * G / DRUM))


def start() -> tuple[np.ndarray, np.ndarray]:
    """Places and radii of grains that do not touch, on a lattice in the drum's lower part; its axis is y."""
    rng, spacing, reach = np.random.default_rng(12), 2.22 * RADIUS, DRUM - 1.15 * RADIUS
    columns, rows = int((WIDTH - 2.2 * RADIUS) / spacing) + 1, int(2 * reach / spacing)
    x, y, z = np.meshgrid(np.arange(rows + 1), np.arange(columns), np.arange(rows + 1), indexing="ij")
    places = spacing * np.stack([x - 0.5 * rows, y - 0.5 * (columns - 1), z - 0.5 * rows], axis=-1).reshape(-1, 3)
    places = places[np.hypot(places[:, 0], places[:, 2]) < reach]
    places = places[np.argsort(places[:, 2], kind="stable")][:GRAINS]
    return places, RADIUS * rng.uniform(0.9, 1.1, GRAINS)


def reference() -> dict[str, dict[str, float]]:
    """By Froude number: the angle's mean in degrees, and its scatter."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def angle(froude: float) -> float:
    """Mean angle of the bed's surface, degrees."""
    (places, radii), angles = start(), []
    sand = Material(DENSITY, friction=FRICTION, restitution=RESTITUTION)
    steel, glass = Material(7800, friction=WALL, restitution=RESTITUTION), Material(2500, friction=0.0, restitution=RESTITUTION)
    scene = Scene()
    grains = scene.add_bodies(Sphere(radii), places, sand)
    turning = ConstantVelocity(angular_velocity=(0, rate_of(froude), 0))
    scene.add_body(drum_mesh(DRUM, 2 * WIDTH, 128), material=steel, motion=turning)  # longer: its own ends are out of reach
    for side in (1, -1):
        scene.add_body(Plane((0, side, 0), offset=-WIDTH / 2), material=glass, fixed=True)
    scene.set_pair(sand, steel, friction=WALL)
    scene.set_pair(sand, glass, friction=0.0)

    def note(sim):
        if sim.time >= SECONDS[0]:
            angles.append(abs(surface_angle(sim.positions[grains])))

    simulate(scene, 1e-3).run(until=SECONDS[1], observers=[(note, EVERY)])
    return float(np.mean(angles))


@case("Rotating drum", slow=True, only="defaults")
def rotating_drum() -> Outcome:
    r"""The bed of a slowly rotating drum keeps its dynamic angle of repose. 600 balls, friction 0.5, fill nearly half of a drum of 15
    radii with smooth ends, at two Froude numbers $\omega^2 R / g$. The reference is LAMMPS with stiff springs and steps of 25 µs from
    the same initial state (`tests/validation/make_drum_reference.py`). The angle is that of a line through the topmost grains, averaged
    over 376 frames; the uncertainty is 0.3 degrees in each code. The bound is 1.5 degrees. Steps of 1 ms."""
    froudes, known = np.array(FROUDES), reference()
    wanted = np.array([known[f"{froude:g}"]["angle"] for froude in FROUDES])
    curve = Curve("angle", froudes, wanted, np.array([angle(froude) for froude in FROUDES]))
    error = float(np.abs(curve.difference()).max())
    return Outcome("Froude number", "angle of the surface, degrees", [curve], error, "degrees", 1.5)
