"""The built-in scenes, one file each: ``build(bodies, seed)`` returns a ``Setup`` that checks its own physics."""

import importlib

from gravel import checks

NAMES = (
    *("silo", "tank", "drain", "mixer", "pile", "gas", "wall", "ellipsoids", "clumps", "drum", "terrain", "box-collider", "well"),
    *("pendulum", "slider-crank", "four-bar", "gyroscope", "chain", "segregation", "vehicle", "excavator"),
    *("oedometer", "triaxial", "direct-shear", "simple-shear"),
)


def module_of(name):
    """The module of a scene."""
    checks.choice("scene", name, NAMES)
    return importlib.import_module(f"gravel.scenes.{name.replace('-', '_')}")


def build(name, bodies=None, seed=0):
    """The ``Setup`` of a built-in scene, with about ``bodies`` bodies that can move (beside the machine, where there is one)."""
    module = module_of(name)
    bodies = module.BODIES if bodies is None else checks.count("bodies", bodies, minimum=module.FEWEST)
    if module.BODIES == module.FEWEST != bodies:
        raise ValueError(f"bodies must be {module.BODIES} for {name}, which is a machine of its own, not {bodies}")
    return module.build(bodies, seed)


def describe(name):
    """What a scene shows, in one line."""
    return module_of(name).__doc__.split("\n")[0].rstrip(".")
