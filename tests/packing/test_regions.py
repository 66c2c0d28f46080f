"""Regions: volumes by chance, distances by surface points and by other formulas, walls that lie inside."""

import numpy as np
import pytest
import trimesh

import gravel as gv
from gravel.shapes.decompose import distances

TORUS = trimesh.creation.torus(1.0, 0.4, major_sections=24, minor_sections=16)
AXIS = np.array([1.0, 2.0, 2.0]) / 3
REGIONS = {
    "box": gv.BoxRegion((-1, 0, 0.5), (1, 3, 1.5)),
    "cylinder": gv.CylinderRegion((1, 0, 0), np.array([1, 0, 0]) + 2.5 * AXIS, 0.8),
    "sphere": gv.SphereRegion((0.5, -1, 2), 1.3),
    "hopper": gv.HopperRegion(0.2, 1.0, 0.9, 0.7, outlet=(0, 1, -1)),
    "cone": gv.HopperRegion(0.0, 1.0, 0.9, 0.0),
    "torus": gv.MeshRegion((TORUS.vertices, TORUS.faces)),
    "scaled mesh": gv.MeshRegion(gv.Mesh(TORUS.vertices, TORUS.faces, scale=0.5)),
}


def inside_by_formula(name, x):
    """Written once more, from the definitions."""
    if name == "box":
        return ((x >= (-1, 0, 0.5)) & (x <= (1, 3, 1.5))).all(axis=1)
    if name == "cylinder":
        z = (x - (1, 0, 0)) @ AXIS
        across = np.linalg.norm(np.cross(x - (1, 0, 0), AXIS), axis=1)
        return (z >= 0) & (z <= 2.5) & (across <= 0.8)
    if name == "sphere":
        return ((x - (0.5, -1, 2)) ** 2).sum(axis=1) <= 1.3**2
    if name in ("hopper", "cone"):
        x = x - ((0, 1, -1) if name == "hopper" else (0, 0, 0))
        outlet, top = (0.2, 1.6) if name == "hopper" else (0.0, 0.9)
        radius = np.where(x[:, 2] < 0.9, outlet + (1 - outlet) * x[:, 2] / 0.9, 1.0)
        return (x[:, 2] >= 0) & (x[:, 2] <= top) & (np.hypot(x[:, 0], x[:, 1]) <= radius)
    mesh = TORUS.copy().apply_scale(0.5 if name == "scaled mesh" else 1.0)
    return winding(x, mesh.triangles) > 0.5


def winding(points, corners):
    """Winding numbers by solid angles (Van Oosterom and Strackee)."""
    a, b, c = (corners[None, :, k] - points[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(v, axis=2) for v in (a, b, c))
    triple = np.einsum("nmi,nmi->nm", a, np.cross(b, c))
    dots = [np.einsum("nmi,nmi->nm", *pair) for pair in ((a, b), (b, c), (c, a))]
    return np.arctan2(triple, la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb).sum(axis=1) / (2 * np.pi)


@pytest.mark.parametrize("name", REGIONS)
def test_inside_and_volume_by_chance(name):
    region, rng = REGIONS[name], np.random.default_rng(1)
    low, high = region.bounds
    assert np.all(high > low)
    n = 1500 if isinstance(region, gv.MeshRegion) else 40000
    points = rng.uniform(low - 0.1, high + 0.1, (n, 3))
    expected = inside_by_formula(name, points)
    assert np.array_equal(region.contains(points), expected)
    share, room = expected.mean(), np.prod(high - low + 0.2)
    assert abs(share - region.volume / room) < 4 * np.sqrt(share * (1 - share) / n)


@pytest.mark.parametrize("name", REGIONS)
def test_samples_are_inside_and_fill_the_bounds(name):
    region = REGIONS[name]
    points = region.sample(np.random.default_rng(2), 3000)
    assert points.shape == (3000, 3) and inside_by_formula(name, points[:500]).all()
    low, high = region.bounds
    assert np.all(points.min(axis=0) < low + 0.2 * (high - low)) and np.all(points.max(axis=0) > high - 0.2 * (high - low))
    assert np.array_equal(points[:100], region.sample(np.random.default_rng(2), 3000)[:100])


@pytest.mark.parametrize("name", REGIONS)
def test_distance_leads_to_the_surface_and_no_further(name):
    """A ball of that radius about a point inside lies inside, and a hair beyond it the ball leaves: along the outward direction."""
    region, rng = REGIONS[name], np.random.default_rng(3)
    points = region.sample(rng, 200)
    depth, inward = region.distance(points), region.inward(points)
    assert np.allclose(np.linalg.norm(inward, axis=1), 1, atol=1e-12)
    directions = rng.normal(size=(200, 40, 3))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    around = points[:, None] + 0.999999 * depth[:, None, None] * directions
    assert region.contains(around.reshape(-1, 3)).all()
    assert inside_by_formula(name, around[:, 0]).all()
    beyond = points - (depth[:, None] + 1e-6) * inward
    assert not inside_by_formula(name, beyond).any()


def test_distance_to_a_mesh_is_that_to_its_nearest_triangle():
    region, rng = REGIONS["torus"], np.random.default_rng(4)
    points = np.concatenate([rng.uniform(-1.6, 1.6, (400, 3)), TORUS.vertices[:50], TORUS.triangles_center[:50] * (1, 1, 1.2)])
    assert np.allclose(np.abs(region.distance(points)), distances(points, TORUS.vertices, TORUS.faces), rtol=0, atol=1e-12)


def test_inradius():
    assert REGIONS["box"].inradius == 0.5 and REGIONS["sphere"].inradius == 1.3 and REGIONS["cylinder"].inradius == 0.8
    assert REGIONS["torus"].inradius == pytest.approx(0.4 * np.cos(np.pi / 16), rel=0.03)
    assert REGIONS["cone"].inradius == pytest.approx(0.9 / (1 + np.sqrt(1 + 0.9**2)), rel=0.01)  # of the triangle (0,0) (1,0.9) (-1,0.9)


@pytest.mark.parametrize("name", REGIONS)
def test_walls_inside_the_region(name):
    region = REGIONS[name]
    if name == "box":
        corners = np.array([(x, y, z) for x in (-1, 1) for y in (0, 3) for z in (0.5, 1.5)])
        for plane in region.walls():
            heights = corners @ plane.normal - plane.offset
            assert np.isclose(heights, 0).sum() == 4 and heights.min() > -1e-12
        return
    (wall,) = region.walls(inside=True)
    assert wall.sheet and wall.open_edges == 0
    assert region.distance(wall.vertices).min() > -1e-9
    volume = trimesh.Trimesh(wall.vertices, wall.triangles, process=False).volume
    assert 0.99 * region.volume < volume <= region.volume * (1 + 1e-12)


@pytest.mark.parametrize("name", [name for name in REGIONS if name != "box"])
def test_walls_around_the_region_hold_all_of_it(name):
    region = REGIONS[name]
    (wall,) = region.walls()
    around = gv.MeshRegion((wall.vertices, wall.triangles))
    points = region.sample(np.random.default_rng(5), 2000)
    surface = points - region.distance(points)[:, None] * region.inward(points)
    assert around.distance(surface).min() > -1e-9 and around.volume < 1.01 * region.volume


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: gv.BoxRegion((0, 0, 0), (1, 0, 1)), "high must be above low"),
        (lambda: gv.BoxRegion((0, 0), (1, 1, 1)), "low must have shape"),
        (lambda: gv.CylinderRegion((0, 0, 0), (0, 0, 0), 1), "end must be another point"),
        (lambda: gv.CylinderRegion((0, 0, 0), (0, 0, 1), 0), "radius must be greater than 0"),
        (lambda: gv.SphereRegion((0, 0, np.nan), 1), "centre must be finite"),
        (lambda: gv.SphereRegion((0, 0, 0), "1"), "radius must be a number"),
        (lambda: gv.HopperRegion(2, 1, 1, 1), "top_radius must be at least outlet_radius"),
        (lambda: gv.HopperRegion(0.1, 1, 0, 1), "cone_height must be greater than 0"),
        (lambda: gv.MeshRegion("mesh"), "must be a Mesh or"),
        (lambda: gv.MeshRegion((TORUS.vertices, TORUS.faces[1:])), "must be closed"),
        (lambda: gv.BoxRegion((0, 0, 0), (1, 1, 1)).distance([1, 2, 3]), "points must have shape"),
        (lambda: gv.BoxRegion((0, 0, 0), (1, 1, 1)).sample(np.random.default_rng(0), -1), "n must be at least 0"),
    ],
)
def test_bad_regions_are_refused(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
