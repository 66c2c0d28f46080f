"""Tables for pandas and xarray: the same numbers as the arrays, by name, with units; and what is said where a library is missing."""

import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas
import pytest

import gravel as gv
from gravel.printing import tables


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """(simulation, path of its result): balls that fall on a floor, a door that swings, one ball that goes and one that comes."""
    path = tmp_path_factory.mktemp("tables") / "run.vtkhdf"
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(gv.Sphere([0.1, 0.1, 0.2]), [(0, 0, 0.1), (1, 0, 0.1), (2, 0, 0.2)])
    door = scene.add_body(gv.Box((0.3, 0.1, 0.1)), (0.3, 5, 5))
    scene.add_joint(gv.Revolute(None, door, point=(0, 5, 5), axis=(0, 1, 0)))
    sim = gv.Simulation(scene, dt=1e-3, threads=1)
    sim.run(until=0.01, save=path, every=2e-3, contacts=True)
    sim.remove([2])
    sim.add_bodies(gv.Sphere(0.1), [(5, 0, 3)], velocities=[(1, 2, 3)])
    sim.run(until=0.02, save=path, every=2e-3, contacts=True)
    return sim, path


class Cells(HTMLParser):
    """Texts of the cells of a table, line by line."""

    def __init__(self, text):
        super().__init__()
        self.lines = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.lines.append([])
        elif tag in ("td", "th"):
            self.lines[-1].append("")

    def handle_data(self, data):
        if self.lines and self.lines[-1]:
            self.lines[-1][-1] += data


def test_contacts_as_a_data_frame(run):
    sim, _ = run
    table, frame = sim.contacts, sim.contacts.to_pandas()
    assert len(frame) == len(table) > 0 and frame.attrs["units"]["impulse_z"] == "N s" and frame.attrs["units"]["gap"] == "m"
    assert np.array_equal(frame[["point_x", "point_y", "point_z"]], table.point) and np.array_equal(frame.sliding, table.sliding)
    on_floor = frame[frame.body_a == 0].impulse_z.sum() / sim.dt
    assert np.isclose(on_floor, 9.81 * sim.masses[[1, 3]].sum(), rtol=1e-3)  # the two balls that lie there
    assert len(gv.ContactTable.empty().to_pandas()) == 0 and list(gv.ContactTable.empty().to_pandas()) == list(frame)


def test_joints_as_data_frames_now_and_of_all_frames(run):
    sim, path = run
    frame = sim.joints.to_pandas()
    assert frame.index.name == "joint" and frame.loc[0, "angle"] == sim.joints.angle[0] and np.isnan(frame.loc[0, "slide"])
    with gv.open_result(path) as result:
        many, table = result.joints.to_pandas(), result.joints
        assert many.index.names == ["frame", "joint"] and len(many) == len(result)
        assert np.array_equal(many.xs(0, level="joint").force_x, table.force[:, 0, 0])
        assert len(result.joints[3].to_pandas()) == 1
    assert sim.joints[0].to_pandas().angle[0] == sim.joints.angle[0]  # of one joint


def test_bodies_of_a_simulation_and_of_a_frame(run):
    sim, path = run
    frame = sim.to_pandas()
    assert frame.index.tolist() == [0, 1, 3, 4, 5] and frame.index.name == "id"
    assert frame["shape"].tolist() == ["plane", "sphere", "sphere", "box", "sphere"]
    assert np.array_equal(frame.loc[[1, 3], "position_x"], sim.positions[[1, 3], 0]) and frame.attrs["units"]["velocity_x"] == "m/s"
    assert np.allclose(frame.loc[3, "mass"], 1000 * 4 / 3 * np.pi * 0.2**3) and not frame.loc[0, "movable"]
    with gv.open_result(path) as result:
        stored = result[-1].to_pandas()
    assert stored.index.tolist() == [1, 3, 4, 5]  # planes have no place in frames
    assert np.allclose(stored.velocity_z, frame.velocity_z[stored.index], rtol=1e-6)


def test_reports_over_time(run):
    _, path = run
    with gv.open_result(path) as result:
        frame, reports = result.to_pandas(), result.reports
    assert np.array_equal(frame.index, reports["time"]) and frame.index.name == "time" and len(frame) == 20
    assert np.array_equal(frame.kinetic_energy, reports["kinetic_energy"]) and frame.attrs["units"]["residual"] == "m/s"
    assert frame.converged.dtype == bool


def test_frames_as_a_dataset_where_bodies_come_and_go(run):
    _, path = run
    with gv.open_result(path) as result:
        data = result.to_xarray("positions", "radii", "quaternions")
        assert data.positions.dims == ("time", "body", "axis") and data.positions.attrs["units"] == "m"
        assert data.body.values.tolist() == [1, 2, 3, 4, 5] and np.array_equal(data.time, result.times)
        for frame in result:
            there = data.isel(time=frame.index).sel(body=frame.ids)
            assert np.array_equal(there.positions, frame.positions) and np.array_equal(there.radii, frame.radii)
            missing = data.isel(time=frame.index).drop_sel(body=frame.ids)
            assert missing.body.size > 0 and np.isnan(missing.positions).all()
        falling = data.positions.sel(body=5, axis="z").dropna("time")
        t = falling.time.values - 0.01
        assert np.allclose(falling, 3 + 3 * t - 0.5 * 9.81 * t**2, atol=1e-5)  # it was added at 0.01 s
        assert data.quaternions.sel(component="w").shape == (len(result), 5)


def test_some_frames_of_a_dataset(run):
    _, path = run
    with gv.open_result(path) as result:
        assert set(result.to_xarray().data_vars) == {"positions", "velocities"}
        assert result.to_xarray("masses", frames=slice(0, None, 3)).frame.values.tolist() == list(range(0, len(result), 3))
        assert result.to_xarray("masses", frames=[-1, 0]).frame.values.tolist() == [len(result) - 1, 0]
        assert result.to_xarray("masses", frames=[]).masses.shape == (0, 0)


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"memory": 1e-9}, ValueError, "memory must be at least 2.11e-06 GB for positions, velocities of 4 bodies in 11 frames"),
        ({"memory": 0.0}, ValueError, "memory must be greater than 0"),
        ({"frames": 3}, TypeError, "frames must be a slice or a list of frames, not 3"),
        ({"frames": [99]}, IndexError, "frame must be from -11 to 10"),
    ],
)
def test_datasets_that_are_refused(run, options, error, words):
    with gv.open_result(run[1]) as result, pytest.raises(error, match=words):
        result.to_xarray(**options)


def test_a_wrong_name_of_a_quantity_gets_the_nearest(run):
    with gv.open_result(run[1]) as result, pytest.raises(ValueError, match="name must be one of .*did you mean 'positions'"):
        result.to_xarray("position")


def test_the_memory_is_asked_for_all_bodies_that_ever_were(run):
    """Each frame alone would fit, all ids together do not."""
    with gv.open_result(run[1]) as result:
        one = 8e-9 * 11 * 4  # GB of one number for each of 4 bodies in 11 frames
        with pytest.raises(ValueError, match="of 5 bodies in 11 frames"):
            result.to_xarray("radii", memory=1.1 * one)
        assert result.to_xarray("radii", memory=1.3 * one).radii.size == 55


@pytest.mark.parametrize("library", ["pandas", "xarray"])
def test_a_missing_library_is_named(run, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    sim, path = run
    words = f"to_{library} needs {library}, which is not installed: pip install {library}$"
    with gv.open_result(path) as result, pytest.raises(ImportError, match=words):
        result.to_pandas() if library == "pandas" else result.to_xarray()
    if library == "pandas":
        for thing in (sim, sim.contacts, sim.joints):
            with pytest.raises(ImportError, match=words):
                thing.to_pandas()


def test_nothing_of_them_is_loaded_by_gravel():
    script = "import sys, gravel; print([name for name in ('pandas', 'xarray', 'pyvista', 'matplotlib') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_html_of_contacts_has_their_numbers_and_units(run):
    table = run[0].contacts
    lines = Cells(table._repr_html_()).lines
    heads = lines[0]
    assert heads[0] == "" and "point_x, m" in heads and "impulse_z, N s" in heads and "sliding" in heads
    row = dict(zip(heads, lines[1]))
    assert float(row["impulse_z, N s"]) == pytest.approx(table.impulse[0, 2], rel=1e-3) and row["body_b"] == str(table.body_b[0])


def test_long_tables_show_their_ends():
    text = tables.html({"value": np.arange(1000)}, {}, "a < b")
    lines = Cells(text).lines
    assert [line[0] for line in lines[1:]] == ["0", "1", "2", "3", "…", "996", "997", "998", "999"]
    assert "a &lt; b" in text


def test_html_of_joints_and_reports(run):
    sim, path = run
    with gv.open_result(path) as result:
        assert Cells(result.joints._repr_html_()).lines[1][0] == "frame 0, joint 0"
    lines = dict((line[0], line[1:]) for line in Cells(sim.report._repr_html_()).lines)
    assert lines["step"] == ["20", ""] and lines["residual"][1] == "m/s" and lines["solve took"][1] == "s"


def test_units_of_columns_are_those_of_the_arrays():
    frame = tables.data_frame({"a": np.zeros((2, 4)), "b": np.zeros(2)}, {"a": "m"})
    assert list(frame) == ["a_w", "a_x", "a_y", "a_z", "b"] and frame.attrs["units"] == {f"a_{k}": "m" for k in "wxyz"}
    assert isinstance(frame, pandas.DataFrame)
