"""Convex solids and meshes on the device, in single precision, against the CPU's in double."""

import numpy as np
import warp as wp
from on_device import DEVICE, to_device
from solid_pairs import LIBRARY, MANY, Found, inputs_of

from gravel.gpu import structs
from gravel.gpu.buffers import DeviceBuffers
from gravel.gpu.collide.jobs import TABLES
from gravel.gpu.collide.pieces import Jobs, Rows, Shapes, Task, children_on

ARRAYS = DeviceBuffers(DEVICE)


def found_by_device(cases):
    n, (table, arranged, a, b) = len(cases.d), inputs_of(cases)
    whole = lambda values: wp.array(np.asarray(values, np.int32), device=DEVICE)  # noqa: E731
    jobs, rows = Jobs(), Rows()
    jobs.pair, jobs.table, jobs.start = whole(np.arange(n)), whole(np.full(n, table)), whole(np.arange(n + 1) * MANY)
    jobs.child_a, jobs.child_b = whole(np.full(n, -1)), whole(np.full(n, -1))
    jobs.found, jobs.most = whole(np.zeros(n)), whole([0])
    rows.values, rows.feature = wp.zeros((n * MANY, 7), device=DEVICE), whole(np.zeros(n * MANY))
    pairs = to_device(structs.Pairs, {"a": a, "b": b, "first": np.arange(n + 1)})
    things = to_device(structs.Arranged, arranged._asdict()), pairs, children_on(LIBRARY, DEVICE), jobs, rows
    TABLES[table](Task(0, n, jobs.pair, *things, MANY, Shapes(LIBRARY, 0), ARRAYS, DEVICE))
    return Found(jobs.found.numpy(), rows.values.numpy().reshape(n, MANY, 7), rows.feature.numpy().reshape(n, MANY))
