"""Walls under control: they push with what is asked for, in every step, and move as asked for."""

import numpy as np
import pytest

import gravel as gv
from gravel.model.servo import contact_force, friction_angle


def pressed(**control):
    """Four balls under a lid, which faces down."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    balls = scene.add_bodies(gv.Sphere(0.05), [[x, y, 0.05] for x in (-0.1, 0.1) for y in (-0.1, 0.1)])
    lid = gv.ServoWall(scene, (0, 0, 0.1), (0, 0, -1), (0.3, 0.4), **control)
    return gv.Simulation(scene, 1e-3, precision="double"), lid, balls


def test_a_lid_pushes_with_its_force_and_carries_its_own_weight():
    sim, lid, balls = pressed(force=50.0)
    sim.run(0.05)
    assert lid.load(sim) == pytest.approx(50.0, rel=1e-3)
    floor = contact_force(sim, 0)
    assert floor[2] == pytest.approx(-50.0 - 9.81 * sim.masses[balls].sum(), rel=1e-3)
    assert abs(lid.travel(sim)) < 1e-5


def test_stress_is_force_over_the_face():
    sim, lid, _ = pressed(stress=1000.0)
    sim.run(0.05)
    assert lid.area == pytest.approx(0.12)
    assert lid.load(sim) == pytest.approx(120.0, rel=1e-3)
    lid.set(sim, stress=1000.0, area=0.2)
    sim.run(0.06)
    assert lid.load(sim) == pytest.approx(200.0, rel=1e-3)
    assert lid.stress(sim) == pytest.approx(1000.0, rel=1e-3)


def test_functions_of_time_and_changes():
    sim, lid, _ = pressed(stress=lambda time: 1000.0 if time < 0.05 else 2000.0)
    sim.run(0.045)
    assert lid.stress(sim) == pytest.approx(1000.0, rel=1e-3)
    sim.run(0.09)
    assert lid.stress(sim) == pytest.approx(2000.0, rel=1e-3)
    lid.set(sim, speed=-0.1)  # away from them
    sim.run(0.19)
    assert lid.travel(sim) == pytest.approx(-0.01, abs=2e-4)
    assert lid.load(sim) == 0.0
    lid.set(sim, force=30.0)
    sim.run(0.4)
    assert lid.load(sim) == pytest.approx(30.0, rel=1e-2)


def test_a_free_lid_falls_with_its_force_alone():
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), (5, 0, 0))
    lid = gv.ServoWall(scene, (0, 0, 1), (0, 0, -1), (0.2, 0.2), force=3.0, mass=2.0)
    sim = gv.Simulation(scene, 1e-3, precision="double")
    sim.run(0.1)
    assert lid.travel(sim) == pytest.approx(0.5 * 1.5 * 0.01, rel=1e-9)


@pytest.mark.parametrize("normal", [(1, 0, 0), (0, -1, 0), (0, 0, 1), (1, 1, 0), (0.3, -0.2, 0.9)])
def test_plates_lie_behind_their_face_and_across_their_normal(normal):
    scene = gv.Scene(gravity=(0, 0, 0))
    wall = gv.ServoWall(scene, (0.1, 0.2, 0.3), normal, (0.4, 0.6), speed=0.0, thickness=0.02)
    unit = np.array(normal) / np.linalg.norm(normal)
    # a ray from in front of the face meets it at its middle, and one beside its edge misses
    hits = scene.cast_rays([(0.1, 0.2, 0.3) + unit], [-unit])
    np.testing.assert_allclose(hits.point[0], (0.1, 0.2, 0.3), atol=1e-9)
    across = wall._across(None)
    for direction, half in ((across, 0.2), (np.cross(unit, across), 0.3)):
        for share, seen in ((0.99, True), (1.01, False)):
            start = (0.1, 0.2, 0.3) + unit + share * half * direction
            assert (scene.cast_rays([start], [-unit]).body[0] == wall.body) == seen


def test_a_plate_slides_on_a_frame_that_moves():
    scene = gv.Scene(gravity=(0, 0, 0))
    frame = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (2, 0, 0), motion=gv.ConstantVelocity((1.0, 0, 0)))
    wall = gv.ServoWall(scene, (0, 0, 0), (0, 0, 1), (0.2, 0.2), speed=0.5, on=frame)
    sim = gv.Simulation(scene, 1e-3, precision="double")
    start = sim.positions[wall.body].copy()
    sim.run(0.2)
    np.testing.assert_allclose(sim.positions[wall.body] - start, (0.2, 0, 0.1), atol=2e-3)


def test_friction_angles():
    assert friction_angle(3.0, 1.0) == pytest.approx(30.0)
    assert friction_angle(1.0, 1.0) == 0.0
    assert friction_angle(0.0, 0.0) == 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"force": 1.0, "stress": 1.0}, "one of force, stress and speed, not force, stress"),
        ({}, "not none"),
        ({"force": "much"}, "force must be a number"),
        ({"force": 1.0, "size": (0.1, 0.0)}, "size must be greater than 0"),
        ({"force": 1.0, "normal": (0, 0, 0)}, "normal must have a direction"),
        ({"force": 1.0, "across": (0, 0, 1)}, "across must be at right angles"),
        ({"stress": 1.0, "area": -1.0}, "area must be greater than 0"),
        ({"force": 1.0, "on": 7}, "on must be the id of a body, below 1, not 7"),
        ({"force": 1.0, "mass": -1.0}, "masses must be greater than 0"),
    ],
)
def test_refused(change, words):
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1))
    given = {"centre": (0, 0, 1), "normal": (0, 0, -1), "size": (1, 1), **change}
    with pytest.raises((ValueError, TypeError), match=words):
        gv.ServoWall(scene, **given)
    assert len(scene) == 1 and len(scene.mechanism) == 0
