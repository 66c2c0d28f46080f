"""Robots from URDF files: masses and poses as yourdfpy and MuJoCo see them, motion as MuJoCo integrates it, and refusals."""

import pathlib
import re
import warnings

import jvrc_description
import mujoco
import numpy as np
import pytest
import trimesh
import yourdfpy
from scipy.spatial.transform import Rotation

import gravel as gv
from gravel.io.urdf import load_urdf

INERTIAL = """<inertial><origin xyz="{xyz}" rpy="{rpy}"/><mass value="{mass}"/>
<inertia ixx="{i[0]}" iyy="{i[1]}" izz="{i[2]}" ixy="{i[3]}" ixz="{i[4]}" iyz="{i[5]}"/></inertial>"""


def inertial(mass=1.0, xyz="0 0 0", rpy="0 0 0", moments=(0.02, 0.03, 0.04, 0.0, 0.0, 0.0)):
    return INERTIAL.format(mass=mass, xyz=xyz, rpy=rpy, i=moments)


def link(name, *inside):
    return f'<link name="{name}">{"".join(inside)}</link>'


def joint(name, kind, parent, child, *inside, xyz="0 0 0", rpy="0 0 0", axis="0 0 1"):
    place = f'<origin xyz="{xyz}" rpy="{rpy}"/><parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/>'
    return f'<joint name="{name}" type="{kind}">{place}{"".join(inside)}</joint>'


def collision(geometry, xyz="0 0 0", rpy="0 0 0"):
    return f'<collision><origin xyz="{xyz}" rpy="{rpy}"/><geometry>{geometry}</geometry></collision>'


def limit(lower, upper, effort=50.0):
    return f'<limit lower="{lower}" upper="{upper}" effort="{effort}" velocity="10"/>'


ARM = "".join(
    (
        '<mujoco><compiler fusestatic="false"/></mujoco>',  # links on fixed joints stay bodies of their own there
        link("base", inertial(5.0)),
        link("mount"),
        link("upper", inertial(2.0, "0.1 0.02 -0.03", "0.3 -0.2 0.5", (0.02, 0.03, 0.04, 0.002, -0.001, 0.003))),
        link("motor", inertial(0.5, "0.01 0 0.02", "0 0 1", (0.001, 0.002, 0.0015, 0.0001, 0, 0))),
        link("lower", inertial(1.2, "0.15 0 0.05", "0 0.4 0", (0.01, 0.02, 0.02, 0.001, 0, 0.0005))),
        link("rod", inertial(0.4, "0 0 0.1", "0 0 0", (0.004, 0.004, 0.0005, 0, 0, 0))),
        link("tool"),
        joint("bolts", "fixed", "base", "mount", xyz="0 0 0.3", rpy="0 0 0.7"),
        joint("shoulder", "revolute", "mount", "upper", limit(-3, 3), '<dynamics damping="0.05"/>', xyz="0.1 0 0.2", axis="0 1 0.3"),
        joint("bracket", "fixed", "upper", "motor", xyz="0.35 0.02 0", rpy="0.5 0.1 -0.2"),
        joint("elbow", "continuous", "motor", "lower", '<dynamics damping="0.02"/>', xyz="0.05 0 0", rpy="0.2 0 0", axis="0 1 0"),
        joint("slide", "prismatic", "lower", "rod", limit(-0.5, 5), '<dynamics damping="2"/>', xyz="0.3 0 0", rpy="0 1.2 0"),
        joint("flange", "fixed", "rod", "tool", xyz="0 0 0.25", rpy="0 0 1"),
    )
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where MuJoCo writes its log


@pytest.fixture
def write(tmp_path):
    def file(inside, name="robot.urdf"):
        (tmp_path / name).write_text(f'<robot name="test">{inside}</robot>')
        return str(tmp_path / name)

    return file


def matrix(quaternion):
    return Rotation.from_quat(np.roll(quaternion, -1)).as_matrix()


def mass_of(scene, bodies):
    """(mass, centre, tensor about the centre, world axes) of some bodies of a scene together."""
    parts = []
    for body in bodies:
        mass, *moments = 1 / scene.bodies.inverse_mass[body]
        turn = matrix(scene.bodies.quaternion[body])
        parts.append((mass, scene.bodies.position[body], turn @ np.diag(moments) @ turn.T))
    return together(parts)


def together(parts):
    mass = sum(m for m, _, _ in parts)
    centre = sum(m * c for m, c, _ in parts) / mass
    about = lambda c: (c - centre) @ (c - centre) * np.eye(3) - np.outer(c - centre, c - centre)  # noqa: E731
    return mass, centre, sum(tensor + m * about(c) for m, c, tensor in parts)


def by_hand(path, poses, names):
    """The same for links of a URDF file at given poses, straight from the text of the file."""
    parts = []
    text = pathlib.Path(path).read_text()
    for name in names:
        found = re.search(rf'<link name="{name}">.*?</link>', text, re.S)
        if not found or "<inertial>" not in found[0]:
            continue
        numbers = lambda key, text=found[0]: np.array([float(v) for v in re.search(rf'{key}="(.*?)"', text)[1].split()])  # noqa: E731
        i = {key: numbers(key)[0] for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")}
        tensor = np.array([[i["ixx"], i["ixy"], i["ixz"]], [i["ixy"], i["iyy"], i["iyz"]], [i["ixz"], i["iyz"], i["izz"]]])
        turn = poses[name][:3, :3] @ Rotation.from_euler("xyz", numbers("rpy")).as_matrix()
        centre = poses[name][:3, :3] @ numbers("xyz") + poses[name][:3, 3]
        parts.append((numbers("<mass value")[0], centre, turn @ tensor @ turn.T))
    return together(parts)


def poses_by_yourdfpy(path, values, place=None):
    model = yourdfpy.URDF.load(path, load_meshes=False)
    model.update_cfg(values)
    place = np.eye(4) if place is None else place
    return {name: place @ model.get_transform(name) for name in model.link_map}


def snapshot(scene):
    fields = ("position", "quaternion", "velocity", "inverse_mass", "extent", "tag", "geometry")
    arrays = [getattr(scene.bodies, name).tobytes() for name in fields]
    plain = len(scene), len(scene.geometries), list(scene.materials), dict(scene.forces), scene.ignored.tobytes()
    return arrays, plain, len(scene.mechanism), len(scene.mechanism.filtered_pairs)


# --- poses and masses
@pytest.mark.parametrize("values", [{}, {"shoulder": 1.1, "elbow": -7.0, "slide": 0.2}])
def test_links_lie_where_yourdfpy_has_them(write, values):
    path, scene = write(ARM), gv.Scene()
    turn = np.array([0.5, -0.1, 0.7, 0.3]) / np.linalg.norm([0.5, -0.1, 0.7, 0.3])
    robot = load_urdf(scene, path, (1, 2, 3), turn, joint_positions=values)
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = matrix(turn), (1, 2, 3)
    model = yourdfpy.URDF.load(path, load_meshes=False)
    model.joint_map["shoulder"].axis /= np.linalg.norm(model.joint_map["shoulder"].axis)
    model.update_cfg(values)
    assert set(robot.links) == set(model.link_map)
    for name in robot.links:
        position, quaternion = robot.link_pose(scene, name)
        expected = place @ model.get_transform(name)
        assert np.allclose(position, expected[:3, 3], atol=1e-12)
        assert np.allclose(matrix(quaternion), expected[:3, :3], atol=1e-12)


def test_bodies_have_the_mass_of_their_links(write):
    path, scene = write(ARM), gv.Scene()
    values = {"shoulder": 0.4, "elbow": 0.9}
    robot = load_urdf(scene, path, base="floating", joint_positions=values)
    model = yourdfpy.URDF.load(path, load_meshes=False)
    model.joint_map["shoulder"].axis /= np.linalg.norm(model.joint_map["shoulder"].axis)
    model.update_cfg(values)
    poses = {name: model.get_transform(name) for name in model.link_map}
    for names in (("base", "mount"), ("upper", "motor"), ("lower",), ("rod", "tool")):
        bodies = {robot.links[name] for name in names}
        assert len(bodies) == 1
        for ours, theirs in zip(mass_of(scene, bodies), by_hand(path, poses, names)):
            assert np.allclose(ours, theirs, rtol=1e-12, atol=1e-15)


def test_moving_bodies_have_the_masses_that_mujoco_finds(write):
    path, scene = write(ARM), gv.Scene()
    robot = load_urdf(scene, path)
    model = mujoco.MjModel.from_xml_path(path)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    for names in (("upper", "motor"), ("lower",), ("rod", "tool")):
        parts = []
        for number in (model.body(name).id for name in names):
            turn = data.ximat[number].reshape(3, 3)
            parts.append((model.body_mass[number], data.xipos[number], turn @ np.diag(model.body_inertia[number]) @ turn.T))
        for ours, theirs in zip(mass_of(scene, {robot.links[name] for name in names}), together(parts)):
            assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-12)


# --- motion
def final_angles(path, dt, until):
    scene = gv.Scene()
    robot = load_urdf(scene, path)
    sim = gv.Simulation(scene, dt=dt, precision="double")
    sim.run(until=until)
    table = sim.joints
    return np.array([table.angle[robot.joints["shoulder"]], table.angle[robot.joints["elbow"]], table.slide[robot.joints["slide"]]])


def test_arm_moves_as_in_mujoco_and_converges_with_the_square_of_the_step(write):
    path, until = write(ARM), 0.3
    model = mujoco.MjModel.from_xml_path(path)
    model.opt.timestep, model.opt.integrator = 1e-4, int(mujoco.mjtIntegrator.mjINT_RK4)
    data = mujoco.MjData(model)
    for _ in range(round(until / 1e-4)):
        mujoco.mj_step(model, data)
    assert np.abs(data.qpos).min() > 0.05  # all three move
    coarse, fine = (np.abs(final_angles(path, dt, until) - data.qpos).max() for dt in (4e-3, 2e-3))
    assert fine < 1e-3  # of the order of (rate dt)^2 for rates of 10 rad/s
    assert 3.0 < coarse / fine < 5.0


def test_angles_are_those_of_the_file_from_the_start(write):
    scene = gv.Scene(gravity=(0, 0, 0))
    robot = load_urdf(scene, write(ARM), joint_positions={"shoulder": -0.7, "elbow": 8.0, "slide": 0.1})
    sim = gv.Simulation(scene, dt=1e-3, precision="double")
    sim.step()
    assert sim.joints.angle[robot.joints["shoulder"]] == pytest.approx(-0.7)
    assert sim.joints.angle[robot.joints["elbow"]] == pytest.approx(8.0)
    assert sim.joints.slide[robot.joints["slide"]] == pytest.approx(0.1)


def pendulum(*options, kind="revolute", axis="0 1 0"):
    return link("base") + link("bob", inertial(1.0, "0.5 0 0")) + joint("hinge", kind, "base", "bob", *options, axis=axis)


def swing(path, until=0.5, **options):
    scene = gv.Scene()
    robot = load_urdf(scene, path, **options)
    sim = gv.Simulation(scene, dt=1e-3, precision="double")
    sim.run(until=until)
    return sim.joints[robot.joints["hinge"]]


def test_limits_stop_a_joint(write):
    assert swing(write(pendulum(limit(-0.1, 0.25)))).angle == pytest.approx(0.25, abs=1e-4)
    assert swing(write(pendulum(limit(-0.1, 2)))).angle > 0.5


def test_friction_holds_a_joint_up_to_its_torque(write):
    torque = 9.81 * 0.5  # N m, of the bob's weight
    assert swing(write(pendulum(f'<dynamics friction="{1.01 * torque}"/>', limit(-2, 2)))).angle == pytest.approx(0.0, abs=1e-5)
    assert swing(write(pendulum(f'<dynamics friction="{0.9 * torque}"/>', limit(-2, 2)))).angle > 0.05


def test_motor_without_limit_gets_the_effort_of_the_joint(write):
    torque = 9.81 * 0.5
    weak = swing(write(pendulum(limit(-2, 2, effort=0.5 * torque))), 0.1, motors={"hinge": gv.PositionMotor(0.0)})
    assert weak.angle > 0.01
    assert abs(weak.motor_torque) == pytest.approx(0.5 * torque)
    strong = swing(write(pendulum(limit(-2, 2, effort=2 * torque))), 0.1, motors=lambda name: gv.PositionMotor(0.0))
    assert strong.angle == pytest.approx(0.0, abs=1e-6)
    own = swing(write(pendulum(limit(-2, 2, effort=0.1))), 0.1, motors={"hinge": gv.PositionMotor(0.0, limit=2 * torque)})
    assert own.angle == pytest.approx(0.0, abs=1e-6)


def test_mimic_joints_follow(write):
    mimic = '<mimic joint="{}" multiplier="{}" offset="{}"/>'
    names = ("crank", "wheel", "rack", "second", "left", "right", "pulley")
    inside = link("base") + "".join(link(f"{name} link", inertial()) for name in names)
    inside += joint("crank", "continuous", "base", "crank link")
    inside += joint("wheel", "continuous", "base", "wheel link", mimic.format("crank", -2.5, 0.3), xyz="1 0 0")
    inside += joint("rack", "prismatic", "base", "rack link", limit(-9, 9), mimic.format("crank", 0.2, 0.1), xyz="2 0 0")
    inside += joint("second", "prismatic", "base", "second link", limit(-9, 9), mimic.format("rack", -1, 0.05), axis="1 0 0")
    inside += joint("left", "prismatic", "base", "left link", limit(-9, 9, effort=1e6), axis="0 1 0")
    inside += joint("right", "prismatic", "base", "right link", limit(-9, 9), mimic.format("left", -1.5, 0.02), axis="0 1 0")
    inside += joint("pulley", "continuous", "base", "pulley link", mimic.format("left", 4.0, 0.0))
    scene, motors = gv.Scene(gravity=(0, 0, 0)), {"crank": gv.SpeedMotor(3.0), "left": gv.SpeedMotor(0.5)}
    robot = load_urdf(scene, write(inside), joint_positions={"crank": 0.4}, motors=motors)
    sim = gv.Simulation(scene, dt=1e-3, precision="double")
    sim.run(until=0.5)
    angle, slide = ({name: getattr(sim.joints, kind)[robot.joints[name]] for name in names} for kind in ("angle", "slide"))
    assert angle["crank"] == pytest.approx(0.4 + 3.0 * 0.5, abs=3.0 * sim.dt)  # it takes a step to get up speed
    assert slide["left"] == pytest.approx(0.5 * 0.5, abs=0.5 * sim.dt)
    assert angle["wheel"] == pytest.approx(-2.5 * angle["crank"] + 0.3, abs=1e-6)
    assert slide["rack"] == pytest.approx(0.2 * angle["crank"] + 0.1, abs=1e-6)
    assert slide["second"] == pytest.approx(-slide["rack"] + 0.05, abs=1e-6)
    assert slide["right"] == pytest.approx(-1.5 * slide["left"] + 0.02, abs=1e-6)
    assert angle["pulley"] == pytest.approx(4.0 * slide["left"], abs=1e-6)


def test_floating_base_and_floating_joint_fall_freely(write):
    inside = link("a", inertial()) + link("b", inertial()) + joint("free", "floating", "a", "b", xyz="1 0 0")
    scene = gv.Scene()
    robot = load_urdf(scene, write(inside), base="floating")
    sim = gv.Simulation(scene, dt=1e-3, precision="double")
    sim.run(until=0.1)
    assert "free" not in robot.joints and any("'free'" in message for message in robot.messages)
    for name in ("a", "b"):
        assert robot.link_pose(sim, name)[0][2] == pytest.approx(-0.5 * 9.81 * 0.1**2, rel=0.02)


def test_planar_joint_keeps_its_plane(write):
    inside = link("base") + link("puck", inertial()) + joint("table", "planar", "base", "puck", axis="0 1 1")
    scene = gv.Scene()
    robot = load_urdf(scene, write(inside))
    sim = gv.Simulation(scene, dt=1e-3, precision="double")
    sim.run(until=0.2)
    position, _ = robot.link_pose(sim, "puck")
    fallen = 0.5 * 9.81 / np.sqrt(2) * 0.2**2  # down a slope of 45 degrees
    assert np.allclose(position, np.array([0, 1, -1]) / np.sqrt(2) * fallen, atol=0.02 * fallen)


def test_welds_hold_as_one_body_does(write):
    path = write(ARM)
    ends = []
    for merge in (True, False):
        scene = gv.Scene()
        robot = load_urdf(scene, path, merge_fixed=merge)
        sim = gv.Simulation(scene, dt=1e-3, precision="double")
        sim.run(until=0.2)
        ends.append(robot.link_pose(sim, "tool")[0])
        assert len(scene) == (4 if merge else 5)  # base, upper (with its motor or without), lower, rod
    assert np.allclose(*ends, atol=1e-5)
    assert np.linalg.norm(ends[0] - robot.link_pose(scene, "tool")[0]) > 0.05


# --- shapes
def test_shapes_are_where_the_file_puts_them(write):
    shapes = collision('<box size="0.2 0.4 0.6"/>', "1 0 0") + collision('<sphere radius="0.1"/>', "0 2 0")
    shapes += collision('<cylinder radius="0.1" length="0.8"/>', "0 0 3", "1.5707963267948966 0 0")
    inside = link("body", inertial(1.0, "0.3 0.1 0", "0.2 0.3 0.4", (0.02, 0.03, 0.04, 0.005, 0, 0)), shapes)
    for base in ("fixed", "floating"):
        scene = gv.Scene()
        robot = load_urdf(scene, write(inside), (0, 0, 10), base=base)
        down = np.tile([0.0, 0.0, -1.0], (4, 1))
        hits = scene.cast_rays([[1.09, 0.19, 20], [0, 2, 20], [0, 0.39, 20], [1.11, 0, 20]], down)
        assert np.allclose(20 - hits.distance[:3], [10.3, 10.1, 13.1], atol=1e-9)
        assert hits.body[:3].tolist() == [robot.links["body"]] * 3 and hits.body[3] < 0


def test_meshes_become_hulls_or_clumps(write, tmp_path):
    (tmp_path / "meshes").mkdir()
    trimesh.creation.box((0.2, 0.2, 0.2)).export(tmp_path / "meshes" / "cube.stl")
    (tmp_path / "urdf").mkdir()
    shape = collision('<mesh filename="package://some_robot/meshes/cube.stl" scale="1 2 3"/>', "0.5 0 0")
    path = write(link("body", inertial(), shape), "urdf/robot.urdf")
    for meshes, top in (("hull", 0.3), ("clump", 0.3)):
        scene = gv.Scene()
        load_urdf(scene, path, base="floating", meshes=meshes)
        hit = scene.cast_rays([[0.5, 0, 5]], [[0, 0, -1]])
        assert 5 - hit.distance[0] == pytest.approx(top, abs=1e-6 if meshes == "hull" else 0.02)


def test_links_without_a_collision_shape_touch_nothing(write):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    robot = load_urdf(scene, write(link("ghost", inertial())), base="floating")
    sim = gv.Simulation(scene, dt=1e-3, precision="double")
    sim.run(until=0.2)
    assert robot.link_pose(sim, "ghost")[0][2] == pytest.approx(-0.5 * 9.81 * 0.2**2, rel=0.01)
    assert any("touch nothing" in message and "'ghost'" in message for message in robot.messages)


@pytest.mark.parametrize("self_collision, pairs", [(False, set()), (True, {("a", "c")})])
def test_which_links_collide(write, self_collision, pairs):
    ball = collision('<sphere radius="0.3"/>')
    inside = "".join(link(name, inertial(), ball) for name in "abc") + link("tip", collision('<sphere radius="0.01"/>'))
    inside += joint("ab", "continuous", "a", "b", xyz="0.2 0 0") + joint("bc", "continuous", "b", "c", xyz="0.2 0 0")
    inside += joint("weld", "fixed", "c", "tip", xyz="-0.1 0 0")  # inside b, to which its own body c is joined
    scene = gv.Scene(gravity=(0, 0, 0))
    robot = load_urdf(scene, write(inside), base="floating", self_collision=self_collision)
    other = scene.add_body(gv.Sphere(0.1), (0, 0.35, 0))
    sim = gv.Simulation(scene, dt=1e-4, precision="double")
    sim.step()
    names = {body: name for name, body in robot.links.items() if name != "tip"}
    touching = set(zip(sim.contacts.body_a.tolist(), sim.contacts.body_b.tolist()))
    assert {(names[a], names[b]) for a, b in touching if other not in (a, b)} == pairs
    assert any(other in pair for pair in touching)  # others collide with the robot either way


# --- a real robot
def jvrc_values():
    rng = np.random.default_rng(3)
    model = yourdfpy.URDF.load(jvrc_description.urdf_path, load_meshes=False)
    return {
        name: rng.uniform(0.9 * one.limit.lower, 0.9 * one.limit.upper)
        for name, one in model.joint_map.items()
        if one.type == "revolute" and one.mimic is None
    }


def test_humanoid_has_the_poses_of_yourdfpy_and_its_mass():
    path, values, scene = jvrc_description.urdf_path, jvrc_values(), gv.Scene()
    robot = load_urdf(scene, path, base="floating", joint_positions=values)
    poses = poses_by_yourdfpy(path, values)
    assert len(robot.links) == 60 and len(robot.joints) == 44
    for name, expected in poses.items():
        position, quaternion = robot.link_pose(scene, name)
        assert np.allclose(position, expected[:3, 3], atol=1e-12)
        assert np.allclose(matrix(quaternion), expected[:3, :3], atol=1e-12)
    for ours, theirs in zip(mass_of(scene, range(len(scene))), by_hand(path, poses, poses)):
        assert np.allclose(ours, theirs, rtol=1e-12)


def test_humanoid_stands_and_the_floor_carries_its_weight():
    path = jvrc_description.urdf_path
    model = yourdfpy.URDF.load(path, load_meshes=False, build_collision_scene_graph=True, load_collision_meshes=True)
    height = -model.collision_scene.bounds[0, 2]
    weight = 9.81 * sum(one.inertial.mass for one in model.link_map.values() if one.inertial is not None)
    scene = gv.Scene()
    floor = scene.add_body(gv.Plane(), fixed=True)
    hold = lambda name: gv.PositionMotor(0.0, stiffness=2000.0, damping=50.0)  # noqa: E731
    robot = load_urdf(scene, path, (0, 0, height), base="floating", motors=hold)
    sim = gv.Simulation(scene, dt=1e-3, precision="double")
    sim.run(until=0.3)
    loads, feet = [], {robot.links["L_ANKLE_P_S"], robot.links["R_ANKLE_P_S"]}

    def weigh(s):
        loads.append(s.contacts.impulse[:, 2].sum() / s.dt)
        assert set(s.contacts.body_a.tolist()) == {floor} and set(s.contacts.body_b.tolist()) <= feet

    sim.run(until=0.6, observers=[weigh])
    position, quaternion = robot.link_pose(sim, "base_link")
    assert position[2] == pytest.approx(height, abs=5e-3)
    assert matrix(quaternion)[2, 2] > np.cos(np.radians(1))
    assert np.mean(loads) == pytest.approx(weight, rel=0.01)
    fingers = sim.joints.angle[[robot.joints["R_UTHUMB"], robot.joints["R_LTHUMB"]]]
    mimic = model.joint_map["R_LTHUMB"].mimic
    assert fingers[1] == pytest.approx(mimic.multiplier * fingers[0] + mimic.offset, abs=1e-6)


# --- what is left out, and what is refused
def test_messages_name_what_was_left_out(write):
    extra = '<transmission name="gearbox"/><gazebo reference="bob"/>'
    inside = pendulum(limit(0.2, 1), '<safety_controller k_velocity="1"/>') + extra
    inside += link("flag", "<visual><geometry><capsule/></geometry></visual>") + joint("pole", "fixed", "bob", "flag")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = "\n".join(load_urdf(gv.Scene(), write(inside)).messages)
    for words in ("<transmission> is left out: 'gearbox'", "<gazebo>", "<safety_controller> is left out: 'hinge'", "velocity limits"):
        assert words in text
    assert "no collision shape touch nothing: 'flag'" in text and "'hinge' at 0.2" in text and "with their parent: 'flag'" in text


def test_what_cannot_be_had_is_warned_about_once(write):
    inside = link("base") + link("puck", inertial())
    inside += joint("table", "planar", "base", "puck", '<dynamics damping="1" friction="2"/>')
    with pytest.warns(UserWarning, match="damping, friction of planar joints.*'table'") as caught:
        load_urdf(gv.Scene(), write(inside))
    assert len(caught) == 1


HINGE = joint("hinge", "continuous", "a", "b")
TWO = link("a") + link("b", inertial())
REFUSED = {
    "massless": (link("a") + link("b") + HINGE, {}, ("link 'b'", "mass above 0")),
    "massless base": (link("a"), {"base": "floating"}, ("link 'a'", "mass above 0")),
    "negative mass": (link("a") + link("b", inertial(-1.0)) + HINGE, {}, ("mass of link 'b'", "greater than 0", "-1")),
    "inertia": (link("a") + link("b", inertial(moments=(1, 1, 5, 0, 0, 0))) + HINGE, {}, ("link 'b'", "1, 1, 5", "sum of the others")),
    "no inertia": (link("a") + link("b", '<inertial><mass value="1"/></inertial>') + HINGE, {}, ("link 'b'", "<inertia>")),
    "joint name": (TWO + HINGE, {"joint_positions": {"hinges": 1.0}}, ("joint_positions", "'hinges'", "did you mean 'hinge'")),
    "motor name": (TWO + HINGE, {"motors": {"hnge": gv.SpeedMotor(1.0)}}, ("motors", "'hnge'", "did you mean 'hinge'")),
    "start": (
        TWO + joint("hinge", "revolute", "a", "b", limit(-1, 1)),
        {"joint_positions": {"hinge": 1.5}},
        ("joint 'hinge'", "-1 to 1", "1.5"),
    ),
    "mimic": (TWO + joint("hinge", "continuous", "a", "b", '<mimic joint="handle"/>'), {}, ("mimic of joint 'hinge'", "'handle'")),
    "own mimic": (TWO + joint("hinge", "continuous", "a", "b", '<mimic joint="hinge"/>'), {}, ("joint 'hinge'", "mimic itself")),
    "axis": (TWO + joint("hinge", "continuous", "a", "b", axis="0 0 0"), {}, ("axis of joint 'hinge'", "direction")),
    "damping": (TWO + joint("hinge", "continuous", "a", "b", '<dynamics damping="-1"/>'), {}, ("damping of joint 'hinge'", "at least 0")),
    "number": (TWO + joint("hinge", "continuous", "a", "b", xyz="0 zero 0"), {}, ("joint 'hinge'", "xyz", "'0 zero 0'")),
    "type": (TWO + joint("hinge", "turning", "a", "b"), {}, ("type of joint 'hinge'", "'turning'")),
    "child": (TWO + joint("hinge", "continuous", "a", "c"), {}, ("joint 'hinge'", "'c'")),
    "two parents": (TWO + HINGE + joint("other", "fixed", "a", "b"), {}, ("link 'b'", "'hinge'", "'other'")),
    "two roots": (TWO, {}, ("one root link", "'a', 'b'")),
    "circle": (link("r") + TWO + HINGE + joint("back", "fixed", "b", "a"), {}, ("link 'a'", "circle")),
    "twice": (TWO + link("b") + HINGE, {}, ("link 'b'", "twice")),
    "mesh": (link("a") + link("b", inertial(), collision('<mesh filename="lost.stl"/>')) + HINGE, {}, ("link 'b'", "lost.stl")),
    "shape": (link("a") + link("b", inertial(), collision("<torus/>")) + HINGE, {}, ("link 'b'", "<torus>")),
    "size": (link("a") + link("b", inertial(), collision('<sphere radius="-1"/>')) + HINGE, {}, ("link 'b'", "radius", "-1")),
    "base": (TWO + HINGE, {"base": "flying"}, ("base", "'flying'")),
    "position": (TWO + HINGE, {"position": (0, 0)}, ("position", "(2,)")),
    "quaternion": (TWO + HINGE, {"quaternion": (0, 0, 0, 0)}, ("quaternions", "zero")),
    "group": (TWO + HINGE, {"group": 40}, ("group", "below 32", "40")),
    "meshes": (TWO + HINGE, {"meshes": "boxes"}, ("meshes", "'boxes'")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_files_are_refused_in_one_sentence_and_leave_the_scene_alone(write, case):
    inside, options, words = REFUSED[case]
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    before = snapshot(scene)
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        load_urdf(scene, write(inside), **options)
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text, f"{word!r} is not in {text!r}"
    assert snapshot(scene) == before


@pytest.mark.parametrize(
    "options, words",
    [
        ({"motors": {"hinge": "fast"}}, ("joint 'hinge'", "'fast'")),
        ({"material": "steel"}, ("material", "'steel'")),
        ({"joint_positions": 3}, ("joint_positions", "3")),
        ({"motors": 3}, ("motors", "3")),
        ({"self_collision": "no"}, ("self_collision", "'no'")),
        ({"outside_files": 1}, ("outside_files", "1")),
    ],
)
def test_wrong_types_are_refused_and_leave_the_scene_alone(write, options, words):
    scene = gv.Scene()
    before = snapshot(scene)
    with pytest.raises(TypeError) as caught:
        load_urdf(scene, write(TWO + HINGE), **options)
    assert all(word in str(caught.value) for word in words)
    assert snapshot(scene) == before


def test_files_that_are_no_urdf_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.urdf' does not exist"):
        load_urdf(gv.Scene(), tmp_path / "no.urdf")
    for text, words in (("<robot", "no XML"), ("<mujoco/>", "<mujoco>"), ('<robot name="${x}"/>', "xacro")):
        (tmp_path / "wrong.urdf").write_text(text)
        with pytest.raises(ValueError, match=words):
            load_urdf(gv.Scene(), tmp_path / "wrong.urdf")
    with pytest.raises(TypeError, match="scene must be a Scene"):
        load_urdf(None, tmp_path / "wrong.urdf")


def test_moments_of_inertia_that_no_body_has_can_be_repaired(write):
    path = write(link("a") + link("b", inertial(moments=(1, 1, 5.5, 0, 0, 0))) + HINGE)
    scene = gv.Scene()
    robot = load_urdf(scene, path, repair_inertia=True)
    assert np.allclose(1 / scene.bodies.inverse_mass[robot.links["b"], 1:], 2.5)
    assert any("'b'" in message and "mean" in message for message in robot.messages)


def test_missing_parser_is_named(write, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "yourdfpy", None)
    with pytest.raises(ImportError, match=re.escape('pip install "gravel[robots]"')):
        load_urdf(gv.Scene(), write(TWO + HINGE))


# --- which files may be referred to
def cube(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    trimesh.creation.box((0.2, 0.2, 0.2)).export(path)


def robot_with_mesh(path, mesh):
    """A URDF file with one link, whose shape is a mesh."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'<robot name="test">{link("body", inertial(), collision(f"<mesh filename={mesh!r}/>"))}</robot>')
    return path


REACHED = {  # the URDF file, the mesh as written there, the mesh file, and another file that there must be
    "same folder": ("robot.urdf", "cube.stl", "cube.stl", None),
    "below": ("robot.urdf", "parts/left/cube.stl", "parts/left/cube.stl", None),
    "absolute": ("robot.urdf", "{root}/cube.stl", "cube.stl", None),
    "absolute, as a URL": ("robot.urdf", "file://{root}/cube.stl", "cube.stl", None),
    "out and in again": ("a/robot.urdf", "../a/cube.stl", "a/cube.stl", None),
    "meshes beside": ("a/urdf/robot.urdf", "../meshes/left/cube.stl", "a/meshes/left/cube.stl", None),
    "meshes above": ("a/urdf/robot.urdf", "meshes/cube.stl", "a/meshes/cube.stl", None),
    "collision beside": ("a/robots/robot.urdf", "../Collision/cube.stl", "a/Collision/cube.stl", None),
    "the package around": ("a/b/c/robot.urdf", "../../geometry/cube.stl", "a/geometry/cube.stl", "a/package.xml"),
    "a package above": ("arm/b/c/robot.urdf", "package://arm/geometry/cube.stl", "arm/geometry/cube.stl", None),
    "a package beside": ("a/urdf/robot.urdf", "package://hand/geometry/cube.stl", "hand/geometry/cube.stl", "hand/package.xml"),
}


@pytest.mark.parametrize("case", REACHED)
def test_meshes_near_the_file_and_in_its_packages_are_found(tmp_path, case):
    robot, written, mesh, other = REACHED[case]
    cube(tmp_path / mesh)
    if other:
        (tmp_path / other).write_text("<package/>")
    scene = gv.Scene()
    load_urdf(scene, robot_with_mesh(tmp_path / robot, written.format(root=tmp_path)), base="floating")
    assert len(scene) == 1 and 0.1 < scene.geometries[0].radius < 0.2


OUTSIDE = {
    "absolute": ("a/robot.urdf", "{root}/b/cube.stl", "b/cube.stl"),
    "absolute, as a URL": ("a/robot.urdf", "file://{root}/b/cube.stl", "b/cube.stl"),
    "above": ("a/b/robot.urdf", "../cube.stl", "a/cube.stl"),
    "far above": ("a/b/c/robot.urdf", "../../../cube.stl", "cube.stl"),
    "another folder beside": ("a/urdf/robot.urdf", "../secrets/cube.stl", "a/secrets/cube.stl"),
    "meshes further up": ("a/b/urdf/robot.urdf", "../../meshes/cube.stl", "a/meshes/cube.stl"),
    "out of a folder of meshes": ("a/urdf/robot.urdf", "../meshes/../cube.stl", "a/cube.stl"),
    "by its name in a folder above": ("a/b/c/robot.urdf", "cube.stl", "a/cube.stl"),
    "out of a package": ("arm/urdf/robot.urdf", "package://arm/../b/cube.stl", "b/cube.stl"),
    "a package that is none": ("a/urdf/robot.urdf", "package://b/cube.stl", "b/cube.stl"),
    "a package called ..": ("a/b/urdf/robot.urdf", "package://../cube.stl", "a/b/cube.stl"),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_meshes_elsewhere_are_refused_unless_they_are_allowed(tmp_path, case):
    robot, written, mesh = OUTSIDE[case]
    written = written.format(root=tmp_path)
    cube(tmp_path / mesh)
    (tmp_path / "a" / "meshes").mkdir(parents=True, exist_ok=True)
    path, scene = robot_with_mesh(tmp_path / robot, written), gv.Scene()
    with pytest.raises(ValueError) as caught:
        load_urdf(scene, path)
    text = str(caught.value)
    words = (repr(str(path)), "link 'body'", repr(written), repr(str(tmp_path / mesh)), repr(str(path.parent)), "outside_files=True")
    assert "\n" not in text and len(scene) == 0
    for word in words:
        assert word in text, f"{word!r} is not in {text!r}"
    load_urdf(scene, path, outside_files=True)
    assert len(scene) == 1


def test_symbolic_links_count_where_they_lead(tmp_path):
    cube(tmp_path / "b" / "cube.stl")
    path = robot_with_mesh(tmp_path / "a" / "robot.urdf", "cube.stl")
    (tmp_path / "a" / "cube.stl").symlink_to(tmp_path / "b" / "cube.stl")
    with pytest.raises(ValueError, match=re.escape(f"leads to {str(tmp_path / 'b' / 'cube.stl')!r}")):
        load_urdf(gv.Scene(), path)
    load_urdf(gv.Scene(), path, mesh_folder=tmp_path / "b")
    load_urdf(gv.Scene(), path, outside_files=True)
    path = tmp_path / "c" / "robot.urdf"  # as in a workspace that is installed by links
    path.parent.mkdir()
    path.symlink_to(robot_with_mesh(tmp_path / "b" / "robot.urdf", "cube.stl"))
    (tmp_path / "c" / "cube.stl").symlink_to(tmp_path / "b" / "cube.stl")
    load_urdf(gv.Scene(), path)


def test_packages_around_the_package_are_not_reached(tmp_path):
    cube(tmp_path / "a" / "cube.stl")
    for written in ("../../cube.stl", "package://../cube.stl", "cube.stl"):
        path = robot_with_mesh(tmp_path / "a" / "b" / "urdf" / "robot.urdf", written)
        for folder in ("a", "a/b"):
            (tmp_path / folder / "package.xml").write_text("<package/>")
        with pytest.raises(ValueError, match="outside_files=True"):
            load_urdf(gv.Scene(), path)
        (tmp_path / "a" / "b" / "package.xml").unlink()
        load_urdf(gv.Scene(), path)


def test_a_folder_of_meshes_may_be_given(tmp_path):
    cube(tmp_path / "b" / "c" / "cube.stl")
    for written in ("c/cube.stl", "cube.stl", "../b/c/cube.stl"):
        path = robot_with_mesh(tmp_path / "a" / "robot.urdf", written)
        folder = tmp_path / "b" if written.startswith("c/") else tmp_path / "b" / "c"
        with pytest.raises(ValueError, match=r"cube\.stl"):
            load_urdf(gv.Scene(), path)
        load_urdf(gv.Scene(), path, mesh_folder=folder)


def test_the_users_home_is_no_package(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "me"))
    cube(tmp_path / "home" / "me" / "cube.stl")
    for written in ("package://home/me/cube.stl", "package://me/cube.stl"):
        path = robot_with_mesh(tmp_path / "home" / "me" / "robots" / "robot.urdf", written)
        with pytest.raises(ValueError, match="outside_files=True"):
            load_urdf(gv.Scene(), path)
