"""The joints of a step: measured where the step looks, made into rows, solved beside the contacts, reported.

In: ``gravel.joints.rows.JointArrays``. Out: rows and starting impulses of the cone problem; afterwards reactions, coordinates and
violations (``JointState``). The calls come in the order of the step: ``measure``, ``assemble``, the solver's on ``block``,
``report``. ``bodies`` are the engine's rows, or ``BodyArrays`` of them.
"""

import numpy as np
import scipy.sparse

from gravel.host.joints import direct, gauges, laws
from gravel.host.joints import rows as joint_rows
from gravel.host.joints.block import JointBlock
from gravel.joints.kinds import ANGLE, DISTANCE, DOT, TURN_X, TURN_Y, TURN_Z
from gravel.joints.rows import FORCE, HOLD, SPRING, JointState
from gravel.rotations import from_rotation_vector, multiply
from gravel.state import MOVABLE, SLEEPING, STATUS

ALIGNED = 1e-6  # of the largest velocity: what joints may be off at the start without a correction
ROD = 4.0  # times 1 / m: how a thin rod responds across its end, 1 / m + (l / 2)^2 / (m l^2 / 12)
ANGLES = (*range(DOT, DISTANCE), ANGLE, TURN_X, TURN_Y, TURN_Z)  # gauges of turns alone, in rows that are scaled by a length
ALIGN_PASSES = 1000  # passes over the rows that take the rest out, where they are solved one by one


class JointStage:
    def __init__(self, joints, bodies, row_of):
        """``row_of``: function(ids) -> rows of the bodies, -1 for those that are gone."""
        ends = np.stack([joints.body_a, joints.body_b])
        self.row_of, identity = row_of, np.unique(ends[ends >= 0])
        member = np.where(ends >= 0, np.searchsorted(identity, ends), -1)
        points = joints.point_a, joints.point_b, joints.frame_a, joints.frame_b
        self.anchors = gauges.Anchors(member[0], member[1], *points, joints.angle.copy(), joints.broken.copy())
        self.members = gauges.make_members(identity)
        entry, counts, members = entries_of(joints.rows["joint"], joints.rows["joint_2"], member)
        self.laws = laws.Laws(**{name: values.copy() for name, values in joints.rows.items()}, entry=entry)
        self.rows = joint_rows.make_rows(counts, members)
        m, j, k = len(self.laws.joint), len(joints.broken), len(joints.coordinate_joint)
        self.measured = laws.Measured(np.zeros((m, 2)), *(np.zeros(m) for _ in range(6)))
        self.coordinate_joint, self.coordinate_gauge = joints.coordinate_joint, joints.coordinate_gauge
        self.coordinate, self.rate = np.zeros(k), np.zeros(k)
        self.force, self.torque, self.motor, self.violation = np.zeros((j, 3)), np.zeros((j, 3)), np.zeros((j, 2)), np.zeros(j)
        self.stiff = 0  # members that their joints' pull makes stiff in this step
        self.find_places()
        self.gather(bodies, 0.0)
        self.firm = firmness_of(self.rows, self.anchors, self.members, self.laws)
        system = direct.make_system(self.rows, self.laws.owner, self.members.status == MOVABLE) if joints.directly else None
        self.block = JointBlock(self.rows, self.members, system, bodies.velocity.dtype)
        self.block.curves = laws.curves_of(self.anchors, self.laws, self.measured)
        # what goes on from the joints there were; reactions tell which links are stiff
        for name, own in (("impulse", self.block.memory), ("force", self.force), ("torque", self.torque), ("motor", self.motor)):
            if name in joints.carried:
                own[: len(joints.carried[name])] = joints.carried[name]
        self.find_explicit_impulses()
        self.look(bodies)

    def find_places(self):
        """The engine's rows have moved."""
        self.members.state_row[:] = self.row_of(self.members.id)

    def find_explicit_impulses(self):
        """Whether any row may have an explicit impulse."""
        self.has_explicit_impulses = bool(np.any(self.laws.role == FORCE) or np.any(self.laws.role >= SPRING))

    def set_laws(self, row, values):
        """New numbers for the law of a row."""
        for name, value in values.items():
            getattr(self.laws, name)[row] = value
        if "role" in values:
            self.find_explicit_impulses()

    def state(self):
        """A ``JointState``; no copies."""
        return JointState(
            self.anchors.angle,
            self.anchors.broken,
            self.coordinate,
            self.rate,
            self.violation,
            self.block.memory,
            self.force,
            self.torque,
            self.motor,
            self.members.id,
            self.members.status == MOVABLE,
        )

    # --- rows
    def measure(self, bodies, order, index_of_row, rules, inertia):
        """Gauges and gradients of all rows at the bodies' poses; ``inertia`` (of all bodies) gets what stiff members add to theirs.

        Which are stiff follows from the forces of the last step. Where a chain whips, forces grow many times over within one: so when
        any member is near it, the rows are solved beforehand, and count with these forces where they are larger."""
        bodies_of_step = fields_of(bodies), order, index_of_row, rules.step, self.anchors
        joint_arrays = self.members, self.laws, self.rows, self.measured, inertia
        self.stiff, near = laws.measure(*bodies_of_step, self.force, *joint_arrays, False)
        if near and self.block.system is not None:
            self.stiff, _ = laws.measure(
                *bodies_of_step, self._foresee_forces(len(order), rules, bodies.velocity.dtype), *joint_arrays, self.stiff > 0
            )

    def _foresee_forces(self, n, rules, real):
        """(j, 3) forces of the joints by what they hold and their bodies' weight alone, or those of the last step if larger."""
        velocity = np.zeros((n + 1, 8), real)
        velocity[self.members.velocity_row, :3] = self.members.velocity[:, :3]
        velocity[self.members.velocity_row, 4:7] = self.members.velocity[:, 3:]
        velocity[self.members.velocity_row[self.members.status == MOVABLE], :3] += rules.step * rules.gravity
        self._apply_laws(rules.step, rules.scalars.recovery_speed, rules.threshold, direct.softness_of(real))
        out = np.empty_like(self.force), np.empty_like(self.torque), np.empty_like(self.motor)
        impulse = self.block.foresee(velocity.reshape(-1))
        laws.reactions(self.anchors, self.members, self.laws, self.rows, self.measured, impulse, rules.step, *out)
        larger = np.linalg.norm(out[0], axis=1) > np.linalg.norm(self.force, axis=1)
        return np.where(larger[:, None], out[0], self.force)

    def gather(self, bodies, step):
        laws.gather(fields_of(bodies), step, self.members)

    def assemble(self, step, parts, recovery_speed, threshold, velocity, warm):
        """Bias, bounds and starting impulses; explicit impulses act on the velocities, and stiff links are damped. Bodies
        go from here to where the next step looks in so many ``parts``."""
        softness = 0.0 if self.block.system is None else direct.softness_of(velocity.dtype)
        self._apply_laws(step, recovery_speed, threshold, softness)
        self.block.step, self.block.parts = float(step), parts
        if self.has_explicit_impulses:
            joint_rows.apply_joints(self.rows, self.measured.explicit_impulse, velocity)
        if self.stiff:
            velocity.reshape(-1, 8)[self.members.velocity_row, 4:7] += self.members.calming
        self.block.renew(warm)

    def _apply_laws(self, step, recovery_speed, threshold, softness):
        firm = softness, direct.YIELDING, self.firm
        laws.apply_laws(self.anchors, self.members, self.laws, step, recovery_speed, threshold, *firm, self.rows, self.measured)

    # --- the end of the step
    def report(self, bodies, step):
        """Reactions of the step, and coordinates, rates and violations at the bodies' new poses; returns the largest violation. Joints
        of bodies that sleep bear what they bore when those fell asleep."""
        out = self.force, self.torque, self.motor
        resting = self._resting(bodies) if bodies.dozing else None
        borne = [] if resting is None else [values[resting] for values in out]
        laws.reactions(self.anchors, self.members, self.laws, self.rows, self.measured, self.block.impulse, step, *out)
        for values, kept in zip(out, borne):
            values[resting] = kept
        return self.look(bodies)

    def store_impulses(self, bodies):
        """The step is taken: the next one starts from its impulses, and rows of bodies that sleep from those that they fell asleep with."""
        awake = slice(None)
        if bodies.dozing:
            awake = ~np.logical_or.reduceat(self._sleepers(bodies)[self.rows.member], self.rows.start[:-1])
        self.block.memory[awake] = self.block.impulse[awake]

    def _resting(self, bodies):
        """Mask of the joints of bodies that sleep."""
        ends = np.stack([self.anchors.member_a, self.anchors.member_b])
        return (self._sleepers(bodies)[ends] & (ends >= 0)).any(axis=0)

    def _sleepers(self, bodies):
        """Mask of the members that sleep."""
        rows = self.members.state_row
        return (rows >= 0) & (bodies.tag[rows, STATUS] == SLEEPING)

    def look(self, bodies):
        """Coordinates, rates and violations at the bodies' poses; returns the largest violation."""
        coordinates = self.coordinate_joint, self.coordinate_gauge, self.coordinate, self.rate, self.violation
        return laws.look(fields_of(bodies), self.anchors, self.members, self.laws, *coordinates)

    # --- before the first step
    def close(self, bodies):
        """One step of Newton's method towards closed joints: the bodies move by M^-1 J^T p with J M^-1 J^T p = -gauge."""
        velocity = np.zeros((bodies.count + 1, 8))
        self.gather(bodies, 0.0)
        self.members.velocity[:] = 0.0
        self._prepare_held(bodies.count, velocity)
        self.block.sweep(velocity.reshape(-1))
        for row, shift in zip(self.members.state_row.tolist(), velocity[self.members.velocity_row]):
            bodies.position[row] += shift[:3]
            bodies.quaternion[row] = multiply(from_rotation_vector(shift[4:7]), bodies.quaternion[row])

    def align(self, bodies, joints):
        """Velocities that some of the joints (a mask) do not allow are taken out, as by an impact; where all fit, not a bit changes."""
        velocity = np.concatenate([bodies.velocity, np.zeros((1, 8), bodies.velocity.dtype)])
        self.gather(bodies, 0.0)
        self._prepare_held(bodies.count, velocity)
        self.rows.bias[:] = 0.0
        held = (self.laws.role == HOLD) & joints[self.laws.owner]
        self.rows.lower[~held] = self.rows.upper[~held] = 0.0
        self.block.renew(False)
        if np.abs(self.measured.rate[held]).max(initial=0.0) > ALIGNED * max(1.0, np.abs(velocity).max()):
            for _ in range(2 if self.block.system is not None else ALIGN_PASSES):
                self.block.sweep(velocity.reshape(-1))
            bodies.velocity[:] = velocity[:-1]

    def _prepare_held(self, n, velocity):
        """Rows of what the joints hold, between bodies in the order of the engine's rows; no drive acts, and the bias stays."""
        self.block.step = 0.0
        self.members.velocity_row[:] = np.where(self.members.state_row >= 0, self.members.state_row, n)
        laws.measure_rows(self.anchors, self.members, self.laws, 0.0, self.rows, self.measured)
        softness = direct.softness_of(velocity.dtype)
        self._apply_laws(1.0, np.inf, np.inf, softness)
        other = self.laws.role != HOLD
        self.rows.lower[other] = self.rows.upper[other] = 0.0
        self.block.renew(False)


def fields_of(bodies):
    """What the joints' kernels want to know of the bodies."""
    return bodies.tag, bodies.position, bodies.quaternion, bodies.velocity, bodies.inverse_mass


def firmness_of(rows, anchors, members, laws):
    """(2, m) what rows may count of their response under a load: mass of the lightest body of each row, as a share of the heaviest one's
    in its machine (the bodies that joints connect by way of bodies that can move); and what rods as heavy as that one, as long as its
    bodies' arms, would respond with, in 1/kg. (By masses alone, the joint of a body that is nearly a point would yield by r^2 / I of its
    response: its own inertia is small, but what it carries is its mass.)"""
    if not len(rows.member):
        return np.ones((2, len(rows.eta)))
    mass, count = np.where(members.status == MOVABLE, members.mass, 0.0), len(members.id)
    member = np.stack([anchors.member_a, anchors.member_b])
    joined = member[:, (member >= 0).all(axis=0)]
    joined = joined[:, (mass[joined] > 0).all(axis=0)]
    graph = scipy.sparse.coo_matrix((np.ones(joined.shape[1]), joined), shape=(count, count))
    machines, machine = scipy.sparse.csgraph.connected_components(graph, directed=False)
    heaviest, reach = np.zeros(machines), np.zeros(count)
    np.maximum.at(heaviest, machine, mass)
    heaviest = np.maximum(heaviest[machine], 1e-300)
    for side, point in zip(member, (anchors.point_a, anchors.point_b)):
        np.maximum.at(reach, side[side >= 0], np.linalg.norm(point[side >= 0], axis=1))
    first, own, row = rows.start[:-1], rows.member, np.repeat(np.arange(len(rows.eta)), np.diff(rows.start))
    share = np.where(mass > 0, mass / heaviest, 1.0)[own]
    scale = np.where(np.isin(laws.gauge, ANGLES) & (laws.joint_2 < 0), laws.scale, np.inf)[row]
    rod = np.where(mass > 0, ROD / heaviest, 0.0)[own] * np.minimum(scale / np.maximum(reach[own], 1e-300), 1.0) ** 2
    return np.stack([np.minimum.reduceat(share, first), np.add.reduceat(rod, first)])


def entries_of(joint, joint_2, member):
    """Entries of each row, one per body: (m, 4) entry of a, b, a of the second joint, b of it; entries a row; their members."""
    entry, counts, members = np.full((len(joint), 4), -1, np.int64), [], []
    for k in range(len(joint)):
        first, own = len(members), []
        ends = [member[0, joint[k]], member[1, joint[k]]]
        ends += [member[0, joint_2[k]], member[1, joint_2[k]]] if joint_2[k] >= 0 else []
        for side, end in enumerate(ends):
            if end >= 0:
                if end not in own:
                    own.append(end)
                entry[k, side] = first + own.index(end)
        members += own
        counts.append(len(own))
    return entry, np.array(counts, np.int64), members
