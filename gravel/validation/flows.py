"""Flows of grains: collapsing columns, compared with experiments and with LAMMPS from the same initial state."""

import functools

import numpy as np

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.shapes import Sphere
from gravel.validation.case import Curve, Outcome, case
from gravel.validation.column_start import DENSITY, FRICTION, RADIUS, RATIOS, RESTITUTION, column_start, deposit, reference
from gravel.validation.running import simulate


def column_scene(start):
    """Its grains come first, then the balls of the floor, which are fixed."""
    grit = Material(density=DENSITY, friction=FRICTION, restitution=RESTITUTION)
    scene = Scene()
    scene.add_bodies(Sphere(start.radii), start.places, grit)
    scene.add_bodies(Sphere(RADIUS), start.floor, grit, fixed=True)
    return scene


@functools.cache
def collapsed(ratio):
    """The deposit of a column; kept, since two cases look at it."""
    start = column_start(ratio)
    sim = simulate(column_scene(start), 1e-3)
    sim.run(until=start.seconds)
    places = sim.positions[: len(start.places)]
    stayed = places[:, 2] > -4 * RADIUS  # the few that rolled off the floor's edge fall on and on
    return deposit(places[stayed], start.radii[stayed], start)


def run_out_of_lube(ratio):
    """Radius of the deposit over that of the column."""
    return 1 + np.where(ratio < 1.7, 1.24 * ratio, 1.6 * np.sqrt(ratio))


@case("Column collapse: run-out", slow=True, only="defaults")
def column_collapse() -> Outcome:
    r"""A column of grains, radius $r_0$ and height $a r_0$, is released and spreads to $r_\infty = r_0 (1 + 1.24 a)$ for $a < 1.7$ and
    $r_0 (1 + 1.6 \sqrt a)$ beyond, whatever the grains are made of (Lube, Huppert, Sparks and Hallworth 2004, *J. Fluid Mech.* 508,
    175; similar results by Lajeunesse, Mangeney-Castelnau and Vilotte 2004). The experiments used some $10^5$ to $10^7$ grains of sand,
    sugar or rice; the simulation has 20 000 balls, $r_0$ of 22 to 45 radii, on a floor of such balls. The edge is where the deposit
    becomes thinner than half a diameter; at one diameter it lies up to 12 % further in, so the bound is one tenth. LAMMPS with stiff
    springs from the same initial state differs by up to 6 %. The height in the middle follows no such law: sand leaves
    $0.88\, a^{1/6} r_0$ for $a > 1.7$, balls in both codes a third less."""
    ratios = np.array(RATIOS)
    found = np.array([collapsed(ratio)["half_diameter"] for ratio in RATIOS])
    curve = Curve("run-out", ratios, run_out_of_lube(ratios), found)
    error = float(np.max(np.abs(found / curve.formula - 1)))
    return Outcome("height of the column, of its radius", "radius of the deposit, of the column's", [curve], error, "of the radius", 0.1)


@case("Column collapse beside LAMMPS", slow=True, only="defaults")
def column_beside_lammps() -> Outcome:
    r"""The same four columns, from identical positions, in LAMMPS: Hertz and Mindlin's contacts with $E = 10^9$ Pa, steps of 10 µs
    (`tests/validation/make_column_reference.py`). The figure shows the edges where the deposit becomes thinner than one diameter and
    than half a diameter, the circle that contains 95 % of the volume, and the height in the middle, all over the column's radius. Each
    may differ by 5 % of its value."""
    names = {"one_diameter": "edge: one diameter", "height": "height", "half_diameter": "half a diameter", "holds_95": "95 % of the volume"}
    known, ratios = reference(), np.array(RATIOS)
    curves = []
    for name, word in names.items():
        wanted, found = [known[f"{ratio:g}"][name] for ratio in RATIOS], [collapsed(ratio)[name] for ratio in RATIOS]
        curves.append(Curve(word, ratios, np.array(wanted), np.array(found)))
    error = float(max(np.abs(curve.difference() / curve.formula).max() for curve in curves))
    return Outcome("height of the column, of its radius", "length, of the column's radius", curves, error, "of the length", 0.05)
