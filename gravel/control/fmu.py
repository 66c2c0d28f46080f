"""``export_fmu``: a machine as a functional mock-up unit (FMU), which other tools co-simulate.

Out: a .fmu file with the state of the machine (a checkpoint), its variables by name, and a script that runs it. The file is made by
pythonfmu (FMI 2) or pythonfmu3 (FMI 3), which put their library around the script: it calls the Python of the tool, and that needs gravel.
The file is written whole or not at all.
"""

import contextlib
import hashlib
import importlib
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from typing import Any

from gravel import checks
from gravel.control.machine import CHECKPOINT, DESCRIPTION, FUNCTIONS
from gravel.control.plant import functions_of, pickled
from gravel.control.sources import machine_of
from gravel.io.outputs import check_ending, check_writable, replaced

BUILDERS = {2: "pythonfmu", 3: "pythonfmu3"}
STOP = 1.0  # s that a tool runs if nobody says how long


def export_fmu(
    scene: Any,
    path: str | os.PathLike,
    inputs: str | Iterable[str] | None = None,
    outputs: str | Iterable[str] | None = None,
    *,
    fmi: int = 3,
    step: float | None = None,
    **options: Any,
) -> pathlib.Path:
    """Write a machine as an FMU for co-simulation (extra fmi), to be run by another tool; returns the path.

    - ``scene``: the name of a built-in scene, a scene file (.yaml), a Scene (with ``dt``), a Simulation, whose present state is the start,
      or what ``load_scene_file`` returns
    - ``path``: a file (.fmu)
    - ``inputs``: variables that the tool sets, as "motor.crank.speed, load.piston.force.x" or a list; None: the motors, as they are made
    - ``outputs``: variables that it reads, as "joint.crank.motor_torque, body.piston.position"; None: what all joints do, and how well the
      steps converged. ``gravel fmu SCENE --list`` lists all variables
    - ``fmi``: the version of the standard, 3 or 2
    - ``step`` s that the tool is advised to take, a multiple of the simulation's (None: that one)
    - ``options``: ``dt`` s, ``bodies`` and ``seed`` of the scene, ``observers`` called after steps, and ``joint_names``, a dict of
      names and ids

    The Python of the tool must be able to import gravel.
    """
    if fmi not in BUILDERS:
        raise ValueError(f"fmi must be 3 or 2, not {fmi!r}")
    check_ending("path", path, (".fmu",))
    target = check_writable(path, ".part")
    builder = _builder(fmi)
    source = machine_of(scene, **options)
    plant, variables = source.plant, source.variables
    chosen = {
        side: variables.defaults(side) if given is None else variables.select(side, given)
        for side, given in (("inputs", inputs), ("outputs", outputs))
    }
    if any(variable.name == "time" for variable in chosen["outputs"]):
        raise ValueError("outputs must not have the time, which every tool knows")
    if not chosen["inputs"] and not chosen["outputs"]:
        raise ValueError(f"inputs and outputs must be given for a scene without joints; {variables.listed_by} lists what there is")
    for variable in chosen["inputs"]:  # motors that were functions are numbers from now on, which a file can hold
        variable.write(plant.simulation, variable.value(plant.reading()))  # type: ignore[misc]
    dt = plant.simulation.dt
    step = dt if step is None else checks.number("step", step, above=0.0)
    if abs(step - round(step / dt) * dt) > 1e-9 * step:
        raise ValueError(f"step must be a multiple of the simulation's, {dt:g} s, not {step!r}")
    about = {
        "name": _identifier(source.title),
        "description": f"{source.title}: rigid bodies with joints and frictional contact, simulated by gravel",
        "step": step,
        "stop": max(STOP, step),
        **{side: [variable.name for variable in variables_of] for side, variables_of in chosen.items()},
        "bodies": dict(variables.names.bodies),
        "joints": dict(variables.names.joints),
        "groups": {name: [int(n) for n in ids] for name, ids in variables.names.groups.items()},
    }
    with tempfile.TemporaryDirectory(prefix="gravel_fmu_") as folder:
        _write_resources(pathlib.Path(folder), plant, about)
        made = _build(builder, fmi, pathlib.Path(folder))
        with replaced(target) as temporary:
            shutil.copyfile(made, temporary)
    return target


def _builder(fmi):
    try:
        return importlib.import_module(f"{BUILDERS[fmi]}.builder").FmuBuilder
    except ImportError:
        raise RuntimeError(f'this needs {BUILDERS[fmi]}, which is not installed: pip install "gravel[fmi]"') from None


def _identifier(title):
    """A name that a C compiler would take, for the library in the unit is called so."""
    name = re.sub(r"\W", "_", title, flags=re.ASCII)
    return name if name[:1].isalpha() else f"machine_{name}"


def _write_resources(folder, plant, about):
    """What the script in the unit finds beside it."""
    functions, observers = functions_of(plant.simulation), [(w.function, w.seconds) for w in plant.watchers]
    if observers or any(functions):
        (folder / FUNCTIONS).write_bytes(pickled((functions, observers)))
    plant.simulation.save(folder / CHECKPOINT)
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    digest.update((folder / CHECKPOINT).read_bytes())
    (folder / DESCRIPTION).write_text(json.dumps({**about, "token": digest.hexdigest()[:32]}, indent=1), encoding="utf-8")


def _build(builder, fmi, folder):
    """The unit that the library packs; returns its path, in the folder."""
    files = [path for path in folder.iterdir()]
    script = pathlib.Path(__file__).parent / "slaves" / f"gravel_fmi{fmi}.py"
    out = folder / "built"
    with _imports_left_alone():
        return pathlib.Path(builder.build_FMU(script, dest=out, project_files=files))


@contextlib.contextmanager
def _imports_left_alone():
    """The builders import the script by its bare name, and leave its folder among those that Python looks into."""
    paths, modules = list(sys.path), set(sys.modules)
    try:
        yield
    finally:
        sys.path[:] = paths
        for name in set(sys.modules) - modules:
            if name.startswith("gravel_fmi"):
                del sys.modules[name]
