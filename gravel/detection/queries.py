"""Questions about where bodies are: what a ray hits first, and which bodies reach into a box.

They are put to an engine and change nothing. It looks at all bodies anew each time it is asked, so ask for many rays at once.
"""

import math
from dataclasses import dataclass

import numpy as np

from gravel import checks
from gravel.engine import Engine, Rules, make_engine
from gravel.printing import formatting
from gravel.rotations import rotate
from gravel.shapes import PLANE
from gravel.state import SHAPE


@dataclass(frozen=True, repr=False)
class RayHits:
    """The first surface that each ray meets.

    - ``body`` (n,) id, -1 where there is none
    - ``distance`` (n,) m from the ray's origin, inf where there is none
    - ``point`` (n, 3) m, nan where there is none
    - ``normal`` (n, 3) outward from the surface that is hit, nan where there is none
    """

    body: np.ndarray
    distance: np.ndarray
    point: np.ndarray
    normal: np.ndarray

    def __len__(self) -> int:
        return len(self.body)

    def __repr__(self) -> str:
        hits, away = int(np.count_nonzero(self.body >= 0)), formatting.span(self.distance)
        return f"RayHits({len(self)} rays, {hits} hits" + (f", {away} m away)" if hits else ")")


def engine_of(bodies, geometries) -> Engine:
    """An engine that holds a table of bodies as they lie, to be asked."""
    engine = make_engine(precision="double")
    engine.set_rules(Rules(geometries=geometries))
    engine.add({**bodies.block(), "id": np.arange(bodies.count)})
    return engine


def cast_rays(engine: Engine, origins, directions, reach=math.inf) -> RayHits:
    """``RayHits`` of N rays: ``origins`` and ``directions`` (N, 3) m, or (3,) where all rays share one.

    Directions need not have length one. A hit is where a ray first crosses a surface ahead of its origin, at most ``reach`` m
    away: a ray that starts inside a body hits that body where it leaves it, from inside, and the normal, which always points
    outward, then looks along the ray. Meshes are hit from both sides. Of a compound, the surface of each child counts.
    """
    origins, directions = _rays(origins, directions)
    reach = math.inf if reach == math.inf else checks.number("reach", reach, minimum=0.0)
    return RayHits(*engine.cast_rays(origins, directions, reach))


def bodies_in_box(engine: Engine, low, high) -> np.ndarray:
    """Ids, sorted, of the bodies whose axis-aligned bounding box overlaps the box from ``low`` (3,) to ``high`` (3,) m, or touches
    it; of planes, those whose half space reaches into it."""
    low, high = checks.array("low", low, (3,)), checks.array("high", high, (3,))
    if np.any(low > high):
        raise ValueError(f"high must not be below low {tuple(low.tolist())} along any axis, not {tuple(high.tolist())}")
    lowest, highest = engine.bounding_boxes()
    inside = np.all(lowest <= high, axis=1) & np.all(highest >= low, axis=1)
    planes = np.flatnonzero(engine.field("tag")[:, SHAPE] == PLANE)
    normals = rotate(engine.field("quaternion")[planes], engine.field("extent")[planes, :3])
    corners = np.where(normals > 0, low, high)  # the corner of the box that is deepest in the half space
    inside[planes] &= np.einsum("ni,ni->n", corners - engine.field("position")[planes], normals) <= 0
    return np.sort(engine.ids()[inside])


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
