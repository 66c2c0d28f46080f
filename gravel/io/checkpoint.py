"""Checkpoints: everything that a bitwise continuation needs, in one HDF5 file; and copies of a simulation, which are made by way of one.

Written to a temporary file and renamed, so that a killed run leaves the last good one. The file ends with a seal, the SHA-256 of all
that stands before it: a single bit that has changed anywhere is found before the file is opened. What a file with a good seal holds is
looked at all the same (``sound``), for seals can be made by others. A file that is foreign, truncated, damaged or of another version is
refused with a ``ValueError`` that names it and the reason.
"""

import dataclasses
import hashlib
import io
import json
import math
import os
import pathlib
import re

import h5py
import numpy as np

from gravel.cell import Cell
from gravel.contacts import ContactTable
from gravel.engine import checked_threads
from gravel.errors import MissingFunctionError
from gravel.io import sound
from gravel.io.sound import DAMAGE
from gravel.io.vtkhdf import check_ending, check_room, check_writable
from gravel.materials import Material, Materials
from gravel.motion import ConstantVelocity, Oscillation, surface_of
from gravel.scene import Scene
from gravel.shapes.geometry import Geometries, Geometry
from gravel.sleep import Sleep
from gravel.solvers import SOLVERS
from gravel.state import FIELDS, Bodies

SPARE_BYTES = 1_000_000  # for what is not in the arrays
VERSION = 9
ENDINGS = (".h5", ".hdf5", ".hdf")
MAGIC = b"\x89HDF"
SEAL, SEAL_BYTES = b"gravel checkpoint, sha256 ", 90
CHUNK = 1 << 24  # bytes that are read at once
SETTINGS = (
    "dt",
    "broad_phase",
    "device",
    "precision",
    "friction",
    "margin",
    "recovery",
    "recovery_speed",
    "warm_start",
    "restitution_threshold",
    "ellipsoid_method",
    "integrator",
)
MOTIONS = {"ConstantVelocity": ConstantVelocity, "Oscillation": Oscillation}


def save(simulation, path):
    """Write a checkpoint of a simulation."""
    path = check_path(path)
    arrays, description = _arrays(simulation), _description(simulation)
    check_room(path, SPARE_BYTES + sum(array.nbytes for array in arrays.values()))
    temporary = path.with_name(path.name + ".part")
    try:
        with h5py.File(temporary, "w") as file:
            _write(file, arrays, description)
        _seal(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_path(path):
    """Refuse a path that a checkpoint cannot be written to; returns it, of a symbolic link what it leads to."""
    writable = check_writable(path, ".part")
    check_ending("checkpoint", path, ENDINGS)
    return writable


def load(path, threads=None, motions=None, laws=None, surfaces=None):
    """The simulation that a checkpoint holds. ``motions`` and ``surfaces`` (body -> function) and ``laws`` (joint -> motor or spring) give
    back those motions, surface velocities and drives that were Python functions."""
    path = pathlib.Path(path)
    checked_threads(threads)
    _check_seal(path)
    try:
        with h5py.File(path, "r") as file:
            return _read(file, threads, motions or {}, laws or {}, surfaces or {})
    except MissingFunctionError:
        raise
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged, or not a checkpoint of gravel: {error}") from error


def origin_of(path):
    """What made the scene of a checkpoint, as far as it says (``Simulation.origin``)."""
    path = pathlib.Path(path)
    _check_seal(path)
    try:
        with h5py.File(path, "r") as file:
            origin = json.loads(file.attrs["description"])["origin"]
        sound.need(isinstance(origin, dict), "it does not say what made its scene")
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged, or not a checkpoint of gravel: {error}") from error
    return origin


def to_bytes(simulation, contacts=True):
    """A checkpoint in memory; ``contacts``: with the table of the last step's."""
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        _write(file, _arrays(simulation, contacts), _description(simulation))
    return content.getvalue()


def from_bytes(content, threads, motions, laws, surfaces):
    """The simulation of ``to_bytes``."""
    with h5py.File(io.BytesIO(content), "r") as file:
        return _read(file, threads, motions, laws, surfaces)


def _arrays(simulation, contacts=True):
    """All arrays of a simulation, by name; ``contacts``: and the table of the last step's."""
    simulation.settle()
    engine = simulation.engine
    arrays = {f"bodies/{f.name}": engine.field(f.name) for f in FIELDS}  # in the order of the engine's rows: it is part of the bits
    arrays.update({f"memory/{name}": array for name, array in engine.memory().items()})
    arrays.update(world=simulation.world, gravity=simulation.gravity, ignored=simulation.ignored)
    arrays.update({f"sleep/{name}": array for name, array in simulation.watch_arrays().items()})
    arrays.update(_geometry_arrays(simulation.geometries))
    arrays.update({f"joints/{name}": array for name, array in simulation.mechanism.to_arrays().items()})
    table = simulation.contacts if contacts and simulation.knows_contacts else ContactTable.empty()
    return {**arrays, **{f"contacts/{f.name}": getattr(table, f.name) for f in dataclasses.fields(table)}}


def _write(file, arrays, description):
    for name, array in arrays.items():
        file[name] = array
    file.attrs["gravel_checkpoint"] = VERSION
    file.attrs["description"] = json.dumps(description)


def _read(file, threads, motions, laws, surfaces):
    """The simulation that an open file holds."""
    from gravel.simulation import Simulation

    arrays, about = sound.arrays_of(file), json.loads(file.attrs["description"])
    made = _geometries(arrays)
    sound.check_bodies(arrays, about["count"], len(about["materials"]), made)
    sound.check_memory(arrays, len(arrays["bodies/id"]))
    sound.check_contacts(arrays, about["count"])
    sound.check_watch(arrays, about["count"])
    sound.check_joints(arrays, about["joints"], arrays["bodies/id"], about["count"])
    scene = Scene(arrays["gravity"])
    scene.bodies = Bodies()
    scene.bodies.append({f.name: arrays[f"bodies/{f.name}"] for f in FIELDS})
    pairs = {tuple(pair): values for pair, values in about["pairs"]}
    scene.materials = Materials([Material(**m) for m in about["materials"]], pairs)
    scene.ignored = arrays["ignored"].astype(bool)
    scene.geometries = Geometries(made)
    solver = SOLVERS[about["solver"][0]](**about["solver"][1])
    settings = {name: math.inf if value == "inf" else value for name, value in about["settings"].items()}
    scene.cell = None if about["cell"] is None else Cell.from_values(about["cell"])
    sleep = None if about["sleep"] is None else Sleep(**about["sleep"])
    simulation = Simulation(scene, solver=solver, threads=threads, sleep=sleep, **settings)
    simulation.world = arrays["world"]
    of = lambda group: {name.removeprefix(group): array for name, array in arrays.items() if name.startswith(group)}  # noqa: E731
    simulation.mechanism.from_arrays(of("joints/"), about["joints"], laws)
    simulation.engine.restore(of("memory/"))
    simulation.restore_watch(of("sleep/"))
    simulation.views.end(about["count"])
    simulation.steps, simulation.start_time = about["steps"], about["start_time"]
    simulation.know_contacts(ContactTable(**of("contacts/")))
    simulation.surfaces = {body: _surface(body, values, surfaces) for body, values in about["surfaces"]}
    simulation.run_id, simulation.origin = about["run"], about["origin"]
    sound.need(isinstance(simulation.run_id, str) and isinstance(simulation.origin, dict), "it does not say which run it is of")
    for body, kind, values, position, quaternion, since in about["motions"]:
        simulation.motions[body] = _motion(body, kind, values, motions)
        simulation.motion_starts[body] = np.array(position), np.array(quaternion), since
    return simulation


def _geometry_arrays(geometries):
    """Each field of all geometries end to end, with the number of rows of each, so that many geometries are few arrays."""
    number = {id(g): k for k, g in enumerate(geometries)}
    arrays, plain = {}, [_plain(g, number) for g in geometries]
    for name, blank in _plain(Geometry(), number).items():
        rows = [fields[name] for fields in plain]
        arrays[f"geometries/{name}"] = np.concatenate([blank[:0], *rows])
        arrays[f"geometries/rows/{name}"] = np.array([len(r) for r in rows], np.int64)
    return arrays


def _plain(geometry, number):
    """The fields of a geometry as arrays; parts are numbers in the list of geometries."""
    values = {f.name: np.atleast_1d(getattr(geometry, f.name)) for f in dataclasses.fields(Geometry) if f.name != "parts"}
    return {**values, "parts": np.array([number[id(part)] for part in geometry.parts], np.int64)}


def _geometries(arrays):
    """The geometries that ``_geometry_arrays`` took apart."""
    columns = {}
    for f in dataclasses.fields(Geometry):
        values, rows = arrays[f"geometries/{f.name}"], arrays[f"geometries/rows/{f.name}"]
        sound.need((rows >= 0).all() and int(rows.sum()) == len(values), f"geometries/rows/{f.name} do not fit")
        columns[f.name] = np.split(values, np.cumsum(rows)[:-1]) if len(rows) else []
    sound.need(len(set(map(len, columns.values()))) == 1, "its geometries lack something")
    made = [Geometry(**dict(zip(columns, values))) for values in zip(*columns.values())]
    for k, geometry in enumerate(made):
        sound.check_geometry(geometry, k)
        geometry.radius, geometry.one_sided = float(geometry.radius[0]), bool(geometry.one_sided[0])
        geometry.parts = tuple(made[part] for part in geometry.parts)
    return made


def _description(simulation):
    solver = next((name for name, kind in SOLVERS.items() if kind is type(simulation.solver)), None)
    if solver is None:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)} to be written to a file, not {simulation.solver!r}")
    settings = {**{name: getattr(simulation, name) for name in SETTINGS}, "joints": simulation.joint_mode}
    motions = []
    for body, motion in simulation.motions.items():
        kind = type(motion).__name__ if type(motion).__name__ in MOTIONS else "function"
        values = {} if kind == "function" else {k: np.asarray(v).tolist() for k, v in dataclasses.asdict(motion).items()}
        position, quaternion, since = simulation.motion_starts[body]
        motions.append([body, kind, values, position.tolist(), quaternion.tolist(), since])
    return {
        "settings": {name: "inf" if value == math.inf else value for name, value in settings.items()},
        "solver": [solver, dataclasses.asdict(simulation.solver)],
        "sleep": None if simulation.sleep is None else dataclasses.asdict(simulation.sleep),
        "materials": [dataclasses.asdict(m) for m in simulation.materials.kinds],
        "pairs": [[list(pair), values] for pair, values in simulation.materials.pairs_of_rows().items()],
        "motions": motions,
        "surfaces": [[body, None if callable(surface) else surface] for body, surface in simulation.surfaces.items()],
        "cell": None if simulation.cell is None else simulation.cell.to_values(),
        "joints": simulation.mechanism.names,
        "steps": simulation.steps,
        "start_time": simulation.start_time,
        "count": simulation.count,
        "run": simulation.run_id,
        "origin": simulation.origin,
    }


def _motion(body, kind, values, given):
    if kind in MOTIONS:
        return MOTIONS[kind](**values)
    if body not in given:
        raise MissingFunctionError(
            f"the motion of body {body} was a Python function, which a file cannot hold; pass motions={{{body}: function}}"
        )
    return given[body]


def _surface(body, values, given):
    if values is not None:
        return surface_of((values[:3], values[3:]))
    if body not in given:
        raise MissingFunctionError(
            f"the surface velocity of body {body} was a Python function, which a file cannot hold; pass surfaces={{{body}: function}}"
        )
    return given[body]


def _seal(path):
    """Append the seal, and see the file to the disk."""
    with open(path, "r+b") as file:
        digest = _digest(file, os.path.getsize(path))
        file.seek(0, os.SEEK_END)
        file.write((SEAL + digest).ljust(SEAL_BYTES))
        file.flush()
        os.fsync(file.fileno())


def _digest(file, length):
    """SHA-256 of the first bytes of an open file, as text."""
    digest = hashlib.sha256()
    while length > 0:
        piece = file.read(min(CHUNK, length))
        if not piece:
            break
        digest.update(piece)
        length -= len(piece)
    return digest.hexdigest().encode()


def _check_seal(path):
    """Refuse what is not a whole checkpoint of this version."""
    if not path.exists():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    if not path.is_file():
        raise ValueError(f"{path} is not a file, and not a checkpoint of gravel")
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"{path} is not a checkpoint of gravel, or its beginning is damaged")
        length = max(os.path.getsize(path) - SEAL_BYTES, 0)
        file.seek(length)
        seal = file.read().rstrip()
        file.seek(0)
        good = seal == SEAL + _digest(file, length)
    version = _version(path) if good or not re.search(rb"sha256 [0-9a-f]{60}", seal) else None
    if version not in (None, VERSION):  # some had no seal
        raise ValueError(f"{path} has checkpoint version {version}, this gravel reads version {VERSION}")
    if not good:
        raise ValueError(f"{path} is truncated or damaged, or not a checkpoint of gravel: its checksum does not fit its content")


def _version(path):
    """The version that a file says it has, or None."""
    try:
        with h5py.File(path, "r") as file:
            return int(file.attrs["gravel_checkpoint"])
    except DAMAGE:
        return None
