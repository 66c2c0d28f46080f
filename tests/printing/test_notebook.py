"""What notebooks show: a picture with a line of facts, and the line alone where nothing can be drawn."""

import base64
import io
import re
import sys

import numpy as np
import pytest
from PIL import Image

import gravel as gv
from gravel.printing import notebook

RED = gv.Material(density=1000)


def scene_of(places):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(gv.Sphere(0.1), places, RED)
    return scene


def pixels_of(html):
    """(height, width, 3) of the picture in a text of HTML."""
    (data,) = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"), int)


def coloured(pixels):
    """Share of the picture that is no grey: the balls."""
    return float((np.ptp(pixels, axis=2) > 40).mean())


def test_a_scene_shows_its_bodies_and_a_line():
    html = scene_of([(0, 0, 0.1), (0.5, 0, 0.1)])._repr_html_()
    assert "Scene(bodies=3, joints=0, materials=2, gravity=(0, 0, -9.81))</figcaption>" in html
    pixels = pixels_of(html)
    assert pixels.shape == (notebook.SIZE[1], notebook.SIZE[0], 3) and coloured(pixels) > 0.05


def test_simulations_and_frames_show_where_bodies_are_now(tmp_path):
    sim = gv.Simulation(scene_of([(0, 0, 0.1), (0, 0.4, 0.1)]), dt=1e-3, threads=1)
    sim.run(until=0.005, save=tmp_path / "run.vtkhdf")
    shown = sim._repr_html_()
    assert "Simulation(time=0.005, steps=5, bodies=3" in shown and coloured(pixels_of(shown)) > 0.05
    with gv.open_result(tmp_path / "run.vtkhdf") as result:
        frame = result[-1]._repr_html_()
    assert "Frame(" in frame and abs(coloured(pixels_of(frame)) - coloured(pixels_of(shown))) < 0.01


def test_what_cannot_be_drawn_is_text(monkeypatch):
    assert gv.Scene()._repr_html_() is None  # there is nothing
    scene = scene_of([(0, 0, 0.1)])
    monkeypatch.setattr(notebook, "MOST", 1)
    assert scene._repr_html_() is None  # it would take too long
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pyvista", None)
    assert scene._repr_html_() is None  # the extra is not there


def test_a_renderer_that_fails_is_kept_quiet(monkeypatch):
    scene = scene_of([(0, 0, 0.1)])

    def broken(source):
        raise RuntimeError("no OpenGL here")

    monkeypatch.setattr(notebook, "_png_of", broken)
    assert scene._repr_html_() is None


def test_an_interrupt_gets_through(monkeypatch):
    def interrupted(source):
        raise KeyboardInterrupt

    monkeypatch.setattr(notebook, "_png_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scene_of([(0, 0, 0.1)])._repr_html_()


def test_looking_does_not_touch_what_was_written_wrongly():
    sim = gv.Simulation(scene_of([(0, 0, 1.0)]), dt=1e-3, threads=1)
    sim.velocities[1] = np.nan
    assert sim._repr_html_() is None and np.isnan(sim.velocities[1]).all()
    with pytest.raises(gv.SimulationError, match="velocities of body 1"):
        sim.step()
