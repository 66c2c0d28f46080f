"""The site builds without warnings, names every public thing, and asks no other host for anything."""

import html
import pathlib
import re
import subprocess
import sys

import pytest

import gravel as gv

ROOT = pathlib.Path(__file__).parents[2]
HOST = re.compile(r"""(?:<script[^>]+src|<link[^>]+href|<img[^>]+src|@import\s+(?:url\()?|url\()\s*=?\s*["']?(https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(ROOT / "docs"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_public_name_is_in_the_reference(site):
    named = set()
    for page in (site / "api").glob("*.html"):
        named |= set(re.findall(r'id="gravel\.([A-Za-z_.]+)"', page.read_text(encoding="utf-8")))
    modules = {"measures": gv.measures, "env": gv.env}
    wanted = set(gv.__all__) - set(modules) | {f"{module}.{name}" for module, thing in modules.items() for name in thing.__all__}
    assert wanted - named == set()
    assert {"Simulation.step", "Simulation.positions", "Simulation.contacts", "Simulation.tolerance"} <= named  # inherited ones, too


def test_nothing_comes_from_another_host(site):
    asking = [
        f"{path.relative_to(site)}: {found[0]}"
        for path in [*site.rglob("*.html"), *site.rglob("*.css")]
        for found in HOST.finditer(path.read_text(encoding="utf-8"))
    ]
    assert asking == []


def test_equations_are_mathml(site):
    text = (site / "method.html").read_text(encoding="utf-8")
    assert text.count("<math ") > 30 and "$$" not in text and "\\frac" not in re.sub(r"<annotation.*?</annotation>", "", text)


def test_links_within_the_site_lead_somewhere(site):
    missing = set()
    for page in site.rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#?:]+)(?:[#?][^"]*)?"', page.read_text(encoding="utf-8")):
            if not (page.parent / link).exists():
                missing.add(f"{page.relative_to(site)}: {link}")
    assert missing == set()


def text_of(page):
    """A page's words, as they are read."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def test_signatures_say_what_users_may_give(site):
    pages = {page.stem: text_of(page) for page in (site / "api").glob("*.html")}
    inner = ("_NestedSequence", "_Buffer", "dtype[", "InitVar", "Alias for field")
    assert not any(part in text for text in pages.values() for part in inner)
    assert not re.search(r"\bAny\b", pages["joints"])
    for page, line in (
        ("shapes", "class Sphere(radius: ArrayLike)"),
        ("shapes", "class HeightField(heights: ArrayLike, spacing: ArrayLike, origin: ArrayLike | None = None)"),
        ("joints", "class Spherical(body_a, body_b, point=(0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0), point_b=None"),
        ("scenes", "add_bodies(shape: Shape, positions: ArrayLike"),
        ("measures", "contact_force(source: Simulation | Frame | Snapshot, body: str | int)"),
    ):
        assert line in pages[page], (page, line)


def test_members_that_are_not_for_users_are_left_out(site):
    named = set(
        re.findall(r'id="gravel\.([A-Za-z_.]+)"', "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html")))
    )
    inner = {
        "SpeedMotor.law",
        "Sphere.inner_radius",
        "GaussSeidel.iterate",
        "Simulation.know_contacts",
        "Cell.lattice",
        "ConeProblem.prepare",
    }
    assert named & inner == set()
    assert {"Mesh.from_file", "Cell.volume", "Scene.cast_rays", "ConeProblem.from_matrices", "Result.frame"} <= named


def test_what_joints_share_is_explained_once(site):
    text = text_of(site / "api" / "joints.html")
    for name in ("point", "axis_b", "collide", "break_force", "limits", "motor", "friction", "spring", "start"):
        assert re.search(rf"^{name}\b|\b{name}\n|, {name}\n", text, re.M), name


def test_formulas_of_docstrings_and_notebooks_are_mathml(site):
    for page, least in (
        ("api/measures", 5),
        ("notebooks/silo_flow", 4),
        ("notebooks/machine_in_sand", 1),
        ("notebooks/solver_convergence", 1),
    ):
        text = (site / f"{page}.html").read_text(encoding="utf-8")
        assert text.count("<math ") >= least and not re.search(r"\$[^$<\n]*\\[a-z]+[^$<\n]*\$", text), page
    assert "MassFlow" in text_of(site / "notebooks" / "silo_flow.html")  # the code stands there, too


def test_each_page_of_the_navigation_has_a_title_of_its_own(site):
    titles = re.findall(
        r'<li class="toctree-l1[^"]*"><a class="reference internal" href="[^"]+">([^<]+)</a>', (site / "index.html").read_text("utf-8")
    )
    assert len(titles) > 30 and len(set(titles)) == len(titles)
    assert [title for title in titles if "esult" in title] == ["Results and checkpoints"]
    assert titles.index("gravel from Python") < titles.index("Shapes and grains")
