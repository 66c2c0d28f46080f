"""What the stages of a step of the CPU engine leave for each other; a new one for each step."""

from dataclasses import dataclass, field

import numpy as np

from gravel.engine import Driven
from gravel.host.arrays import BodyArrays
from gravel.host.restitution import Restitution


@dataclass
class StepState:
    bodies: BodyArrays  # where the step looks
    winding: np.ndarray | None = None  # theirs, in periodic space, where that is not the state's
    driven: tuple[np.ndarray, Driven] | None = None  # bodies with a motion: their rows, and it
    before: tuple[np.ndarray, np.ndarray] | None = None  # rows and velocities of the state to go back to if the step is refused
    index_of_row: np.ndarray | None = None  # among the proxies, once somebody asks
    touched: np.ndarray | None = None  # which proxies have contacts, once somebody asks
    # by ``match``
    rolling: bool = False  # whether contacts have rolling or spinning friction
    impulse: np.ndarray = field(init=False)  # (c, 3) from which the solver starts
    torque: np.ndarray = field(init=False)  # (c, 3) likewise; empty where nothing is rolling
    # by ``prepare_contacts``
    inertia: np.ndarray = field(init=False)  # (8 (n + 1),) inverse inertia in the world frame; empty where all that move are balls
    surface: np.ndarray = field(init=False)  # (c, 3) what surfaces move at by themselves; empty where none does
    # by ``apply_restitution``
    restitution: Restitution = field(init=False)
    # by ``assemble``
    slot: np.ndarray = field(init=False)  # (c,) where each contact stands in the problem's blocks
