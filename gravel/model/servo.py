"""Walls under control: plates that slide along their normal and push with a given force or stress, or move at a given speed.

A plate is a body like any other, on a slide with a motor. Its force goes into the same problem as the contacts, so it is right in every
step; there is no controller whose gain has to be found.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from gravel import checks
from gravel.joints.drives import Drive, ForceMotor, SpeedMotor
from gravel.joints.kinds import Prismatic
from gravel.model.materials import Material
from gravel.printing import formatting
from gravel.shapes import Box

if TYPE_CHECKING:
    from gravel.scene import Scene
    from gravel.simulation import Simulation

THICKNESS = 0.1  # of the shorter side, unless it is given


class ServoWall:
    """A rectangular plate, added to ``scene``, that faces along ``normal``.

    ``centre`` (3,) m: the middle of its face. ``size`` (2,) m: its length along ``across`` (default: the axis that follows the normal's
    in x, y, z, or a horizontal one) and at right angles to it. One of ``force`` N, ``stress`` Pa (times the plate's area, or what ``area``
    m2 says) and ``speed`` m/s, along the normal: a number or a function of time. ``on``: a body to slide on, instead of the world.
    ``mass`` kg (default: from the material's density); its weight is carried, so that it pushes with the force asked for and no more.
    ``thickness`` m (default: a tenth of its shorter side). ``group`` and ``name`` as of ``Scene.add_body``.

    >>> lid = gv.ServoWall(scene, centre=(0, 0, 0.5), normal=(0, 0, -1), size=(0.2, 0.2), stress=1000.0)
    >>> sim = gv.Simulation(scene, dt=1e-3)
    >>> lid.travel(sim), lid.load(sim)
    """

    def __init__(
        self,
        scene: "Scene",
        centre: ArrayLike,
        normal: ArrayLike,
        size: ArrayLike,
        *,
        force: Drive | None = None,
        stress: Drive | None = None,
        speed: Drive | None = None,
        area: float | None = None,
        across: ArrayLike | None = None,
        on: int | None = None,
        mass: float | None = None,
        thickness: float | None = None,
        material: Material | None = None,
        group: int = 0,
        name: str | None = None,
    ):
        centre, self.normal = checks.array("centre", centre, (3,)), checks.unit("normal", normal)
        size = checks.array("size", size, (2,), above=0.0)
        self.area = float(size.prod()) if area is None else checks.number("area", area, above=0.0)
        thickness = THICKNESS * float(size.min()) if thickness is None else checks.number("thickness", thickness, above=0.0)
        motor = self._motor(force, stress, speed)
        if on is not None and checks.count("on", on) >= len(scene):
            raise ValueError(f"on must be the id of a body, below {len(scene)}, not {on}")
        first = self._across(across)
        frame = np.column_stack([first, np.cross(self.normal, first), self.normal])
        turned = Rotation.from_matrix(frame).as_quat()[[3, 0, 1, 2]]
        self.body = scene.add_body(
            Box((*(0.5 * size), 0.5 * thickness)),
            centre - 0.5 * thickness * self.normal,
            material,
            quaternion=turned,
            mass=mass,
            group=group,
            name=name,
        )
        self.joint = scene.add_joint(Prismatic(on, self.body, point=centre, axis=self.normal, motor=motor))
        scene.set_force(self.body, force=-scene.gravity / scene.bodies.inverse_mass[self.body, 0])

    def __repr__(self) -> str:
        return formatting.call(self, body=self.body, joint=self.joint, normal=self.normal, area=formatting.rough(self.area))

    def _across(self, across):
        """A direction along the plate."""
        if across is None:
            axis = int(np.argmax(np.abs(self.normal)))
            across = np.eye(3)[(axis + 1) % 3] if abs(self.normal[axis]) > 1 - 1e-9 else np.cross((0, 0, 1), self.normal)
        first = checks.unit("across", across)
        if abs(first @ self.normal) > 1e-6:
            raise ValueError(f"across must be at right angles to the normal {tuple(self.normal.tolist())}, not {tuple(first.tolist())}")
        return first

    def _motor(self, force, stress, speed):
        given = {name: value for name, value in (("force", force), ("stress", stress), ("speed", speed)) if value is not None}
        if len(given) != 1:
            raise ValueError(f"a ServoWall needs one of force, stress and speed, not {', '.join(given) or 'none'}")
        name, value = given.popitem()
        if not callable(value):
            checks.number(name, value)
        if name == "speed":
            return SpeedMotor(value)
        if name == "force":
            return ForceMotor(value)
        return ForceMotor((lambda time: self.area * value(time)) if callable(value) else self.area * value)

    def set(
        self,
        simulation: "Simulation",
        *,
        force: Drive | None = None,
        stress: Drive | None = None,
        speed: Drive | None = None,
        area: float | None = None,
    ) -> None:
        """Another force, stress or speed from now on; ``area`` m2: what a stress pushes on, where the sample's face has changed."""
        if area is not None:
            self.area = checks.number("area", area, above=0.0)
        simulation.set_motor(self.joint, self._motor(force, stress, speed))

    def travel(self, simulation: "Simulation") -> float:
        """How far it has gone along its normal, m."""
        return float(simulation.joints.slide[self.joint])

    def contact_force(self, simulation: "Simulation") -> np.ndarray:
        """(3,) N that contacts exerted on it in the last step, mean over the step."""
        return contact_force(simulation, self.body)

    def load(self, simulation: "Simulation") -> float:
        """N that contacts pushed back with against its normal, mean over the last step."""
        return float(-self.contact_force(simulation) @ self.normal)

    def stress(self, simulation: "Simulation") -> float:
        """Pa: the same over its area."""
        return self.load(simulation) / self.area


def contact_force(simulation: "Simulation", bodies: ArrayLike) -> np.ndarray:
    """(3,) N that all contacts exerted on a body, or on some bodies together, in the last step, mean over the step."""
    table = simulation.contacts
    own_a, own_b = np.isin(table.body_a, bodies), np.isin(table.body_b, bodies)
    return (table.impulse[own_b].sum(axis=0) - table.impulse[own_a].sum(axis=0)) / simulation.dt


def friction_angle(largest: float, smallest: float) -> float:
    """Degrees: the angle of internal friction that principal stresses mobilise, sin phi = (s1 - s3) / (s1 + s3)."""
    total = largest + smallest
    return math.degrees(math.asin(min(max((largest - smallest) / total, -1.0), 1.0))) if total > 0 else 0.0
