"""What two materials do at a contact: bias, cohesion, De Saxcé's term, the limits of rolling and spinning friction.

In: the values of a pair of materials (``gravel.model.materials.PAIR_FIELDS``), gaps, velocities. Out: numbers of one contact of the cone
problem. Both engines call these functions and know nothing else of a law; ``cones`` has the friction cone itself.
"""

from __future__ import annotations

import math

from gravel.formulas.cones import TINY
from gravel.formulas.kinds import Tables, Vector
from gravel.formulas.momentum import LAGGED
from gravel.formulas.precision import like
from gravel.model.materials import COHESION_COLUMN, FRICTION_COLUMN, RESTITUTION_COLUMN, ROLLING_COLUMN, SPINNING_COLUMN

DEEP = 0.5  # of the smaller bounding radius: bodies that overlap by more lie within each other
TOUCHING = 1e-3  # of the margin: gaps below it bear cohesion
# Nothing asks gaps below this share of the margin to close. A resting box whose corners must close every hair of a gap within
# the step is never at rest: few iterations answer late, and the late answer makes a tall stack sway more and more.
RESTING = 1e-2


def friction_of(values: Tables, i: int, j: int):
    """Coefficient of friction of materials i and j."""
    return values[i, j, FRICTION_COLUMN]


def restitution_of(values: Tables, i: int, j: int):
    """Speed after an impact over speed before, of materials i and j."""
    return values[i, j, RESTITUTION_COLUMN]


def torque_arms(values: Tables, i: int, j: int):
    """Arms of rolling and spinning friction, m: the torque that each can bear is this times the load."""
    return values[i, j, ROLLING_COLUMN], values[i, j, SPINNING_COLUMN]


def cohesive_impulse(values: Tables, i: int, j: int, gap: float, contact_distance: float, step: float):
    """The impulse with which a contact can pull, N s: its materials' force times the step where the surfaces touch. ``contact_distance``:
    the gap up to which bodies count as touching."""
    return values[i, j, COHESION_COLUMN] * step if gap <= TOUCHING * contact_distance else 0.0


def bias_of(gap: float, contact_distance: float, overlaps: float, step: float, recovery: float, recovery_speed: float):
    """Normal part of the bias of a contact, m/s: gap / step for a gap (it may close within the step, no further), and for a penetration
    the share ``recovery`` of it a step, at most at ``recovery_speed``. ``overlaps``: in how many others one of its bodies lies (1: at most
    one); they share that speed. (Speculative contacts; Baumgarte's stabilisation, capped.)"""
    if gap > 0.0:
        return gap / step if gap > RESTING * contact_distance else 0.0
    return max(recovery * gap / step, -recovery_speed / overlaps)


def sliding_speed(u: Vector, n: Vector):
    """|u_t|, m/s, of a relative velocity u."""
    un = u[0] * n[0] + u[1] * n[1] + u[2] * n[2]
    tx, ty, tz = u[0] - un * n[0], u[1] - un * n[1], u[2] - un * n[2]
    return math.sqrt(tx * tx + ty * ty + tz * tz)


def lagged_share(mu: float):
    """The share of De Saxcé's term mu |u_t| that is taken from earlier sweeps; see ``momentum.LAGGED``."""
    return min(like(mu, 1.0), like(mu, LAGGED) / max(mu, like(mu, TINY)))


def renewed_slip(before: float, term: float, share: float):
    """De Saxcé's term as the sweeps know it, m/s, after a renewal that takes in a share of what it has changed by."""
    return before + share * (term - before)
