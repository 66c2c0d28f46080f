"""Bodies put on a stage: balls by a shader, other shapes as merged surfaces with their edges, walls in a quiet colour.

In: a frame, the colours of its bodies, the ``Plan``. Out: nothing; the stage has them.
"""

import numpy as np
from scipy.spatial import cKDTree

from gravel.shapes import SPHERE
from gravel.view.merged import COARSEST, TRIANGLES, groups_of, merge, place, unit
from gravel.view.stage import QUIET

EDGES, BOLD = 12, 40  # pixels of radius: of bodies that look smaller, edges are not drawn, or thinner
FINE = 100  # triangles of a wall that may be shown in part: what lies behind the grains is solid
TONE, SHEER = np.array([0.86, 0.845, 0.81]), np.array([0.62, 0.70, 0.78])  # solid and translucent walls
EDGE, OPACITY = np.full(3, 0.58), 0.13  # of walls' edges and of walls that are seen through
GRAZING, GLINT = 0.6, 0.75  # what glass adds to its opacity where it is seen along its face, and where it mirrors the lamp
SHARPNESS = 160  # of glints: the power of the cosine between the normal and the mirror's
STRIP = -0.55, np.linspace(-0.9, 0.9, 13), 0.83  # the lamp of glints is long and upright: how far right, up and towards the camera
BESIDE, NEARLY = 16, 0.9  # grains next to a piece of a wall; the share of all that must be behind it if it is to be glass


def add_bodies(stage, plan, data, colours, clip=None):
    """All bodies of a frame; of moving ones those with their centre behind ``clip`` (normal, offset) are left out, walls are cut."""
    walls = like_wall(data, plan)
    moving = np.flatnonzero(~walls & in_front(data["position"], clip))
    _add_moving(stage, plan, data, moving, colours)
    _add_walls(stage, plan, data, np.flatnonzero(walls), clip)


def like_wall(data, plan):
    """(n,) which bodies are drawn as walls: those that forces do not move, and parts of machines that hold grains."""
    return (data["movable"] == 0) | np.isin(data["id"], plan.holders)


def in_front(points, clip):
    """(n,) which points a clipping plane leaves."""
    return np.ones(len(points), bool) if clip is None else points @ clip[0] >= clip[1]


def _add_moving(stage, plan, data, moving, colours):
    balls = data["shape"][moving] == SPHERE
    painted = balls if (~balls).sum() * COARSEST <= TRIANGLES else np.ones(len(moving), bool)
    if painted.any():
        bodies = moving[painted]
        stage.add_balls(data["position"][bodies], _radii(data, bodies), colours[bodies])
    pixels = _pixels(stage, plan, data, moving)
    groups, with_edges, width = groups_of(data, moving[~painted], sides_for(pixels)), pixels > EDGES, min(pixels / BOLD, 1.0)
    for flat in (True, False):
        some = [group for group in groups if group.flat == flat]
        if some:
            surface = merge(some, data)
            stage.add_surface(surface, colours[surface.body], flat=flat)
            if with_edges:
                _add_edges(stage, plan, data, surface, 0.25 * colours[surface.body].mean(axis=0), width=width)


def sides_for(pixels):
    """Sides that a round body needs to look round, by its radius in the picture."""
    return next(sides for least, sides in ((80, 96), (30, 48), (12, 24), (6, 16), (3, 12), (0, 8)) if pixels >= least)


def _radii(data, bodies):
    """Radii of bodies that are drawn as balls: of others than balls the mean one of their surface."""
    radius = data["radius"][bodies].copy()
    for group in groups_of(data, bodies[data["shape"][bodies] != SPHERE]):
        for some in np.array_split(group.bodies, len(group.bodies) // 10000 + 1):
            reach = np.linalg.norm(place(group._replace(bodies=some), data) - data["position"][some, None, :], axis=2)
            radius[np.searchsorted(bodies, some)] = reach.mean(axis=1)
    return radius


def _add_walls(stage, plan, data, walls, clip):
    if not len(walls):
        return
    with_edges = _pixels(stage, plan, data, walls) > EDGES
    for group in groups_of(data, walls):
        sheer = np.isin(data["id"][group.bodies], plan.sheer)
        for bodies, translucent in ((group.bodies[~sheer], False), (group.bodies[sheer], True)):
            if len(bodies):
                surface = merge([group._replace(bodies=bodies)], data)
                _add_wall(stage, plan, surface, translucent, group.flat, clip)
                if with_edges:
                    _add_edges(stage, plan, data, surface, EDGE, clip)


def _add_wall(stage, plan, surface, translucent, flat, clip):
    """A wall; of a fine one that hides grains only the part that stands between them and the camera is glass, which leaves it cut open."""
    if translucent and len(surface.triangles) >= FINE:
        before = _between(surface, plan.camera.place, plan.some)
        stage.add_surface(surface._replace(triangles=surface.triangles[~before]), TONE, flat=flat, cut=clip, light=QUIET)
        surface = surface._replace(triangles=surface.triangles[before])
    if not len(surface.triangles):
        return
    if translucent and not flat:
        stage.add_glass(surface, _glass(surface, plan), clip)
    else:
        stage.add_surface(surface, SHEER if translucent else TONE, OPACITY if translucent else 1.0, flat, clip, QUIET)


def _glass(surface, plan):
    """(V, 4) colours and opacities of smooth glass: clear where it is seen straight on, less so along its face; white where it mirrors a
    long lamp."""
    normals = surface.normals.astype(float)
    toward = unit(plan.camera.place - surface.points)
    right, up, straight = plan.camera.axes()
    glint = np.zeros(len(normals))
    for height in STRIP[1]:
        mirror = unit(toward + unit(STRIP[0] * right + height * up + STRIP[2] * straight))
        glint = np.maximum(glint, np.abs((normals * mirror).sum(axis=1)) ** SHARPNESS)
    grazing = (1 - np.minimum(np.abs((normals * toward).sum(axis=1)), 1)) ** 3
    opacity = OPACITY + GRAZING * grazing + GLINT * glint
    colours = SHEER + (1 - SHEER) * np.minimum(GLINT * glint / opacity, 1)[:, None]
    return np.column_stack([colours, np.minimum(opacity, 1)])


def _between(surface, eye, centres):
    """(T,) which triangles have the camera on one side and on the other nearly all grains, and most of those next to them: of a hopper also
    where some have fallen out below, of a hill not where a valley goes on behind."""
    a, b, c = (surface.points[surface.triangles[:, k]].astype(float) for k in range(3))
    normals, middles = np.cross(b - a, c - a), (a + b + c) / 3
    normals *= np.sign(np.einsum("ti,ti->t", eye - middles, normals))[:, None]
    if not len(centres):
        return np.zeros(len(normals), bool)
    every = normals @ centres.T < np.einsum("ti,ti->t", middles, normals)[:, None]
    _, nearest = cKDTree(centres).query(middles, min(BESIDE, len(centres)))
    beside = np.take_along_axis(every, nearest.reshape(len(middles), -1), axis=1)
    return (every.mean(axis=1) > NEARLY) & (beside.mean(axis=1) > 0.5)


def _add_edges(stage, plan, data, surface, colour, clip=None, width=1.0):
    """Edges as lines, a little nearer to the camera than the faces they bound. (VTK's own offsets are in steps of the depth buffer: in
    a large scene they show the edges at the back.)"""
    if len(surface.edges):
        toward = plan.camera.place - surface.points
        away = np.maximum(np.linalg.norm(toward, axis=1), 1e-30)
        shift = np.minimum(0.02 * data["radius"][surface.body], 0.001 * away)
        stage.add_lines(surface.points + (shift / away)[:, None] * toward, surface.edges, colour, width, clip)


def _pixels(stage, plan, data, bodies):
    """The median radius of bodies in the picture, in pixels."""
    if not len(bodies):
        return 0.0
    away = np.linalg.norm(data["position"][bodies] - plan.camera.place, axis=1)
    slope = np.tan(np.radians(0.5 * plan.camera.angle))
    return float(np.median(data["radius"][bodies] / np.maximum(away, 1e-30)) / slope * 0.5 * stage.size[1])
