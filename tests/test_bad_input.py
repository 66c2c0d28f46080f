"""Bad input is refused where it is given, in one sentence that names argument and value, and nothing is half done."""

import numpy as np
import pytest

import gravel as gv

NAN, INF = float("nan"), float("inf")
BALL = gv.Sphere(0.1)
ORIGIN = [(0.0, 0.0, 0.0)]


def refuse(call, *words, error=ValueError):
    """The call raises the error, and its message holds the words."""
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text, f"{word!r} is not in {text!r}"


def floor_and_balls(n=3):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(BALL, [(k, 0, 0.1) for k in range(n)])
    return scene


def snapshot(scene):
    """Everything a scene holds."""
    bodies = scene.bodies
    arrays = [getattr(bodies, name).tobytes() for name in ("position", "quaternion", "velocity", "inverse_mass", "extent", "tag")]
    return (
        len(scene),
        arrays,
        list(scene.materials),
        dict(scene.pairs),
        dict(scene.motions),
        dict(scene.forces),
        scene.ignored.tobytes(),
    )


# --- shapes and materials
@pytest.mark.parametrize("value, written", [(-0.1, "-0.1"), (0.0, "0"), (NAN, "nan"), (INF, "inf")])
def test_sizes_must_be_positive_and_finite(value, written):
    refuse(lambda: gv.Sphere(value), "radius", written)
    refuse(lambda: gv.Sphere([0.1, value]), "radius[1]", written)
    refuse(lambda: gv.Box((0.1, value, 0.1)), "half_extents[1]", written)
    refuse(lambda: gv.Box([(0.1, 0.1, 0.1), (0.1, 0.1, value)]), "half_extents[1, 2]", written)


@pytest.mark.parametrize("shape", [(0.1, 0.1), (0.1, 0.1, 0.1, 0.1), 0.1, np.ones((2, 2, 3))])
def test_box_needs_three_half_extents(shape):
    refuse(lambda: gv.Box(shape), "half_extents", str(np.shape(shape)))


def test_sizes_must_be_numbers():
    refuse(lambda: gv.Sphere("large"), "radius", "'large'", error=TypeError)
    refuse(lambda: gv.Sphere(None), "radius", error=(TypeError, ValueError))
    refuse(lambda: gv.Box({"x": 1}), "half_extents", "{'x': 1}", error=TypeError)


def test_plane_needs_a_direction():
    refuse(lambda: gv.Plane(normal=(0, 0, 0)), "normal", "(0.0, 0.0, 0.0)")
    refuse(lambda: gv.Plane(normal=(0, NAN, 1)), "normal[1]", "nan")
    refuse(lambda: gv.Plane(normal=(0, 1)), "normal", "(2,)")
    refuse(lambda: gv.Plane(offset=INF), "offset", "inf")
    refuse(lambda: gv.Plane(offset="high"), "offset", "'high'", error=TypeError)


@pytest.mark.parametrize("name", ["density", "friction", "restitution", "rolling_friction", "spinning_friction", "cohesion"])
@pytest.mark.parametrize("value, written", [(-1.0, "-1"), (NAN, "nan"), (INF, "inf")])
def test_material_values_must_be_sensible(name, value, written):
    refuse(lambda: gv.Material(**{name: value}), name, written)


def test_material_limits():
    refuse(lambda: gv.Material(restitution=1.01), "restitution", "1.01")
    refuse(lambda: gv.Material(density=0), "density", "0")
    refuse(lambda: gv.Material(friction="rough"), "friction", "'rough'", error=TypeError)
    refuse(lambda: gv.Material(friction=None), "friction", "None", error=TypeError)


def test_text_is_not_a_number():
    refuse(lambda: gv.Material(friction="0.5"), "friction", "'0.5'", error=TypeError)
    refuse(lambda: gv.Sphere("0.5"), "radius", "'0.5'", error=TypeError)
    refuse(lambda: gv.Scene().add_bodies(BALL, [("1", "2", "3")]), "positions", error=TypeError)
    refuse(lambda: gv.Simulation(floor_and_balls(), "0.001"), "dt", "'0.001'", error=TypeError)


def test_imaginary_parts_are_not_dropped():
    refuse(lambda: gv.Scene().add_bodies(BALL, np.array([(1j, 0, 0)])), "positions", error=TypeError)


# --- bodies
@pytest.mark.parametrize("value, written", [(NAN, "nan"), (INF, "inf"), (-INF, "-inf")])
@pytest.mark.parametrize(
    "name, columns",
    [("positions", 3), ("quaternions", 4), ("velocities", 3), ("angular_velocities", 3), ("inertias", 3)],
)
def test_arrays_must_be_finite(name, columns, value, written):
    scene, rows = gv.Scene(), np.ones((4, columns))
    rows[2, 1] = value
    given = {"positions": np.zeros((4, 3)), name: rows}
    refuse(lambda: scene.add_bodies(BALL, **given), f"{name}[2, 1]", written)
    assert len(scene) == 0


@pytest.mark.parametrize("value, written", [(-2.0, "-2"), (0.0, "0"), (NAN, "nan"), (INF, "inf")])
def test_masses_and_inertias_must_be_positive_and_finite(value, written):
    scene = gv.Scene()
    refuse(lambda: scene.add_bodies(BALL, np.zeros((2, 3)), masses=[1.0, value]), "masses[1]", written)
    refuse(lambda: scene.add_bodies(BALL, ORIGIN, inertias=[(1.0, 1.0, value)]), "inertias[0, 2]", written)
    refuse(lambda: scene.add_body(BALL, mass=value), "mass", written)
    refuse(lambda: scene.add_body(BALL, inertia=(value, 1, 1)), "inertia", written)
    assert len(scene) == 0


@pytest.mark.parametrize("value", [-2.0, NAN])
def test_masses_and_inertias_of_fixed_bodies_are_checked_too(value):
    scene = gv.Scene()
    refuse(lambda: scene.add_body(BALL, mass=value, fixed=True), "mass")
    refuse(lambda: scene.add_body(BALL, inertia=(1, 1, value), fixed=True), "inertia")
    assert len(scene) == 0


def test_inertias_must_belong_to_a_possible_body():
    """No principal moment exceeds the sum of the two others."""
    refuse(lambda: gv.Scene().add_bodies(BALL, ORIGIN, inertias=[(1.0, 1.0, 2.75)]), "inertias", "2.75")


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_sizes_whose_mass_or_inertia_is_no_number_are_refused(size):
    """The inertia, which goes with the fifth power of the size, underflows or overflows."""
    with np.errstate(all="ignore"):
        refuse(lambda: gv.Scene().add_body(gv.Sphere(size)), error=ValueError)


@pytest.mark.parametrize(
    "name, shape",
    [
        ("positions", (4, 2)),
        ("positions", (3,)),
        ("positions", (2, 2, 3)),
        ("quaternions", (4, 3)),
        ("quaternions", (3, 4)),
        ("velocities", (3, 3)),
        ("angular_velocities", (4, 4)),
        ("masses", (3,)),
        ("masses", (4, 1)),
        ("inertias", (4,)),
        ("inertias", (3, 3)),
    ],
)
def test_arrays_must_fit(name, shape):
    scene = gv.Scene()
    given = {"positions": np.zeros((4, 3)), name: np.ones(shape)}
    refuse(lambda: scene.add_bodies(BALL, **given), name, str(shape))
    assert len(scene) == 0


def test_sizes_must_fit_the_positions():
    scene = gv.Scene()
    refuse(lambda: scene.add_bodies(gv.Sphere([0.1, 0.2]), np.zeros((3, 3))), "2 sizes", "3 rows")
    refuse(lambda: scene.add_bodies(gv.Box(np.ones((4, 3))), np.zeros((3, 3))), "4 sizes", "3 rows")
    refuse(lambda: scene.add_body(gv.Sphere([0.1, 0.2])), "2 sizes", "add_bodies")
    assert len(scene) == 0


def test_ragged_and_foreign_arrays_are_refused():
    scene = gv.Scene()
    refuse(lambda: scene.add_bodies(BALL, [(0, 0, 0), (1, 1)]), "positions", error=TypeError)
    refuse(lambda: scene.add_bodies(BALL, "here"), "positions", "'here'", error=TypeError)
    refuse(lambda: scene.add_bodies(BALL, None), "positions", error=(TypeError, ValueError))
    refuse(lambda: scene.add_body(BALL, position=(0, 0)), "position", "(2,)")
    assert len(scene) == 0


def test_options_of_add_body_must_fit_too():
    scene = gv.Scene()
    refuse(lambda: scene.add_body(BALL, velocity=(0, 0)), "velocit", "2)")
    refuse(lambda: scene.add_body(BALL, mass="heavy"), "mass", "heavy", error=TypeError)
    refuse(lambda: scene.add_body(BALL, velocity=[(0, 0), (1,)]), "velocit", error=TypeError)
    assert len(scene) == 0


def test_quaternions_must_not_be_zero():
    refuse(
        lambda: gv.Scene().add_bodies(BALL, np.zeros((2, 3)), quaternions=[(1, 0, 0, 0), (0, 0, 0, 0)]),
        "quaternions",
        "row 1",
    )


def test_a_plane_must_be_fixed_or_have_a_motion():
    scene = gv.Scene()
    refuse(lambda: scene.add_body(gv.Plane()), "Plane", "fixed=True")
    refuse(lambda: scene.add_body(gv.Plane(), mass=1.0), "Plane", "fixed=True")
    assert len(scene) == 0


@pytest.mark.parametrize("how", [{"fixed": True}, {"motion": gv.ConstantVelocity((1, 0, 0))}])
def test_velocities_cannot_be_given_to_bodies_that_forces_do_not_move(how):
    scene = gv.Scene()
    refuse(lambda: scene.add_bodies(BALL, ORIGIN, velocities=[(1, 0, 0)], **how), "velocities", "fixed", "motion")
    refuse(
        lambda: scene.add_bodies(BALL, ORIGIN, angular_velocities=[(1, 0, 0)], **how),
        "angular_velocities",
        "fixed",
        "motion",
    )
    refuse(lambda: scene.add_body(BALL, velocity=(1, 0, 0), **how), "velocit", "fixed", "motion")
    assert len(scene) == 0 and not scene.motions


@pytest.mark.parametrize(
    "group, error",
    [(-1, ValueError), (32, ValueError), (1.0, TypeError), ("a", TypeError), (True, TypeError), (None, TypeError)],
)
def test_groups_are_whole_numbers_below_32(group, error):
    scene = gv.Scene()
    refuse(lambda: scene.add_body(BALL, group=group), "group", str(group), error=error)
    refuse(lambda: scene.ignore(group, 0), "group_a", str(group), error=error)
    refuse(lambda: scene.ignore(0, group), "group_b", str(group), error=error)
    assert len(scene) == 0 and not scene.ignored.any()


@pytest.mark.parametrize("shape", [None, 0.1, "Sphere", gv.Sphere, (0.1, 0.1, 0.1)])
def test_shapes_must_be_shapes(shape):
    refuse(lambda: gv.Scene().add_body(shape), "shape", "Sphere", repr(shape), error=TypeError)
    refuse(lambda: gv.Scene().add_bodies(shape, ORIGIN), "shape", "Sphere", repr(shape), error=TypeError)


@pytest.mark.parametrize("material", ["glass", 0.5, {"friction": 0.5}, gv.Material, 0, "", {}])
def test_materials_must_be_materials(material):
    scene = gv.Scene()
    refuse(lambda: scene.add_body(BALL, material=material), "material", repr(material), error=TypeError)
    refuse(lambda: scene.add_bodies(BALL, ORIGIN, material), "material", repr(material), error=TypeError)
    assert len(scene) == 0 and not scene.materials


@pytest.mark.parametrize("fixed", ["yes", 1, None, [True]])
def test_fixed_is_true_or_false(fixed):
    refuse(lambda: gv.Scene().add_body(BALL, fixed=fixed), "fixed", repr(fixed), error=TypeError)


def test_motions_are_checked():
    refuse(lambda: gv.Scene().add_body(BALL, motion=3.0), "motion", "3.0", error=TypeError)
    refuse(lambda: gv.ConstantVelocity((1, 0)), "velocity", "(2,)")
    refuse(lambda: gv.ConstantVelocity(angular_velocity=(NAN, 0, 0)), "angular_velocity[0]", "nan")
    refuse(lambda: gv.Oscillation((0, 0, INF), 1.0), "amplitude[2]", "inf")
    refuse(lambda: gv.Oscillation((0, 0, 1), 0.0), "frequency", "0.0")
    refuse(lambda: gv.Oscillation((0, 0, 1), 1.0, phase=NAN), "phase", "nan")


@pytest.mark.parametrize("answer", [(0, 0), (0, 0, NAN), "up", None, ((0, 0, 0), (0, 0, 0, 0))])
def test_motion_with_a_bad_answer_stops_the_step(answer):
    """The state before that step is kept."""
    scene = gv.Scene()
    scene.add_body(BALL, (0, 0, 1), motion=lambda time: answer)
    scene.add_body(BALL, (1, 0, 1))
    sim = gv.Simulation(scene, 1e-3)
    before = sim.positions.copy()
    refuse(sim.step, "motion", "t = 0.0015 s", error=(TypeError, ValueError))
    assert np.array_equal(sim.positions, before) and sim.steps == 0


def test_gravity_is_a_vector():
    refuse(lambda: gv.Scene(gravity=-9.81), "gravity", "()")
    refuse(lambda: gv.Scene(gravity=(0, 0, NAN)), "gravity[2]", "nan")
    refuse(lambda: gv.Scene(gravity="down"), "gravity", "'down'", error=TypeError)


def test_forces_are_checked():
    scene = floor_and_balls()
    refuse(lambda: scene.set_force(9, (0, 0, 1)), "body", "9")
    refuse(lambda: scene.set_force(-1, (0, 0, 1)), "body", "-1")
    refuse(lambda: scene.set_force(1.5, (0, 0, 1)), "body", "1.5", error=TypeError)
    refuse(lambda: scene.set_force(1, (0, 0)), "force", "(2,)")
    still = scene.add_body(gv.Plane(), fixed=True)
    refuse(lambda: scene.set_force(still, (0, 0, 1)), "body", f"{still} is fixed")
    refuse(lambda: scene.set_force(1, torque=(0, 0, NAN)), "torque[2]", "nan")
    assert not scene.forces


def test_pairs_are_checked():
    scene, steel = gv.Scene(), gv.Material()
    refuse(lambda: scene.set_pair(steel, steel, friction=-0.1), "friction", "-0.1")
    refuse(lambda: scene.set_pair(steel, steel, restitution=1.5), "restitution", "1.5")
    refuse(lambda: scene.set_pair(steel, steel, cohesion=NAN), "cohesion", "nan")
    refuse(lambda: scene.set_pair(steel, steel, friction=0.1, rolling_friction=-1), "rolling_friction", "-1")
    assert not scene.pairs and not scene.materials


def test_refused_pair_adds_no_material():
    scene = gv.Scene()
    refuse(lambda: scene.set_pair(gv.Material(), "glass", friction=0.1), "material", "'glass'", error=TypeError)
    assert not scene.pairs and not scene.materials


# --- names
@pytest.mark.parametrize(
    "name, wrong, right",
    [
        ("broad_phase", "gird", "grid"),
        ("precision", "doubel", "double"),
        ("friction", "colomb", "coulomb"),
        ("device", "cpuu", "cpu"),
    ],
)
def test_unknown_names_get_the_nearest_suggested(name, wrong, right):
    scene = floor_and_balls()
    refuse(lambda: gv.Simulation(scene, 1e-3, **{name: wrong}), name, f"'{wrong}'", f"did you mean '{right}'")


def test_unknown_keywords_get_the_nearest_suggested():
    scene = floor_and_balls()
    refuse(lambda: scene.set_pair(gv.Material(), gv.Material(), frction=0.1), "'frction'", "did you mean 'friction'")
    refuse(lambda: scene.add_body(BALL, quaterion=(1, 0, 0, 0)), "'quaterion'", "did you mean 'quaternion'")
    refuse(lambda: gv.find_contacts(BALL, ORIGIN, broad_phase="brut"), "broad_phase", "'brut'", "did you mean 'brute'")


@pytest.mark.parametrize("name", ["broad_phase", "precision", "friction", "device"])
@pytest.mark.parametrize("value", [None, 3, "zzz"])
def test_far_off_names_get_the_list(name, value):
    refuse(lambda: gv.Simulation(floor_and_balls(), 1e-3, **{name: value}), name, repr(value), "must be one of")


# --- simulations
@pytest.mark.parametrize("dt, written", [(0.0, "0.0"), (-1e-3, "-0.001"), (NAN, "nan"), (INF, "inf")])
def test_dt_must_be_positive_and_finite(dt, written):
    refuse(lambda: gv.Simulation(floor_and_balls(), dt), "dt", written)


@pytest.mark.parametrize("dt", ["fast", None, [1e-3, 1e-3]])
def test_dt_must_be_a_number(dt):
    refuse(lambda: gv.Simulation(floor_and_balls(), dt), "dt", repr(dt), error=TypeError)


def test_empty_scene_is_refused():
    refuse(lambda: gv.Simulation(gv.Scene(), 1e-3), "scene", "at least one body")


def test_scene_and_solver_must_be_what_they_are_called():
    refuse(lambda: gv.Simulation("scene", 1e-3), "scene", "'scene'", error=TypeError)
    refuse(lambda: gv.Simulation(floor_and_balls(), 1e-3, solver="apgd"), "solver", "'apgd'", error=TypeError)
    refuse(lambda: gv.Simulation(floor_and_balls(), 1e-3, solver=gv.APGD), "solver", "APGD", error=TypeError)


@pytest.mark.parametrize(
    "threads, error",
    [(0, ValueError), (-2, ValueError), (100000, ValueError), (1.5, TypeError), ("all", TypeError), (True, TypeError)],
)
def test_threads_must_be_there(threads, error):
    refuse(lambda: gv.Simulation(floor_and_balls(), 1e-3, threads=threads), "threads", repr(threads), error=error)


def test_threads_of_find_contacts_must_be_there():
    refuse(lambda: gv.find_contacts(BALL, ORIGIN, threads=0), "threads", "0")
    refuse(lambda: gv.find_contacts(BALL, ORIGIN, threads=100000), "threads", "100000")


@pytest.mark.parametrize(
    "name, value, error",
    [
        ("margin", -1e-3, ValueError),
        ("margin", NAN, ValueError),
        ("recovery", 1.5, ValueError),
        ("recovery", -0.1, ValueError),
        ("recovery_speed", 0.0, ValueError),
        ("recovery_speed", NAN, ValueError),
        ("restitution_threshold", -1.0, ValueError),
        ("margin", "wide", TypeError),
        ("recovery_speed", "fast", TypeError),
        ("warm_start", "no", TypeError),
    ],
)
def test_settings_of_a_simulation_are_checked(name, value, error):
    refuse(lambda: gv.Simulation(floor_and_balls(), 1e-3, **{name: value}), name, repr(value), error=error)


@pytest.mark.parametrize("bounds", [((0, 0, 0), (1, 1, 0)), ((1, 1, 1), (0, 0, 0))])
def test_bounds_must_have_an_inside(bounds):
    refuse(lambda: gv.Simulation(floor_and_balls(), 1e-3, bounds=bounds), "bounds", str(bounds))


def test_bounds_must_be_two_points():
    refuse(lambda: gv.Simulation(floor_and_balls(), 1e-3, bounds=(0, 1)), "bounds", "(2,)")
    refuse(lambda: gv.Simulation(floor_and_balls(), 1e-3, bounds=((0, 0, 0), (1, 1, NAN))), "bounds[1, 2]", "nan")


@pytest.mark.parametrize("kind", [gv.GaussSeidel, gv.Jacobi, gv.APGD, gv.BarzilaiBorwein])
def test_settings_of_solvers_are_checked(kind):
    refuse(lambda: kind(iterations=0), "iterations", "0")
    refuse(lambda: kind(iterations=2.5), "iterations", "2.5", error=TypeError)
    refuse(lambda: kind(tolerance=-1e-3), "tolerance", "-0.001")
    refuse(lambda: kind(tolerance=NAN), "tolerance", "nan")


@pytest.mark.parametrize("value, error", [(0, ValueError), (-1, ValueError), (2.5, TypeError)])
def test_gauss_seidel_must_go_on_between_checks(value, error):
    """With check_every=0 its loop would never end."""
    refuse(lambda: gv.GaussSeidel(tolerance=1e-4, check_every=value), "check_every", str(value), error=error)


def test_settings_of_jacobi_are_checked():
    refuse(lambda: gv.Jacobi(relaxation=0.0), "relaxation", "0.0")
    refuse(lambda: gv.Jacobi(relaxation=1.5), "relaxation", "1.5")
    refuse(lambda: gv.Jacobi(overrelaxation=NAN), "overrelaxation", "nan")


@pytest.mark.parametrize("until", [0.0, -1.0, NAN, INF])
def test_run_must_end_later_than_now(until):
    sim = gv.Simulation(floor_and_balls(), 1e-3)
    refuse(lambda: sim.run(until), "until", f"{until:g}")
    assert sim.steps == 0


# --- nothing is half added
@pytest.mark.parametrize(
    "bad",
    [
        {"velocities": [(NAN, 0, 0)] * 2},
        {"masses": [1.0, -1.0]},
        {"quaternions": np.zeros((2, 4))},
        {"group": 99},
        {"inertias": np.ones((2, 2))},
        {"motion": 3.0},
        {"fixed": "yes"},
        {"material": "new"},
        {"positions": np.zeros((2, 2))},
        {"shape": None},
        {"fixed": True, "velocities": np.ones((2, 3))},
    ],
)
def test_refused_add_bodies_leaves_everything_as_it_was(bad):
    scene = floor_and_balls()
    sim = gv.Simulation(scene, 1e-3)
    before, materials, state = snapshot(scene), list(sim.materials), sim.state_hash()
    given = {"shape": BALL, "positions": np.ones((2, 3)), "material": gv.Material(density=1.0), **bad}
    for owner in (scene, sim):
        with pytest.raises((TypeError, ValueError)):
            owner.add_bodies(**given)
    assert snapshot(scene) == before
    assert list(sim.materials) == materials and sim.state_hash() == state and len(sim.positions) == 4 and not sim.motions


def test_callers_arrays_are_not_changed():
    positions, quaternions = np.zeros((2, 3)), np.full((2, 4), 2.0)
    scene = gv.Scene()
    scene.add_bodies(gv.Plane(offset=1.0), positions, quaternions=quaternions, fixed=True)
    assert not positions.any() and (quaternions == 2.0).all()


# --- bodies that come and go
def test_removal_needs_ids_that_exist():
    sim = gv.Simulation(floor_and_balls(), 1e-3)
    refuse(lambda: sim.remove(4), "ids", "4")
    refuse(lambda: sim.remove([1, -1]), "ids", "-1")
    refuse(lambda: sim.remove("all"), "ids", "all", error=TypeError)
    assert sim.alive.all()


@pytest.mark.parametrize("ids", [1.7, [0.5, 1.5], NAN])
def test_removal_does_not_round_ids(ids):
    sim = gv.Simulation(floor_and_balls(), 1e-3)
    refuse(lambda: sim.remove(ids), "ids", error=(TypeError, ValueError))
    assert sim.alive.all()


def test_removal_does_not_take_a_mask_for_ids():
    """A mask either removes the bodies it marks or is refused; it is not the ids 0 and 1."""
    sim = gv.Simulation(floor_and_balls(), 1e-3)
    mask = np.array([False, False, False, True])
    try:
        sim.remove(mask)
    except (TypeError, ValueError):
        assert sim.alive.all()
    else:
        assert list(sim.alive) == [True, True, True, False]


def test_only_immovable_bodies_get_a_motion():
    sim = gv.Simulation(floor_and_balls(), 1e-3)
    refuse(lambda: sim.set_motion(1, gv.ConstantVelocity((1, 0, 0))), "body 1")
    refuse(lambda: sim.set_motion(9, gv.ConstantVelocity((1, 0, 0))), "9")
    assert not sim.motions


def test_set_motion_needs_a_motion():
    sim = gv.Simulation(floor_and_balls(), 1e-3)
    refuse(lambda: sim.set_motion(0, 3.0), "motion", "3.0", error=TypeError)
    assert not sim.motions


# --- a state that went wrong
def expect_fault(sim, body):
    """The step is refused with the body, and positions, time and steps stay as they were."""
    positions, quaternions, steps, time = sim.positions.copy(), sim.quaternions.copy(), sim.steps, sim.time
    with pytest.raises(gv.SimulationError) as caught:
        sim.step()
    assert (caught.value.body, caught.value.time, caught.value.step) == (body, time, steps + 1)
    assert f"body {body}" in str(caught.value) and f"step {steps + 1}" in str(caught.value)
    assert np.array_equal(sim.positions, positions, equal_nan=True) and np.array_equal(sim.quaternions, quaternions, equal_nan=True)
    assert (sim.steps, sim.time) == (steps, time)


@pytest.mark.parametrize("broad_phase", ["grid", "brute"])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("field", ["velocities", "angular_velocities"])
def test_velocity_that_is_not_finite_stops_the_step(field, value, broad_phase):
    """The ball in contact with the floor as well as the one in the air."""
    for body in (2, 4):
        scene = floor_and_balls()
        scene.add_body(BALL, (0, 0, 5))
        sim = gv.Simulation(scene, 1e-3, broad_phase=broad_phase)
        for _ in range(3):
            sim.step()
        getattr(sim, field)[body, 1] = value
        expect_fault(sim, body)


@pytest.mark.parametrize("broad_phase", ["grid", "brute"])
@pytest.mark.parametrize("value", [NAN, INF])
def test_position_that_is_not_finite_stops_the_step(value, broad_phase):
    sim = gv.Simulation(floor_and_balls(), 1e-3, broad_phase=broad_phase)
    sim.step()
    sim.positions[2, 0] = value
    expect_fault(sim, 2)


def test_force_that_is_not_finite_stops_the_step():
    sim = gv.Simulation(floor_and_balls(), 1e-3)
    sim.forces[3] = (0, NAN, 0)
    expect_fault(sim, 3)


@pytest.mark.parametrize("name", ["positions", "quaternions", "velocities", "angular_velocities", "forces", "torques"])
@pytest.mark.parametrize("body", [0, 3])  # the floor, and a ball between two others
def test_what_was_written_is_looked_at_before_the_step(name, body):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(BALL, [(0.2 * k, 0, 0.1) for k in range(5)])  # all touch
    sim = gv.Simulation(scene, 1e-3)
    sim.step()
    before = sim.state_hash()
    good = np.array(getattr(sim, name)[body])
    getattr(sim, name)[body, 1] = NAN
    with pytest.raises(gv.SimulationError, match=f"{name} of body {body} must be finite") as caught:
        sim.step()
    assert caught.value.body == body and sim.steps == 1
    with pytest.raises(gv.SimulationError, match=f"{name} of body {body}"):
        sim.state_hash()
    getattr(sim, name)[body] = good
    assert sim.state_hash() == before
    sim.step()


def test_quaternions_that_were_written_get_length_one_or_are_refused():
    sim = gv.Simulation(floor_and_balls(), 1e-3)
    sim.quaternions[2] = (0, 0, 3, 4)
    sim.step()
    assert np.allclose(sim.quaternions[2], (0, 0, 0.6, 0.8))
    sim.quaternions[3] = 0
    with pytest.raises(gv.SimulationError, match=r"quaternions of body 3 must be finite and not zero, not \(0, 0, 0, 0\)"):
        sim.step()


def test_a_motion_that_gives_no_number_is_refused_by_its_body():
    scene = floor_and_balls()
    lid = scene.add_body(gv.Box((1, 1, 0.1)), (0, 0, 3), motion=lambda t: (0, 0, 3 if t < 0.002 else NAN))
    sim = gv.Simulation(scene, 1e-3)
    sim.step()
    state = sim.state_hash()
    with pytest.raises(ValueError, match=f"motion of body {lid}.*must be finite"):
        sim.step()
    assert sim.state_hash() == state


def test_repaired_state_goes_on_as_if_nothing_had_happened():
    sims = [gv.Simulation(floor_and_balls(), 1e-3) for _ in range(2)]
    for sim in sims:
        for _ in range(5):
            sim.step()
    good = sims[0].velocities[2].copy()
    sims[0].velocities[2] = NAN
    with pytest.raises(gv.SimulationError):
        sims[0].step()
    sims[0].velocities[2] = good
    for sim in sims:
        for _ in range(5):
            sim.step()
    assert sims[0].state_hash() == sims[1].state_hash()


def test_contacts_after_a_refused_step_are_refused_not_mixed():
    scene = floor_and_balls()
    scene.add_bodies(BALL, [(k, 2, 0.5) for k in range(3)])
    sim = gv.Simulation(scene, 1e-2, bounds=((-9, -9, -9), (9, 9, 9)))
    sim.step()
    sim.velocities[4:] = (0, 0, -100)
    number = len(sim.contacts)
    sim.velocities[1] = NAN
    expect_fault(sim, 1)
    assert len(sim.contacts) == number  # refused before it began: those of the last step are still there
    sim.velocities[1] = (1e6, 0, 0)
    expect_fault(sim, 1)
    with pytest.raises(gv.SimulationError, match="refused step"):
        _ = sim.contacts
    sim.velocities[:] = 0
    sim.step()
    assert len(sim.contacts) > 0


def test_body_that_leaves_the_bounds_stops_the_run():
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(BALL, [(0, 0, 0), (1, 0, 0)], velocities=[(0, 0, 0), (1, 0, 0)])
    sim = gv.Simulation(scene, 0.125, bounds=((-2, -2, -2), (2, 2, 2)))
    for _ in range(8):
        sim.step()
    assert np.allclose(sim.positions[1], (2, 0, 0), rtol=0, atol=1e-6)
    sim.positions[1] = (1.9375, 0, 0)
    expect_fault(sim, 1)
    with pytest.raises(gv.SimulationError):
        sim.run(until=10.0)
    assert np.allclose(sim.positions[1], (1.9375, 0, 0))


def test_fault_names_the_lowest_of_several_bodies():
    sim = gv.Simulation(floor_and_balls(), 1e-3)
    sim.velocities[[3, 2]] = NAN
    expect_fault(sim, 2)
