"""Logs of measures: what they hold, how they are read by others, and what is left when a run is killed."""

import functools
import os
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from test_bad_input import refuse
from test_stress_and_structure import stack

import gravel as gv
from gravel.cli import main
from gravel.measures import Log


def test_a_csv_log_holds_what_was_measured(tmp_path):
    sim, seen, box = stack(), [], ((-1, -1, 0), (1, 1, 1))
    stress = functools.partial(gv.measures.stress, region=box)
    log = Log(tmp_path / "log.csv", energy=gv.measures.kinetic_energy, stress=stress, height=lambda s: s.positions[2, 2])
    flow = gv.measures.MassFlow((0, 0, 0), (0, 0, 1))
    log.measures["flow"] = flow
    start = sim.time
    sim.run(start + 0.01, observers=[log, lambda s: seen.append((s.time, gv.measures.stress(s, box)[2, 2], s.positions[2, 2]))])
    names, units = (line.split(",") for line in (tmp_path / "log.csv").read_text().splitlines()[:2])  # flushed, though not closed
    energies, tensor = ["translational", "rotational", "total"], [a + b for a in "xyz" for b in "xyz"]
    assert names == ["time", *(f"energy_{e}" for e in energies), *(f"stress_{t}" for t in tensor), "height", "flow"]
    assert units == ["# s", *["J"] * 3, *["Pa"] * 9, "", "kg"]
    table = np.genfromtxt(tmp_path / "log.csv", delimiter=",", names=True)
    times, stresses, heights = map(np.array, zip(*seen))
    assert (
        np.array_equal(table["time"], times) and np.array_equal(table["stress_zz"], stresses) and np.array_equal(table["height"], heights)
    )
    log.close()


def test_rows_come_every_so_many_seconds(tmp_path):
    sim = stack()
    start = sim.time
    with Log(tmp_path / "log.h5", every=0.02, energy=gv.measures.potential_energy) as log:
        sim.run(start + 0.1, observers=[log])
        sim.run(start + 0.2, observers=[log])  # a second run goes on with it
    with h5py.File(tmp_path / "log.h5") as file:
        assert set(file) == {"time", "energy"} and file["energy"].attrs["unit"] == "J"
        assert np.allclose(np.diff(file["time"]), 0.02) and len(file["time"]) == 10
        assert np.allclose(file["energy"], gv.measures.potential_energy(sim), rtol=1e-3)


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_run_that_is_killed_keeps_its_rows(tmp_path):
    script = """
import os, signal
import gravel as gv
scene = gv.Scene()
scene.add_body(gv.Sphere(0.1), (0, 0, 1))
sim = gv.Simulation(scene, 1e-3)
logs = [gv.measures.Log("log" + ending, energy=gv.measures.potential_energy) for ending in (".csv", ".h5")]
sim.run(1.0, observers=[*logs, lambda s: os.kill(os.getpid(), signal.SIGKILL) if s.steps == 20 else None])
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 22
    with h5py.File(tmp_path / "log.h5") as file:
        assert len(file["energy"]) == 20


def test_bad_logs_are_refused(tmp_path):
    energy = gv.measures.kinetic_energy
    refuse(lambda: Log(tmp_path / "log.txt", energy=energy), ".csv", "log.txt")
    refuse(lambda: Log(tmp_path / "none" / "log.csv", energy=energy), "none", error=FileNotFoundError)
    refuse(lambda: Log(tmp_path / "log.csv"), "measure")
    refuse(lambda: Log(tmp_path / "log.csv", energy=3.0), "energy", "3.0", error=TypeError)
    refuse(lambda: Log(tmp_path / "log.csv", time=energy), "time")
    refuse(lambda: Log(tmp_path / "log.csv", every=0.0, energy=energy), "every", "0")
    sim = stack()
    refuse(lambda: Log(tmp_path / "log.csv", a=lambda s: "high")(sim), "a", "'high'", error=TypeError)
    refuse(lambda: Log(tmp_path / "log.csv", a=lambda s: np.nan)(sim), "a", "nan")
    growing = Log(tmp_path / "log.csv", a=lambda s: np.zeros(s.steps))
    growing(sim)
    sim.step()
    refuse(lambda: growing(sim), "same numbers", "log.csv")


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, [str(w) for w in words])


def test_the_command_line_saves_contacts_and_plots_logs_and_measures(call, tmp_path):
    with Log(tmp_path / "log.csv", energy=gv.measures.kinetic_energy, stress=gv.measures.stress, z=gv.measures.coordination) as log:
        stack().run(0.05, observers=[log])
    common = ("run", "pile", "--bodies", 30, "--time", 0.3, "--quiet", "--no-picture")
    assert call(*common, "-o", "a.vtkhdf", "--contacts").exit_code == 0
    assert call(*common[:4], "--time", 0.02, "--quiet", "--no-picture", "-o", "b.vtkhdf").exit_code == 0
    with gv.open_result("a.vtkhdf") as result:
        assert len(result.contacts(-1)) > 0
    for words, name in (
        (("log.csv",), "log-plot.png"),
        (("a.vtkhdf", "--measure", "stress"), "a-stress.png"),
        (("a.vtkhdf", "--measure", "coordination"), "a-coordination.png"),
        (("b.vtkhdf", "--measure", "kinetic-energy", "-o", "k.png"), "k.png"),
    ):
        done = call("plot", *words)
        assert done.exit_code == 0, done.output
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"
    for words, said in (
        (("b.vtkhdf", "--measure", "stress"), "--contacts"),
        (("b.vtkhdf", "--measure", "stres"), "did you mean 'stress'"),
        (("log.csv", "--joints"), "log.csv"),
        (("b.vtkhdf", "--joints", "--measure", "stress"), "one of them"),
    ):
        done = call("plot", *words)
        assert done.exit_code == 1 and said in done.output


@pytest.mark.parametrize(
    "content", ["", "a,b\n", "time,a\n# s,m\n1,two\n", "x,a\n# s,m\n1,2\n", "time,a\n# s,m\n", "time,a\n# s,m\n1\n", "\xff\0"]
)
def test_what_is_no_log_is_refused_by_name(call, tmp_path, content):
    (tmp_path / "bad.csv").write_bytes(content.encode("latin1"))
    done = call("plot", "bad.csv")
    assert done.exit_code == 1 and "bad.csv" in done.output


def test_what_does_not_fit_yet_is_nan_in_a_log_and_does_not_end_the_run(tmp_path):
    """A bed that has no slope yet, by a function that does not tell the shape of its numbers."""
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.05), [(0.1 * i, 0.1 * j, 0.1 * ((7 * i + 3 * j) % 5)) for i in range(8) for j in range(3)])
    sim = gv.Simulation(scene, 1e-4)
    log = gv.measures.Log(tmp_path / "a.csv", angle=lambda sim: gv.measures.dynamic_angle(sim, "y"))
    sim.run(until=2e-4, observers=[log])
    log.close()
    rows = (tmp_path / "a.csv").read_text().splitlines()
    assert rows[0] == "time,angle" and [row.split(",")[1] for row in rows[2:]] == ["nan", "nan"]
