"""Packings that there are none of."""

import re

import pytest

import gravel as gv
from gravel.packing import relax


def test_a_pack_that_cannot_succeed_ends_with_what_was_reached(monkeypatch):
    """Two of the three rounds of shaking, the long ones, are left out where the first has not helped."""
    rounds, shake = [], relax.shake
    monkeypatch.setattr(relax, "shake", lambda *given: (rounds.append(given[2]), shake(*given))[1])
    with pytest.raises(ValueError, match=r"was not reached .* fitted at a fraction of 0\.(\d+)") as caught:
        gv.pack(gv.Sphere, gv.BoxRegion((0, 0, 0), (0.1, 0.1, 0.1)), fraction=0.9, sizes=gv.UniformSizes(0.005, 0.015), seed=1)
    assert rounds and set(rounds) == {relax.SHAKES[1]}
    assert 0.4 < float(re.search(r"at a fraction of (0\.\d+)", str(caught.value))[1]) < 0.7
