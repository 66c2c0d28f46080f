"""Scenes: bodies in bulk, ids, masses and moments against formulas, materials and how they mix."""

import numpy as np
import pytest

import gravel as gv
from gravel.model.materials import PAIR_FIELDS, pair_table


def columns(table):
    """One entry of a pair table by name."""
    return dict(zip(PAIR_FIELDS, table))


# --- bodies in bulk
def test_a_million_spheres_are_added_by_one_call():
    n, rng = 1_000_000, np.random.default_rng(0)
    positions, radii, velocities = rng.random((n, 3)), rng.uniform(0.1, 0.2, n), rng.normal(size=(n, 3))
    scene = gv.Scene()
    ids = scene.add_bodies(gv.Sphere(radii), positions, gv.Material(density=2000), velocities=velocities, group=3)
    assert len(scene) == n and np.array_equal(ids, np.arange(n))
    bodies = scene.bodies
    assert np.array_equal(bodies.position, positions) and np.array_equal(bodies.velocity[:, :3], velocities)
    assert np.array_equal(bodies.extent[:, 0], radii) and np.array_equal(bodies.extent[:, 3], radii)
    assert np.allclose(1 / bodies.inverse_mass[:, 0], 2000 * 4 / 3 * np.pi * radii**3, rtol=1e-14)
    assert np.allclose(1 / bodies.inverse_mass[:, 1:], (2000 * 8 / 15 * np.pi * radii**5)[:, None], rtol=1e-14)
    assert np.array_equal(bodies.quaternion, np.tile([1.0, 0, 0, 0], (n, 1)))
    assert (bodies.tag == bodies.tag[0]).all() and bodies.tag[0, 2] == 3


def test_ids_count_on_and_stay():
    scene = gv.Scene()
    assert scene.add_body(gv.Plane(), fixed=True) == 0
    assert scene.add_bodies(gv.Sphere(0.1), np.zeros((3, 3))).tolist() == [1, 2, 3]
    assert scene.add_bodies(gv.Sphere(0.1), np.zeros((0, 3))).tolist() == []
    one = scene.add_body(gv.Box((1, 1, 1)), (7, 8, 9))
    assert one == 4 and type(one) is int and len(scene) == 5
    assert np.array_equal(scene.bodies.position[4], (7, 8, 9))


def test_ids_of_a_run_go_on_from_those_of_the_scene_and_are_not_used_again():
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.1), np.zeros((3, 3)))
    sim = gv.Simulation(scene, 1e-3)
    sim.remove([2])
    assert sim.add_bodies(gv.Sphere(0.1), np.ones((2, 3))).tolist() == [3, 4]
    assert sim.alive.tolist() == [True, True, False, True, True]
    assert len(scene) == 3


def test_one_by_one_is_the_same_as_in_bulk():
    rng = np.random.default_rng(1)
    positions, quaternions, velocities, spins = (
        rng.random((5, 3)),
        rng.normal(size=(5, 4)),
        rng.random((5, 3)),
        rng.random((5, 3)),
    )
    masses, inertias, half = rng.uniform(1, 2, 5), rng.uniform(1, 1.5, (5, 3)), rng.uniform(0.1, 0.2, (5, 3))
    bulk, single, glass = gv.Scene(), gv.Scene(), gv.Material(density=2500)
    bulk.add_bodies(
        gv.Box(half),
        positions,
        glass,
        quaternions=quaternions,
        velocities=velocities,
        angular_velocities=spins,
        masses=masses,
        inertias=inertias,
        group=2,
    )
    for k in range(5):
        single.add_body(
            gv.Box(half[k]),
            positions[k],
            glass,
            quaternion=quaternions[k],
            velocity=velocities[k],
            angular_velocity=spins[k],
            mass=masses[k],
            inertia=inertias[k],
            group=2,
        )
    for name in ("position", "quaternion", "velocity", "inverse_mass", "extent", "tag"):
        assert np.array_equal(getattr(bulk.bodies, name), getattr(single.bodies, name)), name


def test_one_size_serves_all_bodies_and_many_sizes_one_each():
    positions = np.zeros((3, 3))
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.5), positions)
    scene.add_bodies(gv.Sphere([0.1, 0.2, 0.3]), positions)
    scene.add_bodies(gv.Box((1, 2, 3)), positions)
    scene.add_bodies(gv.Box([(1, 2, 3), (4, 5, 6), (7, 8, 9)]), positions)
    extent = scene.bodies.extent
    assert extent[:6, 0].tolist() == [0.5, 0.5, 0.5, 0.1, 0.2, 0.3]
    assert extent[6:9, :3].tolist() == [[1, 2, 3]] * 3
    assert extent[9:, :3].tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert np.allclose(extent[6:, 3], np.linalg.norm(extent[6:, :3], axis=1))


def test_positions_of_whole_numbers_become_real():
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(1), [[1, 2, 3]])
    assert scene.bodies.position.dtype == np.float64 and scene.bodies.position.tolist() == [[1.0, 2.0, 3.0]]


# --- mass properties
@pytest.mark.parametrize("density", [1.0, 2700.0])
def test_mass_and_moments_of_a_ball(density):
    """m = 4/3 pi r^3 density, I = 2/5 m r^2."""
    radius = 0.3
    inverse = inverse_masses(gv.Sphere(radius), density)
    mass = 4 / 3 * np.pi * radius**3 * density
    assert np.allclose(1 / inverse, (mass, *[0.4 * mass * radius**2] * 3), rtol=1e-14)


@pytest.mark.parametrize("density", [1.0, 2700.0])
def test_mass_and_moments_of_a_box(density):
    """m = lx ly lz density, Ix = m (ly^2 + lz^2) / 12, with whole edges l = twice the half extents."""
    lx, ly, lz = 0.2, 0.6, 1.0
    inverse = inverse_masses(gv.Box((lx / 2, ly / 2, lz / 2)), density)
    mass = lx * ly * lz * density
    moments = mass / 12 * np.array([ly**2 + lz**2, lx**2 + lz**2, lx**2 + ly**2])
    assert np.allclose(1 / inverse, (mass, *moments), rtol=1e-14)


def test_moments_of_a_box_are_those_of_its_points():
    """Against the sum over a fine grid of equal points: the midpoint rule gives 1 - 1/n^2 of each second moment."""
    half, n = np.array([0.1, 0.3, 0.5]), 20
    inverse = inverse_masses(gv.Box(half), 1.0)
    x, y, z = np.stack(np.meshgrid(*[np.linspace(-h, h, 2 * n + 1)[1::2] for h in half])).reshape(3, -1)
    mass = 1 / inverse[0]
    moments = mass * np.array([np.mean(y**2 + z**2), np.mean(x**2 + z**2), np.mean(x**2 + y**2)])
    assert np.allclose(1 / inverse[1:] * (1 - 1 / n**2), moments, rtol=1e-12)


def test_given_mass_scales_the_moments_of_the_shape():
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere([0.1, 0.2]), np.zeros((2, 3)), masses=[3.0, 5.0])
    scene.add_bodies(gv.Box((0.1, 0.2, 0.3)), np.zeros((1, 3)), masses=[6.0])
    moments = 1 / scene.bodies.inverse_mass
    assert np.allclose(moments[0], (3, *[0.4 * 3 * 0.01] * 3))
    assert np.allclose(moments[1], (5, *[0.4 * 5 * 0.04] * 3))
    assert np.allclose(moments[2], (6, 6 / 3 * 0.13, 6 / 3 * 0.1, 6 / 3 * 0.05))


def test_given_inertia_replaces_that_of_the_shape_and_leaves_the_mass():
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), material=gv.Material(density=1000), inertia=(1, 2, 2.5))
    assert np.allclose(1 / scene.bodies.inverse_mass[0], (1000 * 4 / 3 * np.pi * 0.001, 1, 2, 2.5))


def test_immovable_bodies_have_infinite_mass():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_body(gv.Sphere(1), fixed=True)
    scene.add_body(gv.Box((1, 1, 1)), motion=gv.ConstantVelocity((1, 0, 0)))
    ball = scene.add_body(gv.Sphere(1), material=gv.Material(density=3))
    sim = gv.Simulation(scene, 1e-3)
    assert np.isinf(sim.masses[:3]).all() and np.isclose(sim.masses[ball], 4 * np.pi)
    assert sim.movable.tolist() == [False, False, False, True]


def inverse_masses(shape, density):
    scene = gv.Scene()
    scene.add_body(shape, material=gv.Material(density=density))
    return scene.bodies.inverse_mass[0]


# --- poses
def test_quaternions_are_normalised():
    given = np.array([(2.0, 0, 0, 0), (0, 3, 0, 4), (1e-3, 1e-3, 1e-3, 1e-3), (1e6, -1e6, 0, 0)])
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.1), np.zeros((4, 3)), quaternions=given)
    assert np.allclose(
        scene.bodies.quaternion,
        [(1, 0, 0, 0), (0, 0.6, 0, 0.8), (0.5, 0.5, 0.5, 0.5), (np.sqrt(0.5), -np.sqrt(0.5), 0, 0)],
        rtol=1e-15,
    )
    assert scene.add_body(gv.Sphere(0.1), quaternion=(0, 0, 5, 0)) == 4
    assert scene.bodies.quaternion[4].tolist() == [0, 0, 1, 0]


def test_quaternions_stay_normalised_while_bodies_turn():
    scene = gv.Scene()
    spins = np.random.default_rng(4).normal(0, 30, (20, 3))
    scene.add_bodies(gv.Sphere(0.1), np.arange(60.0).reshape(20, 3), angular_velocities=spins)
    sim = gv.Simulation(scene, 1e-2)
    for _ in range(200):
        sim.step()
    assert np.allclose(np.linalg.norm(sim.quaternions, axis=1), 1, rtol=0, atol=1e-13)


def test_plane_lies_at_its_offset_along_its_unit_normal():
    scene = gv.Scene()
    scene.add_body(gv.Plane(normal=(0, 3, 4), offset=2.0), fixed=True)
    scene.add_body(gv.Plane(normal=(0, 0, 2)), (0, 0, 5), fixed=True)
    assert np.allclose(scene.bodies.position, [(0, 1.2, 1.6), (0, 0, 5)])
    assert np.allclose(scene.bodies.extent[:, :3], [(0, 0.6, 0.8), (0, 0, 1)])


# --- materials
def mix(a, b):
    """The contact values of two materials, by name."""
    return dict(zip(PAIR_FIELDS, pair_table([a, b], {})[0, 1]))


def test_mixing_rule():
    """Geometric means of the frictions, the larger restitution, the smaller cohesion."""
    a = gv.Material(friction=0.2, restitution=0.3, rolling_friction=0.01, spinning_friction=0.02, cohesion=5.0)
    b = gv.Material(friction=0.8, restitution=0.6, rolling_friction=0.04, spinning_friction=0.08, cohesion=2.0)
    expected = {
        "friction": 0.4,
        "restitution": 0.6,
        "rolling_friction": 0.02,
        "spinning_friction": 0.04,
        "cohesion": 2.0,
    }
    for first, second in ((a, b), (b, a)):
        assert mix(first, second) == pytest.approx(expected, rel=1e-15)
    assert mix(a, a) == pytest.approx({name: getattr(a, name) for name in PAIR_FIELDS}, rel=1e-15)


def test_smooth_or_dry_partner_makes_a_smooth_or_dry_pair():
    mixed = mix(gv.Material(friction=0.0), gv.Material(friction=0.9, rolling_friction=0.1, spinning_friction=0.1, cohesion=9.0))
    assert [mixed[name] for name in ("friction", "rolling_friction", "spinning_friction", "cohesion")] == [0, 0, 0, 0]


def test_pair_table_is_symmetric_and_takes_given_values():
    materials = [gv.Material(friction=f) for f in (0.1, 0.4, 0.9)]
    table = pair_table(materials, {(0, 2): {"friction": 0.7, "cohesion": 3.0}})
    assert table.shape == (3, 3, 5) and np.array_equal(table, table.transpose(1, 0, 2))
    assert np.isclose(columns(table[0, 1])["friction"], 0.2) and np.isclose(columns(table[1, 2])["friction"], 0.6)
    assert columns(table[2, 0])["friction"] == 0.7 and columns(table[2, 0])["cohesion"] == 3.0


def test_set_pair_in_either_order_and_bit_by_bit():
    a, b = gv.Material(friction=0.1), gv.Material(friction=0.9)
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), material=a)
    scene.add_body(gv.Sphere(0.1), material=b)
    scene.set_pair(b, a, friction=0.5)
    scene.set_pair(a, b, restitution=0.25)
    table = pair_table(scene.materials, scene.pairs)
    i, j = scene.material_index(a), scene.material_index(b)
    assert (columns(table[i, j])["friction"], columns(table[j, i])["restitution"]) == (0.5, 0.25)
    assert columns(table[i, i])["friction"] == pytest.approx(0.1)


def test_materials_do_not_change():
    glass = gv.Material()
    with pytest.raises(AttributeError):
        glass.friction = 0.1


# --- a scene serves many runs
def test_simulation_takes_a_copy_of_the_scene():
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.1), [(0, 0, 1), (0, 0, 2)])
    first = gv.Simulation(scene, 1e-3)
    for _ in range(3):
        first.step()
    first.add_bodies(gv.Sphere(0.1), [(5, 5, 5)])
    first.remove(0)
    assert len(scene) == 2 and scene.bodies.position.tolist() == [[0, 0, 1], [0, 0, 2]] and not scene.bodies.velocity.any()
    scene.add_body(gv.Sphere(0.1), (9, 9, 9))
    assert len(first.positions) == 3 and len(gv.Simulation(scene, 1e-3).positions) == 3
    scene.gravity[:] = 0
    assert first.gravity[2] == -9.81


def test_set_pair_after_the_start_does_not_reach_the_run():
    glass = gv.Material()
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), material=glass)
    scene.set_pair(glass, glass, friction=0.2)
    sim = gv.Simulation(scene, 1e-3)
    scene.set_pair(glass, glass, friction=0.7)
    assert sim.pairs[(0, 0)]["friction"] == 0.2


def test_views_of_the_state_are_not_copies():
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_body(gv.Sphere(0.1), (0, 0, 1))
    sim = gv.Simulation(scene, 0.5)
    sim.velocities[0] = (2, 0, 0)
    sim.positions[0] = (1, 1, 1)
    sim.step()
    assert sim.positions[0].tolist() == [2, 1, 1]
