"""What the stages of a step of the GPU engine leave for each other; a new one for each step, as ``gravel.cpu.step_state``."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from gravel.engine import Driven
from gravel.host.restitution import Restitution


@dataclass
class StepState:
    now: Any  # the bodies as they are (``structs.Bodies``)
    bodies: Any  # where the step looks
    winding: np.ndarray | None = None  # theirs, in periodic space, where that is not the state's
    driven: tuple[np.ndarray, Driven] | None = None  # bodies with a motion: their rows, and it
    touched: np.ndarray | None = None  # which bodies have contacts, once somebody asks
    # by ``match``
    rolling: bool = False  # whether contacts have rolling or spinning friction
    impulse: wp.array = field(init=False)  # (c, 3) from which the solver starts
    torque: wp.array = field(init=False)  # (c, 3) likewise; empty where nothing is rolling
    # by ``prepare_contacts``
    inertia: wp.array = field(init=False)  # (n + 1, 8) inverse inertia in the world frame; empty where all that move are balls
    surface: wp.array = field(init=False)  # (c, 3) what surfaces move at by themselves, and what impacts add to that; or empty
    # by ``apply_restitution``
    restitution: Restitution = field(init=False)  # on the host
