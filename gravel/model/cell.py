"""The cell of a periodic scene: space that repeats itself along one, two or three axes, and how the cell deforms.

What leaves the cell on one side comes in on the other. ``Deformation`` makes the cell flow: lengths that change, Lees-Edwards shear,
or a stress that the cell's size follows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.engine import Lattice
from gravel.printing import formatting

AXES = ("x", "y", "z")
LONGEST_STEP = 0.1  # of a length that a step may add to it or take from it


@dataclass(frozen=True, repr=False)
class Deformation:
    """How a periodic cell changes with time.

    ``strain_rate`` (3,) 1/s: true rates at which its lengths grow, d(ln L)/dt; negative: it shrinks. The middle stays where it is.
    ``shear_rate`` 1/s: Lees-Edwards shear. The copies of the cell along ``gradient`` move along ``direction`` with shear_rate times the
    cell's length, so that the flow v = shear_rate * y is the same everywhere; no wall drives it.
    ``stress`` (3,) Pa, compression positive, or None along axes that it does not control: along the others the cell follows the stress
    within. It moves like a piston that has ``inertia`` times the mass of all bodies and is pushed from outside with that stress, at most
    at ``limit`` 1/s (``strain_rate`` is not used there). Bodies are rigid: where they are jammed, the stress of single steps goes up and
    down as it does when a piston rests on stones, and its mean over some hundred steps is the stress asked for.
    """

    strain_rate: Sequence[float] = (0.0, 0.0, 0.0)
    shear_rate: float = 0.0
    direction: str = "x"
    gradient: str = "z"
    stress: Sequence[float | None] = (None, None, None)
    inertia: float = 5.0
    limit: float = 1.0

    def __post_init__(self):
        rates = checks.array("Deformation strain_rate", self.strain_rate, (3,))
        object.__setattr__(self, "strain_rate", tuple(rates.tolist()))
        checks.number("Deformation shear_rate", self.shear_rate)
        for name in ("direction", "gradient"):
            checks.choice(f"Deformation {name}", getattr(self, name), AXES)
        if self.direction == self.gradient:
            raise ValueError(f"Deformation direction and gradient must be two axes, but both are {self.direction!r}")
        try:
            stress = tuple(None if s is None else checks.number("Deformation stress", s, minimum=0.0) for s in self.stress)
        except TypeError:
            stress = ()
        if len(stress) != 3:
            raise TypeError(f"Deformation stress must be three numbers in Pa, or None where it is not controlled, not {self.stress!r}")
        object.__setattr__(self, "stress", stress)
        checks.number("Deformation inertia", self.inertia, above=0.0)
        checks.number("Deformation limit", self.limit, above=0.0)

    def __repr__(self) -> str:
        return formatting.of_fields(self)

    @property
    def controls_stress(self) -> bool:
        """Whether the cell follows a stress along any axis."""
        return any(s is not None for s in self.stress)


class Cell:
    """A box of space that repeats itself: ``low`` and ``high`` (3,) m, infinite along axes that are not periodic.

    ``tilt`` m: how far the copies above along ``gradient`` are shifted along ``direction`` by shear, within half a length. ``strain`` (3,)
    and ``shear_strain``: what deformation has added up to, since the start."""

    _axes: tuple[int, int]  # direction and gradient of its shear

    def __init__(self, periodic: Sequence[ArrayLike | None], deformation: Deformation | None = None):
        self.low, self.high = _borders(periodic)
        self.tilt, self.strain, self.shear_strain = 0.0, np.zeros(3), 0.0
        self.rate = np.zeros(3)  # 1/s, present strain rate
        self.deform(deformation)

    def __repr__(self) -> str:
        sides = {AXES[k]: (self.low[k], self.high[k]) for k in np.flatnonzero(self.periodic)}
        tilt = {"tilt": formatting.rough(self.tilt)} if self.tilt else {}
        flow = {} if self.deformation is None else {"deformation": self.deformation}
        return formatting.call(self, **sides, **tilt, **flow)

    def deform(self, deformation: Deformation | None) -> None:
        """Another deformation from now on; None: the cell keeps its size and shape."""
        if deformation is not None and not isinstance(deformation, Deformation):
            raise TypeError(f"deformation must be a Deformation or None, not {deformation!r}")
        if deformation is not None:
            for k, axis in enumerate(AXES):
                if not self.periodic[k] and (deformation.strain_rate[k] or deformation.stress[k] is not None):
                    raise ValueError(f"deformation must change periodic axes only, but the scene is not periodic along {axis}")
            if deformation.controls_stress and not self.periodic.all():
                raise ValueError("deformation by stress needs a volume: the scene must be periodic along all three axes")
            for axis in (deformation.direction, deformation.gradient) if deformation.shear_rate else ():
                if not self.periodic[AXES.index(axis)]:
                    raise ValueError(f"deformation with shear must be along periodic axes, but the scene is not periodic along {axis}")
            if self.tilt and deformation.shear_rate and self._axes != self._axes_of(deformation):
                raise ValueError(
                    f"deformation must keep the direction and gradient of the shear that the cell has, {AXES[self._axes[0]]!r} and "
                    f"{AXES[self._axes[1]]!r}, not {deformation.direction!r} and {deformation.gradient!r}"
                )
        if not (self.tilt and (deformation is None or not deformation.shear_rate)):
            self._axes = self._axes_of(deformation) if deformation is not None else (0, 2)
        self.deformation = deformation
        self.rate = np.where(self._controlled(), self.rate, 0.0 if deformation is None else deformation.strain_rate)

    @staticmethod
    def _axes_of(deformation):
        return AXES.index(deformation.direction), AXES.index(deformation.gradient)

    def _controlled(self):
        return np.array([s is not None for s in (self.deformation.stress if self.deformation is not None else (None,) * 3)])

    # --- what users ask
    @property
    def periodic(self) -> np.ndarray:
        """(3,) along which axes space repeats itself."""
        return np.isfinite(self.low)

    @property
    def lengths(self) -> np.ndarray:
        """(3,) m, infinite along axes that are not periodic."""
        return np.where(self.periodic, self.high, math.inf) - np.where(self.periodic, self.low, 0.0)

    @property
    def volume(self) -> float:
        """m3; infinite unless all three axes are periodic."""
        return float(np.prod(self.lengths))

    @property
    def shear_rate(self) -> float:
        """1/s, at present."""
        return 0.0 if self.deformation is None else self.deformation.shear_rate

    def wrap(self, positions: ArrayLike) -> np.ndarray:
        """(n, 3) the places within the cell that positions (n, 3) stand for."""
        positions = np.array(positions, float)
        return positions + self.shifts(-self._windings(positions))

    def separation(self, vectors: ArrayLike) -> np.ndarray:
        """(n, 3) the shortest of all vectors between copies, for vectors (n, 3) between two bodies."""
        vectors = np.array(vectors, float)
        best, length = vectors, np.full(len(vectors), math.inf)
        direction, gradient = self._axes
        for up in (-1, 0, 1) if self.periodic[gradient] else (0,):  # with a tilt, the nearest layer need not hold the nearest copy
            moved, layers = vectors.copy(), np.zeros(vectors.shape)
            for k in (gradient, *(k for k in range(3) if k != gradient)):
                if self.periodic[k]:
                    layers[:, k] = -np.round(moved[:, k] / self.lengths[k]) + (up if k == gradient else 0)
                    moved += self.shifts(np.where(np.arange(3) == k, layers, 0.0))
            square = np.einsum("ni,ni->n", moved, moved)
            nearer = square < length
            best, length = np.where(nearer[:, None], moved, best), np.where(nearer, square, length)
        return best

    def shifts(self, windings: ArrayLike) -> np.ndarray:
        """(n, 3) m: by what copies of the cell are shifted that are so many (n, 3) cells away."""
        windings = np.asarray(windings, float)
        result = windings * np.where(self.periodic, self.lengths, 0.0)
        direction, gradient = self._axes
        result[:, direction] += windings[:, gradient] * self.tilt
        return result

    def _windings(self, positions):
        windings, moved = np.zeros(positions.shape), positions.copy()
        direction, gradient = self._axes
        for k in (gradient, *(k for k in range(3) if k != gradient)):
            if self.periodic[k]:
                windings[:, k] = np.floor((moved[:, k] - self.low[k]) / self.lengths[k])
                moved -= self.shifts(np.where(np.arange(3) == k, windings, 0.0))
        return windings

    # --- the step
    def copy(self) -> "Cell":
        """A twin that goes its own way."""
        twin = object.__new__(Cell)
        twin.__dict__.update({name: np.copy(value) if isinstance(value, np.ndarray) else value for name, value in self.__dict__.items()})
        return twin

    def lattice(self, later: float = 0.0) -> Lattice:
        """What an engine is told of the cell as it will be ``later`` s from now, at the present rates."""
        periodic = self.periodic
        direction, gradient = self._axes
        growth = np.where(periodic, np.exp(self.rate * later), 1.0)
        lengths = np.where(periodic, self.lengths, math.inf) * growth
        middle = np.where(periodic, 0.5 * (np.where(periodic, self.low, 0.0) + np.where(periodic, self.high, 0.0)), 0.0)
        tilt = self.tilt * growth[direction] + self._tilt_rate() * later if periodic[direction] else 0.0
        return Lattice(
            np.where(periodic, middle - 0.5 * np.where(periodic, lengths, 0.0), -math.inf),
            lengths,
            direction,
            gradient,
            tilt,
            np.where(periodic, np.where(periodic, lengths, 0.0) * self.rate, 0.0),
            self._tilt_rate() + self.tilt * self.rate[direction] if periodic[direction] else 0.0,
        )

    def _tilt_rate(self):
        return self.shear_rate * self.lengths[self._axes[1]] if self.shear_rate else 0.0

    def check_step(self, dt: float) -> None:
        """Refuse steps in which the cell would change too much."""
        change = max(float(np.abs(self.rate).max()), abs(self.shear_rate)) * dt
        if change > LONGEST_STEP:
            raise ValueError(
                f"dt must be so short that the cell deforms by at most {100 * LONGEST_STEP:g} % in a step, not by {100 * change:.3g} %"
            )

    def advance(self, dt: float) -> None:
        """The cell a step later."""
        ahead = self.lattice(dt)
        direction = self._axes[0]
        self.low, self.high = ahead.low, np.where(self.periodic, np.where(self.periodic, ahead.low, 0.0) + ahead.length, math.inf)
        self.strain = self.strain + np.where(self.periodic, self.rate * dt, 0.0)
        self.shear_strain += self.shear_rate * dt
        length = self.lengths[direction]
        self.tilt = ahead.tilt - length * round(ahead.tilt / length) if ahead.tilt else 0.0

    def follow(self, stress: np.ndarray, mass: float, dt: float) -> None:
        """The strain rates of the axes under stress control, after a step in which the stress within was ``stress`` (3,) Pa; ``mass``: of
        all bodies."""
        law = self.deformation
        if law is None:
            return
        for k, target in enumerate(law.stress):
            if target is not None:
                area = self.volume / self.lengths[k]
                speed = self.rate[k] * self.lengths[k] + dt * (stress[k] - target) * area / (law.inertia * mass)
                self.rate[k] = np.clip(speed / self.lengths[k], -law.limit, law.limit)

    # --- files
    def to_values(self) -> dict:
        """All of it as plain numbers."""
        law = self.deformation
        return {
            "low": [None if math.isinf(x) else x for x in self.low.tolist()],
            "high": [None if math.isinf(x) else x for x in self.high.tolist()],
            "tilt": self.tilt,
            "strain": self.strain.tolist(),
            "shear_strain": self.shear_strain,
            "rate": self.rate.tolist(),
            "axes": list(self._axes),
            "deformation": None if law is None else {name: getattr(law, name) for name in law.__dataclass_fields__},
        }

    @classmethod
    def from_values(cls, values: dict) -> "Cell":
        """The cell that ``to_values`` has written."""
        law = values["deformation"]
        cell = cls(
            [None if a is None else (a, b) for a, b in zip(values["low"], values["high"])], None if law is None else Deformation(**law)
        )
        cell.tilt, cell.shear_strain = checks.number("tilt", values["tilt"]), checks.number("shear_strain", values["shear_strain"])
        cell.strain, cell.rate = checks.array("strain", values["strain"], (3,)), checks.array("rate", values["rate"], (3,))
        direction, gradient = (checks.count("axes", k) for k in values["axes"])
        if direction == gradient or max(direction, gradient) > 2:
            raise ValueError(f"axes must be two of 0, 1 and 2, not {values['axes']}")
        cell._axes = direction, gradient
        return cell


def _borders(periodic):
    """(low, high), infinite along axes that are not periodic."""
    try:
        given = [None if pair is None else tuple(pair) for pair in periodic]
        sound = len(given) == 3 and all(pair is None or len(pair) == 2 for pair in given)
    except TypeError:
        sound = False
    if not sound:
        raise TypeError(f"periodic must be three pairs (low, high) in m, with None for axes that do not repeat, not {periodic!r}")
    low, high = np.full(3, -math.inf), np.full(3, math.inf)
    for k, pair in enumerate(given):
        if pair is not None:
            low[k], high[k] = (checks.number(f"periodic along {AXES[k]}", x) for x in pair)
            if not low[k] < high[k]:
                raise ValueError(f"periodic must have low < high, but along {AXES[k]} it is {pair!r}")
    if np.isinf(low).all():
        raise ValueError(f"periodic must name at least one axis that repeats, not {periodic!r}; leave it out for none")
    return low, high
