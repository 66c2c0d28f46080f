"""Grains flow from a round silo through its hopper (paper 000, Table 1).

Shaft and hopper are one sheet around the axis, so that grains meet no seam. They rain in from above; layers of two colours, of one glass,
show afterwards how the bed has sunk.
"""

import numpy as np

from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.scenes.flow import Outflow
from gravel.scenes.setup import Check, Setup, lattice, penetration_check
from gravel.shapes import Sphere
from gravel.shapes.meshes import Mesh

BODIES, FEWEST = 2000, 100
RADIUS, SPACING, SLOPE = 0.05, 0.115, np.radians(50)
SIDES, LAYERS = 96, 8
FALLEN = 0.5  # height of the bed when the grains have fallen, of the loose column that they fall from


def sheet_around(outline, sides):
    """The sheet that an outline (k, 2) of radii and heights, from the bottom up, sweeps around z."""
    outline, angles = np.asarray(outline, float), 2 * np.pi * np.arange(sides) / sides
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    vertices = np.concatenate([np.column_stack([radius * ring, np.full(sides, z)]) for radius, z in outline])
    k, after = np.arange(sides), (np.arange(sides) + 1) % sides
    band = np.concatenate([np.stack([k, after, sides + after], axis=1), np.stack([k, sides + after, sides + k], axis=1)])
    return Mesh(vertices, np.concatenate([band + row * sides for row in range(len(outline) - 1)]), sheet=True)


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    amber, blue = (Material(density=2500, friction=0.3, name=f"{colour} glass") for colour in ("amber", "blue"))
    steel = Material(density=7800, friction=0.3, name="steel")
    scene = Scene()
    half = max(0.47 * SPACING * np.cbrt(bodies), 7 * RADIUS)  # radius of the shaft
    outlet = max(5 * RADIUS, half / 3)  # its radius
    top = (half - outlet) * np.tan(SLOPE)  # of the hopper, whose outlet lies at height 0
    inner = half - RADIUS - 0.6 * SPACING
    places = lattice(3 * bodies, (-inner, -inner, top + RADIUS), (inner, inner, 0), SPACING, 0.04 * RADIUS, rng)
    places = places[np.hypot(places[:, 0], places[:, 1]) < half - 1.2 * RADIUS][:bodies]
    rim = top + FALLEN * (places[:, 2].max() - top) + 2 * SPACING
    scene.add_body(sheet_around([(outlet, 0.0), (half, top), (half, rim)], SIDES), (0, 0, 0), steel, fixed=True)
    layer = (np.arange(bodies) * LAYERS // bodies) % 2
    radii = RADIUS * rng.uniform(0.9, 1.1, bodies)
    layers = [scene.add_bodies(Sphere(radii[layer == k]), places[layer == k], glass) for k, glass in enumerate((amber, blue))]
    grains = np.concatenate(layers)
    outflow = Outflow(grains, -1.0)
    return Setup(scene, 1 / 500, 2.0, lambda s, r: check(s, r, half, outlet, outflow, bodies), [(outflow, 0.01)])


def check(simulation, report, half, outlet, outflow, bodies):
    x = simulation.positions[simulation.movable]
    held = x[x[:, 2] > 0]
    reach = np.hypot(held[:, 0], held[:, 1]).max(initial=0.0)
    rate, expected = outflow.rate(), outflow.beverloo(2 * outlet, RADIUS, 2500, opening="circle")
    return [
        Check("no grain lost", len(x) + outflow.count == bodies, f"{len(x)} there, {outflow.count} flowed out, {bodies} at the start"),
        Check("nobody outside", reach < half, f"farthest centre {reach:.3f} m from the axis, wall at {half:.3f} m"),
        Check("flow rate sensible", 0.3 < rate / expected < 3.0, f"{rate:.3g} kg/s, Beverloo's law for a flat floor {expected:.3g} kg/s"),
        penetration_check(simulation, report, RADIUS, 0.5),
    ]
