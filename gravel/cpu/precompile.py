"""Compile ahead: the first run of a kind of scene compiles its kernels on two cores instead of one.

The step meets its kernels from the first stage to the last and compiles each when it gets there. Meanwhile a second process
compiles them from the last to the first, into the cache that both share; where they meet, the rest is already there. The
second process learns which kernels and types the step will need from a dry step: a tiny simulation takes one with kernels that
only take note of their arguments.
"""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import NamedTuple

import numba
import numpy as np
from numba.core import event

from gravel import kernel_cache
from gravel.cpu import integrate
from gravel.cpu.collide import bounds, brute, bvh, grid, narrow, sap, shape_pairs
from gravel.cpu.solve import assemble, block_problem, match, tiles
from gravel.host import impacts, tree
from gravel.host.joints import direct, gauges, laws
from gravel.host.joints import rows as joint_rows
from gravel.host.threads import SMALL, Kernel

MODULES = (
    bounds,
    grid,
    tree,
    bvh,
    sap,
    brute,
    narrow,
    shape_pairs,
    match,
    impacts,
    integrate,
    tiles,
    assemble,
    gauges,
    laws,
    joint_rows,
    direct,
)
PATIENCE = 300  # s after which a process that compiles is taken to be dead
children: list = []  # the process that compiles for this one
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=children.clear)  # a forked process has no part in those of its parent
started: dict = {}  # features that this process has dealt with: an ``BackgroundCompile``, or None where nothing is at work
# What a kernel that does nothing must answer for the stages to go on.
ANSWERS = {
    "find_pairs": lambda *arguments: _one_pair(*arguments),
    "find_all_pairs": lambda *arguments: _one_pair(*arguments),
    "sort_along_curve": 0,
    "sort_along_axis": 0,
    **{f"find_{pair_kernel.name}_contacts": 0 for pair_kernel in narrow.PAIR_KERNELS},
    "list_shape_pairs": 0,
    "gather_contacts": 0,
    "summarise": (1, 0.0),
    "solve_impacts": (0, 0),
    "leave_flying": 0.0,
    "measure": (0, False),
    "solve_rows": 0.0,
    "plan_blocks": lambda *arguments: _one_block(*arguments),
    "sweep": lambda *arguments: arguments[-1],
    "joint_residual": (0.0, 0.0),
    "look": 0.0,
    "inspect": -1,
}


def marker(features):
    """The file that tells that the kernels for these features are compiled, or None where there is no cache to share."""
    place = kernel_cache.folder()
    return None if place is None else place / f"{features}.compiled"


def features_of(engine, joints):
    """What decides which kernels an engine's step needs, in one word; ``joints``: whether there are, or will be."""
    traits, rules = engine.detector.traits, engine.rules
    pair_kernel = engine.detector.pair_kernel.name
    tables = shape_pairs.tables_of(engine.rows, engine.geometries) if pair_kernel == "any" else (False,) * len(shape_pairs.TABLES)
    words = [
        "single" if engine.real == np.float32 else "double",
        pair_kernel + "".join(str(int(used)) for used in tables),
        "balls" if traits.balls and not joints else "both" if traits.some_balls else "any",
        "rolling" if rules.rolling else "plain",
        "bouncy" if rules.bouncy else "dead",
        engine.detector.phase,
        "joints" if joints else "free",
        "midpoint" if rules.midpoint else "euler",
    ]
    return "-".join(words)


class BackgroundCompile(NamedTuple):
    """What is compiled beside this process."""

    tables: pathlib.Path  # is there when the tables of ``shape_pairs`` are ready, by far the largest kernels
    done: pathlib.Path  # is there when the kernels with threads are ready, too
    claim: pathlib.Path  # is there while a process works on them
    child: subprocess.Popen | None  # that process, if we have started it
    parent: int  # the process that did; one that was forked off it later cannot wait for its child

    def ready(self):
        at_work = self.child.poll() is None if self._is_ours() else _is_alive(self.claim)
        return self.done.exists() or not at_work

    def wait(self):
        """Until the forms without threads are ready, whoever compiles them: several processes at the same would only be in each other's
        way."""
        done = self.tables.with_suffix(".compiled")
        while not done.exists() and (self.child.poll() is None if self._is_ours() else _is_alive(self.claim)):
            time.sleep(0.05)

    def wait_for_tables(self):
        """It pays to wait for our own child: it has begun with them."""
        while self._is_ours() and self.child.poll() is None and not self.tables.exists():
            time.sleep(0.02)

    def _is_ours(self):
        return self.child is not None and self.parent == os.getpid()


def _is_alive(claim):
    """Whether a process seems to be at work."""
    try:
        return time.time() - claim.stat().st_mtime < PATIENCE
    except OSError:
        return False


def start(engine, features):
    """Start the second process unless the kernels are compiled already; returns an ``BackgroundCompile`` if one is at work, else None.

    It compiles the forms without threads, which the first step waits for, then those with: the run goes on meanwhile."""
    threads = engine.threads > 1 and engine.rows.count >= SMALL and not Kernel.forked
    if features in started:
        return started[features]
    started[features] = None
    done, threaded = marker(features), marker(features + "-threads")
    if done is None or (done.exists() and (threaded.exists() or not threads)) or os.cpu_count() < 2:
        return None
    if any(child.poll() is None for child in children):  # one at a time
        return None
    claim, child, silent = done.with_suffix(".compiling"), None, subprocess.DEVNULL
    if _claim(claim):
        try:
            child = subprocess.Popen(child_command(features, threads), stdin=silent, stdout=silent, stderr=silent)
        except OSError:
            claim.unlink(missing_ok=True)
            return None
        children[:] = [child]
    started[features] = BackgroundCompile(done.with_suffix(".tables"), threaded, claim, child, os.getpid())
    return started[features]


def child_command(features, threads):
    """The second process looks for modules where this one does, or it may find another copy of gravel in the current folder
    and fill that one's cache."""
    find = "import json, sys; sys.path[:] = json.loads(sys.argv[1])"
    script = f"{find}; from gravel.cpu import precompile; precompile.compile_backwards(*sys.argv[2:])"
    return [sys.executable, "-c", script, json.dumps(sys.path), features, *(["threads"] if threads else [])]


def _claim(claim):
    """Whether this process may start one for these kernels: one at a time, unless the last one was cut off minutes ago."""
    try:
        if not _is_alive(claim):
            claim.unlink(missing_ok=True)
        os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except OSError:
        return False
    return True


class CompileProgress(event.Listener):
    """Tells what is being compiled, and how many kernels of how many are ready."""

    def __init__(self, on_status, plan):
        self.on_status, self.plan, self.depth, self.seen = on_status, plan, 0, set()

    def on_start(self, e):
        if self.depth == 0 and "dispatcher" in e.data:
            self.seen.add(e.data["dispatcher"].py_func.__qualname__)
            self.on_status(f"compiling {e.data['dispatcher'].py_func.__name__}, {len(self.seen)}{self._of()}, for this and later runs")
        self.depth += 1

    def on_end(self, e):
        self.depth -= 1

    def _of(self):
        try:
            return f" of at most {self.plan.read_text()}"
        except OSError:  # not known yet
            return ""


def watch(on_status, features):
    """``on_status(message)`` is called for each kernel that this process compiles, until the function that is returned is called."""
    done = marker(features)
    listener = CompileProgress(on_status, done.with_suffix(".plan") if done is not None else pathlib.Path())
    event.register("numba:compile", listener)
    return lambda: event.unregister("numba:compile", listener)


class Recorder:
    """Stands in for a kernel: takes note of its arguments' types."""

    def __init__(self, name, kernel, calls):
        self.name, self.kernel, self.calls = name, kernel, calls

    def __call__(self, *arguments):
        self.calls.append((self.kernel, tuple(numba.typeof(a) for a in arguments)))
        answer = ANSWERS.get(self.name)
        return answer(*arguments) if callable(answer) else answer


def _one_pair(*arguments):
    """As if a pair had been found, so that the stages after it are run."""
    arguments[-1].count[:] = 1
    return 1


def _one_block(*arguments):
    """The plan of a problem with one block, so that its kernels are run."""
    arguments[9][:, -1] = 1  # start
    return 1, 1


def compile_backwards(features, *threads):
    """Compile what a step of a scene with these features needs: the tables, which the other process waits for, then from the last
    kernel to the first; without ``threads``, then with, where they are asked for."""
    claim = marker(features).with_suffix(".compiling")
    try:
        for word in ("", *threads):
            done = marker(f"{features}-{word}" if word else features)
            if not done.exists():
                compile_form(features, done, threaded=bool(word))
    finally:
        claim.unlink(missing_ok=True)


def compile_form(features, done, threaded):
    """The kernels of one form; ``done`` is there when all are ready."""
    calls = _dry_step(features, threaded)
    done.with_suffix(".plan").write_text(str(len(calls)))
    tables = [call for call in calls if call[0].py_func.__name__.startswith("fill_rows")]
    for kernel, types in tables:
        kernel.compile(types)
    done.with_suffix(".tables").touch()
    for kernel, types in reversed([call for call in calls if call not in tables]):
        kernel.compile(types)
    done.touch()


def compile_here(features, threads):
    """Compile in this process what a step of a scene with these features needs, with ``threads`` both forms."""
    for word in ("", "threads") if threads else ("",):
        compile_form(features, marker(f"{features}-{word}" if word else features), threaded=bool(word))


def usual_features(precision):
    """The features of scenes that users are likely to make: of balls, boxes, ellipsoids and everything else, few and many bodies, with and
    without joints, rolling friction and restitution."""
    none, every = "0" * len(shape_pairs.TABLES), "1" * len(shape_pairs.TABLES)
    balls = [f"ball{none}-balls", f"ball_mesh{none}-balls"]
    others = [f"box{none}-any", f"ellipsoid{none}-any", f"any{every}-both"]
    kinds = itertools.product(balls + others, ("plain", "rolling"), ("dead", "bouncy"), ("brute", "grid"), ("free", "joints"))
    return ["-".join((precision, *words, "midpoint")) for words in kinds if words[0] in others or words[-1] == "free"]


def _dry_step(features, threaded):
    """Kernels and argument types of a step, in its order; of scenes with joints, those of the contacts come first: a machine that
    touches nothing does not wait for them."""
    calls = []
    ANSWERS["make_room"] = 0, 0, np.array([digit == "1" for digit in features.split("-")[1][-len(shape_pairs.TABLES) :]])
    kept = [(module, dict(vars(module))) for module in (*MODULES, block_problem)]
    for module in MODULES:
        for name, value in list(vars(module).items()):
            if name.startswith("_"):  # runs once, when joints are made
                continue
            if isinstance(value, Kernel):
                setattr(module, name, Recorder(value.name, value.parallel if threaded else value.serial, calls))
            elif isinstance(value, numba.core.dispatcher.Dispatcher) and value._cache.__class__.__name__ != "NullCache":
                setattr(module, name, Recorder(name, value, calls))
    shape_pairs.TABLES = tuple(Recorder("table", table, calls) for table in shape_pairs.TABLES)
    make = block_problem.kernel
    block_problem.kernel = lambda job, balls, general, rolling, _: Recorder(job, make(job, balls, general, rolling, threaded), calls)
    try:
        simulation = _tiny(features)
        simulation.engine.warm_up = lambda *_: lambda: None
        simulation.step()
    finally:
        for module, values in kept:
            vars(module).update(values)
    calls = list(dict.fromkeys(calls))
    early = [call for call in calls if any(room in call[0].py_func.__module__ for room in (".solve.", ".impacts", ".narrow"))]
    return early + [call for call in calls if call not in early] if "joints" in features else calls


def _tiny(features):
    """A scene of two bodies with these features."""
    from gravel import Box, Capsule, Ellipsoid, GaussSeidel, Material, Mesh, Plane, Revolute, Scene, Simulation, Sphere

    precision, pair_kernel, shapes, rolling, bouncy, phase, joints, integrator = features.split("-")
    pair_kernel = pair_kernel[: -len(shape_pairs.TABLES)]
    triangle = Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)])
    still = {"ball": [], "ball_mesh": [triangle], "box": [], "ellipsoid": [], "any": [triangle]}[pair_kernel]
    moving = {"ball": Sphere(1.0), "ball_mesh": Sphere(1.0), "box": Box((1, 1, 1)), "ellipsoid": Ellipsoid((1, 1, 2))}.get(
        pair_kernel, Sphere(1.0) if shapes == "balls" else Capsule(1.0, 1.0)
    )
    material = Material(rolling_friction=float(rolling == "rolling"), restitution=float(bouncy == "bouncy"))
    scene = Scene()
    scene.add_body(Plane(), material=material, fixed=True)
    for shape in still:
        scene.add_body(shape, material=material, fixed=True)
    body = scene.add_body(moving, (0, 0, 5), material)
    if shapes == "both":
        scene.add_body(Sphere(1.0), (0, 0, 9), material)
        scene.add_body(Capsule(1.0, 1.0), (0, 0, 15), material)
    if joints == "joints":
        scene.add_joint(Revolute(None, body, (0, 0, 0), (0, 1, 0)))
    solver = GaussSeidel(iterations=1)
    return Simulation(scene, dt=1e-3, solver=solver, precision=precision, broad_phase=phase, integrator=integrator, domain=None)
