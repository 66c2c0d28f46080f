"""What is drawn over bodies: forces of contacts as rods between them (force chains), springs as zigzags, joints as small marks.

In: a frame with its contacts or ``joints``, the ``Plan``. Out: nothing; the stage has them. They are shrunk towards the eye of the camera,
which leaves the picture of each as it is and puts it before the bodies that would hide it.
"""

import numpy as np

from gravel.io.triangles import template
from gravel.shapes import CYLINDER
from gravel.view.bodies import in_front
from gravel.view.look import rgb, scale_of
from gravel.view.merged import Group, merge
from gravel.view.plan import large
from gravel.view.subject import contact_ends, joint_points, joints_to_draw, rows_of_ids

FORCE_MAP = "YlOrRd"
PALE = 0.7  # share of the background in the colours of bodies under forces
WEAKEST, MOST = 0.03, 60_000  # forces below this share of the scale, or beyond so many, are not drawn
THICK = 0.3  # radius of the strongest rod, of the median radius of bodies
MARK, ARM = 5.0, 2.2  # pixels of radius of a joint's mark and arm, in a picture of 900 rows
ROPES, COUPLINGS = ("Distance",), ("Gear", "SlideGear", "RackPinion")
TURNS = 8  # of a drawn spring


# --- forces
def force_limits(samples, look):
    """(limits of the scale of forces, whether some exceed it), N."""
    sizes = np.concatenate([force_sizes(shown) for shown in samples])
    if look.limits is not None and look.limits[0] < 0:
        raise ValueError(f"limits of forces must be at least 0 N, not {look.limits[0]:g}")
    limits = look.limits or scale_of(sizes[sizes > 0], from_zero=True)
    return limits, bool(sizes.max(initial=0) > limits[1])


def force_sizes(shown):
    """(contacts,) N: the mean over the step before the frame."""
    return np.linalg.norm(shown.contacts.impulse, axis=1) / shown.data["frame_dt"]


def add_forces(stage, plan, shown, limits, clip=None):
    """A rod for each contact from centre to centre, or from a centre to the contact where the other body is no grain."""
    data, table, sizes = shown.data, shown.contacts, force_sizes(shown)
    drawn = np.flatnonzero((sizes > WEAKEST * limits[1]) & in_front(table.point, clip))
    drawn = drawn[np.argsort(-sizes[drawn], kind="stable")[:MOST]]
    if not len(drawn):
        return
    grain = (data["movable"] > 0) & ~large(data, np.arange(len(data["id"])))
    starts, ends = (contact_ends(data, ids[drawn], table.point[drawn], grain) for ids in (table.body_a, table.body_b))
    strength = np.clip(sizes[drawn] / limits[1], 0, 1)
    thickest = THICK * float(np.median(data["radius"][data["movable"] > 0]))
    colours = rgb(sizes[drawn], limits, FORCE_MAP)
    add_rods(stage, starts, ends, thickest * np.maximum(strength, 0.05), colours, lambda points: before_all(points, plan))


def add_rods(stage, starts, ends, radii, colours, moved=lambda points: points):
    """Round rods from points to points; ``moved``: what is done to their vertices at last."""
    along = ends - starts
    length = np.linalg.norm(along, axis=1)
    weights, triangles, _ = template(CYLINDER, 8)
    some = np.flatnonzero(length > 0)
    if not len(some):
        return
    rods = {
        "position": 0.5 * (starts + ends),
        "quaternion": _turns(along / np.maximum(length, 1e-30)[:, None]),
        "extent": np.column_stack([radii, 0.5 * length, radii]).astype("f4"),
    }
    surface = merge([Group(some, weights, triangles, np.zeros((0, 2), int), False)], rods)
    stage.add_surface(surface._replace(points=moved(surface.points)), colours[surface.body])


def _turns(directions):
    """Quaternions (n, 4) that turn z to directions of length one."""
    x, y, z = directions.T
    turns = np.stack([1 + z, -y, x, 0 * z], axis=1)
    turns[z < -1 + 1e-9] = (0, 1, 0, 0)
    return turns / np.linalg.norm(turns, axis=1, keepdims=True)


def before_all(points, plan):
    """Points moved along their lines of sight to before everything, by one factor for all."""
    eye = plan.camera.place
    corners = np.array([np.where(pick, plan.low, plan.high) for pick in np.ndindex(2, 2, 2)])
    away = np.linalg.norm(np.concatenate([corners, points]) - eye, axis=1)
    return eye + 0.5 * max(away.min() / away.max(), 0.02) * (points - eye)


# --- joints
def add_joints(stage, plan, data, look):
    """Springs and distance joints as lines, other joints as marks with arms to their bodies; broken ones and couplings, which sit nowhere,
    are left out, and all where there are too many. Returns which were drawn, as names of ``caption.SIGNS``."""
    if not joints_to_draw(data):
        return ()
    joints, clip = data["joints"], look.clip
    kinds = np.array(joints["kind"])
    starts, ends = joint_points(data)
    there = ~np.asarray(joints["broken"], bool) & ~np.isin(kinds, COUPLINGS) & np.isfinite(starts + ends).all(axis=1)
    there &= in_front(np.nan_to_num(starts), clip)
    spring, rope = kinds == "Spring", np.isin(kinds, ROPES)
    for k in np.flatnonzero(there & (spring | rope)):
        points = zigzag(starts[k], ends[k], plan) if spring[k] else np.stack([starts[k], ends[k]])
        pairs = np.stack([np.arange(len(points) - 1), np.arange(1, len(points))], axis=1)
        stage.add_lines(_nearer(points, plan), pairs, look.ink, width=1.6)
    marks = np.flatnonzero(there & ~spring & ~rope)
    sides = [rows_of_ids(data, joints[f"body_{side}"][marks]) for side in "ab"]
    marked = [_add_marked(stage, plan, data, starts[marks], rows, look.ink) for rows in sides]
    drawn = {"spring": (there & spring).any(), "distance": (there & rope).any(), "joint": any(marked)}
    return tuple(name for name, some in drawn.items() if some)


def _add_marked(stage, plan, data, points, rows, ink):
    """Marks of joints of one size in the picture, a little before the bodies (rows of the frame) that they hold, and arms from these
    bodies' centres, which are seen where a joint sits outside of its body. Bodies that look small or are drawn like walls get none.
    Returns whether there were any."""
    free = (data["movable"] > 0) & ~np.isin(data["id"], plan.holders)
    held = (rows >= 0) & free[rows] if len(free) else np.zeros(len(rows), bool)
    points, rows = points[held], rows[held]
    away = np.linalg.norm(points - plan.camera.place, axis=1)
    pixel = 2 * away * np.tan(np.radians(0.5 * plan.camera.angle)) / 900
    seen = data["radius"][rows] > 3 * MARK * pixel
    points, rows, away, pixel = points[seen], rows[seen], away[seen], pixel[seen]
    if len(points):
        tone = np.tile(ink, (len(points), 1))
        add_rods(stage, data["position"][rows].astype(float), points, ARM * pixel, tone)
        nearer = _nearer(points, plan)
        stage.add_balls(nearer, MARK * pixel * np.linalg.norm(nearer - plan.camera.place, axis=1) / away, tone)
    return len(points) > 0


def zigzag(start, end, plan):
    """Points of a spring between two places, as wide as it looks well."""
    shares = np.concatenate([[0, 0.12], 0.12 + 0.76 * (np.arange(2 * TURNS) + 0.5) / (2 * TURNS), [0.88, 1]])
    side = np.cross(end - start, plan.camera.place - start)
    side = side / max(np.linalg.norm(side), 1e-30) * 0.06 * np.linalg.norm(end - start)
    swing = np.concatenate([[0, 0], np.where(np.arange(2 * TURNS) % 2, -1, 1), [0, 0]])
    return start + np.outer(shares, end - start) + np.outer(swing, side)


def _nearer(points, plan):
    """Points a little along their lines of sight, so that bodies that hold them do not hide them."""
    toward = plan.camera.place - points
    away = np.maximum(np.linalg.norm(toward, axis=1, keepdims=True), 1e-30)
    return points + np.minimum(0.05 * np.linalg.norm(plan.high - plan.low), 0.3 * away) * toward / away
