"""Arrays on a device that are kept between steps and grow."""

import numpy as np
import warp as wp

MEGABYTE = 1e6


class DeviceBuffers:
    def __init__(self, device):
        self.device = device
        self.held, self.views = {}, {}

    def array(self, name, rows, shape=(), dtype=wp.float32):
        """An array of so many rows; its content is not kept. A name has one type and shape of row for life."""
        view = self.views.get(name)
        if view is not None and view.shape[0] == rows:
            return view
        held = self.held.get(name)
        if held is None or held.shape[0] < rows:
            room = rows if held is None else max(rows, held.shape[0] + held.shape[0] // 4)
            self.held[name] = self.views[name] = held = view = None  # the old one goes before the new one comes
            held = self.held[name] = allocate(name, (max(room, 1), *shape), dtype, self.device)
        view = self.views[name] = held[:rows]
        return view


def allocate(name, shape, dtype, device):
    """A new array of zeros; or one sentence on what there was no room for."""
    try:
        return wp.zeros(shape, dtype=dtype, device=device)
    except (RuntimeError, MemoryError) as error:
        size = float(np.prod(shape)) * wp.types.type_size_in_bytes(dtype) / MEGABYTE
        raise MemoryError(f"device {device.alias} has no room for {size:.3g} MB of {name.replace('_', ' ')}") from error
