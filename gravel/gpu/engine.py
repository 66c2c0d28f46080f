"""The GPU engine: the stages of a step (``gravel.engine``) as kernels on a device, and what the host does beside them.

Bodies, contacts and the cone problem stand on the device from step to step; the host keeps the rows (who is where), and gets a field when
somebody asks for it. These stages run on the host, with copies there and back: images of bodies in periodic space, pairs that may not
touch, impacts with restitution, surfaces that move by themselves, joints (the factorisation of a machine is small, and sequential), and
what belongs to other processes. docs/GPU.md says what that costs.
"""

import contextlib
import threading
from typing import NamedTuple

import numpy as np
import warp as wp

from gravel.cpu.collide import bounds
from gravel.cpu.engine import CpuEngine
from gravel.cpu.solve import assemble as host_assemble
from gravel.cpu.solve import match as host_match
from gravel.cpu.solve.block_problem import NO_JOINTS
from gravel.cpu.solve.blocks import COHESION, FRICTION, ROWS_BALL, WIDTH
from gravel.engine import ELLIPSOID_METHODS, Commit, Detection, no_lap
from gravel.errors import DeviceError
from gravel.gpu import integrate
from gravel.gpu.buffers import DeviceBuffers
from gravel.gpu.collide import territory
from gravel.gpu.collide.detector import PHASES, DeviceDetector
from gravel.gpu.collide.pieces import Shapes
from gravel.gpu.devices import find_device, to_device, to_host
from gravel.gpu.launch import run
from gravel.gpu.mirror import Mirror, Some
from gravel.gpu.solve import assemble, match
from gravel.gpu.solve.block_problem import DeviceProblem, Made
from gravel.gpu.structs import Bodies, Margin, Memory
from gravel.host import boxes, contact_table
from gravel.host import pair_ownership as host_territory
from gravel.host import periodic_images as images
from gravel.host import surface_velocity as carry
from gravel.host.rows import FEW, is_torn
from gravel.host.threads import use_threads
from gravel.state import FIELD

STRETCH = 4096  # bodies whose energies a thread adds up
LONG = 1.0  # s, that a first step takes if nothing is compiled, at most
LOOK_AT_ORDER = 64  # steps between two looks at whether the rows are still in order
NOBODY = np.iinfo(np.int64).max
BODY_FIELDS = ("id", "position", "quaternion", "velocity", "inverse_mass", "extent", "tag", "geometry")


class DeviceRules(NamedTuple):
    """Rules as the kernels want them."""

    step: float
    margin: object
    device_ignored: wp.array
    contact_values: wp.array
    scalars: object
    coulomb: bool
    shapes: Shapes
    half: wp.array  # (g, 3) half extents of the geometries


class GpuEngine(CpuEngine):
    lacks_local_solvers = True  # such as FFD

    def __init__(self, device, broad_phase):
        self.device = find_device(device)
        self.device_buffers = DeviceBuffers(self.device)
        self.mirror = Mirror(self.device_buffers)
        self.device_last, self.last_is_new = None, False  # contacts of the last step on the device, and whether the host has them
        super().__init__(np.float32, "auto", 1)
        self.detector = DeviceDetector(self.device_buffers, broad_phase)
        self.steps = 0

    # --- who is where
    @property
    def rows(self):
        """The rows on the host, which may change them."""
        self.mirror.on_host(self.host_rows, *BODY_FIELDS)
        self.mirror.changed_on_host()
        return self.host_rows

    @rows.setter
    def rows(self, rows):
        self.host_rows = rows

    @property
    def last(self):
        """The contacts of the last step on the host, which may change them."""
        if self.last_is_new:
            known = self.device_last
            self.host_last = host_match.Memory(*(to_host(getattr(known, name)) for name in host_match.Memory._fields))
            self.last_is_new = False
        self.device_last = None
        return self.host_last

    @last.setter
    def last(self, last):
        self.host_last, self.last_is_new, self.device_last = last, False, None

    def ids(self):
        return self.host_rows.id

    def field(self, name):
        self._settle()
        self.mirror.on_host(self.host_rows, name)
        return getattr(self.host_rows, name)

    def pick(self, name, ids):
        rows, field = self.host_rows.rows_of(ids), FIELD[name]
        values = getattr(self.host_rows, name)
        result = np.full((len(rows), *field.shape), field.gone, values.dtype)
        there = rows >= 0
        if name in self.mirror.newer_on_device and there.any():
            result[there] = Some(self.device_buffers, "picked", rows[there]).part_of(self.mirror.arrays[name])
        else:
            result[there] = values[rows[there]]
        return result

    def put(self, block):
        """What the device has newer goes there; the rest to the host."""
        rows = self.host_rows.rows_of(block["id"])
        known, new = rows >= 0, self.mirror.newer_on_device
        if known.any():
            some = Some(self.device_buffers, "put", rows[known])
            for name, values in block.items():
                if name in new:
                    some.put(values[known], self.mirror.arrays[name])
                else:
                    getattr(self.host_rows, name)[rows[known]] = values[known]
                    self.mirror.newer_on_host.add(name)
            self.host_rows.forced |= any(name in block and bool(np.any(block[name])) for name in ("force", "torque"))
        if not known.all():
            self.rows.add({name: values[~known] for name, values in block.items()})

    def border(self):
        self._settle()
        rows, margin, lattice = self.host_rows, Margin(), self._endless_lattice()
        bodies = self._body_struct(self.mirror.on_device(rows, *BODY_FIELDS))
        (owner,) = self.mirror.on_device(rows, "rank")
        margin.absolute, margin.share = self._border_margin()
        reach, border = (
            self.device_buffers.array("border_reach", rows.count, dtype=wp.float64),
            self._sent(self.partition.border, wp.float64),
        )
        given = owner, self.rank, margin, self.rules.step, border, wp.vec3d(*lattice.low), wp.vec3d(*lattice.length), reach
        run(territory.find_border, rows.count, [bodies, *given], self.device)
        reach = to_host(reach)
        found = np.flatnonzero(reach >= 0)
        return found, reach[found]

    def touched(self, ids):
        if self.touched_places is None:
            found, touched = self.detector, self.device_buffers.array("touched", self.detector.n, dtype=wp.uint8)
            touched.zero_()
            run(territory.list_touched, found.contact_total, [found.device_touching, touched], self.device)
            self.touched_places = to_host(touched)
        return self.touched_places[self.places_of(ids)]

    def adopt(self, known):
        found = self.detector
        if len(known[0]) and found.contact_total > 0:
            places, impulse, torque = (
                np.stack([self.places_of(ids) for ids in known[:2]], axis=1),
                to_host(self.impulse),
                to_host(self.torque),
            )
            host_territory.adopt_contacts(known, places, found.contacts, found.arranged.id, impulse, torque)
            to_device(impulse, self.impulse)
            if len(torque):
                to_device(torque, self.torque)

    # --- what the host only reads
    @contextlib.contextmanager
    def _reading(self):
        """Rows and contacts may be asked for here without being sent back."""
        newer, last = set(self.mirror.newer_on_host), self.device_last
        yield
        self.mirror.newer_on_host, self.device_last = newer, last

    def moved_contacts(self, ids):
        with self._reading():
            return super().moved_contacts(ids)

    def touched_sleepers(self):
        if not self.host_rows.dozing:
            return np.empty(0, np.int32)
        with self._reading():
            return super().touched_sleepers()

    def memory(self):
        with self._reading():  # when rows are put in order next is part of the future
            return {**super().memory(), "steps": np.array([self.steps % LOOK_AT_ORDER])}

    def restore(self, memory):
        super().restore(memory)
        self.steps = int(memory.get("steps", [0])[0])  # the CPU's files do not say

    def cast_rays(self, origins, directions, reach):
        with self._reading():
            return super().cast_rays(origins, directions, reach)

    def bounding_boxes(self):
        with self._reading():
            return super().bounding_boxes()

    def _device_memory(self):
        """The contacts of the last step on the device."""
        if self.device_last is None:
            last, memory, array = self.host_last, Memory(), self.device_buffers.array
            dtypes = wp.int64, wp.int64, wp.int32, wp.float32, wp.float32, wp.int32, wp.int32
            for name, dtype in zip(host_match.Memory._fields, dtypes):
                values = getattr(last, name)
                target = array(f"known_{name}", len(values), values.shape[1:], dtype)
                if len(values):
                    to_device(values, target)
                setattr(memory, name, target)
            self.device_last = memory
        return self.device_last

    # --- what holds
    def set_rules(self, rules):
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

    # --- the step
    def begin(self):
        self._settle()
        self._use_threads()
        if self.joined_version != self.host_rows.version:
            self._find_joined()
        self.detector.know(self.host_rows)
        self.taken, self.driven = False, None
        if self.surfaces[2] != self.host_rows.version:
            self._find_surfaces()
        self.now = self._body_struct(self.mirror.on_device(self.host_rows, *BODY_FIELDS))
        self.bodies = self.now
        if self.rules.midpoint:
            self._look_ahead()

    def _body_struct(self, arrays):
        bodies = Bodies()
        for name, array in zip(BODY_FIELDS, arrays):
            setattr(bodies, name, array)
        return bodies

    def _seen_copy(self, *names):
        """The bodies as they are now, but for some fields, which are new arrays of the step."""
        n, array = self.host_rows.count, self.device_buffers.array
        shapes = {"position": ((3,), wp.float64), "quaternion": ((4,), wp.float64), "velocity": ((8,), wp.float32)}
        fresh = {name: array(f"ahead_{name}", n, *shapes[name]) for name in names}
        return self._body_struct([fresh.get(name, getattr(self.now, name)) for name in BODY_FIELDS])

    def _look_ahead(self):
        n, ahead = self.host_rows.count, self._seen_copy("position", "quaternion", "velocity")
        run(integrate.drift, n, [self.now, 0.5 * self.rules.step, ahead.position, ahead.quaternion, ahead.velocity], self.device)
        self.bodies = ahead
        if self.lattice is not None:
            self.winding = np.array(self.host_rows.winding)
            position, velocity = to_host(ahead.position), to_host(ahead.velocity)
            images.wrap(position, velocity, self.winding, self.host_rows.tag, ~self.jointed, self.lattice)
            to_device(position, ahead.position)
            to_device(velocity, ahead.velocity)

    def _use_threads(self):
        """What runs on the host runs on one thread: it is little."""
        use_threads(1, False)

    def _find_members(self):
        """Rows that the joints act on, and who of all has joints."""
        place = np.empty(0, np.int64) if self.joints is None else self.joints.members.place
        self.members = Some(self.device_buffers, "member", np.unique(place[place >= 0]))
        self.device_jointed = self.device_buffers.array("jointed", len(self.jointed), dtype=wp.uint8)
        if len(self.jointed):
            to_device(self.jointed.astype(np.uint8), self.device_jointed)

    def _find_joined(self):
        super()._find_joined()
        self.joined_version = -1  # until the device knows them, too: it may have no room
        self._find_members()
        self.joined_version = self.host_rows.version

    def set_motion(self, driven):
        rows = self.host_rows.rows_of(driven.id)
        self.driven = rows, driven
        if not self.rules.midpoint:  # the state keeps its own velocities, in case the step is refused
            self.bodies = self._seen_copy("velocity")
            wp.copy(self.bodies.velocity, self.now.velocity)
        pose = np.hstack([driven.position, driven.quaternion]) if self.rules.midpoint else np.empty((0, 7))
        self._drive(self._sent_drive(rows, pose, driven.velocity), self.bodies)

    def _sent_drive(self, rows, pose, velocity):
        """What ``_drive`` takes, on the device."""
        return [self._sent(values, dtype) for values, dtype in ((rows, wp.int32), (pose, wp.float64), (velocity, wp.float64))]

    def _drive(self, drive, bodies):
        run(integrate.set_driven, drive[0].shape[0], [*drive, bodies.position, bodies.quaternion, bodies.velocity], self.device)

    def _sent(self, values, dtype):
        """A small new array on the device."""
        return wp.array(values, dtype=dtype, device=self.device, ndim=np.ndim(values))

    def _host_bodies(self):
        """The bodies where the step looks, on the host."""
        self.mirror.on_host(self.host_rows, *BODY_FIELDS)
        poses = {name: to_host(getattr(self.bodies, name)) for name in ("position", "quaternion", "velocity")}
        return bounds.BodyArrays(*(poses.get(name, getattr(self.host_rows, name)) for name in BODY_FIELDS))

    def detect(self, lap=no_lap):
        detector = self.detector
        self._lay_bounds()
        lap("bounds")
        detector.sort_bodies()
        lap("order")
        detector.list_pairs()
        detector.exclude_pairs(self.excluded)
        if self.partition is not None:
            detector.keep_own_pairs(self.host_rows.rank, self.partition)
        lap("broad phase")
        detector.find_contacts()
        lap("narrow phase")
        return Detection(detector.contact_total, detector.penetration, detector.phase)

    def _lay_bounds(self):
        self.problem = self.touched_places = None
        n, seen, bodies, jointed = self.host_rows.count, None, self.bodies, self.device_jointed
        if self.lattice is not None:
            seen, bodies = self._see_on_device()
            if len(self.jointed):
                jointed = self._sent(self.jointed[seen.source].astype(np.uint8), wp.uint8)
        total = n if seen is None else len(seen.source)
        self.detector.find_bounds(bodies, total, n, self.device_rules, self.balls, jointed, seen, self.lattice)

    def _see_on_device(self):
        """The bodies folded into the cell and their images, found on the host."""
        device_bodies, self.bodies = self.bodies, self._host_bodies()
        seen = self._see()
        self.bodies = device_bodies
        array, total = self.device_buffers.array, len(seen.source)
        dtypes = wp.int64, wp.float64, wp.float64, wp.float32, wp.float64, wp.float64, wp.int32, wp.int32
        arrays = []
        for name, dtype in zip(BODY_FIELDS, dtypes):
            values = getattr(seen.bodies, name)
            arrays.append(array(f"seen_{name}", total, values.shape[1:], dtype))
            if total:
                to_device(values, arrays[-1])
        return seen, self._body_struct(arrays)

    def _see(self):
        self.seen_known = ()  # the host's rows may be others' copies
        return super()._see()

    def match(self, warm):
        found, array, total = self.detector, self.device_buffers.array, self.detector.contact_total
        self.rolling = self.rules.rolling
        self.impulse = array("impulse", total, (3,))
        self.torque = array("torque", total if self.rolling else 0, (3,))
        memory = self._device_memory() if warm else Memory()
        run(match.match_contacts, total, [found.device_touching, found.device_arranged.id, memory, self.impulse, self.torque], self.device)

    def bounce(self, impacts_first):
        found, rules, n = self.detector, self.rules, self.detector.n
        array = self.device_buffers.array
        self.inertia = array("inertia", 0 if found.balls else n + 1, (8,))
        if not found.balls:
            row = array("no_rows", 0, dtype=wp.int32)
            if found.seen is not None:
                row = array("seen_row", n, dtype=wp.int32)
                to_device(found.row.astype(np.int32), row)
            run(assemble.world_inertia, n + 1, [self.bodies, row, n, self.inertia], self.device)
        self._find_carry()
        self.blow, self.shifted = np.empty((0, 3), np.float32), False
        if not (rules.bouncy and impacts_first) or (found.contact_total == 0 and self.share.alone):
            return 0, float(found.penetration)
        return self._bounce_on_host()

    def _bounce_on_host(self):
        """Impacts one after the other, on copies of contacts and velocities."""
        found = self.detector
        self.blow = np.zeros((found.contact_total, 3), np.float32)
        outcome = self._collide(to_host(self.inertia).reshape(-1), to_host(self.carry))
        if self.shifted:
            to_device(found.arranged.velocity, found.device_arranged.velocity)
        if found.contact_total:
            self.carry = self.device_buffers.array("lifted", found.contact_total, (3,))
            to_device(self.lifted, self.carry)
        return outcome

    def _find_carry(self):
        found, lattice = self.detector, self.lattice
        flows = lattice is not None and (lattice.tilt_rate != 0.0 or bool(np.any(lattice.rate)))
        moves = (flows or len(self.surface) > 0) and found.contact_total > 0
        self.carry = self.device_buffers.array("carry", found.contact_total if moves else 0, (3,))
        if moves:
            drift = found.seen.drift if flows else np.empty((0, 3))
            quaternion, values = to_host(self.bodies.quaternion), np.empty((found.contact_total, 3), np.float32)
            carry.find_carry(found.contacts, found.order, found.row, quaternion, found.arranged.reach, self.surface, drift, values)
            to_device(values, self.carry)

    def add_forces(self):
        found, nothing = self.detector, self.device_buffers.array("no_force", 0, (3,), wp.float64)
        forces = self.mirror.on_device(self.host_rows, "force", "torque") if self.host_rows.forced else (nothing, nothing)
        given = found.device_arranged, self.bodies, wp.vec3d(*self.rules.gravity), *forces, self.rules.step
        run(integrate.add_forces, found.real_bodies, [*given], self.device)

    def measure_joints(self):
        members, bodies = self.members, self._host_poses_of_members()
        n = self.detector.n
        where = self.buffers.array("where", n, dtype="i8")
        inertia = np.zeros((n + 1, 8), np.float32)
        members.fetch(self.inertia, inertia)
        flat = inertia.reshape(-1)
        self.joints.measure(bodies, self.detector.order, where, self.rules, flat)
        members.send(inertia, self.inertia)
        return self.joints.measured.value, self.joints.measured.rate

    def _host_poses_of_members(self):
        """Bodies where the step looks; only the rows of those with joints are right."""
        rows, array = self.host_rows, self.buffers.array
        n = rows.count
        poses = array("joint_position", n, (3,), "f8"), array("joint_quaternion", n, (4,), "f8"), array("joint_velocity", n, (8,), "f4")
        for name, target in zip(("position", "quaternion", "velocity"), poses):
            self.members.fetch(getattr(self.bodies, name), target)
        return bounds.BodyArrays(rows.id, *poses, rows.inverse_mass, rows.extent, rows.tag, rows.geometry)

    def assemble(self, warm):
        found, rules = self.detector, self.device_rules
        starts = self.impulse, self.torque, self.carry
        given = rules.contact_values, *starts, self._deep(), rules.scalars, found.margin
        made = Made(found.device_contacts, found.device_touching, found.device_arranged, *given)
        joints = NO_JOINTS
        if self.joints is not None:
            joints, velocity = self.joints.block, np.zeros((found.n + 1, 8), np.float32)
            self.members.fetch(found.device_arranged.velocity, velocity)
            scalars, parts = self.rules.scalars, 2 if self.rules.midpoint else 1
            self.joints.assemble(scalars.step, parts, scalars.recovery_speed, self.rules.threshold, velocity.reshape(-1), warm)
            self.members.send(velocity, found.device_arranged.velocity)
        kinds, hosted = (found.balls, self.rolling, self.inertia, rules), self.members
        if not self.share.alone:
            hosted = Some(self.device_buffers, "hosted", np.union1d(self.members.rows, self.share.places))
        self.problem = DeviceProblem(made, found.contact_total, found.n, *kinds, self.device_buffers, joints, hosted, self.share)
        return self.problem

    def _deep(self):
        found = self.detector
        some = self.share.largest(float(found.penetration > host_assemble.DEEP * found.traits.smallest))[0] > 0
        deep = self.device_buffers.array("deep", found.n if some else 0, dtype=wp.int32)
        if some:
            deep.zero_()
            run(
                assemble.count_deep,
                found.contact_total,
                [found.device_contacts, found.device_touching, found.device_arranged, deep],
                self.device,
            )
            if not self.share.alone:
                sums = to_host(deep).astype(np.int64)
                self.share.sums(sums[:, None])
                to_device(sums.astype(np.int32), deep)
        return deep

    # --- the end of the step
    def fault(self, world):
        (owner,) = self.mirror.on_device(self.host_rows, "rank")
        fault = self._sent(np.array([NOBODY]), wp.int64)
        given = owner, self.rank, self.detector.device_arranged.velocity, self._time_left(), self._sent(world, wp.float64), fault
        run(integrate.inspect, self.host_rows.count, [self.bodies, *given], self.device)
        lowest = int(fault.numpy()[0])
        return -1 if lowest == NOBODY else lowest

    def commit(self):
        found, n, array = self.detector, self.host_rows.count, self.device_buffers.array
        (owner,) = self.mirror.on_device(self.host_rows, "rank")
        # all that may find no room on the device comes before anything of the state changes
        energies, sums = array("energy", n, dtype=wp.float64), array("energy_sum", -(-n // STRETCH), dtype=wp.float64)
        memory, shift = self._room_to_remember(n), self._sent(self.shift[:n], wp.float64) if self.shifted else None
        drive = None
        if self.driven is not None:
            rows, driven = self.driven
            drive = self._sent_drive(rows, np.hstack([driven.end_position, driven.end_quaternion]), driven.velocity)
        to = self.now.position, self.now.quaternion, self.now.velocity
        given = owner, self.rank, found.device_arranged.velocity, self._time_left()
        run(integrate.commit, n, [self.bodies, *given, *to, energies], self.device)
        if shift is not None:
            run(integrate.shift_bodies, n, [shift, self.now.position], self.device)
        if drive is not None:
            self._drive(drive, self.now)
        self.mirror.changed_on_device()
        if self.lattice is not None:
            self._wrap_on_host()
        self._remember(memory)
        violation = self._report_joints()
        self.taken = True
        self.steps += 1
        if n > FEW and self.steps % LOOK_AT_ORDER == 0:
            self._keep_order(n)
        run(integrate.add_up, sums.shape[0], [energies, STRETCH, sums], self.device)
        return Commit(float(sum(sums.numpy().tolist())), violation)

    def _wrap_on_host(self):
        rows = self.rows
        if self.rules.midpoint:
            rows.winding[:] = self.winding
        self._wrap(rows, rows.winding, self.end_lattice)

    def _report_joints(self):
        if self.joints is None:
            return 0.0
        rows = self.host_rows
        for name in ("position", "quaternion", "velocity"):
            if name in self.mirror.newer_on_device:
                self.members.fetch(getattr(self.now, name), getattr(rows, name))
        self.joints.remember(rows)
        return float(self.joints.report(rows, self.rules.step))

    def _keep_order(self, n):
        order = self.detector.phases[self.detector.phase].order(n)
        if order is not None and found_torn(order, n):
            self._sort_rows(order.astype(np.int32))

    def _room_to_remember(self, n):
        """Arrays for the contacts of this step."""
        total, array = self.detector.contact_total, self.device_buffers.array
        memory = Memory()
        which = "even" if self.steps % 2 == 0 else "odd"  # the last step's is still being read
        memory.a, memory.b = array(f"{which}_a", total, dtype=wp.int64), array(f"{which}_b", total, dtype=wp.int64)
        memory.feature, memory.impulse = array(f"{which}_feature", total, dtype=wp.int32), array(f"{which}_impulse", total, (3,))
        memory.torque = array(f"{which}_torque", total if self.rolling else 0, (3,))
        memory.first, memory.number = array(f"{which}_first", n, dtype=wp.int32), array(f"{which}_number", n, dtype=wp.int32)
        return memory

    def _remember(self, memory):
        found, total, n = self.detector, self.detector.contact_total, self.host_rows.count
        if total:
            unknowns = self.problem.unknowns
            given = self.problem.slot, unknowns.impulse, unknowns.torque, memory
            run(match.remember, total, [found.device_contacts, found.device_arranged.id, *given], self.device)
        if n:
            wp.copy(memory.first, found.first[:n])
            wp.copy(memory.number, found.number[:n])
        self.device_last, self.last_is_new = memory, True

    def _sort_rows(self, order):
        last = self.last
        self.rows.sort(order)
        self.last = last._replace(first=last.first[order], number=last.number[order])
        if self.joints is not None:
            self.joints.find_places()

    # --- out
    def contacts(self):
        self._use_threads()
        found = self.detector
        if not self.taken:
            return contact_table.make_table(found.contacts, found.touching, found.arranged)
        friction, slot = to_host(self.problem.rows.friction), to_host(self.problem.slot)
        rows = np.zeros((-(-len(slot) // WIDTH), ROWS_BALL, WIDTH), np.float32)  # as the host's blocks have them
        block, lane = np.divmod(np.arange(len(slot)), WIDTH)
        rows[block, int(FRICTION) // WIDTH, lane] = friction[slot, 0]
        rows[block, int(COHESION) // WIDTH, lane] = friction[slot, 1]
        impulse = to_host(self.problem.unknowns.impulse)[slot]
        solved = contact_table.Solved(impulse, self.blow, np.arange(len(slot), dtype=np.int32), rows.reshape(-1), len(rows))
        return contact_table.make_table(found.contacts, found.touching, found.arranged, solved)

    def virial(self):
        found = self.detector
        if not self.taken or found.contact_total == 0:
            return np.zeros((3, 3))
        impulse = to_host(self.problem.unknowns.impulse)[to_host(self.problem.slot)]
        return contact_table.virial(found.contacts, found.arranged.tag, found.arranged.reach, impulse, self.blow)

    def warm_up(self, tell, joints, several=False):
        """Warp compiles what it does not find in its cache, and does not say so: what takes long, does."""
        waits = threading.Timer(LONG, tell, ["compiling for the device, for this and later runs"])
        waits.daemon = True
        waits.start()
        return waits.cancel

    # --- many processes
    def places_of(self, ids):
        return self.host_rows.rows_of(ids)

    # --- detection box by box
    def find_pairs_within(self, budget):
        self.begin()
        self._lay_bounds()
        self.detector.sort_bodies()
        pairs = self.detector.count_pairs()
        if not budget(pairs, pairs):
            return False
        self.detector.fill_pairs()
        return True

    def contacts_in(self, low, high):
        self.detector.find_contacts()
        table, reach = self.contacts(), self.detector.arranged.reach
        of = lambda ids: reach[self.host_rows.rows_of(ids)]  # noqa: E731
        return table[boxes.owned(of(table.body_a), of(table.body_b), low, high)]


def found_torn(order, n):
    """Whether the order of the cells has little to do with that of the rows."""
    return bool(is_torn(np.asarray(order[:n], np.int32)))


def check_settings(device, precision, broad_phase):
    """What this engine does not have is refused by name."""
    if precision != "single":
        raise DeviceError(f"precision must be 'single' on device {device!r}, not {precision!r}; device 'cpu' has 'double'")
    if broad_phase != "auto" and broad_phase not in PHASES:
        raise DeviceError(f"broad_phase must be one of auto, {', '.join(PHASES)} on device {device!r}, not {broad_phase!r}")
