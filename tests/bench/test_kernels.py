"""The model of the GPU engine's time counts what a person counts; ``bench kernels`` and benches on another device run. No timings."""

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from gravel import bench
from gravel.bench import kernel_model as model
from gravel.bench import kernels, step
from gravel.bench.kernel_model import Gpu, Load, Work
from gravel.bench.settled import settled_tile, tiled_scene
from gravel.cli import main
from gravel.gpu.solve.colours import AT_ONCE
from gravel.gpu.structs import Rows
from gravel.simulation import Simulation
from gravel.solvers import GaussSeidel

LOAD = Load(bodies=1e6, contacts=2.6e6, pairs=3e6, around=40, colours=12, rounds=24, looks=8.0)


@pytest.mark.parametrize(
    ("balls", "rolling", "contact", "bodies"),
    [
        # a, b: 8; normal, bias: 24; friction, mass: 16; arms and inertias: 16; impulse and the last, read and written: 48
        (True, False, 8 + 24 + 16 + 16 + 48, 128),
        # and two arms of rolling: 8; two torque impulses, read and written: 48
        (True, True, 8 + 24 + 16 + 16 + 48 + 8 + 48, 128),
        # two arms: 24, four responses: 16; a row of inertia of each body
        (False, False, 8 + 24 + 16 + 40 + 48, 192),
    ],
)
def test_bytes_of_a_contact_are_those_counted_by_hand(balls, rolling, contact, bodies):
    assert model.sweep_of_contact(balls, rolling, 0)[:2] == (contact, bodies)


def test_a_sweep_reads_every_field_of_its_rows():
    every = {name for balls in (True, False) for name in model.sweep_reads(balls, True)[0]}
    assert every == set(Rows.vars)


def test_a_sweep_has_a_kernel_for_each_colour_and_five_more():
    work = model.sweep(LOAD, True, False, 200.0)
    assert work.launches == 17 and work.waits == 0
    assert work.streamed == 112 * 2.6e6 + 64 * 1e6  # the last sweep's velocities are read and written
    assert work.cached == 128 * 2.6e6 + 64 * 1e6 + 13 * 24 * 2**18
    assert work.operations == 200 * 2.6e6 + 24 * 1e6


def test_time_is_that_of_the_memory_or_of_the_arithmetic_and_of_the_launches():
    gpu = Gpu("made up", bandwidth=1e9, peak=1e12, cache=32e6)
    assert model.seconds_of(Work(2e9, 3e9), gpu, hits=True) == 2.0 and model.seconds_of(Work(2e9, 3e9), gpu, hits=False) == 5.0
    assert model.seconds_of(Work(2e9, 0.0, 7e12), gpu, hits=True) == 7.0
    assert model.seconds_of(Work(launches=4, waits=3), gpu, hits=True) == pytest.approx(4 * 2.5e-6 + 3 * 10e-6)
    assert model.holds(gpu, LOAD) and not model.holds(gpu, LOAD._replace(bodies=1.01e6))


def test_more_contacts_and_misses_cost_more():
    a100 = model.GPUS[1]
    for stage in (model.detection, model.around_the_sweeps, lambda load: model.jacobi(load, 100.0)):
        hits, misses = (model.seconds_of(stage(LOAD), a100, kind) for kind in (True, False))
        double = model.seconds_of(stage(LOAD._replace(contacts=2 * LOAD.contacts)), a100, True)
        assert 0 < hits < misses and hits < double < 2 * hits


def test_bodies_around_are_those_counted_one_by_one():
    places = np.random.default_rng(1).uniform(0, 4, (300, 3))
    cells = np.floor(places / 0.7)
    near = np.abs(cells[:, None] - cells).max(axis=2) <= 1
    assert kernels.bodies_around(places, 0.7) == pytest.approx(near.sum(axis=1).mean(), rel=1e-12)


def test_the_papers_tables_are_named_and_the_main_line_comes_last():
    measured = {
        "bodies in 27 cells": 40.0,
        "colours": 12,
        "rounds of colouring": 24,
        "looks at a contact in them": 8.0,
        "pairs per contact": 1.1,
    }
    names = ("sweep[balls]", "apply[balls]", "gradient[balls]")
    operations = {f"solve.blocks.{name}": 200 for name in names} | {f"solve.cones.{name}": 100 for name in ("projected_step", "measure")}
    rows = list(kernels.predictions(model, measured, operations))
    assert all(next(iter(row)).startswith("MODEL") for row in rows)
    told = [row for row in rows if "paper 000, Table 3, measured, step" in row]
    assert [row["contacts"] for row in told] == [361440, 1765772, 3548594]
    last = rows[-1]
    load = LOAD._replace(pairs=1.1 * 2.6e6)
    stages = model.stages_of(load, model.sweep(load, True, False, 200), 50)
    assert last["ms a step, all in cache"] == pytest.approx(
        sum(1e3 * model.seconds_of(work, model.GPUS[1], True) for work in stages.values())
    )
    assert last["ms a step, all in cache"] < last["none"]


def test_what_the_model_takes_from_the_engine():
    """A colour holds no body twice: there are as many as a body has contacts, and each contact avoids those of two bodies."""
    row, tile = kernels.settled_counts(150, 250), settled_tile(150, 250)
    simulation = Simulation(tiled_scene(tile, 1, 1), 1 / 500, GaussSeidel(iterations=2, tolerance=0.0))
    for _ in range(2):
        simulation.step()
    table, grains = simulation.contacts, np.flatnonzero(simulation.movable)
    ends = np.concatenate([table.body_a, table.body_b])
    most = np.bincount(ends[np.isin(ends, grains)]).max()
    assert most > 3 and most <= row["colours"] <= 2 * most - 1
    assert row["rounds of colouring"] % AT_ONCE == 0 and row["rounds of colouring"] >= row["colours"]
    assert AT_ONCE <= row["looks at a contact in them"] < row["rounds of colouring"]  # all in the first, ever fewer later
    assert row["contacts per body"] == pytest.approx(len(table) / 150, rel=0.02)
    assert row["pairs per contact"] >= 1.0 and 1 <= row["bodies in 27 cells"] <= 150


@pytest.mark.slow
def test_kernels_in_json():
    result = CliRunner().invoke(main, ["bench", "kernels", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.output)["kernels"]
    assert "MODEL, main line" in rows[-1]
    sweep = next(row for row in rows if row.get("kernel") == "solve.blocks.sweep[balls]")
    assert sweep["spilled"] == sweep["local bytes"] == 0 and 16 <= sweep["registers"] <= 128


def test_a_bench_runs_on_another_device():
    result = CliRunner().invoke(main, ["bench", "collide", "--quick", "--device", "warp:cpu", "--json"])
    assert result.exit_code == 0, result.output
    results = json.loads(result.output)
    assert results["device"].startswith("warp:cpu")
    on_cpu = CliRunner().invoke(main, ["bench", "collide", "--quick", "--json"])
    count = lambda said: [row["contacts"] for row in said["collide"]]  # noqa: E731
    assert count(results) == count(json.loads(on_cpu.output))


def test_steps_are_measured_on_another_device():
    assert next(step.run(True, 1, device="warp:cpu"))["contacts"] == 10


@pytest.mark.slow
def test_bench_step_runs_on_another_device():
    result = CliRunner().invoke(main, ["bench", "step", "--quick", "--device", "warp:cpu", "--json"])
    assert result.exit_code == 0, result.output
    assert [row["ms per step"] > 0 for row in json.loads(result.output)["step"]] == [True] * 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("solver", "--device", "warp:cpu"), "benchmark 'solver' takes no --device but cpu; on warp:cpu there are collide,"),
        (("collide", "--device", "cuda:7"), "device 'cuda:7' is not there"),
        (("collide", "--device", "gpu"), "device"),
    ],
)
def test_devices_that_cannot_be_are_refused(words, said):
    result = CliRunner().invoke(main, ["bench", *words, "--quick"])
    assert result.exit_code == 1 and said in result.output


def test_every_bench_that_is_said_to_take_a_device_takes_it():
    import importlib
    import inspect

    for name in bench.NAMES:
        run = importlib.import_module(f"gravel.bench.{name.replace('-', '_')}").run
        assert ("device" in inspect.signature(run).parameters) == (name in bench.ON_DEVICES), name


def test_without_warp_one_line_says_what_to_install():
    """In a process of its own: here Warp is loaded."""
    script = "import sys; sys.modules['warp'] = None; from gravel.cli import main; main()"
    for words in (("kernels",), ("collide", "--device", "cuda")):
        done = subprocess.run([sys.executable, "-c", script, "bench", *words, "--quick"], capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.startswith("Error: ") and len(done.stderr.splitlines()) == 1
        assert "needs Warp: pip install 'gravel[gpu]'" in done.stderr
