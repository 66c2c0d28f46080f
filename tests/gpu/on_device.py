"""Contacts that the device finds of what the CPU engine has looked at: the same proxies, the same pairs."""

from typing import NamedTuple

import numpy as np
import warp as wp

from gravel.gpu import structs
from gravel.gpu.buffers import DeviceBuffers
from gravel.gpu.collide.shape_pair_types import Shapes
from gravel.gpu.collide.shape_pairs import find_contacts_by_shape_pairs

DEVICE = "cpu"
EMPTY = np.empty(0, np.int32)


class Found(NamedTuple):
    """Contacts of either engine, sorted by bodies and features; bodies are places in the arranged order."""

    a: np.ndarray
    b: np.ndarray
    feature: np.ndarray
    normal: np.ndarray
    arm: np.ndarray
    gap: np.ndarray

    @property
    def names(self):
        return list(zip(self.a.tolist(), self.b.tolist(), self.feature.tolist()))


def sorted_contacts(contacts, chosen):
    rows = [np.asarray(getattr(contacts, name))[chosen] for name in Found._fields]
    order = np.lexsort(rows[2::-1])
    return Found(*(row[order] for row in rows))


def on_cpu(engine):
    """What the CPU engine has found."""
    contacts = engine.detector.contacts
    chosen = [np.arange(start, start + count) for start, count in zip(contacts.start, contacts.count)]
    return sorted_contacts(contacts, np.concatenate([EMPTY, *chosen]))


def to_device(struct, arrays):
    """A struct of arrays, in the types that it asks for."""
    made = struct()
    for name, field in struct.vars.items():
        kind = field.type
        values = np.zeros((0,) * kind.ndim) if arrays[name].size == 0 else arrays[name]
        setattr(made, name, wp.array(values, dtype=kind.dtype, ndim=kind.ndim, device=DEVICE))
    return made


def pairs_of(detector):
    """(a, b, first of each body) of the pairs that the CPU's broad phase has found."""
    capacity, counts = detector.pair_capacity, detector.pairs.count
    chosen = np.concatenate([EMPTY, *(np.arange(t * capacity, t * capacity + count) for t, count in enumerate(counts))])
    a, b = detector.pairs.a[chosen], detector.pairs.b[chosen]
    assert (np.diff(a) >= 0).all()
    return a, b, np.searchsorted(a, np.arange(len(detector.order) + 1))


def search(engine, arrays=None):
    """(contacts, first, number, total) as ``find_contacts_by_shape_pairs`` returns them."""
    detector, rules = engine.detector, engine.rules
    proxies = to_device(structs.Proxies, detector.proxies._asdict())
    a, b, first = pairs_of(detector)
    pairs = to_device(structs.Pairs, {"a": a, "b": b, "first": first})
    margin = structs.Margin()
    margin.absolute, margin.share = rules.margin
    shapes = Shapes(engine.library, detector.shapes.method)
    arrays = DeviceBuffers(DEVICE) if arrays is None else arrays
    return find_contacts_by_shape_pairs(proxies, pairs, len(a), len(detector.order), margin, rules.step, shapes, arrays, DEVICE)


def on_device(engine, arrays=None):
    contacts, first, number, total = search(engine, arrays)
    first, number = first.numpy(), number.numpy()
    assert len(first) == len(number) == len(engine.detector.order) and number.sum() == total == len(contacts.a)
    assert (first + number <= total).all() and (first[1:] == (first + number)[:-1]).all()
    plain = {name: getattr(contacts, name).numpy() for name in Found._fields}
    return sorted_contacts(Found(**plain), slice(None))
