"""A summary of a scene file in lines of text, and warnings about scenes that can be built but look wrong: overlaps, steps that are too
long, sizes and densities in other units."""

import math

import numpy as np

from gravel.detection.find import detect_scene
from gravel.model.materials import DEFAULT
from gravel.model.motion import Oscillation
from gravel.shapes.kinds import NAMES, half_thickness
from gravel.state import IMMOVABLE, LINEAR, MATERIAL, SHAPE, STATUS, can_move

OVERLAP = 0.01  # of the smaller body's radius: what is worth a warning
LONGEST_WAY = 0.5  # of a body's half thickness that it may move in a step
BOULDER = 3.0  # m, median radius: grains that are larger were meant to be millimetres
THIN = 20.0  # kg/m3: what is lighter was meant to be g/cm3
SWING = 0.05  # of a period that a step may last


def summary(setup) -> list[str]:
    """Lines about a ``FileSetup``."""
    scene = setup.scene
    status, kind = scene.bodies.tag[:, STATUS], scene.bodies.tag[:, SHAPE]
    counts = np.bincount(kind, minlength=len(NAMES))
    shapes = ", ".join(f"{n} {_plural(name) if n > 1 else name}" for name, n in zip(NAMES, counts.tolist()) if n)
    driven = len(scene.motions)
    fixed = int(np.count_nonzero(status == IMMOVABLE)) - driven
    bodies = f"{len(scene)} bod{'y' if len(scene) == 1 else 'ies'}"
    lines = [f"{bodies}: {int(can_move(status).sum())} free, {fixed} fixed, {driven} with a motion ({shapes or 'none yet'})"]
    lines.append(", ".join([_material_words(setup), _counted(len(scene.mechanism), "joint")]))
    if setup.pours:
        lines.append("poured during the run: " + "; ".join(_pour_words(make()) for make in setup.pours))
    mass = float((1.0 / scene.bodies.inverse_mass[can_move(status), 0]).sum())
    steps = math.ceil(setup.time / setup.dt - 1e-6)
    lines.append(f"{mass:.4g} kg movable mass; {setup.time:g} s in {steps} steps of {setup.dt:g} s")
    return lines


def _material_words(setup):
    """How many materials the file has, which of them nobody is made of, and whether bodies go without one."""
    scene = setup.scene
    idle = [repr(name) for name, used in setup.materials.items() if not used]
    default = any(scene.materials[int(number)] is DEFAULT for number in np.unique(scene.bodies.tag[:, MATERIAL]))
    words = _counted(len(setup.materials), "material")
    words += f" (nothing is made of {', '.join(idle)})" if idle else ""
    return words + (" and the default one" if default else "")


def _plural(name):
    return f"{name}es" if name[-1] in "xsh" else f"{name}s"


def _counted(n, what):
    return f"{n} {what}{'' if n == 1 else 's'}"


def _pour_words(pourer):
    rate = f"{pourer.rate:g} {'kg' if pourer.by_mass else 'bodies'} a second"
    until = "" if pourer.until is None else f" until {pourer.until:g} s"
    return f"{rate} from {pourer.start:g} s{until}"


def warnings_of(setup) -> list[str]:
    """Warnings, one sentence each."""
    found = overlap_warning(setup), step_warning(setup), swing_warning(setup), size_warning(setup), density_warning(setup)
    return [words for words in found if words]


def overlap_warning(setup) -> str:
    scene = setup.scene
    if not len(scene):
        return ""
    table = detect_scene(scene, broad_phase="auto").contacts()
    apart = {frozenset(pair[:2]) for pair in scene.mechanism.filtered_pairs}
    size = np.minimum(scene.bodies.extent[table.body_a, 3], scene.bodies.extent[table.body_b, 3])
    rows = [k for k in np.flatnonzero(table.gap < -OVERLAP * size) if frozenset((int(table.body_a[k]), int(table.body_b[k]))) not in apart]
    if not rows:
        return ""
    worst = rows[int(np.argmin(table.gap[rows]))]
    pairs = len({(int(table.body_a[k]), int(table.body_b[k])) for k in rows})
    one, other = (name_of(setup, int(bodies[worst])) for bodies in (table.body_a, table.body_b))
    return f"{pairs} pair{'s' * (pairs > 1)} of bodies overlap at the start, {one} and {other} by {-table.gap[worst]:.3g} m"


def name_of(setup, body: int) -> str:
    """What the file calls a body."""
    for name, ids in setup.names.items():
        place = np.flatnonzero(np.asarray(ids) == body)
        if len(place):
            return repr(name) if len(ids) == 1 else repr(f"{name}[{place[0]}]")
    return f"body {body}"


def step_warning(setup) -> str:
    """Bodies that move far in a step, by their own speed or by that of a fall through the scene."""
    scene, move = setup.scene, can_move(setup.scene.bodies.tag[:, STATUS])
    if not move.any():
        return ""
    bodies = scene.bodies
    half = half_thickness(bodies.tag[:, SHAPE], bodies.extent, bodies.geometry, scene.geometries)[move]
    speed = np.linalg.norm(scene.bodies.velocity[move, LINEAR], axis=1)
    ids = np.flatnonzero(move)
    height = np.ptp(scene.bodies.position[move] @ scene.gravity)  # m2/s2: what the highest may fall through
    fall = math.sqrt(2 * height)
    way = setup.dt * np.maximum(speed, fall)
    worst = int(np.argmax(way / half))
    if way[worst] <= LONGEST_WAY * half[worst]:
        return ""
    why = "its speed" if speed[worst] >= fall else f"a fall through the scene ({fall:.2g} m/s)"
    return (
        f"{name_of(setup, int(ids[worst]))} may move {way[worst]:.2g} m in a step by {why}, half of its thickness is {half[worst]:.2g} m: "
        f"dt below {LONGEST_WAY * setup.dt * half[worst] / way[worst]:.1g} s is safer"
    )


def swing_warning(setup) -> str:
    swings = [(motion.frequency, body) for body, motion in setup.scene.motions.items() if isinstance(motion, Oscillation)]
    fastest, body = max(swings, default=(0.0, -1))
    if fastest * setup.dt <= SWING:
        return ""
    return f"{name_of(setup, body)} oscillates {fastest:g} times a second: use a dt below {SWING / fastest:.1g} s"


def size_warning(setup) -> str:
    """Lengths that look like millimetres."""
    bodies = setup.scene.bodies
    radii = bodies.extent[can_move(bodies.tag[:, STATUS]), 3]
    typical = float(np.median(radii)) if len(radii) else 0.0
    if typical <= BOULDER:
        return ""
    return f"bodies have a radius of {typical:.3g} m in the median: lengths are in metres, so that {typical:.3g} mm is {1e-3 * typical:.3g}"


def density_warning(setup) -> str:
    """Densities that look like grams per cubic centimetre."""
    thin = [material for material in setup.scene.materials if material.density < THIN]
    if not thin:
        return ""
    name, density = thin[0].name or "a material", thin[0].density
    return f"{name} has a density of {density:g} kg/m3: {density:g} g/cm3 would be {1e3 * density:g}"
