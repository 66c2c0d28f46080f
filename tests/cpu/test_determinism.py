"""The same scene gives the same bits: twice, on one and two threads, and across a stop."""

import os
import subprocess
import sys

import numpy as np
import pytest

import gravel as gv
from gravel import scenes
from gravel.engine import largest_thread_count


def run_scene(name, bodies, steps, threads=None, **options):
    setup = scenes.build(name, bodies)
    simulation = gv.Simulation(setup.scene, setup.dt, gv.GaussSeidel(iterations=20), threads=threads, **{**setup.options, **options})
    for _ in range(steps):
        simulation.step()
    return simulation


@pytest.mark.skipif(largest_thread_count() < 2, reason="one core: there is only one number of threads to compare")
@pytest.mark.parametrize("name, bodies", [("pile", 3000), ("tank", 3000), pytest.param("wall", 1600, marks=pytest.mark.slow)])
def test_same_bits_on_one_and_two_threads(name, bodies):
    one, two = run_scene(name, bodies, 60, 1), run_scene(name, bodies, 60, 2)
    assert one.state_hash() == two.state_hash()


def test_same_bits_twice_and_other_bits_for_another_seed():
    first = run_scene("pile", 400, 40)
    assert first.state_hash() == run_scene("pile", 400, 40).state_hash()
    setup = scenes.build("pile", 400, seed=1)
    other = gv.Simulation(setup.scene, setup.dt, gv.GaussSeidel(iterations=20))
    for _ in range(40):
        other.step()
    assert other.state_hash() != first.state_hash()


def test_kernels_from_the_cache_give_the_bits_of_those_just_compiled(tmp_path):
    """A kernel with threads is optimised once more on its way into the cache; that must not change how it rounds."""
    script = """
import numpy as np
from gravel.cpu.solve import blocks
from gravel.host.rules import Scalars
from gravel.cpu.solve.block_problem import kernel

rng, f4, lanes = np.random.default_rng(0), np.float32, blocks.WIDTH
rows = rng.uniform(0.1, 1.0, (4, blocks.ROWS_BALL, lanes)).astype(f4)
rows[:, :3] /= np.linalg.norm(rows[:, :3], axis=1, keepdims=True)
bodies = np.arange(2 * 4 * lanes, dtype=np.int32).reshape(2, -1)
starts = np.array([0, 2, 4]), np.array([4, 4, 4])
problem = blocks.Blocks(rows.reshape(-1), *bodies, np.empty(0, f4), *starts, np.array([0, 1]), np.array([0, 2]))
velocity = rng.normal(size=8 * (bodies.size + 1)).astype(f4)
impulse, none = np.zeros(12 * lanes, f4), np.empty(0, f4)
unknowns = blocks.Unknowns(impulse, none, velocity, impulse.copy(), none, velocity.copy(), none, np.zeros(impulse.size // 3, impulse.dtype))
momentum = blocks.fresh_momentum()
momentum[blocks.MAX_MOMENTUM] = 0.9
arguments = problem, unknowns, none, Scalars(0.0, 0.002, 0.05, 1.0), np.zeros(3, f4), np.zeros(3, f4), momentum
kernel(blocks.SWEEP, True, False, False, False)(*arguments, 0)
sweep = kernel(blocks.SWEEP, True, False, False, True)
sweep(*arguments, 5)
print(sum(sweep.stats.cache_hits.values()), unknowns.impulse.tobytes().hex() + velocity.tobytes().hex())
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    (hits_first, bits_first), (hits_second, bits_second) = (run.stdout.split() for run in runs)
    assert (hits_first, hits_second) == ("0", "1")
    assert len(list(tmp_path.rglob("*.nbc"))) == 2  # with and without threads
    assert bits_first == bits_second


@pytest.mark.parametrize("name", ["tank", "silo", "wall"])
def test_resume_continues_bit_for_bit(name, tmp_path):
    simulation = run_scene(name, 250, 50)
    simulation.save(tmp_path / "state.h5")
    resumed = gv.Simulation.load(tmp_path / "state.h5")
    assert resumed.state_hash() == simulation.state_hash()
    for _ in range(50):
        simulation.step()
        resumed.step()
    assert resumed.state_hash() == simulation.state_hash()
    assert resumed.time == simulation.time


def test_resume_with_rolling_friction_forces_and_functions(tmp_path):
    scene = gv.Scene()
    rough = gv.Material(rolling_friction=0.01, spinning_friction=0.01, restitution=0.3)
    scene.add_body(gv.Plane(), material=rough, motion=lambda t: (0.01 * np.sin(20 * t), 0, 0))
    grains = scene.add_bodies(gv.Sphere(0.1), np.random.default_rng(0).uniform((-1, -1, 0.2), (1, 1, 2), (40, 3)), rough)
    scene.set_force(int(grains[3]), (1, 2, 3), (0.1, 0, 0))
    simulation = gv.Simulation(scene, 1e-3)
    for _ in range(300):
        simulation.step()
    simulation.save(tmp_path / "state.h5")
    with pytest.raises(ValueError, match="motion of body 0 was a Python function"):
        gv.Simulation.load(tmp_path / "state.h5")
    resumed = gv.Simulation.load(tmp_path / "state.h5", motions=scene.motions)
    for _ in range(100):
        simulation.step()
        resumed.step()
    assert resumed.state_hash() == simulation.state_hash()


def test_the_second_process_compiles_for_the_gravel_that_started_it(tmp_path):
    """Even where the current folder holds another one."""
    from gravel.cpu import precompile

    (tmp_path / "gravel").mkdir()
    (tmp_path / "gravel" / "__init__.py").write_text("raise ImportError('the wrong gravel')")
    command = precompile.child_command("single-ball0000-balls-plain-dead-grid-free-midpoint", False)
    command[2] = command[2].replace("precompile.compile_backwards(*sys.argv[2:])", "print(precompile.__file__)")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == precompile.__file__
