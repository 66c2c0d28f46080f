"""Pictures of frames, off screen by PyVista: every body with its surface, the floor, shadows, forces, a scale bar and a colour bar.

In: a result file, a frame of one, a simulation or a scene. Out: a file, or an ``Image`` that notebooks show.
``Painter`` draws frame after frame by one ``Plan``, for pictures and videos alike.
"""

import io

import numpy as np

from gravel.io.vtkhdf import check_ending, check_writable
from gravel.view import need
from gravel.view.bodies import add_bodies, in_front
from gravel.view.caption import Bar, written_on
from gravel.view.floor import add_planes, forget
from gravel.view.look import Look
from gravel.view.overlays import FORCE_MAP, PALE, add_forces, add_joints, force_limits
from gravel.view.plan import plan_of
from gravel.view.stage import Stage
from gravel.view.subject import shown

FINER = 2  # pixels drawn for each of a picture, along each side
KINDS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}
ENDINGS, QUALITY = tuple(KINDS), 92  # quality of those that lose something, of 100
FINEST = 6_000_000  # pixels: larger pictures are drawn as they are


def picture(
    source,
    output=None,
    frame=-1,
    colour="auto",
    size=(1200, 900),
    camera="auto",
    background="white",
    forces=False,
    clip=None,
    limits=None,
    occlusion=True,
    caption=True,
):
    """A picture of a ``source``: the path of a result, a ``Frame``, a ``Simulation`` or a ``Scene``.

    Written to ``output``, a PNG, JPEG or WebP file by its ending, whose path is returned; with None, an ``Image`` is returned, which
    notebooks show. ``frame``: which of a result file, -1 the last. ``colour``: material, speed, radius, contacts, energy, body or rank;
    auto takes what tells most, the bodies of a machine, sizes, materials or speed. ``size``: (width, height) in pixels. ``camera``:
    auto, front, back, left, right, top, iso or "px,py,pz,fx,fy,fz[,ux,uy,uz[,angle]]": place and what it looks at in m, up, vertical
    angle of view in degrees. ``forces``: contacts as rods whose width is their force. ``clip``: "nx,ny,nz,offset", bodies whose centre
    has n·x < offset (m) are left out. ``limits``: (low, high) of the colour scale. ``occlusion``: corners that little light reaches are
    darker. ``caption``: time, scale and colour bar.
    """
    look = Look(colour, size, camera, background, forces, clip, limits, occlusion, caption)
    if output is not None:
        check_ending("output", output, ENDINGS)
        output = check_writable(output)
    one = shown(source, frame, look.needs_contacts)
    finer = FINER if FINER**2 * look.size[0] * look.size[1] <= FINEST else 1
    with Painter([one], look, finer) as painter:
        image = Image(painter.pixels(one), painter.plan.camera)
    return image if output is None else image.save(output)


class Image:
    """A picture that is not in a file yet: ``pixels`` (height, width, 3) bytes, and the ``camera`` it was taken with."""

    def __init__(self, pixels, camera):
        self.pixels, self.camera = pixels, camera

    def save(self, path):
        """Write it as a PNG, JPEG or WebP file, by its ending; returns the path."""
        check_ending("path", path, ENDINGS)
        path = check_writable(path)
        path.write_bytes(encoded(self.pixels, KINDS[path.suffix.lower()]))
        return path

    def _repr_png_(self):
        return encoded(self.pixels)

    def __repr__(self):
        height, width = self.pixels.shape[:2]
        return f'Image({width}x{height}, camera="{self.camera}")'


def encoded(pixels, kind="PNG"):
    """Pixels (height, width, 3) as the bytes of a PNG, JPEG or WEBP."""
    target = io.BytesIO()
    need("PIL.Image").fromarray(pixels).save(target, kind, **({} if kind == "PNG" else {"quality": QUALITY}))
    return target.getvalue()


class Painter:
    """Draws frames that share a plan; use it with ``with``."""

    def __init__(self, samples, look, finer=1, turn=0.0):
        self.look, self.plan, self.bar, self.force_limits = look, plan_of(samples, look, turn), None, None
        tones = self.plan.tones
        if look.forces:
            self.force_limits, beyond = force_limits(samples, look)
            self.bar = Bar("force, N", self.force_limits, beyond, FORCE_MAP)
        elif tones.limits is not None:
            self.bar = Bar(tones.words, tones.limits, tones.beyond)
        self.stage = Stage(look.size, look.backdrop, self.plan.shade if look.occlusion else None, finer)
        self.stage.light_from(self.plan.lamp, self.plan.camera.target)

    def pixels(self, one, camera=None):
        """(height, width, 3) bytes of a frame; ``camera``: another than the plan's."""
        look, stage, plan = self.look, self.stage, self.plan if camera is None else self.plan._replace(camera=camera)
        stage.clear()
        stage.look_from(plan.camera)
        colours = plan.tones.of(*one)
        add_planes(stage, plan, one.data, look)
        if look.forces:
            colours = PALE * look.backdrop + (1 - PALE) * colours
            add_forces(stage, plan, one, self.force_limits, look.clip)
        add_bodies(stage, plan, one.data, colours, look.clip)
        signs = add_joints(stage, plan, one.data, look)
        drawn = stage.pixels()
        if not look.caption:
            return drawn
        bodies = np.count_nonzero((one.data["movable"] > 0) & in_front(one.data["position"], look.clip))
        time = one.data["time"]
        title = f"t = {time:.3f} s" if time == 0 or time >= 0.01 else f"t = {time:.4g} s"
        title += f", {bodies} bod{'y' if bodies == 1 else 'ies'}"
        legend = () if look.forces else plan.tones.legend
        return written_on(drawn, title, plan.camera.pixels_per_metre(look.size[1]), look, self.bar, legend, signs)

    def close(self):
        self.stage.close()
        forget()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
