"""A frame of what is there now: the arrays that ``gravel.io.vtkhdf.read_frame`` gives of a file, of a simulation or a scene.

Whoever draws or sends bodies takes such a frame, and need not ask where it comes from.
"""

import numpy as np

from gravel.io.triangles import surface_of
from gravel.rotations import rotate
from gravel.shapes import PLANE
from gravel.shapes.geometry import NONE
from gravel.state import ANGULAR, LINEAR, MATERIAL, SHAPE, STATUS, can_move

FIELDS = ("id", "position", "quaternion", "velocity", "inverse_mass", "extent", "tag", "geometry")


def frame_of(source):
    """The frame of a ``Simulation`` as it is now, or of a ``Scene`` as it would start."""
    views = getattr(source, "views", None)
    bodies = views.present(*FIELDS) if views is not None else {name: getattr(source.bodies, name) for name in FIELDS}
    planes = bodies["tag"][:, SHAPE] == PLANE
    shown = {name: values[~planes] for name, values in bodies.items()}
    numbers = np.unique(shown["geometry"])
    return {
        "time": float(getattr(source, "time", 0.0)),
        "position": shown["position"],
        **body_values(shown),
        "rank": np.zeros(len(shown["id"]), "i4"),
        **plane_values({name: values[planes] for name, values in bodies.items()}),
        "cell": source.cell,
        "gravity": np.array(source.gravity, float),
        "geometries": {int(k): surface_of(source.geometries[k])._asdict() for k in numbers if k != NONE},
        "joints": joint_anchors(source.mechanism),
        "material_names": [kind.name for kind in source.materials.kinds],
        "body_names": source.body_names,
    }


def body_values(bodies):
    """What frames say of bodies beside their places (``vtkhdf.POINT_DATA``), from the fields of the state."""
    n = len(bodies["id"])
    masses = np.divide(1.0, bodies["inverse_mass"], out=np.zeros((n, 4)), where=bodies["inverse_mass"] > 0)
    return {
        "id": bodies["id"],
        "velocity": bodies["velocity"][:, LINEAR],
        "angular_velocity": bodies["velocity"][:, ANGULAR],
        "radius": bodies["extent"][:, 3],
        "shape": bodies["tag"][:, SHAPE],
        "extent": bodies["extent"][:, :3],
        "quaternion": bodies["quaternion"],
        "mass": masses[:, 0],
        "inertia": masses[:, 1:],
        "material": bodies["tag"][:, MATERIAL],
        "movable": can_move(bodies["tag"][:, STATUS]).astype("i4"),
        "geometry": bodies["geometry"],
    }


def plane_values(planes):
    """Where planes are, from the fields of their bodies."""
    return {"plane_position": planes["position"], "plane_normal": rotate(planes["quaternion"], planes["extent"][:, :3])}


def joint_anchors(mechanism):
    """Where joints sit: ``kind`` (names), ``body_a`` and ``body_b`` (ids, -1: the world), ``point_a`` and ``point_b`` m in the frame of
    the body, ``axis`` in that of body a, ``broken``. Of gears, which couple two joints, both bodies are -1."""
    values, count = mechanism.joint_values, len(mechanism)
    along = np.tile((0.0, 0.0, 1.0), (count, 1))
    return {
        "kind": [joint_kind(name) for name in mechanism.names],
        "body_a": np.array(values["body_a"], np.int64),
        "body_b": np.array(values["body_b"], np.int64),
        "point_a": np.array(values["point_a"], float).reshape(-1, 3),
        "point_b": np.array(values["point_b"], float).reshape(-1, 3),
        "axis": rotate(np.array(values["frame_a"], float).reshape(-1, 4), along),
        "broken": np.array(values["broken"], bool),
    }


def joint_kind(name):
    """The kind of a joint from its name in words, "joint 3 (Revolute between ...)"."""
    return name.partition("(")[2].split()[0].rstrip(")")
