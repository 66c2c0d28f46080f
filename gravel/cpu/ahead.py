"""Compile ahead: the first run of a kind of scene compiles its kernels on two cores instead of one.

The step meets its kernels from the first stage to the last and compiles each when it gets there. Meanwhile a second process
compiles them from the last to the first, into the cache that both share; where they meet, the rest is already there. The
second process learns which kernels and types the step will need from a dry step: a tiny simulation takes one with kernels that
only take note of their arguments.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

import numba
import numpy as np

from gravel.cpu import integrate
from gravel.cpu.collide import bounds, brute, bvh, grid, jobs, narrow, sap
from gravel.cpu.collide.detector import tile_size
from gravel.cpu.solve import assemble, block_problem, impacts, match, tiles

started = set()  # features that this process has dealt with
# What a kernel that does nothing must answer for the stages to go on.
ANSWERS = {
    "find_pairs": 0,
    "find_all_pairs": 0,
    "sort_along_curve": 0,
    "sort_along_axis": 0,
    **{f"find_{family.name}_contacts": 0 for family in narrow.FAMILIES},
    "list_jobs": 0,
    "gather_contacts": 0,
    "summarise": (0, 0.0),
    "bounce": 0,
    "plan_blocks": lambda *arguments: _one_block(*arguments),
    "commit_balls": -1,
    "commit_any": -1,
}


def marker(features):
    """The file that tells that the kernels for these features are compiled, or None where there is no cache to share."""
    try:
        cache = pathlib.Path(grid.find_pairs._cache.cache_path)
        cache.mkdir(parents=True, exist_ok=True)
    except (AttributeError, OSError):
        return None
    if not os.access(cache, os.W_OK):
        return None
    sources = sorted(pathlib.Path(__file__).parent.rglob("*.py"))
    content = "|".join(f"{p.name}:{p.stat().st_mtime_ns}" for p in sources) + numba.__version__ + features
    return cache / f"gravel-{hashlib.sha256(content.encode()).hexdigest()[:16]}.compiled"


def features_of(engine):
    """What decides which kernels an engine's step needs, in one word."""
    traits, rules, n = engine.detector.traits, engine.rules, engine.rows.count
    family = traits.family.name
    tables = jobs.tables_of(engine.rows, engine.geometries) if family == "any" else (False,) * 4
    words = [
        "single" if engine.real == np.float32 else "double",
        family + "".join(str(int(used)) for used in tables),
        "balls" if engine.balls else "any",
        "rolling" if rules.rolling else "plain",
        "bouncy" if rules.bouncy else "dead",
        engine.detector.phase,
        "tiles" if n > tile_size(n) else "tile",
    ]
    return "-".join(words)


def start(engine):
    """Start the second process unless the kernels are compiled already; True if it was started."""
    features = features_of(engine)
    if features in started:
        return False
    started.add(features)
    done = marker(features)
    if done is None or done.exists() or os.cpu_count() < 2 or not _claim(done):
        return False
    try:
        subprocess.Popen(child_command(features), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return True


def child_command(features):
    """The second process looks for modules where this one does, or it may find another copy of gravel in the current folder
    and fill that one's cache."""
    script = "import json, sys; sys.path[:] = json.loads(sys.argv[2]); from gravel.cpu import ahead; ahead.compile_backwards(sys.argv[1])"
    return [sys.executable, "-c", script, features, json.dumps(sys.path)]


def _claim(done):
    """Whether this process may start one for these kernels: one at a time, unless the last one was cut off minutes ago."""
    claim = done.with_suffix(".compiling")
    try:
        if claim.exists() and time.time() - claim.stat().st_mtime > 300:
            claim.unlink()
        os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except OSError:
        return False
    return True


class Recorder:
    """Stands in for a kernel: takes note of its arguments' types."""

    def __init__(self, kernel, calls):
        self.kernel, self.calls = kernel, calls

    def __call__(self, *arguments):
        self.calls.append((self.kernel, tuple(numba.typeof(a) for a in arguments)))
        answer = ANSWERS.get(self.kernel.py_func.__name__)
        return answer(*arguments) if callable(answer) else answer


def _one_block(*arguments):
    """The plan of a problem with one block, so that its kernels are run."""
    arguments[7][-1] = 1  # block_start
    return 1, 1


def compile_backwards(features):
    """Compile what a step of a scene with these features needs, from the last kernel to the first."""
    done = marker(features)
    for kernel, types in reversed(_dry_step(features)):
        kernel.compile(types)
    done.touch()
    done.with_suffix(".compiling").unlink(missing_ok=True)


def _dry_step(features):
    """Kernels and argument types of a step, in its order."""
    simulation = _tiny(features)
    calls = []
    ANSWERS["make_room"] = 0, 0, np.array([digit == "1" for digit in features.split("-")[1][-4:]])
    for module in (bounds, grid, bvh, sap, brute, narrow, jobs, match, impacts, integrate, tiles, assemble):
        for name, value in list(vars(module).items()):
            if isinstance(value, numba.core.dispatcher.Dispatcher) and value._cache.__class__.__name__ != "NullCache":
                setattr(module, name, Recorder(value, calls))
    jobs.TABLES = tuple(Recorder(table, calls) for table in jobs.TABLES)
    make, parallel = block_problem.kernel, features.endswith("tiles")
    block_problem.kernel = lambda job, general, rolling, threads: Recorder(make(job, general, rolling, parallel), calls)
    simulation.engine.warm_up = lambda: False
    simulation.step()
    return calls


def _tiny(features):
    """A scene of two bodies with these features."""
    from gravel import Box, Capsule, Ellipsoid, GaussSeidel, Material, Mesh, Plane, Scene, Simulation, Sphere

    precision, family, shapes, rolling, bouncy, phase, _ = features.split("-")
    family = family[:-4]
    triangle = Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)])
    still = {"ball": [], "ball_mesh": [triangle], "box": [], "ellipsoid": [], "any": [triangle]}[family]
    moving = {"ball": Sphere(1.0), "ball_mesh": Sphere(1.0), "box": Box((1, 1, 1)), "ellipsoid": Ellipsoid((1, 1, 2))}.get(
        family, Sphere(1.0) if shapes == "balls" else Capsule(1.0, 1.0)
    )
    material = Material(rolling_friction=float(rolling == "rolling"), restitution=float(bouncy == "bouncy"))
    scene = Scene()
    scene.add_body(Plane(), material=material, fixed=True)
    for shape in still:
        scene.add_body(shape, material=material, fixed=True)
    scene.add_body(moving, (0, 0, 5), material)
    return Simulation(scene, dt=1e-3, solver=GaussSeidel(iterations=1), precision=precision, broad_phase=phase)
