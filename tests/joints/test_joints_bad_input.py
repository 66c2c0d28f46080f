"""Wrong joints are refused where they are given, in one sentence that says what and why; scene and simulation stay as they were."""

import numpy as np
import pytest

import gravel as gv

NAN, INF = float("nan"), float("inf")
FLOOR, CRATE, LID, WALL = range(4)  # bodies of ``crates``
POINT = (0.0, 0.0, 1.0)
BETWEEN = [
    gv.Spherical,
    gv.Revolute,
    gv.Prismatic,
    gv.Cylindrical,
    gv.Universal,
    gv.Fixed,
    gv.Planar,
    gv.Distance,
    gv.RevoluteSpherical,
    gv.RevoluteTranslational,
    gv.PointOnLine,
    gv.Screw,
    gv.Spring,
    gv.RotationalSpring,
    gv.Bushing,
]
NEEDED = {  # arguments without which a kind is refused
    gv.Universal: {"axis_b": (1, 0, 0)},
    gv.Distance: {"point_b": (0, 0, 2)},
    gv.RevoluteSpherical: {"point_b": (0, 0.5, 1)},
    gv.RevoluteTranslational: {"point_b": (0, 0.5, 1), "slide": (1, 0, 0)},
    gv.Screw: {"pitch": 0.1},
    gv.Spring: {"point_b": (0, 0, 2), "stiffness": 10.0},
    gv.RotationalSpring: {"stiffness": 10.0},
    gv.Bushing: {"stiffness": 10.0},
}
TWO_DRIVES = [gv.Cylindrical, gv.Screw, gv.RevoluteTranslational]
ONE_DRIVE = [gv.Revolute, gv.Prismatic, gv.PointOnLine, gv.RevoluteSpherical, *TWO_DRIVES]


def refuse(call, *words, error=ValueError):
    """The call raises the error, and its message, one line, holds the words."""
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text, f"{word!r} is not in {text!r}"
    return text


def crates():
    """A floor, a crate with a lid above, and a wall; the crate hangs on a hinge, joint 0, and on a slide, joint 1."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_body(gv.Box((0.5, 0.5, 0.5)), (0, 0, 1))
    scene.add_body(gv.Box((0.5, 0.5, 0.1)), (0, 0, 2))
    scene.add_body(gv.Box((0.1, 1, 1)), (5, 0, 1), fixed=True)
    scene.add_joint(gv.Revolute(None, CRATE, point=POINT, axis=(0, 1, 0)))
    scene.add_joint(gv.Prismatic(None, LID, point=(0, 0, 2), axis=(0, 0, 1)))
    return scene


def make(kind, a=CRATE, b=LID, **options):
    return kind(a, b, **{"point": POINT, **NEEDED.get(kind, {}), **options})


def wrong(kind, *words, error=ValueError, **options):
    """A joint with these options is refused when it is made."""
    refuse(lambda: make(kind, **options), *words, error=error)


def snapshot(scene):
    """Everything that a refused joint could have changed."""
    bodies = scene.bodies
    arrays = [getattr(bodies, name).tobytes() for name in ("position", "quaternion", "velocity", "inverse_mass", "extent", "tag")]
    joints = scene.mechanism
    held = joints.names, joints.joint_values, joints.row_values, joints.coordinates, joints.functions, joints.apart, joints.open
    return len(scene), arrays, repr(held), scene.ignored.tobytes()


def refused_by_scene(joint, *words, error=ValueError, scene=None):
    """A joint that can be made, but not added: neither to a scene, which stays as it was, nor to a simulation that runs."""
    scene = crates() if scene is None else scene
    before = snapshot(scene)
    refuse(lambda: scene.add_joint(joint), *words, error=error)
    assert snapshot(scene) == before
    sim = gv.Simulation(scene, 1e-3)
    state, number = sim.state_hash(), len(sim.joints.broken)
    refuse(lambda: sim.add_joint(joint), *words, error=error)
    assert sim.state_hash() == state and len(sim.joints.broken) == number
    sim.step()


def test_the_joints_of_these_tests_are_good():
    """What is refused below differs from these in one thing."""
    for kind in BETWEEN:
        scene = crates()
        number = scene.add_joint(make(kind))
        assert number == 2 and len(scene.mechanism) == 3
        gv.Simulation(scene, 1e-3).step()


# --- the bodies
@pytest.mark.parametrize("kind", BETWEEN)
def test_a_joint_needs_two_different_bodies(kind):
    wrong(kind, kind.__name__, "two different bodies", "body 1", a=CRATE, b=CRATE)
    wrong(kind, kind.__name__, "two different bodies", "the world", a=None, b=None)


@pytest.mark.parametrize("value, error", [(-1, ValueError), (True, TypeError), (1.0, TypeError), ("crate", TypeError), ([1], TypeError)])
def test_bodies_are_ids(value, error):
    refuse(lambda: gv.Revolute(value, LID, point=POINT), "Revolute body_a", repr(value), error=error)
    refuse(lambda: gv.Revolute(None, value, point=POINT), "Revolute body_b", repr(value), error=error)
    refuse(lambda: gv.Gear(value, 1, ratio=2.0), "Gear joint_1", repr(value), error=error)
    refuse(lambda: gv.RackPinion(0, value, radius=2.0), "RackPinion joint_2", repr(value), error=error)


def test_numpy_integers_are_ids():
    scene = crates()
    assert scene.add_joint(gv.Spherical(np.int32(CRATE), np.int64(LID), point=POINT)) == 2


@pytest.mark.parametrize("kind", BETWEEN)
def test_unknown_bodies(kind):
    refused_by_scene(make(kind, CRATE, 4), kind.__name__, "body_b", "4", "below 4")
    refused_by_scene(make(kind, 99, None), kind.__name__, "body_a", "99", "below 4")


@pytest.mark.parametrize("kind", BETWEEN)
def test_two_bodies_that_do_not_move_need_no_joint(kind):
    refused_by_scene(make(kind, FLOOR, WALL), kind.__name__, "body 0", "body 3", "fixed")
    refused_by_scene(make(kind, None, WALL), kind.__name__, "the world", "body 3", "fixed")


def test_two_bodies_that_follow_motions_need_no_joint():
    scene = crates()
    cart = scene.add_body(gv.Sphere(0.1), (9, 0, 1), motion=gv.ConstantVelocity((1, 0, 0)))
    refused_by_scene(gv.Spherical(cart, WALL, point=POINT), "Spherical", f"body {cart}", f"body {WALL}", "motion", scene=scene)


def test_bodies_that_were_removed():
    sim = gv.Simulation(crates(), 1e-3)
    sim.remove([LID])
    refuse(lambda: sim.add_joint(gv.Spherical(CRATE, LID, point=POINT)), "Spherical", "body 2", "removed")


# --- places
@pytest.mark.parametrize("kind", BETWEEN)
@pytest.mark.parametrize("name", ["point", "point_b", "axis", "axis_b"])
def test_places_are_finite_vectors(kind, name):
    wrong(kind, f"{kind.__name__} {name}[1]", "nan", **{name: (0, NAN, 1)})
    wrong(kind, f"{kind.__name__} {name}", "(2,)", "(3,)", **{name: (0, 1)})
    wrong(kind, f"{kind.__name__} {name}", "'here'", error=TypeError, **{name: "here"})
    if name.startswith("axis"):
        wrong(kind, f"{kind.__name__} {name}", "direction", "(0.0, 0.0, 0.0)", **{name: (0, 0, 0)})


@pytest.mark.parametrize("kind", [gv.Spherical, gv.Revolute, gv.Universal, gv.Fixed])
def test_points_that_do_not_meet(kind):
    """The distance is told, and how to have it closed."""
    joint = make(kind, None, CRATE, point=(0, 0, 1), point_b=(0, 0.03, 1.04))
    refused_by_scene(joint, kind.__name__, "the world", "body 1", "0.05", "assemble=True")
    crates().add_joint(joint, assemble=True)


@pytest.mark.parametrize("kind", [gv.Prismatic, gv.Cylindrical, gv.PointOnLine, gv.Screw])
def test_points_that_are_off_the_line(kind):
    joint = make(kind, None, CRATE, point=(0, 0, 1), point_b=(0.03, 0.04, 1))
    refused_by_scene(joint, kind.__name__, "body 1", "0.05", "assemble=True")


def test_points_that_are_off_the_plane():
    refused_by_scene(make(gv.Planar, None, CRATE, point_b=(0, 0, 1.05)), "Planar", "body 1", "0.05", "assemble=True")


@pytest.mark.parametrize("kind", [gv.Revolute, gv.Prismatic, gv.Cylindrical, gv.Screw, gv.Planar, gv.RevoluteTranslational])
def test_axes_that_do_not_agree(kind):
    """Five degrees apart."""
    tilted = (0, np.sin(np.pi / 36), np.cos(np.pi / 36))
    joint = make(kind, None, CRATE, axis=(0, 0, 1), axis_b=tilted)
    refused_by_scene(joint, kind.__name__, "body 1", "axes", "5 degrees", "assemble=True")
    crates().add_joint(joint, assemble=True)


def test_universal_needs_square_axes():
    refuse(lambda: gv.Universal(None, CRATE, point=POINT), "Universal", "axis_b", "right angles")
    refused_by_scene(gv.Universal(None, CRATE, point=POINT, axis=(0, 0, 1), axis_b=(1, 0, 0.1)), "Universal", "body 1", "right angles")
    refused_by_scene(gv.Universal(None, CRATE, point=POINT, axis=(0, 0, 1), axis_b=(0, 0, 1)), "Universal", "body 1", "right angles")


def test_assemble_is_true_or_false():
    scene = crates()
    before = snapshot(scene)
    refuse(lambda: scene.add_joint(gv.Spherical(None, CRATE, point=POINT), assemble="yes"), "assemble", "'yes'", error=TypeError)
    assert snapshot(scene) == before


# --- numbers
@pytest.mark.parametrize("kind", BETWEEN)
@pytest.mark.parametrize("name", ["break_force", "break_torque"])
def test_strength_is_positive(kind, name):
    wrong(kind, f"{kind.__name__} {name}", "greater than 0", "0.0", **{name: 0.0})
    wrong(kind, f"{kind.__name__} {name}", "greater than 0", "-5", **{name: -5.0})
    wrong(kind, f"{kind.__name__} {name}", "nan", **{name: NAN})
    wrong(kind, f"{kind.__name__} {name}", "'strong'", error=TypeError, **{name: "strong"})
    make(kind, **{name: INF})


@pytest.mark.parametrize("kind", BETWEEN)
def test_collide_is_true_or_false(kind):
    wrong(kind, f"{kind.__name__} collide", "'no'", "True or False", error=TypeError, collide="no")


@pytest.mark.parametrize("kind", ONE_DRIVE)
def test_friction_and_start_of_coordinates(kind):
    for name in ("friction", "turn_friction") if kind in TWO_DRIVES else ("friction",):
        wrong(kind, f"{kind.__name__} {name}", "at least 0", "-0.5", **{name: -0.5})
        wrong(kind, f"{kind.__name__} {name}", "nan", **{name: NAN})
        wrong(kind, f"{kind.__name__} {name}", "'rough'", error=TypeError, **{name: "rough"})
    wrong(kind, f"{kind.__name__} start", "nan", start=NAN)
    wrong(kind, f"{kind.__name__} start", "'here'", error=TypeError, start="here")


def test_joints_without_a_coordinate_take_nothing_that_acts_on_it():
    for kind in (gv.Spherical, gv.Universal, gv.Fixed, gv.Planar, gv.Bushing, gv.Distance):
        for name in ("limits", "motor", "friction", "spring"):
            wrong(kind, name, error=TypeError, **{name: None})


@pytest.mark.parametrize("kind", [gv.Distance, gv.RevoluteSpherical])
def test_rods(kind):
    name = kind.__name__
    refuse(lambda: kind(None, CRATE, point=POINT), name, "point_b")
    wrong(kind, f"{name} length", "greater than 0", "0.0", length=0.0)
    wrong(kind, f"{name} length", "greater than 0", "-2", length=-2.0)
    wrong(kind, f"{name} length", "nan", length=NAN)
    wrong(kind, f"{name} length", "'long'", error=TypeError, length="long")
    wrong(kind, f"{name} length", "greater than 0", "point_b", "the same", point_b=POINT)
    joint = make(kind, length=1.5)  # it is shorter
    refused_by_scene(joint, name, "body 1", "body 2", "1.5", "assemble=True")
    crates().add_joint(joint, assemble=True)


def test_rods_on_a_hinge_are_square_to_its_axis():
    wrong(gv.RevoluteSpherical, "RevoluteSpherical point_b", "beside the axis", "(0.0, 0.0, 2.0)", point_b=(0, 0, 2))
    wrong(gv.RevoluteSpherical, "RevoluteSpherical point_b", "beside the axis", point_b=POINT, length=1.0)
    joint = make(gv.RevoluteSpherical, None, CRATE, point_b=(0, 0.5, 1.05))
    refused_by_scene(joint, "RevoluteSpherical", "body 1", "0.05 m", "along its axis", "assemble=True")
    crates().add_joint(joint, assemble=True)


def test_slides_on_a_rod():
    name = "RevoluteTranslational"
    kind = gv.RevoluteTranslational
    refuse(lambda: kind(None, CRATE, point=POINT, slide=(1, 0, 0)), name, "point_b")
    refuse(lambda: kind(None, CRATE, point=POINT, point_b=(0, 0.5, 1)), name, "slide", "right angles")
    wrong(kind, f"{name} slide", "direction", slide=(0, 0, 0))
    wrong(kind, f"{name} slide[1]", "nan", slide=(0, NAN, 1))
    wrong(kind, f"{name} slide", "'along'", error=TypeError, slide="along")
    wrong(kind, f"{name} slide", "right angles", "axis", "(0.0, 0.0, 1.0)", slide=(0, 0, 1))
    wrong(kind, f"{name} slide", "right angles", "axis_b", "(0.0, 0.6, 0.8)", slide=(0, 1, 0), axis_b=(0, 0.6, 0.8))
    wrong(kind, f"{name} length", "at least 0", "-0.5", length=-0.5)
    wrong(kind, f"{name} length", "'long'", error=TypeError, length="long")
    make(kind, point_b=POINT)  # a pin in a slot
    for options, words in (
        ({"length": 0.7}, ("0.5 m", "0.7 m")),
        ({"point_b": (0, 0.5, 1.05)}, ("0.05 m", "along its axis")),
        ({"slide": (np.cos(np.pi / 36), 0, np.sin(np.pi / 36))}, ("slide", "5 degrees")),
    ):
        joint = make(kind, None, CRATE, **options)
        refused_by_scene(joint, name, "body 1", "assemble=True", *words)
        crates().add_joint(joint, assemble=True)


def test_screw_needs_a_pitch():
    refuse(lambda: gv.Screw(None, CRATE, point=POINT), "Screw pitch", "zero")
    wrong(gv.Screw, "Screw pitch", "zero", pitch=0)
    wrong(gv.Screw, "Screw pitch", "inf", pitch=INF)
    wrong(gv.Screw, "Screw pitch", "None", error=TypeError, pitch=None)


# --- limits
@pytest.mark.parametrize("kind", [*ONE_DRIVE, gv.Spring])
def test_limits_are_an_ordered_pair(kind):
    wrong(kind, "limits", "lower <= upper", "1", "-1", limits=(1.0, -1.0))
    wrong(kind, "lower", "nan", limits=(NAN, 1.0))
    wrong(kind, "upper", "'far'", error=TypeError, limits=(0.0, "far"))
    wrong(kind, "limits", "0.5", "(lower, upper)", error=TypeError, limits=0.5)
    wrong(kind, "limits", "(0, 1, 2)", "(lower, upper)", error=TypeError, limits=(0, 1, 2))
    wrong(kind, "lower", error=TypeError, limits=np.ones((2, 2)))


def test_limits_have_their_own_checks():
    refuse(lambda: gv.Limits(1.0, 0.0), "lower <= upper", "1", "0")
    refuse(lambda: gv.Limits(INF, INF), "lower <= upper", "inf")
    refuse(lambda: gv.Limits(0.0, 1.0, restitution=1.5), "Limits restitution", "at most 1", "1.5")
    refuse(lambda: gv.Limits(0.0, 1.0, restitution=-0.1), "Limits restitution", "at least 0", "-0.1")
    refuse(lambda: gv.Limits(0.0, 1.0, stiffness=0.0), "Limits stiffness", "greater than 0", "0.0")
    refuse(lambda: gv.Limits(0.0, 1.0, stiffness=-1.0), "Limits stiffness", "greater than 0", "-1")
    refuse(lambda: gv.Limits(0.0, 1.0, stiffness=10.0, damping=-1.0), "Limits damping", "at least 0", "-1")
    refuse(lambda: gv.Limits(0.0, 1.0, damping=1.0), "Limits damping", "stiffness")


@pytest.mark.parametrize("kind", ONE_DRIVE)
@pytest.mark.parametrize("start, limits", [(0.0, (0.5, 1.0)), (0.0, (-1.0, -0.5)), (2.0, (0.5, 1.0))])
def test_limits_hold_at_the_start(kind, start, limits):
    """Wherever it is noticed: when the joint is made, or when it is added."""
    scene = crates()
    before = snapshot(scene)
    written = f"{limits[0]:g}"
    refuse(lambda: scene.add_joint(make(kind, None, CRATE, limits=limits, start=start)), kind.__name__, "limits", written, f"{start:g}")
    assert snapshot(scene) == before


def test_limits_of_the_turn_hold_at_the_start():
    scene = crates()
    refuse(lambda: scene.add_joint(gv.Cylindrical(None, CRATE, point=POINT, turn_limits=(1, 2))), "Cylindrical", "turn_limits", "1", "2")


def test_ropes_are_long_enough_at_the_start():
    """The points are 1 m apart."""
    refused_by_scene(gv.Spring(CRATE, LID, point=POINT, point_b=(0, 0, 2), limits=(0, 0.5)), "Spring", "body 1", "body 2", "limits", "0.5")


# --- motors and springs
@pytest.mark.parametrize("kind", ONE_DRIVE)
@pytest.mark.parametrize("motor", [3.0, "fast", gv.SpeedMotor, lambda t: 1.0, gv.SpringLaw(1.0)])
def test_motors_are_motors(kind, motor):
    for name in ("motor", "turn_motor") if kind in TWO_DRIVES else ("motor",):
        wrong(kind, f"{kind.__name__} {name}", "SpeedMotor", repr(motor), error=TypeError, **{name: motor})


def test_numbers_of_motors():
    refuse(lambda: gv.SpeedMotor("fast"), "SpeedMotor speed", "'fast'", error=TypeError)
    refuse(lambda: gv.SpeedMotor(NAN), "SpeedMotor speed", "nan")
    refuse(lambda: gv.SpeedMotor(INF), "SpeedMotor speed", "inf")
    refuse(lambda: gv.SpeedMotor(1.0, limit=0.0), "SpeedMotor limit", "greater than 0", "0.0")
    refuse(lambda: gv.SpeedMotor(1.0, limit=-2.0), "SpeedMotor limit", "greater than 0", "-2")
    refuse(lambda: gv.PositionMotor(None), "PositionMotor position", "None", error=TypeError)
    refuse(lambda: gv.PositionMotor(1.0, limit=NAN), "PositionMotor limit", "nan")
    refuse(lambda: gv.PositionMotor(1.0, stiffness=-1.0), "PositionMotor stiffness", "greater than 0", "-1")
    refuse(lambda: gv.PositionMotor(1.0, stiffness=1.0, damping=-1.0), "PositionMotor damping", "at least 0", "-1")
    refuse(lambda: gv.PositionMotor(1.0, damping=1.0), "PositionMotor damping", "stiffness")
    refuse(lambda: gv.ForceMotor("strong"), "ForceMotor force", "'strong'", error=TypeError)
    refuse(lambda: gv.ForceMotor(INF), "ForceMotor force", "inf")


@pytest.mark.parametrize("kind", [gv.Spring, gv.RotationalSpring])
def test_laws_of_springs(kind):
    bare = {"point_b": (0, 0, 2)} if kind is gv.Spring else {}
    spring = lambda **options: kind(CRATE, LID, point=POINT, **bare, **options)  # noqa: E731
    refuse(lambda: spring(), "spring", "stiffness", "damping", "force function")
    refuse(lambda: spring(stiffness=1.0, force=lambda x, v: 0.0), "spring", "not both")
    refuse(lambda: spring(damping=1.0, force=lambda x, v: 0.0), "spring", "not both")
    refuse(lambda: spring(stiffness=-1.0), "stiffness", "at least 0", "-1")
    refuse(lambda: spring(stiffness=1.0, damping=-1.0), "damping", "at least 0", "-1")
    refuse(lambda: spring(stiffness=NAN), "stiffness", "nan")
    refuse(lambda: spring(stiffness="soft"), "stiffness", "'soft'", error=TypeError)
    refuse(lambda: spring(stiffness=1.0, rest="loose"), "rest", "'loose'", error=TypeError)
    refuse(lambda: spring(force=3.0), "force", "function", "3.0", error=TypeError)


def test_springs_need_their_other_end():
    refuse(lambda: gv.Spring(None, CRATE, point=POINT, stiffness=1.0), "Spring", "point_b")


@pytest.mark.parametrize("spring", [3.0, "soft", gv.SpringLaw, lambda x, v: 0.0, gv.SpeedMotor(1.0)])
def test_springs_of_coordinates_are_laws(spring):
    wrong(gv.Revolute, "Revolute spring", "SpringLaw", repr(spring), error=TypeError, spring=spring)
    wrong(gv.Cylindrical, "Cylindrical turn_spring", "SpringLaw", repr(spring), error=TypeError, turn_spring=spring)


def test_spring_laws():
    refuse(lambda: gv.SpringLaw(), "spring", "stiffness", "damping", "force function")
    refuse(lambda: gv.SpringLaw(1.0, force=lambda x, v: 0.0), "spring", "not both")
    refuse(lambda: gv.SpringLaw(-1.0), "stiffness", "at least 0", "-1")


def test_bushings():
    refuse(lambda: gv.Bushing(None, CRATE, point=POINT), "Bushing", "stiffness", "damping")
    for name in ("stiffness", "damping", "turn_stiffness", "turn_damping"):
        wrong(gv.Bushing, f"Bushing {name}", "at least 0", "-1", **{name: -1.0})
        wrong(gv.Bushing, f"Bushing {name}", "three", "(1.0, 2.0)", **{name: (1.0, 2.0)})
        wrong(gv.Bushing, f"Bushing {name}", "nan", **{name: (1.0, 2.0, NAN)})
        wrong(gv.Bushing, f"Bushing {name}", error=(TypeError, ValueError), **{name: "soft"})


# --- couplings
def test_couplings_need_two_different_joints():
    refuse(lambda: gv.Gear(1, 1, ratio=2.0), "Gear", "two different joints", "joint 1")
    refuse(lambda: gv.RackPinion(0, 0, radius=2.0), "RackPinion", "two different joints", "joint 0")


def test_couplings_need_a_ratio():
    refuse(lambda: gv.Gear(0, 1, ratio=0.0), "Gear ratio", "zero")
    refuse(lambda: gv.Gear(0, 1, ratio=NAN), "Gear ratio", "nan")
    refuse(lambda: gv.Gear(0, 1, ratio="two"), "Gear ratio", "'two'", error=TypeError)
    refuse(lambda: gv.RackPinion(0, 1, radius=0.0), "RackPinion radius", "zero")
    refuse(lambda: gv.RackPinion(0, 1, radius=INF), "RackPinion radius", "inf")


def test_couplings_need_joints_that_are_there():
    refused_by_scene(gv.Gear(0, 2, ratio=2.0), "Gear", "joint_2", "2", "below 2")
    refused_by_scene(gv.RackPinion(7, 1, radius=2.0), "RackPinion", "joint_1", "7", "below 2")


def test_couplings_need_the_right_joints():
    scene = crates()
    second = scene.add_joint(gv.Revolute(CRATE, LID, point=(0, 0, 1.5), axis=(0, 1, 0)))
    ball = scene.add_joint(gv.Spherical(CRATE, LID, point=(0, 0, 1.5)))
    gear = scene.add_joint(gv.Gear(0, second, ratio=2.0))
    refused_by_scene(gv.Gear(0, 1, ratio=2.0), "Gear", "joint_2", "joint 1", "Prismatic", scene=scene)
    refused_by_scene(gv.Gear(ball, 0, ratio=2.0), "Gear", "joint_1", f"joint {ball}", "Spherical", scene=scene)
    refused_by_scene(gv.Gear(0, gear, ratio=2.0), "Gear", "joint_2", f"joint {gear}", scene=scene)
    refused_by_scene(gv.RackPinion(0, second, radius=2.0), "RackPinion", "joint_2", f"joint {second}", "Revolute", scene=scene)
    refused_by_scene(gv.RackPinion(1, 0, radius=2.0), "RackPinion", "joint_1", "joint 1", "Prismatic", scene=scene)


# --- what is no joint
@pytest.mark.parametrize("thing", [None, 3, "hinge", gv.Revolute, gv.SpeedMotor(1.0), (1, 2)])
def test_joints_are_joints(thing):
    refused_by_scene(thing, "joint", "Revolute", repr(thing), error=TypeError)


def test_a_joint_without_bodies_is_refused():
    with pytest.raises(TypeError):
        gv.Revolute()
    with pytest.raises(TypeError):
        gv.Revolute(None, CRATE, hinge=(0, 0, 1))


# --- while it runs
@pytest.fixture
def running():
    """The crate on a hinge with a motor (0), the lid on a slide without (1) and a ball joint between them (2)."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_body(gv.Box((0.5, 0.5, 0.5)), (0, 0, 1))
    scene.add_body(gv.Box((0.5, 0.5, 0.1)), (0, 0, 2))
    scene.add_joint(gv.Revolute(None, CRATE, point=POINT, axis=(0, 0, 1), motor=gv.SpeedMotor(1.0)))
    scene.add_joint(gv.Cylindrical(None, LID, point=(0, 0, 2), axis=(0, 0, 1)))
    scene.add_joint(gv.Spherical(CRATE, LID, point=(0, 0, 1.5)))
    sim = gv.Simulation(scene, 1e-3)
    sim.step()
    return sim


def unchanged(sim, call, *words, error=ValueError):
    """Refused, and the simulation goes on as one that was never asked: same bits a step later."""
    before, broken = sim.state_hash(), sim.joints.broken.copy()
    refuse(call, *words, error=error)
    assert sim.state_hash() == before and np.array_equal(sim.joints.broken, broken)
    sim.step()


@pytest.mark.parametrize("call", ["release_joint", "set_motor"])
def test_unknown_joints(running, call):
    more = () if call == "release_joint" else (gv.SpeedMotor(2.0),)
    ask = lambda joint: lambda: getattr(running, call)(joint, *more)  # noqa: E731
    unchanged(running, ask(3), "joint", "below 3", "3")
    unchanged(running, ask(-1), "joint", "-1")
    for value in (True, 1.0, "hinge", None):
        unchanged(running, ask(value), "joint", repr(value), error=TypeError)


def test_motors_belong_on_axes(running):
    unchanged(running, lambda: running.set_motor(2, gv.SpeedMotor(2.0)), "joint 2", "Spherical")
    unchanged(running, lambda: running.set_motor(0, 2.0), "motor", "2.0", "SpeedMotor", error=TypeError)
    unchanged(running, lambda: running.set_motor(0, gv.SpringLaw(1.0)), "motor", "SpringLaw", "SpeedMotor", error=TypeError)


def test_no_motor_on_gears():
    scene = crates()
    second = scene.add_joint(gv.Revolute(CRATE, LID, point=(0, 0, 1.5), axis=(0, 1, 0)))
    gear = scene.add_joint(gv.Gear(0, second, ratio=2.0))
    sim = gv.Simulation(scene, 1e-3)
    unchanged(sim, lambda: sim.set_motor(gear, gv.SpeedMotor(1.0)), f"joint {gear}", "Gear")


@pytest.mark.parametrize("answer", [NAN, INF, "up", "2.5", None, (1.0, 2.0)])
@pytest.mark.parametrize("motor", [gv.SpeedMotor, gv.PositionMotor, gv.ForceMotor])
def test_a_motor_with_a_bad_answer_stops_the_step(motor, answer):
    """The state before that step is kept, and the joint is named."""
    good = {"yes": True}
    scene = crates()
    joint = scene.add_joint(gv.Cylindrical(CRATE, LID, point=(0, 0, 1.5), motor=motor(lambda t: 0.0 if good["yes"] else answer)))
    sim = gv.Simulation(scene, 1e-3)
    sim.run(until=0.003)
    before, angle, slide = sim.state_hash(), sim.joints.angle.copy(), sim.joints.slide.copy()
    good["yes"] = False
    refuse(sim.step, f"joint {joint}", repr(answer), "finite number", error=(gv.SimulationError, ValueError, TypeError))
    assert sim.state_hash() == before and sim.steps == 3
    assert np.array_equal(sim.joints.angle, angle, equal_nan=True) and np.array_equal(sim.joints.slide, slide, equal_nan=True)
    good["yes"] = True
    sim.step()
    assert sim.steps == 4 and np.isfinite(sim.positions).all()


@pytest.mark.parametrize("answer", [NAN, -INF, "up", "2.5", None, (1.0, 2.0)])
@pytest.mark.parametrize("kind", [gv.Spring, gv.RotationalSpring, gv.Revolute])
def test_a_spring_with_a_bad_answer_stops_the_step(kind, answer):
    good = {"yes": True}
    force = lambda x, v: -x if good["yes"] else answer  # noqa: E731
    options = {gv.Spring: {"point_b": (0, 0, 2), "force": force}, gv.RotationalSpring: {"force": force}}
    scene = crates()
    joint = scene.add_joint(kind(CRATE, LID, point=POINT, **options.get(kind, {"spring": gv.SpringLaw(force=force)})))
    sim = gv.Simulation(scene, 1e-3)
    sim.run(until=0.003)
    before = sim.state_hash()
    good["yes"] = False
    refuse(sim.step, f"joint {joint}", repr(answer), "finite number", error=(gv.SimulationError, ValueError, TypeError))
    assert sim.state_hash() == before and sim.steps == 3
    good["yes"] = True
    sim.step()
    assert sim.steps == 4 and np.isfinite(sim.positions).all()


def test_a_function_that_raises_keeps_the_state():
    def fail(time):
        if time > 0.0025:
            raise KeyError("no such time")
        return 0.0

    scene = crates()
    scene.add_joint(gv.Revolute(CRATE, LID, point=(0, 0, 1.5), axis=(0, 1, 0), motor=gv.SpeedMotor(fail)))
    sim = gv.Simulation(scene, 1e-3)
    with pytest.raises(KeyError):
        sim.run(until=0.1)
    before = sim.state_hash()
    with pytest.raises(KeyError):
        sim.step()
    assert sim.state_hash() == before and 1 <= sim.steps <= 3


def test_functions_of_the_wrong_number_of_arguments():
    scene = crates()
    scene.add_joint(gv.Revolute(CRATE, LID, point=(0, 0, 1.5), motor=gv.SpeedMotor(lambda: 1.0)))
    sim = gv.Simulation(scene, 1e-3)
    with pytest.raises(TypeError):
        sim.step()
    assert sim.steps == 0


def test_removing_a_body_takes_its_joints_out_of_force(running):
    """And those that couple them."""
    scene = crates()
    second = scene.add_joint(gv.Revolute(None, LID, point=(0, 0, 2), axis=(1, 0, 0)))
    gear = scene.add_joint(gv.Gear(0, second, ratio=2.0))
    ball = scene.add_joint(gv.Spherical(CRATE, LID, point=(0, 0, 1.5)))
    sim = gv.Simulation(scene, 1e-3, precision="double")
    sim.step()
    assert not sim.joints.broken.any()
    sim.remove([LID])
    assert sim.joints.broken.tolist() == [False, True, True, True, True]
    del second, gear, ball
    for _ in range(20):
        report = sim.step()
    assert np.isfinite(report.residual) and report.joint_violation < 1e-9
    assert np.array_equal(sim.joints.force[1:], np.zeros((4, 3)))
    assert np.allclose(sim.positions[CRATE], (0, 0, 1), atol=1e-9)  # still on its hinge


def test_a_joint_can_be_released_twice(running):
    running.release_joint(2)
    running.release_joint(2)
    assert running.joints.broken.tolist() == [False, False, True]
    running.step()


# --- simulations
@pytest.mark.parametrize("name, wrong, right", [("joints", "dircet", "direct"), ("integrator", "midpiont", "midpoint")])
def test_unknown_names_get_the_nearest_suggested(name, wrong, right):
    refuse(lambda: gv.Simulation(crates(), 1e-3, **{name: wrong}), name, f"'{wrong}'", f"did you mean '{right}'")


@pytest.mark.parametrize("name", ["joints", "integrator"])
@pytest.mark.parametrize("value", ["foo", None, 3])
def test_far_off_names_get_the_list(name, value):
    refuse(lambda: gv.Simulation(crates(), 1e-3, **{name: value}), name, repr(value), "must be one of")
