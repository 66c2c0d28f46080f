"""Results of many processes, written: each writes a part file of its own bodies, and rank 0 an index that makes one time series of them.

``run.vtkhdf`` is the index, ``run.rank0003.vtkhdf`` the part of rank 3 (``gravel.io.vtkhdf`` writes it). When the run goes on with another
number of processes, a new leg begins, ``run.leg2.rank0000.vtkhdf`` and so on, and the index keeps the frames of the legs before. The index
is a VTKHDF file: its arrays are virtual and lie in the parts, by relative names, so that the folder can be moved. In its frames the bodies
of rank 0 come first, then those of rank 1 and so on, each by ids; ``gravel.io.joined``, which reads an index for gravel, sorts them by id.

The index is written to a temporary file and renamed, after all parts have got a frame: it never tells of a frame that a part lacks.
"""

import os
import pathlib
import shutil
import time
from typing import TYPE_CHECKING

import h5py
import numpy as np

from gravel.io.about import about_run
from gravel.io.index import Stretch, earlier_about, earlier_stretches, part_name, parts_named_in, removable_parts, run_of, write_index
from gravel.io.layout import ENDINGS, SPARE_BYTES
from gravel.io.outputs import check_ending, check_writable
from gravel.io.vtkhdf import ResultWriter
from gravel.running.communicator import call_on_all_ranks

if TYPE_CHECKING:
    from gravel.simulation import Simulation

QUICK = 0.1  # s: an index that is written so quickly is renewed with every frame
RARELY = 50  # one that takes longer only after so many times as long, and at the end


def result_writer(
    path: str | os.PathLike, simulation: "Simulation", contacts: bool = False, surfaces: bool | str = "auto"
) -> "ResultWriter | PartsWriter":
    """What writes the frames of a simulation to a path: a file, or parts and an index where there are many processes, or were."""
    if simulation.team.size == 1:
        place = check_writable(path)
        if not (parts_named_in(place) and earlier_stretches(place, simulation, "")):
            replaced = removable_parts(place)
            writer = ResultWriter(path, simulation, contacts, surfaces=surfaces)
            for name in replaced:
                place.with_name(name).unlink(missing_ok=True)
            return writer
    if surfaces is True:
        raise ValueError("surfaces=True goes with results of one process; of many, gravel export makes surfaces from the result")
    return PartsWriter(path, simulation, contacts)


class PartsWriter:
    """Writes frames of a simulation that many processes share; each of them has one and calls all its methods. Use it with ``with``."""

    def __init__(self, path, simulation, contacts=False):
        """``contacts``: whether each frame gets the contacts of its step, from the process that treats them."""
        self.simulation, self.team, self.with_contacts = simulation, simulation.team, contacts
        self.failed = False  # whether a frame was begun and not finished: no other may follow
        self.renewed, self.took = 0.0, 0.0  # moment of the clock, s: when the index was written, and for how long
        simulation.run_id = self.team.broadcast(simulation.run_id)
        self.movable = sum(self.team.gather(np.count_nonzero(simulation.movable)) or ())  # known to rank 0
        found = call_on_all_ranks(self.team, self._look_back, path)
        self.path, leg, keep = self.team.broadcast(found)
        self.part = None
        try:
            call_on_all_ranks(self.team, self._begin_part, leg, keep)
        except BaseException:
            self.abandon()
            raise

    def _look_back(self, path):
        """On rank 0: (path, number of the leg, frames of it that stay)."""
        if self.team.rank:
            return None
        check_ending("save", path, ENDINGS)
        self.path = check_writable(path, part_name(pathlib.Path(), 99, 9999))
        self.stale = removable_parts(self.path)
        self.stretches = earlier_stretches(self.path, self.simulation, part_name(self.path, 1, 0))
        self.about = about_run(self.simulation, self.movable, earlier_about(self.path, self.stretches))
        self.single = bool(self.stretches) and not parts_named_in(self.path)  # what is there is the file of one process
        if self.single:
            _check_free(self.path.with_name(self.stretches[0].names[0]), self.simulation.run_id)
        known = bool(self.stretches) and not self.single and self.stretches[-1].ranked
        if known:
            self._renew()  # before parts are cut, or written anew
        leg = len(self.stretches)
        goes_on = known and self.stretches[-1].names == [part_name(self.path, leg, rank) for rank in range(self.team.size)]
        leg += not goes_on
        if not goes_on:
            self.stretches.append(Stretch([part_name(self.path, leg, rank) for rank in range(self.team.size)]))
        return self.path, leg, len(self.stretches[-1])

    def _begin_part(self, leg, keep):
        path = self.path.with_name(part_name(self.path, leg, self.team.rank))
        self.part = ResultWriter(path, self.simulation, self.with_contacts, keep, self.team.rank)

    def observe(self, report):
        """Take a step's report into the record."""
        self.part.observe(report)

    def write_frame(self):
        """The present state becomes one more frame, or all processes raise what one of them met with; then no more frames are taken."""
        if self.failed:
            return
        self.failed = True
        call_on_all_ranks(self.team, self.part.write_frame)
        contacts = self.part.contact_rows if self.with_contacts else None
        told = self.team.gather((self.part.bodies, self.part.constants_at, contacts, self.part.written))
        call_on_all_ranks(self.team, self._add, told)
        self.failed = False

    def _add(self, told):
        """On rank 0: the frame is put into the index. ``told``: bodies, where constants begin, contacts and geometries of each part."""
        if self.team.rank:
            return
        last = self.stretches[-1]
        bodies, constants, contacts, last.geometries = map(list, zip(*told))
        last.times.append(self.simulation.time)
        last.bodies.append(bodies)
        last.constants.append(constants)
        last.contacts.append(contacts)
        last.look_at_head(self.part.file, len(self.part.file["gravel/time"]))
        if self.single:
            _keep_as(self.path, self.path.with_name(self.stretches[0].names[0]))
            self.single = False
        lists = [counts for stretch in self.stretches for counts in (*stretch.bodies, *stretch.contacts)]
        self._write_numbers(1 + max(sum(count or 0 for count in counts) for counts in lists))
        if self.took < QUICK or time.monotonic() - self.renewed > RARELY * self.took:
            self._renew()

    def _write_numbers(self, most):
        """So many whole numbers stand in the part of rank 0."""
        numbers = self.part.common.multiples(1)
        if len(numbers) < most:
            self.part.reserve.ask(8 * (most - len(numbers)) + SPARE_BYTES)
            self.part.common.multiples(1, most)
            self.part.file.flush()

    def _renew(self):
        """Write the index; parts that it does not name any more are removed."""
        begun = time.monotonic()
        write_index(self.path, self.stretches, self.simulation, self.about)
        for name in set(self.stale) - {name for stretch in self.stretches for name in stretch.names}:
            self.path.with_name(name).unlink(missing_ok=True)
        self.stale = []
        self.renewed = time.monotonic()
        self.took = self.renewed - begun

    def close(self):
        """The last reports are written, and the index."""
        if self.part is None or not self.part.file:
            return
        call_on_all_ranks(self.team, self.part.close)
        call_on_all_ranks(self.team, self._end)

    def _end(self):
        if self.team.rank or not len(self.stretches[-1]):
            return
        last = self.stretches[-1]
        with h5py.File(self.path.with_name(last.names[0]), "r") as part:
            last.reports = len(part["gravel/time"])
        self._renew()

    def abandon(self):
        """Close the own part, without the others."""
        if self.part is not None:
            self.part.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _check_free(path, run):
    """Refuse to give a result a name that another file has: one of this run was left behind by a kill."""
    if os.path.lexists(path) and run_of(path) != run:
        raise FileExistsError(f"output {path} is there already and is no part of this run; remove it or give another name")


def _keep_as(path, name):
    """Give a file a second name, before the index takes the first."""
    name.unlink(missing_ok=True)
    try:
        os.link(path, name)
    except OSError:  # not every disk can
        shutil.copyfile(path, name)
