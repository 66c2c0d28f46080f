"""The contact cache (``gravel.host.contact_cache``) in two places: on the device, where a step leaves it and the next one reads it, and on
the host, for whoever asks."""

from typing import Any

import numpy as np
import warp as wp

from gravel.gpu import structs
from gravel.gpu.devices import to_device, to_host
from gravel.host.contact_cache import ContactCache

TYPES = wp.int64, wp.int64, wp.int32, wp.float32, wp.float32, wp.int32, wp.int32  # of ``ContactCache``


class MirroredCache:
    def __init__(self, buffers, cache: ContactCache):
        self.buffers, self._host = buffers, cache
        self._device: Any = None
        self._newer_on_device = False
        self._odd = False  # which of two sets of arrays the next step fills: the last step's is still being read

    def on_host(self) -> ContactCache:
        if self._newer_on_device:
            self._host = ContactCache(*(to_host(getattr(self._device, name)) for name in ContactCache._fields))
            self._newer_on_device = False
        return self._host

    def replace(self, cache: ContactCache) -> None:
        """The host has another one."""
        self._host, self._newer_on_device, self._device = cache, False, None

    def on_device(self) -> Any:
        if self._device is None:
            self._device = structs.ContactCache()
            for name, dtype in zip(ContactCache._fields, TYPES):
                values = getattr(self._host, name)
                target = self.buffers.array(f"known_{name}", len(values), values.shape[1:], dtype)
                if len(values):
                    to_device(values, target)
                setattr(self._device, name, target)
        return self._device

    def room(self, contacts: int, rows: int, rolling: bool) -> Any:
        """Arrays on the device for the contacts of a step, to be filled and then given to ``keep``."""
        array, cache, which = self.buffers.array, structs.ContactCache(), "odd" if self._odd else "even"
        cache.a, cache.b = array(f"{which}_a", contacts, dtype=wp.int64), array(f"{which}_b", contacts, dtype=wp.int64)
        cache.feature, cache.impulse = array(f"{which}_feature", contacts, dtype=wp.int32), array(f"{which}_impulse", contacts, (3,))
        cache.torque = array(f"{which}_torque", contacts if rolling else 0, (3,))
        cache.first, cache.number = array(f"{which}_first", rows, dtype=wp.int32), array(f"{which}_number", rows, dtype=wp.int32)
        return cache

    def keep(self, cache: Any) -> None:
        self._device, self._newer_on_device, self._odd = cache, True, not self._odd

    def sort(self, order: np.ndarray) -> None:
        """Row i := row order[i]."""
        cache = self.on_host()
        self.replace(cache._replace(first=cache.first[order], number=cache.number[order]))
