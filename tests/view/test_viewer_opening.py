"""What the viewer shows first, and of how many bodies: the frame, the colour, the camera, icons, states of live runs, and which of many."""

import pathlib
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
from browser import look, pixels, settle

import gravel as gv
from gravel.io.vtkhdf import read_frame
from gravel.view.viewer import server
from gravel.view.viewer.opening import lively_frame
from gravel.view.viewer.sources import Live, Recorded
from gravel.view.viewer.thinning import choose

CLOCK = "document.getElementById('clock').innerText"


def grid(side, gap=0.1):
    return gap * np.stack(np.unravel_index(np.arange(side**3), (side, side, side)), axis=1)


# --- the frame
def test_a_flow_after_a_fall_is_what_the_run_is_about():
    steps = 0.01 * np.arange(1, 101)
    energies = np.where(steps < 0.105, 1000.0 * steps, 3.0)  # ten steps of fall, then a flow with 3 % of its energy
    frames = np.arange(0, 1.001, 0.05)
    assert frames[lively_frame(frames, steps, energies)] == pytest.approx(0.55)  # the middle of 0.05 to 1 s, of which all is lively


def test_a_run_that_comes_to_rest_is_opened_before_it_does():
    steps = 0.01 * np.arange(1, 101)
    energies = np.exp(-20 * steps)  # below a hundredth of the value at 0.05 s, the first frame with a step, after 0.28 s
    frames = np.arange(0, 1.001, 0.05)
    assert 0.05 <= frames[lively_frame(frames, steps, energies)] <= 0.28


def test_one_body_that_is_shot_away_does_not_choose_the_frame():
    steps, frames = np.arange(1, 101.0), np.arange(0, 101.0, 5)
    energies = np.where(steps < 50, 1.0, 0.0)
    energies[89] = 1e6  # in one frame, at 90 s
    assert frames[lively_frame(frames, steps, energies)] < 50


def test_where_nothing_moves_the_last_frame_is_opened():
    assert lively_frame(np.arange(5.0), np.arange(1, 5.0), np.zeros(4)) == 4
    assert lively_frame(np.zeros(1), np.zeros(0), np.zeros(0)) == 0


def test_only_one_frame_in_which_something_moves_is_found():
    assert lively_frame(np.arange(5.0), np.arange(1, 5.0), np.array([0.0, 7.0, 0.0, 0.0])) == 2


@pytest.fixture(scope="module")
def fall(tmp_path_factory):
    """The result of 64 balls that fall for 0.2 s."""
    path = tmp_path_factory.mktemp("fall") / "fall.vtkhdf"
    scene = gv.Scene()
    scene.add_body(gv.Plane((0, 0, 1)), fixed=True)
    scene.add_bodies(gv.Sphere(0.04), grid(4) + (0, 0, 0.05))
    gv.Simulation(scene, dt=1e-3).run(0.2, path, 0.01)
    return path


def test_the_page_opens_there_with_all_bodies_in_view_by_speed(page, fall):
    with gv.open_result(fall) as result:
        energies = [gv.measures.kinetic_energy(frame).total for frame in result]
    with gv.view(fall, browser=False) as view:
        look(page, view.url)
        number = page.evaluate("gravel.state.number")
        assert energies[number] > 0.01 * max(energies) and page.input_value("#slider") == str(number)
        assert page.input_value("#colour") == "speed" and page.input_value("#low") == "0"
        assert_in_view(page, 64)


def assert_in_view(page, count):
    """All balls lie in the window, beside the panel and between title and time bar."""
    places = np.array([page.evaluate(f"gravel.screen({row})") for row in range(count)])
    left, top = page.evaluate("[document.getElementById('panel').offsetLeft, document.getElementById('time').offsetTop]")
    assert (places > (0, 35)).all() and (places < (left, top)).all()


def test_bodies_that_lie_apart_are_in_view_and_those_at_the_end_of_the_world_are_not(page, tmp_path):
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.04), grid(6))  # more than the few of which all count
    scene.add_body(gv.Sphere(0.04), (1.0, 0, 0))  # a diagonal of the others is 0.87 m
    scene.add_body(gv.Sphere(0.04), (40.0, 0, 0))
    path = tmp_path / "apart.vtkhdf"
    gv.Simulation(scene, dt=1e-3).run(1e-3, path, 1e-3)
    with gv.view(path, browser=False) as view:
        look(page, view.url)
        assert_in_view(page, 217)
        assert page.evaluate("gravel.box()")[1][0] == pytest.approx(1.04, abs=1e-5)


@pytest.mark.parametrize("materials", [1, 2])
def test_bodies_at_rest_have_the_colours_of_their_materials(materials, tmp_path):
    scene = gv.Scene(gravity=(0, 0, 0))
    kinds = [gv.Material(density=1000 + 100 * k, name=f"kind {k}") for k in range(materials)]
    for k, place in enumerate(grid(3)):
        scene.add_body(gv.Sphere(0.04), place, kinds[k % materials])
    path = tmp_path / "rest.vtkhdf"
    gv.Simulation(scene, dt=1e-3).run(2e-3, path, 1e-3)
    assert Recorded(path).opening()["colour"] == "material"


def test_a_scale_of_speeds_does_not_show_the_trembling_of_bodies_at_rest(page, tmp_path):
    scene = gv.Scene(gravity=(0, 0, 0))
    rng = np.random.default_rng(1)
    scene.add_bodies(gv.Sphere(0.04), grid(3), velocities=1e-6 * rng.uniform(size=(27, 3)))
    path = tmp_path / "rest.vtkhdf"
    gv.Simulation(scene, dt=1e-3).run(2e-3, path, 1e-3)
    with gv.view(path, browser=False) as view:
        look(page, view.url)
        page.select_option("#colour", "speed")
        page.wait_for_function("document.getElementById('words').innerText === 'speed, m/s'")
        assert float(page.input_value("#high")) > 1e-3


def test_a_saved_page_opens_on_its_frame_that_is_nearest(browser, fall, tmp_path):
    with gv.view(fall, browser=False) as view:
        first = view.source.opening()["first"]
        saved = view.save(tmp_path / "fall.html", slice(None, None, 4))
    window = browser.new_page(viewport={"width": 900, "height": 600})
    look(window, saved.as_uri())
    number = window.evaluate("gravel.state.number")
    assert abs(4 * number - first) <= 2 and window.input_value("#colour") == "speed"
    assert window.input_value("#slider") == str(number)
    window.close()


def test_a_frame_that_is_damaged_keeps_nobody_from_the_others(fall, monkeypatch):
    source = Recorded(fall)
    first, frame = source.opening()["first"], Recorded.frame

    def damaged(self, number):
        if number == first:
            raise ValueError("damaged")
        return frame(self, number)

    monkeypatch.setattr(Recorded, "frame", damaged)
    assert source.opening()["first"] == 0


# --- icons
def test_icons_are_drawings_that_need_no_font(page, fall):
    text = (pathlib.Path(server.__file__).parent / "page" / "index.html").read_text(encoding="utf-8")
    assert set(re.findall(r"[^\x00-\x7f]", text)) <= {"−"}  # the minus of the clip plane's sides, which every font has
    with gv.view(fall, browser=False) as view:
        look(page, view.url)
        for name in ("first", "back", "play", "forward", "fold"):
            boxes = page.evaluate(f"[...document.querySelectorAll('#{name} svg')].map((icon) => icon.getBoundingClientRect().width)")
            assert sorted(boxes)[-1] == 14 and sum(boxes) == 14, name  # of two, one is shown
        way = "getComputedStyle(document.querySelector('#play .halt')).display"
        assert page.evaluate(way) == "none"
        page.click("#play")
        assert page.evaluate(way) == "block"


def test_a_browser_that_draws_nothing_is_told_why(browser, fall):
    with gv.view(fall, browser=False) as view:
        window = browser.new_page()
        window.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
        window.goto(view.url)
        window.wait_for_function("document.getElementById('notice').innerText.includes('WebGL 2')")
        window.close()


def test_on_a_telephone_the_panel_is_folded_and_the_time_bar_fits(browser, fall):
    with gv.view(fall, browser=False) as view:
        window = browser.new_page(viewport={"width": 400, "height": 700}, bypass_csp=True)
        look(window, view.url)
        assert not window.is_visible("#controls")
        assert window.evaluate("document.documentElement.scrollWidth") == 400
        ends = window.evaluate("[...document.getElementById('time').children].map((one) => one.getBoundingClientRect().right)")
        assert max(ends) <= 400
        assert window.evaluate("document.getElementById('clock').scrollWidth <= document.getElementById('clock').clientWidth")
        window.close()


# --- live runs
def test_the_slider_of_a_live_run_moves_and_looks_back(page):
    scene = gv.Scene()
    ball = scene.add_body(gv.Sphere(0.1), (0, 0, 0))
    simulation = gv.Simulation(scene, dt=1e-3)
    with simulation.view(browser=False) as view:
        look(page, view.url)
        page.click("#play")  # pause before it starts
        page.wait_for_function(f"{CLOCK}.includes('paused')")
        run = threading.Thread(target=lambda: simulation.run(0.05), daemon=True)
        run.start()
        for step in range(1, 6):
            page.wait_for_function(f"{CLOCK}.includes('step {step},')", timeout=60_000)
            assert page.input_value("#slider") == page.evaluate("document.getElementById('slider').max") == str(step)
            page.click("#forward")
        page.wait_for_function(f"{CLOCK}.includes('step 6,')")
        page.evaluate("(document.getElementById('slider').value = 2, document.getElementById('slider').oninput())")
        page.wait_for_function(f"{CLOCK}.includes('step 2, earlier')")
        page.evaluate("gravel.select(0)")
        page.wait_for_selector("#picked td")
        fallen = 9.81 * 1e-6 * sum((k - 0.5) for k in (1, 2))  # m, of a step's mean speed
        assert f"{-fallen:.2e}"[:5] in page.inner_text("#pickedText") and f"{ball}, sphere" in page.inner_text("#pickedText")
        page.click("#back")
        page.wait_for_function(f"{CLOCK}.includes('step 1, earlier')")
        view.source.single()  # the run goes on, the page stays where it is
        page.wait_for_function("gravel.states() === 8")
        assert "step 1, earlier" in page.inner_text("#clock")
        page.click("#play")
        page.wait_for_function(f"!{CLOCK}.includes('earlier')")
        run.join(60)
        assert simulation.steps == 50


def test_a_live_run_starts_by_speed_though_it_rests_before_the_first_step():
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.04), grid(3))
    assert Live(gv.Simulation(scene, dt=1e-3)).opening()["colour"] == "speed"


# --- many bodies
@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """1000 balls, of which ten go in between, one that is held by a joint, a large cylinder and a fixed box; with contacts."""
    path, scene = tmp_path_factory.mktemp("crowd") / "crowd.vtkhdf", gv.Scene(gravity=(0, 0, 0))
    balls = scene.add_bodies(gv.Sphere(0.0501), grid(10), velocities=np.full((1000, 3), 0.1))
    held = scene.add_body(gv.Sphere(0.05), (3, 0, 0))
    scene.add_joint(gv.Revolute(None, held, point=(3, 0, 0.2), axis=(0, 1, 0)))
    parts = [held, scene.add_body(gv.Cylinder(0.3, 0.5), (2, 0, 0)), scene.add_body(gv.Box((0.1, 0.1, 0.1)), (-1, 0, 0), fixed=True)]

    def leave(simulation):
        if simulation.steps == 2:
            simulation.remove(balls[:10])

    gv.Simulation(scene, dt=1e-4).run(4e-4, path, 1e-4, observers=[leave], contacts=True)
    return path, parts


def test_an_even_share_of_many_grains_is_shown_the_same_in_all_frames(crowd):
    path, parts = crowd
    source = Recorded(path, bodies=200)
    shown = [source.frame(number) for number in range(5)]
    assert 150 < len(shown[0]["id"]) < 250 and set(parts) <= set(shown[0]["id"])
    gone = set(shown[0]["id"]) - set(shown[-1]["id"])
    assert gone <= set(range(10)) and set(shown[-1]["id"]) == set(shown[0]["id"]) - gone
    for number, data in enumerate(shown):
        true = read_frame(path, number)
        at = np.searchsorted(true["id"], data["id"])
        for name in ("id", "position", "quaternion", "velocity", "radius", "shape", "material", "movable", "mass"):
            np.testing.assert_array_equal(data[name], true[name][at], err_msg=name)
        assert data["moving"] == np.count_nonzero(true["movable"])
        np.testing.assert_array_equal(data["id"][~data["sampled"]], parts)
    assert shown[1]["layout_key"] == shown[0]["layout_key"]  # constant arrays are not sent again


def test_which_bodies_are_shown_follows_no_pattern():
    """Of a lattice that was made row by row, every line of it along any axis keeps its share."""
    side, share = 40, 0.1
    bodies = {"id": np.arange(side**3), "radius": np.ones(side**3), "movable": np.ones(side**3)}
    chosen = np.zeros(side**3)
    chosen[choose(bodies, [], share).rows] = 1
    spread = np.sqrt(share * (1 - share) / side**2)  # of the share of a plane, if chance decides
    for axis in range(3):
        planes = chosen.reshape(side, side, side).mean(axis=tuple({0, 1, 2} - {axis}))
        assert np.abs(planes - share).max() < 4.5 * spread


def test_the_page_says_which_share_is_shown_and_draws_it_larger(page, crowd):
    path, _ = crowd
    with gv.view(path, browser=False, bodies=200) as view:
        data = view.source.frame(0)
        look(page, view.url + "#frame=0")
        shown, moving = int((data["movable"] > 0).sum()), 1002
        share = 200 / 1003  # of all bodies of a frame
        words = f"{shown} of 1,002 bodies shown ({100 * shown / moving:.0f} %), drawn {share ** (-1 / 3):.2f} times as large"
        assert page.inner_text("#facts") == words
        ball = int(np.flatnonzero(data["sampled"])[-1])
        page.evaluate("document.getElementById('bodies').value = '1'")
        x, y, z = data["position"][ball]
        page.evaluate(f'gravel.placeCamera("{x},{y - 1},{z},{x},{y},{z}")')
        settle(page)
        row = pixels(page)[300]
        wide = np.count_nonzero((255 - row[300:600]).max(axis=1) > 25)
        per_metre = 300 / np.tan(np.radians(15)) / 1.0  # pixels, a metre away
        assert wide > 1.8 * 0.0501 * share ** (-1 / 3) * per_metre  # the true ball would be 2 * 0.0501 * per_metre = 112 wide
        page.evaluate(f"gravel.select({ball})")
        page.wait_for_selector("#picked td")
        assert "0.0501 m" in page.inner_text("#pickedText")  # what is told of it is true


def test_contacts_are_shown_between_bodies_that_are(crowd):
    from gravel.view.viewer import wire

    path, _ = crowd
    source = Recorded(path, bodies=500)
    data, (table, dt) = source.frame(1), source.contacts(1)
    message = wire.contacts_message(data, table, dt)
    head = message[4 : 4 + int.from_bytes(message[:4], "little")].decode()
    shown = np.isin(table.body_a, data["id"]) & np.isin(table.body_b, data["id"])
    assert 0 < shown.sum() < len(table) and f'"total": {shown.sum()}' in head


def test_a_live_run_of_many_is_thinned_out_like_its_result(crowd):
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.05), grid(10))
    simulation = gv.Simulation(scene, dt=1e-4)
    data = Live(simulation, bodies=100).frame(0)
    assert 60 < len(data["id"]) < 140 and data["moving"] == 1000
    np.testing.assert_array_equal(data["position"], simulation.positions[data["id"]])
    assert "share" not in Live(simulation, bodies=1000).frame(0)


def test_a_saved_page_of_many_says_so_too(browser, crowd, tmp_path):
    with gv.view(crowd[0], browser=False, bodies=200) as view:
        saved = view.save(tmp_path / "crowd.html", [0])
    window = browser.new_page()
    look(window, saved.as_uri())
    assert re.search(r"^\d+ of 1,002 bodies shown \(\d+ %\), drawn 1.71 times as large$", window.inner_text("#facts"))
    window.close()


def test_the_command_line_says_which_share_is_shown(crowd, tmp_path):
    run = lambda *words: subprocess.run([sys.executable, "-m", "gravel", "view", str(crowd[0]), *words], capture_output=True, text=True)  # noqa: E731
    done = run("--bodies", "100", "--save", str(tmp_path / "page.html"), "--every", "5")
    assert done.returncode == 0 and "9.97 % of the grains are shown, drawn 2.2 times as large" in done.stdout
    wrong = run("--bodies", "0", "--save", str(tmp_path / "page.html"))
    assert wrong.returncode == 1 and "bodies must be" in wrong.stderr
