"""FFD: one body against quadratic programs, collisions, slopes and belts against formulas, piles against what energy allows; and the
same bits however contacts are found and handed over."""

import math
import warnings

import clarabel
import numpy as np
import pytest
import scipy.sparse

import gravel as gv
from gravel.cpu.solve.ffd import directions, into_polygon
from gravel.cpu.solve.nearest import Room, find_nearest
from gravel.engine import NoSync
from gravel.scenes import build

G = 9.81
STONE = gv.Material(density=2500, friction=0.5)


# --- one body: the nearest velocity between its walls
def nearest(rows, lacking, give):
    load = np.empty(len(rows))
    room = Room(np.zeros(6), np.zeros(6), np.zeros((6, 6)))
    find_nearest(len(rows), np.array(rows, float), np.array(lacking, float), np.array(give, float), load, room)
    return room.point, load


def by_quadratic_program(rows, lacking, give):
    """z of min 1/2 |z|^2 + 1/2 sum s^2 with s sqrt(give) >= lacking - rows z; ``give`` None: without s."""
    m = len(rows)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, 1e-11)
    if give is None:
        P, A, b = np.eye(6), -rows, -lacking
    else:
        scale = np.sqrt((rows**2).sum(axis=1) + give)[:, None]
        P, A = np.eye(6 + m), -np.hstack([rows, np.diag(np.sqrt(give))]) / scale
        A, b = np.vstack([A, -np.eye(6 + m)[6:]]), np.concatenate([-lacking / scale[:, 0], np.zeros(m)])
    cones = [clarabel.NonnegativeConeT(len(b))]
    matrices = scipy.sparse.csc_matrix(P), np.zeros(len(P)), scipy.sparse.csc_matrix(A), b
    return np.array(clarabel.DefaultSolver(*matrices, cones, settings).solve().x)[:6]


def walls(seed, kind):
    """Random walls around a body, of which some are the same, or contradict each other."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 16))
    rows = rng.normal(size=(m, 6)) * 10 ** rng.uniform(-1, 1)
    lacking = rng.normal(size=m)
    if kind == "doubled":
        rows, lacking = np.repeat(rows, 2, axis=0), np.repeat(lacking, 2)
    if kind == "in a plane":
        rows[:, 2:] = 0.0
    if kind == "contradicting":
        rows, lacking = np.concatenate([rows, -rows]), np.abs(np.concatenate([lacking, lacking]))
    return rows, lacking, (rows**2).sum(axis=1) * 10 ** rng.uniform(-3, 1, len(rows))


@pytest.mark.parametrize("kind", ["any", "doubled", "in a plane", "contradicting"])
def test_the_nearest_point_between_walls_that_yield_is_that_of_a_quadratic_program(kind):
    for seed in range(25):
        rows, lacking, give = walls(seed, kind)
        point, load = nearest(rows, lacking, give)
        assert np.allclose(point, by_quadratic_program(rows, lacking, give), rtol=0, atol=1e-7 * np.abs(lacking).max())
        assert np.all(load >= 0) and np.allclose(rows.T @ load, point, rtol=0, atol=1e-9 * np.abs(load).max(initial=1.0))


def test_walls_that_hardly_yield_leave_the_projection_onto_a_polyhedron():
    for seed in range(25):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(int(rng.integers(1, 12)), 6))
        lacking = rows @ rng.normal(size=6) - np.abs(rng.normal(size=len(rows)))  # so there is a point that meets them all
        point, _ = nearest(rows, lacking, 1e-9 * (rows**2).sum(axis=1))
        assert np.allclose(point, by_quadratic_program(rows, lacking, None), rtol=0, atol=1e-5)


def test_friction_stays_in_its_polygon_at_the_nearest_place():
    rng = np.random.default_rng(3)
    for count in (3, 4, 8, 13):
        samples = directions(count)
        corners = np.array([(math.cos(a), math.sin(a)) for a in math.pi / count * (2 * np.arange(count) + 1)]) / math.cos(math.pi / count)
        line = np.linspace(0, 1, 2001)[:, None]
        edge = np.concatenate([a + line * (b - a) for a, b in zip(corners, np.roll(corners, -1, axis=0))])
        for x in rng.normal(size=(50, 2)) * 2:
            found = np.array(into_polygon.py_func(x[0], x[1], 1.0, samples))
            inside = (samples @ x).max() <= 1.0
            want = x if inside else edge[np.argmin(((edge - x) ** 2).sum(axis=1))]
            assert np.linalg.norm(found - want) <= (0.0 if inside else 4e-3)


# --- few bodies
def simulate(scene, dt=1e-3, **options):
    warnings.filterwarnings("ignore", "bodies .* overlap by")  # FFD is not exact: a few % of a radius is what it is
    return gv.Simulation(scene, dt, gv.FFD(), **{"precision": "double", "threads": 1, **options})


def floor(material=STONE, gravity=(0, 0, -G), **options):
    scene = gv.Scene(gravity=gravity)
    scene.add_body(gv.Plane(), material=material, fixed=True, **options)
    return scene


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("masses", [(1.0, 1.0), (1.0, 7.0), (300.0, 0.1)])
def test_two_balls_head_on_part_as_momentum_and_restitution_say(masses, restitution):
    """A pair that meets alone: momentum is kept, and the relative speed becomes e times what it was."""
    (m1, m2), (v1, v2) = masses, (2.0, -0.5)
    ball = gv.Material(friction=0.3, restitution=restitution)
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_body(gv.Sphere(0.1), (0, 0, 0), ball, mass=m1, velocity=(v1, 0, 0))
    scene.add_body(gv.Sphere(0.2), (0.5, 0, 0), ball, mass=m2, velocity=(v2, 0, 0))
    sim = simulate(scene)
    for _ in range(150):
        sim.step()
    impact_impulse = (1 + restitution) * m1 * m2 * (v1 - v2) / (m1 + m2)
    assert np.allclose(sim.velocities, [[v1 - impact_impulse / m1, 0, 0], [v2 + impact_impulse / m2, 0, 0]], rtol=0, atol=2e-5)


def test_a_ball_comes_to_rest_on_the_floor_and_presses_with_its_weight():
    scene = floor()
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.15), STONE)
    sim = simulate(scene)
    for _ in range(500):
        report = sim.step()
    weight = G * sim.masses[1]
    assert abs(sim.positions[1, 2] - 0.1) < 1e-5 and np.abs(sim.velocities[1]).max() < 1e-6
    assert report.residual < 1e-4 * G * sim.dt and report.iterations == 1 and report.converged
    assert np.allclose(sim.contacts.impulse, [(0, 0, weight * sim.dt)], rtol=1e-5, atol=1e-9 * weight)


@pytest.mark.parametrize("restitution", [0.5, 0.9, 1.0])
def test_a_ball_bounces_to_the_height_that_restitution_gives_it(restitution):
    rubber = gv.Material(restitution=restitution)
    scene = floor(rubber)
    scene.add_body(gv.Sphere(0.1), (0, 0, 1.1), rubber)
    sim = simulate(scene)
    heights, rising = [], False
    while len(heights) < 2:
        sim.step()
        if rising and sim.velocities[1, 2] <= 0:
            heights.append(sim.positions[1, 2] - 0.1)
        rising = sim.velocities[1, 2] > 0
    assert np.allclose(heights, [restitution**2, restitution**4], rtol=0.02)


@pytest.mark.parametrize("degrees", [20.0, 35.0])
def test_a_box_on_a_slope_sticks_below_the_friction_angle_and_slides_above_it(degrees):
    """tan 26.6 deg = 0.5; above it, g (sin - mu cos)."""
    angle, mu = math.radians(degrees), 0.5
    scene = floor(gravity=(G * math.sin(angle), 0, -G * math.cos(angle)))
    scene.add_body(gv.Box((0.2, 0.2, 0.05)), (0, 0, 0.05), STONE)
    sim = simulate(scene)
    for _ in range(300):
        sim.step()
    expected = max(G * (math.sin(angle) - mu * math.cos(angle)), 0.0) * sim.time
    assert abs(sim.velocities[1, 0] - expected) <= max(0.03 * expected, 1e-3)
    assert abs(sim.positions[1, 2] - 0.05) < 1e-4


def test_a_belt_takes_a_box_along_until_it_has_the_speed_of_the_belt():
    scene = floor(surface_velocity=(1.0, 0, 0))
    scene.add_body(gv.Box((0.2, 0.2, 0.05)), (0, 0, 0.05), STONE)
    sim = simulate(scene)
    for _ in range(100):
        sim.step()
    assert np.isclose(sim.velocities[1, 0], 0.5 * G * sim.time, rtol=0.03)
    for _ in range(200):
        sim.step()
    assert np.allclose(sim.velocities[1], (1, 0, 0), rtol=0, atol=1e-3)


def test_a_ball_between_two_plates_that_press_it_stays_and_stays_finite():
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_body(gv.Plane((0, 0, 1)), material=STONE, fixed=True)
    scene.add_body(gv.Plane((0, 0, -1)), (0, 0, 0.19), STONE, fixed=True)
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.094), STONE, velocity=(0.1, 0, 0))
    sim = simulate(scene)
    for _ in range(200):
        assert math.isfinite(sim.step().residual)
    assert abs(sim.positions[2, 2] - 0.095) < 1e-3 and np.abs(sim.velocities[2]).max() <= 0.1


# --- many bodies
def heap(bodies=120, **options):
    setup = build("pile", bodies, seed=1)
    return simulate(setup.scene, **options)


def energy(sim):
    grains = sim.movable
    return sim.report.kinetic_energy + G * (sim.masses[grains] * sim.positions[grains, 2]).sum()


def test_falling_grains_never_gain_energy():
    """Without restitution, and with nothing taken back of penetrations, which lifts bodies."""
    sim = heap(recovery=0.0)
    sim.step()
    energies = [energy(sim)]
    for _ in range(400):
        sim.step()
        energies.append(energy(sim))
    lowest = np.minimum.accumulate(energies)
    assert np.max(energies - lowest) < 1e-3 * (energies[0] - energies[-1])


def test_the_bits_do_not_depend_on_the_broad_phase():
    hashes = set()
    for phase in ("grid", "bvh", "sap", "brute"):
        sim = heap(dt=2e-3, broad_phase=phase)
        for _ in range(150):
            sim.step()
        assert sim.report.contacts > 100
        hashes.add(sim.state_hash())
    assert len(hashes) == 1


class Shuffled(NoSync):
    """Hands the half contacts over in another order, as processes might."""

    rng = np.random.default_rng(7)

    def gather_half_contacts(self, half_contacts):
        self.order = self.rng.permutation(len(half_contacts.body))
        return type(half_contacts)(*(column[self.order] for column in half_contacts))

    def return_impulses(self, impulse):
        back = np.empty_like(impulse)
        back[self.order] = impulse
        return back


def test_the_bits_do_not_depend_on_the_order_in_which_half_contacts_come():
    hashes = set()
    for share in (NoSync(), Shuffled()):
        sim = heap(dt=2e-3)
        sim.engine.sync = share
        for _ in range(150):
            sim.step()
        hashes.add((sim.state_hash(), sim.contacts.impulse.tobytes()))
    assert len(hashes) == 1


@pytest.mark.slow
def test_the_bits_do_not_depend_on_threads():
    hashes = set()
    for threads in (1, 2):
        sim = heap(2000, dt=2e-3, threads=threads)
        for _ in range(120):
            sim.step()
        hashes.add(sim.state_hash())
    assert len(hashes) == 1


@pytest.mark.slow
def test_a_pile_of_500_balls_settles():
    sim = heap(500, dt=5e-4, recovery=0.1)
    deepest = 0.0
    for _ in range(3000):
        report = sim.step()
        assert math.isfinite(report.residual)
        deepest = max(deepest, report.max_penetration)
    speed = np.linalg.norm(sim.velocities[sim.movable], axis=1)
    assert deepest < 0.05 * sim.typical_radius and report.max_penetration < 0.02 * sim.typical_radius
    assert speed.mean() < 0.03


def test_a_checkpoint_goes_on_with_the_same_bits(tmp_path):
    sim = heap(dt=2e-3)
    for _ in range(100):
        sim.step()
    sim.save(tmp_path / "heap.h5")
    twin = gv.Simulation.load(tmp_path / "heap.h5", threads=1)
    assert twin.solver == gv.FFD()
    for _ in range(20):
        sim.step()
        twin.step()
    assert sim.state_hash() == twin.state_hash()


# --- what is refused
def test_what_ffd_does_not_know_is_refused_by_name():
    for values in ({"cohesion": 1.0}, {"rolling_friction": 1e-3}, {"spinning_friction": 1e-3}):
        sticky = gv.Material(**values)
        scene = floor(sticky)
        scene.add_body(gv.Sphere(0.1), (0, 0, 1), sticky)
        with pytest.raises(ValueError, match=f"FFD knows no {next(iter(values))}"):
            simulate(scene)
        sim = gv.Simulation(scene, 1e-3)
        with pytest.raises(ValueError, match=f"FFD knows no {next(iter(values))}"):
            sim.solver = gv.FFD()
        assert isinstance(sim.solver, gv.GaussSeidel)
        plain = floor()
        plain.add_body(gv.Sphere(0.1), (0, 0, 1), STONE)
        sim = simulate(plain)
        with pytest.raises(ValueError, match=f"FFD knows no {next(iter(values))}"):
            sim.set_pair(STONE, STONE, **values)


def test_joints_are_refused():
    scene = gv.Scene()
    ball = scene.add_body(gv.Sphere(0.1), (0, 0, 1))
    sim = simulate(scene)
    with pytest.raises(ValueError, match="FFD knows no joints, but there is 1"):
        sim.add_joint(gv.Revolute(None, ball, point=(0, 0, 1)))
    scene.add_joint(gv.Revolute(None, ball, point=(0, 0, 1)))
    with pytest.raises(ValueError, match="FFD knows no joints, but there is 1"):
        simulate(scene)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="FFD iterations must be 1, not 50"):
        gv.FFD(iterations=50)
    with pytest.raises(ValueError, match="FFD samples must be at least 3, not 2"):
        gv.FFD(samples=2)


def test_a_cone_problem_alone_is_refused():
    problem = gv.ConeProblem.from_matrices(np.eye(3), [-1, 0, 0], [0.5])
    with pytest.raises(TypeError, match="FFD solves the bodies of a simulation"):
        gv.FFD().solve(problem)
    one, origin = np.eye(3), [(0, 0, 0)]
    arrays = gv.ConeProblem([0], [1], [(0, 0, 1)], origin, origin, [0.5], [0, 1], [one, one], np.zeros((2, 6)))
    with pytest.raises(TypeError, match="FFD solves the bodies of a simulation"):
        gv.FFD().solve(arrays)
