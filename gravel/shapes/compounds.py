"""Shapes made of shapes: compounds of convex ones, and clumps of spheres, each one rigid body.

In come children with their places, m; out go a ``Geometry`` that lists the children in the frame of the body, and the mass
properties. A compound's mass is the sum of its children's; a clump's is that of the union of its spheres.
"""

import os
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from gravel import checks
from gravel.printing import formatting
from gravel.rotations import conjugate, multiply, rotate
from gravel.shapes.decompose import fill
from gravel.shapes.geometry import NONE, Geometry
from gravel.shapes.meshes import Mesh
from gravel.shapes.polyhedra import Mass, Scaled, principal, scale_text
from gravel.shapes.simple import COMPOUND, HULL, MESH, PLANE, SOLID_OF, SPHERE

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
ITEM = "must be (shape,), (shape, position) or (shape, position, quaternion)"


class Child(NamedTuple):
    """A simple shape or a hull in a compound."""

    kind: int
    size: np.ndarray
    radius: float  # of the ball around its own centre
    position: np.ndarray
    quaternion: np.ndarray
    part: Geometry | None = None  # of a hull

    @property
    def extent(self) -> np.ndarray:
        """(4,) what an engine keeps of a body of this shape: three sizes, bounding radius."""
        return np.append(self.size, self.radius)


class Composite(Scaled):
    """A shape with ``children`` in the coordinates as given."""

    KIND, NAME = COMPOUND, "compound"
    children: Any

    def _geometry_in(self, centre, axes):
        turn = conjugate(axes)
        children = [c._replace(position=rotate(turn, c.position - centre), quaternion=multiply(turn, c.quaternion)) for c in self.children]
        parts = list({id(c.part): c.part for c in children if c.part is not None}.values())
        number = {id(part): k for k, part in enumerate(parts)}
        boxes = np.array([_box(c) for c in children])
        return Geometry(
            half=np.abs(boxes).max(axis=(0, 1)),
            radius=float(max(_reach(c) for c in children)),
            child_kind=np.array([c.kind for c in children], np.int32),
            child_size=np.array([c.size for c in children]),
            child_radius=np.array([c.radius for c in children]),
            child_position=np.array([c.position for c in children]),
            child_quaternion=np.array([c.quaternion for c in children]),
            child_geometry=np.array([NONE if c.part is None else number[id(c.part)] for c in children], np.int32),
            parts=tuple(parts),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Compound(Composite):
    """Shapes joined rigidly. ``items``: (shape,), (shape, position) or (shape, position, quaternion) for each, m and w x y z.

    Children are convex shapes, clumps and compounds, of one size each.
    The mass is the sum of the children's, so what two of them share counts twice (a Clump counts it once).
    ``relative_densities`` (one per item) multiply the material's density.
    """

    items: Any
    relative_densities: Any = None
    children: tuple[Child, ...] = field(init=False)
    mass: Mass = field(init=False)
    scale = np.ones(())

    def __post_init__(self):
        if isinstance(self.items, (str, bytes)) or not hasattr(self.items, "__iter__"):
            raise TypeError(f"Compound items must be a list of (shape, position, quaternion), not {self.items!r:.80}")
        items = [_item(f"Compound items[{k}]", item) for k, item in enumerate(self.items)]
        if not items:
            raise ValueError("Compound items must be at least one, not 0")
        densities = np.ones(len(items)) if self.relative_densities is None else self.relative_densities
        densities = checks.array("Compound relative_densities", densities, (len(items),), above=0.0)
        children = tuple(_placed(child, position, quaternion) for shape, position, quaternion in items for child in children_of(shape))
        self._set(items=items, relative_densities=densities, children=children, mass=_sum_of(items, densities), _made={})

    def __repr__(self):
        return f"Compound({len(self.children)} children)"


@dataclass(frozen=True, eq=False, repr=False)
class Clump(Composite):
    """Spheres joined rigidly: ``positions`` (K, 3) and ``radii`` (K,) or one for all, m, at ``scale`` (number or (N,)).

    Mass, centre and inertia are those of the union: what several spheres share counts once. Spheres apart are summed exactly; the
    overlaps are integrated along ``samples`` x ``samples`` lines; with 512, volume and moments are right to about 1e-5.
    """

    positions: Any
    radii: Any
    scale: Any = 1.0
    samples: int = 512
    _: KW_ONLY
    mass: Any = None  # instead of the union's
    coverage: float | None = None  # from_mesh: covered share of the mesh's volume

    def __post_init__(self):
        self._set_scale(self.scale)
        positions = checks.array("Clump positions", self.positions, (None, 3))
        if not len(positions):
            raise ValueError("Clump positions must be at least one, not 0")
        radii = np.full(len(positions), self.radii) if np.ndim(self.radii) == 0 and not isinstance(self.radii, str) else self.radii
        radii = checks.array("Clump radii", radii, (len(positions),), above=0.0)
        checks.count("Clump samples", self.samples, minimum=16)
        self._set(positions=positions, radii=radii, mass=self.mass or union_of_balls(positions, radii, self.samples))

    @classmethod
    def from_mesh(
        cls,
        mesh: Mesh | str | os.PathLike,
        spheres: int | None = None,
        radius: float | None = None,
        *,
        resolution: int = 40,
        scale: ArrayLike | None = None,
    ) -> "Clump":
        """A closed Mesh (or the file of one), convex or not, as spheres inside it: its spherical decomposition.

        ``spheres``: at most so many (50 unless given), each as large as fits; or all of one ``radius`` (m, in the mesh's
        coordinates), as many as cover something new, or at most ``spheres``. ``resolution``: voxels along the longest side of the
        mesh; parts thinner than two are not filled. No sphere reaches further out of the mesh than rounding (1e-9 of its size).
        Mass, centre and inertia are the mesh's own, not the spheres'; ``coverage`` tells which share of its volume they cover.
        """
        if not isinstance(mesh, Mesh):
            mesh = Mesh.from_file(mesh)
        if mesh.count is not None:
            raise ValueError(f"mesh holds {mesh.count} scales, but Clump.from_mesh takes one; give the scales to it instead")
        mass = mesh.mass
        spheres = 50 if spheres is None and radius is None else spheres
        if spheres is not None:
            checks.count("spheres", spheres, minimum=1)
        if radius is not None:
            radius = checks.number("radius", radius, above=0.0)
        checks.count("resolution", resolution, minimum=8)
        positions, radii = fill(mesh.vertices, mesh.triangles, spheres, radius, resolution)
        if not len(radii):
            size = f"radius {radius:g}" if radius else f"a voxel (resolution {resolution})"
            raise ValueError(f"no sphere of {size} fits into {mesh!r}; give a smaller radius or a higher resolution")
        covered = union_of_balls(positions, radii, 512).volume
        return cls(positions, radii, mesh.scale if scale is None else scale, mass=mass, coverage=covered / mass.volume)

    def __repr__(self):
        return f"Clump({len(self.radii)} spheres of radius {formatting.span(self.radii)} m{scale_text(self)})"

    @property
    def children(self) -> tuple[Child, ...]:
        """Its spheres as children of a compound."""
        return tuple(Child(SPHERE, np.array([r, 0.0, 0.0]), r, p, IDENTITY) for p, r in zip(self.positions, self.radii))


def _item(name: str, item: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """(shape, position, quaternion), checked."""
    if not isinstance(item, (tuple, list)) or not 1 <= len(item) <= 3:
        raise TypeError(f"{name} {ITEM}, not {item!r:.80}")
    shape: Any
    shape, position, quaternion = tuple(item) + (np.zeros(3), IDENTITY)[len(item) - 1 :]
    if isinstance(shape, type) or not hasattr(shape, "KIND"):
        raise TypeError(f"{name} {ITEM}, not with {shape!r:.80} as its shape")
    if shape.KIND in (PLANE, MESH):
        raise ValueError(f"{name} must be a convex shape or a compound of such, not a {type(shape).__name__}, which cannot be a child")
    if shape.count is not None:
        raise ValueError(f"{name} must have one size, but its {type(shape).__name__} holds {shape.count}")
    position = checks.array(f"{name} position", position, (3,))
    quaternion = checks.array(f"{name} quaternion", quaternion, (4,))
    if np.linalg.norm(quaternion) < 1e-9:
        raise ValueError(f"{name} quaternion must not be zero, not {quaternion.tolist()}")
    return shape, position, quaternion / np.linalg.norm(quaternion)


def children_of(shape):
    """The children that a shape becomes in a compound, in the coordinates in which the shape is given."""
    size = shape.rows(1)[0]
    if shape.KIND == COMPOUND:
        s = size[0]
        return [c._replace(size=s * c.size, radius=s * c.radius, position=s * c.position) for c in shape.children]
    if shape.KIND == HULL:
        centre, axes = shape.mass_frame
        part = shape.geometry(True)
        return [Child(HULL, size, size[0] * part.radius, size[0] * centre, axes, part)]
    return [Child(shape.KIND, size, float(shape.bounding_radii(1)[0]), np.zeros(3), IDENTITY)]


def _placed(child, position, quaternion):
    turned = multiply(quaternion, child.quaternion)
    return child._replace(position=position + rotate(quaternion, child.position), quaternion=turned / np.linalg.norm(turned))


# --- bounds
def _box(child):
    """The lowest and highest coordinates of a child (2, 3)."""
    if child.kind == HULL:
        corners = child.size[0] * rotate(child.quaternion, child.part.vertices)
        return child.position + np.array([corners.min(axis=0), corners.max(axis=0)])
    axes = rotate(child.quaternion, np.eye(3)).T  # columns: the child's axes
    return child.position + np.array(SOLID_OF[child.kind].box(child.extent, axes))


def _reach(child):
    """The largest distance of a child's points from the origin, or a bound of it."""
    x, y, z = rotate(conjugate(child.quaternion), child.position)  # of the child's centre, along its axes
    if child.kind == HULL:
        return np.linalg.norm(child.size[0] * child.part.vertices + (x, y, z), axis=1).max()
    return SOLID_OF[child.kind].reach(child.extent, x, y, z)


# --- mass
def _sum_of(items, densities):
    """Mass properties of items that all count in full, by the parallel axis theorem. The volume is the one that with the
    material's density gives the mass."""
    weights = np.array([shape.volumes(1)[0] for shape, _, _ in items]) * densities
    centres, tensors = np.zeros((len(items), 3)), np.zeros((len(items), 3, 3))
    for k, (shape, position, quaternion) in enumerate(items):
        centre, axes = (np.zeros(3), IDENTITY) if shape.mass_frame is None else shape.mass_frame
        centres[k] = position + rotate(quaternion, shape.rows(1)[0, 0] * centre if centre.any() else centre)
        turn = rotate(multiply(quaternion, axes), np.eye(3)).T
        tensors[k] = turn * shape.inertias(weights[k : k + 1])[0] @ turn.T
    total = weights.sum()
    centre = weights @ centres / total
    arms = centres - centre
    second = (weights[:, None] * arms).T @ arms
    return _mass(total, centre, tensors.sum(axis=0) + np.trace(second) * np.eye(3) - second)


def _mass(volume, centre, inertia):
    moments, axes = principal(inertia / volume)
    return Mass(float(volume), centre, axes, moments)


def union_of_balls(positions, radii, samples):
    """Mass properties of a union of balls: the exact sum over the balls, less what they share, by quadrature.

    Parallel lines on a square grid cut the balls in chords. Along a line, sorted by where they begin, each chord shares with those
    before it what lies before their furthest end; the integrals of 1, x and x2 over that piece are exact.
    """
    positions, radii = _not_inside_another(positions, radii)
    middle = 0.5 * ((positions - radii[:, None]).min(axis=0) + (positions + radii[:, None]).max(axis=0))
    places = positions - middle
    volumes = 4 / 3 * np.pi * radii**3
    volume, first = volumes.sum(), volumes @ places
    second = (volumes[:, None] * places).T @ places + np.eye(3) * (volumes * radii**2).sum() / 5
    shared = _shared(places, radii, samples)
    volume, first, second = volume - shared[0], first - shared[1], second - shared[2]
    centre = first / volume
    second = second - volume * np.outer(centre, centre)
    return _mass(volume, middle + centre, np.trace(second) * np.eye(3) - second)


def _not_inside_another(positions, radii):
    """The balls that add something: of those at one place, the first."""
    inside = cdist(positions, positions) + radii[:, None] <= radii
    same = inside & inside.T
    inside &= ~same | np.tril(same, -1)
    kept = ~inside.any(axis=1)
    return positions[kept], radii[kept]


def _shared(places, radii, samples):
    """(volume, first, second moments) of what balls share with others, counted once less than there are balls."""
    extents = (places + radii[:, None]).max(axis=0) - (places - radii[:, None]).min(axis=0)
    axis = int(np.argmax(extents))  # lines run along the longest side, where they resolve most
    order = [axis, (axis + 1) % 3, (axis + 2) % 3]
    spacing = np.delete(extents, axis).max() / samples
    line, y, z, begin, end = _chords(places[:, order], radii, spacing)
    by_line = np.lexsort((begin, line))
    line, y, z, begin, end = (values[by_line] for values in (line, y, z, begin, end))
    # the furthest end so far on the same line: lines are put one behind the other, so that one running maximum serves them all
    behind = line * 2 * extents[axis]
    furthest = np.concatenate([[-np.inf], np.maximum.accumulate(end + behind)[:-1]]) - behind
    stop = np.minimum(end, furthest)
    common = stop > begin
    a, b, y, z = begin[common], stop[common], y[common], z[common]
    length, square, cube = b - a, (b**2 - a**2) / 2, (b**3 - a**3) / 3
    first, second = np.zeros(3), np.zeros((3, 3))
    first[order] = square.sum(), length @ y, length @ z
    xy, xz, yz = square @ y, square @ z, length @ (y * z)
    second[np.ix_(order, order)] = [[cube.sum(), xy, xz], [xy, length @ y**2, yz], [xz, yz, length @ z**2]]
    return length.sum() * spacing**2, first * spacing**2, second * spacing**2


def _chords(places, radii, spacing):
    """(line, y, z, begin, end) of the chords that lines along x at (i + 1/2, j + 1/2) spacing cut out of balls."""
    chords = []
    low = np.floor((places[:, 1:] - radii[:, None]) / spacing).astype(int)
    high = np.ceil((places[:, 1:] + radii[:, None]) / spacing).astype(int)
    rows, floor = high[:, 1].max() - low[:, 1].min() + 1, low.min(axis=0)
    for centre, r, (i0, j0), (i1, j1) in zip(places, radii, low, high):
        i, j = np.mgrid[i0:i1, j0:j1].reshape(2, -1)
        y, z = (i + 0.5) * spacing, (j + 0.5) * spacing
        square = r**2 - (y - centre[1]) ** 2 - (z - centre[2]) ** 2
        cut = square > 0
        half = np.sqrt(square[cut])
        line = ((i - floor[0]) * rows + j - floor[1])[cut]
        chords.append((line, y[cut], z[cut], centre[0] - half, centre[0] + half))
    return [np.concatenate(values) for values in zip(*chords)]
