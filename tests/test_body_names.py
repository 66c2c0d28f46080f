"""Names of bodies: unique, kept by copies, checkpoints, results, scene files and robots; warnings use them and point at the user's line."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import gravel as gv
from gravel.body_names import BodyNames


def named_scene():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True, name="floor")
    drum = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, 0, 0.1), name="drum")
    grains = scene.add_bodies(gv.Sphere(0.05), [(1, 0.2 * k, 0.05) for k in range(6)], name="grains")
    return scene, drum, grains


def same_names(found, expected):
    assert list(found) == list(expected)
    for name in expected:
        assert np.array_equal(found[name], expected[name]) and np.ndim(found[name]) == np.ndim(expected[name])


# --- giving
def test_a_name_stands_for_a_body_or_for_a_group():
    scene, drum, grains = named_scene()
    same_names(scene.body_names, {"floor": 0, "drum": drum, "grains": grains})
    sim = gv.Simulation(scene, 1e-3)
    assert np.array_equal(sim.positions[sim.body_names["drum"]], (0, 0, 0.1))
    assert np.array_equal(sim.positions[sim.body_names["grains"]][:, 1], 0.2 * np.arange(6))
    assert "floor, drum, grains" in repr(scene) and "floor, drum, grains" in repr(sim)


@pytest.mark.parametrize("name", ["drum", "", " x", "a\nb", "x" * 61, "\x1b[2J", 3, b"drum"])
def test_what_is_no_new_name_is_refused_and_adds_nothing(name):
    scene, *_ = named_scene()
    for add in (
        lambda: scene.add_body(gv.Sphere(0.1), (0, 5, 5), name=name),
        lambda: scene.add_bodies(gv.Sphere(0.1), [(0, 5, 5)], name=name),
    ):
        with pytest.raises((TypeError, ValueError), match="name must be"):
            add()
    sim = gv.Simulation(scene, 1e-3)
    with pytest.raises((TypeError, ValueError), match="name must be"):
        sim.add_bodies(gv.Sphere(0.1), [(0, 5, 5)], name=name)
    assert len(scene) == sim.count == 8 and len(scene.body_names) == len(sim.body_names) == 3


def test_unknown_names_get_the_nearest_suggested():
    scene, *_ = named_scene()
    with pytest.raises(KeyError, match="did you mean 'drum'"):
        scene.body_names["drun"]


def test_names_of_a_run_go_on_and_are_not_used_again():
    scene, _, grains = named_scene()
    sim = gv.Simulation(scene, 1e-3)
    late = sim.add_bodies(gv.Sphere(0.05), [(3, 0, 1)], name="late")
    assert np.array_equal(sim.body_names["late"], late) and "late" not in scene.body_names
    sim.remove(grains[:2])
    assert np.array_equal(sim.rows_of("grains"), grains[2:]) and np.array_equal(sim.body_names["grains"], grains)
    sim.remove(late)
    with pytest.raises(ValueError, match="already has"):
        sim.add_bodies(gv.Sphere(0.05), [(3, 0, 1)], name="late")


def test_a_packing_has_one_name_for_all_its_parts():
    mixture = gv.Mixture([(gv.Sphere(0.02), 0.5), (gv.Box((0.02, 0.01, 0.01)), 0.5)])
    packing = gv.pack(mixture, gv.BoxRegion((0, 0, 0), (0.2, 0.2, 0.2)), fraction=0.1)
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    ids = packing.add_to(scene, name="mix")
    assert np.array_equal(scene.body_names["mix"], np.sort(ids)) and len(ids) > 5
    with pytest.raises(ValueError, match="already has"):
        packing.add_to(scene, name="mix")


def test_labels_and_names_in_words():
    names = BodyNames({"drum": 1, "lid": 1, "grains": range(2, 5)})
    assert [names.of(body) for body in (0, 1, 2, 4)] == ["", "drum, lid", "grains[0]", "grains[2]"]
    assert names.labels(np.array([4, 1, 0])).tolist() == ["grains", "drum, lid", ""]
    assert names.free("drum") == "drum 2" and names.free("a\nb ") == "a b" and len(names.free("x" * 99)) == 60


@pytest.mark.parametrize("values", [[], {"a": -1}, {"a": 5}, {"a": [3, 2]}, {"a": [0, 9]}, {"a": True}, {" a": 0}, {"a": "0"}])
def test_crafted_names_in_files_are_refused(values):
    with pytest.raises(ValueError, match="names of bodies"):
        BodyNames.from_values(values, 5)


# --- keeping
def test_copies_and_checkpoints_keep_names(tmp_path):
    scene, drum, grains = named_scene()
    sim = gv.Simulation(scene, 1e-3)
    sim.add_bodies(gv.Sphere(0.05), [(3, 0, 1)], name="late")
    sim.save(tmp_path / "a.h5")
    for twin in (sim.copy(), copy.deepcopy(sim), pickle.loads(pickle.dumps(sim)), gv.Simulation.load(tmp_path / "a.h5")):
        same_names(twin.body_names, {"floor": 0, "drum": drum, "grains": grains, "late": np.array([8])})
    other = sim.copy()
    other.add_bodies(gv.Sphere(0.05), [(3, 0, 3)], name="own")
    assert "own" not in sim.body_names


def test_results_keep_names_and_frames_find_rows(tmp_path):
    scene, drum, grains = named_scene()
    sim = gv.Simulation(scene, 1e-3)
    sim.run(until=0.002, save=tmp_path / "a.vtkhdf", every=0.002)
    sim.remove(grains[:2])
    sim.add_bodies(gv.Sphere(0.05), [(3, 0, 1)], name="late")
    sim.run(until=0.004, save=tmp_path / "a.vtkhdf", every=0.002)  # the same run goes on with its file
    with gv.open_result(tmp_path / "a.vtkhdf") as result:
        same_names(result.body_names, {"floor": 0, "drum": drum, "grains": grains, "late": np.array([8])})
        frame = result[-1]
        assert np.array_equal(frame.ids[frame.rows_of("grains")], grains[2:])
        assert np.array_equal(frame.positions[frame.rows_of("drum")], sim.positions[[drum]])
        assert len(frame.rows_of("floor")) == 0  # planes are not among the bodies of a frame
        assert frame.to_pandas().loc[drum, "name"] == "drum"
    assert sim.to_pandas().loc[int(grains[3]), "name"] == "grains"


def test_a_scene_from_a_simulation_renumbers_names():
    scene, _, grains = named_scene()
    sim = gv.Simulation(scene, 1e-3)
    sim.remove([sim.body_names["drum"], *grains[1:3]])
    same_names(gv.Scene.from_simulation(sim).body_names, {"floor": 0, "grains": np.arange(1, 5)})


def test_scene_files_keep_names(tmp_path):
    scene, drum, grains = named_scene()
    free = scene.add_body(gv.Sphere(0.1), (0, 3, 3))
    scene.add_joint(gv.Distance(drum, free, point=(0, 0, 0.1), point_b=(0, 3, 3)))
    assert scene.to_file(tmp_path / "a.yaml") == []
    found = gv.Scene.from_file(tmp_path / "a.yaml").body_names
    same_names(found, {"floor": 0, "drum": drum, "grains": grains, f"body {free}": free})  # the joint needs a name for the last
    scene.add_body(gv.Sphere(0.1), (0, 5, 5), name="world")
    assert any("'world'" in note for note in scene.to_file(tmp_path / "b.yaml"))


URDF = """<robot name="arm"><link name="base"/>
<link name="blade"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="blade"/><axis xyz="0 1 0"/></joint></robot>"""


def test_links_of_robots_are_named(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    scene = gv.Scene()
    first, second = (gv.load_urdf(scene, tmp_path / "arm.urdf", position=(x, 0, 1)) for x in (0, 2))
    assert scene.body_names["blade"] == first.links["blade"] and scene.body_names["blade 2"] == second.links["blade"]
    (tmp_path / "a.yaml").write_text("robots: [{name: left, file: arm.urdf, position: [0, 0, 1]}]\nsimulation: {dt: 0.001, time: 1}\n")
    assert set(gv.Scene.from_file(tmp_path / "a.yaml").body_names) == {"left.base", "left.blade"}


# --- warnings
def test_warnings_name_bodies_and_materials_and_point_at_the_users_line():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True, name="floor")
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.05), name="ball")
    sim = gv.Simulation(scene, 1e-3)
    with pytest.warns(UserWarning, match=r"bodies 0 \(floor\) and 1 \(ball\) overlap") as deep:
        sim.run(until=0.001)  # through run, not step
    soil = gv.Material(rolling_friction=0.3, name="soil")
    scene.add_body(gv.Sphere(0.1), (0, 0, 5), soil, name="pebble")
    with pytest.warns(UserWarning, match=r"rolling_friction of material 'soil' .* body 2 \(pebble\)") as arms:
        gv.Simulation(scene, 1e-3)
    triangles = np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 3, 2)])
    with pytest.warns(UserWarning, match="was repaired") as mesh:
        gv.Mesh(np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1.0)]), triangles, repair=True)
    for caught in (deep, arms, mesh):
        assert {warning.filename for warning in caught} == {__file__}


def test_a_warning_within_the_users_own_function_points_there():
    """An observer that gravel calls is the user's line, not the run around it."""
    from gravel import cautions

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile("warn('from here')", "their_script.py", "exec"), {"warn": cautions.warn, "__name__": "theirs"})
        exec(compile("warn('passed on')", "inside.py", "exec"), {"warn": cautions.warn, "__name__": "gravel.inside"})
    assert [warning.filename for warning in caught] == ["their_script.py", __file__]


def test_errors_of_a_step_name_the_body():
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), (0, 0, 0), name="stone", velocity=(1e9, 0, 0))
    with pytest.raises(gv.SimulationError, match=r"body 0 \(stone\)"):
        gv.Simulation(scene, 1e-3, bounds=((-1, -1, -1), (1, 1, 1))).step()
