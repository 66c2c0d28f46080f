"""Nesterov's momentum over the sweeps of a solver: x_next = G(x + beta (x - x_before))."""

import math


def pace(age, uphill, cap):
    """(the new age, beta) of the next sweep: beta grows from zero towards ``cap`` with Nesterov's sequence. ``age`` is 1 at the start.
    ``uphill``, (y - x_next) . (x_next - x) of the last sweep, is positive where the extrapolation went the wrong way: then the
    sequence starts anew."""
    if uphill > 0.0:
        age = 1.0
    older = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * age * age))
    return older, min((age - 1.0) / older, cap)


def share_of_cap(coulomb, friction):
    """How much momentum a problem bears: Coulomb's law is no minimum of anything, and from friction of about one half on a sweep that
    looks too far ahead makes contacts slip and stick in turn."""
    return min(1.0, 0.5 / max(friction, 0.5)) if coulomb else 1.0
