"""Sheared cells: friction and solid fraction of a steady flow of balls, compared with LAMMPS."""

import json

import numpy as np

from gravel.measures import stress
from gravel.model.cell import Deformation
from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.shapes import Sphere
from gravel.validation.case import Curve, Outcome, case
from gravel.validation.column_start import DATA
from gravel.validation.running import simulate

FILE = DATA / "shear_lammps.json"
RADIUS, DENSITY, FRICTION, RESTITUTION, STRESS = 0.01, 2500.0, 0.5, 0.3, 1e3  # m (mean), kg/m3, -, -, Pa
NUMBERS = (0.1, 0.3)  # inertial numbers: rate times diameter times sqrt(density / stress)
STRAINS = (4.0, 14.0)  # from where to where the flow is steady and looked at
COUNT = 10  # balls along each side


def rate_of(number: float) -> float:
    """Shear rate of an inertial number, 1/s."""
    return number / (2 * RADIUS * np.sqrt(DENSITY / STRESS))


def start() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places and radii of balls that do not touch, on a lattice, and the lengths of their cell."""
    rng, spacing = np.random.default_rng(11), 2.26 * RADIUS
    places = np.stack(np.meshgrid(*[np.arange(COUNT)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) + 0.5
    radii = RADIUS * rng.uniform(0.9, 1.1, len(places))
    return spacing * places + 0.02 * RADIUS * rng.uniform(-1, 1, places.shape), radii, np.full(3, spacing * COUNT)


def flow(number: float, dt: float) -> tuple[float, float]:
    """Friction and fraction of the steady flow of an inertial number."""
    (places, radii, lengths), rate = start(), rate_of(number)
    pressed = Deformation(shear_rate=rate, stress=(None, None, STRESS), limit=5.0)
    scene = Scene(gravity=(0, 0, 0), periodic=[(0, length) for length in lengths], deformation=pressed)
    velocities = np.zeros_like(places)
    velocities[:, 0] = rate * (places[:, 2] - 0.5 * lengths[2])
    grit = Material(DENSITY, friction=FRICTION, restitution=RESTITUTION)
    scene.add_bodies(Sphere(radii), places, grit, velocities=velocities)
    solid, samples = 4 / 3 * np.pi * np.sum(radii**3), []

    def note(sim):
        if sim.cell.shear_strain >= STRAINS[0]:
            tensor = stress(sim)
            samples.append((-tensor[0, 2], tensor[2, 2], solid / sim.cell.volume))

    simulate(scene, dt).run(until=STRAINS[1] / rate, observers=[(note, 2 * dt)])
    shear, normal, fraction = np.mean(samples, axis=0)
    return shear / normal, fraction


def reference() -> dict:
    """What LAMMPS found, by inertial number."""
    return json.loads(FILE.read_text(encoding="utf-8"))


@case("Friction and fraction of a sheared cell", slow=True, only="defaults")
def sheared_cell() -> Outcome:
    r"""A dense flow of balls, sheared at $\dot\gamma$ under the stress $P$, has a friction $\mu = \tau / P$ and a solid fraction
    $\varphi$ that depend on the inertial number $I = \dot\gamma d \sqrt{\rho / P}$ alone (GDR MiDi 2004; da Cruz et al. 2005). 1 000
    balls in a periodic cell with Lees and Edwards' boundaries, friction 0.5, are compared with LAMMPS with stiff springs and steps of
    25 µs (`tests/validation/make_shear_reference.py`; its means are known to 0.5 % and 0.1 %). Means over a strain of ten, in steps of
    0.004 of strain, 1.3 and 0.4 ms; the bound is 3 %."""
    numbers, known = np.array(NUMBERS), reference()
    found = np.array([flow(number, 4e-3 / rate_of(number)) for number in NUMBERS])
    names = {"friction": "μ", "fraction": "φ"}
    curves = [
        Curve(word, numbers, np.array([known[f"{number:g}"][name] for number in NUMBERS]), found[:, k])
        for k, (name, word) in enumerate(names.items())
    ]
    error = float(max(np.abs(curve.difference() / curve.formula).max() for curve in curves))
    return Outcome("inertial number", "friction; solid fraction", curves, error, "of the value", 0.03)
