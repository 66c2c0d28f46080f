"""States that go from one device to the other and on: files, copies, resumed runs; the same bits from the same start."""

import copy
import pickle

import numpy as np
import pytest
from click.testing import CliRunner

import gravel as gv
from gravel import scenes
from gravel.cli import main

DEVICE = "warp:cpu"
BOTH = ("cpu", DEVICE)
ROUGH = gv.Material(friction=0.6, rolling_friction=1e-4, spinning_friction=1e-4)

BALL = gv.Sphere(0.01)


def heap(material=ROUGH, shapes=(BALL,), layers=3, **options):
    """Layers of 16 bodies above a floor."""
    scene = gv.Scene(**options)
    scene.add_body(gv.Plane(), material=material, fixed=True)
    grid = np.stack(np.meshgrid(*map(np.arange, (4, 4, layers)), indexing="ij"), axis=-1).reshape(-1, 3)
    places = 0.021 * grid + np.random.default_rng(0).uniform(-2e-4, 2e-4, grid.shape) + (0, 0, 0.0105)
    for k, shape in enumerate(shapes):
        scene.add_bodies(shape, places[k :: len(shapes)], material)
    return scene


def sheared():
    cell = ((0.0, 0.2), (0.0, 0.2), (0.0, 0.2))
    scene = gv.Scene(gravity=(0, 0, 0), periodic=cell, deformation=gv.Deformation(shear_rate=2.0))
    scene.add_bodies(gv.Sphere(0.02), np.random.default_rng(2).uniform(0, 0.2, (60, 3)), gv.Material(friction=0.4))
    return scene


def mixed():
    return heap(shapes=(gv.Sphere(0.01), gv.Box((0.008, 0.01, 0.009)), gv.Capsule(0.006, 0.004)))


def bouncing():
    return heap(gv.Material(friction=0.3, restitution=0.8))


KINDS = {
    "balls": heap,
    "mixed": mixed,
    "restitution": bouncing,
    "joints": lambda: scenes.build("chain", 15).scene,
    "shear": sheared,
    "excavator": lambda: scenes.build("excavator", 200).scene,
}


def run(simulation, steps):
    for _ in range(steps):
        simulation.step()
    return simulation


def made(scene, device, **options):
    return gv.Simulation(scene, 1e-3, device=device, threads=1, **options)


def loaded(simulation, path, device):
    simulation.save(path)
    return gv.Simulation.load(path, device=device, laws=simulation.mechanism.function_laws(), motions=simulation.motions)


@pytest.mark.filterwarnings("ignore:bodies .* overlap")
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_run_has_the_same_bits(kind):
    hashes = [run(made(KINDS[kind](), DEVICE), 12).state_hash() for _ in range(2)]
    assert hashes[0] == hashes[1]


@pytest.mark.filterwarnings("ignore:bodies .* overlap")
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_the_device_goes_on_bit_for_bit(kind, tmp_path):
    simulation = run(made(KINDS[kind](), DEVICE), 7)
    twin = loaded(simulation, tmp_path / "state.h5", None)
    assert twin.device == DEVICE and twin.state_hash() == simulation.state_hash()
    assert run(twin, 6).state_hash() == run(simulation, 6).state_hash()


@pytest.mark.filterwarnings("ignore:bodies .* overlap")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", BOTH)
def test_a_file_is_the_same_state_on_the_other_device(kind, device, tmp_path):
    other = BOTH[1 - BOTH.index(device)]
    simulation = run(made(KINDS[kind](), device), 7)
    twin = loaded(simulation, tmp_path / "state.h5", other)
    assert twin.device == other
    assert twin.state_hash() == simulation.state_hash()
    assert twin.time == simulation.time and twin.steps == 7
    np.testing.assert_array_equal(twin.contacts.impulse, simulation.contacts.impulse)
    back = loaded(twin, tmp_path / "back.h5", device)
    assert back.state_hash() == simulation.state_hash()
    assert run(back, 3).state_hash() == run(simulation, 3).state_hash()  # nothing was lost on the way
    twin.step()
    assert np.isfinite(twin.report.kinetic_energy) and twin.steps == 8


@pytest.mark.parametrize("device", BOTH)
def test_impulses_go_along(device, tmp_path):
    """The first step on the other device starts from the impulses that bear a column of balls: a single sweep leaves little to do, which
    from nothing it does not."""
    other = BOTH[1 - BOTH.index(device)]
    scene = gv.Scene()
    scene.add_body(gv.Plane(), material=ROUGH, fixed=True)
    scene.add_bodies(gv.Sphere(0.01), [(0, 0, 0.01 + 0.02 * k) for k in range(8)], ROUGH)
    simulation = run(made(scene, device, solver=gv.GaussSeidel(iterations=2000, tolerance=1e-6)), 5)
    residuals = {}
    for warm in (True, False):
        twin = loaded(simulation, tmp_path / "state.h5", other)
        twin.warm_start, twin.solver = warm, gv.GaussSeidel(iterations=1, tolerance=0.0)
        residuals[warm] = twin.step().residual
    simulation.solver = gv.GaussSeidel(iterations=1, tolerance=0.0)
    assert residuals[True] < 1e-3 * residuals[False]
    assert residuals[True] <= 1e-5 and simulation.step().residual <= 1e-5


def test_copies_go_their_own_way():
    simulation = run(made(mixed(), DEVICE), 5)
    twins = simulation.copy(), copy.deepcopy(simulation), pickle.loads(pickle.dumps(simulation))
    before, after = simulation.state_hash(), run(simulation, 4).state_hash()
    assert before != after
    for twin in twins:
        assert twin.device == DEVICE and twin.state_hash() == before
        assert run(twin, 4).state_hash() == after


def test_many_rows_are_put_in_order_and_go_on_bit_for_bit(tmp_path):
    """So many that the rows are sorted now and then: when, a file must not change."""
    scene = gv.Scene(gravity=(0, 0, 0))
    rng = np.random.default_rng(5)
    n = 8400
    scene.add_bodies(gv.Sphere(0.01), rng.uniform(0, 0.6, (n, 3)), velocities=rng.normal(size=(n, 3)))
    simulation = made(scene, DEVICE, solver=gv.GaussSeidel(iterations=3, tolerance=0.0), recovery=0.0)
    run(simulation, 60)
    twin = loaded(simulation, tmp_path / "state.h5", None)
    ids = simulation.engine.ids().copy()
    run(simulation, 8)
    assert not np.array_equal(ids, simulation.engine.ids())  # the rows were put in order
    assert run(twin, 8).state_hash() == simulation.state_hash()


def test_resumed_on_the_other_device(tmp_path):
    """``gravel run`` writes a file on the CPU and goes on from it on the device, and back."""
    file, call = tmp_path / "state.h5", CliRunner()
    first = call.invoke(main, ["run", "pile", "--bodies", "100", "--time", "0.02", "--checkpoint", str(file)])
    assert first.exit_code == 0, first.output
    for device, time in ((DEVICE, "0.04"), ("cpu", "0.06")):
        more = call.invoke(main, ["run", "pile", "--resume", str(file), "--device", device, "--time", time, "--checkpoint", str(file)])
        assert more.exit_code == 0, more.output
        assert f"device {device}" in more.output
        simulation = gv.Simulation.load(file)
        assert simulation.device == device and simulation.time == pytest.approx(float(time))
    refused = call.invoke(main, ["run", "pile", "--resume", str(file), "--device", "cuda:7"])
    assert refused.exit_code != 0 and "device 'cuda:7' is not there" in refused.output and "damaged" not in refused.output


@pytest.mark.parametrize(
    ("options", "device", "words"),
    [
        ({"precision": "double"}, DEVICE, "precision must be 'single' on device 'warp:cpu', not 'double'"),
        ({"broad_phase": "sap"}, DEVICE, "broad_phase must be one of auto, grid, bvh, brute on device 'warp:cpu', not 'sap'"),
        ({"solver": gv.FFD()}, DEVICE, "solver FFD runs on device 'cpu' only, not on 'warp:cpu'"),
        ({}, "cuda:7", "device 'cuda:7' is not there"),
    ],
)
def test_a_file_that_the_device_cannot_take_is_not_called_damaged(options, device, words, tmp_path):
    simulation = run(made(heap(gv.Material(friction=0.3)), "cpu", **options), 1)
    with pytest.raises(ValueError, match=words) as refusal:
        loaded(simulation, tmp_path / "state.h5", device)
    assert "damaged" not in str(refusal.value)


def test_results_and_pictures(tmp_path):
    """What a run on the device writes says the same of its bodies as the run on the CPU."""
    frames = {}
    for device in BOTH:
        path = tmp_path / f"{device.replace(':', '-')}.vtkhdf"
        simulation = made(mixed(), device)
        simulation.run(0.02, save=path, every=0.01, contacts=True)
        result = gv.open_result(path)
        frames[device] = result
    ours, theirs = (frames[device][-1] for device in BOTH)
    np.testing.assert_allclose(theirs.positions, ours.positions, atol=1e-5)
    assert len(frames["cpu"]) == len(frames[DEVICE])
    picture = tmp_path / "picture.png"
    call = CliRunner().invoke(main, ["picture", str(tmp_path / "warp-cpu.vtkhdf"), "--output", str(picture)])
    assert call.exit_code == 0, call.output
    assert picture.stat().st_size > 0
