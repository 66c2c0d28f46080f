"""What bodies can be coloured by, in pictures, videos and the viewer: a value for each body of a frame."""

from typing import NamedTuple

import numpy as np

from gravel import checks
from gravel.rotations import conjugate, rotate

COLOURS = ("material", "speed", "radius", "contacts", "energy", "body", "rank")
PALETTE = ("#66c2a5", "#fc8d62", "#8da0cb", "#e78ac3", "#a6d854", "#ffd92f", "#e5c494")  # of number k: colour k modulo 7


class Colouring(NamedTuple):
    """A value for each body, and what it means."""

    values: np.ndarray  # (n,) f4
    words: str  # "speed, m/s"
    numbered: bool  # values are numbers of things, drawn in the colours of PALETTE without a scale
    names: tuple = ()  # of numbered things, by number; empty ones go by their number

    def name_of(self, number):
        """What a numbered thing is called."""
        return (self.names[number] if number < len(self.names) else "") or f"{self.words} {number}"


def colouring(data, name, contacts=None):
    """The values of all bodies of a frame (``gravel.io.present``) by a name of COLOURS. ``contacts``: the frame's ``ContactTable``, for
    how many each body has."""
    checks.choice("colour", name, COLOURS)
    if name in ("material", "rank"):
        names = tuple(data["material_names"]) if name == "material" else ()
        return Colouring(data[name].astype("f4"), "material" if name == "material" else "process", True, names)
    if name == "body":
        return Colouring(data["id"].astype("f4"), "body", True)
    if name == "speed":
        return Colouring(np.linalg.norm(data["velocity"], axis=1).astype("f4"), "speed, m/s", False)
    if name == "radius":
        return Colouring(data["radius"].astype("f4"), "radius, m", False)
    if name == "energy":
        return Colouring(kinetic_energies(data), "kinetic energy, J", False)
    if contacts is None:
        raise ValueError("colour contacts needs contacts, and there are none of this frame: run with --contacts, or sim.run(contacts=True)")
    return Colouring(contact_counts(data["id"], contacts), "contacts of a body", False)


def kinetic_energies(data):
    """(n,) J; 0 of bodies that forces cannot move."""
    spin = rotate(conjugate(data["quaternion"].astype(float)), data["angular_velocity"].astype(float))
    moving = data["mass"] * (data["velocity"].astype(float) ** 2).sum(axis=1)
    return (0.5 * (moving + (data["inertia"] * spin**2).sum(axis=1))).astype("f4")


def contact_counts(ids, contacts):
    """(n,) how many contacts that carry an impulse each body has."""
    pressed = contacts.impulse.any(axis=1)
    both = np.concatenate([contacts.body_a[pressed], contacts.body_b[pressed]])
    found, counts = np.unique(both, return_counts=True)
    if not len(found):
        return np.zeros(len(ids), "f4")
    at = np.minimum(np.searchsorted(found, ids), len(found) - 1)
    return np.where(found[at] == ids, counts[at], 0).astype("f4")
