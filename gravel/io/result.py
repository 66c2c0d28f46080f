"""Results, read back: ``open_result(path)`` gives a ``Result``, whose frames look to measures like a simulation at that time.

>>> with gv.open_result("run.vtkhdf") as result:
...     print(len(result), result.times[-1], result[-1].positions.max(axis=0))

A file that is none of ours, or damaged, is refused with a ``ValueError`` that names it.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gravel import checks
from gravel.cell import Cell
from gravel.contacts import ContactTable
from gravel.io.contact_results import GROUP, contacts_in
from gravel.io.sound import all_rows, need
from gravel.io.vtkhdf import JOINT_FIELDS, REPORT_FIELDS, frame_in, frames_in, joints_in, reading, reports_in
from gravel.io.vtkhdf import open_result as open_file
from gravel.joints.table import JointTable
from gravel.shapes.described import names_of_kinds

WHOLE = {"contacts": "i8", "iterations": "i8", "converged": "?"}  # reports that are no floats


@dataclass(frozen=True, eq=False)
class Frame:
    """The bodies of one frame, a row each, in the order of their ids; planes, which have no place, are not among them."""

    index: int
    time: float  # s
    dt: float  # s, of the step before it
    gravity: np.ndarray  # (3,) m/s2
    ids: np.ndarray  # (n,)
    positions: np.ndarray  # (n, 3) m
    quaternions: np.ndarray  # (n, 4) w x y z
    velocities: np.ndarray  # (n, 3) m/s
    angular_velocities: np.ndarray  # (n, 3) rad/s, world frame
    radii: np.ndarray  # (n,) m, of the balls around the bodies
    masses: np.ndarray  # (n,) kg; infinite for bodies that forces cannot move
    inertias: np.ndarray  # (n, 3) kg m2, principal moments; infinite likewise
    movable: np.ndarray  # (n,) bool
    materials: np.ndarray  # (n,) numbers
    kinds: np.ndarray  # (n,) numbers of shapes
    extents: np.ndarray  # (n, 3) m, sizes of shapes
    geometry: np.ndarray  # (n,) numbers in ``surfaces``, or -1
    surfaces: dict[int, dict[str, np.ndarray]] = field(repr=False)  # number -> "vertices" m, "triangles", in the frame of the body
    plane_positions: np.ndarray  # (p, 3) m
    plane_normals: np.ndarray  # (p, 3)
    contact_lag: float  # s: the contacts were found so long before
    ranks: np.ndarray  # (n,) the processes that wrote the bodies, 0 if there was one
    result: "Result" = field(repr=False)
    cell: Cell | None = None  # the periodic cell, where there is one

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def shapes(self) -> np.ndarray:
        """(n,) names of the kinds of shape, "sphere", "box" and so on."""
        return names_of_kinds(self.kinds, np.ones(len(self), bool))

    @cached_property
    def contacts(self) -> ContactTable:
        """The contacts of the step before the frame; refused if the run did not save them."""
        return self.result.contacts(self.index)

    @property
    def joints(self) -> JointTable:
        """The joints, one row each."""
        return self.result.joints[self.index]


class Result:
    """An open result file; made by ``open_result``, closed at the end of its ``with`` block."""

    def __init__(self, path: str | os.PathLike):
        self.path = os.fspath(path)
        self.file = open_file(path)
        try:
            with reading(self.path):
                count = frames_in(self.file)
                need(count >= 0, "it is said to hold a negative number of frames")
                self.times = all_rows(self.file["VTKHDF/Steps"], "Values", (), "f8")[:count]  # (frames,) s
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
        return f"Result({self.path!r}, {len(self)} frames)"

    def frame(self, index: int) -> Frame:
        """One frame; negative numbers count from the end."""
        index = self._place(index)
        with self._open():
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
        index = self._place(index)
        with self._open():
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
        with self._open():
            columns = reports_in(self.file)
        reports = np.empty(len(columns["time"]), [(name, WHOLE.get(name, "f8")) for name in REPORT_FIELDS])
        for name, values in columns.items():
            reports[name] = values
        return reports

    @property
    def joints(self) -> JointTable:
        """The joints of all frames, arrays (frames, joints): ``result.joints[3]`` is the table of frame 3."""
        with self._open():
            columns = joints_in(self.file)
        if not columns["names"]:  # no joints, in each of the frames
            columns.update({name: np.empty((len(self), 0, *columns[name].shape[2:])) for name in JOINT_FIELDS})
        return JointTable(**{name: columns[name] > 0 if name == "broken" else columns[name] for name in JOINT_FIELDS})

    @property
    def joint_names(self) -> list[str]:
        """The joints in words."""
        with self._open():
            return joints_in(self.file)["names"]

    def close(self) -> None:
        """Close the file; frames that were read stay, their contacts if they were asked for."""
        self.file.close()

    def __enter__(self) -> "Result":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _open(self):
        """What goes wrong inside is the fault of the file."""
        if not self.file:
            raise ValueError(f"{self.path} was closed: read it inside the with block, or open it again")
        return reading(self.path)

    def _place(self, index):
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            raise TypeError(f"frame must be a whole number, not {index!r}")
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
