"""Where a joint sits in its bodies, and whether it fits where they lie.

In: a joint (``gravel.joints``) in world coordinates, and the bodies. Out: its points and frames in the coordinates of the bodies, or a
refusal that says what does not meet and by how much.
"""

import math

import numpy as np

from gravel.joints.kinds import DISTANCE, DOT, OFFSET_Z, POINT, REACH_X, REACH_Y, RevoluteTranslational, Universal
from gravel.rotations import between, conjugate, from_rotation_vector, multiply, rotate, to_matrix
from gravel.state import REMOVED, can_move

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
            movable |= bool(can_move(bodies.status[body]))
    if not movable:
        raise ValueError(f"{joint.describe()} must have an end that forces can move, but both are fixed or follow a motion")


def anchor(joint, bodies):
    """(point in a, point in b, frame in a, frame in b), each in the frame of its body."""
    frame_a, frame_b = frames(joint)
    point_b = joint.point if joint.point_b is None else joint.point_b
    in_a, turn_a = localise(joint.body_a, joint.point, frame_a, bodies)
    in_b, turn_b = localise(joint.body_b, point_b, frame_b, bodies)
    return in_a, in_b, turn_a, turn_b


def frames(joint):
    """Frames of a and b at the start, world frame: a3 along the axis, a1 along what the joint has ``across`` it; b's is that of a,
    turned as far as its axis is."""
    frame_a = between((0, 0, 1), joint.axis)
    if joint.across is not None:
        x, y, _ = rotate(conjugate(frame_a), joint.across)
        frame_a = multiply(frame_a, from_rotation_vector((0, 0, math.atan2(y, x))))
    return frame_a, frame_a if joint.axis_b is None else multiply(between(joint.axis, joint.axis_b), frame_a)


def localise(body, point, frame, bodies):
    if body is None:
        return np.array(point, float), np.asarray(frame)
    back = conjugate(bodies.quaternion[body])
    return rotate(back, np.asarray(point) - bodies.position[body]), multiply(back, frame)


def size_of(joint, bodies):
    """A length of the joint's bodies, m: the largest radius of gyration of those that can move."""
    size = 0.0
    for body in (joint.body_a, joint.body_b):
        if body is not None and can_move(bodies.status[body]):
            inverse = bodies.inverse_mass[body]
            size = max(size, math.sqrt(inverse[0] / inverse[1:].min()))
    return size


def offsets(joint):
    """d at the start, in the frame of a and in that of b."""
    d = np.zeros(3) if joint.point_b is None else np.subtract(joint.point_b, joint.point)
    return tuple(to_matrix(frame).T @ d for frame in frames(joint))


def start_lengths(joint):
    """Gauges that need not be zero at the start, by number: along the axis, along directions of b, and the distance."""
    d, d_b = offsets(joint)
    return {OFFSET_Z: float(d[2]), REACH_X: float(d_b[0]), REACH_Y: float(d_b[1]), DISTANCE: float(np.linalg.norm(d))}


def check_meeting(joint, anchor, size):
    """What the joint holds must hold at the start."""
    d, reach = offsets(joint)[0], size + max(float(np.linalg.norm(anchor[0])), float(np.linalg.norm(anchor[1])))
    advice = "place the bodies so that they meet, or use add_joint(..., assemble=True) to have them closed"
    apart = np.linalg.norm([d[g] for g in joint.HOLDS if g in POINT] or [0.0])
    if joint.LENGTH is not None and joint.length is not None:
        long = abs(start_lengths(joint)[joint.LENGTH])
        if abs(long - joint.length) > MEETING * reach:
            raise ValueError(f"{joint.describe()}: its rod is {long:g} m long at the start, not its length {joint.length:g} m; {advice}")
    if apart > MEETING * reach:
        along = " along its axis" if joint.LENGTH is not None else ""
        raise ValueError(f"{joint.describe()}: its points are {apart:g} m apart{along} at the start; {advice}")
    a, b = (to_matrix(frame) for frame in frames(joint))
    tilt = max((abs(float(a[:, (g - DOT) // 3] @ b[:, (g - DOT) % 3])) for g in joint.HOLDS if DOT <= g < DISTANCE), default=0.0)
    if tilt > MEETING:
        angle = math.degrees(math.asin(min(tilt, 1.0)))
        wanted = "at right angles" if isinstance(joint, Universal) else "parallel"
        axes = "its axes, that of b square to its slide," if isinstance(joint, RevoluteTranslational) else "its axes"
        raise ValueError(f"{joint.describe()}: {axes} are {angle:g} degrees from {wanted} at the start; {advice}")


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
