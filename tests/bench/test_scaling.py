"""The runs of ``gravel bench scaling``: what is measured is what was asked for, on one process and on two; the model's rows. No timings."""

import math

import numpy as np
import pytest

from gravel.bench import scaling
from gravel.bench.cost_model import Costs, Load, Network
from gravel.bench.scaling import Case, Jobs, Measured, gas, measure, model
from gravel.bench.settled import Tile, settled_tile
from gravel.scenes.gas import RADIUS

COSTS = Costs(body=4e-7, contact=2e-8, shared=6e-8, message=5e-6, byte=3e-10, round=0.0)  # on two processes nobody tells rounds from sums


@pytest.fixture(scope="module")
def tile():
    return settled_tile(100, 100)


def test_the_gas_fills_one_hundredth_of_its_box():
    scene, high = gas((6, 5, 4))
    balls = scene.bodies.extent[scene.bodies.status == 2, 0]
    assert len(balls) == 120
    assert (4 / 3 * math.pi * balls**3).sum() / np.prod(2 * high) == pytest.approx(0.01, rel=1e-9)
    places = scene.bodies.position[scene.bodies.status == 2]
    assert (np.abs(places) <= high - RADIUS).all()
    distances = np.linalg.norm(places[:, None] - places, axis=2) + np.eye(120)
    assert distances.min() >= 2 * RADIUS


def test_two_processes_find_what_one_finds(tile, tmp_path):
    """The same contacts in the first step, each solved by one of the two; the cut goes through a pile, so bodies are shared."""
    cases = [Case("pile", (1, 1), (2, 1, 1), "gauss-seidel", 1, 1, 0), Case("gas", (6, 5, 4), (2, 1, 1), "gauss-seidel", 1, 1, 0)]
    jobs = Jobs(tmp_path, tile)
    (_, piled), (_, flying) = jobs.run(cases)
    alone = measure(cases[0]._replace(grid=(1, 1, 1)), tile)
    assert piled.spheres == alone.spheres == alone.load.bodies == 100 and flying.spheres == 120
    assert alone.load.shared_work == alone.load.messages == alone.load.bytes == alone.copies == 0
    assert piled.load.ranks == 2 and 50 <= piled.load.bodies < 70 and 60 <= flying.load.bodies < 90
    assert 2 * piled.load.contact_work == alone.load.contact_work > 0
    assert piled.load.iterations == alone.load.iterations == scaling.SWEEPS
    assert piled.load.shared_work % scaling.SWEEPS == 0 and 0 < piled.load.shared_work / scaling.SWEEPS <= piled.copies + 100
    assert piled.load.messages > scaling.SWEEPS  # one an iteration to the neighbour
    assert piled.load.bytes >= 32 * piled.load.shared_work / 2  # 8 numbers of 4 bytes of each shared body that one acts on
    assert flying.copies > 0  # bodies at the border, at the very start
    assert jobs.runs == [(cases[0], piled), (cases[1], flying)]


@pytest.mark.slow
def test_twins_know_nothing_of_each_other(tile, tmp_path):
    case = Case("pile", (1, 1), (1, 1, 1), "gauss-seidel", 1, 1, 0, twins=2)
    ((_, twin),) = Jobs(tmp_path, tile).run([case])
    assert twin[1:] == measure(case._replace(twins=1), tile)[1:]  # all but the time


def test_a_job_that_fails_says_why(tmp_path):
    jobs = Jobs(tmp_path, Tile(np.zeros((0, 3)), np.zeros(0), 1.0))
    with pytest.raises(RuntimeError, match="job of 1 processes failed(.|\n)*no-such-solver"):
        jobs.run([Case("gas", (2, 2, 2), (1, 1, 1), "no-such-solver", 1, 1, 0)])


def made_up_runs(n=6):
    rng = np.random.default_rng(3)
    for k in range(n):
        kind, grid = ("gas", "pile")[k % 2], ((1, 1, 1), (2, 1, 1))[k // 2 % 2]
        ranks, bodies, iterations = int(np.prod(grid)), float(rng.integers(1000, 90000)), float(rng.integers(2, 80))
        talks = 0.0 if ranks == 1 else 1.0
        contacts, shared, messages, bytes_ = rng.uniform(1e3, 1e5), rng.uniform(10, 900), rng.uniform(4, 300), rng.uniform(1e4, 1e7)
        load = Load(ranks, bodies, contacts * iterations, talks * shared * iterations, talks * messages, talks * bytes_, iterations)
        seconds = COSTS.body * load.bodies + COSTS.contact * load.contact_work + COSTS.shared * load.shared_work
        seconds += COSTS.message * load.messages + COSTS.byte * load.bytes
        yield Case(kind, (1, 1, 1), grid, "gauss-seidel", 1, 1, 0, twins=3 - ranks), Measured(seconds, int(bodies * ranks), load, 0.0, 1.0)


def test_the_model_is_checked_on_the_run_that_it_has_not_seen(monkeypatch):
    monkeypatch.setattr(scaling, "available_cores", lambda: 2)
    runs = list(made_up_runs(16))
    check = runs[-1]
    others = [(case._replace(solver="ffd"), found._replace(seconds=1.0)) for case, found in runs[:3]]  # no part of the fit
    others += [(case._replace(grid=(4, 1, 1)), found._replace(seconds=1.0)) for case, found in runs[:3]]  # nor what has no core
    others += [(case._replace(twins=1), found._replace(seconds=1.0)) for case, found in runs[:2]]  # nor what has all memory for itself
    rows = list(model(runs + others, check, Network(2e-6, 1e9)))
    assert rows[0]["model, fitted to runs"] == 15
    assert rows[0]["ns a contact and iteration"] == pytest.approx(20.0, rel=1e-6)
    assert rows[1]["measured, ms a step"] == 1e3 * check[1].seconds
    assert rows[1]["ratio"] == pytest.approx(1.0, abs=1e-6)
    weak = [row for row in rows if "PREDICTION, weak, pile" in row]
    assert [row["processes"] for row in weak] == [10**2, 10**3, 10**4, 10**5]
    pair = max((m.load for c, m in runs[:-1] if c.kind == "pile" and c.grid == (2, 1, 1)), key=lambda load: load.bodies)
    here = COSTS.body * pair.bodies + COSTS.contact * pair.contact_work
    here += 4 * COSTS.shared * pair.shared_work + 8 * COSTS.message * pair.messages + 4 * COSTS.byte * pair.bytes
    wire = (8 * pair.messages + 2 * pair.iterations * math.log2(1000)) * 2e-6 + 4 * pair.bytes / 1e9
    assert weak[1]["ms a step"] == pytest.approx(1e3 * (here + wire), rel=1e-5)
    assert weak[1]["GB of ids a process"] == pytest.approx(8 * 1000 * pair.bodies / 1e9)
    strong = [row for row in rows if "PREDICTION, strong, gas" in row]
    assert [row["PREDICTION, strong, gas"] for row in strong] == pytest.approx([1e9] * 4)
    assert strong[0]["efficiency"] == 1.0 and all(a["ms a step"] > b["ms a step"] for a, b in zip(strong, strong[1:]))


@pytest.mark.parametrize(
    ("given", "words"), [({"steps": 0}, "steps must be"), ({"latency": -1.0}, "latency must be"), ({"bandwidth": 0.0}, "bandwidth must be")]
)
def test_what_cannot_be_measured_is_refused_at_once(given, words):
    with pytest.raises(ValueError, match=words):
        next(scaling.run(True, 1, **given))
