"""What a step costs on many processes: a sum of terms, each a count times the time that one of its kind takes.

The slowest process of a step works on its bodies, on its contacts in each iteration and on the bodies it shares with others in each
iteration; it sends messages and bytes; and in each iteration all add up numbers, which takes as many rounds as the number of processes
has doublings. The times come from measured runs by least squares, none of them negative. Pure functions: nothing is measured here.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from gravel import checks

SUMS = 2  # numbers are added up so often in an iteration


class Load(NamedTuple):
    """What a process does in a step."""

    ranks: int  # processes that share the simulation
    bodies: float  # that this one owns
    contact_work: float  # contacts times iterations
    shared_work: float  # bodies that others act on, too, times iterations
    messages: float
    bytes: float
    iterations: float


class Costs(NamedTuple):
    """Seconds, of one of each kind."""

    body: float
    contact: float  # and iteration
    shared: float  # body and iteration
    message: float
    byte: float
    round: float  # of adding up numbers, per iteration


class Network(NamedTuple):
    """What messages between machines cost beyond those within one: ``latency`` s, ``bandwidth`` bytes/s."""

    latency: float
    bandwidth: float


def counts_of(load: Load) -> np.ndarray:
    """(6,) how many there are of what ``Costs`` names."""
    rounds = load.iterations * math.log2(load.ranks)
    return np.array([load.bodies, load.contact_work, load.shared_work, load.messages, load.bytes, rounds])


def fitted(loads: Sequence[Load], seconds: Sequence[float]) -> Costs:
    """The costs that explain measured steps best, by relative error, so that small runs count as much as large ones. What the runs cannot
    tell apart goes to one of the costs; the others are zero."""
    if not len(loads) == len(seconds) > 0:
        raise ValueError(f"loads and seconds must be of one length and not empty, but there are {len(loads)} and {len(seconds)}")
    times = np.array([checks.number("seconds", value, above=0.0) for value in seconds])
    counts = np.array([counts_of(load) for load in loads]) / times[:, None]
    scale = counts.max(axis=0)
    scale[scale == 0.0] = 1.0
    found, _ = nnls(counts / scale, np.ones(len(times)))
    return Costs(*(found / scale).tolist())


def seconds_of(costs: Costs, load: Load, network: Network | None = None) -> float:
    """The time of a step, s; over a network, if one is given."""
    return float(counts_of(load) @ np.array(costs)) + (wire_seconds(load, network) if network else 0.0)


def talk_of(costs: Costs, load: Load, network: Network) -> float:
    """The part of that time that one process alone would not need, s."""
    return seconds_of(costs, load, network) - float(counts_of(load)[:2] @ np.array(costs[:2]))


def wire_seconds(load: Load, network: Network) -> float:
    """What a network adds to a step, s: messages go one after the other, and each round of a sum takes one."""
    rounds = SUMS * load.iterations * math.log2(load.ranks)
    return (load.messages + rounds) * network.latency + load.bytes / network.bandwidth


def amid(pair: Load, ranks: int, faces: int, neighbours: int) -> Load:
    """The load of a process amid many, that shares ``faces`` sides and talks to ``neighbours``, from that of one of two processes, which
    has one side and one neighbour."""
    return pair._replace(ranks=ranks, shared_work=faces * pair.shared_work, messages=neighbours * pair.messages, bytes=faces * pair.bytes)


def resized(load: Load, share: float, dimensions: int) -> Load:
    """The load where a process has ``share`` times as many bodies, and sides that grow as those of a block do that is cut in so many
    ``dimensions``."""
    side = share ** ((dimensions - 1) / dimensions)
    return load._replace(
        bodies=share * load.bodies,
        contact_work=share * load.contact_work,
        shared_work=side * load.shared_work,
        bytes=side * load.bytes,
    )
