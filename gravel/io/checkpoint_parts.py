"""Checkpoints of many processes: each writes a part, then rank 0 the index, which makes them one checkpoint.

``state.h5`` is the index: a sealed file with all that the parts have in common (settings, materials, geometries, joints), and the names of
the parts with the SHA-256 of their seals. ``state.step00001200.rank0003.h5`` is the part of rank 3: the bodies that it owns, the contacts
that it treats, who has been at rest. Parts lie beside their index. They are on the disk before the index is renamed to its place, and those
of the checkpoint before are removed after that: a kill at any moment leaves the last whole checkpoint.

In a part, ``memory/at`` says which body has found each contact of the last step: in a file of one process its row says that, but the
process that treats a contact may have found it with a copy, whose row is another's (``listed``, ``Saved.memory_of``).
"""

import json
import pathlib
import re
from typing import NamedTuple

import h5py
import numpy as np

from gravel.contacts import ContactTable, join_tables
from gravel.io import validate_file
from gravel.io.checksummed import check_seal, contents, write_sealed
from gravel.joints.rows import CARRIED
from gravel.running.communicator import call_on_all_ranks
from gravel.state import FIELDS, STATUS, can_move, empty_field

OWN = ("bodies/", "memory/", "contacts/", "sleep/")  # arrays that are different on each process
CLOCK = "sleep/clock"  # but for this one
COLUMNS = ("a", "b", "feature", "impulse", "torque")  # of the memory of contacts

LONGEST = ".step00000000.again.rank0000.part"  # what a name gets more, at most


class Saved(NamedTuple):
    """What one process has read of a checkpoint: arrays as in a file of one process, but for the memory of contacts, and the
    description."""

    arrays: dict
    about: dict

    def memory_of(self, ids):
        """The memory of contacts for an engine whose rows have these ids. Contacts that a body found which is not there are left to the
        other body; those of which neither is there are left out."""
        memory = {name.removeprefix("memory/"): array for name, array in self.arrays.items() if name.startswith("memory/")}
        row = np.full(len(memory["at"]), -1)
        for name in ("b", "a", "at"):
            row = np.where((found := _rows_of(memory[name], ids)) >= 0, found, row)
        order = np.argsort(row, kind="stable")[np.count_nonzero(row < 0) :]
        columns = {name: memory[name][order] if len(memory[name]) else memory[name] for name in COLUMNS}
        slept = {name: memory[name] for name in validate_file.SLEPT}
        return {"number": np.bincount(row[order], minlength=len(ids)).astype(np.int32), **columns, **slept}

    def arrays_for(self, ids):
        """The arrays with that memory, as in a file of one process whose rows have these ids."""
        return {**self.arrays, **{f"memory/{name}": array for name, array in self.memory_of(ids).items()}}


def _rows_of(bodies, ids):
    """Places of bodies among ids, -1: not there."""
    if not len(ids):
        return np.full(len(bodies), -1)
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids, bodies, sorter=order), len(ids) - 1)
    return np.where(ids[order[place]] == bodies, order[place], -1)


def listed(arrays):
    """The arrays of a file of one process with ``memory/at`` instead of ``memory/number``."""
    arrays = dict(arrays)
    return {**arrays, "memory/at": np.repeat(arrays["bodies/id"], arrays.pop("memory/number"))} if "memory/number" in arrays else arrays


# --- writing


def save_parts(simulation, path, arrays, description):
    """Write a checkpoint; all processes call this, with what would be the arrays and the description of a file of their own."""
    team = simulation.team
    label = team.broadcast(_label(path, description["steps"]) if team.rank == 0 else None)
    part = path.with_name(part_name(path, label, team.rank))
    about = {"part": team.rank, "size": team.size, "run": description["run"], "steps": description["steps"]}
    try:
        digest = call_on_all_ranks(team, write_sealed, part, _own_arrays(simulation, arrays), about)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    parts = team.gather((part.name, digest))
    joints = team.gather(_joints_of(simulation, arrays))
    call_on_all_ranks(team, _write_index, path, arrays, {**description, "parts": parts}, joints)


def part_name(path, label, rank):
    return f"{path.stem}.{label}.rank{rank:04d}{path.suffix}"


def _label(path, steps):
    """What names the parts: the step, in another way if the checkpoint that is there is of the same."""
    label = f"step{steps:08d}"
    taken = [name.startswith(f"{path.stem}.{label}.rank") for name, _ in _named_parts(path)]
    return f"{label}.again" if any(taken) else label


def _named_parts(path):
    """(name, SHA-256) of the parts of an index; of what is none, none."""
    try:
        with h5py.File(path, "r") as file:
            return _parts(json.loads(file.attrs["description"]))
    except validate_file.DAMAGE:
        return []


def is_index(path):
    """Whether this is a checkpoint whose bodies are in parts."""
    return bool(_named_parts(path))


def _own_arrays(simulation, arrays):
    """What this process alone has: its bodies, and the contacts that it treats."""
    arrays = listed({name: array for name, array in arrays.items() if name.startswith(OWN) and name != CLOCK})
    own_ids = simulation.own_ids()
    for group, key in (("bodies/", "bodies/id"), ("sleep/", "sleep/ids")):
        own = np.isin(arrays[key], own_ids)
        arrays.update({name: array[own] for name, array in arrays.items() if name.startswith(group)})
    return arrays


def _joints_of(simulation, arrays):
    """(how well this process knows each joint, its joints): 2 with the second body, 1 with the first, 0 with none that can move."""
    names = (*(f"joint_{name}" for name in ("angle", "broken")), *(f"carried_{name}" for name in CARRIED), "coordinates")
    known = {f"joints/{name}": arrays[f"joints/{name}"] for name in names if f"joints/{name}" in arrays}
    voice = np.zeros(len(arrays["joints/joint_body_a"]), np.int64)
    for body, weight in (("a", 1), ("b", 2)):
        ids = arrays[f"joints/joint_body_{body}"].astype(np.int64)
        own = np.isin(ids, simulation.own_ids())
        own[own] = can_move(simulation.engine.pick("tag", ids[own])[:, STATUS])
        voice[own] = weight
    return voice, known


def _join_joints(arrays, told):
    """The joints as those processes know them that have their bodies."""
    voices = np.array([voice for voice, _ in told])
    if not voices.shape[1]:
        return arrays
    speaker, arrays = voices.argmax(axis=0), dict(arrays)
    rows, coordinates = arrays["joints/row_joint"].astype(np.int64), arrays["joints/coordinates"][:, 0].astype(np.int64)
    for name in told[0][1]:
        joint_of = {"joints/carried_impulse": rows, "joints/coordinates": coordinates}.get(name, np.arange(len(speaker)))
        arrays[name] = np.array([told[speaker[joint]][1][name][k] for k, joint in enumerate(joint_of)]).reshape(arrays[name].shape)
    return arrays


def _write_index(path, arrays, description, joints):
    if joints is None:  # not rank 0
        return
    common = {name: array for name, array in arrays.items() if not name.startswith(OWN) or name == CLOCK}
    write_sealed(path, _join_joints(common, joints), description)
    remove_parts(path, {name for name, _ in description["parts"]})


def remove_parts(path, but=()):
    """Remove the parts of former checkpoints of this name, also those that a kill has left behind."""
    ours = re.compile(re.escape(path.stem) + r"\.step\d{8,}(\.again)?\.rank\d{4,}" + re.escape(path.suffix) + r"(\.part)?")
    for file in path.parent.iterdir():
        if ours.fullmatch(file.name) and file.name not in but:
            file.unlink(missing_ok=True)


# --- reading


def join(path, common, about, geometries, rank, size):
    """``Saved`` of the parts k of an index with k % size == rank; ``common``, ``about`` and ``geometries`` are what the index holds."""
    ends = np.concatenate([common[f"joints/joint_body_{body}"] for body in ("a", "b")]).astype(np.int64)
    validate_file.check_joints(common, about["joints"], ends[(ends >= 0) & (ends < about["count"])], about["count"])
    pieces = [_read_part(path, *part, common, about, geometries) for part in _parts(about)[rank::size]]
    real = np.float32 if about["settings"]["precision"] == "single" else np.float64
    blank = without_bodies(common, real)
    arrays = {name: np.concatenate([array, *(piece[name] for piece in pieces)]) for name, array in blank.items() if name.startswith(OWN[0])}
    watched = np.concatenate([np.empty(0, np.int64), *(piece["sleep/ids"] for piece in pieces)])
    order = np.argsort(watched, kind="stable")
    for name in ("ids", "position", "quaternion"):
        arrays[f"sleep/{name}"] = np.concatenate([blank[f"sleep/{name}"], *(piece[f"sleep/{name}"] for piece in pieces)])[order]
    table = join_tables([_table(piece) for piece in pieces or [blank]])
    arrays.update({f"contacts/{name}": getattr(table, name) for name in ContactTable.__dataclass_fields__})
    return Saved({**common, **arrays, **_join_memories([blank, *pieces])}, about)


def _parts(about):
    """(name, SHA-256) of the parts that an index names."""
    parts = about.get("parts", [])
    for name, digest in parts:
        plain = isinstance(name, str) and name not in ("", "..") and name == pathlib.PurePath(name).name and "\\" not in name
        validate_file.need(plain and isinstance(digest, str), f"its part {name!r:.80} is no plain name")
    return parts


def _read_part(path, name, digest, common, about, geometries):
    """The arrays of one part, if they can be what the index says."""
    place = path.with_name(name)
    validate_file.need(place.is_file(), f"its part {name} is not there; parts lie beside their index")
    validate_file.need(check_seal(place) == digest, f"its part {name} is not the one that was written with it")
    try:
        with h5py.File(place, "r") as file:
            arrays, part = contents(file)
        validate_file.need(all(part[key] == about[key] for key in ("run", "steps")), "it is of another step or run")
        validate_file.need(all(array.startswith(OWN) and array != CLOCK for array in arrays), "it holds what parts do not")
        everything = {**common, **arrays}
        validate_file.check_bodies(everything, about["count"], len(about["materials"]), geometries)
        validate_file.check_remembered(everything)
        validate_file.need(len(arrays["memory/at"]) == len(arrays["memory/a"]), "memory/at has another length than memory/a")
        validate_file.within("memory/at", arrays["memory/at"], 0, about["count"])
        validate_file.check_contacts(everything, about["count"])
        validate_file.check_watch(everything, about["count"])
    except validate_file.DAMAGE as error:
        raise ValueError(f"its part {name}: {error}") from None
    return arrays


def _table(arrays):
    return ContactTable(**{name: arrays[f"contacts/{name}"] for name in ContactTable.__dataclass_fields__})


def _join_memories(pieces):
    """The memory of all parts, in their order; where some have torques, those of the others are zero."""
    joined = {}
    turning = any(len(piece["memory/torque"]) for piece in pieces)
    for name in ("at", *COLUMNS, *validate_file.SLEPT):
        arrays = [piece[f"memory/{name}"] for piece in pieces]
        if name == "torque" and turning:
            arrays = [a if len(a) else np.zeros((len(p["memory/a"]), 3), a.dtype) for a, p in zip(arrays, pieces)]
        joined[f"memory/{name}"] = np.concatenate(arrays)
    return joined


def without_bodies(common, real):
    """What a process reads that has no part: no bodies, contacts or sleepers; ``real``: the type of velocities and impulses."""
    ids, vectors = np.empty(0, np.int64), np.empty((0, 3), real)
    memory = {"at": ids, "a": ids, "b": ids, "feature": np.empty(0, np.int32), "impulse": vectors, "torque": vectors}
    slept = {f"slept_{name}": memory[name] for name in COLUMNS}
    table = ContactTable.empty()
    return {
        **{name: array for name, array in common.items() if not name.startswith(OWN) or name == CLOCK},
        **{f"bodies/{f.name}": empty_field(f, 0, np.dtype(real)) for f in FIELDS},
        **{f"memory/{name}": array for name, array in {**memory, **slept}.items()},
        **{"sleep/ids": ids, "sleep/position": np.empty((0, 3)), "sleep/quaternion": np.empty((0, 4))},
        **{f"contacts/{name}": getattr(table, name) for name in ContactTable.__dataclass_fields__},
    }
