"""Checkpoints: everything that a bitwise continuation needs, in one HDF5 file; and copies of a simulation, which are made by way of one.

Written to a temporary file and renamed, so that a killed run leaves the last good one. The file ends with a seal, the SHA-256 of all
that stands before it: a single bit that has changed anywhere is found before the file is opened. What a file with a good seal holds is
looked at all the same (``sound``), for seals can be made by others. A file that is foreign, truncated, damaged or of another version is
refused with a ``ValueError`` that names it and the reason.

Many processes write parts beside the file, which is then an index of them and holds what they have in common
(``gravel.io.checkpoint_parts``).
"""

import dataclasses
import io
import json
import math
import os
import pathlib

import h5py
import numpy as np

from gravel import checks
from gravel.body_names import BodyNames
from gravel.contacts import ContactTable
from gravel.engine import checked_threads
from gravel.errors import MissingFunctionError
from gravel.io import validate_file
from gravel.io.checkpoint_parts import LONGEST, Saved, is_index, join, listed, remove_parts, save_parts, without_bodies
from gravel.io.checksummed import check_seal, contents, damage_of, write_contents, write_sealed
from gravel.io.vtkhdf import check_ending, check_writable
from gravel.model.cell import Cell
from gravel.model.materials import Material, Materials
from gravel.model.motion import ConstantVelocity, Oscillation, surface_of
from gravel.running.communicator import call_on_all_ranks
from gravel.running.sleep import Sleep
from gravel.scene import Scene
from gravel.shapes.geometry import Geometries, Geometry
from gravel.solvers import SOLVERS
from gravel.state import FIELDS, Bodies

ENDINGS = (".h5", ".hdf5", ".hdf")
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
    """Write a checkpoint of a simulation; of one that many processes share, all of them call this."""
    team = simulation.team
    simulation.run_id = team.broadcast(simulation.run_id)
    place, arrays, description = call_on_all_ranks(
        team, lambda: (check_path(path, team.size > 1), _arrays(simulation), _description(simulation))
    )
    if team.size > 1:
        save_parts(simulation, team.broadcast(place), arrays, description)
        return
    had_parts = is_index(place)
    write_sealed(place, arrays, description)
    if had_parts:
        remove_parts(place)


def check_path(path, in_parts=False):
    """Refuse a path that a checkpoint cannot be written to, as one file or in parts; returns it, of a symbolic link what it leads to."""
    writable = check_writable(path, LONGEST if in_parts else ".part")
    check_ending("checkpoint", path, ENDINGS)
    return writable


def load(path, threads=None, motions=None, laws=None, surfaces=None, domain="auto", device=None):
    """The simulation that a checkpoint holds. ``motions`` and ``surfaces`` (body -> function) and ``laws`` (joint -> motor or spring) give
    back those motions, surface velocities and drives that were Python functions. ``domain``: how processes share it from now on.
    ``device``: on which it goes on; None: on the one it was on."""
    path = pathlib.Path(path)
    checked_threads(threads)
    arrays, about = _contents_of(path)
    with damage_of(path):
        if "parts" in about:
            saved = join(path, arrays, about, geometries_of(arrays), 0, 1)
            ids = saved.arrays["bodies/id"]
            validate_file.need(np.isin(saved.arrays["memory/at"], ids).all(), "memory/at names a body that is not there")
            arrays = saved.arrays_for(ids)
        return simulation_of(arrays, about, threads, motions or {}, laws or {}, surfaces or {}, domain, device)


def load_parts(path: str | os.PathLike, rank: int, size: int) -> Saved:
    """What one of ``size`` processes reads of a checkpoint (``Saved``): the parts k with k % size == rank, joined, and all that parts have
    in common. A checkpoint of one process is a single part. ``scene_of``, ``settings_of`` and ``restore`` make a simulation of it."""
    rank, size = checks.count("rank", rank), checks.count("size", size, minimum=1)
    if rank >= size:
        raise ValueError(f"rank must be below size, {size}, not {rank}")
    path = pathlib.Path(path)
    arrays, about = _contents_of(path)
    with damage_of(path):
        made = geometries_of(arrays)
        if "parts" in about:
            return join(path, arrays, about, made, rank, size)
        _check_all(arrays, about, made)
        return Saved(listed(arrays) if rank == 0 else without_bodies(arrays, arrays["bodies/velocity"].dtype), about)


def _contents_of(path):
    """(arrays, description) of a file that is whole, and no part of another."""
    check_seal(path)
    with damage_of(path):
        with h5py.File(path, "r") as file:
            arrays, about = contents(file)
        validate_file.need(
            "part" not in about, f"it is a part of a checkpoint of {about.get('size')} processes; load the file that names it"
        )
    return arrays, about


def _check_all(arrays, about, geometries):
    """Refuse arrays that cannot be those of one simulation."""
    validate_file.check_bodies(arrays, about["count"], len(about["materials"]), geometries)
    validate_file.check_memory(arrays, len(arrays["bodies/id"]))
    validate_file.check_contacts(arrays, about["count"])
    validate_file.check_watch(arrays, about["count"])
    validate_file.check_joints(arrays, about["joints"], arrays["bodies/id"], about["count"])


def origin_of(path):
    """What made the scene of a checkpoint, as far as it says (``Simulation.origin``)."""
    path = pathlib.Path(path)
    check_seal(path)
    with damage_of(path):
        with h5py.File(path, "r") as file:
            origin = json.loads(file.attrs["description"])["origin"]
        validate_file.need(isinstance(origin, dict), "it does not say what made its scene")
    return origin


def to_bytes(simulation, contacts=True):
    """A checkpoint in memory; ``contacts``: with the table of the last step's."""
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        write_contents(file, _arrays(simulation, contacts), _description(simulation))
    return content.getvalue()


def from_bytes(content, threads, motions, laws, surfaces):
    """The simulation of ``to_bytes``."""
    with h5py.File(io.BytesIO(content), "r") as file:
        return simulation_of(*contents(file), threads, motions, laws, surfaces, None)


def _arrays(simulation, contacts=True):
    """All arrays of a simulation, by name; ``contacts``: and the table of the last step's."""
    simulation.flush()
    engine = simulation.engine
    arrays = {f"bodies/{f.name}": engine.field(f.name) for f in FIELDS}  # in the order of the engine's rows: it is part of the bits
    arrays.update({f"memory/{name}": array for name, array in engine.memory().items()})
    arrays.update(world=simulation.world, gravity=simulation.gravity, ignored=simulation.ignored)
    arrays.update({f"sleep/{name}": array for name, array in simulation.watch_arrays().items()})
    arrays.update(_geometry_arrays(simulation.geometries))
    arrays.update({f"joints/{name}": array for name, array in simulation.mechanism.to_arrays().items()})
    table = simulation.contacts if contacts and simulation.knows_contacts else ContactTable.empty()
    return {**arrays, **{f"contacts/{f.name}": getattr(table, f.name) for f in dataclasses.fields(table)}}


def scene_of(arrays, about, geometries):
    """The scene with the bodies that arrays hold, and all else but joints and motions."""
    scene = Scene(arrays["gravity"])
    scene.bodies = Bodies()
    scene.bodies.append({f.name: arrays[f"bodies/{f.name}"] for f in FIELDS})
    scene.bodies.rank[:] = 0  # who owns them is found anew
    scene.driven = {body for body, *_ in (*about["motions"], *about["surfaces"])}
    scene.joined = {int(b) for end in "ab" for b in arrays[f"joints/joint_body_{end}"] if b >= 0}
    pairs = {tuple(pair): values for pair, values in about["pairs"]}
    scene.materials = Materials([Material(**m) for m in about["materials"]], pairs)
    scene.ignored = arrays["ignored"].astype(bool)
    scene.geometries = Geometries(geometries)
    scene.cell = None if about["cell"] is None else Cell.from_values(about["cell"])
    scene.body_names = BodyNames.from_values(about.get("body_names", {}), about["count"])
    return scene


def settings_of(about):
    """What ``Simulation`` is made with, by name."""
    solver = SOLVERS[about["solver"][0]](**about["solver"][1])
    settings = {name: math.inf if value == "inf" else value for name, value in about["settings"].items()}
    return {**settings, "solver": solver, "sleep": None if about["sleep"] is None else Sleep(**about["sleep"])}


def simulation_of(arrays, about, threads, motions, laws, surfaces, domain, device=None):
    """The simulation that the arrays and the description of a checkpoint hold; all is looked at first. Of several processes each reads
    all, and keeps its part."""
    from gravel.simulation import Simulation

    geometries = geometries_of(arrays)
    _check_all(arrays, about, geometries)
    scene = scene_of(arrays, about, geometries)
    settings = settings_of(about)
    simulation = Simulation(scene, threads=threads, domain=domain, **{**settings, "device": device or settings["device"]})
    if simulation.processes.size > 1:
        arrays = Saved(listed(arrays), about).arrays_for(simulation.engine.ids())
    restore(simulation, arrays, about, motions, laws, surfaces)
    return simulation


def restore(simulation, arrays, about, motions, laws, surfaces):
    """Give a simulation that was made of ``scene_of`` and ``settings_of`` all else: joints, motions, what it remembers, its time.
    The memory of contacts must be that of its rows (``Saved.arrays_for``)."""
    simulation.world = arrays["world"]
    of = lambda group: {name.removeprefix(group): array for name, array in arrays.items() if name.startswith(group)}  # noqa: E731
    simulation.mechanism.from_arrays(of("joints/"), about["joints"], laws)
    simulation.engine.restore(of("memory/"))
    simulation.restore_watch(of("sleep/"))
    simulation.views.invalidate(about["count"])
    simulation.steps, simulation.start_time = about["steps"], about["start_time"]
    simulation.know_contacts(ContactTable(**of("contacts/")))
    simulation.surfaces.update({body: _surface(body, values, surfaces) for body, values in about["surfaces"]})
    simulation.run_id, simulation.origin = about["run"], about["origin"]
    validate_file.need(isinstance(simulation.run_id, str) and isinstance(simulation.origin, dict), "it does not say which run it is of")
    for body, kind, values, position, quaternion, since in about["motions"]:
        simulation.motions[body] = _motion(body, kind, values, motions)
        simulation.motion_starts[body] = np.array(position), np.array(quaternion), since


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


def geometries_of(arrays):
    """The geometries that ``_geometry_arrays`` took apart."""
    columns = {}
    for f in dataclasses.fields(Geometry):
        values, rows = arrays[f"geometries/{f.name}"], arrays[f"geometries/rows/{f.name}"]
        validate_file.need((rows >= 0).all() and int(rows.sum()) == len(values), f"geometries/rows/{f.name} do not fit")
        columns[f.name] = np.split(values, np.cumsum(rows)[:-1]) if len(rows) else []
    validate_file.need(len(set(map(len, columns.values()))) == 1, "its geometries lack something")
    made = [Geometry(**dict(zip(columns, values))) for values in zip(*columns.values())]
    for k, geometry in enumerate(made):
        validate_file.check_geometry(geometry, k)
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
        "body_names": simulation.body_names.to_values(),
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
