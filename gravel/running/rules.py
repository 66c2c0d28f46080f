"""From the settings of a simulation to what its engine and its solver are told.

In: ``Settings``, materials, geometries, groups that ignore each other. Out: ``engine.Rules``, uploaded only when something they are made of
has changed, and the residuals at which a step has converged.
"""

import math

import numpy as np

from gravel.body_names import BodyNames
from gravel.engine import Engine, Margin, Rules
from gravel.joints.mechanism import Mechanism
from gravel.running import sanity_checks
from gravel.running.body_materials import BodyMaterials
from gravel.running.processes import Processes
from gravel.running.settings import Settings
from gravel.shapes.geometry import Geometries
from gravel.solvers import Goal

MARGIN_SHARE = 0.005  # of a body's bounding radius: contacts this near count, so that resting ones do not flicker
# Of |gravity| dt: up to these a step has converged, if the solver does not say. The root mean square tells how well the whole is solved;
# the largest of many thousands of contacts lags far behind it, and is bounded more loosely.
TOLERANCE, RMS_TOLERANCE = 0.2, 0.01
AIM = 5e-5  # of |gravity| dt: the largest residual that the solver goes on to as long as that costs little, so that small stacks stand
WEIGHTLESS = 0.01  # m/s that stand for |gravity| dt where nothing has weight
BOUNCING = 5  # times |gravity| dt: impacts slower than this do not bounce, if no threshold is given


def tolerance(settings: Settings) -> float:
    """m/s: the largest residual with which a step counts as converged."""
    return TOLERANCE * _speed_scale(settings) if settings.solver.tolerance is None else settings.solver.tolerance


def rms_tolerance(settings: Settings) -> float:
    """m/s: the root mean square of the residuals with which a step counts as converged; infinite where the solver has a tolerance."""
    return RMS_TOLERANCE * _speed_scale(settings) if settings.solver.tolerance is None else math.inf


def goal(settings: Settings) -> Goal:
    """Both of them."""
    return Goal(tolerance(settings), rms_tolerance(settings))


def aim(settings: Settings) -> Goal | None:
    """Residuals, m/s, towards which the solver goes on where that costs little; None where the solver has a tolerance."""
    return Goal(AIM * _speed_scale(settings)) if settings.solver.tolerance is None else None


def _speed_scale(settings):
    """m/s that a body gains by gravity in a step, or what stands for it."""
    return settings.dt * math.hypot(*settings.gravity) or WEIGHTLESS


def rules_of(settings: Settings, contact_values: np.ndarray, ignored: np.ndarray, geometries: Geometries) -> Rules:
    """What an engine is told of the settings; ``contact_values`` and ``ignored`` as in ``engine.Rules``."""
    threshold = settings.restitution_threshold
    return Rules(
        step=settings.dt,
        midpoint=settings.midpoint,
        gravity=settings.gravity,
        contact_values=contact_values,
        ignored=ignored,
        margin=Margin(0.0, MARGIN_SHARE) if settings.margin is None else Margin(settings.margin, 0.0),
        geometries=geometries,
        ellipsoid_method=settings.ellipsoid_method,
        coulomb=settings.friction == "coulomb",
        recovery=settings.recovery,
        recovery_speed=settings.recovery_speed,
        threshold=BOUNCING * settings.dt * math.hypot(*settings.gravity) if threshold is None else threshold,
    )


class RulesUpload:
    """Keeps an engine's rules up to date with what they are made of."""

    def __init__(
        self,
        engine: Engine,
        processes: Processes,
        settings: Settings,
        materials: BodyMaterials,
        geometries: Geometries,
        ignored: np.ndarray,
        mechanism: Mechanism,
        precision: str,
        names: BodyNames,
    ):
        self.engine, self.processes, self.settings, self.materials = engine, processes, settings, materials
        self.geometries, self.ignored, self.mechanism, self.precision = geometries, ignored, mechanism, precision
        self.names = names
        self._uploaded: tuple[int, ...] | None = None  # versions of what the engine was told last

    def upload(self) -> None:
        """The engine is told the rules if they have changed. Those that cannot hold are refused; the engine then keeps what it had."""
        versions = (self.settings.version, self.materials.version, len(self.geometries), len(self.mechanism))
        if versions == self._uploaded:
            return
        if self.settings.sleep is not None and self.processes.size > 1:
            raise ValueError(
                f"sleep must be None where {self.processes.size} processes share a simulation: bodies sleep on one process only"
            )
        contact_values = self.materials.contact_values()
        self.check(contact_values)
        self.engine.set_rules(rules_of(self.settings, contact_values, self.ignored, self.geometries))
        self._uploaded = versions

    def check(self, contact_values: np.ndarray) -> None:
        """Refuse contact values (materials, materials, 5) that the precision or the solver cannot take."""
        sanity_checks.check_cohesion(self.engine, self.settings.gravity, self.precision, contact_values, self.names)
        sanity_checks.check_solver(self.settings.solver, contact_values, len(self.mechanism))
