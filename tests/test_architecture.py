"""Imports point one way, and every room is known; engines keep to the protocol; the examples run; README's Python runs."""

import ast
import inspect
import pathlib
import re
import runpy
import subprocess
import sys

import numpy as np
import pytest

from gravel import engine as protocol
from gravel.engine import make_engine
from gravel.kernel_cache import SOURCES
from gravel.problem import ConeProblem

ROOT = pathlib.Path(__file__).parents[1]
PLAIN = {"body_names", "checks", "rotations", "state", "model", "shapes", "joints"}  # descriptions
ENGINE_ROOM = {"checks", "interrupts", "kernel_cache", "kernel_bundle", "rotations", "state", "shapes", "joints"} | {
    *("contacts", "engine", "formulas"),
}
USER = PLAIN | {
    *("errors", "contacts", "engine", "scene", "solvers", "problem", "detection", "simulation", "io", "packing", "mpi", "view"),
    *("running.run", "running.sweep", "running.sleep", "running.processes", "running.gather"),
    "running.report",
}
PARTS = {  # of a simulation, files in running/
    *("body_materials", "exclusive", "last_contacts", "machines", "pages", "population", "prescribed", "processes", "rules"),
    *("sanity_checks", "settings", "sleep", "start", "warm_up"),
}
# Who may import whom. A room is a file or folder of gravel/, or a file or folder in one, after a dot: the longest name counts. Whoever may
# import a room may import all that is in it.
ALLOWED = {
    "checks": set(),
    "body_names": set(),  # what users call bodies; files and simulations carry it
    "cautions": set(),  # warnings that point at the user's line: whoever warns asks it
    "rotations": set(),
    "state": set(),
    "contacts": set(),
    "interrupts": set(),
    "errors": set(),
    "kernel_cache": set(),
    "kernel_bundle": {"kernel_cache"},
    "printing": {"printing"},  # how things print: every room may ask it
    "printing.notebook": {"view"},  # draws what a notebook shows; whoever can be shown asks it then
    "formulas": {"formulas", "model.materials", "shapes"},
    "model": {"checks", "rotations"},
    "model.cell": {"checks", "engine"},
    "model.servo": PLAIN,
    "cad": {"checks", "cad"},  # CAD files as numbers and arrays; the one place that knows the CAD kernel
    "shapes": {"cautions", "checks", "rotations", "shapes", "cad"},  # from files
    "joints": {"checks", "errors", "model.motion", "rotations", "state", "joints"},
    "engine": {"checks", "cpu", "gpu", "host.threads"},  # the one place that knows the engines; it imports them when they are asked for
    "host": ENGINE_ROOM | {"host", "model.materials"},  # what runs on the host for any engine
    "cpu": ENGINE_ROOM | {"cpu", "host"},  # the engines are siblings: neither imports the other
    "cpu.collide": ENGINE_ROOM | {"cpu.collide", "host"},  # detection and the solver do not know each other
    "cpu.solve": (ENGINE_ROOM - {"joints"}) | {"cpu.solve", "host"},
    "gpu": ENGINE_ROOM | {"errors", "gpu", "host"},
    "mpi": PLAIN | {"engine", "errors", "running.processes", "mpi"},
    "scene": PLAIN | {"engine", "running.processes", "detection.queries", "scenefile"},  # from_file and to_file hand over to it
    "solvers": {"checks", "engine"},
    "problem": {"checks", "engine"},
    "detection": PLAIN | {"contacts", "engine", "scene"},
    "detection.queries": {"checks", "engine", "rotations", "shapes", "state"},
    # a simulation: what its step is made of comes first, each part after those that it is given
    "running": set(),
    "running.step_times": set(),
    "running.exclusive": {"errors"},
    "running.processes": {"engine", "mpi"},  # the one place that knows whether there are several
    "running.bodies": {"checks", "engine", "state"},
    "running.last_contacts": {"contacts", "engine", "errors"},
    "running.detect": {"engine"},
    "running.body_materials": {"checks", "engine", "model.materials", "state"},
    "running.prescribed": {"engine", "model.motion", "rotations", "state", "running.step_times"},
    "running.periodic": {"engine", "model.cell", "state", "running.processes", "running.step_times"},
    "running.sleep": {"checks", "engine", "state", "running.bodies"},
    "running.settings": {"checks", "engine", "solvers", "running.sleep", "running.step_times"},
    "running.sanity_checks": PLAIN | {"cautions", "errors"},
    "running.rules": PLAIN
    | {"engine", "solvers", "running.body_materials", "running.processes", "running.sanity_checks", "running.settings"},
    "running.machines": PLAIN | {"engine", "errors", "running.bodies", "running.processes", "running.step_times"},
    "running.warm_up": {"engine", "running.machines", "running.processes", "running.rules"},
    "running.population": PLAIN
    | {"engine", "running.bodies", "running.body_materials", "running.machines", "running.prescribed", "running.processes"},
    "running.start": PLAIN | {"engine", "scene", "running.population", "running.prescribed", "running.processes"},
    "running.report": {"engine", "solvers", "running.processes"},
    "running.pages": {"errors", "view"},
    "running.parts": PLAIN | {"engine", "errors", "scene", *(f"running.{part}" for part in PARTS)},
    "running.access": PLAIN
    | {"contacts", "detection.queries", "solvers", "printing.notebook"}
    | {f"running.{name}" for name in ("bodies", "gather", "parts", "prescribed", "rules", "settings", "sleep")},
    # around it
    "running.communicator": set(),
    "running.gather": {"checks", "contacts", "state"},
    "running.run": {"checks", "errors", "interrupts", "running.communicator", "io"},
    "running.sweep": {"cautions", "checks", "engine", "errors"},
    "simulation": PLAIN | {"interrupts", "contacts", "engine", "scene", "solvers", "running", "io"},
    "io": PLAIN
    | {"cad", "contacts", "errors", "engine", "scene", "problem", "solvers", "simulation", "io", "__version__"}
    | {"running.sleep", "running.communicator", "cautions"},
    "measures": {"body_names", "checks", "contacts", "interrupts", "rotations", "shapes", "state", "io", "measures"},
    "view": {"checks", "model.cell", "contacts", "errors", "interrupts", "rotations", "shapes", "state", "io", "measures", "view"}
    | {"running.run", "solvers"},  # reports tell how a run converged; plots try solvers on a problem
    "scenes": USER | {"measures", "scenes"},
    "bench": USER | {"scenes", "measures", "bench", "cpu", "gpu", "host", "cli", "view"},
    # what drives a simulation from outside: any scene, its variables by name; pictures for who watches an environment
    "control": USER | {"measures", "scenes", "scenefile", "control", "view"},
    "control.slaves": {"control", "__version__"},  # scripts that stand in co-simulation units
    "packing": PLAIN | {"cautions", "kernel_cache", "engine", "scene", "solvers", "detection", "simulation", "packing"},
    "scenefile": USER | {"measures", "scenefile", "scenes"},
    "validation": USER | {"measures", "scenes", "view", "validation", "__version__"},
    "cli": USER
    | {"kernel_bundle", "kernel_cache", "measures", "scenes", "bench", "view", "scenefile", "validation", "cli", "control", "__version__"},
    "__main__": {"cli"},
    "__init__": USER | {"measures", "scenefile"},
}
for name in ("scene", "io"):
    ALLOWED[name] = ALLOWED[name] | {"printing.notebook"}
PUBLIC = {"cpu/precompile.py"}  # compiles what a small simulation needs, so it makes one


def imports_of(path):
    """Modules of gravel that a file imports, after "gravel.", anywhere but for the eyes of type checkers only."""
    tree = ast.parse(path.read_text())
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "gravel":
            module = node.module.partition(".")[2]
            for alias in node.names:
                inner = ".".join([*filter(None, [module]), alias.name])
                yield inner if not module or is_module(inner) else module
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("gravel."))


def is_module(name):
    place = ROOT / "gravel" / name.replace(".", "/")
    return place.is_dir() or place.with_suffix(".py").exists()


def within(name, rooms):
    """The longest of the rooms that a module belongs to, or None."""
    parts = name.split(".")
    return next((room for n in range(len(parts), 0, -1) if (room := ".".join(parts[:n])) in rooms), None)


def files_by_room():
    """(the top room of each file, its name as a module without "gravel.", its path)"""
    for path in sorted((ROOT / "gravel").rglob("*.py")):
        name = path.relative_to(ROOT / "gravel")
        if name.as_posix() not in PUBLIC:
            module = ".".join(name.with_suffix("").parts)
            yield name.parts[0].removesuffix(".py"), module.removesuffix(".__init__"), path


def test_every_room_is_known():
    assert {module for _, module, _ in files_by_room() if within(module, ALLOWED) is None} == set()


def test_arrows_point_one_way():
    wrong = []
    for _, module, path in files_by_room():
        room = within(module, ALLOWED)
        allowed = ALLOWED[room] | {"printing.formatting", "printing.tables"}
        wrong += [f"{path.relative_to(ROOT)} imports gravel.{name}" for name in imports_of(path) if within(name, allowed) is None]
    assert wrong == []


def test_kernels_are_made_of_sources_that_the_cache_knows():
    """A constant or function from elsewhere could change without the kernels that were compiled from it being compiled anew."""
    harmless = {"interrupts", "kernel_cache", "kernel_bundle", "cautions", "checks", "errors"}  # nothing in them is compiled
    known, wrong = {name.removesuffix(".py") for name in SOURCES}, []
    for room, _, path in files_by_room():
        if "njit" in path.read_text() and room not in ("kernel_cache", "bench"):
            wrong += [f"{path.relative_to(ROOT)} imports gravel.{name}" for name in imports_of(path) if not within(name, known | harmless)]
            wrong += [f"{path.relative_to(ROOT)} has kernels"] if room not in known else []
    assert wrong == []


def test_nothing_but_the_engine_module_and_the_benches_knows_an_engine():
    knowing = {room for room, _, path in files_by_room() if any(within(name, {"cpu", "gpu", "host"}) for name in imports_of(path))}
    assert knowing <= {"engine", "bench", "cpu", "gpu", "host"}


def test_describing_a_scene_loads_no_engine():
    script = """
import sys
import gravel as gv
scene = gv.Scene()
scene.add_body(gv.Plane(), fixed=True)
door = scene.add_body(gv.Box((1, 1, 1)), (0, 0, 2))
scene.add_joint(gv.Revolute(None, door, point=(1, 0, 2), motor=gv.SpeedMotor(1.0)))
scene.add_bodies(gv.ConvexHull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]), [(0, 0, 5)])
engines = ("gravel.cpu", "gravel.gpu", "gravel.host")
print([name for name in sys.modules if name.split(".")[0] in ("numba", "warp") or name.startswith(engines)])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def members_of(kind):
    """Methods that a protocol asks for, with the names of their parameters."""
    methods = ((name, value) for name, value in vars(kind).items() if inspect.isfunction(value) and not name.startswith("_"))
    return {name: list(inspect.signature(value).parameters) for name, value in methods}


def assert_fulfils(thing, kind):
    for name, parameters in members_of(kind).items():
        assert list(inspect.signature(getattr(type(thing), name)).parameters) == parameters, name


@pytest.mark.parametrize("device", ["cpu", "warp:cpu"])
def test_engines_keep_to_the_protocol(device):
    assert_fulfils(make_engine(device), protocol.Engine)


def test_problems_and_shares_keep_to_their_protocols():
    one, origin = np.eye(3), [(0, 0, 0)]
    arrays = ConeProblem([0], [1], [(0, 0, 1)], origin, origin, [0.5], [0, 1], [one, one], np.zeros((2, 6)))
    for problem in (arrays, ConeProblem.from_matrices(one, np.zeros(3), [0.5])):
        assert_fulfils(problem.prepare("cone"), protocol.Problem)
    assert_fulfils(protocol.NO_SYNC, protocol.SharedBodySync)


# --- budgets: reminders that something has grown beyond one page or one reason to change
PAGE = 45  # lines of Simulation.step with its stages
LONGEST_SIMULATION = 400  # lines of its file
MANY_METHODS = 40  # of a class, beside those of one line
LARGE_CLASSES = {  # which may have more, and why
    ("cpu/engine.py", "CpuEngine"): "all stages of the engine protocol",
    ("gpu/engine.py", "GpuEngine"): "all stages of the engine protocol",
}
LONG = 60  # lines of a function, without its docstring
LONG_FUNCTIONS = {  # which may have more, and why
    ("cpu/solve/blocks.py", "tile_work"): "one pass over a block of lanes: split, it would not be vectorised as one loop",
    ("formulas/boxes.py", "box_box"): "fifteen axes in their order, with the choice among them",
    ("formulas/gjk.py", "along_edge"): "one edge of the polytope, in numbers side by side: Warp takes no tuples in tuples",
}
MANY_ARGUMENTS = 12
WIDE_FUNCTIONS = 35  # that take more: formulas of geometry (see above), constructors of the public API; their number may only fall


def code_lines(function):
    """How many lines a function has, without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return lines - (first.end_lineno - first.lineno + 1 if told else 0)


def is_one_line(method):
    """Whether a method has one statement at most beside its docstring: it hands over to somebody else."""
    told = isinstance(method.body[0], ast.Expr) and isinstance(method.body[0].value, ast.Constant)
    statements = method.body[1:] if told else method.body
    return len(statements) <= 1 and not any(isinstance(node, ast.For | ast.While | ast.If | ast.With | ast.Try) for node in statements)


def methods_by_name(tree, kind):
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind)
    return {node.name: node for node in found.body if isinstance(node, ast.FunctionDef)}


def called_on_self(method, methods):
    """The methods that one calls, as ``self.name(...)``, of these."""
    calls = (node.func for node in ast.walk(method) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
    return {f.attr for f in calls if isinstance(f.value, ast.Name) and f.value.id == "self" and f.attr in methods}


def test_a_step_stands_on_one_page():
    """``Simulation.step`` with all methods of ``Simulation`` itself that it calls; what stands elsewhere is a stage with a name."""
    methods = methods_by_name(ast.parse((ROOT / "gravel" / "simulation.py").read_text()), "Simulation")
    page, new = set(), {"step"}
    while new:
        page |= new
        new = set().union(*(called_on_self(methods[name], methods) for name in new)) - page
    lines = {name: code_lines(methods[name]) for name in page}
    assert len(lines) > 1 and sum(lines.values()) <= PAGE, lines


def test_the_first_page_to_read_is_short():
    assert len((ROOT / "gravel" / "simulation.py").read_text().splitlines()) <= LONGEST_SIMULATION


def test_classes_have_one_reason_to_change():
    """As far as the number of their methods tells."""
    large = set()
    for _, _, path in files_by_room():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
                if sum(not is_one_line(method) for method in methods) > MANY_METHODS:
                    large.add((path.relative_to(ROOT / "gravel").as_posix(), node.name))
    assert large <= set(LARGE_CLASSES)


def functions():
    for _, _, path in files_by_room():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield path.relative_to(ROOT / "gravel").as_posix(), node


def test_functions_are_short():
    long = {(path, node.name) for path, node in functions() if code_lines(node) > LONG}
    assert long == set(LONG_FUNCTIONS)


def test_functions_take_few_arguments():
    wide = []
    for path, node in functions():
        names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
        if len(names) - (names[:1] in (["self"], ["cls"])) > MANY_ARGUMENTS:
            wide.append(f"{path} {node.name}")
    assert len(wide) <= WIDE_FUNCTIONS, wide


@pytest.mark.parametrize("example", sorted(p.name for p in (ROOT / "examples").glob("*.py")))
def test_example_runs(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = ROOT / "examples" / example
    if "__main__" in path.read_text():  # its processes import it, as what was started
        subprocess.run([sys.executable, str(path)], check=True, timeout=300)
    else:
        runpy.run_path(str(path))


def test_documents_name_files_that_exist():
    missing = []
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            if not (document.parent / link).exists():
                missing.append(f"{document.name}: {link}")
    assert missing == []


def test_readme_python_runs_as_it_stands_and_the_floor_carries_the_grains(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    names = {}
    exec(code, names)
    radii = names["sim"].bodies.extent[names["grains"], 0]
    weight = 9.81 * 2500 * (4 / 3 * np.pi * radii**3).sum()
    assert len(radii) == 2000 and np.allclose(names["carried"], (0, 0, weight), atol=2e-3 * weight)
    said = [float(number) for number in re.findall(r"(\d+) N", capsys.readouterr().out)]
    told = [float(number) for number in re.findall(r"(\d+) N", text.split(code)[1].split("\n\n")[0])]  # in the sentence below it
    assert np.allclose(said, weight, rtol=2e-3) and np.allclose(told, said, rtol=1e-3)
