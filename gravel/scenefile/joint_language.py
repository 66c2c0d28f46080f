"""The part of the table of scene files that is about joints. Their kinds are those of ``gravel.joints.kinds``, by the same names in small
letters with underscores (``Revolute``: revolute, ``PointOnLine``: point_on_line), and so are their keys; the two bodies of a joint are
``between``, the two joints of a gear ``joints``."""

import re
from dataclasses import fields

from gravel.joints import kinds
from gravel.scenefile.records import Key, Kinds, Record
from gravel.scenefile.values import Either, Many, Name, Number, Text, Vector, YesNo

MOTOR_VALUE = Either(
    (
        Number(),
        Record(
            "table over time",
            "Numbers at times, straight in between; the first before them, the last after them.",
            {
                "times": Key(Many(Number("s"), 2), "rising", required=True),
                "values": Key(Many(Number(), 2), "at these times", required=True),
            },
        ),
    )
)
MOTOR = Record(
    "motor",
    "Keeps a speed or a position, or pushes with a force; m, m/s and N on a slide, rad, rad/s and N m on a hinge.",
    {
        "speed": Key(MOTOR_VALUE, "m/s or rad/s"),
        "position": Key(MOTOR_VALUE, "m or rad"),
        "force": Key(MOTOR_VALUE, "N or N m"),
        "limit": Key(Number("N or N m", above=0.0, infinite=True), "of its force, with speed and position", default="none"),
        "stiffness": Key(Number("N/m or N m/rad", above=0.0), "with position: a servo", default="rigid"),
        "damping": Key(Number("N s/m or N m s/rad", minimum=0.0), "of the servo", default=0),
    },
    (("speed",), ("position",), ("force",)),
)
LIMITS = Either(
    (
        Vector(2, infinite=True),
        Record(
            "limits",
            "Between what a joint moves.",
            {
                "lower": Key(Number("m or rad", infinite=True), "lowest", default="none"),
                "upper": Key(Number("m or rad", infinite=True), "highest", default="none"),
                "restitution": Key(Number(minimum=0.0, maximum=1.0), "bounce", default=0),
                "stiffness": Key(Number("N/m or N m/rad", above=0.0), "a springy stop", default="rigid"),
                "damping": Key(Number("N s/m or N m s/rad", minimum=0.0), "of the springy stop", default=0),
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
        "rest": Key(Number("m or rad"), "where it is at rest", default="where it is at the start"),
    },
)
_DIRECTION = Vector(3, direction=True)
_POSITIVE, _THREE = Number("m", minimum=0.0), Either((Number(minimum=0.0), Vector(3)))
_STIFFNESS, _DAMPING = Number("N/m or N m/rad", minimum=0.0), Number("N s/m or N m s/rad", minimum=0.0)
_KEYS = {
    "point": Key(Vector(3, "m"), "where it is, in the world", default=[0, 0, 0]),
    "axis": Key(_DIRECTION, "along what, in the world", default=[0, 0, 1]),
    "point_b": Key(Vector(3, "m"), "the point on the second body, where it is another"),
    "axis_b": Key(_DIRECTION, "the axis of the second body, where it is another"),
    "collide": Key(YesNo(), "whether the two bodies may touch each other", default=False),
    "break_force": Key(Number("N", above=0.0, infinite=True), "at which it breaks", default="never"),
    "break_torque": Key(Number("N m", above=0.0, infinite=True), "at which it breaks", default="never"),
    "limits": Key(LIMITS, "[lowest, highest], m or rad, or keys", default="none"),
    "motor": Key(MOTOR, "what drives it", default="none"),
    "friction": Key(Number("N or N m", minimum=0.0), "dry friction", default=0),
    "spring": Key(SPRING_LAW, "on its coordinate", default="none"),
    "start": Key(Number("m or rad"), "what its position is called at the start", default=0),
    "pitch": Key(Number("m"), "way of a turn", required=True),
    "length": Key(_POSITIVE, "of the rod", default="as at the start"),
    "slide": Key(_DIRECTION, "along which the second body slides", required=True),
    "stiffness": Key(_STIFFNESS, "stiffness", default=0),
    "damping": Key(_DAMPING, "damping", default=0),
    "rest": Key(Number("m or rad"), "where the spring is at rest", default="as at the start"),
    "ratio": Key(Number(), "coordinate of the second over that of the first", required=True),
    "radius": Key(Number("m"), "slide over angle", required=True),
}
_BUSHING = {
    name: Key(_THREE, f"{name.replace('_', ' ')}, one number or three", default=0)
    for name in ("stiffness", "damping", "turn_stiffness", "turn_damping")
}
_MEANING = {
    "spherical": "A ball joint: the points stay together, the second body turns freely.",
    "revolute": "A hinge: the second body turns about the axis.",
    "prismatic": "A slide: the second body moves along the axis and does not turn.",
    "cylindrical": "The second body slides along the axis and turns about it; keys with turn_ are about the turn.",
    "universal": "A cardan joint: axis (of the first body) and axis_b (of the second) stay at right angles.",
    "fixed": "Welds two bodies together as they lie.",
    "planar": "The second body slides on the plane through the point, square to the axis, and turns about the axis.",
    "distance": "A rod between point on the first and point_b on the second body.",
    "revolute_spherical": "A rod without mass between a hinge at point and a ball joint at point_b.",
    "revolute_translational": "A rod without mass between a hinge at point and a slide on the second body.",
    "point_on_line": "The point of the second body stays on the line through the point along the axis.",
    "screw": "Slides along the axis as it turns about it.",
    "spring": "A spring and damper between point and point_b; with limits and no stiffness a rope.",
    "rotational_spring": "A spring and damper about the axis.",
    "bushing": "A rubber joint: springs and dampers along and about all axes.",
    "gear": "Two joints that turn together.",
    "slide_gear": "Two joints that slide together.",
    "rack_pinion": "The first joint's turn drives the second one's slide.",
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
            own[one.name] = Key(key.value, f"{key.doc}, of the turn", key.required, key.default) if one.name.startswith("turn_") else key
    if issubclass(kind, kinds.Joint):
        own["assemble"] = Key(YesNo(), "let the simulation move the bodies until it closes", default=False)
    return Record(
        f"joint {word_of(kind)}", _MEANING[word_of(kind)], {"name": Key(Text("a name"), "by which others refer to it"), **ends, **own}
    )


JOINT_KINDS = {word_of(kind): kind for kind in kinds.KINDS}
JOINT = Kinds("joint", "What holds two bodies together.", {word: _record(kind) for word, kind in JOINT_KINDS.items()})
