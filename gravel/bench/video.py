"""Pictures and videos, off screen: seconds for a video of 200 frames of 10 000 bodies (bar: 180 s on 2 cores), and for one picture."""

import os
import tempfile
import time

import numpy as np

from gravel import scenes
from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.shapes import Box, Ellipsoid, Sphere
from gravel.simulation import Simulation

BAR = 180.0  # s
SHAPES = {
    "spheres": Sphere,
    "ellipsoids": lambda radii: Ellipsoid(np.outer(radii, (1.0, 0.8, 0.6))),
    "boxes": lambda radii: Box(np.outer(radii, (0.6, 0.6, 0.5))),
}
PICTURES = (("spheres", 10_000), ("ellipsoids", 10_000), ("boxes", 10_000), ("spheres", 100_000), ("spheres", 1_000_000))


def run(quick, threads):
    from gravel.view.picture import picture

    yield measure_video(*((1000, 20) if quick else (10_000, 200)), threads)
    for kind, bodies in ((kind, 1000) for kind in SHAPES) if quick else PICTURES:
        scene = cube(kind, bodies)
        shaded, plain = (_seconds(lambda shade=shade, scene=scene: picture(scene, occlusion=shade)) for shade in (True, False))
        yield {"picture of": kind, "bodies": bodies, "s": shaded, "without ambient occlusion, s": plain}


def measure_video(bodies, frames, threads):
    """A pile that falls, a frame for each step, and the video of it."""
    from gravel.view.video import video

    setup = scenes.build("pile", bodies, 0)
    simulation = Simulation(setup.scene, setup.dt, threads=threads, **setup.options)
    with tempfile.TemporaryDirectory() as folder:
        result, output = (os.path.join(folder, name) for name in ("pile.vtkhdf", "pile.mp4"))
        simulation.run((frames - 1) * setup.dt, save=result, every=setup.dt)
        seconds = _seconds(lambda: video(result, output))
        size = os.path.getsize(output) / 1e6
    each = seconds / frames
    return {"video of": "spheres", "bodies": bodies, "frames": frames, "s": seconds, "s a frame": each, "MB": size, "bar, s": BAR}


def cube(kind, bodies):
    """A scene of so many bodies in a cube, loosely."""
    rng, side = np.random.default_rng(0), round(np.cbrt(bodies)) + 1
    places = np.stack(np.unravel_index(np.arange(bodies), (side,) * 3), axis=1) + rng.uniform(-0.1, 0.1, (bodies, 3))
    scene = Scene()
    scene.add_bodies(SHAPES[kind](rng.uniform(0.3, 0.5, bodies)), places, Material(), quaternions=rng.normal(size=(bodies, 4)))
    return scene


def _seconds(task):
    start = time.perf_counter()
    task()
    return time.perf_counter() - start
