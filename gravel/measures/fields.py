"""Fields by coarse graining, after Goldhirsch: each body is smeared over its surroundings by a function phi whose integral is 1.

    rho(r) = sum m phi(r - x),    v(r) = sum m v phi(r - x) / rho(r),    sigma(r) = sum s phi(r - x)

so that the integral of the density is the mass, of the momentum density rho v the momentum. "gaussian" phi has the standard deviation
``width`` and ends at 4 of them; "lucy" phi = 105 / (16 pi c^3) (1 + 3 q)(1 - q)^3, q = r / c, reaches to c = ``width``.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from gravel import checks
from gravel.measures.snapshot import Source, snapshot_of
from gravel.measures.stresses import contact_moments, kinetic_moments

KERNELS = ("gaussian", "lucy")
CUT = 4.0  # standard deviations at which a Gaussian ends
POINTS = 20000  # that are looked at together


def grid(low: ArrayLike, high: ArrayLike, cells: ArrayLike) -> np.ndarray:
    """(nx, ny, nz, 3) m: the middles of ``cells`` (nx, ny, nz) boxes between the corners ``low`` and ``high``."""
    low, high = checks.array("low", low, (3,)), checks.array("high", high, (3,))
    cells = checks.array("cells", cells, (3,), above=0, dtype=np.int64)
    if (low >= high).any():
        raise ValueError(f"low must be below high, not {low.tolist()} and {high.tolist()}")
    axes = [a + (b - a) * (np.arange(n) + 0.5) / n for a, b, n in zip(low, high, cells)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def density_field(source: Source, points: ArrayLike, width: float, kernel: str = "gaussian") -> np.ndarray:
    """(...) kg/m3 at ``points`` (..., 3) m, such as those of ``grid``: rho = sum m phi."""
    snapshot = snapshot_of(source)
    return _smeared(snapshot, snapshot.masses[:, None], points, width, kernel)[..., 0]


def velocity_field(source: Source, points: ArrayLike, width: float, kernel: str = "gaussian") -> np.ndarray:
    """(..., 3) m/s at ``points`` (..., 3) m: v = sum m v phi / rho; zero where no body is within reach."""
    snapshot = snapshot_of(source)
    values = np.column_stack([snapshot.masses, snapshot.masses[:, None] * snapshot.velocities])
    sums = _smeared(snapshot, values, points, width, kernel)
    density = sums[..., :1]
    return np.divide(sums[..., 1:], density, out=np.zeros_like(sums[..., 1:]), where=density > 0)


def stress_field(source: Source, points: ArrayLike, width: float, kernel: str = "gaussian") -> np.ndarray:
    """(..., 3, 3) Pa at ``points`` (..., 3) m, compression positive: what each body has of the stress (see ``stress``), smeared from its
    centre; v' is relative to the mean velocity of all bodies. Its integral is the mean stress times the volume. Smaller details
    than a body are not in it."""
    snapshot = snapshot_of(source)
    moments = contact_moments(snapshot) + kinetic_moments(snapshot, np.ones(len(snapshot), bool))
    sums = _smeared(snapshot, moments.reshape(-1, 9), points, width, kernel)
    return sums.reshape(*sums.shape[:-1], 3, 3)


def _smeared(snapshot, values, points, width, kernel):
    """(..., k): the sums of ``values`` (n, k) phi at the points."""
    width = checks.number("width", width, above=0.0)
    checks.choice("kernel", kernel, KERNELS)
    shape = np.shape(points)
    if len(shape) < 1 or shape[-1] != 3:
        raise ValueError(f"points must have shape (..., 3), not {shape}")
    places = snapshot.wrapped(checks.array("points", np.reshape(points, (-1, 3)), (None, 3)))
    reach = CUT * width if kernel == "gaussian" else width
    sums = np.zeros((len(places), values.shape[1]))
    if len(places):
        rows, centres = snapshot.images(places.min(axis=0), places.max(axis=0), np.full(len(snapshot), reach))
        tree = cKDTree(centres)
        for first in range(0, len(places), POINTS):
            some = places[first : first + POINTS]
            near = cKDTree(some).sparse_distance_matrix(tree, reach, output_type="ndarray")
            weight = _gaussian(near["v"], width) if kernel == "gaussian" else _lucy(near["v"], width)
            for k, column in enumerate(values.T):
                sums[first : first + len(some), k] = np.bincount(near["i"], weight * column[rows[near["j"]]], len(some))
    return sums.reshape(*shape[:-1], values.shape[1])


def _gaussian(distance, width):
    within = math.erf(CUT / math.sqrt(2)) - math.sqrt(2 / math.pi) * CUT * math.exp(-(CUT**2) / 2)  # of the whole function
    return np.exp(-0.5 * (distance / width) ** 2) / ((2 * math.pi) ** 1.5 * width**3 * within)


def _lucy(distance, width):
    q = distance / width
    return 105 / (16 * math.pi * width**3) * (1 + 3 * q) * np.maximum(1 - q, 0.0) ** 3
