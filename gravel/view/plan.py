"""What stays the same over all frames of a picture or video: the camera, the colour scale, which walls are translucent, where light is.

In: some frames of it (``subject.Shown``), and the ``Look``. Out: a ``Plan``.

Bodies that forces move are coloured. The others (ground, walls, drums, hoppers) are drawn in a quiet colour: translucent if they stand
between the camera and more than HIDES of the moving bodies' centres, so that one sees what they hold; else solid. Large bodies of a
machine that hold grains (a sieve's box) are drawn like walls.
"""

from typing import NamedTuple

import numpy as np

from gravel.view import need
from gravel.view.camera import Camera, aim
from gravel.view.caption import BAR_ROOM
from gravel.view.floor import panels_of
from gravel.view.look import Tones, tones_of
from gravel.view.merged import groups_of, merge, place
from gravel.view.subject import joint_points, joints_to_draw

HIDES, HOLDS, RAYS = 0.15, 0.3, 300  # what hides more than this share of the moving bodies (of so many of them) is translucent
CENTRES = 400  # of moving bodies that tell which side of a wall they are on
LARGE = 4.0  # times the median radius: bodies of a machine among grains, which the camera does not overlook
FEW, MANY = 200, 2000  # of so many bodies none counts as strayed; of more than so many only the outer ones are looked at,
DIRECTIONS = 150  # the outermost in each of so many directions
STRAYED = 0.05  # share of bodies behind a plane that does not count
REACH = 1.0  # of the diagonal of moving bodies: what holds them and reaches no further beside them is shown whole
LAMP = np.array([-0.4, 0.75, 0.8])  # where light comes from: to the right of the camera, up, and towards it
SHADE = 2.5, 0.03, 0.006  # reach of ambient occlusion: median radii of bodies, but at most and at least so much of the diagonal


class Plan(NamedTuple):
    camera: Camera
    tones: Tones
    holders: np.ndarray  # ids of moving bodies that are drawn like walls
    sheer: np.ndarray  # ids of walls that are translucent
    low: np.ndarray  # (3,) m, corners of the box around what is looked at
    high: np.ndarray
    some: np.ndarray  # (n, 3) m, centres of a few moving bodies
    lamp: np.ndarray  # (3,) direction to the light
    shade: float  # m, reach of ambient occlusion
    outlined: frozenset  # numbers of planes that are not filled, since something is behind them
    floor: float  # m, how far floors reach at least: as far as the picture is wide


def plan_of(samples, look, turn=0.0):
    """The plan for frames of which ``samples`` are some; ``turn``: degrees that the camera will go around."""
    tones = tones_of(samples, look)
    with_joints = any(joints_to_draw(shown.data) for shown in samples)
    with_bar = look.caption and (tones.limits is not None or look.forces or tones.legend or with_joints)
    seen = [_looked_at(shown.data) for shown in samples]
    points = np.concatenate(seen)
    low, high = (points.min(axis=0), points.max(axis=0)) if len(points) else (-np.ones(3), np.ones(3))
    if len(points):
        corners = [p.corners for p in panels_of(samples[0].data, low, high) if p.bounded]
        points = np.concatenate([points, *corners])
    camera = look.camera
    if isinstance(camera, str):
        camera = aim(camera, points, look.size, (0.03, BAR_ROOM if with_bar else 0.97, 0.07, 0.92), turn)
    eyes = [camera.turned(degrees).place for degrees in (np.linspace(0, turn, 9) if turn else (0.0,))]
    holders = np.unique(np.concatenate([_holders(shown.data, eye) for shown in samples for eye in eyes]))
    sheer = np.unique(np.concatenate([_hiding_walls(shown.data, holders, eye) for shown in samples for eye in eyes]))
    lamp = LAMP @ camera.axes()
    if camera.up @ (0, 0, 1) > 0.5:  # never from below the floor
        lamp[2] = max(lamp[2], 0.5)
    centres = np.concatenate([shown.data["position"][shown.data["movable"] > 0] for shown in samples])
    some = centres[:: max(len(centres) // CENTRES, 1)].astype(float)
    shade = _shade_reach(samples, float(np.linalg.norm(high - low)))
    wide = look.size[0] / camera.pixels_per_metre(look.size[1])
    return Plan(camera, tones, holders, sheer, low, high, some, lamp / np.linalg.norm(lamp), shade, _outlined(samples), 1.1 * wide)


def _shade_reach(samples, diagonal):
    radii = np.concatenate([shown.data["radius"][shown.data["movable"] > 0] for shown in samples])
    most, least = SHADE[1] * diagonal, SHADE[2] * diagonal
    return float(np.clip(SHADE[0] * np.median(radii) if len(radii) else most, least, most)) or 1e-3


# --- what the camera looks at
def _looked_at(data):
    """Points (n, 3) that should be in the picture: the moving bodies, but for a few that strayed, and what holds them. Other bodies that
    reach no further than REACH of the diagonal beside them are shown whole, of larger ones only what is near."""
    moving, others = np.flatnonzero(data["movable"] > 0), np.flatnonzero(data["movable"] == 0)
    bodies = moving if len(moving) else others
    if not len(bodies):
        return np.zeros((0, 3))
    places, radius = data["position"][bodies].astype(float), data["radius"][bodies, None].astype(float)
    kept = _kept(data, bodies, places)
    places, radius = places[kept], radius[kept]
    low, high = (places - radius).min(axis=0), (places + radius).max(axis=0)
    diagonal = np.linalg.norm(high - low)
    seen = [_outline(data, bodies[kept], places, radius)]
    for group in groups_of(data, others) if len(moving) else ():
        for vertices in place(group, data):
            whole = (vertices >= low - REACH * diagonal).all() and (vertices <= high + REACH * diagonal).all()
            seen.append(vertices if whole else np.clip(vertices, low - 0.08 * diagonal, high + 0.08 * diagonal))
    if len(bodies) <= FEW and data.get("joints") is not None:
        anchors = np.concatenate(joint_points(data))
        seen.append(anchors[((anchors > low - REACH * diagonal) & (anchors < high + REACH * diagonal)).all(axis=1)])
    return np.concatenate(seen)


def _outline(data, bodies, places, radius):
    """Points around bodies: of few their surfaces (a long rod is no ball), of many the balls around them, of very many the outer ones."""
    if len(bodies) <= FEW:
        return merge(groups_of(data, bodies), data).points.astype(float)
    if len(bodies) > MANY:
        outer = np.unique([np.argmax(places @ direction + radius[:, 0]) for direction in all_around(DIRECTIONS)])
        places, radius = places[outer], radius[outer]
    return np.concatenate([places + side * radius for side in all_around(12)])


def all_around(count):
    """(count, 3) directions, spread evenly."""
    k = np.arange(count) + 0.5
    angle, height = np.pi * (1 + np.sqrt(5)) * k, 1 - 2 * k / count
    across = np.sqrt(1 - height**2)
    return np.stack([across * np.cos(angle), across * np.sin(angle), height], axis=1)


def _kept(data, bodies, places):
    """Which bodies the camera looks at: not the few that strayed."""
    low, high = np.quantile(places, 0.005, axis=0), np.quantile(places, 0.995, axis=0)
    kept = ((places >= low) & (places <= high)).all(axis=1) | large(data, bodies)
    return kept if kept.any() and len(bodies) >= FEW else np.ones(len(bodies), bool)


def large(data, bodies):
    """Which bodies are far larger than most."""
    radius = data["radius"][bodies]
    return radius > LARGE * np.median(radius) if len(bodies) else np.zeros(0, bool)


# --- what hides what
def _outlined(samples):
    """The numbers of planes with a machine, or more than a few grains, behind them: planes need not hold back all bodies."""
    numbers = set()
    for shown in samples:
        data, moving = shown.data, np.flatnonzero(shown.data["movable"] > 0)
        big = large(data, moving)
        for k, (point, normal) in enumerate(zip(data["plane_position"], data["plane_normal"])):
            behind = (data["position"][moving] - point) @ normal < 0
            if (behind & big).any() or np.count_nonzero(behind) > STRAYED * len(moving):
                numbers.add(k)
    return frozenset(numbers)


def _holders(data, eye):
    """Ids of large moving bodies that hide the rest."""
    moving = np.flatnonzero(data["movable"] > 0)
    big = large(data, moving)
    if not big.any() or big.all():
        return np.zeros(0, int)
    surface = merge(groups_of(data, moving[big]), data)
    return data["id"][_hiding(surface, data["position"][moving[~big]], eye, HOLDS)]


def _hiding_walls(data, holders, eye):
    """Ids of walls, and of what counts among them, that hide moving bodies."""
    held = np.isin(data["id"], holders)
    walls, moving = np.flatnonzero((data["movable"] == 0) | held), np.flatnonzero((data["movable"] > 0) & ~held)
    if not len(walls) or not len(moving):
        return np.zeros(0, int)
    return data["id"][_hiding(merge(groups_of(data, walls), data), data["position"][moving], eye)]


def _hiding(surface, centres, eye, share=HIDES):
    """The bodies of a surface that are hit by more than a share of the rays from the centres to the camera."""
    pv, core = need("pyvista"), need("vtkmodules.vtkCommonCore")
    centres = centres[:: -(-len(centres) // RAYS)].astype(float)
    finder, cells, points, hits = need("vtkmodules.vtkCommonDataModel").vtkStaticCellLocator(), core.vtkIdList(), core.vtkPoints(), []
    finder.SetDataSet(pv.PolyData.from_regular_faces(surface.points, surface.triangles))
    finder.BuildLocator()
    for centre in centres:
        cells.Reset()
        finder.IntersectWithLine(centre, eye, 1e-6, points, cells)
        hit = [cells.GetId(k) for k in range(cells.GetNumberOfIds())]
        hits.append(np.unique(surface.body[surface.triangles[hit, 0]]))
    bodies, counts = np.unique(np.concatenate([*hits, np.zeros(0, int)]), return_counts=True)
    return bodies[counts > share * len(centres)]
