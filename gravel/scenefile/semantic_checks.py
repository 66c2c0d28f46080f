"""Keys of a scene file that are right one by one and wrong together: boxes inside out, one file for two things, bodies out of bounds."""

import os
import pathlib

from gravel.scenefile.values import BAD
from gravel.state import STATUS, can_move


def check_sense(given, scene, faults, outside_files=False) -> None:
    """Keys that are right one by one and wrong together. ``outside_files``: whether a run may write outside of its folder."""
    simulation, output = (given.get(name) if given.get(name) is not BAD else None for name in ("simulation", "output"))
    if simulation and simulation.get("bounds"):
        _check_bounds(simulation["bounds"], scene, faults)
    for one in given.get("expect") or [] if given.get("expect") is not BAD else []:
        if one is not BAD:
            _check_expectation(one, faults)
    if output:
        _check_files(output, faults, outside_files)


def _check_box(given, faults):
    """Whether low is below high; else a fault tells."""
    good = all(low < high for low, high in zip(given["low"], given["high"]))
    if not good:
        words = f"must be above low {list(given['low'])} along every axis, not {list(given['high'])}"
        faults.add(given.line_of("high"), given.path_of("high"), words)
    return good


def _check_bounds(given, scene, faults):
    if _check_box(given, faults):
        moving = can_move(scene.bodies.tag[:, STATUS])
        outside = moving & ~((scene.bodies.position > given["low"]) & (scene.bodies.position < given["high"])).all(axis=1)
        if outside.any():
            place = ", ".join(f"{x:g}" for x in scene.bodies.position[outside][0])
            faults.add(given.item.at, given.path, f"must hold all bodies at the start, but {outside.sum()} are outside, one at ({place}) m")


def _check_expectation(one, faults):
    given = one.given
    if one.kind == "inside":
        _check_box(given, faults)
    if one.kind == "bodies" and given.get("most", given.get("least", 0)) < given.get("least", 0):
        faults.add(given.line_of("most"), given.path_of("most"), f"must be at least {given['least']}, as least says, not {given['most']}")


def _check_files(output, faults, outside_files):
    """Each file is written by one, and in the folder of the run; a time between checkpoints needs a checkpoint."""
    written = [(output, name, output[name]) for name in ("file", "checkpoint") if name in output]
    written += [(log, "file", log["file"]) for log in output.get("logs", [])]
    known: dict = {}
    home = os.path.realpath(os.curdir)
    for given, name, file in written:
        leads_to = os.path.realpath(file)
        if not outside_files and not pathlib.PurePath(leads_to).is_relative_to(home):
            words = f"must be a file in the folder of the run, {home}, but leads to {leads_to}; outside_files=True allows files anywhere"
            faults.add(given.line_of(name), given.path_of(name), words)
        if (place := os.path.normpath(file)) in known:
            faults.add(given.line_of(name), given.path_of(name), f"must be a different file: {known[place]} is {file!r} as well")
        known.setdefault(place, given.path_of(name))
    if "checkpoint_every" in output and "checkpoint" not in output:
        faults.add(output.line_of("checkpoint_every"), output.path_of("checkpoint_every"), "goes with checkpoint, which names the file")
