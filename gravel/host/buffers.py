"""Arrays that are kept between steps and grow, and tuples of them."""

import numpy as np


class Buffers:
    def __init__(self, real):
        self.real = np.dtype(real)
        self.held, self.views, self.tuples = {}, {}, {}

    def array(self, name, n, columns=(), dtype=None):
        """An array of n rows; its content is not kept. A name has one type for life."""
        view = self.views.get(name)
        if view is not None and len(view) == n:
            return view
        held = self.held.get(name)
        if held is None or len(held) < n:
            room = n if held is None else max(n, len(held) + len(held) // 4)
            self.held[name] = self.views[name] = held = view = None  # the old one goes before the new one comes
            held = self.held[name] = np.zeros((room, *columns), self.real if dtype is None else np.dtype(dtype))
        view = self.views[name] = held[:n]
        return view

    def room(self, name):
        """Rows that an array has room for."""
        return len(self.held.get(name, ()))

    def kept(self, name, key, make):
        """A tuple of arrays, made anew only when its key (its sizes) changed: small scenes take many steps a second."""
        held = self.tuples.get(name)
        if held is None or held[0] != key:
            self.tuples[name] = held = None
            held = self.tuples[name] = key, make()
        return held[1]
