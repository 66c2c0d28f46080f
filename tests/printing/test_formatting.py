"""How things print: in one line, exactly where that is short, and without looking at more than needed."""

import math

import numpy as np
import pytest

import gravel as gv
from gravel.printing import formatting

TETRAHEDRON = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
BOX = gv.BoxRegion((0, 0, 0), (1, 1, 1))


def scene_of(bodies=3):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(gv.Sphere(0.1), np.stack([np.arange(bodies), np.zeros(bodies), np.ones(bodies)], axis=1))
    return scene


def with_hinge():
    scene = scene_of()
    door = scene.add_body(gv.Box((0.5, 0.1, 0.1)), (0, 5, 5))
    scene.add_joint(gv.Revolute(None, door, point=(0, 5, 5), axis=(0, 1, 0)))
    return scene


@pytest.mark.parametrize("value", [1.0, 0.1, -9.81, 1 / 3, 1e-7, 123456789.125, math.inf, -math.inf, np.nextafter(1.0, 2.0)])
def test_numbers_are_read_back_exactly(value):
    assert float(formatting.number(value)) == value


def test_numbers_are_short():
    assert [formatting.number(x) for x in (1.0, 0.5, 1e-9, math.nan)] == ["1", "0.5", "1e-09", "nan"]


@pytest.mark.parametrize(
    "thing",
    [
        gv.Sphere(1 / 3),
        gv.Ellipsoid((0.1, 0.2, 0.3)),
        gv.Capsule(0.1, 0.2),
        gv.Cylinder(0.1, 0.2),
        gv.Cone(0.1, 0.2),
        gv.Box((0.1, 0.2, 0.3)),
        gv.Plane((0, 0, 1), 0.5),
        gv.Material(density=2500, friction=1 / 3),
        gv.Spherical(None, 3, point=(0, 0, 1)),
        gv.Revolute(1, 2, point=(0.1, 0, 0), axis=(0, 1, 0), motor=gv.SpeedMotor(2.0), limits=(-1, 1)),
        gv.Spring(1, 2, point_b=(1, 0, 0), stiffness=100.0, damping=0.1),
        gv.Bushing(1, 2, stiffness=3.0),
        gv.Gear(0, 1, -0.5),
        gv.ConstantVelocity(angular_velocity=(0, 0, 0.1)),
        gv.Oscillation((0.1, 0, 0), 50.0),
        gv.Deformation(shear_rate=0.1),
        gv.Sleep(),
        gv.GaussSeidel(iterations=40),
        gv.Grid(2, 2),
        BOX,
        gv.CylinderRegion((0, 0, 0), (0, 0, 1), 0.1),
        gv.HopperRegion(0.1, 0.2, 0.3, 0.4, outlet=(1, 2, 3)),
        gv.SphereRegion((0, 0, 0), 0.1),
        gv.UniformSizes(0.01, 0.02),
        gv.SieveCurve((0.01, 0.02), (0, 1)),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_what_is_given_prints_as_the_call_that_makes_it(thing):
    text = repr(thing)
    again = eval(text, {**vars(gv), "inf": math.inf, "SpringLaw": gv.SpringLaw})
    assert repr(again) == text and "\n" not in text and "array" not in text
    for name in thing.__dataclass_fields__:
        assert np.all(np.asarray(getattr(again, name) == getattr(thing, name)))


def test_many_sizes_print_as_a_range():
    assert repr(gv.Sphere(np.linspace(0.02, 0.04, 1000))) == "Sphere(radius=<1000 from 0.02 to 0.04>)"
    assert repr(gv.Box(np.full((40, 3), 0.5))) == "Box(half_extents=<40 x 3 of 0.5>)"


@pytest.mark.parametrize(
    "thing, told",
    [
        (gv.ConvexHull(TETRAHEDRON), "ConvexHull(4 corners, 4 faces"),
        (gv.Mesh(TETRAHEDRON, FACES), "Mesh(4 vertices, 4 triangles, closed"),
        (gv.HeightField(np.arange(12.0).reshape(3, 4), 0.5), "HeightField(3 x 4 heights, 0 to 11 m, spacing=(0.5, 0.5))"),
        (gv.Clump([(0, 0, 0), (0.1, 0, 0)], 0.1), "Clump(2 spheres of radius 0.1 m"),
        (gv.Compound([(gv.Sphere(0.1), (0, 0, 0))]), "Compound(1 children)"),
        (gv.MeshRegion((TETRAHEDRON, FACES)), "MeshRegion(mesh=Mesh(4 vertices"),
        (gv.Cell(((0, 1), None, (-1, 1))), "Cell(x=(0, 1), z=(-1, 1))"),
        (gv.Mixture([(gv.Sphere(0.1), 0.5), (gv.Sphere(0.2), 2)]), "Mixture(items=[(Sphere(radius=0.1), 0.5), (Sphere(radius=0.2), 2)])"),
        (gv.pack(gv.Sphere(0.1), BOX, count=4), "Packing(4 Sphere"),
        (gv.pour(gv.Sphere(0.1), BOX, rate=2.0), "Pourer(2 kg/s"),
        (gv.ContactTable.empty(), "ContactTable(0 contacts)"),
        (gv.ConeProblem.from_matrices(np.eye(3), np.zeros(3), [0.5]), "MatrixConeProblem(contacts=1)"),
        (gv.Robot("ant", {"leg": 1}, {}, [], {}), "Robot(name='ant', links=1, joints=0, messages=0)"),
        (gv.measures.MassFlow((0, 0, 0), (0, 0, -1)), "MassFlow(point=(0, 0, 0), normal=(0, 0, -1), count=0, mass=0)"),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_what_is_large_prints_what_it_holds(thing, told):
    assert repr(thing).startswith(told) and "\n" not in repr(thing) and len(repr(thing)) < 250


def test_scene_and_simulation_tell_what_they_hold():
    scene = with_hinge()
    assert repr(gv.Scene()) == "Scene(bodies=0, joints=0, materials=0, gravity=(0, 0, -9.81))"
    assert repr(scene) == "Scene(bodies=5, joints=1, materials=1, gravity=(0, 0, -9.81))"
    assert "cell=Cell(x=(0, 1))" in repr(gv.Scene(periodic=((0, 1), None, None)))
    sim = gv.Simulation(scene, dt=2e-3, threads=1)
    expected = "Simulation(time={}, steps={}, bodies=5, joints=1, dt=0.002, solver='GaussSeidel', device='cpu')"
    assert repr(sim) == expected.format(0, 0)
    report = sim.step()
    assert repr(sim) == expected.format(0.002, 1)
    assert repr(report).startswith("StepReport(step=1, time=0.002, bodies=5, contacts=0,") and "\n" not in repr(report)
    sim.remove([1])
    assert "bodies=4" in repr(sim)
    assert repr(sim.joints).startswith("JointTable(1 joints, forces ") and repr(sim.bodies).startswith("Views(4 bodies of 5 ids")
    assert repr(scene.cast_rays((0, 0, 5), (0, 0, -1))) == "RayHits(1 rays, 1 hits, 3.9 m away)"


def test_a_simulation_prints_after_a_refused_step_and_while_it_is_made():
    sim = gv.Simulation(scene_of(), dt=2e-3, threads=1)
    sim.velocities[1] = np.nan
    with pytest.raises(gv.SimulationError):
        sim.step()
    assert repr(sim).startswith("Simulation(time=0, steps=0, bodies=4")
    assert repr(object.__new__(gv.Simulation)) == "Simulation(not made yet)"


def test_contacts_tell_their_impulses():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    ball = scene.add_body(gv.Sphere(0.1), (0, 0, 0.1), mass=2.0)
    sim = gv.Simulation(scene, dt=1e-3, threads=1, precision="double")
    for _ in range(3):
        sim.step()
    weight = 2.0 * 9.81 * sim.dt  # N s in a step
    told = repr(sim.contacts)
    assert told.startswith("ContactTable(1 contacts, gaps ") and told.endswith(f"impulses {weight:.4g} N s)"), told
    assert ball == sim.contacts.body_b[0]


def test_a_run_reads_as_a_sentence():
    sim = gv.Simulation(scene_of(), dt=2e-3, threads=1)
    run = sim.run(until=0.02)
    text = str(run)
    assert text.startswith("t = 0.02 s reached after 10 steps in ") and run.convergence() in text and "\n" not in text
    assert repr(run).startswith("RunReport(steps=10, time=0.02, seconds=")
    html = run._repr_html_()
    assert "<td" in html and "median residual" in html and "m/s" in html


def test_a_million_bodies_print_at_once():
    shape = gv.Sphere(np.full(1_000_000, 0.1))
    scene = gv.Scene()
    scene.add_bodies(shape, np.zeros((1_000_000, 3)))
    assert repr(scene).startswith("Scene(bodies=1000000") and repr(shape) == "Sphere(radius=<1000000 of 0.1>)"
