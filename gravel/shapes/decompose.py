"""Spherical decomposition: a closed surface in, balls inside it out that cover its volume (paper 000 treats bodies that are not convex
in this way).

The inside is cut into voxels. Candidates are balls about voxel centres that just touch the surface, by exact distance to its
triangles, and each turn takes the one that covers most of what no ball covers yet. Balls never reach through the surface.
"""

import heapq

import numpy as np
from scipy import ndimage
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

PAIRS_AT_ONCE = 4_000_000  # point-triangle pairs that are held in memory together
LAST_GAIN = 5e-4  # share of the volume that a ball must cover anew
LAST_EQUAL_GAIN = 0.02  # ... and of equal balls, share of its own volume
STEPS = np.array([step for step in np.ndindex(3, 3, 3) if step != (1, 1, 1)]) - 1.0  # to the 26 neighbours of a voxel


def fill(vertices, triangles, count=None, radius=None, resolution=40):
    """(positions, radii) of at most ``count`` balls (None: as many as it takes) inside a closed surface, of one ``radius`` or
    each as large as fits. ``resolution``: voxels along the longest side; nothing smaller than a voxel is filled."""
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    h = (high - low).max() / resolution
    inside, origin = voxels(vertices, triangles, low, high, h)
    depth = ndimage.distance_transform_edt(inside)  # in voxels, to about one
    where = np.argwhere(inside & (_ridges(depth) if radius is None else depth > radius / h - 2))
    reach = distances(origin + h * where, vertices, triangles)
    fits = reach >= (h if radius is None else radius)
    where, radii = where[fits], reach[fits] if radius is None else np.full(int(fits.sum()), float(radius))
    if not len(where):
        return np.zeros((0, 3)), np.zeros(0)
    least = LAST_GAIN * inside.sum() if radius is None else LAST_EQUAL_GAIN * 4 / 3 * np.pi * (radius / h) ** 3
    chosen = _cover(inside.copy(), where, radii / h, count, max(1, least))
    positions, radii = origin + h * where[chosen], radii[chosen]
    return (positions, radii) if radius is not None else _grown(positions, radii, vertices, triangles, h)


def voxels(vertices, triangles, low, high, h):
    """(inside, origin): is the centre origin + h (i, j, k) of each voxel inside the surface? By counting, along each column of
    centres, the triangles that face down (enter) and up (leave)."""
    # columns a little off the regular places, where vertices and edges of regular meshes tend to be
    origin = low - h * np.array([0.5 + 1e-4 * np.sqrt(2), 0.5 + 1e-4 * np.sqrt(3), 0.5])
    shape = np.ceil((high - origin) / h).astype(int) + 1
    enters = np.zeros(shape + [0, 0, 1], np.int32)
    corners = (vertices[triangles] - origin) / h
    first = np.maximum(np.ceil(corners[..., :2].min(axis=1)), 0).astype(int)
    last = np.floor(corners[..., :2].max(axis=1)).astype(int)
    ups = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    for t in np.flatnonzero((last >= first).all(axis=1) & (ups[:, 2] != 0)):
        x, y = np.mgrid[first[t, 0] : last[t, 0] + 1, first[t, 1] : last[t, 1] + 1].reshape(2, -1)
        crossed = _in_outline(x, y, corners[t], np.sign(ups[t, 2]))
        x, y = x[crossed], y[crossed]
        z = corners[t, 0, 2] - ((x - corners[t, 0, 0]) * ups[t, 0] + (y - corners[t, 0, 1]) * ups[t, 1]) / ups[t, 2]
        np.add.at(enters, (x, y, np.clip(np.ceil(z), 0, shape[2]).astype(int)), -int(np.sign(ups[t, 2])))
    return np.cumsum(enters, axis=2)[..., :-1] > 0, origin


def _in_outline(x, y, corners, sense):
    """Points in a triangle seen along z."""
    result = np.ones(len(x), bool)
    for k in range(3):
        (ax, ay), (bx, by) = corners[k, :2], corners[(k + 1) % 3, :2]
        result &= sense * ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) >= 0
    return result


def _ridges(depth):
    """Voxels whose ball is not inside the ball of a neighbour (with some room, since depth is rough): near the medial axis."""
    padded = np.pad(depth, 1)
    ridge = np.ones(depth.shape, bool)
    for step in STEPS.astype(int):
        window = tuple(slice(1 + s, 1 + s + n) for s, n in zip(step, depth.shape))
        ridge &= padded[window] - depth < np.linalg.norm(step) - 0.2
    return ridge


def _cover(open_voxels, where, radii, count, last_gain):
    """Numbers of the chosen balls. Greedy and lazy: what a ball would gain only ever falls, so the best known gains come first and
    are worked out again only when they are on top."""
    queue = [(-4 / 3 * np.pi * (r + 1) ** 3, k, -1) for k, r in enumerate(radii)]
    heapq.heapify(queue)
    chosen: list[int] = []
    while queue and (count is None or len(chosen) < count):
        gain, k, known = heapq.heappop(queue)
        window, ball = _ball(open_voxels.shape, where[k], radii[k])
        if known < len(chosen):
            heapq.heappush(queue, (-int(np.count_nonzero(open_voxels[window] & ball)), k, len(chosen)))
            continue
        if -gain < last_gain:
            break
        open_voxels[window] &= ~ball
        chosen.append(k)
    return chosen


def _ball(shape, centre, radius):
    """(window, mask): voxels of a ball, in units of voxels."""
    first = np.maximum(np.ceil(centre - radius), 0).astype(int)
    last = np.minimum(np.floor(centre + radius).astype(int), np.array(shape) - 1)
    squares = [(np.arange(a, b + 1) - c) ** 2 for a, b, c in zip(first, last, centre)]
    mask = squares[0][:, None, None] + squares[1][:, None] + squares[2] <= radius**2
    return tuple(slice(a, b + 1) for a, b in zip(first, last)), mask


def _grown(positions, radii, vertices, triangles, h):
    """Balls moved by less than a voxel to where they have more room."""
    positions, radii = positions.copy(), radii.copy()
    for step in 0.5 * h * 0.5 ** np.arange(5):
        around = positions[:, None] + step * STEPS
        reach = distances(around.reshape(-1, 3), vertices, triangles).reshape(len(positions), -1)
        best = reach.argmax(axis=1)
        better = reach.max(axis=1) > radii
        positions[better], radii[better] = around[better, best[better]], reach.max(axis=1)[better]
    return positions, radii


def distances(points, vertices, triangles):
    """From each point to the nearest of the triangles."""
    corners = vertices[triangles]
    middles = corners.mean(axis=1)
    spans = np.linalg.norm(corners - middles[:, None], axis=2).max(axis=1)
    nearest = cKDTree(np.concatenate([vertices[np.unique(triangles)], middles])).query(points)[0]
    result = np.empty(len(points))
    rows = max(1, PAIRS_AT_ONCE // len(triangles))
    for start in range(0, len(points), rows):
        part = slice(start, start + rows)
        p, t = np.nonzero(cdist(points[part], middles) - spans <= nearest[part, None] * (1 + 1e-12))
        found = nearest[part].copy()
        np.minimum.at(found, p, _to_triangles(points[part][p], corners[t]))
        result[part] = found
    return result


def _to_triangles(points, corners):
    """Distance of each point to its triangle."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    above, nearest = np.ones(len(points), bool), np.full(len(points), np.inf)
    for k in range(3):
        start = corners[:, k]
        edge, arm = corners[:, (k + 1) % 3] - start, points - start
        along = np.clip(np.einsum("ni,ni->n", arm, edge) / np.einsum("ni,ni->n", edge, edge), 0, 1)
        nearest = np.minimum(nearest, np.linalg.norm(arm - along[:, None] * edge, axis=1))
        above &= np.einsum("ni,ni->n", np.cross(edge, arm), normal) >= 0
    return np.where(above, np.abs(np.einsum("ni,ni->n", points - corners[:, 0], normal)), nearest)
