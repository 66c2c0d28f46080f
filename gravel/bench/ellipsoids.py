"""Detection of ellipsoids, random as in paper 002 (Table 2, section 5.3), next to that of spheres.

"equal radii": the paper's own test, ellipsoids that are spheres: centres at 1.25e-7 per unit volume, radii uniform in [0, 101],
for which the expected number of overlaps is known (see ``collide``); brute force counts the small ones. "three radii": the same
centres, each radius of each ellipsoid drawn for itself. Times of whole detections per contact: "direct", and Method-1 and
Method-2 of the paper. The paper's ellipsoids took 14 times as long as its spheres, its Method-1 1.5 times as long as Method-2.
"narrow phase": single pairs, about half of them overlapping, one thread (FCL 3.2, MuJoCo 4, coal 9 us; design page).
"""

import numpy as np

from gravel.bench.collide import PAPER_COUNTS, best, expected, random
from gravel.bench.pairs import measure_pairs
from gravel.detection.find import detect, run_detection
from gravel.engine import ELLIPSOID_METHODS
from gravel.scenes.setup import random_turns
from gravel.shapes import Ellipsoid

BRUTE_FORCE = 8192  # bodies, at most


def run(quick, threads, device="cpu"):
    sizes = (128, 1024, 8192) if quick else (128, *PAPER_COUNTS)
    for equal in (True, False):
        for n in sizes:
            yield compare(n, equal, threads, device)
    yield {"kind": "narrow phase", **measure_pairs(Ellipsoid, Ellipsoid, 2000 if quick else 20000, device)}


def compare(n, equal, threads, device):
    """One row: the same centres with spheres and with ellipsoids."""
    rng = np.random.default_rng(1)
    sphere, places = random(n, rng)
    drawn = np.maximum(rng.uniform(0, 101, (n, 3)), 1e-3)
    shape = Ellipsoid(np.repeat(sphere.radius[:, None], 3, axis=1) if equal else drawn)
    turns, repeats = random_turns(n, rng), 3 if n <= 2**20 else 1
    spheres = seconds_of(sphere, places, None, threads, "direct", repeats, device)[0]
    row = {"kind": "equal radii" if equal else "three radii", "ellipsoids": n}
    times = {}
    for method in ELLIPSOID_METHODS:
        times[method], count = seconds_of(shape, places, turns, threads, method, repeats, device)
        row.setdefault("contacts", count)
        if count != row["contacts"]:
            row[f"contacts of {method}"] = count
    if equal:
        row["expected"] = float(expected(n))
        row["paper's count"] = PAPER_COUNTS.get(n, 37)
    if n <= BRUTE_FORCE:
        row["brute force"] = detect(shape, places, turns, broad_phase="brute", threads=threads, device=device).detect().contacts
    row.update({f"us per contact, {method}": 1e6 * t / max(row["contacts"], 1) for method, t in times.items()})
    row["over spheres"] = times["direct"] / spheres
    row["method-1 over method-2"] = times["method-1"] / times["method-2"]
    return row


def seconds_of(shape, places, turns, threads, method, repeats, device):
    """(s, contacts) of a detection."""
    options = {"precision": "single", "threads": threads, "ellipsoid_method": method, "device": device}
    engine = detect(shape, places, turns, **options)
    return best(lambda: run_detection(engine), repeats), engine.detect().contacts
