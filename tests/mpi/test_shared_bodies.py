"""The share of a cone problem: two halves of one problem, each with its own contacts and all bodies, exchange velocities, sums and
maxima as two processes would, and find what the whole finds."""

import threading

import numpy as np
import pytest

import gravel as gv
from gravel.engine import NO_SYNC


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

    single_process = False

    def __init__(self, table, seat, parts):
        self.table, self.seat, self.parts = table, seat, np.repeat(np.append(parts, 1), 8)
        self.exchanges = 0

    def snapshot(self, velocity):
        self.base = velocity.copy()

    def allreduce_increments(self, velocity, split=False):
        self.exchanges += 1
        changes = self.table.all_of(self.seat, (velocity - self.base) / (self.parts if split else 1))
        velocity[:] = self.base + sum(changes)

    def broadcast_joint_bodies(self, velocity):
        pass  # no joints here

    def total(self, *numbers):
        return tuple(map(sum, zip(*self.table.all_of(self.seat, numbers))))

    def largest(self, *numbers):
        return tuple(map(max, zip(*self.table.all_of(self.seat, numbers))))

    def total_and_largest(self, total, largest):
        return self.total(total)[0], self.largest(largest)[0]


def parts_of_bodies(bodies=10):
    """How many of the two halves act on each body."""
    halves = [problem(slice(seat, None, 2)) for seat in range(2)]
    return sum(np.isin(np.arange(bodies), np.concatenate([half.body_a, half.body_b])).astype(int) for half in halves)


def solve_in_two(solver, friction):
    table, results, parts = Table(2), [None, None], parts_of_bodies()

    def work(seat):
        with table.turn:
            half = problem(slice(seat, None, 2)).prepare(friction)
            half.sync = Seat(table, seat, parts)
            half.split(np.arange(len(parts)), parts)
            outcome = solver.run(half)
            results[seat] = outcome, half.impulse_of_contacts(), half.body_velocities(), half.sync.exchanges

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
        single_process, passes = False, 0

        def snapshot(self, velocity):
            pass

        def allreduce_increments(self, velocity, split=False):
            self.passes += split

        def broadcast_joint_bodies(self, velocity):
            pass

        def total(self, *numbers):
            return tuple(4 * n for n in numbers)

        def largest(self, *numbers):
            return tuple(3 * n for n in numbers)

        def total_and_largest(self, total, largest):
            return 4 * total, 3 * largest

    plain, shared = problem().prepare("cone"), problem().prepare("cone")
    shared.sync = Counting()
    alone, told = gv.GaussSeidel(iterations=20).run(plain), gv.GaussSeidel(iterations=20).run(shared)
    assert shared.sync.passes == 20
    assert told.residual == 3 * alone.residual and told.residual_rms == pytest.approx(alone.residual_rms)
    assert np.array_equal(plain.impulse_of_contacts(), shared.impulse_of_contacts())
    assert plain.sync is NO_SYNC and NO_SYNC.total(1.0, 2.0) == (1.0, 2.0) and NO_SYNC.largest(3.0) == (3.0,)


@pytest.mark.parametrize("friction", ["cone", "coulomb"])
def test_sweeps_of_two_halves_converge_with_bodies_split_between_them(friction):
    """The solution is the whole's, and at every moment the velocities are those that the impulses of both make: v = v_free + M^-1 D p."""
    exact = problem().prepare(friction)
    gv.GaussSeidel(iterations=3000, tolerance=1e-12).run(exact)
    for sweeps in (3, 3000):
        (first, impulse_1, velocities, _), (second, impulse_2, same, _) = solve_in_two(gv.GaussSeidel(sweeps, tolerance=1e-9), friction)
        impulses = np.empty((24, 3))
        impulses[0::2], impulses[1::2] = impulse_1, impulse_2
        assert first.residual == second.residual and np.array_equal(velocities, same)
        assert np.allclose(velocities, velocities_of(problem(), impulses), rtol=0, atol=1e-12)
    assert first.residual <= 1e-9 and first.iterations < 3000
    assert np.allclose(velocities, exact.body_velocities(), rtol=0, atol=1e-7)


def velocities_of(given, impulses):
    """v_free + M^-1 D p, body by body."""
    velocities = np.array(given.velocity, float)
    for a, b, arm_a, arm_b, p in zip(given.body_a, given.body_b, given.arm_a, given.arm_b, impulses):
        for body, arm, sign in ((a, arm_a, -1), (b, arm_b, 1)):
            velocities[body, :3] += sign * given.inverse_mass[body] * p
            velocities[body, 3:] += sign * given.inverse_inertia[body] @ np.cross(arm, p)
    return velocities
