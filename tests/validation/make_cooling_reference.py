"""Makes the reference of the cooling gas: `python tests/validation/make_cooling_reference.py`, some minutes on one core.

An event-driven simulation of hard balls in a periodic cube: straight flights from impact to impact, one impact at a time, no step and no
solver. An impact changes the velocities by

    J_n = (1 + e) (m / 2) u_n,    J_t = min(mu J_n, (2 / 7) (m / 2) |u_t|) against u_t,

with the relative velocity u of the surfaces: Newton's restitution, and Coulomb's friction, which slips all through the impact or brings the
surfaces to rest (balls of one density: I = 2/5 m R^2). Writes gravel/validation/data/cooling.json: the translational temperature
<v^2> / 3 and the rotational one I <w^2> / (3 m), over <v^2> / 3 at the start: mean and scatter of RUNS runs, and the
first run alone, which another code can follow for some impacts of each ball before it meets others.
"""

import json
import math

import numba
import numpy as np

from gravel.validation.cooling_start import FILE, FIRST, FRICTION, RADIUS, RESTITUTION, SIDE, TIMES, gas_start

RUNS, NAMES = 40, ("translation", "rotation")
HORIZON = 0.25  # of the flight through half a cell at the highest speed: so often all is foretold anew, since other images come near


@numba.njit(cache=True)
def time_of_touch(x, v, i, j, reach, side):
    """Until two balls touch, by straight flight, with the nearest image of the second; see HORIZON."""
    speed = closing = square = 0.0
    for k in range(3):
        apart, relative = x[j, k] - x[i, k], v[j, k] - v[i, k]
        apart -= side * round(apart / side)
        speed, closing, square = speed + relative * relative, closing + apart * relative, square + apart * apart
    root = closing * closing - speed * (square - reach * reach)
    if closing >= 0 or root <= 0:
        return np.inf
    return max(0.0, -(closing + math.sqrt(root)) / speed)


@numba.njit(cache=True)
def next_of(x, v, i, reach, side):
    """(time until it touches another, which one) of a ball."""
    soonest, other = np.inf, -1
    for j in range(len(x)):
        if j != i:
            t = time_of_touch(x, v, i, j, reach, side)
            if t < soonest:
                soonest, other = t, j
    return soonest, other


@numba.njit(cache=True)
def impact(x, v, w, i, j, radius, side, e, mu):
    """Changes the velocities and spins of two balls of mass one that touch."""
    n = x[j] - x[i]
    n -= side * np.round(n / side)
    n /= math.sqrt((n * n).sum())
    u = v[j] - v[i] - radius * np.cross(w[i] + w[j], n)
    approach = -(u * n).sum()
    slip = u + approach * n
    amount = math.sqrt((slip * slip).sum())
    push = 0.5 * (1 + e) * approach
    blow = push * n  # on j
    if amount > 0:
        blow -= min(mu * push, amount / 7) * slip / amount
    v[i] -= blow
    v[j] += blow
    twist = np.cross(n, blow) * radius / (0.4 * radius * radius)
    w[i] -= twist
    w[j] -= twist


@numba.njit(cache=True)
def cool(x, v, radius, side, e, mu, times):
    """Temperatures at times: columns translational, rotational; and the number of impacts. ``x`` and ``v`` change."""
    count, reach, w = len(x), 2 * radius, np.zeros_like(v)
    due, partner = np.empty(count), np.empty(count, np.int64)
    now, renewal, at, impacts, found = 0.0, 0.0, 0, 0, np.empty((len(times), 2))
    while at < len(times):
        if now >= renewal:
            for i in range(count):
                wait, partner[i] = next_of(x, v, i, reach, side)
                due[i] = now + wait
            renewal = now + HORIZON * (0.5 * side - reach) / math.sqrt((v * v).sum(axis=1).max())
        i = np.argmin(due)
        until = min(due[i], times[at], renewal)
        x += (until - now) * v
        now = until
        if now == renewal < due[i]:
            continue
        if due[i] > times[at]:
            found[at] = (v * v).sum() / (3 * count), 0.4 * radius * radius * (w * w).sum() / (3 * count)
            at += 1
            continue
        j = partner[i]
        impact(x, v, w, i, j, radius, side, e, mu)
        impacts += 1
        for k in range(count):
            if k in (i, j) or partner[k] in (i, j):
                wait, partner[k] = next_of(x, v, k, reach, side)
                due[k] = now + wait
            else:
                for moved in (i, j):
                    t = now + time_of_touch(x, v, k, moved, reach, side)
                    if t < due[k]:
                        due[k], partner[k] = t, moved
    return found, impacts


def temperatures(seed, times):
    """Over the translational one at the start."""
    found, impacts = cool(*gas_start(seed), RADIUS, SIDE, RESTITUTION, FRICTION, times)
    print(f"start {seed}: {impacts} impacts, T / T0 {found[-1] / found[0, 0]} after {times[-1]:g} s", flush=True)
    return found / found[0, 0]


def main():
    found = [temperatures(seed, TIMES) for seed in range(RUNS)]
    kept = {"": np.mean(found, axis=0), "_scatter": np.std(found, axis=0, ddof=1), "_first": temperatures(0, FIRST)}
    known = {f"{name}{word}": values[:, k].round(6).tolist() for word, values in kept.items() for k, name in enumerate(NAMES)}
    FILE.write_text(json.dumps({"runs": RUNS, **known}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
