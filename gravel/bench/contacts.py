"""Counting more contacts than memory holds: seconds against contacts (paper 000, Figs. 25 and 26).

Random spheres with 32 neighbours each, 16 contacts a sphere: N^2 / 2 times the share of the box that two centres within
2 r of each other may take, less the edges. Memory allowed for a box: 2 GB. The paper: 22 million contacts in
under 4 s on a Tesla C1060, 1.6 billion in under 60 s on four.
"""

import resource
import time

import numpy as np

from gravel.detection.batches import count_contacts
from gravel.shapes import Sphere

NEIGHBOURS = 32
PAPER = {1375000: 4.0, 100000000: 60.0}  # s


def run(quick, threads):
    for n in (10000, 50000) if quick else (100000, 1375000, 10000000, 100000000):
        side = (4 / 3 * np.pi * n / NEIGHBOURS) ** (1 / 3)  # in units of 2 r
        places = np.random.default_rng(1).uniform(0, side, (n, 3))
        count_contacts(Sphere(0.5), places[:1000], threads=threads)  # compiles
        start = time.perf_counter()
        found = count_contacts(Sphere(0.5), places, threads=threads)
        seconds = time.perf_counter() - start
        expected = 0.5 * n * n / side**3 * (4 / 3 * np.pi - 1.5 * np.pi / side)
        row = {
            "spheres": n,
            "contacts": found,
            "ratio to expected": found / expected,
            "seconds": seconds,
            "ns per contact": 1e9 * seconds / found,
            "peak memory GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        }
        if n in PAPER:
            row["paper's GPUs, below, s"] = PAPER[n]
        yield row
