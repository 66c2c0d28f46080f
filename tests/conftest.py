"""What all tests share: the devices that tests of engines run on."""

import pytest

from gravel import engine

DEVICES = ("cpu", "warp:cpu")  # that every machine has
ASKED_BY = ("simulation", "detection", "queries", "batches")  # modules that make engines


@pytest.fixture(params=DEVICES)
def device(request, monkeypatch):
    """Each device in turn: whatever a test simulates or detects, it does there. ``pytestmark = pytest.mark.usefixtures("device")``
    makes all tests of a file tests of every engine."""

    def make_engine(device="cpu", precision="single", *settings, **named):
        precision = precision if request.param == "cpu" else "single"
        return engine.make_engine(request.param, precision, *settings, **named)

    def make_engine_for_simulation(device="cpu", precision="single", *settings, **named):
        if precision == "double" and request.param != "cpu":
            pytest.skip(f"asks for double precision, which {request.param} does not have")
        return make_engine(device, precision, *settings, **named)

    for module in ASKED_BY:
        monkeypatch.setattr(f"gravel.{module}.make_engine", make_engine_for_simulation if module == "simulation" else make_engine)
    return request.param
