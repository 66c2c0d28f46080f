"""What a CAD file becomes: an ``Assembly`` that knows its bodies by the names of parts, and makes joints by the cylinders that two parts
have in common.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.joints.kinds import Cylindrical, Prismatic, Revolute
from gravel.model.materials import Material
from gravel.printing import formatting
from gravel.rotations import multiply, rotate
from gravel.scene import Scene

if TYPE_CHECKING:
    from gravel.simulation import Simulation

MISALIGNED = 1e-3  # rad between two axes that count as one, and ...
OFF_AXIS = 0.01  # ... how far apart they may be, in radii of the smaller cylinder
SAME_RADIUS = 1e-6  # relative: faces of one cylinder
SAME_CALLED = 0.01  # relative: a radius that a user gives
MOST_OF_A_TURN = 1.1 * math.pi  # rad: cylinders that go further round come before fillets and ends of slots
LISTED = 8  # candidates in a message


@dataclass(frozen=True, eq=False, repr=False)
class Axis:
    """A cylinder found in a part, in world coordinates where the part lies in the scene: ``point`` (3,) m in the middle of it on its axis,
    ``direction`` (3,), whose largest component is positive, ``radius`` and ``length`` m. ``hole``: the part is around it. ``angle``:
    how far round it goes, rad."""

    part: str
    point: Any
    direction: Any
    radius: float
    length: float
    hole: bool
    angle: float

    def __repr__(self) -> str:
        return formatting.of_fields(self)


class Line(NamedTuple):
    """An axis that two parts have in common."""

    point: np.ndarray
    direction: np.ndarray
    axes: list[Axis]

    def __str__(self):
        radii = dict.fromkeys(f"{axis.radius:.4g} m in {axis.part!r}" for axis in self.axes)
        return f"through {_written(self.point)} m along {_written(self.direction)} (radii {', '.join(radii)})"


@dataclass(frozen=True, repr=False)
class Assembly:
    """What ``load_step`` added to a scene. Names are those of parts, and of rigid groups of parts.

    - ``bodies``: name -> id of the body
    - ``groups``: name of a rigid group -> names of its parts
    - ``paths``: name of a part -> its place in the file's tree, such as "machine/bogie/wheel"
    - ``masses``: name of a part -> kg, of its volume and density; of all parts that enclose a volume
    - ``materials``: name of a part -> ``Material``
    - ``colours``: name of a part -> (red, green, blue) from 0 to 1 (sRGB), or None
    - ``axes``: the cylinders found in the parts, an ``Axis`` each
    - ``unit``: of length in the file; here all is in m
    - ``group``: the collision group of the bodies
    - ``messages``: one sentence for each thing that was simplified
    - ``frames``: name of a part -> (position m, quaternion) of the part's own coordinates in its body's
    """

    name: str
    unit: str
    bodies: dict[str, int]
    groups: dict[str, tuple[str, ...]]
    paths: dict[str, str]
    masses: dict[str, float]
    materials: dict[str, Material]
    colours: dict[str, tuple[float, float, float] | None]
    axes: tuple[Axis, ...] = field(repr=False)
    group: int
    messages: list[str]
    frames: Mapping[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        counts = {"parts": len(self.paths), "bodies": len(set(self.bodies.values())), "axes": len(self.axes)}
        return formatting.call(self, name=self.name, unit=self.unit, **counts, messages=len(self.messages))

    def part_pose(self, world: "Scene | Simulation", part: str) -> tuple[np.ndarray, np.ndarray]:
        """(position (3,) m, quaternion (4,)) of a part's own coordinates, in a Simulation or in the Scene that it was added to."""
        checks.choice("part", part, self.frames)
        body, (position, quaternion) = self.bodies[part], self.frames[part]
        if isinstance(world, Scene):
            place, turn = world.bodies.position[body], world.bodies.quaternion[body]
        else:
            place, turn = world.positions[body], world.quaternions[body]
        return place + rotate(turn, position), multiply(turn, quaternion)

    def axes_of(self, name: str) -> list[Axis]:
        """The cylinders found in a part, or in the parts of a rigid group."""
        checks.choice("part", name, self.bodies)
        parts = self.groups.get(name, (name,))
        return [axis for axis in self.axes if axis.part in parts]

    def hinge(
        self, part_a: str | None, part_b: str | None, *, near: ArrayLike | None = None, radius: float | None = None, **options: Any
    ) -> Revolute:
        """A ``Revolute`` joint about the axis of cylinders that two parts have in common (None: the world, then any cylinder of the other);
        add it with ``scene.add_joint``. Part b turns, counter-clockwise about the axis's ``direction``.

        Where they have several axes in common, ``near`` (3,) m takes the one that passes nearest to a point, ``radius`` m those with a
        cylinder of that radius; without them they are listed and refused. Other options are those of the joint: motor, limits ...
        """
        return Revolute(**self._ends(part_a, part_b, near, radius), **options)

    def slider(
        self, part_a: str | None, part_b: str | None, *, near: ArrayLike | None = None, radius: float | None = None, **options: Any
    ) -> Prismatic:
        """A ``Prismatic`` joint along a common axis, found as for ``hinge``, in m: a piston in its bore that does not turn."""
        return Prismatic(**self._ends(part_a, part_b, near, radius), **options)

    def cylindrical(
        self, part_a: str | None, part_b: str | None, *, near: ArrayLike | None = None, radius: float | None = None, **options: Any
    ) -> Cylindrical:
        """A ``Cylindrical`` joint along a common axis, found as for ``hinge``, in m: a shaft that slides and turns in its bore."""
        return Cylindrical(**self._ends(part_a, part_b, near, radius), **options)

    def _ends(self, part_a, part_b, near, radius):
        """Bodies, point and axis of a joint."""
        if part_a is None and part_b is None:
            raise ValueError("part_a and part_b must be two parts, or one part and None for the world, not both None")
        lists = []
        for name, part in (("part_a", part_a), ("part_b", part_b)):
            if part is not None:
                checks.choice(name, part, self.bodies)
                lists.append(self.axes_of(part))
        bodies = [None if part is None else self.bodies[part] for part in (part_a, part_b)]
        if bodies[0] == bodies[1]:
            raise ValueError(f"part_a and part_b must be of two bodies, but {part_a!r} and {part_b!r} are of body {bodies[0]}")
        whom = " and ".join(repr(part) for part in (part_a, part_b) if part is not None)
        line = _one_of(common_lines(lists), whom, near, radius, len(lists))
        return {"body_a": bodies[0], "body_b": bodies[1], "point": line.point, "axis": line.direction}


def common_lines(lists: list[list[Axis]]) -> list[Line]:
    """The axes on which each of the lists has cylinders; cylinders that go less than most of a turn round count if there are no others."""
    for least in (MOST_OF_A_TURN, 0.0):
        lines: list[list[Axis]] = []
        for axis in (axis for axes in lists for axis in axes if axis.angle >= least):
            beside = next((line for line in lines if _is_on(axis, line[0])), None)
            if beside is None:
                lines.append([axis])
            else:
                beside.append(axis)
        found = [line for line in lines if all(any(axis in axes for axis in line) for axes in lists)]
        if found:
            return [_line_of(axes, lists) for axes in found]
    return []


def _is_on(axis, other):
    """Have two cylinders one axis?"""
    arm = np.subtract(axis.point, other.point)
    off = np.linalg.norm(arm - arm @ other.direction * other.direction)
    aligned = np.linalg.norm(np.cross(axis.direction, other.direction)) <= MISALIGNED
    return aligned and off <= OFF_AXIS * min(axis.radius, other.radius)


def _line_of(axes, lists):
    """The line of some axes, with its point in the middle of what both parts have of it."""
    point, direction = axes[0].point, axes[0].direction
    spans = []
    for mine in lists:
        middles = [((axis.point - point) @ direction, 0.5 * axis.length) for axis in axes if axis in mine]
        spans.append((min(middle - half for middle, half in middles), max(middle + half for middle, half in middles)))
    middle = 0.5 * (max(low for low, _ in spans) + min(high for _, high in spans))
    return Line(point + middle * direction, direction, axes)


def _one_of(lines, whom, near, radius, parts):
    """The line that is meant, or a refusal with those that there are."""
    of = f"{whom} {'have in common' if parts == 2 else 'has'}"
    if radius is not None:
        radius = checks.number("radius", radius, above=0.0)
        fitting = [line for line in lines if any(abs(axis.radius - radius) <= SAME_CALLED * radius for axis in line.axes)]
        if lines and not fitting:
            raise ValueError(f"radius must be that of a cylinder on an axis that {of}, not {radius:g} m: {_listed(lines)}")
        lines = fitting
    if not lines:
        raise ValueError(f"a joint by name needs an axis of cylinders that {of}, but there is none; make the joint by point and axis")
    if near is not None:
        point = checks.array("near", near, (3,))
        return min(lines, key=lambda line: np.linalg.norm(np.cross(point - line.point, line.direction)))
    if len(lines) > 1:
        raise ValueError(f"near or radius must tell which of the {len(lines)} axes that {of} is meant: {_listed(lines)}")
    return lines[0]


def _listed(lines):
    more = f"; and {len(lines) - LISTED} more" if len(lines) > LISTED else ""
    return "; ".join(map(str, lines[:LISTED])) + more


def _written(vector):
    return "(" + ", ".join(f"{0.0 if abs(x) < 1e-9 else x:.4g}" for x in vector) + ")"


def axes_in(part: str, cylinders: list, pose: np.ndarray) -> list[Axis]:
    """The axes of a part with this pose (4, 4). Faces of one cylinder, which files often have in two halves, become one."""
    joined: list[list] = []  # of faces with (point, direction, low, high)
    for face in cylinders:
        direction = pose[:3, :3] @ face.direction
        direction = direction * np.sign(direction[np.argmax(np.abs(np.round(direction, 9)))]) + 0.0  # which is never -0
        ends = [pose[:3, :3] @ (face.point + at * face.direction) + pose[:3, 3] for at in (face.low, face.high)]
        for one in joined:
            first, point, along = one[0][0], one[0][1][0], one[0][2]
            arm = ends[0] - point
            same = face.hole == first.hole and abs(face.radius - first.radius) <= SAME_RADIUS * first.radius
            beside = np.linalg.norm(arm - arm @ along * along) <= 10 * SAME_RADIUS * first.radius
            if same and beside and np.linalg.norm(np.cross(direction, along)) <= 10 * SAME_RADIUS:
                one.append((face, ends, direction))
                break
        else:
            joined.append([(face, ends, direction)])
    return [_axis_of(part, faces) for faces in joined]


def _axis_of(part, faces):
    origin, direction = faces[0][1][0], faces[0][2]
    along = [(end - origin) @ direction for _, ends, _ in faces for end in ends]
    middle, length = 0.5 * (min(along) + max(along)), max(along) - min(along)
    angle = min(2 * math.pi, sum(face.round for face, _, _ in faces))
    face = faces[0][0]
    return Axis(part, origin + middle * direction, direction, face.radius, length, face.hole, angle)
