"""Results read back: what was simulated, with contacts and joints; what is no result, or damaged, is refused by name."""

import h5py
import numpy as np
import pytest
import pyvista
from test_bad_input import refuse

import gravel as gv
from gravel.io.frames import frame_in
from gravel.io.vtkhdf import ResultWriter


def heap(n=6, **options):
    """Balls that fall onto a floor and a box with a motion; the second ball is removed and another one comes."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_body(gv.Box((0.2, 0.2, 0.05)), (0, 0, 0.05), motion=gv.ConstantVelocity((0.1, 0, 0)))
    scene.add_bodies(gv.Sphere(np.linspace(0.05, 0.1, n)), [[0.25 * k, 0, 0.3] for k in range(n)])
    hull = scene.add_body(gv.ConvexHull(np.vstack([np.zeros(3), np.eye(3)]), 0.2), (0, 1, 0.3))
    scene.add_joint(gv.Revolute(None, hull, point=(0, 1, 0.5), axis=(0, 1, 0)))
    return gv.Simulation(scene, 1e-3, **options)


def come_and_go(sim):
    if sim.steps == 100:
        sim.remove([3])
        sim.add_bodies(gv.Sphere(0.07), [[0, 2, 0.07]])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The file of a run with contacts, and what the simulation said at each frame."""
    path, said = tmp_path_factory.mktemp("results") / "r.vtkhdf", []
    sim = heap()

    def note(s):
        there = np.flatnonzero(s.alive & (s.shapes != "plane"))
        state = {name: getattr(s, name)[there].copy() for name in ("positions", "quaternions", "velocities", "angular_velocities")}
        state.update({name: np.array(getattr(s, name)[there]) for name in ("radii", "masses", "inertias", "movable", "shapes")})
        said.append((s.time, there, state, s.contacts, s.joints))

    note(sim)
    sim.run(0.3, path, every=0.05, observers=[come_and_go, (note, 0.05)], contacts=True)
    return path, said, sim


def test_frames_hold_what_the_simulation_had(saved):
    path, said, sim = saved
    with gv.open_result(path) as result:
        assert len(result) == len(said) == len(list(result)) == 7
        assert result.dt == 1e-3 and "Gauss" in result.solver
        for frame, (time, ids, state, _, _) in zip(result, said):
            assert frame.time == result.times[frame.index] == pytest.approx(time)
            assert np.array_equal(frame.ids, ids) and len(frame) == len(ids)
            for name, values in state.items():
                have = getattr(frame, name)
                assert np.array_equal(have, values) if values.dtype.kind in "bU" else np.allclose(have, values, rtol=1e-6, atol=1e-6), name
            assert np.allclose(frame.gravity, (0, 0, -9.81)) and frame.contact_lag == pytest.approx(0.5e-3)
            assert np.allclose(frame.plane_normals, [(0, 0, 1)])
        assert np.array_equal(result[-1].positions, result.frame(6).positions)
        assert set(result[0].surfaces) == set(result[0].geometry[result[0].geometry >= 0].tolist())


def test_contacts_of_each_frame_are_those_of_its_step(saved):
    path, said, sim = saved
    with gv.open_result(path) as result:
        assert len(result.contacts(0)) == 0 and len(result.contacts(-1)) > 5
        for k, (_, _, _, table, _) in enumerate(said):
            have = result.contacts(k)
            assert type(have) is gv.ContactTable
            for name in ("body_a", "body_b", "point", "sliding"):
                assert np.array_equal(getattr(have, name), getattr(table, name)), name
            for name in ("normal", "gap", "impulse"):
                assert np.allclose(getattr(have, name), getattr(table, name), rtol=1e-6, atol=1e-9), name
            assert len(result[k].contacts) == len(table)
    with h5py.File(path) as file:  # forces stand beside impulses, for those who read the file themselves
        group = file["gravel/contact_table"]
        assert np.allclose(group["force"], group["impulse"][:] / 1e-3)
        assert len(group["force"]) == group["count"][:].sum()


def test_reports_and_joints(saved):
    path, said, sim = saved
    with gv.open_result(path) as result:
        assert np.allclose(result.reports["time"], 1e-3 * np.arange(1, 301))
        assert result.reports["contacts"].dtype.kind == "i" and result.reports["contacts"][-1] == sim.report.contacts
        assert result.reports["converged"].dtype == bool
        for k, (_, _, _, _, joints) in enumerate(said):
            assert np.allclose(result.joints[k].angle, joints.angle) and np.allclose(result[k].joints.force, joints.force)
            assert result.joints[k].broken.dtype == bool
        assert "Revolute" in result.joint_names[0] and result.joints.angle.shape == (7, 1)


def test_vtk_still_reads_a_file_with_contacts(saved):
    path, said, _ = saved
    reader = pyvista.get_reader(path).reader
    reader.UpdateInformation()
    assert reader.GetNumberOfSteps() == len(said)
    reader.SetStep(len(said) - 1)
    reader.Update()
    cloud = pyvista.wrap(reader.GetOutputDataObject(0))["bodies"]
    state = said[-1][2]
    assert np.allclose(cloud.points, state["positions"], atol=1e-6)
    assert np.allclose(cloud["mass"], np.where(state["movable"], state["masses"], 0.0))


def test_a_run_without_contacts_says_so(tmp_path):
    heap().run(0.01, tmp_path / "r.vtkhdf")
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        refuse(lambda: result.contacts(0), "r.vtkhdf", "contacts=True", "--contacts")
        refuse(lambda: result[3].contacts, "contacts=True")
        refuse(lambda: result[99], "frame", "99", error=IndexError)
        refuse(lambda: result.frame(0.5), "frame", "0.5", error=TypeError)
    refuse(lambda: result[0], "closed")
    refuse(lambda: heap().run(0.01, contacts=True), "contacts", "save")
    refuse(lambda: heap().run(0.01, tmp_path / "r.vtkhdf", contacts="yes"), "contacts", "'yes'", error=TypeError)


def test_contacts_that_are_not_known_after_a_refused_step_are_left_out(tmp_path):
    sim = heap(bounds=((-5, -5, -5), (5, 5, 5)))

    def throw(s):
        if s.steps == 15:
            s.velocities[3] = (1e6, 0, 0)

    with pytest.raises(gv.SimulationError):
        sim.run(0.1, tmp_path / "r.vtkhdf", every=0.01, observers=[throw], contacts=True)
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        assert len(result) == 3 and len(result.contacts(1)) == result.reports["contacts"][9]
        refuse(lambda: result.contacts(2), "frame 2", "refused")


def test_a_result_without_joints_has_tables_of_none(tmp_path):
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), (0, 0, 1))
    with ResultWriter(tmp_path / "r.vtkhdf", gv.Simulation(scene, 1e-3)) as writer:
        writer.write_frame()
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        assert len(result[0].joints) == 0 and result.joint_names == []


# --- what is no result
def damaged(path, change):
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def replace(file, name, values):
    del file[name]
    file[name] = values


DAMAGES = {
    "frames": lambda file: file["VTKHDF/bodies/Steps"].attrs.__setitem__("NSteps", 50),
    "negative": lambda file: file["VTKHDF/bodies/Steps"].attrs.__setitem__("NSteps", -2),
    "count": lambda file: replace(file, "gravel/contact_table/count", np.array([9, 9, 9])),
    "huge count": lambda file: file["gravel/contact_table/count"].__setitem__(1, 2**40),
    "no body": lambda file: file.__delitem__("gravel/contact_table/body_b"),
    "words": lambda file: replace(file, "gravel/contact_table/impulse", "none"),
    "nan": lambda file: file["gravel/contact_table/impulse"].__setitem__(0, np.nan),
    "gravity": lambda file: replace(file, "gravel/gravity", np.ones((1, 3))),
    "mass": lambda file: file.__delitem__("VTKHDF/bodies/PointData/mass"),
    "dt": lambda file: file["gravel"].attrs.__setitem__("dt", "often"),
    "link": lambda file: (
        file.__delitem__("gravel/contact_table/gap"),
        file["gravel/contact_table"].__setitem__("gap", h5py.ExternalLink("other.h5", "gap")),
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_refused_by_name(tmp_path, name):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.1))
    sim = gv.Simulation(scene, 1e-3)
    sim.run(0.003, tmp_path / "r.vtkhdf", every=1e-3, contacts=True)
    path = damaged(tmp_path / "r.vtkhdf", DAMAGES[name])
    with pytest.raises(ValueError, match=r"r\.vtkhdf"), gv.open_result(path) as result:
        for k in range(len(result)):
            result[k].contacts  # noqa: B018


def test_other_files_are_refused_by_name(tmp_path):
    refuse(lambda: gv.open_result(tmp_path / "none.vtkhdf"), "none.vtkhdf", error=FileNotFoundError)
    (tmp_path / "a.txt").write_text("no result")
    refuse(lambda: gv.open_result(tmp_path / "a.txt"), "a.txt")
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1))
    gv.Simulation(scene, 1e-3).save(tmp_path / "state.h5")
    refuse(lambda: gv.open_result(tmp_path / "state.h5"), "state.h5", "result")


def test_a_frame_that_is_read_after_another_shares_what_has_not_changed(tmp_path):
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere([0.1, 0.2]), [(0, 0, 1), (1, 0, 1)])
    sim = gv.Simulation(scene, 1e-3)
    come = lambda s: s.add_bodies(gv.Sphere(0.3), [(5, 0, 1)]) if s.steps == 2 else None  # noqa: E731
    sim.run(4e-3, tmp_path / "r.vtkhdf", 1e-3, observers=[come])
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        first = frame_in(result.file, 0)
        for number in range(1, 5):
            alone, after = frame_in(result.file, number), frame_in(result.file, number, first)
            assert all(np.array_equal(alone[name], after[name]) for name in ("id", "radius", "mass", "velocity", "position"))
            assert (after["radius"] is first["radius"]) == (number < 2)
