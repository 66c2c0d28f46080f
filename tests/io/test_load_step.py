"""Assemblies from STEP files: masses, places, shapes for contact, rigid groups, joints by name; and a slider-crank that runs."""

import math

import build123d as b3d
import numpy as np
import pytest
from cad_parts import CRANK, ROD, Document, kernel_volume, machine_parts, write_part, write_slider_crank

import gravel as gv
from gravel.io.assembly import Axis, axes_in, common_lines
from gravel.rotations import from_rotation_vector, rotate

STEEL, ALUMINIUM = 7850, 2700


@pytest.fixture(scope="module")
def machine_file(tmp_path_factory):
    return write_slider_crank(tmp_path_factory.mktemp("cad") / "machine.step", unit="INCH")


def test_a_slider_crank_runs_as_its_geometry_says(machine_file):
    """In a file in inches. Masses against the CAD kernel's, the piston's place against the crank's angle."""
    scene = gv.Scene()
    density = {"*": STEEL, "bucket": ALUMINIUM}
    machine = gv.load_step(scene, machine_file, density, fixed="frame", rigid={"slider": ("piston", "bucket")})
    crank = scene.add_joint(machine.hinge("frame", "crank", motor=gv.SpeedMotor(8.0)))
    scene.add_joint(machine.hinge("crank", "rod"))
    scene.add_joint(machine.hinge("rod", "slider"))
    slide = scene.add_joint(machine.slider("frame", "slider"))

    volumes = {name: kernel_volume(shape) for name, shape in machine_parts().items()}
    for name, volume in volumes.items():
        assert machine.masses[name] == pytest.approx(volume * (ALUMINIUM if name == "bucket" else STEEL), rel=1e-9)
    masses = 1 / scene.bodies.inverse_mass[:, 0][scene.bodies.inverse_mass[:, 0] > 0]
    expected = volumes["crank"] * STEEL, volumes["rod"] * STEEL, volumes["piston"] * STEEL + volumes["bucket"] * ALUMINIUM
    assert np.allclose(masses, expected, rtol=1e-9)
    assert machine.unit == "inch" and len(scene) == 4 and machine.bodies["piston"] == machine.bodies["bucket"] == machine.bodies["slider"]

    sim = gv.Simulation(scene, dt=1e-3)
    start, travelled = machine.part_pose(sim, "piston")[0], []
    for _ in range(8):
        sim.run(until=sim.time + 0.1)
        angle = sim.joints.angle[crank]
        x = CRANK * math.cos(angle) + math.sqrt(ROD**2 - (CRANK * math.sin(angle)) ** 2) - CRANK - ROD
        place, turn = machine.part_pose(sim, "bucket")
        assert np.allclose(place - start, (x, 0, 0), atol=2e-6) and np.allclose(np.abs(turn), (1, 0, 0, 0), atol=1e-5)
        assert sim.joints.slide[slide] == pytest.approx(x, abs=2e-6)
        travelled.append(x)
    assert sim.joints.angle[crank] == pytest.approx(6.4, abs=0.02) and min(travelled) < -1.9 * CRANK


def test_a_body_lies_at_its_centre_and_its_part_where_the_file_and_the_caller_place_it(tmp_path):
    document = Document()
    block = document.product("block", b3d.Pos(10, 20, 30) * b3d.Box(20, 40, 80) + b3d.Pos(30, 10, 0) * b3d.Box(20, 20, 20))
    document.assembly("two", [(block, b3d.Location((100, 0, 0), (0, 0, 90)), "1"), (block, b3d.Location((0, 0, 0), (25, 35, 0)), "2")])
    path = document.write(tmp_path / "a.step")
    turn = from_rotation_vector(np.array([0.3, -0.2, 0.5]))
    scene = gv.Scene()
    blocks = gv.load_step(scene, path, 1000, position=(1, 2, 3), quaternion=turn)
    place, quaternion = blocks.part_pose(scene, "block.1")
    assert np.allclose(place, (1, 2, 3) + rotate(turn, np.array([0.1, 0, 0])))
    quarter = from_rotation_vector(np.array([0, 0, math.pi / 2]))
    point = np.array([0.01, 0.02, 0.03])
    assert np.allclose(rotate(quaternion, point), rotate(turn, rotate(quarter, point)))
    # the kernel's own mass properties of the placed shape, about its centre
    a, b = (20 * 40 * 80, np.array([10, 20, 30])), (20**3, np.array([30, 10, 0]))
    centre = 1e-3 * (a[0] * a[1] + b[0] * b[1]) / (a[0] + b[0])
    assert np.allclose(scene.bodies.position[0], place + rotate(quaternion, centre))
    tensors = [world_inertia(scene, body) for body in range(2)]
    arms = [1e-3 * one[1] - centre for one in (a, b)]
    own = sum(
        1e-6 * volume * (1e-6 * np.diag([s @ s - x * x for x in s]) / 12 + (arm @ arm * np.eye(3) - np.outer(arm, arm)))
        for volume, s, arm in ((a[0], np.array([20, 40, 80]), arms[0]), (b[0], np.array([20, 20, 20]), arms[1]))
    )
    turned = rotate(quaternion, np.eye(3)).T
    assert np.allclose(tensors[0], turned @ own @ turned.T, rtol=1e-9, atol=1e-12)
    assert scene.bodies.geometry[0] == scene.bodies.geometry[1]  # repeated parts share it


def world_inertia(scene, body):
    axes = rotate(scene.bodies.quaternion[body], np.eye(3)).T
    return axes @ np.diag(1 / scene.bodies.inverse_mass[body, 1:]) @ axes.T


@pytest.fixture(scope="module")
def cup_file(tmp_path_factory):
    cup = b3d.Pos(50, 0, 0) * (b3d.Box(60, 60, 60) - b3d.Pos(0, 0, 10) * b3d.Box(40, 40, 60))
    return write_part(tmp_path_factory.mktemp("cad") / "cup.step", cup, "cup")


@pytest.mark.parametrize("contact", ["hull", "pieces", "clump", "mesh", "none"])
def test_whatever_touches_the_weight_is_that_of_the_solid(contact, cup_file):
    scene = gv.Scene()
    cup = gv.load_step(scene, cup_file, 1000, contact=contact)
    whole, hollow = 0.06**3, 0.04 * 0.04 * 0.05  # the hollow is 50 mm deep
    height = -hollow * 0.005 / (whole - hollow)
    assert 1 / scene.bodies.inverse_mass[0, 0] == pytest.approx(1000 * (whole - hollow), rel=1e-9)
    assert np.allclose(scene.bodies.position[0], (0.05, 0, height))
    around_z = 1000 * (whole * 0.06**2 / 6 - hollow * 0.04**2 / 6)
    assert world_inertia(scene, 0)[2, 2] == pytest.approx(around_z, rel=1e-9)
    assert any("fill hollows" in message for message in cup.messages) == (contact == "hull")
    # a ray from above meets the bottom of the cup, or what fills it
    scene.add_body(gv.Sphere(0.001), (0, 0, 5))  # beside it
    hit = scene.cast_rays([(0.05, 0.001, 0.2)], [(0, 0, -1)]).distance[0]
    depth = {"hull": 0.17, "none": 0.17, "pieces": 0.22, "mesh": 0.22}.get(contact)
    assert depth is None or hit == pytest.approx(depth, abs=0.003)
    assert scene.ignored[scene.bodies.tag[0, 2]].all() == (contact == "none")


def test_a_ball_falls_into_a_cup_and_stays(cup_file):
    scene = gv.Scene()
    gv.load_step(scene, cup_file, 1000, fixed="cup", contact="mesh")
    ball = scene.add_body(gv.Sphere(0.008), (0.05, 0.005, 0.05))
    sim = gv.Simulation(scene, dt=1e-3)
    sim.run(until=0.6)
    assert sim.positions[ball, 2] == pytest.approx(-0.02 + 0.008, abs=1e-3) and np.abs(sim.positions[ball, :2] - (0.05, 0)).max() < 0.02


def test_assemblies_become_rigid_each_for_itself(tmp_path):
    document = Document()
    wheel, axle = document.product("wheel", b3d.Cylinder(20, 5)), document.product("axle", b3d.Cylinder(5, 60))
    pair = document.assembly("pair", [(wheel, b3d.Location((0, 0, z)), "") for z in (-30, 30)] + [(axle, b3d.Location(), "")])
    document.assembly("cart", [(pair, b3d.Location((x, 0, 0)), "") for x in (0, 100)])
    path = document.write(tmp_path / "cart.step")
    scene = gv.Scene()
    cart = gv.load_step(scene, path, {"wheel": 1000, "axle": 2000}, rigid="pair")
    assert cart.groups == {"pair.1": ("wheel.1", "wheel.2", "axle.1"), "pair.2": ("wheel.3", "wheel.4", "axle.2")}
    mass, rod = 1000 * math.pi * 0.02**2 * 0.005, 2000 * math.pi * 0.005**2 * 0.06
    assert np.allclose(1 / scene.bodies.inverse_mass[:, 0], 2 * mass + rod)
    side = 2 * mass * ((3 * 0.02**2 + 0.005**2) / 12 + 0.03**2) + rod * (3 * 0.005**2 + 0.06**2) / 12
    axial = mass * 0.02**2 + rod * 0.005**2 / 2
    assert np.allclose(np.sort(1 / scene.bodies.inverse_mass[:, 1:], axis=1), [sorted((side, side, axial))] * 2, rtol=1e-9)
    assert np.allclose(cart.hinge(None, "pair.2").point, (0.1, 0, 0)) and cart.hinge(None, "pair.2").body_b == 1
    for rigid, said in (({"a": "wheel.1", "b": "wheel"}, "in 'a' and 'b'"), ("wheel", "rigid must be one of 'cart', 'pair'")):
        with pytest.raises(ValueError, match=said):
            gv.load_step(gv.Scene(), path, rigid=rigid)
    with pytest.raises(ValueError, match="rigid must give new names"):
        gv.load_step(gv.Scene(), path, rigid={"axle.1": "wheel.1"})
    with pytest.raises(ValueError, match="contact must be the same"):
        gv.load_step(gv.Scene(), path, rigid="pair", contact={"axle": "mesh"})


def test_plates_with_several_holes_in_line_are_told_apart(tmp_path):
    document = Document()
    plate = b3d.Box(100, 60, 10)
    for x, y, r in ((-40, -20, 3), (40, -20, 3), (0, 0, 8)):
        plate -= b3d.Pos(x, y, 0) * b3d.Cylinder(r, 20)
    lower, upper = document.product("lower", plate), document.product("upper", plate - b3d.Pos(0, 30, 0) * b3d.Box(9, 9, 30))
    document.assembly("stack", [(lower, b3d.Location(), ""), (upper, b3d.Location((0, 0, 30)), "")])
    scene = gv.Scene()
    stack = gv.load_step(scene, document.write(tmp_path / "a.step"))
    with pytest.raises(ValueError, match="near or radius must tell which of the 3 axes that 'lower' and 'upper' have in") as refused:
        stack.hinge("lower", "upper")
    assert "(-0.04, -0.02, 0.015) m along (0, 0, 1) (radii 0.003 m in 'lower', 0.003 m in 'upper')" in str(refused.value)
    hinge = stack.hinge("lower", "upper", radius=0.008, limits=(-1, 1))
    assert np.allclose(hinge.point, (0, 0, 0.015)) and np.allclose(hinge.axis, (0, 0, 1)) and hinge.limits.upper == 1
    assert np.allclose(stack.cylindrical("lower", "upper", near=(0.03, -0.03, 9)).point, (0.04, -0.02, 0.015))
    with pytest.raises(ValueError, match="of the 2 axes"):
        stack.slider("upper", "lower", radius=0.003)
    with pytest.raises(ValueError, match="radius must be that of a cylinder"):
        stack.hinge("lower", "upper", radius=0.05)
    with pytest.raises(ValueError, match="part_b must be one of 'lower', 'upper', not 'uper'; did you mean 'upper'"):
        stack.hinge("lower", "uper")
    with pytest.raises(ValueError, match="of two bodies"):
        stack.hinge("lower", "lower")
    with pytest.raises(ValueError, match="not both None"):
        stack.hinge(None, None)


def axis(point, direction, radius=0.01, angle=2 * math.pi, part="a"):
    return Axis(part, np.array(point, float), np.array(direction, float), radius, 0.1, False, angle)


def test_common_axes_are_those_on_one_line_and_fillets_count_only_alone():
    x, z = (1, 0, 0), (0, 0, 1)
    mine, fillet = axis((0, 0, 0), x), axis((0, 0, 0.5), z, angle=math.pi / 2)
    (line,) = common_lines([[mine, fillet], [axis((0.3, 0, 5e-5), x), axis((0, 0, 0.1), z, angle=math.pi / 2)]])
    assert np.allclose(line.direction, x) and np.allclose(line.point, (0.15, 0, 0), atol=1e-4)  # between 0.05 and 0.25
    assert len(common_lines([[fillet], [axis((0, 0, 0.1), z, angle=math.pi / 2)]])) == 1
    assert common_lines([[mine], [axis((0, 0, 2e-4), x)]]) == []  # 2 % of the radius apart
    assert common_lines([[mine], [axis((0, 0, 0), (1, 0.01, 0))]]) == []


def test_halves_of_a_cylinder_are_one_axis_and_its_direction_never_negative(tmp_path):
    from gravel.cad.step import Cylinder

    half = Cylinder(np.array([0.0, 0, 1]), np.array([0.0, 0, -1]), 0.02, 0.0, 0.5, math.pi, True)
    other = half._replace(point=np.array([0.0, 0, 5]), direction=np.array([0.0, 0, 1]), low=-4.2, high=-4.0)
    pose = np.eye(4)
    pose[:3, 3] = (7, 0, 0)
    (one,) = axes_in("a", [half, other], pose)
    assert np.allclose(one.point, (7, 0, 0.75)) and one.length == pytest.approx(0.5) and one.angle == pytest.approx(2 * math.pi)
    assert np.array_equal(one.direction, (0, 0, 1))
    assert len(axes_in("a", [half, other._replace(radius=0.03)], pose)) == len(axes_in("a", [half, other._replace(hole=False)], pose)) == 2


def test_a_part_without_a_volume_is_a_sheet_that_stays_or_refused(tmp_path):
    chute = b3d.Plane.XY.offset(10) * b3d.Rectangle(100, 50)
    path = write_part(tmp_path / "a.step", chute.face(), "chute")
    scene = gv.Scene()
    with pytest.raises(ValueError, match="'chute' must enclose a volume to move, but it is no solid; fixed='chute'"):
        gv.load_step(scene, path)
    assert len(scene) == 0
    loaded = gv.load_step(scene, path, fixed="chute")
    assert loaded.masses == {} and "parts that enclose no volume are sheets: 'chute'" in loaded.messages
    scene.add_body(gv.Sphere(0.001), (0, 0, 5))
    assert np.allclose(scene.cast_rays([(0, 0, 1), (0, 0, -1)], [(0, 0, -1), (0, 0, 1)]).distance, (0.99, 1.01))
    with pytest.raises(ValueError, match="is not closed"):
        _ = gv.Mesh.from_file(path).mass


def test_names_settings_and_switches_are_checked_before_anything_is_added(cup_file):
    scene = gv.Scene()
    for options, said in (
        ({"fixed": "cub"}, "fixed must be one of 'cup', not 'cub'; did you mean 'cup'"),
        ({"density": {"bolt*": 1}}, "density must be one of 'cup'"),
        ({"density": -1}, "density must be greater than 0, not -1"),
        ({"contact": "hul"}, "contact must be one of 'hull', 'pieces', 'clump', 'mesh', 'sheet', 'none', not 'hul'"),
        ({"contact": {"cup": "sheet"}}, "is a sheet and so has no mass"),
        ({"rigid": {"a": []}}, "rigid must give names of parts for each body, but has none for 'a'"),
    ):
        with pytest.raises(ValueError, match=said.replace("*", r"\*")):
            gv.load_step(scene, cup_file, **options)
    for options in ({"material": "steel"}, {"fixed": 3}, {"fixed": [3]}, {"self_collision": 1}, {"outside_files": "no"}, {"density": "x"}):
        with pytest.raises(TypeError, match=f"{next(iter(options))} must be"):
            gv.load_step(scene, cup_file, **options)
    with pytest.raises(TypeError, match="scene must be a Scene"):
        gv.load_step(None, cup_file)
    assert len(scene) == 0 and not scene.ignored.any()


def test_materials_and_collisions_go_by_name(machine_file):
    steel, rubber = gv.Material(density=STEEL), gv.Material(density=1100, friction=0.9)
    scene = gv.Scene()
    machine = gv.load_step(scene, machine_file, material={"*": steel, "bucket": rubber}, fixed=["frame"], self_collision=True)
    assert machine.materials["bucket"] is rubber and machine.materials["rod"] is steel and machine.group == 0 and not scene.ignored.any()
    assert machine.masses["bucket"] == pytest.approx(1100 * kernel_volume(machine_parts()["bucket"]), rel=1e-9)
    apart = gv.load_step(scene, machine_file, fixed="*")
    assert apart.group != 0 and scene.ignored[apart.group, apart.group] and scene.ignored.sum() == 1
