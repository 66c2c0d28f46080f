"""Geometry that does not fit into three size numbers: hulls, meshes and compounds, shared by all bodies that look alike.

A ``Geometry`` is what one shape brings, in the frame of its body; a body refers to it by number (field ``geometry``) and
may scale it (``extent[0]``). A ``Library`` is all of them end to end in flat arrays, as the engines want them.
"""

import hashlib
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

import numpy as np

NONE = -1  # the number of no geometry


def _array(*shape, dtype=np.float64):
    return field(default_factory=lambda: np.zeros(shape, dtype))


@dataclass(eq=False)
class Geometry:
    """The arrays of one geometry. Indices count from its own first row."""

    half: np.ndarray = _array(3)  # largest |x|, |y|, |z| of its points, m
    radius: float = 0.0  # largest distance of its points from the origin, m
    one_sided: bool = True  # mesh: behind a triangle is inside; False: triangles are sheets that stop bodies from both sides
    vertices: np.ndarray = _array(0, 3)  # hull and mesh, m
    neighbour_start: np.ndarray = _array(0, dtype=np.int32)  # hull, per vertex: where its neighbours start
    neighbours: np.ndarray = _array(0, dtype=np.int32)  # hull: vertices at the other ends of its edges
    face_start: np.ndarray = _array(0, dtype=np.int32)  # hull, per face: where its corners start
    face_corners: np.ndarray = _array(0, dtype=np.int32)  # hull: vertices of each face, counter-clockwise from outside
    face_normals: np.ndarray = _array(0, 3)  # hull: outward
    triangles: np.ndarray = _array(0, 3, dtype=np.int32)  # mesh: vertices, counter-clockwise from outside
    adjacent: np.ndarray = _array(0, 3, dtype=np.int32)  # mesh: triangle across the edge from corner k to k + 1, or NONE
    normals: np.ndarray = _array(0, 3)  # mesh: outward
    boxes: np.ndarray = _array(0, 6)  # mesh: bounding boxes of its tree, see ``tree_of``
    child_kind: np.ndarray = _array(0, dtype=np.int32)  # compound
    child_size: np.ndarray = _array(0, 3)
    child_radius: np.ndarray = _array(0)  # of the ball around each child's own centre, m
    child_position: np.ndarray = _array(0, 3)
    child_quaternion: np.ndarray = _array(0, 4)
    child_geometry: np.ndarray = _array(0, dtype=np.int32)  # number among ``parts``, or NONE
    parts: tuple = ()  # compound: geometries of its children

    def extent_of_child(self, k: int) -> np.ndarray:
        """(4,) what an engine keeps of a body that child k is alone: three sizes, bounding radius."""
        return np.append(self.child_size[k], self.child_radius[k])

    def content(self) -> bytes:
        """A fingerprint of all but the parts."""
        digest = hashlib.blake2b(np.array([self.radius, self.one_sided], float).tobytes(), digest_size=32)
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, np.ndarray):
                digest.update(f"{f.name}{value.dtype.str}{value.shape}".encode())
                digest.update(np.ascontiguousarray(value).data)
        return digest.digest()


class Library(NamedTuple):
    """All geometries of a scene. Geometry g has vertices first_vertex[g] to first_vertex[g + 1], and so on; indices count
    from the first row of the library."""

    half: np.ndarray
    one_sided: np.ndarray
    first_vertex: np.ndarray
    vertices: np.ndarray
    neighbour_start: np.ndarray  # one more than vertices
    neighbours: np.ndarray
    first_face: np.ndarray
    face_start: np.ndarray  # one more than faces
    face_corners: np.ndarray
    face_normals: np.ndarray
    first_triangle: np.ndarray
    triangles: np.ndarray
    adjacent: np.ndarray
    normals: np.ndarray
    first_box: np.ndarray
    boxes: np.ndarray
    first_child: np.ndarray
    child_kind: np.ndarray
    child_size: np.ndarray
    child_radius: np.ndarray
    child_position: np.ndarray
    child_quaternion: np.ndarray
    child_geometry: np.ndarray


def library_of(geometries):
    """The library of a list of geometries. Parts of compounds must be in the list themselves (``Geometries`` sees to that)."""
    number = {id(g): k for k, g in enumerate(geometries)}
    first_of = lambda name: np.concatenate([[0], np.cumsum([len(getattr(g, name)) for g in geometries])]).astype(np.int64)  # noqa: E731
    rows = {"vertex": "vertices", "face": "face_normals", "triangle": "triangles", "box": "boxes", "child": "child_kind"}
    firsts = {name: first_of(of) for name, of in rows.items()}
    neighbour_first, corner_first = first_of("neighbours"), first_of("face_corners")
    blank = Geometry()

    def joined(name, shift=None):
        rows = [getattr(g, name) + (shift(k) if shift else 0) for k, g in enumerate(geometries)]
        return np.ascontiguousarray(np.concatenate([getattr(blank, name), *rows]), dtype=getattr(blank, name).dtype)

    def starts(name, of, first):
        """Row starts of all geometries, with the end; geometries without such rows (meshes) have empty ones."""
        rows = []
        for k, g in enumerate(geometries):
            given = getattr(g, name)
            rows.append(given + first[k] if len(given) else np.full(len(getattr(g, of)), first[k]))
        return np.concatenate([*rows, [first[-1]]]).astype(np.int32)

    adjacent = [np.where(g.adjacent == NONE, NONE, g.adjacent + firsts["triangle"][k]) for k, g in enumerate(geometries)]
    child_geometry = [
        np.array([NONE if part == NONE else number[id(g.parts[part])] for part in g.child_geometry], np.int32) for g in geometries
    ]
    return Library(
        half=np.array([g.half for g in geometries], float).reshape(-1, 3),
        one_sided=np.array([g.one_sided for g in geometries], bool),
        first_vertex=firsts["vertex"],
        vertices=joined("vertices"),
        neighbour_start=starts("neighbour_start", "vertices", neighbour_first),
        neighbours=joined("neighbours", lambda k: firsts["vertex"][k]),
        first_face=firsts["face"],
        face_start=starts("face_start", "face_normals", corner_first),
        face_corners=joined("face_corners", lambda k: firsts["vertex"][k]),
        face_normals=joined("face_normals"),
        first_triangle=firsts["triangle"],
        triangles=joined("triangles", lambda k: firsts["vertex"][k]),
        adjacent=np.concatenate([blank.adjacent, *adjacent]).astype(np.int32),
        normals=joined("normals"),
        first_box=firsts["box"],
        boxes=joined("boxes"),
        first_child=firsts["child"],
        child_kind=joined("child_kind"),
        child_size=joined("child_size"),
        child_radius=joined("child_radius"),
        child_position=joined("child_position"),
        child_quaternion=joined("child_quaternion"),
        child_geometry=np.concatenate([blank.child_geometry, *child_geometry]).astype(np.int32),
    )


def links_of(library):
    """Neighbours of vertices in one array: from links[links[k]] to links[links[k + 1]] those of vertex k."""
    starts = library.neighbour_start + np.int32(len(library.neighbour_start))
    return np.concatenate([starts, library.neighbours]).astype(np.int32)


class Geometries(list):
    """The geometries of a scene, each content once."""

    def __init__(self, geometries=()):
        super().__init__()
        self._numbers = {}  # by object, and by content
        for geometry in geometries:
            self.number_of(geometry)

    def number_of(self, geometry):
        """The number of a geometry, which is added with its parts if there is none like it; NONE for None."""
        if geometry is None:
            return NONE
        if id(geometry) in self._numbers:
            return self._numbers[id(geometry)]
        parts = tuple(self[self.number_of(part)] for part in geometry.parts)
        content = geometry.content() + b"".join(self._numbers[id(part)].to_bytes(8, "little") for part in parts)
        if content not in self._numbers:
            self._numbers[content] = len(self)
            if any(own is not part for own, part in zip(parts, geometry.parts)):
                geometry = replace(geometry, parts=parts)
            self._numbers[id(geometry)] = len(self)  # it is in the list for good, so this number is its own
            self.append(geometry)
        return self._numbers[content]


LEAF = 4  # triangles in a leaf of a mesh's tree


def tree_of(vertices, triangles):
    """(order, boxes): triangles in the order of a space-filling curve, and the boxes (low, high) of the tree over them.

    The tree has no pointers: leaves hold LEAF triangles in that order, every node above holds the two below, level by
    level, and the levels follow each other from the root down. Level d has 2^d nodes; those past the end are empty
    (low = inf, high = -inf).
    """
    corners = vertices[triangles]
    low, high = corners.min(axis=1), corners.max(axis=1)
    order = np.argsort(_morton(0.5 * (low + high)), kind="stable")
    leaves = 1
    while leaves * LEAF < len(triangles):
        leaves *= 2
    room = leaves * LEAF
    below, above = np.full((room, 3), np.inf), np.full((room, 3), -np.inf)
    below[: len(order)], above[: len(order)] = low[order], high[order]
    below, above = below.reshape(leaves, LEAF, 3).min(axis=1), above.reshape(leaves, LEAF, 3).max(axis=1)
    levels = [np.hstack([below, above])]
    while len(below) > 1:
        below, above = below.reshape(-1, 2, 3).min(axis=1), above.reshape(-1, 2, 3).max(axis=1)
        levels.append(np.hstack([below, above]))
    return order, np.concatenate(levels[::-1])


def _morton(points):
    """Place of each point on a Z-order curve, 21 bits an axis."""
    low, high = points.min(axis=0), points.max(axis=0)
    cells = ((points - low) / np.maximum(high - low, 1e-300).max() * (2**21 - 1)).astype(np.uint64)
    code = np.zeros(len(points), np.uint64)
    for bit in range(21):
        for axis in range(3):
            code |= ((cells[:, axis] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(3 * bit + axis)
    return code
