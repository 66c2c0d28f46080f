"""What results tell of their run beside frames: how it was made, its materials, what stages took, where joints sit."""

import datetime

import h5py
import numpy as np
import pytest

import gravel as gv
from gravel.io.present import frame_of, joint_anchors
from gravel.io.vtkhdf import read_frame

STEEL, ICE = gv.Material(density=7800, friction=0.3, restitution=0.5), gv.Material(density=917, friction=0.02, name="Stahl, gehärtet")


def swinging():
    """A plane, three balls, two of them on joints."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), material=ICE, fixed=True)
    scene.add_bodies(gv.Sphere(0.1), [(0, 0, 1), (1, 0, 1), (2, 0, 1)], material=STEEL)
    scene.add_joint(gv.Spherical(None, 1, (0, 0, 1.5)))
    scene.add_joint(gv.Revolute(1, 2, (0.5, 0, 1), axis=(0, 1, 0)))
    return gv.Simulation(scene, 1e-3, threads=1)


def change(sim):
    if sim.steps == 15:
        sim.add_joint(gv.Distance(None, 3, (2, 0, 2), point_b=(2, 0, 1)))
    if sim.steps == 25:
        sim.add_bodies(gv.Sphere(0.1), [(0, 3, 1)], material=gv.Material(density=123))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """(path, the simulation, what it was at each frame, seconds of each step); killed after 0.03 s and continued."""
    folder, sim, frames, seconds = tmp_path_factory.mktemp("about"), swinging(), [], []
    path, state = folder / "r.vtkhdf", folder / "s.h5"
    sim.origin = {"scene": "swing", "bodies": 3, "seed": 7}

    def note(s):
        if s.steps % 10 == 0:
            frames.append(frame_of(s))
        if s.steps:
            seconds.append(dict(s.report.seconds))

    note(sim)
    sim.run(0.02, path, 0.01, observers=[change, note], checkpoint=state)
    sim.run(0.03, path, 0.01)  # lost: the run goes on from its checkpoint
    sim = gv.Simulation.load(state, threads=1)
    sim.dt = 5e-4
    sim.run(0.03, path, 0.01, observers=[change])
    return path, sim, frames, seconds


def test_about_tells_how_the_run_was_made_and_how_it_went_on(run):
    path, sim, _, _ = run
    with gv.open_result(path) as result:
        about = result.about
    expected = {"version": gv.__version__, "scene": "swing", "bodies": 3, "seed": 7, "dt": 1e-3, "friction": "coulomb"}
    expected |= {"precision": "single", "device": "cpu", "threads": 1, "processes": 1, "solver": sim.solver.describe()}
    assert {name: about[name] for name in expected} == expected and about["processor"]
    started = datetime.datetime.fromisoformat(about["started"])
    assert started.utcoffset() == datetime.timedelta(0)
    assert abs((datetime.datetime.now(datetime.timezone.utc) - started).total_seconds()) < 600
    lost, went_on = about["continued"]
    assert lost["time"] == pytest.approx(0.02) == went_on["time"]
    assert (about["until"], lost["until"]) == (0.02, 0.03) and set(lost) == {"time", "started", "until"}
    assert went_on["dt"] == 5e-4 and set(went_on) == {"time", "started", "dt", "tolerance", "rms_tolerance"}
    assert (about["tolerance"], went_on["tolerance"]) == pytest.approx((0.2 * 9.81e-3, 0.1 * 9.81e-3))
    assert (about["rms_tolerance"], went_on["rms_tolerance"]) == pytest.approx((0.01 * 9.81e-3, 0.005 * 9.81e-3))


def test_a_scene_without_a_name_tells_how_many_bodies_can_move(tmp_path):
    sim = swinging()
    sim.run(0.001, tmp_path / "r.vtkhdf")
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        assert (result.about["scene"], result.about["bodies"], result.about["seed"], result.about["continued"]) == (None, 3, None, [])


def test_materials_are_those_of_the_numbers_that_bodies_have(run):
    path, sim, _, _ = run
    with gv.open_result(path) as result:
        densities = [material["density"] for material in result.materials]
        last = result[-1]
        told = [densities[number] for number in last.materials]
        assert told == [sim.material_of(body).density for body in last.ids] == [7800] * 3 + [123]
        assert len(result.materials) == 3 and set(result.materials[0]) == set(vars(STEEL))
        (steel,) = [material for material in result.materials if material["density"] == 7800]
        assert steel == vars(STEEL)


def test_seconds_of_stages_are_those_of_the_reports_and_of_steps_that_count(run):
    path, _, _, seconds = run
    with gv.open_result(path) as result:
        stages, reports = result.stage_seconds, result.reports
    assert len(seconds) == 20 and len(reports) == 40  # 20 of 1 ms, then 20 of half of it
    assert set().union(*seconds) <= set(stages)
    for name, values in stages.items():
        assert values.shape == (40,) and (values >= 0).all()
        assert np.allclose(values[:20], [step.get(name, 0.0) for step in seconds], rtol=1e-6)
    assert stages["solve"].any()


def test_stages_that_come_later_are_zero_before(tmp_path):
    from gravel.io.about import StageSeconds

    with h5py.File(tmp_path / "f.h5", "w") as file:
        stages = StageSeconds(file.create_group("gravel"))
        stages.observe({"a": 1.0})
        stages.flush()
        stages.observe({"b": 3.0, "a": 2.0})
        stages.observe({"b": 4.0})
        stages.flush()
        assert stages.names == ["a", "b"] and file["gravel/stage_seconds"][:].tolist() == [[1, 0], [2, 3], [0, 4]]


def test_joints_of_a_frame_are_those_that_were_there(run):
    path, sim, frames, _ = run
    assert [len(frame["joints"]["kind"]) for frame in frames] == [2, 2, 3]
    for k, frame in enumerate(frames):
        read = read_frame(path, k)["joints"]
        assert set(read) == set(frame["joints"]) and read["kind"] == frame["joints"]["kind"]
        for name in set(read) - {"kind"}:
            np.testing.assert_allclose(read[name], frame["joints"][name], atol=1e-12, err_msg=name)
            assert read[name].dtype.kind == frame["joints"][name].dtype.kind
    read, true = read_frame(path)["joints"], joint_anchors(sim.mechanism)
    assert read["kind"] == true["kind"] == ["Spherical", "Revolute", "Distance"]
    assert read["body_b"].tolist() == [1, 2, 3] and np.allclose(read["axis"][1], (0, 1, 0))
    assert np.allclose(read["point_a"][0], (0, 0, 1.5))


def test_broken_joints_are_told(tmp_path):
    sim = swinging()
    sim.run(0.01, tmp_path / "r.vtkhdf", 0.01, observers=[lambda s: s.remove([1]) if s.steps == 5 else None])
    assert [read_frame(tmp_path / "r.vtkhdf", k)["joints"]["broken"].tolist() for k in (0, 1)] == [[False, False], [True, True]]


def test_a_result_without_joints_has_none(tmp_path):
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1))
    gv.Simulation(scene, 1e-3).run(0.002, tmp_path / "r.vtkhdf")
    joints = read_frame(tmp_path / "r.vtkhdf")["joints"]
    assert joints["kind"] == [] and joints["point_a"].shape == (0, 3)
