"""Collapsing columns of grains: their initial state, and the measures of their deposit.

The start is cut out of one periodic packing stored as data (``data/packing.npz``, by ``tests/validation/make_column_reference.py``). So
every code can begin from identical positions, which depend neither on the engine nor on its version.
"""

import json
import pathlib
from typing import NamedTuple

import numpy as np

DATA = pathlib.Path(__file__).parent / "data"
RADIUS, DENSITY, FRICTION, RESTITUTION = 0.01, 2500.0, 0.5, 0.3  # m (mean), kg/m3, of grains and floor alike
FRACTION, GRAINS = 0.6, 20_000  # of the packing; of a column, at least
RATIOS = (0.5, 1.0, 2.0, 4.0)  # height over radius of the columns
RINGS = 2 * RADIUS  # m, width of a ring of the profile


class Column(NamedTuple):
    """A column on the z axis over a floor of fixed balls whose tops are at z = 0."""

    places: np.ndarray  # (N, 3) m
    radii: np.ndarray  # (N,) m
    floor: np.ndarray  # (M, 3) m, centres of balls of the mean radius
    radius: float  # m
    height: float  # m

    @property
    def seconds(self) -> float:
        """Until nothing flows any more: Lube et al. see the front stop after about 3 sqrt(h / g)."""
        return round(5 * float(np.sqrt(self.height / 9.81)), 2)


def column_start(ratio: float, grains: int = GRAINS) -> Column:
    """A column of height over radius ``ratio``: a cylinder cut out of the packing, its grains at rest and just not touching."""
    radius = RADIUS * float(np.cbrt(4 / 3 * 1.02 * grains / (FRACTION * ratio)))
    height = ratio * radius
    with np.load(DATA / "packing.npz") as packing:
        unit, sizes, side = packing["places"].astype(float) / 65536, packing["radii"].astype(float), float(packing["side"])
    reach = int(np.ceil(2 * radius / side)), int(np.ceil(height / side))
    tiles = np.stack(np.meshgrid(*(range(reach[k]) for k in (0, 0, 1)), indexing="ij"), axis=-1).reshape(-1, 1, 3)
    places, radii = ((unit + tiles) * side).reshape(-1, 3), np.tile(sizes, len(tiles))
    places[:, :2] -= 0.5 * reach[0] * side
    inside = (np.hypot(places[:, 0], places[:, 1]) < radius) & (places[:, 2] < height)  # centres: so the volume is the cylinder's
    places[:, 2] += radii.max()
    return Column(places[inside], radii[inside], rough_floor(radius * 1.35 * (1 + 1.6 * np.sqrt(ratio))), radius, height)


def rough_floor(reach: float) -> np.ndarray:
    """A triangular lattice of touching balls out to ``reach`` m: smooth floors let single balls roll on for ever."""
    count = int(reach / RADIUS) + 2
    i, j = np.meshgrid(np.arange(-count, count + 1), np.arange(-count, count + 1), indexing="ij")
    x, y = 2 * RADIUS * (i + 0.5 * (j % 2)).ravel(), np.sqrt(3) * RADIUS * j.ravel()
    near = np.hypot(x, y) < reach
    return np.column_stack([x, y, np.full(len(x), -RADIUS)])[near]


def deposit(places: np.ndarray, radii: np.ndarray, column: Column) -> dict:
    """What is left: the thickness over the distance from the axis, and lengths of it, all in units of the column's radius.

    The thickness of a ring is the volume of the grains whose centres are in it, over its area and the packing's fraction 0.6; rings are
    one diameter wide. Three edges: where the thickness falls below one diameter, below half of one, and the circle that holds 95 % of
    the volume. ``height``: the mean of the five highest tops within four radii of a grain from the axis."""
    distance, volume = np.hypot(places[:, 0], places[:, 1]), 4 / 3 * np.pi * radii**3
    edges = np.arange(0.0, np.hypot(*np.abs(column.floor[:, :2]).max(axis=0)), RINGS)
    thickness = np.histogram(distance, edges, weights=volume)[0] / (np.pi * np.diff(edges**2) * FRACTION)
    order = np.argsort(distance)
    held = np.cumsum(volume[order]) / volume.sum()
    middle = distance < 4 * RADIUS
    tops = np.sort((places[:, 2] + radii)[middle])[-5:]
    return {
        "one_diameter": edge_of(edges, thickness, 2 * RADIUS) / column.radius,
        "half_diameter": edge_of(edges, thickness, RADIUS) / column.radius,
        "holds_95": float(distance[order][np.searchsorted(held, 0.95)]) / column.radius,
        "height": float(tops.mean()) / column.radius,
        "distance": (0.5 * (edges[:-1] + edges[1:]) / column.radius).round(4).tolist(),
        "thickness": (thickness / column.radius).round(5).tolist(),
    }


def edge_of(edges: np.ndarray, thickness: np.ndarray, least: float) -> float:
    """Where the deposit gets thinner than ``least`` for the first time from inside, between the middles of two rings."""
    middles = 0.5 * (edges[:-1] + edges[1:])
    k = int(np.argmax(thickness < least))
    share = (thickness[k - 1] - least) / (thickness[k - 1] - thickness[k])
    return float(middles[k - 1] + share * (middles[k] - middles[k - 1]))


def reference() -> dict:
    """What LAMMPS made of the same starts: by ratio, as ``deposit`` gives it."""
    return json.loads((DATA / "columns_lammps.json").read_text(encoding="utf-8"))
