"""Distributions of sizes, by number of bodies unless said otherwise.

A size is the radius of a ball in m; of any other shape, and of ``Sphere(1.0)`` just the same, the factor by which the shape is scaled.
Each distribution turns a plain random variable (uniform, normal, exponential) into sizes by a rising function, so that cutting it
off between ``low`` and ``high`` is cutting off that variable: the shape of the rest stays as it is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from gravel import checks
from gravel.printing import formatting

TAIL = 12.0  # standard deviations beyond which a normal variable is never found
NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)


class Sizes:
    """What all distributions of sizes have: ``sample``, ``mean_volume`` and ``largest``."""

    _quantile: Callable[[np.ndarray], np.ndarray]
    _range: tuple[float, float]  # of the plain variable

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """(n,) random sizes: radii in m, or scale factors."""
        return self._quantile(rng.uniform(size=checks.count("n", n)))

    def mean_volume(self) -> float:
        """The mean of size^3: how many bodies make up a volume follows from it."""
        raise NotImplementedError


@dataclass(frozen=True)
class UniformSizes(Sizes):
    """All sizes between ``low`` and ``high`` alike."""

    low: float
    high: float

    def __post_init__(self):
        _between(self, checks.number("UniformSizes low", self.low, above=0.0), checks.number("UniformSizes high", self.high))

    def _quantile(self, u):
        return self.low + u * (self.high - self.low)

    def mean_volume(self) -> float:
        return (self.low + self.high) * (self.low**2 + self.high**2) / 4


@dataclass(frozen=True)
class NormalSizes(Sizes):
    """The normal distribution with ``mean`` and standard ``deviation`` (of what is not cut off), cut off at ``low`` and ``high``.
    Without these it is cut at three deviations; ``low`` must be above 0."""

    mean: float
    deviation: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self):
        mean = checks.number("NormalSizes mean", self.mean, above=0.0)
        deviation = checks.number("NormalSizes deviation", self.deviation, above=0.0)
        low = mean - 3 * deviation if self.low is None else checks.number("NormalSizes low", self.low, above=0.0)
        if low <= 0.0:
            raise ValueError(
                f"NormalSizes low must be given where mean - 3 deviation, here {low:g}, is not above 0: sizes are; cut off with low="
            )
        high = mean + 3 * deviation if self.high is None else checks.number("NormalSizes high", self.high)
        _between(self, low, high)
        _cut(self, (low - mean) / deviation, (high - mean) / deviation)

    def _size(self, z):
        return self.mean + self.deviation * z

    def _quantile(self, u):
        return np.clip(self._size(_cut_normal(u, *self._range)), self.low, self.high)

    def mean_volume(self) -> float:
        return _mean_of_normal(lambda z: self._size(z) ** 3, *self._range)


@dataclass(frozen=True)
class LogNormalSizes(Sizes):
    """Sizes whose logarithm is normal: half of them below ``median``, two thirds within a factor exp(``sigma``) of it. Cut off at
    ``low`` and ``high``, without which it has no ends."""

    median: float
    sigma: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self):
        median = checks.number("LogNormalSizes median", self.median, above=0.0)
        sigma = checks.number("LogNormalSizes sigma", self.sigma, above=0.0)
        ends = _ends("LogNormalSizes", self.low, self.high)
        _between(self, *ends)
        with np.errstate(divide="ignore"):
            _cut(self, *(np.log(np.array(ends) / median) / sigma))

    def _size(self, z):
        return self.median * np.exp(self.sigma * z)

    def _quantile(self, u):
        return np.clip(self._size(_cut_normal(u, *self._range)), self.low, self.high)

    def mean_volume(self) -> float:
        start, stop = self._range
        return _mean_of_normal(lambda z: self._size(z) ** 3, start, stop, shift=3 * self.sigma)


@dataclass(frozen=True)
class WeibullSizes(Sizes):
    """The Weibull (Rosin-Rammler) distribution: the share exp(-(size / ``scale``)^``shape``) is larger than a size. Cut off at ``low``
    and ``high``, without which it goes from 0 to infinity."""

    scale: float
    shape: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self):
        scale = checks.number("WeibullSizes scale", self.scale, above=0.0)
        shape = checks.number("WeibullSizes shape", self.shape, above=0.0)
        ends = _ends("WeibullSizes", self.low, self.high)
        _between(self, *ends)
        object.__setattr__(self, "_range", tuple((end / scale) ** shape for end in ends))

    def _size(self, t):
        return self.scale * t ** (1 / self.shape)

    def _quantile(self, u):
        start, stop = self._range
        share = -math.expm1(start - stop)  # of what lies beyond the start
        return np.clip(self._size(start - np.log1p(-u * share)), max(self.low or 0.0, 1e-300), self.high)

    def mean_volume(self) -> float:
        start, stop = self._range
        stop = min(stop, start + 100.0 + 30.0 / self.shape)
        edges = start + (stop - start) * np.linspace(0, 1, 41) ** 4  # the root has no derivative at 0
        total = sum(_integral(lambda t: self._size(t) ** 3 * np.exp(start - t), a, b) for a, b in zip(edges[:-1], edges[1:]))
        return total / -math.expm1(start - self._range[1])


@dataclass(frozen=True, eq=False, repr=False)
class SieveCurve(Sizes):
    """A sieve curve: the share ``passing`` (from 0 to 1, by mass) of the sieves' ``diameters`` (m, rising), straight in between.

    Sizes are half the diameter. Between two sieves the mass is spread evenly over the diameters; with one density and similar bodies
    a mass dm of diameter d is dm / d^3 bodies, so that the number density falls as d^-3: most bodies are small, most mass is not.
    """

    diameters: Any
    passing: Any

    def __post_init__(self):
        diameters = checks.array("SieveCurve diameters", self.diameters, (None,), above=0.0)
        passing = checks.array("SieveCurve passing", self.passing, (len(diameters),))
        if len(diameters) < 2:
            raise ValueError(f"SieveCurve diameters must be at least two, not {len(diameters)}")
        if not (np.diff(diameters) > 0).all():
            raise ValueError(f"SieveCurve diameters must rise, not {diameters.tolist()}")
        if passing[0] != 0.0 or passing[-1] != 1.0 or (np.diff(passing) < 0).any():
            raise ValueError(f"SieveCurve passing must rise from 0 to 1, not {passing.tolist()}")
        object.__setattr__(self, "diameters", diameters)
        object.__setattr__(self, "passing", passing)

    def __repr__(self) -> str:
        return formatting.of_fields(self)

    @property
    def _numbers(self):
        """Bodies between two sieves, for each m3 / (pi / 6) of all."""
        a, b = self.diameters[:-1], self.diameters[1:]
        return np.diff(self.passing) * (a + b) / (2 * (a * b) ** 2)

    def _quantile(self, u):
        ends = np.concatenate([[0.0], np.cumsum(self._numbers)])
        place = u * ends[-1]
        k = np.clip(np.searchsorted(ends, place, side="right") - 1, 0, len(ends) - 2)
        part = np.clip((place - ends[k]) / np.where(self._numbers[k] > 0, self._numbers[k], 1.0), 0.0, 1.0)
        a, b = self.diameters[k], self.diameters[k + 1]
        return 0.5 / np.sqrt(a**-2 - part * (a**-2 - b**-2))

    def mean_volume(self) -> float:
        return 1 / (8 * float(self._numbers.sum()))


def _ends(name, low, high):
    low = 0.0 if low is None else checks.number(f"{name} low", low, above=0.0)
    return low, math.inf if high is None else checks.number(f"{name} high", high)


def _between(sizes, low, high):
    """Keeps where a distribution begins and ends."""
    if high <= low:
        raise ValueError(f"{type(sizes).__name__} high must be above low {low:g}, not {high:g}")
    object.__setattr__(sizes, "low", low)
    object.__setattr__(sizes, "high", high)


def _cut(sizes, start, stop):
    """Keeps the range of a normal variable, unless next to nothing is in it."""
    if _log_share(start, stop) < -500.0:
        raise ValueError(f"{type(sizes).__name__} low and high must leave something: nothing is between {sizes.low:g} and {sizes.high:g}")
    object.__setattr__(sizes, "_range", (float(start), float(stop)))


def _log_share(start, stop):
    """log of the share of a normal variable in a range; on the side where it does not round to 1."""
    if start > 0:
        start, stop = -stop, -start
    return log_ndtr(stop) + np.log1p(-np.exp(min(log_ndtr(start) - log_ndtr(stop), -1e-300)))


def _cut_normal(u, start, stop):
    """Quantiles of a normal variable that is cut off."""
    if start > 0:
        return -_cut_normal(1 - u, -stop, -start)
    return np.clip(ndtri(ndtr(start) + u * (ndtr(stop) - ndtr(start))), max(start, -TAIL), min(stop, TAIL))


def _mean_of_normal(function, start, stop, shift=0.0):
    """Mean of a function of a normal variable that is cut off; its weight is greatest near ``shift``."""
    share = math.exp(_log_share(start, stop))
    start, stop = max(start, -TAIL), min(stop, TAIL + shift)
    edges = np.linspace(start, stop, 9)
    density = lambda z: function(z) * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)  # noqa: E731
    return sum(_integral(density, a, b) for a, b in zip(edges[:-1], edges[1:])) / share


def _integral(function, a, b):
    """By Gauss and Legendre."""
    return float(0.5 * (b - a) * WEIGHTS @ function(0.5 * (a + b) + 0.5 * (b - a) * NODES))
