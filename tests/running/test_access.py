"""What users see of bodies beside poses and velocities, and a state that becomes a start."""

import numpy as np
import pytest
from test_bad_input import refuse

import gravel as gv
from gravel.rotations import rotate
from gravel.shapes import COMPOUND, HULL
from gravel.shapes.kinds import NAMES

CUBE = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T * 0.1
CUBE_TRIANGLES = [t for face in gv.ConvexHull(CUBE).faces for t in (face[:3], face[[0, 2, 3]])]
SHAPES = {
    "sphere": gv.Sphere(0.1),
    "ellipsoid": gv.Ellipsoid((0.1, 0.2, 0.15)),
    "capsule": gv.Capsule(0.1, 0.2),
    "cylinder": gv.Cylinder(0.1, 0.2),
    "cone": gv.Cone(0.1, 0.3),
    "box": gv.Box((0.1, 0.2, 0.3)),
    "rounded_box": gv.RoundedBox((0.1, 0.2, 0.3), 0.04),
    "hull": gv.ConvexHull(np.vstack([np.zeros(3), np.eye(3)]), scale=0.2),
    "mesh": gv.Mesh(gv.ConvexHull(CUBE).vertices, CUBE_TRIANGLES, scale=1.5),
    "compound": gv.Compound([(gv.Box((0.1, 0.1, 0.1)),), (gv.Sphere(0.1), (0.3, 0, 0)), (gv.ConvexHull(CUBE), (0, 0.3, 0))]),
    "clump": gv.Clump([(0, 0, 0), (0.2, 0.0, 0.1)], [0.1, 0.15], scale=0.8),
}


def everything(**options):
    """One body of each shape, in flight above a floor, and the ids by name."""
    scene = gv.Scene()
    ids = {"plane": scene.add_body(gv.Plane((0, 0.6, 0.8), offset=-2.0), fixed=True)}
    for k, (name, shape) in enumerate(SHAPES.items()):
        ids[name] = scene.add_body(shape, (k, 0, 1), quaternion=(1, 0.1 * k, 0.2, 0), velocity=(0.1 * k, 0, 1), angular_velocity=(1, k, 2))
    return gv.Simulation(scene, 1e-3, **options), ids


# --- radii, moments, shapes
def test_names_radii_and_moments_are_those_of_the_shapes():
    sim, ids = everything()
    names = sim.shapes
    for name, body in ids.items():
        assert names[body] == ("compound" if name == "clump" else name)
        if name != "plane":
            shape = SHAPES[name]
            assert sim.radii[body] == pytest.approx(shape.bounding_radii(1)[0], rel=1e-12)
            assert sim.inertias[body] == pytest.approx(shape.inertias(sim.masses[[body]])[0], rel=1e-12)
    assert np.isinf(sim.radii[0]) and np.isinf(sim.inertias[0]).all()
    sim.remove([3])
    assert sim.shapes[3] == "" and sim.radii[3] == 0 and (sim.inertias[3] == 0).all()
    for array in (sim.radii, sim.inertias, sim.shapes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    assert NAMES[HULL] == "hull" and NAMES[COMPOUND] == "compound"


def test_the_shape_of_a_body_added_at_its_pose_is_the_same_body():
    sim, ids = everything()
    twins = gv.Scene()
    for name, body in ids.items():
        shape = sim.shape_of(body)
        assert type(shape) is (gv.Plane if name == "plane" else type(SHAPES[name]))
        twins.add_body(shape, sim.positions[body], quaternion=sim.quaternions[body], fixed=True)
    rays = np.column_stack([np.linspace(-0.5, 10, 600), np.linspace(-0.05, 0.05, 600), np.full(600, 3.0)])
    want, have = sim.cast_rays(rays, (0, 0, -1)), twins.cast_rays(rays, (0, 0, -1))
    assert len(np.unique(want.body)) == len(ids)
    assert (want.body == have.body).all() and np.allclose(want.point, have.point, atol=1e-9)


def test_shapes_of_bodies_that_are_not_there_are_refused():
    sim, _ = everything()
    sim.remove([2])
    refuse(lambda: sim.shape_of(2), "body 2 was removed")
    refuse(lambda: sim.shape_of(99), "body", "99")
    refuse(lambda: sim.shape_of(-1), "body", "-1")


# --- a state becomes a start
def assert_same_future(old, new, steps, tolerance):
    """Whether both simulations go on alike; ``new`` was made from the bodies of ``old`` that are there."""
    ids = np.flatnonzero(old.alive)
    for _ in range(steps):
        old.step()
        new.step()
    for name in ("positions", "velocities", "angular_velocities"):
        assert np.allclose(getattr(old, name)[ids], getattr(new, name), rtol=0, atol=tolerance), name
    turned = np.abs(np.einsum("ni,ni->n", old.quaternions[ids], new.quaternions))
    assert np.allclose(turned, 1.0, atol=tolerance)
    assert np.array_equal(old.masses[ids], new.masses) and np.array_equal(old.inertias[ids], new.inertias)


def test_all_shapes_fly_on_as_they_would():
    sim, _ = everything(precision="double")
    for _ in range(5):
        sim.step()
    sim.remove([2, 5])
    scene = gv.Scene.from_simulation(sim)
    assert len(scene) == sim.alive.sum()
    assert_same_future(sim, gv.Simulation(scene, 1e-3, precision="double"), 50, 1e-12)


def test_contacts_materials_pairs_groups_forces_and_motions_go_on():
    """Against a wrong carry-over each of these would move the grains by far more than the tolerance."""
    scene = gv.Scene()
    ice, rubber = gv.Material(friction=0.0), gv.Material(friction=0.9, restitution=0.5)
    scene.add_body(gv.Plane(), material=rubber, fixed=True)
    scene.set_pair(ice, rubber, friction=0.2)
    scene.ignore(1, 2)
    gone = scene.add_body(gv.Sphere(0.1), (5, 5, 5))
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.1), ice, velocity=(1, 0, 0))
    scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, 1, 0.1), rubber, velocity=(2, 0, 0))
    scene.add_body(gv.Sphere(0.1), (0, 2, 0.1), group=1)
    scene.add_body(gv.Sphere(0.1), (0, 2, 0.15), group=2)
    pushed = scene.add_body(gv.Sphere(0.1), (0, 3, 0.1), ice)
    scene.set_force(pushed, (20, 0, 0), (0, 0, 1))
    box = gv.Box((0.1, 0.1, 0.1))
    scene.add_body(box, (0, 4, 0.5), motion=gv.Oscillation((0.2, 0, 0), 3.0, 0.4))
    scene.add_body(box, (0, 5, 0.5), motion=gv.ConstantVelocity((0.1, 0, 0), (0, 1, 2)))
    scene.add_body(box, (0, 6, 0.5), motion=lambda t: np.array([np.sin(5 * t), 6, 0.5]))
    settings = {"solver": gv.GaussSeidel(iterations=2000, tolerance=1e-11), "precision": "double"}
    sim = gv.Simulation(scene, 1e-3, **settings)
    for _ in range(100):
        sim.step()
    sim.remove([gone])
    new = gv.Simulation(gv.Scene.from_simulation(sim), 1e-3, **settings)
    assert_same_future(sim, new, 100, 1e-8)
    third = gv.Simulation(gv.Scene.from_simulation(new), 1e-3, **settings)  # a motion that was continued once is continued again
    assert_same_future(new, third, 50, 1e-8)


def test_periodic_cells_and_surfaces_go_on():
    scene = gv.Scene(periodic=((0, 1), (0, 1), None))
    scene.add_body(gv.Plane(), fixed=True, surface_velocity=lambda t: (2 * t, 0, 0))
    places = np.stack(np.meshgrid([0.2, 0.5, 0.8], [0.2, 0.5, 0.8], [0.1, 0.35]), axis=-1).reshape(-1, 3)
    scene.add_bodies(gv.Sphere(0.1), places, velocities=np.tile((0.5, 0.3, 0), (len(places), 1)))
    settings = {"solver": gv.GaussSeidel(iterations=2000, tolerance=1e-11), "precision": "double"}
    sim = gv.Simulation(scene, 1e-3, **settings)
    sim.run(0.3)
    sim.cell.deform(gv.Deformation(strain_rate=(-0.1, 0, 0)))
    new = gv.Simulation(gv.Scene.from_simulation(sim), 1e-3, **settings)
    assert_same_future(sim, new, 50, 1e-6)
    assert np.allclose(sim.cell.lengths[:2], new.cell.lengths[:2]) and (sim.bodies.winding == new.bodies.winding).all()
    assert np.abs(sim.bodies.winding).max() > 0


def machine():
    """A crank with a motor that is a function of time, geared to a wheel, a pendulum on it, a slide on a spring, a rope; a hinge whose
    body will be removed, and a joint that will be released."""
    scene = gv.Scene()
    lost = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (9, 0, 0))
    scene.add_joint(gv.Revolute(None, lost, point=(9, 0, 0.2), axis=(0, 1, 0)))
    crank, rod = scene.add_body(gv.Box((0.2, 0.02, 0.02)), (0.2, 0, 0)), scene.add_body(gv.Box((0.2, 0.02, 0.02)), (0.6, 0, 0))
    motor = gv.SpeedMotor(lambda t: 3 * np.sin(4 * t), limit=100.0)
    hinge = scene.add_joint(gv.Revolute(None, crank, point=(0, 0, 0), axis=(0, 1, 0), motor=motor))
    scene.add_joint(gv.Revolute(crank, rod, point=(0.4, 0, 0), axis=(0, 1, 0), limits=(-1.0, 1.0), friction=0.1))
    wheel = scene.add_body(gv.Cylinder(0.1, 0.02), (0, 1, 0))
    turn = scene.add_joint(gv.Revolute(None, wheel, point=(0, 1, 0), axis=(0, 1, 0)))
    scene.add_joint(gv.Gear(hinge, turn, ratio=-2.0))
    block = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (2, 0, 0))
    scene.add_joint(gv.Prismatic(None, block, point=(2, 0, 0), axis=(0, 0, 1), spring=gv.SpringLaw(500.0, 3.0)))
    ball = scene.add_body(gv.Sphere(0.1), (3, 0, 0), velocity=(0, 1, 0))
    scene.add_joint(gv.Spherical(None, ball, point=(3, 0, 1)))
    free = scene.add_body(gv.Sphere(0.1), (4, 0, 0))
    released = scene.add_joint(gv.Distance(None, free, point=(4, 0, 1), point_b=(4, 0, 0)))
    return scene, lost, released


def test_joints_go_on_also_after_bodies_went_and_joints_broke():
    scene, lost, released = machine()
    settings = {"precision": "double", "solver": gv.GaussSeidel(iterations=500, tolerance=1e-12)}
    sim = gv.Simulation(scene, 1e-3, **settings)
    for k in range(300):
        if k == 100:
            sim.remove([lost])
            sim.release_joint(released)
        sim.step()
    new = gv.Simulation(gv.Scene.from_simulation(sim), 1e-3, **settings)
    assert np.array_equal(new.joints.broken, sim.joints.broken) and sim.joints.broken.sum() == 2
    assert_same_future(sim, new, 300, 1e-5)
    for name in ("slide", "angle", "angle_speed", "motor_torque"):
        holding = ~sim.joints.broken
        assert np.allclose(getattr(sim.joints, name)[holding], getattr(new.joints, name)[holding], atol=1e-3, equal_nan=True), name
    assert abs(sim.joints.angle[1]) > 0.1


def test_a_scene_is_made_of_a_simulation_only():
    refuse(lambda: gv.Scene.from_simulation(gv.Scene()), "simulation", "Scene", error=TypeError)


def test_a_scene_of_a_state_does_not_change_with_it():
    sim, ids = everything()
    scene = gv.Scene.from_simulation(sim)
    before = scene.bodies.position.copy()
    sim.step()
    sim.add_bodies(gv.Sphere(0.2), [(0, 9, 9)], gv.Material(density=5.0))
    assert np.array_equal(scene.bodies.position, before) and len(scene.materials) == 1
    up = rotate(sim.quaternions[ids["plane"]], sim.shape_of(ids["plane"]).normal)
    assert np.allclose(up, (0, 0.6, 0.8))
