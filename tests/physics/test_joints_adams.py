"""Single joints and springs against time series that ADAMS computed, from the test data of Project Chrono.

The data are not part of the project: these tests skip where the folder ``../shared/data/joints`` (from the project's root) is
missing. ``python tests/physics/test_joints_adams.py`` prints the table of errors, and with the name of a file draws them there, as in
``docs/_static/adams.svg``.

An error is the largest over a series of 5 s (501 rows), as a share of the largest norm in that series. The files give six or
seven digits. Against an integration with tight tolerances the series of pendulums and distances are good to 4e-6 in position,
5e-5 in velocity and 5e-5 in force, but for Spherical_Case01, which is off by 5e-4.
"""

import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import gravel as gv

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "joints"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="reference data are not here: ../shared/data/joints")

STEP, ROW = 5e-4, 1e-2  # s, of the simulation and of the series
QUANTITIES = {"position": "Pos", "velocity": "Vel", "turn": "Quat", "spin": "Avel", "force": "Rforce", "torque": "Rtorque"}
FLOOR = {"position": 1.0, "velocity": 1.0, "turn": 1.0, "spin": 1.0, "force": 9.80665, "torque": 2 * 9.80665}  # of series of zeros

# What the project asks for at this step, and what it aims at: ten times less.
BAR = {"position": 1e-3, "velocity": 1e-3, "turn": 1e-3, "spin": 1e-3, "force": 2e-2, "torque": 2e-2, "violation": 1e-5}
AIM = {name: bar / 10 for name, bar in BAR.items()}


class Case(NamedTuple):
    series: str  # folder and name of the files
    model: str  # .adm file, or None
    stiffness: float = 0.0  # of the spring, N/m or N m/rad
    damping: float = 0.0
    hardening: float = 0.0  # N m/rad^2: the stiffness grows by so much times |angle|
    first: int = 0  # row to start from


# The .adm files of the springs are of other runs than the series: the numbers here are those of Chrono's tests of the two kinds
# of springs, and test_springs_of_the_series_are_those_of_the_cases finds them in the series.
# TranSpring_Case01 begins at length zero, where a spring has no direction: it starts a tenth of a second later.
CASES = {
    "revolute 1": Case("revolute_joint/Revolute_Case01", "test_Revolute_Case01"),
    "revolute 2": Case("revolute_joint/Revolute_Case02", "test_Revolute_Case02"),
    "spherical 1": Case("spherical_joint/Spherical_Case01", "test_Spherical_Case01"),
    "spherical 2": Case("spherical_joint/Spherical_Case02", "test_Spherical_Case02"),
    "prismatic 1": Case("prismatic_joint/Prismatic_Case01", "test_Prismatic_Case01"),
    "prismatic 2": Case("prismatic_joint/Prismatic_Case02", "test_Prismatic_Case02"),
    "prismatic 3": Case("prismatic_joint/Prismatic_Case03", "test_Prismatic_Case03"),
    "distance 1": Case("distance_constraint/Distance_Case01", "test_Distance_Case01"),
    "distance 2": Case("distance_constraint/Distance_Case02", "test_Distance_Case02"),
    "distance 3": Case("distance_constraint/Distance_Case03", "test_Distance_Case03"),
    "spring 1": Case("transpring_force/TranSpring_Case01", None, 10.0, 0.5, first=10),
    "spring 2": Case("transpring_force/TranSpring_Case02", None, 100.0, 5.0),
    "rotational spring 1": Case("rotspring_force/RotSpring_Case01", "test_RotSpring_Case01", 200.0, 10.0),
    "rotational spring 2": Case("rotspring_force/RotSpring_Case02", "test_RotSpring_Case01", 50.0, 10.0, 10.0),
}

# Where the aim is not reached with a margin, the bar holds. Spherical_Case01: the series itself is off, as
# test_plane_pendulums_against_integration shows. Distance_Case02: at 3.15 s the pole whips round in 4 ms, eight steps.
AT_THE_BAR = {
    "spherical 1": ("position", "velocity", "turn", "spin"),
    "distance 2": tuple(BAR),
    "distance 3": ("spin", "violation"),
}


# --- the files
@lru_cache
def read_series(name):
    """{quantity: (501, 3 or 4)} of one case."""
    return {what: np.loadtxt(DATA / f"{name}_ADAMS_{file}.txt", skiprows=3)[:, 1:] for what, file in QUANTITIES.items()}


def read_model(name):
    """The statements of an .adm file, {(kind, id): {key: value}}; a statement goes on in the lines that begin with a comma."""
    lines = [line.rstrip() for line in (DATA / "models" / f"{name}.adm").read_text().splitlines() if not line.startswith("!")]
    statements = {}
    for text in re.sub(r"\n\s*,", " ,", "\n".join(lines[1:])).splitlines():
        found = re.match(r"(PART|MARKER|JOINT|GCON|ACCGRAV)/(\d*)\s*,?(.*)", text)
        if not found:
            continue
        kind, number, rest = found.groups()
        values, key = {}, None
        for item in rest.split(","):
            if "=" in item:
                key, value = (part.strip() for part in item.split("=", 1))
                values[key] = [value]
            elif key is None:
                values[item.strip()] = []
            else:
                values[key].append(item.strip())
        statements[kind, int(number or 0)] = values
    return statements


def marker(model, number):
    """Position and orientation of a marker in the world, where parts are given too."""
    values = model["MARKER", int(number)]
    place = np.array([float(x) for x in values.get("QP", "000")])
    angles = [float(x.rstrip("D")) for x in values.get("REULER", "000")]
    return place, Rotation.from_euler("ZXZ", angles, degrees=True)


def quaternion(turn):
    return np.roll(turn.as_quat(), 1)


# --- the simulation
def scene_of(case):
    """(scene with the one body, joints that act on it, point on the ground from which the body slides away or None)."""
    start = {what: values[case.first] for what, values in read_series(case.series).items()}
    body = {"mass": 1.0, "inertia": (0.04, 0.1, 0.1)}
    if case.model is None:
        scene = gv.Scene(gravity=(0, 0, -9.80665))
        pole = scene.add_body(
            gv.Sphere(0.1), start["position"], quaternion=start["turn"], velocity=start["velocity"], angular_velocity=start["spin"], **body
        )
        rest = np.linalg.norm(read_series(case.series)["position"][0])
        spring = gv.Spring(None, pole, point_b=start["position"], stiffness=case.stiffness, damping=case.damping, rest=rest)
        return scene, [scene.add_joint(spring)], None
    model = read_model(case.model)
    scene = gv.Scene(gravity=(0, 0, float(model["ACCGRAV", 0]["KGRAV"][0])))
    part = model["PART", 2]
    body = {"mass": float(part["MASS"][0]), "inertia": [float(x) for x in part["IP"]]}
    place, turn = marker(model, part["CM"][0])
    pole = scene.add_body(gv.Sphere(0.1), place, quaternion=quaternion(turn), **body)
    if ("GCON", 1) in model:
        on_ground, on_pole = (marker(model, number)[0] for number in ("0102", "0202"))
        return scene, [scene.add_joint(gv.Distance(None, pole, on_ground, point_b=on_pole, length=2.0))], None
    joint = model["JOINT", 1]
    point, turn = marker(model, joint["I"][0])
    assert np.allclose(point, marker(model, joint["J"][0])[0])
    kind = {"REVOLUTE": gv.Revolute, "SPHERICAL": gv.Spherical, "TRANSLATIONAL": gv.Prismatic}
    kind = next(kind[key] for key in joint if key in kind)
    joints = [scene.add_joint(kind(None, pole, point, turn.as_matrix()[:, 2]))]
    if case.hardening:
        law = {"force": lambda x, rate: -(case.stiffness + case.hardening * abs(x)) * x - case.damping * rate}
    else:
        law = {"stiffness": case.stiffness, "damping": case.damping}
    if case.stiffness:
        joints.append(scene.add_joint(gv.RotationalSpring(None, pole, point, turn.as_matrix()[:, 2], **law)))
    return scene, joints, point if kind is gv.Prismatic else None


@lru_cache
def simulate(name, step=STEP):
    """{quantity: (rows, n)} and the largest violation, m. Force and torque are on the ground, about its marker, in the world frame."""
    case, each = CASES[name], round(ROW / step)
    scene, joints, ground = scene_of(case)
    sim = gv.Simulation(scene, step, precision="double", threads=1)
    to_joint = None if ground is None else Rotation.from_quat(np.roll(sim.quaternions[0], -1)).inv().apply(ground - sim.positions[0])
    states, violation, count = [], 0.0, round(5.0 / step) - case.first * each + 3
    means = np.full((count, 2, 3), np.nan)  # of force and torque over each step, where they are needed
    for n in range(count):
        if n % each == 0:
            states.append([np.array(x[0]) for x in (sim.positions, sim.velocities, sim.quaternions, sim.angular_velocities)])
        violation = max(violation, sim.step().joint_violation)
        if (n + 2) % each < 4:
            table = sim.joints
            force, torque = table.force[joints].sum(axis=0), table.torque[joints].sum(axis=0)
            if ground is not None:  # from about the point of the body to about that of the ground
                arm = sim.positions[0] + Rotation.from_quat(np.roll(sim.quaternions[0], -1)).apply(to_joint) - ground
                torque = torque + np.cross(arm - 0.5 * step * sim.velocities[0], force)  # the means are those of the step's middle
            means[n] = -force, -torque
    result = dict(zip(("position", "velocity", "turn", "spin"), (np.array(x) for x in zip(*states))))
    result["force"], result["torque"] = at_rows(means, len(states), each).swapaxes(0, 1)
    return result, violation


def at_rows(means, rows, each):
    """Values at the instants of the rows from means over steps: two before and two after it, to fourth order. NaN at the first."""
    k = np.arange(1, rows) * each
    values = 7 / 12 * (means[k - 1] + means[k]) - 1 / 12 * (means[k - 2] + means[k + 1])
    return np.concatenate([np.full_like(means[:1], np.nan), values])


def errors(name, step=STEP):
    """{quantity: error} of one case, and the largest violation of the joint, m."""
    case = CASES[name]
    found, violation = simulate(name, step)
    result = {}
    for what, wanted in read_series(case.series).items():
        wanted, got = wanted[case.first :], found[what]
        scale = np.linalg.norm(wanted, axis=1).max()
        scale = scale if scale > 1e-9 else FLOOR[what]
        if what == "turn":  # q and -q are one turn
            got = got * np.where((got * wanted).sum(axis=1) < 0, -1.0, 1.0)[:, None]
        off = np.linalg.norm(got - wanted, axis=1)
        result[what] = float(np.max(off[1:] if what in ("force", "torque") else off) / scale)
    return {**result, "violation": violation}


def table():
    """The errors of all cases, as text."""
    columns = list(BAR)
    lines = ["case".ljust(22) + "".join(what.rjust(11) for what in columns), "bar".ljust(22) + "".join(f"{BAR[w]:11.0e}" for w in columns)]
    for name in CASES:
        found = errors(name)
        lines.append(name.ljust(22) + "".join(f"{found[what]:11.1e}" for what in columns))
    return "\n".join(lines)


def draw(path):
    """The errors of all cases over what is asked of them, as a figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gravel", "font.size": 9}):
        figure, axis = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
        found = {name: errors(name) for name in CASES}
        for what, mark in zip(BAR, "osD^v<x"):
            shares = [max(found[name][what] / BAR[what], 1e-6) for name in CASES]  # zeros are drawn at the lower edge
            axis.plot(range(len(CASES)), shares, mark, ms=5, mfc="none", label=what)
        axis.axhline(1.0, color="black", lw=1)
        axis.set(yscale="log", ylabel="largest error over 5 s, of what is allowed", title="Joints and springs against ADAMS, h = 0.5 ms")
        axis.set_xticks(range(len(CASES)), list(CASES), rotation=40, ha="right")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7, ncols=4)
        figure.savefig(path, metadata={"Date": None})


# --- tests
MISSED = pytest.mark.xfail(
    strict=True, reason="the bars are missed at h = 5e-4 s: the pole whips round under a peak of 2730 N that is four steps wide"
)


@pytest.mark.parametrize("name", [pytest.param(name, marks=MISSED) if name == "distance 2" else name for name in CASES])
def test_adams(name):
    found = errors(name)
    allowed = {what: BAR[what] if what in AT_THE_BAR.get(name, ()) else AIM[what] for what in BAR}
    assert {what: value for what, value in found.items() if not value <= allowed[what]} == {}


@pytest.mark.slow
def test_whipping_pole_of_adams_with_a_smaller_step():
    """Distance_Case02 turns by 26 rad/s within 4 ms under 2730 N: with eight times smaller steps it is within all bars."""
    assert {what: value for what, value in errors("distance 2", STEP / 8).items() if not value <= BAR[what]} == {}


@pytest.mark.parametrize("name", ["revolute 1", "spherical 1"])
def test_plane_pendulums_against_integration(name):
    """(I + m l^2) a'' = m g l cos a, from the horizontal; both bodies swing in the x-z plane."""
    times = ROW * np.arange(501)
    run = solve_ivp(lambda _, y: (y[1], 2 * 9.80665 * np.cos(y[0]) / 4.1), (0, 5.01), (0, 0), "DOP853", times, rtol=1e-11, atol=1e-11)
    wanted = 2 * np.stack([np.cos(run.y[0]), 0 * times, -np.sin(run.y[0])], axis=1)
    assert np.linalg.norm(simulate(name)[0]["position"] - wanted, axis=1).max() < 1e-5 * 2
    off = np.linalg.norm(read_series(CASES[name].series)["position"] - wanted, axis=1).max() / 2
    assert (off > 4e-4) == (name == "spherical 1")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.stiffness])
def test_springs_of_the_series_are_those_of_the_cases(name):
    """Stiffness and damping of the cases give the forces of the series from its own positions and velocities."""
    case = CASES[name]
    rows = {what: values[1:] for what, values in read_series(case.series).items()}
    if case.model is None:
        length = np.linalg.norm(rows["position"], axis=1)
        rate = (rows["position"] * rows["velocity"]).sum(axis=1) / length
        stretch = length - np.linalg.norm(read_series(case.series)["position"][0])
        wanted = (case.stiffness * stretch + case.damping * rate)[:, None] * rows["position"] / length[:, None]
        given = rows["force"]
    else:
        angle = np.arctan2(-rows["position"][:, 2], rows["position"][:, 0])  # about +y
        wanted = (case.stiffness + case.hardening * abs(angle)) * angle + case.damping * rows["spin"][:, 1]
        wanted, given = wanted[:, None] * np.array([0, 1.0, 0]), rows["torque"]
    assert np.abs(given - wanted).max() < 1e-5 * np.abs(given).max()


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
    for file in sys.argv[1:]:
        draw(file)
