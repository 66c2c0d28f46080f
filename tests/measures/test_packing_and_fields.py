"""Volumes, fields and heaps: against caps, lattices, Monte Carlo, symmetry and integrals."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial import Delaunay
from running.test_access import CUBE, CUBE_TRIANGLES
from test_bad_input import refuse
from test_stress_and_structure import stack

import gravel as gv
from gravel.io.triangles import surface_of
from gravel.measures.ball_in_box import ball_in_box
from gravel.measures.snapshot import snapshot_of
from gravel.model.cell import Cell
from gravel.shapes import HULL
from gravel.shapes.inside import inside_compound, inside_convex, inside_surface

BALL = 4 / 3 * np.pi
BOX = np.array([-1.0, -1.0, -1.0]), np.array([1.0, 1.0, 1.0])


def still(shape, positions, **options):
    scene = gv.Scene()
    scene.add_bodies(shape, positions, **options)
    return gv.Simulation(scene, 1e-3)


class RoundRegion:
    """A ball as a region."""

    def __init__(self, centre, radius):
        self.centre, self.radius, self.volume = np.array(centre, float), radius, BALL * radius**3
        self.low, self.high = self.centre - radius, self.centre + radius  # a box around it, not its shape

    def contains(self, points):
        return ((points - self.centre) ** 2).sum(axis=1) < self.radius**2


# --- a ball and a box
def test_caps_halves_quarters_and_eighths():
    at = lambda centre, low=BOX[0], high=BOX[1]: ball_in_box(np.array([centre], float), np.ones(1), np.array(low), np.array(high))[0]  # noqa: E731
    assert at((0, 0, 0)) == pytest.approx(BALL, rel=1e-15)
    assert at((1, 0, 0)) == pytest.approx(BALL / 2, rel=1e-14)
    assert at((1, -1, 0)) == pytest.approx(BALL / 4, rel=1e-14)
    assert at((1, 1, -1)) == pytest.approx(BALL / 8, rel=1e-14)
    assert at((3, 0, 0)) == 0 and at((1.6, 1.6, 1.6)) == pytest.approx(0, abs=1e-14)
    for h in (1e-6, 0.1, 0.7, 1.0, 1.9):  # a cap of height h sticks in
        assert at((2 - h, 0, 0)) == pytest.approx(np.pi * h**2 * (1 - h / 3), rel=1e-12, abs=1e-14)
    assert at((0, 0, 0), (-0.4, -0.3, -0.2), (0.5, 0.6, 0.1)) == pytest.approx(0.9 * 0.9 * 0.3, rel=1e-14)  # the box is in the ball


def test_a_ball_cut_by_corners_by_monte_carlo():
    rng = np.random.default_rng(0)
    low, high, n = np.array([-0.7, -0.5, -0.3]), np.array([0.6, 0.9, 0.4]), 200_000
    centres, radii = rng.uniform(-1.2, 1.2, (60, 3)), rng.uniform(0.2, 1.5, 60)
    points, volume = rng.uniform(low, high, (n, 3)), np.prod(high - low)
    share = np.array([(((points - c) ** 2).sum(axis=1) < r * r).mean() for c, r in zip(centres, radii)])
    error = np.abs(ball_in_box(centres, radii, low, high) / volume - share)
    assert (error < 5 * np.sqrt(share * (1 - share) / n) + 1e-5).all()
    assert ((share > 0) & (share < 1)).sum() > 40


def test_boxes_that_fill_space_share_a_ball_out():
    """Whatever the cuts, the parts add up to the ball: 64 boxes, with every kind of face, edge and corner."""
    rng = np.random.default_rng(5)
    cuts = [np.concatenate([[-2], np.sort(rng.uniform(-1, 1, 3)), [2]]) for _ in range(3)]
    total = 0.0
    for i, j, k in np.ndindex(4, 4, 4):
        low, high = (np.array([cuts[0][i + e], cuts[1][j + e], cuts[2][k + e]]) for e in (0, 1))
        total += ball_in_box(np.zeros((1, 3)), np.ones(1), low, high)[0]
    assert total == pytest.approx(BALL, rel=1e-13)


# --- packing
def test_a_cubic_lattice_fills_pi_over_six():
    n = 6
    places = 0.2 * np.stack(np.meshgrid(*[np.arange(n)] * 3), axis=-1).reshape(-1, 3) + 0.1
    sim = still(gv.Sphere(0.1), places)
    assert gv.measures.packing_fraction(sim) == pytest.approx(np.pi / 6, rel=1e-12)
    for low, high in (((0, 0, 0), (1.2, 1.2, 1.2)), ((0.1, 0.3, 0.1), (0.9, 0.7, 1.1)), ((0.05, 0.05, 0.05), (0.85, 0.65, 0.45))):
        assert gv.measures.packing_fraction(sim, (low, high)) == pytest.approx(np.pi / 6, rel=1e-12)  # whole periods, wherever they begin


def test_bodies_cut_through_their_middle_are_in_by_half():
    """Shapes with a centre of symmetry, turned any way, on a face of the region."""
    rng = np.random.default_rng(6)
    shapes = [
        gv.Sphere(0.1),
        gv.Ellipsoid((0.1, 0.2, 0.15)),
        gv.Capsule(0.1, 0.2),
        gv.Cylinder(0.1, 0.2),
        gv.Box((0.1, 0.2, 0.3)),
        gv.RoundedBox((0.1, 0.2, 0.3), 0.07),
        gv.ConvexHull(CUBE),
        gv.Mesh(gv.ConvexHull(CUBE).vertices, CUBE_TRIANGLES),
        gv.Clump([(-0.1, 0, 0), (0.1, 0.0, 0.0)], 0.08),
        gv.Compound([(gv.Box((0.1, 0.1, 0.1)),), (gv.Sphere(0.05), (0.3, 0, 0)), (gv.Sphere(0.05), (-0.3, 0, 0))]),
    ]
    for shape in shapes:
        volume = shape.volumes(1)[0]
        sim = still(shape, [(0, 0, 0)], quaternions=rng.normal(size=(1, 4)))
        assert gv.measures.packing_fraction(sim, ((0, -1, -1), (1, 1, 1))) * 4 == pytest.approx(volume / 2, rel=0.01), shape
        assert gv.measures.packing_fraction(sim, ((-1, -1, -1), (1, 1, 1))) * 8 == pytest.approx(volume, rel=1e-5), shape
        assert gv.measures.packing_fraction(sim, ((2, -1, -1), (3, 1, 1))) == 0.0


def test_points_inside_hulls_surfaces_and_compounds():
    """Against Delaunay's tetrahedra, and formulas."""
    rng = np.random.default_rng(10)
    points = rng.uniform(-0.3, 0.3, (3000, 3))
    hull = gv.ConvexHull(rng.normal(size=(20, 3)) * 0.12)
    geometry = hull.geometry(False)
    want = Delaunay(hull.vertices).find_simplex(points) >= 0
    assert 100 < want.sum() < 2900
    assert np.array_equal(inside_convex(HULL, np.array([1.0, 0, 0]), points, geometry), want)
    assert np.array_equal(inside_surface(*surface_of(geometry), points), want)
    faces = surface_of(geometry).triangles
    shell = gv.Mesh(np.vstack([hull.vertices, 0.5 * hull.vertices]), np.vstack([faces, faces[:, ::-1] + len(hull.vertices)]))
    hollow = inside_surface(shell.vertices, shell.triangles, points)  # with a cavity half as large
    assert np.array_equal(hollow, want & ~(Delaunay(0.5 * hull.vertices).find_simplex(points) >= 0)) and hollow.sum() < want.sum()
    both = gv.Compound([(gv.Sphere(0.1), (0.1, 0, 0)), (gv.Box((0.1, 0.05, 0.2)), (-0.1, 0, 0))]).geometry(False)
    ball, box = np.linalg.norm(points - (0.1, 0, 0), axis=1) < 0.1, (np.abs(points + (0.1, 0, 0)) < (0.1, 0.05, 0.2)).all(axis=1)
    assert np.array_equal(inside_compound(both, points), ball | box)


def test_a_cone_cut_across_its_axis():
    """Above half of its height is an eighth of it."""
    sim = still(gv.Cone(0.2, 0.6), [(0, 0, 0)])
    middle, volume = -0.15 + 0.3, np.pi * 0.04 * 0.6 / 3
    above = gv.measures.packing_fraction(sim, ((-1, -1, middle), (1, 1, middle + 1))) * 4
    assert above == pytest.approx(volume / 8, abs=0.005 * volume)


class BoxRegion:
    """A box as an object."""

    def __init__(self, low, high):
        self.low, self.high, self.volume = np.array(low, float), np.array(high, float), float(np.prod(np.subtract(high, low)))

    def contains(self, points):
        return ((points >= self.low) & (points <= self.high)).all(axis=1)


def test_a_box_that_is_an_object_is_as_exact_as_its_corners():
    sim, corners = still(gv.Sphere(0.3), [(0, 0, 0), (0.9, 0.8, 0.7)]), ((-1, -0.1, -1), (1, 1, 1))
    assert gv.measures.packing_fraction(sim, BoxRegion(*corners)) == gv.measures.packing_fraction(sim, corners)
    assert np.array_equal(gv.measures.stress(sim, BoxRegion(*corners)), gv.measures.stress(sim, corners))


def test_round_regions():
    """Two balls of one radius, one in the region, one half a diameter outside: the lens of two spheres."""
    region, r, d = RoundRegion((0, 0, 0), 1.0), 0.4, 1.0
    sim = still(gv.Sphere(r), [(0.1, 0, 0), (d, 0, 0), (5, 0, 0)])
    lens = np.pi * (1 + r - d) ** 2 * (d**2 + 2 * d * (r + 1) - 3 * (r - 1) ** 2) / (12 * d)
    assert gv.measures.packing_fraction(sim, region) * region.volume == pytest.approx(BALL * r**3 + lens, rel=2e-3)


def test_compounds_in_a_result_are_refused_with_a_reason(tmp_path):
    from gravel.io.vtkhdf import ResultWriter

    with ResultWriter(tmp_path / "r.vtkhdf", still(gv.Clump([(0, 0, 0), (0.1, 0, 0)], 0.1), [(0, 0, 0)])) as writer:
        writer.write_frame()
    with gv.open_result(tmp_path / "r.vtkhdf") as result:
        refuse(lambda: gv.measures.packing_fraction(result[0]), "compound", "simulation")


# --- fields
@pytest.fixture(scope="module")
def swarm():
    """Bodies of different masses that turn about the z axis at 2 rad/s."""
    rng = np.random.default_rng(7)
    scene, places = gv.Scene(gravity=(0, 0, 0)), rng.uniform(-0.5, 0.5, (300, 3))
    places[0] = 0.0
    spin = np.cross((0, 0, 2.0), places)
    scene.add_bodies(gv.Sphere(1e-3), places, masses=rng.uniform(0.5, 2, 300), velocities=spin)
    return gv.Simulation(scene, 1e-6, precision="double")


@pytest.mark.parametrize("kernel, width", [("gaussian", 0.1), ("lucy", 0.3)])
def test_fields_integrate_to_mass_momentum_and_stress(swarm, kernel, width):
    points, volume = gv.measures.grid((-1, -1, -1), (1, 1, 1), (40, 40, 40)), 0.05**3
    density = gv.measures.density_field(swarm, points, width, kernel)
    velocity = gv.measures.velocity_field(swarm, points, width, kernel)
    assert density.shape == (40, 40, 40) and velocity.shape == (40, 40, 40, 3)
    assert density.sum() * volume == pytest.approx(swarm.masses.sum(), rel=1e-3)
    momentum = (density[..., None] * velocity).sum(axis=(0, 1, 2)) * volume
    assert np.allclose(momentum, swarm.masses @ swarm.velocities, atol=1e-3 * swarm.masses.sum())
    assert (density[0, 0, 0] == 0) == (kernel == "lucy" or width < 0.2) and np.isfinite(velocity).all()
    stress = gv.measures.stress_field(swarm, points, width, kernel).sum(axis=(0, 1, 2)) * volume
    want = gv.measures.stress(swarm, ((-1, -1, -1), (1, 1, 1))) * 8
    assert np.allclose(stress, want, atol=1e-3 * np.trace(want))


@pytest.mark.parametrize("kernel", ["gaussian", "lucy"])
def test_fields_are_sums_over_all_bodies(swarm, kernel):
    """Against the plain double sum, at any points, with one on a body."""
    points = np.vstack([np.zeros(3), np.random.default_rng(8).uniform(-0.6, 0.6, (50, 3))])
    width, m, v = 0.25, swarm.masses, swarm.velocities
    q = np.linalg.norm(points[:, None] - swarm.positions[None], axis=2) / width
    if kernel == "lucy":
        phi = 105 / (16 * np.pi * width**3) * np.where(q < 1, 1 - 6 * q**2 + 8 * q**3 - 3 * q**4, 0)
        tolerance = 1e-10
    else:
        phi, tolerance = np.exp(-(q**2) / 2) / (width * np.sqrt(2 * np.pi)) ** 3, 2e-3  # it ends at 4 standard deviations
    assert np.allclose(gv.measures.density_field(swarm, points, width, kernel), phi @ m, rtol=tolerance)
    want = (phi * m) @ v / (phi @ m)[:, None]
    assert np.allclose(gv.measures.velocity_field(swarm, points, width, kernel), want, atol=tolerance)


def test_a_body_at_the_edge_of_a_periodic_cell_is_smeared_over_it():
    snapshot = dataclasses.replace(snapshot_of(still(gv.Sphere(0.1), [(0.02, 0.97, 0.5)], masses=[3.0])), cell=Cell(((0, 1), (0, 1), None)))
    points = gv.measures.grid((0, 0, -0.5), (1, 1, 1.5), (30, 30, 60))
    density = gv.measures.density_field(snapshot, points, 0.3, "lucy")
    assert density.sum() / 30**3 == pytest.approx(3.0, rel=1e-3)
    assert density[0, 0].max() > 0 and density[-1, -1].max() > 0


def test_bad_fields_are_refused(swarm):
    refuse(lambda: gv.measures.density_field(swarm, np.zeros((4, 2)), 0.1), "points", "(4, 2)")
    refuse(lambda: gv.measures.density_field(swarm, np.zeros((4, 3)), -0.1), "width", "-0.1")
    refuse(lambda: gv.measures.density_field(swarm, np.zeros((4, 3)), 0.1, "cubic"), "kernel", "'cubic'")
    refuse(lambda: gv.measures.density_field(swarm, [(0, 0, np.nan)], 0.1), "points", "nan")
    refuse(lambda: gv.measures.grid((0, 0, 0), (1, 1, 1), (3, 0, 3)), "cells", "0")
    assert gv.measures.density_field(swarm, np.zeros((0, 3)), 0.1).shape == (0,)


# --- heaps
@pytest.mark.parametrize("angle", [15, 25, 35])
def test_the_angle_of_a_cone_of_balls(angle):
    rng = np.random.default_rng(9)
    places = 0.02 * np.stack(np.meshgrid(np.arange(-40, 41), np.arange(-40, 41), np.arange(30), indexing="ij"), axis=-1).reshape(-1, 3)
    places = places + rng.uniform(-4e-3, 4e-3, places.shape) + (0.3, -0.2, 0.01)
    across = np.hypot(places[:, 0] - 0.3, places[:, 1] + 0.2)
    sim = still(gv.Sphere(0.009), places[places[:, 2] < np.tan(np.radians(angle)) * (0.7 - across)])
    assert np.degrees(gv.measures.angle_of_repose(sim)) == pytest.approx(angle, abs=0.5)


def test_what_is_no_heap_is_refused(swarm):
    refuse(lambda: gv.measures.angle_of_repose(stack(2)), "heap", "2")
    sim = still(gv.Sphere(0.01), [(0.02 * k, 0, 0) for k in range(20)])
    refuse(lambda: gv.measures.angle_of_repose(sim, span=(0.5, 0.2)), "span")
    refuse(lambda: gv.measures.angle_of_repose(sim, ring=0.0), "ring", "0")
    refuse(lambda: gv.measures.angle_of_repose(swarm), "gravity")
