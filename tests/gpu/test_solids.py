"""Convex solids and meshes on the device, in single precision, against the CPU's in double."""

import numpy as np
import pytest
import warp as wp
from on_device import DEVICE, on_cpu, on_device, to_device
from solid_pairs import LIBRARY, MANY, SHAPES, Found, cases_of, found_by_cpu, inputs_of, moved, size_of, stone

import gravel as gv
from gravel.cpu.collide.shape_pairs import BOXES, CONVEX, MESH_PAIRS, MESHES, ROUND
from gravel.detection import find as detection
from gravel.formulas.tables import table_between
from gravel.gpu import structs
from gravel.gpu.buffers import DeviceBuffers
from gravel.gpu.collide.shape_pair_types import Rows, ShapePairs, Shapes, Task, children_on
from gravel.gpu.collide.shape_pairs import TABLES
from gravel.shapes import COMPOUND

ARRAYS = DeviceBuffers(DEVICE)
CLOSE = 1e-5  # of the size
HAIR = 1e-6  # by which poses are moved to see what the CPU makes of it


def found_by_device(cases):
    n, (table, proxies, a, b) = len(cases.d), inputs_of(cases)
    whole = lambda values: wp.array(np.asarray(values, np.int32), device=DEVICE)  # noqa: E731
    shape_pairs, rows = ShapePairs(), Rows()
    shape_pairs.pair, shape_pairs.table, shape_pairs.start = whole(np.arange(n)), whole(np.full(n, table)), whole(np.arange(n + 1) * MANY)
    shape_pairs.child_a, shape_pairs.child_b = whole(np.full(n, -1)), whole(np.full(n, -1))
    shape_pairs.found, shape_pairs.most = whole(np.zeros(n)), whole([0])
    rows.values, rows.feature = wp.zeros((n * MANY, 7), device=DEVICE), whole(np.zeros(n * MANY))
    pairs = to_device(structs.Pairs, {"a": a, "b": b, "first": np.arange(n + 1)})
    things = to_device(structs.Proxies, proxies._asdict()), pairs, children_on(LIBRARY, DEVICE), shape_pairs, rows
    TABLES[table](Task(0, n, shape_pairs.pair, *things, MANY, Shapes(LIBRARY, 0), ARRAYS, DEVICE))
    return Found(shape_pairs.found.numpy(), rows.values.numpy().reshape(n, MANY, 7), rows.feature.numpy().reshape(n, MANY))


# --- what is compared
def deepest(found):
    """The deepest contact of each pair; gap 1 where there is none."""
    gaps = np.where(np.arange(MANY) < found.count[:, None], found.rows[:, :, 6], 1.0)
    rows = found.rows[np.arange(len(gaps)), gaps.argmin(axis=1)].astype(float)
    rows[:, 6] = gaps.min(axis=1)
    return rows


def places(found, size):
    """How many contacts each pair has; those that lie at one place, but for 1e-3 of the size, are one: whether a point of a face stands
    for the deepest point is a matter of 1e-5."""
    count = found.count.copy()
    for k in np.flatnonzero(count > 1):
        number = found.count[k]
        points = found.rows[k, :number, 3:6]
        near = np.linalg.norm(points[:, None] - points[None], axis=2) < 1e-3 * size
        alike = found.rows[k, :number, :3] @ found.rows[k, :number, :3].T > 0.999
        count[k] = number - np.tril(near & alike, -1).any(axis=1).sum()
    return count


class Comparison:
    """Pairs on the CPU and on the device, and how far the CPU's own results change when poses are moved by a hair: where by more
    than a few hairs, the geometry is degenerate (ties of axes, of triangles at an edge), and so they say little about the device."""

    def __init__(self, a, b, n, aligned, seed=11):
        cases, rng = cases_of(a, b, n, seed, aligned), np.random.default_rng(seed)
        self.size, self.cpu, self.device = size_of(cases), found_by_cpu(cases), found_by_device(cases)
        assert np.isfinite(self.device.rows).all()
        here, there = deepest(self.cpu), deepest(self.device)
        others = [found_by_cpu(moved(cases, rng, HAIR)) for _ in range(3)]
        rows = np.array([deepest(other) for other in others])
        self.touching = (here[:, 6] < 1.0) & (there[:, 6] < 1.0)
        self.alone = (self.cpu.count > 0) != (self.device.count > 0)
        self.better = (there[:, 6] - here[:, 6]) / self.size  # a larger gap along some normal is the truer one
        self.turned = np.linalg.norm(there[:, :3] - here[:, :3], axis=1)
        self.shifted = np.linalg.norm(there[:, 3:6] - here[:, 3:6], axis=1) / self.size
        self.sure = (np.abs(rows[:, :, 6] - here[:, 6]) < CLOSE * self.size).all(axis=0)
        self.sure_normal = self.sure & (np.linalg.norm(rows[:, :, :3] - here[:, :3], axis=2) < 20 * HAIR).all(axis=0)
        self.sure_point = self.sure_normal & (np.linalg.norm(rows[:, :, 3:6] - here[:, 3:6], axis=2) < 20 * HAIR * self.size).all(axis=0)
        counts = places(self.cpu, self.size)
        self.sure_count = self.sure & np.all([places(other, self.size) == counts for other in others], axis=0)
        self.uncounted = places(self.device, self.size) != counts
        self.depth = -here[:, 6] / self.size

    def shallow(self):
        """The same without what has sunk in by more than a tenth of the size."""
        for name in ("sure", "sure_normal", "sure_point", "sure_count"):
            setattr(self, name, getattr(self, name) & (self.depth < 0.1))
        return self


def share(marks, among):
    return (marks & among).sum() / max(among.sum(), 1)


def check(pairs, few, close=CLOSE):
    """Gaps agree, but for a share of ``few``, and numbers of contacts but for 1 % besides."""
    assert share(pairs.touching, pairs.sure) > 0.05
    assert share(pairs.alone, pairs.sure) <= few
    touching = pairs.touching & pairs.sure
    assert share(np.abs(pairs.better) > close, touching) <= few
    assert share(pairs.uncounted, pairs.touching & pairs.sure_count) < 0.01 + few


def check_flat(pairs, few=0.0):
    """Solids with flat faces, and balls and capsules: normals and points are as precise as gaps."""
    check(pairs, few)
    assert share(pairs.turned > CLOSE, pairs.touching & pairs.sure_normal) < 0.005 + few
    assert share(pairs.shifted > CLOSE, pairs.touching & pairs.sure_point) < 0.01 + few


def check_curved(pairs, few=0.0, turned=3e-4):
    """Curved solids: normals are known to the root of the precision of gaps, 1e-4 on the CPU, and points no better. A corner that is
    shown stands for the deepest point if it is as deep but for 1e-5, so gaps may differ by that and by their own error."""
    check(pairs, few, 2 * CLOSE)
    assert share(pairs.turned > turned, pairs.touching & pairs.sure_normal) < 0.01 + few
    assert share(pairs.shifted > 2e-3, pairs.touching & pairs.sure_point) < 0.1


FLAT = [
    "sphere-hull",
    "sphere-round hull",
    "capsule-box",
    "capsule-capsule",
    "capsule-hull",
    "box-hull",
    "hull-hull",
    "round hull-round hull",
    "sphere-rounded box",
    "capsule-rounded box",
    "box-rounded box",
    "hull-rounded box",
]
ON_PLANE = [
    "capsule-plane",
    "cylinder-plane",
    "cone-plane",
    "hull-plane",
    "rounded box-plane",
    "round hull-plane",
    "block-plane",
    "torus-plane",
    "terrain-plane",
]
CURVED = ["ellipsoid-box", "ellipsoid-capsule", "ellipsoid-cylinder", "ellipsoid-hull", "capsule-cylinder", "cylinder-box"]
CURVED += ["ellipsoid-rounded box", "cylinder-rounded box"]
CURVED += ["cylinder-cylinder", "cylinder-hull"]
CONES = ["ellipsoid-cone", "capsule-cone", "cone-box", "cylinder-cone", "cone-cone", "cone-hull"]
POSES = pytest.mark.parametrize("aligned", [False, True], ids=["random", "aligned"])


@POSES
@pytest.mark.parametrize("names", FLAT)
def test_solids_with_flat_faces(names, aligned):
    check_flat(Comparison(*names.split("-"), 2000, aligned))


@POSES
def test_two_rounded_boxes(aligned):
    """Aligned, some stand on an edge: two faces of a core look along the normal alike, rounding decides which of them is laid over the
    other body's face, and so how many of its corners are near enough. The deepest contact is the same."""
    pairs = Comparison("rounded box", "rounded box", 2000, aligned)
    assert (np.abs(pairs.better) <= CLOSE)[pairs.touching & pairs.sure].all()
    check_flat(pairs, few=0.005 if aligned else 0.0)


@POSES
@pytest.mark.parametrize("names", ON_PLANE)
def test_solids_on_a_plane(names, aligned):
    check_flat(Comparison(*names.split("-"), 2000, aligned))


@POSES
@pytest.mark.parametrize("names", CURVED)
def test_curved_solids(names, aligned):
    check_curved(Comparison(*names.split("-"), 2000, aligned))


@POSES
@pytest.mark.parametrize("names", CONES)
def test_cones(names, aligned):
    """Deep in each other, cones that stand in line have no one normal, and the CPU's polytope has too few vertices for their sides: there
    the device may find a larger gap, and never a smaller one."""
    pairs = Comparison(*names.split("-"), 2000, aligned)
    assert (pairs.better[pairs.touching & pairs.sure] > -CLOSE).all()
    check_curved(pairs, few=0.02 if aligned else 0.0, turned=4e-3)


@POSES
@pytest.mark.parametrize("mesh", ["torus", "block", "terrain"])
@pytest.mark.parametrize("name", ["sphere", "capsule", "box", "hull", "round hull", "rounded box"])
def test_flat_solids_on_meshes(name, mesh, aligned):
    """What has sunk so deep that only edges would push it aside is pushed out of the deepest triangle. Two that share the edge are as deep
    but for rounding: there the engines may differ. And a ball whose centre is behind an edge of a flat face has no contact there."""
    pairs = Comparison(name, mesh, 300, aligned)
    check(pairs, few=0.02)
    if not aligned:  # there, several contacts are as deep as each other
        check_flat(pairs.shallow(), few=0.005)


# deep ones as above; and the CPU's own normals, known to 1e-4, decide which triangles are as deep as each other
@POSES
@pytest.mark.parametrize("mesh", ["torus", "block", "terrain"])
@pytest.mark.parametrize("name", ["ellipsoid", "cylinder", "cone"])
def test_curved_solids_on_meshes(name, mesh, aligned):
    check_curved(Comparison(name, mesh, 300, aligned), few=0.04, turned=4e-3 if name == "cone" else 3e-4)


@POSES
@pytest.mark.parametrize("names", ["torus-torus", "torus-block", "block-block", "torus-terrain", "block-terrain"])
def test_two_meshes(names, aligned):
    """Meshes find each other where they overlap by little. Of aligned ones, several contacts are as deep as each other: any of them may
    come out as the deepest."""
    pairs = Comparison(*names.split("-"), 200, aligned).shallow()
    check(pairs, 0.0) if aligned else check_flat(pairs)


# --- all tables in one scene
def mixed_scene(n, seed):
    """A heap of all shapes, compounds too, over a terrain and around a sheet and a plane."""
    rng, scene = np.random.default_rng(seed), gv.Scene()
    scene.add_body(SHAPES["terrain"], (0, 0, -0.6), fixed=True)
    scene.add_body(gv.Plane(), (0, 0, -0.9), fixed=True)
    chair = gv.Compound(
        [(gv.Box((0.3, 0.3, 0.05)), (0, 0, 0)), (stone(12, 7), (0.2, 0, -0.5)), (gv.Cylinder(0.05, 0.4), (-0.2, 0.2, -0.4))]
    )
    for shape in [*(SHAPES[name] for name in SHAPES if name not in ("terrain", "plane")), chair]:
        q = rng.normal(size=(n, 4))
        scene.add_bodies(shape, rng.uniform(-1.5, 1.5, (n, 3)), quaternions=q / np.linalg.norm(q, axis=1, keepdims=True))
    return scene


def gaps_of_pairs(found):
    """The deepest gap of each pair that touches."""
    gaps = {}
    for a, b, gap in zip(found.a.tolist(), found.b.tolist(), found.gap.tolist()):
        gaps[a, b] = min(gap, gaps.get((a, b), gap))
    return gaps


def test_scene_of_all_shapes_has_the_contacts_of_the_cpu():
    engine = detection.detect_scene(mixed_scene(12, 5), margin=0.02)
    here, there = on_cpu(engine), on_device(engine)
    reach = engine.detector.proxies.sphere[:, 3]
    kinds = engine.detector.proxies.tag[:, 0]
    tables = {table_between(*p) for p in zip(kinds[here.a].tolist(), kinds[here.b].tolist()) if COMPOUND not in p}
    assert tables == {ROUND, BOXES, CONVEX, MESHES, MESH_PAIRS} and len(here.a) > 1000
    mine, theirs = gaps_of_pairs(here), gaps_of_pairs(there)
    both = mine.keys() & theirs.keys()
    assert len(mine.keys() ^ theirs.keys()) <= 0.003 * len(mine)
    close = [abs(mine[pair] - theirs[pair]) < 2 * CLOSE * min(reach[list(pair)]) for pair in both]
    assert np.mean(close) > 0.98  # but for ties in those that are deep in each other
    assert len(set(here.names) & set(there.names)) > 0.93 * len(here.a)  # names are sectors, at whose borders rounding chooses


def test_scene_gives_the_same_bits_again_and_after_room_has_grown():
    engine, arrays = detection.detect_scene(mixed_scene(6, 8), margin=0.02), DeviceBuffers(DEVICE)
    first, second, third = on_device(engine, arrays), on_device(engine, arrays), on_device(engine)
    assert all(np.array_equal(x, y) and np.array_equal(x, z) for x, y, z in zip(first, second, third))


def test_contacts_scale_with_the_bodies():
    """Bodies of micrometres: powers of their size stay within the range of single precision."""
    cases = cases_of("hull", "round hull", 300, 3)
    tiny = cases._replace(
        size=tuple(2.0**-40 * size for size in cases.size),
        radius=tuple(2.0**-40 * radius for radius in cases.radius),
        d=2.0**-40 * cases.d,
        limit=2.0**-40 * cases.limit,
    )
    here, there = found_by_device(cases), found_by_device(tiny)
    assert np.array_equal(here.count, there.count) and here.count.sum() > 300
    scale = np.array([1, 1, 1, *[2.0**40] * 4])
    assert np.allclose(here.rows, there.rows * scale, atol=1e-6)
