"""Mixing, segregation, the angle of a drum's bed, residence times, torque and power, granular temperature: against formulas and what was
constructed."""

import numpy as np
import pytest
from test_bad_input import refuse
from test_packing_and_fields import still

import gravel as gv


# --- the bed of a drum
def bed(angle, radius=0.5, spacing=0.02, axis="y", rng=None):
    """Balls in the lower part of a drum of this radius, below a plane through its axis that is inclined by an angle, degrees."""
    rng = np.random.default_rng(3) if rng is None else rng
    steps = np.arange(-radius, radius, spacing)
    places = np.stack(np.meshgrid(steps, np.arange(-0.1, 0.1, spacing), steps, indexing="ij"), axis=-1).reshape(-1, 3)
    places = places + rng.uniform(-0.2 * spacing, 0.2 * spacing, places.shape)
    below = places[:, 2] < np.tan(np.radians(angle)) * places[:, 0] - 0.1
    places = places[below & (np.hypot(places[:, 0], places[:, 2]) < radius)]
    return places if axis == "y" else places[:, [1, 0, 2]]


@pytest.mark.parametrize("angle", [5, 20, 39.8, -30])
@pytest.mark.parametrize("axis", ["y", "x", (0, 1, 0)])
def test_the_angle_of_a_bed_in_a_drum(angle, axis):
    sim = still(gv.Sphere(0.009), bed(angle, axis="x" if axis == "x" else "y"))
    assert np.degrees(gv.measures.dynamic_angle(sim, axis)) == pytest.approx(abs(angle), abs=0.8)


def test_grains_in_flight_do_not_turn_the_surface():
    places = bed(30)
    flying = np.random.default_rng(1).uniform((-0.3, -0.1, 0.2), (0.0, 0.1, 0.4), (8, 3))
    sim = still(gv.Sphere(0.009), np.concatenate([places, flying]))
    assert np.degrees(gv.measures.dynamic_angle(sim)) == pytest.approx(30, abs=1.5)


def test_the_bed_of_a_drum_is_no_heap():
    """Its angle of repose came out as 23.6 degrees where the surface has 39.8."""
    sim = still(gv.Sphere(0.009), bed(39.8))
    refuse(lambda: gv.measures.angle_of_repose(sim), "angle_of_repose", "heaps")


def test_a_bowl_is_no_heap():
    rng = np.random.default_rng(5)
    places = 0.02 * np.stack(np.meshgrid(np.arange(-30, 31), np.arange(-30, 31), np.arange(20), indexing="ij"), axis=-1).reshape(-1, 3)
    places = places + rng.uniform(-4e-3, 4e-3, places.shape)
    across = np.hypot(places[:, 0], places[:, 1])
    sim = still(gv.Sphere(0.009), places[(places[:, 2] < 0.5 * across) & (across < 0.6)])
    refuse(lambda: gv.measures.angle_of_repose(sim), "rises from its middle")


def test_too_few_rings_are_counted_as_they_are():
    sim = still(gv.Sphere(0.01), [(0.02 * k, 0, 0.01) for k in range(20)])
    with pytest.raises(ValueError, match=r"needs at least two rings .* but of its (\d+) rings .* only ([01]) are"):
        gv.measures.angle_of_repose(sim)


def test_what_is_no_bed_is_refused():
    sim = still(gv.Sphere(0.009), bed(30))
    refuse(lambda: gv.measures.dynamic_angle(sim, "z"), "axis", "level")
    refuse(lambda: gv.measures.dynamic_angle(sim, "w"), "axis", "'w'")
    refuse(lambda: gv.measures.dynamic_angle(sim, width=0.3), "dynamic_angle needs at least 4 columns", "only")
    heap = 0.02 * np.stack(np.meshgrid(np.arange(-20, 21), np.arange(-5, 5), np.arange(20), indexing="ij"), axis=-1).reshape(-1, 3)
    sim = still(gv.Sphere(0.009), heap[heap[:, 2] < 0.35 - 0.7 * np.abs(heap[:, 0])])
    refuse(lambda: gv.measures.dynamic_angle(sim), "beds with one slope")


# --- mixing
def grid_of(n):
    return 0.1 * np.stack(np.meshgrid(*3 * [np.arange(n)], indexing="ij"), axis=-1).reshape(-1, 3).astype(float)


def test_kinds_apart_have_a_mixing_index_of_zero_and_mixed_ones_of_one():
    places = grid_of(20)
    sim = still(gv.Sphere(0.04), places)
    halves = np.flatnonzero(places[:, 0] < 0.95)  # cells of five do not cross it
    assert gv.measures.mixing_index(sim, halves, cell=0.5) == pytest.approx(0.0, abs=1e-12)
    found = [gv.measures.mixing_index(sim, np.random.default_rng(k).permutation(8000)[:3000], cell=0.5) for k in range(20)]
    assert np.mean(found) == pytest.approx(1.0, abs=5e-4)


def test_the_mixing_index_by_hand():
    """Two cells of four bodies, with one and three of the kind: p = 1/2, variance 1/16, apart 1/4, random 1/16."""
    places = [(0.1 + 0.2 * (k % 2), 0.1 + 0.2 * (k // 2), 0.1) for k in range(4)]
    sim = still(gv.Sphere(0.05), [*places, *((x + 1.0, y, z) for x, y, z in places)])
    assert gv.measures.mixing_index(sim, [0, 4, 5, 6], cell=1.0, fewest=2) == pytest.approx((1 / 4 - 1 / 16) / (1 / 4 - 1 / 16))
    assert gv.measures.mixing_index(sim, [0, 4, 5], cell=1.0, fewest=2) == pytest.approx((15 / 64 - 1 / 64 - 0) / (15 / 64 - 15 / 256))


def test_the_share_of_a_kind_over_height_is_by_mass():
    masses = np.array([1.0, 3.0, 2.0, 5.0])
    sim = still(gv.Sphere(0.1), [(0, 0, 0.5), (1, 0, 0.5), (0, 0, 1.5), (0, 0, 3.5)], masses=masses)
    places, share = gv.measures.segregation_profile(sim, [0, 2], "z", 4, ((-1, -1, 0), (2, 1, 4)))
    assert np.allclose(places.middles, (0.5, 1.5, 2.5, 3.5))
    np.testing.assert_allclose(share, [0.25, 1.0, np.nan, 0.0])


def test_bad_kinds_are_refused():
    sim = still(gv.Sphere(0.04), grid_of(6))
    refuse(lambda: gv.measures.mixing_index(sim, []), "kind")
    refuse(lambda: gv.measures.mixing_index(sim, np.arange(216)), "kind", "all")
    refuse(lambda: gv.measures.mixing_index(sim, [999]), "kind", "none")
    refuse(lambda: gv.measures.mixing_index(sim, [1], cell=10.0), "at least two cells", "1")


# --- residence times
def test_bodies_that_cross_a_region_stay_its_length_over_their_speed():
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.01), [(-0.1 * k - 0.05, 0, 0) for k in range(20)], velocities=np.tile((2.0, 0, 0), (20, 1)))
    inside = scene.add_body(gv.Sphere(0.01), (0.2, 0.5, 0))
    sim = gv.Simulation(scene, 1e-3, threads=1)
    stay = gv.measures.ResidenceTime(((0, -1, -1), (0.5, 1, 1)))
    sim.run(1.0, observers=[stay])
    assert len(stay.stays) > 10 and np.allclose(stay.stays, 0.25, atol=1.01e-3)
    assert stay.mean == pytest.approx(0.25, abs=1e-3) and stay(sim) == stay.mean
    assert stay.waiting == np.count_nonzero((sim.positions[:, 0] >= 0) & (sim.positions[:, 0] < 0.5)) - 1
    assert inside not in stay._since  # nobody knows since when it has been there


# --- torque and power
def loaded(arm, velocity=(0, 0, 0)):
    """A long table that forces cannot move, with a box on it at x = ``arm``: (simulation, table, weight)."""
    scene = gv.Scene()
    rough = gv.Material(friction=0.4)
    table = scene.add_body(gv.Box((5, 1, 0.1)), (0, 0, -0.1), rough, motion=gv.ConstantVelocity(velocity))
    box = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (arm, 0, 0.1), rough)
    sim = gv.Simulation(scene, 1e-3, precision="double", threads=1, solver=gv.GaussSeidel(tolerance=1e-10))
    return sim, table, box, 9.81 * float(sim.masses[box])


def test_the_torque_of_a_load_is_weight_times_arm(tmp_path):
    sim, table, _, weight = loaded(0.7)
    sim.run(0.05, tmp_path / "r.vtkhdf", 0.05, contacts=True)
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        for source in (sim, result[-1]):
            assert np.allclose(gv.measures.contact_force(source, table), (0, 0, -weight), atol=1e-3 * weight)
            assert np.allclose(gv.measures.contact_torque(source, table), (0, 0.7 * weight, 0), atol=1e-3 * weight)
            about = gv.measures.contact_torque(source, table, point=(1.0, 0, 0))
            assert np.allclose(about, (0, -0.3 * weight, 0), atol=1e-3 * weight)
            assert gv.measures.contact_power(source, table) == pytest.approx(0.0, abs=1e-6 * weight)


def test_a_belt_that_slides_below_a_load_gives_friction_times_speed():
    """What the load cannot follow at once: mu m g v, as long as it slides."""
    sim, table, box, weight = loaded(0.0, (3.0, 0, 0))
    for _ in range(100):
        sim.step()
    assert sim.velocities[box, 0] == pytest.approx(0.4 * 9.81 * 0.1, rel=1e-3)
    assert gv.measures.contact_power(sim, table) == pytest.approx(0.4 * weight * 3.0, rel=1e-3)


def test_a_table_that_turns_below_a_ring_of_loads_gives_torque_times_speed():
    scene = gv.Scene()
    smooth, rate = gv.Material(friction=0.3), 20.0
    table = scene.add_body(gv.Box((2.0, 2.0, 0.1)), (0, 0, -0.1), smooth, motion=gv.ConstantVelocity(angular_velocity=(0, 0, rate)))
    angles = np.arange(4) * np.pi / 2
    scene.add_bodies(gv.Box((0.02, 0.02, 0.02)), np.stack([np.cos(angles), np.sin(angles), 0 * angles + 0.02], axis=1), smooth)
    sim = gv.Simulation(scene, 1e-4, precision="double", threads=1, solver=gv.GaussSeidel(tolerance=1e-10))
    for _ in range(50):
        sim.step()
    torque = gv.measures.contact_torque(sim, table)
    assert torque[2] == pytest.approx(-4 * 0.3 * 9.81 * sim.masses[1] * 1.0, rel=2e-2)
    assert gv.measures.contact_power(sim, table) == pytest.approx(-torque[2] * rate, rel=1e-6)


def test_bodies_that_are_not_there_are_refused():
    sim, *_ = loaded(0.0)
    sim.step()
    refuse(lambda: gv.measures.contact_torque(sim, 9), "body", "9")
    refuse(lambda: gv.measures.contact_power(sim, -1), "body", "-1")


# --- granular temperature
def test_the_temperature_of_a_maxwellian_does_not_know_how_it_moves_as_a_whole():
    rng, n = np.random.default_rng(2), 20000
    scene = gv.Scene(gravity=(0, 0, 0))
    velocities = rng.normal(0, 0.3, (n, 3)) + (5.0, -2.0, 1.0)
    masses = rng.uniform(1, 3, n)
    scene.add_bodies(gv.Sphere(0.01), rng.uniform(0, 10, (n, 3)), velocities=velocities, masses=masses)
    sim = gv.Simulation(scene, 1e-3, threads=1)
    assert gv.measures.granular_temperature(sim) == pytest.approx(0.09, rel=0.03)
    apart = velocities - (masses @ velocities) / masses.sum()
    assert gv.measures.granular_temperature(sim) == pytest.approx(masses @ (apart**2).sum(axis=1) / (3 * masses.sum()), rel=1e-5)
    refuse(lambda: gv.measures.granular_temperature(sim, ((20, 20, 20), (21, 21, 21))), "region")


def test_the_units_of_these_measures():
    units = {name: getattr(gv.measures, name).unit for name in ("dynamic_angle", "mixing_index", "granular_temperature", "ResidenceTime")}
    assert units == {"dynamic_angle": "rad", "mixing_index": "1", "granular_temperature": "m2/s2", "ResidenceTime": "s"}
