"""What a result tells of its run beside the frames: how it was made, its materials, what each stage of its steps took, where joints sit.

All of it stands in the group ``gravel``: the attribute ``about`` (JSON), ``materials`` (a row for each, its columns named in the attribute
``columns``) and ``material_names`` (the bytes of a list in JSON), ``body_names`` (likewise, of a dict: name -> id, or the first id and that
behind the last), ``stage_seconds`` (a row for each step, a column for each stage), and in ``joints`` the anchors, a row a joint.
"""

import datetime
import functools
import json
import math
import pathlib
import platform
import shlex
import sys

import numpy as np

from gravel.body_names import BodyNames
from gravel.io.present import joint_anchors, joint_kind
from gravel.io.validate_file import all_rows, need, rows_of, stored
from gravel.model.materials import PROPERTIES

ABOUT, MATERIALS, NAMES, STAGES = "about", "materials", "material_names", "stage_seconds"
BODY_NAMES = "body_names"
NUMBERS = ("dt", "time", "until", "tolerance", "rms_tolerance")  # kinds of what is told
WHOLE = ("bodies", "seed", "threads", "processes")
TEXTS = ("version", "scene", "script", "solver", "friction", "precision", "device", "joints", "processor", "started")
ALWAYS_TOLD = ("version", "bodies", "dt", "solver", "tolerance", *("friction", "precision", "device", "threads", "processes", "started"))
ANCHORS = {"body_a": ((), "i8"), "body_b": ((), "i8"), "point_a": ((3,), "f8"), "point_b": ((3,), "f8"), "axis": ((3,), "f8")}


# --- how it was made
@functools.cache
def processor() -> str:
    """The name of the CPU."""
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def script() -> str | None:
    """The command line of the script or module that Python runs, without the folders that it lies in; None in a notebook or at a prompt."""
    main = sys.modules.get("__main__")
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return shlex.join(["python", "-m", spec.name.removesuffix(".__main__"), *sys.argv[1:]])
    return shlex.join(["python", pathlib.Path(file).name, *sys.argv[1:]]) if file else None


def about_run(simulation, bodies, before=None):
    """A dict of how a simulation is made, as it is now. ``bodies``: how many can move, on all processes, for scenes that do not tell.
    ``before``: what an earlier part of the run told, which stays; then what has changed since, and when the run went on, is the last item
    of ``continued``."""
    from gravel import __version__

    now = {
        "version": __version__,
        **{"scene": None, "bodies": int(bodies), "seed": None},
        **simulation.origin,
        "script": None if simulation.origin else script(),
        "dt": simulation.dt,
        "until": simulation.until,
        "solver": simulation.solver.describe(),
        "tolerance": simulation.tolerance,
        "rms_tolerance": simulation.rms_tolerance if math.isfinite(simulation.rms_tolerance) else None,
        **{name: getattr(simulation, name) for name in ("friction", "precision", "device", "threads")},
        "joints": simulation.joint_mode,
        "processes": simulation.team.size,
        "processor": processor(),
        "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }
    if before is None:
        return {**now, "continued": []}
    earlier = {**before, **{name: value for leg in before["continued"] for name, value in leg.items()}}
    kept = ("started", "script", *(() if simulation.origin else ("scene", "bodies", "seed")))
    changed = {name: value for name, value in now.items() if name not in kept and earlier.get(name) != value}
    return {**before, "continued": [*before["continued"], {"time": simulation.time, "started": now["started"], **changed}]}


def about_in(file):
    """What an open result tells of its run, as a dict."""
    about = json.loads(file["gravel"].attrs[ABOUT])
    need(isinstance(about, dict) and isinstance(about.get("continued"), list), "it does not tell how it was made")
    need(all(isinstance(leg, dict) and {"time", "started"} <= set(leg) for leg in about["continued"]), "it does not tell how it went on")
    missing = [name for name in ALWAYS_TOLD if about.get(name) is None]
    need(not missing, f"it does not tell its {', '.join(missing)}")
    for told in (about, *about["continued"]):
        for name, value in told.items():
            need(value is None or _can_be(name, value), f"its {name} cannot be {value!r:.80}")
    return about


def _can_be(name, value):
    """Whether a value is of the kind that readers take it for."""
    if name in NUMBERS:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if name in WHOLE:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return name not in TEXTS or isinstance(value, str)


def write_about(own, about):
    own.attrs[ABOUT] = json.dumps(about)


# --- materials
def write_materials(own, simulation):
    """The materials by the numbers that bodies have, if there are others than the file has."""
    values = [getattr(kind, name) for kind in simulation.materials.kinds for name in PROPERTIES]
    rows = np.array(values, float).reshape(-1, len(PROPERTIES))
    if MATERIALS not in own:
        own.create_dataset(NAMES, (0,), "u1", maxshape=(None,), chunks=(1024,))
        own.create_dataset(MATERIALS, rows.shape, "f8", maxshape=(None, len(PROPERTIES)), chunks=(64, len(PROPERTIES)))
        own[MATERIALS].attrs["columns"] = PROPERTIES
    elif own[MATERIALS].shape == rows.shape:
        return
    own[MATERIALS].resize(len(rows), axis=0)
    own[MATERIALS][:] = rows
    _write_words(own[NAMES], [kind.name for kind in simulation.materials.kinds])


def _write_words(data, words):
    """A list or dict as the bytes of its JSON."""
    content = np.frombuffer(json.dumps(words).encode(), "u1")
    data.resize(len(content), axis=0)
    data[:] = content


# --- names of bodies
def write_body_names(own, names):
    """The names of bodies, if there are others than the file has: they only get more."""
    if BODY_NAMES not in own:
        own.create_dataset(BODY_NAMES, (0,), "u1", maxshape=(None,), chunks=(1024,))
    elif own[BODY_NAMES].attrs["number"] == len(names):
        return
    own[BODY_NAMES].attrs["number"] = len(names)
    _write_words(own[BODY_NAMES], names.to_values())


def body_names_in(file):
    """The names of the bodies of an open result; none in results of versions before 0.13."""
    if BODY_NAMES not in file["gravel"]:
        return BodyNames()
    return BodyNames.from_values(json.loads(all_rows(file["gravel"], BODY_NAMES, (), "u1").tobytes()))


def materials_in(file):
    """A dict for each material of an open result: its name, density and so on, in the units of ``Material``."""
    columns = list(stored(file["gravel"], MATERIALS).attrs["columns"])
    rows = all_rows(file["gravel"], MATERIALS, (len(columns),), "f8").tolist()
    return [{"name": name, **dict(zip(columns, row))} for name, row in zip(material_names_in(file), rows)]


def material_names_in(file):
    """The names of the materials of an open result, by their numbers; empty for those that have none."""
    names = json.loads(all_rows(file["gravel"], NAMES, (), "u1").tobytes())
    fit = isinstance(names, list) and len(names) == len(stored(file["gravel"], MATERIALS)) and all(isinstance(n, str) for n in names)
    need(fit, "the names of its materials do not fit them")
    return names


# --- seconds of stages
class StageSeconds:
    """Gathers the seconds that stages of steps take, and writes them now and then."""

    def __init__(self, own):
        if STAGES not in own:
            own.create_dataset(STAGES, (0, 0), "f4", maxshape=(None, None), chunks=(1024, 16))
            own[STAGES].attrs["columns"] = []
        self.data, self.names, self.steps = own[STAGES], list(own[STAGES].attrs["columns"]), []

    def observe(self, seconds):
        self.steps.append(seconds)

    def flush(self):
        """Append the steps since the last time; a stage that is new gets a column, which is 0 before."""
        new = [name for name in dict.fromkeys(name for seconds in self.steps for name in seconds) if name not in self.names]
        if new:
            self.names += new
            self.data.attrs["columns"] = self.names
            self.data.resize(len(self.names), axis=1)
        before = len(self.data)
        self.data.resize(before + len(self.steps), axis=0)
        if self.steps:
            self.data[before:] = [[seconds.get(name, 0.0) for name in self.names] for seconds in self.steps]
        self.steps.clear()


def stage_seconds_in(part):
    """Stage -> (steps,) s, of an open result of one process."""
    names = list(stored(part["gravel"], STAGES).attrs["columns"])
    rows = all_rows(part["gravel"], STAGES, (len(names),), "f4").astype(np.float64)
    return dict(zip(names, rows.T))


# --- where joints sit
def lay_out_anchors(group):
    for name, (shape, dtype) in ANCHORS.items():
        group.create_dataset(name, (0, *shape), dtype, maxshape=(None, *shape), chunks=(256, *shape))


def write_anchors(group, mechanism):
    """The anchors of all joints, if there are others than the file has."""
    if list(group.attrs.get("names", [])) == mechanism.names:
        return
    group.attrs["names"] = mechanism.names
    anchors = joint_anchors(mechanism)
    for name in ANCHORS:
        group[name].resize(len(mechanism), axis=0)
        group[name][:] = anchors[name]


def anchors_in(group, frame):
    """Where the joints of a frame sit (``gravel.io.present.joint_anchors``); those that came later are left out."""
    broken, names = stored(group, "broken"), list(group.attrs.get("names", []))
    need(broken.ndim == 2 and broken.shape[1] == len(names) and broken.dtype.kind == "f", "its joints are not counted")
    row = broken[frame] if frame < len(broken) else np.full(len(names), np.nan)
    there = np.flatnonzero(~np.isnan(row))
    columns = {name: rows_of(group, name, slice(0, len(names)), *of)[there] for name, of in ANCHORS.items()}
    return {"kind": [joint_kind(names[k]) for k in there], **columns, "broken": row[there] > 0}
