"""Questions about where bodies are: what a ray hits first, and which bodies reach into a box.

Both read a table of bodies (``gravel.state.Bodies``) and the geometries it refers to, and change nothing. They look at all bodies
anew each time they are asked, so ask for many rays at once.
"""

import math
from dataclasses import dataclass

import numpy as np

from gravel import checks
from gravel.cpu.collide import bvh, rays
from gravel.rotations import rotate
from gravel.shapes import PLANE
from gravel.shapes.geometry import library_of
from gravel.state import REMOVED

HAIR = 1e-14  # by which boxes are wider than bodies, relative: roundings must not make a ray miss what it grazes


@dataclass(frozen=True)
class RayHits:
    """The first surface that each ray meets."""

    body: np.ndarray  # (n,) id, -1 where there is none
    distance: np.ndarray  # (n,) m from the ray's origin, inf where there is none
    point: np.ndarray  # (n, 3) m, nan where there is none
    normal: np.ndarray  # (n, 3) outward from the surface that is hit, nan where there is none

    def __len__(self):
        return len(self.body)


def cast_rays(bodies, geometries, origins, directions, reach=math.inf):
    """``RayHits`` of N rays: ``origins`` and ``directions`` (N, 3) m, or (3,) where all rays share one.

    Directions need not have length one. A hit is where a ray first crosses a surface ahead of its origin, at most ``reach`` m
    away: a ray that starts inside a body hits that body where it leaves it, from inside, and the normal, which always points
    outward, then looks along the ray. Meshes are hit from both sides. Of a compound, the surface of each child counts.
    """
    origins, directions = _rays(origins, directions)
    reach = math.inf if reach == math.inf else checks.number("reach", reach, minimum=0.0)
    n = len(origins)
    body, distance, point, normal = np.empty(n, np.int64), np.empty(n), np.empty((n, 3)), np.empty((n, 3))
    library = library_of(geometries)
    queried, in_tree, centre, half = _in_tree_order(bodies, *_boxes(bodies, library))
    tree, surfaces = np.empty((bvh.tree_rows(in_tree), 6)), rays.surfaces_of(library)
    rays.cast_rays(origins, directions, reach, queried, in_tree, centre, half, tree, surfaces, body, distance, point, normal)
    return RayHits(body, distance, point, normal)


def bodies_in_box(bodies, geometries, low, high):
    """Ids, sorted, of the bodies whose axis-aligned bounding box overlaps the box from ``low`` (3,) to ``high`` (3,) m, or touches
    it; of planes, those whose half space reaches into it."""
    low, high = checks.array("low", low, (3,)), checks.array("high", high, (3,))
    if np.any(low > high):
        raise ValueError(f"high must not be below low {tuple(low.tolist())} along any axis, not {tuple(high.tolist())}")
    lowest, highest = _boxes(bodies, library_of(geometries))
    inside = (bodies.status != REMOVED) & np.all(lowest <= high, axis=1) & np.all(highest >= low, axis=1)
    planes = np.flatnonzero(bodies.shape == PLANE)
    normals = rotate(bodies.quaternion[planes], bodies.extent[planes, :3])
    corners = np.where(normals > 0, low, high)  # the corner of the box that is deepest in the half space
    inside[planes] &= np.einsum("ni,ni->n", corners - bodies.position[planes], normals) <= 0
    return np.flatnonzero(inside)


def bounding_boxes(bodies, geometries):
    """(N, 3) lower and (N, 3) upper corners of the bodies' boxes along the axes, m; planes are endless."""
    return _boxes(bodies, library_of(geometries))


def _rays(origins, directions):
    """Checked origins and directions of unit length, one row per ray."""
    shapes = [(3,) if np.ndim(value) == 1 else (None, 3) for value in (origins, directions)]
    origins, directions = checks.array("origins", origins, shapes[0]), checks.array("directions", directions, shapes[1])
    if origins.ndim == directions.ndim == 2 and len(origins) != len(directions):
        raise ValueError(f"origins and directions must belong to the same rays, not to {len(origins)} and {len(directions)}")
    origins, directions = np.broadcast_arrays(np.atleast_2d(origins), np.atleast_2d(directions))
    largest = np.abs(directions).max(axis=1, keepdims=True, initial=0.0)
    if np.any(largest == 0):
        raise ValueError(f"directions must not be zero, but directions[{int(np.argmin(largest))}] is")
    directions = directions / largest  # first, for squares of very short or long ones are out of range
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.ascontiguousarray(origins), directions


def _boxes(bodies, library):
    low, high = np.empty((bodies.count, 3)), np.empty((bodies.count, 3))
    rays.boxes_of_bodies(bodies.position, bodies.quaternion, bodies.extent, bodies.tag, bodies.geometry, library, low, high)
    return low, high


def _in_tree_order(bodies, low, high):
    """The bodies that are not removed, in the order of a tree over their boxes, how many of them it holds, and the centres and
    half extents from which it is built."""
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
    in_tree, count = bvh.sort_along_curve(centre, bodies.tag, keys, order, spare)
    order = order[:count]
    pose = np.column_stack([bodies.position, bodies.quaternion, bodies.extent[:, :3]])
    tag = np.column_stack([bodies.shape, bodies.geometry])
    return rays.Queried(order, pose[order], tag[order], boxes[order]), in_tree, centre[order], half[order]
