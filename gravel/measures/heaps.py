"""The slope of a heap, and of the bed in a turning drum."""

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.measures.profiles import AXES
from gravel.measures.snapshot import Source, snapshot_of
from gravel.measures.surfaces import fitted_slope, highest, upwards
from gravel.measures.units import DoesNotFit, measured_in

LEAST = 12  # bodies of a heap
COLUMNS = 4  # of a drum's bed that a line goes through, at least


@measured_in("rad")
def angle_of_repose(source: Source, centre: ArrayLike | None = None, ring: float | None = None, span: ArrayLike = (0.2, 0.8)) -> float:
    """rad: the slope of a heap against the plane across gravity.

    About the upright axis through ``centre`` m (None: the centre of mass), the ground is cut into rings of width ``ring`` m (None: two
    mean diameters of the bodies), and each ring into fields about as long as they are wide. The highest body of each field is a
    point of the surface: (distance from the axis, height of its top). Rings whose mean height is within ``span`` of the heap's
    height, from its lowest body to the highest ring, so without the tip and the foot, are kept; a straight line through all their
    points, by least squares, has the slope. What is no heap, highest in the middle and the same all around, is refused: the line must
    explain 60 % of how the heights differ. The bed in a drum has a ``dynamic_angle``."""
    snapshot = snapshot_of(source)
    up = upwards(snapshot, "angle_of_repose")
    if len(snapshot) < LEAST:
        raise DoesNotFit(f"a heap must have at least {LEAST} bodies, not {len(snapshot)}")
    place = np.average(snapshot.positions, axis=0, weights=snapshot.masses) if centre is None else checks.array("centre", centre, (3,))
    ring = 4 * float(snapshot.radii.mean()) if ring is None else checks.number("ring", ring, above=0.0)
    low, high = _shares("span", span)
    distance, height, number = _surface(snapshot, place, up, ring)
    rings, of_ring = np.unique(number, return_inverse=True)
    mean = np.bincount(of_ring, height) / np.bincount(of_ring)
    base = float((snapshot.positions @ up - snapshot.radii).min())
    share = (mean - base) / (mean.max() - base)
    within = (share >= low) & (share <= high)
    if np.count_nonzero(within) < 2:
        raise DoesNotFit(
            f"the slope of a heap needs at least two rings whose heights are within {low:g} and {high:g} of the heap's, but of its "
            f"{len(rings)} rings of {ring:g} m only {np.count_nonzero(within)} are: give a smaller ring or a wider span"
        )
    kept = within[of_ring]
    slope = fitted_slope("angle_of_repose", "heaps, which are the same all around their axis", distance[kept], height[kept])
    if slope > 0 and not _is_level(slope):
        raise DoesNotFit("angle_of_repose is of heaps, but this surface rises from its middle outwards")
    return float(np.arctan(-slope))


def _is_level(slope):
    return abs(slope) < np.tan(np.radians(2.0))


def _shares(name, span):
    low, high = checks.array(name, span, (2,))
    if not 0 <= low < high <= 1:
        raise ValueError(f"{name} must be two shares, 0 <= lower < upper <= 1, not {span!r}")
    return low, high


def _surface(snapshot, place, up, ring):
    """Distance from the axis, height and ring of the highest body in each field of the ground."""
    offset = snapshot.separations(snapshot.positions - place)
    across = offset - (offset @ up)[:, None] * up
    east = np.eye(3)[np.argmin(np.abs(up))]
    east = east - (east @ up) * up
    angle = np.arctan2(across @ np.cross(up, east), across @ east)
    distance, top = np.linalg.norm(across, axis=1), snapshot.positions @ up + snapshot.radii
    number = np.floor(distance / ring).astype(int)
    sectors = np.round(2 * np.pi * (number + 0.5)).astype(int)
    sector = np.minimum((angle + np.pi) / (2 * np.pi) * sectors, sectors - 1).astype(int)
    rows = highest([sector, number], top)
    return distance[rows], top[rows], number[rows]


@measured_in("rad")
def dynamic_angle(source: Source, axis: str | ArrayLike = "y", width: float | None = None, span: ArrayLike = (0.25, 0.75)) -> float:
    """rad: the slope of the free surface of the bed in a turning drum, its dynamic angle of repose (GDR MiDi 2004), positive.

    The bed is cut across the drum's ``axis`` ("x", "y", "z" or a direction, which must be level) into columns of ``width`` m (None: two
    mean diameters), and along it into fields as long. The highest body of each field is a point of the surface; of each column the
    median of its points counts, so that grains in flight do not. Columns within ``span`` of the bed's width are kept, for at both ends
    the surface of a fast drum bends; a straight line through them, by least squares, has the slope. The line must explain 60 % of how
    the heights differ."""
    snapshot = snapshot_of(source)
    up = upwards(snapshot, "dynamic_angle")
    along = np.eye(3)[AXES.index(checks.choice("axis", axis, tuple(AXES)))] if isinstance(axis, str) else checks.unit("axis", axis)
    if abs(along @ up) > 0.1:
        raise ValueError(f"axis must be level, across gravity, not {axis!r}")
    if len(snapshot) < LEAST:
        raise DoesNotFit(f"the bed of a drum must have at least {LEAST} bodies, not {len(snapshot)}")
    width = 4 * float(snapshot.radii.mean()) if width is None else checks.number("width", width, above=0.0)
    low, high = _shares("span", span)
    place, top = snapshot.positions @ np.cross(up, along), snapshot.positions @ up + snapshot.radii
    column, field = np.floor(place / width).astype(int), np.floor(snapshot.positions @ along / width).astype(int)
    rows = highest([field, column], top)
    columns, of_column = np.unique(column[rows], return_inverse=True)
    heights = np.array([np.median(top[rows][of_column == k]) for k in range(len(columns))])
    start, end = place.min(), place.max()
    middles = (columns + 0.5) * width
    kept = (middles >= start + low * (end - start)) & (middles <= start + high * (end - start))
    if np.count_nonzero(kept) < COLUMNS:
        raise DoesNotFit(
            f"dynamic_angle needs at least {COLUMNS} columns within {low:g} and {high:g} of the bed's width, but of its {len(columns)} "
            f"columns of {width:g} m only {np.count_nonzero(kept)} are: give a smaller width or a wider span"
        )
    slope = fitted_slope("dynamic_angle", "beds with one slope, as in a drum that rolls them", middles[kept], heights[kept])
    return float(np.arctan(abs(slope)))
