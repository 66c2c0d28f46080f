"""What all tests share: the devices that tests of engines run on."""

import pytest

from gravel import engine

ASKED_BY = ("simulation", "detection", "queries", "batches")  # modules that make engines


@pytest.fixture(params=engine.DEVICES)
def device(request, monkeypatch):
    """Each device in turn: whatever a test simulates or detects, it does there. ``pytestmark = pytest.mark.usefixtures("device")``
    makes all tests of a file tests of every engine."""

    def make_engine(device="cpu", *settings, **named):
        return engine.make_engine(request.param, *settings, **named)

    for module in ASKED_BY:
        monkeypatch.setattr(f"gravel.{module}.make_engine", make_engine)
    return request.param
