"""Contact detection on its own, without a simulation."""

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.contacts import ContactTable
from gravel.engine import ELLIPSOID_METHODS, Engine, Margin, Rules, finest_precision, make_engine
from gravel.model.materials import DEFAULT
from gravel.scene import body_block
from gravel.shapes import Shape
from gravel.shapes.geometry import Geometries


def find_contacts(
    shapes: Shape,
    positions: ArrayLike,
    quaternions: ArrayLike | None = None,
    broad_phase: str = "auto",
    margin: float = 0.0,
    precision: str | None = None,
    threads: int | None = None,
    ellipsoid_method: str = "direct",
    device: str = "cpu",
) -> ContactTable:
    """Contacts of N bodies of one kind of shape, without a simulation: a ``ContactTable``.

    ``shapes``: one shape, with sizes for one or for N bodies; ``positions`` (N, 3) m; ``quaternions`` (N, 4) w x y z; ``margin`` m: gaps
    up to it count as contacts; ``broad_phase`` and ``device`` as of ``Simulation``; ``precision`` None: "double" where the device has it;
    ``ellipsoid_method`` "direct", or "method-1" and "method-2" of paper 002: the same contacts, at another speed.
    """
    return detect(shapes, positions, quaternions, broad_phase, margin, precision, threads, ellipsoid_method, device).contacts()


def detect(
    shapes,
    positions,
    quaternions=None,
    broad_phase="auto",
    margin=0.0,
    precision=None,
    threads=None,
    ellipsoid_method="direct",
    device="cpu",
) -> Engine:
    """The engine that has found the contacts of N bodies; ``run_detection`` lets it look again."""
    margin = checks.number("margin", margin, minimum=0.0)
    checks.choice("ellipsoid_method", ellipsoid_method, ELLIPSOID_METHODS)
    engine = make_engine(device, precision or finest_precision(device), broad_phase, threads)
    block, geometry = body_block(shapes, positions, DEFAULT, quaternions, None, None, None, None, False, 0, None)
    geometries = Geometries()
    block["geometry"], block["id"] = geometries.number_of(geometry), np.arange(len(block["position"]))
    del block["inverse_mass"]  # nothing moves
    engine.add(block)
    engine.set_rules(Rules(margin=Margin(margin, 0.0), geometries=geometries, ellipsoid_method=ellipsoid_method))
    return run_detection(engine)


def run_detection(engine: Engine) -> Engine:
    """The stages of detection, on the bodies that an engine holds and by its rules."""
    engine.predict_poses()
    engine.detect()
    return engine


def detect_scene(scene, margin=0.0, ellipsoid_method="direct", broad_phase="grid", precision=None, threads=None, device="cpu") -> Engine:
    """The engine that has found the contacts of a scene's bodies as they are placed; groups and pairs that ignore each other count."""
    engine = make_engine(device, precision or finest_precision(device), broad_phase, threads)
    engine.add(scene.bodies.block())
    rules = Rules(margin=Margin(margin, 0.0), geometries=scene.geometries, ignored=scene.ignored, ellipsoid_method=ellipsoid_method)
    engine.set_rules(rules)
    if scene.cell is not None:
        engine.set_cell(scene.cell.lattice(), scene.cell.lattice())
    return run_detection(engine)
