"""The CPU engine: the stages of a step (``gravel.engine``) on its own rows, and what it remembers between steps.

The state stands in ``rows``; detection arranges a copy in the order of the broad phase (``detector.arranged``), on whose velocities
the cone problem works; ``commit`` writes back. A step that fails leaves the state as it was.
"""

from typing import NamedTuple

import numpy as np

from gravel.cpu import integrate
from gravel.cpu.collide import bounds, pair_functions
from gravel.cpu.collide.detector import Detector
from gravel.cpu.solve import assemble, ffd, match, tiles
from gravel.cpu.solve.block_problem import NO_JOINTS, BlockProblem
from gravel.cpu.solve.blocks import WIDTH, Blocks, Scalars, Unknowns, rows_before
from gravel.engine import ALONE, ELLIPSOID_METHODS, CellTooSmall, Commit, Detection, Margin, Rules, no_lap
from gravel.host import boxes, contact_table, impacts, queries, sleepers
from gravel.host import collision_filter as exclude
from gravel.host import pair_ownership as territory
from gravel.host import periodic_images as images
from gravel.host import surface_velocity as carry
from gravel.host.buffers import Buffers
from gravel.host.joints.stage import JointStage
from gravel.host.rows import FEW, Rows, is_torn
from gravel.host.threads import SMALL, use_threads
from gravel.joints.rows import no_joints
from gravel.shapes.geometry import Library, library_of
from gravel.state import ANGULAR, EVERYWHERE, FIELD, IMMOVABLE, LINEAR, MOVABLE, SLEEPING, STATUS

DISTURBING = ("position", "quaternion", "velocity", "force", "torque")  # fields that wake sleepers when they are written


class CpuRules(NamedTuple):
    """Rules as the kernels want them."""

    step: float
    midpoint: bool
    gravity: np.ndarray
    contact_values: np.ndarray
    ignored: np.ndarray
    margin: Margin
    library: Library
    shapes: pair_functions.Shapes
    half: np.ndarray  # (g, 3) half extents of the geometries
    scalars: Scalars
    threshold: float
    rolling: bool  # whether any pair of materials has rolling or spinning friction
    bouncy: bool  # whether any has restitution


def make_rules(rules, library):
    values = rules.contact_values
    return CpuRules(
        rules.step,
        rules.midpoint,
        rules.gravity,
        values,
        rules.ignored,
        rules.margin,
        library,
        pair_functions.shapes_of(library, ELLIPSOID_METHODS.index(rules.ellipsoid_method)),
        library.half,
        Scalars(float(rules.coulomb), rules.step, rules.recovery, min(rules.recovery_speed, 1e30)),
        rules.threshold,
        bool(np.any(values[..., assemble.ROLLING_COLUMN : assemble.SPINNING_COLUMN + 1] > 0)),
        bool(np.any(values[..., impacts.RESTITUTION_COLUMN] > 0)),
    )


class CpuEngine:
    def __init__(self, real, broad_phase, threads):
        self.share, self.partition, self.rank = ALONE, None, 0
        self.real, self.threads = np.dtype(real), threads
        self.buffers, self.rows = Buffers(real), Rows(real)
        self.detector = Detector(self.buffers, broad_phase)
        self.geometries, self.library = [], library_of(())
        self.joints = None  # a JointStage, where there are joints
        self.apart = np.empty((0, 2), np.int64)  # ids of pairs that may not touch
        self.lattice = self.end_lattice = None  # by which space repeats itself, where the step looks and at its end
        self.seen_known = ()  # which rows, in which arrays, periodic detection has copies of
        self.surface = np.empty((0, 6))  # velocities of the bodies' surfaces by row, where some move by themselves
        self.surfaces = np.empty(0, np.int64), np.empty((0, 6)), -1  # the same by id, and the version of the rows that ``surface`` has
        self.joined_version = -1  # of the rows, when the joints last looked for theirs
        self.place_of_row = self.touched_places = None  # of this step's detection, once somebody asks
        self.driven = self.before = None  # bodies with a motion in this step, and their velocities before it
        self.last = self._memory(0, 0, False)  # contacts of the last step that was taken
        self.slept = sleepers.nothing_slept(real)  # the contacts of those who sleep
        self.problem = None
        self.threaded = False  # whether kernels with threads have been used
        self.ahead = None  # what is being compiled beside this process
        self.taken = False  # whether the contacts that were found last belong to a step that was taken
        self.set_rules(Rules())

    # --- bodies
    def add(self, block):
        self._settle()
        self.rows.add(block)

    def remove(self, ids):
        self._settle()
        rows = np.unique(self.rows.rows_of(ids))
        holes, moved = self.rows.remove(rows[rows >= 0])
        first, number = self.last.first, self.last.number
        known = len(first)  # rows of later bodies have no contacts yet
        first[holes[holes < known]], number[holes[holes < known]] = 0, 0
        both = (holes < known) & (moved < known)
        first[holes[both]], number[holes[both]] = first[moved[both]], number[moved[both]]
        self.last = self.last._replace(first=first[: self.rows.count], number=number[: self.rows.count])

    def refill(self, block):
        """Other bodies instead of all."""
        self.rows.clear()
        self.add(block)

    def ids(self):
        return self.rows.id

    def field(self, name):
        self._settle()
        return getattr(self.rows, name)

    def pick(self, name, ids):
        self._settle()
        rows, field = self.rows.rows_of(ids), FIELD[name]
        result = np.full((len(rows), *field.shape), field.gone, getattr(self.rows, name).dtype)
        result[rows >= 0] = getattr(self.rows, name)[rows[rows >= 0]]
        return result

    def set_field(self, name, columns, values):
        self._settle()
        if self.rows.dozing and name in DISTURBING:
            self._disturb(np.any(getattr(self.rows, name)[:, columns] != values, axis=1))
        getattr(self.rows, name)[:, columns] = values
        if name in ("force", "torque"):
            self.rows.forced = self.rows.forced or bool(np.any(values))

    # --- many processes
    def set_partition(self, partition, share):
        self.partition, self.share, self.rank = partition, share, partition.rank

    def put(self, block):
        self._settle()
        rows = self.rows.rows_of(block["id"])
        known = rows >= 0
        if known.any():
            for name, values in block.items():
                getattr(self.rows, name)[rows[known]] = values[known]
            self.rows.forced = self.rows.forced or any(name in block and bool(np.any(block[name])) for name in ("force", "torque"))
        if not known.all():
            self.rows.add({name: values[~known] for name, values in block.items()})

    def border(self):
        self._settle()
        self._use_threads()
        rows, chunks = self.rows, -(-self.rows.count // bounds.CHUNK)
        count, reach = self.buffers.array("border_count", chunks, dtype="i8"), self.buffers.array("border_reach", rows.count, dtype="f8")
        rest = self._border_margin(), self.rules.step, self.partition, self._endless_lattice()
        territory.find_border(self._now(), rows.rank, *rest, count, reach)
        found = np.flatnonzero(reach >= 0) if count.any() else np.empty(0, np.int64)
        return found, reach[found]

    def _border_margin(self):
        """The margin, with what folding into a cell that changes may add to a speed."""
        margin, lattice = self.rules.margin, self._endless_lattice()
        faster = abs(lattice.tilt_rate) + float(np.abs(lattice.rate).sum())
        return margin._replace(absolute=margin.absolute + 2.0 * bounds.HASTE * self.rules.step * faster)

    def touched(self, ids):
        found = self.detector
        if self.touched_places is None:
            self.touched_places = self.buffers.array("touched", len(found.order), dtype="u1")
            territory.list_touched(found.touching, self.touched_places)
        return self.touched_places[self.places_of(ids)]

    def moved_contacts(self, ids):
        last, rows = self.last, np.union1d(self.rows.rows_of(ids), np.flatnonzero(self.rows.rank == EVERYWHERE))
        rest = self.rows.rank, self.rows.row_of_id, self.detector.reach, self.partition, self._endless_lattice()
        room = 256
        while True:
            contact, target = np.empty(room, np.int64), np.empty(room, np.int64)
            found = int(territory.list_moved_contacts(last, rows[rows >= 0], *rest, contact, target))
            if found <= room:
                break
            room = 2 * found
        contact, torque = contact[:found], np.zeros((found, 3), self.real)
        if len(last.torque):
            torque[:] = last.torque[contact]
        return target[:found], (last.a[contact], last.b[contact], last.feature[contact], last.impulse[contact], torque)

    def adopt(self, known):
        found = self.detector
        if len(known[0]) and found.contact_total > 0:
            places = np.stack([self.places_of(ids) for ids in known[:2]], axis=1)
            territory.adopt_contacts(known, places, found.contacts, found.arranged.id, self.impulse, self.torque)

    def _endless_lattice(self):
        return images.ENDLESS if self.lattice is None else self.lattice

    def places_of(self, ids):
        if self.place_of_row is None:
            self.place_of_row, order = self.buffers.array("place_of_row", self.rows.count, dtype="i4"), self.detector.order
            bodies = slice(None) if self.lattice is None else self._of_bodies()
            self.place_of_row[order[bodies]] = np.arange(len(order), dtype=np.int32)[bodies]
        rows = self.rows.rows_of(ids)
        return np.where(rows >= 0, self.place_of_row[rows], -1)

    # --- sleep
    def sleep(self, ids, islands):
        asleep, rows = np.zeros(self.rows.count, bool), self.rows.rows_of(ids)
        asleep[rows] = True
        self.rows.tag[rows, STATUS], self.rows.island[rows], self.rows.velocity[rows] = SLEEPING, islands, 0
        self.rows.dozing = self.rows.dozing or len(rows) > 0
        self.slept = sleepers.put_aside(self.slept, self.last, asleep, self.rows.rows_of)

    def wake(self, islands):
        if not self.rows.dozing:
            return
        island = self.rows.island
        woken = island > 0 if islands is None else (island > 0) & np.isin(island, islands)
        if not woken.any():
            return
        self.rows.tag[woken, STATUS], island[woken] = MOVABLE, 0
        self.rows.dozing = bool(island.any())
        self.slept, self.last = sleepers.give_back(self.slept, self.last, woken, self.rows.rows_of)

    def touched_sleepers(self):
        touched = np.zeros(self.rows.count, np.uint8)
        if self.rows.dozing and self.detector.contact_total > 0:
            found = self.detector
            sleepers.find_touched(found.touching, found.arranged.tag, found.row, self.rows.tag, touched)
        return np.unique(self.rows.island[touched > 0])

    def _disturb(self, rows):
        """Users have written into these rows (a mask): sleepers wake, and where a body has changed on which any may rest, all do."""
        status = self.rows.tag[rows, STATUS]
        self.wake(None if np.any(status == IMMOVABLE) else np.unique(self.rows.island[rows]))

    # --- what holds
    def set_rules(self, rules):
        if self.geometries != list(rules.geometries):
            self.geometries = list(rules.geometries)
            self.library = library_of(self.geometries)
        self.rules = make_rules(rules, self.library)

    def set_joints(self, joints):
        self._settle()
        self.joints = None if joints is None else JointStage(joints, self.rows, self.rows.rows_of)
        self.joined_version = -1

    def exclude(self, pairs):
        self.apart, self.joined_version = pairs, -1

    def set_cell(self, now, end):
        self.lattice, self.end_lattice = now, end

    def set_surfaces(self, ids, velocities):
        self.surfaces = ids, velocities, -1

    # --- the step
    def begin(self):
        self._settle()
        self._use_threads()
        if self.joined_version != self.rows.version:
            self._find_joined()
        self.detector.know(self.rows)
        self.taken, self.driven = False, None
        rows, version, now = self.rows, self.rows.version, self._now()
        self.bodies = now
        if self.rules.midpoint:
            self.bodies = self.buffers.kept("ahead", version, lambda: self._ahead(now))
            integrate.drift(now, 0.5 * self.rules.step, self.bodies)
            if self.lattice is not None:
                self.winding = self.buffers.array("ahead_winding", rows.count, (3,), "i4")
                self.winding[:] = rows.winding
                self._wrap(self.bodies, self.winding, self.lattice)
        if self.surfaces[2] != version:
            self._find_surfaces()

    def _now(self):
        """The rows as they are, as kernels want them."""
        rows = self.rows
        return self.buffers.kept(
            "now", rows.version, lambda: bounds.BodyArrays(*(getattr(rows, name) for name in bounds.BodyArrays._fields))
        )

    def _wrap(self, bodies, winding, lattice):
        images.wrap(bodies.position, bodies.velocity, winding, bodies.tag, ~self.jointed, lattice)

    def _find_surfaces(self):
        ids, velocities, _ = self.surfaces
        self.surfaces = ids, velocities, self.rows.version
        rows = self.rows.rows_of(ids)
        self.surface = np.zeros((self.rows.count if (rows >= 0).any() else 0, 6))
        self.surface[rows[rows >= 0]] = velocities[rows >= 0]

    def _use_threads(self):
        """Small scenes run on one thread, and so do others while kernels with threads are being compiled beside them. Who has used
        those goes on to, or a scene that shrinks and grows would compile in the middle of a run."""
        many = self.threads > 1 and self.rows.count >= SMALL
        self.threaded = self.threaded or (many and (self.ahead is None or self.ahead.ready()))
        use_threads(self.threads if many and self.threaded else 1, self.threaded)

    def _find_joined(self):
        """Rows of the bodies that have joints or may not touch."""
        self.joined_version = self.rows.version
        self.excluded = exclude.make_excluded(self.rows.rows_of(self.apart), self.rows.count) if len(self.apart) else None
        self.jointed = np.zeros(0 if self.joints is None else self.rows.count, np.bool_)
        if self.joints is not None:
            self.joints.find_places()
            self.jointed[self.joints.members.place] = True

    def _ahead(self, now):
        n, array = self.rows.count, self.buffers.array
        return now._replace(
            position=array("ahead_position", n, (3,), "f8"),
            quaternion=array("ahead_quaternion", n, (4,), "f8"),
            velocity=array("ahead_velocity", n, (8,)),
        )

    def set_motion(self, driven):
        rows = self.rows.rows_of(driven.id)
        self.driven = rows, driven
        if self.rules.midpoint:
            self.bodies.position[rows], self.bodies.quaternion[rows] = driven.position, driven.quaternion
        else:  # the step looks at the state itself
            self.before = rows, self.rows.velocity[rows]
        self.bodies.velocity[rows, LINEAR], self.bodies.velocity[rows, ANGULAR] = driven.velocity[:, :3], driven.velocity[:, 3:]

    def _settle(self):
        """A step that was begun and not taken leaves nothing behind."""
        if self.before is not None:
            rows, velocity = self.before
            self.rows.velocity[rows] = velocity
            self.before = None

    def detect(self, lap=no_lap):
        detector = self.detector
        self.problem = self.place_of_row = self.touched_places = None
        seen = None if self.lattice is None else self._see()
        detector.find_bounds(self.bodies, self.rules, self.balls, seen, self.lattice)
        lap("bounds")
        detector.sort_bodies(self.jointed if seen is None or not self.jointed.size else self.jointed[seen.source])
        lap("order")
        detector.list_pairs()
        detector.exclude_pairs(self.excluded)
        if self.partition is not None:
            detector.keep_own_pairs(self.rows.rank, self.partition)
        lap("broad phase")
        detector.find_contacts()
        lap("narrow phase")
        return Detection(int(detector.contact_total), float(detector.penetration), detector.phase)

    def _see(self):
        """The bodies folded into the cell, and their images."""
        bodies, lattice, n = self.bodies, self.lattice, self.rows.count
        chunks = -(-n // bounds.CHUNK)
        rest = lattice, self.rules.margin, self.rules.step
        largest, count = self.buffers.array("largest_reach", chunks, (3,), "f8"), self.buffers.array("image_count", chunks + 1, dtype="i8")
        images.find_largest(bodies, *rest, largest)
        worst = largest[np.argmax(largest[:, 1])]
        if images.CELLS * worst[1] > lattice.length.min():
            raise CellTooSmall(int(self.rows.id[int(worst[2])]), float(worst[1]), images.CELLS * float(worst[1]))
        most = largest[:, 0].max()
        images.count_images(bodies, *rest, most, np.empty(0, np.int32), np.empty((0, 3)), count)
        total = n + int(count[-1])
        seen = self.buffers.kept("seen", total, lambda: self._seen(total))
        known = self.rows.version, *(id(self.buffers.held[f"seen_{name}"]) for name in images.STAYS)
        if self.seen_known != known:
            self.seen_known = known
            for name in images.STAYS:
                getattr(seen.bodies, name)[:n] = getattr(bodies, name)
        images.fill_seen(bodies, *rest, most, count, *seen)
        return seen

    def _seen(self, total):
        array = self.buffers.array
        fields = (array("seen_" + name, total, FIELD[name].shape, self._dtype(name)) for name in bounds.BodyArrays._fields)
        bodies = bounds.BodyArrays(*fields)
        return images.Seen(bodies, array("seen_source", total, dtype="i4"), array("seen_drift", total, (3,), "f8"))

    def _dtype(self, name):
        return self.real if FIELD[name].dtype == "real" else FIELD[name].dtype

    @property
    def balls(self):
        """Whether the kernels for balls serve; joints act beside a ball's middle."""
        return self.detector.traits.balls and self.joints is None

    def match(self, warm):
        found, arranged, room = self.detector, self.detector.arranged, self.detector.contact_room
        self.rolling = self.rules.rolling
        self.impulse, self.torque = self.buffers.kept("starts", (room, self.rolling), lambda: self._starts(room))
        if found.contact_total == 0:
            return
        last = self.last if warm else self._memory(0, 0, self.rolling)
        listed = found.contacts.a, found.contacts.b, found.contacts.feature, found.contacts.start, found.contacts.count
        match.match_contacts(*listed, found.row, arranged.id, last, self.impulse, self.torque)

    def _starts(self, room):
        """Starting impulses and torques."""
        return self.buffers.array("impulse", room, (3,)), self.buffers.array("torque", room if self.rolling else 0, (3,))

    def bounce(self, impacts_first):
        """Impacts; needs the inertia of the bodies and what surfaces move at, which it prepares for the later stages."""
        found, rules = self.detector, self.rules
        self.inertia = self.buffers.array("inertia", 0 if found.balls else 8 * (len(found.order) + 1))
        if not found.balls:
            assemble.world_inertia(found.row, self.bodies, self.inertia)
        self._find_carry()
        bouncy = rules.bouncy and impacts_first
        self.blow = self.buffers.array("blow", found.contact_room if bouncy or not impacts_first else 0, (3,))
        self.shifted = False
        if not bouncy or (found.contact_total == 0 and self.share.alone):
            return 0, float(found.penetration)
        outcome = self._collide(self.inertia, self.carry)
        self.carry = self.lifted
        return outcome

    def _collide(self, inertia, carry):
        """Impacts, one after the other; returns how many, and the largest penetration that they leave."""
        found, rules = self.detector, self.rules
        times = rules.step, 0.5 * rules.step if rules.midpoint else 0.0
        self.shift = self.buffers.array("shift", len(found.order), (3,), "f8")
        partners = self.buffers.array("partners", len(found.order), dtype="i4")
        since = self.buffers.array("since", len(found.order), dtype="f8")
        blows = self.buffers.array("blows", len(found.order), (2,), "f8")
        self.blow[:], self.shift[:], since[:], blows[:] = 0, 0, 0, 0
        impacts.count_partners(found.touching, partners)
        seen, on = (found.contacts, found.touching, found.arranged), (rules.contact_values, times, rules.gravity, rules.threshold)
        strike = lambda touched, barred: impacts.bounce(  # noqa: E731
            *seen, inertia, carry, *on, partners, touched, barred, since, self.blow, self.shift, blows
        )
        touched = np.ones(len(found.order), np.bool_)
        if self.share.alone:
            collisions = int(strike(touched, np.empty(0, np.bool_))[0])
            self.shifted = collisions > 0
        else:
            collisions = self._bounce_in_turns(strike, partners, touched, since, blows)
        self.lifted = self.buffers.array("lifted", len(self.blow), (3,))
        rest = since, self.blow, self.shift, rules.scalars, rules.margin, self.lifted
        return collisions, float(impacts.leave_flying(*seen, carry, *on, *rest))

    def _bounce_in_turns(self, strike, partners, touched, since, blows):
        """Where several processes act on a body, one at a time may strike it: two blows at once would be too much."""
        velocity, n = self.detector.arranged.velocity, len(partners)
        self.share.sums(partners[:, None])
        here = anywhere = 0
        for turn in range(impacts.TURNS):
            barred = np.zeros(n, np.bool_)
            barred[self.share.barred(turn)] = True
            before = self._ways(since, blows)
            self.share.note(velocity)
            struck, waiting = strike(touched, barred)
            self.share.add(velocity)
            here += struck
            struck, waiting = self.share.total(struck, waiting)
            anywhere += struck
            if struck > 0:
                self._share_ways(before, since, blows)
            if struck + waiting == 0:
                break
            touched[:] = False  # all has been said of the others
            touched[self.share.places] = True
        self.shifted = anywhere > 0
        return int(here)

    def _ways(self, since, blows):
        """What impacts know of the bodies that several processes act on, beside their velocities."""
        places = self.share.places
        return np.concatenate([self.shift[places], since[places, None], blows[places]], axis=1)

    def _share_ways(self, before, since, blows):
        """A velocity alone does not tell where a body is: what one process changed in this turn of its ``shift``, of the time ``since`` its
        last blow and of its ``blows``, the others know before the next one."""
        places, velocity = self.share.places, self.detector.arranged.velocity
        ways = self.buffers.array("ways", len(velocity), velocity.shape[1:], velocity.dtype.str[1:])
        ways[places] = 0
        self.share.note(ways)
        ways[places, : before.shape[1]] = self._ways(since, blows) - before
        self.share.add(ways)
        now = before + ways[places, : before.shape[1]]
        self.shift[places], since[places], blows[places] = now[:, :3], now[:, 3], now[:, 4:]

    def _find_carry(self):
        """What surfaces and copies of the cell move at, at each contact; empty where none does."""
        found, lattice = self.detector, self.lattice
        flows = lattice is not None and (lattice.tilt_rate != 0.0 or bool(np.any(lattice.rate)))
        moves = (flows or len(self.surface) > 0) and found.contact_total > 0
        self.carry = self.buffers.array("carry", found.contact_room if moves else 0, (3,))
        if moves:
            drift = found.seen.drift if flows else np.empty((0, 3))
            where = found.order, found.row, self.bodies.quaternion, found.arranged.reach
            carry.find_carry(found.contacts, *where, self.surface, drift, self.carry)

    def add_forces(self):
        arranged, rows, step = self.detector.arranged, self.rows, self.rules.step
        integrate.add_gravity(arranged.tag, self.rules.gravity, step, arranged.velocity)
        if rows.forced:
            masses = rows.inverse_mass, self.bodies.quaternion
            integrate.add_forces(self.detector.row, arranged.tag, *masses, rows.force, rows.torque, step, arranged.velocity)

    def measure_joints(self):
        where = self.buffers.array("where", len(self.detector.order), dtype="i8")
        self.joints.measure(self.bodies, self.detector.order, where, self.rules, self.inertia)
        return self.joints.measured.value, self.joints.measured.rate

    def set_laws(self, row, values):
        self.joints.set_laws(row, values)

    def assemble(self, warm):
        found, rules = self.detector, self.rules
        n, tile_count, room = len(found.order), len(found.contacts.count), found.contact_room
        plan = self.buffers.kept("plan", (n, tile_count, room), lambda: self._plan(n, tile_count, room))
        kinds = found.traits.some_balls, not found.balls  # of contacts: between balls, and wide
        self.slot, start = plan[4:6]
        if found.contact_total > 0:
            run, colours = tiles.plan_blocks(found.touching, found.arranged.tag, *kinds, *plan)
        else:
            run, colours, start[:], plan[7][0] = 0, 0, 0, 0
        numbers = int(start[0, -1]), int(start[1, -1])
        key = *numbers, n, tile_count, run, colours, found.balls, self.rolling
        blocks, unknowns = self.buffers.kept("blocks", key, lambda: self._blocks(*numbers, run, colours, *plan[5:]))
        deep = self._deep()
        if found.contact_total > 0:
            kernel = assemble.assemble_balls if found.balls else assemble.assemble_any
            starts = self.impulse, self.torque, self.carry
            rest = rules.contact_values, *starts, rules.scalars, rules.margin, deep, blocks, unknowns
            kernel(found.contacts, found.touching, self.slot, found.arranged, self.inertia, *rest)
        local = ffd.BodyByBody(self._sight(deep), self.bodies, self.slot, self.blow, found.contact_total, self.buffers, self.share)
        joints = NO_JOINTS
        if self.joints is not None:
            scalars, joints, parts = rules.scalars, self.joints.block, 2 if rules.midpoint else 1
            self.joints.assemble(scalars.step, parts, scalars.recovery_speed, rules.threshold, unknowns.velocity, warm)
        self.problem = BlockProblem(blocks, unknowns, rules.scalars, found.contact_total, kinds, joints, self.share, local)
        return self.problem

    def _sight(self, deep):
        found, rules = self.detector, self.rules
        where = found.contacts, found.touching, found.arranged, found.row, self.bodies.velocity, self.inertia, self.carry
        return ffd.Sight(*where, self.impulse, rules.contact_values, deep, rules.margin, rules.scalars, float(rules.threshold))

    def _deep(self):
        """By how many contacts each body lies within another; empty where none can."""
        found, arranged = self.detector, self.detector.arranged
        some = self.share.largest(float(found.penetration > assemble.DEEP * found.traits.smallest))[0] > 0
        deep = self.buffers.array("deep", len(found.order) if some else 0, dtype="i8")
        if some:
            assemble.count_deep(found.touching, arranged.reach, arranged.extent, arranged.tag, deep)
            self.share.sums(deep[:, None])
        return deep

    def _plan(self, n, tile_count, room):
        """What ``tiles.plan_blocks`` fills."""
        array = self.buffers.array
        return (
            array("degree", n, dtype="i4"),
            array("mask", n, dtype="u8"),
            array("tile_colour", tile_count, dtype="i4"),
            array("colour", room, dtype="u1"),
            array("slot", room, dtype="i4"),
            array("block_start", 2 * (tile_count + 2), dtype="i8").reshape(2, -1),
            array("tile_order", tile_count + 1, dtype="i8"),
            array("colour_start", tiles.COLOURS + 2, dtype="i8"),
        )

    def _blocks(self, ball_blocks, all_blocks, run, colours, start, tile_order, colour_start):
        array, lanes = self.buffers.array, all_blocks * WIDTH
        blocks = Blocks(
            array("rows", rows_before(all_blocks, ball_blocks)),
            array("body_a", lanes, dtype="i4"),
            array("body_b", lanes, dtype="i4"),
            array("rolling_arms", 2 * lanes if self.rolling else 0),
            start[0],
            start[1],
            tile_order[:run],
            colour_start[: colours + 1],
        )
        velocity = self.detector.arranged.velocity.reshape(-1)
        sizes = ("impulse", 3 * lanes), ("torque", 3 * lanes if self.rolling else 0)
        now, last = ([array(f"{when}_{name}", size) for name, size in sizes] for when in ("block", "last"))
        return blocks, Unknowns(*now, velocity, *last, array("last_velocity", velocity.size), self.inertia, array("slip", lanes))

    # --- the end of the step
    def fault(self, world):
        found = self.detector
        faults = self.buffers.array("faults", -(-len(found.order) // bounds.CHUNK), dtype="i8")
        bodies = found.order, self.bodies, self.rows.rank, self.rank
        return int(integrate.inspect(*bodies, found.arranged.velocity, self._time_left(), world, faults))

    def _time_left(self):
        return (0.5 if self.rules.midpoint else 1.0) * self.rules.step

    def commit(self):
        found, rules, rows = self.detector, self.rules, self.rows
        energies = self.buffers.array("energies", -(-len(found.order) // bounds.CHUNK), dtype="f8")
        kernel = integrate.commit_balls if found.balls else integrate.commit_any
        bodies = found.order, self.bodies, rows.rank, self.rank
        kernel(*bodies, found.arranged.velocity, self._time_left(), self._now(), energies)
        self.before = None
        order = found.order if self.lattice is None else found.order[self._of_bodies()]
        if self.shifted:
            rows.position[order] += self.shift if self.lattice is None else self.shift[self._of_bodies()]
        if self.driven is not None:
            at, driven = self.driven
            rows.position[at], rows.quaternion[at] = driven.end_position, driven.end_quaternion
            rows.velocity[at] = self.bodies.velocity[at]
        if self.lattice is not None:
            if rules.midpoint:
                rows.winding[:] = self.winding
            self._wrap(rows, rows.winding, self.end_lattice)
        self._remember()
        violation = self.joints.report(self.rows, rules.step) if self.joints is not None else 0.0
        self.taken = True
        if self.rows.count > FEW and is_torn(order):
            self._sort_rows(order)
        return Commit(sum(energies.tolist()), float(violation))

    def _of_bodies(self):
        """Which of the arranged bodies are no images."""
        return self.detector.order < self.rows.count

    def _remember(self):
        found, arranged = self.detector, self.detector.arranged
        key = found.contact_room, self.rows.count, self.rolling
        self.last = self.buffers.kept("memory", key, lambda: self._memory(*key))
        unknowns, order = self.problem.unknowns, (arranged.order, arranged.id)
        if found.contact_total == 0:
            self.last.first[:], self.last.number[:] = 0, 0
        else:
            match.remember(found.tile_size, found.contacts, *order, unknowns.impulse, unknowns.torque, self.slot, WIDTH, self.last)
        if self.joints is not None:
            self.joints.remember(self.rows)

    def _memory(self, contacts, rows, rolling):
        array = self.buffers.array
        return match.Memory(
            array("memory_a", contacts, dtype="i8"),
            array("memory_b", contacts, dtype="i8"),
            array("memory_feature", contacts, dtype="i4"),
            array("memory_impulse", contacts, (3,)),
            array("memory_torque", contacts if rolling else 0, (3,)),
            array("memory_first", rows, dtype="i4"),
            array("memory_number", rows, dtype="i4"),
        )

    def _sort_rows(self, order):
        """Rows in the order that the broad phase has found, so that its bodies follow each other in memory."""
        self.rows.sort(order)
        self.last = self.last._replace(first=self.last.first[order], number=self.last.number[order])
        if self.joints is not None:
            self.joints.find_places()

    # --- joints before and after steps
    def close_joints(self):
        self.joints.close(self.rows)
        self.joints.look(self.rows)

    def align_joints(self, joints):
        self.joints.align(self.rows, joints)
        self.joints.look(self.rows)

    def break_joints(self, joints):
        self.joints.anchors.broken[joints] = 1

    def joint_state(self):
        return no_joints() if self.joints is None else self.joints.state()

    # --- out
    def contacts(self):
        self._use_threads()
        found = self.detector
        if not self.taken:
            return contact_table.make_table(found.contacts, found.touching, found.arranged)
        blocks = self.problem.blocks
        solved = contact_table.Solved(self.last.impulse, self.blow, self.slot, blocks.rows, int(blocks.ball_start[-1]))
        return contact_table.make_table(found.contacts, found.touching, found.arranged, solved)

    def virial(self):
        found = self.detector
        if not self.taken or found.contact_total == 0:
            return np.zeros((3, 3))
        return contact_table.virial(found.contacts, found.arranged.tag, found.arranged.reach, self.last.impulse, self.blow)

    def memory(self):
        last, number = self.last, np.zeros(self.rows.count, np.int32)
        number[: len(last.number)] = last.number
        places = match.listed(last.first, last.number)
        columns = {name: getattr(last, name) for name in ("a", "b", "feature", "impulse", "torque")}
        slept = {f"slept_{name}": values for name, values in self.slept._asdict().items()}
        return {"number": number, **{name: values[places] if len(values) else values for name, values in columns.items()}, **slept}

    def restore(self, memory):
        number = memory["number"].astype(np.int32)
        first = np.concatenate([[0], np.cumsum(number)[:-1]]).astype(np.int32) if len(number) else number
        real = self.real
        impulses = memory["impulse"].astype(real), memory["torque"].astype(real)
        self.last = match.Memory(memory["a"], memory["b"], memory["feature"], *impulses, first, number)
        impulses = memory["slept_impulse"].astype(real), memory["slept_torque"].astype(real)
        self.slept = sleepers.Slept(memory["slept_a"], memory["slept_b"], memory["slept_feature"], *impulses)

    def warm_up(self, tell, joints, several=False):
        from gravel.cpu import ahead

        self.detector.know(self.rows)
        features = ahead.features_of(self, joints)
        self.ahead = ahead.start(self, features)
        if self.ahead is not None:
            self.detector.wait_for_tables = self.ahead.wait_for_tables
            if several:
                tell("compiling, for this and later runs")
                self.ahead.wait()
        return ahead.watch(tell, features)

    def cast_rays(self, origins, directions, reach):
        self._settle()
        self._use_threads()
        return queries.cast_rays(self.rows, self.library, origins, directions, reach)

    def bounding_boxes(self):
        self._use_threads()
        return queries.bounding_boxes(self.rows, self.library)

    # --- detection box by box
    def split(self, positions, radii, bodies, axis, at):
        self._use_threads()
        return boxes.split_bodies(positions, radii, bodies, axis, at)

    def find_pairs_within(self, budget):
        self.begin()
        self.detector.find_bounds(self.bodies, self.rules, self.balls)
        self.detector.sort_bodies(self.jointed)
        return self.detector.list_pairs(budget)

    def count_contacts_in(self, low, high):
        self.detector.find_contacts()
        return int(boxes.count_owned(self.detector.contacts, self.detector.arranged.reach, low, high))

    def contacts_in(self, low, high):
        self.detector.find_contacts()
        table, arranged = self.contacts(), self.detector.arranged
        reach = np.empty((self.rows.count, 4))
        reach[arranged.order] = arranged.reach
        of = lambda ids: reach[self.rows.rows_of(ids)]  # noqa: E731
        return table[boxes.owned(of(table.body_a), of(table.body_b), low, high)]
