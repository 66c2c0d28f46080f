"""Nesterov's momentum over the sweeps of a solver: x_next = G(x + beta (x - x_before))."""

from __future__ import annotations

import math

DIVERGENCE_RATIO = 5.0  # times the change of the first sweep: then sweeps over hubs diverge
NEVER = 1e30  # the same where they cannot; no infinity, of which compiled code may assume that there is none
DAMPING = 0.25  # factor on the momentum then
RENEWED = 2.0  # sweeps between two renewals of De Saxcé's terms
# Coefficient of friction up to which De Saxcé's term mu |u_t| of a contact is wholly that of the last sweeps. All lagged, the term of a
# contact by itself approaches its value with the factor mu^2 w_t / (w_n + mu^2 w_t) a sweep: 0.5 at mu = 0.5, 0.97 at mu = 3 (balls). None
# lagged, contacts that push each other never agree. Above this coefficient the share LAGGED / mu lags, the rest follows at once; and a
# renewal takes in the same share of what the term has changed by, or the terms of neighbours swing.
LAGGED = 0.25


def nesterov_step(age: float, ascent: float, max_momentum: float, change: float, first: float, share: float, divergence_ratio: float):
    """(the new age, beta, first, share) of the next sweep: beta grows from zero towards a ``share`` of ``max_momentum`` with Nesterov's
    sequence. ``age`` and ``share`` are 1 at the start, ``change`` and ``first`` 0.

    ``ascent``, (y - x_next) . (x_next - x) of the last sweep, is positive where the extrapolation went the wrong way: then the
    sequence starts anew. That does not see everything: a sweep over hubs, bodies that touch very many others, turns some motions
    round, and carried on with much momentum those grow from sweep to sweep. So the sequence starts anew, too, where the last sweep's
    ``change`` is more than ``divergence_ratio`` times the ``first`` one's, and does not go so far from then on."""
    first = change if first == 0.0 else first
    if change > divergence_ratio * first:
        age = 1.0
        share = DAMPING * share
    if ascent > 0.0:
        age = 1.0
    older = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * age * age))
    return older, min((age - 1.0) / older, share * max_momentum), first, share
