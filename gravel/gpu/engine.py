"""The GPU engine: the stages of a step (``gravel.engine``) as kernels on a device, and what the host does beside them.

Bodies, contacts and the cone problem stand on the device from step to step; the host keeps the rows (who is where), and gets a field when
somebody asks for it. These stages run on the host, with copies there and back: ghosts in periodic space, pairs that may not touch, impacts
with restitution, surfaces that move by themselves, joints (the factorisation of a machine is small, and sequential), and what belongs to
other processes. docs/GPU.md says what that costs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import warp as wp

from gravel.engine import ELLIPSOID_METHODS, Commit, Detection, Driven, Lap, Margin, Rules, no_lap
from gravel.errors import DeviceError
from gravel.gpu import integrate, structs
from gravel.gpu.buffers import DeviceBuffers
from gravel.gpu.collide import pair_ownership as device_pair_ownership
from gravel.gpu.collide.detector import PHASES, DeviceDetector
from gravel.gpu.collide.shape_pair_types import Shapes
from gravel.gpu.contact_cache import MirroredCache
from gravel.gpu.devices import find_device, sent, to_device, to_host
from gravel.gpu.launch import run
from gravel.gpu.mirror import Mirror, RowSubset
from gravel.gpu.solve import assemble, match
from gravel.gpu.solve.block_problem import DeviceProblem, ProblemInputs
from gravel.gpu.step_state import StepState
from gravel.host import pair_ownership, periodic_images, surface_velocity
from gravel.host.arrays import BodyArrays
from gravel.host.contact_cache import ContactCache, empty_cache
from gravel.host.engine_base import EngineBase
from gravel.host.joints.block import NO_JOINTS
from gravel.host.restitution import ImpactSolver, no_impacts
from gravel.host.rows import FEW, Rows, is_torn
from gravel.host.threads import use_threads

STRETCH = 4096  # bodies whose energies a thread adds up
LONG = 1.0  # s, that a first step takes if nothing is compiled, at most
LOOK_AT_ORDER = 64  # steps between two looks at whether the rows are still in order
NOBODY = np.iinfo(np.int64).max
BODY_FIELDS = BodyArrays._fields
POSES = ("position", "quaternion", "velocity")
SEEN_TYPES = wp.int64, wp.float64, wp.float64, wp.float32, wp.float64, wp.float64, wp.int32, wp.int32  # of BODY_FIELDS


class DeviceRules(NamedTuple):
    """Rules as the device's kernels want them."""

    step: float
    margin: Margin
    device_ignored: wp.array
    contact_values: wp.array
    scalars: Any
    coulomb: bool
    shapes: Shapes
    half: wp.array  # (g, 3) half extents of the geometries


class GpuEngine(EngineBase):
    lacks_local_solvers = True  # such as FFD

    def __init__(self, device: str, broad_phase: str):
        super().__init__(np.float32)
        self.device = find_device(device)
        self.device_buffers = DeviceBuffers(self.device)
        self.mirror = Mirror(self.device_buffers)
        self.detector = DeviceDetector(self.device_buffers, broad_phase)
        self.ghosts = periodic_images.GhostBuilder(self.buffers)
        self.cache = MirroredCache(self.device_buffers, empty_cache(self.buffers.array, 0, 0, False))
        self.members = RowSubset(self.device_buffers, "member", np.empty(0, np.int64))  # rows that the joints act on
        self.problem: Any = None  # the ``DeviceProblem`` of the last ``assemble``
        self.steps = 0
        self.set_rules(Rules())

    # --- for ``EngineBase``: what stands where
    def current(self, *names: str) -> Rows:
        self.mirror.on_host(self.rows, *names)
        return self.rows

    def changed(self, *names: str) -> None:
        self.mirror.changed_on_host(*names)

    def _picked(self, name: str, rows: np.ndarray) -> np.ndarray:
        if name in self.mirror.newer_on_device and len(rows):
            return RowSubset(self.device_buffers, "picked", rows).part_of(self.mirror.arrays[name])
        return super()._picked(name, rows)

    def set_field(self, name: str, columns: slice, values: np.ndarray) -> None:
        """An array that somebody holds comes back before each step; what is as it was need not go to the device."""
        if not np.array_equal(getattr(self.current(name), name)[:, columns], values):
            super().set_field(name, columns, values)

    def _put_into(self, block: Mapping[str, Any], rows: np.ndarray) -> None:
        """What the device has newer goes there; the rest to the host."""
        some = RowSubset(self.device_buffers, "put", rows)
        for name, values in block.items():
            if name in self.mirror.newer_on_device:
                some.put(values, self.mirror.arrays[name])
            else:
                getattr(self.rows, name)[rows] = values
                self.mirror.changed_on_host(name)

    def contact_cache(self) -> ContactCache:
        return self.cache.on_host()

    def set_contact_cache(self, cache: ContactCache) -> None:
        self.cache.replace(cache)

    def use_threads(self) -> None:
        """What runs on the host runs on one thread: it is little."""
        use_threads(1, False)

    def find_filtered(self) -> None:
        super().find_filtered()
        place = np.empty(0, np.int64) if self.joints is None else self.joints.members.state_row
        self.members = RowSubset(self.device_buffers, "member", np.unique(place[place >= 0]))
        self.device_jointed = self.device_buffers.array("jointed", len(self.jointed), dtype=wp.uint8)
        if len(self.jointed):
            to_device(self.jointed.astype(np.uint8), self.device_jointed)

    def set_rules(self, rules: Rules) -> None:
        super().set_rules(rules)
        own, array = self.rules, self.device_buffers.array
        ignored, values = own.ignored.astype(np.uint8), own.contact_values.astype(np.float32)
        device_ignored = array("ignored", len(ignored), ignored.shape[1:], wp.uint8)
        device_values = wp.array(values, dtype=wp.float32, device=self.device)
        to_device(ignored, device_ignored)
        scalars = assemble.Scalars()
        scalars.step, scalars.recovery, scalars.recovery_speed = own.step, own.scalars.recovery, own.scalars.recovery_speed
        coulomb = own.scalars.coulomb > 0
        shapes = Shapes(self.library, ELLIPSOID_METHODS.index(rules.ellipsoid_method))
        half = wp.array(own.half.astype(np.float32).reshape(-1, 3), dtype=wp.float32, device=self.device)
        of_kernels = device_ignored, device_values, scalars, coulomb, shapes, half
        self.device_rules = DeviceRules(own.step, own.margin, *of_kernels)

    def memory(self) -> dict[str, np.ndarray]:
        return {**super().memory(), "steps": np.array([self.steps % LOOK_AT_ORDER])}  # when rows are put in order next

    def restore(self, memory: Mapping[str, np.ndarray]) -> None:
        super().restore(memory)
        self.steps = int(memory.get("steps", [0])[0])  # the CPU's files do not say

    # --- several processes
    def border(self) -> tuple[np.ndarray, np.ndarray]:
        assert self.partition is not None
        rows, margin, lattice = self.rows, structs.Margin(), self.endless_lattice()
        bodies = self._body_struct(self.mirror.on_device(rows, *BODY_FIELDS))
        (owner,) = self.mirror.on_device(rows, "rank")
        margin.absolute, margin.share = self.border_margin()
        device_reach = self.device_buffers.array("border_reach", rows.count, dtype=wp.float64)
        of_part = sent(self.partition.border, wp.float64, self.device), wp.vec3d(*lattice.low), wp.vec3d(*lattice.length)
        run(
            device_pair_ownership.find_border,
            rows.count,
            [bodies, owner, self.rank, margin, self.rules.step, *of_part, device_reach],
            self.device,
        )
        radius = to_host(device_reach)
        found = np.flatnonzero(radius >= 0)
        return found, radius[found]

    def touched(self, ids: np.ndarray) -> np.ndarray:
        if self.step.touched is None:
            found, touched = self.detector, self.device_buffers.array("touched", self.detector.n, dtype=wp.uint8)
            touched.zero_()
            run(device_pair_ownership.list_touched, found.contact_total, [found.device_folded_contacts, touched], self.device)
            self.step.touched = to_host(touched)
        return self.step.touched[self.problem_indices(ids)]

    def problem_indices(self, ids: np.ndarray) -> np.ndarray:
        return self.rows.rows_of(ids)

    def adopt(self, known: tuple[np.ndarray, ...]) -> None:
        found, step = self.detector, self.step
        if len(known[0]) and found.contact_total > 0:
            indices = np.stack([self.problem_indices(ids) for ids in known[:2]], axis=1)
            impulse, torque = to_host(step.impulse), to_host(step.torque)
            pair_ownership.adopt_contacts(known, indices, found.contacts, found.proxies.id, impulse, torque)
            to_device(impulse, step.impulse)
            if len(torque):
                to_device(torque, step.torque)

    # --- the stages of the step
    def predict_poses(self) -> None:
        self.look_up_rows()
        self.taken = False
        now = self._body_struct(self.mirror.on_device(self.rows, *BODY_FIELDS))
        self.step = StepState(now, now)
        if self.rules.midpoint:
            self._look_ahead()

    def _body_struct(self, arrays):
        bodies = structs.Bodies()
        for name, array in zip(BODY_FIELDS, arrays):
            setattr(bodies, name, array)
        return bodies

    def _bodies_with_new(self, *names):
        """The bodies as they are now, but for some fields, which are new arrays of the step."""
        n, array = self.rows.count, self.device_buffers.array
        shapes = {"position": ((3,), wp.float64), "quaternion": ((4,), wp.float64), "velocity": ((8,), wp.float32)}
        fresh = {name: array(f"ahead_{name}", n, *shapes[name]) for name in names}
        return self._body_struct([fresh.get(name, getattr(self.step.now, name)) for name in BODY_FIELDS])

    def _look_ahead(self):
        n, ahead = self.rows.count, self._bodies_with_new(*POSES)
        run(integrate.drift, n, [self.step.now, 0.5 * self.rules.step, ahead.position, ahead.quaternion, ahead.velocity], self.device)
        self.step.bodies = ahead
        if self.lattice is not None:
            self.step.winding = np.array(self.rows.winding)
            position, velocity = to_host(ahead.position), to_host(ahead.velocity)
            periodic_images.wrap(position, velocity, self.step.winding, self.rows.tag, ~self.jointed, self.lattice)
            to_device(position, ahead.position)
            to_device(velocity, ahead.velocity)

    def set_motion(self, driven: Driven) -> None:
        rows = self.rows.rows_of(driven.id)
        self.step.driven = rows, driven
        if not self.rules.midpoint:  # the state keeps its own velocities, in case the step is refused
            self.step.bodies = self._bodies_with_new("velocity")
            wp.copy(self.step.bodies.velocity, self.step.now.velocity)
        pose = np.hstack([driven.position, driven.quaternion]) if self.rules.midpoint else np.empty((0, 7))
        integrate.drive(integrate.sent_drive(rows, pose, driven.velocity, self.device), self.step.bodies, self.device)

    def detect(self, lap: Lap = no_lap) -> Detection:
        detector = self.detector
        self._lay_bounds()
        lap("bounds")
        detector.sort_bodies()
        lap("order")
        detector.list_pairs()
        detector.exclude_pairs(self.excluded)
        if self.partition is not None:
            detector.keep_own_pairs(self.rows.rank, self.partition)
        lap("broad phase")
        detector.find_contacts()
        lap("narrow phase")
        return Detection(detector.contact_total, detector.penetration, detector.phase)

    def _lay_bounds(self):
        self.problem = self.step.touched = None
        n, periodic, bodies, jointed = self.rows.count, None, self.step.bodies, self.device_jointed
        if self.lattice is not None:
            periodic, bodies = self._periodic_bodies_on_device()
            if len(self.jointed):
                jointed = sent(self.jointed[periodic.source].astype(np.uint8), wp.uint8, self.device)
        total = n if periodic is None else len(periodic.source)
        self.detector.find_bounds(bodies, total, n, self.device_rules, self.balls, jointed, periodic, self.lattice)

    def _periodic_bodies_on_device(self):
        """The bodies folded into the cell and their ghosts, found on the host."""
        rows, array = self.current(*BODY_FIELDS), self.device_buffers.array
        poses = {name: to_host(getattr(self.step.bodies, name)) for name in POSES}
        bodies = BodyArrays(*(poses.get(name, getattr(rows, name)) for name in BODY_FIELDS))
        self.ghosts.copied = ()  # the rows may be others' copies
        periodic = self.ghosts.build(bodies, rows.version, self.lattice, self.rules.margin, self.rules.step)
        total, arrays = len(periodic.source), []
        for name, dtype in zip(BODY_FIELDS, SEEN_TYPES):
            values = getattr(periodic.bodies, name)
            arrays.append(array(f"seen_{name}", total, values.shape[1:], dtype))
            if total:
                to_device(values, arrays[-1])
        return periodic, self._body_struct(arrays)

    def match(self, warm: bool) -> None:
        found, array, step, total = self.detector, self.device_buffers.array, self.step, self.detector.contact_total
        step.rolling = self.rules.rolling
        step.impulse = array("impulse", total, (3,))
        step.torque = array("torque", total if step.rolling else 0, (3,))
        cache = self.cache.on_device() if warm else structs.ContactCache()
        run(
            match.match_contacts,
            total,
            [found.device_folded_contacts, found.device_proxies.id, cache, step.impulse, step.torque],
            self.device,
        )

    def prepare_contacts(self) -> None:
        found, step, array, n = self.detector, self.step, self.device_buffers.array, self.detector.n
        step.inertia = array("inertia", 0 if found.balls else n + 1, (8,))
        if not found.balls:
            row = array("no_rows", 0, dtype=wp.int32)
            if found.periodic is not None:
                row = array("seen_row", n, dtype=wp.int32)
                to_device(found.row.astype(np.int32), row)
            run(assemble.world_inertia, n + 1, [step.bodies, row, n, step.inertia], self.device)
        moves = surface_velocity.any_moves(self.surface, self.lattice) and found.contact_total > 0
        step.surface = array("surface_velocity", found.contact_total if moves else 0, (3,))
        if moves:
            quaternion, values = to_host(step.bodies.quaternion), np.empty((found.contact_total, 3), np.float32)
            surface_velocity.find_at_contacts(found, quaternion, self.surface, self.lattice, values)
            to_device(values, step.surface)

    def apply_restitution(self, impacts_first: bool) -> tuple[int, float]:
        """Impacts one after the other, on copies of the contacts and velocities."""
        found, step = self.detector, self.step
        if not (self.rules.bouncy and impacts_first) or (found.contact_total == 0 and self.sync.single_process):
            nothing = np.empty((0, 3), np.float32)
            step.restitution = no_impacts(float(found.penetration), nothing, nothing)
        else:
            given = to_host(step.inertia).reshape(-1), to_host(step.surface), self.rules, self.sync, self.buffers
            step.restitution = ImpactSolver(found, *given).solve(np.zeros((found.contact_total, 3), np.float32))
            if step.restitution.moved:
                to_device(found.proxies.velocity, found.device_proxies.velocity)
            if found.contact_total:
                step.surface = self.device_buffers.array("lifted", found.contact_total, (3,))
                to_device(step.restitution.surface, step.surface)
        return step.restitution.collisions, step.restitution.penetration

    def add_forces(self) -> None:
        found, nothing = self.detector, self.device_buffers.array("no_force", 0, (3,), wp.float64)
        forces = self.mirror.on_device(self.rows, "force", "torque") if self.rows.forced else (nothing, nothing)
        given = found.device_proxies, self.step.bodies, wp.vec3d(*self.rules.gravity), *forces, self.rules.step
        run(integrate.add_forces, found.real_bodies, [*given], self.device)

    def measure_joints(self) -> tuple[np.ndarray, np.ndarray]:
        assert self.joints is not None
        members, bodies, n = self.members, self._poses_of_members(), self.detector.n
        index_of_row, inertia = self.buffers.array("index_of_row", n, dtype="i8"), np.zeros((n + 1, 8), np.float32)
        members.fetch(self.step.inertia, inertia)
        self.joints.measure(bodies, self.detector.order, index_of_row, self.rules, inertia.reshape(-1))
        members.send(inertia, self.step.inertia)
        return self.joints.measured.value, self.joints.measured.rate

    def _poses_of_members(self):
        """Bodies where the step looks; only the rows of those with joints are right."""
        rows, array = self.rows, self.buffers.array
        n = rows.count
        poses = array("joint_position", n, (3,), "f8"), array("joint_quaternion", n, (4,), "f8"), array("joint_velocity", n, (8,), "f4")
        for name, target in zip(POSES, poses):
            self.members.fetch(getattr(self.step.bodies, name), target)
        return BodyArrays(rows.id, *poses, rows.inverse_mass, rows.extent, rows.tag, rows.geometry)

    def assemble(self, warm: bool) -> DeviceProblem:
        found, rules, step = self.detector, self.device_rules, self.step
        given = rules.contact_values, step.impulse, step.torque, step.surface, self._count_overlaps(), rules.scalars, found.margin
        inputs = ProblemInputs(found.device_contacts, found.device_folded_contacts, found.device_proxies, *given)
        joints, host_bodies = NO_JOINTS, self.members
        if self.joints is not None:
            joints, velocity = self.joints.block, np.zeros((found.n + 1, 8), np.float32)
            self.members.fetch(found.device_proxies.velocity, velocity)
            scalars, parts = self.rules.scalars, 2 if self.rules.midpoint else 1
            self.joints.assemble(scalars.step, parts, scalars.recovery_speed, self.rules.threshold, velocity.reshape(-1), warm)
            self.members.send(velocity, found.device_proxies.velocity)
        if not self.sync.single_process:
            host_bodies = RowSubset(self.device_buffers, "host_bodies", np.union1d(self.members.rows, self.sync.indices))
        kinds = found.balls, step.rolling, step.inertia, rules
        self.problem = DeviceProblem(inputs, found.contact_total, found.n, *kinds, self.device_buffers, joints, host_bodies, self.sync)
        return self.problem

    def _count_overlaps(self):
        """By how many contacts each body overlaps others deeply; empty where none can."""
        found = self.detector
        some = self.sync.largest(float(found.penetration > assemble.DEEP_OVERLAP * found.traits.smallest))[0] > 0
        overlap_count = self.device_buffers.array("overlap_count", found.n if some else 0, dtype=wp.int32)
        if some:
            overlap_count.zero_()
            given = found.device_contacts, found.device_folded_contacts, found.device_proxies, overlap_count
            run(assemble.count_overlaps, found.contact_total, [*given], self.device)
            if not self.sync.single_process:
                sums = to_host(overlap_count).astype(np.int64)
                self.sync.allreduce_sums(sums[:, None])
                to_device(sums.astype(np.int32), overlap_count)
        return overlap_count

    def _time_left(self):
        return (0.5 if self.rules.midpoint else 1.0) * self.rules.step

    def find_invalid_body(self, world: np.ndarray) -> int:
        (owner,) = self.mirror.on_device(self.rows, "rank")
        fault = sent(np.array([NOBODY]), wp.int64, self.device)
        given = owner, self.rank, self.detector.device_proxies.velocity, self._time_left(), sent(world, wp.float64, self.device), fault
        run(integrate.inspect, self.rows.count, [self.step.bodies, *given], self.device)
        lowest = int(fault.numpy()[0])
        return -1 if lowest == NOBODY else lowest

    def commit(self) -> Commit:
        step, n, array = self.step, self.rows.count, self.device_buffers.array
        (owner,) = self.mirror.on_device(self.rows, "rank")
        # all that may find no room on the device comes before anything of the state changes
        energies, sums = array("energy", n, dtype=wp.float64), array("energy_sum", -(-n // STRETCH), dtype=wp.float64)
        cache = self.cache.room(self.detector.contact_total, n, step.rolling)
        shift = sent(step.restitution.shift[:n], wp.float64, self.device) if step.restitution.moved else None
        drive = None
        if step.driven is not None:
            rows, driven = step.driven
            drive = integrate.sent_drive(rows, np.hstack([driven.end_position, driven.end_quaternion]), driven.velocity, self.device)
        to = step.now.position, step.now.quaternion, step.now.velocity
        given = owner, self.rank, self.detector.device_proxies.velocity, self._time_left()
        run(integrate.commit, n, [step.bodies, *given, *to, energies], self.device)
        if shift is not None:
            run(integrate.shift_bodies, n, [shift, step.now.position], self.device)
        if drive is not None:
            integrate.drive(drive, step.now, self.device)
        self.mirror.changed_on_device()
        if self.lattice is not None:
            self._wrap_on_host()
        self._store_impulses(cache)
        violation = self._report_joints()
        self.taken = True
        self.steps += 1
        if n > FEW and self.steps % LOOK_AT_ORDER == 0:
            self._keep_order(n)
        run(integrate.add_up, sums.shape[0], [energies, STRETCH, sums], self.device)
        return Commit(float(sum(sums.numpy().tolist())), violation)

    def _wrap_on_host(self):
        rows = self.current(*POSES)
        if self.step.winding is not None:
            rows.winding[:] = self.step.winding
        periodic_images.wrap(rows.position, rows.velocity, rows.winding, rows.tag, ~self.jointed, self.end_lattice)
        self.changed("position", "velocity")

    def _report_joints(self):
        if self.joints is None:
            return 0.0
        rows = self.rows
        for name in POSES:
            if name in self.mirror.newer_on_device:
                self.members.fetch(getattr(self.step.now, name), getattr(rows, name))
        self.joints.store_impulses(rows)
        return float(self.joints.report(rows, self.rules.step))

    def _keep_order(self, n):
        """Rows are put in the order of space again, where it has little left to do with theirs."""
        order = self.detector.phases[self.detector.phase].order(n)
        if order is not None and bool(is_torn(np.asarray(order[:n], np.int32))):
            order = order.astype(np.int32)
            self.current(*POSES).sort(order)
            self.cache.sort(order)
            if self.joints is not None:
                self.joints.find_places()

    def _store_impulses(self, cache):
        """The contacts and impulses of this step go into the contact cache."""
        found, total, n = self.detector, self.detector.contact_total, self.rows.count
        if total:
            unknowns = self.problem.unknowns
            given = self.problem.slot, unknowns.impulse, unknowns.torque, cache
            run(match.store_impulses, total, [found.device_contacts, found.device_proxies.id, *given], self.device)
        if n:
            wp.copy(cache.first, found.first[:n])
            wp.copy(cache.number, found.number[:n])
        self.cache.keep(cache)

    # --- out
    def solved_impulses(self) -> tuple[np.ndarray, np.ndarray]:
        impulse = to_host(self.problem.unknowns.impulse)[to_host(self.problem.slot)]
        return impulse, self.step.restitution.impulse

    def solved_friction(self) -> np.ndarray:
        return to_host(self.problem.rows.friction)[to_host(self.problem.slot)]

    def warm_up(self, on_status: Callable[[str], None], joints: bool, several: bool = False) -> Callable[[], None]:
        """Warp compiles what it does not find in its cache, and does not say so: what takes long, does."""
        waits = threading.Timer(LONG, on_status, ["compiling for the device, for this and later runs"])
        waits.daemon = True
        waits.start()
        return waits.cancel

    def compile(self, joints: bool) -> None:
        """Warp compiles in the first steps, whatever they need."""

    def find_pairs_within(self, budget: Callable[[int, int], bool]) -> bool:
        self.predict_poses()
        self._lay_bounds()
        self.detector.sort_bodies()
        pairs = self.detector.count_pairs()
        if not budget(pairs, pairs):
            return False
        self.detector.fill_pairs()
        return True


def check_settings(device, precision, broad_phase):
    """What this engine does not have is refused by name."""
    if precision != "single":
        raise DeviceError(f"precision must be 'single' on device {device!r}, not {precision!r}; device 'cpu' has 'double'")
    if broad_phase != "auto" and broad_phase not in PHASES:
        raise DeviceError(f"broad_phase must be one of auto, {', '.join(PHASES)} on device {device!r}, not {broad_phase!r}")
