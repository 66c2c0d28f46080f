"""Raw detection of spheres: packed, and random as in paper 002, section 5.2 (expected overlaps 0.4046 N less the edges).

Packed: a jittered lattice with about two contacts per sphere. Random: n = 1.25e-7 centres per unit volume, radii uniform in
[0, 101]. Two spheres overlap with probability 4/3 pi E[(r1 + r2)^3] / V, so N spheres have 2/3 pi n E[(r1 + r2)^3] N pairs
= 0.4046 N, fewer where the box ends. The paper's counts beyond 262 144 spheres do not follow that law.
"""

import time

import numpy as np

from gravel.detection.find import detect, run_detection
from gravel.shapes import Sphere

PAPER_COUNTS = {1024: 335, 8192: 2969, 32768: 11670, 131072: 49000, 262144: 105920, 524288: 190747, 1048576: 487246, 2097152: 1064984}


def best(function, repeats):
    """Shortest of some runs, s."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def packed(n, rng):
    side = round(n ** (1 / 3))
    places = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3) * 0.1
    return Sphere(0.0526), places + rng.uniform(-0.012, 0.012, places.shape)


def random(n, rng):
    return Sphere(np.maximum(rng.uniform(0, 101, n), 1e-6)), rng.uniform(0, (n / 1.25e-7) ** (1 / 3), (n, 3))


def expected(n):
    """Mean number of overlapping pairs in a box, edges included to first order."""
    r = 101.0
    third = r**3 * (2 * 1 / 4 + 2 * 3 * (1 / 3) * (1 / 2))  # E[(r1 + r2)^3]
    fourth = r**4 * (2 / 5 + 8 * (1 / 4) * (1 / 2) + 6 * (1 / 9))  # E[(r1 + r2)^4]
    side = (n / 1.25e-7) ** (1 / 3)
    pairs = 0.5 * n * n / side**3
    return pairs * (4 / 3 * np.pi * third - 1.5 * np.pi * fourth / side)


def run(quick, threads, device="cpu"):
    for n in (8000, 64000) if quick else (8000, 64000, 262144, 1000000):
        yield _measure("packed", n, packed, threads, device)
    for n in (1024, 8192) if quick else tuple(PAPER_COUNTS):
        row = _measure("random", n, random, threads, device)
        row["expected"] = float(expected(n))
        row["ratio"] = row["contacts"] / row["expected"]
        row["paper's count"] = PAPER_COUNTS[n]
        yield row


def _measure(kind, n, make, threads, device):
    shape, places = make(n, np.random.default_rng(1))
    engine = detect(shape, places, precision="single", threads=threads, device=device)
    seconds = best(lambda: run_detection(engine), 5)
    return {
        "kind": kind,
        "spheres": len(places),
        "contacts": engine.detect().contacts,
        "seconds": seconds,
        "ns per sphere": 1e9 * seconds / len(places),
    }
