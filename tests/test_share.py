"""The share of a cone problem: two halves of one problem, each with its own contacts and all bodies, exchange velocities, sums and
maxima as two processes would, and find what the whole finds."""

import threading

import numpy as np
import pytest

import gravel as gv
from gravel.engine import ALONE


def problem(contacts=slice(None), seed=0, n=24, bodies=10):
    """A random cone problem between some bodies, or some of its contacts."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(n, 3))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    body_a = rng.integers(0, bodies - 1, n)
    body_b = rng.integers(body_a + 1, bodies)
    arms, masses = rng.normal(size=(2, n, 3)), rng.uniform(0.5, 2.0, bodies)
    masses[0] = 0.0  # immovable
    spins = np.einsum("bij,bkj->bik", *[rng.normal(size=(bodies, 3, 3))] * 2) * (masses > 0)[:, None, None]
    some = [values[contacts] for values in (body_a, body_b, normal, arms[0], arms[1], rng.uniform(0, 0.8, n))]
    return gv.ConeProblem(*some, masses, spins, rng.normal(size=(bodies, 6)), bias=rng.normal(size=(n, 3))[contacts])


class Table:
    """Where the two meet: everybody lays something down, and takes what all have laid down. One works at a time."""

    def __init__(self, seats):
        self.barrier, self.turn = threading.Barrier(seats), threading.Lock()
        self.laid = [None] * seats

    def all_of(self, seat, value):
        self.laid[seat] = value
        self.turn.release()
        self.barrier.wait()
        result = list(self.laid)
        self.barrier.wait()
        self.turn.acquire()
        return result


class Seat:
    """The share of one of them."""

    alone = False

    def __init__(self, table, seat, free):
        self.table, self.seat, self.free = table, seat, free
        self.exchanges = 0

    def velocities(self, velocity):
        """All changes since the free velocities, added up: what gradient methods need, which apply all impulses anew."""
        self.exchanges += 1
        changes = self.table.all_of(self.seat, velocity - self.free)
        velocity[:] = self.free + sum(changes)

    def total(self, *numbers):
        return tuple(map(sum, zip(*self.table.all_of(self.seat, numbers))))

    def largest(self, *numbers):
        return tuple(map(max, zip(*self.table.all_of(self.seat, numbers))))


def solve_in_two(solver, friction):
    table, results = Table(2), [None, None]

    def work(seat):
        with table.turn:
            half = problem(slice(seat, None, 2)).prepare(friction)
            half.share = Seat(table, seat, half.unknowns.velocity.copy())
            outcome = solver.run(half)
            results[seat] = outcome, half.impulse_of_contacts(), half.body_velocities(), half.share.exchanges

    threads = [threading.Thread(target=work, args=(seat,)) for seat in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


@pytest.mark.parametrize("friction", ["cone", "coulomb"])
@pytest.mark.parametrize("solver", [gv.Jacobi(iterations=60), gv.APGD(iterations=60), gv.BarzilaiBorwein(iterations=60)])
def test_two_halves_find_what_the_whole_finds(solver, friction):
    whole = problem().prepare(friction)
    outcome = solver.run(whole)
    for seat, (half, impulse, velocities, exchanges) in enumerate(solve_in_two(solver, friction)):
        assert half.iterations == outcome.iterations and exchanges >= outcome.iterations
        assert half.residual == pytest.approx(outcome.residual, rel=1e-6)
        assert half.residual_rms == pytest.approx(outcome.residual_rms, rel=1e-6)
        assert np.allclose(impulse, whole.impulse_of_contacts()[seat::2], rtol=0, atol=1e-9)
        assert np.allclose(velocities, whole.body_velocities(), rtol=0, atol=1e-9)


def test_sweeps_exchange_once_a_pass_and_measure_for_all():
    class Counting:
        alone, passes = False, 0

        def velocities(self, velocity):
            self.passes += 1

        def total(self, *numbers):
            return tuple(4 * n for n in numbers)

        def largest(self, *numbers):
            return tuple(3 * n for n in numbers)

    plain, shared = problem().prepare("cone"), problem().prepare("cone")
    shared.share = Counting()
    alone, told = gv.GaussSeidel(iterations=20).run(plain), gv.GaussSeidel(iterations=20).run(shared)
    assert shared.share.passes == 20
    assert told.residual == 3 * alone.residual and told.residual_rms == pytest.approx(alone.residual_rms)
    assert np.array_equal(plain.impulse_of_contacts(), shared.impulse_of_contacts())
    assert plain.share is ALONE and ALONE.total(1.0, 2.0) == (1.0, 2.0) and ALONE.largest(3.0) == (3.0,)
