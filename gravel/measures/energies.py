"""Energy: of motion, of height, and what motors put in."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.measures.regions import Where, need_bodies, region_of
from gravel.measures.snapshot import Source, snapshot_of
from gravel.measures.units import measured_in
from gravel.printing import formatting
from gravel.rotations import conjugate, rotate

if TYPE_CHECKING:
    from gravel.simulation import Simulation


class KineticEnergy(NamedTuple):
    """J."""

    translational: float
    rotational: float
    total: float


@measured_in("J")
def kinetic_energy(source: Source, region: Where = None) -> KineticEnergy:
    """J, of the bodies whose centres are in the region: sum m v^2 / 2, sum w . I w / 2, and both."""
    snapshot, chosen = _chosen(source, region)
    spin = rotate(conjugate(snapshot.quaternions[chosen]), snapshot.angular_velocities[chosen])
    moving = 0.5 * float(snapshot.masses[chosen] @ np.einsum("ni,ni->n", *[snapshot.velocities[chosen]] * 2))
    turning = 0.5 * float(np.sum(snapshot.inertias[chosen] * spin**2))
    return KineticEnergy(moving, turning, moving + turning)


@measured_in("J")
def potential_energy(source: Source, region: Where = None) -> float:
    """J, - sum m g . x of the bodies whose centres are in the region: zero at the height of the origin, m |g| z where g is along -z."""
    snapshot, chosen = _chosen(source, region)
    return -float(snapshot.masses[chosen] @ (snapshot.positions[chosen] @ snapshot.gravity))


def _chosen(source: Source, region: Where):
    snapshot = snapshot_of(source)
    if region is None:
        return snapshot, np.ones(len(snapshot), bool)
    return snapshot, region_of(region, snapshot).contains(snapshot.wrapped(snapshot.positions))


@measured_in("m2/s2")
def granular_temperature(source: Source, region: Where = None) -> float:
    r"""m2/s2: $T = \sum m \, |v - \bar v|^2 / (3 \sum m)$ of the bodies whose centres are in the region, $\bar v$ their mean velocity by
    mass (Goldhirsch 2008). Where the mean velocity changes within the region, as in a shear flow, that change counts as well: take a
    small region."""
    snapshot, chosen = _chosen(source, region)
    need_bodies(snapshot, chosen)
    masses, velocities = snapshot.masses[chosen], snapshot.velocities[chosen]
    apart = velocities - np.average(velocities, axis=0, weights=masses)
    return float(masses @ np.einsum("ni,ni->n", apart, apart) / (3 * masses.sum()))


@measured_in("J")
class MotorWork:
    """J that motors have done since this observer was made, W = integral of effort times speed: ``observers=[MotorWork(sim)]``.

    A step adds effort x (speed before + speed after) / 2 x dt, which is what the effort, constant over the step, gives to what it
    drives. Call it in every step; when steps are left out, the last effort is taken for all of them. ``joints``: ids, or None for
    all. ``work`` is the sum, ``work_of_joints`` (joints,) that of each; ``times`` and ``works`` how it grew."""

    def __init__(self, sim: "Simulation", joints: ArrayLike | None = None):
        if not hasattr(sim, "joints") or not hasattr(sim, "time"):
            raise TypeError(f"sim must be a Simulation, not {sim!r:.80}")
        count = len(sim.joints)
        self.joints = np.arange(count) if joints is None else checks.array("joints", np.atleast_1d(joints), (None,), dtype=np.int64)
        if len(self.joints) and (self.joints.min() < 0 or self.joints.max() >= count):
            raise ValueError(f"joints must be ids below {count}, not {self.joints.min()} to {self.joints.max()}")
        self.work_of_joints = np.zeros(len(self.joints))
        self.times, self.works = [sim.time], [0.0]
        self._speed = self._speeds(sim.joints)

    def __call__(self, sim: "Simulation") -> float:
        """Take in what was done since the last call; returns the work so far, J."""
        table = sim.joints
        speed, effort = self._speeds(table), np.stack([table.motor_force, table.motor_torque], axis=1)[self.joints]
        span = sim.time - self.times[-1]
        if span > 0:
            self.work_of_joints += (effort * 0.5 * (self._speed + speed)).sum(axis=1) * span
            self.times.append(sim.time)
            self.works.append(self.work)
        self._speed = speed
        return self.work

    def __repr__(self) -> str:
        return formatting.call(self, joints=len(self.joints), time=formatting.rough(self.times[-1]), work=formatting.rough(self.work))

    @property
    def work(self) -> float:
        """J, of all these joints."""
        return float(self.work_of_joints.sum())

    def _speeds(self, table):
        """(joints, 2) along slide and angle; zero where a joint has none."""
        return np.nan_to_num(np.stack([table.slide_speed, table.angle_speed], axis=1)[self.joints])
