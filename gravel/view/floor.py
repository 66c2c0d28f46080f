"""Planes of a scene as a quiet floor and walls: the part near the bodies, bounded by the other planes, with a grid and soft shadows.

In: a frame (``plane_position``, ``plane_normal``), the ``Plan``. Out: nothing; the stage has them. A floor fades into the background where
nothing bounds it. A plane that the camera looks through from behind, or that a machine reaches through, is drawn as its outline only.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gravel.shapes import SPHERE
from gravel.view.bodies import in_front, like_wall
from gravel.view.look import round_length
from gravel.view.merged import groups_of, merge
from gravel.view.stage import as_bytes

MOST = 24  # planes that are drawn
FLOORS = 4  # images of floors that are kept from frame to frame
FLOOR_REACH, WALL_REACH = 1.6, 0.06  # how far they go beside what is looked at, of its diagonal; a floor also past a wider picture
FLOOR, WALL = np.array([0.885, 0.875, 0.85]), np.array([0.94, 0.94, 0.935])
TEXELS, SHADOW_CELLS, SHADOW_POINTS = 1024, 256, 120_000
DARK, GRID = 0.34, 0.055  # how much of the light shadows and grid lines take
CELLS = 8  # of the grid along the diagonal, about


class Panel(NamedTuple):
    """A plane's polygon."""

    number: int  # of the plane in its frame
    corners: np.ndarray  # (k, 3)
    normal: np.ndarray  # (3,)
    level: bool  # a floor
    bounded: bool  # by other planes or the box around the bodies, all around


def add_planes(stage, plan, data, look):
    """The planes of a frame, and the edges of its periodic cell."""
    line = 0.62 * look.backdrop + 0.38 * look.ink
    if data["cell"] is not None:
        corners = cell_corners(data["cell"], plan.low, plan.high)
        bits = np.array(list(np.ndindex(2, 2, 2)))
        stage.add_lines(corners, np.argwhere(np.triu(np.abs(bits[:, None] - bits).sum(axis=2) == 1)), line)
    for panel in panels_of(data, plan.low, plan.high, plan.floor):
        k = len(panel.corners)
        if panel.number not in plan.outlined and (plan.camera.place - panel.corners[0]) @ panel.normal > 0:
            shares, image = _painted(panel, plan, data, look)
            stage.add_panel(panel.corners, shares, image)
        if panel.bounded:
            stage.add_lines(panel.corners, np.stack([np.arange(k), np.roll(np.arange(k), -1)], axis=1), line)


def forget():
    """Give back the memory of what was kept from frame to frame."""
    for kept in (_wall, _unshaded, _fade):
        kept.cache_clear()


def cell_corners(cell, low, high):
    """(8, 3) corners of a periodic cell; along open axes those of the box from low to high. Bodies are in it also where it is sheared."""
    bits = np.array(list(np.ndindex(2, 2, 2)))
    return np.where(bits == 1, np.where(cell.periodic, cell.high, high), np.where(cell.periodic, cell.low, low))


def panels_of(data, low, high, reach=0.0):
    """The polygons of the planes around the box from low to high; floors go on for ``reach`` m at least."""
    points, normals = data["plane_position"], data["plane_normal"]
    centre, diagonal = 0.5 * (low + high), float(np.linalg.norm(high - low))
    panels, reach = [], max(FLOOR_REACH * diagonal, reach)
    for k in range(min(len(points), MOST)):
        level = normals[k] @ (0, 0, 1) > 0.9
        middle = centre - normals[k] * ((centre - points[k]) @ normals[k])
        u, v = tangents(normals[k])
        corners = square = middle + reach * np.array([-u - v, u - v, u + v, v - u])
        for other in range(len(points)):
            if other != k:
                corners = cut_polygon(corners, normals[other], normals[other] @ points[other])
        if not level:
            for axis, side in [(axis, side) for axis in range(3) for side in (-1.0, 1.0)]:
                end = (high if side < 0 else low)[axis] - side * WALL_REACH * diagonal
                corners = cut_polygon(corners, side * np.eye(3)[axis], side * end)
        if len(corners) > 2:
            open_corners = (np.linalg.norm(corners[:, None] - square[None], axis=2) < 1e-6 * reach).any()
            panels.append(Panel(k, corners, normals[k], bool(level), not open_corners))
    return panels


def tangents(normal):
    """Two directions across a normal."""
    u = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    if abs(normal[2]) > 0.9:
        u = np.array([1.0, 0, 0]) - normal * normal[0]
    u /= np.linalg.norm(u)
    return u, np.cross(normal, u)


def cut_polygon(corners, normal, offset):
    """The part of a convex polygon (k, 3) with n·x >= offset."""
    kept = []
    height = corners @ normal - offset if len(corners) else ()
    for k in range(len(corners)):
        a, b, ha, hb = corners[k - 1], corners[k], height[k - 1], height[k]
        if (ha >= 0) != (hb >= 0):
            kept.append(a + ha / (ha - hb) * (b - a))
        if hb >= 0:
            kept.append(b)
    return np.array(kept).reshape(-1, 3)


def _painted(panel, plan, data, look):
    """(shares, image) of a panel that is seen from its front."""
    u, v = tangents(panel.normal)
    flat = np.stack([panel.corners @ u, panel.corners @ v], axis=1)
    low, high = flat.min(axis=0), flat.max(axis=0)
    middle, diagonal = 0.5 * (plan.low + plan.high), float(np.linalg.norm(plan.high - plan.low))
    reach = None if panel.bounded else max(FLOOR_REACH * diagonal, plan.floor)
    ends = tuple(map(float, (*low, *high, middle @ u, middle @ v)))
    looks = ends, diagonal, reach, panel.level, tuple(look.backdrop)
    shares = (flat - low) / (high - low)
    if not panel.level:
        return shares, _wall(*looks)
    lit = 1 - DARK * _shadow(panel, _casting(plan, data, look.clip), plan.lamp, (u, v), low, high).astype("f4")[..., None]
    return shares, as_bytes(_unshaded(*looks) * (lit if reach is None else lit + (1 - lit) * _fade(ends, reach)))


@lru_cache(maxsize=MOST)
def _wall(*looks):
    """The bytes of a panel without shadows: the same array for the same panel, which the stage then need not take anew."""
    return as_bytes(_unshaded(*looks))


@lru_cache(maxsize=FLOORS)  # of the frames of a video all but the shadows are alike
def _unshaded(ends, diagonal, reach, level, backdrop):
    """(TEXELS, TEXELS, 3) a panel's colours and grid."""
    backdrop, rows = np.array(backdrop), _texels(ends)
    light = 1 - GRID * _grid(rows, (ends[2] - ends[0], ends[3] - ends[1]), diagonal)
    image = light[..., None] * _tint(FLOOR if level else WALL, backdrop)
    if reach is not None:
        fade = _fade(ends, reach)
        image = image * (1 - fade) + backdrop * fade
    return image.astype("f4")


@lru_cache(maxsize=FLOORS)
def _fade(ends, reach):
    """(TEXELS, TEXELS, 1) how much of the background shows through where a floor ends."""
    x, y = _texels(ends)
    away = np.hypot(x[None, :] - ends[4], y[:, None] - ends[5]) / reach
    return (np.clip((away - 0.35) / 0.63, 0, 1)[..., None] ** 1.5).astype("f4")


def _texels(ends):
    """Where the columns and rows of a panel's image lie along its two directions."""
    return [ends[k] + (np.arange(TEXELS) + 0.5) / TEXELS * (ends[k + 2] - ends[k]) for k in (0, 1)]


def _tint(colour, backdrop):
    """A floor's colour on a background: quiet on a dark one as well."""
    return colour if backdrop.mean() > 0.45 else 0.75 * backdrop + 0.25 * colour


def _grid(rows, lengths, diagonal):
    """(TEXELS, TEXELS) 1 on lines at round distances, 0 beside them."""
    spacing = round_length(diagonal / CELLS * 2)
    lines = []
    for values, length in zip(rows, lengths):
        half = 0.7 * length / TEXELS
        lines.append(np.abs(values - spacing * np.round(values / spacing)) < half)
    return lines[0][None, :] | lines[1][:, None]


def _shadow(panel, casting, lamp, along, low, high):
    """(TEXELS, TEXELS) how much of the lamp's light bodies keep from a floor, softly."""
    from scipy.ndimage import gaussian_filter, zoom

    (points, areas), (u, v) = casting, along
    height = (points - panel.corners[0]) @ panel.normal
    points, areas, height = points[height > 0], areas[height > 0], height[height > 0]
    fallen = points - np.outer(height / (lamp @ panel.normal), lamp)
    edges = [np.linspace(low[k], high[k], SHADOW_CELLS + 1) for k in (0, 1)]
    cell = np.prod((high - low) / SHADOW_CELLS)
    cover = np.histogram2d(fallen @ v, fallen @ u, edges[::-1], weights=areas)[0] / cell
    soft = 1 - np.exp(-2 * gaussian_filter(cover, 1.6))
    return np.clip(zoom(soft.astype("f4"), TEXELS / SHADOW_CELLS, order=1), 0, 1)


def _casting(plan, data, clip):
    """Points (n, 3) on bodies that cast shadows, and the area (n,) that each stands for. What is clipped away casts none: whole bodies
    that move, parts of walls."""
    solid, walls = ~np.isin(data["id"], plan.sheer), like_wall(data, plan)
    solid &= walls | in_front(data["position"], clip)
    balls = data["shape"] == SPHERE
    points, areas = _discs(data, np.flatnonzero(solid & balls), plan.lamp)
    for some, cut in ((solid & ~balls & ~walls, None), (solid & ~balls & walls, clip)):
        if some.any():
            more, weights = _sampled(merge(groups_of(data, np.flatnonzero(some)), data), SHADOW_POINTS)
            kept = in_front(more, cut)
            points, areas = np.concatenate([points, more[kept]]), np.concatenate([areas, weights[kept]])
    return points, areas


def _discs(data, balls, lamp):
    """Points on the discs that balls are for the lamp."""
    each = int(np.clip(SHADOW_POINTS // max(len(balls), 1), 1, 4000))
    k = np.arange(each) + 0.5
    angle, radius = np.pi * (1 + np.sqrt(5)) * k, np.sqrt(k / each)
    u, v = tangents(lamp)
    disc = np.outer(radius * np.cos(angle), u) + np.outer(radius * np.sin(angle), v)
    radii = data["radius"][balls].astype(float)
    points = data["position"][balls, None, :] + radii[:, None, None] * disc
    return points.reshape(-1, 3), np.repeat(np.pi * radii**2 / each, each)


def _sampled(surface, count):
    """So many points spread over a surface, and the area of each seen from one side."""
    a, b, c = (surface.points[surface.triangles[:, k]].astype(float) for k in range(3))
    areas = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
    total = areas.sum()
    which = np.searchsorted(np.cumsum(areas), (np.arange(count) + 0.5) / count * total).clip(max=len(areas) - 1)
    s, t = (0.5 + np.arange(count) * 0.7548776662) % 1, (0.5 + np.arange(count) * 0.5698402910) % 1
    s, t = np.where(s + t > 1, 1 - s, s), np.where(s + t > 1, 1 - t, t)
    return a[which] + s[:, None] * (b - a)[which] + t[:, None] * (c - a)[which], np.full(count, 0.5 * total / count)
