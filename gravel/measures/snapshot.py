"""What measures look at: the bodies that can move, at one time, of a simulation or of a frame of a result, in one form."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gravel import checks
from gravel.body_names import BodyNames
from gravel.contacts import ContactTable
from gravel.io.triangles import surface_of
from gravel.shapes import COMPOUND
from gravel.state import ANGULAR, LINEAR, SHAPE, STATUS, can_move

if TYPE_CHECKING:
    from gravel.io.result import Frame
    from gravel.simulation import Simulation

Source: TypeAlias = "Simulation | Frame | Snapshot"  # what is measured


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Arrays of the bodies that can move, a row each, in the order of their ids. What is fixed or has a motion is not among them."""

    time: float  # s
    ids: np.ndarray  # (n,)
    positions: np.ndarray  # (n, 3) m
    quaternions: np.ndarray  # (n, 4)
    velocities: np.ndarray  # (n, 3) m/s
    angular_velocities: np.ndarray  # (n, 3) rad/s
    masses: np.ndarray  # (n,) kg
    inertias: np.ndarray  # (n, 3) kg m2
    radii: np.ndarray  # (n,) m, of the balls around them
    kinds: np.ndarray  # (n,)
    extents: np.ndarray  # (n, 3) m
    geometry: np.ndarray  # (n,) number, or -1
    gravity: np.ndarray  # (3,) m/s2
    cell: Any  # periodic cell, or None
    dt: float  # s
    contact_lag: float  # s: contacts were found so long before
    table_of: Callable[[], ContactTable]
    surface: Callable[[int], Any]  # number of a geometry -> (vertices, triangles), or a compound's Geometry
    names: BodyNames  # of all bodies of the run

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def contacts(self) -> ContactTable:
        """The contacts of the last step."""
        return self.table_of()

    def ids_of(self, name: str, which: Any) -> np.ndarray:
        """(n,) ids that a user means, by the name of bodies or as ids; ``name``: of the argument."""
        if not isinstance(which, str):
            return checks.array(name, np.atleast_1d(which), (None,), dtype=np.int64)
        if which not in self.names:
            raise ValueError(f"{name} must be ids or a name of bodies, but {self.names.unknown(which)}")
        return np.atleast_1d(self.names[which])

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """The rows of bodies; -1 for those that are not here: fixed, driven."""
        if not len(self):
            return np.full(len(ids), -1)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self) - 1)
        return np.where(self.ids[at] == ids, at, -1)

    def separations(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors between two points, the shortest of all images where space is periodic."""
        return vectors if self.cell is None else self.cell.separation(vectors)

    def arms(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors from centres to points of contact, in the cell as it was when contacts were found."""
        if self.cell is None:
            return vectors
        before = self.cell.copy()
        before.advance(-self.contact_lag)
        return before.separation(vectors)

    def images(self, low: np.ndarray, high: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and centres of the bodies that come within ``reach`` (n,) m of a box, with their periodic images."""
        centres, rows = self.wrapped(self.positions), np.arange(len(self))
        found = []
        for windings in self._windings(reach.max(initial=0.0)):
            shifted = centres if self.cell is None else centres + self.cell.shifts(np.array([windings]))
            near = ((shifted + reach[:, None] >= low) & (shifted - reach[:, None] <= high)).all(axis=1)
            found.append((rows[near], shifted[near]))
        return np.concatenate([rows for rows, _ in found]), np.concatenate([places for _, places in found])

    def _windings(self, reach):
        """How many cells away along each axis an image may lie that comes within reach of a place in the cell, or of one beside it."""
        if self.cell is None:
            return [(0, 0, 0)]
        most = [math.ceil(reach / length) + 1 if math.isfinite(length) else 0 for length in self.cell.lengths]
        return itertools.product(*(range(-k, k + 1) for k in most))

    def wrapped(self, points: np.ndarray) -> np.ndarray:
        """Points in the cell, where space is periodic."""
        return points if self.cell is None else self.cell.wrap(points)


def snapshot_of(source: Source) -> Snapshot:
    """The snapshot of a ``Simulation`` or of a ``Frame`` of a result."""
    if isinstance(source, Snapshot):
        return source
    if hasattr(source, "views"):
        return _of_simulation(source)
    if hasattr(source, "surfaces"):
        return _of_frame(source)
    raise TypeError(f"a measure takes a Simulation or a frame of a Result, not {source!r:.80}")


def _of_simulation(sim):
    names = ("id", "position", "quaternion", "velocity", "inverse_mass", "extent", "tag", "geometry")
    fields = sim.views.present(*names)
    movable = can_move(fields["tag"][:, STATUS])
    rows = {name: values[movable] for name, values in fields.items()}
    masses, velocity = 1.0 / rows["inverse_mass"], rows["velocity"].astype(np.float64)
    return Snapshot(
        time=sim.time,
        ids=rows["id"],
        positions=rows["position"],
        quaternions=rows["quaternion"],
        velocities=velocity[:, LINEAR],
        angular_velocities=velocity[:, ANGULAR],
        masses=masses[:, 0],
        inertias=masses[:, 1:],
        radii=rows["extent"][:, 3],
        kinds=rows["tag"][:, SHAPE],
        extents=rows["extent"][:, :3],
        geometry=rows["geometry"],
        gravity=np.array(sim.gravity, float),
        cell=sim.cell,
        dt=sim.dt,
        contact_lag=sim.contact_lag,
        table_of=lambda: sim.contacts,
        surface=lambda number: _surface(sim.geometries[number]),
        names=sim.body_names,
    )


def _surface(geometry):
    return geometry if len(geometry.child_kind) else surface_of(geometry)


def _of_frame(frame):
    rows = {name: getattr(frame, name)[frame.movable] for name in ("ids", "positions", "quaternions", "velocities", "angular_velocities")}
    rows.update({name: getattr(frame, name)[frame.movable] for name in ("masses", "inertias", "radii", "kinds", "extents", "geometry")})

    def surface(number):
        if (frame.kinds[frame.geometry == number] == COMPOUND).any():
            raise ValueError("the volume of a compound can be measured in a simulation only: a result file holds nothing but its surface")
        return frame.surfaces[number]["vertices"].astype(np.float64), frame.surfaces[number]["triangles"]

    return Snapshot(
        time=frame.time,
        **rows,
        gravity=frame.gravity,
        cell=frame.cell,
        dt=frame.dt,
        contact_lag=frame.contact_lag,
        table_of=lambda: frame.contacts,
        surface=surface,
        names=frame.body_names,
    )
