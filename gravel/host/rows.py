"""The working state of the CPU engine: the fields of the bodies that are there, in rows of the engine's own order.

Bodies that lie together in space shall lie together in memory, so rows follow the order of the broad phase: when that order has
decayed, they are sorted anew. Rows of bodies that are taken out are filled with the last ones, so nothing is kept of bodies that
are gone but four bytes for their ids.
"""

import numpy as np
from numba import njit, prange

from gravel.host.threads import INNER, Kernel
from gravel.state import Bodies

CHUNK = 4096
NEAR = 64  # rows: neighbours in the order of the broad phase that are further apart in memory count as torn
TORN = 6  # one torn neighbour in so many rows makes sorting them anew worth while
FEW = 8192  # rows: so few fit into the cache in any order


@njit(**INNER)
def gather_chunk(chunk, source, order, target):
    for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, order.size)):
        row = order[i]
        for k in range(source.shape[1]):
            target[i, k] = source[row, k]


@Kernel
def gather_rows(source, order, target):
    """Row i of ``target`` := row order[i] of ``source``; both in words of four bytes."""
    for chunk in prange((order.size + CHUNK - 1) // CHUNK):
        gather_chunk(np.int64(chunk), source, order, target)


@njit(nogil=True, error_model="numpy", cache=True)
def is_torn(order):
    """Whether the order of the broad phase has little to do with that of the rows."""
    far = 0
    for i in range(1, order.size):
        far += abs(order[i] - order[i - 1]) > NEAR
    return far * TORN > order.size


def words(rows):
    """Rows as words of four bytes."""
    return rows.reshape(len(rows), -1).view(np.uint32)


class Rows(Bodies):
    """``version`` changes when rows move, ``members`` when bodies come or go."""

    def __init__(self, real):
        super().__init__(real)
        self.row_of_id = np.full(0, -1, np.int32)
        self.version = self.members = 0
        self.forced = False  # whether any force or torque may be other than zero
        self.dozing = False  # whether any body sleeps

    def rows_of(self, ids):
        """Rows of bodies by their ids; -1 for those that are gone."""
        ids = np.asarray(ids, np.int64)
        rows = np.full(ids.shape, -1, np.int64)
        known = (ids >= 0) & (ids < len(self.row_of_id))
        rows[known] = self.row_of_id[ids[known]]
        return rows

    def add(self, block):
        rows, ids = self.append(block), np.asarray(block["id"])
        limit = int(ids.max(initial=-1)) + 1
        if limit > len(self.row_of_id):
            more = np.full(max(limit, 2 * len(self.row_of_id)), -1, np.int32)
            more[: len(self.row_of_id)] = self.row_of_id
            self.row_of_id = more
        self.row_of_id[ids] = rows
        self.forced = self.forced or any(name in block and np.any(block[name]) for name in ("force", "torque"))
        self.dozing = self.dozing or bool(np.any(block.get("island", 0)))
        self.version += 1
        self.members += 1

    def remove(self, rows):
        """Take rows (sorted, each once) out; returns (holes, the rows that moved into them)."""
        self.row_of_id[self.id[rows]] = -1
        holes, moved = self.drop(rows)
        self.row_of_id[self.id[holes]] = holes
        self.version += 1
        self.members += 1
        return holes, moved

    def clear(self):
        """Take all out."""
        self.row_of_id[:] = -1
        self.count = 0
        self._refresh()
        self.version += 1
        self.members += 1

    def sort(self, order):
        """Row i := row order[i]."""
        for name in list(self._store):
            if self.forced or name not in ("force", "torque"):
                store = self._store[name]
                sorted_store = np.empty_like(store)
                gather_rows(words(store), order, words(sorted_store))
                self._store[name] = sorted_store
        self._touched = len(self._store["id"])  # behind the last row there is anything now
        self._refresh()
        self.row_of_id[self.id] = np.arange(self.count, dtype=np.int32)
        self.version += 1
