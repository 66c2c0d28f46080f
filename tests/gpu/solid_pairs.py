"""Pairs of solids in random and in aligned poses, and what the CPU's tables find of them: rows before it is asked which are near."""

from typing import NamedTuple

import numpy as np

import gravel as gv
from gravel.cpu.collide import shape_pairs
from gravel.cpu.collide.pair_functions import shapes_of
from gravel.formulas import tables
from gravel.host.arrays import Pairs, Proxies
from gravel.shapes import MESH, PLANE
from gravel.shapes.geometry import Geometries, library_of

MANY = 256  # rows of one pair


class Cases(NamedTuple):
    """N pairs of shapes; kinds, sizes, numbers of geometries, quaternions, d = centre of b - centre of a."""

    kind: tuple  # of a and of b, the first not behind the second
    size: tuple  # two (N, 3); of a plane its normal
    number: tuple
    turn: tuple  # two (N, 4)
    radius: tuple  # of the balls around them
    d: np.ndarray  # (N, 3)
    limit: float


class Found(NamedTuple):
    count: np.ndarray  # (N,)
    rows: np.ndarray  # (N, MANY, 7)
    names: np.ndarray  # (N, MANY)


def torus():
    u, v = np.meshgrid(np.arange(24) * np.pi / 12, np.arange(12) * np.pi / 6, indexing="ij")
    across = 0.7 + 0.3 * np.cos(v)
    vertices = np.stack([across * np.cos(u), across * np.sin(u), 0.3 * np.sin(v)], axis=-1).reshape(-1, 3)
    corner = lambda i, j: (i % 24) * 12 + j % 12  # noqa: E731
    quads = [(corner(i, j), corner(i + 1, j), corner(i + 1, j + 1), corner(i, j + 1)) for i in range(24) for j in range(12)]
    return gv.Mesh(vertices, [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])


def block():
    """A box of triangles, two for each side."""
    shape = np.array([0.5, 0.4, 0.3])
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * shape
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return gv.Mesh(corners, [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])


def terrain():
    x, y = np.meshgrid(np.linspace(-2, 2, 17), np.linspace(-2, 2, 17), indexing="ij")
    return gv.HeightField(0.15 * np.sin(3 * x) * np.cos(2 * y) + 0.02 * np.random.default_rng(4).normal(size=x.shape), 0.25)


def stone(corners, seed):
    x = np.random.default_rng(seed).normal(size=(corners, 3))
    return gv.ConvexHull(x / np.linalg.norm(x, axis=1, keepdims=True) * (0.8, 0.6, 0.5))


SHAPES = {
    "sphere": gv.Sphere(0.4),
    "ellipsoid": gv.Ellipsoid((0.5, 0.35, 0.25)),
    "box": gv.Box((0.5, 0.4, 0.3)),
    "capsule": gv.Capsule(0.25, 0.8),
    "rounded box": gv.RoundedBox((0.5, 0.4, 0.3), 0.1),
    "cylinder": gv.Cylinder(0.4, 0.7),
    "cone": gv.Cone(0.45, 0.9),
    "hull": stone(12, 1),
    "round hull": stone(60, 2),
    "torus": torus(),
    "block": block(),
    "terrain": terrain(),
    "plane": gv.Plane(),
}
GEOMETRIES = Geometries()
NUMBERS = {name: GEOMETRIES.number_of(shape.geometry(shape.KIND != MESH)) for name, shape in SHAPES.items()}
LIBRARY = library_of(GEOMETRIES)
ON_CPU = shapes_of(LIBRARY, 0)


def quaternions(rng, n, aligned):
    """Random turns, or such that axes lie along the world's, turned about one of them."""
    q = rng.normal(size=(n, 4))
    if aligned:
        q = rng.integers(-1, 2, size=(n, 4)).astype(float)
        q[(q == 0).all(axis=1)] = (1, 0, 0, 0)
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def cases_of(a, b, n, seed, aligned=False, limit=0.02):
    """n pairs of two shapes: apart, touching and in each other. ``aligned``: faces lie on faces, edges along edges."""
    rng = np.random.default_rng(seed)
    shapes = SHAPES[a], SHAPES[b]
    size = [np.repeat(np.asarray(shape.rows(1), float)[:, :3], n, axis=0) for shape in shapes]
    turn = [quaternions(rng, n, aligned) for _ in shapes]
    radius = [float(shape.bounding_radii(1)[0]) for shape in shapes]
    d = rng.normal(size=(n, 3))
    if aligned:
        d = np.eye(3)[rng.integers(3, size=n)] * rng.choice([-1.0, 1.0], size=(n, 1)) + rng.choice([0.0, 0.1], size=(n, 3))
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    if shapes[1].KIND == PLANE:
        size[1] = -d
        d = d * (radius[0] * rng.uniform(0.2, 1.03, size=(n, 1)))
    elif b == "terrain":
        turn[1][:] = turn[1][:1]
        place = rng.uniform((-1.5, -1.5, -0.1), (1.5, 1.5, radius[0] + 0.2), size=(n, 3))
        d = -rotated(turn[1], place)
    else:
        d = d * (rng.uniform(0.35, 1.03, size=(n, 1)) * (radius[0] + radius[1]))
    kind = tuple(shape.KIND for shape in shapes)
    return Cases(kind, tuple(size), (NUMBERS[a], NUMBERS[b]), tuple(turn), tuple(radius), np.ascontiguousarray(d), limit)


def moved(cases, rng, hair):
    """The same pairs, moved and turned by about a hair."""
    turn = tuple(q + hair * rng.normal(size=q.shape) for q in cases.turn)
    return cases._replace(d=cases.d + hair * size_of(cases) * rng.normal(size=cases.d.shape), turn=turn)


def rotated(q, v):
    w, x = q[:, :1], q[:, 1:]
    return v + 2 * np.cross(x, np.cross(x, v) + w * v)


def size_of(cases):
    """The length by which precision is measured, as the engines do."""
    a, b = cases.radius
    return max(2 * min(a, b), 1e-6 * max(a, b) if max(a, b) < np.inf else 0.0)


def inputs_of(cases):
    """(table, proxies, those that are first in their pairs, and those that are second)."""
    n, table = len(cases.d), tables.table_between(*cases.kind)
    sphere, extent, tag, turn = np.zeros((2 * n, 4)), np.zeros((2 * n, 4)), np.zeros((2 * n, 4), np.int32), np.zeros((2 * n, 4))
    number = np.zeros(2 * n, np.int32)
    sphere[1::2, :3], extent[:, 3] = cases.d, 0.5 * cases.limit
    for k in range(2):
        sphere[k::2, 3] = cases.radius[k] + 0.5 * cases.limit
        extent[k::2, :3], turn[k::2], tag[k::2, 0], number[k::2] = cases.size[k], cases.turn[k], cases.kind[k], cases.number[k]
    order, nothing = np.arange(2 * n, dtype=np.int32), np.zeros((0, 3))
    rest = np.zeros((2 * n, 2)), np.zeros((2 * n + 1, 8)), nothing, turn, number
    proxies = Proxies(order, np.arange(2 * n), order, sphere, extent, tag, *rest)
    return table, proxies, order[0::2].copy(), order[1::2].copy()


def found_by_cpu(cases):
    n, (table, proxies, a, b) = len(cases.d), inputs_of(cases)
    pairs = Pairs(a, b, np.array([n]))
    alone, own = np.full(n, -1, np.int32), np.full(n, table, np.uint8)
    listed = shape_pairs.ShapePairs(
        np.arange(n, dtype=np.int32), alone, alone, own, np.arange(n) * MANY, np.zeros(n, np.int32), np.array([n])
    )
    rows = shape_pairs.Rows(np.zeros((n * MANY, 7)), np.zeros(n * MANY, np.int32))
    library = ON_CPU.hulls if table == shape_pairs.CONVEX else (ON_CPU.hulls, ON_CPU.meshes)
    shape_pairs.TABLES[table](0, 1, pairs, n, proxies, ON_CPU.children, library, MANY, n, listed, rows)
    return Found(listed.found, rows.values.reshape(n, MANY, 7), rows.feature.reshape(n, MANY))
