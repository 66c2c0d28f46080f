"""Devices: which there are, and how many threads suit each."""

import numpy as np
import warp as wp

wp.config.log_level = max(wp.config.log_level, wp.LOG_ERROR)
WARP_CPU = "warp:cpu"
WORKERS = 1 << 18  # threads of a kernel that takes the rows of a problem in turns: enough to fill a large GPU
REDUCERS = 512  # threads that add up what those have found


def device_names() -> list[str]:
    """The devices that Warp can compute on here, as users name them."""
    wp.init()
    return [WARP_CPU, *(device.alias for device in wp.get_cuda_devices())]


def find_device(name: str) -> wp.Device:
    """The device of a name: ``warp:cpu``, ``cuda`` (the first GPU) or ``cuda:1``."""
    there = device_names()
    wanted = "cuda:0" if name == "cuda" else name
    if wanted not in there:
        raise ValueError(f"device {name!r} is not there; this machine has 'cpu' and, through Warp, {', '.join(map(repr, there))}")
    return wp.get_device("cpu" if wanted == WARP_CPU else wanted)


def workers_of(device: wp.Device) -> int:
    """Threads of a kernel that takes rows in turns."""
    return WORKERS if device.is_cuda else 1


def to_host(array: wp.array) -> np.ndarray:
    """A copy on the host. (Of arrays in the host's own memory, too: what is written there must be sent back on every device.)"""
    return np.array(array.numpy())


def to_device(values: np.ndarray, array: wp.array) -> None:
    """The array := values."""
    array.assign(np.ascontiguousarray(values))
