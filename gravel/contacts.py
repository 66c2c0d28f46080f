"""The contact table: what users see of contacts, as arrays, one row each, and contact detection on its own."""

from dataclasses import dataclass, fields

import numpy as np

from gravel import checks
from gravel.cpu.collide.bounds import Margin
from gravel.cpu.engine import BROAD_PHASES, ELLIPSOID_METHODS, Engine, make_rules
from gravel.cpu.solve.blocks import COHESION, FRICTION, Scalars
from gravel.cpu.threads import largest_thread_count, use_threads
from gravel.materials import Material, pair_table
from gravel.scene import Scene


@dataclass(frozen=True)
class ContactTable:
    """Each pair's contacts once; body_a < body_b. Sorted by body_a, body_b and feature."""

    body_a: np.ndarray  # (n,) ids
    body_b: np.ndarray
    point: np.ndarray  # (n, 3) m, halfway between the surfaces
    normal: np.ndarray  # (n, 3) from a to b
    gap: np.ndarray  # (n,) m, negative in penetration
    impulse: np.ndarray  # (n, 3) N s on b in the last step, world frame; force = impulse / dt
    sliding: np.ndarray  # (n,) True where friction is at its limit

    def __len__(self):
        return len(self.body_a)

    def __getitem__(self, rows):
        """The same table with some of the rows: an index array, a mask or a slice."""
        return ContactTable(*(getattr(self, f.name)[rows] for f in fields(self)))

    @staticmethod
    def empty():
        none, vectors = np.empty(0, np.int64), np.empty((0, 3))
        return ContactTable(none, none, vectors, vectors, np.empty(0), vectors, np.empty(0, bool))

    @staticmethod
    def of_detection(engine):
        """Contacts that the engine has just found, without impulses."""
        found = engine.contacts
        rows = np.concatenate([np.arange(s, s + n) for s, n in zip(found.start, found.count)] or [np.empty(0, np.int64)])
        a, b = found.a[rows], found.b[rows]
        centre, arm = engine.arranged.reach[a, :3], found.arm[rows].astype(float)
        return ContactTable._sorted(engine, rows, a, b, centre + arm, np.zeros((len(rows), 3)), np.zeros(len(rows), bool))

    @staticmethod
    def of_step(engine):
        """Contacts of the engine's last step with their impulses."""
        found = engine.contacts
        rows = np.concatenate([np.arange(s, s + n) for s, n in zip(found.start, found.count)] or [np.empty(0, np.int64)])
        a, b = found.a[rows], found.b[rows]
        point = engine.arranged.reach[a, :3] + found.arm[rows]
        impulse = engine.memory.impulse[rows].astype(float)
        normal = found.normal[rows].astype(float)
        push = np.einsum("ni,ni->n", impulse, normal)
        friction, cohesion = engine.problem.rows_of(engine.slot[rows], FRICTION), engine.problem.rows_of(engine.slot[rows], COHESION)
        load = push + cohesion
        slip = np.linalg.norm(impulse - push[:, None] * normal, axis=1)
        sliding = (load > 0) & (slip >= 0.999 * friction * load)
        if len(engine.blow):
            impulse = impulse + engine.blow[rows]
        return ContactTable._sorted(engine, rows, a, b, point, impulse, sliding)

    @staticmethod
    def _sorted(engine, rows, a, b, point, impulse, sliding):
        found = engine.contacts
        ids_a, ids_b = engine.order[a].astype(np.int64), engine.order[b].astype(np.int64)
        flip = ids_a > ids_b
        sign = np.where(flip, -1.0, 1.0)[:, None]
        body_a, body_b = np.where(flip, ids_b, ids_a), np.where(flip, ids_a, ids_b)
        order = np.lexsort((found.feature[rows], body_b, body_a))
        normal = found.normal[rows].astype(float) * sign
        return ContactTable(
            body_a[order],
            body_b[order],
            point[order],
            normal[order],
            found.gap[rows].astype(float)[order],
            (impulse * sign)[order],
            sliding[order],
        )


def find_contacts(
    shapes, positions, quaternions=None, broad_phase="auto", margin=0.0, precision="double", threads=None, ellipsoid_method="direct"
):
    """Contacts of N bodies of one kind of shape, without a simulation: a ``ContactTable``.

    ``shapes``: one shape, with sizes for one or for N bodies; ``margin`` m: gaps up to it count as contacts; ``broad_phase`` as
    of ``Simulation``;
    ``ellipsoid_method`` "direct", or "method-1" and "method-2" of paper 002: the same contacts, at another speed.
    """
    engine = detect(shapes, positions, quaternions, broad_phase, margin, precision, threads, ellipsoid_method=ellipsoid_method)
    return ContactTable.of_detection(engine)


def detect(
    shapes,
    positions,
    quaternions=None,
    broad_phase="auto",
    margin=0.0,
    precision="double",
    threads=None,
    engine=None,
    ellipsoid_method="direct",
):
    """Run the detection stages alone and return the engine that holds the contacts; a given engine is used again."""
    margin = checks.number("margin", margin, minimum=0.0)
    checks.choice("broad_phase", broad_phase, BROAD_PHASES)
    checks.choice("precision", precision, ("single", "double"))
    checks.choice("ellipsoid_method", ellipsoid_method, ELLIPSOID_METHODS)
    use_threads(checked_threads(threads))
    real = np.float32 if precision == "single" else np.float64
    if engine is None:
        scene = Scene()
        scene.add_bodies(shapes, positions, quaternions=quaternions)
        engine = Engine(real, broad_phase)
        engine.detected = scene.bodies.copy(real)
        engine.detection_rules = detection_rules(margin, scene.geometries, ellipsoid_method)
    engine.find_bounds(engine.detected, engine.detection_rules)
    engine.find_pairs()
    engine.find_contacts()
    return engine


def checked_threads(n):
    """A number of threads as users give it; None: all."""
    n = largest_thread_count() if n is None else checks.count("threads", n, minimum=1)
    if n > largest_thread_count():
        raise ValueError(f"threads must be at most {largest_thread_count()} on this machine, not {n}")
    return n


def detection_rules(margin, geometries=(), ellipsoid_method="direct"):
    """The engine's rules for detection alone: nothing moves, nobody ignores anybody."""
    ignored, scalars = np.zeros((32, 32), bool), Scalars(0.0, 0.0, 0.0, 0.0)
    table, margin = pair_table([Material()], {}), Margin(margin, 0.0)
    return make_rules(0.0, np.zeros(3), table, ignored, margin, geometries, ellipsoid_method, scalars, 0.0)
