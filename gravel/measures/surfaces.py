"""The free surface of grains as points, and how well a straight line fits them. In: a ``Snapshot``. Out: places along the surface and the
heights of the highest bodies there."""

import numpy as np

from gravel.measures.units import DoesNotFit

FIT = 0.6  # share of the variance of heights that a line must explain; that of a heap of balls explains 0.9 and more
LEVEL = 0.05  # scatter of heights over that of places, up to which a surface is level within the size of its grains


def upwards(snapshot, name: str) -> np.ndarray:
    """(3,) the direction against gravity."""
    weight = np.linalg.norm(snapshot.gravity)
    if weight == 0.0:
        raise ValueError(f"{name} needs gravity, which says where up is, but it is zero")
    return -snapshot.gravity / weight


def highest(fields: list, heights: np.ndarray) -> np.ndarray:
    """Rows of the highest body in each field; ``fields``: numbers (n,) that name it together, the last first."""
    order = np.lexsort((-heights, *fields))
    new = np.zeros(len(order), bool)
    for numbers in fields:
        new |= np.append(True, np.diff(numbers[order]) != 0)
    return order[new]


def fitted_slope(name: str, what: str, places: np.ndarray, heights: np.ndarray) -> float:
    """The slope of the line through points by least squares; refused where it explains too little of how their heights differ, unless
    they hardly differ at all for the width of the points' places."""
    slope, start = np.polyfit(places, heights, 1)
    left = heights - (slope * places + start)
    explained = 1.0 - float(left @ left) / max(float(np.sum((heights - heights.mean()) ** 2)), 1e-300)
    if explained < FIT and np.std(left) > LEVEL * np.std(places):
        raise DoesNotFit(
            f"{name} is of {what}, but a line explains only {100 * max(explained, 0.0):.0f} % of how the heights of this surface "
            f"differ; it must explain {100 * FIT:.0f} %"
        )
    return float(slope)
