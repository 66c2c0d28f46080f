"""Checkpoints: everything that a bitwise continuation needs, in one HDF5 file.

Written to a temporary file and renamed, so that a killed run leaves the last good one. A format version and a checksum of
all arrays are kept; a file that is foreign, truncated or of another version is refused with the reason.
"""

import dataclasses
import hashlib
import json
import math
import os
import pathlib

import h5py
import numpy as np

from gravel.io.vtkhdf import check_room, check_writable
from gravel.materials import Material
from gravel.motion import ConstantVelocity, Oscillation
from gravel.scene import Scene
from gravel.shapes.geometry import Geometries, Geometry
from gravel.solvers import SOLVERS
from gravel.state import FIELDS, Bodies

SPARE_BYTES = 1_000_000  # for what is not in the arrays
VERSION = 6
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
    path = check_writable(path)
    simulation.settle()
    engine = simulation.engine
    arrays = {f"bodies/{f.name}": engine.field(f.name) for f in FIELDS}  # in the order of the engine's rows: it is part of the bits
    arrays.update({f"memory/{name}": array for name, array in engine.memory().items()})
    arrays.update(
        world=simulation.world,
        gravity=simulation.gravity,
        ignored=simulation.ignored,
    )
    arrays.update(_geometry_arrays(simulation.geometries))
    arrays.update({f"joints/{name}": array for name, array in simulation.mechanism.to_arrays().items()})
    check_room(path, SPARE_BYTES + sum(array.nbytes for array in arrays.values()))
    temporary = path.with_name(path.name + ".part")
    try:
        with h5py.File(temporary, "w") as file:
            for name, array in arrays.items():
                file[name] = array
            file.attrs["gravel_checkpoint"] = VERSION
            file.attrs["description"] = json.dumps(_description(simulation))
            file.attrs["checksum"] = _checksum(file)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def load(path, threads=None, motions=None, laws=None):
    """The simulation that a checkpoint holds. ``motions`` (body -> function) and ``laws`` (joint -> motor or spring) give back those
    that were Python functions."""
    from gravel.simulation import Simulation

    with _open(path) as file:
        about = json.loads(file.attrs["description"])
        scene = Scene(file["gravity"][:])
        scene.bodies = Bodies()
        scene.bodies.append({f.name: file[f"bodies/{f.name}"][:] for f in FIELDS})
        scene.materials = [Material(**m) for m in about["materials"]]
        scene.pairs = {tuple(pair): values for pair, values in about["pairs"]}
        scene.ignored = file["ignored"][:]
        scene.geometries = Geometries(_geometries(file["geometries"]))
        solver = SOLVERS[about["solver"][0]](**about["solver"][1])
        settings = {name: math.inf if value == "inf" else value for name, value in about["settings"].items()}
        simulation = Simulation(scene, solver=solver, threads=threads, bounds=file["world"][:], **settings)
        simulation.mechanism.from_arrays({name: array[:] for name, array in file["joints"].items()}, about["joints"], laws or {})
        simulation.engine.restore({name: array[:] for name, array in file["memory"].items()})
    simulation.views.end(about["count"])
    simulation.steps, simulation.start_time = about["steps"], about["start_time"]
    for body, kind, values, position, quaternion, since in about["motions"]:
        simulation.motions[body] = _motion(body, kind, values, motions or {})
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


def _geometries(group):
    """The geometries that ``_geometry_arrays`` took apart."""
    columns = {name: np.split(group[name][:], np.cumsum(rows[:])[:-1]) for name, rows in group["rows"].items() if len(rows)}
    made = [Geometry(**dict(zip(columns, values))) for values in zip(*columns.values())]
    for geometry in made:
        geometry.radius, geometry.one_sided = float(geometry.radius[0]), bool(geometry.one_sided[0])
        geometry.parts = tuple(made[k] for k in geometry.parts)
    return made


def _description(simulation):
    solver = next(name for name, kind in SOLVERS.items() if kind is type(simulation.solver))
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
        "materials": [dataclasses.asdict(m) for m in simulation.materials],
        "pairs": [[list(pair), values] for pair, values in simulation.pairs.items()],
        "motions": motions,
        "joints": simulation.mechanism.names,
        "steps": simulation.steps,
        "start_time": simulation.start_time,
        "count": simulation.count,
    }


def _motion(body, kind, values, given):
    if kind in MOTIONS:
        return MOTIONS[kind](**values)
    if body not in given:
        raise ValueError(f"the motion of body {body} was a Python function, which a file cannot hold; pass motions={{{body}: function}}")
    return given[body]


def _open(path):
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{path} is truncated or not a checkpoint: {error}") from None
    reason = None
    if "gravel_checkpoint" not in file.attrs:
        reason = f"{path} is not a checkpoint of gravel"
    elif file.attrs["gravel_checkpoint"] != VERSION:
        reason = f"{path} has checkpoint version {file.attrs['gravel_checkpoint']}, this gravel reads version {VERSION}"
    else:
        try:
            if file.attrs["checksum"] != _checksum(file):
                reason = f"{path} is damaged: its checksum does not fit its content"
        except (OSError, KeyError) as error:
            reason = f"{path} is truncated: {error}"
    if reason:
        file.close()
        raise ValueError(reason)
    return file


def _checksum(file):
    """SHA-256 of the description and all arrays, in the order of their names."""
    digest = hashlib.sha256(file.attrs["description"].encode())
    names = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    for name in sorted(names):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(file[name][()]).tobytes())
    return digest.hexdigest()
