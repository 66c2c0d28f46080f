"""Maps of pressure and wear: the weight of what lies on a body, Archard's law of a block on a driven plate, triangles by brute force."""

import numpy as np
import pytest
import trimesh

import gravel as gv
from gravel.measures import WearMap
from gravel.measures.body_surface import BodySurface, distances

SPEED, MU, K, HARDNESS = 0.2, 0.3, 1e-3, 1e9
WEIGHT = 9.81 * 1000 * 0.2**3


def pressed_plate(**motion):
    """A plate that is driven under a block, which slides on an upright guide."""
    scene, wood = gv.Scene(), gv.Material(density=1000, friction=MU)
    scene.add_body(
        gv.Box((0.5, 0.3, 0.05)), (0, 0, -0.05), wood, name="plate", **(motion or {"motion": gv.ConstantVelocity((SPEED, 0, 0))})
    )
    block = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0.1, 0, 0.1), wood, name="block")
    scene.add_joint(gv.Prismatic(None, block, point=(0.1, 0, 0.1), axis=(0, 0, 1)))
    sim = gv.Simulation(scene, 1e-3)
    sim.run(until=0.05)
    return sim


def test_a_block_on_a_driven_plate_wears_both_by_archards_law(tmp_path):
    sim = pressed_plate()
    options = {"coefficient": K, "hardness": HARDNESS}
    plate, block = WearMap(sim, "plate", **options), WearMap(sim, 1, edge=1.0, **options)
    sim.run(until=0.25, observers=[plate, block], save=tmp_path / "a.vtkhdf", every=0.005, contacts=True)
    way = SPEED * 0.2
    with gv.open_result(tmp_path / "a.vtkhdf") as result:
        maps = (plate, block, WearMap.of_frames(result, "plate", **options))
    for found in maps:
        assert found.force.sum() == pytest.approx(WEIGHT, rel=1e-5) and found.duration == pytest.approx(0.2)
        assert found.sliding_work.sum() == pytest.approx(MU * WEIGHT * way, rel=1e-4)
        assert found.wear_volume.sum() == pytest.approx(K * WEIGHT * way / HARDNESS, rel=1e-4)
        for density, total in (("pressure", "force"), ("wear_depth", "wear_volume"), ("work_density", "sliding_work")):
            assert np.allclose(found.quantity(density) * found.areas, found.quantity(total))
    bottom = block.surface.normals[:, 2] < -0.99
    assert block.force[~bottom].sum() == 0  # contacts lie at its corners, where its sides are as near
    assert (block.force @ block.surface.areas) / block.areas[0] ** 2 == pytest.approx(WEIGHT / block.areas[0])
    assert block.areas[bottom].sum() == pytest.approx(0.04, rel=1e-6)
    assert block.pressure[bottom] @ block.areas[bottom] / 0.04 == pytest.approx(WEIGHT / 0.04, rel=1e-5)  # mean pressure, weight over area
    assert (plate.force > 0).sum() > (block.force > 0).sum()  # what the block passes over gets its share, one after the other


def test_a_belt_wears_as_a_plate_that_moves():
    sim = pressed_plate(fixed=True, surface_velocity=(SPEED, 0, 0))
    found = WearMap(sim, "block", K, HARDNESS)
    sim.run(until=0.15, observers=[found])
    assert found.wear_volume.sum() == pytest.approx(K * WEIGHT * SPEED * 0.1 / HARDNESS, rel=1e-4)


def test_what_rests_does_not_wear():
    sim = pressed_plate(fixed=True)
    found = WearMap(sim, "plate", K, HARDNESS)
    sim.run(until=0.1, observers=[found])
    assert found.force.sum() == pytest.approx(WEIGHT, rel=1e-4) and found.wear_volume.sum() < 1e-6 * K * WEIGHT * SPEED * 0.05 / HARDNESS


def test_pressures_in_a_smooth_drum_add_up_to_the_weight():
    """Without friction all forces are along the normals of the triangles, inwards."""
    drum = trimesh.creation.cylinder(radius=0.5, height=0.4, sections=32)
    drum.apply_transform(trimesh.transformations.rotation_matrix(np.pi / 2, (1, 0, 0)))
    scene, smooth = gv.Scene(), gv.Material(density=2000, friction=0)
    scene.add_body(gv.Mesh(drum.vertices, drum.faces, sheet=True), material=smooth, fixed=True, name="drum")
    grains = gv.pack(gv.Sphere(0.045), gv.BoxRegion((-0.25, -0.18, -0.3), (0.25, 0.18, 0.2)), count=60).add_to(scene, smooth, name="grains")
    sim = gv.Simulation(scene, 2e-3)
    sim.run(until=2.0)
    found = WearMap(sim, "drum")
    sim.run(until=2.4, observers=[found])
    assert len(found.triangles) == len(drum.faces)
    force = -found.force @ found.surface.normals
    assert np.allclose(force, (0, 0, 9.81 * sim.masses[grains].sum()), atol=0.02 * 9.81 * sim.masses[grains].sum())
    loaded = found.surface.corners.mean(axis=1)[found.force > 0]
    assert loaded[:, 2].max() < 0.1


def test_a_plane_carries_what_stands_on_it():
    scene, rough = gv.Scene(), gv.Material(friction=1, rolling_friction=1.0)
    scene.add_body(gv.Plane((0, 0.6, 0.8)), material=rough, fixed=True, name="slope")
    ball = scene.add_body(gv.Sphere(0.1), (0, 0.06, 0.08), rough, name="ball")
    with pytest.warns(UserWarning, match="rolling_friction"):
        sim = gv.Simulation(scene, 1e-3)
    sim.run(until=0.1)
    found = WearMap(sim, "slope")
    sim.run(until=0.2, observers=[found])
    assert found.force.sum() == pytest.approx(0.8 * 9.81 * sim.masses[ball], rel=1e-3) and np.count_nonzero(found.force) == 1
    assert np.allclose(found.surface.normals, (0, 0.6, 0.8))


# --- triangles
def test_distances_are_those_of_trimesh():
    rng = np.random.default_rng(0)
    corners, points = rng.normal(size=(500, 3, 3)), 2 * rng.normal(size=(500, 3))
    nearest = trimesh.triangles.closest_point(corners, points)
    assert np.allclose(distances(points, corners), np.linalg.norm(nearest - points, axis=1))


def test_contacts_belong_to_the_nearest_triangle_however_different_their_sizes():
    rng = np.random.default_rng(1)
    vertices = np.concatenate([rng.normal(size=(90, 3)), 30 * rng.normal(size=(30, 3)), 0.01 * rng.normal(size=(90, 3))])
    surface = BodySurface(vertices, np.arange(210).reshape(-1, 3))
    points = np.concatenate([rng.normal(size=(40, 3)), 20 * rng.normal(size=(40, 3))])
    brute = np.array([distances(np.tile(point, (70, 1)), surface.corners).argmin() for point in points])
    assert np.array_equal(surface.touched(points, np.tile((0, 0, 1.0), (80, 1)), np.zeros(80)), brute)


# --- files, refusals
def test_maps_are_written_whole_and_read_by_pyvista(tmp_path):
    pyvista = pytest.importorskip("pyvista")
    sim = pressed_plate()
    found = WearMap(sim, "plate", K, HARDNESS)
    sim.run(until=0.06, observers=[found])
    mesh = pyvista.read(found.save(tmp_path / "map.vtp"))
    assert np.allclose(mesh.points, found.vertices) and np.array_equal(mesh.regular_faces, found.triangles)
    for name in ("pressure", "peak_pressure", "force", "sliding_work", "work_density", "wear_volume", "wear_depth"):
        assert np.array_equal(mesh.cell_data[name], found.quantity(name))
    table = np.genfromtxt(found.save(tmp_path / "map.csv"), delimiter=",", names=True)
    assert np.array_equal(table["wear_depth"], found.wear_depth) and np.allclose(table["area"], found.areas)
    with pytest.raises(ValueError, match="must end with .vtp or .csv"):
        found.save(tmp_path / "map.stl")


def test_what_a_map_cannot_be_of_is_refused():
    sim = pressed_plate()
    for options, words in (
        ({"body": "plat"}, "did you mean 'plate'"),
        ({"body": 7}, "body must be"),
        ({"body": "plate", "coefficient": 1e-4}, "go together"),
        ({"body": "plate", "edge": -1}, "edge must be"),
        ({"body": "plate", "edge": 1e-6}, "at most 2000000 triangles"),
        ({"body": "plate", "coefficient": 1e-4, "hardness": 0}, "hardness must be"),
    ):
        with pytest.raises(ValueError, match=words):
            WearMap(sim, **options)
    with pytest.raises(ValueError, match="wear needs coefficient and hardness"):
        WearMap(sim, "plate").wear_depth  # noqa: B018
    with pytest.raises(TypeError, match="Simulation or a frame"):
        WearMap("run.vtkhdf", "plate")
