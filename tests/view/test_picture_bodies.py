"""Pictures show every kind of body, and what is inside of containers."""

import importlib

import numpy as np
import pytest
from matplotlib.image import imread

import gravel as gv
from gravel.io.triangles import surface_of, template
from gravel.io.vtkhdf import ResultWriter, read_frame
from gravel.rotations import rotate
from gravel.shapes import HULL
from gravel.view import merged as surfaces
from gravel.view.picture import picture

RED = gv.Material(friction=0.31)  # material 1, drawn in orange
CUBE = np.array([(x, y, z) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])
TETRAHEDRON = gv.Mesh([(0, 0, 0), (0.3, 0, 0), (0, 0.3, 0), (0, 0, 0.3)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])
KINDS = {
    "sphere": gv.Sphere(0.1),
    "ellipsoid": gv.Ellipsoid((0.15, 0.1, 0.06)),
    "capsule": gv.Capsule(0.06, 0.1),
    "cylinder": gv.Cylinder(0.08, 0.12),
    "cone": gv.Cone(0.1, 0.25),
    "box": gv.Box((0.12, 0.08, 0.05)),
    "rounded box": gv.RoundedBox((0.12, 0.08, 0.05), 0.03),
    "hull": gv.ConvexHull(CUBE, scale=0.9),
    "clump": gv.Clump([[0, 0, 0], [0.1, 0, 0]], [0.1, 0.07], scale=1.1),
    "compound": gv.Compound([(gv.Box((0.05, 0.05, 0.2)),), (gv.ConvexHull(CUBE, scale=0.8), (0, 0, 0.2), (1, 1, 0, 0))]),
    "mesh": TETRAHEDRON,
}
ROUND = ("sphere", "ellipsoid", "capsule", "cylinder", "cone", "rounded box")


def pipe(rings, n=32):
    """An open surface of revolution through rings (radius, z), seen from inside."""
    angle, k = 2 * np.pi * np.arange(n) / n, np.arange(n)
    points = np.concatenate([np.stack([r * np.cos(angle), r * np.sin(angle), np.full(n, z)], axis=1) for r, z in rings])
    a, b = k, (k + 1) % n
    band = np.stack([a, n + b, b, a, n + a, n + b], axis=1).reshape(-1, 3)
    return gv.Mesh(points, np.concatenate([i * n + band for i in range(len(rings) - 1)]))


def drawn(tmp_path, scene, **options):
    """The pixels (h, w, 3) of a picture of the scene as it starts."""
    with ResultWriter(tmp_path / "r.vtkhdf", gv.Simulation(scene, 1e-3)) as writer:
        writer.write_frame()
    options = {"colour": "material", "size": (600, 450), **options}
    return imread(picture(tmp_path / "r.vtkhdf", tmp_path / "p.png", **options))[..., :3]


def share(pixels, colour):
    """Share of pixels whose strongest and weakest channels are those of a colour, and clearly so."""
    strong, weak = {"orange": (0, 2), "green": (1, 0)}[colour]
    return np.mean((pixels.argmax(axis=2) == strong) & (pixels.argmin(axis=2) == weak) & (np.ptp(pixels, axis=2) > 0.2))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_drawn(tmp_path, kind):
    scene = gv.Scene()
    scene.add_bodies(KINDS[kind], [[0.5 * k, 0, 0] for k in range(3)], quaternions=[[1, 0, 0, 0], [1, 1, 0, 0], [1, 0.3, 0.5, 0.2]])
    pixels = drawn(tmp_path, scene)
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
    assert share(pixels, "green") > 0.03


@pytest.mark.parametrize("colour", ["material", "speed", "radius"])
def test_all_kinds_in_one_picture(tmp_path, colour):
    scene = gv.Scene()
    for k, shape in enumerate(KINDS.values()):
        scene.add_body(shape, (0.4 * (k % 4), 0.4 * (k // 4), 0), gv.Material(friction=0.1 * k), velocity=(0.1 * k, 0, 0))
    pixels = drawn(tmp_path, scene, colour=colour)
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 1000
    assert np.mean((pixels < 0.95).any(axis=2)) > 0.1


@pytest.mark.parametrize("container", ["mesh", "boxes"])
def test_grains_in_a_container_are_seen(tmp_path, container):
    def scene(with_container):
        scene = gv.Scene()
        scene.material_index(gv.Material())
        if with_container and container == "mesh":
            scene.add_body(pipe([(0.2, -0.6), (0.7, 0), (0.7, 0.9)]), fixed=True)
        elif with_container:
            for side in (-1, 1):
                scene.add_body(gv.Box((0.7, 0.02, 0.6)), (0, 0.7 * side, 0.3), fixed=True)
        scene.add_bodies(gv.Sphere(0.1), 0.25 * np.mgrid[-1:2, -1:2, 0:3].reshape(3, -1).T, RED)
        return scene

    seen, alone = share(drawn(tmp_path, scene(True)), "orange"), share(drawn(tmp_path, scene(False)), "orange")
    assert seen > 0.15 * alone > 0.01


def test_ground_is_solid_and_grains_lie_on_it(tmp_path):
    scene = gv.Scene()
    ground = gv.HeightField.from_function(lambda x, y: 0.3 * np.sin(2 * x) * np.cos(2 * y), (-10, -10), (10, 10), 0.25)
    scene.add_body(ground, fixed=True)
    place = np.random.default_rng(0).uniform(-1.5, 1.5, (60, 2))
    height = 0.3 * np.sin(2 * place[:, 0]) * np.cos(2 * place[:, 1]) + 0.1
    scene.add_bodies(gv.ConvexHull(CUBE), np.column_stack([place, height]), RED)
    pixels = drawn(tmp_path, scene)
    frame = read_frame(tmp_path / "r.vtkhdf")
    assert len(frame["geometries"][0]["triangles"]) == 2 * 80 * 80
    assert share(pixels, "orange") > 0.01
    assert np.mean((pixels < 0.95).any(axis=2)) > 0.5  # the ground goes on to the edges of the picture, the grains do not shrink


def test_bodies_that_nothing_moves_are_drawn_and_an_empty_frame_is(tmp_path):
    scene = gv.Scene()
    ball = scene.add_body(gv.Sphere(0.1), fixed=True)
    assert np.mean((drawn(tmp_path, scene) < 0.95).any(axis=2)) > 0.1
    simulation = gv.Simulation(scene, 1e-3)
    simulation.remove(ball)
    with ResultWriter(tmp_path / "e.vtkhdf", simulation) as writer:
        writer.write_frame()
    assert picture(tmp_path / "e.vtkhdf", tmp_path / "e.png").exists()


def test_very_many_bodies_are_drawn(tmp_path, monkeypatch):
    n = 10000
    rng = np.random.default_rng(0)
    scene = gv.Scene()
    scene.add_bodies(gv.Ellipsoid(rng.uniform(0.02, 0.05, (n, 3))), rng.uniform(-1, 1, (n, 3)), quaternions=rng.normal(size=(n, 4)))
    scene.add_bodies(gv.Clump([[0, 0, 0], [0.03, 0, 0]], 0.03), rng.uniform(-1, 1, (1000, 3)), RED)
    assert share(drawn(tmp_path, scene), "green") > 0.1
    monkeypatch.setattr(importlib.import_module("gravel.view.bodies"), "TRIANGLES", 1000)  # as if there were a million: painted, not built
    assert share(drawn(tmp_path, scene), "green") > 0.1


def frame_of(tmp_path, scene):
    with ResultWriter(tmp_path / "f.vtkhdf", gv.Simulation(scene, 1e-3)) as writer:
        writer.write_frame()
    return read_frame(tmp_path / "f.vtkhdf")


@pytest.mark.parametrize("kind", KINDS)
def test_surfaces_enclose_the_volume_of_their_shape(tmp_path, kind):
    scene, shape = gv.Scene(), KINDS[kind]
    scene.add_bodies(shape, [[0, 0, 0], [1, 2, 3]], quaternions=[[1, 0, 0, 0], [0.5, 0.1, 0.7, -0.3]])
    data = frame_of(tmp_path, scene)
    (group,) = surfaces.groups_of(data, np.arange(2))
    merged = surfaces.merge([group], data)
    for body in (0, 1):
        mine = merged.triangles[merged.body[merged.triangles[:, 0]] == body]
        a, b, c = np.moveaxis(merged.points[mine].astype(float) - data["position"][body], 1, 0)
        volume = np.einsum("ni,ni->", a, np.cross(b, c)) / 6
        if kind == "compound":  # what two children share is cut out of both in part
            assert 0.5 < volume / shape.volumes(1)[0] < 1.01
        else:
            assert volume == pytest.approx(shape.volumes(1)[0], rel=0.12 if kind == "clump" else 0.05 if kind in ROUND else 1e-4)


def test_bodies_are_placed_with_scale_and_turn(tmp_path):
    scene, scales, turns = gv.Scene(), np.array([0.5, 2.0]), np.array([[0.6, 0.8, 0, 0], [0.5, 0.5, 0.5, 0.5]])
    scene.add_bodies(gv.ConvexHull(CUBE, scale=scales), [[0, 0, 0], [3, 2, 1]], quaternions=turns)
    data = frame_of(tmp_path, scene)
    (group,) = surfaces.groups_of(data, np.arange(2))
    placed = surfaces.place(group, data)
    for k in (0, 1):
        true = rotate(turns[k], scales[k] * CUBE) + [[0, 0, 0], [3, 2, 1]][k]
        assert np.allclose(sorted(placed[k].round(4).tolist()), sorted(true.round(4).tolist()), atol=2e-4)
    assert group.flat and len(group.edges) == 12  # of a cube: the diagonals of its faces are no edges


def test_a_compound_has_no_triangles_that_are_inside_another_child():
    small_in_large = gv.Compound([(gv.Sphere(0.3),), (gv.Box((0.1, 0.1, 0.1)),), (gv.Sphere(0.1), (0.35, 0, 0))])
    vertices, triangles = surface_of(small_in_large.geometry(True))
    assert len(triangles) < 2 * len(template(gv.Sphere.KIND).triangles)
    near = np.linalg.norm(vertices - (small_in_large.geometry(True).child_position[0]), axis=1)
    assert (near < 0.25).sum() == 0


def test_many_sided_meshes_are_smooth_and_simplified_when_there_are_many():
    n = 40
    torus = np.stack(np.meshgrid(2 * np.pi * np.arange(n) / n, 2 * np.pi * np.arange(n) / n, indexing="ij"), -1).reshape(-1, 2)
    x = 1 + 0.4 * np.cos(torus[:, 1])
    points = np.stack([x * np.cos(torus[:, 0]), x * np.sin(torus[:, 0]), 0.4 * np.sin(torus[:, 1])], 1)
    k = np.arange(n * n).reshape(n, n)
    a, b, c, d = k, np.roll(k, -1, 0), np.roll(k, (-1, -1), (0, 1)), np.roll(k, -1, 1)
    surface = {"vertices": points, "triangles": np.stack([a, b, c, a, c, d], -1).reshape(-1, 3)}
    fine = surfaces._geometry_group(np.arange(1), gv.Mesh.KIND, surface, 1e6)
    assert not fine.flat and len(fine.triangles) == 2 * n * n and len(fine.weights) == n * n and not len(fine.edges)
    assert len(surfaces._geometry_group(np.arange(1), gv.Mesh.KIND, surface, 400).triangles) <= 500
    assert surfaces._geometry_group(np.arange(1), HULL, surface, 1e6).flat
