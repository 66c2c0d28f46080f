"""A cooling gas of rough balls: its initial state, shared by gravel and the event-driven reference, and that reference."""

import json

import numpy as np

from gravel.validation.column_start import DATA

FILE = DATA / "cooling.json"
COUNT, RADIUS, SIDE, SPEED = 10, 0.03, 1.0, 1.0  # balls along a side, m, m (periodic cube), m/s of each component, root mean square
FRICTION, RESTITUTION = 0.5, 0.9
TIMES = np.linspace(0.0, 2.0, 21)  # s, where mean temperatures are kept
FIRST = np.linspace(0.0, 0.3, 16)  # s, where those of the first start are


def gas_start(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Places and velocities of balls without spin: off a lattice by as much as there is room, with no momentum in the whole."""
    rng, spacing = np.random.default_rng(seed), SIDE / COUNT
    lattice = np.stack(np.meshgrid(*[np.arange(COUNT)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) + 0.5
    room = 0.49 * spacing - RADIUS
    velocities = rng.normal(size=lattice.shape)
    velocities -= velocities.mean(axis=0)
    return spacing * lattice + rng.uniform(-room, room, lattice.shape), SPEED * velocities / np.sqrt(np.mean(velocities**2))


def reference() -> dict[str, np.ndarray]:
    """Both temperatures over that of the start: at TIMES in the mean over many starts, at FIRST those of the first start alone."""
    return {name: np.array(values) for name, values in json.loads(FILE.read_text(encoding="utf-8")).items() if isinstance(values, list)}
