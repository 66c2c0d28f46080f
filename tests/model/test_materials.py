"""Materials are told apart by object, in scenes, in runs and in checkpoints, and the table of pairs stays small."""

import copy
import dataclasses
import pickle
import re
import warnings

import numpy as np
import pytest

import gravel as gv
from gravel.contacts import ContactTable
from gravel.joints.table import JointTable
from gravel.model.materials import DEFAULT, PAIR_FIELDS, Materials, pair_table
from gravel.running.report import StepReport
from gravel.running.run import RunReport

G = 9.81


def friction_between(materials, a, b):
    i, j = (materials.row[materials.number_of(one)] for one in (a, b))
    return materials.contact_values()[i, j, PAIR_FIELDS.index("friction")]


# --- the table
def test_equal_materials_are_two_where_a_pair_names_one():
    a, b, c = (gv.Material(friction=0.4) for _ in range(3))
    materials = Materials()
    for one in (a, b, c):
        materials.number_of(one)
    assert len(materials) == 3 and len(materials.kinds) == 1
    materials.set_pair(a, b, {"friction": 0.1})
    assert friction_between(materials, a, b) == friction_between(materials, b, a) == 0.1
    for pair in ((a, a), (b, b), (c, c), (a, c), (b, c)):
        assert friction_between(materials, *pair) == pytest.approx(0.4)
    materials.set_pair(c, c, {"friction": 0.7})
    assert friction_between(materials, c, c) == 0.7 and friction_between(materials, b, b) == pytest.approx(0.4)
    later = gv.Material(friction=0.4)  # joins none of those that are named
    assert friction_between(materials, later, later) == pytest.approx(0.4) == friction_between(materials, later, c)


def test_random_pairs_are_those_of_a_table_with_a_row_for_every_object():
    rng = np.random.default_rng(8)
    for _ in range(30):
        objects = [gv.Material(friction=f) for f in rng.choice([0.1, 0.4, 0.9], 12)]
        materials, explicit = Materials(), {}
        for _ in range(25):
            i, j = sorted(rng.integers(12, size=2).tolist())
            if rng.random() < 0.4:
                value = {"friction": rng.random()}
                materials.set_pair(objects[j], objects[i], value)
                explicit.setdefault((i, j), {}).update(value)
            else:
                materials.number_of(objects[i])
        rows = [materials.row[materials.number_of(one)] for one in objects]
        assert np.array_equal(materials.contact_values()[np.ix_(rows, rows)], pair_table(objects, explicit))
        assert len(materials.kinds) <= 3 + len({k for pair in explicit for k in pair})


def test_ten_thousand_equal_materials_need_one_row():
    scene = gv.Scene()
    ball = gv.Sphere(0.1)
    for k in range(10_000):
        scene.add_body(ball, (k, 0, 0), gv.Material(friction=0.3))
    assert len(scene.materials) == 10_000 and len(scene.materials.kinds) == 1
    sim = gv.Simulation(scene, 1e-3)
    assert sim.materials.contact_values().shape == (1, 1, 5)
    assert not sim.bodies.tag[:, 1].any()


def test_bodies_without_a_material_share_one():
    scene = gv.Scene()
    for k in range(5):
        scene.add_body(gv.Sphere(0.1), (k, 0, 0))
    assert list(scene.materials) == [DEFAULT] and scene.materials[0] is DEFAULT
    sim = gv.Simulation(scene, 1e-3)
    sim.add_bodies(gv.Sphere(0.1), [(9, 9, 9)])
    assert len(sim.materials) == 1
    twin = gv.Material()  # equal to the default, and not it
    scene.add_body(gv.Sphere(0.1), (0, 5, 0), twin)
    scene.set_pair(DEFAULT, DEFAULT, friction=0.1)
    assert friction_between(scene.materials, DEFAULT, DEFAULT) == 0.1
    assert friction_between(scene.materials, twin, twin) == pytest.approx(0.5) == friction_between(scene.materials, twin, DEFAULT)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda scene: pickle.loads(pickle.dumps(scene)), copy.copy])
def test_copies_of_a_scene_keep_what_was_told_apart(copied):
    a, b, scene = gv.Material(), gv.Material(), gv.Scene()
    scene.add_body(gv.Sphere(0.1), material=a)
    scene.add_body(gv.Sphere(0.1), material=b)
    scene.set_pair(a, a, friction=0.1)
    twin = copied(scene)
    first, second = twin.materials
    assert friction_between(twin.materials, first, first) == 0.1
    assert friction_between(twin.materials, second, second) == pytest.approx(0.5)
    assert twin.material_index(first) == 0 and twin.material_index(second) == 1
    assert copy.copy(a) is a and copy.deepcopy(a) is a


# --- two sleds of equal materials on one floor
def sleds(early=False):
    """(scene, floor, smooth, rough): boxes 0 and 1 at 2 m/s on a floor, of two equal materials."""
    scene, floor = gv.Scene(), gv.Material(friction=0.5)
    smooth, rough = gv.Material(friction=0.5), gv.Material(friction=0.5)
    if early:
        scene.set_pair(smooth, floor, friction=0.1)
    for y, material in ((0, smooth), (1, rough)):
        scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, y, 0.1), material, velocity=(2, 0, 0))
    scene.add_body(gv.Plane(), material=floor, fixed=True)
    if not early:
        scene.set_pair(floor, smooth, friction=0.1)
    return scene, floor, smooth, rough


def speeds_after(sim, seconds):
    sim.run(until=sim.time + seconds)
    return sim.velocities[:2, 0].copy()


def simulated(scene):
    return gv.Simulation(scene, 1e-3, friction="coulomb", precision="double")


@pytest.mark.parametrize("early", [True, False])
def test_only_the_material_that_was_named_slides_far(early):
    found = speeds_after(simulated(sleds(early)[0]), 0.2)
    assert np.allclose(found, [2 - 0.1 * G * 0.2, 2 - 0.5 * G * 0.2], atol=0.02)


def test_pairs_change_in_a_running_simulation():
    scene, floor, smooth, rough = sleds()
    sim = simulated(scene)
    speeds_after(sim, 0.1)
    sim.set_pair(rough, floor, friction=0.2)
    sim.set_pair(floor, smooth, friction=0.0)
    found = speeds_after(sim, 0.1)
    assert np.allclose(found, [2 - 0.1 * G * 0.1, 2 - 0.5 * G * 0.1 - 0.2 * G * 0.1], atol=0.02)
    assert friction_between(scene.materials, rough, floor) == pytest.approx(0.5)  # the scene stays as it is


def test_equal_materials_part_while_bodies_come_and_go():
    """Bodies made with the object that is named get its values, whenever they came and however the engine sorted them."""
    a, b, floor, scene = gv.Material(), gv.Material(), gv.Material(), gv.Scene()
    places = np.random.default_rng(2).permutation(100)
    for k in range(40):
        scene.add_body(gv.Sphere(0.1), (places[k], 0, 1), a if k % 3 else b)
    scene.add_body(gv.Plane(), material=floor, fixed=True)
    sim = gv.Simulation(scene, 1e-3)
    sim.step()
    sim.remove([3, 4, 5])
    late = sim.add_bodies(gv.Sphere(0.1), [(places[50], 0, 1), (places[51], 0, 1)], a)
    assert len(sim.materials.kinds) == 1
    sim.set_pair(a, floor, friction=0.1)
    latest = sim.add_bodies(gv.Sphere(0.1), [(places[52], 0, 1)], b)
    sim.step()
    tag = sim.bodies.tag[:, 1]
    of_a = [k for k in range(40) if k % 3 and k not in (4, 5)] + late.tolist()
    of_b = [k for k in range(40) if not k % 3 and k != 3] + latest.tolist()
    assert (tag[of_a] == sim.materials.row[sim.materials.number_of(a)]).all()
    assert (tag[of_b] == sim.materials.row[sim.materials.number_of(b)]).all()
    assert all(sim.material_of(k) is a for k in of_a) and all(sim.material_of(k) is b for k in of_b)
    assert sim.materials.row[sim.materials.number_of(a)] != sim.materials.row[sim.materials.number_of(b)]


def test_rolling_friction_can_begin_in_a_running_simulation():
    scene, rho, radius = gv.Scene(), 0.01, 0.1
    ball, floor = gv.Material(), gv.Material()
    scene.add_body(gv.Sphere(radius), (0, 0, radius), ball, velocity=(1, 0, 0), angular_velocity=(0, 1 / radius, 0))
    scene.add_body(gv.Plane(), material=floor, fixed=True)
    sim = simulated(scene)
    sim.run(until=0.2)
    assert sim.velocities[0, 0] == pytest.approx(1.0, abs=1e-3)  # it rolls
    sim.set_pair(ball, floor, rolling_friction=rho)
    sim.run(until=0.4)
    assert sim.velocities[0, 0] == pytest.approx(1.0 - 0.2 * G * rho / radius / 1.4, abs=0.005)  # 7/5 m: of a ball that rolls


@pytest.mark.parametrize("name", ["rolling_friction", "spinning_friction"])
def test_torques_of_a_friction_that_begins_start_from_zero(device, name):
    """The step before knew no torques, and what stands in memory where they would be is not read as such: neither what was there before
    the run, nor what was left by an earlier time with this friction."""
    rng, scene, ball = np.random.default_rng(3), gv.Scene(), gv.Material(friction=0.5)
    places = 0.1 * np.stack(np.meshgrid(*[np.arange(7.0)] * 2, np.arange(4.0), indexing="ij"), -1).reshape(-1, 3) + (0, 0, 0.05)
    speeds, spins = rng.normal(0, 0.3, places.shape), rng.normal(0, 5, places.shape)
    scene.add_bodies(gv.Sphere(0.05), places, ball, velocities=speeds, angular_velocities=spins)
    scene.add_body(gv.Plane(), material=ball, fixed=True)
    sim = gv.Simulation(scene, 1 / 500, friction="coulomb")
    for _ in range(2):
        sim.set_pair(ball, ball, **{name: 0.0})
        sim.run(until=sim.time + 5 * sim.dt)
        sim.set_pair(ball, ball, **{name: 1e-3})
        sim.next_problem(warm_start=True)
        listed, torque = sim.engine.detector.contacts, sim.engine.step.torque if device == "cpu" else sim.engine.step.torque.numpy()
        torque = np.concatenate([torque[first : first + count] for first, count in zip(listed.start, listed.count)])
        assert len(torque) > 100 and not torque.any()
        sim.run(until=sim.time + 5 * sim.dt)
        assert np.abs(sim.engine.contact_cache().torque).max() > 0
        assert np.abs(sim.velocities).max() < 3.0 and np.abs(sim.angular_velocities).max() < 100.0


def test_checkpoints_and_copies_keep_materials_apart(tmp_path):
    scene, floor, smooth, rough = sleds()
    sim = simulated(scene)
    speeds_after(sim, 0.05)
    sim.save(tmp_path / "state.h5")
    loaded, twin, thawed = gv.Simulation.load(tmp_path / "state.h5"), sim.copy(), pickle.loads(pickle.dumps(sim))
    expected = speeds_after(sim, 0.05)
    for other in (loaded, twin, thawed):
        assert np.array_equal(speeds_after(other, 0.05), expected) and other.state_hash() == sim.state_hash()
    twin.set_pair(rough, floor, friction=0.0)  # the copy knows the same objects
    assert speeds_after(twin, 0.05)[1] == pytest.approx(expected[1], abs=1e-6)
    with pytest.raises(ValueError, match=r"material_a must be what material_of\(body\) gives, not another"):
        loaded.set_pair(rough, floor, friction=0.0)  # which object is meant, a file cannot know
    assert loaded.material_of(0) is not loaded.material_of(1) and sim.material_of(1) is rough
    loaded.set_pair(loaded.material_of(1), loaded.material_of(2), friction=0.0)
    assert speeds_after(loaded, 0.05)[1] == pytest.approx(expected[1], abs=1e-6)


def test_set_pair_refuses_what_cannot_be_and_leaves_the_simulation_as_it_was():
    scene, floor, smooth, rough = sleds()
    sim = simulated(scene)
    sim.step()
    before, state = sim.materials.contact_values(), sim.state_hash()
    cases = [
        ((rough, floor), {"friction": -1}, ValueError, "friction must be at least 0, not -1"),
        ((rough, floor), {"restitution": 2}, ValueError, "restitution must be at most 1, not 2"),
        ((rough, floor), {"frction": 1}, ValueError, "did you mean 'friction'"),
        ((rough, "ice"), {"friction": 1}, TypeError, "material must be a Material, not 'ice'"),
        ((rough, floor), {"cohesion": 1e300}, ValueError, "cohesion must be at most"),
    ]
    for pair, values, error, words in cases:
        with pytest.raises(error, match=re.escape(words)):
            sim.set_pair(*pair, **values)
        assert np.array_equal(sim.materials.contact_values(), before) and sim.state_hash() == state
    sim.step()
    for body in (3, 99):
        with pytest.raises(ValueError, match=f"body must be one that is there, but {body} is not"):
            sim.material_of(body)


# --- units
UNITLESS = ("body_a", "body_b", "normal", "sliding", "broken")


@pytest.mark.parametrize("kind", [gv.Material, StepReport, RunReport, ContactTable, JointTable])
def test_docstrings_tell_every_field_and_its_unit(kind):
    for field in dataclasses.fields(kind):
        line = next((line for line in kind.__doc__.splitlines() if f"``{field.name}``" in line), None)
        assert line is not None, field.name
        if field.type in (float, "float", np.ndarray, "np.ndarray") and field.name not in UNITLESS:
            assert re.search(r"\b(s|m|m/s|rad|rad/s|N|N m|N s|J|kg/m3|no unit)\b", line.split("``", 2)[2]), line


@pytest.mark.parametrize("name", ["rolling_friction", "spinning_friction"])
def test_arms_beyond_a_bodys_size_are_asked_about_once(name):
    scene, sand = gv.Scene(), gv.Material(**{name: 0.05})
    scene.add_body(gv.Plane(), material=sand, fixed=True)
    scene.add_bodies(gv.Sphere(np.array([0.2, 0.02, 0.03])), [(0, 0, 1), (1, 0, 1), (2, 0, 1)], sand)
    with pytest.warns(UserWarning) as caught:
        sim = gv.Simulation(scene, 1e-3)
        sim.step()
    assert len(caught) == 1 and caught[0].filename == __file__
    for words in (name, repr(sand), "0.05 m", "bounding radius is 0.02 m"):
        assert words in str(caught[0].message)


def test_arms_within_a_bodys_size_are_not_asked_about():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), material=gv.Material(rolling_friction=0.5), fixed=True)
    scene.add_body(gv.Sphere(0.01), (5, 0, 0), gv.Material(rolling_friction=0.3), fixed=True)  # what is fixed does not roll
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.1), gv.Material(rolling_friction=0.1, spinning_friction=0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gv.Simulation(scene, 1e-3)


def test_bodies_can_be_made_of_another_material_in_a_run():
    """A box that slides without friction stops once it has some: by mu g."""
    scene = gv.Scene()
    ice, rubber = gv.Material(friction=0.0), gv.Material(friction=0.5, density=1e5)
    scene.add_body(gv.Plane(), material=gv.Material(friction=0.5), fixed=True)
    box = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, 0, 0.1), ice, velocity=(2.0, 0, 0))
    sim = gv.Simulation(scene, 1e-3, precision="double", friction="coulomb")
    mass = sim.masses[box]
    sim.run(0.1)
    assert sim.velocities[box, 0] == pytest.approx(2.0, abs=1e-9)
    sim.set_material(box, rubber)
    assert sim.material_of(box) is rubber and sim.masses[box] == mass
    sim.run(0.3)
    assert sim.velocities[box, 0] == pytest.approx(2.0 - 0.5 * 9.81 * 0.2, rel=1e-2)
    for ids, material, words in (([7], rubber, "ids must be"), ([box], "rubber", "material must be")):
        with pytest.raises((ValueError, TypeError), match=words):
            sim.set_material(ids, material)


def test_a_material_that_is_refused_changes_nothing():
    """Cohesion far beyond the weight: the bodies keep what they are made of, and the next step is taken as before."""
    scene = gv.Scene()
    plain = gv.Material()
    scene.add_body(gv.Plane(), material=gv.Material(cohesion=1e9), fixed=True)
    ball = scene.add_body(gv.Sphere(0.01), (0, 0, 0.01), plain)
    sim = gv.Simulation(scene, 1e-3, threads=1)
    sim.step()
    known = len(sim.materials)
    with pytest.raises(ValueError, match="cohesion must be at most"):
        sim.set_material(ball, gv.Material(cohesion=1e9))
    assert sim.material_of(ball) is plain and len(sim.materials) == known
    sim.step()


def test_another_material_wakes_those_who_sleep():
    scene = gv.Scene((1.0, 0.0, -9.81))
    scene.add_body(gv.Plane(), material=gv.Material(friction=1.0), fixed=True)
    box = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, 0, 0.1), gv.Material(friction=1.0))
    sim = gv.Simulation(scene, 1e-3, precision="double", friction="coulomb", sleep=gv.Sleep(time=0.05))
    sim.run(0.3)
    assert sim.asleep[box]
    sim.set_material(box, gv.Material(friction=0.0))
    sim.run(0.4)
    assert not sim.asleep[box]
    assert sim.velocities[box, 0] == pytest.approx(0.1, rel=0.02)


def test_names_tell_materials_apart_and_change_nothing_else(tmp_path):
    wet, dry = gv.Material(friction=0.4, name="wet sand"), gv.Material(friction=0.4, name="dry sand")
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.1), [(0, 0, 0), (1, 0, 0)], wet)
    scene.add_body(gv.Sphere(0.1), (2, 0, 0), dry)
    sim = gv.Simulation(scene, 1e-3)
    assert [kind.name for kind in sim.materials.kinds] == ["wet sand", "dry sand"]
    assert np.ptp(sim.materials.contact_values(), axis=(0, 1)).max() == 0.0  # all pairs do the same
    sim.save(tmp_path / "state.h5")
    again = gv.Simulation.load(tmp_path / "state.h5")
    assert [again.material_of(body) for body in range(3)] == [wet, wet, dry]
    scene.to_file(tmp_path / "sand.yaml", dt=1e-3, time=1.0)
    read = gv.Scene.from_file(tmp_path / "sand.yaml")
    assert [read.materials[k] for k in read.bodies.tag[:, 1]] == [wet, wet, dry]


@pytest.mark.parametrize("name", [None, 3, "two\nlines", " wide ", "x" * 61])
def test_a_name_is_a_short_line_of_text(name):
    with pytest.raises(ValueError, match="Material name must be a text of one line, at most 60 letters"):
        gv.Material(name=name)
