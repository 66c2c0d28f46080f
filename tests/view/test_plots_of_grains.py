"""Plots of machines, beds, mixtures and maps: their curves are the measures of the frames, and what they cannot be drawn of is refused."""

import matplotlib
import numpy as np
import pytest
from click.testing import CliRunner

import gravel as gv
from gravel import measures
from gravel.cli import main
from gravel.measures.wear import WearMap

WEIGHT = 9.81 * 1000 * 0.2**3
SLOPE = np.arctan(0.5)


@pytest.fixture(scope="module")
def slider(tmp_path_factory):
    """A result of a plate that is driven under a block."""
    path, scene, wood = tmp_path_factory.mktemp("slider") / "slider.vtkhdf", gv.Scene(), gv.Material(friction=0.3, name="wood")
    scene.add_body(gv.Box((0.5, 0.3, 0.05)), (0, 0, -0.05), wood, motion=gv.ConstantVelocity((0.2, 0, 0)), name="plate")
    block = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0.1, 0, 0.1), wood, name="block")
    scene.add_joint(gv.Prismatic(None, block, point=(0.1, 0, 0.1), axis=(0, 0, 1)))
    gv.Simulation(scene, 1e-3).run(0.1, path, 0.02, contacts=True)
    return path


@pytest.fixture(scope="module")
def wedge(tmp_path_factory):
    """A result of balls that lie under a slope across y, red ones in front; they hardly move."""
    path, scene = tmp_path_factory.mktemp("wedge") / "wedge.vtkhdf", gv.Scene()
    places = [(0.1 * i, 0.1 * j, 0.1 * k) for i in range(20) for j in range(6) for k in range(14) if 0.1 * k <= 0.3 + 0.05 * i + 1e-9]
    front = [place for place in places if place[1] < 0.25]
    scene.add_bodies(gv.Sphere(0.05), front, gv.Material(name="red glass"), name="red")
    scene.add_bodies(gv.Sphere(0.05), [place for place in places if place[1] >= 0.25], gv.Material(name="blue glass"))
    gv.Simulation(scene, 1e-4).run(2e-4, path, 1e-4)
    return path


def first_line(figure, panel=0):
    return figure.axes[panel].lines[0].get_data()


def test_force_torque_and_power_of_a_plate(slider):
    figure = gv.plot(slider, "machine", body="plate", point=(0, 0, 0))
    force, torque, power = ([line.get_ydata() for line in axes.lines] for axes in figure.axes[:3])
    assert np.allclose(force[2], -WEIGHT, rtol=1e-2) and np.allclose(force[0], -0.3 * WEIGHT, rtol=1e-2)
    assert np.allclose(power[0], 0.3 * WEIGHT * 0.2, rtol=1e-2)
    shifted = [line.get_ydata() for line in gv.plot(slider, "machine", body="plate", point=(1, 0, 0)).axes[1].lines]
    assert np.allclose(np.subtract(shifted, torque), -np.cross((1, 0, 0), np.transpose(force)).T)
    assert {axes.get_ylabel() for axes in figure.axes[:3]} >= {"force of contacts on plate, N", "power that plate gives, W"}


def test_the_slope_of_a_bed_is_that_of_its_measure_and_its_making(wedge):
    x, y = first_line(gv.plot(wedge, "dynamic-angle", axis="y"))
    assert np.allclose(y, np.degrees(SLOPE), atol=0.5)
    with gv.open_result(wedge) as result:
        assert np.allclose(y, [np.degrees(measures.dynamic_angle(frame, "y")) for frame in result])
        assert np.array_equal(x, result.times)


@pytest.mark.parametrize("which", ["red", "red glass"])
def test_mixing_and_segregation_of_a_kind_by_its_name_or_its_materials(wedge, which):
    y = first_line(gv.plot(wedge, "mixing", which=which, cell=0.25))[1]
    share, places = first_line(gv.plot(wedge, "segregation", which=which, bins=5))
    with gv.open_result(wedge) as result:
        red = result[-1].rows_of("red")
        assert np.allclose(y, [measures.mixing_index(frame, "red", 0.25) for frame in result])
        slabs, expected = measures.segregation_profile(result[-1], result[-1].ids[red], bins=5)
    assert np.allclose(share, expected) and np.allclose(places, slabs.middles)
    across = gv.plot(wedge, "segregation", which=which, axis="y", bins=2, region=((-1, -0.05, -1), (3, 0.55, 3)))
    assert np.allclose(first_line(across)[1], (1, 0))


def test_residence_times_of_a_stream(tmp_path):
    """Balls cross a box of 0.5 m at 1 m/s."""
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.02), [(-0.1 * k - 0.05, 0, 0) for k in range(8)], velocities=np.tile((1, 0, 0), (8, 1)))
    gv.Simulation(scene, 1e-2).run(1.0, tmp_path / "a.vtkhdf", 0.02)
    figure = gv.plot(tmp_path / "a.vtkhdf", "residence", region=((0, -1, -1), (0.5, 1, 1)))
    mean = next(float(line.get_xdata()[0]) for line in figure.axes[0].lines)
    assert mean == pytest.approx(0.5, abs=0.021)
    assert max(first_line(figure, 1)[1]) == 5 and "5 bodies" not in figure.axes[1].get_ylabel()


def test_maps_show_the_numbers_of_a_wear_map(slider):
    with gv.open_result(slider) as result:
        found = WearMap.of_frames(result, "block", coefficient=1e-3, hardness=1e9)
    for figure in (gv.plot(slider, "wear", body="block", coefficient=1e-3, hardness=1e9), gv.plot(found, "wear")):
        drawn = [axes for axes in figure.axes if axes.name == "3d"]
        assert len(drawn) == 2
        for axes, values in zip(drawn, (found.work_density, found.wear_depth)):
            (faces,) = axes.collections
            shown = matplotlib.colormaps["viridis"](values / values.max())
            worn = {tuple(colour) for colour in np.round(shown[values > 0], 6)}
            assert worn <= {tuple(colour) for colour in np.round(faces.get_facecolor(), 6)}
    pressure = gv.plot(slider, "pressure", body="block")
    assert sum(f"in all {found.force.sum():.4g} N" in axes.get_title() for axes in pressure.axes) == 1


def test_what_cannot_be_drawn_is_said(slider, wedge):
    for path, kind, options, words in (
        (slider, "machine", {}, "needs body"),
        (slider, "machine", {"body": "plat"}, "did you mean 'plate'"),
        (wedge, "machine", {"body": "0"}, "holds no contacts"),
        (slider, "mixing", {}, "needs which"),
        (slider, "mixing", {"which": "stone"}, "'plate', 'block', 'wood'"),
        (slider, "dynamic-angle", {}, "no frame of .* can be measured"),
        (slider, "residence", {}, "needs region"),
        (slider, "wear", {"body": "plate", "hardness": 1e9}, "go together"),
    ):
        with pytest.raises(ValueError, match=words):
            gv.plot(path, kind, **options)
    with gv.open_result(slider) as result:
        found = WearMap.of_frames(result, "block")
    with pytest.raises(TypeError, match="pressure and wear"):
        gv.plot(found, "machine")
    with pytest.raises(ValueError, match="has its own"):
        gv.plot(found, "wear", body="plate")


def test_these_kinds_in_the_command_line(slider, wedge, tmp_path):
    for words in (
        (slider, "machine", "--body", "plate"),
        (slider, "wear", "--body", "block", "--coefficient", "1e-3", "--hardness", "1e9"),
        (slider, "pressure", "--body", "1", "--edge", "0.1"),
        (wedge, "mixing", "--which", "red", "--cell", "0.25"),
        (wedge, "segregation", "--which", "red glass"),
        (wedge, "dynamic-angle", "--axis", "y"),
    ):
        output = tmp_path / f"{words[1]}.png"
        done = CliRunner().invoke(main, ["plot", *map(str, words), "-o", str(output)])
        assert done.exit_code == 0, done.output
        assert output.read_bytes().startswith(b"\x89PNG")
