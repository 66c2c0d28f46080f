"""A tracked vehicle drives over granular soil (paper 001, Figs. 2 and 3).

Each track is a closed chain of shoes joined by pins, laid around a sprocket, an idler and road wheels. Motors turn the sprockets; their
teeth engage between the shoes. The soil fills a fixed bed, so more grains are smaller grains.
"""

import numpy as np

from gravel.joints.drives import SpeedMotor
from gravel.joints.kinds import Revolute
from gravel.model.materials import Material
from gravel.rotations import from_rotation_vector, rotate
from gravel.scene import Scene
from gravel.scenes.setup import Check, Setup, box_walls, staggered
from gravel.shapes import Box, Cylinder, Plane, Sphere
from gravel.shapes.compounds import Compound
from gravel.shapes.polyhedra import ConvexHull

BODIES, FEWEST = 6000, 500
BED = (3.6, 1.5, 0.4)  # half length and half width of the soil, and its depth, m
PITCH, TEETH, SPAN = 0.15, 10, 8  # of the track, m; of the sprocket; pitches from the vehicle's middle to its axles
TRACK_WIDTH, TRACK_GAUGE, THICKNESS = 0.4, 1.5, 0.05  # m; the gauge is the distance of the two tracks
WHEEL_WIDTH, ROAD_WHEELS = 0.2, 4
SPEED = 0.8  # m/s that the sprockets ask of the tracks
SETTLE = 0.3  # s before they turn

PIN_RADIUS = PITCH / (2 * np.sin(np.pi / TEETH))  # of the pins around the sprocket
FLAT = PIN_RADIUS * np.cos(np.pi / TEETH)  # from its axle to the middle of a shoe
INNER = FLAT - 0.5 * THICKNESS  # and to the shoe's inner face
AXLE = SPAN * PITCH
ACROSS = from_rotation_vector((np.pi / 2, 0, 0))  # turns z into -y: cylinders lie across


def track_pins():
    """(42, 2) places x, z of the pins around the axles' height: round the front, back along the top, round the rear, forward."""
    corner = np.arange(-(TEETH // 4), TEETH // 4 + 1) * 2 * np.pi / TEETH
    front = np.stack([AXLE + PIN_RADIUS * np.cos(corner), PIN_RADIUS * np.sin(corner)], axis=1)
    straight = np.arange(AXLE - 0.5 * PITCH, -AXLE, -PITCH)
    top = np.stack([straight, np.full(len(straight), FLAT)], axis=1)
    return np.concatenate([front, top, -front, -top])


def sprocket():
    """A prism whose faces the shoes lie on, with a tooth at each edge that reaches between two shoes."""
    angles = 2 * np.pi * np.arange(TEETH) / TEETH
    ring = (INNER - 0.002) / np.cos(np.pi / TEETH) * np.stack([np.cos(angles), 0 * angles, np.sin(angles)], axis=1)
    half = np.array([0, 0.5 * WHEEL_WIDTH, 0])
    items = [(ConvexHull(np.concatenate([ring - half, ring + half])),)]
    tooth = Box((0.5 * (PIN_RADIUS + 0.35 * THICKNESS - 0.8 * INNER), 0.3 * WHEEL_WIDTH, 0.07 * PITCH))
    for angle in angles:
        middle = 0.5 * (PIN_RADIUS + 0.35 * THICKNESS + 0.8 * INNER)
        items.append((tooth, (middle * np.cos(angle), 0, middle * np.sin(angle)), from_rotation_vector((0, -angle, 0))))
    return Compound(items)


def shoe():
    """A plate with two horns that keep the wheels between them."""
    horn = Box((0.15 * PITCH, 0.015, 0.03))
    side = 0.5 * WHEEL_WIDTH + 0.03
    above = 0.5 * THICKNESS + 0.03
    return Compound([(Box((0.36 * PITCH, 0.5 * TRACK_WIDTH, 0.5 * THICKNESS)),), (horn, (0, side, above)), (horn, (0, -side, above))])


class Vehicle:
    """The vehicle's bodies and joints in a scene, its axles at ``height`` over ``x``."""

    def __init__(self, scene, x, height, steel, rubber):
        hull = Box((AXLE, 0.5 * (TRACK_GAUGE - TRACK_WIDTH) - 0.02, 0.2))
        self.chassis = scene.add_body(hull, (x, 0, height + 0.1), steel, mass=1200.0, name="chassis")
        self.shoes, self.pins, self.drives, self.wheels = [], [], [], []
        for side in (-0.5 * TRACK_GAUGE, 0.5 * TRACK_GAUGE):
            self._add_wheels(scene, np.array([x, side, height]), steel)
            self._add_track(scene, np.array([x, side, height]), rubber)
        self.bodies = np.array([self.chassis, *self.wheels, *self.shoes])

    def _add_wheels(self, scene, middle, steel):
        drive = scene.add_body(sprocket(), middle + (AXLE, 0, 0), steel, mass=60.0)
        self.wheels.append(drive)
        turn = lambda time: SPEED / FLAT * min(max((time - SETTLE) / 0.5, 0.0), 1.0)  # noqa: E731
        motor = SpeedMotor(turn, limit=4000.0)
        self.drives.append(scene.add_joint(Revolute(self.chassis, drive, middle + (AXLE, 0, 0), (0, 1, 0), motor=motor)))
        for x in (-AXLE, *np.linspace(-0.58, 0.58, ROAD_WHEELS) * AXLE):
            place = middle + (x, 0, 0)
            wheel = scene.add_body(Cylinder(INNER - 0.002, 0.5 * WHEEL_WIDTH), place, steel, quaternion=ACROSS, mass=40.0)
            self.wheels.append(wheel)
            scene.add_joint(Revolute(self.chassis, wheel, place, (0, 1, 0)))

    def _add_track(self, scene, middle, rubber):
        pins, shape = track_pins(), shoe()
        after = np.roll(pins, -1, axis=0)
        along, centre = after - pins, 0.5 * (pins + after)
        bodies = []
        for (dx, dz), (x, z) in zip(along, centre):
            # a shoe's z points to the inside of the track
            turn = from_rotation_vector((0, -np.arctan2(dz, dx), 0))
            bodies.append(scene.add_body(shape, middle + (x, 0, z), rubber, quaternion=turn, mass=8.0))
        for k, (x, z) in enumerate(pins):
            self.pins.append(scene.add_joint(Revolute(bodies[k - 1], bodies[k], middle + (x, 0, z), (0, 1, 0))))
        self.shoes += bodies


def build(bodies, seed):
    rng = np.random.default_rng(seed)
    soil = Material(density=2600, friction=0.7, rolling_friction=0.0, name="soil")
    steel, rubber = Material(density=7800, friction=0.2, name="steel"), Material(density=3000, friction=0.8, name="rubber")
    scene = Scene()
    scene.set_pair(steel, rubber, friction=0.1)
    scene.add_body(Plane(), material=soil, fixed=True)
    box_walls(scene, BED[0], BED[1], soil)
    radius = 0.5 * (4 * BED[0] * BED[1] * BED[2] / bodies) ** (1 / 3) * 0.97
    places = staggered(bodies, *BED[:2], radius, rng)
    grains = scene.add_bodies(Sphere(radius * rng.uniform(0.8, 1.0, bodies)), places, soil)
    height = places[:, 2].max() + radius + FLAT + 0.5 * THICKNESS + 0.01
    vehicle = Vehicle(scene, -0.5 * BED[0], height, steel, rubber)
    start = scene.bodies.position[vehicle.chassis].copy()
    return Setup(
        scene,
        1e-3,
        2.5,
        lambda s, r: check(s, r, vehicle, grains, start, radius),
        joint_names=dict(zip(("right_sprocket", "left_sprocket"), vehicle.drives)),
    )


def check(simulation, report, vehicle, grains, start, radius):
    way = simulation.positions[vehicle.chassis] - start
    asked = SPEED * (simulation.time - SETTLE - 0.25)
    open_pins = report.joint_violation / PITCH
    up = rotate(simulation.quaternions[vehicle.chassis], (0, 0, 1))[2]
    torque = simulation.joints.motor_torque[vehicle.drives]
    inside = np.abs(simulation.positions[grains][:, :2]) < np.array(BED[:2]) + radius
    lost = int(np.count_nonzero(~inside.all(axis=1)))
    tracks = simulation.joints.angle[vehicle.drives] * FLAT
    return [
        Check(
            "it drives",
            way[0] > 0.3 * asked,
            f"{way[0]:.2f} m forward; tracks turned {tracks[0]:.2f} and {tracks[1]:.2f} m, asked {asked:.2f}",
        ),
        Check("it keeps straight", abs(way[1]) < 0.25 * way[0], f"{way[1]:.3f} m aside"),
        Check("it stays upright", up > 0.9, f"vertical part of its upward axis {up:.3f}"),
        Check("pins closed", open_pins < 0.01, f"worst {100 * open_pins:.2g} % of a shoe, allowed 1 %"),
        Check("the soil bears it", way[2] > -0.3, f"sinks {-way[2]:.3f} m; sprockets at {torque[0]:.0f} and {torque[1]:.0f} N m"),
        Check("no grain lost", lost == 0, f"{lost} of {len(grains)} grains outside the bed"),
    ]
