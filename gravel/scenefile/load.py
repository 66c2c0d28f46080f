"""From a scene file to what ``gravel run`` runs: a ``FileSetup`` with the scene, the simulation's options, what is written and observed.

>>> setup = load_scene_file("my.yaml")
>>> setup.simulation().run(setup.time, observers=setup.watchers())
"""

import functools
import hashlib
import json
import os
import pathlib
from dataclasses import dataclass, field

import numpy as np

from gravel import checks, measures
from gravel.running.processes import launched, make_processes
from gravel.running.sleep import Sleep
from gravel.scene import Scene
from gravel.scenefile.build import Builder, ids_of
from gravel.scenefile.diagnostics import Faults
from gravel.scenefile.error_locations import attempt
from gravel.scenefile.language import DOCUMENT
from gravel.scenefile.making import Folder, region_of
from gravel.scenefile.records import Given
from gravel.scenefile.semantic_checks import check_sense
from gravel.scenefile.text import Item, parse, read_text
from gravel.scenefile.values import BAD
from gravel.scenes.setup import Check, Setup
from gravel.simulation import Simulation
from gravel.solvers import SOLVERS

ENDINGS = (".yaml", ".yml")
NAMED = (("materials", "material"), ("shapes", "shape"), ("motions", "motion"))  # sections that are dicts of names
MARKS = {"bodies": "", "more_bodies": "", "walls": "", "grains": "[", "robots": "."}  # what may follow a name of these sections
NOT_THE_SCENE = ("title", "output", "expect")  # what may change between two parts of a run
EVERY = 0.01  # s between two looks for bodies that are taken out


def is_scene_file(name) -> bool:
    """Whether a name is meant as that of a scene file."""
    return str(name).lower().endswith(ENDINGS)


@dataclass
class FileSetup(Setup):
    """The setup of a scene file. ``output``: its keys of that name; ``digest``: of all that makes the scene; ``seed``: the one used."""

    scene: Scene
    path: pathlib.Path = pathlib.Path()
    seed: int = 0
    digest: str = ""
    title: str = ""
    output: dict = field(default_factory=dict)
    pours: list = field(default_factory=list)  # functions that make them, with the number fed so far
    names: dict = field(default_factory=dict)  # of bodies -> ids
    materials: dict = field(default_factory=dict)  # name of each in the file -> whether something is made of it
    logs: list = field(default_factory=list)  # functions that make them
    _fed: list = field(default_factory=list)
    _goes_on: bool = False

    def simulation(self, **changes) -> Simulation:
        """A simulation of the scene, with its own options or others instead."""
        simulation = Simulation(self.scene, changes.pop("dt", self.dt), **{**self.options, **changes})
        simulation.origin = self.origin()
        return simulation

    def origin(self) -> dict:
        """What a checkpoint keeps of where its scene comes from."""
        return {"scene": self.path.name, "seed": self.seed, "file": self.digest}

    def go_on(self, origin: dict) -> None:
        """Take up a run from the ``origin`` in its checkpoint; refuses one of another scene."""
        if origin.get("file") != self.digest:
            raise ValueError(
                f"{self.path} is not as it was when the run began: a run goes on with the same file; only {', '.join(NOT_THE_SCENE)} and "
                "simulation.time may change"
            )
        self._fed, self._goes_on = list(origin.get("fed", [])), True

    def watchers(self):
        """The observers, as a run calls them: pours, what is taken out, logs."""
        if (self.pours or self.logs) and launched() and make_processes("auto").size > 1:
            what = "a pour" if self.pours else "a log"
            raise ValueError(f"{self.path} has {what}, which works on one process only: run it without --ranks")
        pourers = [make(fed=fed) for make, fed in zip(self.pours, self._fed or [0] * len(self.pours))]
        written = [make().go_on() if self._goes_on else make() for make in self.logs]
        return [
            *((pourer, 0.0) for pourer in pourers),
            *([(_Fed(pourers), 0.0)] if pourers else []),
            *super().watchers(),
            *((w, 0.0) for w in written),
        ]


class _Fed:
    """An observer that notes how many bodies the pours have fed, where a checkpoint keeps it."""

    def __init__(self, pourers):
        self.pourers = pourers

    def __call__(self, simulation):
        simulation.origin["fed"] = [pourer.fed for pourer in self.pourers]


def load_scene_file(path: str | os.PathLike, seed: int | None = None, outside_files: bool = False) -> FileSetup:
    """The setup of a scene file (docs/SCENE_FILES.md): ``setup.scene``, ``setup.dt``, ``setup.time``, ``setup.simulation()``.

    ``seed``: another one than the file's. The files that it reads must lie in its own folder, its package or a folder such as meshes
    beside it, as those of robot files, and what it writes in the current folder; ``outside_files``: True allows any, so only for files
    that one trusts. All that is wrong with the file is told at once, by line and key, in a ``SceneFileError``."""
    path, faults = pathlib.Path(path), Faults(os.fspath(path))
    seed = None if seed is None else checks.count("seed", seed)
    folder = Folder(path, outside_files)
    given = checked_keys(read_text(path, faults), faults)
    seed = (0 if given.get("seed") in (None, BAD) else given["seed"]) if seed is None else seed
    builder = Builder(given, folder, faults, seed)
    scene = builder.build()
    if not faults.found and len(scene) == 0 and not builder.pours:
        faults.add(given.item.line, "", "the scene must hold at least one body: add some under bodies or grains")
    options = {} if faults.found else _options(given["simulation"], faults)
    observers = [] if faults.found else _removals(given, builder)
    logs = _logs(given, folder, faults)
    check_sense(given, scene, faults, outside_files)
    faults.raise_if_any()
    simulation = given["simulation"]
    expected = given.get("expect", [])
    return FileSetup(
        scene,
        simulation["dt"],
        simulation["time"],
        lambda sim, report: [_expected(one, sim, report) for one in expected],
        observers,
        options,
        path=path,
        seed=seed,
        digest=_digest(given.item),
        title=given.get("title", ""),
        output=dict(given.get("output", {})),
        pours=builder.pours,
        names=builder.bodies,
        joint_names=builder.joints,
        materials={name: name in builder.used for name in builder.materials},
        logs=logs,
    )


def checked_keys(text: str, faults: Faults) -> Given:
    """The keys of a file, checked one by one; wrong ones are BAD, and faults say why. Raises where it is no YAML at all."""
    root = parse(text, faults)
    if root is None or not isinstance(root.value, dict):
        if not faults.found:
            what = "it is empty" if root is None else f"it is {root.kind}"
            faults.add(1 if root is None else root.line, "", f"a scene file must hold keys and values such as 'bodies:', but {what}")
        faults.raise_if_any()
    faults.names = _names(root, faults)
    given, _ = DOCUMENT.check_keys(root, "", faults)
    return given


def _names(root: Item, faults) -> dict:
    """What the file gives names to, by kind, with what may follow each name where others refer to it."""
    section = lambda name, kind: root.value[name].value if isinstance(getattr(root.value.get(name), "value", None), kind) else kind()  # noqa: E731
    names: dict = {of: dict.fromkeys(section(name, dict), "") for name, of in NAMED}
    names["body"], names["joint"] = {}, {}
    for name, mark in MARKS.items():
        for k, one in enumerate(section(name, list)):
            _take_name(one, f"{name}[{k}]", names["body"], mark, faults)
            if name in ("walls", "robots"):
                _take_name(one, f"{name}[{k}]", names["joint"], mark, None)
    for k, one in enumerate(section("joints", list)):
        for kind, inner in one.value.items() if isinstance(one.value, dict) else ():
            _take_name(inner, f"joints[{k}].{kind}", names["joint"], "", faults)
    return names


def _take_name(item, path, known, mark, faults):
    named = item.value.get("name") if isinstance(item.value, dict) else None
    if named is None or not isinstance(named.value, str):
        return
    if faults is not None and (named.value in known or named.value == "world"):
        what = "is reserved for the ground" if named.value == "world" else "is already in use"
        faults.add(named.line, f"{path}.name", f"must be a unique name: {named.value!r} {what}")
    known[named.value] = mark


def _digest(item: Item) -> str:
    """Of all that makes the scene and the way it is computed."""
    plain = _plain(item)
    for name in NOT_THE_SCENE:
        plain.pop(name, None)
    plain["simulation"].pop("time", None)
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _plain(item):
    if isinstance(item.value, dict):
        return {name: _plain(one) for name, one in item.value.items()}
    return [_plain(one) for one in item.value] if isinstance(item.value, list) else item.value


# --- the simulation
def _options(given, faults) -> dict:
    """Arguments of ``Simulation`` beside scene and dt."""
    options = {
        name: value for name, value in given.items() if name not in ("dt", "time", "solver", "iterations", "tolerance", "sleep", "bounds")
    }
    if "bounds" in given:
        options["bounds"] = given["bounds"]["low"], given["bounds"]["high"]
    if given.get("sleep", False) is not False:
        options["sleep"] = Sleep(**(given["sleep"] if isinstance(given["sleep"], Given) else {}))
    if {"solver", "iterations", "tolerance"} & set(given):
        kind = SOLVERS[given.get("solver", "gauss-seidel")]
        try:
            options["solver"] = kind(**given.only("iterations", "tolerance"))
        except ValueError as error:
            faults.add(given.line_of("iterations"), given.path_of("iterations"), str(error))
    return options


# --- observers
def _removals(given, builder):
    removals = [one for one in (given.get("removals") or []) if one is not BAD] if given.get("removals") is not BAD else []
    return [_removal(one, builder) for one in removals]


def _removal(given, builder):
    if "below" in given:
        return _TakenBelow(given["below"]), given.get("every", EVERY)
    if "every" in given:
        builder.faults.add(given.line_of("every"), given.path_of("every"), "goes with below; bodies are removed once, at their time")
    return _TakenAt(ids_of([_named(builder, given, name) for name in given["bodies"]]), given["at"])


def _named(builder, given, name):
    """Ids of the bodies that a name stands for, all or ``name[k]`` of grains."""
    ids = builder.bodies.get(name)
    if ids is not None and len(ids):
        return ids
    if ids is not None:
        words = f"must be there from the start, but {name!r} are poured: below removes them"
        builder.faults.add(given.line_of("bodies"), given.path_of("bodies"), words)
        return []
    body = builder.body(given, "bodies", name)
    return [] if body is BAD else [body]


class _TakenBelow:
    """Takes out the bodies that have fallen below a height."""

    def __init__(self, height):
        self.height = height

    def __call__(self, simulation):
        simulation.remove(np.flatnonzero(simulation.movable & (simulation.positions[:, 2] < self.height)))


class _TakenAt:
    """Takes out some bodies at a time."""

    def __init__(self, bodies, time):
        self.bodies, self.time = bodies, time

    def __call__(self, simulation):
        if simulation.time >= self.time and len(there := self.bodies[simulation.alive[self.bodies]]):
            simulation.remove(there)


def _logs(given, folder, faults):
    output = given.get("output")
    logs = [] if output in (None, BAD) else output.get("logs", [])
    regions = [attempt(faults, one["region"].given, region_of, one["region"], folder) if "region" in one else None for one in logs]
    return [functools.partial(_log, one, region) for one, region in zip(logs, regions)]


def _log(given, region):
    wanted = {name: getattr(measures, name) for name in given["measures"]}
    if region is not None:
        wanted = {name: _of_region(measure, region) for name, measure in wanted.items()}
    return measures.Log(given["file"], given.get("every"), **wanted)


def _of_region(measure, region):
    return functools.partial(measure, region=region)


# --- what is expected
def _expected(value, simulation, report) -> Check:
    given = value.given
    move = simulation.movable
    if value.kind == "inside":
        x = simulation.positions[move]
        outside = int(np.count_nonzero(((x < given["low"]) | (x > given["high"])).any(axis=1)))
        return Check("inside", outside == 0, f"{outside} of {len(x)} bodies outside")
    if value.kind == "rest":
        speed = float(np.sqrt(np.mean(np.sum(simulation.velocities[move].astype(float) ** 2, axis=1)))) if move.any() else 0.0
        return Check("rest", speed <= given["speed"], f"rms speed {speed:.3g} m/s, allowed {given['speed']:g}")
    if value.kind == "penetration":
        deepest = report.max_penetration
        return Check("penetration", deepest <= given["depth"], f"worst {deepest:.3g} m, allowed {given['depth']:g}")
    if value.kind == "bodies":
        n = int(np.count_nonzero(move))
        most = given.get("most")
        return Check("bodies", given.get("least", 0) <= n and (most is None or n <= most), f"{n} that can move")
    share = 1.0 - report.unconverged / max(report.steps, 1)
    return Check("converged", share >= given["share"], f"{100 * share:.1f} % of the steps, at least {100 * given['share']:g} %")
