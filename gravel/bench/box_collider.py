"""The Box Collider of paper 003 next to its GPU: ms of a frame by brute force, and by tree: construction, traversal, forwarding.

N spheres with radii uniform in (0, 5) at random places in a box of side 100, overlapping as they fall, as in the paper: from
50 000 on each touches some forty others. As there, a frame finds the touching pairs with a tree built anew, gives each pair that
approaches an elastic impulse, lets spheres bounce on the faces, and moves them by 1/30 s. Paper: GTX 940M, its best columns;
Table 1 brute force, Table 2 forwarding, Table 4 collisions (construction, traversal and response), Table 5 all together.
"""

import time

import numpy as np
from numba import njit, prange

from gravel.detection.find import detect_scene, run_detection
from gravel.scene import Scene
from gravel.shapes import Sphere

SIDE, LARGEST, STEP, FRAMES = 100.0, 5.0, 1 / 30, 10
STAGES = ("construction", "traversal", "response", "forwarding")
PAPER = {  # ms: Table 1, 2, 4, 5
    100: (0.1859, None, None, None),
    500: (2.8176, None, None, None),
    1000: (11.0379, 0.009472, 0.103849, 0.113321),
    5000: (273.791, 0.024456, 0.240884, 0.26534),
    10000: (None, 0.042528, 0.457289, 0.499817),
    50000: (None, 0.21824, 2.16896, 2.3872),
}


def run(quick, threads):
    for n in (100, 1000) if quick else tuple(PAPER):
        yield measure(n, threads)


def measure(n, threads):
    rng = np.random.default_rng(1)
    scene = Scene(gravity=(0, 0, 0))
    velocities = rng.normal(0, 10, (n, 3))
    scene.add_bodies(Sphere(np.maximum(rng.uniform(0, LARGEST, n), 1e-3)), rng.uniform(0, SIDE, (n, 3)), velocities=velocities)
    row = {"spheres": n}
    paper = PAPER[n]
    if paper[0]:
        row["brute force"] = 1e3 * min(detection("brute", scene, threads) for _ in range(3))
        row["paper's brute force"] = paper[0]
    laps = frames(scene, FRAMES, threads)
    row.update({name: 1e3 * float(np.median([lap[name] for lap in laps])) for name in STAGES})
    row["total"] = 1e3 * float(np.median([sum(lap[name] for name in STAGES) for lap in laps]))
    row["contacts"] = laps[-1]["contacts"]
    for name, value in zip(("forwarding", "collisions", "total"), paper[1:]):
        if value:
            row[f"paper's {name}"] = value
    return row


def detection(phase, scene, threads):
    """Seconds to find all contacts."""
    engine = detect_scene(scene, broad_phase=phase, precision="single", threads=threads)
    start = time.perf_counter()
    run_detection(engine)
    return time.perf_counter() - start


class Laps(dict):
    """Seconds of each stage; the stages of detection are those of the paper's tree: construction, traversal."""

    PAPER = {"bounds": "construction", "order": "construction", "broad phase": "traversal", "narrow phase": "traversal"}

    def __init__(self):
        self.last = time.perf_counter()

    def __call__(self, stage):
        now, stage = time.perf_counter(), self.PAPER.get(stage, stage)
        self[stage], self.last = self.get(stage, 0.0) + now - self.last, now


def frames(scene, count, threads):
    """Seconds of each stage of some frames."""
    engine, all_laps = detect_scene(scene, broad_phase="bvh", precision="single", threads=threads), []
    rows, found = engine.rows, engine.detector
    for frame in range(count + 1):
        lap = Laps()
        engine.predict_poses()
        contacts = engine.detect(lap).contacts
        impulses = engine.buffers.array("response", found.contact_room, (3,))
        respond(found.contacts, found.proxies.velocity, found.proxies.mass, impulses)
        lap("response")
        forward(found.order, rows.position, rows.velocity, found.proxies.velocity, found.proxies.extent, SIDE, STEP)
        lap("forwarding")
        if frame:  # the first one compiles
            all_laps.append({**lap, "contacts": contacts})
    return all_laps


@njit
def impulse_of(c, contacts, velocity, mass, impulse):
    """The elastic impulse on b of contact c, zero where the two move apart."""
    a, b = contacts.a[c], contacts.b[c]
    nx, ny, nz = contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2]
    approach = nx * (velocity[b, 0] - velocity[a, 0]) + ny * (velocity[b, 1] - velocity[a, 1]) + nz * (velocity[b, 2] - velocity[a, 2])
    size = -2 * min(approach, np.float32(0)) / (mass[a, 0] + mass[b, 0])
    impulse[c, 0], impulse[c, 1], impulse[c, 2] = size * nx, size * ny, size * nz


@njit(parallel=True, error_model="numpy")
def respond(contacts, velocity, mass, impulse):
    """All pairs at once: impulses from the velocities before, then the bodies take them, one tile of contacts after the other."""
    for tile in prange(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            impulse_of(c, contacts, velocity, mass, impulse)
    for tile in range(contacts.count.size):
        for c in range(contacts.start[tile], contacts.start[tile] + contacts.count[tile]):
            a, b = contacts.a[c], contacts.b[c]
            for k in range(3):
                velocity[a, k] -= mass[a, 0] * impulse[c, k]
                velocity[b, k] += mass[b, 0] * impulse[c, k]


@njit(parallel=True, error_model="numpy")
def forward(order, position, velocity, new, extent, side, step):
    """Positions with the new velocities; spheres that reach a face and move on bounce."""
    for i in prange(order.size):
        b = order[i]
        for k in range(3):
            v, x = new[i, k], position[b, k]
            if (x < extent[i, 0] and v < 0) or (x > side - extent[i, 0] and v > 0):
                v = -v
            velocity[b, k] = v
            position[b, k] = x + step * v
