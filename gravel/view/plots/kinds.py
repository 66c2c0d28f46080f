"""The kinds of plot by name: the source, panels and options of each.

``of`` is the source of the panels of a kind: a "run" (an open ``Result``), a "map" (a ``WearMap``, or a run of which one is made), a
"moment" (one of its frames, or a ``Simulation``), a "problem" (a ``Simulation`` whose next step is to be solved), or a "log" (a CSV
file). Panels are functions of that and of axes; or there is one function ``panels_of`` of that, which gives functions of axes.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from gravel.view.plots import bodies, columns, convergence, frames, grains, joints, moments, steps

PROFILE = ("frame", "axis", "bins", "region")
MAP = ("body", "coefficient", "hardness", "edge")


class Kind(NamedTuple):
    words: str
    of: str
    panels: tuple = ()
    panels_of: Callable | None = None
    options: tuple[str, ...] = ()

    def drawings(self, given, options):
        """Functions of axes, one for each panel."""
        if self.panels_of is not None:
            return self.panels_of(given, **options)
        return tuple(partial(_draw, panel, given, options) for panel in self.panels)


def _draw(panel, given, options, axes):
    panel(given, axes, **options)


KINDS = {
    "overview": Kind(
        "over the steps: kinetic energy, contacts, residual, penetration (the default)",
        "run",
        (steps.kinetic_energy, steps.contacts, steps.residual, steps.penetration),
    ),
    "energy": Kind("over the frames: kinetic, potential and total energy", "run", (frames.energy,)),
    "contacts": Kind("over the steps: number of contacts", "run", (steps.contacts,)),
    "residual": Kind("over the steps: residual of the solver, largest and mean", "run", (steps.residual,)),
    "iterations": Kind("over the steps: iterations of the solver", "run", (steps.iterations,)),
    "penetration": Kind("over the steps: the deepest penetration", "run", (steps.penetration,)),
    "stages": Kind("wall-clock time of the stages of a step, and over the run", "run", (steps.stage_bars, steps.stage_areas)),
    "joints": Kind("over the frames: positions, reactions, motor efforts and errors of joints", "run", panels_of=joints.joint_panels),
    "flow": Kind(
        "over the frames: mass that falls through --outlet, its rate, and Beverloo's law if --width is given",
        "run",
        panels_of=frames.flow_panels,
        options=("outlet", "width", "opening", "density", "diameter", "coefficient", "empty"),
    ),
    "forces": Kind(
        "of a frame: distribution of normal forces, with its exponential tail",
        "moment",
        (moments.forces,),
        options=("frame", "bins", "region"),
    ),
    "profile": Kind(
        "of a frame: packing fraction and coordination number over height",
        "moment",
        (moments.packing, moments.coordination_if_saved),
        options=PROFILE,
    ),
    "velocity": Kind(
        "of a frame: mean velocity over height, or along --axis", "moment", (moments.velocity,), options=(*PROFILE, "component")
    ),
    "sizes": Kind(
        "of a frame: distribution of sizes, by number and by mass",
        "moment",
        (moments.size_numbers, moments.size_shares),
        options=("frame", "bins"),
    ),
    "segregation": Kind(
        "of a frame: share of --which by mass over height, or along --axis",
        "moment",
        (grains.segregation,),
        options=(*PROFILE, "which"),
    ),
    "mixing": Kind("over the frames: Lacey's index of --which", "run", panels_of=grains.mixing_panels, options=("which", "cell")),
    "dynamic-angle": Kind("over the frames: slope of the bed in a drum", "run", panels_of=grains.angle_panels, options=("axis", "width")),
    "repose": Kind("over the frames: slope of a heap", "run", panels_of=grains.repose_panels),
    "residence": Kind(
        "residence times in --region, and bodies in it over the frames", "run", panels_of=grains.residence_panels, options=("region",)
    ),
    "machine": Kind(
        "over the frames: force, torque and power of the contacts of --body",
        "run",
        panels_of=bodies.machine_panels,
        options=("body", "point"),
    ),
    "pressure": Kind("map of the pressure on --body, mean and largest", "map", panels_of=bodies.pressure_panels, options=("body", "edge")),
    "wear": Kind(
        "map of sliding work on --body, and of Archard wear if --coefficient and --hardness are given",
        "map",
        panels_of=bodies.wear_panels,
        options=MAP,
    ),
    "solvers": Kind(
        "of a checkpoint or a scene's name: residual over the iterations of all solvers",
        "problem",
        (convergence.residual_over_iterations,),
        options=("solvers", "iterations", "warm_start"),
    ),
    **{
        name: Kind(f"over the frames: {words}", "run", panels_of=partial(frames.measure_panels, name=name))
        for name, words in (
            ("stress", "mean stress"),
            ("coordination", "mean coordination number"),
            ("fabric", "fabric tensor"),
            ("fraction", "packing fraction"),
            ("kinetic-energy", "kinetic energy by translation and rotation"),
            ("potential-energy", "potential energy"),
            ("temperature", "granular temperature"),
        )
    },
    "log": Kind("of a CSV file: a log of measures, or the curve that a scene wrote", "log", panels_of=columns.log_panels),
}
