"""The share of a region that bodies fill."""

from functools import lru_cache, partial

import numpy as np

from gravel.measures.ball_in_box import ball_in_box
from gravel.measures.regions import Where, need_bodies, region_of
from gravel.measures.snapshot import Source, snapshot_of
from gravel.measures.units import measured_in
from gravel.rotations import rotate
from gravel.shapes import COMPOUND, KINDS, SOLIDS, SPHERE
from gravel.shapes.described import shape_of_geometry
from gravel.shapes.geometry import NONE
from gravel.shapes.inside import inside_compound, inside_convex, inside_surface
from gravel.shapes.polyhedra import signed_volumes

POINTS = 16384  # in the box around a body, for the share of it that is in a region
CUBE = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T  # corners


@measured_in("1")
def packing_fraction(source: Source, region: Where = None) -> float:
    """Volume of the bodies in a region over the region's volume. What overlaps counts twice.

    Exact (to rounding) for bodies that are in the region as a whole, and for spheres that a box cuts. Of other bodies at the edge
    the share inside is counted by 16384 points in the box around the body, spread evenly and always the same: right to about 0.1 %
    of such a body's volume, 0.4 % at worst (1 % for hulls and meshes that fill little of their box). Regions that are no boxes are
    treated likewise, and taken to be convex. A compound's volume is the sum of its parts, a clump's that of the union of its
    spheres (to 1e-5). Without a region: all bodies, in the periodic cell or in the box around them."""
    snapshot = snapshot_of(source)
    where = region_of(region, snapshot)
    volumes = _Volumes(snapshot)
    if region is None:
        need_bodies(snapshot, np.ones(len(snapshot), bool))
        return float(volumes.of(np.arange(len(snapshot))).sum() / where.volume)
    rows, centres = _images(snapshot, where)
    radii = snapshot.radii[rows]
    whole, apart = _whole(where, centres, radii)
    filled = volumes.of(rows[whole]).sum()
    cut = ~(whole | apart)
    exact = np.zeros(len(rows), bool)
    if where.box is not None:
        exact = cut & (snapshot.kinds[rows] == SPHERE)
        filled += ball_in_box(centres[exact], radii[exact], *where.box).sum()
    for row, centre in zip(rows[cut & ~exact], centres[cut & ~exact]):
        points = snapshot.wrapped(centre + rotate(snapshot.quaternions[row], volumes.points(row)))
        filled += volumes.of([row])[0] * where.contains(points).mean()
    return float(filled / where.volume)


def _whole(where, centres, radii):
    """Which balls are in the region as a whole, and which are surely outside."""
    if where.box is not None:
        outward = np.maximum(where.box[0] - centres, centres - where.box[1])  # beyond each face
        apart = np.linalg.norm(np.maximum(outward, 0.0), axis=1) >= radii
        return (outward <= -radii[:, None]).all(axis=1), apart
    whole = np.ones(len(centres), bool)
    for corner in CUBE:  # of the cube around the ball: what holds them and is convex holds the ball
        whole[whole] = where.contains(centres[whole] + radii[whole, None] * corner)
    return whole, np.zeros(len(centres), bool)


def _images(snapshot, where):
    """Rows and centres of all bodies that may reach into the region; of those in a periodic cell also their images."""
    if where.box is None:  # where space is periodic, points in bodies are brought back into the cell instead
        return np.arange(len(snapshot)), snapshot.wrapped(snapshot.positions)
    return snapshot.images(*where.box, snapshot.radii)


@lru_cache
def _cube():
    """Points that fill the cube from -1 to 1 evenly (Sobol's)."""
    from scipy.stats import qmc  # slow to import

    return 2 * qmc.Sobol(3, scramble=False).random(POINTS) - 1 + 1 / POINTS


class _Volumes:
    """Volumes of bodies, and points inside them; what bodies share is found once."""

    def __init__(self, snapshot):
        self.snapshot = snapshot
        self.extents = np.column_stack([snapshot.extents, snapshot.radii])
        self.shared = {}  # number of a geometry -> its volume at scale 1, half of the box around it, what tells inside
        self.filling = {}  # number of a geometry -> points inside it, at scale 1

    def of(self, rows):
        """m3, of the bodies in these rows."""
        snapshot = self.snapshot
        kinds, extents = snapshot.kinds[rows], self.extents[rows]
        volumes = np.zeros(len(kinds))
        for solid in SOLIDS:
            of_it = kinds == solid.KIND
            if of_it.any():
                volumes[of_it] = solid.of_extent(extents[of_it]).volumes(of_it.sum())
        geometry = snapshot.geometry[rows]
        for number in np.unique(geometry[geometry != NONE]).tolist():
            of_it = geometry == number
            volumes[of_it] = self._shared(number)[0] * extents[of_it, 0] ** 3
        return volumes

    def points(self, row):
        """Points inside a body, in its frame, spread evenly."""
        kind, extent, number = int(self.snapshot.kinds[row]), self.extents[row], int(self.snapshot.geometry[row])
        if number != NONE:
            if number not in self.filling:
                _, half, inside = self._shared(number)
                self.filling[number] = _inside(_cube() * half, inside)
            return extent[0] * self.filling[number]
        low, high = KINDS[kind].box(extent, np.eye(3))
        return _inside(_cube() * (0.5 * (high - low)) + 0.5 * (low + high), partial(inside_convex, kind, extent))

    def _shared(self, number):
        if number not in self.shared:
            surface = self.snapshot.surface(number)
            if isinstance(surface, tuple):
                vertices, triangles = surface
                volume, half = float(signed_volumes(vertices, triangles).sum()), np.abs(vertices).max(axis=0)
                self.shared[number] = volume, half, partial(inside_surface, vertices, triangles)
            else:
                shape = shape_of_geometry(COMPOUND, surface)
                self.shared[number] = shape.mass.volume, surface.half, partial(inside_compound, surface)
        return self.shared[number]


def _inside(points, inside):
    return points[inside(points)]
