"""Results, read back: ``open_result(path)`` gives a ``Result``, whose frames look to measures like a simulation at that time.

>>> with gv.open_result("run.vtkhdf") as result:
...     print(len(result), result.times[-1], result[-1].positions.max(axis=0))

A file that is none of ours, or damaged, is refused with a ``ValueError`` that names it.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.body_names import BodyNames, rows_among
from gravel.contacts import ContactTable
from gravel.io.about import about_in, body_names_in, materials_in
from gravel.io.contact_results import GROUP, contacts_in
from gravel.io.frames import frame_in, frames_in, joints_in, reading, reports_in, seconds_in
from gravel.io.frames import open_result as open_file
from gravel.io.layout import BODIES, JOINT_FIELDS, REPORT_FIELDS
from gravel.io.validate_file import all_rows, need
from gravel.joints.table import JointTable
from gravel.model.cell import Cell
from gravel.printing import formatting, tables
from gravel.shapes.described import names_of_kinds

if TYPE_CHECKING:
    import pandas
    import xarray

REPORT_UNITS = {"residual": "m/s", "residual_rms": "m/s", "max_penetration": "m", "kinetic_energy": "J", "joint_violation": "m"}
WHOLE = {"contacts": "i8", "iterations": "i8", "converged": "?"}  # reports that are no floats


@dataclass(frozen=True, eq=False, repr=False)
class Frame:
    """The bodies of one frame, a row each, in the order of their ids; planes, which have no place, are not among them.

    - ``time`` s
    - ``dt`` s, of the step before it
    - ``gravity`` (3,) m/s2
    - ``ids`` (n,)
    - ``positions`` (n, 3) m
    - ``quaternions`` (n, 4) w x y z
    - ``velocities`` (n, 3) m/s
    - ``angular_velocities`` (n, 3) rad/s, world frame
    - ``radii`` (n,) m, of the balls around the bodies
    - ``masses`` (n,) kg; infinite for bodies that forces cannot move
    - ``inertias`` (n, 3) kg m2, principal moments; infinite likewise
    - ``movable`` (n,) bool
    - ``materials`` (n,) numbers
    - ``kinds`` (n,) numbers of shapes
    - ``extents`` (n, 3) m, sizes of shapes
    - ``geometry`` (n,) numbers in ``surfaces``, or -1
    - ``surfaces``: number -> "vertices" m, "triangles", in the frame of the body
    - ``plane_positions`` (p, 3) m
    - ``plane_normals`` (p, 3)
    - ``contact_lag`` s: the contacts were found so long before
    - ``ranks`` (n,) the processes that wrote the bodies, 0 if there was one
    - ``cell``: the periodic cell, where there is one
    """

    index: int
    time: float
    dt: float
    gravity: np.ndarray
    ids: np.ndarray
    positions: np.ndarray
    quaternions: np.ndarray
    velocities: np.ndarray
    angular_velocities: np.ndarray
    radii: np.ndarray
    masses: np.ndarray
    inertias: np.ndarray
    movable: np.ndarray
    materials: np.ndarray
    kinds: np.ndarray
    extents: np.ndarray
    geometry: np.ndarray
    surfaces: dict[int, dict[str, np.ndarray]] = field(repr=False)
    plane_positions: np.ndarray
    plane_normals: np.ndarray
    contact_lag: float
    ranks: np.ndarray
    result: "Result" = field(repr=False)
    cell: Cell | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        speeds = formatting.span(np.linalg.norm(self.velocities[self.movable], axis=1))
        return f"Frame({self.index}, t = {self.time:g} s, {len(self)} bodies" + (f", speeds {speeds} m/s)" if speeds else ")")

    def _repr_html_(self) -> str | None:
        from gravel.printing.notebook import html_of

        return html_of(self, len(self))

    @property
    def shapes(self) -> np.ndarray:
        """(n,) names of the kinds of shape, "sphere", "box" and so on."""
        return names_of_kinds(self.kinds, np.ones(len(self), bool))

    @property
    def body_names(self) -> BodyNames:
        """Name -> id of a body, or ids (n,) of a group; ``rows_of`` tells where they stand in the arrays of the frame."""
        return self.result.body_names

    def rows_of(self, which: str | ArrayLike) -> np.ndarray:
        """(n,) the rows of bodies, ``which`` a name or ids; those that are not there in this frame are left out."""
        ids = self.body_names[which] if isinstance(which, str) else checks.array("ids", np.atleast_1d(which), (None,), dtype=np.int64)
        return rows_among(self.ids, np.atleast_1d(ids))

    @cached_property
    def contacts(self) -> ContactTable:
        """The contacts of the step before the frame; refused if the run did not save them."""
        return self.result.contacts(self.index)

    @property
    def joints(self) -> JointTable:
        """The joints, one row each."""
        return self.result.joints[self.index]

    def to_pandas(self) -> "pandas.DataFrame":
        """A pandas DataFrame with a row for each body, by its id: shape, material, sizes, pose and velocities. Vectors are columns such as
        ``position_x``, and ``attrs["units"]`` has their units."""
        columns = {name: getattr(self, source) for name, (source, _) in tables.BODIES.items()}
        index = tables.need("pandas", "to_pandas").Index(self.ids, name="id")
        named = {"name": self.body_names.labels(self.ids)} if self.body_names else {}
        return tables.data_frame({**columns, "material": self.materials, "rank": self.ranks, **named}, tables.BODY_UNITS, index)


class Result:
    """An open result file; made by ``open_result``, closed at the end of its ``with`` block."""

    def __init__(self, path: str | os.PathLike):
        self.path = os.fspath(path)
        self.file = open_file(path)
        try:
            with reading(self.path):
                count = frames_in(self.file)
                need(count >= 0, "it is said to hold a negative number of frames")
                self.times = all_rows(self.file[BODIES]["Steps"], "Values", (), "f8")[:count]  # (frames,) s
                need(len(self.times) == count, f"it is said to hold {count} frames, but holds the times of {len(self.times)}")
                self.dt = checks.number("dt", self.file["gravel"].attrs["dt"], above=0.0)
                self.solver = str(self.file["gravel"].attrs["solver"])
        except ValueError:
            self.file.close()
            raise

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, index: int) -> Frame:
        return self.frame(index)

    def __iter__(self) -> Iterator[Frame]:
        return map(self.frame, range(len(self)))

    def __repr__(self) -> str:
        if not len(self):
            return f"Result({self.path!r}, 0 frames)"
        return f"Result({self.path!r}, {len(self)} frames, t = {self.times[0]:g} to {self.times[-1]:g} s)"

    def frame(self, index: int) -> Frame:
        """One frame; negative numbers count from the end."""
        index = self.place(index)
        with self.reading():
            data = frame_in(self.file, index)
        movable = data["movable"] > 0
        doubles = ("position", "quaternion", "velocity", "angular_velocity", "radius", "extent")
        position, quaternion, velocity, angular_velocity, radius, extent = (data[name].astype(np.float64) for name in doubles)
        return Frame(
            index=index,
            time=data["time"],
            dt=data["frame_dt"],
            gravity=data["gravity"],
            ids=data["id"].astype(np.int64),
            positions=position,
            quaternions=quaternion,
            velocities=velocity,
            angular_velocities=angular_velocity,
            radii=radius,
            masses=_infinite_unless(movable, data["mass"]),
            inertias=_infinite_unless(movable, data["inertia"]),
            movable=movable,
            materials=data["material"],
            kinds=data["shape"],
            extents=extent,
            geometry=data["geometry"],
            surfaces=data["geometries"],
            plane_positions=data["plane_position"],
            plane_normals=data["plane_normal"],
            contact_lag=data["contact_lag"],
            ranks=data["rank"].astype(np.int64),
            result=self,
            cell=data["cell"],
        )

    def contacts(self, index: int) -> ContactTable:
        """The contacts of the step before a frame, with their impulses (N s); force = impulse / dt."""
        index = self.place(index)
        with self.reading():
            table = contacts_in(self.file, index)
            saved = GROUP in self.file["gravel"]
        if table is None and saved:
            raise ValueError(f"{self.path} holds no contacts of frame {index}: they were not saved then, or its step was refused")
        if table is None:
            raise ValueError(f"{self.path} holds no contacts: run with sim.run(..., contacts=True) or gravel run --contacts to save them")
        return table

    @property
    def reports(self) -> np.ndarray:
        """(steps,) the reports of all steps, a structured array: ``result.reports["residual"]``."""
        with self.reading():
            columns = reports_in(self.file)
        reports = np.empty(len(columns["time"]), [(name, WHOLE.get(name, "f8")) for name in REPORT_FIELDS])
        for name, values in columns.items():
            reports[name] = values
        return reports

    def to_pandas(self) -> "pandas.DataFrame":
        """The reports of all steps as a pandas DataFrame, by time in s: ``result.to_pandas().residual.plot()``. ``attrs["units"]`` has the
        units of its columns."""
        reports = self.reports
        columns = {name: reports[name] for name in REPORT_FIELDS if name != "time"}
        return tables.data_frame(columns, REPORT_UNITS, tables.need("pandas", "to_pandas").Index(reports["time"], name="time"))

    def to_xarray(self, *names: str, frames: int | slice | Sequence[int] | None = None, memory: float = 2.0) -> "xarray.Dataset":
        """The bodies of all frames as an xarray Dataset with the dimensions time (s), body (ids) and axis; bodies that come and go are NaN
        where they are not there. ``result.to_xarray("positions").positions.sel(axis="z").mean("body")`` is the mean height over time.

        ``names``: "positions" (m), "velocities" (m/s), "quaternions", "angular_velocities" (rad/s), "radii" (m), "masses" (kg),
        "inertias" (kg m2), "materials", "ranks"; none: positions and velocities. ``frames``: a slice or a list of numbers; None: all.
        ``memory`` GB that the arrays may take; what needs more is refused before it is read."""
        from gravel.io.labelled import dataset_of

        return dataset_of(self, names, frames, memory)

    @property
    def about(self) -> dict:
        """How the run was made: version, scene, bodies, seed, script (the command line of a program of its own), dt, until (s, up to
        which it was to go), solver, tolerance (m/s), friction, precision, device, threads, processes, processor,
        started (UTC), and for each time that it was ``continued`` a dict of when and what was changed."""
        with self.reading():
            return about_in(self.file)

    @property
    def materials(self) -> list[dict[str, Any]]:
        """Name and properties of each material (``Material``), by the numbers in ``Frame.materials``."""
        with self.reading():
            return materials_in(self.file)

    @cached_property
    def body_names(self) -> BodyNames:
        """Name -> id of a body, or ids (n,) of a group, of the whole run (``Scene.add_bodies(..., name=...)``)."""
        with self.reading():
            return body_names_in(self.file)

    @property
    def stage_seconds(self) -> dict[str, np.ndarray]:
        """Stage of a step -> (steps,) s of wall clock, 0 where a step had no such stage; of several processes, those of the first."""
        with self.reading():
            return seconds_in(self.file)

    @property
    def joints(self) -> JointTable:
        """The joints of all frames, arrays (frames, joints): ``result.joints[3]`` is the table of frame 3."""
        with self.reading():
            columns = joints_in(self.file)
        if not columns["names"]:  # no joints, in each of the frames
            columns.update({name: np.empty((len(self), 0, *columns[name].shape[2:])) for name in JOINT_FIELDS})
        return JointTable(**{name: columns[name] > 0 if name == "broken" else columns[name] for name in JOINT_FIELDS})

    @property
    def joint_names(self) -> list[str]:
        """The joints in words."""
        with self.reading():
            return joints_in(self.file)["names"]

    def close(self) -> None:
        """Close the file; frames that were read stay, their contacts if they were asked for."""
        self.file.close()

    def __enter__(self) -> "Result":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """What goes wrong inside is the fault of the file."""
        if not self.file:
            raise ValueError(f"{self.path} was closed: read it inside the with block, or open it again")
        return reading(self.path)

    def place(self, index: int) -> int:
        """The number of a frame, counted from the start; refused if there is none."""
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            raise TypeError(f"frame must be a whole number, not {index!r}")
        if not len(self):
            raise IndexError(f"{self.path} holds no frames")
        if not -len(self) <= index < len(self):
            raise IndexError(f"frame must be from {-len(self)} to {len(self) - 1} for {self.path}, not {index}")
        return int(index) % len(self)


def open_result(path: str | os.PathLike) -> Result:
    """Open a result file (``sim.run(save=path)``) for reading; use it with ``with``."""
    return Result(path)


def _infinite_unless(movable, values):
    values = values.astype(np.float64)
    values[~movable] = np.inf
    return values
