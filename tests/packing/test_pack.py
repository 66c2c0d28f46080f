"""Packings: no overlap, by brute force for balls and by the engine's contacts for other shapes; inside; as much as was asked for."""

import itertools

import numpy as np
import pytest
import trimesh
from oracles import matrices
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist

import gravel as gv

UNIT = gv.BoxRegion((0, 0, 0), (1, 1, 1))
TORUS = trimesh.creation.torus(1.0, 0.4, major_sections=24, minor_sections=16)


def ball_volume(radii):
    return float(np.sum(4 / 3 * np.pi * np.asarray(radii) ** 3))


def least_gap(positions, radii, lengths=(0, 0, 0)):
    """The least distance between the surfaces of balls: all pairs, and all images in the neighbourhood."""
    least = np.inf
    for shift in itertools.product(*((-1, 0, 1) if length else (0,) for length in lengths)):
        moved = positions + np.array(shift) * lengths
        gaps = np.linalg.norm(positions[:, None] - moved, axis=2) - radii[:, None] - radii
        if not any(shift):
            np.fill_diagonal(gaps, np.inf)
        least = min(least, gaps.min())
    return least


# --- balls
REGIONS = {
    "box": (UNIT, 0.07),
    "cylinder": (gv.CylinderRegion((0, 0, 0), (1, 1, 1), 0.5), 0.07),
    "sphere": (gv.SphereRegion((1, 0, 0), 0.5), 0.06),
    "hopper": (gv.HopperRegion(0.1, 0.5, 0.6, 0.5), 0.06),
    "torus": (gv.MeshRegion((TORUS.vertices, TORUS.faces)), 0.12),
}


@pytest.mark.parametrize("fraction", [0.2, 0.45])
@pytest.mark.parametrize("name", REGIONS)
def test_equal_balls(name, fraction):
    region, radius = REGIONS[name]
    packing = gv.pack(gv.Sphere(radius), region, fraction=fraction)
    assert least_gap(packing.positions, packing.radii) >= 0
    assert region.distance(packing.positions).min() >= radius
    volume = len(packing) * ball_volume(radius)
    assert packing.fraction == pytest.approx(volume / region.volume, rel=1e-12)
    assert abs(volume / region.volume - fraction) <= 0.5 * ball_volume(radius) / region.volume * (1 + 1e-9)
    assert packing.overlap == 0.0 and np.all(packing.radii == radius)


@pytest.mark.slow
def test_dense_equal_balls_in_a_box_of_fifteen_diameters():
    packing = gv.pack(gv.Sphere(0.5), gv.BoxRegion((0, 0, 0), (15, 15, 15)), fraction=0.60)
    assert len(packing) * ball_volume(0.5) / 15**3 == pytest.approx(0.60, abs=2e-4)
    assert pdist(packing.positions).min() >= 1.0
    assert packing.positions.min() >= 0.5 and packing.positions.max() <= 14.5


def test_dense_mixed_balls():
    packing = gv.pack(gv.Sphere, UNIT, sizes=gv.UniformSizes(0.02, 0.06), fraction=0.55, seed=3)
    assert least_gap(packing.positions, packing.radii) >= 0 and UNIT.distance(packing.positions).min() >= 0
    assert (UNIT.distance(packing.positions) - packing.radii).min() >= 0
    assert ball_volume(packing.radii) == pytest.approx(0.55, abs=ball_volume(0.06))
    assert packing.radii.min() >= 0.02 and packing.radii.max() <= 0.06 and np.ptp(packing.radii) > 0.035


def test_sizes_of_two_orders_of_magnitude():
    packing = gv.pack(gv.Sphere, UNIT, sizes=gv.LogNormalSizes(0.02, 0.9, low=0.006, high=0.2), fraction=0.4)
    tree = cKDTree(packing.positions)
    for k in np.argsort(-packing.radii)[:300]:  # the large ones against all, the small ones against each other
        near = [j for j in tree.query_ball_point(packing.positions[k], packing.radii[k] + 0.2) if j != k]
        gaps = np.linalg.norm(packing.positions[near] - packing.positions[k], axis=1) - packing.radii[near] - packing.radii[k]
        assert gaps.min(initial=1.0) >= 0
    pairs = tree.query_pairs(0.05, output_type="ndarray")
    gaps = np.linalg.norm(packing.positions[pairs[:, 0]] - packing.positions[pairs[:, 1]], axis=1) - packing.radii[pairs].sum(axis=1)
    assert gaps.min() >= 0 and packing.radii.max() / packing.radii.min() > 10


@pytest.mark.parametrize("periodic, fraction", [(((0, 1), None, (0, 1)), 0.25), (((0, 1), (0, 1), (0, 1)), 0.61)])
def test_periodic_balls(periodic, fraction):
    packing = gv.pack(gv.Sphere(0.06), UNIT, fraction=fraction, periodic=periodic)
    lengths = np.array([0 if pair is None else 1 for pair in periodic])
    assert least_gap(packing.positions, packing.radii, lengths) >= 0
    assert packing.positions.min() >= 0 and packing.positions.max() <= 1
    walls = packing.positions[:, lengths == 0]
    assert walls.size == 0 or (walls.min() >= 0.06 and walls.max() <= 0.94)
    through = packing.positions[:, lengths == 1]
    assert through.min() < 0.06 and through.max() > 0.94  # bodies reach through those sides
    assert packing.fraction == pytest.approx(fraction, abs=ball_volume(0.06))


@pytest.mark.parametrize("fraction", [0.15, 0.4])
def test_balls_keep_a_gap(fraction):
    packing = gv.pack(gv.Sphere(0.06), UNIT, fraction=fraction, gap=0.01)
    assert least_gap(packing.positions, packing.radii) >= 0.01 * (1 - 1e-9)
    assert UNIT.distance(packing.positions).min() >= 0.065 * (1 - 1e-9)


def test_a_count_of_bodies():
    packing = gv.pack(gv.Sphere, UNIT, sizes=gv.NormalSizes(0.04, 0.005), count=321)
    assert len(packing) == 321 and packing.fraction == pytest.approx(ball_volume(packing.radii), rel=1e-12)


def test_shares_of_a_mixture_are_by_volume():
    items = [(gv.Sphere(0.06), 3.0), (gv.Sphere(0.03), 1.0)]
    for packing in (gv.pack(gv.Mixture(items), UNIT, fraction=0.4), gv.pack(gv.Mixture(items), UNIT, count=800)):
        large, small = ball_volume(packing.radii[packing.radii == 0.06]), ball_volume(packing.radii[packing.radii == 0.03])
        assert large / small == pytest.approx(3.0, rel=0.02)
        assert [group.rows.stop - group.rows.start for group in packing.groups] == [(packing.radii == r).sum() for r in (0.06, 0.03)]
        assert least_gap(packing.positions, packing.radii) >= 0
    sized = gv.pack(gv.Mixture([(gv.Sphere(0.06), 1), (gv.Sphere, 1, gv.UniformSizes(0.02, 0.04))]), UNIT, fraction=0.3)
    large = sized.radii == 0.06
    assert ball_volume(sized.radii[large]) == pytest.approx(ball_volume(sized.radii[~large]), rel=0.02)


def test_a_sieve_curve_is_packed():
    diameters, passing = np.array([0.04, 0.08, 0.16]), np.array([0.0, 0.5, 1.0])
    packing = gv.pack(gv.Sphere, gv.BoxRegion((0, 0, 0), (2, 2, 1)), sizes=gv.SieveCurve(diameters, passing), fraction=0.3)
    small = 2 * packing.radii <= 0.08
    assert ball_volume(packing.radii[small]) / ball_volume(packing.radii) == pytest.approx(0.5, abs=0.05)


def test_the_same_seed_the_same_packing():
    for fraction in (0.2, 0.5):
        first, again, other = (gv.pack(gv.Sphere(0.07), UNIT, fraction=fraction, seed=seed) for seed in (4, 4, 5))
        assert np.array_equal(first.positions, again.positions) and not np.array_equal(first.positions, other.positions)


# --- other shapes
HULL = np.random.default_rng(0).normal(size=(20, 3)) * 0.07 + (0.3, 0, 0)  # its centre is not at the origin
SHAPES = {
    "box": (gv.Box((0.08, 0.06, 0.05)), 0.45),
    "ellipsoid": (gv.Ellipsoid((0.11, 0.06, 0.06)), 0.5),
    "capsule": (gv.Capsule(0.05, 0.07), 0.45),
    "hull": (gv.ConvexHull(HULL), 0.4),
    "clump": (gv.Clump([(0.2, 0, 0), (0.28, 0, 0)], 0.06), 0.45),
}


def points_of(packing):
    """Points of the surfaces of all bodies, or beyond them."""
    rng = np.random.default_rng(7)
    n = rng.normal(size=(400, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    shape = packing.groups[0].shape
    own = {
        gv.Box: lambda: np.array(list(itertools.product((-1, 1), repeat=3))) * (0.08, 0.06, 0.05),
        gv.Ellipsoid: lambda: n * (0.11, 0.06, 0.06),
        gv.Capsule: lambda: np.concatenate([0.05 * n + (0, 0, 0.07), 0.05 * n - (0, 0, 0.07)]),
        gv.ConvexHull: lambda: HULL,
        gv.Clump: lambda: np.concatenate([0.06 * n + (0.2, 0, 0), 0.06 * n + (0.28, 0, 0)]),
    }[type(shape)]()
    return packing.positions[:, None] + np.einsum("nij,kj->nki", matrices(packing.quaternions), own)


@pytest.mark.parametrize("name", SHAPES)
def test_bodies_of_other_shapes(name):
    shape, fraction = SHAPES[name]
    packing = gv.pack(shape, UNIT, fraction=fraction)
    inside = points_of(packing)
    assert inside.min() >= -1e-9 and inside.max() <= 1 + 1e-9
    table = gv.find_contacts(packing.groups[0].shape, packing.positions, packing.quaternions, margin=0.05)
    assert len(table) > len(packing)  # there is something to find
    assert -table.gap.min() <= 1e-4 * 0.05
    volume = {"box": 8 * 0.08 * 0.06 * 0.05, "ellipsoid": 4 / 3 * np.pi * 0.11 * 0.06**2}
    volume = volume | {"capsule": np.pi * 0.05**2 * (0.14 + 4 / 3 * 0.05), "hull": trimesh.Trimesh(HULL).convex_hull.volume}
    cap = 0.06 - 0.04  # two balls of 0.06 that are 0.08 apart share two caps
    volume["clump"] = 2 * ball_volume(0.06) - 2 * np.pi * cap**2 * (0.06 - cap / 3)
    assert packing.fraction == pytest.approx(len(packing) * volume[name], rel=1e-4)
    assert packing.fraction == pytest.approx(fraction, abs=volume[name])


def test_other_shapes_in_a_round_region_and_with_a_gap():
    region = gv.CylinderRegion((0, 0, 0), (0, 0, 1), 0.5)
    packing = gv.pack(gv.Ellipsoid((0.1, 0.06, 0.06)), region, fraction=0.35, gap=0.004, seed=1)
    n = np.random.default_rng(8).normal(size=(500, 3))
    surface = n / np.linalg.norm(n, axis=1, keepdims=True) * (0.1, 0.06, 0.06)
    points = packing.positions[:, None] + np.einsum("nij,kj->nki", matrices(packing.quaternions), surface)
    assert region.distance(points.reshape(-1, 3)).min() >= 0.002
    assert gv.find_contacts(packing.groups[0].shape, packing.positions, packing.quaternions, margin=0.05).gap.min() >= 0.004


def test_few_other_shapes_with_sizes_in_a_periodic_box():
    packing = gv.pack(
        gv.Box((1, 0.8, 0.5)), UNIT, sizes=gv.UniformSizes(0.03, 0.05), fraction=0.1, periodic=((0, 1), (0, 1), (0, 1)), seed=2
    )
    assert least_gap(packing.positions, packing.radii, np.ones(3)) >= 0  # even the balls around them
    half = packing.groups[0].shape.half_extents
    assert np.allclose(half / half[:, :1], (1, 0.8, 0.5)) and half[:, 0].min() >= 0.03 and half[:, 0].max() <= 0.05
    assert packing.fraction == pytest.approx(8 * np.prod(half, axis=1).sum(), rel=1e-12)


@pytest.mark.parametrize("periodic", [((0, 1), (0, 1), (0, 1)), (None, (0, 1), None)])
def test_other_shapes_that_grow_in_a_periodic_box(periodic):
    """No overlap in a periodic scene, as its contacts say, and none sticks out where there is a wall."""
    packing = gv.pack(gv.Box((0.1, 0.08, 0.06)), UNIT, fraction=0.35, periodic=periodic, seed=3)
    scene = gv.Scene(gravity=(0, 0, 0), periodic=periodic)
    packing.add_to(scene)
    for axis in (k for k in range(3) if periodic[k] is None):
        scene.add_body(gv.Plane(np.eye(3)[axis]), fixed=True)
        scene.add_body(gv.Plane(-np.eye(3)[axis], offset=-1), fixed=True)
    sim = gv.Simulation(scene, 1e-9, precision="double", margin=0.01, integrator="euler")
    report = sim.step()
    assert report.contacts > 20
    assert report.max_penetration < 1e-9
    assert packing.fraction == pytest.approx(0.35, abs=0.005)


def test_a_mixture_of_shapes_in_a_scene():
    glass, steel = gv.Material(density=2500), gv.Material(density=7800)
    packing = gv.pack(gv.Mixture([(gv.Sphere(0.07), 1), (gv.Box((0.07, 0.05, 0.05)), 1)]), UNIT, fraction=0.4)
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_body(gv.Plane((0, 0, 1)), fixed=True)
    ids = packing.add_to(scene, [glass, steel], velocities=np.ones((len(packing), 3)), group=2)
    assert ids.tolist() == list(range(1, 1 + len(packing)))
    assert np.allclose(scene.bodies.position[ids], packing.positions) and np.allclose(scene.bodies.extent[ids, 3], packing.radii)
    assert np.allclose(1 / scene.bodies.inverse_mass[ids[0], 0], 2500 * ball_volume(0.07))
    assert np.allclose(1 / scene.bodies.inverse_mass[ids[-1], 0], 7800 * 8 * 0.07 * 0.05 * 0.05)
    assert np.all(scene.bodies.velocity[ids, :3] == 1)
    simulation = gv.Simulation(scene, dt=1e-4)
    assert simulation.step().max_penetration < 1e-3 * 0.05 + 1e-4
    more = packing.add_to(simulation, glass)
    assert len(more) == len(packing) and simulation.count == 1 + 2 * len(packing)


def test_what_a_packing_says_of_itself():
    text = repr(gv.pack(gv.Sphere(0.07), UNIT, count=10))
    assert "10 Sphere" in text and "0.0144" in text and "BoxRegion" in text


# --- bad input
BALL = gv.Sphere(0.1)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: gv.pack(BALL, UNIT), "exactly one of fraction and count"),
        (lambda: gv.pack(BALL, UNIT, fraction=0.1, count=3), "exactly one of fraction and count"),
        (lambda: gv.pack(BALL, UNIT, fraction=0.0), "fraction must be greater than 0"),
        (lambda: gv.pack(BALL, UNIT, fraction=1.5), "fraction must be at most 1"),
        (lambda: gv.pack(BALL, UNIT, fraction=1e-6), "large enough for one body"),
        (lambda: gv.pack(BALL, UNIT, count=0), "count must be at least 1"),
        (lambda: gv.pack(BALL, UNIT, count=1000), "cannot be packed"),
        (lambda: gv.pack(BALL, UNIT, count=3, seed=-1), "seed must be at least 0"),
        (lambda: gv.pack(BALL, UNIT, count=3, gap=-1), "gap must be at least 0"),
        (lambda: gv.pack(gv.Sphere, UNIT, count=3), "what must be a shape"),
        (lambda: gv.pack("ball", UNIT, count=3), "what must be a shape"),
        (lambda: gv.pack(gv.Plane(), UNIT, count=3), "must be convex"),
        (lambda: gv.pack(gv.Sphere([0.1, 0.2]), UNIT, count=2), "must have one size"),
        (lambda: gv.pack(gv.Sphere, UNIT, count=3, sizes=0.1), "sizes must be a distribution"),
        (lambda: gv.pack(gv.Mixture([(BALL, 1)]), UNIT, count=3, sizes=gv.UniformSizes(1, 2)), "with the items of a Mixture"),
        (lambda: gv.pack(BALL, "box", count=3), "region must be a region"),
        (lambda: gv.pack(gv.Sphere(0.6), UNIT, count=1), "region must hold the largest body"),
        (lambda: gv.pack(BALL, UNIT, count=3, periodic=(0, 1)), "periodic must be None or three entries"),
        (lambda: gv.pack(BALL, UNIT, count=3, periodic=((0, 2), None, None)), "must be the region's own ends"),
        (lambda: gv.pack(BALL, gv.SphereRegion((0, 0, 0), 1), count=3, periodic=((0, 1), None, None)), "only a BoxRegion"),
        (lambda: gv.pack(gv.Sphere(0.3), UNIT, count=1, periodic=((0, 1), None, None)), "two bodies wide along the periodic axis x"),
        (lambda: gv.pack(gv.Box((0.15, 0.15, 0.1)), UNIT, fraction=0.4, periodic=((0, 1), None, None)), "two bodies wide"),
        (lambda: gv.Mixture([]), "items must be a list"),
        (lambda: gv.Mixture([(BALL, 0.0)]), "share must be greater than 0"),
        (lambda: gv.Mixture([(BALL,)]), "must be \\(shape, share\\)"),
        (lambda: gv.pack(BALL, UNIT, count=3).add_to("scene"), "must be a Scene or a Simulation"),
        (lambda: gv.pack(BALL, UNIT, count=3).add_to(gv.Scene(), velocities=[(0, 0, 0)]), "a row for each of the 3 bodies"),
        (lambda: gv.pack(BALL, UNIT, count=3).add_to(gv.Scene(), [gv.Material()] * 2), "one for each of the 1 parts"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_a_fraction_out_of_reach_says_what_was_reached():
    with pytest.raises(ValueError, match="not reached without overlap: these bodies fitted at a fraction of 0\\.[3-6]"):
        gv.pack(gv.Sphere(0.12), UNIT, fraction=0.72)
    with pytest.raises(ValueError, match="not reached without overlap: these bodies fitted at a fraction of 0\\.[3-8]"):
        gv.pack(gv.Ellipsoid((0.2, 0.15, 0.15)), UNIT, fraction=0.85)
