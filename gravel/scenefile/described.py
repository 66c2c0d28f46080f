"""Shapes, motions and joints back to the keys that scene files have for them."""

from dataclasses import fields

import numpy as np

from gravel.joints.drives import ForceMotor, Limits, PositionMotor, SpeedMotor, SpringLaw
from gravel.joints.kinds import Joint
from gravel.model.motion import ConstantVelocity, Oscillation
from gravel.scenefile.joint_language import word_of
from gravel.scenefile.making import Table, TableMotion, centred
from gravel.shapes import COMPOUND, HULL, KINDS, PLANE, SPHERE
from gravel.shapes.described import shape_of_geometry
from gravel.shapes.geometry import NONE
from gravel.shapes.meshes import HeightField

GRID = 1e-9  # of the spacing: how regular points must lie to be a height field


class CannotWrite(ValueError):
    """What a scene file has no words for."""


def simple_shape(kind, extent) -> dict:
    """The keys of a simple shape from what a body keeps: three sizes and the bounding radius."""
    shape = KINDS[kind]
    if kind == PLANE:
        return {shape.NAME: {"normal": np.asarray(extent[:3]).tolist()}}
    return {shape.NAME: {size.name: values.tolist() for size, values in zip(shape.SIZES, shape.sizes_of(np.asarray(extent)))}}


def geometry_shape(kind, geometry, movable) -> dict:
    """The keys of a shape with a geometry, at scale 1 and in the frame of its body."""
    own = {"centred": True} if movable else {}
    if kind == HULL:
        return {"hull": {"points": geometry.vertices.tolist(), **own}}
    if kind == COMPOUND:
        return _compound(geometry, own)
    grid = height_field(geometry) if geometry.one_sided else None
    if grid is not None:
        return {"height_field": grid}
    sheet = {} if geometry.one_sided else {"sheet": True}
    return {"mesh": {"vertices": geometry.vertices.tolist(), "triangles": geometry.triangles.tolist(), **sheet, **own}}


def _compound(geometry, own):
    if (geometry.child_kind == SPHERE).all():
        return {"clump": {"positions": geometry.child_position.tolist(), "radii": geometry.child_size[:, 0].tolist(), **own}}
    items = []
    for k, kind in enumerate(geometry.child_kind.tolist()):
        number = geometry.child_geometry[k]
        if number == NONE:
            shape = simple_shape(kind, geometry.extent_of_child(k))
        else:
            shape = geometry_shape(kind, geometry.parts[number], True)
            shape["hull"]["scale"] = float(geometry.child_size[k, 0])
        item = {"shape": shape, "position": geometry.child_position[k].tolist()}
        if geometry.child_quaternion[k].tolist() != [1.0, 0.0, 0.0, 0.0]:
            item["rotation"] = {"quaternion": geometry.child_quaternion[k].tolist()}
        items.append(item)
    return {"compound": {"items": items, **own}}


def height_field(geometry) -> dict | None:
    """The keys of a height field, if the vertices are one: a closed mesh, which is one-sided too, is not."""
    points = geometry.vertices
    columns = int(np.argmax(points[:, 0] != points[0, 0])) if (points[:, 0] != points[0, 0]).any() else 0
    if columns < 2 or len(points) % columns or len(geometry.triangles) != 2 * (len(points) // columns - 1) * (columns - 1):
        return None
    rows = len(points) // columns
    low, high = points[0, :2], points[-1, :2]
    spacing = (high - low) / (rows - 1, columns - 1)
    field = HeightField(points[:, 2].reshape(rows, columns), spacing, low) if (spacing > 0).all() else None
    if field is None or np.abs(field.vertices - points).max() > GRID * spacing.min():
        return None
    return {"heights": points[:, 2].reshape(rows, columns).tolist(), "spacing": spacing.tolist(), "origin": low.tolist()}


def shape_for_mass(kind, geometry):
    """The shape of scale 1 that a file's words make of a body that can move, to ask it for its mass; None: of a clump, whose overlaps are
    measured along lines that lie otherwise in another frame, so that its mass is better written down."""
    if kind == COMPOUND and (geometry.child_kind == SPHERE).all():
        return None
    return centred(shape_of_geometry(kind, geometry))


def radians(angle) -> str:
    """An angle as a file has it; read back as the same number."""
    return f"{float(angle)!r} rad"


def motion_keys(motion) -> dict:
    if isinstance(motion, ConstantVelocity):
        given = {"velocity": motion.velocity.tolist(), "angular_velocity": motion.angular_velocity.tolist()}
        return {"constant": {name: value for name, value in given.items() if any(value)}}
    if isinstance(motion, Oscillation):
        phase = {"phase": radians(motion.phase)} if motion.phase else {}
        return {"oscillation": {"amplitude": motion.amplitude.tolist(), "frequency": float(motion.frequency), **phase}}
    if isinstance(motion, TableMotion):
        return {"table": _table_motion(motion)}
    raise CannotWrite("a motion that is a Python function")


def _table_motion(motion):
    keys = {"times": list(motion.times)}
    if motion.displacements is not None:
        keys["displacements"] = [list(row) for row in motion.displacements]
    if motion.turns is not None:
        keys["turns"] = [[radians(angle) for angle in row] for row in motion.turns]
    return keys


def surface_keys(surface):
    if callable(surface):
        raise CannotWrite("a surface velocity that is a Python function")
    straight, turning = list(surface[:3]), list(surface[3:])
    return {"velocity": straight, "angular_velocity": turning} if any(turning) else straight


# --- joints
def joint_keys(joint, body_name, joint_name) -> tuple[dict, list[str]]:
    """(the keys of a joint, what is left out of it). ``body_name``, ``joint_name``: functions of an id."""
    notes: list[str] = []
    if callable(getattr(joint, "force", None)):
        raise CannotWrite("a spring whose force is a Python function")
    if isinstance(joint, Joint):
        keys = {"between": [body_name(joint.body_a), body_name(joint.body_b)]}
    else:
        keys = {"joints": [joint_name(joint.joint_1), joint_name(joint.joint_2)]}
    for one in fields(joint):
        value = getattr(joint, one.name)
        if one.name in ("body_a", "body_b", "joint_1", "joint_2") or (one.name != "ratio" and _same(value, one.default)):
            continue
        try:
            keys[one.name] = _joint_value(one.name, value)
        except CannotWrite as error:
            notes.append(str(error))
    return {word_of(type(joint)): keys}, notes


def _same(value, default):
    return value is default or (np.ndim(value) == np.ndim(default) and np.array_equal(np.asarray(value), np.asarray(default)))


def _joint_value(name, value):
    if isinstance(value, Limits):
        keys = {one: getattr(value, one) for one in ("lower", "upper", "restitution", "stiffness", "damping")}
        keys = {one: float(v) for one, v in keys.items() if v is not None and v != getattr(Limits(), one)}
        return [float(value.lower), float(value.upper)] if set(keys) <= {"lower", "upper"} else keys
    if isinstance(value, (SpeedMotor, PositionMotor, ForceMotor)):
        return _motor_keys(value)
    if isinstance(value, SpringLaw):
        if value.is_function:
            raise CannotWrite(f"its {name}, which is a Python function")
        keys = {one: float(v) for one in ("stiffness", "damping") if (v := getattr(value, one))}
        return keys if value.rest is None else {**keys, "rest": float(value.rest)}  # none: where it is at the start
    if isinstance(value, (tuple, list, np.ndarray)):
        return [float(v) for v in value]
    return value if isinstance(value, bool) else float(value)


def _motor_keys(motor):
    name = {SpeedMotor: "speed", PositionMotor: "position", ForceMotor: "force"}[type(motor)]
    value = getattr(motor, name)
    if isinstance(value, Table):
        keys = {name: {"times": list(value.times), "values": list(value.values)}}
    elif callable(value):
        raise CannotWrite("its motor, which is a Python function of time")
    else:
        keys = {name: float(value)}
    for one in ("limit", "stiffness", "damping"):
        given = getattr(motor, one, None)
        if given not in (None, 0.0) and np.isfinite(given):
            keys[one] = float(given)
    return keys
