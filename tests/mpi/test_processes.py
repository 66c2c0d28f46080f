"""Several processes, started by mpiexec for real, find what one finds. ``cases`` holds what they run."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import gravel as gv

HERE = pathlib.Path(__file__).parent
MPIEXEC = str(pathlib.Path(sys.executable).with_name("mpiexec"))
ENVIRONMENT = {**os.environ, "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
SMALL = ("contacts_of_all_kinds", "contacts_in_a_periodic_cell", "contacts_in_a_sheared_cell", "short_gas", "ffd")
LARGE = (
    *("settled_bed", "same_bits_again", "gradient_solvers", "wide_gauss_seidel", "machine_in_grains"),
    *("come_and_go", "own_bodies_from_the_start", "empty_parts", "local_arrays", "cut_anew"),
)


EIGHT = ("contacts_of_all_kinds", "short_gas")  # so many take turns on the cores of a small machine, for long
SLOW = pytest.mark.slow


def mpiexec(ranks, *arguments, **options):
    command = [MPIEXEC, "-n", str(ranks), sys.executable, "-m", "mpi4py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, env=ENVIRONMENT, **options)


def run_cases(ranks, names):
    done = mpiexec(ranks, HERE / "cases.py", *names)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line.pop("case"): line for line in lines}


@pytest.fixture(scope="module")
def found():
    """Results of the cases by number of processes; a job is started when its results are first asked for."""
    known = {}

    def ask(ranks):
        if ranks not in known:
            known[ranks] = run_cases(ranks, {1: SMALL + LARGE, 2: SMALL + LARGE, 8: EIGHT}.get(ranks, SMALL))
        return known[ranks]

    return ask


CASES = [*((case, ranks) for case in SMALL[:3] for ranks in (2, 3, 4)), pytest.param(SMALL[0], 8, marks=SLOW)]


@pytest.mark.parametrize("case, ranks", CASES)
def test_contacts_are_those_of_one_process(found, case, ranks):
    one, several = found(1)[case], found(ranks)[case]
    assert one["contacts"] > 300 and several == one


@pytest.mark.parametrize("ranks", [4, pytest.param(8, marks=SLOW)])
def test_a_gas_that_crosses_corners_loses_nobody(found, ranks):
    one, gas = found(1)["short_gas"], found(ranks)["short_gas"]
    assert gas["bodies"] == [300, 300] and gas["finite"]
    assert gas["momentum"] < 1e-14 and abs(gas["energy"]) < 1e-12
    assert abs(gas["impacts"] / one["impacts"] - 1) < 0.1
    # kinetic theory: pi d^2 n times the mean relative speed for each ball, with Carnahan and Starling's g(d) at 1 % of the volume; the
    # number in 0.1 s scatters by 3 %
    expected = 0.1 * 150 * np.pi * 0.04**2 * 300 * np.sqrt(2) * 20 * np.sqrt(8 / np.pi) * 1.026
    assert abs(gas["impacts"] / expected - 1) < 0.1


def test_a_device_for_each_process_finds_what_one_finds():
    """Here each has the kernels of the GPU engine on a thread of its own."""
    one, two = (run_cases(ranks, ["on_a_device"])["on_a_device"] for ranks in (1, 2))
    assert one["contacts"] > 200 and all(two[name] == one[name] for name in ("contacts", "pairs", "gaps"))
    for found in (one, two):
        assert found["momentum"] < 1e-6 and found["middle"] < 1e-7  # bodies meet, and their mass flies on
    assert abs(two["energy"] / one["energy"] - 1) < 0.02


def test_bodies_that_cross_several_parts_in_a_step_arrive():
    bodies = run_cases(5, ["fast_bodies"])["fast_bodies"]
    assert bodies["far"] and bodies["counts"] == [200] and bodies["off"] < 1e-12  # there and back again


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [4, 8])
def test_a_gas_for_long(ranks):
    gas = run_cases(ranks, ["long_gas"])["long_gas"]
    assert gas["bodies"] == [300, 300] and gas["finite"] and gas["momentum"] < 1e-13 and abs(gas["energy"]) < 1e-6


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ffd_gives_the_same_bits_on_any_number(found, ranks):
    assert found(ranks)["ffd"]["hashes"] == found(1)["ffd"]["hashes"]
    assert found(ranks)["ffd"]["residual"] == pytest.approx(found(1)["ffd"]["residual"], rel=1e-6)


def test_a_bed_settles_as_well_as_on_one_process(found):
    one, two = found(1)["settled_bed"], found(2)["settled_bed"]
    assert two["residual"] < 2 * one["residual"] and two["worst"] < 3 * one["worst"]
    assert two["penetration"] < max(2 * one["penetration"], 1e-5)
    assert two["height"] == pytest.approx(one["height"], rel=0.01) and two["bodies"] == one["bodies"] == 605


def test_the_same_bits_run_after_run(found):
    first, second = found(2)["same_bits_again"]["hashes"]
    assert first == second


def test_gradient_solvers_make_the_same_iterates(found):
    one, two = found(1)["gradient_solvers"], found(2)["gradient_solvers"]
    for name, numbers in one.items():
        assert two[name] == pytest.approx(numbers, rel=1e-5), name
        assert numbers[0] > 1e-3  # far from solved: there was something to do


def test_sweeps_over_boxes_find_the_same_velocities(found):
    one, two = found(1)["wide_gauss_seidel"], found(2)["wide_gauss_seidel"]
    assert two["energy"] == pytest.approx(one["energy"], rel=2e-3)
    assert np.abs(np.subtract(one["velocities"], two["velocities"])).max() < 2e-3


def test_a_machine_is_solved_by_one_process_wherever_it_reaches(found):
    one, two = found(1)["machine_in_grains"], found(2)["machine_in_grains"]
    assert one["touched"] and two["touched"]
    assert two["links"] == pytest.approx(one["links"], abs=2e-5)
    assert two["angles"] == pytest.approx(one["angles"], abs=2e-4) and two["violation"] < 1e-5


def test_bodies_come_and_go(found):
    one, two = found(1)["come_and_go"], found(2)["come_and_go"]
    assert one["counts"] == [25, 20, 20] and one["alive"] == 20
    assert two["counts"] == [28, 22, 22] and two["alive"] == 22
    assert two["new"] == one["new"] and two["own"] == [21, 22, 23, 24, 25, 26]  # no id twice
    assert two["low"] == pytest.approx(0.05, abs=1e-4)


def test_each_process_may_bring_its_own_bodies(found):
    one, two = found(1)["own_bodies_from_the_start"], found(2)["own_bodies_from_the_start"]
    assert two["ids"] == one["ids"] == list(range(5, 245)) and two["bodies"] == one["bodies"] == 245
    assert two["contacts"] == one["contacts"] and two["height"] == pytest.approx(one["height"], rel=1e-3)


def test_a_process_may_have_nothing_to_do(found):
    two = found(2)["empty_parts"]
    assert two["mine"] == [125, 0] and two["bodies"] == 125 and two["converged"]


def test_arrays_are_those_of_the_own_bodies(found):
    one, two = found(1)["local_arrays"], found(2)["local_arrays"]
    assert two["ids"] == list(range(205)) and two["stale"]
    assert two["rose"] == pytest.approx(one["rose"], rel=1e-6)


def test_impulses_go_with_their_contacts_when_space_is_cut_anew(found):
    one, two = found(1)["cut_anew"], found(2)["cut_anew"]
    assert two["bodies"] == [305, 305] and two["owned"][0] != two["owned"][1] and sum(two["owned"][1]) == 305
    assert two["pairs"][0] > 100 and two["pairs"][1] > 0.9 * two["pairs"][0] and two["pairs"][2] == 0
    assert two["lost"] == one["lost"] == 0


# --- files and faults
RUN = """
import sys
sys.path.insert(0, {here!r})
import warnings
warnings.simplefilter("ignore")
import gravel as gv
from cases import bed
start = sys.argv[1]
sim = gv.Simulation.load(start) if start != "-" else gv.Simulation(bed(300), 1 / 500, solver=gv.GaussSeidel(30))
start = sim.state_hash()
sim.run(sim.time + 0.04, "run.vtkhdf", 0.01, checkpoint=sys.argv[2])
end = sim.state_hash()
if sim.processes.rank == 0:  # lines of several processes may be mixed up
    print("start", start, flush=True)
    print("end", end, sim.report.bodies, flush=True)
"""


def run_script(ranks, folder, script, *arguments):
    (folder / "script.py").write_text(script.format(here=str(HERE)))
    done = mpiexec(ranks, "script.py", *arguments, cwd=folder)
    return done, {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.startswith(("start", "end"))}


def test_a_run_goes_on_with_another_number_of_processes(tmp_path):
    """4, then 2, then 3 processes, then one: every start is the last end to the bit, and the result is one."""
    last, start = None, "-"
    for k, ranks in enumerate((4, 2, 3)):
        done, said = run_script(ranks, tmp_path, RUN, start, f"state{k}.h5")
        assert done.returncode == 0, done.stderr[-2000:]
        assert last is None or said["start"][0] == last
        last, start = said["end"][0], f"state{k}.h5"
        assert said["end"][1] == "305"
    sim = gv.Simulation.load(tmp_path / start)
    assert sim.state_hash() == last and sim.steps == 60 and len(sim.contacts) > 100
    assert sim.step().residual < 1.0
    with gv.open_result(tmp_path / "run.vtkhdf") as result:
        assert np.allclose(result.times, 0.01 * np.arange(13))
        assert all(len(frame.ids) == 300 for frame in result)
        assert set(result[-1].ranks.tolist()) == {0, 1, 2} and set(result[0].ranks.tolist()) == {0, 1, 2, 3}


FAULT = """
import sys
sys.path.insert(0, {here!r})
import gravel as gv
from cases import bed
sim = gv.Simulation(bed(200), 1 / 500, domain=gv.Grid(2), bounds=((-1, -1, -1), (1, 1, 1.5)))
sim.velocities[sim.masses < 1e9] += (40, 0, 0)  # some go over to the other process before the step that is refused
sim.step()
if sim.processes.rank == 1:
    sim.velocities[0] = (0, 0, 1e6)
try:
    sim.step()
except gv.SimulationError as error:
    open(f"said{{sim.processes.rank}}.txt", "w").write(f"{{error}} {{sim.steps}}")
assert len(sim.ids) == len(sim.positions)
everything = sim.processes.allgather((sim.ids, sim.positions.copy(), sim.masses))
assert sorted(sum((ids.tolist() for ids, _, _ in everything), [])) == list(range(205))  # each is one's, also after a refusal
sim.velocities[:] = 0
sim.step()
if sim.processes.rank == 1:
    raise RuntimeError("this process has had enough")
sim.step()
"""


def test_what_one_refuses_all_refuse_and_an_error_ends_the_job(tmp_path):
    begun = time.monotonic()
    (tmp_path / "script.py").write_text(FAULT.format(here=str(HERE)))
    done = mpiexec(2, "script.py", cwd=tmp_path)
    said = [(tmp_path / f"said{rank}.txt").read_text() for rank in range(2)]
    assert all("would get a velocity that is not finite or leave the bounds in step 2" in line for line in said)
    assert all(line.endswith(" 1") for line in said)  # the step was not taken
    assert done.returncode != 0 and "this process has had enough" in done.stderr and time.monotonic() - begun < 60


KILL = """
import os, sys
sys.path.insert(0, {here!r})
import gravel as gv
from cases import bed
sim = gv.Simulation(bed(200), 1 / 500, domain=gv.Bisection())
if sim.processes.rank == 1:
    print("start", os.getpid(), flush=True)
sim.run(1000.0, checkpoint="state.h5", checkpoint_every=0.02)
"""


def test_a_process_that_is_killed_ends_the_job_and_the_last_checkpoint_loads(tmp_path):
    (tmp_path / "script.py").write_text(KILL.format(here=str(HERE)))
    command = [MPIEXEC, "-n", "2", sys.executable, "-m", "mpi4py", "script.py"]
    job = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    victim = int(job.stdout.readline().split()[1])
    deadline = time.monotonic() + 200
    while not (tmp_path / "state.h5").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(victim, signal.SIGKILL)
    job.communicate(timeout=60)
    assert job.returncode != 0
    sim = gv.Simulation.load(tmp_path / "state.h5")
    assert sim.steps % 10 == 0 and sim.alive.sum() == 205 and np.isfinite(sim.positions).all()


WRONG = {
    "Grid(3)": r"Grid\(3, 1, 1\) is for 3 processes, but there are 2",
    "4": r"domain must be a Grid, a Hexagons, a Bisection, \"auto\" or None, not 4",
    "Hexagons(width=-1.0)": "Hexagons width must be greater than 0, not -1.0",
}


@pytest.mark.parametrize("given", WRONG)
def test_a_domain_that_does_not_fit_is_refused(given, tmp_path):
    """By both processes. What is said is caught: the first that ends a job may cut off the words of the others."""
    script = "import gravel as gv\nfrom gravel import Grid, Hexagons, Bisection\nscene = gv.Scene()\nscene.add_body(gv.Sphere(1.0))\n"
    tried = f"try:\n    gv.Simulation(scene, 0.01, domain={given})\nexcept (TypeError, ValueError) as error:\n    print(error)\n"
    done = mpiexec(2, "-c", script + tried)
    assert done.returncode == 0 and len(re.findall(WRONG[given], done.stdout)) == 2, done.stdout + done.stderr


def test_names_of_bodies_are_the_same_on_all_processes():
    found = run_cases(2, ["named_bodies"])["named_bodies"]
    expected = {"floor": 0, "row": [1, 11], "own": [11, 17], "late": [17, 18]}
    assert found["names"] == found["loaded"] == found["result"] == expected
    assert found["rows"] == {"row": 10, "own": 6, "late": 1} and found["ids"] == list(range(11, 17))
