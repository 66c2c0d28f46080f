"""Materials, and what two of them do at a contact.

Mixed pairs: the geometric mean of friction, rolling and spinning friction (a frictionless partner makes the pair
frictionless), the larger restitution (a rubber ball bounces on steel), the smaller cohesion (both must be sticky).
``Scene.set_pair`` replaces any of these for one pair.
"""

from dataclasses import dataclass, fields

import numpy as np

from gravel import checks

PAIR_FIELDS = ("friction", "restitution", "rolling_friction", "spinning_friction", "cohesion")


@dataclass(frozen=True)
class Material:
    density: float = 1000.0  # kg/m3
    friction: float = 0.5  # tangential over normal force
    restitution: float = 0.0  # speed after over speed before an impact, 0 to 1
    rolling_friction: float = 0.0  # m: arm of the normal force that a rolling torque may reach
    spinning_friction: float = 0.0  # m: the same for torques about the contact normal
    cohesion: float = 0.0  # N: pull that a touching contact can bear

    def __post_init__(self):
        for field in fields(self):
            bounds = {"density": {"above": 0.0}, "restitution": {"minimum": 0.0, "maximum": 1.0}}
            limits = bounds.get(field.name, {"minimum": 0.0})
            value = checks.number(f"Material {field.name}", getattr(self, field.name), **limits)
            object.__setattr__(self, field.name, value)


MIX = {"restitution": np.maximum, "cohesion": np.minimum}  # of the others, the geometric mean


def pair_table(materials, explicit):
    """(M, M, 5) contact values of every pair, in the order of PAIR_FIELDS; ``explicit`` maps (i, j) to given values."""
    table = np.zeros((len(materials), len(materials), len(PAIR_FIELDS)))
    for k, name in enumerate(PAIR_FIELDS):
        own = np.array([getattr(material, name) for material in materials], float)
        mixed = MIX[name].outer(own, own) if name in MIX else np.sqrt(np.multiply.outer(own, own))
        table[..., k] = mixed
        for (i, j), values in explicit.items():
            table[i, j, k] = table[j, i, k] = values.get(name, mixed[i, j])
    return table
