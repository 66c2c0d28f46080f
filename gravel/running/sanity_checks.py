"""Cautions: what a simulation refuses or questions because of how its numbers fit together, beyond what each of them may be.

Checks refuse; warnings look at a whole simulation after a step (``StepWarnings``). They name the bodies and what can be done, and note that
they have been given before they are: turned into errors, they come once all the same.
"""

import math
from dataclasses import dataclass

import numpy as np

from gravel.cautions import warn
from gravel.errors import DeviceError
from gravel.model.materials import PAIR_FIELDS
from gravel.shapes import MESH, SPHERE
from gravel.shapes.kinds import half_thickness
from gravel.state import ANGULAR, LINEAR, MATERIAL, REMOVED, SHAPE, STATUS, can_move

OVERLAP = 1e-2  # of the smaller body's radius: what counts as an overlap within a machine at the start
DEEP = (
    0.1  # of the smaller body's radius: a penetration that is worth a warning (less may come of one impact that drives a ball into a floor)
)
MOST_COHESION = {"single": 1e5, "double": 1e13}  # times the weight: of that, rounding takes a hundredth
SUSPECTS = 20  # joints that are open by the most, whose machines are looked at: a small gap is much for a small machine
OPEN = 1e-2  # of a machine's size: what joints may be open by before a word is said
LIFTED = 1e-2  # of the smaller body's radius: what the cone model may lift a sliding body by before a word is said
FEW, SELDOM = 100, 10  # contacts that are looked at in every step for that; more in every second and so on, at the latest in every tenth
EARTH = 9.81  # m/s2: what counts as weight where there is no gravity


def check_cohesion(engine, gravity, precision, contact_values, names):
    """Refuse what bodies cannot bear in this precision: impulses are rounded, and what is rounded off must not be a weight."""
    cohesion = contact_values[..., PAIR_FIELDS.index("cohesion")]
    if not cohesion.any():
        return
    material, inverse_mass = engine.field("tag")[:, MATERIAL], engine.field("inverse_mass")[:, 0]
    light = np.zeros(len(cohesion))  # 1/kg, of the lightest body of each material
    np.maximum.at(light, material, inverse_mass)
    times = cohesion * np.maximum.outer(light, light) / (math.hypot(*gravity) or EARTH)
    if times.max() > MOST_COHESION[precision]:
        i, j = np.unravel_index(np.argmax(times), times.shape)
        lighter = i if light[i] >= light[j] else j
        row = np.flatnonzero((material == lighter) & (inverse_mass == light[lighter]))[0]
        raise ValueError(
            f"cohesion must be at most {MOST_COHESION[precision]:g} times a body's weight in {precision} precision, "
            f"but {cohesion[i, j]:g} N is {times[i, j]:.2g} times that of body {called(names, engine.ids()[row])}"
        )


def check_device(engine, device, solver):
    """Refuse a solver that the engine lacks (``engine.Engine.lacks_local_solvers``)."""
    if solver.local and getattr(engine, "lacks_local_solvers", False):
        raise DeviceError(f"solver {type(solver).__name__} runs on device 'cpu' only, not on {device!r}")


def check_solver(solver, contact_values, joints):
    """Refuse what a solver that takes each body by itself does not know; ``joints``: how many there are."""
    if not solver.local:
        return
    name, instead = type(solver).__name__, "; take another solver, such as GaussSeidel()"
    if joints:
        raise ValueError(f"{name} knows no joints, but there {'is 1' if joints == 1 else f'are {joints}'}{instead}")
    for field, unit in (("rolling_friction", "m"), ("spinning_friction", "m"), ("cohesion", "N")):
        largest = contact_values[..., PAIR_FIELDS.index(field)].max()
        if largest > 0.0:
            raise ValueError(f"{name} knows no {field}, but materials have up to {largest:g} {unit} of it{instead}")


def refuse_fault(engine, processes, world, names, refusal):
    """Refuse a step that would give a body a velocity that is not finite, or take it out of the world (2, 3) m; ``names`` of bodies;
    ``refusal(words, body)`` makes the error."""
    (body,) = map(int, processes.largest(engine.find_invalid_body(world)))
    if body >= 0:
        known = engine.pick("tag", [body])[0, STATUS] != REMOVED
        where = f" at ({', '.join(f'{x:g}' for x in engine.pick('position', [body])[0])}) m" if known else ""
        raise refusal(f"body {called(names, body)}{where} would get a velocity that is not finite or leave the bounds", body)


def called(names, body):
    """A body in words: its number, and its name if it has one."""
    name = names.of(int(body))
    return f"{int(body)} ({name})" if name else str(int(body))


def warn_of_arms(engine, kinds, names):
    """Rolling or spinning friction beyond the size of a body: perhaps it was meant without a unit. ``kinds``: the materials by row;
    ``names``: of bodies."""
    tag, radius = engine.field("tag"), engine.field("extent")[:, 3]
    smallest = np.full(len(kinds), np.inf)
    moves = can_move(tag[:, STATUS])
    np.minimum.at(smallest, tag[moves, MATERIAL], radius[moves])
    for name in ("rolling_friction", "spinning_friction"):
        arms = np.array([getattr(material, name) for material in kinds])
        if (arms > smallest).any():
            row = int(np.argmax(arms / smallest))
            material = f"material {kinds[row].name!r}" if kinds[row].name else str(kinds[row])
            body = called(names, engine.ids()[np.flatnonzero(moves & (tag[:, MATERIAL] == row) & (radius == smallest[row]))[0]])
            warn(
                f"{name} of {material} is a length, {arms[row]:g} m, and larger than body {body} of that material, whose "
                f"bounding radius is {smallest[row]:g} m: is it meant in units of the radius? Then multiply it by the radius",
            )
            return


@dataclass
class StepWarnings:
    """What a simulation has warned of after its steps: up to which depths nothing needs to be said, and what has been said."""

    deepest: float = 0.0  # m, of penetrations
    widest: float = 0.0  # m, of open joints
    joints: int = 0  # for which ``widest`` holds
    of_speed: bool = False
    of_lift: bool = False

    def give(self, simulation, penetration):
        """After a step: warn of what looks wrong in it; ``penetration`` m, the largest that this process found."""
        report = simulation.report
        if report.step == 1:
            warn_of_overlaps(simulation, penetration)
        if penetration > self.deepest:
            warn_of_depth(simulation, self)
        if report.joint_violation > self.widest or len(simulation.mechanism) != self.joints:
            warn_of_open_joints(simulation, self)
        if not self.of_speed:
            warn_of_speed(simulation, self)
        if simulation.friction == "cone" and not self.of_lift:
            warn_of_lift(simulation, self)


def warn_of_depth(simulation, given):
    """Once: bodies that are far inside each other, which two are the worst, and what can be done about it."""
    report = simulation.report
    penetration = given.deepest = report.max_penetration
    extent, status = simulation.engine.field("extent"), simulation.engine.field("tag")[:, STATUS]
    if penetration <= DEEP * extent[can_move(status), 3].min(initial=np.inf):
        return
    table = simulation.engine.contacts()
    worst = int(np.argmin(np.abs(table.gap + penetration)))  # not the deepest: an impact parts that in this very step
    a, b = int(table.body_a[worst]), int(table.body_b[worst])
    size = simulation.engine.pick("extent", [a, b])[:, 3].min()
    if penetration <= DEEP * size:
        return
    given.deepest = np.inf
    unsolved = "" if report.converged else f", and the step ended with a residual of {report.residual:.1e} m/s"
    warn(
        f"bodies {called(simulation.body_names, a)} and {called(simulation.body_names, b)} overlap by {penetration:.3g} m, "
        f"{100 * penetration / size:.0f} % of the smaller one's radius, in step "
        f"{report.step}{unsolved}: bodies that start apart, a smaller dt or more iterations keep them apart, and heavy bodies on "
        f"much lighter ones need more of both",
    )


def warn_of_lift(simulation, given):
    """Once: what the cone model does to bodies that slide on each other, where that is not small, and that Coulomb's law does not do it.

    A loaded contact that slides at |u_t| parts at mu |u_t|, less what its gap gives: it leaps by u_n^2 / 2 g where the load comes at
    once, at any dt, and keeps a gap of dt mu |u_t| as it slides on. (What slides on a surface that moves by itself is not seen.)"""
    report = simulation.report
    if simulation.solver.local or (report.step - 1) % min(1 + report.contacts // FEW, SELDOM):
        return
    table = simulation.engine.contacts()
    if not table.sliding.any():
        return
    table = table[table.sliding]
    sides = [_at_contacts(simulation, table, body) for body in (table.body_a, table.body_b)]
    (speed_a, radius_a, material_a, near_a), (speed_b, radius_b, material_b, near_b) = sides
    u, size = speed_b - speed_a, np.minimum(radius_a, radius_b)
    normal = np.einsum("ij,ij->i", u, table.normal)
    slip = np.linalg.norm(u - normal[:, None] * table.normal, axis=1)
    parting = simulation.materials.contact_values()[material_a, material_b, PAIR_FIELDS.index("friction")] * slip
    leap = np.clip(normal, 0.0, parting) ** 2 / (2.0 * (math.hypot(*simulation.gravity) or EARTH))
    lift = np.where(near_a & near_b, np.maximum(leap, simulation.dt * parting), 0.0)
    worst = int(np.argmax(lift / size))
    if not lift[worst] > LIFTED * size[worst]:
        return
    given.of_lift = True
    warn(
        f"bodies {called(simulation.body_names, table.body_a[worst])} and {called(simulation.body_names, table.body_b[worst])} slide on "
        f"each other at {slip[worst]:.3g} m/s in step {report.step}, and "
        f'friction="cone", the convex model of the papers, lifts what slides, here by {lift[worst]:.2g} m, '
        f'{100 * lift[worst] / size[worst]:.2g} % of the smaller one\'s radius: friction="coulomb", the default, does not',
    )


def _at_contacts(simulation, table, body):
    """(velocity at the contact, bounding radius, material, whether the contact is at the body itself and not at a periodic copy of it)."""
    pick = simulation.engine.pick
    velocity, radius, tag = pick("velocity", body), pick("extent", body)[:, 3], pick("tag", body)
    arm = table.point - pick("position", body)
    moves = can_move(tag[:, STATUS])
    near = ~moves | (np.linalg.norm(arm, axis=1) < (1.0 + DEEP) * radius)
    return velocity[:, LINEAR] + np.cross(velocity[:, ANGULAR], arm), radius, tag[:, MATERIAL], near


def warn_of_open_joints(simulation, given):
    """Once: a joint that is open by more than a share of its machine's size, in which step, and what can be done about it."""
    report, state, mechanism = simulation.report, simulation.engine.joint_state(), simulation.mechanism
    told, given.joints = given.widest == np.inf, len(mechanism)
    if told or not len(state.violation):  # or another process has the machines
        return
    radius = simulation.engine.pick("extent", mechanism.bodies())[:, 3]
    radius = radius[radius > 0.0]  # of those that are not gone
    harmless = 2.0 * OPEN * float(radius.min()) if len(radius) else 0.0  # no machine is smaller than its smallest body
    given.widest, seen = max(report.joint_violation, harmless), set()
    if report.joint_violation <= harmless:
        return
    for joint in map(int, np.argsort(-state.violation)[:SUSPECTS]):
        bodies, gap = mechanism.machine_of_joint(joint, state), float(state.violation[joint])
        if not bodies or bodies[0] in seen:
            continue
        seen.update(bodies)
        position, radius = simulation.engine.pick("position", bodies), simulation.engine.pick("extent", bodies)[:, 3:]
        # the bodies themselves, not how far they are apart: a machine that comes to pieces is no larger for it
        size = min(float(np.linalg.norm(np.ptp(position, axis=0))), float(radius.sum())) + 2.0 * float(radius.max(initial=0.0))
        if gap > OPEN * size:
            break
    else:
        return
    given.widest = np.inf
    warn(
        f"{mechanism.names[joint]}{_ends(simulation, joint)} is open by {gap:.3g} m, {100 * gap / size:.2g} % of its "
        f"machine's size, in step {report.step}: its bodies move too fast, or bear too much, for this step; a smaller dt may keep it "
        f"closed, try {simulation.dt / 4:.2g} s",
    )


def _ends(simulation, joint):
    """The names of the bodies that a joint joins, in brackets; empty if they have none."""
    ends = (simulation.mechanism.joint_values[f"body_{end}"][joint] for end in "ab")
    words = [name for body in ends if body >= 0 and (name := simulation.body_names.of(int(body)))]
    return f" ({' and '.join(words)})" if words else ""


def warn_of_speed(simulation, given):
    """Once: a solid other than a ball that moves further in a step than it is thick, near a mesh, may pass through its edges."""
    engine = simulation.engine
    kinds, movers = engine.kinds()
    if MESH not in kinds or movers <= {SPHERE}:
        return
    tag = engine.field("tag")
    meshes, solid = tag[:, SHAPE] == MESH, can_move(tag[:, STATUS]) & (tag[:, SHAPE] != SPHERE)
    extent, geometry, position = engine.field("extent"), engine.field("geometry"), engine.field("position")
    way = simulation.dt * np.linalg.norm(engine.field("velocity")[:, LINEAR], axis=1)
    half = half_thickness(tag[:, SHAPE], extent, geometry, simulation.geometries)
    fast = solid & (way > half)
    for mesh in np.flatnonzero(meshes) if fast.any() else ():
        apart = np.linalg.norm(position - position[mesh], axis=1) - extent[mesh, 3] - extent[:, 3] - way
        if (fast & (apart < 0.0)).any():
            near = np.flatnonzero(fast & (apart < 0.0))
            row = int(near[np.argmax(way[near] / half[near])])
            given.of_speed = True
            body, other = (called(simulation.body_names, engine.ids()[int(k)]) for k in (row, mesh))
            warn(
                f"body {body} moves {way[row]:.3g} m in a step, further than it is thick (half of it is {half[row]:.3g} m), near the "
                f"mesh of body {other}: from such a speed on, solids other than balls may pass through edges of meshes; dt below "
                f"{simulation.dt * half[row] / way[row]:.2g} s avoids that",
            )
            return


def warn_of_overlaps(simulation, penetration):
    """Bodies of one machine that overlap at the start, and that its joints may keep from parting."""
    if not len(simulation.mechanism) or penetration == 0.0:
        return
    machine, table = simulation.mechanism.machine_of_bodies(simulation.engine.joint_state()), simulation.engine.contacts()
    for a, b, gap in zip(table.body_a.tolist(), table.body_b.tolist(), table.gap.tolist()):
        size = simulation.engine.pick("extent", [a, b])[:, 3].min() if a in machine and machine.get(b) == machine[a] else 0.0
        if gap < -OVERLAP * size < 0.0:
            warn(
                f"bodies {called(simulation.body_names, a)} and {called(simulation.body_names, b)} of one machine overlap by {-gap:.3g} m "
                f"at the start; if its joints keep them from parting, forces "
                f"grow without end: place them apart, or let them pass through each other with scene.ignore_pair({a}, {b})",
            )
            return
