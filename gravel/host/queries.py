"""Rays and boxes: questions about where the engine's rows are. Each looks at all bodies anew."""

import numpy as np

from gravel.host import rays
from gravel.host import tree as body_tree

HAIR = 1e-14  # by which boxes are wider than bodies, relative: roundings must not make a ray miss what it grazes


def bounding_boxes(bodies, library):
    """(n, 3) lower and upper corners; planes are endless."""
    low, high = np.empty((bodies.count, 3)), np.empty((bodies.count, 3))
    rays.boxes_of_bodies(bodies.position, bodies.quaternion, bodies.extent, bodies.tag, bodies.geometry, library, low, high)
    return low, high


def cast_rays(bodies, library, origins, directions, reach):
    """(id, distance, point, normal) of what each ray hits first."""
    n = len(origins)
    row, distance, point, normal = np.empty(n, np.int64), np.empty(n), np.empty((n, 3)), np.empty((n, 3))
    queried, in_tree, centre, half = _in_tree_order(bodies, *bounding_boxes(bodies, library))
    tree, surfaces = np.empty((body_tree.tree_rows(in_tree), 6)), rays.surfaces_of(library)
    rays.cast_rays(origins, directions, reach, queried, in_tree, centre, half, tree, surfaces, row, distance, point, normal)
    body = np.full(n, -1, np.int64)
    body[row >= 0] = bodies.id[row[row >= 0]]
    return body, distance, point, normal


def _in_tree_order(bodies, low, high):
    """The bodies in the order of a tree over their boxes, how many of them it holds, and the centres and half extents from which it
    is built."""
    n = bodies.count
    endless = ~np.isfinite(low).all(axis=1)
    boxes = np.column_stack([low, high])
    boxes += HAIR * np.abs(boxes) * (-1, -1, -1, 1, 1, 1)
    low[endless] = high[endless] = bodies.position[endless]
    centre = np.empty((n, 4))
    centre[:, :3] = 0.5 * (low + high)
    half = np.maximum(high - centre[:, :3], centre[:, :3] - low)
    centre[:, 3] = np.where(endless, np.inf, np.linalg.norm(half, axis=1))
    keys, order, spare = (np.empty(n, np.int32) for _ in range(3))
    in_tree = body_tree.sort_along_curve(centre, keys, order, spare)
    pose = np.column_stack([bodies.position, bodies.quaternion, bodies.extent])
    tag = np.column_stack([bodies.shape, bodies.geometry])
    return rays.Queried(order, pose[order], tag[order], boxes[order]), in_tree, centre[order], half[order]
