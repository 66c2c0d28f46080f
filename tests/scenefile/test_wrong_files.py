"""Files that are wrong: each is refused at the right line and key, in words that help; and all that is wrong is told at once."""

import pytest

from gravel.scenefile import SceneFileError, load_scene_file
from gravel.scenefile.error_locations import blamed

SOUND = "simulation: {dt: 0.002, time: 1}\nbodies:\n- {name: ball, shape: {sphere: {radius: 0.1}}}\n"  # three lines before each text
AT = SOUND.count("\n")

# text after SOUND, line in the text, path of the key, words of the message
AFTER_SOUND = [
    ("matrials: {}\n", 1, "matrials", "did you mean 'materials'?"),
    ("materials:\n  glass: {fricton: 0.3}\n", 2, "materials.glass.fricton", "did you mean 'friction'?"),
    ("materials:\n  glass:\n    density: 2500\n    friction: -0.1\n", 4, "materials.glass.friction", "must be at least 0, not -0.1"),
    ("materials: {a: {restitution: 1.5}}\n", 1, "materials.a.restitution", "must be at most 1, not 1.5"),
    ("materials: {a: {density: 0}}\n", 1, "materials.a.density", "must be above 0, not 0"),
    ("materials: {a: {density: heavy}}\n", 1, "materials.a.density", "must be a number in kg/m3 above 0, not 'heavy'"),
    ("materials: {a: {density: 2500 kg/m3}}\n", 1, "materials.a.density", "write the number alone, in kg/m3"),
    ("materials: {a: {density: .nan}}\n", 1, "materials.a.density", "must be finite"),
    ("materials: [a, b]\n", 1, "materials", "must be materials by their names, not a list of 2"),
    ("materials:\n  a:\n", 2, "materials.a", "not nothing"),
    ("materials:\n  a: {friction: 0.1, friction: 0.2}\n", 2, "materials.a.friction", "is given twice: first on line"),
    ("pairs:\n- materials: [gls, steel]\nmaterials: {steel: {}, glass: {}}\n", 2, "pairs[0].materials[0]", "did you mean 'glass'?"),
    ("materials: {glass: {}}\npairs:\n- {materials: [glass]}\n", 3, "pairs[0].materials", "must be a list of two"),
    ("gravity: -9.81\n", 1, "gravity", "must be three numbers in m/s2, not -9.81"),
    ("gravity: [0, 0]\n", 1, "gravity", "must be three numbers in m/s2, not a list of 2"),
    ("gravity: [0, 0, down]\n", 1, "gravity[2]", "must be a number, not 'down'"),
    ("seed: 1.5\n", 1, "seed", "must be a whole number of at least 0, not 1.5"),
    ("cell: {x: [1, 0]}\n", 1, "cell.x", "low < high"),
    ("cell: {x: [0, 1]\n  , w: 3}\n", 2, "cell.w", "is not a key of a cell"),
    ("cell: {x: [0, 1], deformation: {strain_rate: [0, 0, 1]}}\n", 1, "cell.deformation", "not periodic along z"),
    ("shapes: {a: {spere: {radius: 1}}}\n", 1, "shapes.a.spere", "is not a kind of shape; there are sphere, ellipsoid,"),
    ("shapes: {a: {spere: {radius: 1}}}\n", 1, "shapes.a.spere", "did you mean 'sphere'?"),
    ("shapes: {a: {sphere: {radius: 1}, box: {}}}\n", 1, "shapes.a", "must be one shape, not sphere and box"),
    ("shapes: {a: {sphere: {}}}\n", 1, "shapes.a.sphere.radius", "is missing: a number in m above 0"),
    ("shapes: {a: {box: {half_extents: [1, 2, -3]}}}\n", 1, "shapes.a.box.half_extents[2]", "must be above 0, not -3"),
    ("shapes:\n  a:\n    plane: {normal: [0, 0, 0]}\n", 3, "shapes.a.plane.normal", "must have a direction"),
    ("shapes:\n  rock:\n    mesh:\n      file: rock.stl\n", 4, "shapes.rock.mesh.file", "does not exist"),
    ("shapes: {a: {mesh: {sheet: yes, file: a.stl}}}\n", 1, "shapes.a.mesh.sheet", "must be true or false, not 'yes'"),
    ("shapes: {a: {hull: {scale: 2}}}\n", 1, "shapes.a.hull", "must have one of: points or file, not none of them"),
    (
        "shapes:\n  a:\n    hull: {points: [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]}\n",
        3,
        "shapes.a.hull.points",
        "must span a volume",
    ),
    ("shapes: {a: b, b: a}\n", 1, "shapes.a", "contains itself"),
    ("shapes:\n  a: {compound: {items: [{shape: a}]}}\n", 2, "shapes.a", "contains itself"),
    ("grains:\n- shape: sphere\n", 2, "grains[0].placement", "is missing"),
    (
        "grains:\n- shape: {sphere: {radius: 0.1}}\n  placement:\n    lattice:\n      low: [0, 0, 0]\n      high: [1, 1, 1]\n"
        "      spacing: -1\n",
        7,
        "grains[0].placement.lattice.spacing",
        "must be above 0, not -1",
    ),
    (
        "grains:\n- shape: sphere\n  placement: {lattice: {low: [0, 0, 0], high: [1, 1, 1], spacing: 0.1}}\n",
        2,
        "grains[0].shape",
        "or sizes must be given",
    ),
    (
        "grains:\n- shape: {sphere: {radius: 0.1}}\n  placement:\n    lattice: {low: [0, 0, 0], high: [1, 1, 1], spacing: 0.5, count: 9}\n",
        4,
        "grains[0].placement.lattice.count",
        "must be at most 8",
    ),
    (
        "grains:\n- shape: {sphere: {radius: 0.1}}\n  placement:\n    random: {region: {box: {low: [0, 0, 0], high: [1, 1, 1]}}}\n",
        4,
        "grains[0].placement.random",
        "must have one of: fraction or count",
    ),
    (
        "grains:\n- shape: {sphere: {radius: 0.1}}\n  placement:\n    random:\n      region:\n"
        "        box: {low: [0, 0, 1], high: [1, 1, 0]}\n      count: 3\n",
        6,
        "grains[0].placement.random.region.box.high",
        "must be above low",
    ),
    (
        "grains:\n- shape: {sphere: {radius: 0.1}}\n  placement:\n    pour:\n      inlet: {box: {low: [0, 0, 0], high: [1, 1, 0.1]}}\n"
        "      rate: 2\n",
        5,
        "grains[0].placement.pour.inlet",
        "must hold every body that is poured",
    ),
    ("grains:\n- shape: sphere\n  sizes: {uniform: {low: 0.2, high: 0.1}}\n  placement: {listed: {positions: [[0, 0, 0]]}}\n",)
    + (3, "grains[0].sizes.uniform.high", "must be above low"),
    ("grains:\n- shape: box\n  placement:\n    listed: {positions: [[0, 0, 0]], sizes: [1]}\n",)
    + (4, "grains[0].placement.listed.sizes", "must be 3 numbers for each box"),
    ("grains:\n- shape: {sphere: {radius: 1}}\n  placement:\n    table: {file: no.csv}\n",)
    + (4, "grains[0].placement.table.file", "does not exist"),
    ("joints:\n- revolut: {}\n", 2, "joints[0].revolut", "; did you mean 'revolute'?"),
    ("joints:\n- revolute: {between: [world, bal]}\n", 2, "joints[0].revolute.between[1]", "did you mean 'ball'?"),
    ("joints:\n- revolute: {between: [ball, ball]}\n", 2, "joints[0].revolute", "must join two different bodies"),
    ("joints:\n- revolute: {between: [world, ball], motor: {sped: 3}}\n", 2, "joints[0].revolute.motor.sped", "did you mean 'speed'?"),
    ("joints:\n- revolute: {between: [world, ball], motor: {speed: 3, force: 2}}\n",)
    + (2, "joints[0].revolute.motor", "must have one of: speed or position or force, not speed and force"),
    ("joints:\n- revolute:\n    between: [world, ball]\n    limits: [1, 0]\n", 4, "joints[0].revolute.limits", "lower <= upper"),
    ("joints:\n- screw: {between: [world, ball], pitch: 0}\n", 2, "joints[0].screw.pitch", "must not be zero"),
    ("joints:\n- gear: {joints: [a, b], ratio: 2}\n- spherical: {name: b, between: [world, ball]}\n",)
    + (2, "joints[0].gear.joints[0]", "must be the name of a joint, not 'a' (there are: 'b')"),
    ("ignore: {groups: [[0, 99]]}\n", 1, "ignore.groups[0][1]", "must be at most 31, not 99"),
    ("walls:\n- {centre: [0, 0, 1], normal: [0, 0, -1], size: [1, 1]}\n", 2, "walls[0]", "must have one of: force or stress or speed"),
    ("robots:\n- {name: r, file: r.urdf}\n", 2, "robots[0].file", "does not exist"),
    ("removals: [{bodies: [ball]}]\n", 1, "removals[0]", "must have one of: below or bodies with at, not bodies"),
    ("output: {file: out.txt}\n", 1, "output.file", "must be a file that ends with .vtkhdf, not 'out.txt'"),
    ("output:\n  logs:\n  - {file: a.csv, measures: [energy]}\n", 3, "output.logs[0].measures[0]", "must be one of kinetic_energy"),
    ("expect: [{inside: {low: [0, 0, 0]}}]\n", 1, "expect[0].inside.high", "is missing"),
    ("motions: {m: {table: {times: [0, 0], turns: [[0, 0, 0], [0, 0, 9 deg]]}}}\n", 1, "motions.m.table.times", "must rise"),
    ("more_bodies:\n- {name: ball, shape: {sphere: {radius: 1}}}\n", 2, "more_bodies[0].name", "must be a unique name"),
    ("more_bodies:\n- {shape: {plane: {}}}\n", 2, "more_bodies[0]", "a Plane has no mass"),
    ("more_bodies:\n- {shape: sphere}\n", 2, "more_bodies[0].shape", "must say how large it is"),
    ("more_bodies:\n- shape: {sphere: {radius: 1}}\n  rotation: {axis: [0, 0, 1]}\n", 3, "more_bodies[0].rotation", "axis with angle"),
    (
        "more_bodies:\n- shape: {sphere: {radius: 1}}\n  rotation: {axis: [0, 0, 1], angle: 20}\n",
        3,
        "more_bodies[0].rotation.angle",
        "write 20 deg or 20 rad",
    ),
    (
        "more_bodies:\n- shape: {sphere: {radius: 1}}\n  rotation: {axis: [0, 0, 1], angle: 20 grad}\n",
        3,
        "more_bodies[0].rotation.angle",
        "with its unit",
    ),
    ("more_bodies:\n- shape: {sphere: {radius: 1}}\n  quaternion: [1, 0, 0, 0]\n", 3, "more_bodies[0].quaternion", "write 'rotation'"),
    ("shapes: {c: {compound: {parts: []}}}\n", 1, "shapes.c.compound.parts", "write 'items'"),
    ("more_bodies:\n- shape: {sphere: {radius: 1}}\n  fixed: true\n  velocity: [1, 0, 0]\n",)
    + (4, "more_bodies[0].velocity", "cannot be given to bodies that are fixed"),
    ("more_bodies:\n- shape: {box: {half_extents: [1, 1, 1]}}\n  inertia: [1, 1, 9]\n", 3, "more_bodies[0].inertia", "triangle inequality"),
    # keys whose values begin on another line
    ("more_bodies:\n- shape: {sphere: {radius: 0.1}}\n  position:\n    x: 1\n", 3, "more_bodies[0].position", "must be three numbers in m"),
    ("more_bodies:\n  shape: {sphere: {radius: 0.1}}\n", 1, "more_bodies", "must be a list"),
    # no YAML
    ("gravity: [0, 0,\n", 1, "", "expected"),
    ("cell:\n\tx: [0, 1]\n", 2, "", "a tab cannot stand here"),
    ("gravity: [0, 0, 1]\n  seed: 3\n", 2, "", "is indented otherwise"),
    ("title: 'no end\n", 1, "", "a quotation mark is missing"),
    ("gravity: *down\n", 1, "", "the alias 'down' refers to no anchor"),
    ("title: !!python/object:os.system x\n", 1, "title", "must have no tag"),
    ("---\nseed: 3\n", 1, "", "one document"),
    ("? [a, b]\n: 3\n", 1, "", "a key must be a word"),
]
TOGETHER = [  # which a schema cannot see
    ("expect:\n- inside: {low: [0, 0, 0], high: [1, 1, -1]}\n", 2, "expect[0].inside.high", "must be above low [0.0, 0.0, 0.0]"),
    ("expect:\n- bodies: {least: 5, most: 2}\n", 2, "expect[0].bodies.most", "must be at least 5, as least says, not 2"),
    ("output: {checkpoint_every: 0.1}\n", 1, "output.checkpoint_every", "goes with checkpoint"),
    ("output:\n  checkpoint: a.h5\n  logs:\n  - {file: a.h5, measures: [stress]}\n", 4, "output.logs[0].file", "must be a different file"),
    (
        "output:\n  logs:\n  - file: a.csv\n    measures: [stress]\n    region:\n      box: {low: [1, 1, 1], high: [0, 0, 0]}\n",
        *(6, "output.logs[0].region.box.high", "must be above low"),
    ),
    ("output: {logs: [{file: a.csv, measures: [stress], region: {mesh: {file: no.stl}}}]}\n", 1)
    + ("output.logs[0].region.mesh.file", "does not exist"),
    ("removals:\n- {bodies: [ball], at: 1, every: 0.1}\n", 2, "removals[0].every", "goes with below"),
    (
        "grains:\n- {name: g, shape: {sphere: {radius: 0.1}}, placement: {listed: {positions: [[1, 0, 0]]}}}\n"
        "removals:\n- {bodies: ['g[7]'], at: 1}\n",
        4,
    )
    + ("removals[0].bodies", "must be one of 1 bodies, g[0] to g[0], not 'g[7]'"),
    ("more_bodies:\n- {shape: {sphere: {radius: 0.1}}, fixed: true, motion: {constant: {velocity: [1, 0, 0]}}}\n", 2)
    + ("more_bodies[0].motion", "cannot be given beside fixed: true"),
    ("more_bodies:\n- {shape: {sphere: {radius: 0.1}}, fixed: true, mass: 3}\n", 2, "more_bodies[0].mass", "cannot be given beside fixed"),
    ("materials: {a: {}, b: {}}\npairs:\n- {materials: [a, b], friction: 0.1}\n- {materials: [b, a], friction: 0.2}\n", 4)
    + ("pairs[1].materials", "are a pair that is there already"),
    ("materials: {a: {}, b: {}}\npairs:\n- {materials: [a, b]}\n", 3, "pairs[0]", "must have a value such as friction"),
    ("more_bodies:\n- name: b\n  shape: {sphere: {radius: 0.1}}\nignore:\n  pairs:\n  - [ball, b]\n  - [ball, c]\n", 7)
    + ("ignore.pairs[1][1]", "must be the name of a body"),
    ("seed: " + 5000 * "9" + "\n", 1, "seed", "must be a whole number"),
    ("seed: 99999999999999999999999\n", 1, "seed", "must be at most 1000000000000000"),
    ("grains:\n- shape: {sphere: {radius: 0.01}}\n  placement:\n    lattice: {low: [0, 0, 0], high: [100, 100, 100], spacing: 0.002}\n", 4)
    + ("grains[0].placement.lattice.spacing", "must leave at most 100000000 places"),
    (
        "grains:\n- shape: {sphere: {radius: 0.01}}\n  placement:\n    random:\n      region: {box: {low: [0, 0, 0], high: [1, 1, 1]}}\n"
        "      count: 1000000000\n",
        *(6, "grains[0].placement.random.count", "must fit: 1000000000 bodies of about 4.19e+03 m3"),
    ),
]
ALONE = [
    ("", 1, "", "it is empty"),
    ("just words\n", 1, "", "it is 'just words'"),
    ("- a\n- b\n", 1, "", "it is a list of 2"),
    ("bodies: []\n", 1, "simulation", "is missing"),
    ("simulation: {dt: 0.01, time: 1}\n", 1, "", "must hold at least one body"),
    ("simulation: {dt: 1e-3}\n", 1, "simulation.time", "is missing: a number in s above 0"),
    ("simulation:\n  dt: 0\n  time: 1\n", 2, "simulation.dt", "must be above 0, not 0"),
    ("simulation: {dt: 0.1, time: 1, solver: gaus-seidel}\n", 1, "simulation.solver", "did you mean 'gauss-seidel'?"),
    ("simulation: {dt: 0.1, time: 1, threads: 2}\n", 1, "simulation.threads", "is not a key of a simulation"),
    ("a: &a [b, *a]\n", 1, "a[1]", "an alias cannot be part of what it repeats"),
]
BOUNDS = [
    ("bodies:\n- {shape: {sphere: {radius: 1}}}\nsimulation:\n  dt: 0.1\n  time: 1\n  bounds: {low: [1, 1, 1], high: [0, 0, 0]}\n", 6)
    + ("simulation.bounds.high", "must be above low"),
    ("bodies:\n- {shape: {sphere: {radius: 1}}}\nsimulation:\n  dt: 0.1\n  time: 1\n  bounds: {low: [1, 1, 1], high: [2, 2, 2]}\n", 6)
    + ("simulation.bounds", "must hold all bodies at the start, but 1 are outside, one at (0, 0, 0) m"),
]
CASES = [(SOUND + text, AT + line, path, words) for text, line, path, words in AFTER_SOUND] + ALONE
MORE = [(SOUND + text, AT + line, path, words) for text, line, path, words in TOGETHER] + BOUNDS


@pytest.mark.parametrize("text, line, path, words", [*CASES, *MORE], ids=range(len(CASES) + len(MORE)))
def test_wrong_file_is_refused_at_its_line_and_key(text, line, path, words, tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text(text)
    with pytest.raises(SceneFileError) as refused:
        load_scene_file(file)
    matching = [fault for fault in refused.value.faults if words in fault.words]
    assert matching, str(refused.value)
    assert (matching[0].line, matching[0].path) == (line, path), str(refused.value)
    assert str(matching[0]).startswith(f"{file}:{line}: " + (f"{path}: " if path else ""))
    assert "\n" not in str(matching[0])
    if (text, line, path, words) not in ALONE:  # nothing else is wrong with these
        assert len(refused.value.faults) == 1, str(refused.value)


def test_there_are_many():
    assert len(CASES) >= 45


def test_all_errors_are_told_at_once_in_the_order_of_lines(tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text(
        "gravity: [0, 0]\nmaterials: {a: {friction: -1}}\nbodies:\n- {shape: {sphere: {radius: 0}}}\n"
        "- {shape: {mesh: {file: no.stl}}}\njoints:\n- hinge: {}\nsimulation: {dt: 0.1}\n"
    )
    with pytest.raises(SceneFileError) as refused:
        load_scene_file(file)
    assert [fault.line for fault in refused.value.faults] == [1, 2, 4, 5, 7, 8]
    assert [fault.path for fault in refused.value.faults] == [
        "gravity",
        "materials.a.friction",
        "bodies[0].shape.sphere.radius",
        "bodies[1].shape.mesh.file",
        "joints[0].hinge",
        "simulation.time",
    ]


def test_what_refers_to_a_wrong_thing_is_not_told_too(tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text(
        "materials: {a: {friction: -1}}\nbodies:\n- {name: b, shape: {sphere: {radius: 0.1}}, material: a}\n"
        "joints:\n- spherical: {between: [world, b]}\nsimulation: {dt: 0.1, time: 1}\n"
    )
    with pytest.raises(SceneFileError) as refused:
        load_scene_file(file)
    assert [fault.path for fault in refused.value.faults] == ["materials.a.friction"]


def test_a_bomb_of_aliases_is_refused_quickly(tmp_path):
    file = tmp_path / "bomb.yaml"
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 9)]  # 10^9 values
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(SceneFileError, match="becomes more than 500000 keys and values"):
        load_scene_file(file)


def test_deep_nesting_and_bytes_that_are_no_text(tmp_path):
    deep, binary, control = (tmp_path / name for name in ("deep.yaml", "binary.yaml", "control.yaml"))
    deep.write_text("a: " + "[" * 1200)
    binary.write_bytes(b"seed: 1\ntitle: \xff\xfe\n")
    control.write_text("seed: 1\ntitle: a\x00b\n")
    for file, words in ((deep, "nested too deeply"), (binary, r"binary.yaml:2: must be text in UTF-8"), (control, r"control.yaml:2: ")):
        with pytest.raises(SceneFileError, match=words):
            load_scene_file(file)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="no.yaml does not exist"):
        load_scene_file(tmp_path / "no.yaml")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(ValueError, match="is no file"):
        load_scene_file(tmp_path / "folder.yaml")


@pytest.mark.parametrize(
    "message, keys, key, words",
    [
        ("Material friction must be at least 0, not -1", ("density", "friction"), "friction", "must be at least 0, not -1"),
        ("path must be a mesh file, but 'a.stl' is empty", ("file", "scale"), "file", "must be a mesh file, but 'a.stl' is empty"),
        ("inertias must satisfy the triangle inequality", ("mass", "inertia"), "inertia", "must satisfy the triangle inequality"),
        ("a Plane has no mass: add it with fixed=True", ("shape",), None, "a Plane has no mass: add it with fixed=True"),
        ("a fraction of 0.9 was not reached", ("fraction",), "fraction", "a fraction of 0.9 was not reached"),
        ("limits: limits must be in order", ("limits", "point"), "limits", "limits: limits must be in order"),
    ],
)
def test_errors_of_constructors_are_put_to_the_key_they_are_about(message, keys, key, words):
    assert blamed(message, keys) == (key, words)
