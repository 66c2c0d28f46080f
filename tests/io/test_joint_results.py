"""Result files hold the joints' table of each frame, and its plot can be drawn."""

import h5py
import numpy as np
import pytest

import gravel as gv
from gravel.io.vtkhdf import read_joints, read_reports


def swinging():
    scene = gv.Scene()
    rod = scene.add_body(gv.Box((0.5, 0.05, 0.05)), (0.5, 0, 0))
    hinge = scene.add_joint(gv.Revolute(None, rod, point=(0, 0, 0), axis=(0, 1, 0), motor=gv.ForceMotor(1.0)))
    return gv.Simulation(scene, 1e-3, precision="double"), rod, hinge


def test_frames_hold_what_the_table_said(tmp_path):
    simulation, _, hinge = swinging()
    seen = [simulation.joints]
    simulation.run(0.1, save=tmp_path / "a.vtkhdf", every=0.02, observers=[(lambda s: seen.append(s.joints), 0.02)])
    joints = read_joints(tmp_path / "a.vtkhdf")
    assert joints["time"] == pytest.approx(np.arange(6) * 0.02)
    assert "Revolute between the world and body 0" in joints["names"][hinge]
    for name in ("angle", "angle_speed", "force", "torque", "motor_torque", "violation"):
        assert np.array_equal(joints[name], [getattr(table, name) for table in seen]), name
    assert np.isnan(joints["slide"]).all()
    assert read_reports(tmp_path / "a.vtkhdf")["joint_violation"].max() > 0


def test_joints_that_come_later_are_nan_before(tmp_path):
    simulation, rod, _ = swinging()

    def hang_another(s):
        if s.steps == 30:
            s.add_joint(gv.Spring(None, rod, point=(0, 0, 2), point_b=tuple(s.positions[rod]), stiffness=10.0))

    simulation.run(0.06, save=tmp_path / "b.vtkhdf", every=0.02, observers=[hang_another])
    length = read_joints(tmp_path / "b.vtkhdf")["slide"][:, 1]
    assert np.isnan(length[:2]).all() and (length[2:] > 1).all()


def test_plot_of_joints(tmp_path):
    simulation, _, _ = swinging()
    simulation.run(0.02, save=tmp_path / "c.vtkhdf")
    assert gv.plot(tmp_path / "c.vtkhdf", "joints", tmp_path / "c.png").stat().st_size > 10_000


def test_a_file_without_joints_is_told(tmp_path):
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), (0, 0, 1))
    gv.Simulation(scene, 1e-3).run(0.005, save=tmp_path / "d.vtkhdf")
    with h5py.File(tmp_path / "d.vtkhdf") as file:
        assert file["gravel/joints/angle"].shape == (0, 0)
    with pytest.raises(ValueError, match="no joints"):
        gv.plot(tmp_path / "d.vtkhdf", "joints", tmp_path / "d.png")
