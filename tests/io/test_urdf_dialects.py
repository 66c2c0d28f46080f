"""URDF as people write it: what has one plain meaning gives the bits of its plain twin and is told; the rest is refused."""

import warnings

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import gravel as gv
from gravel.io.urdf import load_urdf

INERTIA = '<inertia ixx="0.02" iyy="0.03" izz="0.04"/>'
ARM = (
    '<link name="base"/><link name="arm"><inertial><origin xyz="0.5 0 0"/><mass value="2"/>' + INERTIA + "</inertial>"
    '<collision><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><geometry><mesh filename="cube.stl" scale="1 2 3"/></geometry></collision>'
    '</link><joint name="hinge" type="revolute"><origin xyz="0.07 0 -0.69" rpy="0.3 -1.5 0.4"/><parent link="base"/><child link="arm"/>'
    '<axis xyz="0 1 0"/><limit lower="-1.5" upper="2" effort="30" velocity="1"/></joint>'
)


@pytest.fixture
def write(tmp_path):
    trimesh.creation.box((0.2, 0.2, 0.2)).export(tmp_path / "cube.stl")

    def file(inside, before='<robot name="test">', after="</robot>"):
        path = tmp_path / "robot.urdf"
        path.write_bytes((before + inside + after).encode())
        return str(path)

    return file


def added(path, **options):
    """(everything that a robot adds, as bytes and plain values; its messages)"""
    scene = gv.Scene()
    robot = load_urdf(scene, path, **options)
    fields = ("position", "quaternion", "velocity", "inverse_mass", "extent", "tag", "geometry")
    arrays = [getattr(scene.bodies, name).tobytes() for name in fields]
    corners = [geometry.vertices.tobytes() for geometry in scene.geometries]
    joints = repr((scene.mechanism.coordinates, scene.mechanism.row_values, scene.mechanism.joint_values))
    return (arrays, corners, joints, robot.links, robot.joints), robot.messages


def matrix(quaternion):
    return Rotation.from_quat(np.roll(quaternion, -1)).as_matrix()


# --- dialects of plain URDF
WRITTEN = {  # plain text, the same in a dialect, and what is said about it
    "commas": ('xyz="0.07 0 -0.69"', 'xyz="0.07, 0, -0.69"', "commas between numbers are taken for blanks: joint 'hinge'"),
    "commas alone": ('rpy="0.1 0.2 0.3"', 'rpy="0.1,0.2,0.3"', "commas between numbers are taken for blanks: link 'arm'"),
    "four angles": ('rpy="0.3 -1.5 0.4"', 'rpy="0.3 -1.5 0.4 7"', "first three are taken: rpy='0.3 -1.5 0.4 7' of joint 'hinge'"),
    "four scales": ('scale="1 2 3"', 'scale="1 2 3 1"', "first three are taken: scale='1 2 3 1' of link 'arm'"),
    "full stop": ('lower="-1.5"', 'lower="-1.5."', "full stops after numbers are left out: lower='-1.5.' of joint 'hinge'"),
    "variable": ('rpy="0.3 -1.5 0.4"', 'rpy="$(optenv IMU_RPY 0.3 -1.5 0.4)"', "without the environment variable: IMU_RPY"),
    "variable of one number": ('value="2"', 'value="$(optenv MASS 2)"', "without the environment variable: MASS"),
    "variable in a name": ('"cube.stl"', '"$(optenv SHAPE cube).stl"', "without the environment variable: SHAPE"),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_dialects_give_the_same_robot_as_plain_urdf_and_are_told(write, case, monkeypatch):
    for name in ("IMU_RPY", "MASS", "SHAPE"):
        monkeypatch.setenv(name, "9 9 9")  # which is not looked at
    plain, dialect, message = WRITTEN[case]
    assert ARM.count(plain) == 1
    expected, before = added(write(ARM))
    found, messages = added(write(ARM.replace(plain, dialect)))
    assert found == expected
    assert any(message in one for one in messages) and not any(message in one for one in before)


AROUND = {  # before and after what is in <robot>, and what is said about it
    "blanks first": ('\n \n<?xml version="1.0"?>\n<robot name="test">', "</robot>", "blanks before <?xml"),
    "nought after": ('<robot name="test">', "</robot>\r\n\0", "after </robot> is left out"),
    "both": (' <?xml version="1.0"?><robot name="test">', "</robot> end", "after </robot> is left out"),
    "namespace": (
        '<robot name="test" xmlns="http://somewhere.org">',
        "</robot>",
        "namespace of <robot> is left out: 'http://somewhere.org'",
    ),
    "unused prefix": ('<robot name="test" xmlns:xacro="http://ros.org/wiki/xacro">', "</robot>", None),
}


@pytest.mark.parametrize("case", AROUND)
def test_what_is_around_the_robot_does_not_matter(write, case):
    before, after, message = AROUND[case]
    expected, plain = added(write(ARM))
    found, messages = added(write(ARM, before, after))
    assert found == expected
    assert messages == plain if message is None else any(message in one for one in messages)


def test_what_is_not_used_may_be_written_in_any_way(write):
    seen = '<link name="base"><visual><origin xyz="a b"/><geometry><mesh filename="$(find robot)/x.dae" scale="1,0 2"/></geometry></visual>'
    extra = '<gazebo><sensor radius="wide">$(find robot)</sensor></gazebo>'
    inside = ARM.replace('<link name="base"/>', seen + "</link>") + extra
    assert added(write(inside))[0] == added(write(ARM))[0]


REFUSED = {
    "comma for a point": ('xyz="0.07 0 -0.69"', 'xyz="0,07 0 -0.69"', ("joint 'hinge'", "three numbers", "'0,07 0 -0.69'")),
    "commas for points": ('xyz="0.07 0 -0.69"', 'xyz="0,07 0,1 -0,69"', ("joint 'hinge'", "three numbers")),
    "one number with a comma": ('value="2"', 'value="2,5"', ("link 'arm'", "value of <mass>", "a number", "'2,5'")),
    "two commas": ('xyz="0.07 0 -0.69"', 'xyz="0.07,, 0, -0.69"', ("joint 'hinge'", "three numbers")),
    "four with commas": ('xyz="0.07 0 -0.69"', 'xyz="0.07, 0, -0.69, 1"', ("joint 'hinge'", "three numbers")),
    "two numbers": ('xyz="0.07 0 -0.69"', 'xyz="0.07 0"', ("joint 'hinge'", "three numbers")),
    "two points": ('lower="-1.5"', 'lower="-1.5.2"', ("joint 'hinge'", "lower of <limit>", "'-1.5.2'")),
    "variable without value": ('rpy="0.3 -1.5 0.4"', 'rpy="$(optenv IMU_RPY)"', ("joint 'hinge'", "rpy", "xacro")),
    "package": ('"cube.stl"', '"$(find robot)/cube.stl"', ("link 'arm'", "filename of <mesh>", "$(find robot)", "xacro")),
    "no link": (ARM, "<deformable/>", ("robot 'test'", "must have a <link>", "<deformable>")),
    "more after the end": ("</joint>", '</joint></robot><link name="more"/>', ("no XML",)),
    "file from elsewhere": ("<link", "&secret;<link", ("no XML", "secret")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_may_mean_two_things_is_refused(write, case):
    plain, dialect, words = REFUSED[case]
    start = '<!DOCTYPE robot [<!ENTITY secret SYSTEM "cube.stl">]><robot name="test">' if "&" in dialect else '<robot name="test">'
    scene = gv.Scene()
    with pytest.raises(ValueError) as caught:
        load_urdf(scene, write(ARM.replace(plain, dialect, 1), start))
    assert "\n" not in str(caught.value) and len(scene) == 0
    for word in words:
        assert word in str(caught.value)


# --- what Bullet has beside URDF
def test_limits_in_reverse_order_are_none_and_warned_about(write):
    with pytest.warns(UserWarning, match="lower above upper are taken for none, as Bullet does: 'hinge'"):
        free, _ = added(write(ARM.replace('lower="-1.5" upper="2"', 'lower="1" upper="-1"')))
    without, _ = added(write(ARM.replace('lower="-1.5" upper="2" ', "")))
    limited, _ = added(write(ARM))
    assert free == without != limited


def swing(path):
    scene = gv.Scene()
    robot = load_urdf(scene, path)
    sim = gv.Simulation(scene, dt=1e-3, precision="double")
    sim.run(until=0.3)
    return np.concatenate(robot.link_pose(sim, "arm")), robot


def test_spherical_joints_turn_freely(write):
    level = ARM.replace(' rpy="0.3 -1.5 0.4"', "").replace('lower="-1.5" upper="2" ', "")
    hinge, _ = swing(write(level))  # turns in a plane, as the ball joint does that starts at rest
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ball, robot = swing(write(level.replace("revolute", "spherical").replace('<limit effort="30" velocity="1"/>', "")))
    assert np.allclose(ball, hinge, atol=1e-6) and abs(hinge[3]) < 0.99
    assert any("spherical joints" in message and "'hinge'" in message for message in robot.messages)
    with pytest.warns(UserWarning, match="limits of spherical joints cannot be had: 'hinge'"):
        load_urdf(gv.Scene(), write(level.replace("revolute", "spherical")))


def collision(geometry, xyz="0 0 0", rpy="0 0 0"):
    return f'<collision><origin xyz="{xyz}" rpy="{rpy}"/><geometry>{geometry}</geometry></collision>'


def test_capsules_lie_along_their_z_axis(write):
    capsule = collision('<capsule radius="0.1" length="0.6"/>', "1 0 2", "0 1.5707963267948966 0")
    scene = gv.Scene()
    load_urdf(scene, write(f'<link name="body">{capsule}</link>'))
    hits = scene.cast_rays([[1.29, 0, 5], [-5, 0, 2]], [[0, 0, -1], [1, 0, 0]])
    assert np.allclose(hits.distance, [5 - 2.1, 5 + 1 - 0.3 - 0.1])


def test_planes_are_fixed_bodies_that_face_along_their_normal(write):
    plane = collision("<plane normal='0 1 0'/>", "0 0 2", "0.7853981633974483 0 0")  # now faces (0, 1, 1)
    ball = collision("<sphere radius='0.5'/>", "0 0 5")
    for inside, bodies in ((plane, 1), (plane + ball, 2), (plane + plane, 2)):
        scene = gv.Scene()
        robot = load_urdf(scene, write(f'<link name="floor">{inside}</link>'), position=(0, 0, 10))
        assert len(scene) == bodies and not scene.bodies.inverse_mass.any()
        assert np.allclose(robot.link_pose(scene, "floor")[0], (0, 0, 10))
        hits = scene.cast_rays([[3, 0, 14], [3, 1, 14]], [[0, 0, -1], [0, 0, -1]])
        assert np.allclose(hits.distance, [14 - 12, 14 - 11])
        assert any("<plane>" in message and "'floor'" in message for message in robot.messages)


def test_planes_that_would_move_are_refused(write):
    inside = f'<inertial><mass value="1"/>{INERTIA}</inertial>' + collision('<plane normal="0 0 1"/>')
    with pytest.raises(ValueError, match="link 'floor' must be fixed to the world, since it has a <plane>"):
        load_urdf(gv.Scene(), write(f'<link name="floor">{inside}</link>'), base="floating")


@pytest.mark.parametrize("kind", ["planar", "spherical"])
def test_joints_without_a_coordinate_mimic_nothing(write, kind):
    second = f'<link name="hand"><inertial><mass value="1"/>{INERTIA}</inertial></link><joint name="wrist" type="{kind}">'
    second += '<parent link="arm"/><child link="hand"/><axis xyz="0 0 1"/><mimic joint="hinge" multiplier="2"/></joint>'
    with pytest.warns(UserWarning, match="mimic .* is left out: 'wrist'"):
        load_urdf(gv.Scene(), write(ARM + second))


# --- moments of inertia that no body has
def body(write, tensor, shapes="", mass=3.0):
    """The one body of a robot, repaired: (mass, tensor in the link's frame, messages)."""
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    inertia = "" if tensor is None else "<inertia " + " ".join(f'{name}="{value}"' for name, value in zip(names, tensor)) + "/>"
    inside = f'<link name="body"><inertial><origin xyz="0.1 0 0"/><mass value="{mass}"/>{inertia}</inertial>{shapes}</link>'
    scene = gv.Scene()
    robot = load_urdf(scene, write(inside), base="floating", repair_inertia=True)
    assert np.allclose(scene.bodies.position[0], (0.1, 0, 0))  # the centre of mass stays as it is
    turn, weights = matrix(scene.bodies.quaternion[0]), 1 / scene.bodies.inverse_mass[0]
    return weights[0], turn @ np.diag(weights[1:]) @ turn.T, robot.messages


@pytest.mark.parametrize("tensor", [(0, 0, 0, 0, 0, 0), (-1, 0.2, 0.3, 0, 0, 0), None])
def test_moments_that_are_not_above_zero_become_those_of_the_shapes(write, tensor):
    turn = Rotation.from_euler("xyz", (0.4, 0.5, 0.6)).as_matrix()
    box = turn @ np.diag([0.4**2 + 0.6**2, 0.2**2 + 0.6**2, 0.2**2 + 0.4**2]) @ turn.T * 3.0 / 12
    mass, found, messages = body(write, tensor, collision("<box size='0.2 0.4 0.6'/>", "1 2 3", "0.4 0.5 0.6"))
    assert mass == pytest.approx(3.0) and np.allclose(found, box, rtol=1e-12, atol=1e-15)
    assert any("those of the collision shapes: link 'body'" in message for message in messages)
    balls = collision("<sphere radius='0.1'/>", "0 0 1") + collision("<sphere radius='0.2'/>", "0 0 -1")
    small, large = 3.0 / 9, 3.0 * 8 / 9  # by volume
    along = 0.4 * (small * 0.1**2 + large * 0.2**2)
    across = along + small * large / 3.0 * 2.0**2
    assert np.allclose(body(write, tensor, balls)[1], np.diag([across, across, along]))


def test_moments_without_a_shape_become_those_of_a_ball_of_water(write):
    _, found, messages = body(write, (0, 0, 0, 0, 0, 0), mass=4188.790204786391)  # kg: a ball of water of radius 1 m
    assert np.allclose(found, 0.4 * 4188.790204786391 * np.eye(3))
    assert any("ball of water of that mass: link 'body'" in message for message in messages)


def test_every_tensor_can_be_repaired(write):
    rng = np.random.default_rng(5)
    for _ in range(60):
        tensor = rng.normal(size=6) * rng.choice([0.0, 1e-6, 1.0, 1e3], 6)
        _, found, _ = body(write, tensor, collision("<sphere radius='0.1'/>"))
        moments = np.linalg.eigvalsh(found)
        assert moments[0] > 0 and 2 * moments[2] <= moments.sum() * (1 + 1e-9)


def test_who_is_refused_is_told_what_helps(write):
    inside = '<link name="body"><inertial><mass value="1"/>{}</inertial></link>'
    for inertia in ("", '<inertia ixx="0" iyy="0" izz="0"/>', '<inertia ixx="1" iyy="1" izz="5"/>'):
        with pytest.raises(ValueError, match="link 'body'.*repair_inertia=True"):
            load_urdf(gv.Scene(), write(inside.format(inertia)), base="floating")
        load_urdf(gv.Scene(), write(inside.format(inertia)), base="floating", repair_inertia=True)
    with pytest.raises(TypeError, match="repair_inertia must be True or False, not 1"):
        load_urdf(gv.Scene(), write(ARM), repair_inertia=1)
