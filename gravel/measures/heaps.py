"""The slope of a heap."""

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.measures.snapshot import Source, snapshot_of
from gravel.measures.units import measured_in

LEAST = 12  # bodies of a heap


@measured_in("rad")
def angle_of_repose(source: Source, centre: ArrayLike | None = None, ring: float | None = None, span: ArrayLike = (0.2, 0.8)) -> float:
    """rad: the slope of a heap against the plane across gravity.

    About the upright axis through ``centre`` m (None: the centre of mass), the ground is cut into rings of width ``ring`` m (None: two
    mean diameters of the bodies), and each ring into fields about as long as they are wide. The highest body of each field is a
    point of the surface: (distance from the axis, height of its top). Rings whose mean height is within ``span`` of the heap's
    height, from its lowest body to the highest ring, so without the tip and the foot, are kept; a straight line through all their
    points, by least squares, has the slope."""
    snapshot = snapshot_of(source)
    weight = np.linalg.norm(snapshot.gravity)
    if weight == 0.0:
        raise ValueError("angle_of_repose needs gravity, which says where up is, but it is zero")
    if len(snapshot) < LEAST:
        raise ValueError(f"a heap must have at least {LEAST} bodies, not {len(snapshot)}")
    up = -snapshot.gravity / weight
    place = np.average(snapshot.positions, axis=0, weights=snapshot.masses) if centre is None else checks.array("centre", centre, (3,))
    ring = 4 * float(snapshot.radii.mean()) if ring is None else checks.number("ring", ring, above=0.0)
    low, high = checks.array("span", span, (2,))
    if not 0 <= low < high <= 1:
        raise ValueError(f"span must be two shares of the height, 0 <= lower < upper <= 1, not {span!r}")
    distance, height, number = _surface(snapshot, place, up, ring)
    rings, of_ring = np.unique(number, return_inverse=True)
    mean = np.bincount(of_ring, height) / np.bincount(of_ring)
    base = float((snapshot.positions @ up - snapshot.radii).min())
    share = (mean - base) / (mean.max() - base)
    kept = ((share >= low) & (share <= high))[of_ring]
    if len(np.unique(number[kept])) < 2:
        raise ValueError(f"the slope of a heap must be at least two rings of {ring:g} m wide, but only {len(rings)} were found in all")
    slope, _ = np.polyfit(distance[kept], height[kept], 1)
    return float(np.arctan(-slope))


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
    order = np.lexsort((-top, sector, number))
    highest = order[np.append(True, (np.diff(number[order]) != 0) | (np.diff(sector[order]) != 0))]
    return distance[highest], top[highest], number[highest]
