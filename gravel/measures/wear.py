"""Maps of pressure, sliding work and wear on the surface of one body, after Archard (1953), gathered over a run."""

import math
import os
import pathlib
from typing import Any

import numpy as np

from gravel import checks
from gravel.io.outputs import check_writable, replaced
from gravel.measures.body_surface import surface_of_body
from gravel.measures.machines import body_of
from gravel.measures.snapshot import Source, snapshot_of
from gravel.measures.units import measured_in
from gravel.printing import formatting
from gravel.rotations import conjugate, from_rotation_vector, multiply, rotate

ENDINGS = (".vtp", ".csv")
QUANTITIES = {  # that a map can show, and their units
    "pressure": "Pa",
    "peak_pressure": "Pa",
    "force": "N",
    "sliding_work": "J",
    "work_density": "J/m2",
    "wear_volume": "m3",
    "wear_depth": "m",
}


@measured_in("J")
class WearMap:
    r"""Pressure and wear on the triangles of one body: ``observers=[WearMap(sim, "liner", coefficient=1e-4, hardness=2e9)]``.

    Each contact belongs to the triangle nearest to its point (on an edge, the one that faces it). Between two calls, $\Delta t$ apart,
    it adds to it

    - the normal force: $F_n \, \Delta t$, whose sum over the time is ``force`` N, and ``pressure`` Pa over the triangle's area
    - the sliding work: $F_t \cdot u \, \Delta t$ (``sliding_work``, J; ``work_density``, J/m2), with the friction $F_t$ on the body and the
      velocity $u$ of the other body's surface relative to this one's, along it
    - Archard's wear: $V = k F_n |u| \Delta t / H$ (``wear_volume``, m3; ``wear_depth`` m is that over the area), where friction is at its
      limit. ``coefficient`` k has no unit (1e-8 to 1e-2), ``hardness`` H is that of the softer surface, Pa.

    ``body``: its name or id. ``edge`` m: triangles are cut until no edge is longer; None: those of meshes and hulls stay as they are, other
    shapes are cut into about 24 pieces along their longest side, planes into those of a square around all bodies. ``triangles`` (t, 3) and
    ``vertices`` (v, 3) m are in the frame of the body, all numbers (t,). Forces act at points: where grains are larger than triangles, only
    the mean over many of them, or over a long time, is a pressure.

    Call it in every step; at every frame of a result whose contacts were saved, it takes those of a frame for all of the time since the
    frame before (``WearMap.of_frames``). Each call returns the sliding work so far, J."""

    def __init__(
        self,
        source: Source,
        body: str | int,
        coefficient: float | None = None,
        hardness: float | None = None,
        edge: float | None = None,
    ):
        if (coefficient is None) != (hardness is None):
            raise ValueError("coefficient and hardness go together: Archard's wear is coefficient times force times way over hardness")
        self.coefficient = None if coefficient is None else checks.number("coefficient", coefficient, above=0.0)
        self.hardness = None if hardness is None else checks.number("hardness", hardness, above=0.0)
        if edge is not None:
            edge = checks.number("edge", edge, above=0.0)
        if hasattr(source, "processes") and source.processes.size > 1:
            raise ValueError("a WearMap follows a simulation of one process; of many, make it of the frames of their result")
        self.name, self.body = str(body), body_of(source, body)
        self.surface = surface_of_body(source, self.body, edge)
        self.start = self.time = float(source.time)  # s
        count = len(self.surface.triangles)
        self._impulse, self._work, self._way, self._peak = (np.zeros(count) for _ in range(4))  # N s, J, N m, N

    @classmethod
    def of_frames(cls, frames: Any, body: str | int, **options: Any) -> "WearMap":
        """The map of some frames: of a ``Result``, or a list of its frames; options as of ``WearMap``."""
        made = None
        for frame in frames:
            if made is None:
                made = cls(frame, body, **options)
            else:
                made(frame)
        if made is None:
            raise ValueError("frames must be at least one, not 0")
        return made

    def __call__(self, source: Source) -> float:
        """Take in what acted since the last call; returns the sliding work so far, J."""
        snapshot = snapshot_of(source)
        span, self.time = snapshot.time - self.time, snapshot.time
        if span > 0:
            self._add(source, snapshot, span)
        return float(self._work.sum())

    def _add(self, source, snapshot, span):
        table = snapshot.contacts
        table = table[(table.body_a == self.body) | (table.body_b == self.body)]
        push = np.einsum("ci,ci->c", table.normal, table.impulse) / snapshot.dt
        table, push = table[push > 0], push[push > 0]
        if not len(table):
            return
        own = np.where(table.body_a == self.body, table.body_a, table.body_b)
        other = table.body_a + table.body_b - own
        position, velocity, spin = _motion(source, np.array([self.body]))
        place = snapshot.arms(table.point - (position - snapshot.contact_lag * velocity))
        turn = multiply(from_rotation_vector(-snapshot.contact_lag * spin[0]), _quaternion(source, self.body))
        local = rotate(conjugate(turn), place)
        there, theirs, turning = _motion(source, other)
        arm = snapshot.arms(table.point - (there - snapshot.contact_lag * theirs))
        slip = theirs + np.cross(turning, arm) + _carried(source, other, arm)
        slip -= velocity + np.cross(spin, place) + _carried(source, own, place)
        slip -= np.einsum("ci,ci->c", slip, table.normal)[:, None] * table.normal
        force = np.where(table.body_b == self.body, 1.0, -1.0)[:, None] * table.impulse / snapshot.dt
        work = np.maximum(np.einsum("ci,ci->c", force, slip), 0.0)  # along the slip the force has no normal part
        speed = np.where(table.sliding, np.linalg.norm(slip, axis=1), 0.0)
        slack = np.abs(table.gap) + 1e-6 * float(np.ptp(self.vertices, axis=0).max())  # points lie halfway between the surfaces
        triangle, count = self.surface.touched(local, rotate(conjugate(turn), table.normal), slack), len(self.triangles)
        now = np.bincount(triangle, push, count)
        self._impulse += now * span
        self._peak = np.maximum(self._peak, now)
        self._work += np.bincount(triangle, work, count) * span
        self._way += np.bincount(triangle, push * speed, count) * span

    # --- what was found
    @property
    def vertices(self) -> np.ndarray:
        """(v, 3) m, in the frame of the body."""
        return self.surface.vertices

    @property
    def triangles(self) -> np.ndarray:
        """(t, 3) rows of ``vertices``."""
        return self.surface.triangles

    @property
    def areas(self) -> np.ndarray:
        """(t,) m2."""
        return self.surface.areas

    @property
    def duration(self) -> float:
        """s, from when it was made to its last call."""
        return self.time - self.start

    @property
    def force(self) -> np.ndarray:
        """(t,) N: the normal force on each triangle, mean over the duration."""
        return self._impulse / self.duration if self.duration > 0 else self._impulse

    @property
    def pressure(self) -> np.ndarray:
        """(t,) Pa: the same over its area."""
        return self.force / self.areas

    @property
    def peak_pressure(self) -> np.ndarray:
        """(t,) Pa: the largest of all calls."""
        return self._peak / self.areas

    @property
    def sliding_work(self) -> np.ndarray:
        """(t,) J that friction has turned into heat."""
        return self._work

    @property
    def work_density(self) -> np.ndarray:
        """(t,) J/m2."""
        return self._work / self.areas

    @property
    def wear_volume(self) -> np.ndarray:
        """(t,) m3, after Archard."""
        if self.coefficient is None or self.hardness is None:
            raise ValueError("wear needs coefficient and hardness of Archard's law: WearMap(sim, body, coefficient=..., hardness=...)")
        return self.coefficient * self._way / self.hardness

    @property
    def wear_depth(self) -> np.ndarray:
        """(t,) m: the same over the area."""
        return self.wear_volume / self.areas

    def quantity(self, name: str) -> np.ndarray:
        """(t,) one of pressure, peak_pressure, force, sliding_work, work_density, wear_volume, wear_depth."""
        return getattr(self, checks.choice("quantity", name, tuple(QUANTITIES)))

    def __repr__(self) -> str:
        totals = {"force": formatting.rough(self.force.sum()), "sliding_work": formatting.rough(self._work.sum())}
        if self.coefficient is not None:
            totals["wear_volume"] = formatting.rough(self.wear_volume.sum())
        return formatting.call(self, body=self.name, triangles=len(self.triangles), duration=formatting.rough(self.duration), **totals)

    # --- files
    def save(self, path: str | os.PathLike) -> pathlib.Path:
        """Write the map: .vtp for ParaView and PyVista, triangles in the frame of the body with all quantities as cell data; or .csv, a row
        for each triangle with its middle (m), area (m2) and quantities."""
        place = check_writable(path, ".part")
        if place.suffix.lower() not in ENDINGS:
            raise ValueError(f"path of a map must end with {' or '.join(ENDINGS)}, not {os.fspath(path)!r:.80}")
        names = [name for name in QUANTITIES if self.coefficient is not None or not name.startswith("wear")]
        columns = {"area": self.areas, **{name: self.quantity(name) for name in names}}
        text = _vtp(self.vertices, self.triangles, columns) if place.suffix.lower() == ".vtp" else _csv(self.surface.corners, columns)
        with replaced(place) as whole:
            whole.write_text(text, encoding="utf-8")
        return place


def _motion(source, bodies):
    """(positions, velocities, angular velocities), each (n, 3), of bodies by id. Planes of a frame, which have no row, rest at zero."""
    if hasattr(source, "views"):
        return tuple(np.array(values[bodies], float) for values in (source.positions, source.velocities, source.angular_velocities))
    order = np.argsort(source.ids, kind="stable")
    row = order[np.minimum(np.searchsorted(source.ids, bodies, sorter=order), len(order) - 1)]
    here = (source.ids[row] == bodies)[:, None]
    return tuple(np.where(here, values[row], 0.0) for values in (source.positions, source.velocities, source.angular_velocities))


def _quaternion(source, body):
    return np.array(source.quaternions[body if hasattr(source, "views") else int(np.flatnonzero(source.ids == body)[0])], float)


def _carried(source, bodies, arms):
    """(n, 3) m/s that the surfaces of bodies move beside the bodies themselves: belts. Frames do not tell it."""
    result = np.zeros((len(bodies), 3))
    for body, surface in getattr(source, "surfaces", {}).items() if hasattr(source, "views") else ():
        rows = np.flatnonzero(bodies == body)
        if not len(rows):
            continue
        own = np.ravel(surface(source.time) if callable(surface) else surface).astype(float)
        along, about = own[:3], own[3:] if len(own) == 6 else np.zeros(3)
        turn = _quaternion(source, body)
        result[rows] = rotate(turn, along) + np.cross(rotate(turn, about), arms[rows])
    return result


def _vtp(vertices, triangles, columns):
    """VTK's XML of triangles with numbers."""

    def array(name, values, kind, width=""):
        words = " ".join(map(_word, np.ravel(values).tolist()))
        return f'        <DataArray type="{kind}" Name="{name}"{width} format="ascii">{words}</DataArray>'

    cells = [array(name, values, "Float64") for name, values in columns.items()]
    return "\n".join(
        [
            '<?xml version="1.0"?>',
            '<VTKFile type="PolyData" version="0.1" byte_order="LittleEndian">',
            "  <PolyData>",
            f'    <Piece NumberOfPoints="{len(vertices)}" NumberOfPolys="{len(triangles)}">',
            "      <Points>",
            array("Points", vertices, "Float64", ' NumberOfComponents="3"'),
            "      </Points>",
            "      <Polys>",
            array("connectivity", triangles, "Int64"),
            array("offsets", 3 * np.arange(1, len(triangles) + 1), "Int64"),
            "      </Polys>",
            "      <CellData>",
            *cells,
            "      </CellData>",
            "    </Piece>",
            "  </PolyData>",
            "</VTKFile>\n",
        ]
    )


def _csv(corners, columns):
    units = {"x": "m", "y": "m", "z": "m", "area": "m2", **QUANTITIES}
    table = np.column_stack([corners.mean(axis=1), *columns.values()])
    names = ["x", "y", "z", *columns]
    rows = (",".join(map(_word, row)) for row in table.tolist())
    return "\n".join([",".join(names), "# " + ",".join(units[name] for name in names), *rows]) + "\n"


def _word(value):
    return repr(value) if not isinstance(value, float) or math.isfinite(value) else "nan"
