"""A picture of one frame: balls, boxes and their speed or material, rendered off screen by PyVista."""

import contextlib
import os

import numpy as np

from gravel.io.vtkhdf import check_writable, read_frame
from gravel.shapes import BOX, SPHERE
from gravel.view import need

ROUND_BALLS = 20000  # more balls than this are drawn as shaded points
COLOURS = ("material", "speed", "radius")


def picture(result, output, frame=-1, colour="material", size=(1200, 900)):
    """Write a PNG of a frame of a result file; returns the path."""
    output = check_writable(output)
    data = read_frame(result, frame)
    pv = need("pyvista")
    with _quiet():
        plotter = pv.Plotter(off_screen=True, window_size=size)
        plotter.set_background("white")
        values = {"material": data["material"], "speed": np.linalg.norm(data["velocity"], axis=1), "radius": data["radius"]}[colour]
        shown = _shown(data)
        limits = (values[shown].min(), values[shown].max()) if shown.any() else (0, 1)
        look = {"scalars": "value", "clim": limits, "cmap": "viridis" if colour != "material" else "Set2", "show_scalar_bar": False}
        _add_balls(pv, plotter, data, values, shown & (data["shape"] == SPHERE), look)
        _add_boxes(pv, plotter, data, values, data["shape"] == BOX, look)
        _aim(plotter, data, shown)
        title = f"t = {data['time']:.3f} s, {np.count_nonzero(shown)} bodies"
        plotter.add_text(title, position="upper_left", font_size=11, color="black")
        if colour != "material":
            plotter.add_scalar_bar({"speed": "speed, m/s", "radius": "radius, m"}[colour], color="black")
        plotter.enable_anti_aliasing("ssaa")
        plotter.screenshot(str(output))
        plotter.close()
    return output


def _shown(data):
    """Bodies that are drawn solid and set the scale; the others are walls and blades."""
    return data["movable"] == 1


def _add_balls(pv, plotter, data, values, balls, look):
    if not balls.any():
        return
    cloud = pv.PolyData(np.ascontiguousarray(data["position"][balls]))
    cloud["value"], cloud["radius"] = values[balls], data["radius"][balls]
    if balls.sum() <= ROUND_BALLS:
        resolution = 24 if balls.sum() <= 3000 else 12
        ball = pv.Sphere(radius=1, theta_resolution=resolution, phi_resolution=resolution)
        plotter.add_mesh(cloud.glyph(scale="radius", orient=False, geom=ball), smooth_shading=True, **look)
    else:
        actor = plotter.add_mesh(cloud, style="points_gaussian", render_points_as_spheres=True, **look)
        actor.mapper.SetScaleArray("radius")
        actor.mapper.scale_factor = 1.0


def _add_boxes(pv, plotter, data, values, boxes, look):
    movable = _shown(data)
    for solid in (True, False):
        pick = np.flatnonzero(boxes & (movable == solid))
        if not len(pick):
            continue
        mesh = pv.merge([_box(pv, data, k, values[k]) for k in pick]) if len(pick) > 1 else _box(pv, data, pick[0], values[pick[0]])
        if solid:
            plotter.add_mesh(mesh, show_edges=True, **look)
        else:
            plotter.add_mesh(mesh, color="lightgray", opacity=0.15, show_edges=True)


def _box(pv, data, k, value):
    from gravel.rotations import rotate

    x, y, z = data["extent"][k]
    mesh = pv.Box((-x, x, -y, y, -z, z))
    mesh.points = rotate(data["quaternion"][k], mesh.points) + data["position"][k]
    mesh["value"] = np.full(mesh.n_points, value)
    return mesh


def _aim(plotter, data, shown):
    places = data["position"][shown]
    if not len(places):
        return
    low, high = np.quantile(places, 0.005, axis=0), np.quantile(places, 0.995, axis=0)
    centre, reach = 0.5 * (low + high), np.linalg.norm(high - low) + 4 * data["radius"][shown].max()
    plotter.camera_position = [tuple(centre + reach * np.array([0.75, -1.25, 0.65])), tuple(centre), (0, 0, 1)]
    plotter.camera.clipping_range = (0.01 * reach, 100 * reach)


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
