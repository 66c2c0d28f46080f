"""The viewer in Firefox: what Chromium shows is shown there, too, by the server and from a page that was saved."""

import asyncio
import io

import numpy as np
import pytest
from browser import READY
from firefox import Screen, missing, visit
from PIL import Image

import gravel as gv
from gravel.view.colouring import PALETTE


@pytest.fixture(scope="module")
def screen():
    if why := missing():
        pytest.skip(why)
    with Screen() as made:
        yield made


@pytest.fixture(scope="module")
def balls(tmp_path_factory):
    """Two balls of two materials, side by side at rest."""
    path, scene = tmp_path_factory.mktemp("balls") / "balls.vtkhdf", gv.Scene(gravity=(0, 0, 0))
    for k in range(2):
        scene.add_body(gv.Sphere(0.1), (0.4 * k, 0, 0), gv.Material(density=1000 + k))
    gv.Simulation(scene, dt=1e-3).run(3e-3, path, 1e-3)
    return path


@pytest.mark.parametrize("saved", [False, True], ids=["served", "saved"])
def test_firefox_draws_what_chromium_draws(saved, balls, screen, tmp_path):
    asked = ["document.getElementById('facts').innerText", "document.getElementById('colour').value", "gravel.counts().balls"]
    asked += [f"gravel.screen({row})[{axis}]" for row in range(2) for axis in range(2)]
    with gv.view(balls, browser=False) as view:
        url = view.save(tmp_path / "balls.html").as_uri() if saved else view.url
        (facts, colour, count, *places), png, errors = asyncio.run(visit(url, tmp_path, screen, READY, asked))
    assert (facts, colour, count, errors) == ("2 bodies", "material", 2, [])
    picture = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(float)
    numbers = gv.open_result(balls)[0].materials
    for (x, y), number in zip(np.reshape(places, (2, 2)).round().astype(int), numbers):
        wanted = np.array([int(PALETTE[number % 7][k : k + 2], 16) for k in (1, 3, 5)], float)
        assert picture[y, x] @ wanted > 0.999 * np.linalg.norm(picture[y, x]) * np.linalg.norm(wanted)
