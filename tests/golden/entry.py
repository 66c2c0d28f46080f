"""One entry of the golden matrix: ``python -m tests.golden.entry SCENE VARIANT`` runs some steps of a built-in scene and prints a line of
JSON, [state_hash(), ...], one hash for each number of threads. mpiexec starts the variant mpi."""

import json
import sys

import gravel as gv
from gravel import scenes
from gravel.cpu import precompile
from tests.scenes.test_scenes import SMALL

VARIANTS = {
    "single": {"precision": "single"},
    "double": {"precision": "double"},
    "threads": {"precision": "single"},  # more bodies, on one thread and on two
    "warp": {"precision": "single", "device": "warp:cpu"},
    "mpi": {"precision": "single", "domain": gv.Bisection(balance=None)},  # two processes; "auto" cuts space anew by the seconds they took
}
MANY = 1600  # bodies: the CPU engine runs less than 1500 on one thread, however many it is given
STEPS = 40
LATER = {  # steps, of scenes where bodies fall before they touch
    **{"silo": 140, "drain": 80, "mixer": 80, "pile": 100, "gas": 120, "ellipsoids": 140, "clumps": 140, "drum": 120, "terrain": 220},
    **{"well": 700, "excavator": 120, "simple-shear": 100},
}


def entries():
    """All (scene, variant); a machine of a few bodies has none to give to threads."""
    machines = {scene for scene in scenes.NAMES if scenes.module_of(scene).BODIES == scenes.module_of(scene).FEWEST}
    return [(scene, variant) for variant in VARIANTS for scene in scenes.NAMES if variant != "threads" or scene not in machines]


def run(scene, variant, threads):
    """The simulation after its steps."""
    setup = scenes.build(scene, MANY if variant == "threads" else SMALL[scene])
    simulation = gv.Simulation(setup.scene, setup.dt, **{**setup.options, **VARIANTS[variant], "threads": threads})
    simulation.run(LATER.get(scene, STEPS) * setup.dt, observers=setup.watchers())
    if simulation.report.contacts == 0 and len(setup.scene.mechanism) == 0:
        raise SystemExit(f"{scene} has neither contacts nor joints after {simulation.steps} steps: give it more")
    return simulation


def main(scene, variant):
    precompile.start = lambda engine, features: None  # kernels with threads compile here: no run goes on without them meanwhile
    simulations = [run(scene, variant, threads) for threads in ((1, 2) if variant == "threads" else (1,))]
    hashes = [simulation.state_hash() for simulation in simulations]
    if simulations[0].processes.rank == 0:
        print(json.dumps(hashes))


if __name__ == "__main__":
    main(*sys.argv[1:])
