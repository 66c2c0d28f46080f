"""The joints of a step: measured where the step looks, made into rows, solved beside the contacts, reported.

In: what ``gravel.joints.mechanism`` makes of the scene's joints. Out: rows and starting impulses of the cone problem; afterwards
reactions, coordinates and violations. The calls come in the order of the step: ``measure``, ``assemble``, the solver's on ``block``,
``report``.
"""

import numpy as np

from gravel.cpu.joints import direct, gauges, laws
from gravel.cpu.joints import rows as joint_rows
from gravel.cpu.joints.block import JointBlock
from gravel.rotations import from_rotation_vector, multiply

ALIGNED = 1e-6  # of the largest velocity: what joints may be off at the start without a correction
BLOWS = 1000  # passes over the rows that take the rest out, where they are solved one by one


class JointStage:
    def __init__(self, anchors, members, row_laws, rows, coordinates, movable, solve_directly):
        m, j = len(row_laws.joint), len(anchors.member_a)
        self.anchors, self.members, self.laws, self.rows = anchors, members, row_laws, rows
        self.measured = laws.Measured(*(np.zeros(m) for _ in range(4)))
        system = direct.make_system(rows, row_laws.owner, movable) if solve_directly else None
        self.block = JointBlock(rows, members, system)
        self.coordinate_joint, self.coordinate_gauge = coordinates
        self.coordinate, self.rate = np.zeros(len(coordinates[0])), np.zeros(len(coordinates[0]))
        self.force, self.torque, self.motor, self.violation = np.zeros((j, 3)), np.zeros((j, 3)), np.zeros((j, 2)), np.zeros(j)
        # what the next stage takes over where joints are added, and checkpoints hold: reactions tell which links are stiff
        self.carried = {"impulse": self.block.memory, "force": self.force, "torque": self.torque, "motor": self.motor}
        self.kicked = bool(np.any(row_laws.role == laws.FORCE) or np.any(row_laws.role >= laws.SPRING))

    # --- rows
    def measure(self, bodies, order, where, step, inertia):
        """Gauges and gradients of all rows at the bodies' poses; ``inertia`` (of all bodies) gets what stiff members add to theirs."""
        self.gather(bodies, step)
        gauges.find_rows(order, where, self.members)
        if gauges.stiffen_members(self.anchors, self.members, self.force, step):
            gauges.write_inertia(self.members, inertia)
        laws.measure_rows(self.anchors, self.members, self.laws, step, self.rows, self.measured)

    def gather(self, bodies, step):
        gauges.gather_members(bodies.tag, bodies.position, bodies.quaternion, bodies.velocity, bodies.inverse_mass, step, self.members)

    def assemble(self, step, recovery_speed, threshold, velocity, warm):
        """Bias, bounds and starting impulses; impulses that are known beforehand act on the velocities."""
        softness = 0.0 if self.block.system is None else direct.softness_of(velocity.dtype)
        self._apply_laws(step, recovery_speed, threshold, softness)
        if self.kicked:
            joint_rows.apply_joints(self.rows, self.measured.kick, velocity)
        self.block.renew(warm)

    def _apply_laws(self, step, recovery_speed, threshold, softness):
        firm = softness, direct.YIELDING
        laws.apply_laws(self.anchors, self.members, self.laws, step, recovery_speed, threshold, *firm, self.rows, self.measured)

    # --- the end of the step
    def report(self, bodies, step):
        """Reactions of the step, and coordinates, rates and violations at the bodies' new poses; returns the largest violation."""
        laws.reactions(
            self.anchors, self.members, self.laws, self.rows, self.measured, self.block.impulse, step, self.force, self.torque, self.motor
        )
        return self.look(bodies)

    def look(self, bodies):
        """Coordinates, rates and violations at the bodies' poses; returns the largest violation."""
        self.gather(bodies, 0.0)
        gauges.measure_coordinates(self.anchors, self.members, self.coordinate_joint, self.coordinate_gauge, self.coordinate, self.rate)
        return laws.measure_violations(self.anchors, self.members, self.laws, self.violation)

    # --- before the first step
    def close(self, bodies):
        """One step of Newton's method towards closed joints: the bodies move by M^-1 J^T p with J M^-1 J^T p = -gauge."""
        velocity = np.zeros((len(bodies.position) + 1, 8))
        self.gather(bodies, 0.0)
        self.members.velocity[:] = 0.0
        self._prepare_held(len(bodies.position), velocity)
        self.block.sweep(velocity.reshape(-1))
        for body, shift in zip(self.members.body.tolist(), velocity[self.members.row]):
            bodies.position[body] += shift[:3]
            bodies.quaternion[body] = multiply(from_rotation_vector(shift[4:7]), bodies.quaternion[body])

    def align(self, bodies, joints):
        """Velocities that some of the joints (a mask) do not allow are taken out, as by a blow; where all fit, not a bit changes."""
        velocity = np.concatenate([bodies.velocity, np.zeros((1, 8), bodies.velocity.dtype)])
        self.gather(bodies, 0.0)
        self._prepare_held(len(bodies.position), velocity)
        self.rows.bias[:] = 0.0
        held = (self.laws.role == laws.HOLD) & joints[self.laws.owner]
        self.rows.lower[~held] = self.rows.upper[~held] = 0.0
        self.block.renew(False)
        if np.abs(self.measured.rate[held]).max(initial=0.0) > ALIGNED * max(1.0, np.abs(velocity).max()):
            for _ in range(2 if self.block.system is not None else BLOWS):
                self.block.sweep(velocity.reshape(-1))
            bodies.velocity[:] = velocity[:-1]

    def _prepare_held(self, n, velocity):
        """Rows of what the joints hold, between bodies in the order of their ids; no drive acts."""
        gauges.find_rows(np.arange(n), np.zeros(n, np.int64), self.members)
        laws.measure_rows(self.anchors, self.members, self.laws, 0.0, self.rows, self.measured)
        softness = direct.softness_of(velocity.dtype)
        self._apply_laws(1.0, np.inf, np.inf, softness)
        other = self.laws.role != laws.HOLD
        self.rows.lower[other] = self.rows.upper[other] = 0.0
        self.block.renew(False)
