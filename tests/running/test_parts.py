"""The parts of a simulation (``gravel.running``): what is uploaded and when, who may change the engine, what a step's record tells."""

import gc
import threading

import numpy as np
import pytest

import gravel as gv
from gravel.running.exclusive import ExclusiveAccess
from gravel.running.prescribed import Prescribed
from gravel.running.step_times import StepTimes


def resting(**options):
    """A ball on a floor."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    ball = scene.add_body(gv.Sphere(0.1), (0, 0, 0.1))
    return gv.Simulation(scene, 1e-3, threads=1, **options), ball


# --- rules
def test_rules_are_uploaded_when_they_have_changed_and_only_then(monkeypatch):
    sim, ball = resting()
    told, tell = [], sim.engine.set_rules
    monkeypatch.setattr(sim.engine, "set_rules", lambda rules: (told.append(rules), tell(rules)))
    steel = gv.Material(friction=0.2)
    changes = [
        lambda: setattr(sim, "gravity", (0, 0, -1.6)),
        lambda: sim.set_pair(sim.material_of(0), sim.material_of(ball), friction=0.3),
        lambda: sim.add_bodies(gv.Sphere(0.1), [(1, 0, 5)], steel),
        lambda: sim.set_material(ball, steel),
        lambda: sim.add_bodies(gv.ConvexHull(np.vstack([np.zeros(3), np.eye(3)])), [(5, 0, 5)], steel),
        lambda: sim.add_joint(gv.Spherical(None, ball, point=(0, 0, 1))),
    ]
    sim.step()
    for number, change in enumerate(changes, 1):
        change()
        for _ in range(3):
            sim.step()
        assert len(told) == 1 + number
    sim.add_bodies(gv.Sphere(0.1), [(9, 0, 5)], steel)  # nothing new but its place
    sim.step()
    assert len(told) == 1 + len(changes)
    assert told[1].gravity[2] == -1.6 and told[-1].contact_values[..., 0].min() == pytest.approx(0.2)


def test_materials_are_as_before_after_any_interruption_of_their_change(monkeypatch):
    sim, ball = resting()

    def interrupted(values):
        raise KeyboardInterrupt

    monkeypatch.setattr(sim._rules, "check", interrupted)
    was = sim.material_of(ball)
    with pytest.raises(KeyboardInterrupt):
        sim.set_material(ball, gv.Material(friction=0.9))
    assert sim.material_of(ball) is was and len(sim.materials) == 1
    assert (sim.bodies.tag[:, 1] == 0).all()


# --- exclusive access
def test_a_second_claim_is_refused_in_this_thread_and_in_another():
    access, refused = ExclusiveAccess(), []

    def claim():
        try:
            with access.claim():
                pass
        except gv.SimulationError:
            refused.append(True)

    with access.claim():
        claim()
        thread = threading.Thread(target=claim)
        thread.start()
        thread.join()
    assert len(refused) == 2
    claim()
    assert len(refused) == 2


def test_a_claim_that_never_got_to_its_end_goes_with_its_object():
    """As after an interrupt within ``__exit__``."""
    access = ExclusiveAccess()
    access.claim().__enter__()
    gc.collect()
    with access.claim():
        pass


# --- contacts of the last step
def test_contacts_stay_known_until_a_step_has_begun():
    sim, ball = resting()
    sim.step()
    sim.positions[ball] = np.nan
    with pytest.raises(gv.SimulationError, match="positions of body 1"):
        sim.step()
    assert len(sim.contacts) == 1  # refused before it began
    sim.positions[ball] = (0, 0, 0.1)
    sim.set_motion(0, lambda t: (0, 0, np.nan))
    with pytest.raises(ValueError, match="the motion of body 0"):
        sim.step()
    assert not sim.knows_contacts
    sim.set_motion(0, None)
    sim.step()
    assert len(sim.contacts) == 1


# --- prescribed motion
@pytest.mark.parametrize("offset", [0.0, 0.005])
def test_driven_bodies_go_from_where_a_step_looks_to_where_the_next_one_will(offset):
    """A place x(t) = t^2 and a turn about z by t, against differences of these formulas."""

    class Curve:
        def pose(self, time, position, quaternion):
            return np.array([time**2, 0, 0]), np.array([np.cos(time / 2), 0, 0, np.sin(time / 2)])

    class Engine:
        def pick(self, name, ids):
            return np.array([Curve().pose(2.0 - since, None, None)[name == "quaternion"] for since in (0.5,)])

        def set_surfaces(self, ids, velocities):
            assert len(ids) == 0

    since, start, dt = 0.5, 2.0, 0.01
    prescribed = Prescribed(Engine(), {7: Curve()}, {7: (np.zeros(3), np.array([1.0, 0, 0, 0]), since)}, {})
    driven = prescribed.upload(StepTimes(start, dt, offset))
    look = start + offset - since
    assert driven.id.tolist() == [7]
    assert driven.position[0, 0] == pytest.approx(look**2, rel=1e-14)
    assert driven.velocity[0] == pytest.approx([((look + dt) ** 2 - look**2) / dt, 0, 0, 0, 0, 1.0], rel=1e-9, abs=1e-12)
    assert driven.end_position[0, 0] == pytest.approx((start + dt - since) ** 2, rel=1e-14)


# --- the record of a step
def test_a_report_names_the_stages_and_their_seconds():
    sim, _ = resting()
    report = [sim.step() for _ in range(2)][-1]
    around = ["copies", "motion", "meeting", "match", "impacts", "velocities", "assemble", "solve", "positions"]
    assert [stage for stage in report.seconds if stage in around] == around and len(report.seconds) > len(around)
    assert min(report.seconds.values()) >= 0.0 and report.step == sim.steps == 2 and report.time == sim.time
    assert (report.contacts, report.bodies, report.impacts, report.broken) == (1, 2, 0, 0)


def test_a_simulation_goes_away_with_its_last_reference():
    """No part holds the simulation, so that no collector has to come for its memory."""
    gc.collect()
    gc.disable()
    try:
        sim, ball = resting()
        sim.step()
        sim.positions[ball], engine = (0, 0, 0.1), __import__("weakref").ref(sim.engine)
        del sim
        assert engine() is None
    finally:
        gc.enable()
