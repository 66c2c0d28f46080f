"""A cone problem between bodies on the device. It fulfils ``gravel.engine.Problem``, as ``gravel.cpu.solve.block_problem``.

Contacts are laid out when the solver is known: by colours for sweeps, as they come for the gradient solvers. A sweep's kernels are taken
down once (on a GPU as a CUDA graph, whose loop runs on the device) and started again for each pass; nothing is read back before the
last. Joints, and bodies that other processes act on, are the host's: their velocities are brought there and back in every pass.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
import warp as wp

from gravel.engine import NO_SYNC
from gravel.formulas.momentum import DIVERGENCE_RATIO, NEVER
from gravel.gpu.devices import REDUCERS, to_device, workers_of
from gravel.gpu.launch import Graph, run
from gravel.gpu.solve import assemble, colours, cones
from gravel.gpu.solve import blocks as kernels
from gravel.gpu.solve.incidence import find_incidence
from gravel.gpu.structs import ContactInput, Impulses, Rows, Unknowns, as_rows
from gravel.host.joints.block import NO_JOINTS


class Vector(NamedTuple):
    """Impulses, or their gradient: of the contacts on the device, of the joint rows on the host."""

    impulse: wp.array
    torque: wp.array
    joints: np.ndarray

    def of_contacts(self):
        """As kernels take it."""
        values = Impulses()
        values.impulse, values.torque = self.impulse, self.torque
        return values


class LazyReadback:
    """Numbers that are read back from the device when they are first used; until then nothing waits for it. They must be looked at
    before the next call."""

    def __init__(self, read):
        self.read = read

    def __iter__(self):
        return iter(self.read())


class ProblemInputs(NamedTuple):
    """The inputs of a problem; see ``gravel.gpu.solve.assemble``."""

    contacts: object
    folded_contacts: object
    proxies: object
    contact_values: wp.array
    impulse: wp.array
    torque: wp.array
    surface_velocity: wp.array
    overlap_count: wp.array
    scalars: object
    margin: object


class DeviceProblem:
    def __init__(self, inputs, contacts, bodies, balls, rolling, inertia, rules, buffers, joints=NO_JOINTS, host_bodies=None, sync=NO_SYNC):
        """``host_bodies``: bodies that joints or other processes act on (``mirror.RowSubset``)."""
        self.inputs, self.contacts, self.bodies, self.balls, self.rolling = inputs, contacts, bodies, balls, rolling
        self.buffers, self.device, self.joints, self.sync = buffers, buffers.device, joints, sync
        self.coulomb = rules.coulomb
        self.own = kernels.kernels_for(balls, rolling)
        self.workers = workers_of(self.device)
        self.slot = self.rows = self.graph = self.parts = None
        self.unknowns = Unknowns()
        self.device_velocity = inputs.proxies.velocity
        self.unknowns.velocity, self.unknowns.inertia = as_rows(self.device_velocity), inertia
        self.warm_started, self.divergence_ratio = False, NEVER
        array = buffers.array
        self.worst, self.total = array("worker_worst", self.workers), array("worker_total", self.workers, dtype=wp.float64)
        self.other_total = array("worker_other_total", self.workers, dtype=wp.float64)
        self.part_worst, self.part_total = array("part_worst", REDUCERS), array("part_total", REDUCERS, dtype=wp.float64)
        self.known, self.goes_on = array("known", 11), array("goes_on", 3, dtype=wp.int32)
        self.device_only = joints.count == 0 and sync.single_process  # nothing of the solution is the host's
        self.host_bodies, self.velocity = host_bodies, None  # velocities on the host, where not

    # --- layout
    def lay_out(self, by_colour):
        """Fill the rows, once."""
        if self.rows is not None:
            return
        inputs, m, buffers = self.inputs, self.contacts, self.buffers
        self.starts = np.array([0, m])
        if by_colour and m:
            self.slot, self.starts = colours.colour_contacts(inputs.folded_contacts, m, inputs.proxies.mass, self.bodies, buffers)
            self.divergence_ratio = DIVERGENCE_RATIO if self.starts[-1] > self.starts[-2] else NEVER
            self.device_starts = buffers.array("colour_start", len(self.starts), dtype=wp.int32)
            to_device(self.starts.astype(np.int32), self.device_starts)
        else:
            self.slot = colours.keep_order(m, buffers)
        self._make_rows(m)
        given = ContactInput()
        for name in ("contact_values", "impulse", "torque", "surface_velocity", "overlap_count"):
            setattr(given, name, getattr(inputs, name))
        bodies = inputs.contacts, inputs.folded_contacts, self.slot, inputs.proxies
        run(assemble.assemble, m, [*bodies, given, inputs.scalars, inputs.margin, self.rows, self.unknowns], self.device)
        self.swept = self._split()

    def _make_rows(self, m):
        array, rows = self.buffers.array, Rows()
        general, vec3 = 0 if self.balls else m, wp.vec3
        rows.a, rows.b = array("row_a", m, dtype=wp.int32), array("row_b", m, dtype=wp.int32)
        rows.normal, rows.bias = array("row_normal", m, dtype=vec3), array("row_bias", m, dtype=vec3)
        rows.friction, rows.mass = array("row_friction", m, dtype=wp.vec2), array("row_mass", m, dtype=wp.vec2)
        rows.balls, rows.response = array("row_balls", m - general, dtype=wp.vec4), array("row_response", general, dtype=wp.vec4)
        rows.arm_a, rows.arm_b = array("row_arm_a", general, dtype=vec3), array("row_arm_b", general, dtype=vec3)
        rows.rolling = array("row_rolling", m if self.rolling else 0, dtype=wp.vec2)
        self.rows, now = rows, self.unknowns
        turning = m if self.rolling else 0
        now.impulse, now.last_impulse = array("row_impulse", m, dtype=vec3), array("last_impulse", m, dtype=vec3)
        now.torque, now.last_torque = array("row_torque", turning, dtype=vec3), array("last_torque", turning, dtype=vec3)
        now.last_velocity = as_rows(array("last_velocity", self.bodies + 1, (8,)))
        now.de_saxce = array("sweep_slip", m if self.coulomb else 0)

    @functools.cached_property
    def incidence(self):
        return find_incidence(self.rows, self.contacts, self.bodies, self.buffers)

    # --- velocities on the host, where joints or other processes act on them
    def _download_velocities(self):
        """Velocities on the host, flat; only those of the hosted bodies are right."""
        if self.velocity is None:
            self.velocity = np.zeros((self.bodies + 1, 8), np.float32)
        self.host_bodies.fetch(self.device_velocity, self.velocity)
        return self.velocity.reshape(-1)

    def _upload_velocities(self):
        self.host_bodies.send(self.velocity, self.device_velocity)

    def split(self, indices, parts):
        """Mass splitting: ``indices`` of the bodies that several ranks act on, and the number of ranks. Sweeps see them so, see
        ``gravel.cpu.solve.split``."""
        of_body = np.ones(self.bodies + 1, np.float32)
        of_body[indices] = parts
        self.parts = wp.array(of_body, dtype=wp.float32, device=self.device)

    def _split(self):
        """(rows, unknowns) of bodies in parts, or whole where none is."""
        if self.parts is None:
            return self.rows, self.unknowns
        rows, unknowns, now = Rows(), Unknowns(), self.unknowns
        for name in ("a", "b", "normal", "bias", "friction", "arm_a", "arm_b", "rolling"):
            setattr(rows, name, getattr(self.rows, name))
        for name in ("impulse", "torque", "velocity", "last_impulse", "last_torque", "last_velocity", "de_saxce"):
            setattr(unknowns, name, getattr(now, name))
        rows.mass, rows.balls, rows.response = (wp.clone(getattr(self.rows, name)) for name in ("mass", "balls", "response"))
        unknowns.inertia = wp.clone(now.inertia)
        run(assemble.split_inertia, unknowns.inertia.shape[0], [self.parts, unknowns.inertia], self.device)
        run(assemble.split_rows, self.contacts, [self.parts, rows, unknowns.inertia], self.device)
        return rows, unknowns

    # --- Gauss-Seidel
    def warm_start(self):
        self.lay_out(by_colour=True)
        if not self.warm_started:
            self._add(Vector(self.unknowns.impulse, self.unknowns.torque, self.joints.impulse), self.joints.warm_start)
            (smallest,) = self.sync.largest(-self.divergence_ratio)  # momentum is the same for all
            self.divergence_ratio = -smallest
            self.warm_started = True
        self.solved = False
        self.restart_momentum()

    def _add(self, x, of_joints):
        """Velocities change by M^-1 D x; ``of_joints``: a function that does it for the joints."""
        if not self.device_only:
            flat = self._download_velocities()
            self.sync.snapshot(flat)
        if self.contacts:
            run(self.own.apply, self.bodies, [self.rows, self.unknowns, *self.incidence, x.impulse, x.torque], self.device)
        if not self.device_only:
            flat = self._download_velocities()
            self.sync.allreduce_increments(flat)
            if self.joints.count:
                of_joints(flat)
            self.sync.broadcast_joint_bodies(flat)
            self._upload_velocities()

    def restart_momentum(self):
        now = self.unknowns
        for last, new in ((now.last_impulse, now.impulse), (now.last_torque, now.torque), (now.last_velocity, now.velocity)):
            if new.shape[0]:
                wp.copy(last, new)
        self._set_known(kernels.AGE, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, self.divergence_ratio, 0.0, 0.0)
        self.joints.restart_momentum()

    def _set_known(self, first, *values):
        part = self.known[first : first + len(values)]
        to_device(np.array(values, np.float32), part)

    def sweep(self, iterations, max_momentum, tolerance):
        if self.joints.count + self.contacts == 0 and self.sync.single_process:
            return min(iterations, 1)  # nothing to solve
        self._set_known(kernels.MAX_MOMENTUM, max_momentum, tolerance)
        if self.contacts == 0 and self.joints.system is not None and self.sync.single_process:
            return self._solve_joints(iterations)
        return self._sweep_on_device(iterations) if self.device_only else self._sweep_with_host(iterations, tolerance)

    def _solve_joints(self, iterations):
        """Joints that are solved at once need one pass, and there is nothing for a second."""
        if self.solved:
            return 0
        self.joints.sweep(self._download_velocities(), refines=True)
        self._upload_velocities()
        self.solved = True
        return min(iterations, 1)

    def _sweep_on_device(self, iterations):
        if self.graph is None:
            self.graph = Graph(
                self.device,
                lambda: wp.capture_while(self.goes_on, self._pass),
                [kernels.set_nesterov_step, self.own.update_de_saxce, self.own.sweep],
            )
        to_device(np.array([1, 0, iterations], np.int32), self.goes_on)
        self.graph.start()
        return int(self.goes_on.numpy()[1])

    def _pass(self):
        """One sweep: momentum, the colours one after the other, the rest, and what has changed."""
        now = self.unknowns
        run(kernels.set_nesterov_step, 1, [self.known], self.device)
        run(kernels.carry_on, self.bodies, [self.known, now.velocity, now.last_velocity], self.device)
        self._contacts_of_pass()
        parts = self._reduce()
        run(kernels.finish_sweep, 1, [parts, self.part_worst, self.part_total, self.known, self.goes_on], self.device)

    def _contacts_of_pass(self):
        device, coulomb = self.device, float(self.coulomb)
        if self.coulomb:
            run(self.own.update_de_saxce, self.contacts, [self.rows, self.unknowns, self.known], device)
        run(kernels.clear, self.workers, [self.worst, self.total], device)
        for colour in np.flatnonzero(np.diff(self.starts)).tolist():
            workers = self.workers if colour < len(self.starts) - 2 else 1
            contacts = *self.swept, self.device_starts, colour
            run(self.own.sweep, workers, [*contacts, workers, coulomb, self.known, self.worst, self.total], device)

    def _reduce(self):
        """Parts := sums and maxima of the workers; returns how many parts there are."""
        parts = min(REDUCERS, self.workers)
        share = -(-self.workers // parts)
        run(kernels.reduce, parts, [self.workers, share, self.worst, self.total, self.part_worst, self.part_total], self.device)
        return parts

    def _sweep_with_host(self, iterations, tolerance):
        """Each pass by itself: joints come last in it, so that they are closed when they are solved at once."""
        if self.graph is None and self.contacts:
            self.graph = Graph(self.device, self._contacts_of_pass, [kernels.set_nesterov_step, self.own.update_de_saxce, self.own.sweep])
        now, done = self.unknowns, 0
        while done < iterations:
            done += 1
            run(kernels.set_nesterov_step, 1, [self.known], self.device)
            run(kernels.carry_on, self.bodies, [self.known, now.velocity, now.last_velocity], self.device)
            beta = float(self.known.numpy()[kernels.BETA])
            flat = self._download_velocities()
            self.sync.snapshot(flat)
            ascent, change = 0.0, 0.0
            if self.contacts:
                self.graph.start()
                change, ascent = self._found()
                flat = self._download_velocities()
            self.sync.allreduce_increments(flat, split=True)
            if self.joints.count:
                more, most = self.joints.sweep_on(flat, beta)
                ascent, change = ascent + more, max(change, most)
            self.sync.broadcast_joint_bodies(flat)
            self._upload_velocities()
            ascent, change = self.sync.total_and_largest(ascent, change)
            self._set_known(kernels.ASCENT, ascent)
            self._set_known(kernels.CHANGE, change)
            if change <= tolerance:
                break
        return done

    def _found(self):
        """(largest, sum) of what the workers have found, the largest as a root; waits for the device."""
        parts = self._reduce()
        worst, total = self.part_worst.numpy()[:parts], self.part_total.numpy()[:parts]
        return math.sqrt(float(worst.max())), float(sum(total.tolist()))

    def measure(self):
        self.lay_out(by_colour=True)
        worst, squares = 0.0, 0.0
        if self.contacts:
            problem = self.rows, self.unknowns, self.contacts
            run(self.own.measure, self.workers, [*problem, self.workers, float(self.coulomb), self.worst, self.total], self.device)
            worst, squares = self._found()
            worst = worst if math.isfinite(squares) else math.inf  # a maximum may pass over what is not a number, a sum does not
        rows = self.joints.count
        if rows:
            joint_worst, joint_squares = self.joints.measure_residual(self._download_velocities())
            worst = max(worst, joint_worst) if math.isfinite(joint_squares) else math.inf
            squares += joint_squares
        (worst,), (squares, rows) = self.sync.largest(worst), self.sync.total(squares, self.contacts + rows)
        return worst, (squares / max(rows, 1)) ** 0.5

    def solve_bodies(self, samples):
        raise NotImplementedError("FFD runs on device 'cpu' only")

    # --- vectors of the gradient solvers
    def _new(self):
        turning = self.contacts if self.rolling else 0
        fresh = self.buffers.fresh
        return Vector(fresh("impulses", self.contacts, wp.vec3), fresh("torques", turning, wp.vec3), np.zeros(self.joints.count))

    def start(self):
        self.lay_out(by_colour=False)
        self.free_velocity = as_rows(self.buffers.array("free_velocity", self.bodies + 1, (8,)))
        wp.copy(self.free_velocity, self.unknowns.velocity)
        self.eta = self.buffers.array("steps", self.contacts, dtype=wp.vec2)
        run(self.own.list_steps, self.contacts, [self.rows, self.eta], self.device)
        self.de_saxce = self.buffers.fresh("de_saxce", self.contacts if self.coulomb else 0, wp.float32)
        x = self._new()
        self.copy(Vector(self.unknowns.impulse, self.unknowns.torque, self.joints.impulse), x)
        return x

    def blank(self):
        return self._new()

    def gradient(self, x, out):
        self._apply(x)
        run(self.own.gradient, self.contacts, [self.rows, self.unknowns, out.impulse, out.torque], self.device)
        if self.joints.count:
            self.joints.gradient(self.velocity.reshape(-1), out.joints)

    def _apply(self, x):
        """Velocities := v_free + M^-1 D x."""
        wp.copy(self.unknowns.velocity, self.free_velocity)
        self._add(x, lambda flat: self.joints.apply(x.joints, flat))

    def projected_step(self, y, g, step, relaxation, out):
        start = self.rows, self.eta, y.of_contacts(), g.of_contacts()
        numbers = self.de_saxce, step, relaxation, self.contacts, self.workers
        run(cones.projected_step, self.workers, [*start, *numbers, out.of_contacts(), self.total, self.other_total], self.device)
        rows, of_joints = self.joints.rows, (0.0, 0.0)
        if self.joints.count:
            d = relaxation * (np.clip(y.joints - step * rows.eta * g.joints, rows.lower, rows.upper) - y.joints)
            of_joints = float(d @ (d / rows.eta)), float(g.joints @ d)
            out.joints[:] = y.joints + d
        return LazyReadback(lambda: self._sums_of_step(*of_joints))

    def _sums_of_step(self, square, slope):
        return self.sync.total(square + self._sum(self.total), slope + self._sum(self.other_total))

    def _sum(self, total):
        parts = min(REDUCERS, self.workers)
        share = -(-self.workers // parts)
        run(kernels.reduce, parts, [self.workers, share, self.worst, total, self.part_worst, self.part_total], self.device)
        return float(sum(self.part_total.numpy()[:parts].tolist()))

    def residual(self, x, g):
        problem = self.rows, self.eta, x.of_contacts(), g.of_contacts(), float(self.coulomb)
        run(cones.measure, self.workers, [*problem, self.contacts, self.workers, self.worst, self.total], self.device)
        worst, squares = self._found()
        worst = worst if math.isfinite(squares) else math.inf
        rows = self.joints.rows
        if self.joints.count:
            d = (np.clip(x.joints - rows.eta * g.joints, rows.lower, rows.upper) - x.joints) / rows.eta
            worst, squares = max(worst, float(np.abs(d).max())), squares + float(d @ d)
        (worst,), (squares, number) = self.sync.largest(worst), self.sync.total(squares, self.contacts + self.joints.count)
        return worst, math.sqrt(squares / max(number, 1.0))

    def update_de_saxce(self, g):
        if self.coulomb:
            run(cones.de_saxce_terms, self.contacts, [self.rows, g.impulse, self.de_saxce], self.device)
        self.joints.doubted = True

    def dot(self, a, b, c, d):
        total = 0.0
        for part in range(2 if self.rolling else 1):
            run(cones.dot_of_differences, self.workers, [a[part], b[part], c[part], d[part], self.workers, self.total], self.device)
            total += self._sum(self.total)
        total += float((a.joints - b.joints) @ (c.joints - d.joints))
        return self.sync.total(total)[0]

    def extrapolate(self, x, old, beta, out):
        for part in range(2 if self.rolling else 1):
            run(cones.extrapolate, self.contacts, [x[part], old[part], beta, out[part]], self.device)
        out.joints[:] = x.joints + beta * (x.joints - old.joints)

    def copy(self, x, out):
        for part in range(2 if self.rolling else 1):
            if self.contacts:
                wp.copy(out[part], x[part])
        out.joints[:] = x.joints

    def finish(self, x):
        self.joints.doubted = False  # the residual is known by now
        self._apply(x)
        self.copy(x, Vector(self.unknowns.impulse, self.unknowns.torque, np.empty_like(x.joints)))
        if self.joints.count:
            self.joints.finish()
