"""Where the viewer's frames come from: a result file (``Recorded``) or a simulation that goes on (``Live``). Both answer the same calls:

- ``about()``: what the page should know first
- ``opening()``: which frame it shows first, what by, from where, and whether all bodies are shown
- ``frame(number)``: the arrays of a frame, as ``gravel.io.present`` gives them
- ``contacts(number)``: (the contacts of its step, the step's length in s), or None where they are not known
- ``surface(number)``: a geometry's vertices and triangles, and its kind
"""

import contextlib
import os
import pathlib
import threading
import time
import weakref
from collections import OrderedDict
from typing import NamedTuple

from gravel.errors import SimulationError
from gravel.io.contact_results import GROUP, contacts_in
from gravel.io.frames import frame_in, most_bodies_in, reports_in
from gravel.io.layout import SHAPES
from gravel.io.present import frame_of
from gravel.io.result import open_result
from gravel.io.triangles import kind_of, surface_of
from gravel.view.colouring import COLOURS
from gravel.view.viewer import opening, thinning
from gravel.view.viewer.wire import LAYOUT, key_of

FRAMES_KEPT = 6
FRAMES_A_SECOND = 30  # of a simulation that goes on, at most


class Recorded:
    """The frames of a result file, which is open only while it is read, so that a run may write it in between."""

    live = False

    def __init__(self, path, bodies=thinning.MOST):
        """``bodies``: how many are shown at most."""
        self.path = os.path.abspath(path)
        self.most, self.share = thinning.most_of(bodies), 1.0
        self._alone = threading.Lock()
        self._run = None
        self._kept = OrderedDict()  # frames that were read last, by number
        self._surfaces = {}  # of frames that were read: geometry -> (vertices and triangles, kind)
        self.about()

    def about(self):
        with self._alone, open_result(self.path) as result:
            if not len(result):
                raise ValueError(f"{self.path} holds no frames to look at")
            self._look_at(result)
            has_contacts = GROUP in result.file["gravel"]
            return {
                "title": pathlib.Path(self.path).name,
                "path": self.path,
                "live": False,
                "times": result.times.tolist(),
                "colours": [name for name in COLOURS if name != "contacts" or has_contacts],
                "contacts": has_contacts,
            }

    def _look_at(self, result):
        """Forget what was read of another run, or of another choice of bodies."""
        with result.reading():
            share = thinning.share_of(most_bodies_in(result.file), self.most)
        if (_run_of(result), share) != (self._run, self.share):
            self._run, self.share = _run_of(result), share
            self._kept.clear()
            self._surfaces.clear()

    def opening(self):
        with self._opened() as result, result.reading():
            reports, times = reports_in(result.file), result.times
        number = opening.lively_frame(times, reports["time"], reports["kinetic_energy"])
        first, data = self._readable([number, 0])
        others = {0, len(times) - 1} - {first} if len(data["id"]) < opening.MANY else ()
        box = opening.box_of([data, *(self._readable([other, first])[1] for other in others)])
        return {"first": first, "colour": opening.colour_of(data), "box": box, **_shown_of(data)}

    def _readable(self, numbers):
        """The first of some frames that can be read, and its number: one that is damaged keeps nobody from the others."""
        for number in numbers[:-1]:
            with contextlib.suppress(ValueError):
                return number, self.frame(number)
        return numbers[-1], self.frame(numbers[-1])

    @contextlib.contextmanager
    def _opened(self):
        """The result, if it is still of the run that ``about`` told of."""
        with self._alone, open_result(self.path) as result:
            if _run_of(result) != self._run:
                raise ValueError(f"{self.path} has become the result of another run: load the page again")
            yield result

    def frame(self, number):
        with self._opened() as result:
            number = result.place(number)
            if number not in self._kept:
                self._read(result, number)
                while len(self._kept) > FRAMES_KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(number)
            return self._kept[number]

    def _read(self, result, number):
        before = next(reversed(self._kept.values()), None)
        with result.reading():
            data = self._kept[number] = frame_in(result.file, number, before, thinning.chooser(self.share))
        if self.share < 1.0:
            data["share"] = self.share
        if before is not None and all(data[name] is before[name] for name in LAYOUT):
            data["layout_key"] = before["layout_key"]
        else:
            data["layout_key"] = key_of(data)
        for geometry in data["geometries"].keys() - self._surfaces.keys():
            self._surfaces[geometry] = data["geometries"][geometry], int(data["shape"][data["geometry"] == geometry][0])

    def contacts(self, number):
        dt = self.frame(number)["frame_dt"]
        with self._opened() as result, result.reading():
            table = contacts_in(result.file, result.place(number))
        return None if table is None else (table, dt)  # a part of the run may have been made without them

    def surface(self, number):
        return self._surfaces[int(number)]

    def close(self):
        """Nothing is open."""


def _shown_of(data):
    """How many of the bodies that can move are shown."""
    shown = int((data["movable"] > 0).sum())
    return {"shown": shown, "moving": data.get("moving", shown)}


def _run_of(result):
    with result.reading():
        return result.file["gravel"].attrs["run"]


class Now(NamedTuple):
    """A state of a simulation."""

    data: dict  # its frame
    step: int
    contacts: tuple | None  # (their table, dt), if a page has asked for them


class Live:
    """The present state of a simulation. The simulation calls it after each step; it takes a frame if a page waits for one, and keeps the
    simulation waiting while a page has paused it."""

    live = True

    def __init__(self, simulation, title="simulation", result=None, bodies=thinning.MOST):
        self.title, self.result, self.most = title, result, thinning.most_of(bodies)
        self.changed = lambda: None  # is called when a page should ask again
        self.wanted = True  # whether a page waits for a new frame
        self.paused = self.finished = False
        self.steps_asked = 0
        self._simulation = weakref.ref(simulation)
        self._go = threading.Condition()
        self._last = 0.0
        self.wants_contacts = True  # whether a page has asked for contacts: listing them costs a little
        self.take(simulation)
        self.wants_contacts = False

    def about(self):
        return {
            "title": self.title,
            "path": self.result or "RESULT",
            "live": True,
            "times": [self.now.data["time"]],
            "colours": list(COLOURS),
            "contacts": True,
            "shapes": [name.lower() for name in SHAPES],
        }

    def opening(self):
        data = self.now.data
        return {"first": 0, "colour": opening.colour_of(data, live=True), "box": opening.box_of([data]), **_shown_of(data)}

    def renew(self):
        """The present state of the simulation becomes the frame, whether a page waits for it or not."""
        if (simulation := self._simulation()) is not None:
            self.take(simulation)

    def take(self, simulation):
        """The present state becomes the frame."""
        table = self._contacts_now(simulation) if self.wants_contacts else None
        self.now = Now(thinning.thinned(frame_of(simulation), self.most), simulation.steps, table)  # at once: other threads read it
        self.geometries = list(simulation.geometries)
        self._last = time.monotonic()
        self.wanted = False
        self.changed()

    def _contacts_now(self, simulation):
        try:
            return simulation.contacts, simulation.dt
        except SimulationError:  # a step was refused: nobody knows the contacts
            return None

    def __call__(self, simulation):
        """After a step."""
        due = time.monotonic() - self._last >= 1.0 / FRAMES_A_SECOND
        if (self.wanted and due) or self.paused:
            self.take(simulation)
        while self.paused and not self.steps_asked:
            with self._go:
                self._go.wait(0.1)  # so that Ctrl-C is heard
            if self.wanted:
                self.take(simulation)
        self.steps_asked = max(self.steps_asked - 1, 0)

    def pause(self):
        self._tell(paused=True)

    def play(self):
        self._tell(paused=False)

    def single(self):
        """One step, then wait again."""
        self._tell(paused=True, steps=1)

    def _tell(self, paused, steps=0):
        with self._go:
            self.paused = paused
            self.steps_asked = steps
            self._go.notify_all()
        self.wanted = True
        self.changed()

    def rest(self, simulation):
        """A run has ended, for now: show its last state, with all that can be asked of it."""
        wanted, self.wants_contacts = self.wants_contacts, True
        self.take(simulation)
        self.wants_contacts = wanted

    def finish(self, simulation):
        """The run is over for good: show its last state, and hold nobody up any more."""
        self.finished = True
        self._tell(paused=False)
        self.rest(simulation)

    def frame(self, number):
        return self.now.data

    def contacts(self, number):
        if self.now.contacts is None and not self.wants_contacts:  # the next frame has them
            self.wants_contacts = self.wanted = True
        return self.now.contacts

    def surface(self, number):
        geometry = self.geometries[int(number)]
        return surface_of(geometry)._asdict(), kind_of(geometry)

    def close(self):
        self.play()
