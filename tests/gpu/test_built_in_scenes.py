"""Every built-in scene, one step on the CPU and on the device from the same state: the same contacts, the same motion."""

import numpy as np
import pytest

import gravel as gv
from gravel import scenes
from gravel.formulas.contact_laws import RESTING
from gravel.running.rules import MARGIN_SHARE

DEVICE = "warp:cpu"
FIXED = gv.Jacobi(iterations=50, tolerance=0.0)  # the same arithmetic on both devices, whatever the residual
# bodies, and the step from whose state both devices go on: grains lie, and touch each other and the machine
STATES = {
    "silo": (100, 160),
    "tank": (200, 60),
    "drain": (200, 100),
    "mixer": (200, 90),
    "pile": (60, 150),
    "gas": (60, 60),
    "wall": (60, 0),
    "ellipsoids": (60, 180),
    "clumps": (30, 180),
    "drum": (100, 120),
    "terrain": (12, 200),
    "box-collider": (100, 20),
    "well": (100, 360),
    "pendulum": (None, 100),
    "slider-crank": (None, 100),
    "four-bar": (None, 100),
    "gyroscope": (None, 100),
    "chain": (31, 100),
    "segregation": (150, 100),
    "vehicle": (500, 60),
    "excavator": (400, 100),
    "oedometer": (200, 40),
    "triaxial": (600, 60),
    "direct-shear": (500, 50),
    "simple-shear": (200, 150),
}

SOLIDS = {"terrain", "vehicle"}  # hulls: the search for the nearest points runs in single precision on the device
LONG = {"terrain", "vehicle"}
ALL = [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in scenes.NAMES]


def settled(name):
    """A built-in scene on the CPU, after some steps, before a step whose gaps all lie clear of a limit: where the law of contact jumps,
    the last bit of a gap decides, and the velocity that goes with it is not small."""
    bodies, steps = STATES[name]
    setup = scenes.build(name, bodies)
    simulation = gv.Simulation(setup.scene, setup.dt, **{**setup.options, "precision": "single"})
    for _ in range(steps):
        simulation.step()
    for _ in range(40):
        twin = simulation.copy()
        twin.step()
        if not lies_at_a_limit(twin):
            return simulation
        simulation.step()
    raise AssertionError("gaps lie at a limit in every step")


def lies_at_a_limit(simulation):
    """Whether the bias of a contact of the last step hangs on the last digits of its gap: at a share RESTING of the margin it jumps from
    nothing to gap / dt."""
    table, radius = simulation.contacts, np.where(simulation.movable, simulation.radii, 0.0)
    share = (MARGIN_SHARE * (radius[table.body_a] + radius[table.body_b])) if simulation.margin is None else simulation.margin
    limit = RESTING * share
    return bool((np.abs(table.gap - limit) < 1e-6 * simulation.typical_radius).any())


def continued(simulation, path, device):
    """The same state on a device, by way of a file."""
    functions = {"motions": simulation.motions, "laws": simulation.mechanism.function_laws(), "surfaces": simulation.surfaces}
    twin = gv.Simulation.load(path, device=device, **functions)
    twin.solver = FIXED
    return twin


def size_of(simulation):
    return simulation.typical_radius


def assert_same_contacts(ours, theirs, size, slack=1e-5):
    """Tables of the same contacts; ``size`` m, of the bodies; ``slack`` of normals and, in units of that, points."""
    pairs = [list(zip(table.body_a.tolist(), table.body_b.tolist())) for table in (ours, theirs)]
    assert pairs[0] == pairs[1]
    theirs = theirs[nearest_of_pair(ours, theirs)]
    np.testing.assert_allclose(theirs.gap, ours.gap, rtol=0, atol=1e-5 * size)
    np.testing.assert_allclose(theirs.normal, ours.normal, rtol=0, atol=slack)
    np.testing.assert_allclose(theirs.point, ours.point, rtol=0, atol=slack * size)


def nearest_of_pair(ours, theirs):
    """Rows of their table for the rows of ours: contacts of a pair may be counted from another corner of the patch."""
    rows, starts = np.arange(len(ours)), np.flatnonzero(np.r_[True, np.diff(ours.body_a) | np.diff(ours.body_b)] if len(ours) else [])
    for part in np.split(rows, starts[1:]):
        apart = np.linalg.norm(ours.point[part][:, None] - theirs.point[part][None], axis=-1)
        chosen = part[apart.argmin(axis=1)] if len(part) else part
        if len(set(chosen.tolist())) == len(part):
            rows[part] = chosen
    return rows


def furthest(ours, theirs):
    """(largest difference, largest) length of vectors; of bodies that are gone there is none."""
    there = np.isfinite(ours).all(axis=1)
    assert (np.isfinite(theirs).all(axis=1) == there).all()
    length = lambda rows: float(np.linalg.norm(rows[there], axis=1).max(initial=0.0))  # noqa: E731
    return length(ours - theirs), length(ours)


@pytest.mark.parametrize("name", ALL)
def test_one_step_is_that_of_the_cpu(name, tmp_path):
    simulation, path = settled(name), tmp_path / "state.h5"
    simulation.save(path)
    ours, theirs = (continued(simulation, path, device) for device in ("cpu", DEVICE))
    before = ours.positions.copy()
    np.testing.assert_array_equal(before, theirs.positions)
    report, other = ours.step(), theirs.step()
    assert report.contacts == other.contacts == len(theirs.contacts)
    assert_same_contacts(ours.contacts, theirs.contacts, size_of(ours), 1e-4 if name in SOLIDS else 1e-5)
    error, speed = furthest(ours.velocities, theirs.velocities)
    assert error <= 1e-4 * speed
    turned, spin = furthest(ours.angular_velocities, theirs.angular_velocities)
    assert turned <= 1e-4 * max(spin, speed / size_of(ours))
    apart, _ = furthest(ours.positions, theirs.positions)
    assert apart <= 1e-4 * speed * ours.dt
    assert other.kinetic_energy == pytest.approx(report.kinetic_energy, rel=1e-5)
    assert other.impacts == report.impacts
    assert other.residual == pytest.approx(report.residual, rel=1e-2, abs=1e-4 * speed)
    assert other.max_penetration == pytest.approx(report.max_penetration, abs=1e-5 * size_of(ours))


def test_walls_that_have_moved_touch_in_the_same_patches(tmp_path):
    """Edges of bricks that lie in line to some millionths cross somewhere or not at all, as the last digits say: corners of patches that
    lie on a straight side may be there or not, or a little along it. Every point of one table lies on a side of the patch that the other
    has of the pair, or not far beyond its end."""
    simulation, path = settled_wall(3), tmp_path / "state.h5"
    simulation.save(path)
    tables = []
    for device in ("cpu", DEVICE):
        twin = continued(simulation, path, device)
        twin.step()
        tables.append(twin.contacts)
    pairs = [set(zip(table.body_a.tolist(), table.body_b.tolist())) for table in tables]
    assert pairs[0] == pairs[1] and len(pairs[0]) > 60
    size = size_of(simulation)
    for a, b in sorted(pairs[0]):
        patches = [table[(table.body_a == a) & (table.body_b == b)] for table in tables]
        for one, other in (patches, patches[::-1]):
            assert max(distance_from_sides(point, other.point, 0.01 * size) for point in one.point) <= 1e-5 * size
        assert patches[0].gap.min() == pytest.approx(patches[1].gap.min(), abs=1e-5 * size)


def settled_wall(steps):
    setup = scenes.build("wall", 60)
    simulation = gv.Simulation(setup.scene, setup.dt, **setup.options)
    for _ in range(steps):
        simulation.step()
    return simulation


def distance_from_sides(point, corners, beyond):
    """From the nearest of the lines between any two corners, which end so far beyond them."""
    start, way = corners[:, None], corners[None, :] - corners[:, None]
    length = np.linalg.norm(way, axis=-1)
    way = way / np.maximum(length, 1e-30)[..., None]
    along = np.clip(np.einsum("ijk,ijk->ij", point - start, way), -beyond, length + beyond)
    return float(np.linalg.norm(start + along[..., None] * way - point, axis=-1).min())


SMALL = {name: bodies for name, (bodies, _) in STATES.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", scenes.NAMES)
def test_scene_passes_its_own_checks_on_the_device(name):
    """A whole run: what the scene knows of its own physics holds, joint drift to single precision included."""
    setup = scenes.build(name, SMALL[name])
    simulation = gv.Simulation(setup.scene, setup.dt, **{**setup.options, "precision": "single", "device": DEVICE})
    report = simulation.run(setup.time, observers=setup.observers)
    assert [f"{c.name}: {c.detail}" for c in setup.check(simulation, report) if not c.passed] == []
