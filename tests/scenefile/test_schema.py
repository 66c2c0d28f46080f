"""One table, three uses: the JSON schema takes what the reader takes and refuses what it refuses; the reference is in the documents;
and the table has what the Python classes have."""

import dataclasses
import inspect
import pathlib

import jsonschema
import pytest
from ruamel.yaml import YAML
from test_wrong_files import CASES

from gravel.joints import kinds
from gravel.model.cell import Deformation
from gravel.model.materials import Material
from gravel.model.servo import ServoWall
from gravel.packing.pack import pack
from gravel.packing.pour import pour
from gravel.scenefile import load_scene_file
from gravel.scenefile.body_language import GRAINS, MATERIAL, PLACEMENT
from gravel.scenefile.joint_language import JOINT
from gravel.scenefile.language import CELL, DOCUMENT, SIMULATION, WALL
from gravel.scenefile.making import DISTRIBUTIONS, REGIONS, SIMPLE
from gravel.scenefile.schema import json_schema, reference
from gravel.scenefile.shape_language import SHAPE
from gravel.scenefile.write import STARTER
from gravel.simulation import Simulation

ROOT = pathlib.Path(__file__).parents[2]
BEYOND = (  # what a schema cannot see: names that must exist, files, numbers that depend on each other
    *("must be the name of", "did you mean 'glass'", "did you mean 'ball'", "does not exist", "low < high", "not periodic", "must span"),
    *("contains itself", "or sizes must be given", "must be at most 8", "must be above low", "must hold", "for each box"),
    *("two different bodies", "lower <= upper", "must not be zero", "must rise", "unique name", "has no mass", "how large it is"),
    *("must be finite", "must have a direction", "cannot be given", "triangle inequality", "is given twice", "at least one body"),
)


@pytest.fixture(scope="module")
def validator():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def plain(text):
    return YAML(typ="safe", pure=True).load(text)


def test_the_starter_is_valid(validator):
    validator.validate(plain(STARTER.read_text()))


WRONG = [
    case for case in CASES if case[2] and not any(words in case[3] for words in BEYOND) and "!!" not in case[0] and "*a" not in case[0]
]


@pytest.mark.parametrize("text, line, path, words", WRONG, ids=[case[2] for case in WRONG])
def test_the_schema_refuses_what_the_reader_refuses(validator, text, line, path, words):
    assert not validator.is_valid(plain(text))


def test_the_schema_takes_what_is_only_wrong_beyond_it(validator):
    text = next(text for text, *_, words in CASES if "must be above low" in words)
    validator.validate(plain(text))


def test_the_reference_in_the_documents_is_that_of_the_table():
    document = (ROOT / "docs" / "SCENE_FILES.md").read_text()
    assert document.split("## All keys\n")[1] == reference(), "gravel schema --reference prints what should stand there"


def test_the_files_of_the_document_are_sound(tmp_path, validator):
    text = (ROOT / "docs" / "SCENE_FILES.md").read_text()
    yaml = text.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "my.yaml").write_text(yaml)
    validator.validate(plain(yaml))
    scene = load_scene_file(tmp_path / "my.yaml").scene
    assert len(scene.mechanism) == 1 and len(scene) > 100


def test_the_python_of_the_document_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "SCENE_FILES.md").read_text()
    names = {}
    exec(text.split("```python\n")[1].split("```")[0], names)
    assert names["left_out"] == [] and len(names["same"]) == 3 and names["sim"].time == pytest.approx(0.1)


# --- the table has what the Python classes have
def arguments(function, *without):
    return set(inspect.signature(function).parameters) - {"self", *without}


def test_joints_have_the_keys_of_their_classes():
    assert len(JOINT.kinds) == len(kinds.KINDS)
    for kind, record in zip(kinds.KINDS, JOINT.kinds.values()):
        named = {"body_a", "body_b"} if issubclass(kind, kinds.Joint) else {"joint_1", "joint_2"}
        own = {field.name for field in dataclasses.fields(kind)} - named - ({"force"} if "Spring" in kind.__name__ else set())
        beside = {"name", "between", "assemble"} if issubclass(kind, kinds.Joint) else {"name", "joints"}
        assert set(record.keys) == own | beside, kind


def test_materials_shapes_regions_and_sizes_have_the_keys_of_their_classes():
    assert set(MATERIAL.keys) | {"name"} == {field.name for field in dataclasses.fields(Material)}  # the name is the key of its section
    for word, kind in SIMPLE.items():
        assert set(SHAPE.kinds[word].keys) == {field.name for field in dataclasses.fields(kind)}
    for kinds_here, classes in ((GRAINS.keys["sizes"].value, DISTRIBUTIONS), (PLACEMENT.kinds["random"].keys["region"].value, REGIONS)):
        for word, kind in classes.items():
            assert set(kinds_here.kinds[word].keys) == {field.name for field in dataclasses.fields(kind) if field.init}


def test_other_sections_have_the_arguments_of_what_they_are_given_to():
    assert set(SIMULATION.keys) == arguments(Simulation.__init__, "scene", "device", "threads", "domain") | {
        "time",
        "iterations",
        "tolerance",
    }
    assert set(WALL.keys) == arguments(ServoWall.__init__, "scene") | {"name"}
    assert set(CELL.keys["deformation"].value.keys) == {field.name for field in dataclasses.fields(Deformation)}
    assert set(PLACEMENT.kinds["random"].keys) == arguments(pack, "what", "sizes", "periodic", "seed")
    assert set(PLACEMENT.kinds["pour"].keys) == arguments(pour, "what", "sizes", "material", "velocity", "seed", "fed")


def test_defaults_in_the_table_are_those_of_the_classes():
    options = inspect.signature(Simulation.__init__).parameters
    for name in ("friction", "precision", "joints", "integrator", "broad_phase", "recovery", "recovery_speed", "warm_start"):
        assert SIMULATION.keys[name].default == options[name].default, name
    for name, key in MATERIAL.keys.items():
        assert key.default == getattr(Material(), name), name


def test_every_key_is_explained():
    def explained(value):
        for key in getattr(value, "keys", {}).values():
            assert key.doc
            explained(key.value)
        for one in getattr(value, "kinds", {}).values() if isinstance(getattr(value, "kinds", None), dict) else ():
            if one is not value:
                assert one.doc

    explained(DOCUMENT)
