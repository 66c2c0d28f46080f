"""The fields of a body: one table says name, shape, type, unit and frame, who keeps them in step across processes, and what is
seen of a body that is gone. Allocation, checkpoints, upload and migration follow from it.

``Bodies`` holds the fields as arrays that grow. A scene's row is the body's id; an engine keeps its rows in an order of its own
and says in the field ``id`` whose they are. Positions and turns are always in double precision, so that a grain far from the
origin keeps its exact place; ``real`` is the precision of the simulation.

``Views`` hands the engine's fields to users as arrays by id, and copies what they wrote back into the engine.
"""

import math
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

REMOVED, IMMOVABLE, MOVABLE, SLEEPING = range(4)
REPLICATED, STALE_GHOST = -1, -2  # ranks of bodies that all processes have and none owns, and of ghosts that will be removed


def can_move(status: np.ndarray) -> np.ndarray:
    """Whether forces can move bodies of this status: those that sleep are woken by them."""
    return status >= MOVABLE


class Field(NamedTuple):
    name: str
    shape: tuple
    dtype: str  # "real": single or double, as the simulation asks
    unit: str
    frame: str
    sync: str  # "once": sent when a body enters a process; "step": sent to ghosts in every step
    fresh: float  # what a new body has that was given nothing
    gone: float  # what is seen of a body that was removed


FIELDS = (
    Field("id", (), "i8", "for life, never used again", "-", "once", -1, -1),
    Field("position", (3,), "f8", "m", "world", "step", 0.0, math.nan),
    Field("quaternion", (4,), "f8", "w x y z", "body to world", "step", math.nan, math.nan),
    Field("velocity", (8,), "real", "m/s, -, rad/s, -", "world", "step", 0.0, 0.0),
    Field("force", (3,), "f8", "N", "world", "step", 0.0, 0.0),
    Field("torque", (3,), "f8", "N m", "world", "step", 0.0, 0.0),
    Field("inverse_mass", (4,), "f8", "1/kg, 1/(kg m2)", "body, principal moments", "once", 0.0, math.inf),
    Field("extent", (4,), "f8", "m", "body: size of the shape, bounding radius", "once", 0.0, 0.0),
    Field("tag", (4,), "i4", "shape, material, group, status", "-", "step", 0, REMOVED),
    Field("geometry", (), "i4", "number in the scene's geometries, or -1", "-", "once", -1, -1),
    Field("winding", (3,), "i4", "times it has left a periodic cell, upwards less downwards", "-", "step", 0, 0),
    Field("island", (), "i4", "of sleeping bodies, one more than the lowest id in it; 0: awake", "-", "step", 0, 0),
    Field("rank", (), "i4", "of the process that owns it, or REPLICATED; STALE_GHOST - rank: a stale ghost", "-", "step", 0, -1),
)
FIELD = {field.name: field for field in FIELDS}
SHAPE, MATERIAL, GROUP, STATUS = range(4)  # columns of a tag; fields that are read together lie together
LINEAR, ANGULAR = slice(0, 3), slice(4, 7)  # columns of a velocity


def empty_field(field: Field, n: int, real: np.dtype) -> np.ndarray:
    """n rows of a field, zeroed: memory that is never touched is not allocated."""
    return np.zeros((n, *field.shape), real if field.dtype == "real" else field.dtype)


class Bodies:
    """The fields of some bodies, as arrays of ``count`` rows: ``bodies.position`` and so on."""

    id: np.ndarray
    position: np.ndarray
    quaternion: np.ndarray
    velocity: np.ndarray
    force: np.ndarray
    torque: np.ndarray
    inverse_mass: np.ndarray
    extent: np.ndarray
    tag: np.ndarray
    geometry: np.ndarray
    winding: np.ndarray
    island: np.ndarray
    rank: np.ndarray

    def __init__(self, real=np.float64):
        self.real = np.dtype(real)
        self.count = self._touched = 0  # rows in use, and rows that have ever been
        self._store = {field.name: empty_field(field, 0, self.real) for field in FIELDS}
        self._refresh()

    def __repr__(self) -> str:
        return f"Bodies({self.count} bodies: {', '.join(field.name for field in FIELDS)})"

    def append(self, block: Mapping[str, Any]) -> np.ndarray:
        """Add the rows of ``block`` (name -> array of n rows, or of one for all; fields that are not given are fresh); returns their
        rows."""
        first, last = self.count, self.count + len(block["position"])
        for field in FIELDS:
            store = self._store[field.name]
            if last > len(store):
                larger = empty_field(field, max(last, 2 * len(store)) if first else last, self.real)
                larger[:first] = store[:first]
                self._store[field.name] = store = larger
            if field.name in block:
                store[first:last] = block[field.name]
            elif field.fresh != 0:
                store[first:last] = field.fresh
            else:  # what was never touched is zero already
                store[first : min(last, self._touched)] = 0
        self.count, self._touched = last, max(last, self._touched)
        self._refresh()
        return np.arange(first, last)

    def drop(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take rows (sorted) out: the last ones move into the holes. Returns the holes, and the rows that were moved."""
        keep = self.count - len(rows)
        holes = rows[rows < keep]
        stay = np.ones(self.count - keep, bool)
        stay[rows[rows >= keep] - keep] = False
        tail = keep + np.flatnonzero(stay)
        for store in self._store.values():
            store[holes] = store[tail]
        self.count = keep
        self._refresh()
        return holes, tail

    def block(self) -> dict[str, np.ndarray]:
        """All rows, by name of the field; no copies."""
        return {field.name: getattr(self, field.name) for field in FIELDS}

    def _refresh(self):
        for name, store in self._store.items():
            setattr(self, name, store[: self.count])
        self.status, self.shape = self.tag[:, STATUS], self.tag[:, SHAPE]


class Views:
    """What users see of an engine's bodies: arrays by id, (N, ...), N the number of ids ever given.

    Writes into an array are copied into the engine before the next step, and the array is fresh when it is asked for again. One that is
    still referenced then goes on showing the present state. When bodies are added, arrays get longer: those handed out before are
    invalidated, and can only be read from then on.
    """

    WRITABLE = {
        "positions": ("position", slice(0, 3)),
        "quaternions": ("quaternion", slice(0, 4)),
        "velocities": ("velocity", LINEAR),
        "angular_velocities": ("velocity", ANGULAR),
        "forces": ("force", slice(0, 3)),
        "torques": ("torque", slice(0, 3)),
    }

    def __init__(self, engine, count: int, refusal: Callable[[str, int], Exception]):
        """``refusal(words, body)``, a method, makes the error for what cannot be taken back."""
        self.engine, self.count = engine, count
        self._refusal = weakref.WeakMethod(refusal)  # its owner holds these views: no circle, so that all memory goes with it
        self._borrowed: dict[str, np.ndarray] = {}  # since the last step
        self._held: dict[str, weakref.ref] = {}  # before it: still referenced by users, or not

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.own_count} bodies of {self.count} ids: {', '.join(field.name for field in FIELDS)})"

    def __getattr__(self, name):
        """A field of all bodies by id, to be read: ``views.extent``."""
        if name not in FIELD:
            raise AttributeError(name)
        self.flush_writes()
        result = self._by_id(FIELD[name], slice(None))
        result.flags.writeable = False
        return result

    @property
    def status(self):
        return self.tag[:, STATUS]

    @property
    def shape(self):
        return self.tag[:, SHAPE]

    def borrow(self, name: str) -> np.ndarray:
        """One of ``WRITABLE``, to be read and written."""
        if name not in self._borrowed:
            held = self._held.pop(name, lambda: None)()
            field, columns = self.WRITABLE[name]
            self._borrowed[name] = self._by_id(FIELD[field], columns) if held is None else held
        return self._borrowed[name]

    def flush_writes(self) -> None:
        """Copy what users wrote into the engine."""
        if not (self._borrowed or self._held):
            return
        ids = self.engine.ids()
        taken = [(name, array[ids]) for name, array in self._referenced()]
        for name, values in taken:
            self._check(name, values, ids)
        for name, values in taken:
            self.engine.set_field(*self.WRITABLE[name], values)

    def _check(self, name, values, ids):
        """Refuse what is not finite; of quaternions also zeros, and bring the others to length one."""
        with np.errstate(invalid="ignore", over="ignore"):
            sound = np.isfinite(values.sum())
        bad = np.zeros(len(values), bool) if sound else ~np.isfinite(values).all(axis=1)
        if name == "quaternions":
            squares = np.einsum("ni,ni->n", values, values)
            bad |= squares < 1e-18
            off = ~bad & (np.abs(squares - 1.0) > 1e-9)
            values[off] /= np.sqrt(squares[off])[:, None]
        if bad.any():
            row = np.flatnonzero(bad)[np.argmin(ids[bad])]
            written = ", ".join(f"{x:g}" for x in values[row])
            wanted, refusal = "finite and not zero" if name == "quaternions" else "finite", self._refusal()
            assert refusal is not None  # whoever asks is its owner
            raise refusal(f"{name} of body {ids[row]} must be {wanted}, not ({written})", int(ids[row]))

    def refresh(self) -> None:
        """The engine's state has changed: arrays that are still referenced show it."""
        if not (self._borrowed or self._held):
            return
        self._held.update({name: weakref.ref(array) for name, array in self._borrowed.items()})
        self._borrowed.clear()
        self._held = {name: held for name, held in self._held.items() if held() is not None}
        for name, array in self._referenced():
            field, columns = self.WRITABLE[name]
            if len(self.engine.ids()) < len(array):
                array[:] = FIELD[field].gone
            array[self.engine.ids()] = self.engine.field(field)[:, columns]

    def invalidate(self, count: int) -> None:
        """There will be so many ids: arrays handed out so far are flushed and become read-only."""
        self.flush_writes()
        for _, array in self._referenced():
            array.flags.writeable = False
        self._borrowed.clear()
        self._held.clear()
        self.count = count

    def present(self, *names: str) -> dict[str, np.ndarray]:
        """Fields of the bodies that are there, by name, in the order of their ids."""
        self.flush_writes()
        ids = self.engine.ids()
        order = np.argsort(ids, kind="stable") if np.any(ids[1:] < ids[:-1]) else slice(None)
        return {name: self.engine.field(name)[order] for name in names}

    def _referenced(self):
        held = ((name, array()) for name, array in self._held.items())
        return [*self._borrowed.items(), *((name, array) for name, array in held if array is not None)]

    def _by_id(self, field, columns):
        values = self.engine.field(field.name)
        values = values[:, columns] if field.shape else values
        result = np.full((self.count, *values.shape[1:]), field.gone, values.dtype)
        result[self.engine.ids()] = values
        return result

    def follow_migration(self) -> None:
        """Bodies may have migrated: of one process, none has."""

    @property
    def ids(self) -> np.ndarray:
        """Whose rows the arrays have."""
        return np.arange(self.count)

    @property
    def own_count(self) -> int:
        """How many bodies are there."""
        return len(self.engine.ids())


class LocalViews(Views):
    """What users see of the bodies that one of several processes owns: arrays in the order of their ids (``ids``), which is another after
    every step. What all processes know is the first one's."""

    def __init__(self, engine, count, refusal, rank):
        super().__init__(engine, count, refusal)
        self.rank = rank
        self._rows: np.ndarray | None = None  # of the bodies, in the order of their ids

    @property
    def rows(self) -> np.ndarray:
        if self._rows is None:
            rank = self.engine.field("rank")
            rows = np.flatnonzero((rank == self.rank) | ((rank == REPLICATED) & (self.rank == 0)))
            self._rows = rows[np.argsort(self.engine.ids()[rows])]
        return self._rows

    @property
    def ids(self) -> np.ndarray:
        return self.engine.ids()[self.rows]

    @property
    def own_count(self) -> int:
        rank = self.engine.field("rank")
        return int(np.count_nonzero(rank == self.rank)) + (int(np.count_nonzero(rank == REPLICATED)) if self.rank == 0 else 0)

    def flush_writes(self) -> None:
        taken = [(name, array.copy()) for name, array in self._borrowed.items()]
        for name, values in taken:
            self._check(name, values, self.ids)
        for name, values in taken:
            field, columns = self.WRITABLE[name]
            whole = self.engine.field(field)[:, columns].copy()
            whole[self.rows] = values
            self.engine.set_field(field, columns, whole)

    def refresh(self) -> None:
        for array in self._borrowed.values():
            array.flags.writeable = False
        self._borrowed.clear()
        self._rows = None

    follow_migration = refresh  # also before a step that is then refused: arrays handed out before it are of other bodies

    def invalidate(self, count: int) -> None:
        self.flush_writes()
        self.refresh()
        self.count = count

    def present(self, *names: str) -> dict[str, np.ndarray]:
        self.flush_writes()
        return {name: self.engine.field(name)[self.rows] for name in names}

    def _by_id(self, field, columns):
        values = self.engine.field(field.name)[self.rows]
        return values[:, columns].copy() if field.shape else values
