"""What a controller may be given a machine as: the name of a built-in scene, a scene file, a ``Scene``, a ``Setup`` or a ``Simulation``.

Out comes a ``Plant`` at its start, with the names of its bodies and joints."""

import copy
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gravel import scenes
from gravel.control.plant import Plant
from gravel.control.variables import Names, Variables
from gravel.scene import Scene
from gravel.scenefile import FileSetup, is_scene_file, load_scene_file
from gravel.scenes.setup import Setup
from gravel.simulation import Simulation

SOURCES = "the name of a built-in scene, a scene file (.yaml), a Scene, a Simulation or what load_scene_file returns"


class Source(NamedTuple):
    """A machine at its start."""

    plant: Plant
    variables: Variables
    title: str  # what it is called


def machine_of(
    source: Any,
    *,
    dt: float | None = None,
    bodies: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    outside_files: bool = False,
    observers: Iterable = (),
    joint_names: Mapping[str, int] | None = None,
) -> Source:
    """The machine that ``source`` means.

    ``dt`` s: another step than the scene's own; a ``Scene`` needs one. ``bodies`` and ``seed``: of a built-in scene, ``seed`` also of a
    scene file, which may use files of other folders if ``outside_files``. ``threads``: of the simulation. ``observers``: more functions of
    the simulation, or pairs (function, seconds), of which the machine has copies. ``joint_names``: name -> id, beside those that the
    scene has."""
    title = "machine"
    if isinstance(source, (str, os.PathLike)):
        title = pathlib.Path(source).stem
        if is_scene_file(source):
            _refuse(source, bodies=bodies)
            source = load_scene_file(source, seed, outside_files)
        else:
            source = scenes.build(os.fspath(source), bodies, 0 if seed is None else seed)
    else:
        _refuse(source, bodies=bodies, seed=seed)
    if not isinstance(source, (Setup, Scene, Simulation)):
        raise TypeError(f"scene must be {SOURCES}, not {source!r:.80}")
    names, watching = _names_in(source), list(observers)
    if isinstance(source, Setup):
        watching = [*_observers_of(source), *watching]
        step = source.dt if dt is None else dt
        scene: Any = source.scene
        simulation = Simulation(scene, step, **{**source.options, "threads": threads})
    elif isinstance(source, Scene):
        if dt is None:
            raise ValueError("dt must be given for a Scene: the time step in s")
        simulation = Simulation(source, dt, threads=threads)
    else:
        _refuse(source, dt=dt)
        simulation = source.copy()  # what is done to the machine is not done to it
    known = Names(names.bodies, {**names.joints, **(joint_names or {})}, names.groups)
    listed_by = f"'gravel fmu {title} --list'" if title != "machine" else "gv.env.variables(scene)"
    own = {id(material): material for material in simulation.materials.kinds}  # not copied: bodies are made of these very objects
    return Source(Plant(simulation, copy.deepcopy(watching, own)), Variables(simulation, known, listed_by), title)


def _refuse(source, **given):
    """Options that say nothing about such a source."""
    for name, value in given.items():
        if value is not None:
            what = source if isinstance(source, (str, os.PathLike)) else type(source).__name__
            raise ValueError(f"{name} must be left out for {what}, which has its own, not {value!r}")


def _observers_of(setup):
    """What acts on a simulation beside its motors; of a scene file without its logs, which write files."""
    if isinstance(setup, FileSetup):
        return [*(make(fed=0) for make in setup.pours), *setup.observers]
    return setup.observers


def _names_in(source):
    """The names that a scene has for its bodies and joints."""
    scene: Any = source.scene if isinstance(source, Setup) else source
    named = scene.body_names
    bodies = {name: ids for name, ids in named.items() if isinstance(ids, int)}
    groups = {name: ids for name, ids in named.items() if name not in bodies}
    return Names(bodies, dict(source.joint_names) if isinstance(source, Setup) else {}, groups)
