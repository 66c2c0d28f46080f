"""Places in results are as exact as in the simulation, however far out; what a file cannot hold is refused."""

import h5py
import numpy as np
import pytest
import pyvista

import gravel as gv
from gravel.io.vtkhdf import read_frame


def balls(places, **options):
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.1), places)
    return gv.Simulation(scene, 1e-3, threads=1, **options)


def test_two_balls_far_away_are_read_at_two_places(tmp_path):
    places = np.array([(1e8, -1e8, 3e7), (1e8 + 1, -1e8, 3e7)])
    balls(places).run(2e-3, tmp_path / "r.vtkhdf", 1e-3)
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        for frame in result:
            np.testing.assert_array_equal(frame.positions, places)
    np.testing.assert_array_equal(read_frame(tmp_path / "r.vtkhdf")["position"], places)
    cloud = pyvista.get_reader(tmp_path / "r.vtkhdf").read()["bodies"]
    np.testing.assert_array_equal(cloud.points, places)


def test_small_grains_far_from_the_origin_keep_their_distances(tmp_path):
    """1 km away, single precision knows places to 0.06 mm: a tenth of these grains."""
    places = np.array([(1000.0, 0, 0), (1000.000123, 0, 0)])
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(5e-5), places)
    gv.Simulation(scene, 1e-6, threads=1).run(1e-6, tmp_path / "r.vtkhdf", 1e-6)
    assert np.ptp(read_frame(tmp_path / "r.vtkhdf", 0)["position"][:, 0]) == pytest.approx(1.23e-4, rel=1e-6)


def test_a_body_at_1e300_is_read(tmp_path):
    places = [(1e300, 0, 0), (0, 0, 0)]
    balls(places, bounds=((-1e301,) * 3, (1e301,) * 3), precision="double").run(1e-3, tmp_path / "r.vtkhdf", 1e-3)
    np.testing.assert_array_equal(read_frame(tmp_path / "r.vtkhdf")["position"], places)


@pytest.mark.parametrize("radius, speed, what", [(0.1, 1e200, "velocity"), (1e45, 0.0, "radius")])
def test_what_single_precision_cannot_hold_is_refused_before_a_frame(radius, speed, what, tmp_path, recwarn):
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_body(gv.Sphere(0.1))
    body = scene.add_body(gv.Sphere(radius), (1e46, 0, 0), velocity=(speed, 0, 0), mass=1.0, inertia=(1.0, 1.0, 1.0))
    sim = gv.Simulation(scene, 1e-3, threads=1, precision="double", bounds=((-1e301,) * 3, (1e301,) * 3))
    with pytest.raises(ValueError, match=rf"{what} of body {body} .*r\.vtkhdf"):
        sim.run(1e-3, tmp_path / "r.vtkhdf", 1e-3)
    assert sim.steps == 0
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        assert len(result) == 0
    assert not [one for one in recwarn.list if issubclass(one.category, RuntimeWarning)]


def test_a_result_with_places_in_single_precision_is_read_and_goes_on(tmp_path):
    """As those of versions before."""
    sim = balls([(0.1, 0.2, 0.3)])
    sim.run(2e-3, tmp_path / "r.vtkhdf", 1e-3)
    with h5py.File(tmp_path / "r.vtkhdf", "r+") as file:
        block = file["VTKHDF/bodies"]
        points = block["Points"][:].astype("f4")
        del block["Points"]
        block.create_dataset("Points", data=points, maxshape=(None, 3), chunks=(1024, 3))
    sim.run(4e-3, tmp_path / "r.vtkhdf", 1e-3)
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        assert len(result) == 5
        for frame in result:
            np.testing.assert_allclose(frame.positions, [(0.1, 0.2, 0.3)], rtol=1e-6)
