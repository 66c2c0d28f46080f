"""An inlet that pours: the right mass at the right time, room for everybody, and a resume that loses nothing."""

import warnings

import numpy as np
import pytest

import gravel as gv

GLASS = gv.Material(density=2500, friction=0.4)
INLET = gv.BoxRegion((-0.15, -0.15, 0.4), (0.15, 0.15, 0.55))
SIZES = gv.UniformSizes(0.012, 0.02)


def floor(*more):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), material=GLASS, fixed=True)
    for shape, position in more:
        scene.add_body(shape, position, GLASS, fixed=True)
    return gv.Simulation(scene, dt=1 / 500)


def deepest(record):
    """An observer that keeps the deepest penetration near the inlet, in shares of the smallest radius. (Further down, a ball that others
    strike within a step may be driven into what it would not have reached by itself.)"""

    def observe(simulation):
        table = simulation.contacts
        record.append(-table.gap[table.point[:, 2] > 0.35].min(initial=0.0) / 0.012)

    return observe


def test_mass_rate_over_time_and_no_overlaps():
    simulation, depths, masses = floor((gv.Box((0.2, 0.03, 0.02)), (0, 0, 0.45))), [], []
    pourer = gv.pour(gv.Sphere, INLET, rate=15.0, sizes=SIZES, material=GLASS, velocity=(0, 0, -1), until=0.4)
    heaviest = 2500 * 4 / 3 * np.pi * 0.02**3
    weigh = lambda sim: masses.append((sim.time, sim.masses[sim.movable].sum()))  # noqa: E731
    simulation.run(until=0.5, observers=[pourer, weigh, deepest(depths)])
    for time, mass in masses:
        due = 15.0 * min(time, 0.4)
        assert due - heaviest < mass <= due * (1 + 1e-9)
    assert max(depths) < 0.01
    radii = simulation.bodies.extent[simulation.movable, 0]
    assert radii.min() >= 0.012 and radii.max() <= 0.02 and np.ptp(radii) > 0.006
    assert pourer.fed == simulation.movable.sum() and pourer.fed_mass == pytest.approx(masses[-1][1]) and pourer.waiting == 0


def test_new_bodies_are_in_the_inlet_with_their_velocity_and_apart():
    simulation = floor()
    disc = gv.CylinderRegion((0, 0, 0.4), (0, 0, 0.45), 0.1)
    pourer = gv.pour(gv.Sphere(0.02), disc, number_rate=5000, velocity=(0.5, 0, -1))
    simulation.step()
    new = pourer(simulation)
    assert 0 < len(new) <= 10 and pourer.waiting == 10 - len(new)
    places = simulation.positions[new]
    assert disc.distance(places).min() >= 0.02 and np.allclose(simulation.velocities[new], (0.5, 0, -1))
    apart = np.linalg.norm(places[:, None] - places, axis=2) + np.eye(len(new))
    assert apart.min() >= 0.04


def test_numbers_total_and_start():
    simulation = floor()
    pourer = gv.pour(gv.Sphere(0.01), INLET, number_rate=100, start=0.1, total=12, velocity=(0, 0, -1))
    counts = []
    simulation.run(until=0.3, observers=[pourer, lambda sim: counts.append((sim.time, int(sim.movable.sum())))])
    for time, number in counts:
        assert number == min(12, int(np.floor(100 * max(time - 0.1, 0) + 1e-6)))
    by_mass = gv.pour(gv.Sphere(0.01), INLET, rate=1.0, total=0.02, material=GLASS, velocity=(0, 0, -1))
    simulation.run(until=0.5, observers=[by_mass])
    one = 2500 * 4 / 3 * np.pi * 0.01**3
    assert by_mass.fed == int(0.02 / one) and by_mass.fed_mass <= 0.02


def test_a_blocked_inlet_is_told_once_and_overlaps_nothing():
    """Nothing falls out of the inlet: it fills, the rest waits."""
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, 0, 0), fixed=True)
    simulation, depths = gv.Simulation(scene, dt=1 / 100), []
    pourer = gv.pour(gv.Sphere(0.03), gv.BoxRegion((-0.1, -0.1, 0.05), (0.1, 0.1, 0.2)), number_rate=200)
    with pytest.warns(UserWarning, match="the inlet is blocked or too small") as told:
        simulation.run(until=1.0, observers=[pourer, deepest(depths)])
    assert len(told) == 1
    assert pourer.fed + pourer.waiting == 200 and 0 < pourer.fed < 20 and f"{pourer.waiting} waiting" in repr(pourer)
    assert max(depths) < 0.01 and simulation.positions[simulation.movable, 2].min() > 0.1 + 0.029


def test_a_mixture_of_shapes_is_poured_around_what_is_there():
    mesh = gv.Mesh([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], [(0, 1, 2), (0, 2, 3)], sheet=True)
    simulation, depths, born = floor((mesh, (0, 0, 0.45))), [], {}
    mixture = gv.Mixture([(gv.Sphere(0.02), 1), (gv.Ellipsoid((0.03, 0.02, 0.015)), 1)])
    pourer = gv.pour(mixture, INLET, rate=20.0, material=[GLASS, gv.Material(density=5000)], seed=1)
    for _ in range(100):
        simulation.step()
        table = simulation.contacts
        age = simulation.steps - np.array([born.get(k, -99) for k in range(simulation.count)])
        young = np.minimum(age[table.body_a], age[table.body_b]) <= 3
        depths.append(-table.gap[young].min(initial=0.0) / 0.015)
        born.update((int(k), simulation.steps) for k in pourer(simulation))
    volumes = {0: 4 / 3 * np.pi * 0.02**3, 1: 4 / 3 * np.pi * 0.03 * 0.02 * 0.015}
    kinds = simulation.bodies.shape[simulation.movable]
    balls = int((kinds == 0).sum())
    assert 0 < balls < pourer.fed
    assert pourer.fed_mass == pytest.approx(2500 * volumes[0] * balls + 5000 * volumes[1] * (pourer.fed - balls))
    heights = simulation.positions[simulation.movable, 2]
    assert (heights > 0.45).any() and (heights < 0.45).any() and max(depths) < 0.01
    assert not (np.abs(heights - 0.45) < 0.014).any()  # nobody sits in the sheet


def test_a_run_goes_on_from_a_checkpoint_bit_for_bit(tmp_path):
    make = lambda **more: gv.pour(gv.Sphere, INLET, rate=8.0, sizes=SIZES, seed=5, velocity=(0, 0, -1), **more)  # noqa: E731
    whole, pourer = floor(), make()
    whole.run(until=0.1, observers=[pourer], checkpoint=tmp_path / "half.h5")
    fed = pourer.fed
    whole.run(until=0.2, observers=[pourer])
    resumed = gv.Simulation.load(tmp_path / "half.h5")
    again = make(fed=fed)
    assert again.fed_mass == pytest.approx(resumed.masses[resumed.movable].sum())
    resumed.run(until=0.2, observers=[again])
    assert 0 < fed < pourer.fed == again.fed and resumed.state_hash() == whole.state_hash()
    assert again.fed_mass == pourer.fed_mass


def test_bodies_are_not_fed_twice_nor_without_time():
    simulation = floor()
    pourer = gv.pour(gv.Sphere(0.01), INLET, number_rate=1000)
    simulation.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(pourer(simulation)) == 2 and len(pourer(simulation)) == 0


@pytest.mark.parametrize(
    "options, words",
    [
        ({}, "exactly one of rate"),
        ({"rate": 1.0, "number_rate": 1.0}, "exactly one of rate"),
        ({"rate": 0.0}, "rate must be greater than 0"),
        ({"number_rate": np.nan}, "number_rate must be finite"),
        ({"rate": 1.0, "until": -1.0}, "until must be greater than 0"),
        ({"rate": 1.0, "total": 0.0}, "total must be greater than 0"),
        ({"rate": 1.0, "velocity": (0, 0)}, "velocity must have shape"),
        ({"rate": 1.0, "fed": -1}, "fed must be at least 0"),
        ({"rate": 1.0, "material": "glass"}, "material must be a Material"),
        ({"rate": 1.0, "inlet": gv.BoxRegion((0, 0, 0), (1, 1, 0.015))}, "inlet must hold every body"),
        ({"rate": 1.0, "inlet": "box"}, "inlet must be a region"),
    ],
)
def test_bad_input_is_refused(options, words):
    options = {"inlet": INLET, **options}
    with pytest.raises((ValueError, TypeError), match=words):
        gv.pour(gv.Sphere(0.01), **options)


@pytest.mark.parametrize("rate", [{"number_rate": 1e12}, {"rate": 1e12}])
def test_a_rate_beyond_counting_takes_no_longer_than_a_full_inlet(rate):
    simulation = floor()
    pourer = gv.pour(gv.Sphere(0.02), INLET, velocity=(0, 0, -1), **rate)
    simulation.step()
    new = pourer(simulation)
    assert len(new) > 0 and 0 < pourer.waiting <= 100_000  # of 1e12 a second: to count them all would take days
