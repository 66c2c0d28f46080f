"""From a scene to the start of a simulation: who gets which bodies, what they are made of, and how far they may go.

In: a ``Scene``, on each of the processes that share it. Out: an engine that holds its bodies, and arrays by id.
"""

from array import array
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.engine import Engine
from gravel.running.population import LARGE
from gravel.running.prescribed import Prescribed
from gravel.running.processes import Processes
from gravel.scene import Scene
from gravel.state import MATERIAL, can_move

FAR = 1e3  # times the extent of the scene, at least of 1 m: how far bodies may go beyond it


def world_bounds(bounds: ArrayLike | None, scene: Scene, processes: Processes) -> np.ndarray:
    """(2, 3) m, what no body may leave; by default far outside the scene."""
    if bounds is not None:
        world = checks.array("bounds", bounds, (2, 3))
        if (world[0] >= world[1]).any():
            raise ValueError(f"bounds must be (lower, upper) with lower < upper, not {bounds!r}")
        return world
    low, high = scene.bodies.position.min(axis=0, initial=np.inf), scene.bodies.position.max(axis=0, initial=-np.inf)
    low, high = -np.array(processes.largest(*-low)), np.array(processes.largest(*high))
    reach = FAR * max(1.0, float(np.linalg.norm(high - low)))
    world = np.stack([low - reach, high + reach])
    if scene.cell is not None:  # machines are not brought back, they may go far
        world[:, scene.cell.periodic] = [[-np.inf], [np.inf]]
    return world


def place_bodies(scene: Scene, engine: Engine, processes: Processes) -> array:
    """The engine gets the bodies that this process shall know; returns the number of each body's material, by id."""
    _check_alike(scene, processes)
    common = len(scene) if scene.common is None else scene.common
    processes.distribute_bodies(engine, _fields_with_forces(scene), _known_to_all(scene), _joined(scene), common)
    count = int(processes.largest(scene.bodies.id.max(initial=-1))[0]) + 1
    numbers = np.full(count, -1, np.int32)
    numbers[scene.bodies.id] = scene.bodies.tag[:, MATERIAL]
    if scene.common is not None:
        for ids, own in processes.allgather((scene.bodies.id, scene.bodies.tag[:, MATERIAL])):
            numbers[ids] = own
    return array("i", numbers.tobytes())


def prescribed_of(scene: Scene, engine: Engine) -> Prescribed:
    """Motions and moving surfaces; motions begin at the poses that the scene gives."""
    poses = scene.bodies.position, scene.bodies.quaternion
    starts = {body: (*(values[body].copy() for values in poses), 0.0) for body in scene.motions}
    return Prescribed(engine, scene.motions, starts, scene.surfaces)


def _check_alike(scene, processes):
    """Materials and shapes go by their numbers: they must be the same on all processes."""
    alike = [*map(repr, scene.materials.kinds), len(scene.geometries), len(scene.mechanism), scene.common, scene.body_names.to_values()]
    if any(other != alike for other in processes.allgather(alike)):
        raise ValueError("scene must have the same materials, shapes, joints and names of bodies on all processes, in the same order")


def _known_to_all(scene):
    """Mask of the bodies that all processes shall know: of those that forces cannot move, the large, driven and joined ones."""
    status, radius = scene.bodies.status, scene.bodies.extent[:, 3]
    moves = can_move(status)
    large = ~moves & (radius > LARGE * (np.median(radius[moves]) if moves.any() else 0.0))
    driven = np.isin(scene.bodies.id, [*scene.motions, *scene.surfaces, *scene.driven])
    return large | (~moves & (driven | _joined(scene)))


def _joined(scene):
    """Mask of the bodies that have joints."""
    return np.isin(scene.bodies.id, [*scene.mechanism.bodies(), *scene.joined])


def _fields_with_forces(scene) -> dict[str, Any]:
    """The fields of a scene's bodies, with the forces on them."""
    block = scene.bodies.block()
    if scene.forces:
        block["force"], block["torque"] = scene.bodies.force.copy(), scene.bodies.torque.copy()
        for body, (force, torque) in scene.forces.items():
            block["force"][body], block["torque"][body] = force, torque
    return block
