"""Distributions of sizes against those of SciPy, and a sieve curve that is sieved again."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

import gravel as gv

CASES = {
    "uniform": (gv.UniformSizes(0.01, 0.03), stats.uniform(0.01, 0.02), 0.01, 0.03),
    "normal": (gv.NormalSizes(0.02, 0.004), stats.norm(0.02, 0.004), 0.008, 0.032),
    "normal, cut": (gv.NormalSizes(0.02, 0.01, low=0.005, high=0.022), stats.norm(0.02, 0.01), 0.005, 0.022),
    "normal, upper tail": (gv.NormalSizes(0.02, 0.004, low=0.05, high=0.06), stats.norm(0.02, 0.004), 0.05, 0.06),
    "lognormal": (gv.LogNormalSizes(0.02, 0.4), stats.lognorm(0.4, scale=0.02), 0.0, math.inf),
    "lognormal, cut": (gv.LogNormalSizes(0.02, 0.8, low=0.01, high=0.05), stats.lognorm(0.8, scale=0.02), 0.01, 0.05),
    "weibull": (gv.WeibullSizes(0.02, 1.5), stats.weibull_min(1.5, scale=0.02), 0.0, math.inf),
    "weibull, cut": (gv.WeibullSizes(0.02, 0.8, low=0.01, high=0.06), stats.weibull_min(0.8, scale=0.02), 0.01, 0.06),
}


@pytest.mark.parametrize("name", CASES)
def test_samples_follow_the_distribution(name):
    sizes, twin, low, high = CASES[name]
    tail = twin.sf if low > twin.mean() else twin.cdf  # where it does not round to 1
    cdf = lambda x: np.abs(tail(x) - tail(low)) / np.abs(tail(high) - tail(low))  # noqa: E731
    sample = sizes.sample(np.random.default_rng(5), 20000)
    assert sample.min() >= low and sample.max() <= high and np.all(sample > 0)
    assert stats.kstest(sample, cdf).pvalue > 0.01


@pytest.mark.parametrize("name", CASES)
def test_mean_volume(name):
    sizes, twin, low, high = CASES[name]
    edges = np.linspace(low, high, 60) if math.isfinite(high) else np.geomspace(1e-9, 2.0, 60)
    pieces = list(zip(edges[:-1], edges[1:]))
    integral = lambda f: sum(integrate.quad(f, a, b, epsabs=0, epsrel=1e-10)[0] for a, b in pieces)  # noqa: E731
    expected = integral(lambda x: x**3 * twin.pdf(x)) / integral(twin.pdf)
    assert sizes.mean_volume() == pytest.approx(expected, rel=1e-6)


def test_a_sieve_curve_is_found_again_by_mass():
    diameters, passing = np.array([0.001, 0.002, 0.004, 0.006, 0.01]), np.array([0.0, 0.1, 0.5, 0.5, 1.0])
    curve = gv.SieveCurve(diameters, passing)
    d = 2 * curve.sample(np.random.default_rng(6), 400_000)
    assert d.min() >= 0.001 and d.max() <= 0.01 and not ((d > 0.004) & (d < 0.006)).any()
    mass = d**3
    for sieve in (0.0015, 0.002, 0.003, 0.004, 0.005, 0.007, 0.008, 0.01):
        assert mass[d <= sieve].sum() / mass.sum() == pytest.approx(np.interp(sieve, diameters, passing), abs=0.01)
    assert curve.mean_volume() == pytest.approx(np.mean((0.5 * d) ** 3), rel=0.02)


def test_a_seed_is_a_sample():
    sizes = gv.WeibullSizes(0.02, 1.5)
    assert np.array_equal(sizes.sample(np.random.default_rng(1), 10), sizes.sample(np.random.default_rng(1), 10))
    assert len(sizes.sample(np.random.default_rng(1), 0)) == 0


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: gv.UniformSizes(0.0, 1.0), "low must be greater than 0"),
        (lambda: gv.UniformSizes(0.2, 0.1), "high must be above low"),
        (lambda: gv.NormalSizes(1.0, 0.5), "low must be given"),
        (lambda: gv.NormalSizes(1.0, 0.1, low=5.0, high=6.0), "nothing is between 5 and 6"),
        (lambda: gv.NormalSizes("1", 0.1), "mean must be a number"),
        (lambda: gv.LogNormalSizes(1.0, -0.1), "sigma must be greater than 0"),
        (lambda: gv.LogNormalSizes(1.0, 0.1, low=2.0, high=1.0), "high must be above low 2, not 1"),
        (lambda: gv.WeibullSizes(1.0, math.nan), "shape must be finite"),
        (lambda: gv.SieveCurve([1, 2], [0, 0.9]), "passing must rise from 0 to 1"),
        (lambda: gv.SieveCurve([2, 1], [0, 1]), "diameters must rise"),
        (lambda: gv.SieveCurve([1, 2], [0, 0.5, 1]), "passing must have shape"),
        (lambda: gv.SieveCurve([1], [1]), "at least two"),
    ],
)
def test_bad_sizes_are_refused(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
