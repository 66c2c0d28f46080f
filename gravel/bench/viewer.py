"""The viewer with a recorded run, in a headless browser with a software renderer (bars: first frame 5 s, 20 pictures/s, 300 MB).

Needs Chromium and Playwright (``pip install playwright``). ``gravel view`` is started as a user starts it; the first frame counts from then
on. Then the camera turns for some seconds, and the run is played at a twentieth of its speed, which asks for 25 frames a second; at last
every frame has been sent once.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from gravel.bench.settled import settled_pile
from gravel.solvers import GaussSeidel

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    *("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"),
]
READY = "window.gravel && window.gravel.state.ready && window.gravel.counts().drawn > 0"
TURN = """async (seconds) => {
    const begun = performance.now(), before = gravel.counts().drawn;
    while (performance.now() - begun < 1000 * seconds) { gravel.turn(1.5); await new Promise(requestAnimationFrame); }
    return (gravel.counts().drawn - before) / seconds;
}"""
PLAY = """async () => {
    document.getElementById('speed').value = '0.05';
    await gravel.go(0);
    const begun = performance.now(), shown = new Set();
    gravel.play(true);
    while (gravel.state.playing) { shown.add(gravel.state.number); await new Promise(requestAnimationFrame); }
    return shown.size / (performance.now() - begun) * 1000;
}"""
SENT = """async () => {
    const count = Number(document.getElementById('slider').max) + 1;
    for (let k = 0; k < count; k++) await gravel.go(k);
    return performance.getEntriesByType('resource').reduce((sum, entry) => sum + entry.decodedBodySize, 0) / 1e6;
}"""


def run(quick, threads):
    for bodies, frames in ((2000, 5),) if quick else ((100_000, 100), (1_000_000, 3)):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bed.vtkhdf")
            record(path, bodies, frames, threads)
            yield {"spheres": bodies, "frames": frames, **measure(path, 2 if quick else 5)}


def record(path, bodies, frames, threads):
    """A settled bed in a box, a frame for each step."""
    simulation = settled_pile(bodies, GaussSeidel(iterations=5, tolerance=0.0), steps=2, threads=threads)
    simulation.run(simulation.time + (frames - 1) * simulation.dt, save=path, every=simulation.dt)


def measure(path, seconds):
    """What a user waits for, in a window of 1200 x 800."""
    with browser() as chromium, served(path) as (url, begun):
        page = chromium.new_page(viewport={"width": 1200, "height": 800}, bypass_csp=True)
        page.add_init_script("performance.setResourceTimingBufferSize(5000)")
        page.goto(url)
        page.wait_for_function(READY, timeout=300_000)
        first = time.perf_counter() - begun
        page.wait_for_timeout(2000)
        page.evaluate(TURN, 2)  # finds the quality that the machine can bear
        rate, quality = page.evaluate(TURN, seconds), page.evaluate("gravel.state.quality")
        playing, sent = page.evaluate(PLAY), page.evaluate(SENT)
    return {
        "first frame, s": first,
        "pictures/s while turning": rate,
        "quality then, 0 best to 6": quality,
        "frames/s while playing at 25": playing,
        "MB sent": sent,
    }


@contextlib.contextmanager
def browser():
    """A browser without a screen."""
    path = find_browser()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise RuntimeError("bench viewer needs playwright, which is not installed: pip install playwright") from None
    if path is None:
        raise RuntimeError(f"bench viewer needs a browser, one of {', '.join(BROWSERS)}, and none was found")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


def find_browser():
    """The path of a browser, or None."""
    return next((path for path in map(shutil.which, BROWSERS) if path), None)


@contextlib.contextmanager
def served(path):
    """``gravel view``, started as a user does: (its address, when that was)."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "gravel", "view", path, "--no-browser"], stdout=subprocess.PIPE, text=True)
    try:
        yield re.search(r"viewer at (\S+) ", process.stdout.readline())[1], begun
    finally:
        process.terminate()
        process.wait()
