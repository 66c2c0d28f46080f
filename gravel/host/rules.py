"""The rules of a step (``gravel.engine.Rules``) as the host's kernels want them."""

from typing import NamedTuple

import numpy as np

from gravel.engine import Margin, Rules
from gravel.model.materials import RESTITUTION_COLUMN, ROLLING_COLUMN, SPINNING_COLUMN
from gravel.shapes.geometry import Library


class Scalars(NamedTuple):
    coulomb: float  # 1: the De Saxcé term removes the sliding gap of the cone model; 0: the convex cone model
    step: float  # h, s
    recovery: float  # share of a penetration that a step may take back
    recovery_speed: float  # and the speed at which it may, m/s


class HostRules(NamedTuple):
    step: float
    midpoint: bool
    gravity: np.ndarray
    contact_values: np.ndarray
    ignored: np.ndarray
    margin: Margin
    half: np.ndarray  # (g, 3) half extents of the geometries
    scalars: Scalars
    threshold: float
    rolling: bool  # whether any pair of materials has rolling or spinning friction
    bouncy: bool  # whether any has restitution


def make_rules(rules: Rules, library: Library) -> HostRules:
    values = rules.contact_values
    return HostRules(
        rules.step,
        rules.midpoint,
        rules.gravity,
        values,
        rules.ignored,
        rules.margin,
        library.half,
        Scalars(float(rules.coulomb), rules.step, rules.recovery, min(rules.recovery_speed, 1e30)),
        rules.threshold,
        bool(np.any(values[..., [ROLLING_COLUMN, SPINNING_COLUMN]] > 0)),
        bool(np.any(values[..., RESTITUTION_COLUMN] > 0)),
    )
