"""The part of the table of scene files for joints. Their kinds are those of ``gravel.joints.kinds``, by the same names in small
letters with underscores (``Revolute``: revolute, ``PointOnLine``: point_on_line), and so are their keys; the two bodies of a joint are
``between``, the two joints of a gear ``joints``."""

import re
from dataclasses import fields, replace

from gravel.joints import kinds
from gravel.scenefile.records import Key, Kinds, Record
from gravel.scenefile.values import Either, Many, Name, Number, Text, Vector, YesNo

MOTOR_VALUE = Either(
    (
        Number(),
        Record(
            "table over time",
            "Values at given times, linear in between; constant before the first and after the last.",
            {
                "times": Key(Many(Number("s"), 2), "increasing times", required=True),
                "values": Key(Many(Number(), 2), "values at these times", required=True),
            },
        ),
    )
)
MOTOR = Record(
    "motor",
    "Holds a speed or a position, or applies a force; m, m/s and N on a slide, rad, rad/s and N m on a hinge.",
    {
        "speed": Key(MOTOR_VALUE, "speed, m/s or rad/s"),
        "position": Key(MOTOR_VALUE, "position, m or rad"),
        "force": Key(MOTOR_VALUE, "force, N or N m"),
        "limit": Key(Number("N or N m", above=0.0, infinite=True), "largest force, with speed and position", default="none"),
        "stiffness": Key(Number("N/m or N m/rad", above=0.0), "with position: stiffness of a servo", default="rigid"),
        "damping": Key(Number("N s/m or N m s/rad", minimum=0.0), "damping of the servo", default=0),
    },
    (("speed",), ("position",), ("force",)),
)
LIMITS = Either(
    (
        Vector(2, infinite=True),
        Record(
            "limits",
            "The range of a joint.",
            {
                "lower": Key(Number("m or rad", infinite=True), "lower limit", default="none"),
                "upper": Key(Number("m or rad", infinite=True), "upper limit", default="none"),
                "restitution": Key(Number(minimum=0.0, maximum=1.0), "coefficient of restitution at the limits", default=0),
                "stiffness": Key(Number("N/m or N m/rad", above=0.0), "stiffness of a springy limit", default="rigid"),
                "damping": Key(Number("N s/m or N m s/rad", minimum=0.0), "damping of the springy limit", default=0),
            },
        ),
    )
)
SPRING_LAW = Record(
    "spring law",
    "A spring on a joint's coordinate.",
    {
        "stiffness": Key(Number("N/m or N m/rad", minimum=0.0), "stiffness", default=0),
        "damping": Key(Number("N s/m or N m s/rad", minimum=0.0), "damping", default=0),
        "rest": Key(Number("m or rad"), "position at rest", default="the initial position"),
    },
)
_DIRECTION = Vector(3, direction=True)
_POSITIVE, _THREE = Number("m", minimum=0.0), Either((Number(minimum=0.0), Vector(3)))
_STIFFNESS, _DAMPING = Number("N/m or N m/rad", minimum=0.0), Number("N s/m or N m s/rad", minimum=0.0)
_KEYS = {
    "point": Key(Vector(3, "m"), "point of the joint, in world coordinates", default=[0, 0, 0]),
    "axis": Key(_DIRECTION, "axis of the joint, in world coordinates", default=[0, 0, 1]),
    "point_b": Key(Vector(3, "m"), "point on the second body, if it differs"),
    "axis_b": Key(_DIRECTION, "axis of the second body, if it differs"),
    "collide": Key(YesNo(), "whether the two bodies collide with each other", default=False),
    "break_force": Key(Number("N", above=0.0, infinite=True), "load at which the joint breaks", default="never"),
    "break_torque": Key(Number("N m", above=0.0, infinite=True), "load at which the joint breaks", default="never"),
    "limits": Key(LIMITS, "[lower, upper], m or rad, or keys", default="none"),
    "motor": Key(MOTOR, "motor", default="none"),
    "friction": Key(Number("N or N m", minimum=0.0), "dry friction", default=0),
    "spring": Key(SPRING_LAW, "spring on its coordinate", default="none"),
    "start": Key(Number("m or rad"), "value of its coordinate at the start", default=0),
    "pitch": Key(Number("m"), "displacement per turn", required=True),
    "length": Key(_POSITIVE, "length of the rod", default="as at the start"),
    "slide": Key(_DIRECTION, "axis along which the second body slides", required=True),
    "stiffness": Key(_STIFFNESS, "stiffness", default=0),
    "damping": Key(_DAMPING, "damping", default=0),
    "rest": Key(Number("m or rad"), "position at which the spring is at rest", default="as at the start"),
    "ratio": Key(Number(), "ratio of the second coordinate to the first", required=True),
    "radius": Key(Number("m"), "ratio of slide to angle", required=True),
}
_BUSHING = {
    name: Key(_THREE, f"{name.replace('_', ' ')}, one number or three", default=0)
    for name in ("stiffness", "damping", "turn_stiffness", "turn_damping")
}
_MEANING = {
    "spherical": "A ball joint: the points coincide, and the second body rotates freely.",
    "revolute": "A hinge: the second body rotates about the axis.",
    "prismatic": "A slide: the second body moves along the axis and does not rotate.",
    "cylindrical": "The second body slides along the axis and rotates about it; keys with turn_ refer to the rotation.",
    "universal": "A cardan joint: axis (of the first body) and axis_b (of the second) stay perpendicular.",
    "fixed": "Welds two bodies together in their initial configuration.",
    "planar": "The second body slides on the plane through the point, perpendicular to the axis, and rotates about the axis.",
    "distance": "A rod between point on the first and point_b on the second body.",
    "revolute_spherical": "A massless rod between a hinge at point and a ball joint at point_b.",
    "revolute_translational": "A massless rod between a hinge at point and a slide on the second body.",
    "point_on_line": "The point of the second body stays on the line through the point along the axis.",
    "screw": "The second body slides along the axis in proportion to its rotation about it.",
    "spring": "A spring and damper between point and point_b; a rope if it has limits and no stiffness.",
    "rotational_spring": "A spring and damper about the axis.",
    "bushing": "A rubber joint: springs and dampers along and about all axes.",
    "gear": "Couples the rotations of two joints.",
    "slide_gear": "Couples the slides of two joints.",
    "rack_pinion": "Couples the rotation of the first joint to the slide of the second.",
}
_LEFT_OUT = ("body_a", "body_b", "joint_1", "joint_2", "force")  # a force that is a function cannot be written down


def word_of(kind) -> str:
    """The word for a kind of joint in a file."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def _record(kind):
    """The keys of a kind of joint, from those of its Python class."""
    own = dict(_BUSHING) if kind is kinds.Bushing else {}
    pair = Many(Name("body", ("world",)), 2, 2) if issubclass(kind, kinds.Joint) else Many(Name("joint"), 2, 2)
    ends = {"between": Key(pair, "the two bodies, or a body and the world", required=True)}
    if not issubclass(kind, kinds.Joint):
        ends = {"joints": Key(pair, "the two joints", required=True)}
    for one in fields(kind):
        if one.name not in _LEFT_OUT and one.name not in own:
            key = _KEYS[one.name.removeprefix("turn_")]
            if one.name == "collide":  # bodies that a spring connects may touch, those that a joint holds do not
                key = replace(key, default=one.default)
            own[one.name] = Key(key.value, f"{key.doc}, of rotation", key.required, key.default) if one.name.startswith("turn_") else key
    if issubclass(kind, kinds.Joint):
        own["assemble"] = Key(YesNo(), "let the simulation move the bodies until the joint closes", default=False)
    others = {"normal": "axis", "bodies": "between", "body_a": "between", "body_b": "between"}
    return Record(
        f"joint {word_of(kind)}",
        _MEANING[word_of(kind)],
        {"name": Key(Text("a name"), "name for other references"), **ends, **own},
        (),
        others,
    )


JOINT_KINDS = {word_of(kind): kind for kind in kinds.KINDS}
JOINT = Kinds("joint", "A connection of two bodies, or of two joints.", {word: _record(kind) for word, kind in JOINT_KINDS.items()})
