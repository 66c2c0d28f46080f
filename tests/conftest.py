"""What all tests share: the devices that tests of engines run on, that Ctrl-C is heard, and that memory is given back."""

import contextlib
import ctypes
import gc
import signal

import pytest

from gravel import engine

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts what runs in its background so; tests of Ctrl-C need to hear it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Those that every machine has. The physics of the GPU engine takes long on one thread: `pytest -m slow` runs it; tests/gpu is quick.
DEVICES = ("cpu", pytest.param("warp:cpu", marks=pytest.mark.slow))
ASKED_BY = ("simulation", "detection.find", "detection.queries", "detection.batches")  # modules that make engines


@pytest.fixture(params=DEVICES)
def device(request, monkeypatch):
    """Each device in turn: whatever a test simulates or detects, it does there. ``pytestmark = pytest.mark.usefixtures("device")``
    makes all tests of a file tests of every engine."""

    def make_engine(device="cpu", precision="single", *settings, **named):
        if precision == "double" and request.param != "cpu":
            pytest.skip(f"asks for double precision, which {request.param} does not have")
        return engine.make_engine(request.param, precision, *settings, **named)

    for module in ASKED_BY:
        monkeypatch.setattr(f"gravel.{module}.make_engine", make_engine)
    return request.param


@pytest.fixture(scope="module", autouse=True)
def memory_given_back():
    """After each file: what its tests no longer hold goes back to the system. Compilers take gigabytes in small pieces, which the C library
    would keep."""
    yield
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # no such C library
        ctypes.CDLL("libc.so.6").malloc_trim(0)
