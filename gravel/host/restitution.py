"""Restitution as a stage of the step: impacts one after the other (``impacts``), before the cone problem.

In: contacts, the velocities of the proxies, which it changes, and the rules. Out: ``Restitution``. Several processes take turns
where they act on the same bodies.
"""

from typing import Any, NamedTuple

import numpy as np

from gravel.host import impacts


class Restitution(NamedTuple):
    """What impacts have done in a step."""

    collisions: int
    penetration: float  # m, largest on the ways that bodies really take
    impulse: np.ndarray  # (c, 3) N s of the impacts at each contact, on b; empty where nothing bounces
    surface: np.ndarray  # (c, 3) m/s: what joins the bias of each contact; what its surfaces move at, and what impacts ask for besides
    shift: np.ndarray  # (n, 3) m: what the way of each proxy differs from that at its new velocity
    moved: bool  # whether any body was struck


def no_impacts(penetration: float, impulse: np.ndarray, surface: np.ndarray) -> Restitution:
    """Nothing bounces."""
    return Restitution(0, penetration, impulse, surface, np.empty((0, 3)), False)


class ImpactSolver:
    """The impacts of one step. ``found``: the detector, with contacts and proxies; ``impulse`` (c, 3) is filled."""

    def __init__(self, found: Any, inertia: np.ndarray, surface: np.ndarray, rules: Any, sync: Any, buffers: Any):
        self.found, self.inertia, self.surface, self.rules, self.sync, self.buffers = found, inertia, surface, rules, sync, buffers
        n, array = len(found.order), buffers.array
        self.shift, self.since = array("shift", n, (3,), "f8"), array("since", n, dtype="f8")
        self.impact_stats, self.partners = array("impact_stats", n, (2,), "f8"), array("partners", n, dtype="i4")

    def solve(self, impulse: np.ndarray) -> Restitution:
        found, rules, sync = self.found, self.rules, self.sync
        impulse[:], self.shift[:], self.since[:], self.impact_stats[:] = 0, 0, 0, 0
        times = rules.step, 0.5 * rules.step if rules.midpoint else 0.0
        on = rules.contact_values, times, rules.gravity, float(rules.threshold)
        seen = found.contacts, found.folded_contacts, found.proxies, self.inertia, self.surface
        self.given, self.state = impacts.ImpactInput(*seen, *on), impacts.ImpactState(self.since, impulse, self.shift, self.impact_stats)
        impacts.count_partners(found.folded_contacts, self.partners)
        touched = np.ones(len(found.order), np.bool_)
        if sync.single_process:
            collisions = int(self._strike(touched, np.empty(0, np.bool_))[0])
            moved = collisions > 0
        else:
            collisions, moved = self._solve_in_turns(touched)
        lifted = self.buffers.array("lifted", len(impulse), (3,))
        penetration = float(impacts.leave_flying(self.given, self.state, rules.scalars, rules.margin, lifted))
        return Restitution(collisions, penetration, impulse, lifted, self.shift, moved)

    def _strike(self, touched, locked):
        """(collisions, collisions that wait for a barred body)"""
        return impacts.solve_impacts(self.given, self.partners, touched, locked, self.state)

    def _solve_in_turns(self, touched):
        """Where several processes act on a body, one at a time may strike it: two impacts at once would be too much. Returns how many
        there were here, and whether there was any on any process."""
        velocity, n, sync = self.found.proxies.velocity, len(self.partners), self.sync
        sync.allreduce_sums(self.partners[:, None])
        here = anywhere = 0
        for turn in range(impacts.TURNS):
            locked = np.zeros(n, np.bool_)
            locked[sync.locked_bodies(turn)] = True
            before = self._ways()
            sync.snapshot(velocity)
            struck, waiting = self._strike(touched, locked)
            sync.allreduce_increments(velocity)
            here += struck
            struck, waiting = sync.total(struck, waiting)
            anywhere += struck
            if struck > 0:
                self._share_ways(before)
            if struck + waiting == 0:
                break
            touched[:] = False  # all has been said of the others
            touched[sync.indices] = True
        return int(here), anywhere > 0

    def _ways(self):
        """What impacts know of the bodies that several processes act on, beside their velocities."""
        indices = self.sync.indices
        return np.concatenate([self.shift[indices], self.since[indices, None], self.impact_stats[indices]], axis=1)

    def _share_ways(self, before):
        """A velocity alone does not tell where a body is: what one process changed in this turn of its ``shift``, of the time ``since`` its
        last impact and of its ``impact_stats``, the others know before the next one."""
        indices, velocity = self.sync.indices, self.found.proxies.velocity
        ways = self.buffers.array("ways", len(velocity), velocity.shape[1:], velocity.dtype.str[1:])
        ways[indices] = 0
        self.sync.snapshot(ways)
        ways[indices, : before.shape[1]] = self._ways() - before
        self.sync.allreduce_increments(ways)
        now = before + ways[indices, : before.shape[1]]
        self.shift[indices], self.since[indices], self.impact_stats[indices] = now[:, :3], now[:, 3], now[:, 4:]
