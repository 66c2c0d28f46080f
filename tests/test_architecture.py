"""Imports point one way; the examples run; README's Python runs."""

import ast
import pathlib
import re
import runpy

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PLAIN = {"checks", "shapes", "geometry", "materials", "motion", "rotations", "state"}
ALLOWED = {
    "checks": set(),
    "rotations": set(),
    "state": set(),
    "shapes": {"checks"},
    "geometry": set(),
    "polyhedra": {"checks", "shapes", "geometry", "rotations"},
    "decompose": set(),
    "surfaces": {"checks", "shapes", "geometry", "polyhedra", "rotations"},
    "compounds": {"checks", "shapes", "geometry", "decompose", "polyhedra", "surfaces", "rotations"},
    "materials": {"checks"},
    "motion": {"checks", "rotations"},
    "drives": {"checks"},
    "joints": {"checks", "drives"},
    "anchoring": {"joints", "rotations", "state"},
    "mechanism": {"anchoring", "checks", "drives", "joints", "rotations", "state", "cpu"},
    "queries": {"checks", "geometry", "rotations", "shapes", "state", "cpu"},
    "scene": PLAIN | {"queries", "mechanism"},
    "cpu": {"shapes", "geometry", "joints", "rotations", "state", "cpu"},
    "solvers": {"checks", "cpu"},
    "problem": {"checks", "cpu"},
    "contacts": PLAIN | {"scene", "cpu"},
    "batches": {"checks", "shapes", "geometry", "state", "scene", "contacts", "cpu"},
    "simulation": PLAIN | {"queries", "joints", "mechanism", "scene", "cpu", "solvers", "contacts", "run", "io"},
    "run": {"checks", "io"},
    "io": PLAIN | {"polyhedra", "surfaces", "compounds", "drives", "joints", "scene", "cpu", "problem", "solvers", "simulation", "io"},
}


def imports_of(path):
    """Rooms of gravel that a file imports at its top level."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "gravel":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]


def test_arrows_point_one_way():
    wrong = []
    for path in (ROOT / "gravel").rglob("*.py"):
        room = path.relative_to(ROOT / "gravel").parts[0].removesuffix(".py")
        if room in ALLOWED and path.name != "ahead.py":  # compiles what a small simulation needs, so it makes one
            wrong += [f"{path.name} imports gravel.{name}" for name in imports_of(path) if name not in ALLOWED[room]]
    assert wrong == []


@pytest.mark.parametrize("example", sorted(p.name for p in (ROOT / "examples").glob("*.py")))
def test_example_runs(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / example))


def test_documents_name_files_that_exist():
    missing = []
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            if not (document.parent / link).exists():
                missing.append(f"{document.name}: {link}")
    assert missing == []


def test_readme_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    names = {}
    exec(code.replace("until=1.0", "until=0.05").replace("progress=True", "progress=False"), names)
    assert names["sim"].time == pytest.approx(0.05)
