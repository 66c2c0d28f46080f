"""``pour``: an inlet that feeds bodies at a rate, where there is room for them.

Which bodies come is decided by the seed alone, body by body; where they go by the seed and the number of the step. So a pour that is
made again, with the same seed and the number of bodies ``fed`` so far, goes on as if nothing had happened.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.cautions import warn
from gravel.detection.find import run_detection
from gravel.engine import GROUPS, Margin, Rules, make_engine
from gravel.model.materials import Material
from gravel.packing.blend import Part, What, as_given, materials_for, number_shares, parts_of, random_turns, scaled
from gravel.packing.regions import Region
from gravel.packing.sizes import Sizes
from gravel.rotations import rotate
from gravel.shapes import PLANE, SPHERE
from gravel.state import ANGULAR, GROUP, LINEAR, MATERIAL, MOVABLE, SHAPE, Bodies

if TYPE_CHECKING:
    from gravel.simulation import Simulation

CHUNK = 256  # bodies that are drawn together
TRIES = 24  # places that are tried for a body in a step
AT_ONCE = 64  # bodies that places are looked for at a time
PATIENCE = 0.25  # s by which the feed may be late before a warning
MOST_WAITING = 100_000  # bodies that are looked ahead for: a rate may ask for more than a machine can count
CLEAR = 1e-3  # of its radius that a new body keeps from others
WHICH, WHERE = 0, 1  # random numbers for what comes, and for where it goes


class Drawn(NamedTuple):
    """Bodies in the order in which they come."""

    part: np.ndarray  # (n,) which part of the mixture
    factor: np.ndarray  # (n,) of its shape
    radius: np.ndarray  # (n,) m, of the ball about the centre of mass that holds the body
    turn: np.ndarray  # (n, 4)
    mass: np.ndarray  # (n,) kg


class Pourer:
    """An observer that feeds bodies: what ``pour`` returns. ``fed`` bodies of ``fed_mass`` kg have come so far, ``waiting`` ones are due;
    ``rate`` in kg/s or bodies/s, ``velocity`` (3,) m/s of new bodies."""

    def __init__(
        self,
        parts: tuple[Part, ...],
        inlet: Region,
        rate: float,
        by_mass: bool,
        materials: list[Material],
        start: float,
        until: float | None,
        total: float | None,
        velocity: np.ndarray,
        seed: int,
        fed: int,
    ):
        self.inlet, self.rate, self.by_mass, self.start, self.until, self.total = inlet, rate, by_mass, start, until, total
        self.velocity, self.seed = velocity, seed
        self.fed, self.fed_mass = 0, 0.0  # bodies, kg
        self._parts, self._materials, self._shares = parts, materials, number_shares(parts)
        self._chunk = -1
        self._drawn: Any = None
        self._due, self._due_amount = 0, 0.0  # bodies that should be there, and kg or bodies of them
        self._warned = False
        for first in range(0, fed, CHUNK):
            self._count(self._bodies(first, min(first + CHUNK, fed)))
        self._due, self._due_amount = self.fed, self._amount

    def __repr__(self) -> str:
        unit = "kg/s" if self.by_mass else "bodies/s"
        return f"Pourer({self.rate:g} {unit}; {self.fed} bodies of {self.fed_mass:.4g} kg fed, {self.waiting} waiting)"

    @property
    def waiting(self) -> int:
        """Bodies that are due and have not found room yet; no more than 100 000 are counted."""
        return self._due - self.fed

    def __call__(self, simulation: "Simulation") -> np.ndarray:
        """Feed what is due; returns the ids of the new bodies. ``sim.run(observers=[pourer])`` calls it after each step."""
        wanted = self._wanted(simulation.time)
        self._look_ahead(wanted)
        rng = np.random.default_rng([self.seed, WHERE, simulation.steps])
        ids = [np.empty(0, np.int64)]
        while self.waiting:
            batch = self._bodies(self.fed, min(self._due, self.fed + AT_ONCE))
            centres = _places(self.inlet, batch.radius, self.velocity, simulation, rng)
            placed = Drawn(*(values[: len(centres)] for values in batch))
            ids += self._add(simulation, placed, centres)
            self._count(placed)
            if not self.waiting:
                self._look_ahead(wanted)
            if len(centres) < len(batch.mass):  # in their order: the next ones wait behind the one that finds no room
                self._warn_if_late(simulation.time)
                break
        return np.concatenate(ids)

    def _add(self, simulation, bodies, centres):
        ids = []
        for k, part in enumerate(self._parts):
            rows = np.flatnonzero(bodies.part == k)
            if len(rows):
                positions, quaternions = as_given(part.shape, bodies.factor[rows], centres[rows], bodies.turn[rows])
                options = {"quaternions": quaternions, "velocities": np.tile(self.velocity, (len(rows), 1))}
                ids.append(simulation.add_bodies(scaled(part.shape, bodies.factor[rows]), positions, self._materials[k], **options))
        return ids

    @property
    def mean_volume(self) -> float:
        """m3, of a body."""
        return float(np.dot(self._shares, [part.mean_volume() for part in self._parts]))

    @property
    def mean_mass(self) -> float:
        """kg, of a body."""
        volumes = [part.mean_volume() * material.density for part, material in zip(self._parts, self._materials)]
        return float(np.dot(self._shares, volumes))

    @property
    def _amount(self):
        return self.fed_mass if self.by_mass else float(self.fed)

    def _count(self, bodies):
        """These bodies have come; their masses are added one by one, so that the sum does not depend on how many came at a time."""
        for mass in bodies.mass.tolist():
            self.fed, self.fed_mass = self.fed + 1, self.fed_mass + mass

    def _look_ahead(self, wanted):
        """Which bodies are due: as long as they fit into what should have come by now, up to MOST_WAITING of them."""
        while self.waiting < MOST_WAITING:
            amount = self._due_amount + (float(self._bodies(self._due, self._due + 1).mass[0]) if self.by_mass else 1.0)
            if amount > wanted * (1 + 1e-12):
                return
            self._due, self._due_amount = self._due + 1, amount

    def _wanted(self, time):
        """kg or bodies that should have come."""
        end = time if self.until is None else min(time, self.until)
        wanted = self.rate * max(end - self.start, 0.0)
        return wanted if self.total is None else min(wanted, self.total)

    def _bodies(self, first, last):
        """The bodies with the numbers from ``first`` to ``last``; fewer, where those are drawn in another chunk."""
        chunk = first // CHUNK
        if chunk != self._chunk:
            self._chunk, self._drawn = chunk, self._draw(chunk)
        return Drawn(*(values[first - chunk * CHUNK : last - chunk * CHUNK] for values in self._drawn))

    def _draw(self, chunk):
        rng = np.random.default_rng([self.seed, WHICH, chunk])
        part = rng.choice(len(self._parts), CHUNK, p=self._shares)
        factor, radius, mass = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK)
        for k, own in enumerate(self._parts):
            rows = np.flatnonzero(part == k)
            factor[rows] = own.draw(rng, len(rows))
            radius[rows] = factor[rows] * float(own.shape.bounding_radii(1)[0])
            mass[rows] = factor[rows] ** 3 * float(own.shape.volumes(1)[0]) * self._materials[k].density
        if radius.max() * (1 + CLEAR) > self.inlet.inradius:
            raise ValueError(
                f"inlet must hold every body that is poured: one needs a radius of {radius.max():.3g} m, but the largest ball in the inlet "
                f"has {self.inlet.inradius:.3g} m"
            )
        return Drawn(part, factor, radius, random_turns(rng, CHUNK), mass)

    def _warn_if_late(self, time):
        """Once: the feed cannot keep up."""
        late = (self._wanted(time) - self._amount) / self.rate
        if late > PATIENCE and not self._warned:
            self._warned = True
            warn(
                f"the inlet is blocked or too small for its rate: at t = {time:g} s {self.waiting} bodies are waiting, the feed is "
                f"{late:.2g} s late; bodies must leave the inlet faster (a velocity, a higher place), or the inlet must be larger",
            )


def pour(
    what: What,
    inlet: Region,
    rate: float | None = None,
    *,
    number_rate: float | None = None,
    sizes: Sizes | None = None,
    material: Material | list[Material] | None = None,
    velocity: ArrayLike = (0.0, 0.0, 0.0),
    start: float = 0.0,
    until: float | None = None,
    total: float | None = None,
    seed: int = 0,
    fed: int = 0,
) -> Pourer:
    """An observer that feeds bodies into a region while a simulation runs.

    ``what`` and ``sizes`` as of ``pack``; ``rate`` kg/s or ``number_rate`` bodies/s, exactly one of them, from the simulated time
    ``start`` to ``until`` (s), at most ``total`` (in kg, or bodies, as the rate). ``material``: one, or one for each item of a Mixture.
    New bodies have the ``velocity`` (3,) m/s and turn any way. They appear wholly inside the ``inlet``, where nothing is: no ball
    around a new body overlaps anything. What finds no room waits, in its order (``pourer.waiting``), and comes when there is some; a
    warning tells when the feed is late by 0.25 s.

    ``pourer.fed`` bodies have come so far, ``pourer.fed_mass`` kg. To go on from a checkpoint, make the pour again with the same
    arguments and ``fed=`` that number: it feeds the same bodies at the same places as the run that was not interrupted.

    >>> sim.run(until=2.0, observers=[pour(Sphere(0.01), BoxRegion((0, 0, 1), (0.2, 0.2, 1.1)), rate=0.5)])
    """
    parts = parts_of(what, sizes)
    if not isinstance(inlet, Region):
        raise TypeError(f"inlet must be a region such as BoxRegion(low, high), not {inlet!r:.80}")
    if (rate is None) == (number_rate is None):
        raise ValueError(f"exactly one of rate (kg/s) and number_rate must be given, not rate={rate!r} and number_rate={number_rate!r}")
    by_mass = rate is not None
    rate = checks.number("rate", rate, above=0.0) if by_mass else checks.number("number_rate", number_rate, above=0.0)
    materials = materials_for(parts, material)
    for one in materials:
        if not isinstance(one, Material):
            raise TypeError(f"material must be a Material, not {one!r:.80}")
    start = checks.number("start", start)
    until = None if until is None else checks.number("until", until, above=start)
    total = None if total is None else checks.number("total", total, above=0.0)
    velocity = checks.array("velocity", velocity, (3,))
    seed, fed = checks.count("seed", seed), checks.count("fed", fed)
    pourer = Pourer(parts, inlet, rate, by_mass, materials, start, until, total, velocity, seed, fed)
    pourer._bodies(pourer.fed, pourer.fed + 1)  # refuses bodies that are too large for the inlet at once
    return pourer


def _places(inlet, radii, velocity, simulation, rng):
    """Centres for the first of some balls, as many as find room, in their order: free of all bodies and of each other."""
    radii = radii * (1 + CLEAR)
    owner = np.repeat(np.arange(len(radii)), TRIES)
    tries = inlet.try_centres(rng, radii[owner])
    inside = inlet.distance(tries) >= radii[owner]
    tries, owner = tries[inside], owner[inside]
    free = _is_free(tries, radii[owner], velocity, simulation, inlet.bounds)
    tries, owner = tries[free], owner[free]
    chosen = np.empty((0, 3))
    for k in range(len(radii)):
        own = tries[owner == k]
        apart = np.linalg.norm(own[:, None] - chosen, axis=2) >= radii[k] + radii[: len(chosen)]
        good = np.flatnonzero(apart.all(axis=1))
        if not len(good):
            break
        chosen = np.concatenate([chosen, own[good[:1]]])
    return chosen


def _is_free(centres, radii, velocity, simulation, bounds):
    """(n,) whether a ball that moves at ``velocity`` overlaps no body of a simulation, now and within the next step. Balls and planes
    are measured here, other shapes by the engine."""
    free = np.ones(len(centres), bool)
    fastest = np.linalg.norm(simulation.engine.field("velocity")[:, LINEAR], axis=1).max(initial=0.0)
    reach = simulation.dt * (float(fastest) + float(np.linalg.norm(velocity)))
    near = simulation.bodies_in_box(bounds[0] - reach, bounds[1] + reach)
    if not len(near) or not len(centres):
        return free
    fields = {name: simulation.engine.pick(name, near) for name in ("position", "quaternion", "velocity", "extent", "tag", "geometry")}
    kind, closing = fields["tag"][:, SHAPE], fields["velocity"][:, LINEAR] - velocity
    way = simulation.dt * np.linalg.norm(closing, axis=1)  # by which a body may come nearer in a step
    for row in np.flatnonzero(kind == PLANE):
        normal = rotate(fields["quaternion"][row], fields["extent"][row, :3])
        free &= (centres - fields["position"][row]) @ normal >= radii + max(0.0, simulation.dt * float(closing[row] @ normal))
    balls = kind == SPHERE
    gaps = np.linalg.norm(centres[:, None] - fields["position"][balls], axis=2) - radii[:, None]
    free &= (gaps >= fields["extent"][balls, 0] + way[balls]).all(axis=1)
    others = (kind != PLANE) & ~balls
    if others.any() and free.any():
        turning = simulation.dt * np.linalg.norm(fields["velocity"][:, ANGULAR], axis=1) * fields["extent"][:, 3]
        some = {name: values[others] for name, values in fields.items() if name != "velocity"}
        free[free] = ~_touched(centres[free], radii[free] + (way + turning)[others].max(), some, simulation)
    return free


def _touched(centres, radii, others, simulation):
    """(n,) whether balls overlap other bodies, by the engine's own contacts."""
    n, m = len(centres), len(others["position"])
    bodies = Bodies()
    tag = others["tag"].copy()
    tag[:, [MATERIAL, GROUP]] = 0
    bodies.append({**others, "tag": tag, "id": np.arange(m)})
    ball = np.zeros((n, 4), np.int32)
    ball[:, :] = SPHERE, 0, 1, MOVABLE
    extent = np.column_stack([radii, np.zeros((n, 2)), radii])
    upright = np.tile((1.0, 0.0, 0.0, 0.0), (n, 1))
    bodies.append({"position": centres, "quaternion": upright, "extent": extent, "tag": ball, "id": m + np.arange(n)})
    ignored = np.zeros((GROUPS, GROUPS), bool)
    ignored[0, 0] = ignored[1, 1] = True
    engine = make_engine(precision=simulation.precision, threads=simulation.threads)
    engine.add(bodies.block())
    engine.set_rules(Rules(margin=Margin(0.0, 0.0), geometries=simulation.geometries, ignored=ignored))
    table = run_detection(engine).contacts()
    touched = np.zeros(n, bool)
    touched[np.maximum(table.body_a, table.body_b) - m] = True
    return touched
