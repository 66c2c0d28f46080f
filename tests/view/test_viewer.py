"""The viewer in a real browser: what is drawn where, playing, picking, colours, cutting, forces, live runs, and who may look."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from browser import leave, look, pixels, settle

import gravel as gv
from gravel.io.present import frame_of
from gravel.view.colouring import PALETTE
from gravel.view.subject import contact_ends
from gravel.view.viewer import server as server_module
from gravel.view.viewer.server import Server
from gravel.view.viewer.show import View
from gravel.view.viewer.sources import Live, Recorded

WHITE = np.array([255, 255, 255])
SHAPES = {
    "sphere": gv.Sphere(0.1),
    "ellipsoid": gv.Ellipsoid((0.1, 0.08, 0.12)),
    "capsule": gv.Capsule(0.06, 0.08),
    "cylinder": gv.Cylinder(0.08, 0.1),
    "cone": gv.Cone(0.1, 0.2),
    "box": gv.Box((0.1, 0.08, 0.06)),
    "rounded box": gv.RoundedBox((0.1, 0.08, 0.06), 0.03),
    "hull": gv.ConvexHull([(0.1, 0, -0.05), (-0.1, 0.1, -0.05), (-0.1, -0.1, -0.05), (0, 0, 0.12)]),
    "clump": gv.Clump([(0, 0, -0.04), (0, 0, 0.05)], [0.08, 0.07]),
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    """Three balls on each other between two walls of nothing, at rest, with contacts: (path, ids from below, weight of one)."""
    path = tmp_path_factory.mktemp("stack") / "stack.vtkhdf"
    scene = gv.Scene()
    floor = scene.add_body(gv.Plane((0, 0, 1)), fixed=True)
    one, other = gv.Material(density=1000, friction=0.5), gv.Material(density=1000, friction=0.4, name="chalk")
    balls = [scene.add_body(gv.Sphere(0.1), (0, 0, 0.1 + 0.2 * k), (one, other, one)[k]) for k in range(3)]
    simulation = gv.Simulation(scene, dt=1e-3, solver=gv.GaussSeidel(tolerance=1e-7))
    simulation.run(0.1, path, 0.01, contacts=True)
    return path, [floor, *balls], 9.81 * float(simulation.masses[balls[0]])


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    """One body of every shape in a row along x, none of them touching: (path, places)."""
    path = tmp_path_factory.mktemp("zoo") / "zoo.vtkhdf"
    scene = gv.Scene(gravity=(0, 0, 0))
    places = [(0.3 * k, 0.0, 0.0) for k in range(len(SHAPES))]
    for place, shape in zip(places, SHAPES.values()):
        scene.add_body(shape, place)
    gv.Simulation(scene, dt=1e-3).run(2e-3, path, 1e-3)
    return path, np.array(places)


@pytest.fixture
def shown(page, stack):
    with gv.view(stack[0], browser=False) as view:
        look(page, view.url)
        yield page, view


def projected(page, point):
    """Where a point is on the screen, from the camera as text: a pinhole, computed here."""
    numbers = np.array([float(x) for x in page.evaluate("gravel.cameraText()").split(",")])
    eye, target, up, angle = numbers[:3], numbers[3:6], numbers[6:9], numbers[9]
    ahead = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(ahead, up)
    right /= np.linalg.norm(right)
    arm = np.asarray(point, float) - eye
    size = page.viewport_size
    scale = 0.5 * size["height"] / np.tan(np.radians(angle / 2)) / (arm @ ahead)
    return 0.5 * size["width"] + scale * (arm @ right), 0.5 * size["height"] - scale * (arm @ np.cross(right, ahead))


def at(picture, place):
    x, y = np.round(place).astype(int)
    return picture[y, x]


def hue(colour):
    """Direction of a colour, whatever the light."""
    colour = np.asarray(colour, float)
    return colour / np.linalg.norm(colour)


def of_palette(number):
    return np.array([int(PALETTE[number][k : k + 2], 16) for k in (1, 3, 5)])


def choose(page, element, value):
    page.select_option(f"#{element}", value)
    page.wait_for_timeout(100)
    settle(page)


def test_the_page_tells_what_it_shows(shown):
    page, _ = shown
    assert page.inner_text("#title") == "stack.vtkhdf" and page.inner_text("#facts") == "3 bodies"
    page.keyboard.press("Home")
    page.wait_for_function("document.getElementById('clock').innerText === '0.000 s · frame 1 of 11'")


def test_balls_are_drawn_where_they_are_in_the_colours_of_their_materials(shown):
    page, _ = shown
    choose(page, "colour", "material")
    picture = pixels(page)
    numbers = [gv.open_result(shown[1].source.path)[0].materials[k] for k in range(3)]
    for k in range(3):
        assert hue(at(picture, projected(page, (0, 0, 0.1 + 0.2 * k)))) @ hue(of_palette(numbers[k])) > 0.999
    assert numbers[0] == numbers[2] != numbers[1]
    outside = projected(page, (0.115, 0, 0.3)), projected(page, (0, 0, 0.63))
    for place in outside:
        assert np.ptp(at(picture, place)) < 12  # paper or floor, no colour
    edge = at(picture, projected(page, (0.09 * 1.25 / np.hypot(1.25, 0.75), 0.09 * 0.75 / np.hypot(1.25, 0.75), 0.3)))
    assert np.ptp(edge) > 30  # inside its outline, across the line of sight


def test_materials_go_by_their_names_and_those_without_by_their_numbers(shown):
    page, _ = shown
    choose(page, "colour", "material")
    result = gv.open_result(shown[1].source.path)
    listed = dict(zip(page.locator("#numbers span").all_inner_texts(), page.locator("#numbers i").all()))
    numbers = result[0].materials
    assert set(listed) == {f"material {numbers[0]}", "chalk"} and result.materials[numbers[1]]["name"] == "chalk"
    colour = listed["chalk"].evaluate("dot => getComputedStyle(dot).backgroundColor")
    assert tuple(map(int, re.findall(r"\d+", colour))) == tuple(of_palette(numbers[1]))


def test_the_axes_of_a_body_point_where_its_quaternion_turns_them(page, tmp_path):
    path, turn = tmp_path / "turned.vtkhdf", np.array([np.cos(0.4), 0.0, 0.0, np.sin(0.4)])  # 0.8 rad about z
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_body(gv.Sphere(0.1), (0, 0, 0), quaternion=turn)
    scene.add_body(gv.Sphere(0.05), (0.5, 0, 0))
    gv.Simulation(scene, dt=1e-3).run(2e-3, path, 1e-3)
    with gv.view(path, browser=False) as view:
        look(page, view.url)
        assert page.evaluate("gravel.counts().frames") == 0
        page.click("button[data-view=top]")
        page.evaluate("gravel.select(0)")
        page.wait_for_function("gravel.counts().frames === 1")
        settle(page)
        picture, end = pixels(page), 0.14 * np.array([np.cos(0.8), np.sin(0.8), 0])  # within 1.6 radii, outside the ball
        assert hue(at(picture, projected(page, end))) @ hue((0.85, 0.1, 0.1)) > 0.99
        assert hue(at(picture, projected(page, (-end[1], end[0], 0)))) @ hue((0.1, 0.6, 0.15)) > 0.99
        assert (at(picture, projected(page, (0.14, 0, 0))) == WHITE).all()
        choose(page, "axes", "bodies")
        page.wait_for_function("gravel.counts().frames === 2")


def test_walls_end_where_other_planes_cut_them(page, tmp_path):
    path, scene = tmp_path / "box.vtkhdf", gv.Scene(gravity=(0, 0, 0))
    for normal in ((0, 0, 1), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)):
        scene.add_body(gv.Plane(normal), -0.5 * np.array(normal), fixed=True)
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.3))
    scene.add_body(gv.Sphere(0.1), (0, 0, -0.3))
    gv.Simulation(scene, dt=1e-3).run(2e-3, path, 1e-3)
    with gv.view(path, browser=False) as view:
        look(page, view.url)
        page.evaluate('gravel.placeCamera("0,0,4,0,0.0001,0")')
        settle(page)
        picture = pixels(page)
        assert page.evaluate("gravel.counts().planes") == 5
        for x, y in ((0.4, 0.4), (-0.4, 0.4), (0.4, -0.4)):
            assert (at(picture, projected(page, (x, y, -0.5))) != WHITE).any()  # the floor between the walls
        for x, y in ((0.9, 0.0), (0.0, 0.9), (-0.9, -0.9)):
            assert (at(picture, projected(page, (x, y, -0.5))) == WHITE).all()  # and nothing beyond them


def test_a_saved_page_needs_no_server(browser, stack, tmp_path):
    path, ids, _ = stack
    with gv.view(path, browser=False) as view:
        saved = view.save(tmp_path / "stack.html", slice(None, None, 5))
    window, asked, errors = browser.new_page(viewport={"width": 900, "height": 600}), [], []
    window.on("request", lambda request: asked.append(request.url))
    window.on("pageerror", lambda error: errors.append(str(error)))
    look(window, saved.as_uri())
    assert {url.split(":")[0] for url in asked} <= {"file", "data", "blob"}
    assert [url for url in asked if url.startswith("file")] == [saved.as_uri()]
    assert " of 3" in window.inner_text("#clock") and window.title() == "stack.vtkhdf – gravel"
    window.evaluate("gravel.go(2)")
    settle(window)
    assert window.inner_text("#clock") == "0.100 s · frame 3 of 3" and "--frame 10" in window.evaluate("gravel.command()")
    choose(window, "colour", "material")
    number = gv.open_result(path)[0].materials[1]
    assert hue(at(pixels(window), projected(window, (0, 0, 0.3)))) @ hue(of_palette(number)) > 0.999
    window.mouse.click(*projected(window, (0, 0, 0.3)))
    window.wait_for_selector("#picked td")
    told = window.inner_text("#pickedText")
    assert f"{ids[2]}, sphere" in told and "chalk" in told
    window.check("#forces")
    window.wait_for_function("gravel.counts().lines > 0")
    assert errors == []
    window.close()


def test_frames_without_contacts_beside_others_that_have_them_are_shown_and_saved(tmp_path):
    simulation, path = falling(), tmp_path / "half.vtkhdf"
    simulation.run(5e-3, path, 1e-3, contacts=True)
    simulation.run(10e-3, path, 1e-3)
    with gv.view(path, browser=False) as view:
        last = len(view.source.about()["times"]) - 1
        assert len(view.source.contacts(3)[0]) == 1 and view.source.contacts(last) is None
        assert "contacts" not in json.loads(answer(under(view, f"body/{last}/1"))[1])
        view.save(tmp_path / "half.html")


def test_a_page_that_no_browser_would_open_is_not_saved(stack, tmp_path, monkeypatch):
    from gravel.view.viewer import saved

    monkeypatch.setattr(saved, "LARGEST", 2.0002e6)
    with gv.view(stack[0], browser=False) as view:
        with pytest.raises(ValueError, match=r"a page of 11 frames of 3 bodies .* take 3 frames at most"):
            view.save(tmp_path / "stack.html")
        with pytest.raises(ValueError, match=r"output must be a file whose name ends in .html or .htm, not 'stack.png'"):
            view.save(tmp_path / "stack.png")
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_saves_a_page(stack, tmp_path):
    run = lambda *words: subprocess.run([sys.executable, "-m", "gravel", "view", str(stack[0]), *words], capture_output=True, text=True)  # noqa: E731
    done = run("--save", str(tmp_path / "page.html"), "--every", "10")
    assert done.returncode == 0 and "any browser opens it" in done.stdout
    assert (tmp_path / "page.html").read_text().count('"frame/') == 2
    wrong = run("--every", "3")
    assert wrong.returncode == 1 and "--every 3 goes with --save" in wrong.stderr


def test_every_shape_is_drawn_where_it_is_and_nowhere_else(page, zoo):
    path, places = zoo
    with gv.view(path, browser=False) as view:
        look(page, view.url)
        choose(page, "colour", "radius")
        picture = pixels(page)
        for place in places:
            assert (WHITE - at(picture, projected(page, place))).max() > 25, place
        for place in places[:-1] + (0.15, 0, 0):
            assert (at(picture, projected(page, place)) == WHITE).all(), place


def test_playing_ends_at_the_last_frame_and_steps_go_one_by_one(shown):
    page, _ = shown
    page.select_option("#speed", "0.25")
    page.click("#play")
    page.wait_for_function("gravel.state.number === 10 && !gravel.state.playing", timeout=30_000)
    assert page.inner_text("#clock") == "0.100 s · frame 11 of 11"
    page.click("#back")
    page.wait_for_function("gravel.state.number === 9")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("gravel.state.number === 10")
    page.keyboard.press("Home")
    page.wait_for_function("gravel.state.number === 0")
    page.evaluate("(document.getElementById('slider').value = 4, document.getElementById('slider').oninput())")
    page.wait_for_function("gravel.state.number === 4")


def test_playing_again_begins_with_the_first_frame(shown):
    page, _ = shown
    page.evaluate("gravel.go(10)")
    page.wait_for_function("gravel.state.number === 10")
    slowly = "(speed) => { speed.add(new Option('slow', '0.0005')); speed.value = '0.0005'; gravel.play(true); }"  # 20 s a frame
    page.locator("#speed").evaluate(slowly)
    page.wait_for_function("document.getElementById('clock').innerText.includes('frame 1 of 11')", timeout=10_000)


@pytest.fixture(scope="module")
def thrown(tmp_path_factory):
    """Many balls that are 20 m further along x in each frame: moved, not thrown, for at 2000 m/s all would be pairs, in gigabytes."""
    path, scene = tmp_path_factory.mktemp("thrown") / "thrown.vtkhdf", gv.Scene(gravity=(0, 0, 0))
    places = 0.3 * np.stack(np.unravel_index(np.arange(5832), (18, 18, 18)), axis=1)
    scene.add_bodies(gv.Sphere(0.1), places)

    def move(simulation):
        simulation.positions[:, 0] += 20.0

    gv.Simulation(scene, dt=1e-2).run(2e-2, path, 1e-2, observers=[move])
    return path


def test_bodies_that_went_far_are_found_and_drawn_from_near(page, thrown):
    with gv.view(thrown, browser=False) as view:
        look(page, view.url)
        page.evaluate("gravel.go(2)")
        settle(page)
        page.evaluate("gravel.fit('front')")
        settle(page)
        x, y = page.evaluate("gravel.screen(0)")
        assert 0 < x < 900 and 0 < y < 600
        page.evaluate('gravel.placeCamera("42.5,-0.5,2.5,42.5,5,2.5")')
        settle(page)
        assert page.evaluate("gravel.counts().near") > 100


def test_a_click_tells_who_it_is_and_who_it_touches(shown, stack):
    page, _ = shown
    _, (floor, *balls), weight = stack
    page.evaluate("gravel.go(10)")
    page.wait_for_function("gravel.state.number === 10")
    settle(page)
    page.mouse.click(*projected(page, (0, 0, 0.3)))
    page.wait_for_selector("#picked table")
    page.wait_for_function("document.getElementById('pickedText').innerText.includes('with')")
    words = page.inner_text("#pickedText")
    assert f"{balls[1]}, sphere, chalk" in words
    forces = {int(other): float(force) for other, force in re.findall(r"with (\d+): ([\d.e+-]+) N", words)}
    assert forces.keys() == {balls[0], balls[2]}
    assert forces[balls[0]] == pytest.approx(2 * weight, rel=0.01) and forces[balls[2]] == pytest.approx(weight, rel=0.01)
    page.mouse.click(450, 20)
    page.wait_for_selector("#picked", state="hidden")


def test_colours_follow_the_values(shown):
    page, view = shown
    choose(page, "colour", "contacts")  # frame 0 has none; frame 10: two for the balls below, one for the one on top
    page.evaluate("gravel.go(10)")
    page.wait_for_function("gravel.state.number === 10")
    settle(page)
    picture = pixels(page)
    bottom, middle, top = (at(picture, projected(page, (0, 0, 0.1 + 0.2 * k))) for k in range(3))
    assert np.abs(hue(bottom) - hue(middle)).max() < 0.02
    assert hue(middle)[0] > hue(top)[0] + 0.1  # the end of the scale is red, its middle yellow
    assert page.input_value("#high") == "2" and page.inner_text("#words") == "contacts of a body"
    page.fill("#high", "20")
    page.press("#high", "Enter")
    settle(page)
    assert hue(at(pixels(page), projected(page, (0, 0, 0.3))))[2] > 0.5  # near the low end: blue


def test_cutting_takes_bodies_away_that_lie_behind_the_plane(shown):
    page, _ = shown
    before = pixels(page)
    page.evaluate("document.getElementById('clip').click()")
    choose(page, "clipAxis", "0,0,-1")  # keeps what is below
    after = pixels(page)
    top, bottom = projected(page, (0, 0, 0.55)), projected(page, (0, 0, 0.1))
    assert np.ptp(at(before, top)) > 25 > np.ptp(at(after, top))
    assert (at(before, bottom) == at(after, bottom)).all()
    assert '--clip "0,0,-1,-0.3' in page.evaluate("gravel.command()")


def test_forces_are_lines_between_centres_with_widths_by_force(shown, stack):
    page, _ = shown
    page.evaluate("gravel.go(10)")
    page.wait_for_function("gravel.state.number === 10")
    choose(page, "bodies", "0.0001")
    page.evaluate("document.getElementById('forces').click()")
    page.evaluate("(document.getElementById('forceShare').value = 0, document.getElementById('forceShare').oninput())")
    page.wait_for_function("gravel.counts().lines === 3")
    settle(page)
    picture = pixels(page)
    widths = []
    for height in (0.2, 0.4):
        x, y = np.round(projected(page, (0, 0, height))).astype(int)
        row = picture[y, x - 60 : x + 60]
        widths.append(np.count_nonzero(row[:, 2] - row[:, 0] > 30))  # dark blue
    assert widths[0] > 0 and widths[0] / widths[1] == pytest.approx(2, rel=0.25)  # two balls above, or one


def test_the_command_it_offers_names_file_frame_colour_and_camera(shown):
    page, view = shown
    page.keyboard.press("Home")
    page.wait_for_function("gravel.state.number === 0")
    page.click("#command")
    command = page.input_value("#commandText")
    assert command.startswith(f"gravel picture {view.source.path} --frame 0 --colour material --camera ")
    camera = re.search(r'--camera "([^"]+)" --size 900x600', command)[1]
    page.evaluate("gravel.fit('top')")
    page.evaluate(f"gravel.placeCamera('{camera}')")
    assert page.evaluate("gravel.cameraText()") == camera
    with page.expect_download() as download:
        page.click("#save")
    assert download.value.suggested_filename == "stack-0.png"


def test_twenty_thousand_balls_are_points_and_can_be_picked(page, tmp_path):
    """Points, not squares; a pick finds the ball in front, which the arithmetic of rays says here."""
    side = 28
    places = 0.1 * np.stack(np.unravel_index(np.arange(side**3), (side,) * 3), axis=1)
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.045), places)
    path = tmp_path / "many.vtkhdf"
    gv.Simulation(scene, dt=1e-3).run(1e-3, path, 1e-3)
    with gv.view(path, browser=False) as view:
        look(page, view.url)
        counts = page.evaluate("gravel.counts()")
        assert counts["balls"] == side**3 and counts["near"] == 0
        camera = np.array([float(x) for x in page.evaluate("gravel.cameraText()").split(",")])
        for target in places[[side**3 - 1, side**2 - 1, side - 1]]:  # corners that are turned to the camera or to a side
            x, y = projected(page, target)
            ray = (target - camera[:3]) / np.linalg.norm(target - camera[:3])
            arms = places - camera[:3]
            along = arms @ ray
            off = np.sqrt(np.maximum((arms**2).sum(axis=1) - along**2, 0))
            picked, pixel = page.evaluate(f"gravel.pick({x}, {y})"), 0.004  # m
            assert off[picked] < 0.045 + pixel and along[picked] <= along[off < 0.045 - pixel].min()
        page.evaluate("gravel.turn(10)")
        page.wait_for_timeout(50)
        assert view.server.bytes_sent < 4e6


def test_only_balls_that_are_hidden_from_every_side_are_left_out(page, stack):
    """Of a dense cube all on its outside stay; most inside go; of a thin cloud and of a few nobody goes."""
    with gv.view(stack[0], browser=False) as view:
        look(page, view.url)
        script = """async ([side, gap]) => {
            const { seen } = await import('./buried.js'), n = side ** 3, position = new Float32Array(3 * n);
            for (let k = 0; k < n; k++)
              [k % side, Math.floor(k / side) % side, Math.floor(k / side / side)].forEach((c, a) => (position[3 * k + a] = gap * c));
            return Array.from(seen(Uint32Array.from({ length: n }, (_, k) => k), position, new Float32Array(n).fill(0.5)));
        }"""
        dense = np.array(page.evaluate(script, [30, 1.0]))
        x = np.stack(np.unravel_index(dense, (30, 30, 30)), axis=1)
        border = ((x == 0) | (x == 29)).any(axis=1).sum()
        assert border == 30**3 - 28**3 and len(dense) < 0.6 * 30**3
        assert len(page.evaluate(script, [30, 3.0])) == 30**3
        assert len(page.evaluate(script, [10, 1.0])) == 10**3


def test_bodies_that_come_and_go_are_followed(page, tmp_path):
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.1), [(0, 0, 0), (1, 0, 0)])
    simulation = gv.Simulation(scene, dt=1e-3)

    def change(s):
        if s.steps == 2:
            s.remove([0])
            s.add_bodies(gv.Box((0.1, 0.1, 0.1)), [(0.5, 0, 0), (0.2, 0, 0.1)])

    path = tmp_path / "change.vtkhdf"
    simulation.run(4e-3, path, 1e-3, observers=[change])
    with gv.view(path, browser=False) as view:
        look(page, view.url + "#frame=0")
        assert page.inner_text("#facts") == "2 bodies"
        page.evaluate("gravel.go(4)")
        page.wait_for_function("gravel.state.number === 4")
        settle(page)
        assert page.inner_text("#facts") == "3 bodies"
        picture = pixels(page)
        assert (at(picture, projected(page, (0, 0, 0))) == WHITE).all()
        assert np.ptp(at(picture, projected(page, (0.2, 0, 0.1)))) > 25


def test_a_live_run_is_followed_paused_and_stepped(page):
    scene = gv.Scene()
    door = scene.add_body(gv.Box((0.2, 0.02, 0.3)), (0.2, 0, 0))
    scene.add_joint(gv.Revolute(None, door, point=(0, 0, 0), axis=(0, 1, 0)))
    simulation = gv.Simulation(scene, dt=1e-4)
    with simulation.view(browser=False) as view:
        look(page, view.url)
        assert page.evaluate("gravel.counts().joints") == 1
        page.click("#play")  # pause before it starts
        page.wait_for_function("document.getElementById('clock').innerText.includes('paused')")
        run = threading.Thread(target=lambda: simulation.run(0.05), daemon=True)
        run.start()
        page.wait_for_function("document.getElementById('clock').innerText.includes('step 1,')", timeout=60_000)
        for step in (2, 3):
            page.click("#forward")
            page.wait_for_function(f"document.getElementById('clock').innerText.includes('step {step}, paused')")
            assert simulation.steps == step
        page.click("#play")
        run.join(60)
        assert simulation.steps == 500
        view.source.finish(simulation)
        page.wait_for_function("document.getElementById('clock').innerText.includes('step 500, finished')")


def test_all_of_many_near_balls_are_drawn_also_if_few_came_first(page, tmp_path):
    """A pour begins with few balls; what the card was given room for then must not be the end of it."""
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.04), [(0, 0, 0), (0.1, 0, 0)])
    simulation = gv.Simulation(scene, dt=1e-3)
    places = 0.1 * np.stack(np.unravel_index(np.arange(300), (20, 15, 1)), axis=1) + (0, 0, 0.5)

    def pour(s):
        if s.steps == 1:
            s.add_bodies(gv.Sphere(0.04), places)

    path = tmp_path / "pour.vtkhdf"
    simulation.run(3e-3, path, 1e-3, observers=[pour])
    with gv.view(path, browser=False) as view:
        look(page, view.url)
        page.evaluate("gravel.go(3)")
        page.wait_for_function("gravel.state.number === 3")
        page.evaluate("gravel.fit('top')")
        settle(page)
        picture = pixels(page)
        missing = [place for place in places if (at(picture, projected(page, place)) == WHITE).all()]
        assert missing == []


def test_more_balls_than_a_few_are_hidden_too(page, tmp_path):
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.04), 0.1 * np.stack(np.unravel_index(np.arange(1000), (10, 10, 10)), axis=1))
    path = tmp_path / "some.vtkhdf"
    gv.Simulation(scene, dt=1e-3).run(1e-3, path, 1e-3)
    with gv.view(path, browser=False) as view:
        look(page, view.url)
        assert (pixels(page) != WHITE).any()
        choose(page, "bodies", "0.0001")
        assert (pixels(page) == WHITE).all()


def test_a_cell_that_is_open_along_an_axis_is_shown(page, tmp_path):
    scene = gv.Scene(gravity=(0, 0, 0), periodic=((0, 1), None, (0, 1)))
    scene.add_bodies(gv.Sphere(0.1), [(0.2, 0, 0.5), (0.8, 0, 0.5)])
    path = tmp_path / "cell.vtkhdf"
    gv.Simulation(scene, dt=1e-3).run(1e-3, path, 1e-3)
    with gv.view(path, browser=False) as view:
        look(page, view.url)
        assert page.inner_text("#notice") == "" and page.inner_text("#facts") == "2 bodies"


def test_contacts_across_a_periodic_border_are_not_drawn_across_the_cell():
    scene = gv.Scene(gravity=(0, 0, 0), periodic=((0, 1), None, None))
    scene.add_bodies(gv.Sphere(0.1), [(0.05, 0, 0), (0.8501, 0, 0)], velocities=[(-1, 0, 0), (1, 0, 0)])
    simulation = gv.Simulation(scene, dt=1e-3)
    simulation.step()
    (table,) = [simulation.contacts]
    assert len(table) == 1
    data = frame_of(simulation)
    ends = [contact_ends(data, ids, table.point, data["movable"] > 0) for ids in (table.body_a, table.body_b)]
    assert np.linalg.norm(ends[1] - ends[0]) < 0.25


def test_after_a_run_the_page_has_its_last_state_and_contacts(stack):
    simulation = falling()
    with simulation.view(browser=False) as view:
        simulation.run(0.05)
        assert view.source.now.step == simulation.steps == 50
        assert view.source.now.contacts[0] is not None
    assert simulation._pages == []


def test_a_page_that_was_not_listening_hears_that_the_result_is_shown(stack, tmp_path):
    import aiohttp

    simulation = falling()
    view = simulation.view(browser=False)
    view.source.finish(simulation)
    view.server.show(Recorded(stack[0]))

    async def hear():
        async with aiohttp.ClientSession() as session, session.ws_connect(under(view, "live") + "&source=0") as socket:
            return await socket.receive_json(timeout=5)

    with ThreadPoolExecutor(1) as apart:  # the driver of the browser has the loop of this thread
        assert apart.submit(lambda: asyncio.run(hear())).result() == {"reload": True}
    assert json.loads(answer(under(view, "about"))[1])["source"] == 1
    view.close()


def test_a_simulation_is_saved_as_it_is_now(tmp_path):
    simulation = falling()
    simulation.velocities[1] = (1.0, 0, 0)
    with simulation.view(browser=False) as view:
        for _ in range(50):
            simulation.step()
        view.save(tmp_path / "now.html")
        assert view.source.now.step == 50
        assert view.source.frame(0)["position"][0, 0] == simulation.positions[1, 0] > 0.01


def test_a_paused_run_goes_on_when_its_page_was_closed(page, monkeypatch):
    monkeypatch.setattr(server_module, "GRACE", 0.2)
    simulation = falling()
    with simulation.view(browser=False) as view:
        look(page, view.url)
        page.click("#play")
        page.wait_for_function("document.getElementById('clock').innerText.includes('paused')")
        run = threading.Thread(target=lambda: simulation.run(0.05), daemon=True)
        run.start()
        page.wait_for_function("document.getElementById('clock').innerText.includes('step 1,')", timeout=60_000)
        page.goto("about:blank")
        run.join(30)
        assert simulation.steps == 50


def test_the_page_works_under_its_own_policy_and_with_a_token(browser):
    """As a user's browser opens it: no looking around the policy, at an address that asks for the token."""
    simulation = falling()
    server = Server(Live(simulation), "0.0.0.0")
    window = browser.new_page(viewport={"width": 900, "height": 600})
    window.goto(f"http://127.0.0.1:{server.port}/?token={server.token}")
    for _ in range(300):
        if window.evaluate("Boolean(window.gravel && gravel.state.ready)"):
            break
        window.wait_for_timeout(100)
    window.click("#play")
    for _ in range(100):
        if simulation_paused := server.source.paused:
            break
        window.wait_for_timeout(100)
    assert simulation_paused  # by way of the socket
    window.close()
    server.close()


def falling():
    scene = gv.Scene()
    scene.add_body(gv.Plane((0, 0, 1)), fixed=True)
    scene.add_body(gv.Sphere(0.1), (0, 0, 0.1))
    return gv.Simulation(scene, dt=1e-3)


# --- who may look, and what goes wrong
def under(view, place):
    """The address of something that a view serves, with its token."""
    return view.url.replace("?", f"{place}?")


def answer(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as response:
            return response.status, response.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_other_names_of_this_machine_and_other_pages_are_refused(stack):
    with gv.view(stack[0], browser=False) as view:
        assert answer(under(view, "about"))[0] == 200
        assert answer(under(view, "about"), Host="evil.example")[0] == 403
        assert answer(under(view, "live"), Origin="http://evil.example", Host=view.url.split("/")[2])[0] == 403
        assert answer(under(view, "frame/99")) == (404, f"frame must be from -11 to 10 for {stack[0]}, not 99")
        assert answer(under(view, "..%2f..%2fserver.py"))[0] == 404
        status, words = answer(under(view, "body/0/77"))
        assert (status, words) == (404, "there is no body 77 in this frame")
        assert "script-src" not in urllib.request.urlopen(view.url).headers["Content-Security-Policy"].replace("default-src 'self'", "")


def test_an_address_that_others_reach_asks_for_its_token(stack):
    server = Server(Recorded(stack[0]), "0.0.0.0")
    place = f"http://127.0.0.1:{server.port}/"
    assert answer(place + "about")[0] == 403 and answer(place + "about?token=wrong")[0] == 403
    token = server.url.split("token=")[1]
    assert json.loads(answer(place + f"about?token={token}")[1])["title"] == "stack.vtkhdf"
    assert len(token) >= 20
    server.close()


def test_a_port_in_use_is_said(stack):
    with gv.view(stack[0], browser=False) as view, pytest.raises(OSError, match=rf"port {view.server.port} of 127.0.0.1 cannot be used"):
        gv.view(stack[0], browser=False, port=view.server.port)
    with pytest.raises(ValueError, match="port must be from 0"):
        gv.view(stack[0], browser=False, port=70000)


def test_what_is_no_result_is_refused(tmp_path, stack):
    with pytest.raises(FileNotFoundError, match="there is no result file"):
        gv.view(tmp_path / "no.vtkhdf", browser=False)
    (tmp_path / "half.vtkhdf").write_bytes(stack[0].read_bytes()[:5000])
    with pytest.raises(ValueError, match="half.vtkhdf"):
        gv.view(tmp_path / "half.vtkhdf", browser=False)


def test_without_a_browser_the_address_is_printed(stack, monkeypatch, capsys):
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    with gv.view(stack[0], browser=True) as view:
        assert f"no browser was found: open {view.url} in one" in capsys.readouterr().out


def test_in_a_notebook_the_page_is_shown_inline(stack):
    with View(Recorded(stack[0])) as view:
        assert re.fullmatch(rf'<iframe src="{re.escape(view.url)}" .*</iframe>', view._repr_html_())
        assert repr(view) == f"View('{view.url}')"


def test_the_command_line_serves_until_it_is_interrupted(stack):
    command = [sys.executable, "-m", "gravel", "view", str(stack[0]), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    url = re.search(r"viewer at (\S+) ", line)[1]
    assert answer(url)[0] == 200
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[0] == "stopped\n" and process.returncode == 0


def test_a_run_with_a_view_is_followed_and_shows_its_result_in_the_end(page, tmp_path):
    words = ["run", "pendulum", "--time", "0.3", "--view", "--quiet", "--no-picture", "-o", str(tmp_path / "p.vtkhdf")]
    # the browser that it opens is a command that does nothing; this test's page is the one that looks
    environment = {**os.environ, "BROWSER": "true", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen([sys.executable, "-m", "gravel", *words], stdout=subprocess.PIPE, text=True, env=environment)
    for line in process.stdout:
        if found := re.match(r"viewer at (\S+)", line):
            break
    look(page, found[1])
    page.wait_for_function("document.getElementById('clock').innerText.includes(' of 51')", timeout=60_000)  # frames of the file
    assert page.inner_text("#title") == "p.vtkhdf"
    leave(page)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[0]
    assert process.returncode == 0 and said.endswith("stopped\n") and "wrote" in said
