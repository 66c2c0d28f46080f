"""A window that nobody sees, in which frames are drawn: lights, render passes with ambient occlusion, and what can be put into it.

In: arrays of balls, surfaces, lines and textured panels. Out: pixels. PyVista makes the window, VTK draws; balls are drawn as what they
are by a shader, not built of triangles.
"""

import contextlib
import ctypes
import os

import numpy as np

from gravel.view import need

MESA = ("libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so", "osmesa.dll")  # as VTK looks for it
SAMPLES = (16, 32)  # of the neighbourhood of a pixel, for ambient occlusion; where pixels are finer the second
LINE_PIXELS = 1.3  # width of lines in the finished picture, of 900 rows
BRIGHT, QUIET = (0.45, 0.62), (0.66, 0.42)  # shares of light from everywhere and from lamps, of bodies and of walls


class Stage:
    """Draws one frame after the other; use it with ``with``."""

    def __init__(self, size, backdrop, reach=None, finer=1):
        """``reach``: m around a point in which others keep light away from it, None: no ambient occlusion. ``finer``: pixels of the window
        for each of the picture, along each side."""
        self.size, self.finer, self.reach, self.actors = size, finer, reach, []
        self.textures, self.shown_textures = {}, {}  # by the image's id: (image, texture), of the frame before and of this one
        pv = need("pyvista")
        with quiet():
            check_opengl()
            self.plotter = pv.Plotter(off_screen=True, notebook=False, window_size=[finer * n for n in size], lighting="none")
            self.plotter.set_background(tuple(backdrop))
            self.plotter.ren_win.SetMultiSamples(0 if finer > 1 or reach else 4)
            self.plotter.renderer.SetPass(self._passes())

    def _passes(self):
        """Opaque things with ambient occlusion, then what is translucent."""
        gl = need("vtkmodules.vtkRenderingOpenGL2")
        opaque = gl.vtkOpaquePass()
        if self.reach:
            shade = gl.vtkSSAOPass()
            shade.SetRadius(self.reach)
            shade.SetBias(0.06 * self.reach)
            shade.SetKernelSize(SAMPLES[self.finer > 1])
            shade.BlurOn()
            shade.SetDelegatePass(_in_turn(gl, gl.vtkLightsPass(), opaque))
            opaque = shade
        seen_through = gl.vtkDepthPeelingPass()
        seen_through.SetTranslucentPass(gl.vtkTranslucentPass())
        seen_through.SetMaximumNumberOfPeels(6)
        seen_through.SetOcclusionRatio(0.01)
        every = _in_turn(gl, gl.vtkLightsPass(), opaque, seen_through)
        if self.finer > 1:
            return every
        smooth = gl.vtkOpenGLFXAAPass()  # where there are no pixels to spare
        smooth.SetDelegatePass(every)
        return smooth

    def look_from(self, camera):
        own = self.plotter.camera
        own.position, own.focal_point, own.up = (tuple(map(float, v)) for v in (camera.place, camera.target, camera.up))
        own.view_angle = camera.angle

    def light_from(self, toward, target):
        """A lamp in a direction, far away, and a weaker one at the camera."""
        pv = need("pyvista")
        self.plotter.remove_all_lights()
        lamp = pv.Light(position=tuple(target + toward), focal_point=tuple(target), light_type="scene light", intensity=0.72)
        self.plotter.add_light(lamp)
        self.plotter.add_light(pv.Light(light_type="headlight", intensity=0.5))

    def clear(self):
        """Take everything off; textures of the last frame are kept for the next."""
        for actor in self.actors:
            self.plotter.renderer.RemoveActor(actor)
        self.actors.clear()
        self.textures, self.shown_textures = self.shown_textures, {}

    def pixels(self):
        """(height, width, 3) bytes."""
        with quiet():
            self.plotter.reset_camera_clipping_range()
            self.plotter.render() if self.plotter._rendered else self.plotter.show(auto_close=False)
            shot = self.plotter.screenshot(return_img=True)
        if self.finer > 1:
            image = need("PIL.Image")
            shot = np.asarray(image.fromarray(shot).resize(self.size, image.Resampling.BOX))
        return np.ascontiguousarray(shot[..., :3])

    # --- what can be put on it
    def add_balls(self, places, radii, colours):
        """Balls of any number; colours (n, 3) from 0 to 1."""
        cloud = need("pyvista").PolyData(np.ascontiguousarray(places, "f4"))
        cloud["radius"], cloud["colour"] = radii.astype("f4"), as_bytes(colours)
        mapper = need("vtkmodules.vtkRenderingOpenGL2").vtkOpenGLSphereMapper()
        mapper.SetInputData(cloud)
        mapper.SetScaleArray("radius")
        self._add(_coloured(mapper))

    def add_surface(self, surface, colours, opacity=1.0, flat=False, cut=None, light=BRIGHT):
        """A ``merged.Merged``; colours (3,) of all or (V, 3) of vertices. ``cut``: (normal, offset) of a plane: what lies behind goes."""
        mesh = need("pyvista").PolyData.from_regular_faces(surface.points, surface.triangles)
        if not flat:
            mesh.point_data.active_normals = surface.normals
        mesh["colour"] = as_bytes(np.broadcast_to(colours, (len(surface.points), 3)))
        mesh = _cut(mesh, cut)
        if mesh.n_cells:
            self._add(_coloured(_mapper(mesh)), opacity=opacity, flat=flat, light=light)

    def add_glass(self, surface, colours, cut=None):
        """A ``merged.Merged`` that is seen through; colours (V, 4) of vertices with their opacities, shown as they are."""
        mesh = need("pyvista").PolyData.from_regular_faces(surface.points, surface.triangles)
        mesh["colour"] = as_bytes(colours)
        mesh = _cut(mesh, cut)
        if mesh.n_cells:
            actor = self._add(_coloured(_mapper(mesh)))
            actor.ForceTranslucentOn()
            _unlit(actor)

    def add_lines(self, points, pairs, colour, width=1.0, cut=None):
        """Lines between pairs of points, ``width`` times as wide as edges are; solid, since what is translucent is drawn several times."""
        if len(pairs):
            lines = np.column_stack([np.full(len(pairs), 2), pairs]).reshape(-1)
            actor = self._add(_mapper(_cut(need("pyvista").PolyData(np.asarray(points, "f4"), lines=lines), cut)))
            actor.GetProperty().SetColor(*map(float, colour))
            _unlit(actor)
            actor.GetProperty().SetLineWidth(LINE_PIXELS * width * self.finer * max(self.size[1] / 900, 0.6))

    def add_panel(self, corners, shares, image):
        """A flat polygon (k, 3) painted with an image (rows, columns, 3) bytes; ``shares`` (k, 2): where its corners are in it."""
        pv = need("pyvista")
        panel = pv.PolyData(corners.astype("f4"), faces=np.concatenate([[len(corners)], np.arange(len(corners))]))
        panel.active_texture_coordinates = shares.astype("f4")
        actor = self._add(_mapper(panel))
        _, texture = self.textures.get(id(image), (None, None))
        if texture is None:
            texture = pv.Texture(np.ascontiguousarray(image[::-1]))
            texture.SetMipmap(True)
            texture.SetInterpolate(True)
        self.shown_textures[id(image)] = image, texture
        actor.SetTexture(texture)
        _unlit(actor)

    def _add(self, mapper, opacity=1.0, flat=False, light=BRIGHT):
        actor = need("vtkmodules.vtkRenderingCore").vtkActor()
        actor.SetMapper(mapper)
        own = actor.GetProperty()
        own.SetAmbient(light[0])
        own.SetDiffuse(light[1])
        own.SetOpacity(opacity)
        own.SetInterpolationToFlat() if flat else own.SetInterpolationToPhong()
        self.plotter.renderer.AddActor(actor)
        self.actors.append(actor)
        return actor

    def close(self):
        with quiet():
            self.plotter.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def check_opengl():
    """Refuse where nothing can be drawn: VTK would end the process. Its last resort is OSMesa, there or not."""
    need("vtkmodules.vtkRenderingOpenGL2")  # without it windows have no kind
    kind = need("vtkmodules.vtkRenderingCore").vtkRenderWindow().GetClassName()
    if kind == "vtkOSOpenGLRenderWindow" and not any(map(_loads, MESA)):
        raise RuntimeError(
            "pictures need OpenGL 3.2, and there is none: no display, no EGL and no OSMesa that works "
            "(on Debian and Ubuntu: apt install libegl1 libgl1-mesa-dri)"
        )


def _loads(library):
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _in_turn(gl, *passes):
    """Passes one after the other, as the camera sees them."""
    camera, turns, parts = gl.vtkCameraPass(), gl.vtkSequencePass(), gl.vtkRenderPassCollection()
    for one in passes:
        parts.AddItem(one)
    turns.SetPasses(parts)
    camera.SetDelegatePass(turns)
    return camera


def _cut(mesh, cut):
    """What a plane (normal, offset) leaves of a mesh, all if it is None."""
    return mesh if cut is None else mesh.clip(normal=cut[0], origin=cut[0] * cut[1], invert=False)


def _unlit(actor):
    """Its colours are shown as they are."""
    own = actor.GetProperty()
    own.LightingOff()
    own.SetAmbient(1.0)
    own.SetDiffuse(0.0)


def _mapper(mesh):
    mapper = need("vtkmodules.vtkRenderingCore").vtkPolyDataMapper()
    mapper.SetInputData(mesh)
    mapper.ScalarVisibilityOff()
    return mapper


def _coloured(mapper):
    """The mapper takes the bytes in "colour" as they are."""
    mapper.SetScalarVisibility(True)
    mapper.SetScalarModeToUsePointFieldData()
    mapper.SelectColorArray("colour")
    mapper.SetColorModeToDirectScalars()
    return mapper


def as_bytes(colours):
    return np.ascontiguousarray(np.clip(255 * np.asarray(colours, "f4") + 0.5, 0, 255).astype(np.uint8))


@contextlib.contextmanager
def quiet():
    """VTK looks for a screen first and complains when there is none; nobody needs to read that."""
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
