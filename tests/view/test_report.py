"""Reports: a page that needs nothing else, with the right numbers, warnings where they are due, a command that makes the run again."""

import base64
import importlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.image import imread
from test_bad_input import refuse

import gravel as gv
from gravel.cli import main
from gravel.io.vtkhdf import ResultWriter
from gravel.scenes.setup import Check
from gravel.view import findings
from gravel.view.report import PICTURE

EVIL = '<script>alert(1)</script> & "x"\'s'


class Page(HTMLParser):
    """What a page holds: its tags, images, tables and the text of elements that have an id."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.images, self.tables, self.texts, self.links = [], [], {}, {}, []
        self.open, self.table, self.title = [], None, ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, given):
        given = dict(given)
        self.tags.append(tag)
        self.links += [value for name, value in given.items() if name in ("src", "href", "srcset", "data", "action", "poster")]
        if tag == "img":
            self.images.append((given["src"], given["alt"]))
        if tag == "table":
            self.table = self.tables.setdefault(given["id"], [])
        if tag == "tr":
            self.table.append([])
        if tag in ("td", "th"):
            self.table[-1].append("")
        if tag not in ("img", "meta"):
            self.open.append((tag, given.get("id")))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag  # what is opened is closed, in order

    def handle_data(self, data):
        for tag, identity in self.open:
            if identity:
                self.texts[identity] = self.texts.get(identity, "") + data
            if tag == "title":
                self.title += data
        if self.open and self.open[-1][0] in ("td", "th"):
            self.table[-1][-1] += data


def dropped(bodies=40, iterations=300, friction=0.5):
    """Balls that fall upon a floor."""
    scene, stone = gv.Scene(), gv.Material(density=2500, friction=friction)
    scene.add_body(gv.Plane((0, 0, 1)), material=stone, fixed=True)
    k = np.arange(bodies)
    scene.add_bodies(gv.Sphere(0.05), np.stack([k % 3, k // 3 % 3, k // 9 + 0.6], 1) * 0.101, stone)
    return gv.Simulation(scene, 2e-3, gv.GaussSeidel(iterations=iterations))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(path of a result with contacts, text of its report, the page)."""
    folder, sim = tmp_path_factory.mktemp("report"), dropped()
    sim.origin = {"scene": EVIL, "bodies": 40, "seed": 3}
    sim.run(0.3, folder / "run.vtkhdf", 0.05, contacts=True)
    path = gv.report(folder / "run.vtkhdf", checks=[Check("mass < 3", True, "2 kg"), Check("rest", False, "1 m/s")])
    assert path == folder / "run.html" and not list(folder.glob("*.part"))
    text = path.read_text(encoding="utf-8")
    return folder / "run.vtkhdf", text, Page(text)


def stored(path, name):
    with h5py.File(path) as file:
        return file["gravel"][name][:]


def row(page, table, word):
    (found,) = [cells[1] for cells in page.tables[table] if cells[0] == word]
    return found


# --- the page
def test_the_page_needs_nothing_beside_itself(made):
    _, text, page = made
    assert not {"script", "link", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert page.links and all(link.startswith("data:image/png;base64,") for link in page.links)
    plain = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", text)
    assert not re.search(r"https?:|//|@import|url\(", plain.replace("</", ""))
    assert page.open == []  # all is closed


def test_images_can_be_seen(made):
    _, _, page = made
    pictures = [image for image in page.images if image[1].startswith("Picture")]
    assert [words for _, words in pictures] == [f"Picture of frame {k} at t = {t} s" for k, t in ((0, "0"), (3, "0.15"), (6, "0.3"))]
    for data, words in page.images:
        pixels = imread(io.BytesIO(base64.b64decode(data.partition(",")[2], validate=True)))
        assert pixels[..., :3].std() > 0.02, words  # not blank
        if words.startswith("Picture"):
            assert pixels.shape[:2] == PICTURE[::-1]
    assert len(page.images) > 10


def test_what_users_wrote_is_escaped(made):
    _, text, page = made
    assert "<script" not in text and page.title == f"{EVIL}: report of a run"
    assert row(page, "facts", "scene") == EVIL
    assert shlex.split(page.texts["command"])[:3] == ["gravel", "run", EVIL]


def test_tables_hold_what_the_file_holds(made):
    path, _, page = made
    residual, converged, dt = stored(path, "residual"), stored(path, "converged"), 2e-3
    assert row(page, "facts", "simulated") == "0.3 s in 150 steps, 7 frames"
    assert row(page, "facts", "time step") == "0.002 s" and row(page, "facts", "gravel") == gv.__version__
    assert row(page, "facts", "contacts at the end") == str(int(stored(path, "contacts")[-1]))
    good = int(converged.sum())
    assert row(page, "convergence", "converged") == f"{good} of 150 steps, {100 * good / 150:.1f} %"
    assert row(page, "convergence", "tolerance") == f"{0.2 * 9.81 * dt:.2g} m/s (rms {0.01 * 9.81 * dt:.2g})"
    worst, median = map(float, re.findall(r"[\d.e-]+(?= m/s)", row(page, "convergence", "residual")))
    assert worst == pytest.approx(residual.max(), rel=5e-3) and median == pytest.approx(np.median(residual), rel=5e-3)
    length, share = map(float, re.findall(r"\d[\d.e-]*(?= [m%])", row(page, "convergence", "the worst in lengths")))
    assert length == pytest.approx(residual.max() * dt, rel=5e-3) and share == pytest.approx(100 * residual.max() * dt / 0.05, rel=0.05)
    assert page.texts["sentence"].startswith("All 150 steps converged to" if good == 150 else f"{100 * good / 150:.1f} % of 150 steps")
    seconds = stored(path, "stage_seconds").astype(float)
    assert float(row(page, "facts", "wall clock of the steps").split()[0]) == pytest.approx(seconds.sum(), abs=0.06)
    assert page.tables["materials"][0] == ["property", "material 0"] and row(page, "materials", "density, kg/m³") == "2500"


def test_timings_of_stages(made):
    path, _, page = made
    with h5py.File(path) as file:
        data = file["gravel/stage_seconds"]
        seconds = dict(zip(data.attrs["columns"], data[:].astype(float).T))
    header, *rows = page.tables["stages"]
    assert header == ["stage", "seconds in all", "ms in a step", "% of the steps", "ms of the first step"]
    assert {name for name, *_ in rows} == set(seconds)
    for name, whole, mean, share, first in rows:
        assert float(whole) == pytest.approx(seconds[name].sum(), abs=6e-4)
        assert float(mean) == pytest.approx(1e3 * seconds[name][1:].mean(), abs=6e-4)
        assert float(share) == pytest.approx(100 * seconds[name][1:].sum() / sum(v[1:].sum() for v in seconds.values()), abs=0.06)
        assert float(first) == pytest.approx(1e3 * seconds[name][0], abs=6e-3)


def test_summary_is_the_report_of_the_run(tmp_path):
    sim = dropped(20, iterations=3)
    report = sim.run(0.3, tmp_path / "a.vtkhdf")
    with gv.open_result(tmp_path / "a.vtkhdf") as result:
        found = findings.summary(result)
    assert found.convergence() == report.convergence()
    assert 0 < found.unconverged == report.unconverged
    for name in ("steps", "contacts", "residual", "max_penetration", "joint_violation"):
        assert getattr(found, name) == pytest.approx(getattr(report, name)), name


# --- warnings
def warnings_of(path):
    with gv.open_result(path) as result:
        return findings.warnings(result, findings.summary(result))


def test_a_good_run_has_no_warnings(tmp_path):
    sim = dropped(9)
    sim.run(0.2, tmp_path / "a.vtkhdf")
    assert warnings_of(tmp_path / "a.vtkhdf") == []


def test_steps_that_did_not_converge_are_counted(tmp_path):
    report = dropped(20, iterations=2).run(0.3, tmp_path / "a.vtkhdf")
    (said,) = [words for words in warnings_of(tmp_path / "a.vtkhdf") if "converge" in words]
    assert said.startswith(f"{report.unconverged} of 150 steps did not converge") and report.unconverged > 0


def test_deep_penetrations_are_told(tmp_path):
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.1), [(0, 0, 0), (0.195, 0, 0)])  # 5 mm, 5 % of the radius
    gv.Simulation(scene, 1e-3).run(0.005, tmp_path / "a.vtkhdf")
    (said,) = warnings_of(tmp_path / "a.vtkhdf")
    assert "0.005 m, 5 % of the median radius, at t = 0.001 s" in said and "5 of 5 steps" in said


def test_bodies_that_are_removed_or_lost_are_told(tmp_path):
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.1), [(k, 0, 0) for k in range(6)], velocities=[(0, 0, 3000.0 * (k == 5)) for k in range(6)])
    sim = gv.Simulation(scene, 1e-2)
    sim.run(0.1, tmp_path / "a.vtkhdf", observers=[lambda s: s.remove([1, 3]) if s.steps == 4 else None])
    removed, lost = warnings_of(tmp_path / "a.vtkhdf")
    assert removed.startswith("2 of the 6 bodies") and removed.endswith(": 1, 3.")
    with gv.open_result(tmp_path / "a.vtkhdf") as result:
        assert dict(findings.facts(result))["bodies at the end"] == "4 that can move, 6 at the start"
    assert lost.startswith("1 bodies are farther than") and lost.endswith(": 5.")


def test_a_run_that_was_stopped_is_told(tmp_path):
    sim = dropped(9)
    with pytest.raises(KeyboardInterrupt):
        sim.run(0.1, tmp_path / "a.vtkhdf", observers=[lambda s: signal.raise_signal(signal.SIGINT) if s.steps == 20 else None])
    (said,) = warnings_of(tmp_path / "a.vtkhdf")
    assert "ended at 0.04 s, before the 0.1 s" in said
    sim.run(0.1, tmp_path / "a.vtkhdf")  # it goes on
    assert warnings_of(tmp_path / "a.vtkhdf") == []


def hanging(**options):
    scene = gv.Scene(gravity=(0, 0, -9.81))
    ball = scene.add_body(gv.Sphere(0.1), (0, 0, -1))
    scene.add_joint(gv.Spherical(None, ball, point=(0, 0, 0), **options))
    return gv.Simulation(scene, 1e-3)


def test_joints_that_broke_are_told_and_plotted(tmp_path):
    sim = hanging(break_force=1.0)  # far less than the ball's weight
    sim.run(0.01, tmp_path / "a.vtkhdf", 0.005)
    assert sim.joints.broken.all()
    said = [words for words in warnings_of(tmp_path / "a.vtkhdf") if "broken" in words]
    assert said == ["1 of 1 joints are broken or released at the end: 0."]
    sim = hanging()
    sim.run(0.01, tmp_path / "b.vtkhdf", 0.005)
    page = Page(gv.report(tmp_path / "b.vtkhdf", tmp_path / "b.html").read_text())
    assert "Plot: The joints with the largest reactions." in [words for _, words in page.images]
    assert page.texts["warnings"] == "None." and row(page, "facts", "joints") == "1"
    assert "command" not in page.texts  # no scene that gravel run knows
    assert "left-out" not in page.texts  # one body: distributions are not even asked for


def test_a_plot_that_is_left_out_is_told_with_its_reason(tmp_path, monkeypatch):
    module = importlib.import_module("gravel.view.report")
    monkeypatch.setattr(module, "drawn_frames", lambda *_: (_ for _ in ()).throw(RuntimeError("no pyvista <here>")))
    dropped(30).run(0.02, tmp_path / "a.vtkhdf")
    text = gv.report(tmp_path / "a.vtkhdf").read_text()
    page = Page(text)
    assert "forces: " in page.texts["left-out"] and "--contacts" in page.texts["left-out"]
    assert "No pictures: no pyvista &lt;here&gt;" in text and not [words for _, words in page.images if words.startswith("Picture")]


# --- the command line
@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


def test_a_run_leaves_a_report_whose_command_makes_it_again(call, tmp_path):
    done = call("run", "pile", "--bodies", 30, "--time", 0.1, "--every", 0.04, "--seed", 5, "--quiet", "--no-picture", "--report")
    assert done.exit_code == 0 and "report pile.html" in done.output, done.output
    words = shlex.split(Page((tmp_path / "pile.html").read_text()).texts["command"])
    assert words[:3] == ["gravel", "run", "pile"] and words[-2:] == ["-o", "pile.vtkhdf"]
    with gv.open_result("pile.vtkhdf") as result:
        before = [frame.positions for frame in result]
    again = call(*words[1:-1], "again.vtkhdf", "--quiet", "--no-picture")
    assert again.exit_code == 0, again.output
    with gv.open_result("again.vtkhdf") as result:
        assert len(result) == len(before) and all(np.array_equal(frame.positions, old) for frame, old in zip(result, before))


def test_the_command_names_all_digits_and_how_joints_are_solved(call, tmp_path):
    asked = ["--iterations", "2000000", "--tolerance", "0.00123456789", "--joints", "iterative"]
    call("run", "pendulum", "--time", 0.01, *asked, "--quiet", "--no-picture", "-o", "p.vtkhdf")
    with gv.open_result("p.vtkhdf") as result:
        words = shlex.split(findings.command(result))
    assert all(words[words.index(option) + 1] == value for option, value in zip(asked[::2], asked[1::2]))


SCRIPT = """import sys
import gravel as gv
scene = gv.Scene()
scene.add_bodies(gv.Sphere([0.1, 0.1, 0.4]), [(0, 0, 0), (1, 0, 0), (2, 0, 0)])  # <b>bold</b>
gv.Simulation(scene, 1e-3).run(0.003, "own.vtkhdf")
"""


def test_the_script_that_made_a_run_is_told_and_shown_if_it_is_as_it_was(tmp_path):
    (tmp_path / "own scene.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "own scene.py", "--radius", "0.1"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = Page(gv.report(tmp_path / "own.vtkhdf").read_text())
    assert page.texts["made-by"] == "python 'own scene.py' --radius 0.1" == row(page, "facts", "script")
    assert page.texts["script"] == SCRIPT and "b" not in page.tags
    os.utime(tmp_path / "own scene.py", (time.time() + 60,) * 2)  # changed since
    assert "script" not in Page(gv.report(tmp_path / "own.vtkhdf").read_text()).texts
    (tmp_path / "own scene.py").unlink()
    (tmp_path / "own scene.py").mkdir()
    assert "script" not in Page(gv.report(tmp_path / "own.vtkhdf").read_text()).texts


@pytest.mark.parametrize(
    "script", ["python ../secret.py", "python /etc/passwd", "python notes.txt", "python", "python -m pytest", "python 'x"]
)
def test_only_a_python_file_beside_the_result_is_shown(tmp_path, script):
    dropped(30).run(0.004, tmp_path / "a" / "a.vtkhdf") if (tmp_path / "a").mkdir() is None else None
    for name in ("secret.py", "a/notes.txt"):
        (tmp_path / name).write_text("secret")
        os.utime(tmp_path / name, (1, 1))
    with h5py.File(tmp_path / "a" / "a.vtkhdf", "r+") as file:
        about = json.loads(file["gravel"].attrs["about"])
        file["gravel"].attrs["about"] = json.dumps({**about, "script": script})
    with gv.open_result(tmp_path / "a" / "a.vtkhdf") as result:
        assert findings.script_text(result) is None


def test_checks_of_the_physics_are_in_the_page(made):
    assert made[2].tables["checks"] == [["mass < 3", "passed: 2 kg"], ["rest", "FAILED: 1 m/s"]]


def test_bad_input(call, made, tmp_path):
    data = made[0].read_bytes()
    (tmp_path / "cut.vtkhdf").write_bytes(data[: len(data) // 3])
    (tmp_path / "text.vtkhdf").write_text("nothing of ours")
    for words, said in (
        (("none.vtkhdf",), "no result file none.vtkhdf"),
        (("cut.vtkhdf",), "cut.vtkhdf"),
        (("text.vtkhdf",), "text.vtkhdf is not a result file"),
        ((made[0], "-o", "page.pdf"), "'page.pdf'"),
        ((made[0], "-o", "none/page.html"), "no folder none"),
    ):
        done = call("report", *words)
        assert done.exit_code == 1 and said in done.output and "Traceback" not in done.output, done.output
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), (0, 0, 1))
    for frames, said in ((0, "no frames"), (1, "no steps")):
        with ResultWriter(tmp_path / "e.vtkhdf", gv.Simulation(scene, 1e-3)) as writer:
            for _ in range(frames):
                writer.write_frame()
        refuse(lambda: gv.report(tmp_path / "e.vtkhdf"), "e.vtkhdf", said)
    assert not list(tmp_path.glob("*.html")) and not list(tmp_path.glob("*.part"))
    (tmp_path / "pile.html").mkdir()
    done = call("run", "pile", "--bodies", 30, "--report", "--quiet")
    assert done.exit_code == 1 and "pile.html is a folder" in done.output and not (tmp_path / "pile.vtkhdf").exists()
