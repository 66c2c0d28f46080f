"""Shapes: mass properties against trimesh and formulas, the geometry that the engines get, and what is refused."""

import itertools
import warnings

import numpy as np
import pytest
import trimesh

import gravel as gv
from gravel.formulas.tables import is_behind, rank_of, table_between
from gravel.rotations import conjugate, from_rotation_vector, multiply, rotate
from gravel.shapes import COMPOUND, CONVEX, KINDS, MESH, PLANE
from gravel.shapes.compounds import children_of
from gravel.shapes.decompose import distances
from gravel.shapes.geometry import LEAF, NONE, library_of
from gravel.shapes.kinds import NAMES
from gravel.shapes.meshes import winding_number
from gravel.shapes.polyhedra import mass_properties, principal

NAN, INF = float("nan"), float("inf")
CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
TURN = from_rotation_vector([0.4, -0.7, 1.1])
TETRAHEDRON = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1.0)]), np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])


def refuse(call, *words, error=ValueError):
    """The call raises the error, and its message is a line that holds the words."""
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text, f"{word!r} is not in {text!r}"


def l_mesh():
    """An L of 3 unit cubes (vertices, triangles): not convex, not symmetric."""
    outline = np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)], float)
    n = len(outline)
    vertices = np.concatenate([np.column_stack([outline, np.full(n, z)]) for z in (0.0, 1.0)])
    cap = np.array([(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)])
    side = [(k, (k + 1) % n, n + (k + 1) % n) for k in range(n)] + [(k, n + (k + 1) % n, n + k) for k in range(n)]
    return vertices, np.concatenate([cap[:, ::-1], cap + n, side])


def placed(vertices):
    """Somewhere else, turned."""
    return rotate(TURN, vertices) + (3.0, -2.0, 5.0)


def tensor_of(shape, masses=1.0):
    """Tensor of inertia about the centre of mass along the given axes, for one body of scale 1."""
    axes = rotate(shape.mass_frame[1], np.eye(3)).T
    return axes * shape.inertias(np.array([masses]))[0] @ axes.T


def box_mesh(low, high):
    """(vertices, triangles) of a cuboid."""
    mesh = trimesh.creation.box(bounds=[low, high])
    return np.array(mesh.vertices), np.array(mesh.faces)


# --- the table of kinds
def test_kinds_are_listed_by_numbers_that_stand_in_files():
    assert [kind.KIND for kind in KINDS] == list(range(len(KINDS))) and len(set(NAMES)) == len(KINDS)
    assert NAMES[:10] == ("sphere", "ellipsoid", "capsule", "cylinder", "cone", "box", "hull", "compound", "mesh", "plane")


def test_of_two_kinds_one_comes_first_and_what_is_not_convex_comes_last():
    numbers = range(len(KINDS))
    order = sorted(numbers, key=rank_of)
    assert order[-3:] == [COMPOUND, MESH, PLANE] and set(order[:-3]) == CONVEX
    for a, b in itertools.product(numbers, repeat=2):
        assert is_behind(a, b) + is_behind(b, a) == (a != b) and table_between(a, b) == table_between(b, a)


# --- mass properties
def tessellated(shape):
    """The same body from trimesh, finely tessellated."""
    make = trimesh.creation
    if isinstance(shape, gv.Sphere):
        return make.icosphere(6, radius=float(shape.radius))
    if isinstance(shape, gv.Ellipsoid):
        mesh = make.icosphere(6)
        mesh.apply_scale(shape.radii)
        return mesh
    if isinstance(shape, gv.Box):
        return make.box(2 * shape.half_extents)
    if isinstance(shape, gv.Cone):
        return make.cone(float(shape.radius), float(shape.height), sections=512)
    if isinstance(shape, gv.RoundedBox):
        corners = CORNERS * (shape.half_extents - shape.radius)
        ball = make.icosphere(5, radius=float(shape.radius)).vertices
        return trimesh.convex.convex_hull((corners[:, None] + ball).reshape(-1, 3))
    maker = make.cylinder if isinstance(shape, gv.Cylinder) else make.capsule
    detail = {"sections": 512} if isinstance(shape, gv.Cylinder) else {"count": [256, 256]}
    return maker(radius=float(shape.radius), height=2 * float(shape.half_length), **detail)


SIMPLE = [
    gv.Sphere(0.3),
    gv.Ellipsoid((0.2, 0.5, 0.9)),
    gv.Capsule(0.2, 0.7),
    gv.Cylinder(0.4, 0.3),
    gv.Cone(0.5, 0.8),
    gv.Box((0.1, 0.4, 0.2)),
    gv.RoundedBox((0.3, 0.5, 0.4), 0.1),
]


@pytest.mark.parametrize("shape", SIMPLE, ids=lambda shape: type(shape).__name__)
def test_mass_of_simple_shapes(shape):
    mesh = tessellated(shape)
    assert shape.volumes(1)[0] == pytest.approx(mesh.volume, rel=5e-4)
    moments = mesh.moment_inertia / mesh.volume
    assert shape.inertias(np.array([2.0]))[0] == pytest.approx(2 * np.diag(moments), rel=1e-3)
    centred = mesh.vertices - mesh.center_mass
    assert shape.bounding_radii(1)[0] == pytest.approx(np.linalg.norm(centred, axis=1).max(), rel=1e-4)


def rounded_box_by_slices(half, radius):
    """(volume, integrals of x2, y2, z2) of a rounded box: its slices across z are rectangles with round corners, each a cross of two
    rectangles and a disc that is cut in quarters. Gauss's rule along z, within the core and beyond it."""
    core = np.asarray(half) - radius
    nodes, weights = np.polynomial.legendre.leggauss(40)
    total = np.zeros(4)
    t = 0.25 * np.pi * (nodes + 1)  # beyond the core z = core + radius sin(t), so that what is integrated is smooth
    slices = [(core[2] * nodes, core[2] * weights, np.full(40, radius))]
    slices += [(s * (core[2] + radius * np.sin(t)), 0.25 * np.pi * weights * radius * np.cos(t), radius * np.cos(t)) for s in (-1, 1)]
    for z, weight, r in slices:
        a, b = core[0], core[1]
        area = 4 * a * b + 4 * r * (a + b) + np.pi * r**2
        square = [  # of x over the slice, and of y: the strip as long as the core, then the quarters of the disc and what is between
            4 * (p + r) ** 3 / 3 * q + 2 * r * (2 * p) ** 3 / 12 + np.pi * r**2 * p**2 + 8 / 3 * r**3 * p + np.pi / 4 * r**4
            for p, q in ((a, b), (b, a))
        ]
        total += [np.sum(weight * values) for values in (area, *square, area * z**2)]
    return total[0], total[1:]


@pytest.mark.parametrize("radius", [1e-6, 0.05, 0.1, 0.19, 0.2])
def test_mass_of_a_rounded_box_by_slices(radius):
    half = (0.5, 0.2, 0.3)
    shape = gv.RoundedBox(half, radius)
    volume, squares = rounded_box_by_slices(half, radius)
    assert shape.volumes(1)[0] == pytest.approx(volume, rel=1e-12)
    assert shape.inertias(np.array([3.0]))[0] == pytest.approx(3 * (squares.sum() - squares) / volume, rel=1e-12)


def test_rounded_boxes_between_a_box_and_a_ball_and_a_capsule():
    masses = np.array([2.0])
    for one, other in (
        (gv.RoundedBox((0.3, 0.3, 0.3), 0.3), gv.Sphere(0.3)),
        (gv.RoundedBox((0.2, 0.2, 0.7), 0.2), gv.Capsule(0.2, 0.5)),
        (gv.RoundedBox((0.2, 0.3, 0.7), 1e-12), gv.Box((0.2, 0.3, 0.7))),
    ):
        assert one.volumes(1)[0] == pytest.approx(other.volumes(1)[0], rel=1e-11)
        assert one.inertias(masses)[0] == pytest.approx(other.inertias(masses)[0], rel=1e-11)
        assert one.bounding_radii(1)[0] == pytest.approx(other.bounding_radii(1)[0], rel=1e-11)


def test_rounded_boxes_that_are_none_are_refused():
    refuse(lambda: gv.RoundedBox((0.1, 0.2, 0.3), 0.11), "RoundedBox radius must be at most the smallest half extent, 0.1, not 0.11")
    refuse(lambda: gv.RoundedBox([(1, 1, 1), (0.1, 2, 2)], 0.5), "RoundedBox radius[1]", "0.1, not 0.5")
    for radius in (-0.01, 0.0, NAN, INF):
        refuse(lambda radius=radius: gv.RoundedBox((0.1, 0.2, 0.3), radius), "RoundedBox radius must be", str(radius))
    refuse(lambda: gv.RoundedBox((0.1, -0.2, 0.3), 0.05), "RoundedBox half_extents", "-0.2")
    refuse(lambda: gv.RoundedBox((0.1, 0.2), 0.05), "half_extents must have shape (3,)")
    refuse(lambda: gv.RoundedBox(np.ones((3, 3)), [0.1, 0.2]), "half_extents has 3 and radius has 2")


def test_sizes_of_rounded_boxes_come_back_and_scale_as_a_whole():
    rng = np.random.default_rng(5)
    half = rng.uniform(0.01, 1.0, (1000, 3))
    shape = gv.RoundedBox(half, half.min(axis=1) * rng.uniform(0.0, 1.0, 1000))
    again = gv.RoundedBox.of_extent(np.column_stack([shape.rows(1000), shape.bounding_radii(1000)]))
    assert np.allclose(again.half_extents, half, rtol=1e-14) and np.allclose(again.radius, shape.radius, rtol=1e-12, atol=1e-15)
    assert shape.take([3, 5]).count == 2 and gv.RoundedBox((1, 1, 1), [0.1, 0.2]).count == 2
    assert repr(gv.RoundedBox((1, 2, 3), 0.5)) == "RoundedBox(half_extents=(1, 2, 3), radius=0.5)"


@pytest.mark.parametrize(
    "vertices, triangles",
    [l_mesh(), TETRAHEDRON, box_mesh((0, 0, 0), (1, 2, 3))],
    ids=["L", "tetrahedron", "box"],
)
@pytest.mark.parametrize("move", [lambda x: x, placed], ids=["as is", "placed"])
def test_mass_properties_against_trimesh(vertices, triangles, move):
    vertices = move(vertices)
    volume, centre, inertia = mass_properties(vertices, triangles)
    mesh = trimesh.Trimesh(vertices, triangles, process=False)
    assert volume == pytest.approx(mesh.volume, rel=1e-12)
    assert np.allclose(centre, mesh.center_mass, rtol=0, atol=1e-12)
    assert np.allclose(inertia, mesh.moment_inertia, rtol=0, atol=1e-11)
    shape = gv.Mesh(vertices, triangles)
    assert np.allclose(tensor_of(shape, volume), mesh.moment_inertia, rtol=0, atol=1e-11)
    assert np.allclose(shape.mass_frame[0], mesh.center_mass, rtol=0, atol=1e-12)


def test_mass_of_l_by_hand():
    shape = gv.Mesh(*l_mesh())
    assert shape.volumes(1)[0] == pytest.approx(3.0)
    assert shape.mass_frame[0] == pytest.approx([5 / 6, 5 / 6, 0.5])


def test_far_from_the_origin_mass_loses_no_digits():
    vertices, triangles = l_mesh()
    near, far = mass_properties(vertices, triangles), mass_properties(vertices + 1e6, triangles)
    assert np.allclose(near[2], far[2], rtol=1e-9, atol=1e-9)


def test_hull_has_the_mass_of_its_mesh():
    points = placed(np.random.default_rng(3).normal(size=(60, 3)))
    shape, mesh = gv.ConvexHull(points), trimesh.convex.convex_hull(points)
    assert shape.volumes(1)[0] == pytest.approx(mesh.volume, rel=1e-9)
    assert np.allclose(shape.mass_frame[0], mesh.center_mass, rtol=0, atol=1e-9)
    assert np.allclose(tensor_of(shape, mesh.volume), mesh.moment_inertia, rtol=1e-8, atol=1e-8)


def test_cavity_is_no_mass():
    (outer, triangles), (inner, _) = box_mesh((-1, -1, -1), (1, 1, 1)), box_mesh((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5))
    shape = gv.Mesh(np.concatenate([outer, inner]), np.concatenate([triangles, triangles[:, ::-1] + len(outer)]))
    assert shape.closed and shape.volumes(1)[0] == pytest.approx(7.0)


@pytest.mark.parametrize("make", [lambda scale: gv.Mesh(*l_mesh(), scale=scale), lambda scale: gv.ConvexHull(l_mesh()[0], scale)])
def test_scale_acts_as_on_the_points(make):
    scales = np.array([0.5, 1.0, 3.0])
    shape, one = make(scales), make(1.0)
    assert shape.count == 3 and one.count is None
    assert shape.rows(3).tolist() == [[s, 0, 0] for s in scales]
    assert shape.volumes(3) == pytest.approx(scales**3 * one.volumes(1)[0])
    assert shape.inertias(np.ones(3)) == pytest.approx(scales[:, None] ** 2 * one.inertias(np.ones(1)))
    assert shape.bounding_radii(3) == pytest.approx(scales * one.bounding_radii(1)[0])
    some = shape.take(np.array([2, 0]))
    assert some.scale.tolist() == [3.0, 0.5]
    for movable in (True, False):
        assert some.geometry(movable) is shape.geometry(movable) is shape.geometry(movable)
    assert shape.geometry(True) is not shape.geometry(False)


@pytest.mark.parametrize("shape", [gv.Mesh(placed(l_mesh()[0]), l_mesh()[1]), gv.ConvexHull(placed(l_mesh()[0]))], ids=["mesh", "hull"])
def test_movable_geometry_is_about_the_centre_along_principal_axes(shape):
    geometry = shape.geometry(True)
    corners = geometry.triangles if len(geometry.triangles) else fans(geometry)
    volume, centre, inertia = mass_properties(geometry.vertices, corners)
    assert np.allclose(centre, 0, atol=1e-12)
    assert np.allclose(inertia, np.diag(np.diag(inertia)), atol=1e-11)
    assert np.allclose(shape.inertias(np.array([volume]))[0], np.diag(inertia))
    centre, axes = shape.mass_frame
    back = rotate(axes, geometry.vertices) + centre
    assert np.allclose(np.sort(back, axis=0), np.sort(shape.geometry(False).vertices, axis=0), atol=1e-12)
    assert geometry.half == pytest.approx(np.abs(geometry.vertices).max(axis=0))
    assert geometry.radius == pytest.approx(np.linalg.norm(geometry.vertices, axis=1).max())


def test_symmetric_bodies_are_not_turned():
    for vertices in (CORNERS, CORNERS * (1, 2, 3), rotate(TURN, CORNERS)):
        assert gv.ConvexHull(vertices).mass_frame[1].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_principal_axes_are_the_nearest():
    small = from_rotation_vector([0.01, -0.02, 0.03])
    axes = rotate(small, np.eye(3)).T
    moments, quaternion = principal(axes * [3.0, 1.0, 2.0] @ axes.T)
    assert moments == pytest.approx([3.0, 1.0, 2.0]) and quaternion == pytest.approx(small)


def test_scene_places_the_given_coordinates():
    """A movable and a fixed body of the same shape and pose occupy the same points."""
    shape = gv.Mesh(placed(l_mesh()[0]), l_mesh()[1], scale=[2.0])
    scene = gv.Scene()
    for fixed in (False, True):
        scene.add_bodies(shape, [(1.0, 2.0, 3.0)], quaternions=[TURN], fixed=fixed)
    bodies, points = scene.bodies, []
    for k in (0, 1):
        vertices = 2.0 * scene.geometries[bodies.geometry[k]].vertices
        points.append(rotate(bodies.quaternion[k], vertices) + bodies.position[k, :3])
    assert np.allclose(*points, atol=1e-12)
    assert 1 / bodies.inverse_mass[0, 0] == pytest.approx(3.0 * 2**3 * gv.Material().density)


# --- hulls
def fans(geometry):
    faces = np.split(geometry.face_corners, geometry.face_start[1:])
    return np.array([(face[0], b, c) for face in faces for b, c in zip(face[1:-1], face[2:])])


def check_hull(shape, points):
    geometry = shape.geometry(False)
    vertices, size = geometry.vertices, np.ptp(points, axis=0).max()
    faces = np.split(geometry.face_corners, geometry.face_start[1:])
    assert np.allclose(np.linalg.norm(geometry.face_normals, axis=1), 1, rtol=0, atol=1e-15)
    for face, normal in zip(faces, geometry.face_normals):
        heights = (vertices - vertices[face[0]]) @ normal
        assert np.abs(heights[face]).max() < 3e-7 * size, "a face is not flat"
        assert ((points - vertices[face[0]]) @ normal).max() < 3e-7 * size, "a point is outside"
        corners = vertices[face]
        turns = np.cross(np.roll(corners, -1, axis=0) - corners, np.roll(corners, -2, axis=0) - np.roll(corners, -1, axis=0)) @ normal
        assert (turns > -1e-12 * size**2).all(), "corners are not in order, counter-clockwise"
    ends = np.append(geometry.neighbour_start[1:], len(geometry.neighbours))
    edges = {(v, int(w)) for v in range(len(vertices)) for w in geometry.neighbours[geometry.neighbour_start[v] : ends[v]]}
    assert len(edges) == len(geometry.neighbours) and edges == {(b, a) for a, b in edges}
    assert edges == {(int(a), int(b)) for face in faces for a, b in zip(face, np.roll(face, -1))}
    assert len(vertices) - len(edges) // 2 + len(faces) == 2
    assert (np.bincount(geometry.face_corners, minlength=len(vertices)) >= 3).all()
    return faces


CLOUDS = {
    "normal": np.random.default_rng(1).normal(size=(200, 3)),
    "sphere": trimesh.creation.icosphere(3).vertices,
    "cylinder": trimesh.creation.cylinder(1.0, 2.0, sections=40).vertices,
    "lattice": rotate(TURN, np.array(list(itertools.product(range(4), repeat=3)), float)),
    "needle": np.random.default_rng(2).normal(size=(100, 3)) * (1, 1e-3, 1e-3),
    "pairs": np.concatenate([np.random.default_rng(5).normal(size=(50, 3)) + shift for shift in (0, 1e-8)]),
    "small and far": 1e-4 * CORNERS + 7.0,
}


@pytest.mark.parametrize("name", CLOUDS)
def test_hull_is_a_polyhedron(name):
    points = np.array(CLOUDS[name])
    check_hull(gv.ConvexHull(points), points)


@pytest.mark.parametrize("turn", [np.array([1.0, 0, 0, 0]), TURN])
def test_points_on_a_box_leave_no_trace(turn):
    rng = np.random.default_rng(0)
    on_faces = rng.uniform(-1, 1, (300, 3))
    on_faces[np.arange(300), rng.integers(0, 3, 300)] = rng.choice([-1, 1], 300)
    on_edges = rng.choice([-1.0, 1.0], (60, 3))
    on_edges[np.arange(60), rng.integers(0, 3, 60)] = rng.uniform(-1, 1, 60)
    points = rotate(turn, np.concatenate([on_faces, CORNERS, on_edges, np.zeros((5, 3))]) * (0.3, 1.0, 2.0))
    faces = check_hull(gv.ConvexHull(points), points)
    assert [len(face) for face in faces] == [4] * 6


def test_hull_of_cylinder_has_whole_caps():
    points = np.array(CLOUDS["cylinder"])
    assert sorted(len(face) for face in check_hull(gv.ConvexHull(points), points)) == [4] * 40 + [40] * 2


# --- meshes
def check_mesh(shape, movable=False):
    geometry = shape.geometry(movable)
    triangles, vertices = geometry.triangles, geometry.vertices
    for t, k in np.argwhere(geometry.adjacent != NONE):
        other = geometry.adjacent[t, k]
        a, b = triangles[t, k], triangles[t, (k + 1) % 3]
        (back,) = [j for j in range(3) if (triangles[other, j], triangles[other, (j + 1) % 3]) == (b, a)]
        assert geometry.adjacent[other, back] == t
    corners = vertices[triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert np.allclose(geometry.normals, normals / np.linalg.norm(normals, axis=1, keepdims=True))
    leaves = (len(geometry.boxes) + 1) // 2
    for t, corner in enumerate(corners):
        node = leaves - 1 + t // LEAF
        while node >= 0:
            assert (corner >= geometry.boxes[node, :3]).all() and (corner <= geometry.boxes[node, 3:]).all()
            node = (node - 1) // 2 if node else -1
    return geometry


@pytest.mark.parametrize("movable", [True, False])
def test_closed_mesh(movable):
    shape = gv.Mesh(placed(l_mesh()[0]), l_mesh()[1])
    geometry = check_mesh(shape, movable)
    assert shape.closed and geometry.one_sided and (geometry.adjacent != NONE).all() and len(geometry.triangles) == 20


def test_soup_becomes_a_mesh():
    """As in an STL file: each triangle has corners of its own; and some triangles are no more than points and lines."""
    vertices, triangles = l_mesh()
    soup = np.concatenate([vertices[triangles].reshape(-1, 3), vertices[:2]])
    corners = np.concatenate([np.arange(60).reshape(-1, 3), [(0, 0, 60), (60, 61, 60)]])
    shape = gv.Mesh(soup, corners)
    assert shape.closed and len(shape.vertices) == 12 and len(shape.triangles) == 20 and shape.repairs == ()
    assert shape.volumes(1)[0] == pytest.approx(3.0)


def test_sliver_between_triangles_is_bridged():
    """A corner on the edge of the next triangle, with a triangle of no area between them, is still a closed surface."""
    vertices, triangles = TETRAHEDRON
    vertices = np.concatenate([vertices, [(0.5, 0, 0)]])
    split = np.concatenate([triangles[2:], [(0, 2, 1), (0, 4, 3), (4, 1, 3), (0, 1, 4)]])
    shape = gv.Mesh(vertices, split)
    geometry = shape.geometry(False)
    assert shape.closed and shape.volumes(1)[0] == pytest.approx(1 / 6)
    assert len(geometry.triangles) == 5 and np.isfinite(geometry.normals).all()
    named = {frozenset(triangle.tolist()): t for t, triangle in enumerate(geometry.triangles)}
    bottom, left, right = (named[frozenset(corners)] for corners in ((0, 2, 1), (0, 4, 3), (4, 1, 3)))
    assert bottom in geometry.adjacent[left] and bottom in geometry.adjacent[right]
    assert (geometry.adjacent != NONE).all() and {left, right} & set(geometry.adjacent[bottom].tolist())


def test_open_mesh_has_two_sides_and_no_mass():
    vertices, triangles = box_mesh((0, 0, 0), (1, 1, 1))
    shape = gv.Mesh(vertices, triangles[1:])
    geometry = check_mesh(shape)
    assert not shape.closed and not geometry.one_sided and (geometry.adjacent == NONE).sum() == 3
    assert shape.bounding_radii(1)[0] == pytest.approx(np.sqrt(3))
    scene = gv.Scene()
    words = ("not closed (3 edges with one side)", "no mass", "fixed=True", "motion", "ConvexHull")
    for call in (lambda: shape.mass_frame, lambda: shape.volumes(1), lambda: shape.inertias(np.ones(1)), lambda: scene.add_body(shape)):
        refuse(call, *words)
    assert len(scene) == 0
    scene.add_body(shape, fixed=True)
    scene.add_body(shape, motion=gv.ConstantVelocity((1, 0, 0)))
    assert len(scene) == 2 and len(scene.geometries) == 1


def test_sheet_with_two_faces_encloses_nothing():
    shape = gv.Mesh(TETRAHEDRON[0][:3], [(0, 1, 2), (2, 1, 0)])
    assert not shape.closed
    refuse(lambda: shape.mass_frame, "encloses no volume")


def test_three_sheets_at_an_edge_are_no_neighbours():
    vertices = [(0, 0, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (-1, -1, 0)]
    geometry = gv.Mesh(vertices, [(0, 1, 2), (1, 0, 3), (0, 1, 4)]).geometry(False)
    assert (geometry.adjacent == NONE).all() and not geometry.one_sided


def test_unused_vertices_do_not_count():
    vertices, triangles = TETRAHEDRON
    assert gv.Mesh([*vertices, (100, 0, 0)], triangles).geometry(False).radius == pytest.approx(1.0)


# --- repair
def repair(vertices, triangles, *words):
    with pytest.warns(UserWarning) as caught:
        shape = gv.Mesh(vertices, triangles, repair=True)
    text = str(caught[0].message)
    assert caught[0].filename == __file__
    for word in words:
        assert word in text and any(word in done for done in shape.repairs), f"{word!r} is not in {text!r}"
    return shape


def test_flipped_triangles():
    vertices, triangles = l_mesh()
    triangles[[3, 7]] = triangles[[3, 7], ::-1]
    refuse(lambda: gv.Mesh(vertices, triangles), "wound one way", "6 edges", "repair=True")
    shape = repair(vertices, triangles, "turned 2 triangles")
    assert shape.closed and shape.volumes(1)[0] == pytest.approx(3.0)


def test_inside_out():
    vertices, triangles = l_mesh()
    refuse(lambda: gv.Mesh(vertices, triangles[:, ::-1]), "inside out", "repair=True")
    assert repair(vertices, triangles[:, ::-1], "turned 1 parts").volumes(1)[0] == pytest.approx(3.0)


def test_one_part_inside_out():
    """The whole volume is positive, so only a look at each part finds it."""
    vertices, triangles = l_mesh()
    both = np.concatenate([2 * vertices, vertices + 10]), np.concatenate([triangles, triangles[:, ::-1] + len(vertices)])
    refuse(lambda: gv.Mesh(*both), "inside out (1 closed parts")
    assert repair(*both, "inside out").volumes(1)[0] == pytest.approx(27.0)


@pytest.mark.parametrize("missing", [1, 2])
def test_holes(missing):
    vertices, triangles = box_mesh((0, 0, 0), (1, 2, 3))
    side = np.flatnonzero((vertices[triangles][:, :, 2] == 3).all(axis=1))[:missing]
    shape = repair(vertices, np.delete(triangles, side, axis=0), "filled 1 holes")
    assert shape.closed and shape.volumes(1)[0] == pytest.approx(6.0)


def test_vertices_that_nearly_meet():
    vertices, triangles = l_mesh()
    soup = vertices[triangles].reshape(-1, 3) + np.random.default_rng(0).uniform(-1e-7, 1e-7, (60, 3))
    corners = np.arange(60).reshape(-1, 3)
    assert not gv.Mesh(soup, corners).closed
    assert repair(soup, corners, "merged 48 vertices").closed


def test_nothing_to_repair_is_said_by_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gv.Mesh(*l_mesh(), repair=True).repairs == ()


def test_moebius_strip_is_refused():
    n = 20
    around = 2 * np.pi * np.arange(n) / n
    arms = np.column_stack([np.cos(around / 2) * np.cos(around), np.cos(around / 2) * np.sin(around), np.sin(around / 2)])
    ring = np.column_stack([np.cos(around), np.sin(around), 0 * around])
    vertices = np.stack([ring - 0.3 * arms, ring + 0.3 * arms], axis=1).reshape(-1, 3)
    a = np.arange(n)
    onward = [(2 * (k + 1), 2 * (k + 1) + 1) if k + 1 < n else (1, 0) for k in a]
    triangles = [t for k, (c, d) in enumerate(onward) for t in ((2 * k, c, 2 * k + 1), (2 * k + 1, c, d))]
    refuse(lambda: gv.Mesh(vertices, triangles), "wound one way")
    refuse(lambda: gv.Mesh(vertices, triangles, repair=True), "one side", "Moebius")


# --- height fields
def test_height_field():
    heights = np.arange(12.0).reshape(3, 4) ** 1.5
    shape = gv.HeightField(heights, (0.5, 2.0))
    geometry = check_mesh(shape)
    assert geometry.one_sided and len(geometry.triangles) == 12 and (geometry.normals[:, 2] > 0).all()
    assert geometry.vertices.min(axis=0) == pytest.approx([-0.5, -3, 0])
    assert geometry.vertices.max(axis=0) == pytest.approx([0.5, 3, heights.max()])
    at = geometry.vertices.reshape(3, 4, 3)
    assert at[1, 2] == pytest.approx([0.0, 1.0, heights[1, 2]])
    assert (geometry.adjacent == NONE).sum() == 2 * (2 + 3)
    assert gv.HeightField(heights, 1.0, origin=(5, 6)).geometry(False).vertices[0].tolist() == [5, 6, 0]


def test_height_field_from_function():
    shape = gv.HeightField.from_function(lambda x, y: x + 10 * y, (0, 1), (1, 2), 0.3)
    vertices = shape.geometry(False).vertices
    assert shape.heights.shape == (5, 5) and np.allclose(vertices[:, 2], vertices[:, 0] + 10 * vertices[:, 1])
    assert vertices[0].tolist() == [0, 1, 10] and vertices[-1].tolist() == [1, 2, 21]
    assert gv.HeightField.from_function(lambda x, y: 2.0, (0, 0), (1, 1), 0.5).heights.tolist() == [[2.0] * 3] * 3


def test_height_field_has_no_mass():
    shape = gv.HeightField(np.zeros((2, 2)), 1.0)
    refuse(lambda: gv.Scene().add_body(shape), "HeightField", "no mass", "fixed=True")
    assert gv.Scene().add_body(shape, fixed=True) == 0


# --- files
@pytest.mark.parametrize("suffix", ["stl", "ply", "obj", "off", "glb"])
def test_files(tmp_path, suffix):
    path = tmp_path / f"l.{suffix}"
    trimesh.Trimesh(*l_mesh(), process=False).export(path)
    mesh = gv.Mesh.from_file(path, scale=2.0)
    assert mesh.closed and mesh.volumes(1)[0] == pytest.approx(24.0) and len(mesh.vertices) == 12
    assert gv.ConvexHull.from_file(str(path), 2.0).volumes(1)[0] == pytest.approx(28.0)
    assert "l." in repr(mesh)


def test_file_of_several_placed_parts(tmp_path):
    mesh, scene = trimesh.Trimesh(*l_mesh(), process=False), trimesh.Scene()
    scene.add_geometry(mesh)
    mirrored = np.diag([-2.0, 2.0, 2.0, 1.0])
    scene.add_geometry(mesh, transform=mirrored)
    path = tmp_path / "two.glb"
    scene.export(path)
    shape = gv.Mesh.from_file(path)
    assert shape.volumes(1)[0] == pytest.approx(27.0) and shape.vertices[:, 0].min() == pytest.approx(-4.0)


def test_file_with_flaws_is_named(tmp_path):
    path = tmp_path / "inverted.stl"
    vertices, triangles = l_mesh()
    trimesh.Trimesh(vertices, triangles[:, ::-1], process=False).export(path)
    refuse(lambda: gv.Mesh.from_file(path), "inverted.stl", "inside out", "repair=True")
    with pytest.warns(UserWarning, match="inverted.stl.*was repaired") as caught:
        assert gv.Mesh.from_file(path, repair=True).closed
    assert caught[0].filename == __file__
    path = tmp_path / "open.stl"
    trimesh.Trimesh(vertices, triangles[1:], process=False).export(path)
    refuse(lambda: gv.Mesh.from_file(path).mass_frame, "open.stl", "not closed")


@pytest.mark.parametrize("read", [gv.Mesh.from_file, gv.ConvexHull.from_file, gv.Clump.from_mesh])
def test_files_that_are_none(tmp_path, read):
    refuse(lambda: read(tmp_path / "none.stl"), "none.stl", "does not exist", error=FileNotFoundError)
    refuse(lambda: read(tmp_path), tmp_path.name, "no file")
    for name, text, word in (
        ("empty.stl", "", "is empty"),
        ("letter.stl", "Dear all,\nno triangles here.\n", "cannot be read"),
        ("letter.ply", "Dear all,\n", "cannot be read"),
        ("mesh.docx", "x", ".stl"),
        ("mesh", "x", ".stl"),
    ):
        (tmp_path / name).write_text(text)
        refuse(lambda name=name: read(tmp_path / name), name, word)
    refuse(lambda: read(3), "path", "3", error=TypeError)


# --- compounds
def test_two_boxes_make_a_longer_one():
    long = gv.Box((1.0, 0.2, 0.3))
    half = gv.Box((0.5, 0.2, 0.3))
    shape = gv.Compound([(half, (0.5, 1, 1)), (half, (1.5, 1, 1))])
    assert shape.volumes(2).tolist() == pytest.approx([long.volumes(1)[0]] * 2)
    assert shape.mass_frame[0] == pytest.approx([1, 1, 1]) and shape.mass_frame[1].tolist() == [1, 0, 0, 0]
    assert shape.inertias(np.array([4.0])) == pytest.approx(long.inertias(np.array([4.0])))
    assert shape.rows(2).tolist() == [[1, 0, 0]] * 2 and shape.count is None


@pytest.mark.parametrize("as_hull", [False, True])
def test_turned_compound_against_trimesh(as_hull):
    """Boxes apart, as boxes or as hulls with points off their centre, against the same boxes as one mesh."""
    places = [((0.2, 0.3, 0.4), (1, 0, 0), TURN), ((0.5, 0.1, 0.2), (0, 2, 0), multiply(TURN, TURN)), ((0.3, 0.3, 0.3), (0, 0, -2), TURN)]
    items, meshes = [], []
    for half, position, turn in places:
        corners = rotate(turn, CORNERS * half) + position
        meshes.append(trimesh.convex.convex_hull(corners))
        # the hull is given off its centre and turned (twist) in its own coordinates; its item's place undoes that
        shift, twist = np.array([0.7, -0.4, 0.1]), from_rotation_vector([-0.3, 0.2, 0.5])
        hull = gv.ConvexHull((rotate(twist, CORNERS * half) + shift) / 2, scale=2.0)
        back = multiply(turn, conjugate(twist))
        items.append((hull, position - rotate(back, shift), back) if as_hull else (gv.Box(half), position, turn))
    shape, mesh = gv.Compound(items), trimesh.util.concatenate(meshes)
    assert shape.volumes(1)[0] == pytest.approx(mesh.volume)
    assert np.allclose(shape.mass_frame[0], mesh.center_mass, atol=1e-12)
    assert np.allclose(tensor_of(shape, mesh.volume), mesh.moment_inertia, atol=1e-12)
    for movable in (False, True):
        centre, axes = shape.mass_frame if movable else (np.zeros(3), np.array([1.0, 0, 0, 0]))
        points = (mesh.vertices - centre) @ rotate(axes, np.eye(3)).T
        geometry = shape.geometry(movable)
        assert geometry is shape.geometry(movable)
        assert geometry.half == pytest.approx(np.abs(points).max(axis=0))
        assert geometry.radius == pytest.approx(np.linalg.norm(points, axis=1).max())
        assert np.allclose(corners_of_children(geometry), np.sort(points, axis=0), atol=1e-12)


def corners_of_children(geometry):
    """Corners of all box and hull children in the body frame, each coordinate sorted."""
    corners = []
    for k, part in enumerate(geometry.child_geometry):
        local = CORNERS * geometry.child_size[k] if part == NONE else geometry.parts[part].vertices * geometry.child_size[k, 0]
        corners.append(rotate(geometry.child_quaternion[k], local) + geometry.child_position[k])
        assert geometry.child_radius[k] == pytest.approx(np.linalg.norm(local, axis=1).max())
    return np.sort(np.concatenate(corners), axis=0)


@pytest.mark.parametrize("child", SIMPLE, ids=lambda shape: type(shape).__name__)
def test_bounds_of_children(child):
    """The box around a child is tight, the ball is not too small, and not larger than it must be for all but ellipsoids."""
    position = np.array([0.5, -0.2, 0.9])
    mesh = tessellated(child)
    points = rotate(TURN, mesh.vertices - mesh.center_mass) + position
    geometry = gv.Compound([(child, position, TURN)]).geometry(False)
    assert geometry.half == pytest.approx(np.abs(points).max(axis=0), rel=1e-3)
    farthest = np.linalg.norm(points, axis=1).max()
    assert geometry.radius >= farthest * (1 - 1e-12)
    assert isinstance(child, gv.Ellipsoid) or geometry.radius == pytest.approx(farthest, rel=1e-3)
    assert geometry.child_radius[0] == pytest.approx(child.bounding_radii(1)[0])


def test_nested_compounds_become_flat():
    hull, clump = gv.ConvexHull(l_mesh()[0]), gv.Clump([(0, 0, 0), (0.5, 0, 0)], 0.4, scale=2.0)
    inner = gv.Compound([(gv.Cone(0.2, 0.5), (0, 1, 0), TURN), (hull, (0, 0, 2))])
    places = rotate(TURN, [(0, 1.0, 0), (0, 0, 2.0)]) + 1
    flat = gv.Compound([(gv.Cone(0.2, 0.5), places[0], multiply(TURN, TURN)), (hull, places[1], TURN)])
    nested = gv.Compound([(inner, (1, 1, 1), TURN), (clump, (5, 0, 0)), (gv.Sphere(0.1),)])
    geometry = nested.geometry(False)
    assert geometry.child_kind.tolist() == [gv.Cone.KIND, gv.ConvexHull.KIND] + [gv.Sphere.KIND] * 3
    assert np.allclose(geometry.child_position[:2], flat.geometry(False).child_position)
    assert np.allclose(geometry.child_quaternion[:2], flat.geometry(False).child_quaternion)
    assert geometry.child_position[2:].tolist() == [[5, 0, 0], [6, 0, 0], [0, 0, 0]]
    assert geometry.child_size[2:, 0] == pytest.approx([0.8, 0.8, 0.1]) and geometry.parts == (hull.geometry(True),)
    volumes = [flat.volumes(1)[0], clump.volumes(1)[0], gv.Sphere(0.1).volumes(1)[0]]
    assert nested.volumes(1)[0] == pytest.approx(sum(volumes))
    library = library_of([*geometry.parts, geometry])
    assert library.child_geometry.tolist() == [NONE, 0, NONE, NONE, NONE]


def test_relative_densities():
    light, heavy = gv.Sphere(0.5), gv.Sphere(0.5)
    shape = gv.Compound([(light, (0, 0, 0)), (heavy, (2, 0, 0))], relative_densities=[1, 3])
    assert shape.mass_frame[0] == pytest.approx([1.5, 0, 0]) and shape.volumes(1)[0] == pytest.approx(4 * light.volumes(1)[0])
    assert shape.inertias(np.array([4.0]))[0] == pytest.approx([0.4, 0.4 + 3, 0.4 + 3])


def test_compound_in_a_scene_brings_its_hulls():
    hull = gv.ConvexHull(l_mesh()[0])
    scene = gv.Scene()
    scene.add_bodies(gv.Compound([(hull,), (hull, (4, 0, 0))]), np.zeros((3, 3)))
    assert len(scene.geometries) == 2 and scene.bodies.geometry.tolist() == [1, 1, 1]


def test_geometries_of_equal_content_are_stored_once():
    """Made anew each time, alone and as parts of compounds; what differs in one number is another."""
    points = np.random.default_rng(5).normal(size=(12, 3))
    scene = gv.Scene()
    for k in range(4):
        scene.add_body(gv.ConvexHull(points.copy()), (5 * k, 0, 0), fixed=True)
        scene.add_body(gv.Compound([(gv.ConvexHull(points.copy()),), (gv.Sphere(1.0), (3, 0, 0))]), (5 * k, 9, 0), fixed=True)
    assert scene.bodies.geometry.tolist() == [0, 2] * 4 and len(scene.geometries) == 3  # 1: the part, about its centre of mass
    assert scene.geometries[2].parts[0] is scene.geometries[1]
    scene.add_body(gv.ConvexHull(points + np.eye(12, 3) * 1e-12), fixed=True)
    scene.add_body(gv.Compound([(gv.ConvexHull(points.copy()),), (gv.Sphere(1.0), (3, 0, 1e-12))]), fixed=True)
    assert scene.bodies.geometry.tolist()[-2:] == [3, 4]
    before = gv.Simulation(scene, 1e-3).cast_rays((0, 0, 9), (0, 0, -1)).distance
    assert before == pytest.approx(gv.Simulation(scene, 1e-3).cast_rays((5, 0, 9), (0, 0, -1)).distance, abs=1e-9)


# --- clumps
def lens(r, s, d):
    """Volume that balls of radii r and s with centres d apart share."""
    return np.pi * (r + s - d) ** 2 * (d**2 + 2 * d * (r + s) - 3 * (r - s) ** 2) / (12 * d)


def ball(r):
    return 4 / 3 * np.pi * r**3


@pytest.mark.parametrize("d", [0.3, 1.0, 1.5])
@pytest.mark.parametrize("direction", [(0, 0, 1), (0.6, 0.8, 0), (1, 2, -3)])
def test_two_overlapping_spheres(d, direction):
    direction = np.array(direction) / np.linalg.norm(direction)
    shape = gv.Clump([(7, 8, 9), (7, 8, 9) + d * direction], [1.0, 0.9])
    assert shape.volumes(1)[0] == pytest.approx(ball(1) + ball(0.9) - lens(1.0, 0.9, d), rel=2e-5)
    # area of the section at x along the line of centres, from the first one: exact moments by fine sums
    x = np.linspace(-1, d + 0.9, 200_001)
    area = np.pi * np.maximum(np.maximum(1 - x**2, 0.81 - (x - d) ** 2), 0)
    volume, middle = area.sum(), (area * x).sum() / area.sum()
    along = (area * area / np.pi).sum() / 2 / volume
    across = along / 2 + (area * (x - middle) ** 2).sum() / volume
    assert shape.mass_frame[0] == pytest.approx((7, 8, 9) + middle * direction, abs=2e-5)
    expected = across * (np.eye(3) - np.outer(direction, direction)) + along * np.outer(direction, direction)
    assert np.allclose(tensor_of(shape), expected, rtol=0, atol=1e-4)


def test_spheres_apart_are_exact():
    shape = gv.Clump([(0, 0, 0), (2, 0, 0), (0, 0, 0.1)], [1.0, 1.0, 0.2], scale=[1.0, 2.0])
    assert shape.volumes(2) == pytest.approx([2 * ball(1), 16 * ball(1)], rel=1e-14)
    assert shape.inertias(np.ones(2))[1] == pytest.approx([1.6, 5.6, 5.6], rel=1e-14)
    assert shape.geometry(True).half == pytest.approx([2, 1, 1]) and shape.count == 2
    assert shape.take(np.array([1])).geometry(True) is shape.geometry(True)
    assert len(children_of(gv.Clump([(0, 0, 0)], 1.0))) == 1


def check_inside(clump, mesh):
    for centre in clump.positions:
        assert winding_number(centre, mesh.vertices, mesh.triangles) == pytest.approx(1)
    out = clump.radii - distances(clump.positions, mesh.vertices, mesh.triangles)
    assert out.max() < 1e-9 * np.ptp(mesh.vertices, axis=0).max()


@pytest.mark.parametrize(
    "name, least, given",
    [
        ("L", 0.82, {}),
        ("torus", 0.9, {}),
        ("L", 0.6, {"radius": 0.25, "resolution": 24}),
        ("torus", 0.7, {"spheres": 16, "resolution": 24}),
    ],
)
def test_clump_of_a_body_that_is_not_convex(name, least, given):
    torus = trimesh.creation.torus(1.0, 0.3, 24, 12)
    mesh = gv.Mesh(*(l_mesh() if name == "L" else (torus.vertices, torus.faces)))
    mesh = gv.Mesh(placed(mesh.vertices), mesh.triangles, scale=2.0)
    clump = gv.Clump.from_mesh(mesh, **given)
    check_inside(clump, mesh)
    assert least < clump.coverage < 1
    assert len(clump.radii) <= given.get("spheres", 50) or "radius" in given
    assert "radius" not in given or (clump.radii == 0.25).all()
    assert clump.volumes(1)[0] == pytest.approx(mesh.volumes(1)[0]) and clump.scale == 2.0
    assert clump.inertias(np.ones(1)) == pytest.approx(mesh.inertias(np.ones(1)))
    assert np.array_equal(clump.mass_frame[0], mesh.mass_frame[0])
    union = gv.Clump(clump.positions, clump.radii)
    assert union.volumes(1)[0] / mesh.mass.volume == pytest.approx(clump.coverage)


def test_clump_of_a_file_is_the_same_every_time(tmp_path):
    path = tmp_path / "l.ply"
    trimesh.Trimesh(*l_mesh(), process=False).export(path)
    clumps = [gv.Clump.from_mesh(path, spheres=5, resolution=16) for _ in range(2)]
    assert clumps[0].positions.tobytes() == clumps[1].positions.tobytes() and len(clumps[0].radii) == 5


def test_clump_keeps_out_of_a_cavity():
    (outer, triangles), (inner, _) = box_mesh((-1, -1, -1), (1, 1, 1)), box_mesh((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5))
    mesh = gv.Mesh(np.concatenate([outer, inner]), np.concatenate([triangles, triangles[:, ::-1] + len(outer)]))
    check_inside(gv.Clump.from_mesh(mesh, spheres=20, resolution=24), mesh)


@pytest.mark.parametrize("seed", range(3))
def test_distances_to_triangles(seed):
    """Against the nearest of many points on the triangles."""
    rng = np.random.default_rng(seed)
    vertices, triangles = rng.normal(size=(30, 3)), rng.permutation(30).reshape(10, 3)
    weights = np.array([(a, b, 1 - a - b) for a, b in itertools.product(np.linspace(0, 1, 101), repeat=2) if a + b <= 1 + 1e-12])
    samples = np.einsum("sk,tki->tsi", weights, vertices[triangles]).reshape(-1, 3)
    points = rng.normal(size=(20, 3))
    nearest = np.linalg.norm(points[:, None] - samples, axis=2).min(axis=1)
    found = distances(points, vertices, triangles)
    assert (found <= nearest + 1e-12).all() and (nearest**2 - found**2 < 0.04**2).all()


# --- what is refused
V, T = TETRAHEDRON


def with_value(array, index, value):
    changed = np.array(array, dtype=np.asarray(value).dtype if np.asarray(value).dtype.kind == "f" else None)
    changed[index] = value
    return changed


@pytest.mark.parametrize(
    "call, words, error",
    [
        (lambda: gv.ConvexHull(CORNERS[:3]), ("ConvexHull points", "at least four", "3"), ValueError),
        (lambda: gv.ConvexHull(np.zeros((0, 3))), ("at least four", "0"), ValueError),
        (lambda: gv.ConvexHull(np.ones((9, 3))), ("span a volume", "[1.0, 1.0, 1.0]"), ValueError),
        (lambda: gv.ConvexHull(np.outer(np.arange(9), (1, 2, 3))), ("span a volume", "on one line"), ValueError),
        (lambda: gv.ConvexHull(placed(CORNERS * (1, 1, 0))), ("span a volume", "on one plane"), ValueError),
        (lambda: gv.ConvexHull(with_value(CORNERS, (2, 1), NAN)), ("points[2, 1]", "nan"), ValueError),
        (lambda: gv.ConvexHull(with_value(CORNERS, (2, 1), INF)), ("points[2, 1]", "inf"), ValueError),
        (lambda: gv.ConvexHull(CORNERS[:, :2]), ("points", "(N, 3)", "(8, 2)"), ValueError),
        (lambda: gv.ConvexHull("cube.stl"), ("points", "'cube.stl'"), TypeError),
        (lambda: gv.ConvexHull(CORNERS, scale=0), ("ConvexHull scale", "greater than 0"), ValueError),
        (lambda: gv.ConvexHull(CORNERS, scale=[1, -2]), ("scale[1]", "-2"), ValueError),
        (lambda: gv.ConvexHull(CORNERS, scale=np.ones((2, 2))), ("scale", "(2, 2)"), ValueError),
        (lambda: gv.ConvexHull(CORNERS, scale="mm"), ("scale", "'mm'"), TypeError),
        (lambda: gv.Mesh(V, T, scale=-1.0), ("Mesh scale", "-1"), ValueError),
        (lambda: gv.Mesh(V, T, scale=NAN), ("Mesh scale", "nan"), ValueError),
        (lambda: gv.Mesh(with_value(V, (3, 2), NAN), T), ("Mesh vertices[3, 2]", "nan"), ValueError),
        (lambda: gv.Mesh(V[:, :2], T), ("Mesh vertices", "(4, 2)"), ValueError),
        (lambda: gv.Mesh(V, with_value(T, (1, 2), 4)), ("triangles[1, 2] is 4", "0 to 3"), ValueError),
        (lambda: gv.Mesh(V, with_value(T, (0, 0), -1)), ("triangles[0, 0] is -1", "0 to 3"), ValueError),
        (lambda: gv.Mesh(V, T[:, :2]), ("Mesh triangles", "(4, 2)"), ValueError),
        (lambda: gv.Mesh(V, T + 0.5), ("Mesh triangles", "whole numbers", "float64"), TypeError),
        (lambda: gv.Mesh(V, [(0, 1, 2), (0, 1)]), ("Mesh triangles", "(N, 3)"), TypeError),
        (lambda: gv.Mesh(V, 3), ("Mesh triangles", "(N, 3)"), ValueError),
        (lambda: gv.Mesh(V, []), ("Mesh triangles", "at least one"), ValueError),
        (lambda: gv.Mesh(V, np.zeros((0, 3), int)), ("Mesh triangles", "at least one"), ValueError),
        (lambda: gv.Mesh(V, [(0, 1, 1)]), ("triangles", "no area"), ValueError),
        (lambda: gv.Mesh(np.outer(np.arange(3), (1, 1, 1)), [(0, 1, 2)]), ("triangles", "no area"), ValueError),
        (lambda: gv.Mesh(V, T, repair="yes"), ("repair", "'yes'"), TypeError),
        (lambda: gv.HeightField(np.zeros(4), 1.0), ("heights", "(4,)"), ValueError),
        (lambda: gv.HeightField(np.zeros((1, 5)), 1.0), ("heights", "2 x 2", "1 x 5"), ValueError),
        (lambda: gv.HeightField(with_value(np.zeros((3, 3)), (1, 2), NAN), 1.0), ("heights[1, 2]", "nan"), ValueError),
        (lambda: gv.HeightField(np.zeros((3, 3)), 0.0), ("spacing", "greater than 0"), ValueError),
        (lambda: gv.HeightField(np.zeros((3, 3)), (1, -1)), ("spacing[1]", "-1"), ValueError),
        (lambda: gv.HeightField(np.zeros((3, 3)), "wide"), ("spacing", "'wide'"), TypeError),
        (lambda: gv.HeightField(np.zeros((3, 3)), 1.0, origin=(0, 0, 0)), ("origin", "(3,)"), ValueError),
        (lambda: gv.HeightField.from_function(3, (0, 0), (1, 1), 0.1), ("function", "3"), TypeError),
        (lambda: gv.HeightField.from_function(min, (0, 0), (1, 0), 0.1), ("high", "low"), ValueError),
        (lambda: gv.HeightField.from_function(lambda x, y: x[0], (0, 0), (1, 1), 0.5), ("function", "(3, 3)", "(3,)"), ValueError),
        (lambda: gv.Compound([]), ("Compound items", "at least one"), ValueError),
        (lambda: gv.Compound(gv.Sphere(1)), ("Compound items", "list"), TypeError),
        (lambda: gv.Compound([gv.Sphere(1)]), ("items[0]", "(shape, position, quaternion)"), TypeError),
        (lambda: gv.Compound([(1, (0, 0, 0))]), ("items[0]", "1"), TypeError),
        (lambda: gv.Compound([(gv.Sphere, (0, 0, 0))]), ("items[0]", "Sphere"), TypeError),
        (lambda: gv.Compound([(gv.Sphere(1),), (gv.Plane(),)]), ("items[1]", "Plane"), ValueError),
        (lambda: gv.Compound([(gv.Mesh(V, T),)]), ("items[0]", "Mesh", "cannot be a child"), ValueError),
        (lambda: gv.Compound([(gv.HeightField(np.zeros((2, 2)), 1),)]), ("items[0]", "HeightField"), ValueError),
        (lambda: gv.Compound([(gv.Sphere([1, 2]),)]), ("items[0]", "one size", "2"), ValueError),
        (lambda: gv.Compound([(gv.Sphere(1), (0, NAN, 0))]), ("items[0] position[1]", "nan"), ValueError),
        (lambda: gv.Compound([(gv.Sphere(1), (0, 0, 0), (0, 0, 0, 0))]), ("items[0] quaternion", "zero"), ValueError),
        (lambda: gv.Compound([(gv.Sphere(1),)], [0.0]), ("relative_densities[0]", "greater than 0"), ValueError),
        (lambda: gv.Compound([(gv.Sphere(1),)], [1, 2]), ("relative_densities", "(2,)"), ValueError),
        (lambda: gv.Clump(np.zeros((0, 3)), 1.0), ("Clump positions", "at least one"), ValueError),
        (lambda: gv.Clump([(0, 0, NAN)], 1.0), ("Clump positions[0, 2]", "nan"), ValueError),
        (lambda: gv.Clump(V, [1, 1, 1]), ("Clump radii", "(4,)", "(3,)"), ValueError),
        (lambda: gv.Clump(V, [1, 1, 0, 1]), ("Clump radii[2]", "greater than 0"), ValueError),
        (lambda: gv.Clump(V, "big"), ("Clump radii", "'big'"), TypeError),
        (lambda: gv.Clump(V, 1.0, samples=2), ("samples", "16", "2"), ValueError),
        (lambda: gv.Clump(V, 1.0, scale=0.0), ("Clump scale", "greater than 0"), ValueError),
        (lambda: gv.Clump.from_mesh(gv.Mesh(V, T[1:])), ("not closed",), ValueError),
        (lambda: gv.Clump.from_mesh(gv.Mesh(V, T, scale=[1, 2])), ("2 scales",), ValueError),
        (lambda: gv.Clump.from_mesh(gv.Mesh(V, T), spheres=0), ("spheres", "0"), ValueError),
        (lambda: gv.Clump.from_mesh(gv.Mesh(V, T), radius=-1), ("radius", "-1"), ValueError),
        (lambda: gv.Clump.from_mesh(gv.Mesh(V, T), radius=0.9), ("radius 0.9", "fits"), ValueError),
        (lambda: gv.Clump.from_mesh(gv.Mesh(V, T), resolution=1), ("resolution", "1"), ValueError),
    ],
)
def test_refused(call, words, error):
    refuse(call, *words, error=error)


def test_shapes_cannot_be_changed():
    shape = gv.ConvexHull(CORNERS)
    with pytest.raises(AttributeError):
        shape.scale = 2.0
    with pytest.raises(ValueError):
        shape.vertices[0] = 0
    with pytest.raises(ValueError):
        gv.Mesh(V, T).vertices[0] = 0


def test_callers_arrays_stay_theirs():
    points = CORNERS.copy()
    shape = gv.ConvexHull(points)
    points[:] = 0
    assert shape.geometry(False).radius == pytest.approx(np.sqrt(3))
