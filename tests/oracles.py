"""Geometry in plain NumPy, for tests to compare the engine with: supports, signed distances, and pairs of bodies in bulk.

The signed distance of two convex bodies a and b is the largest value over all unit n of

    g(n) = -h_a(n) - h_b(-n),    h(n) = max of n . x over the points x of a body,

the distance of the two tangent planes with normal n: their distance where they are apart, minus the least depth where they
overlap. Here it is found by trying many directions and then ever nearer ones around the best of them.
"""

from typing import NamedTuple

import coal
import fcl
import numpy as np
from scipy.spatial.transform import Rotation

import gravel as gv
from gravel.detection import find as detection
from gravel.shapes import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, HULL, ROUNDED_BOX, SPHERE


# --- bodies
class Many(NamedTuple):
    """N bodies of one kind of shape."""

    shape: object  # with N sizes
    position: np.ndarray  # (N, 3)
    quaternion: np.ndarray  # (N, 4)


def random_quaternions(rng, n):
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def random_directions(rng, n):
    x = rng.normal(size=(n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def matrices(quaternions):
    return Rotation.from_quat(np.roll(quaternions, -1, axis=-1)).as_matrix()


def about(axis, degrees):
    """Quaternion w x y z of a turn about "x", "y", "z" or a sequence of them."""
    return np.roll(Rotation.from_euler(axis, degrees, degrees=True).as_quat(), 1)


def sizes_of(shape):
    """A length of the order of each body: the radius of the ball around it."""
    return shape.bounding_radii(shape.count or 1)


# --- directions and supports
def fibonacci(n):
    """n directions that cover the sphere evenly."""
    k = np.arange(n) + 0.5
    z, angle = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k
    across = np.sqrt(1 - z**2)
    return np.stack([across * np.cos(angle), across * np.sin(angle), z], axis=-1)


def support_heights(shape, n):
    """h(n) in the frame of the shape; n (N, D, 3), not necessarily unit."""
    across = np.hypot(n[..., 0], n[..., 1])
    if shape.KIND == SPHERE:
        return np.reshape(shape.radius, (-1, 1)) * np.linalg.norm(n, axis=-1)
    if shape.KIND == ELLIPSOID:
        return np.linalg.norm(np.reshape(shape.radii, (-1, 1, 3)) * n, axis=-1)
    if shape.KIND == BOX:
        return (np.reshape(shape.half_extents, (-1, 1, 3)) * np.abs(n)).sum(axis=-1)
    if shape.KIND == ROUNDED_BOX:  # of a smaller box and of a ball
        radius = np.reshape(shape.radius, (-1, 1))
        core = np.reshape(shape.half_extents, (-1, 1, 3)) - radius[..., None]
        return (core * np.abs(n)).sum(axis=-1) + radius * np.linalg.norm(n, axis=-1)
    if shape.KIND == HULL:
        return np.reshape(shape.scale, (-1, 1)) * (n @ shape.vertices.T).max(axis=-1)
    radius = np.reshape(shape.radius, (-1, 1))
    if shape.KIND == CONE:
        height = np.reshape(shape.height, (-1, 1))
        return np.maximum(0.75 * height * n[..., 2], radius * across - 0.25 * height * n[..., 2])
    half = np.reshape(shape.half_length, (-1, 1))
    if shape.KIND == CAPSULE:
        return half * np.abs(n[..., 2]) + radius * np.linalg.norm(n, axis=-1)
    assert shape.KIND == CYLINDER
    return half * np.abs(n[..., 2]) + radius * across


def world_heights(many, n):
    """h(n) of placed bodies; n (N, D, 3) in the world frame."""
    turn = matrices(many.quaternion)
    return support_heights(many.shape, n @ turn) + (n @ many.position[:, :, None])[..., 0]


def plane_gaps(a, b, n):
    """g(n) of N pairs for directions n (N, D, 3)."""
    return -world_heights(a, n) - world_heights(b, -n)


def signed_distances(a, b, also=None, samples=600, starts=5, rounds=80):
    """(largest g (N,), its direction (N, 3)) of N pairs, from below: samples, then random directions ever nearer to the best.

    g has ridges where a body has edges: steps of a fixed pattern would get stuck there. ``also`` (N, K, 3): other directions
    to begin with.
    """
    rng = np.random.default_rng(0)
    tried = np.broadcast_to(fibonacci(samples), (len(a.position), samples, 3))
    values = plane_gaps(a, b, tried)
    order = np.argsort(-values, axis=1)[:, : starts**2 : starts]  # not only the very best: there may be several maxima
    best, value = np.take_along_axis(tried, order[..., None], 1), np.take_along_axis(values, order, 1)
    if also is not None:
        best, value = np.concatenate([best, also], axis=1), np.concatenate([value, plane_gaps(a, b, also)], axis=1)
    step = np.full(value.shape, 3.0 / np.sqrt(samples))
    for _ in range(rounds):
        ring = best[:, :, None] + step[..., None, None] * rng.normal(size=(1, 1, 10, 3)) * np.logspace(0, -1, 10)[:, None]
        ring /= np.linalg.norm(ring, axis=-1, keepdims=True)
        n, k, m, _ = ring.shape
        found = plane_gaps(a, b, ring.reshape(n, k * m, 3)).reshape(n, k, m)
        winner = found.argmax(axis=2)
        top = np.take_along_axis(found, winner[..., None], 2)[..., 0]
        better = top > value
        best = np.where(better[..., None], np.take_along_axis(ring, winner[..., None, None], 2)[:, :, 0], best)
        value, step = np.where(better, top, value), np.where(better, step, 0.6 * step)
    winner = value.argmax(axis=1)[:, None]
    return np.take_along_axis(value, winner, 1)[:, 0], np.take_along_axis(best, winner[..., None], 1)[:, 0]


def move_to_gap(a, b, gaps, along, samples=400):
    """b at the distance along ``along`` (N, 3) from a where the signed distance is about the wanted one, or at a's place."""
    n = np.broadcast_to(fibonacci(samples), (len(a.position), samples, 3))
    fixed = plane_gaps(a, b._replace(position=a.position), n)
    rate = (n @ along[:, :, None])[..., 0]
    low, high = np.zeros(len(gaps)), np.full(len(gaps), 100.0 * (sizes_of(a.shape) + sizes_of(b.shape)).max())
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = (fixed + middle[:, None] * rate).max(axis=1) < gaps
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return b._replace(position=a.position + high[:, None] * along)


# --- the engine
class PairContacts(NamedTuple):
    """Contacts of N pairs; of each pair, the deepest."""

    count: np.ndarray  # (N,)
    gap: np.ndarray  # (N,) infinite where there is none
    normal: np.ndarray  # (N, 3) from a to b
    point: np.ndarray  # (N, 3)
    table: object  # all contacts
    pair: np.ndarray  # of each row of the table
    points: np.ndarray  # of each row, in the frame of its pair


def apart(n, spacing):
    """n places on a cubic grid, so far apart that bodies at one do not meet those at another."""
    side = int(np.ceil(n ** (1 / 3)))
    return spacing * np.stack(np.unravel_index(np.arange(n), (side, side, side)), axis=-1).astype(float)


def detect_scene(scene, margin=0.0, ellipsoid_method="direct", broad_phase="grid"):
    """All contacts of a scene's bodies as they are placed, as a ContactTable."""
    return detection.detect_scene(scene, margin, ellipsoid_method, broad_phase).contacts()


def detect_pairs(a, b, margin, ellipsoid_method="direct"):
    """The engine's contacts of body k of a with body k of b, for all k at once."""
    n = len(a.position)
    reach = np.linalg.norm(b.position - a.position, axis=1).max()
    shift = apart(n, 3 * (sizes_of(a.shape).max() + sizes_of(b.shape).max() + reach + margin)) - a.position
    scene = gv.Scene()
    for many in (a, b):
        scene.add_bodies(many.shape, many.position + shift, quaternions=many.quaternion)
    table = detect_scene(scene, margin, ellipsoid_method)
    assert (table.body_b == table.body_a + n).all()
    return deepest_of(table, table.body_a, n, shift)


def detect_on_plane(many, normal, margin):
    """The engine's contacts of N bodies with the half space under the plane through the origin with a given normal."""
    n, normal = len(many.position), np.asarray(normal)
    u = np.cross(normal, [1.0, 0, 0] if abs(normal[0]) < 0.6 else [0, 1.0, 0])
    u /= np.linalg.norm(u)
    side = int(np.ceil(np.sqrt(n)))
    step = 3 * (sizes_of(many.shape).max() + np.abs(many.position).max() + margin)
    shift = step * ((np.arange(n) % side)[:, None] * u + (np.arange(n) // side)[:, None] * np.cross(normal, u))
    scene = gv.Scene()
    scene.add_bodies(many.shape, many.position + shift, quaternions=many.quaternion)
    scene.add_body(gv.Plane(normal), fixed=True)
    table = detect_scene(scene, margin)
    assert (table.body_b == n).all()
    return deepest_of(table, table.body_a, n, shift)


def deepest_of(table, pair, n, shift):
    """The contacts of n pairs, ``pair`` that of each row, and the deepest of each; points less the shift (n, 3) of the pair."""
    count = np.bincount(pair, minlength=n)
    gap, normal, point = np.full(n, np.inf), np.full((n, 3), np.nan), np.full((n, 3), np.nan)
    order = np.argsort(-table.gap, kind="stable")  # the deepest is written last
    gap[pair[order]], normal[pair[order]], point[pair[order]] = table.gap[order], table.normal[order], table.point[order]
    return PairContacts(count, gap, normal, point - shift, table, pair, table.point - shift[pair])


# --- triangles
def distances_to_mesh(points, vertices, triangles):
    """Signed distances (N,) of points from a closed mesh, negative inside: nearest points by brute force, inside by solid angles."""
    nearest, angle = np.full(len(points), np.inf), np.zeros(len(points))
    for a, b, c in vertices[triangles]:
        u, w, normal = b - a, c - a, np.cross(b - a, c - a)
        x = points - a
        s, t = (np.cross(x, w) @ normal) / (normal @ normal), (np.cross(u, x) @ normal) / (normal @ normal)
        within = (s >= 0) & (t >= 0) & (s + t <= 1)
        nearest = np.minimum(nearest, np.where(within, np.abs(x @ normal) / np.linalg.norm(normal), np.inf))
        for p, q in ((a, b), (b, c), (c, a)):
            share = np.clip((points - p) @ (q - p) / ((q - p) @ (q - p)), 0, 1)[:, None]
            nearest = np.minimum(nearest, np.linalg.norm(points - p - share * (q - p), axis=1))
        a, b, c = a - points, b - points, c - points
        la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
        volume = np.einsum("ni,ni->n", a, np.cross(b, c))
        dots = la * lb * lc + (a * b).sum(1) * lc + (b * c).sum(1) * la + (c * a).sum(1) * lb
        angle += 2 * np.arctan2(volume, dots)
    return np.where(angle > 2 * np.pi, -nearest, nearest)


# --- other libraries
def pieces(many):
    """Each of N bodies as (kind, sizes, position, rotation matrix)."""
    turn = matrices(many.quaternion)
    for k, row in enumerate(many.shape.rows(len(many.position))):
        position = many.position[k]
        if many.shape.KIND == CONE:  # others put the origin halfway up
            position = position + 0.25 * row[1] * turn[k][:, 2]
        yield many.shape.KIND, row, position, turn[k]


def rounding(many):
    """The radius (N,) around what stands for a body in other libraries, which know no rounded boxes: their cores do."""
    return np.broadcast_to(many.shape.radius, len(many.position)) if many.shape.KIND == ROUNDED_BOX else np.zeros(len(many.position))


def fan_triangles(hull):
    return np.array([(face[0], b, c) for face in hull.faces for b, c in zip(face[1:-1], face[2:])])


def make_coal(kind, size, hull):
    if kind == HULL:
        points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        for p in size[0] * hull.vertices:
            points.append(p)
        for t in fan_triangles(hull).tolist():
            triangles.append(coal.Triangle(*t))
        return coal.Convex(points, triangles)
    make = {
        SPHERE: lambda: coal.Sphere(size[0]),
        ELLIPSOID: lambda: coal.Ellipsoid(*size),
        CAPSULE: lambda: coal.Capsule(size[0], 2 * size[1]),
        CYLINDER: lambda: coal.Cylinder(size[0], 2 * size[1]),
        CONE: lambda: coal.Cone(size[0], size[1]),
        BOX: lambda: coal.Box(*(2 * size)),
        ROUNDED_BOX: lambda: coal.Box(*(2 * size)),
    }
    return make[kind]()


def coal_distances(a, b):
    """(signed distance (N,), normal from a to b (N, 3)) from coal."""
    request, gaps, normals = coal.DistanceRequest(), [], []
    request.enable_signed_distance = True
    request.gjk_tolerance, request.epa_tolerance = 1e-9, 1e-9
    request.gjk_max_iterations, request.epa_max_iterations = 400, 400
    for (kind_a, size_a, p_a, m_a), (kind_b, size_b, p_b, m_b) in zip(pieces(a), pieces(b)):
        result = coal.DistanceResult()
        shape_a, shape_b = make_coal(kind_a, size_a, a.shape), make_coal(kind_b, size_b, b.shape)
        gaps.append(coal.distance(shape_a, coal.Transform3s(m_a, p_a), shape_b, coal.Transform3s(m_b, p_b), request, result))
        normals.append(np.array(result.normal).ravel())
    return np.array(gaps) - rounding(a) - rounding(b), np.array(normals)


def make_fcl(kind, size, hull):
    if kind == HULL:
        triangles = fan_triangles(hull)
        return fcl.Convex(size[0] * hull.vertices, len(triangles), np.column_stack([np.full(len(triangles), 3), triangles]).ravel())
    make = {
        SPHERE: lambda: fcl.Sphere(size[0]),
        ELLIPSOID: lambda: fcl.Ellipsoid(*size),
        CAPSULE: lambda: fcl.Capsule(size[0], 2 * size[1]),
        CYLINDER: lambda: fcl.Cylinder(size[0], 2 * size[1]),
        CONE: lambda: fcl.Cone(size[0], size[1]),
        BOX: lambda: fcl.Box(*(2 * size)),
        ROUNDED_BOX: lambda: fcl.Box(*(2 * size)),
    }
    return make[kind]()


def fcl_distances(a, b):
    """Distances (N,) from fcl; those of overlaps mean nothing."""
    gaps = []
    for (kind_a, size_a, p_a, m_a), (kind_b, size_b, p_b, m_b) in zip(pieces(a), pieces(b)):
        one = fcl.CollisionObject(make_fcl(kind_a, size_a, a.shape), fcl.Transform(m_a, p_a))
        two = fcl.CollisionObject(make_fcl(kind_b, size_b, b.shape), fcl.Transform(m_b, p_b))
        gaps.append(fcl.distance(one, two, fcl.DistanceRequest(), fcl.DistanceResult()))
    return np.array(gaps) - rounding(a) - rounding(b)


def fcl_depths(a, b):
    """(depth (N,), normal from a to b (N, 3)) from fcl; NaN where it sees no overlap."""
    depths, normals = np.full(len(a.position), np.nan), np.full((len(a.position), 3), np.nan)
    for k, ((kind_a, size_a, p_a, m_a), (kind_b, size_b, p_b, m_b)) in enumerate(zip(pieces(a), pieces(b))):
        one = fcl.CollisionObject(make_fcl(kind_a, size_a, a.shape), fcl.Transform(m_a, p_a))
        two = fcl.CollisionObject(make_fcl(kind_b, size_b, b.shape), fcl.Transform(m_b, p_b))
        result = fcl.CollisionResult()
        if fcl.collide(one, two, fcl.CollisionRequest(num_max_contacts=1, enable_contact=True), result):
            depths[k], normals[k] = result.contacts[0].penetration_depth, result.contacts[0].normal
    return depths + rounding(a) + rounding(b), normals


CUBE = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T * 0.1
CUBE_TRIANGLES = [t for face in gv.ConvexHull(CUBE).faces for t in (face[:3], face[[0, 2, 3]])]
