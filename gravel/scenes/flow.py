"""Outflow of grains: removes those that fell below a height, and reports the rate."""

import numpy as np

from gravel.measures import beverloo


class Outflow:
    """An observer. Call it after steps; ``rate`` is the mass flow in kg/s over the middle of what it saw."""

    def __init__(self, grains, height):
        self.grains, self.height = np.asarray(grains), height
        self.times, self.masses = [], []
        self.count = 0

    def __call__(self, simulation):
        gone = self.grains[(simulation.positions[self.grains, 2] < self.height) & simulation.movable[self.grains]]
        mass = float(simulation.masses[gone].sum())
        simulation.remove(gone)
        self.count = int(np.count_nonzero(~simulation.alive[self.grains]))
        self.times.append(simulation.time)
        self.masses.append(mass + (self.masses[-1] if self.masses else 0.0))

    def rate(self):
        """Slope between a fifth and three fifths of the drained mass."""
        masses, times = np.array(self.masses), np.array(self.times)
        if len(masses) < 2 or masses[-1] == 0:
            return 0.0
        first, last = np.searchsorted(masses, [0.2 * masses[-1], 0.6 * masses[-1]])
        return float((masses[last] - masses[first]) / max(times[last] - times[first], 1e-9))

    @staticmethod
    def beverloo(outlet, radius, density, packing=0.58, coefficient=0.58, empty=1.5, opening="square"):
        """Beverloo's law for an outlet of width ``outlet``, the side of a square or the diameter of a circle, kg/s."""
        return beverloo(outlet, 2 * radius, packing * density, coefficient=coefficient, empty=empty, opening=opening)
