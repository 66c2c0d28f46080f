"""From a ``Scene`` to a scene file, as far as it is declarative. What a file cannot say (functions of time, observers, checks) is returned
in words and stands in the file's comments.

Bodies keep their order, so that their ids are the same when the file is read: those before the first that come in bulk stand under
``bodies``, those after the last under ``more_bodies``, all others under ``grains``. Tables of many bodies go into files beside it.
"""

import pathlib
from typing import Any

import numpy as np

from gravel import checks
from gravel.io.outputs import replaced
from gravel.io.vtkhdf import check_writable
from gravel.model.materials import DEFAULT, PROPERTIES
from gravel.scenefile.described import CannotWrite, joint_keys
from gravel.scenefile.emit import block, word
from gravel.scenefile.load import ENDINGS
from gravel.scenefile.schema import FIRST_LINE
from gravel.scenefile.write_bodies import BodyWriter
from gravel.solvers import SOLVERS
from gravel.state import MATERIAL

STARTER = pathlib.Path(__file__).with_name("starter.yaml")


def write_starter(path) -> list[pathlib.Path]:
    """Write the commented starter; returns what was written. A file that is there is refused."""
    path = _new_file(path)
    text = STARTER.read_text(encoding="utf-8").replace("{file: my-energy.csv", f"{{file: {word(f'{path.stem}-energy.csv')}")
    text = text.replace("my-energy", f"{path.stem}-energy").replace("my.yaml", path.name)
    return _write({path: text})


def write_builtin(name, path, bodies=None, seed=0) -> tuple[list[pathlib.Path], list[str]]:
    """Write a built-in scene; returns (what was written, what is not in the file). A file that is there is refused."""
    from gravel import scenes

    path = _new_file(path)
    return write_setup(scenes.build(name, bodies, seed), path, scenes.describe(name), new=True)


def write_setup(setup, path, title, new=False) -> tuple[list[pathlib.Path], list[str]]:
    """Write the scene of a ``Setup`` and how it is computed; returns (what was written, what is not in the file)."""
    keys, notes = _simulation_keys(setup)
    extra, more = _observed(setup)
    return write_scene(setup.scene, path, keys, title=title, extra=extra, notes=[*notes, *more], new=new)


def write_scene(scene, path, simulation, title="", extra=None, notes=(), new=False) -> tuple[list[pathlib.Path], list[str]]:
    """Write a scene with the keys of ``simulation``, and ``extra`` sections; returns (what was written, what is not in the file). ``new``:
    files that are there are refused."""
    path = check_writable(_checked_name(path))
    writer = BodyWriter(scene, path)
    sections: dict[str, Any] = {"title": title} if title else {}
    sections["gravity"] = scene.gravity.tolist()
    notes = [*notes]
    if scene.cell is not None:
        sections["cell"] = _cell_keys(scene.cell, notes)
    sections.update(writer.sections())
    if joints := _joints(scene, writer, notes):
        sections["joints"] = joints
    if ignore := _ignore_keys(scene, writer):
        sections["ignore"] = ignore
    sections = writer.without_idle_names(sections)
    sections = _in_order({**_material_keys(scene, writer.material_names), **sections, **(extra or {}), "simulation": simulation})
    notes = [*writer.notes, *notes]
    for file in writer.files if new else ():
        _refuse_existing(file)
    return _write({path: _text(sections, notes), **writer.files}), notes


def _in_order(sections):
    """As the table of the language has them."""
    from gravel.scenefile.language import DOCUMENT

    return {name: sections[name] for name in DOCUMENT.keys if name in sections}


def _text(sections, notes):
    lines = [FIRST_LINE, "# A scene of gravel, in SI units: gravel check, gravel run. All keys: docs/SCENE_FILES.md"]
    if notes:
        lines += ["#", "# Not in this file:", *(f"# - {note}" for note in notes)]
    for name, value in sections.items():
        lines += ["", *block({name: value})]
    return "\n".join(lines) + "\n"


# --- files
def _checked_name(path):
    path = pathlib.Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"path of a scene file must end with {' or '.join(ENDINGS)}, not {path.name!r:.80}")
    return path


def _new_file(path):
    path = check_writable(_checked_name(path))
    _refuse_existing(path)
    return path


def _refuse_existing(path):
    if path.exists():
        raise FileExistsError(f"{path} is there already: give another name, or remove it")


def _write(files) -> list[pathlib.Path]:
    """Write texts and arrays to files, each whole or not at all; the scene file, which is the first, comes last."""
    for path, content in reversed(list(files.items())):
        with replaced(path) as part:
            if isinstance(content, str):
                part.write_text(content, encoding="utf-8")
            else:
                np.savez(part, **content)
    return list(files)


# --- sections
def _material_keys(scene, names):
    """The materials that bodies or pairs have."""
    used = set(np.unique(scene.bodies.tag[:, MATERIAL]).tolist()) | {number for pair in scene.pairs for number in pair}
    found = {names[number]: _differing(scene.materials[number]) for number in sorted(used)}
    pairs = [{"materials": [names[i], names[j]], **values} for (i, j), values in scene.pairs.items()]
    return {"materials": found, **({"pairs": pairs} if pairs else {})}


def _differing(material):
    values = {name: float(getattr(material, name)) for name in PROPERTIES}
    return {name: value for name, value in values.items() if name in ("density", "friction") or value != getattr(DEFAULT, name)}


def _cell_keys(cell, notes):
    keys: dict[str, Any] = {axis: [float(cell.low[k]), float(cell.high[k])] for k, axis in enumerate("xyz") if cell.periodic[k]}
    law = cell.deformation
    if law is not None:
        plain = {name: getattr(law, name) for name in law.__dataclass_fields__}
        default = type(law)()
        keys["deformation"] = {n: list(v) if isinstance(v, tuple) else v for n, v in plain.items() if v != getattr(default, n)}
    if cell.tilt or cell.shear_strain or np.any(cell.strain):
        notes.append(f"how far the cell is deformed already (shear {cell.shear_strain:g}, strain {cell.strain.tolist()})")
    return keys


def _joints(scene, writer, notes):
    """The joints, named where gears need them."""
    coupled = {getattr(given[0], n) for given in scene.mechanism.described if given for n in ("joint_1", "joint_2") if hasattr(given[0], n)}
    found, left_out = [], set()
    for number, given in enumerate(scene.mechanism.described):
        name = scene.mechanism.names[number]
        try:
            if given is None:
                raise CannotWrite("it comes from a state or a file that keeps its numbers only")
            joint, assemble = given
            if {getattr(joint, "joint_1", None), getattr(joint, "joint_2", None)} & left_out:
                raise CannotWrite("it couples one that is not in the file")
            keys, missing = joint_keys(joint, writer.name_of, lambda k: f"joint {k}")
        except CannotWrite as error:
            notes.append(f"{name}: {error}")
            left_out.add(number)
            continue
        notes += [f"{words.replace('its', f'{name}: its', 1)}" for words in missing]
        ((kind, inner),) = keys.items()
        named = {"name": f"joint {number}"} if number in coupled else {}
        found.append({kind: {**named, **inner, **({"assemble": True} if assemble else {})}})
    return found


def _ignore_keys(scene, writer):
    groups = [[int(i), int(j)] for i, j in np.argwhere(np.triu(scene.ignored))]
    pairs = [[writer.name_of(a), writer.name_of(b)] for a, b, joint in scene.mechanism.filtered_pairs if joint < 0]
    return {**({"groups": groups} if groups else {}), **({"pairs": pairs} if pairs else {})}


# --- of a built-in scene
def _simulation_keys(setup):
    keys, notes = {"dt": setup.dt, "time": setup.time}, []
    for name, value in setup.options.items():
        if name == "solver":
            keys["solver"] = next(word for word, kind in SOLVERS.items() if type(value) is kind)
            keys.update(
                {n: getattr(value, n) for n in ("iterations", "tolerance") if getattr(value, n) not in (None, getattr(type(value)(), n))}
            )
        elif isinstance(value, (str, bool, int, float)):
            keys[name] = value
        else:
            notes.append(f"the option {name} of its simulation")
    return {name: float(v) if isinstance(v, np.floating) else v for name, v in keys.items()}, notes


def _observed(setup):
    """(sections for what a scene's observers do, what is not in the file)."""
    from gravel.scenes.flow import Outflow

    extra: dict[str, Any] = {}
    notes = ["the checks of its physics (expect: has simple ones)"]
    for one in setup.observers:
        function, every = one if isinstance(one, tuple) else (one, 0.0)
        if isinstance(function, Outflow):
            extra.setdefault("removals", []).append({"below": float(function.height), **({"every": every} if every else {})})
            notes.append("the measure of its outflow")
        else:
            name = getattr(function, "__name__", type(function).__name__)
            notes.append(f"what its observer {name} does while it runs, a Python function" if name != "<lambda>" else "an observer")
    return extra, notes


def scene_to_file(scene, path, dt, time) -> list[str]:
    """What ``Scene.to_file`` does; returns what is not in the file."""
    keys = {"dt": checks.number("dt", dt, above=0.0), "time": checks.number("time", time, above=0.0)}
    return write_scene(scene, path, keys)[1]
