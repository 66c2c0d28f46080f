"""A picture of one frame: every body with its surface, coloured by material, speed, radius or process; off screen by PyVista.

Bodies that forces move are coloured. The others (ground, walls, drums, hoppers) are drawn in a quiet colour: translucent if
they stand between the camera and more than HIDES of the moving bodies' centres, so that one sees what they hold; else solid. Large
bodies of a machine that hold grains (a sieve's box) are drawn like walls.
"""

import contextlib
import os

import numpy as np

from gravel.io.vtkhdf import check_writable, read_frame
from gravel.shapes import SPHERE
from gravel.view import need
from gravel.view.merged import COARSEST, TRIANGLES, groups_of, merge, place

ROUND_BALLS = 20000  # more balls than this are drawn as shaded points
EDGES = 12  # pixels of radius: of bodies that look smaller, edges are not drawn
HIDES, RAYS = 0.15, 300  # what hides more than this share of the moving bodies (of so many of them) is translucent
LARGE = 4.0  # times the median radius: bodies of a machine among grains, which the camera does not overlook
FEW = 200  # of so many bodies none counts as strayed
COLOURS = ("material", "speed", "radius", "rank")
PALETTE = ("#66c2a5", "#fc8d62", "#8da0cb", "#e78ac3", "#a6d854", "#ffd92f", "#e5c494")  # of material or process k: number k modulo 7
NUMBERED = ("material", "rank")  # drawn in colours of the palette, without a scale
QUIET, SHEER, LINE = "#cfc9bd", "#9fb3c8", "#404040"  # solid and translucent walls, edges
OPACITY = 0.18
LIGHT = {"ambient": 0.22, "diffuse": 0.9}
FILL = np.array([0.92, 0.88])  # share of the window that bodies fill; above is the title
FROM = np.array([0.75, -1.25, 0.65])  # direction from the scene to the camera


def picture(result, output, frame=-1, colour="material", size=(1200, 900)):
    """Write a PNG of a frame of a result file; returns the path."""
    output = check_writable(output)
    data = read_frame(result, frame)
    pv = need("pyvista")
    with _quiet():
        plotter = pv.Plotter(off_screen=True, window_size=size)
        plotter.set_background("white")
        moving, others = np.flatnonzero(data["movable"] == 1), np.flatnonzero(data["movable"] == 0)
        values, look = _colours(pv, data, colour, moving)
        _aim(plotter, data, moving, others)
        title = f"t = {data['time']:.3f} s, {len(moving)} bodies"
        moving, others = _with_holders(pv, plotter, data, moving, others)
        mapper = _add_moving(pv, plotter, data, moving, values, look)
        _add_others(pv, plotter, data, moving, others)
        plotter.reset_camera_clipping_range()
        plotter.add_text(title, position="upper_left", font_size=11, color="black")
        if colour not in NUMBERED and mapper:
            words = {"speed": "speed, m/s\n", "radius": "radius, m\n"}[colour]
            bar = {"vertical": True, "position_x": 0.9, "position_y": 0.3, "width": 0.06, "height": 0.4}
            plotter.add_scalar_bar(words, mapper=mapper, color="black", title_font_size=18, label_font_size=16, **bar)
        plotter.enable_anti_aliasing("ssaa")
        plotter.screenshot(str(output))
        plotter.close()
    return output


def _colours(pv, data, colour, moving):
    """A value for each body, and how PyVista should colour by it."""
    look = {"scalars": "value", "show_scalar_bar": False}
    if colour in NUMBERED:
        return data[colour] % len(PALETTE), {**look, "cmap": list(PALETTE), "clim": (-0.5, len(PALETTE) - 0.5)}
    values = np.linalg.norm(data["velocity"], axis=1) if colour == "speed" else data["radius"]
    limits = (values[moving].min(), values[moving].max()) if len(moving) else (0, 1)
    if limits[0] == limits[1]:
        limits = (0, 2 * limits[0] or 1)
    return values, {**look, "cmap": "viridis", "clim": limits}


# --- bodies that forces move
def _add_moving(pv, plotter, data, moving, values, look):
    """Draw them; returns a mapper that knows the colours, if there is one."""
    as_points = np.zeros(len(moving), bool)
    balls = data["shape"][moving] == SPHERE
    if balls.sum() > ROUND_BALLS:
        as_points |= balls
    if (~balls).sum() * COARSEST > TRIANGLES:
        as_points |= ~balls
    mapper = _add_points(pv, plotter, data, moving[as_points], values, look)
    with_edges = _pixels(plotter, data, moving) > EDGES
    groups = groups_of(data, moving[~as_points])
    for flat in (True, False):
        some = [group for group in groups if group.flat == flat]
        if some:
            surface = merge(some, data)
            mesh = _mesh(pv, surface, flat)
            mesh["value"] = values[surface.body]
            mapper = plotter.add_mesh(mesh, interpolation="Flat" if flat else "Phong", **LIGHT, **look).mapper
            if with_edges:
                _add_edges(pv, plotter, data, surface)
    return mapper


def _add_points(pv, plotter, data, bodies, values, look):
    """Bodies as balls that are painted, not built; of others than balls the mean radius of their surface is taken."""
    if not len(bodies):
        return None
    radius = data["radius"][bodies].copy()
    for group in groups_of(data, bodies):
        if data["shape"][group.bodies[0]] != SPHERE:
            for some in np.array_split(group.bodies, len(group.bodies) // 10000 + 1):
                reach = np.linalg.norm(place(group._replace(bodies=some), data) - data["position"][some, None, :], axis=2)
                radius[np.searchsorted(bodies, some)] = reach.mean(axis=1)
    cloud = pv.PolyData(np.ascontiguousarray(data["position"][bodies]))
    cloud["value"], cloud["radius"] = values[bodies], radius
    actor = plotter.add_mesh(cloud, style="points_gaussian", render_points_as_spheres=True, **look)
    actor.mapper.SetScaleArray("radius")
    actor.mapper.scale_factor = 1.0
    return actor.mapper


def _with_holders(pv, plotter, data, moving, others):
    """(moving, others), where large moving bodies that hide the rest count among the others."""
    large = _large(data, moving)
    if not large.any() or large.all():
        return moving, others
    surface = merge(groups_of(data, moving[large]), data)
    holders = _hiding(pv, surface, data["position"][moving[~large]], np.array(plotter.camera.position))
    return np.setdiff1d(moving, holders), np.union1d(others, holders)


def _large(data, bodies):
    """Which bodies are far larger than most."""
    radius = data["radius"][bodies]
    return radius > LARGE * np.median(radius) if len(bodies) else np.zeros(0, bool)


# --- bodies that nothing moves or that follow a motion
def _add_others(pv, plotter, data, moving, others):
    if not len(others):
        return
    groups = groups_of(data, others)
    hiding = _hiding(pv, merge(groups, data), data["position"][moving], np.array(plotter.camera.position))
    with_edges = _pixels(plotter, data, others) > EDGES
    for translucent in (False, True):
        for flat in (True, False):
            some = [g._replace(bodies=g.bodies[np.isin(g.bodies, hiding) == translucent]) for g in groups if g.flat == flat]
            some = [g for g in some if len(g.bodies)]
            if some:
                surface = merge(some, data)
                style = {"color": SHEER, "opacity": OPACITY} if translucent else {"color": QUIET}
                plotter.add_mesh(_mesh(pv, surface, flat), interpolation="Flat" if flat else "Phong", **LIGHT, **style)
                if with_edges:
                    _add_edges(pv, plotter, data, surface, 0.5)


def _hiding(pv, surface, centres, eye):
    """The bodies of a surface that are hit by more than HIDES of the rays from the centres to the camera."""
    vtk = need("vtkmodules.vtkCommonDataModel")
    core = need("vtkmodules.vtkCommonCore")
    centres = centres[:: -(-len(centres) // RAYS)] if len(centres) else centres
    finder, cells, points, hits = vtk.vtkStaticCellLocator(), core.vtkIdList(), core.vtkPoints(), []
    finder.SetDataSet(_mesh(pv, surface, True))
    finder.BuildLocator()
    for centre in centres.astype(float):
        cells.Reset()
        finder.IntersectWithLine(centre, eye, 1e-6, points, cells)
        hit = [cells.GetId(k) for k in range(cells.GetNumberOfIds())]
        hits.append(np.unique(surface.body[surface.triangles[hit, 0]]))
    bodies, counts = np.unique(np.concatenate([*hits, np.zeros(0, int)]), return_counts=True)
    return bodies[counts > HIDES * len(centres)]


# --- meshes for PyVista
def _mesh(pv, surface, flat):
    mesh = pv.PolyData.from_regular_faces(surface.points, surface.triangles)
    if not flat:
        mesh.point_data.active_normals = surface.normals
    return mesh


def _add_edges(pv, plotter, data, surface, opacity=1.0):
    """Draw edges as lines, a little nearer to the camera than the faces they bound. (VTK's own offsets are in steps of the depth
    buffer: in a large scene they show the edges at the back.)"""
    if not len(surface.edges):
        return
    toward = np.array(plotter.camera.position) - surface.points
    away = np.linalg.norm(toward, axis=1)
    shift = np.minimum(0.02 * data["radius"][surface.body], 0.001 * away)
    points = surface.points + (shift / away)[:, None] * toward
    lines = np.column_stack([np.full(len(surface.edges), 2), surface.edges]).reshape(-1)
    plotter.add_mesh(pv.PolyData(points, lines=lines), color=LINE, line_width=1.5, opacity=opacity, lighting=False)


# --- the camera
def _aim(plotter, data, moving, others):
    """Look at the moving bodies, but for a few that strayed, and at what holds them: other bodies that reach no further than half
    the diagonal beside them are shown whole, of larger ones only what is near."""
    bodies = moving if len(moving) else others
    if not len(bodies):
        return
    places, radius = data["position"][bodies].astype(float), data["radius"][bodies, None]
    low, high = np.quantile(places, 0.005, axis=0), np.quantile(places, 0.995, axis=0)
    kept = ((places >= low) & (places <= high)).all(axis=1) | _large(data, bodies)
    if not kept.any() or len(bodies) < FEW:
        kept[:] = True
    radius = radius[kept]
    low, high = (places[kept] - radius).min(axis=0), (places[kept] + radius).max(axis=0)
    diagonal = np.linalg.norm(high - low)
    seen = [np.concatenate([places[kept] + side * radius for side in np.concatenate([np.eye(3), -np.eye(3)])])]
    if len(moving):
        for group in groups_of(data, others):
            for vertices in place(group, data):
                whole = (vertices >= low - 0.5 * diagonal).all() and (vertices <= high + 0.5 * diagonal).all()
                seen.append(vertices if whole else np.clip(vertices, low - 0.08 * diagonal, high + 0.08 * diagonal))
    _fit(plotter, np.concatenate(seen))


def _fit(plotter, points):
    """Place the camera so that points fill the window."""
    toward = FROM / np.linalg.norm(FROM)
    right = np.cross((0, 0, 1), toward)
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(toward, right)], axis=1)
    width, height = plotter.window_size
    slope = np.tan(np.radians(0.5 * plotter.camera.view_angle)) * np.array([width / height, 1.0]) * FILL
    centre = points.mean(axis=0)
    for _ in range(4):  # with each the points come nearer to the middle of the window
        arms = points - centre
        distance = ((np.abs(arms @ axes) / slope).max(axis=1) + arms @ toward).max()
        seen = arms @ axes / (distance - arms @ toward)[:, None]
        centre = centre + axes @ (0.5 * (seen.min(axis=0) + seen.max(axis=0)) * distance)
    plotter.camera_position = [tuple(centre + distance * toward), tuple(centre), (0, 0, 1)]


def _pixels(plotter, data, bodies):
    """The median radius of bodies in the picture, in pixels."""
    if not len(bodies):
        return 0.0
    away = np.linalg.norm(data["position"][bodies] - np.array(plotter.camera.position), axis=1)
    slope = np.tan(np.radians(0.5 * plotter.camera.view_angle))
    return float(np.median(data["radius"][bodies] / np.maximum(away, 1e-30)) / slope * 0.5 * plotter.window_size[1])


@contextlib.contextmanager
def _quiet():
    """VTK looks for a screen first and complains when there is none; nobody needs to read that."""
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
