"""Who may ask a viewer, what it answers to nonsense, and that it lets go of its file; no browser is needed for that."""

import json
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import h5py
import pytest

import gravel as gv
from gravel.view.viewer.server import Server
from gravel.view.viewer.show import View
from gravel.view.viewer.sources import Live, Recorded


def falling(height=1.0):
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), (0, 0, height))
    return gv.Simulation(scene, dt=1e-3, threads=1)


@pytest.fixture
def result(tmp_path):
    falling().run(0.01, tmp_path / "r.vtkhdf", 2e-3)
    return tmp_path / "r.vtkhdf"


@pytest.fixture
def view(result):
    with gv.view(result, browser=False) as view:
        yield view


def answer(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as response:
            return response.status, response.read().decode(errors="replace"), response.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers


def place_of(view, name, token=True):
    address, _, query = view.url.partition("?")
    return f"{address}{name}?{query}" if token else address + name


@pytest.mark.parametrize("name", ["about", "frame/0", "", "body/0/0", "template/0"])
def test_on_this_machine_too_every_request_carries_the_token(name, view):
    assert re.search(r"\?token=[\w-]{20,}$", view.url)
    assert answer(place_of(view, name, token=False))[0] == 403
    assert answer(place_of(view, name, token=False) + "?token=guess")[0] == 403
    assert answer(place_of(view, name))[0] == 200


def test_the_control_socket_of_a_run_asks_for_the_token():
    """Who may open it may pause the run."""
    import aiohttp

    async def opened(url):
        async with aiohttp.ClientSession() as session:
            try:
                async with session.ws_connect(url, timeout=aiohttp.ClientWSTimeout(ws_close=2)):
                    return 101
            except aiohttp.WSServerHandshakeError as error:
                return error.status

    import asyncio

    server = Server(Live(falling()))
    place, query = server.url.split("?")
    try:
        assert asyncio.run(opened(f"{place}live")) == 403
        assert asyncio.run(opened(f"{place}live?{query}")) == 101
    finally:
        server.close()


@pytest.mark.parametrize("origin", ["file://", "null", "http://evil.example", "file:///home/me/page.html", "//"])
def test_pages_from_elsewhere_are_refused(origin, view):
    assert answer(place_of(view, "about"), Origin=origin)[0] == 403
    own = "http://" + view.url.split("/")[2]
    assert answer(place_of(view, "about"), Origin=own)[0] == 200


@pytest.mark.parametrize("name", ["", "about", "frame/99"])
def test_other_pages_may_not_frame_it(name, view):
    headers = answer(place_of(view, name))[2]
    assert headers["X-Frame-Options"] == "DENY" and "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"
    if not name:
        assert "default-src 'self'" in headers["Content-Security-Policy"]


def test_a_notebook_that_shows_it_may_frame_it(result):
    with View(Recorded(result)) as view:
        assert view.url.replace("&", "&amp;") in view._repr_html_()
        headers = answer(place_of(view, ""))[2]
        assert headers["X-Frame-Options"] is None and "frame-ancestors" not in headers["Content-Security-Policy"]


NONSENSE = [b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"]
NONSENSE += [b"GET /%ff%fe HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET / HTTP/1.1\r\nHost: [::\r\n\r\n", b"A" * 20_000 + b"\r\n\r\n"]


def test_requests_that_are_none_print_nothing(result):
    """In a program of its own, whose words are looked at."""
    script = f"""
import socket, gravel as gv
with gv.view({str(result)!r}, browser=False) as view:
    for data in {NONSENSE!r}:
        with socket.create_connection(("127.0.0.1", view.server.port), timeout=5) as line:
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
            while line.recv(65536):
                pass
print("done")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "done\n" and done.stderr == ""


# --- its file
def test_a_run_may_write_the_file_that_is_shown(view, result):
    assert answer(place_of(view, "frame/5"))[0] == 200
    falling(2.0).run(4e-3, result, 1e-3)
    status, words, _ = answer(place_of(view, "frame/0"))
    assert status == 404 and "has become the result of another run: load the page again" in words
    assert json.loads(answer(place_of(view, "about"))[1])["times"][-1] == pytest.approx(4e-3)
    assert answer(place_of(view, "frame/4"))[0] == 200


def test_a_file_that_was_cut_is_said_to_be(view, result):
    result.write_bytes(result.read_bytes()[:3000])
    for name in ("frame/3", "contacts/3", "about"):
        status, words, _ = answer(place_of(view, name))
        assert status == 404 and "r.vtkhdf" in words and "cut short" in words


def test_a_file_that_is_gone_is_said_to_be(view, result):
    result.unlink()
    status, words, _ = answer(place_of(view, "frame/3"))
    assert status == 404 and "there is no result file" in words


def test_a_run_onto_a_result_that_is_held_open_is_refused_in_a_sentence(result):
    with gv.open_result(result) as held:
        sim = falling()
        with pytest.raises(BlockingIOError, match=r"r\.vtkhdf is open in this very program: close the result"):
            sim.run(0.01, result, 2e-3)
        assert sim.steps == 0 and len(held) == 6
    falling().run(0.01, result, 2e-3)


def test_a_run_that_goes_on_with_a_result_that_is_held_open_is_refused_in_a_sentence(tmp_path):
    sim = falling()
    sim.run(0.01, tmp_path / "r.vtkhdf", 2e-3)
    with gv.open_result(tmp_path / "r.vtkhdf"), pytest.raises(BlockingIOError, match="is open in this very program"):
        sim.run(0.02, tmp_path / "r.vtkhdf", 2e-3)
    sim.run(0.02, tmp_path / "r.vtkhdf", 2e-3)


def test_the_file_is_closed_between_requests(view, result):
    answer(place_of(view, "frame/2"))
    with h5py.File(result, "r+"):
        pass


def test_ports_are_free_again_after_it_is_closed(result):
    with gv.view(result, browser=False) as view:
        port = view.server.port
    with socket.socket() as line:
        assert line.connect_ex(("127.0.0.1", port)) != 0
