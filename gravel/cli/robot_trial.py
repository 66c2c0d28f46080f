"""``gravel robot``: puts an imported robot on a floor, to inspect the result of the import.

In: a URDF or MJCF file. Out: a scene with the robot and a floor, and a description of the robot in lines of text.
"""

import pathlib

import numpy as np

from gravel.detection.queries import engine_of
from gravel.io.mjcf import load_mjcf
from gravel.io.urdf import load_urdf
from gravel.joints.drives import PositionMotor
from gravel.scene import Scene
from gravel.shapes import PLANE, Plane

CLEARANCE = 1e-3  # m between the lowest point and the floor, at the start


def on_a_floor(path, base="floating", stiffness=None, damping=0.0, outside_files=False):
    """(scene, robot): the robot of a URDF file, or of an MJCF file (.xml), just above a floor, unless the file has a floor of its own
    or the base is fixed. ``stiffness``: servos on all hinges and slides that hold their start. ``outside_files``: see ``load_urdf``."""

    def load(scene, **options):
        if pathlib.Path(path).suffix == ".xml":
            return load_mjcf(scene, path, outside_files=outside_files, **options)
        return load_urdf(scene, path, base=base, outside_files=outside_files, **options)

    trial = Scene()
    robot = load(trial)
    options = {} if stiffness is None else {"motors": _servos(trial, robot, stiffness, damping)}
    scene = Scene()
    if not (trial.bodies.shape == PLANE).any() and base == "floating":
        scene.add_body(Plane(), fixed=True)
        options["position"] = (0, 0, CLEARANCE - float(engine_of(trial.bodies, trial.geometries).bounding_boxes()[0][:, 2].min()))
    return scene, load(scene, **options)


def _servos(scene, robot, stiffness, damping):
    """name -> a servo that holds the joint's start, for joints with one coordinate."""
    starts = {joint: start for joint, _, start, _ in scene.mechanism.coordinates}
    return {
        name: PositionMotor(starts[joint], stiffness=stiffness, damping=damping) for name, joint in robot.joints.items() if joint in starts
    }


def describe(scene, robot):
    """A description of the robot, line by line."""
    mass = np.sum(1 / scene.bodies.inverse_mass[sorted({b for b in robot.links.values() if scene.bodies.inverse_mass[b, 0] > 0}), 0])
    yield f"{robot.name}: {len(robot.links)} links in {len(set(robot.links.values()))} bodies, {mass:.3f} kg, {len(robot.joints)} joints"
    for name, joint in robot.joints.items():
        yield f"  {name}: {scene.mechanism.names[joint]}"
    for message in robot.messages:
        yield f"note: {message}"
