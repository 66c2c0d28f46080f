"""A cone problem between bodies, in the form the solvers work on: blocks of contacts, joint rows, velocities.

It fulfils ``gravel.engine.Problem``: what Gauss-Seidel needs (``begin``, ``sweep``, ``measure``) works on the arrays in place; what
the gradient solvers need works on vectors (``gravel.cpu.solve.cones``).
"""

import functools
import math

import numpy as np

from gravel.cpu.solve import blocks as kernels
from gravel.cpu.solve.blocks import (
    ASCENT,
    BETA,
    CHANGE,
    COHESION,
    ETA,
    FRICTION,
    MAX_MOMENTUM,
    ROWS_BALL,
    ROWS_GENERAL,
    SWEEP_TOLERANCE,
    WIDTH,
    rows_before,
)
from gravel.cpu.solve.cones import Cones, ConeVectors
from gravel.cpu.solve.split import SplitBodies
from gravel.engine import NO_SYNC
from gravel.formulas.momentum import DIVERGENCE_RATIO, NEVER
from gravel.host.joints.block import NO_JOINTS
from gravel.host.threads import Kernel

kernel = functools.cache(kernels.make_kernel)


class BlockProblem(ConeVectors):
    def __init__(self, blocks, unknowns, scalars, contacts, kinds, joints=NO_JOINTS, sync=NO_SYNC, local=None):
        """``kinds``: whether there are blocks of contacts between balls, and general ones. ``local``: the contacts and bodies that
        they were made from (``ffd.PerBodySolver``)."""
        self.blocks, self.unknowns, self.scalars, self.joints, self.sync = blocks, unknowns, scalars, joints, sync
        self.local = local
        self.contacts, self.coulomb = contacts, scalars.coulomb > 0
        self.warm_started = False
        self.rolling = blocks.rolling.size > 0
        self.number = int(blocks.general_start[-1])  # of blocks
        tiles = len(blocks.ball_start)
        self.kinds = kinds
        self.real = blocks.rows.dtype
        self.worst, self.total, self.nothing = np.zeros(tiles, self.real), np.zeros(tiles, self.real), np.empty(0, self.real)
        hubs = sum(int(start[-1] - start[-2]) for start in (blocks.ball_start, blocks.general_start) if len(start) > 1)
        self.divergence_ratio = DIVERGENCE_RATIO if hubs else NEVER
        self.momentum = kernels.fresh_momentum(self.divergence_ratio)
        self.in_parts = None  # SplitBodies, where other processes act on some of them

    def split(self, indices, parts):
        """Mass splitting: ``indices`` of the bodies that several ranks act on, and the number of ranks."""
        self.in_parts = SplitBodies(self.blocks, self.number, self.unknowns.inertia, indices, parts)

    def _use(self, split):
        if self.in_parts is not None:
            self.in_parts.use(split)

    def run(self, job, values, iterations=1):
        if not self.number and job != kernels.SWEEP:
            return 0
        run = kernel(job, *self.kinds, self.rolling, not Kernel.one_thread)
        return run(self.blocks, self.unknowns, values, self.scalars, self.worst, self.total, self.momentum, iterations)

    # --- Gauss-Seidel
    def warm_start(self):
        """Apply the starting impulses to the velocities, once."""
        if not self.warm_started:
            velocity = self.unknowns.velocity
            self.sync.snapshot(velocity)
            self.run(kernels.APPLY, self._values())
            self.sync.allreduce_increments(velocity)
            if self.joints.count:
                self.joints.warm_start(velocity)
            self.sync.broadcast_joint_bodies(velocity)
            (smallest,) = self.sync.largest(-self.divergence_ratio)  # momentum is the same for all
            self.divergence_ratio = -smallest
            self.warm_started = True
        self._use(split=True)
        self.solved = False
        self.unknowns.de_saxce[:] = 0  # of another problem
        self.restart_momentum()

    def restart_momentum(self):
        """The next sweep starts without momentum."""
        now, self.momentum = self.unknowns, kernels.fresh_momentum(self.divergence_ratio)
        now.last_impulse[:], now.last_torque[:], now.last_velocity[:] = now.impulse, now.torque, now.velocity
        self.joints.restart_momentum()

    def sweep(self, iterations, max_momentum, tolerance):
        """Joints come last in a pass, so that they are closed when they are solved at once. Without contacts one pass does it,
        and there is nothing for a second: then this returns 0."""
        self.momentum[MAX_MOMENTUM], self.momentum[SWEEP_TOLERANCE] = max_momentum, tolerance
        if self.joints.count + self.number == 0 and self.sync.single_process:
            return min(iterations, 1)  # nothing to solve
        if self.joints.count == 0 and self.sync.single_process:
            return int(self.run(kernels.SWEEP, self.nothing, iterations))
        velocity, momentum = self.unknowns.velocity, self.momentum
        if self.number == 0 and self.joints.system is not None and self.sync.single_process:
            if self.solved:
                return 0
            self.joints.sweep(velocity, refines=True)
            self.solved = True
            return min(iterations, 1)
        done = 0
        while done < iterations:
            done += 1
            kernels.carry_on(velocity, self.unknowns.last_velocity, momentum)
            self.sync.snapshot(velocity)
            self.run(kernels.SWEEP, self.nothing)
            self.sync.allreduce_increments(velocity, split=True)
            if self.joints.count:
                ascent, change = self.joints.sweep_on(velocity, momentum[BETA])
                momentum[ASCENT], momentum[CHANGE] = momentum[ASCENT] + ascent, max(momentum[CHANGE], change)
            self.sync.broadcast_joint_bodies(velocity)
            momentum[ASCENT], momentum[CHANGE] = self.sync.total_and_largest(momentum[ASCENT], momentum[CHANGE])
            if momentum[CHANGE] <= tolerance:
                break
        return done

    def _values(self):
        """Impulses and torques, block by block, as one vector."""
        impulse = self.unknowns.impulse[: self.number * 3 * WIDTH]
        if not self.rolling:
            return impulse
        return np.concatenate([self._blocks_of(impulse, 3), self._blocks_of(self.unknowns.torque, 3)], axis=1).reshape(-1)

    def measure(self):
        """(largest, root mean square) residual of impulses and velocities as they stand, m/s."""
        worst, squares = 0.0, 0.0
        is_split = self.in_parts is not None and self.in_parts.is_split
        self._use(split=False)
        if self.number:
            self.run(kernels.MEASURE, self.nothing)
            worst, squares = math.sqrt(max(self.worst.tolist())), sum(self.total.tolist())
            worst = worst if math.isfinite(squares) else math.inf  # a maximum may pass over what is not a number, a sum does not
        rows = self.joints.count
        if rows:
            joint_worst, joint_squares = self.joints.measure_residual(self.unknowns.velocity)
            worst = max(worst, joint_worst) if math.isfinite(joint_squares) else math.inf
            squares += joint_squares
        self._use(is_split)
        (worst,), (squares, rows) = self.sync.largest(worst), self.sync.total(squares, self.contacts + rows)
        return worst, (squares / max(rows, 1)) ** 0.5

    # --- every body by itself
    def solve_bodies(self, samples):
        if self.local is None:
            super().solve_bodies(samples)
        self.local.solve(samples, self.unknowns.impulse)
        self.sync.broadcast_from_owner(self.unknowns.velocity)

    # --- gradient solvers
    @functools.cached_property
    def size(self):
        return self.number * (6 if self.rolling else 3) * WIDTH + self.joints.count

    @functools.cached_property
    def cones(self):
        balls = int(self.blocks.ball_start[-1])
        split = rows_before(balls, balls)
        ball_rows = self.blocks.rows[:split].reshape(balls, ROWS_BALL, WIDTH)
        general_rows = self.blocks.rows[split : rows_before(self.number, balls)].reshape(self.number - balls, ROWS_GENERAL, WIDTH)
        ball = lambda offset: ball_rows[:, int(offset) // WIDTH]  # noqa: E731
        general = lambda offset: general_rows[:, int(offset) // WIDTH]  # noqa: E731
        both = lambda offset: np.concatenate([ball(offset), general(offset)])  # noqa: E731
        tiny = self.real.type(1e-30)
        mass = ball(kernels.MASS_A) + ball(kernels.MASS_B)
        turn = ball(kernels.ARM_A) ** 2 * ball(kernels.SPIN_A) + ball(kernels.ARM_B) ** 2 * ball(kernels.SPIN_B)
        eta = np.concatenate([1 / np.maximum(mass + turn * self.real.type(2 / 3), tiny), general(ETA)])
        twist = np.concatenate([np.maximum(ball(kernels.SPIN_A) + ball(kernels.SPIN_B), tiny), general(kernels.TWIST)])
        normal = np.concatenate([ball_rows[:, :3], general_rows[:, :3]])
        padding = ~np.any(normal != 0, axis=1)
        eta[padding] = 1
        rolling = self._blocks_of(self.blocks.rolling, 2) if self.rolling else np.empty((0, 2, WIDTH), self.real)
        twist_eta = np.where(padding, 1, 1 / twist).astype(self.real) if self.rolling else np.empty((0, WIDTH), self.real)
        return Cones(
            normal,
            both(FRICTION),
            both(COHESION),
            eta,
            rolling,
            twist_eta,
            self.joints.rows.eta,
            self.joints.rows.lower,
            self.joints.rows.upper,
        )

    def start(self):
        self.free_velocity = self.unknowns.velocity.copy()
        return np.concatenate([self._values(), self.joints.impulse], dtype=self.real)

    def gradient(self, x, out):
        """out := N x + r, by way of the velocities: v = v_free + M^-1 D x, out = D^T v + b."""
        contact_part = self._apply(x)
        self.run(kernels.GRADIENT, out[:contact_part])
        if self.joints.count:
            self.joints.gradient(self.unknowns.velocity, out[contact_part:])

    def update_de_saxce(self, g):
        super().update_de_saxce(g)
        self.joints.doubted = True

    def finish(self, x):
        """x becomes the impulses, and the velocities follow."""
        self.joints.doubted = False  # the residual is known by now
        contact_part = self._apply(x)
        values = x[:contact_part].reshape(self.number, 6 if self.rolling else 3, WIDTH)
        self._blocks_of(self.unknowns.impulse, 3)[:] = values[:, :3]
        if self.rolling:
            self._blocks_of(self.unknowns.torque, 3)[:] = values[:, 3:]
        if self.joints.count:
            self.joints.finish()

    def _apply(self, x):
        """Velocities := v_free + M^-1 D x; returns how much of x belongs to the contacts."""
        contact_part = self.size - self.joints.count
        velocity = self.unknowns.velocity
        velocity[:] = self.free_velocity
        self.sync.snapshot(velocity)
        self.run(kernels.APPLY, x[:contact_part])
        self.sync.allreduce_increments(velocity)
        if self.joints.count:
            self.joints.apply(x[contact_part:], velocity)
        self.sync.broadcast_joint_bodies(velocity)
        return contact_part

    def _blocks_of(self, flat, rows):
        return flat[: self.number * rows * WIDTH].reshape(self.number, rows, WIDTH)
