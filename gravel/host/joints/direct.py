"""Direct solution of the joint rows: all joints at once, however long the chains, by a sparse factorisation.

In: ``JointRows``, the members' masses and velocities. Out: impulses and velocities that satisfy every row, so that one pass of
the contact iteration sees joints that are closed.

The rows' equations with all members' velocities as unknowns,

    [ M   J^T ] [ dv ]   [      0      ]
    [ J  -C   ] [ -dp ] = [ -(J v + b + c p) ]

are quasi-definite where the compliance C > 0 (Vanderbei 1995): L D L^T exists for any order, without pivoting. C holds the
springs' compliance and, for all rows, ``softness_of`` times the row's response, so that redundant rows (a door on three hinges)
share their load and break nothing. It acts on the whole impulse p: were it on the change dp only, rounding in redundant rows
would pile up from step to step. A rigid joint then yields like a spring of stiffness 1 / (softness response h^2), a thousand times
and more what its bodies' masses could move in a step.

The order is found once per set of joints, by least degree on the graph of bodies and joints, joints and bodies as blocks. A
joint may come after only one of its bodies if no other joint has used that body's freedom; otherwise its pivot would be
the bare C. For a tree this runs from the leaves to the root and fills nothing: a chain costs time in proportion to its length.

Rows with bounds (limits, motors, friction) are free or held at a bound. A row that the solution takes beyond its bound is held
there, one whose held impulse is too weak is freed, and the system is solved again with the new set.
"""

import heapq
from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.host.joints.laws import renew_bias
from gravel.host.joints.rows import push, row_velocity
from gravel.host.threads import INNER

ROUNDS = 12  # in which the curvature of the gauges follows the new velocities, at the most: two or three are the rule
CONTRACTS = 0.5  # of its first change: if a bias still changes by more in the last round, it does not converge
CHANGES = 12  # rounds of holding and freeing rows in a pass; what is left waits for the next pass


def softness_of(real):
    """Compliance of a rigid row, as a share of its response.

    So large that rounding of velocities, divided by it, stays small, and that rows which are redundant but for the joints' small
    errors (Bricard's mechanism) do not act on the motion that is left free: with 1e-9 that gains energy, from 1e-7 on it does not,
    and from 1e-5 on the reactions do not change any more. So small that a chain with a payload of a thousand links opens by less
    than 1e-5 of a link: 1e-5 would do, barely."""
    return 1e-4 if np.dtype(real) == np.float32 else 2e-6


def most_yield(real):
    """m/s that a rigid row may yield under its load. The softness of a link that carries fifty times its own weight (250 times in
    double precision), in steps of 1/500 s, yields just that much; that of a lighter one would let the joint open, and counts less
    then: at the least as if the link were as heavy as the heaviest body of its machine, and as wide as its arms are long. (No less:
    rows that are redundant but for small errors push against each other, the more the stiffer they are.)"""
    return 1e-4 if np.dtype(real) == np.float32 else 1e-5


YIELDING = 1e-9  # the same for rows with bounds: what yields there is a speed, and a brake should not creep


def slack_of(real):
    """m/s: a row at its bound is let go when it moves faster; the curvature of gauges is good when it changes by no more."""
    return 1e-5 if np.dtype(real) == np.float32 else 1e-9


class System(NamedTuple):
    """The matrix, its factor, and what of it comes from where. Upper half by columns, permuted."""

    start: np.ndarray  # (n + 1,) columns
    index: np.ndarray  # rows
    value: np.ndarray
    mass_slot: np.ndarray  # (k, 9) of the linear diagonal and the upper half of the inertia; -1: immovable
    entry_slot: np.ndarray  # (e, 6)
    entry_first: np.ndarray  # (k,) unknown of a member's first component, -1: immovable
    row_slot: np.ndarray  # (m,) diagonal
    row_place: np.ndarray  # (m,) unknown of a row
    parent: np.ndarray  # (n,) elimination tree
    factor_start: np.ndarray  # (n + 1,)
    factor_index: np.ndarray
    factor: np.ndarray
    diagonal: np.ndarray  # (n,)
    right: np.ndarray  # (n,) right side, then solution
    flag: np.ndarray  # (n,) scratch
    pattern: np.ndarray
    length: np.ndarray
    column: np.ndarray
    state: np.ndarray  # (1,) whether the factor belongs to the present rows


def make_system(rows, owner, movable):
    """The system of the given rows (of joints ``owner`` (m,)) between members of which some are ``movable`` (k,)."""
    first, row_place, n = _places(rows, owner, movable)
    start, index, slots = _pattern(rows, first, row_place, n)
    parent, lengths = _elimination_tree(start, index, n)
    factor_start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    size, whole = int(factor_start[-1]), lambda k: np.zeros(k, np.int64)  # noqa: E731
    return System(
        start,
        index,
        np.zeros(len(index)),
        *slots[:2],
        first,
        slots[2],
        row_place,
        parent,
        factor_start,
        whole(size),
        np.zeros(size),
        np.zeros(n),
        np.zeros(n),
        whole(n),
        whole(n),
        whole(n),
        np.zeros(n),
        whole(1),
    )


def _places(rows, owner, movable):
    """Unknowns in the order of elimination: (first of each member or -1, one of each row, how many)."""
    members = len(movable)
    joints, joint_of = np.unique(owner, return_inverse=True)
    near = [set() for _ in range(members + len(joints))]
    for k in range(len(owner)):
        for member in rows.member[rows.start[k] : rows.start[k + 1]].tolist():
            if movable[member]:
                near[member].add(members + int(joint_of[k]))
                near[members + int(joint_of[k])].add(member)
    size = np.concatenate([np.full(members, 6), np.bincount(joint_of, minlength=len(joints))]).astype(int).tolist()
    rows_of = [[] for _ in joints]
    for k, j in enumerate(joint_of.tolist()):
        rows_of[j].append(k)
    first, row_place, at = np.full(members, -1, np.int64), np.zeros(len(owner), np.int64), 0
    for node in _order(near, size, members, movable):
        if node < members:
            first[node] = at
        else:
            row_place[rows_of[node - members]] = at + np.arange(size[node])
        at += size[node]
    return first, row_place, at


def _order(near, size, members, movable):
    """Nodes (members, then joints) by least degree; see the module's text for when a joint may come."""
    own = [set(bodies) for bodies in near[members:]]  # the bodies that a joint acts on
    gone, spent, order = set(), set(), []
    degree = lambda node: sum(size[other] for other in near[node])  # noqa: E731
    heap = [(degree(node), node) for node in range(len(near)) if node >= members or movable[node]]
    heapq.heapify(heap)
    while heap:
        seen, node = heapq.heappop(heap)
        if node in gone or seen != degree(node):
            continue
        if node >= members:
            fresh = [b for b in own[node - members] if b in gone and b not in spent]
            if fresh:
                spent.add(min(fresh))
            elif any(other < members for other in near[node]):
                continue  # comes again when one of its neighbours has gone
        gone.add(node)
        order.append(node)
        around = near[node]
        for other in around:
            near[other] |= around
            near[other] -= {other, node}
        for other in around:
            heapq.heappush(heap, (degree(other), other))
    return order


def _pattern(rows, first, row_place, n):
    """Columns of the upper half and where in them masses, entries and the rows' diagonal go."""
    movable = np.flatnonzero(first >= 0)
    entry_row = np.repeat(np.arange(len(row_place)), np.diff(rows.start))
    six = np.arange(6)
    upper = [(3, 3), (3, 4), (3, 5), (4, 4), (4, 5), (5, 5)]
    pairs = [(0, 0), (1, 1), (2, 2), *upper]
    mass = np.array([[(first[k] + i, first[k] + j) for i, j in pairs] for k in movable], np.int64).reshape(-1, 2)
    used = np.flatnonzero(first[rows.member] >= 0)
    entry = np.stack(np.broadcast_arrays(first[rows.member[used]][:, None] + six, row_place[entry_row[used]][:, None]), axis=-1).reshape(
        -1, 2
    )
    diagonal = np.stack([row_place, row_place], axis=1)
    places = np.concatenate([mass, entry, diagonal])
    low, high = places.min(axis=1), places.max(axis=1)
    by_column = np.lexsort((low, high))
    slot = np.empty(len(places), np.int64)
    slot[by_column] = np.arange(len(places))
    start = np.concatenate([[0], np.cumsum(np.bincount(high, minlength=n))]).astype(np.int64)
    mass_slot, entry_slot = np.full((len(first), 9), -1, np.int64), np.full((len(rows.member), 6), -1, np.int64)
    mass_slot[movable] = slot[: len(mass)].reshape(-1, 9)
    entry_slot[used] = slot[len(mass) : len(mass) + len(entry)].reshape(-1, 6)
    return start, low[by_column], (mass_slot, entry_slot, slot[len(mass) + len(entry) :])


@njit(nogil=True, error_model="numpy", cache=True)
def _elimination_tree(start, index, n):
    """(parent, entries below the diagonal) of each column of the factor (Davis 2005)."""
    parent, length, flag = np.full(n, -1), np.zeros(n, np.int64), np.full(n, -1)
    for k in range(n):
        flag[k] = k
        for p in range(start[k], start[k + 1]):
            i = index[p]
            while flag[i] != k:
                if parent[i] == -1:
                    parent[i] = k
                length[i] += 1
                flag[i] = k
                i = parent[i]
    return parent, length


@njit(**INNER)
def fill_system(rows, members, held, system):
    """The matrix of the present rows; held ones are cut off."""
    value, mass_slot, entry_slot, jacobian = system.value, system.mass_slot, system.entry_slot, rows.jacobian
    for k in range(mass_slot.shape[0]):
        if mass_slot[k, 0] >= 0:
            there = members.mass[k] > 0.0  # a body that was removed has no mass, and no row that acts
            for c in range(3):
                value[mass_slot[k, c]] = members.mass[k] if there else 1.0
            for c in range(6):
                value[mass_slot[k, 3 + c]] = members.inertia[k, c] if there else (1.0 if c in (0, 3, 5) else 0.0)
    for k in range(rows.eta.size):
        cut = held[k] > 0
        for e in range(rows.start[k], rows.start[k + 1]):
            if entry_slot[e, 0] >= 0:
                for c in range(6):
                    value[entry_slot[e, c]] = 0.0 if cut else jacobian[e, c]
        value[system.row_slot[k]] = -1.0 if cut else -rows.compliance[k]


@njit(**INNER)
def factorise(system):
    """L D L^T, row by row of L along the elimination tree (Davis 2005)."""
    start, index, value, parent = system.start, system.index, system.value, system.parent
    begin, below, factor, diagonal = system.factor_start, system.factor_index, system.factor, system.diagonal
    flag, pattern, length, column = system.flag, system.pattern, system.length, system.column
    n = diagonal.size
    for k in range(n):
        length[k] = 0
        flag[k] = -1
        column[k] = 0.0
    for k in range(n):
        top = n
        flag[k] = k
        for p in range(start[k], start[k + 1]):
            i = index[p]
            column[i] += value[p]
            count = 0
            while flag[i] != k:
                pattern[count] = i
                flag[i] = k
                count += 1
                i = parent[i]
            while count > 0:
                top -= 1
                count -= 1
                pattern[top] = pattern[count]
        d = column[k]
        column[k] = 0.0
        for t in range(top, n):
            i = pattern[t]
            y = column[i]
            column[i] = 0.0
            last = begin[i] + length[i]
            for p in range(begin[i], last):
                column[below[p]] -= factor[p] * y
            share = y / diagonal[i]
            d -= share * y
            below[last] = k
            factor[last] = share
            length[i] += 1
        diagonal[k] = d


@njit(**INNER)
def solve_factored(system):
    """``right`` := solution."""
    begin, below, factor, diagonal, x = system.factor_start, system.factor_index, system.factor, system.diagonal, system.right
    n = diagonal.size
    for k in range(n):
        y = x[k]
        for p in range(begin[k], begin[k + 1]):
            x[below[p]] -= factor[p] * y
    for k in range(n):
        x[k] /= diagonal[k]
    for k in range(n - 1, -1, -1):
        y = x[k]
        for p in range(begin[k], begin[k + 1]):
            y -= factor[p] * x[below[p]]
        x[k] = y


@njit(**INNER)
def correct(rows, held, system, impulse, velocity):
    """Impulses of the free rows and velocities (8 numbers a member) such that the free rows hold."""
    right, first = system.right, system.entry_first
    right[:] = 0.0
    for k in range(rows.eta.size):
        if held[k] == 0:
            right[system.row_place[k]] = -row_velocity(rows, k, impulse[k], velocity)
    solve_factored(system)
    for k in range(rows.eta.size):
        if held[k] == 0:
            impulse[k] -= right[system.row_place[k]]
    for k in range(first.size):
        if first[k] >= 0:
            for c in range(3):
                velocity[8 * k + c] += right[first[k] + c]
                velocity[8 * k + 4 + c] += right[first[k] + 3 + c]


@njit(**INNER)
def revise(rows, held, impulse, velocity, slack):
    """Hold rows beyond their bounds, free rows that are held too weakly; True if any changed."""
    changed = False
    for k in range(rows.eta.size):
        lower, upper, p = rows.lower[k], rows.upper[k], impulse[k]
        if held[k] == 0 and (p < lower or p > upper):
            bound = lower if p < lower else upper
            push(rows, k, bound - p, velocity)
            impulse[k] = bound
            held[k] = 1
            changed = True
        elif held[k] > 0 and upper > lower:
            u = row_velocity(rows, k, p, velocity)
            if (u < -slack and p < upper) or (u > slack and p > lower):
                held[k] = 0
                changed = True
    return changed


@njit(**INNER)
def stiffen_loaded(rows, impulse, most):
    """Light links whose rows' softness yields by more than ``most`` m/s under their impulse become stiffer; True if any did."""
    changed = False
    for k in range(rows.eta.size):
        p = abs(impulse[k])
        if rows.softness[k] * p > most and rows.least[k] < 0.5 * rows.softness[k]:
            less = rows.softness[k] - max(0.5 * most / p, rows.least[k])
            rows.softness[k] -= less
            rows.compliance[k] -= less
            rows.eta[k] = 1.0 / (1.0 / rows.eta[k] - less)
            changed = True
    return changed


@njit(nogil=True, error_model="numpy", cache=True)
def begin_rows(rows, held, impulse, most):
    """Starting impulses within the bounds of this step; rows at a bound are held, rows under load stiffened."""
    for k in range(rows.eta.size):
        lower, upper = rows.lower[k], rows.upper[k]
        impulse[k] = min(max(impulse[k], lower), upper)
        held[k] = impulse[k] <= lower or impulse[k] >= upper
    stiffen_loaded(rows, impulse, most)


@njit(**INNER)
def solve_active_set(rows, members, held, system, impulse, work, slack, most, revises):
    """Solve all free rows, and find out which rows are free where ``revises``."""
    rounds = 0
    while True:
        if system.state[0] == 0:
            fill_system(rows, members, held, system)
            factorise(system)
            system.state[0] = 1
        correct(rows, held, system, impulse, work)
        rounds += 1
        if rounds > CHANGES:
            break
        other = revises and revise(rows, held, impulse, work, slack)
        if not (stiffen_loaded(rows, impulse, most) or other):
            break
        system.state[0] = 0


@njit(nogil=True, error_model="numpy", cache=True)
def solve_rows(rows, members, held, system, impulse, velocity, slack, most, revises, rounds, curves, step, parts):
    """Solve all free rows, and find out which rows are free where ``revises``; velocities and impulses change in place.

    Gauges are curved: their bias follows from the velocities that were found, and the rows are solved again, up to ``rounds`` times, until
    it changes by no more than ``slack`` (at the least once: that also takes out what rounding has left), or no longer by less than
    before. In the end it is that of the last velocities, so that the residual tells what is left of the joints' gaps. Where bodies turn
    by a radian a step it need not converge: then the first bias and its velocities are the answer. ``rounds`` < 0: the bias stays.
    Returns its last change, or infinity where it did not converge.

    ``rows`` refer to members. The work is done on a copy of their velocities in double precision: on the way to the
    set of free rows, rows that contradict each other may ask for enormous impulses."""
    work = np.empty(8 * members.velocity_row.size)
    for k in range(members.velocity_row.size):
        for c in range(8):
            work[8 * k + c] = velocity[8 * members.velocity_row[k] + c]
    solve_active_set(rows, members, held, system, impulse, work, slack, most, revises)
    change = 0.0
    if rounds > 0:
        bias_0, impulse_0, work_0 = rows.bias.copy(), impulse.copy(), work.copy()
    if rounds >= 0:
        change = renew_bias(curves, members, step, parts, rows, work)
    first, before = change, np.inf
    for _ in range(rounds):
        if change >= before:
            break
        solve_active_set(rows, members, held, system, impulse, work, slack, most, revises)
        if change <= slack:
            break  # what the bias would change by now is less by far
        before, change = change, renew_bias(curves, members, step, parts, rows, work)
    if rounds > 0 and change > slack and not change < CONTRACTS * first:
        rows.bias[:] = bias_0
        impulse[:] = impulse_0
        work[:] = work_0
        solve_active_set(rows, members, held, system, impulse, work, slack, most, revises)
        change = np.inf
    for k in range(members.velocity_row.size):
        if system.entry_first[k] >= 0:
            for c in range(8):
                velocity[8 * members.velocity_row[k] + c] = work[8 * k + c]
    return change
