"""Convex hulls, from arrays or from files; and what shapes with a geometry share: scale, mass, files.

In come points in the user's coordinates, m; out go a ``Geometry`` of convex faces and the mass properties, integrated exactly
over the tetrahedra between the surface and a point. Bodies share the geometry and may each have a ``scale``.
"""

import copy
import itertools
import os
from dataclasses import InitVar, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import ConvexHull as Quickhull
from scipy.spatial import QhullError, cKDTree
from scipy.spatial.transform import Rotation

from gravel import checks
from gravel.rotations import conjugate, rotate
from gravel.shapes.geometry import Geometry
from gravel.shapes.simple import HULL

# Lengths relative to the size of a shape
SAME_POINT = 1e-12  # vertices nearer than this are one
REPAIRED_POINT = 1e-6  # ... in a mesh under repair
COPLANAR = 1e-7  # a hull's facets that lie within this of a plane are one face
FLAT = 1e-6  # points within a slab thinner than this have no hull
SLIVER = 1e-12  # a triangle lower than this has no area
HOLE_EDGES = 12  # the largest hole that repair fills

SMALLEST, LARGEST = 1e-20, 1e20  # m: of meshes in files; beyond, volumes and moments of inertia may not be numbers any more


class Mass(NamedTuple):
    """Volume in m3; centre of mass and principal axes in the coordinates as given; principal moments per unit mass, m2."""

    volume: float
    centre: np.ndarray
    axes: np.ndarray  # quaternion: from principal axes to the given ones
    moments: np.ndarray


class Scaled:
    """A shape of one geometry that its bodies share, each at its own ``scale``. It knows its ``mass`` at scale 1, or refuses."""

    scale: Any  # number or (n,), as an array
    mass: Any  # ``Mass``
    has_mass: Any = True
    _made: dict[bool, Geometry]
    _geometry_in: Any

    @property
    def count(self) -> int | None:
        """How many bodies it has scales for; None: one scale for any number."""
        return None if self.scale.ndim == 0 else len(self.scale)

    def take(self, bodies: Any) -> Any:
        """The same shape with the scales of some of its bodies; the geometry stays shared."""
        if self.count is None:
            return self
        some = copy.copy(self)
        object.__setattr__(some, "scale", self.scale[bodies])
        return some

    def rows(self, n: int) -> np.ndarray:
        """(n, 3): the scale of each of n bodies, and two zeros."""
        sizes = np.zeros((n, 3))
        sizes[:, 0] = self.scale
        return sizes

    def volumes(self, n: int) -> np.ndarray:
        """(n,) m3, of each of n bodies."""
        return np.broadcast_to(self.mass.volume * self.scale**3, n)

    def inertias(self, masses: np.ndarray) -> np.ndarray:
        """(n, 3) kg m2, principal moments of inertia of n bodies of ``masses`` (n,) kg."""
        return (masses * self.scale**2)[:, None] * self.mass.moments

    def bounding_radii(self, n: int) -> np.ndarray:
        """(n,) m, of the balls around the centres of n bodies that hold them."""
        return np.broadcast_to(self.geometry(self.has_mass).radius * self.scale, n)

    @property
    def mass_frame(self) -> tuple[np.ndarray, np.ndarray]:
        """Centre of mass (3,) and quaternion of the principal axes (4,) in the coordinates as given, at scale 1."""
        return self.mass.centre, self.mass.axes

    def geometry(self, movable: bool) -> Geometry:
        """The geometry: about the centre of mass along the principal axes if ``movable``, else in the coordinates as given."""
        if movable not in self._made:
            frame = self.mass_frame if movable else (np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
            self._made[movable] = self._geometry_in(*frame)
        return self._made[movable]

    def _set(self, **values):
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def _set_scale(self, scale):
        shape = () if np.ndim(scale) == 0 else (None,)
        self._set(scale=checks.array(f"{type(self).__name__} scale", scale, shape, above=0.0), _made={})


@dataclass(frozen=True, eq=False, repr=False)
class ConvexHull(Scaled):
    """The smallest convex body around ``points`` (N, 3) m, at ``scale``: a number, or an array (N,) for N bodies."""

    points: InitVar[ArrayLike]
    scale: Any = 1.0
    source: str | None = None  # file, for messages
    vertices: np.ndarray = field(init=False)  # the corners
    faces: list = field(init=False)  # corners of each face, counter-clockwise from outside
    mass: Mass = field(init=False)
    KIND, NAME = HULL, "hull"

    def __post_init__(self, points):
        self._set_scale(self.scale)
        name = f"ConvexHull points{of_source(self.source)}"
        points = checks.array(name, points, (None, 3))
        if len(points) < 4:
            raise ValueError(f"{name} must be at least four, not {len(points)}")
        vertices, faces = hull_of(points, name)
        fans = [(face[0], b, c) for face in faces for b, c in zip(face[1:-1], face[2:])]
        self._set(vertices=vertices, faces=faces, mass=mass_of(vertices, np.array(fans)))

    @classmethod
    def from_file(cls, path: str | os.PathLike, scale: ArrayLike = 1.0) -> "ConvexHull":
        """The hull of all points in a file (STL, PLY, OBJ, OFF, glTF and others), or of the parts in a STEP file."""
        vertices, _ = read_mesh(path)
        return cls(vertices, scale, source=str(path))

    def __repr__(self):
        return f"ConvexHull({len(self.vertices)} corners, {len(self.faces)} faces{scale_text(self)}{of_source(self.source)})"

    def _geometry_in(self, centre, axes):
        vertices = rotate(conjugate(axes), self.vertices - centre)
        edges = np.array(sorted((a, face[k - 1]) for face in map(np.ndarray.tolist, self.faces) for k, a in enumerate(face)), np.int32)
        start = np.searchsorted(edges[:, 0], np.arange(len(vertices)))
        lengths = [len(face) for face in self.faces]
        return Geometry(
            **reach_of(vertices),
            vertices=vertices,
            neighbour_start=start.astype(np.int32),
            neighbours=edges[:, 1].copy(),
            face_start=(np.cumsum(lengths) - lengths).astype(np.int32),
            face_corners=np.concatenate(self.faces).astype(np.int32),
            face_normals=face_normals(vertices, self.faces),
        )


# --- mass
def signed_volumes(vertices, triangles):
    """Of the tetrahedra between each triangle and the middle of the vertices."""
    a, b, c = np.moveaxis((vertices - vertices.mean(axis=0))[triangles], 1, 0)
    return np.einsum("ni,ni->n", a, np.cross(b, c)) / 6


def mass_properties(vertices, triangles):
    """(volume, centre, inertia): of the solid inside a closed surface; inertia (3, 3) about the centre for density 1.

    Sums over tetrahedra from a point near the middle to each triangle. With corners a, b, c and s = a + b + c, a tetrahedron of
    volume V has the first moment V s / 4 and the second moments V (s sT + a aT + b bT + c cT) / 20.
    """
    middle = vertices[triangles].mean(axis=(0, 1))
    a, b, c = np.moveaxis((vertices - middle)[triangles], 1, 0)
    volumes = np.einsum("ni,ni->n", a, np.cross(b, c)) / 6
    volume, total = volumes.sum(), a + b + c
    centre = volumes @ total / (4 * volume)
    second = sum((volumes[:, None] * x).T @ x for x in (total, a, b, c)) / 20 - volume * np.outer(centre, centre)
    return volume, middle + centre, np.trace(second) * np.eye(3) - second


def principal(inertia):
    """(moments, quaternion) of a tensor of inertia. The axes are the right-handed ones nearest to x, y and z; those of a tensor
    that is diagonal already stay as they are, so that nothing is turned for rounding's sake."""
    inertia = 0.5 * (inertia + inertia.T)
    diagonal = np.diag(inertia)
    if np.abs(inertia - np.diag(diagonal)).max() <= 1e-9 * np.abs(diagonal).max():
        return diagonal.copy(), np.array([1.0, 0.0, 0.0, 0.0])
    moments, axes = np.linalg.eigh(inertia)
    turns = [
        (order, np.array([*signs, 1.0]) * axes[:, order])
        for order in map(list, itertools.permutations(range(3)))
        for signs in itertools.product((1.0, -1.0), repeat=2)
    ]
    turns = [(order, turn * np.array([1.0, 1.0, np.linalg.det(turn)])) for order, turn in turns]
    order, turn = max(turns, key=lambda pair: np.trace(pair[1]))
    quaternion = np.roll(Rotation.from_matrix(turn).as_quat(), 1)
    return moments[order], quaternion if quaternion[0] >= 0 else -quaternion


def mass_of(vertices, triangles):
    volume, centre, inertia = mass_properties(vertices, triangles)
    moments, axes = principal(inertia / volume)
    return Mass(float(volume), centre, axes, moments)


# --- hulls
def hull_of(points, name):
    """(vertices, faces) of the convex hull, with coplanar facets as one face and only the corners that faces need.

    A corner belongs to three faces or more. Points that do not are dropped and the hull is made again, until none is left, so
    that points on faces and on edges leave no trace.
    """
    size = size_of(points)
    flat = f"{name} must span a volume, but all {len(points)} are"
    if size == 0:
        raise ValueError(f"{flat} at {points[0].tolist()}")
    unit = (points - points.mean(axis=0)) / size
    directions = np.linalg.svd(unit, full_matrices=False)[2]
    widths = np.ptp(unit @ directions.T, axis=0)
    if widths[2] < FLAT:
        raise ValueError(f"{flat} on one {'line' if widths[1] < FLAT else 'plane'} (within {FLAT:g} of their size)")
    kept = _apart(unit)
    while True:
        try:
            hull = Quickhull(unit[kept])
        except QhullError:
            raise ValueError(f"{flat} too near one plane for a hull") from None
        faces = _faces_of(hull)
        faces_at = np.bincount(np.concatenate(faces), minlength=len(kept))
        if (faces_at >= 3).all():
            return points[kept], [_ordered(unit[kept], face) for face in faces]
        kept = kept[faces_at >= 3]


def _apart(unit):
    """Numbers of points of which no two are as near as FLAT: the first of each cluster."""
    pairs = cKDTree(unit).query_pairs(FLAT, output_type="ndarray")
    cluster = connected_components(graph_of(len(unit), *pairs.T), directed=False)[1]
    return np.sort(np.unique(cluster, return_index=True)[1])


def _faces_of(hull):
    """Corners of each face, in no order. A face is a facet, from the largest on, and all that it reaches of the facets within
    COPLANAR of its plane."""
    corners, outward = hull.points[hull.simplices], hull.equations[:, :3]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(normals, axis=1)
    # the facet's own plane, not hull.equations: qhull may have merged facets before it cut them into triangles again
    normals *= np.sign(np.einsum("ni,ni->n", normals, outward) / areas)[:, None] / areas[:, None]

    def level(facet, others):
        """Are other facets in a facet's plane?"""
        height = np.einsum("...ki,...i->...k", corners[others] - corners[facet, 0][..., None, :], normals[facet])
        return (np.abs(height) < COPLANAR).all(axis=-1) & (np.einsum("...i,...i->...", outward[others], normals[facet]) > 0)

    alone = np.ones(len(areas), bool)
    for k in range(3):
        neighbour = hull.neighbors[:, k]
        joined = level(np.arange(len(areas)), neighbour)
        alone[joined] = alone[neighbour[joined]] = False
    free, faces = ~alone, list(hull.simplices[alone])
    for seed in np.flatnonzero(free)[np.argsort(-areas[free], kind="stable")]:
        if free[seed]:
            group, free[seed] = [seed], False
            for facet in group:
                others = hull.neighbors[facet][free[hull.neighbors[facet]]]
                others = others[level(np.full(len(others), seed), others)]
                free[others] = False
                group.extend(others)
            faces.append(np.unique(hull.simplices[group]))
    return faces


def _ordered(points, face):
    """A face's corners counter-clockwise from outside; the origin is inside."""
    corners = points[face]
    middle = corners.sum(axis=0) / len(face)
    if len(face) == 3:
        (ax, ay, az), (bx, by, bz), (cx, cy, cz) = corners.tolist()
        volume = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
        return face if volume > 0 else face[::-1]
    corners = corners - middle
    along = corners[np.argmax(np.einsum("ni,ni->n", corners, corners))]
    across = np.cross(corners, along)
    normal = across[np.argmax(np.einsum("ni,ni->n", across, across))]
    normal = normal * np.sign(normal @ middle)
    return face[np.argsort(np.arctan2(corners @ np.cross(normal / np.linalg.norm(normal), along), corners @ along), kind="stable")]


def face_normals(vertices, faces):
    """Unit normals of polygons, from their area vectors (Newell)."""
    lengths = np.array([len(face) for face in faces])
    start = np.cumsum(lengths) - lengths
    corners = np.concatenate(faces)
    onward = np.arange(len(corners)) + 1
    onward[start + lengths - 1] = start
    arms = vertices[corners] - np.repeat(vertices[corners[start]], lengths, axis=0)
    areas = np.add.reduceat(np.cross(arms, arms[onward]), start)
    return areas / np.linalg.norm(areas, axis=1, keepdims=True)


# --- files
def read_mesh(path):
    """(vertices, triangles) of a file; those of several parts one after the other, each where the file places it."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be the name of a mesh file, not {path!r}")
    path = os.fspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"path must be a mesh file, but {path!r} does not exist")
    if not os.path.isfile(path):
        raise ValueError(f"path must be a mesh file, but {path!r} is no file")
    from gravel.cad.step import is_step, read_as_one  # these here, since only those who read files should wait for them

    if is_step(path):
        return read_as_one(path)[:2]
    import trimesh

    suffix = os.path.splitext(path)[1].lower().lstrip(".")
    if suffix not in trimesh.available_formats():
        raise ValueError(f"path must be a mesh file such as .stl, .ply, .obj, .off, .glb or .step, not {path!r}")
    if not os.path.getsize(path):
        raise ValueError(f"path must be a mesh file, but {path!r} is empty")
    with np.errstate(all="ignore"):  # what is not finite is refused by the shapes
        try:
            vertices, triangles = _joined(trimesh.load(path, process=False))
        except Exception as error:  # the readers of the formats raise whatever goes wrong in them
            raise ValueError(f"path must be a mesh file, but {path!r} cannot be read as one: {' '.join(str(error).split())}") from None
        far, size = np.abs(vertices).max(), size_of(vertices)
    if far > LARGEST or 0.0 < size < SMALLEST:
        raise ValueError(
            f"path must be a mesh of {SMALLEST:g} to {LARGEST:g} m, but that of {path!r} is {size:g} m large, {far:g} m from the origin"
        )
    return vertices, triangles


def _joined(loaded):
    """Vertices and triangles of what trimesh loaded: a mesh, points, or a scene of them."""
    if not hasattr(loaded, "graph"):
        parts = [(np.eye(4), loaded)]
    else:
        poses = (loaded.graph[node] for node in loaded.graph.nodes_geometry)
        parts = [(pose, loaded.geometry[name]) for pose, name in poses]
    vertices, triangles, count = [np.zeros((0, 3))], [np.zeros((0, 3), np.int64)], 0
    for pose, part in parts:
        vertices.append(np.asarray(part.vertices, float) @ pose[:3, :3].T + pose[:3, 3])
        corners = np.asarray(getattr(part, "faces", np.zeros((0, 3))), np.int64) + count
        # a part that is mirrored when placed turns its triangles over
        triangles.append(corners[:, ::-1] if np.linalg.det(pose[:3, :3]) < 0 else corners)
        count += len(part.vertices)
    if count == 0:
        raise ValueError("it holds no points")
    return np.concatenate(vertices), np.concatenate(triangles)


# --- small things
def reach_of(vertices):
    return {"half": np.abs(vertices).max(axis=0), "radius": float(np.linalg.norm(vertices, axis=1).max())}


def size_of(points):
    """Length of the diagonal of the box around points."""
    return float(np.linalg.norm(np.ptp(points, axis=0)))


def of_source(source):
    return f" of {source!r}" if source else ""


def scale_text(shape):
    return f", scale={float(shape.scale):g}" if shape.count is None else f", {shape.count} scales"


def graph_of(n, a, b):
    """The graph of n points with edges from a to b."""
    return coo_array((np.ones(len(a), bool), (a, b)), shape=(n, n))
