"""The working state in two places: rows on the host (``gravel.host.rows``) and the same rows on the device, copied only when one side has
changed a field and the other asks for it."""

import numpy as np
import warp as wp

from gravel.gpu.devices import to_device
from gravel.gpu.launch import run
from gravel.state import FIELD

DTYPES = {"f8": wp.float64, "i4": wp.int32, "i8": wp.int64, "real": wp.float32}
FIELDS = ("id", "position", "quaternion", "velocity", "inverse_mass", "extent", "tag", "geometry", "force", "torque", "rank")
WRITTEN = ("position", "quaternion", "velocity")  # by the device


@wp.kernel(enable_backward=False)
def gather_double(source: wp.array2d(dtype=wp.float64), rows: wp.array(dtype=int), target: wp.array2d(dtype=wp.float64)):
    k = wp.tid()
    for c in range(source.shape[1]):
        target[k, c] = source[rows[k], c]


@wp.kernel(enable_backward=False)
def gather_single(source: wp.array2d(dtype=wp.float32), rows: wp.array(dtype=int), target: wp.array2d(dtype=wp.float32)):
    k = wp.tid()
    for c in range(source.shape[1]):
        target[k, c] = source[rows[k], c]


@wp.kernel(enable_backward=False)
def scatter_single(source: wp.array2d(dtype=wp.float32), rows: wp.array(dtype=int), target: wp.array2d(dtype=wp.float32)):
    k = wp.tid()
    for c in range(source.shape[1]):
        target[rows[k], c] = source[k, c]


@wp.kernel(enable_backward=False)
def scatter_double(source: wp.array2d(dtype=wp.float64), rows: wp.array(dtype=int), target: wp.array2d(dtype=wp.float64)):
    k = wp.tid()
    for c in range(source.shape[1]):
        target[rows[k], c] = source[k, c]


class RowSubset:
    """A subset of the rows of arrays on the device, which stages of the host read and write."""

    def __init__(self, buffers, name, rows):
        self.buffers, self.name, self.rows = buffers, name, rows
        self.index = buffers.array(f"{name}_rows", len(rows), dtype=wp.int32)
        if len(rows):
            to_device(rows.astype(np.int32), self.index)

    def fetch(self, source, target):
        """Those rows of ``target``, an array of the host, := those of ``source``."""
        if len(self.rows):
            target[self.rows] = self.part_of(source)

    def part_of(self, source):
        """Those rows of ``source``, (k, columns) on the host."""
        single = source.dtype == wp.float32
        columns = source.shape[1]
        part = self.buffers.array(f"{self.name}_{'single' if single else 'double'}_{columns}", len(self.rows), (columns,), source.dtype)
        run(gather_single if single else gather_double, len(self.rows), [source, self.index, part], self.buffers.device)
        return part.numpy()

    def send(self, source, target):
        """Those rows of ``target``, an array of the device, := those of ``source``."""
        if len(self.rows):
            self.put(source[self.rows], target)

    def put(self, values, target):
        """Those rows of ``target`` := values (k, columns)."""
        single, columns = target.dtype == wp.float32, target.shape[1]
        part = self.buffers.array(f"{self.name}_{'single' if single else 'double'}_{columns}", len(self.rows), (columns,), target.dtype)
        to_device(values, part)
        run(scatter_single if single else scatter_double, len(self.rows), [part, self.index, target], self.buffers.device)


class Mirror:
    def __init__(self, buffers):
        self.buffers = buffers
        self.version, self.arrays = -1, {}
        self.newer_on_host, self.newer_on_device = set(FIELDS), set()

    def on_device(self, rows, *names):
        """Fields on the device, as they are now."""
        if self.version != rows.version:  # rows have moved, which only the host lets them
            self.version, self.newer_on_host = rows.version, set(FIELDS)
        for name in names:
            if name in self.newer_on_host:
                field = FIELD[name]
                array = self.arrays[name] = self.buffers.array(f"state_{name}", rows.count, field.shape, DTYPES[field.dtype])
                if rows.count:
                    to_device(getattr(rows, name), array)
                self.newer_on_host.discard(name)
        return [self.arrays[name] for name in names]

    def on_host(self, rows, *names):
        """Fields of the rows are made what they are on the device."""
        for name in self.newer_on_device.intersection(names):
            if rows.count:
                getattr(rows, name)[:] = self.arrays[name].numpy()
        self.newer_on_device -= set(names)

    def changed_on_device(self):
        self.newer_on_device.update(WRITTEN)
        self.newer_on_host.difference_update(WRITTEN)

    def changed_on_host(self, *names):
        self.newer_on_host.update(set(names) & set(FIELDS))
