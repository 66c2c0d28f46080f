"""Scene files against the same scenes made with the Python API: state arrays, joints, options are equal."""

import numpy as np
import pytest
from alike import assert_same_materials

import gravel as gv
from gravel.packing.blend import random_turns
from gravel.rotations import from_rotation_vector, multiply
from gravel.scenefile.text import scalar

RUN = "\nsimulation: {dt: 0.002, time: 0.1}\n"
FIELDS = ("position", "quaternion", "velocity", "inverse_mass", "extent", "geometry")


@pytest.fixture
def read(tmp_path):
    """A function that reads the text of a scene file."""

    def setup_of(text, seed=None):
        (tmp_path / "my.yaml").write_text(text + ("" if "simulation:" in text else RUN))
        return gv.load_scene_file(tmp_path / "my.yaml", seed)

    return setup_of


def assert_same(scene, other):
    assert len(scene) == len(other)
    for field in FIELDS:
        assert np.array_equal(getattr(scene.bodies, field), getattr(other.bodies, field)), field
    assert np.array_equal(scene.bodies.tag[:, [0, 2, 3]], other.bodies.tag[:, [0, 2, 3]])  # shape, group, status
    mine, others = ([s.materials[k] for k in s.bodies.tag[:, 1]] for s in (scene, other))
    assert_same_materials(others, mine)
    assert np.array_equal(scene.ignored, other.ignored) and np.array_equal(scene.gravity, other.gravity)
    one, two = scene.mechanism.to_arrays(), other.mechanism.to_arrays()
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_shapes_poses_and_options_of_bodies(read):
    setup = read(
        """
gravity: [0, 0, -1.6]
materials:
  a: {density: 2500, friction: 0.3, restitution: 0.1}
shapes:
  dumbbell:
    compound:
      items:
        - {shape: {sphere: {radius: 0.1}}, position: [0, 0, 0.2], relative_density: 2}
        - shape: {box: {half_extents: [0.02, 0.03, 0.2]}}
          rotation: {axis: [0, 0, 1], angle: 45 deg}
bodies:
  - {shape: {plane: {normal: [0, 0, 2], offset: -1}}, fixed: true, material: a}
  - {shape: {ellipsoid: {radii: [0.1, 0.2, 0.3]}}, position: [1, 2, 3], rotation: {quaternion: [1, 1, 0, 0]}, material: a}
  - {shape: {capsule: {radius: 0.1, half_length: 0.3}}, rotation: {axis: [0, 3, 0], angle: 30 deg}, velocity: [1, 0, 0]}
  - {shape: {cylinder: {radius: 0.1, half_length: 0.3}}, rotation: {euler: [10 deg, 20 deg, 30 deg]}, angular_velocity: [0, 0, 2]}
  - {shape: {cone: {radius: 0.1, height: 0.3}}, mass: 7, group: 3, force: [0, 0, 1]}
  - {shape: dumbbell, inertia: [1, 1.5, 2], position: [0, 5, 0]}
  - {shape: {hull: {points: [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], scale: 0.5}}, position: [9, 0, 0]}
  - {shape: {clump: {positions: [[0, 0, 0], [0.1, 0, 0]], radii: 0.08}}, position: [0, 9, 0]}
  - {shape: {height_field: {heights: [[0, 0.1], [0.2, 0.1], [0, 0]], spacing: [1, 2], origin: [-1, -1]}}, fixed: true}
  - shape:
      mesh: {vertices: [[0, 0, 0], [1, 0, 0], [0, 1, 0]], triangles: [[0, 1, 2]], sheet: true}
    motion: {oscillation: {amplitude: [0, 0, 0.1], frequency: 3, phase: 0.5 rad}}
    surface_velocity: {velocity: [1, 0, 0], angular_velocity: [0, 0, 2]}
"""
    )
    scene, a = gv.Scene(gravity=(0, 0, -1.6)), gv.Material(density=2500, friction=0.3, restitution=0.1)
    scene.add_body(gv.Plane((0, 0, 2), -1), fixed=True, material=a)
    scene.add_body(gv.Ellipsoid((0.1, 0.2, 0.3)), (1, 2, 3), a, quaternion=(1, 1, 0, 0))
    scene.add_body(gv.Capsule(0.1, 0.3), quaternion=from_rotation_vector((0, np.radians(30), 0)), velocity=(1, 0, 0))
    x, y, z = (from_rotation_vector(np.radians(angle) * axis) for angle, axis in zip((10, 20, 30), np.eye(3)))
    scene.add_body(gv.Cylinder(0.1, 0.3), quaternion=multiply(z, multiply(y, x)), angular_velocity=(0, 0, 2))
    cone = scene.add_body(gv.Cone(0.1, 0.3), mass=7, group=3)
    scene.set_force(cone, (0, 0, 1))
    parts = [
        (gv.Sphere(0.1), (0, 0, 0.2)),
        (gv.Box((0.02, 0.03, 0.2)), (0, 0, 0), from_rotation_vector((0, 0, np.radians(45)))),
    ]
    scene.add_body(gv.Compound(parts, [2, 1]), (0, 5, 0), inertia=(1, 1.5, 2))
    scene.add_body(gv.ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], 0.5), (9, 0, 0))
    scene.add_body(gv.Clump([(0, 0, 0), (0.1, 0, 0)], 0.08), (0, 9, 0))
    scene.add_body(gv.HeightField([[0, 0.1], [0.2, 0.1], [0, 0]], (1, 2), (-1, -1)), fixed=True)
    sheet = gv.Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)], sheet=True)
    swing = gv.Oscillation((0, 0, 0.1), 3, 0.5)
    scene.add_body(sheet, motion=swing, surface_velocity=((1, 0, 0), (0, 0, 2)))
    assert_same(setup.scene, scene)
    made = setup.scene.motions[9]
    assert np.array_equal(made.amplitude, swing.amplitude) and (made.frequency, made.phase) == (3, 0.5)
    assert setup.scene.surfaces == scene.surfaces and np.array_equal(setup.scene.forces[4][0], (0, 0, 1))


def test_every_kind_of_joint(read):
    text = """
bodies:
  - {name: a, shape: {box: {half_extents: [0.1, 0.1, 0.1]}}}
  - {name: b, shape: {box: {half_extents: [0.1, 0.1, 0.1]}}, position: [1, 0, 0]}
  - {name: c, shape: {box: {half_extents: [0.1, 0.1, 0.1]}}, position: [0, 2, 0]}
joints:
  - spherical: {between: [world, a], point: [0, 0, 0.5], break_force: 100}
  - revolute: {name: h, between: [a, b], point: [0.5, 0, 0], axis: [0, 1, 0], limits: [-1, .inf], motor: {speed: 3, limit: 5}, start: 0.1}
  - revolute: {name: k, between: [world, c], point: [0, 2, 0], friction: 0.2, spring: {stiffness: 4, damping: 1, rest: 0.2}}
  - prismatic: {name: s, between: [world, b], point: [1, 0, 0], axis: [1, 0, 0], motor: {position: 0.0, stiffness: 10, damping: 1}}
  - prismatic: {name: t, between: [world, c], point: [0, 2, 0], axis: [1, 0, 0], motor: {force: 2}}
  - cylindrical: {between: [a, c], axis: [0, 1, 0], turn_limits: {lower: -1, upper: 1, restitution: 0.5}, turn_motor: {speed: 1}}
  - universal: {between: [a, b], axis: [0, 1, 0], axis_b: [0, 0, 1], point: [0.5, 0, 0]}
  - fixed: {between: [a, b], point: [0.5, 0, 0], collide: true}
  - planar: {between: [world, c], axis: [0, 0, 1]}
  - distance: {between: [a, b], point_b: [1, 0, 0], length: 1}
  - revolute_spherical: {between: [a, b], point_b: [1, 0, 0], axis: [0, 1, 0]}
  - revolute_translational: {between: [a, b], point_b: [1, 0, 0], axis: [0, 0, 1], slide: [0, 1, 0]}
  - point_on_line: {between: [a, b], axis: [1, 0, 0], point_b: [1, 0, 0], assemble: true}
  - screw: {between: [world, a], pitch: 0.1}
  - spring: {between: [a, b], point_b: [1, 0, 0], stiffness: 100, damping: 2, rest: 0.9}
  - spring: {between: [world, b], point_b: [1, 0, 0], limits: [0, 2]}
  - rotational_spring: {between: [a, b], stiffness: 3}
  - bushing: {between: [a, b], point: [0.5, 0, 0], stiffness: [1, 2, 3], turn_damping: 0.5}
  - gear: {joints: [h, k], ratio: -2}
  - slide_gear: {joints: [s, t], ratio: 0.5}
  - rack_pinion: {joints: [k, t], radius: 0.3}
"""
    scene = gv.Scene()
    a, b, c = (scene.add_body(gv.Box((0.1, 0.1, 0.1)), place) for place in ((0, 0, 0), (1, 0, 0), (0, 2, 0)))
    inf, half, far = np.inf, (0.5, 0, 0), (1, 0, 0)
    joints = [
        gv.Spherical(None, a, (0, 0, 0.5), break_force=100),
        gv.Revolute(a, b, half, (0, 1, 0), limits=(-1, inf), motor=gv.SpeedMotor(3, limit=5), start=0.1),
        gv.Revolute(None, c, (0, 2, 0), friction=0.2, spring=gv.SpringLaw(4, 1, 0.2)),
        gv.Prismatic(None, b, far, (1, 0, 0), motor=gv.PositionMotor(0.0, stiffness=10, damping=1)),
        gv.Prismatic(None, c, (0, 2, 0), (1, 0, 0), motor=gv.ForceMotor(2)),
        gv.Cylindrical(a, c, axis=(0, 1, 0), turn_limits=gv.Limits(-1, 1, 0.5), turn_motor=gv.SpeedMotor(1)),
        gv.Universal(a, b, half, (0, 1, 0), axis_b=(0, 0, 1)),
        gv.Fixed(a, b, half, collide=True),
        gv.Planar(None, c, axis=(0, 0, 1)),
        gv.Distance(a, b, point_b=far, length=1),
        gv.RevoluteSpherical(a, b, point_b=far, axis=(0, 1, 0)),
        gv.RevoluteTranslational(a, b, point_b=far, axis=(0, 0, 1), slide=(0, 1, 0)),
        gv.PointOnLine(a, b, axis=(1, 0, 0), point_b=far),
        gv.Screw(None, a, pitch=0.1),
        gv.Spring(a, b, point_b=far, stiffness=100, damping=2, rest=0.9),
        gv.Spring(None, b, point_b=far, limits=(0, 2)),
        gv.RotationalSpring(a, b, stiffness=3),
        gv.Bushing(a, b, half, stiffness=(1, 2, 3), turn_damping=0.5),
        gv.Gear(1, 2, -2),
        gv.SlideGear(3, 4, 0.5),
        gv.RackPinion(2, 4, 0.3),
    ]
    for joint in joints:
        scene.add_joint(joint, assemble=isinstance(joint, gv.PointOnLine))
    made = read(text).scene
    assert_same(made, scene)
    assert made.mechanism.names == scene.mechanism.names and made.mechanism.open


def test_tables_over_time_drive_motors_and_motions(read):
    setup = read(
        """
bodies:
  - name: a
    shape: {sphere: {radius: 0.1}}
  - shape: {sphere: {radius: 0.1}}
    position: [3, 0, 0]
    motion: {table: {times: [0, 2], displacements: [[0, 0, 0], [0, 0, 1]], turns: [[0, 0, 0], [0, 0, 90 deg]]}}
joints:
  - prismatic: {between: [world, a], axis: [1, 0, 0], motor: {speed: {times: [0, 1, 2], values: [0, 3, 3]}}}
"""
    )
    (motor,) = setup.scene.mechanism.functions.values()
    assert [motor.speed(time) for time in (-1, 0.5, 1.5, 9)] == [0, 1.5, 3, 3]
    position, turn = setup.scene.motions[1].pose(1.0, np.array([3.0, 0, 0]), np.array([1.0, 0, 0, 0]))
    assert np.allclose(position, (3, 0, 0.5)) and np.allclose(turn, from_rotation_vector((0, 0, np.radians(45))))


def test_lattice_by_hand(read):
    setup = read(
        """
seed: 5
grains:
  - shape: {box: {half_extents: [0.01, 0.02, 0.03]}}
    placement: {lattice: {low: [0, 0, 0], high: [0.35, 0.2, 0.5], spacing: 0.1, count: 7, jitter: 0.01}}
    rotation: random
    velocity: [0, 0, -1]
"""
    )
    centres = [(0.075 + 0.1 * (k % 3), 0.05 + 0.1 * (k // 3 % 2), 0.05 + 0.1 * (k // 6)) for k in range(7)]
    rng = np.random.default_rng(5)
    places, scene = np.array(centres) + 0.01 * rng.uniform(-1, 1, (7, 3)), gv.Scene()
    scene.add_bodies(gv.Box((0.01, 0.02, 0.03)), places, quaternions=random_turns(rng, 7), velocities=np.tile((0, 0, -1), (7, 1)))
    assert np.allclose(setup.scene.bodies.position, scene.bodies.position, atol=1e-15)
    assert np.array_equal(setup.scene.bodies.quaternion, scene.bodies.quaternion)
    assert np.array_equal(setup.scene.bodies.velocity, scene.bodies.velocity)


def test_random_packing_is_that_of_pack(read):
    text = """
seed: 3
materials: {a: {density: 2000}, b: {density: 1000}}
cell: {x: [0, 1], deformation: {shear_rate: 0}}
grains:
  - mixture:
      - {shape: sphere, share: 1, sizes: {normal: {mean: 0.05, deviation: 0.005}}, material: b}
      - {shape: {sphere: {radius: 0.08}}, share: 2}
    material: a
    group: 2
    placement: {random: {region: {box: {low: [0, 0, 0], high: [1, 1, 1]}}, fraction: 0.1, gap: 0.01}}
  - shape: sphere
    sizes: {sieve: {diameters: [0.04, 0.08], passing: [0, 1]}}
    placement: {random: {region: {cylinder: {start: [0, 0, 2], end: [0, 0, 3], radius: 0.5}}, count: 20}}
    seed: 9
"""
    a, b = gv.Material(density=2000), gv.Material(density=1000)
    mixture = gv.Mixture([(gv.Sphere, 1, gv.NormalSizes(0.05, 0.005)), (gv.Sphere(0.08), 2)])
    scene = gv.Scene(periodic=((0, 1), None, None))
    box = gv.BoxRegion((0, 0, 0), (1, 1, 1))
    gv.pack(mixture, box, fraction=0.1, gap=0.01, seed=3, periodic=((0, 1), None, None)).add_to(scene, [b, a], group=2)
    tall = gv.CylinderRegion((0, 0, 2), (0, 0, 3), 0.5)
    gv.pack(gv.Sphere, tall, count=20, sizes=gv.SieveCurve([0.04, 0.08], [0, 1]), seed=9).add_to(scene)
    made = read(text).scene
    assert_same(made, scene)
    assert made.cell.periodic.tolist() == [True, False, False]
    assert not np.array_equal(read(text, seed=4).scene.bodies.position[:20], scene.bodies.position[:20])


def test_bodies_from_tables(read, tmp_path):
    (tmp_path / "grains.csv").write_text("x,y,z,size,vx,vy,vz\n0,0,1,0.1,0,0,-1\n0.5,0,1,0.2,0,0,-2\n")
    np.savez(tmp_path / "bars.npz", positions=[(0, 0, 3), (0, 0, 5)], sizes=[(0.1, 0.2), (0.1, 0.3)], masses=[1.0, 2.0])
    made = read(
        """
grains:
  - {shape: sphere, placement: {table: {file: grains.csv}}}
  - {shape: capsule, placement: {table: {file: bars.npz}}}
  - {shape: {sphere: {radius: 0.1}}, placement: {listed: {positions: [[9, 0, 0], [8, 0, 0]], sizes: [1, 2], masses: [3, 4]}}}
"""
    ).scene
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere([0.1, 0.2]), [(0, 0, 1), (0.5, 0, 1)], velocities=[(0, 0, -1), (0, 0, -2)])
    scene.add_bodies(gv.Capsule([0.1, 0.1], [0.2, 0.3]), [(0, 0, 3), (0, 0, 5)], masses=[1, 2])
    scene.add_bodies(gv.Sphere([0.1, 0.2]), [(9, 0, 0), (8, 0, 0)], masses=[3, 4])
    assert_same(made, scene)


@pytest.mark.parametrize(
    "content, words",
    [
        ("x,y\n1,2\n", "all of the columns x, y, z or none"),
        ("x,y,z,radius\n1,2,3,4\n", "must be one of 'x', 'y', 'z'"),
        ("x,y,z\n1,2\n", "3 numbers in each row, but line 2"),
        ("x,y,z\n1,2,three\n", "3 numbers in each row, but line 2"),
        ("x,y,z\n", "has none"),
        ("x,x,y,z\n1,1,1,1\n", "name each column once"),
    ],
)
def test_tables_that_are_wrong(read, tmp_path, content, words):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(gv.SceneFileError, match="my.yaml:2: grains\\[0\\].placement.table.file") as refused:
        read("grains:\n- {shape: {sphere: {radius: 0.1}}, placement: {table: {file: t.csv}}}\n")
    assert words in str(refused.value)


def test_meshes_and_robots_are_looked_for_beside_the_file(read, tmp_path):
    import trimesh

    (tmp_path / "parts").mkdir()
    trimesh.creation.box((1, 2, 3)).export(tmp_path / "parts" / "box.stl")
    (tmp_path / "robot.urdf").write_text(
        '<robot name="r"><link name="base"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        '<collision><geometry><box size="1 1 1"/></geometry></collision></link></robot>'
    )
    made = read(
        """
bodies:
  - {shape: {mesh: {file: parts/box.stl, scale: 0.1}}}
  - {shape: {hull: {file: parts/box.stl}}, position: [5, 0, 0]}
robots:
  - {name: arm, file: robot.urdf, base: floating, position: [0, 9, 0]}
ignore: {pairs: [[arm.base, ball]]}
more_bodies:
  - {name: ball, shape: {sphere: {radius: 0.1}}, position: [0, 9, 3]}
"""
    ).scene
    masses = 1 / made.bodies.inverse_mass[:, 0]
    assert np.allclose(masses[:3], (6.0, 6000.0, 1.0)) and np.allclose(made.bodies.position[2], (0, 9, 0))
    assert made.mechanism.filtered_pairs == [(2, 3, -1)]


def test_simulation_options_and_output(read):
    setup = read(
        """
title: a ball
bodies: [{shape: {sphere: {radius: 0.1}}}]
simulation:
  dt: 1e-3
  time: 2
  solver: jacobi
  iterations: 40
  tolerance: 1e-5
  friction: coulomb
  precision: double
  recovery_speed: .inf
  sleep: {time: 0.3}
  bounds: {low: [-9, -9, -9], high: [9, 9, 9]}
output: {every: 0.1, contacts: true}
"""
    )
    sim = setup.simulation()
    assert (setup.dt, setup.time, setup.title) == (1e-3, 2, "a ball")
    assert sim.solver == gv.Jacobi(40, 1e-5) and (sim.friction, sim.precision, sim.recovery_speed) == ("coulomb", "double", np.inf)
    assert sim.sleep == gv.Sleep(time=0.3) and setup.output == {"every": 0.1, "contacts": True}


def test_servo_wall(read):
    made = read("walls:\n- {name: lid, centre: [0, 0, 1], normal: [0, 0, -1], size: [1, 2], stress: 100, mass: 3}\n").scene
    scene = gv.Scene()
    gv.ServoWall(scene, (0, 0, 1), (0, 0, -1), (1, 2), stress=100, mass=3)
    assert_same(made, scene)
    assert np.array_equal(made.forces[0][0], scene.forces[0][0])


def test_pairs_groups_and_aliases(read):
    made = read(
        """
materials: {a: &base {density: 2000, friction: 0.2}, b: *base}
pairs: [{materials: [a, b], friction: 0.9, cohesion: 1}]
bodies:
  - {shape: {sphere: {radius: 0.1}}, material: a}
  - {shape: {sphere: {radius: 0.1}}, material: b, position: [1, 0, 0]}
ignore: {groups: [[0, 1], [2, 2]]}
"""
    ).scene
    values = made.materials.contact_values()[made.materials.row[made.bodies.tag[0, 1]], made.materials.row[made.bodies.tag[1, 1]]]
    assert values[0] == 0.9 and values[4] == 1
    assert made.ignored[0, 1] and made.ignored[1, 0] and made.ignored[2, 2] and made.ignored.sum() == 3


@pytest.mark.parametrize(
    "text, value",
    [("1e-3", 1e-3), ("1E5", 1e5), ("-.5", -0.5), ("12", 12), ("0x1F", 31), ("1.", 1.0), ("true", True), ("~", None), (".inf", np.inf)]
    + [("yes", "yes"), ("on", "on"), ("1_000", "1_000"), ("12:30", "12:30"), ("1e", "1e"), ("tRue", "tRue"), ("010", 10)],
)
def test_plain_words_mean_what_yaml_1_2_says(text, value):
    assert scalar(text) == value and type(scalar(text)) is type(value)


def test_an_empty_sleep_is_the_usual_one(read):
    setup = read("bodies: [{shape: {sphere: {radius: 0.1}}}]\nsimulation: {dt: 0.002, time: 1, sleep: {}}\n")
    assert setup.options["sleep"] == gv.Sleep()
    assert "sleep" not in read("bodies: [{shape: {sphere: {radius: 0.1}}}]\nsimulation: {dt: 0.002, time: 1, sleep: false}\n").options


def test_random_turns_of_listed_bodies_follow_the_seeds(read):
    text = (
        "grains:\n- {shape: {box: {half_extents: [1, 2, 3]}}, rotation: random, placement: {listed: {positions: [[0, 0, 0]]}}}\n"
        "- {shape: {box: {half_extents: [1, 2, 3]}}, rotation: random, placement: {listed: {positions: [[9, 0, 0]]}}}\n"
    )
    first, second, again = (read(text, seed).scene.bodies.quaternion for seed in (3, 4, 3))
    assert np.array_equal(first, again) and not np.allclose(first, second) and not np.allclose(first[0], first[1])


def test_one_of_many_grains_is_taken_out_at_its_time(read):
    text = (
        "grains:\n- {name: g, shape: {sphere: {radius: 0.1}}, placement: {listed: {positions: [[0, 0, 0], [1, 0, 0], [2, 0, 0]]}}}\n"
        "removals:\n- {bodies: ['g[1]'], at: 0.01}\nsimulation: {dt: 0.002, time: 0.02}\n"
    )
    setup = read(text)
    sim = setup.simulation()
    sim.run(setup.time, observers=setup.watchers())
    assert sim.alive.tolist() == [True, False, True]


@pytest.mark.parametrize(
    "table, words",
    [
        ("\ufeffx,y,z\n0,0,0\n1,0,0\n\n", None),  # as Excel writes it, with an empty line at the end
        ("x;y;z\n0;0;0\n", "must have commas between its columns"),
        ("x,y,z,size1\n0,0,0,3\n", "must have the column size, or size1 and size2"),
        ("x,y,z\n0,nan,0\n", "positions"),
    ],
)
def test_tables_of_other_programs(read, tmp_path, table, words):
    (tmp_path / "t.csv").write_text(table, encoding="utf-8")
    text = "grains:\n- shape: {sphere: {radius: 0.1}}\n  placement:\n    table: {file: t.csv}\n"
    if words is None:
        assert len(read(text).scene) == 2
        return
    with pytest.raises(ValueError, match=words) as refused:
        read(text)
    (fault,) = refused.value.faults
    assert (fault.line, fault.path) == (4, "grains[0].placement.table.file")


def test_a_table_that_is_cut_off_is_refused(read, tmp_path):
    np.savez(tmp_path / "t.npz", positions=np.zeros((100, 3)))
    (tmp_path / "t.npz").write_bytes((tmp_path / "t.npz").read_bytes()[:300])
    with pytest.raises(ValueError, match="cannot be read as one"):
        read("grains: [{shape: {sphere: {radius: 0.1}}, placement: {table: {file: t.npz}}}]\n")


@pytest.mark.parametrize(("text", "angle"), [("90 deg", np.pi / 2), ("1.5 rad", 1.5), ("-.5e1deg", np.radians(-5)), ("0", 0.0)])
def test_angles_carry_their_unit(read, text, angle):
    scene = read(f"bodies: [{{shape: {{sphere: {{radius: 1}}}}, rotation: {{axis: [0, 0, 2], angle: {text}}}}}]\n").scene
    assert np.allclose(scene.bodies.quaternion[0], (np.cos(angle / 2), 0, 0, np.sin(angle / 2)))


def test_springs_let_their_bodies_collide_and_joints_do_not():
    from gravel.scenefile.joint_language import JOINT, JOINT_KINDS

    for word, record in JOINT.kinds.items():
        if "collide" in record.keys:
            assert record.keys["collide"].default == JOINT_KINDS[word].__dataclass_fields__["collide"].default
    assert JOINT.kinds["spring"].keys["collide"].default and not JOINT.kinds["revolute"].keys["collide"].default


def test_a_summary_counts_the_materials_of_the_file(read):
    from gravel.scenefile.summary import summary

    text = "materials: {glass: {}, idle: {}, sand: {}}\npairs: [{materials: [glass, idle], friction: 0.1}]\n"
    text += "bodies: [{shape: {sphere: {radius: 1}}, material: glass}]\n"
    pour = "{pour: {inlet: {sphere: {centre: [0, 0, 5], radius: 1}}, number_rate: 10}}"
    text += f"grains: [{{shape: {{sphere: {{radius: 0.1}}}}, material: sand, velocity: [0, 0, -9], placement: {pour}}}]\n"
    assert "3 materials (nothing is made of 'idle'), 0 joints" in summary(read(text))
    assert "0 materials and the default one, 0 joints" in summary(read("bodies: [{shape: {sphere: {radius: 1}}}]\n"))
