"""Measures: what a state means, in numbers with units. Each takes a ``Simulation``, or a frame of a ``Result``.

>>> gv.measures.stress(sim, region=((0, 0, 0), (1, 1, 1)))
>>> sim.run(until=1.0, observers=[gv.measures.Log("log.csv", every=0.01, energy=gv.measures.kinetic_energy)])

Regions are boxes ``(low, high)`` or objects with ``contains(points)`` and ``volume``. Formulas and units: docs/MEASURES.md.
"""

from gravel.measures.energies import KineticEnergy, MotorWork, granular_temperature, kinetic_energy, potential_energy
from gravel.measures.fields import density_field, grid, stress_field, velocity_field
from gravel.measures.heaps import angle_of_repose, dynamic_angle
from gravel.measures.log import Log
from gravel.measures.machines import contact_force, contact_power, contact_torque
from gravel.measures.mixing import mixing_index, segregation_profile
from gravel.measures.packing import packing_fraction
from gravel.measures.profiles import coordination_profile, packing_profile, slabs, velocity_profile
from gravel.measures.stresses import stress
from gravel.measures.structure import ForceDistribution, coordination, fabric, force_distribution, normal_forces
from gravel.measures.transport import MassFlow, MeanSquareDisplacement, ResidenceTime, beverloo, mean_square_displacement
from gravel.measures.wear import WearMap

__all__ = [
    "ForceDistribution",
    "KineticEnergy",
    "Log",
    "MassFlow",
    "MeanSquareDisplacement",
    "MotorWork",
    "ResidenceTime",
    "WearMap",
    "angle_of_repose",
    "beverloo",
    "contact_force",
    "contact_power",
    "contact_torque",
    "coordination",
    "coordination_profile",
    "density_field",
    "dynamic_angle",
    "fabric",
    "force_distribution",
    "granular_temperature",
    "grid",
    "kinetic_energy",
    "mean_square_displacement",
    "mixing_index",
    "normal_forces",
    "packing_fraction",
    "packing_profile",
    "potential_energy",
    "segregation_profile",
    "slabs",
    "stress",
    "stress_field",
    "velocity_field",
    "velocity_profile",
]
