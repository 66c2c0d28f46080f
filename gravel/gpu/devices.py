"""Devices: which there are, and how many threads suit each."""

import contextlib
import functools
import os
import sys
import tempfile
from typing import Any

import numpy as np
import warp as wp

from gravel.errors import DeviceError

WARP_CPU = "warp:cpu"
WORKERS = 1 << 18  # threads of a kernel that takes the rows of a problem in turns: enough to fill a large GPU
REDUCERS = 512  # threads that add up what those have found
LOCAL_RANKS = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")  # which process of this machine this is


@functools.cache
def start_warp() -> None:
    """Warp says what it has found, and complains where there is no GPU: nobody has asked yet."""
    wp.config.log_level = max(wp.config.log_level, wp.LOG_ERROR)
    with tempfile.TemporaryFile("w+") as kept, _stderr_to(kept):
        wp.init()


@contextlib.contextmanager
def _stderr_to(file):
    """What compiled code prints goes to a file."""
    sys.stderr.flush()
    own = os.dup(2)
    try:
        os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


def device_names() -> list[str]:
    """The devices that Warp can compute on here, as users name them."""
    start_warp()
    return [WARP_CPU, *(device.alias for device in wp.get_cuda_devices())]


def describe_devices() -> dict[str, str]:
    """The devices by name, and what each is."""
    about = {WARP_CPU: "the kernels of the GPU engine on one thread of the CPU"}
    for name in device_names()[1:]:
        device = wp.get_device(name)
        about[name] = f"{device.name}, {device.total_memory / 1e9:.0f} GB, sm_{device.arch}"
    return about


def find_device(name: str) -> wp.Device:
    """The device of a name: ``warp:cpu``, ``cuda:1``, or ``cuda``: the first GPU or, of several processes of one machine, another for each
    as far as there are."""
    there = device_names()
    gpus = there[1:]
    wanted = gpus[_local_rank() % len(gpus)] if name == "cuda" and gpus else name
    if wanted not in there:
        raise DeviceError(f"device {name!r} is not there; this machine has 'cpu' and, through Warp, {', '.join(map(repr, there))}")
    return wp.get_device("cpu" if wanted == WARP_CPU else wanted)


def _local_rank() -> int:
    return next((int(os.environ[name]) for name in LOCAL_RANKS if os.environ.get(name, "").isdigit()), 0)


def workers_of(device: wp.Device) -> int:
    """Threads of a kernel that takes rows in turns."""
    return WORKERS if device.is_cuda else 1


def to_host(array: wp.array) -> np.ndarray:
    """A copy on the host. (Of arrays in the host's own memory, too: what is written there must be sent back on every device.)"""
    return np.array(array.numpy())


def sent(values: np.ndarray, dtype: Any, device: wp.Device) -> wp.array:
    """A small new array on the device."""
    return wp.array(values, dtype=dtype, device=device, ndim=np.ndim(values))


def to_device(values: np.ndarray, array: wp.array) -> None:
    """The array := values."""
    array.assign(np.ascontiguousarray(values))
