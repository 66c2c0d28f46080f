"""Where a picture is taken from: cameras as text, presets by name, and how to aim at points.

In: ``"px,py,pz,fx,fy,fz[,ux,uy,uz[,angle]]"`` (place of the camera and what it looks at, m; up; vertical angle of view, degrees), or a
name of PRESETS, and points that must be seen. Out: a ``Camera``. The viewer prints such texts, and takes them.
"""

from typing import NamedTuple

import numpy as np

from gravel import checks

ANGLE = 30.0  # degrees, vertical
UP = (0.0, 0.0, 1.0)
PRESETS = {  # direction from what is seen to the camera, and up
    "auto": None,  # as the scene is
    "front": ((0, -1, 0), UP),
    "back": ((0, 1, 0), UP),
    "left": ((-1, 0, 0), UP),
    "right": ((1, 0, 0), UP),
    "top": ((0, 0, 1), (0, 1, 0)),
    "iso": ((1, -1, 0.8), UP),
}
OBLIQUE, TALL, FRONTAL, SIDEWAYS = (0.7, -1.3, 0.62), (0.7, -1.3, 0.3), (0.3, -1.3, 0.3), (1.3, -0.3, 0.3)  # what "auto" chooses from
THIN = 0.22  # of the largest extent: what is thinner along x or y is looked at from its broad side
FORM = "px,py,pz,fx,fy,fz[,ux,uy,uz[,angle]]"


class Camera(NamedTuple):
    """A place, what it looks at, up, and the vertical angle of view."""

    place: np.ndarray  # (3,) m
    target: np.ndarray  # (3,) m
    up: np.ndarray  # (3,)
    angle: float = ANGLE  # degrees

    def axes(self):
        """(3, 3): right, up and towards the camera, each of length one."""
        toward = self.place - self.target
        toward = toward / np.linalg.norm(toward)
        right = np.cross(self.up, toward)
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(toward, right), toward])

    def pixels_per_metre(self, height):
        """Of lengths across the line of sight, where the camera looks at, in a picture of so many rows."""
        return height / (2 * np.linalg.norm(self.place - self.target) * np.tan(np.radians(0.5 * self.angle)))

    def turned(self, degrees):
        """The camera after going around what it looks at, about its up, counter-clockwise from above."""
        return self._replace(place=self.target + around(self.up, degrees, self.place - self.target))

    def __str__(self):
        numbers = [*self.place, *self.target, *self.up, self.angle]
        return ",".join(f"{float(x):.6g}" for x in numbers)


def parse(text):
    """The camera of a text, or the name of a preset as it is; what is neither is refused."""
    words = str(text)
    if "," not in words:
        return checks.choice("camera", words.strip(), tuple(PRESETS))
    numbers = numbers_of("camera", words, FORM)
    if len(numbers) not in (6, 9, 10):
        raise ValueError(f"camera must be {FORM}, so 6, 9 or 10 numbers, not {len(numbers)}: {words!r}")
    place, target, up = numbers[:3], numbers[3:6], numbers[6:9] if len(numbers) > 6 else np.array(UP)
    angle = checks.number("angle of the camera in degrees", float(numbers[9]) if len(numbers) > 9 else ANGLE, above=0.0, maximum=170.0)
    if np.linalg.norm(place - target) < 1e-12:
        raise ValueError(f"camera must look at another place than its own, not {words!r}")
    if np.linalg.norm(up) < 1e-12:
        raise ValueError(f"up of the camera must have a direction, not {words!r}")
    if np.linalg.norm(np.cross(up, place - target)) < 1e-6 * np.linalg.norm(up) * np.linalg.norm(place - target):
        if len(numbers) > 6:
            raise ValueError(f"up of the camera must not point along its line of sight, as in {words!r}")
        up = np.array((0.0, 1.0, 0.0))  # straight down or up: y is up in the picture, as in the preset top
    return Camera(place, target, up / np.linalg.norm(up), angle)


def numbers_of(name, text, form):
    """Numbers from a text with commas."""
    try:
        return checks.array(name, [float(word) for word in str(text).split(",")], (None,))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers with commas between them, {form}, not {text!r}") from None


def around(axis, degrees, arms):
    """Vectors (..., 3) turned about an axis."""
    axis, angle = axis / np.linalg.norm(axis), np.radians(degrees)
    along = np.multiply.outer(arms @ axis, axis)
    return along + (arms - along) * np.cos(angle) + np.cross(axis, arms) * np.sin(angle)


def aim(preset, points, size, room=(0.04, 0.96, 0.06, 0.9), turn=0.0):
    """A camera from the direction of a preset so that points (n, 3) fill a part of the picture: ``room`` is left, right, bottom and top of
    it, as shares. ``turn``: degrees that the camera will go around them, which is allowed for."""
    points = points if len(points) else np.array([(-1.0, -1, -1), (1, 1, 1)])
    direction, up = PRESETS[preset] or (_suiting(points), UP)
    up, centre = np.array(up, float), 0.5 * (points.min(axis=0) + points.max(axis=0))
    right, upward, toward = Camera(np.array(direction, float), np.zeros(3), up).axes()
    across = np.stack([right, upward], axis=1)
    slope = np.tan(np.radians(0.5 * ANGLE)) * np.array([size[0] / size[1], 1.0])
    fill, offset = slope * [room[1] - room[0], room[3] - room[2]], slope * [room[1] + room[0] - 1, room[3] + room[2] - 1]
    if turn:
        stops = np.linspace(0, turn, max(int(abs(turn) / 15), 2))
        points, offset = np.concatenate([centre + around(up, -degrees, points - centre) for degrees in stops]), 0 * offset
    for _ in range(5):  # with each the points come nearer to the middle of the room
        arms = points - centre
        distance = max(((np.abs(arms @ across) / fill).max(axis=1) + arms @ toward).max(), 1e-9)
        seen = arms @ across / (distance - arms @ toward)[:, None]
        middle = 0.5 * (seen.min(axis=0) + seen.max(axis=0)) * distance
        centre = centre + across @ (middle * ((0.0, 1.0) if turn else (1.0, 1.0)))
    target = centre - across @ (offset * distance)
    return Camera(target + distance * toward, target, up)


def _suiting(points):
    """The direction that shows most of points."""
    extent = np.ptp(points, axis=0)
    if extent[1] < THIN * extent.max() and extent[1] <= extent[0]:
        return FRONTAL
    if extent[0] < THIN * extent.max():
        return SIDEWAYS
    return TALL if extent[2] > extent[:2].max() else OBLIQUE
