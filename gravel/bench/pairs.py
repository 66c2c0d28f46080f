"""Contacts of two bodies, ns per pair for each pair of shapes, one thread.

Shapes of about one size in random proportions and turns, at random distances around those at which they begin to overlap; the
time is that of the narrow phase, from the pairs whose boxes overlap to contacts. Peers on such pairs of ellipsoids: FCL 3.2,
MuJoCo 4, coal 9 us (design page).
"""

import numpy as np

from gravel.bench.collide import best
from gravel.detection.find import detect_scene
from gravel.scene import Scene
from gravel.scenes.setup import random_turns
from gravel.shapes import SOLIDS, Plane
from gravel.shapes.meshes import Mesh
from gravel.shapes.polyhedra import ConvexHull

SHAPES = (*SOLIDS, ConvexHull, Mesh, Plane)


def run(quick, threads, device="cpu"):
    for k, first in enumerate(SHAPES):
        for second in SHAPES[k:]:
            if first is not Plane:
                yield measure_pairs(first, second, 200 if quick else 2000, device)


def make(kind, n, rng):
    """n shapes of one kind, of sizes around 1."""
    sizes = rng.uniform(0.5, 1.0, (n, 3))
    if kind is ConvexHull:
        return ConvexHull(np.random.default_rng(2).normal(size=(30, 3)) * 0.5, scale=sizes[:, 0])
    if kind is Mesh:
        import trimesh

        ball = trimesh.creation.icosphere(subdivisions=3)
        return Mesh(ball.vertices, ball.faces, scale=sizes[:, 0])
    return kind(*kind.split(np.column_stack([sizes, 0.2 * sizes.min(axis=1)])))  # a fourth size rounds edges


def measure_pairs(first, second, n, device="cpu"):
    """One row: n pairs, each far from the others."""
    rng = np.random.default_rng(1)
    scene = Scene()
    places = np.stack(np.meshgrid(*[np.arange(np.ceil(n ** (1 / 3)))] * 3, indexing="ij"), -1).reshape(-1, 3)[:n] * 20.0
    away = rng.normal(size=(n, 3))
    away *= (rng.uniform(1.0, 2.0, n) / np.linalg.norm(away, axis=1))[:, None]
    if second is Plane:  # one plane through the middle of all the bodies, which lie around it
        places[:, 2], away = 0.0, np.zeros((n, 3))
        places[:, :2] = 20.0 * np.stack([np.arange(n) % 100, np.arange(n) // 100], axis=1)
        places[:, 2] = rng.uniform(0.4, 1.0, n)
        scene.add_body(Plane(), fixed=True)
    else:
        scene.add_bodies(make(second, n, rng), places + away, quaternions=random_turns(n, rng))
    scene.add_bodies(make(first, n, rng), places, quaternions=random_turns(n, rng))
    engine = detect_scene(scene, threads=1, device=device)
    pairs, table = pair_count(engine.detector), engine.contacts()
    seconds = best(engine.detector.find_contacts, 3)
    return {
        "pair": f"{first.__name__}-{second.__name__}",
        "pairs": pairs,
        "touching": len(np.unique(np.stack([table.body_a, table.body_b]), axis=1).T) / max(pairs, 1),
        "contacts": len(table),
        "ns per pair": 1e9 * seconds / max(pairs, 1),
    }


def pair_count(detector):
    """How many candidates a detector of either engine has found."""
    pairs = detector.pairs
    return int(pairs.count.sum()) if hasattr(pairs, "count") else detector.pair_count
