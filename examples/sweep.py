"""How steep a heap is, over friction: a column of grains collapses, once for each value, on all cores."""

import numpy as np

import gravel as gv


def angle(friction):
    """Degrees: the slope of the cone that has the grains' mean height and their mean distance from its axis."""
    rng, radius = np.random.default_rng(1), 0.01
    rough = gv.Material(friction=friction, rolling_friction=0.1 * friction * radius)
    scene = gv.Scene()
    scene.add_body(gv.Plane(), material=gv.Material(friction=0.8, rolling_friction=0.1 * radius), fixed=True)
    places = 2.1 * radius * np.stack(np.unravel_index(np.arange(360), (6, 6, 10)), axis=1)
    grains = scene.add_bodies(gv.Sphere(radius), places + rng.uniform(0, 0.05 * radius, (360, 3)) + (0, 0, radius), rough)
    sim = gv.Simulation(scene, dt=2e-3)
    sim.run(until=1.0)
    x = sim.positions[grains]
    distance = np.linalg.norm(x[:, :2] - np.median(x[:, :2], axis=0), axis=1).mean()  # half the radius of a cone
    return np.degrees(np.arctan2(4 * x[:, 2].mean(), 2 * distance))  # and a quarter of its height


if __name__ == "__main__":
    frictions = [0.1, 0.3, 0.5, 0.7]
    angles = gv.sweep(angle, frictions)
    print("friction   slope")
    for friction, degrees in zip(frictions, angles):
        print(f"{friction:8.2f}   {degrees:4.1f}°")
    assert angles == sorted(angles)
