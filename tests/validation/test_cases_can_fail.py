"""A test of the tests: an engine that gets its friction, gravity, restitution or inertia slightly wrong misses the bounds of cases.

The fault goes in where the engine is told: into its rules (``gravel.engine.Rules``) and into the bodies' inverse masses. The formulas of
the cases know nothing of it.
"""

import numpy as np
import pytest

from gravel import scene as scenes
from gravel.model.materials import PAIR_FIELDS
from gravel.running import rules
from gravel.validation import CASES

FAULTS = {  # factor, and cases that must see it, at least three
    "friction": (0.97, ["sliding-block", "slipping-ball", "belt", "oblique-impact", "turntable", "incline", "block-set-sliding"]),
    "gravity": (1.01, ["free-flight", "sliding-block", "slipping-ball", "bouncing-ball", "stack", "loaded-chain", "nut-on-a-screw"]),
    "restitution": (
        0.98,
        ["two-balls", "cradle", "bouncing-ball", "oblique-impact", "frictional-cooling", "dropped-sideways", "restitution-by-angle"],
    ),
    "inertia": (1.05, ["intermediate-axis", "symmetric-top", "slipping-ball", "belt", "oblique-impact", "eulers-disk", "turntable"]),
}


def wrong_contact_values(name, factor):
    """Makes rules in which a contact value is off."""

    def make(*, contact_values, **values):
        contact_values = contact_values.copy()
        contact_values[..., PAIR_FIELDS.index(name)] *= factor
        return simulation_rules(contact_values=contact_values, **values)

    return make


def wrong_gravity(factor):
    return lambda *, gravity, **values: simulation_rules(gravity=factor * np.asarray(gravity), **values)


def wrong_inverse_masses(factor):
    """The second principal moment of every body is off; of bodies whose moments are alike all three, since balls have one to the engine."""

    def make(*values):
        inverse = np.array(inverse_masses(*values))
        alike = inverse[..., 1] == inverse[..., 3]
        inverse[..., 2] /= factor
        inverse[..., [1, 3]] /= np.where(alike, factor, 1.0)[..., None]
        return inverse

    return make


simulation_rules, inverse_masses = rules.Rules, scenes._inverse_masses


@pytest.fixture
def fault(request, monkeypatch):
    """Of this name, by its factor or without (factor 1)."""
    name, factor = request.param
    if name == "inertia":
        monkeypatch.setattr(scenes, "_inverse_masses", wrong_inverse_masses(factor))
    else:
        monkeypatch.setattr(rules, "Rules", wrong_gravity(factor) if name == "gravity" else wrong_contact_values(name, factor))


@pytest.mark.parametrize(
    "fault, name",
    [pytest.param((kind, factor), name, id=f"{kind}-{name}") for kind, (factor, names) in FAULTS.items() for name in names],
    indirect=["fault"],
)
@pytest.mark.parametrize("settings", ["defaults", "tight"])
def test_a_wrong_engine_misses_the_bound(fault, name, settings):
    outcome = CASES[name].run(settings)
    assert not outcome.passed, f"{outcome.error} {outcome.measure}, allowed {outcome.bound}"


@pytest.mark.parametrize("fault", [(kind, 1.0) for kind in FAULTS], indirect=True, ids=list(FAULTS))
def test_it_is_the_fault_that_is_seen(fault):
    """With a factor of one, the same way in changes nothing."""
    assert CASES["slipping-ball"].run("tight").passed and CASES["two-balls"].run("tight").passed


def test_every_fault_is_seen_by_three_cases():
    assert all(len(set(names)) >= 3 for _, names in FAULTS.values())
