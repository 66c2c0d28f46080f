"""The cost model of many processes gives back the costs that a set of runs was made with, and the time of a run it has not seen."""

import math

import numpy as np
import pytest

from gravel.bench.cost_model import Costs, Load, Network, amid, fitted, resized, seconds_of, talk_of

TRUE = Costs(body=4e-7, contact=2e-8, shared=6e-8, message=5e-6, byte=3e-10, round=8e-6)


def by_hand(costs, load):
    return (
        costs.body * load.bodies
        + costs.contact * load.contact_work
        + costs.shared * load.shared_work
        + costs.message * load.messages
        + costs.byte * load.bytes
        + costs.round * load.iterations * math.log2(load.ranks)
    )


def some_loads(n, seed=0):
    rng = np.random.default_rng(seed)
    for k in range(n):
        iterations = float(rng.integers(1, 200))
        contacts, shared = rng.integers(1000, 500000), rng.integers(10, 5000)
        yield Load(2 ** (1 + k % 5), float(rng.integers(1000, 200000)), contacts * iterations, shared * iterations,
                   float(rng.integers(2, 4000)), float(rng.integers(10**4, 10**8)), iterations)  # fmt: skip


def test_known_costs_are_recovered_and_predict_what_was_left_out():
    *seen, unseen = some_loads(12)
    costs = fitted(seen, [by_hand(TRUE, load) for load in seen])
    np.testing.assert_allclose(costs, TRUE, rtol=1e-6)
    assert seconds_of(costs, unseen) == pytest.approx(by_hand(TRUE, unseen), rel=1e-9)


def test_runs_on_one_process_say_nothing_of_messages():
    alone = [load._replace(ranks=1, shared_work=0.0, messages=0.0, bytes=0.0) for load in some_loads(6)]
    costs = fitted(alone, [by_hand(TRUE, load) for load in alone])
    np.testing.assert_allclose(costs[:2], TRUE[:2], rtol=1e-9)
    assert costs[2:] == (0.0, 0.0, 0.0, 0.0)


def test_costs_are_never_negative():
    rng = np.random.default_rng(1)
    loads = list(some_loads(8))
    costs = fitted(loads, [by_hand(TRUE, load) * rng.uniform(0.5, 2.0) for load in loads])
    assert min(costs) >= 0.0


def test_a_network_adds_its_latency_and_bytes():
    load = Load(ranks=1024, bodies=1.0, contact_work=0.0, shared_work=0.0, messages=300.0, bytes=5e6, iterations=50.0)
    network = Network(latency=2e-6, bandwidth=1e10)
    added = 300 * 2e-6 + 5e6 / 1e10 + 2 * 50 * 10 * 2e-6  # two sums an iteration, ten rounds each
    assert seconds_of(TRUE, load, network) - seconds_of(TRUE, load) == pytest.approx(added, rel=1e-12)
    nothing = Costs(*[0.0] * 6)
    assert talk_of(nothing, load, network) == pytest.approx(added, rel=1e-12)
    assert talk_of(TRUE, load, network) == pytest.approx(seconds_of(TRUE, load, network) - 4e-7, rel=1e-12)


def test_loads_amid_many_and_of_other_sizes():
    pair = Load(ranks=2, bodies=1000.0, contact_work=5e4, shared_work=2e3, messages=60.0, bytes=1e5, iterations=50.0)
    inner = amid(pair, 100, faces=4, neighbours=8)
    assert inner == Load(100, 1000.0, 5e4, 8e3, 480.0, 4e5, 50.0)
    assert resized(inner, 4.0, dimensions=2) == Load(100, 4000.0, 2e5, 16e3, 480.0, 8e5, 50.0)
    smaller = resized(inner, 1 / 8, dimensions=3)
    assert (smaller.bodies, smaller.shared_work, smaller.bytes) == pytest.approx((125.0, 2e3, 1e5))


@pytest.mark.parametrize(
    ("loads", "seconds", "words"), [([], [], "not empty"), (list(some_loads(2)), [1.0], "2 and 1"), (list(some_loads(1)), [0.0], "seconds")]
)
def test_runs_that_cannot_be_are_refused(loads, seconds, words):
    with pytest.raises(ValueError, match=words):
        fitted(loads, seconds)
