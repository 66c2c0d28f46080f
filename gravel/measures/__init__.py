"""Measures: what a state means, in numbers with units. Each takes a ``Simulation``, or a frame of a ``Result``.

>>> gv.measures.stress(sim, region=((0, 0, 0), (1, 1, 1)))
>>> sim.run(until=1.0, observers=[gv.measures.Log("log.csv", every=0.01, energy=gv.measures.kinetic_energy)])

Regions are boxes ``(low, high)`` or objects with ``contains(points)`` and ``volume``. Formulas and units: docs/MEASURES.md.
"""

from gravel.measures.energies import KineticEnergy, MotorWork, kinetic_energy, potential_energy
from gravel.measures.fields import density_field, grid, stress_field, velocity_field
from gravel.measures.heaps import angle_of_repose
from gravel.measures.log import Log
from gravel.measures.packing import packing_fraction
from gravel.measures.profiles import coordination_profile, packing_profile, slabs, velocity_profile
from gravel.measures.stresses import stress
from gravel.measures.structure import ForceDistribution, coordination, fabric, force_distribution, normal_forces
from gravel.measures.transport import MassFlow, MeanSquareDisplacement, beverloo, mean_square_displacement

__all__ = [
    "ForceDistribution",
    "KineticEnergy",
    "Log",
    "MassFlow",
    "MeanSquareDisplacement",
    "MotorWork",
    "angle_of_repose",
    "beverloo",
    "coordination",
    "coordination_profile",
    "density_field",
    "fabric",
    "force_distribution",
    "grid",
    "kinetic_energy",
    "mean_square_displacement",
    "normal_forces",
    "packing_fraction",
    "packing_profile",
    "potential_energy",
    "slabs",
    "stress",
    "stress_field",
    "velocity_field",
    "velocity_profile",
]
