"""Arrays on a device that are kept between steps and grow."""

import math

import warp as wp


class DeviceBuffers:
    def __init__(self, device: wp.Device):
        self.device = device
        self.held: dict[str, wp.array] = {}
        self.views: dict[str, wp.array] = {}
        self.enough: dict[str, int] = {}  # numbers that are not known beforehand: what was enough last time, by name

    def array(self, name: str, rows: int, shape: tuple[int, ...] = (), dtype=wp.float32) -> wp.array:
        """An array of so many rows; its content is not kept. A name has one shape of its rows and one type for life."""
        view = self.views.get(name)
        if view is not None and view.shape[0] == rows:
            return view
        held = self.held.get(name)
        if held is None or held.shape[0] < rows:
            room = rows if held is None else max(rows, held.shape[0] + held.shape[0] // 4)
            self.held.pop(name, None), self.views.pop(name, None)
            held = view = None  # the old one goes before the new one comes
            held = self.held[name] = self._allocate(name, room, shape, dtype)
        view = self.views[name] = held[:rows] if held.shape[0] > rows else held
        return view

    def fresh(self, name: str, rows: int, dtype) -> wp.array:
        """A new array of zeros that its owner keeps."""
        made = self._allocate(name, rows, (), dtype)
        made.zero_()
        return made

    def _allocate(self, name, rows, shape, dtype):
        try:
            return wp.empty((rows, *shape), dtype=dtype, device=self.device)
        except (MemoryError, RuntimeError) as error:
            size = rows * math.prod(shape) * wp.types.type_size_in_bytes(dtype) / 1e6
            raise MemoryError(
                f"{self.device} has no room for {name!r}: {size:.0f} MB were asked for, beside {self.megabytes():.0f} MB that are kept"
            ) from error

    def megabytes(self) -> float:
        """MB that are kept."""
        return sum(array.capacity for array in self.held.values()) / 1e6
