"""The CPU engine: the stages of a step (``gravel.engine``) on rows in the host's memory.

The state stands in ``rows``; detection makes proxies of the bodies in the order of the broad phase (``detector.proxies``), on whose
velocities the cone problem works; ``commit`` writes back. A step that fails leaves the state as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gravel.cpu import integrate
from gravel.cpu.collide import pair_functions
from gravel.cpu.collide.detector import Detector
from gravel.cpu.solve import assemble, ffd, match, outcome, tiles
from gravel.cpu.solve.block_problem import BlockProblem
from gravel.cpu.solve.blocks import WIDTH, Blocks, Unknowns, rows_before
from gravel.cpu.step_state import StepState
from gravel.engine import ELLIPSOID_METHODS, Commit, Detection, Driven, Lap, Rules, no_lap
from gravel.host import pair_ownership, periodic_images, surface_velocity
from gravel.host.arrays import CHUNK, BodyArrays
from gravel.host.contact_cache import ContactCache, empty_cache
from gravel.host.engine_base import EngineBase
from gravel.host.joints.block import NO_JOINTS
from gravel.host.restitution import ImpactSolver, no_impacts
from gravel.host.rows import FEW, is_torn
from gravel.host.threads import SMALL, use_threads
from gravel.kernel_bundle import import_shipped_kernels
from gravel.state import ANGULAR, LINEAR


class CpuEngine(EngineBase):
    def __init__(self, real: Any, broad_phase: str, threads: int):
        super().__init__(real)
        import_shipped_kernels()
        self.threads = threads
        self.detector = Detector(self.buffers, broad_phase)
        self.ghosts = periodic_images.GhostBuilder(self.buffers)
        self.cache = empty_cache(self.buffers.array, 0, 0, False)
        self.step = StepState(self._now())
        self.problem: Any = None  # the ``BlockProblem`` of the last ``assemble``
        self.threaded = False  # whether kernels with threads have been used
        self.background_compile: Any = None  # what is being compiled beside this process
        self.set_rules(Rules())

    # --- for ``EngineBase``
    def roll_back(self) -> None:
        if self.step.before is not None:
            rows, velocity = self.step.before
            self.rows.velocity[rows] = velocity
            self.step.before = None

    def contact_cache(self) -> ContactCache:
        return self.cache

    def set_contact_cache(self, cache: ContactCache) -> None:
        self.cache = cache

    def set_rules(self, rules: Rules) -> None:
        super().set_rules(rules)
        self.detector.shapes = pair_functions.shapes_of(self.library, ELLIPSOID_METHODS.index(rules.ellipsoid_method))

    def use_threads(self) -> None:
        """Small scenes run on one thread, and so do others while kernels with threads are being compiled beside them. Who has used
        those goes on to, or a scene that shrinks and grows would compile in the middle of a run."""
        many = self.threads > 1 and self.rows.count >= SMALL
        self.threaded = self.threaded or (many and (self.background_compile is None or self.background_compile.ready()))
        use_threads(self.threads if many and self.threaded else 1, self.threaded)

    def _now(self):
        """The rows as they are, as kernels want them."""
        rows = self.rows
        return self.buffers.kept("now", rows.version, lambda: BodyArrays(*(getattr(rows, name) for name in BodyArrays._fields)))

    # --- several processes
    def border(self) -> tuple[np.ndarray, np.ndarray]:
        self.roll_back()
        self.use_threads()
        rows, chunks = self.rows, -(-self.rows.count // CHUNK)
        count, radius = self.buffers.array("border_count", chunks, dtype="i8"), self.buffers.array("border_reach", rows.count, dtype="f8")
        of_part = self.border_margin(), self.rules.step, self.partition, self.endless_lattice()
        pair_ownership.find_border(self._now(), rows.rank, *of_part, count, radius)
        found = np.flatnonzero(radius >= 0) if count.any() else np.empty(0, np.int64)
        return found, radius[found]

    def touched(self, ids: np.ndarray) -> np.ndarray:
        found, step = self.detector, self.step
        if step.touched is None:
            step.touched = self.buffers.array("touched", len(found.order), dtype="u1")
            pair_ownership.list_touched(found.folded_contacts, step.touched)
        return step.touched[self.problem_indices(ids)]

    def problem_indices(self, ids: np.ndarray) -> np.ndarray:
        step, order = self.step, self.detector.order
        if step.index_of_row is None:
            step.index_of_row = self.buffers.array("index_of_row", self.rows.count, dtype="i4")
            bodies = slice(None) if self.lattice is None else self._of_bodies()
            step.index_of_row[order[bodies]] = np.arange(len(order), dtype=np.int32)[bodies]
        rows = self.rows.rows_of(ids)
        return np.where(rows >= 0, step.index_of_row[rows], -1)

    def _of_bodies(self):
        """Which of the proxies are no ghosts."""
        return self.detector.order < self.rows.count

    def adopt(self, known: tuple[np.ndarray, ...]) -> None:
        found = self.detector
        if len(known[0]) and found.contact_total > 0:
            indices = np.stack([self.problem_indices(ids) for ids in known[:2]], axis=1)
            pair_ownership.adopt_contacts(known, indices, found.contacts, found.proxies.id, self.step.impulse, self.step.torque)

    # --- the stages of the step
    def predict_poses(self) -> None:
        self.roll_back()
        self.look_up_rows()
        self.taken = False
        rows, now = self.rows, self._now()
        self.step = StepState(now)
        if self.rules.midpoint:
            self.step.bodies = ahead = self.buffers.kept("ahead", rows.version, lambda: self._predicted(now))
            integrate.drift(now, 0.5 * self.rules.step, ahead)
            if self.lattice is not None:
                self.step.winding = self.buffers.array("ahead_winding", rows.count, (3,), "i4")
                self.step.winding[:] = rows.winding
                self._wrap(ahead, self.step.winding, self.lattice)

    def _predicted(self, now):
        n, array = self.rows.count, self.buffers.array
        return now._replace(
            position=array("ahead_position", n, (3,), "f8"),
            quaternion=array("ahead_quaternion", n, (4,), "f8"),
            velocity=array("ahead_velocity", n, (8,)),
        )

    def _wrap(self, bodies, winding, lattice):
        periodic_images.wrap(bodies.position, bodies.velocity, winding, bodies.tag, ~self.jointed, lattice)

    def set_motion(self, driven: Driven) -> None:
        rows, bodies = self.rows.rows_of(driven.id), self.step.bodies
        self.step.driven = rows, driven
        if self.rules.midpoint:
            bodies.position[rows], bodies.quaternion[rows] = driven.position, driven.quaternion
        else:  # the step looks at the state itself
            self.step.before = rows, self.rows.velocity[rows]
        bodies.velocity[rows, LINEAR], bodies.velocity[rows, ANGULAR] = driven.velocity[:, :3], driven.velocity[:, 3:]

    def detect(self, lap: Lap = no_lap) -> Detection:
        detector, rules, lattice = self.detector, self.rules, self.lattice
        self.problem = self.step.index_of_row = self.step.touched = None
        periodic = None
        if lattice is not None:
            periodic = self.ghosts.build(self.step.bodies, self.rows.version, lattice, rules.margin, rules.step)
        detector.find_bounds(self.step.bodies, rules, self.balls, periodic, lattice)
        lap("bounds")
        detector.sort_bodies(self.jointed if periodic is None or not self.jointed.size else self.jointed[periodic.source])
        lap("order")
        detector.list_pairs()
        detector.exclude_pairs(self.excluded)
        if self.partition is not None:
            detector.keep_own_pairs(self.rows.rank, self.partition)
        lap("broad phase")
        detector.find_contacts()
        lap("narrow phase")
        return Detection(int(detector.contact_total), float(detector.penetration), detector.phase)

    def match(self, warm: bool) -> None:
        found, proxies, room = self.detector, self.detector.proxies, self.detector.contact_room
        step = self.step
        step.rolling = self.rules.rolling
        step.impulse, step.torque = self.buffers.kept("starts", (room, step.rolling), lambda: self._starts(room, step.rolling))
        if found.contact_total == 0:
            return
        cache = self.cache if warm else empty_cache(self.buffers.array, 0, 0, step.rolling)
        listed = found.contacts.a, found.contacts.b, found.contacts.feature, found.contacts.start, found.contacts.count
        match.match_contacts(*listed, found.row, proxies.id, cache, step.impulse, step.torque)

    def _starts(self, room, rolling):
        """Starting impulses and torques."""
        return self.buffers.array("impulse", room, (3,)), self.buffers.array("torque", room if rolling else 0, (3,))

    def prepare_contacts(self) -> None:
        found, step = self.detector, self.step
        step.inertia = self.buffers.array("inertia", 0 if found.balls else 8 * (len(found.order) + 1))
        if not found.balls:
            assemble.world_inertia(found.row, step.bodies, step.inertia)
        moves = surface_velocity.any_moves(self.surface, self.lattice) and found.contact_total > 0
        step.surface = self.buffers.array("surface_velocity", found.contact_room if moves else 0, (3,))
        if moves:
            surface_velocity.find_at_contacts(found, step.bodies.quaternion, self.surface, self.lattice, step.surface)

    def apply_restitution(self, impacts_first: bool) -> tuple[int, float]:
        found, step = self.detector, self.step
        bouncy = self.rules.bouncy and impacts_first
        impulse = self.buffers.array("impact_impulse", found.contact_room if bouncy or not impacts_first else 0, (3,))
        if bouncy and not (found.contact_total == 0 and self.sync.single_process):
            solver = ImpactSolver(found, step.inertia, step.surface, self.rules, self.sync, self.buffers)
            step.restitution = solver.solve(impulse)
        else:
            step.restitution = no_impacts(float(found.penetration), impulse, step.surface)
        return step.restitution.collisions, step.restitution.penetration

    def add_forces(self) -> None:
        proxies, rows, step = self.detector.proxies, self.rows, self.rules.step
        integrate.add_gravity(proxies.tag, self.rules.gravity, step, proxies.velocity)
        if rows.forced:
            masses = rows.inverse_mass, self.step.bodies.quaternion
            integrate.add_forces(self.detector.row, proxies.tag, *masses, rows.force, rows.torque, step, proxies.velocity)

    def measure_joints(self) -> tuple[np.ndarray, np.ndarray]:
        assert self.joints is not None
        index_of_row = self.buffers.array("index_of_row", len(self.detector.order), dtype="i8")
        self.joints.measure(self.step.bodies, self.detector.order, index_of_row, self.rules, self.step.inertia)
        return self.joints.measured.value, self.joints.measured.rate

    def assemble(self, warm: bool) -> BlockProblem:
        found, rules, step = self.detector, self.rules, self.step
        kinds = found.traits.some_balls, not found.balls  # of contacts: between balls, and general
        blocks, unknowns = self._lay_out_blocks(kinds)
        overlap_count = self._count_overlaps()
        if found.contact_total > 0:
            kernel = assemble.assemble_balls if found.balls else assemble.assemble_any
            starts = step.impulse, step.torque, step.restitution.surface
            given = assemble.ContactInput(step.slot, step.inertia, rules.contact_values, *starts, overlap_count)
            kernel(found.contacts, found.folded_contacts, found.proxies, given, rules.scalars, rules.margin, blocks, unknowns)
        joints = NO_JOINTS
        if self.joints is not None:
            scalars, joints, parts = rules.scalars, self.joints.block, 2 if rules.midpoint else 1
            self.joints.assemble(scalars.step, parts, scalars.recovery_speed, rules.threshold, unknowns.velocity, warm)
        local = self._per_body_solver(overlap_count)
        self.problem = BlockProblem(blocks, unknowns, rules.scalars, found.contact_total, kinds, joints, self.sync, local)
        return self.problem

    def _lay_out_blocks(self, kinds):
        """A block and a lane for each contact (``step.slot``), and blocks and unknowns with room for them."""
        found, rolling = self.detector, self.step.rolling
        n, tile_count, room = len(found.order), len(found.contacts.count), found.contact_room
        plan = self.buffers.kept("plan", (n, tile_count, room), lambda: self._plan(n, tile_count, room))
        self.step.slot, start = plan[4:6]
        if found.contact_total > 0:
            run, colours = tiles.plan_blocks(found.folded_contacts, found.proxies.tag, *kinds, *plan)
        else:
            run, colours, start[:], plan[7][0] = 0, 0, 0, 0
        numbers = int(start[0, -1]), int(start[1, -1])
        key = *numbers, n, tile_count, run, colours, found.balls, rolling
        return self.buffers.kept("blocks", key, lambda: self._blocks(*numbers, run, colours, rolling, *plan[5:]))

    def _per_body_solver(self, overlap_count):
        """For FFD: the contacts and bodies that the problem is made from."""
        found, rules, step = self.detector, self.rules, self.step
        where = (
            found.contacts,
            found.folded_contacts,
            found.proxies,
            found.row,
            step.bodies.velocity,
            step.inertia,
            step.restitution.surface,
        )
        inputs = ffd.FfdInput(
            *where, step.impulse, rules.contact_values, overlap_count, rules.margin, rules.scalars, float(rules.threshold)
        )
        total, impulse = found.contact_total, step.restitution.impulse
        return ffd.PerBodySolver(inputs, step.bodies, step.slot, impulse, total, self.buffers, self.sync)

    def _count_overlaps(self):
        """By how many contacts each body overlaps others deeply; empty where none can."""
        found, proxies = self.detector, self.detector.proxies
        some = self.sync.largest(float(found.penetration > assemble.DEEP_OVERLAP * found.traits.smallest))[0] > 0
        overlap_count = self.buffers.array("overlap_count", len(found.order) if some else 0, dtype="i8")
        if some:
            assemble.count_overlaps(found.folded_contacts, proxies.sphere, proxies.extent, proxies.tag, overlap_count)
            self.sync.allreduce_sums(overlap_count[:, None])
        return overlap_count

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

    def _blocks(self, ball_blocks, all_blocks, run, colours, rolling, start, tile_order, colour_start):
        array, lanes = self.buffers.array, all_blocks * WIDTH
        blocks = Blocks(
            array("rows", rows_before(all_blocks, ball_blocks)),
            array("body_a", lanes, dtype="i4"),
            array("body_b", lanes, dtype="i4"),
            array("rolling_arms", 2 * lanes if rolling else 0),
            start[0],
            start[1],
            tile_order[:run],
            colour_start[: colours + 1],
        )
        velocity, inertia = self.detector.proxies.velocity.reshape(-1), self.step.inertia
        sizes = ("impulse", 3 * lanes), ("torque", 3 * lanes if rolling else 0)
        now, last = ([array(f"{when}_{name}", size) for name, size in sizes] for when in ("block", "last"))
        return blocks, Unknowns(*now, velocity, *last, array("last_velocity", velocity.size), inertia, array("de_saxce", lanes))  # type: ignore[call-arg]

    def find_invalid_body(self, world: np.ndarray) -> int:
        found = self.detector
        faults = self.buffers.array("faults", -(-len(found.order) // CHUNK), dtype="i8")
        bodies = found.order, self.step.bodies, self.rows.rank, self.rank
        return int(integrate.inspect(*bodies, found.proxies.velocity, self._time_left(), world, faults))

    def _time_left(self):
        return (0.5 if self.rules.midpoint else 1.0) * self.rules.step

    def commit(self) -> Commit:
        found, rows, step = self.detector, self.rows, self.step
        energies = self.buffers.array("energies", -(-len(found.order) // CHUNK), dtype="f8")
        kernel = integrate.commit_balls if found.balls else integrate.commit_any
        bodies = found.order, step.bodies, rows.rank, self.rank
        kernel(*bodies, found.proxies.velocity, self._time_left(), self._now(), energies)
        step.before = None
        order = found.order if self.lattice is None else found.order[self._of_bodies()]
        self._finish_poses(order)
        self._store_impulses()
        violation = self.joints.report(rows, self.rules.step) if self.joints is not None else 0.0
        self.taken = True
        if rows.count > FEW and is_torn(order):
            self._sort_rows(order)
        return Commit(sum(energies.tolist()), float(violation))

    def _finish_poses(self, order):
        """What else becomes of poses at the end of the step: ways after impacts, prescribed motion, the periodic cell."""
        rows, step, restitution = self.rows, self.step, self.step.restitution
        if restitution.moved:
            rows.position[order] += restitution.shift if self.lattice is None else restitution.shift[self._of_bodies()]
        if step.driven is not None:
            at, driven = step.driven
            rows.position[at], rows.quaternion[at] = driven.end_position, driven.end_quaternion
            rows.velocity[at] = step.bodies.velocity[at]
        if self.lattice is not None:
            if step.winding is not None:
                rows.winding[:] = step.winding
            self._wrap(rows, rows.winding, self.end_lattice)

    def _store_impulses(self):
        """The contacts and impulses of this step go into the contact cache."""
        found, proxies, step = self.detector, self.detector.proxies, self.step
        key = found.contact_room, self.rows.count, step.rolling
        self.cache = self.buffers.kept("memory", key, lambda: empty_cache(self.buffers.array, *key))
        unknowns, order = self.problem.unknowns, (proxies.order, proxies.id)
        if found.contact_total == 0:
            self.cache.first[:], self.cache.number[:] = 0, 0
        else:
            solved = unknowns.impulse, unknowns.torque, step.slot, WIDTH
            match.store_impulses(found.tile_size, found.contacts, *order, *solved, self.cache)
        if self.joints is not None:
            self.joints.store_impulses(self.rows)

    def _sort_rows(self, order):
        """Rows in the order that the broad phase has found, so that its bodies follow each other in memory."""
        self.rows.sort(order)
        self.cache = self.cache._replace(first=self.cache.first[order], number=self.cache.number[order])
        if self.joints is not None:
            self.joints.find_places()

    # --- out
    def solved_impulses(self) -> tuple[np.ndarray, np.ndarray]:
        return self.cache.impulse, self.step.restitution.impulse

    def solved_friction(self) -> np.ndarray:
        found, blocks = self.detector, self.problem.blocks
        friction = np.empty((found.contact_room, 2), self.real)
        if found.contact_total > 0:
            listed = found.contacts.start, found.contacts.count, self.step.slot
            outcome.friction_of_contacts(*listed, blocks.rows, int(blocks.ball_start[-1]), friction)
        return friction

    def warm_up(self, on_status: Callable[[str], None], joints: bool, several: bool = False) -> Callable[[], None]:
        from gravel.cpu import precompile

        self.detector.know(self.rows)
        features = precompile.features_of(self, joints)
        self.background_compile = precompile.start(self, features)
        if self.background_compile is not None:
            self.detector.wait_for_tables = self.background_compile.wait_for_tables
            if several:
                on_status("compiling, for this and later runs")
                self.background_compile.wait()
        return precompile.watch(on_status, features)

    def compile(self, joints: bool) -> None:
        from gravel.cpu import precompile

        self.detector.know(self.rows)
        precompile.compile_here(precompile.features_of(self, joints), threads=True)

    def find_pairs_within(self, budget: Callable[[int, int], bool]) -> bool:
        self.predict_poses()
        self.detector.find_bounds(self.step.bodies, self.rules, self.balls)
        self.detector.sort_bodies(self.jointed)
        return self.detector.list_pairs(budget)
