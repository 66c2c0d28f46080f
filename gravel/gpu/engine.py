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
from gravel.gpu.collide import territory
from gravel.gpu.collide.detector import PHASES, DeviceDetector
from gravel.gpu.collide.pieces import Shapes
from gravel.gpu.contact_cache import MirroredCache
from gravel.gpu.devices import find_device, sent, to_device, to_host
from gravel.gpu.launch import run
from gravel.gpu.mirror import Mirror, Some
from gravel.gpu.solve import assemble, match
from gravel.gpu.solve.block_problem import DeviceProblem, Made
from gravel.gpu.step_state import StepState
from gravel.host import pair_ownership, periodic_images, surface_velocity
from gravel.host.arrays import BodyArrays
from gravel.host.contact_cache import Memory, empty_cache
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
        self.members = Some(self.device_buffers, "member", np.empty(0, np.int64))  # rows that the joints act on
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
            return Some(self.device_buffers, "picked", rows).part_of(self.mirror.arrays[name])
        return super()._picked(name, rows)

    def set_field(self, name: str, columns: slice, values: np.ndarray) -> None:
        """An array that somebody holds comes back before each step; what is as it was need not go to the device."""
        if not np.array_equal(getattr(self.current(name), name)[:, columns], values):
            super().set_field(name, columns, values)

    def _put_into(self, block: Mapping[str, Any], rows: np.ndarray) -> None:
        """What the device has newer goes there; the rest to the host."""
        some = Some(self.device_buffers, "put", rows)
        for name, values in block.items():
            if name in self.mirror.newer_on_device:
                some.put(values, self.mirror.arrays[name])
            else:
                getattr(self.rows, name)[rows] = values
                self.mirror.changed_on_host(name)

    def contact_cache(self) -> Memory:
        return self.cache.on_host()

    def set_contact_cache(self, cache: Memory) -> None:
        self.cache.replace(cache)

    def use_threads(self) -> None:
        """What runs on the host runs on one thread: it is little."""
        use_threads(1, False)

    def find_filtered(self) -> None:
        super().find_filtered()
        place = np.empty(0, np.int64) if self.joints is None else self.joints.members.place
        self.members = Some(self.device_buffers, "member", np.unique(place[place >= 0]))
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
        run(territory.find_border, rows.count, [bodies, owner, self.rank, margin, self.rules.step, *of_part, device_reach], self.device)
        reach = to_host(device_reach)
        found = np.flatnonzero(reach >= 0)
        return found, reach[found]

    def touched(self, ids: np.ndarray) -> np.ndarray:
        if self.step.touched is None:
            found, touched = self.detector, self.device_buffers.array("touched", self.detector.n, dtype=wp.uint8)
            touched.zero_()
            run(territory.list_touched, found.contact_total, [found.device_touching, touched], self.device)
            self.step.touched = to_host(touched)
        return self.step.touched[self.places_of(ids)]

    def places_of(self, ids: np.ndarray) -> np.ndarray:
        return self.rows.rows_of(ids)

    def adopt(self, known: tuple[np.ndarray, ...]) -> None:
        found, step = self.detector, self.step
        if len(known[0]) and found.contact_total > 0:
            places = np.stack([self.places_of(ids) for ids in known[:2]], axis=1)
            impulse, torque = to_host(step.impulse), to_host(step.torque)
            pair_ownership.adopt_contacts(known, places, found.contacts, found.arranged.id, impulse, torque)
            to_device(impulse, step.impulse)
            if len(torque):
                to_device(torque, step.torque)

    # --- the stages of the step
    def begin(self) -> None:
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

    def _seen_copy(self, *names):
        """The bodies as they are now, but for some fields, which are new arrays of the step."""
        n, array = self.rows.count, self.device_buffers.array
        shapes = {"position": ((3,), wp.float64), "quaternion": ((4,), wp.float64), "velocity": ((8,), wp.float32)}
        fresh = {name: array(f"ahead_{name}", n, *shapes[name]) for name in names}
        return self._body_struct([fresh.get(name, getattr(self.step.now, name)) for name in BODY_FIELDS])

    def _look_ahead(self):
        n, ahead = self.rows.count, self._seen_copy(*POSES)
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
            self.step.bodies = self._seen_copy("velocity")
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
        n, seen, bodies, jointed = self.rows.count, None, self.step.bodies, self.device_jointed
        if self.lattice is not None:
            seen, bodies = self._see_on_device()
            if len(self.jointed):
                jointed = sent(self.jointed[seen.source].astype(np.uint8), wp.uint8, self.device)
        total = n if seen is None else len(seen.source)
        self.detector.find_bounds(bodies, total, n, self.device_rules, self.balls, jointed, seen, self.lattice)

    def _see_on_device(self):
        """The bodies folded into the cell and their ghosts, found on the host."""
        rows, array = self.current(*BODY_FIELDS), self.device_buffers.array
        poses = {name: to_host(getattr(self.step.bodies, name)) for name in POSES}
        bodies = BodyArrays(*(poses.get(name, getattr(rows, name)) for name in BODY_FIELDS))
        self.ghosts.copied = ()  # the rows may be others' copies
        seen = self.ghosts.build(bodies, rows.version, self.lattice, self.rules.margin, self.rules.step)
        total, arrays = len(seen.source), []
        for name, dtype in zip(BODY_FIELDS, SEEN_TYPES):
            values = getattr(seen.bodies, name)
            arrays.append(array(f"seen_{name}", total, values.shape[1:], dtype))
            if total:
                to_device(values, arrays[-1])
        return seen, self._body_struct(arrays)

    def match(self, warm: bool) -> None:
        found, array, step, total = self.detector, self.device_buffers.array, self.step, self.detector.contact_total
        step.rolling = self.rules.rolling
        step.impulse = array("impulse", total, (3,))
        step.torque = array("torque", total if step.rolling else 0, (3,))
        cache = self.cache.on_device() if warm else structs.Memory()
        run(match.match_contacts, total, [found.device_touching, found.device_arranged.id, cache, step.impulse, step.torque], self.device)

    def prepare_contacts(self) -> None:
        found, step, array, n = self.detector, self.step, self.device_buffers.array, self.detector.n
        step.inertia = array("inertia", 0 if found.balls else n + 1, (8,))
        if not found.balls:
            row = array("no_rows", 0, dtype=wp.int32)
            if found.seen is not None:
                row = array("seen_row", n, dtype=wp.int32)
                to_device(found.row.astype(np.int32), row)
            run(assemble.world_inertia, n + 1, [step.bodies, row, n, step.inertia], self.device)
        moves = surface_velocity.any_moves(self.surface, self.lattice) and found.contact_total > 0
        step.surface = array("carry", found.contact_total if moves else 0, (3,))
        if moves:
            quaternion, values = to_host(step.bodies.quaternion), np.empty((found.contact_total, 3), np.float32)
            surface_velocity.find_at_contacts(found, quaternion, self.surface, self.lattice, values)
            to_device(values, step.surface)

    def apply_restitution(self, impacts_first: bool) -> tuple[int, float]:
        """Impacts one after the other, on copies of contacts and velocities."""
        found, step = self.detector, self.step
        if not (self.rules.bouncy and impacts_first) or (found.contact_total == 0 and self.share.alone):
            nothing = np.empty((0, 3), np.float32)
            step.restitution = no_impacts(float(found.penetration), nothing, nothing)
        else:
            given = to_host(step.inertia).reshape(-1), to_host(step.surface), self.rules, self.share, self.buffers
            step.restitution = ImpactSolver(found, *given).solve(np.zeros((found.contact_total, 3), np.float32))
            if step.restitution.moved:
                to_device(found.arranged.velocity, found.device_arranged.velocity)
            if found.contact_total:
                step.surface = self.device_buffers.array("lifted", found.contact_total, (3,))
                to_device(step.restitution.surface, step.surface)
        return step.restitution.collisions, step.restitution.penetration

    def add_forces(self) -> None:
        found, nothing = self.detector, self.device_buffers.array("no_force", 0, (3,), wp.float64)
        forces = self.mirror.on_device(self.rows, "force", "torque") if self.rows.forced else (nothing, nothing)
        given = found.device_arranged, self.step.bodies, wp.vec3d(*self.rules.gravity), *forces, self.rules.step
        run(integrate.add_forces, found.real_bodies, [*given], self.device)

    def measure_joints(self) -> tuple[np.ndarray, np.ndarray]:
        assert self.joints is not None
        members, bodies, n = self.members, self._poses_of_members(), self.detector.n
        where, inertia = self.buffers.array("where", n, dtype="i8"), np.zeros((n + 1, 8), np.float32)
        members.fetch(self.step.inertia, inertia)
        self.joints.measure(bodies, self.detector.order, where, self.rules, inertia.reshape(-1))
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
        given = rules.contact_values, step.impulse, step.torque, step.surface, self._count_deep(), rules.scalars, found.margin
        made = Made(found.device_contacts, found.device_touching, found.device_arranged, *given)
        joints, hosted = NO_JOINTS, self.members
        if self.joints is not None:
            joints, velocity = self.joints.block, np.zeros((found.n + 1, 8), np.float32)
            self.members.fetch(found.device_arranged.velocity, velocity)
            scalars, parts = self.rules.scalars, 2 if self.rules.midpoint else 1
            self.joints.assemble(scalars.step, parts, scalars.recovery_speed, self.rules.threshold, velocity.reshape(-1), warm)
            self.members.send(velocity, found.device_arranged.velocity)
        if not self.share.alone:
            hosted = Some(self.device_buffers, "hosted", np.union1d(self.members.rows, self.share.places))
        kinds = found.balls, step.rolling, step.inertia, rules
        self.problem = DeviceProblem(made, found.contact_total, found.n, *kinds, self.device_buffers, joints, hosted, self.share)
        return self.problem

    def _count_deep(self):
        """By how many contacts each body lies within another; empty where none can."""
        found = self.detector
        some = self.share.largest(float(found.penetration > assemble.DEEP * found.traits.smallest))[0] > 0
        deep = self.device_buffers.array("deep", found.n if some else 0, dtype=wp.int32)
        if some:
            deep.zero_()
            given = found.device_contacts, found.device_touching, found.device_arranged, deep
            run(assemble.count_deep, found.contact_total, [*given], self.device)
            if not self.share.alone:
                sums = to_host(deep).astype(np.int64)
                self.share.sums(sums[:, None])
                to_device(sums.astype(np.int32), deep)
        return deep

    def _time_left(self):
        return (0.5 if self.rules.midpoint else 1.0) * self.rules.step

    def fault(self, world: np.ndarray) -> int:
        (owner,) = self.mirror.on_device(self.rows, "rank")
        fault = sent(np.array([NOBODY]), wp.int64, self.device)
        given = owner, self.rank, self.detector.device_arranged.velocity, self._time_left(), sent(world, wp.float64, self.device), fault
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
        given = owner, self.rank, self.detector.device_arranged.velocity, self._time_left()
        run(integrate.commit, n, [step.bodies, *given, *to, energies], self.device)
        if shift is not None:
            run(integrate.shift_bodies, n, [shift, step.now.position], self.device)
        if drive is not None:
            integrate.drive(drive, step.now, self.device)
        self.mirror.changed_on_device()
        if self.lattice is not None:
            self._wrap_on_host()
        self._remember(cache)
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
        self.joints.remember(rows)
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

    def _remember(self, cache):
        """The contacts and impulses of this step go into the contact cache."""
        found, total, n = self.detector, self.detector.contact_total, self.rows.count
        if total:
            unknowns = self.problem.unknowns
            given = self.problem.slot, unknowns.impulse, unknowns.torque, cache
            run(match.remember, total, [found.device_contacts, found.device_arranged.id, *given], self.device)
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

    def warm_up(self, tell: Callable[[str], None], joints: bool, several: bool = False) -> Callable[[], None]:
        """Warp compiles what it does not find in its cache, and does not say so: what takes long, does."""
        waits = threading.Timer(LONG, tell, ["compiling for the device, for this and later runs"])
        waits.daemon = True
        waits.start()
        return waits.cancel

    def find_pairs_within(self, budget: Callable[[int, int], bool]) -> bool:
        self.begin()
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
