"""The site builds without warnings, names every public thing, and asks no other host for anything."""

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
