"""Robots from MJCF: masses, poses, shapes and motion as MuJoCo itself has them, and refusals."""

import pathlib
import re
import struct
import warnings
import zlib

import gymnasium
import mujoco
import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import gravel as gv
from gravel.io.mjcf import load_mjcf

ASSETS = pathlib.Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
MODELS = sorted(path.name for path in ASSETS.glob("*.xml"))
NO_CONTACT = 'contype="0" conaffinity="0"'


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where MuJoCo writes its log


def mjcf(world, rest="", option=""):
    """A model with MuJoCo's most accurate integrator and a short step."""
    head = f'<compiler angle="radian"/><option timestep="1e-4" integrator="RK4" {option}/>'
    return f'<mujoco model="test">{head}<worldbody>{world}</worldbody>{rest}</mujoco>'


def load(scene, source, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_mjcf(scene, source, **options)


def matrix(quaternion):
    return Rotation.from_quat(np.roll(quaternion, -1)).as_matrix()


def mujoco_run(model, until, controls=None):
    """MuJoCo's state at a time; ``controls``: function of time -> values for all actuators, which it holds for a step."""
    data = mujoco.MjData(model)
    for _ in range(round(until / model.opt.timestep)):
        if controls is not None:
            data.ctrl[:] = controls(data.time + 0.5 * model.opt.timestep)
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    return data


def gravel_run(source, until, dt=1e-3, **options):
    scene = gv.Scene()
    robot = load(scene, source, **options)
    sim = gv.Simulation(scene, dt=dt, precision="double")
    sim.run(until=until)
    return robot, sim


def largest_difference(robot, sim, model, data):
    """Between the positions of all bodies, m, and their axes."""
    worst = 0.0
    for name in robot.links:
        body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name)
        if body > 0:
            position, quaternion = robot.link_pose(sim, name)
            worst = max(worst, np.abs(position - data.xpos[body]).max(), np.abs(matrix(quaternion) - data.xmat[body].reshape(3, 3)).max())
    return worst


def move_into_ranges(model, data):
    """Hinges and slides that the file starts beyond their range."""
    for j in range(model.njnt):
        if model.jnt_limited[j] and model.jnt_type[j] >= 2:
            data.qpos[model.jnt_qposadr[j]] = np.clip(data.qpos[model.jnt_qposadr[j]], *model.jnt_range[j])


def snapshot(scene):
    fields = ("position", "quaternion", "velocity", "inverse_mass", "extent", "tag", "geometry")
    arrays = [getattr(scene.bodies, name).tobytes() for name in fields]
    plain = len(scene), len(scene.geometries), list(scene.materials), dict(scene.forces), scene.ignored.tobytes()
    return arrays, plain, len(scene.mechanism), len(scene.mechanism.filtered_pairs)


# --- poses and masses
@pytest.mark.parametrize("name", MODELS)
def test_public_models_have_the_poses_and_masses_that_mujoco_finds(name):
    model = mujoco.MjModel.from_xml_path(str(ASSETS / name))
    data = mujoco.MjData(model)
    move_into_ranges(model, data)
    mujoco.mj_kinematics(model, data)
    scene = gv.Scene()
    turn = np.array([0.9, 0.1, -0.3, 0.2]) / np.linalg.norm([0.9, 0.1, -0.3, 0.2])
    robot = load(scene, ASSETS / name, position=(1, 2, 3), quaternion=turn)
    place = matrix(turn)
    by_body = {}
    for link, body in robot.links.items():
        number = next((b for b in range(model.nbody) if (model.body(b).name or f"body{b}") == link), None)
        if number is None:
            assert "/" in link  # a plane of the world
            continue
        position, quaternion = robot.link_pose(scene, link)
        assert np.allclose(position, place @ data.xpos[number] + (1, 2, 3), atol=1e-9)
        assert np.allclose(matrix(quaternion), place @ data.xmat[number].reshape(3, 3), atol=1e-9)
        by_body.setdefault(body, []).append(number)
    moving = {body: numbers for body, numbers in by_body.items() if scene.bodies.inverse_mass[body, 0] > 0}
    assert sum(len(numbers) for numbers in moving.values()) == (model.body_weldid > 0).sum()
    for body, numbers in moving.items():
        mass, *moments = 1 / scene.bodies.inverse_mass[body]
        axes = matrix(scene.bodies.quaternion[body])
        masses, centres = model.body_mass[numbers], data.xipos[numbers] @ place.T + (1, 2, 3)
        centre = masses @ centres / masses.sum()
        tensor = np.zeros((3, 3))
        for number, m, c in zip(numbers, masses, centres - centre):
            own = place @ data.ximat[number].reshape(3, 3)
            tensor += own @ np.diag(model.body_inertia[number]) @ own.T + m * (c @ c * np.eye(3) - np.outer(c, c))
        assert mass == pytest.approx(masses.sum())
        assert np.allclose(scene.bodies.position[body], centre, atol=1e-9)
        assert np.allclose(axes @ np.diag(moments) @ axes.T, tensor, rtol=1e-6, atol=1e-9 * np.trace(tensor))


def test_shapes_are_where_mujoco_has_them(tmp_path):
    trimesh.creation.icosphere(1, 0.3).apply_scale((1, 2, 0.5)).export(tmp_path / "egg.stl")
    rng = np.random.default_rng(1)
    heights = " ".join(f"{h:.3f}" for h in rng.uniform(0, 1, 20))
    assets = f"""<asset><mesh name="egg" file="{tmp_path / "egg.stl"}"/>
      <hfield name="hill" nrow="4" ncol="5" size="2 1.5 0.4 0.1" elevation="{heights}"/></asset>"""
    shapes = {"sphere": "0.3", "capsule": "0.1 0.3", "cylinder": "0.2 0.3", "ellipsoid": "0.3 0.2 0.1", "box": "0.3 0.2 0.1"}
    geoms = [f'<geom type="{kind}" size="{size}" {{}}/>' for kind, size in shapes.items()]
    geoms.append('<geom type="mesh" mesh="egg" {}/>')
    place = lambda: f'pos="{" ".join(map(str, rng.uniform(-0.4, 0.4, 3)))}" euler="{" ".join(map(str, rng.uniform(-3, 3, 3)))}"'  # noqa: E731
    world = '<geom type="plane" size="9 9 1" pos="0 0 -1" euler="0.1 0.2 0"/>'
    world += '<geom type="hfield" hfield="hill" pos="0 6 0" euler="0 0 0.3"/>'
    for k, geom in enumerate(geoms):
        world += f'<body name="b{k}" pos="{2 * k - 5} 0 1"><freejoint/>{geom.format(place())}{geoms[0].format(place())}</body>'
        world += f'<body name="s{k}" pos="{2 * k - 5} 3 1" euler="1 0 0">{geom.format(place())}</body>'
    source = mjcf(world, assets)
    model = mujoco.MjModel.from_xml_string(source)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    scene = gv.Scene()
    load(scene, source)
    targets = rng.uniform((-6, -1, 0), (6, 7, 1.5), (400, 3))
    origins = targets + rng.uniform((-1, -1, 4), (1, 1, 6), (400, 3))
    directions = (targets - origins) / np.linalg.norm(targets - origins, axis=1, keepdims=True)
    hit = np.zeros(1, np.int32)
    theirs = np.array([mujoco.mj_ray(model, data, o, d, None, True, -1, hit) for o, d in zip(origins, directions)])
    ours = scene.cast_rays(origins, directions).distance
    assert (theirs > 0).all() and np.ptp(theirs) > 1
    assert np.mean(np.abs(ours - theirs) < 1e-5) == 1.0  # MuJoCo keeps vertices in single precision


# --- motion
CHAIN = mjcf(
    f"""<body name="upper" pos="0 0 2"><joint name="shoulder" axis="0 1 0.3" damping="0.05" {{0}}/>
      <inertial pos="0.2 0.02 -0.1" mass="2" fullinertia="0.02 0.05 0.04 0.003 -0.002 0.001"/>
      <body name="lower" pos="0.4 0 0"><joint name="elbow" axis="0 1 0" stiffness="3" springref="0.2" {{0}}/>{{2}}
        <inertial pos="0.15 0 0.05" mass="1.2" fullinertia="0.01 0.02 0.02 0.001 0 0.0005"/>
        <body name="tip" pos="0.3 0 0"><joint name="rail" type="slide" axis="1 0 0.2" stiffness="200" damping="1" {{1}}/>
          <geom size="0.05" mass="0.4" pos="0.05 0 0" {NO_CONTACT}/>
          <body name="end" pos="0.1 0 0"><joint name="ball" type="ball" damping="0.01"/>
            <geom type="box" size="0.1 0.03 0.02" mass="0.3" pos="0.1 0 0" {NO_CONTACT}/></body></body></body></body>"""
)
TWIST = '<joint name="twist" axis="1 0 0"/>'  # a second joint of one body


def test_chain_of_all_joints_moves_as_in_mujoco_and_converges_with_the_square_of_the_step():
    source = CHAIN.format("", "", "")
    model = mujoco.MjModel.from_xml_string(source)
    data = mujoco_run(model, 0.4)
    coarse, fine = (largest_difference(*gravel_run(source, 0.4, dt), model, data) for dt in (4e-3, 2e-3))
    assert fine < (np.abs(data.qvel).max() * 2e-3) ** 2
    assert 3.0 < coarse / fine < 5.0
    robot, sim = gravel_run(source, 0.4)
    for name in ("shoulder", "elbow"):
        assert sim.joints.angle[robot.joints[name]] == pytest.approx(data.joint(name).qpos[0], abs=1e-4)
    assert sim.joints.slide[robot.joints["rail"]] == pytest.approx(data.joint("rail").qpos[0], abs=1e-4)


def test_several_joints_of_a_body_are_as_wrong_as_the_bodies_between_them_are_heavy():
    source = CHAIN.format("", "", TWIST)
    model = mujoco.MjModel.from_xml_string(source)
    data = mujoco_run(model, 0.4)
    heavy, light = (largest_difference(*gravel_run(source, 0.4, intermediate_mass=share), model, data) for share in (1e-2, 1e-3))
    assert 8.0 < heavy / light < 12.0
    robot, sim = gravel_run(source, 0.4)
    assert largest_difference(robot, sim, model, data) < 1e-4  # so as small as the share itself
    assert sim.joints.angle[robot.joints["twist"]] == pytest.approx(data.joint("twist").qpos[0], abs=1e-4)


def test_armature_slows_joints_as_in_mujoco():
    source = CHAIN.format('armature="0.05"', 'armature="0.3"', TWIST)
    data = mujoco_run(mujoco.MjModel.from_xml_string(source), 0.4)
    without = mujoco_run(mujoco.MjModel.from_xml_string(CHAIN.format("", "", TWIST)), 0.4)
    for rotors, close in ((True, True), (False, False)):
        robot, sim = gravel_run(source, 0.4, rotors=rotors)
        ours = [sim.joints.angle[robot.joints["shoulder"]], sim.joints.slide[robot.joints["rail"]]]
        theirs, bare = ([one.joint(name).qpos[0] for name in ("shoulder", "rail")] for one in (data, without))
        assert np.allclose(ours, theirs if close else bare, rtol=0.01)
        assert not np.allclose(ours, bare if close else theirs, rtol=0.01)
        assert any("armature" in message and "'rail'" in message for message in robot.messages)


@pytest.mark.parametrize(
    "joints, kind",
    [
        ('<joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/><joint name="y" axis="0 1 0"/>', "Planar"),
        ('<joint name="a" axis="1 0 0"/><joint name="b" axis="0 1 0"/>', "Universal"),
        ('<joint name="a" axis="1 0 0"/><joint name="b" axis="0 1 0"/><joint name="c" axis="0 0 1"/>', "Spherical"),
        ('<joint name="s" type="slide" axis="0 1 1" stiffness="50"/><joint name="h" axis="0 1 1" damping="0.1"/>', "Cylindrical"),
    ],
)
def test_joints_that_are_one_in_gravel_move_as_in_mujoco(joints, kind):
    world = f"""<body name="body" pos="0 0 1" euler="0.3 0.2 0.1">{joints}
      <geom type="box" size="0.1 0.2 0.3" pos="0.2 0.1 0.1" {NO_CONTACT}/>
      <body name="arm" pos="0.3 0 0"><joint name="swing" axis="0 1 0.2"/><geom type="box" size="0.2 0.02 0.03" pos="0.2 0 0" {NO_CONTACT}/>
      </body></body>"""
    model = mujoco.MjModel.from_xml_string(mjcf(world))
    robot, sim = gravel_run(mjcf(world), 0.3)
    assert len(sim.positions) == 2 and len(set(robot.joints.values())) == 2  # no intermediate bodies
    data = mujoco_run(model, 0.3)
    assert np.abs(data.qpos).max() > 0.1
    assert largest_difference(robot, sim, model, data) < 1e-4
    assert kind in sim.mechanism.names[0]


def test_actuators_drive_as_in_mujoco():
    world = "".join(
        f'<body name="{name}" pos="{k} 0 0"><joint name="{name}" axis="0 1 0" damping="0.1"/>'
        f'<geom type="box" size="0.2 0.02 0.03" pos="0.2 0 0" {NO_CONTACT}/></body>'
        for k, name in enumerate(("torque", "servo", "speed", "general", "weak"))
    )
    actuators = """<actuator><motor name="torque" joint="torque" gear="3" ctrlrange="-1 1"/>
      <position name="servo" joint="servo" kp="20" kv="2" gear="2"/><velocity name="speed" joint="speed" kv="4" gear="0.5"/>
      <general name="general" joint="general" gainprm="2" biastype="affine" biasprm="0.5 -30 -1"/>
      <position name="weak" joint="weak" kp="100" forcerange="-1 1"/></actuator>"""
    source = mjcf(world, actuators)
    model = mujoco.MjModel.from_xml_string(source)
    assert model.actuator(0).name == "torque"
    values = {"torque": 5.0, "servo": 0.4, "speed": -6.0, "general": 3.0, "weak": -1.0}
    data = mujoco_run(model, 0.3, lambda time: [values[model.actuator(k).name] for k in range(model.nu)])
    robot, sim = gravel_run(source, 0.3, controls=values)
    for name in values:
        assert sim.joints.angle[robot.joints[name]] == pytest.approx(data.joint(name).qpos[0], abs=1e-4)
    timed = {**values, "torque": lambda time: np.sin(20 * time)}
    fixed = [values[model.actuator(k).name] for k in range(model.nu)]
    data = mujoco_run(model, 0.3, lambda time: [timed["torque"](time), *fixed[1:]])
    robot, sim = gravel_run(source, 0.3, controls=timed)
    assert sim.joints.angle[robot.joints["torque"]] == pytest.approx(data.joint("torque").qpos[0], abs=1e-4)


def test_motors_replace_actuators():
    world = f'<body><joint name="hinge" axis="0 1 0"/><geom type="box" size="0.2 0.02 0.03" pos="0.2 0 0" {NO_CONTACT}/></body>'
    source = mjcf(world, '<actuator><motor name="drive" joint="hinge"/></actuator>')
    robot, sim = gravel_run(source, 0.1, motors={"hinge": gv.PositionMotor(0.0)}, controls={"drive": 100.0})
    assert sim.joints.angle[robot.joints["hinge"]] == pytest.approx(0.0, abs=1e-6)


def test_friction_ranges_and_starts_of_joints():
    bob = f'<geom size="0.1" pos="0.5 0 0" mass="1" {NO_CONTACT}/>'
    torque = 0.5 * 9.81
    world = f'<body><joint name="stuck" axis="0 1 0" frictionloss="{1.01 * torque}"/>{bob}</body>'
    world += f'<body pos="0 2 0"><joint name="slips" axis="0 1 0" frictionloss="{0.9 * torque}"/>{bob}</body>'
    world += f'<body pos="0 4 0"><joint name="stops" axis="0 1 0" ref="0.3" range="0.1 0.5"/>{bob}</body>'
    robot, sim = gravel_run(mjcf(world), 0.5)
    angles = {name: sim.joints.angle[robot.joints[name]] for name in robot.joints}
    assert angles["stuck"] == pytest.approx(0.0, abs=1e-5)
    assert angles["slips"] > 0.05
    assert angles["stops"] == pytest.approx(0.5, abs=1e-4)  # 0.2 rad below where it started, at 0.3


def test_keyframes_and_joint_positions_set_the_start():
    name = str(ASSETS / "humanoid.xml")
    model = mujoco.MjModel.from_xml_path(name)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 1)
    data.joint("right_elbow").qpos[0] = -0.4
    move_into_ranges(model, data)
    mujoco.mj_kinematics(model, data)
    scene = gv.Scene()
    robot = load(scene, name, keyframe=1, joint_positions={"right_elbow": -0.4})
    assert largest_difference(robot, _Still(scene), model, data) < 1e-9


class _Still:
    """A scene where a simulation is expected."""

    def __init__(self, scene):
        self.positions, self.quaternions = scene.bodies.position, scene.bodies.quaternion


def test_gravity_compensation_carries_a_body():
    world = f'<body name="up" gravcomp="1"><freejoint/><geom size="0.1" {NO_CONTACT}/></body>'
    world += f'<body name="half" pos="1 0 0" gravcomp="0.5"><freejoint/><geom size="0.1" {NO_CONTACT}/></body>'
    robot, sim = gravel_run(mjcf(world), 0.2)
    heights = [robot.link_pose(sim, name)[0][2] for name in ("up", "half")]
    assert heights[0] == pytest.approx(0.0, abs=1e-9)
    assert heights[1] == pytest.approx(-0.25 * 9.81 * 0.2**2, rel=0.01)


def test_ball_joints_have_springs_and_dampers():
    world = f"""<body name="bob" pos="0 0 1"><joint name="ball" type="ball" stiffness="2" damping="0.1"/>
      <geom type="box" size="0.1 0.2 0.05" pos="0.2 0 0" mass="1" {NO_CONTACT}/></body>"""
    model = mujoco.MjModel.from_xml_string(mjcf(world))
    data = mujoco_run(model, 0.2)
    robot, sim = gravel_run(mjcf(world), 0.2)
    assert largest_difference(robot, sim, model, data) < 1e-4
    assert data.body("bob").xmat[8] < 0.99  # it turned


# --- equalities
def test_loops_are_closed():
    bar = f'<geom type="capsule" size="0.02" fromto="0 0 0 {{}} 0 0" {NO_CONTACT}/>'
    world = f'<body name="crank" pos="0 0 1"><joint name="crank" axis="0 1 0"/>{bar.format(0.3)}'
    world += f'<body name="rod" pos="0.3 0 0"><joint axis="0 1 0"/>{bar.format(0.5)}</body></body>'
    world += f'<body name="rocker" pos="0.8 0 1"><joint name="rocker" axis="0 1 0"/>{bar.format(-0.4)}</body>'
    world += f'<body name="board" pos="0 2 1"><freejoint/>{bar.format(0.3)}</body><body name="post" pos="0 2 0.5"/>'
    equality = """<equality><connect name="pin" body1="rod" body2="rocker" anchor="0.5 0 0"/>
      <weld name="glue" body1="board" body2="post"/></equality>"""
    robot, sim = gravel_run(mjcf(world, equality), 0.3)
    ends = []
    for name, arm in (("rod", (0.5, 0, 0)), ("rocker", (0.0, 0, 0))):
        position, quaternion = robot.link_pose(sim, name)
        ends.append(position + matrix(quaternion) @ arm)
    assert np.allclose(*ends, atol=1e-6)
    assert np.allclose(robot.link_pose(sim, "board")[0], (0, 2, 1), atol=1e-6)
    assert {"pin", "glue"} <= set(robot.joints)


def test_equalities_of_joints_are_gears():
    bob = f'<geom size="0.1" {NO_CONTACT}/>'
    kinds = {"a": "hinge", "b": "hinge", "c": "slide", "d": "slide", "e": "hinge"}
    world = "".join(f'<body pos="{k} 0 0"><joint name="{name}" type="{kind}"/>{bob}</body>' for k, (name, kind) in enumerate(kinds.items()))
    equality = """<equality><joint joint1="b" joint2="a" polycoef="0 -2 0 0 0"/><joint joint1="c" joint2="a" polycoef="0 0.1 0 0 0"/>
      <joint joint1="d" joint2="c" polycoef="0 3 0 0 0"/><joint joint1="e" joint2="d" polycoef="0 0.5 0 0 0"/></equality>"""
    robot, sim = gravel_run(mjcf(world, equality), 0.2, motors={"a": gv.SpeedMotor(4.0)})
    a, b, e = (sim.joints.angle[robot.joints[name]] for name in "abe")
    c, d = (sim.joints.slide[robot.joints[name]] for name in "cd")
    assert a == pytest.approx(0.8, abs=4.0 * sim.dt)  # it takes a step to get up speed
    assert np.allclose([b, c, d, e], [-2 * a, 0.1 * a, 0.3 * a, 0.15 * a], atol=1e-6)


# --- who touches whom
@pytest.mark.parametrize("bits", [(1, 1), (0, 1), (1, 0), (2, 1), (2, 2), (4, 3)])
@pytest.mark.parametrize("others", [(1, 1), (1, 0), (2, 2), (3, 4)])
def test_contype_and_conaffinity(bits, others):
    body = '<body name="{}" pos="{} 0 0"><freejoint/><geom size="0.3" contype="{}" conaffinity="{}"/></body>'
    source = mjcf(body.format("one", 0, *bits) + body.format("two", 0.5, *others), option='gravity="0 0 0"')
    model = mujoco.MjModel.from_xml_string(source)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    scene = gv.Scene(gravity=(0, 0, 0))
    load(scene, source)
    sim = gv.Simulation(scene, dt=1e-4)
    sim.step()
    assert len(sim.contacts) == data.ncon


def touching(source):
    scene = gv.Scene(gravity=(0, 0, 0))
    robot = load(scene, source)
    sim = gv.Simulation(scene, dt=1e-4)
    sim.step()
    names = {body: name for name, body in robot.links.items()}
    return {frozenset((names[a], names[b])) for a, b in zip(sim.contacts.body_a.tolist(), sim.contacts.body_b.tolist())}


def touching_in_mujoco(source):
    model = mujoco.MjModel.from_xml_string(source)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    name = lambda geom: model.body(model.geom_bodyid[geom]).name  # noqa: E731
    pairs = {frozenset((name(c.geom1), name(c.geom2))) for c in data.contact}
    return {pair if "world" not in pair else (pair - {"world"}) | {"world/floor"} for pair in pairs}


@pytest.mark.parametrize("joints", ['<joint axis="1 0 0"/>', '<joint axis="1 0 0" damping="1"/><joint axis="0 1 0" damping="1"/>'])
@pytest.mark.parametrize(
    "exclude", ["", '<contact><exclude body1="a" body2="c"/></contact>', '<contact><exclude body1="world" body2="c"/></contact>']
)
def test_neighbours_and_excluded_bodies_do_not_touch(joints, exclude):
    ball = '<geom size="0.3"/>'
    world = f'<geom name="floor" type="plane" size="9 9 1" pos="0 0 -0.25"/><body name="a"><freejoint/>{ball}<body name="b" pos="0.2 0 0">'
    world += f'{joints}{ball}<body name="c" pos="0.2 0 0">{joints}{ball}</body></body></body>'
    source = mjcf(world, exclude, 'gravity="0 0 0"')
    pairs = touching_in_mujoco(source)
    assert (frozenset("ac") in pairs) == ('body1="a"' not in exclude)
    assert (frozenset(("world/floor", "c")) in pairs) == ("world" not in exclude)
    assert touching(source) == pairs


def test_what_is_fixed_can_be_left_out():
    world = '<geom name="floor" type="plane" size="9 9 1"/><body name="wall"><geom size="0.1"/></body>'
    world += '<body name="ball"><freejoint/><geom size="1"/></body>'
    for static, names in ((True, {"world/floor", "wall", "ball"}), (False, {"ball"})):
        scene = gv.Scene()
        robot = load(scene, mjcf(world), static=static)
        assert set(robot.links) == names and len(scene) == len(names)


def test_two_robots_of_one_file_collide_and_go_into_checkpoints(tmp_path):
    scene = gv.Scene()
    ants = [load(scene, ASSETS / "ant.xml", position=(0, 0, 0.4 * k), static=k == 0) for k in range(2)]
    bodies = [{body for name, body in ant.links.items() if name != "world/floor"} for ant in ants]
    assert not bodies[0] & bodies[1] and not set(ants[0].joints.values()) & set(ants[1].joints.values())
    sim = gv.Simulation(scene, dt=1e-3, precision="double")
    sim.step()
    pairs = set(zip(sim.contacts.body_a.tolist(), sim.contacts.body_b.tolist()))
    assert any(a in bodies[0] and b in bodies[1] for a, b in pairs)
    assert not any({a, b} <= ant for a, b in pairs for ant in bodies)  # their geoms have conaffinity 0
    sim.save(tmp_path / "ants.h5")
    again = gv.Simulation.load(tmp_path / "ants.h5")
    for one in (sim, again):
        one.run(until=0.05)
    assert np.array_equal(sim.positions, again.positions)


# --- a robot that stands
def test_ant_stands_as_high_as_in_mujoco():
    path = str(ASSETS / "ant.xml")
    pose = {"ankle_1": 1.0, "ankle_2": -1.0, "ankle_3": -1.0, "ankle_4": 1.0}
    hold = lambda name: gv.PositionMotor(pose.get(name, 0.0), stiffness=500.0, damping=20.0)  # noqa: E731
    scene = gv.Scene()
    robot = load(scene, path, joint_positions=pose, motors=hold)
    sim = gv.Simulation(scene, dt=1e-3, precision="double")
    sim.run(until=1.5)
    loads = []
    sim.run(until=1.6, observers=[lambda s: loads.append(s.contacts.impulse[:, 2].sum() / s.dt)])
    spec = mujoco.MjSpec.from_file(path)
    for actuator in spec.actuators:
        actuator.gear[0] = 1.0
        actuator.ctrllimited = 0
        actuator.set_to_position(kp=500.0, kv=20.0)
    model = spec.compile()
    model.opt.timestep = 1e-3
    model.geom_margin[:] = 0.0  # with which contacts would begin above the floor; gravel leaves them out
    data = mujoco.MjData(model)
    for name, value in pose.items():
        data.joint(name).qpos[0] = value
    targets = [pose.get(model.joint(model.actuator_trnid[k, 0]).name, 0.0) for k in range(model.nu)]
    for _ in range(1600):
        data.ctrl[:] = targets
        mujoco.mj_step(model, data)
    torso, _ = robot.link_pose(sim, "torso")
    assert torso[2] == pytest.approx(data.body("torso").xpos[2], abs=5e-3)  # MuJoCo's contacts are soft
    assert 0.2 < torso[2] < 0.74  # it came down, and not onto its belly, a ball of 0.25 m, alone
    assert np.mean(loads) == pytest.approx(9.81 * model.body_mass.sum(), rel=0.01)


# --- what is left out, and what is refused
def test_messages_name_what_was_left_out_and_one_warning_says_what_matters():
    world = f"""<light/><site name="s"/><body name="post" mocap="true"><geom size="0.1"/></body>
      <body name="bob"><joint name="hinge" axis="0 1 0"/><geom name="g" size="0.1" {NO_CONTACT}/><site name="end"/></body>
      <body name="ball" pos="1 0 0"><joint name="socket" type="ball" range="0 1"/><geom size="0.1"/></body>"""
    rest = """<tendon><spatial name="rope" stiffness="10"><site site="s"/><site site="end"/></spatial></tendon>
      <actuator><muscle name="biceps" joint="hinge" lengthrange="0 1"/><motor name="pull" tendon="rope"/></actuator>
      <equality><joint name="curve" joint1="hinge" polycoef="0 1 1 0 0"/></equality>"""
    source = mjcf(world, rest, 'density="1000"')
    with pytest.warns(UserWarning, match="robot 'test'") as caught:
        robot = load_mjcf(gv.Scene(), source)
    text, warning = "\n".join(robot.messages), str(caught[0].message)
    assert len(caught) == 1
    for words in ("fluid", "'rope'", "'biceps'", "'pull'", "'curve'", "'socket'", "'post'"):
        assert words in text and words in warning
    for words in ("lights", "sites", "'g'"):
        assert words in text and words not in warning


BOB = mjcf(
    '<body name="bob"><joint name="hinge" axis="0 1 0" range="-1 1"/><geom size="0.1"/></body>',
    '<actuator><motor name="m" joint="hinge"/></actuator>',
)


@pytest.mark.parametrize(
    "source, options, error, words",
    [
        ("<mujoco><worldbody><body/></worldbod></mujoco>", {}, ValueError, ("path_or_xml", "MuJoCo")),
        (mjcf('<body><joint/><geom size="-1"/></body>'), {}, ValueError, ("path_or_xml", "size")),
        (mjcf("<body><joint/></body>"), {}, ValueError, ("path_or_xml", "mass")),
        ("no_such.xml", {}, FileNotFoundError, ("'no_such.xml'", "does not exist")),
        (7, {}, TypeError, ("path", "7")),
        (BOB, {"joint_positions": {"hinges": 0.0}}, ValueError, ("joint_positions", "'hinges'", "did you mean 'hinge'")),
        (BOB, {"joint_positions": {"hinge": 2.0}}, ValueError, ("joint_positions['hinge']", "-1 to 1", "2.0")),
        (BOB, {"joint_positions": {"hinge": "left"}}, TypeError, ("joint_positions['hinge']", "'left'")),
        (BOB, {"motors": {"bob": gv.SpeedMotor(1.0)}}, ValueError, ("motors", "'bob'")),
        (BOB, {"motors": {"hinge": 5.0}}, TypeError, ("joint 'hinge'", "5.0")),
        (BOB, {"controls": {"n": 1.0}}, ValueError, ("controls", "'n'")),
        (BOB, {"controls": {"m": "full"}}, TypeError, ("controls['m']", "'full'")),
        (BOB, {"keyframe": "home"}, ValueError, ("keyframe", "'home'")),
        (BOB, {"intermediate_mass": 0.0}, ValueError, ("intermediate_mass", "greater than 0")),
        (BOB, {"static": 1}, TypeError, ("static", "1")),
        (BOB, {"outside_files": "no"}, TypeError, ("outside_files", "'no'")),
        (BOB, {"material": "wood"}, TypeError, ("material", "'wood'")),
        (BOB, {"quaternion": (0, 0, 0, 0)}, ValueError, ("quaternion", "zero")),
    ],
)
def test_bad_input_is_refused_in_one_sentence_and_leaves_the_scene_alone(source, options, error, words):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    before = snapshot(scene)
    with pytest.raises(error) as caught:
        load_mjcf(scene, source, **options)
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text, f"{word!r} is not in {text!r}"
    assert snapshot(scene) == before


def test_missing_parser_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mujoco", None)
    with pytest.raises(ImportError, match=re.escape('pip install "gravel[robots]"')):
        load_mjcf(gv.Scene(), BOB)


# --- which files may be referred to
BOX = '<worldbody><body name="body"><freejoint/>{}</body></worldbody>'
BALL = BOX.format('<geom size="0.1"/>')
WITH_MESH = BOX.format('<geom type="mesh" mesh="m"/>')


def write(path, inside):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<mujoco>{inside}</mujoco>")
    return path


def put_assets(folder):
    """One file of each kind that a model may refer to."""
    folder.mkdir(parents=True, exist_ok=True)
    trimesh.creation.box((0.2, 0.2, 0.2)).export(folder / "cube.stl")
    write(folder / "ball.xml", BALL)
    (folder / "hill.bin").write_bytes(np.array([2, 2], "i4").tobytes() + np.array([0.0, 0.1, 0.2, 0.3], "f4").tobytes())
    (folder / "red.png").write_bytes(PNG)


def png():
    """A picture of one point."""
    part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))  # noqa: E731
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(b"\0\xff\0\0")) + part(b"IEND", b"")


PNG = png()
REFERENCES = {  # with the place of the folder in which the files are
    "include": "<include file='{}/ball.xml'/>",
    "mesh": "<asset><mesh name='m' file='{}/cube.stl'/></asset>" + WITH_MESH,
    "meshdir": "<compiler meshdir='{}'/><asset><mesh name='m' file='cube.stl'/></asset>" + WITH_MESH,
    "assetdir": "<compiler assetdir='{}'/><asset><mesh name='m' file='cube.stl'/></asset>" + WITH_MESH,
    "hfield": "<asset><hfield name='h' file='{}/hill.bin' size='1 1 1 1'/></asset>" + BALL,
    "texture": "<asset><texture name='t' type='2d' file='{}/red.png'/></asset>" + BALL,
    "texturedir": "<compiler texturedir='{}'/><asset><texture name='t' type='2d' file='red.png'/></asset>" + BALL,
    "side of a texture": "<asset><texture name='t' type='cube' fileright='{}/red.png'/></asset>" + BALL,
    "model": "<asset><model name='m' file='{}/ball.xml'/></asset>" + BALL,
    "flexcomp": BALL + "<worldbody><flexcomp name='f' type='mesh' file='{}/cube.stl' mass='1' dim='2'/></worldbody>",
}


@pytest.mark.parametrize("kind", REFERENCES)
@pytest.mark.parametrize(
    "folder, written",
    [("a", "."), ("a/parts", "parts"), ("assets", "../assets"), ("Meshes/left", "../Meshes/left"), ("a", "{root}/a"), ("a", "../a")],
)
def test_files_near_the_model_are_read(tmp_path, kind, folder, written):
    put_assets(tmp_path / folder)
    path = write(tmp_path / "a" / "robot.xml", REFERENCES[kind].format(written.format(root=tmp_path)))
    scene = gv.Scene()
    load(scene, path)
    assert len(scene) >= 1


@pytest.mark.parametrize("kind", REFERENCES)
@pytest.mark.parametrize("written", ["..", "../b", "../../top/b", "{root}/b", "..\\b", "../assets/../b"])
def test_files_elsewhere_are_refused_before_mujoco_reads_anything(tmp_path, monkeypatch, kind, written):
    root = tmp_path / "top"
    put_assets(root)
    put_assets(root / "b")
    (root / "assets").mkdir()
    written = written.format(root=root)
    path, scene = write(root / "a" / "robot.xml", REFERENCES[kind].format(written)), gv.Scene()
    with monkeypatch.context() as patch, pytest.raises(ValueError) as caught:
        patch.setattr(mujoco.MjModel, "from_xml_path", None)
        load_mjcf(scene, path)
    text = str(caught.value)
    name = next(name for name in ("ball.xml", "cube.stl", "hill.bin", "red.png") if name in REFERENCES[kind])
    true = root / name if written == ".." else root / "b" / name
    assert "\n" not in text and len(scene) == 0
    for word in (repr(str(path)), name, repr(str(true)), repr(str(root / "a")), "outside_files=True"):
        assert word in text, f"{word!r} is not in {text!r}"
    load(scene, path, outside_files=True)
    assert len(scene) >= 1


def test_included_files_are_looked_into(tmp_path):
    put_assets(tmp_path / "b")
    write(tmp_path / "a" / "parts" / "one.xml", "<include file='two.xml'/>")
    write(tmp_path / "a" / "parts" / "two.xml", f"<asset><mesh name='m' file='{tmp_path}/b/cube.stl'/></asset>{WITH_MESH}")
    path = write(tmp_path / "a" / "robot.xml", "<include file='parts/one.xml'/>")
    with pytest.raises(ValueError, match=re.escape(f"leads to {str(tmp_path / 'b' / 'cube.stl')!r}")):
        load_mjcf(gv.Scene(), path)
    load(gv.Scene(), path, outside_files=True)
    write(tmp_path / "a" / "parts" / "two.xml", "<compiler meshdir='../b'/>")
    write(tmp_path / "a" / "parts" / "one.xml", f"<include file='two.xml'/><asset><mesh name='m' file='cube.stl'/></asset>{WITH_MESH}")
    with pytest.raises(ValueError, match="outside_files=True"):
        load_mjcf(gv.Scene(), path)
    (tmp_path / "package.xml").write_text("<package/>")
    load(gv.Scene(), path)


def test_links_and_texts_reach_as_far_as_their_folders(tmp_path, monkeypatch):
    put_assets(tmp_path / "b")
    path = write(tmp_path / "a" / "robot.xml", REFERENCES["mesh"].format("."))
    (tmp_path / "a" / "cube.stl").symlink_to(tmp_path / "b" / "cube.stl")
    with pytest.raises(ValueError, match=re.escape(f"leads to {str(tmp_path / 'b' / 'cube.stl')!r}")):
        load_mjcf(gv.Scene(), path)
    load(gv.Scene(), path, outside_files=True)
    text = mjcf(
        WITH_MESH.removeprefix("<worldbody>").removesuffix("</worldbody>"), f"<asset><mesh name='m' file='{tmp_path}/b/cube.stl'/></asset>"
    )
    monkeypatch.chdir(tmp_path / "a")
    with pytest.raises(ValueError, match="the text: .*outside_files=True"):
        load_mjcf(gv.Scene(), text)
    monkeypatch.chdir(tmp_path / "b")
    load(gv.Scene(), text)


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE m [<!-- ><mujoco><include file='{b}/ball.xml'/></mujoco> -->]><mujoco/>",
        "<mujoco><!-- - -- - --><include file='{b}/ball.xml'/></mujoco>",
        "<mujoco model='<!--'><include file='{b}/ball.xml'/><custom><text name='-->' data='x'/></custom></mujoco>",
    ],
)
def test_what_mujoco_may_read_otherwise_is_refused(tmp_path, text):
    put_assets(tmp_path / "b")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "robot.xml").write_text(text.format(b=tmp_path / "b"))
    with pytest.raises(ValueError, match=r"robot\.xml.*no plain XML.*outside_files=True"):
        load_mjcf(gv.Scene(), tmp_path / "a" / "robot.xml")


def test_models_that_mujoco_brings_along_are_read():
    for path in sorted((pathlib.Path(mujoco.__file__).parent / "testdata").glob("*.xml")):
        load(gv.Scene(), path)
