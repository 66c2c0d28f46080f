"""Where a joint sits in its bodies, and whether it fits where they lie.

In: a joint (``gravel.joints``) in world coordinates, and the bodies. Out: its points and frames in the coordinates of the bodies, or a
refusal that says what does not meet and by how much.
"""

import math

import numpy as np

from gravel.joints.kinds import DISTANCE, DOT, OFFSET_Z, POINT, Distance, Universal
from gravel.rotations import between, conjugate, multiply, rotate, to_matrix
from gravel.state import MOVABLE, REMOVED

MEETING = 1e-6  # of the joint's size: points this near meet


def check_bodies(joint, bodies):
    """Both ends exist, and forces can move one of them."""
    movable = False
    for name in ("body_a", "body_b"):
        body = getattr(joint, name)
        if body is not None:
            if body >= bodies.count:
                raise ValueError(f"{type(joint).__name__} {name} must be the id of a body, below {bodies.count}, not {body}")
            if bodies.status[body] == REMOVED:
                raise ValueError(f"{type(joint).__name__} {name} must be a body that is there, but body {body} was removed")
            movable |= bodies.status[body] == MOVABLE
    if not movable:
        raise ValueError(f"{joint.describe()} must have an end that forces can move, but both are fixed or follow a motion")


def anchor(joint, bodies):
    """(point in a, point in b, frame in a, frame in b), each in the frame of its body."""
    frame_a = between((0, 0, 1), joint.axis)
    frame_b = frame_a if joint.axis_b is None else multiply(between(joint.axis, joint.axis_b), frame_a)
    point_b = joint.point if joint.point_b is None else joint.point_b
    in_a, turn_a = localise(joint.body_a, joint.point, frame_a, bodies)
    in_b, turn_b = localise(joint.body_b, point_b, frame_b, bodies)
    return in_a, in_b, turn_a, turn_b


def localise(body, point, frame, bodies):
    if body is None:
        return np.array(point, float), np.asarray(frame)
    back = conjugate(bodies.quaternion[body])
    return rotate(back, np.asarray(point) - bodies.position[body]), multiply(back, frame)


def size_of(joint, bodies):
    """A length of the joint's bodies, m: the largest radius of gyration of those that can move."""
    size = 0.0
    for body in (joint.body_a, joint.body_b):
        if body is not None and bodies.status[body] == MOVABLE:
            inverse = bodies.inverse_mass[body]
            size = max(size, math.sqrt(inverse[0] / inverse[1:].min()))
    return size


def offsets(joint):
    """d, in the frame of a at the start."""
    point_b = joint.point if joint.point_b is None else joint.point_b
    return to_matrix(between((0, 0, 1), joint.axis)).T @ (np.asarray(point_b) - joint.point)


def start_lengths(joint):
    """Gauges that need not be zero at the start, by number: along the axis, and the distance."""
    d = offsets(joint)
    return {OFFSET_Z: float(d[2]), DISTANCE: float(np.linalg.norm(d))}


def check_meeting(joint, anchor, size):
    """What the joint holds must hold at the start."""
    d, reach = offsets(joint), size + max(float(np.linalg.norm(anchor[0])), float(np.linalg.norm(anchor[1])))
    advice = "place the bodies so that they meet, or use add_joint(..., assemble=True) to have them closed"
    apart = np.linalg.norm([d[g] for g in joint.HOLDS if g in POINT] or [0.0])
    if isinstance(joint, Distance) and joint.length is not None:
        off = float(np.linalg.norm(d)) - joint.length
        if abs(off) > MEETING * reach:
            now = f"its points are {np.linalg.norm(d):g} m apart, not its length {joint.length:g} m"
            raise ValueError(f"{joint.describe()}: {now}; {advice}")
    if apart > MEETING * reach:
        raise ValueError(f"{joint.describe()}: its points are {apart:g} m apart at the start; {advice}")
    axis_b = np.asarray(joint.axis if joint.axis_b is None else joint.axis_b)
    a = to_matrix(between((0, 0, 1), joint.axis))
    b = to_matrix(multiply(between(joint.axis, axis_b), between((0, 0, 1), joint.axis)))
    tilt = max((abs(float(a[:, (g - DOT) // 3] @ b[:, (g - DOT) % 3])) for g in joint.HOLDS if DOT <= g < DISTANCE), default=0.0)
    if tilt > MEETING:
        angle = math.degrees(math.asin(min(tilt, 1.0)))
        wanted = "at right angles" if isinstance(joint, Universal) else "parallel"
        raise ValueError(f"{joint.describe()}: its axes are {angle:g} degrees from {wanted} at the start; {advice}")


def check_start(joint, drive, lengths, name):
    """Limits must allow the start."""
    if drive.limits is None:
        return
    start = drive.start + lengths.get(drive.gauge, 0.0)
    if not drive.limits.lower - 1e-9 <= start <= drive.limits.upper + 1e-9:
        raise ValueError(
            f"{joint.describe()}: it starts at {start:g}, outside its {name} {drive.limits.lower:g} to {drive.limits.upper:g}; "
            "place the bodies within them, or say with start= where it is"
        )
