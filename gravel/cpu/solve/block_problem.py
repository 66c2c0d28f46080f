"""A cone problem between bodies, in the form the solvers work on: blocks of contacts, joint rows, velocities.

It fulfils ``gravel.engine.Problem``: what Gauss-Seidel needs (``begin``, ``sweep``, ``measure``) works on the arrays in place; what
the gradient solvers need works on vectors (``gravel.cpu.solve.cones``).
"""

import functools
import math

import numpy as np

from gravel.cpu.joints.block import JointBlock
from gravel.cpu.joints.rows import NO_ROWS
from gravel.cpu.solve import blocks as kernels
from gravel.cpu.solve.blocks import ETA, FRICTION, ROWS_GENERAL, ROWS_SPHERICAL, WIDTH
from gravel.cpu.solve.cones import Cones, ConeVectors
from gravel.engine import ALONE

kernel = functools.cache(kernels.make_kernel)
NO_JOINTS = JointBlock(NO_ROWS)


class BlockProblem(ConeVectors):
    def __init__(self, blocks, unknowns, scalars, contacts, joints=NO_JOINTS, share=ALONE):
        self.blocks, self.unknowns, self.scalars, self.joints, self.share = blocks, unknowns, scalars, joints, share
        self.contacts, self.coulomb = contacts, scalars.coulomb > 0
        self.begun = False
        self.general = unknowns.inertia.size > 0
        self.rolling = blocks.rolling.size > 0
        self.number = int(blocks.block_start[-1])  # of blocks
        tiles = len(blocks.block_start)
        self.threads = tiles > 3  # block_start: one tile, the hubs' and the end
        self.real = blocks.rows.dtype
        self.worst, self.squares, self.nothing = np.zeros(tiles, self.real), np.zeros(tiles, self.real), np.empty(0, self.real)

    def run(self, job, values, passes=1):
        if self.number:
            run = kernel(job, self.general, self.rolling, self.threads)
            run(self.blocks, self.unknowns, values, self.scalars, self.worst, self.squares, passes)

    # --- Gauss-Seidel
    def begin(self):
        """Velocities take the starting impulses in, once."""
        if not self.begun:
            self.run(kernels.APPLY, self._values())
            if self.joints.count:
                self.joints.begin(self.unknowns.velocity)
            self.begun = True

    def sweep(self, passes):
        """Joints come last in a pass, so that they are closed when they are solved at once. Without contacts, the second solution
        takes out what the first has left (iterative refinement), and there is nothing for a third."""
        if self.joints.count == 0 and self.share.alone:
            return self.run(kernels.SWEEP, self.nothing, passes)
        refined = self.number == 0 and self.joints.system is not None and self.share.alone
        for _ in range(min(passes, 2) if refined else passes):
            self.run(kernels.SWEEP, self.nothing)
            if self.joints.count:
                self.joints.sweep(self.unknowns.velocity)
            self.share.velocities(self.unknowns.velocity)

    def _values(self):
        """Impulses and torques, block by block, as one vector."""
        impulse = self.unknowns.impulse[: self.number * 3 * WIDTH]
        if not self.rolling:
            return impulse
        return np.concatenate([self._blocks_of(impulse, 3), self._blocks_of(self.unknowns.torque, 3)], axis=1).reshape(-1)

    def measure(self):
        """(largest, root mean square) residual of impulses and velocities as they stand, m/s."""
        worst, squares = 0.0, 0.0
        if self.number:
            self.run(kernels.MEASURE, self.nothing)
            worst, squares = max(self.worst.tolist()), sum(self.squares.tolist())
            worst = worst if math.isfinite(squares) else math.inf  # a maximum may pass over what is not a number, a sum does not
        rows = self.joints.count
        if rows:
            joint_worst, joint_squares = self.joints.measure_residual(self.unknowns.velocity)
            worst = max(worst, joint_worst) if math.isfinite(joint_squares) else math.inf
            squares += joint_squares
        (worst,), (squares, rows) = self.share.largest(worst), self.share.total(squares, self.contacts + rows)
        return worst, (squares / max(rows, 1)) ** 0.5

    # --- gradient solvers
    @functools.cached_property
    def size(self):
        return self.number * (6 if self.rolling else 3) * WIDTH + self.joints.count

    @functools.cached_property
    def cones(self):
        rows = self._blocks_of(self.blocks.rows, ROWS_GENERAL if self.general else ROWS_SPHERICAL)
        row = lambda offset: np.ascontiguousarray(rows[:, int(offset) // WIDTH])  # noqa: E731
        if self.general:
            eta, twist = row(ETA), row(kernels.TWIST)
        else:
            mass, turn = (
                row(kernels.MASS_A) + row(kernels.MASS_B),
                row(kernels.ARM_A) ** 2 * row(kernels.SPIN_A) + row(kernels.ARM_B) ** 2 * row(kernels.SPIN_B),
            )
            eta = 1 / np.maximum(mass + turn * rows.dtype.type(2 / 3), rows.dtype.type(1e-30))
            twist = np.maximum(row(kernels.SPIN_A) + row(kernels.SPIN_B), rows.dtype.type(1e-30))
        padding = ~np.any(rows[:, :3] != 0, axis=1)
        eta[padding] = 1
        rolling = self._blocks_of(self.blocks.rolling, 2) if self.rolling else np.empty((0, 2, WIDTH), rows.dtype)
        twist_eta = np.where(padding, 1, 1 / twist).astype(rows.dtype) if self.rolling else np.empty((0, WIDTH), rows.dtype)
        return Cones(
            np.ascontiguousarray(rows[:, :3]),
            row(FRICTION),
            row(kernels.COHESION),
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

    def finish(self, x):
        """x becomes the impulses, and the velocities follow."""
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
        self.unknowns.velocity[:] = self.free_velocity
        self.run(kernels.APPLY, x[:contact_part])
        if self.joints.count:
            self.joints.apply(x[contact_part:], self.unknowns.velocity)
        self.share.velocities(self.unknowns.velocity)
        return contact_part

    def _blocks_of(self, flat, rows):
        return flat[: self.number * rows * WIDTH].reshape(self.number, rows, WIDTH)
