"""What moves, and how far: mass through a surface and Beverloo's law for it, mean square displacement. Observers for runs; the latter
also of a result."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.measures.regions import Space, region_of
from gravel.measures.snapshot import Source, snapshot_of
from gravel.measures.units import measured_in
from gravel.printing import formatting

OPENINGS = {"circle": 1.0, "square": 4 / math.pi}  # and their areas over that of the circle within


@measured_in("kg")
class MassFlow:
    """Counts the mass whose centres pass a plane, or a disc in it: ``observers=[MassFlow(point, normal)]``.

    ``point`` m and ``normal`` place the plane; mass that passes along the normal counts positive, back negative. ``radius`` m: only
    what passes within the disc about ``point`` counts; None: all. Between two calls bodies are taken to move straight. Bodies that
    are added or removed count from when, or until, they were last seen. ``mass`` (kg) and ``count`` are the sums so far, ``times``
    and ``masses`` how they grew; ``rate`` is the mean, kg/s."""

    def __init__(self, point: ArrayLike, normal: ArrayLike, radius: float | None = None):
        self.point, self.normal = checks.array("point", point, (3,)), checks.unit("normal", normal)
        self.radius = None if radius is None else checks.number("radius", radius, above=0.0)
        self.mass, self.count = 0.0, 0
        self.times: list[float] = []
        self.masses: list[float] = []
        self._seen: tuple | None = None

    def __call__(self, source: Source) -> float:
        """Take in what has passed since the last call; returns the mass so far, kg."""
        snapshot = snapshot_of(source)
        if self._seen is not None:
            _, before, now = np.intersect1d(self._seen[0], snapshot.ids, assume_unique=True, return_indices=True)
            start = snapshot.separations(self._seen[1][before] - self.point)
            way = snapshot.separations(snapshot.positions[now] - self._seen[1][before])
            old, new = start @ self.normal, (start + way) @ self.normal
            passed = (new >= 0).astype(int) - (old >= 0).astype(int)
            if self.radius is not None:
                share = np.divide(-old, new - old, out=np.zeros(len(old)), where=passed != 0)
                passed[np.linalg.norm(start + share[:, None] * way, axis=1) > self.radius] = 0
            self.mass += float(snapshot.masses[now] @ passed)
            self.count += int(passed.sum())
        self._seen = snapshot.ids, snapshot.positions.copy()
        self.times.append(snapshot.time)
        self.masses.append(self.mass)
        return self.mass

    def __repr__(self) -> str:
        return formatting.call(self, point=self.point, normal=self.normal, count=self.count, mass=formatting.rough(self.mass))

    @property
    def rate(self) -> float:
        """kg/s, mean between the first call and the last; 0 before there are two."""
        span = self.times[-1] - self.times[0] if len(self.times) > 1 else 0.0
        return self.mass / span if span > 0 else 0.0


@measured_in("s")
class ResidenceTime:
    """s that bodies stay in a region: ``observers=[ResidenceTime(region)]``.

    A body comes in and goes out in the middle between the calls before and after; how long those stayed that have left is in ``stays``
    (s), whose distribution is the exit age E(t) (Danckwerts 1953), and ``mean`` is their mean, which in steady flow is the mass inside
    over the mass flow. Bodies that are inside at the first call have been there for an unknown time and do not count; those that are
    removed have left. ``waiting``: how many are inside whose time runs. Each call returns the mean so far, 0 before anybody has left."""

    def __init__(self, region: Space | ArrayLike):
        if region is None:
            raise TypeError("region must be (low, high) or an object with contains and volume, not None: nobody leaves everywhere")
        self.region = region
        self.stays: list[float] = []
        self._inside: np.ndarray | None = None
        self._since: dict[int, float] = {}  # body -> s, when it came in
        self._time = 0.0

    def __call__(self, source: Source) -> float:
        """Take in who has come and gone since the last call; returns the mean stay of those that have left, s."""
        snapshot = snapshot_of(source)
        inside = snapshot.ids[region_of(self.region, snapshot).contains(snapshot.wrapped(snapshot.positions))]
        middle = 0.5 * (self._time + snapshot.time)
        if self._inside is not None:
            for body in np.setdiff1d(self._inside, inside, assume_unique=True).tolist():
                if body in self._since:
                    self.stays.append(middle - self._since.pop(body))
            for body in np.setdiff1d(inside, self._inside, assume_unique=True).tolist():
                self._since[body] = middle
        self._inside, self._time = inside, snapshot.time
        return self.mean if self.stays else 0.0

    @property
    def mean(self) -> float:
        """s, of those that have left; NaN before there is one."""
        return float(np.mean(self.stays)) if self.stays else math.nan

    @property
    def inside(self) -> int:
        """Bodies that were inside at the last call, those of the first call included."""
        return 0 if self._inside is None else len(self._inside)

    @property
    def waiting(self) -> int:
        """Bodies that came in and are inside still."""
        return len(self._since)

    def __repr__(self) -> str:
        return formatting.call(self, left=len(self.stays), waiting=self.waiting, mean=formatting.rough(self.mean))


@measured_in("kg/s")
def beverloo(
    width: float,
    diameter: float,
    bulk_density: float,
    gravity: float = 9.81,
    coefficient: float = 0.58,
    empty: float = 1.5,
    opening: str = "circle",
) -> float:
    """kg/s that flow by their weight through an opening in a flat floor (Beverloo et al. 1961): C rho sqrt(g) (D - k d)^(5/2).

    ``width`` m is D, of the circle, or of a square opening, whose flow is larger by the ratio of their areas, 4 / pi. ``diameter`` m is
    d, of the grains; ``bulk_density`` kg/m3 is rho, that of the grains and the gaps between them; ``gravity`` m/s2 g; ``coefficient``
    C (0.55 to 0.65) and ``empty`` k (1 to 2), the margin of the opening that stays empty, in diameters. 0 where nothing is left."""
    area = OPENINGS[checks.choice("opening", opening, tuple(OPENINGS))]
    density, gravity = checks.number("bulk_density", bulk_density, above=0.0), checks.number("gravity", gravity, minimum=0.0)
    coefficient, empty = checks.number("coefficient", coefficient, above=0.0), checks.number("empty", empty, minimum=0.0)
    free = checks.number("width", width, above=0.0) - empty * checks.number("diameter", diameter, above=0.0)
    return coefficient * density * math.sqrt(gravity) * area * max(free, 0.0) ** 2.5


@measured_in("m2")
class MeanSquareDisplacement:
    """m2, <|x(t) - x(0)|^2> over bodies since this observer was made: ``observers=[MeanSquareDisplacement(sim)]``.

    ``bodies``: their name or ids, or None for all that can move now; those that are removed later are left out from then on. Where space is
    periodic, ways are added up from call to call, so that a body that has gone round counts as far away: call it often enough that
    none moves further than half the cell in between. ``times`` and ``values`` are how it grew."""

    def __init__(self, source: Source, bodies: str | ArrayLike | None = None):
        snapshot = snapshot_of(source)
        ids = snapshot.ids if bodies is None else np.unique(snapshot.ids_of("bodies", bodies))
        rows = snapshot.rows(ids)
        if (rows < 0).any():
            raise ValueError(f"bodies must be ids of bodies that can move, but {ids[rows < 0][0]} is not")
        if not len(ids):
            raise ValueError("bodies must be at least one, not 0")
        self.ids, self._last, self._way = ids, snapshot.positions[rows], np.zeros((len(ids), 3))
        self.times, self.values = [snapshot.time], [0.0]

    def __call__(self, source: Source) -> float:
        """Take in where the bodies are; returns the mean square displacement, m2."""
        snapshot = snapshot_of(source)
        rows = snapshot.rows(self.ids)
        here = rows >= 0
        if not here.any():
            raise ValueError(f"bodies must still be there to have moved, but all were removed by t = {snapshot.time:g} s")
        self.ids, self._last, self._way = self.ids[here], self._last[here], self._way[here]
        now = snapshot.positions[rows[here]]
        self._way += snapshot.separations(now - self._last)
        self._last = now
        value = float(np.einsum("ni,ni->n", self._way, self._way).mean())
        self.times.append(snapshot.time)
        self.values.append(value)
        return value

    def __repr__(self) -> str:
        return formatting.call(self, bodies=len(self.ids), time=formatting.rough(self.times[-1]), value=formatting.rough(self.values[-1]))


def mean_square_displacement(frames: Iterable[Source], bodies: str | ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Times (frames,) s and mean square displacements (frames,) m2 since the first of the ``frames``: a ``Result``, or some of its
    frames. See ``MeanSquareDisplacement``."""
    observer: MeanSquareDisplacement | None = None
    for frame in frames:
        if observer is None:
            observer = MeanSquareDisplacement(frame, bodies)
        else:
            observer(frame)
    if observer is None:
        raise ValueError("frames must be at least one, not 0")
    return np.array(observer.times), np.array(observer.values)
