"""Parts of STEP files: exact mass properties against formulas and the CAD kernel, units, places, names, colours, and what is refused."""

import math
import os
import re
import sys

import build123d as b3d
import numpy as np
import pytest
from cad_parts import Document, kernel_volume, write_part
from OCP.BRepAdaptor import BRepAdaptor_Curve
from OCP.gp import gp_Pnt, gp_Vec

import gravel as gv
from gravel.cad.step import read_step, unique


def only(path):
    (product,) = read_step(path).products
    return product


def test_a_cylinder_weighs_what_the_formula_says(tmp_path):
    r, h = 0.02, 0.06
    product = only(write_part(tmp_path / "a.step", b3d.Pos(10, 20, 30) * b3d.Cylinder(1e3 * r, 1e3 * h)))
    volume = math.pi * r**2 * h
    assert product.volume == pytest.approx(volume, rel=1e-12)
    assert np.allclose(product.centre, (0.01, 0.02, 0.03), atol=1e-12)
    side = volume * (3 * r**2 + h**2) / 12
    assert np.allclose(product.inertia, np.diag([side, side, volume * r**2 / 2]), rtol=1e-9, atol=1e-9 * side)
    (face,) = product.cylinders
    assert face.radius == pytest.approx(r) and face.high - face.low == pytest.approx(h) and not face.hole
    assert np.allclose(np.cross(face.direction, (0, 0, 1)), 0) and np.allclose(face.point[:2], (0.01, 0.02))


def test_a_box_with_a_hole_off_its_middle_weighs_what_the_formula_says(tmp_path):
    a, b, c, r, x = 0.1, 0.06, 0.02, 0.01, 0.025
    shape = b3d.Box(100, 60, 20) - b3d.Pos(25, 0, 0) * b3d.Cylinder(10, 30)
    product = only(write_part(tmp_path / "a.step", shape))
    whole, hole = a * b * c, math.pi * r**2 * c
    volume, centre = whole - hole, -hole * x / (whole - hole)
    assert product.volume == pytest.approx(volume, rel=1e-12)
    assert np.allclose(product.centre, (centre, 0, 0), atol=1e-13)
    ixx = whole * (b**2 + c**2) / 12 - hole * (3 * r**2 + c**2) / 12
    iyy = whole * (a**2 + c**2) / 12 - hole * ((3 * r**2 + c**2) / 12 + x**2) - volume * centre**2
    izz = whole * (a**2 + b**2) / 12 - hole * (r**2 / 2 + x**2) - volume * centre**2
    assert np.allclose(product.inertia, np.diag([ixx, iyy, izz]), rtol=1e-9, atol=1e-9 * izz)
    assert [face.hole for face in product.cylinders] == [True]


def point_and_slope(curve, at):
    point, slope = gp_Pnt(), gp_Vec()
    curve.D1(at, point, slope)
    return point.X(), point.Y(), slope.Y()


def test_moments_of_free_form_surfaces_are_as_right_as_their_volume(tmp_path):
    """A turned vase against Gauss quadrature along its outline, which shares no code with the kernel's integration."""
    curve = b3d.Spline((10, 0), (30, 20), (15, 60), (10, 80), tangents=((1, 0), (0, 1)))
    outline = curve.edges() + b3d.Polyline((10, 80), (0, 80), (0, 0), (10, 0)).edges()
    product = only(write_part(tmp_path / "vase.step", b3d.revolve(b3d.make_face(outline), axis=b3d.Axis.Y)))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    along = BRepAdaptor_Curve(curve.edge().wrapped)
    ends = np.linspace(along.FirstParameter(), along.LastParameter(), 301)
    t = (0.5 * (ends[1:] + ends[:-1])[:, None] + 0.5 * np.diff(ends)[:, None] * nodes).ravel()
    x, y, slopes = 1e-3 * np.array([point_and_slope(along, s) for s in t]).T
    dy = math.pi * slopes * (0.5 * np.diff(ends)[:, None] * weights).ravel()
    volume, first = dy @ x**2, dy @ (x**2 * y)
    side, axial = dy @ (x**4 / 4 + x**2 * y**2) - first**2 / volume, dy @ x**4 / 2
    assert product.volume == pytest.approx(volume, rel=1e-8)
    assert np.allclose(np.diag(product.inertia), (side, axial, side), rtol=1e-7)


ROUND = {
    "sphere": lambda: b3d.Sphere(20),
    "torus": lambda: b3d.Torus(50, 12),
    "crossed bores": lambda: b3d.Rot(31, 17, 5) * b3d.Cylinder(20, 60) - b3d.Rot(0, 90, 0) * b3d.Cylinder(7, 80),
    "rounded": lambda: b3d.fillet(b3d.Box(100, 60, 40).edges(), 3),
}


@pytest.mark.parametrize("shape", ROUND)
def test_masses_are_the_kernels_and_triangles_close(shape, tmp_path):
    """Read back from the file, whose numbers have 15 digits; a mesh of the file weighs the same, though its triangles do not."""
    solid = ROUND[shape]()
    path = write_part(tmp_path / "a.step", solid)
    mesh = gv.Mesh.from_file(path)
    assert mesh.closed and mesh.mass.volume == pytest.approx(kernel_volume(solid), rel=1e-9)
    bare = gv.Mesh(mesh.vertices, mesh.triangles)
    assert 1e-6 < abs(bare.mass.volume / mesh.mass.volume - 1) < 0.05
    assert np.allclose(bare.mass.centre, mesh.mass.centre, atol=1e-4)


@pytest.mark.parametrize("unit, name", [("MM", "millimetre"), ("INCH", "inch"), ("M", "metre")])
def test_units_come_from_the_file(unit, name, tmp_path):
    path = write_part(tmp_path / "a.stp", b3d.Pos(25.4, 0, 0) * b3d.Box(50.8, 25.4, 12.7), unit=unit)
    written = {"MM": "25.4", "INCH": "1.", "M": "2.54E-02"}[unit]
    assert re.search(rf"CARTESIAN_POINT\('[^']*',\([^)]*\b{re.escape(written)}", path.read_text())  # it is another file
    model = read_step(path)
    assert model.unit == name
    assert model.products[0].volume == pytest.approx(0.0508 * 0.0254 * 0.0127, rel=1e-9)
    hull = gv.ConvexHull.from_file(path)
    low, high = hull.vertices.min(axis=0), hull.vertices.max(axis=0)
    assert np.allclose(low, (0, -0.0127, -0.00635)) and np.allclose(high, (0.0508, 0.0127, 0.00635))
    assert hull.mass.volume == pytest.approx(0.0508 * 0.0254 * 0.0127, rel=1e-9)


def test_triangles_keep_the_tolerance(tmp_path):
    path = write_part(tmp_path / "a.step", b3d.Sphere(100))
    reached = {}
    for tolerance in (5e-3, 2e-4):
        (product,) = read_step(path, tolerance).products
        middles = product.vertices[product.triangles].mean(axis=1)
        assert np.allclose(np.linalg.norm(product.vertices, axis=1), 0.1)
        reached[tolerance] = (0.1 - np.linalg.norm(middles, axis=1)).max()
        assert reached[tolerance] <= tolerance
    assert reached[2e-4] < 0.5 * reached[5e-3]


def test_nested_and_repeated_parts_are_placed_named_and_coloured(tmp_path):
    document = Document()
    wheel = document.product("wheel", b3d.Box(10, 20, 30), (1.0, 0.0, 0.0))
    beam = document.product("beäm 箱", b3d.Pos(5, 0, 0) * b3d.Box(100, 10, 10))
    turn, move = b3d.Location((50, 0, 0), (0, 0, 90)), b3d.Location((-50, 0, 7))
    bogie = document.assembly("bogie", [(wheel, turn, "left"), (wheel, move, "right")])
    outer = b3d.Location((0, 200, 0), (30, 0, 0))
    hook = document.product("hook", b3d.Box(2, 2, 2), (0.0, 1.0, 0.0))
    document.assembly(
        "train",
        [(beam, b3d.Location(), "b:1"), (bogie, b3d.Location(), "front"), (bogie, outer, "rear"), (hook, move, "h", (0.0, 0.0, 1.0))],
    )
    model = read_step(document.write(tmp_path / "a.step"))
    assert model.name == "train" and len(model.products) == 3
    assert [part.name for part in model.parts] == ["beäm 箱", "wheel.1", "wheel.2", "wheel.3", "wheel.4", "hook"]
    assert [[name for name, _ in part.path] for part in model.parts[1:3]] == [["train", "bogie", "wheel"]] * 2
    assert {"rear", "left", "wheel", "bogie", "train"} == model.parts[3].names
    assert [part.colour for part in model.parts] == [None, *[(1, 0, 0)] * 4, (0, 0, 1)]

    def matrix(degrees, axis, place):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        turned = {"z": [[c, -s, 0], [s, c, 0], [0, 0, 1]], "x": [[1, 0, 0], [0, c, -s], [0, s, c]]}[axis]
        return np.block([[np.array(turned), np.array(place)[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])

    left, right, rear = matrix(90, "z", (0.05, 0, 0)), matrix(0, "z", (-0.05, 0, 0.007)), matrix(30, "x", (0, 0.2, 0))
    expected = [np.eye(4), left, right, rear @ left, rear @ right, right]
    assert all(np.allclose(part.pose, pose, atol=1e-12) for part, pose in zip(model.parts, expected))


def test_a_file_that_has_changed_is_read_again(tmp_path):
    path = write_part(tmp_path / "a.step", b3d.Box(10, 10, 10))
    before = read_step(path)
    assert read_step(path) is before and read_step(path, 1e-3) is not before
    write_part(path, b3d.Box(10, 10, 20))
    assert read_step(path).products[0].volume == pytest.approx(2 * before.products[0].volume)


def test_unique_names_never_meet_those_that_are_there():
    assert unique(["a", "b", "a", "a.1", "a"]) == ["a.2", "b", "a.3", "a.1", "a.4"]


def test_parts_that_nobody_named_are_called_by_what_is_around_them(tmp_path):
    document = Document()
    document._named(document.shapes.AddShape((b3d.Pos(10, 20, 30) * b3d.Box(1, 1, 1)).wrapped, False), "plate")  # placed at once
    (part,) = read_step(document.write(tmp_path / "a.step")).parts
    assert part.name == "plate" and np.allclose(part.pose[:3, 3], (0.01, 0.02, 0.03))


def test_a_mesh_of_an_assembly_weighs_all_parts_where_they_are(tmp_path):
    document = Document()
    ball = document.product("ball", b3d.Sphere(10))
    document.assembly("two", [(ball, b3d.Location((-30, 0, 0)), "1"), (ball, b3d.Location((50, 0, 0), (0, 40, 0)), "2")])
    mass = gv.Mesh.from_file(document.write(tmp_path / "a.step"), scale=2.0).mass
    one, r = 4 / 3 * math.pi * 0.01**3, 0.01
    assert mass.volume == pytest.approx(2 * one, rel=1e-9) and np.allclose(mass.centre, (0.01, 0, 0))
    assert np.allclose(sorted(mass.moments), [2 / 5 * r**2, *[2 / 5 * r**2 + 0.04**2] * 2], rtol=1e-9)


# --- refusals
def test_damaged_files_are_refused_in_a_sentence_and_never_end_the_program(tmp_path):
    """Lines that are lost or changed make the kernel's process fail, or end by a signal."""
    whole = write_part(tmp_path / "a.step", b3d.Box(10, 20, 30) - b3d.Cylinder(3, 40)).read_bytes()
    path, endings = tmp_path / "b.step", set()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        lines = whole.split(b"\n")
        for _ in range(8):
            del lines[rng.integers(20, len(lines) - 5)]
        path.write_bytes(b"\n".join(lines))
        scene = gv.Scene()
        with pytest.raises(ValueError, match="b.step") as refused:
            gv.load_step(scene, path)
        assert len(scene) == 0 and "\n" not in str(refused.value)
        endings.add(re.sub(r"'[^']*'", "", str(refused.value)))
    assert any("CAD kernel" in one for one in endings)


@pytest.mark.parametrize(
    "text, said",
    [
        (b"", "is empty"),
        (b"solid ascii\nendsolid\n", "begins with ISO-10303-21"),
        (b"ISO-10303-21;\nHEADER;\nENDSEC;\nDATA;\n#1=X(", "ends with END-ISO-10303-21"),
        (b"ISO-10303-21;\nHEADER;\nENDSEC;\nDATA;\nENDSEC;\nEND-ISO-10303-21;\n", "STEP file"),
    ],
)
def test_what_is_no_whole_step_file_is_refused(text, said, tmp_path):
    path = tmp_path / "a.step"
    path.write_bytes(text)
    for load in (gv.Mesh.from_file, gv.ConvexHull.from_file, lambda path: gv.load_step(gv.Scene(), path)):
        with pytest.raises(ValueError, match=said):
            load(path)


def test_missing_files_and_wrong_tolerances_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        gv.load_step(gv.Scene(), tmp_path / "no.step")
    with pytest.raises(TypeError, match="path must be"):
        gv.load_step(gv.Scene(), 7)
    with pytest.raises(ValueError, match="tolerance must be greater than 0"):
        gv.load_step(gv.Scene(), write_part(tmp_path / "a.step", b3d.Box(1, 1, 1)), tolerance=0.0)


def test_without_the_kernel_the_extra_is_named(tmp_path, monkeypatch):
    path = write_part(tmp_path / "a.step", b3d.Box(1, 1, 1))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"gravel\[cad\]"):
        read_step(path)


def test_files_outside_the_folder_are_refused_unless_allowed(tmp_path, monkeypatch):
    document = Document()
    pin = document.product("pin", b3d.Cylinder(5, 30))
    document.assembly("machine", [(pin, b3d.Location((10, 0, 0)), "1")])
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")  # the kernel writes the parts' files there
    document.write("machine.step", external="ext_")
    (part,) = (name for name in os.listdir() if name.startswith("ext_"))
    assert read_step("machine.step").products[0].volume == pytest.approx(math.pi * 0.005**2 * 0.03, rel=1e-9)
    os.rename(part, tmp_path / "away.stp")
    with pytest.raises(ValueError, match="does not exist"):
        read_step("machine.step")
    os.symlink(tmp_path / "away.stp", part)
    with pytest.raises(ValueError, match="outside_files=True allows"):
        gv.load_step(gv.Scene(), "machine.step")
    with pytest.raises(ValueError, match="outside its folder"):
        gv.Mesh.from_file("machine.step")
    assert gv.load_step(gv.Scene(), "machine.step", outside_files=True).bodies == {"pin": 0}


def test_a_tree_that_multiplies_is_counted_before_it_is_walked(tmp_path):
    document = Document()
    inner = document.product("grain", b3d.Box(1, 1, 1))
    for level in range(6):
        inner = document.assembly(f"level {level}", [(inner, b3d.Location((k, 0, 0)), f"{k}") for k in range(7)])
    with pytest.raises(ValueError, match="more than 100000 parts"):
        read_step(document.write(tmp_path / "a.step"))


def test_the_program_itself_never_loads_the_kernel(tmp_path):
    import subprocess

    path = write_part(tmp_path / "a.step", b3d.Box(1, 1, 1))
    script = f"import sys, gravel as gv; gv.load_step(gv.Scene(), {str(path)!r}); print([m for m in sys.modules if m.startswith('OCP')])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip() == "[]"
