"""An excavator digs in sand: hydraulic cylinders move boom and stick, and a motor turns the bucket.

Each cylinder is a barrel and a rod joined by a slide with a position motor, pinned to the machine at both ends, so that the arm is a
mechanism with closed loops. The motors follow a cycle: reach out, lower, draw the bucket through the sand, lift.
"""

import numpy as np

from gravel.joints.drives import PositionMotor
from gravel.joints.kinds import Prismatic, Revolute
from gravel.model.materials import Material
from gravel.rotations import from_rotation_vector
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, box_walls, joints_check, staggered
from gravel.shapes import Box, Plane, Sphere
from gravel.shapes.compounds import Compound

BODIES, FEWEST = 3000, 200
BED, DEPTH = (1.2, 0.7), 0.5  # half length and width of the sand, its depth, m
FOOT = np.array([-2.1, 0.98])  # of the boom, x and z, m
BOOM, STICK = 1.9, 1.2
BUCKET = (0.25, 0.3, 0.02)  # half length, half width, half thickness of its plates
TIME = 5.0
SAND, ARM, WALLS, SHOVEL = range(4)  # collision groups
# of the cycle: time, s, and the angles of boom and stick against the horizontal and of the bucket, degrees
CYCLE = np.array(
    [
        (0.0, 35, -30, -60),
        (1.0, 27, -40, -75),
        (1.8, 15, -40, -80),
        (3.2, 27.6, -75, -140),
        (3.9, 30, -78, -180),
        (5.0, 45, -70, -182),
    ]
)


def angles_at(time):
    """Angles of boom, stick and bucket, rad, as the cycle wants them; smooth between its rows."""
    row = int(np.clip(np.searchsorted(CYCLE[:, 0], time) - 1, 0, len(CYCLE) - 2))
    share = np.clip((time - CYCLE[row, 0]) / (CYCLE[row + 1, 0] - CYCLE[row, 0]), 0.0, 1.0)
    share = share * share * (3 - 2 * share)
    return np.radians(CYCLE[row, 1:] + share * (CYCLE[row + 1, 1:] - CYCLE[row, 1:]))


def direction(angle):
    return np.array([np.cos(angle), np.sin(angle)])


def joints_at(time):
    """Ends of boom and stick, x and z, at a time of the cycle."""
    boom, stick, _ = angles_at(time)
    elbow = FOOT + BOOM * direction(boom)
    return elbow, elbow + STICK * direction(stick)


def lift_ends(time):
    """The boom's cylinder: from the ground before the foot to the boom's middle."""
    boom = angles_at(time)[0]
    return FOOT + (0.5, -0.5), FOOT + 0.5 * BOOM * direction(boom) - 0.1 * direction(boom + np.pi / 2)


def crowd_ends(time):
    """The stick's cylinder: from above the boom to the stick's rear end, beyond the elbow."""
    boom, stick, _ = angles_at(time)
    elbow, _ = joints_at(time)
    return FOOT + 0.45 * BOOM * direction(boom) + 0.25 * direction(boom + np.pi / 2), elbow - 0.35 * direction(stick)


def bucket_shape():
    """Floor, back and two sides; its own x points from the pin to the cutting edge, its z to the floor: it digs towards the machine."""
    length, width, thick = BUCKET
    floor = (Box((length, width, thick)), (length, 0, 0.22))
    back = (Box((thick, width, 0.16)), (0, 0, 0.08))
    sides = [(Box((length, thick, 0.11)), (length, sign * width, 0.11)) for sign in (-1, 1)]
    return Compound([floor, back, *sides])


def at(point, y=0.0):
    return np.array([point[0], y, point[1]])


def tilt(angle):
    """The turn about y that brings x to an angle above the horizontal."""
    return from_rotation_vector((0, -angle, 0))


def add_bar(scene, start, end, thick, mass, steel, y=0.0, name=None):
    along = np.asarray(end) - start
    shape = Box((0.5 * np.linalg.norm(along), thick, thick))
    middle = at(0.5 * (np.asarray(start) + end), y)
    return scene.add_body(shape, middle, steel, quaternion=tilt(np.arctan2(along[1], along[0])), mass=mass, group=ARM, name=name)


def pin(scene, a, b, point, **options):
    """A hinge across the machine; positive turns lift."""
    return scene.add_joint(Revolute(a, b, at(point), (0, -1, 0), **options))


def add_cylinder(scene, base, load, ends, limit, steel, y):
    """Barrel and rod between two bodies, of the length that the cycle wants; returns the slide's joint."""
    start, end = ends(0.0)
    middle, length = 0.5 * (start + end), lambda time: float(np.linalg.norm(np.subtract(*ends(time))))
    barrel = add_bar(scene, start, middle, 0.05, 15.0, steel, y)
    rod = add_bar(scene, start + 0.3 * (end - start), end, 0.03, 10.0, steel, y)
    pin(scene, base, barrel, start)
    pin(scene, rod, load, end)
    along = (end - start) / np.linalg.norm(end - start)
    motor = PositionMotor(length, limit=limit)
    return scene.add_joint(Prismatic(barrel, rod, at(middle), at(along), motor=motor, start=length(0.0)))


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    sand = Material(density=1800, friction=0.6, rolling_friction=0.002, name="sand")
    steel = Material(density=7800, friction=0.4, name="steel")
    scene = Scene()
    for other in (SAND, ARM, WALLS, SHOVEL):  # only the bucket touches the sand: grains would be crushed between it and the stick
        scene.ignore(ARM, other)
    scene.ignore(SHOVEL, WALLS)  # the machine stands behind the wall
    scene.add_body(Plane(), material=sand, fixed=True)
    box_walls(scene, *BED, sand, group=WALLS)
    radius = 0.485 * (4 * BED[0] * BED[1] * DEPTH / bodies) ** (1 / 3)
    places = staggered(bodies, *BED[:2], radius, rng)
    grains = scene.add_bodies(Sphere(radius * rng.uniform(0.8, 1.0, bodies)), places, sand)
    elbow, wrist = joints_at(0.0)
    boom = add_bar(scene, FOOT, elbow, 0.1, 250.0, steel, name="boom")
    stick = add_bar(scene, elbow, wrist, 0.08, 120.0, steel, name="stick")
    bucket_angle = angles_at(0.0)[2]
    bucket = scene.add_body(bucket_shape(), at(wrist), steel, quaternion=tilt(bucket_angle), mass=60.0, group=SHOVEL, name="bucket")
    pin(scene, None, boom, FOOT)
    pin(scene, boom, stick, elbow)
    curl = lambda time: float(angles_at(time)[2] - angles_at(time)[1])  # noqa: E731
    wrist_motor = PositionMotor(curl, limit=20e3)
    wrist_joint = pin(scene, stick, bucket, wrist, motor=wrist_motor, start=curl(0.0))
    cylinders = [
        add_cylinder(scene, None, boom, lift_ends, 200e3, steel, 0.3),
        add_cylinder(scene, boom, stick, crowd_ends, 200e3, steel, -0.2),
    ]
    return Setup(
        scene,
        1e-3,
        TIME,
        lambda s, r: check(s, r, bucket, grains, cylinders, wrist_joint, radius),
        joint_names={"bucket": wrist_joint, "boom_cylinder": cylinders[0], "stick_cylinder": cylinders[1]},
    )


def load_of(simulation, bucket, grains, radius):
    """Grains that are in the lifted bucket: well above the sand, near it, and not falling."""
    x = simulation.positions[grains]
    near = np.linalg.norm(x - simulation.positions[bucket], axis=1) < 0.6
    return near & (x[:, 2] > DEPTH + 0.25) & (np.abs(simulation.velocities[grains][:, 2]) < 1.0)


def check(simulation, report, bucket, grains, cylinders, wrist, radius):
    loaded = load_of(simulation, bucket, grains, radius)
    mass = simulation.masses[grains][loaded].sum()
    table = simulation.joints
    wanted = [float(np.linalg.norm(np.subtract(*ends(simulation.time)))) for ends in (lift_ends, crowd_ends)]
    outside = (np.abs(simulation.positions[grains][:, :2]) > np.array(BED) + radius).any(axis=1)
    lost = int(np.count_nonzero(outside & ~loaded))
    off = np.abs(table.slide[cylinders] - wanted).max()
    force = table.motor_force[cylinders] / 1e3
    return [
        Check("it lifts sand", mass > 5.0, f"{int(loaded.sum())} grains, {mass:.1f} kg in the bucket"),
        Check(
            "the cylinders follow",
            off < 0.01,
            f"off by {1e3 * off:.2g} mm; {force[0]:.1f} and {force[1]:.1f} kN, bucket {table.motor_torque[wrist]:.0f} N m",
        ),
        Check("no grain lost", lost == 0, f"{lost} of {len(grains)} grains outside the bed"),
        Check("penetration", report.max_penetration < 0.3 * radius, f"worst {100 * report.max_penetration / radius:.2g} % of the radius"),
        joints_check(report, STICK, 1e-3),
    ]
