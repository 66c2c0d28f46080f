"""The CPU engine: the stages of a step in order, and the buffers between them.

Each method is one stage of ``Simulation.step``; it reads the bodies and the result of the stage before. Nothing is written
to the bodies before ``commit``, so a step that fails leaves them as they were.
"""

from typing import NamedTuple

import numpy as np

from gravel.cpu import integrate
from gravel.cpu.collide import bounds, brute, bvh, exclude, grid, jobs, narrow, sap
from gravel.cpu.collide import pair_functions as pairs
from gravel.cpu.solve import assemble, impacts, match, tiles
from gravel.cpu.solve.block_problem import NO_JOINTS, BlockProblem
from gravel.cpu.solve.blocks import ROWS_GENERAL, ROWS_SPHERICAL, WIDTH, Blocks, Scalars, Unknowns
from gravel.cpu.threads import Workers
from gravel.shapes import PLANE, SPHERE
from gravel.shapes.geometry import library_of
from gravel.state import MOVABLE, REMOVED, STATUS

BROAD_PHASES = ("auto", "grid", "bvh", "sap", "brute")
MIXED = 8.0  # the largest bodies' radius over the median from which on the tree is quicker than the grid
ELLIPSOID_METHODS = ("direct", "method-1", "method-2")  # in the order of ``ellipsoids``


class Rules(NamedTuple):
    """What holds for all bodies and steps."""

    step: float  # h, s
    midpoint: bool  # the step looks at the bodies half a step ahead, which makes it second order
    gravity: np.ndarray  # (3,)
    table: np.ndarray  # (materials, materials, 5) contact values
    ignored: np.ndarray  # (groups, groups)
    margin: bounds.Margin
    shapes: pairs.Shapes  # geometries that bodies refer to
    half: np.ndarray  # (g, 3) and their half extents
    scalars: Scalars
    threshold: float  # speed below which nothing bounces, m/s
    rolling: bool  # whether any pair of materials has rolling or spinning friction
    bouncy: bool  # whether any has restitution


def make_rules(step, gravity, table, ignored, margin, geometries, ellipsoid_method, scalars, threshold, midpoint=False):
    rolling = bool(np.any(table[..., assemble.ROLLING_COLUMN : assemble.SPINNING_COLUMN + 1] > 0))
    bouncy = bool(np.any(table[..., impacts.RESTITUTION_COLUMN] > 0))
    library = library_of(geometries)
    shapes = pairs.shapes_of(library, ELLIPSOID_METHODS.index(ellipsoid_method))
    return Rules(step, midpoint, gravity, table, ignored, margin, shapes, library.half, scalars, threshold, rolling, bouncy)


def tile_size(n):
    """Bodies per tile: small enough for the cache and for all threads to find work, large enough to fill blocks."""
    return 512 if n >= 65536 else 256 if n >= 8192 else 128


def only_balls(bodies):
    """Whether every body that forces can move is a ball: then inertia is a number and arms lie along normals."""
    moments = bodies.inverse_mass
    even = (moments[:, 1] == moments[:, 2]) & (moments[:, 2] == moments[:, 3])
    return bool(np.all(((bodies.shape == SPHERE) & even) | (bodies.status != MOVABLE)))


def choose_broad_phase(bodies):
    """The grid, unless the bodies' sizes differ so much that its cells serve few: then the tree. Planes, and a few bodies that
    are far larger than the rest, count for neither: the grid keeps them out of its cells."""
    radii = np.sort(bodies.extent[(bodies.status != REMOVED) & np.isfinite(bodies.extent[:, 3]), 3])
    mixed = len(radii) > 10 * grid.HUGE_LIMIT and radii[-1 - grid.HUGE_LIMIT] > MIXED * np.median(radii)
    return "bvh" if mixed else "grid"


class Engine:
    def __init__(self, real, broad_phase):
        self.real, self.broad_phase_name = np.dtype(real), broad_phase
        self.buffers, self.views, self.tuples = {}, {}, {}
        self.kinds = None  # of the bodies' shapes
        self.joints = None  # a JointStage, where there are joints
        self.excluded = None  # pairs that may not touch
        self.pair_capacity = 0
        self.many = 8  # contacts allowed for of a shape with a mesh
        self.job_capacity = 512
        self.workers = Workers()
        self.memory = self._memory(0, 0, False)
        self.contact_total = 0

    def _buffer(self, name, n, columns=(), dtype=None):
        """An array of n rows that is kept between steps and grows; its content is not. A name has one type for life."""
        view = self.views.get(name)
        if view is not None and len(view) == n:
            return view
        held = self.buffers.get(name)
        if held is None or len(held) < n:
            room = n if held is None else max(n, len(held) + len(held) // 4)
            self.buffers[name] = self.views[name] = held = view = None  # the old one goes before the new one comes
            held = self.buffers[name] = np.zeros((room, *columns), self.real if dtype is None else np.dtype(dtype))
        view = self.views[name] = held[:n]
        return view

    def _kept(self, name, key, make):
        """A tuple of buffers, made anew only when its sizes changed: small scenes take many steps a second."""
        held = self.tuples.get(name)
        if held is None or held[0] != key:
            self.tuples[name] = held = None
            held = self.tuples[name] = key, make()
        return held[1]

    # --- where the step looks
    def place(self, bodies, rules):
        """The bodies as the step sees them: as they are, or half a step ahead (Moreau's midpoint rule)."""
        n = bodies.count
        make = lambda: bounds.BodyArrays(*(getattr(bodies, name) for name in bounds.BodyArrays._fields))  # noqa: E731
        self.table, self.rules = bodies, rules
        self.bodies = now = self._kept("bodies", (id(bodies), n), make)
        if rules.midpoint:
            self.bodies = self._kept("placed", (id(bodies), n), lambda: self._placed(now, n))
            integrate.drift(now, 0.5 * rules.step, self.bodies)

    def _placed(self, bodies, n):
        return bodies._replace(
            position=self._buffer("placed_position", n, (3,), "f8"),
            quaternion=self._buffer("placed_quaternion", n, (4,), "f8"),
            velocity=self._buffer("placed_velocity", n, (8,)),
        )

    # --- detection
    def find_bounds(self, bodies=None, rules=None):
        """Bounds of the bodies as they were placed; given ``bodies`` are placed first."""
        if bodies is not None:
            self.place(bodies, rules)
        bodies, rules, n = self.table, self.rules, self.table.count
        chunks = -(-n // bounds.CHUNK)
        if self.kinds != (id(bodies), n, self.joints is None):
            self.kinds = id(bodies), n, self.joints is None
            self.balls = only_balls(bodies) and self.joints is None  # joints act beside a ball's middle
            self.turned = bool(np.any((bodies.shape != SPHERE) & (bodies.shape != PLANE)))
            self.shared = bool(np.any(bodies.geometry >= 0))
            self.family = narrow.family_of(bodies)
            self.phase = choose_broad_phase(bodies) if self.broad_phase_name == "auto" else self.broad_phase_name
        self.tile_size = tile_size(n)
        self.reach = self._buffer("reach", n, (4,), "f8")
        self.statistics = self._kept("statistics", chunks, lambda: self._statistics(chunks))
        bounds.find_bounds(self.bodies, rules.margin, rules.step, self.reach, self.statistics)

    def _statistics(self, chunks):
        buffer = self._buffer
        return bounds.Statistics(buffer("bin_count", chunks, (bounds.BINS,), "i8"), buffer("bin_largest", chunks, (bounds.BINS,), "f8"))

    def find_pairs(self):
        self.sort_bodies()
        self.list_pairs()
        if self.excluded is not None:
            exclude.exclude_pairs(self.pair_capacity, self.order, self.excluded, self.pairs)

    def sort_bodies(self):
        """Bring the bodies into the order of the broad phase."""
        n = len(self.bodies.tag)
        order, keys = self._buffer("order", n, dtype="i4"), self._buffer("keys", n, dtype="i4")
        if self.phase == "grid":
            cells, spare = self._cells(), self._buffer("spare", n, dtype="i4")
            self.cell_start = self._buffer("cell_start", grid.most_cells(n) + 1, dtype="i4")
            grid.sort_into_cells(self.reach, self.bodies.tag, self.statistics, cells, keys, order, spare, self.cell_start)
            count = int(cells.count[1])
        elif self.phase == "bvh":
            spare = self._buffer("spare", n, dtype="i4")
            self.in_tree, count = bvh.sort_along_curve(self.reach, self.bodies.tag, keys, order, spare)
            self.tree = self._buffer("tree", bvh.tree_rows(self.in_tree), (6,), "f8")
        elif self.phase == "sap":
            spare, self.line = self._buffer("spare", n, dtype="i4"), self._buffer("line", 3, dtype="f8")
            self.swept, count = sap.sort_along_axis(self.reach, self.bodies.tag, self.statistics, keys, order, spare, self.line)
        else:
            alive = np.flatnonzero(self.bodies.tag[:, STATUS] != REMOVED)
            count = len(alive)
            order[:count] = alive
        self.order = self._kept("order", (n, count), lambda: order[:count])
        self.arranged = self._kept("arranged", (n, count, self.balls, self.turned, self.shared), lambda: self._arranged(count))
        rules = self.rules
        bounds.arrange(self.order, keys, self.bodies, rules.half, rules.margin, rules.step, self.reach, self.balls, self.arranged)

    def list_pairs(self, fits=None):
        """Fill ``pairs``. ``fits(pairs, room)``, where given, may say that so many are too many: then this returns False."""
        self.pair_capacity = max(self.pair_capacity, 4 * self.tile_size)
        while True:
            most = self._look_for_pairs(self.pair_capacity)
            enough = most <= self.pair_capacity
            capacity = self.pair_capacity if enough else most + most // 4
            if fits is not None and not fits(int(self.pairs.count.sum()), capacity * len(self.pairs.count)):
                return False
            if enough:
                return True
            self.pair_capacity = capacity

    def _look_for_pairs(self, capacity):
        """Fill ``pairs`` with at most ``capacity`` per tile; returns the most that a tile has."""
        tile_count = max(-(-len(self.order) // self.tile_size), 1)
        room = tile_count * capacity
        self.pairs = self._kept("pairs", (room, tile_count), lambda: self._pairs(room, tile_count))
        rest = self.rules.ignored, self.tile_size, capacity, self.balls, self.pairs
        if self.phase == "grid":
            return grid.find_pairs(self.arranged, self.cells, self.cell_start, *rest)
        if self.phase == "bvh":
            return bvh.find_pairs(self.arranged, self.in_tree, self.tree, *rest)
        if self.phase == "sap":
            return sap.find_pairs(self.arranged, self.swept, self.line, *rest)
        return brute.find_all_pairs(self.arranged, *rest)

    def _pairs(self, room, tile_count):
        buffer = self._buffer
        return grid.Pairs(
            buffer("pair_a", room, dtype="i4"), buffer("pair_b", room, dtype="i4"), buffer("pair_count", tile_count, dtype="i8")
        )

    def _cells(self):
        if "cells" not in self.__dict__:
            self.cells = grid.Cells(
                np.zeros(grid.LEVELS),
                np.zeros((grid.LEVELS, 3), np.int64),
                np.zeros((grid.LEVELS, 3), np.int64),
                np.zeros(grid.LEVELS + 1, np.int64),
                np.zeros(grid.LEVELS, np.int64),
                np.zeros(2, np.int64),
            )
        return self.cells

    def _arranged(self, n):
        buffer = self._buffer
        return bounds.Arranged(
            self.order,
            buffer("arranged_key", n, dtype="i4"),
            buffer("arranged_reach", n, (4,), "f8"),
            buffer("arranged_extent", n, (4,), "f8"),
            buffer("arranged_tag", n, (4,), "i4"),
            buffer("arranged_mass", n, (2,)),
            buffer("velocity", n + 1, (8,)),
            buffer("half", 0 if self.balls else n, (3,), "f8"),
            buffer("arranged_quaternion", n if self.turned else 0, (4,), "f8"),
            buffer("arranged_geometry", n if self.shared else 0, dtype="i4"),
        )

    def find_contacts(self):
        self.contacts = self.problem = None  # what the last step has found is not needed any more
        if self.family.name == "any":
            self._find_by_jobs()
        else:
            self._find_by_family()
        self.contact_total, self.penetration = match.summarise(self.contacts.start, self.contacts.count, self.contacts.gap)

    def _contacts_with_room(self, room):
        """Contacts with at least so much room."""
        held, n, tile_count = len(self.buffers.get("contact_a", ())), len(self.order), len(self.pairs.count)
        room = max(held, 1024) if room <= max(held, 1024) else room + room // 8
        return self._kept("contacts", (room, tile_count, n), lambda: self._contacts(room, tile_count, n))

    def _find_by_family(self):
        """In one pass: the family's table holds all pairs."""
        rules, room = self.rules, 0
        library, kernel = self.family.library(rules.shapes), getattr(narrow, f"find_{self.family.name}_contacts")
        while True:
            contacts = self._contacts_with_room(room)
            rest = self.many, self.tile_size, rules.margin, rules.step, contacts
            bound = int(kernel(self.pairs, self.pair_capacity, self.arranged, *library, *rest))
            if 0 <= bound <= len(contacts.a):
                break
            room, contacts = max(bound, 0), None
            self.many *= 2 if bound < 0 else 1
        self.contacts, self.contact_room = contacts, bound

    def _find_by_jobs(self):
        """Job by job and table by table, see ``jobs``."""
        rules, arranged, shapes = self.rules, self.arranged, self.rules.shapes
        pairs, tile_count = (self.pairs, self.pair_capacity), len(self.pairs.count)
        while True:
            listed = self._jobs(tile_count * self.job_capacity, tile_count)
            most = jobs.list_jobs(*pairs, arranged, shapes.children, self.job_capacity, listed)
            if most <= self.job_capacity:
                break
            self.job_capacity = int(most + most // 4)
        libraries = shapes.method, 0, shapes.hulls, (shapes.hulls, shapes.meshes)
        while True:
            start = self._buffer("tile_start", tile_count, dtype="i8")
            room, bound, used = jobs.make_room(*pairs, arranged.tag, self.job_capacity, listed, self.many, start)
            contacts = self._contacts_with_room(bound)
            rows = jobs.Rows(self._buffer("row_values", room, (7,), "f8"), self._buffer("row_feature", room, dtype="i4"))
            for table, library, needed in zip(jobs.TABLES, libraries, used):
                if needed:
                    rest = self.many, self.job_capacity, listed, rows
                    self.workers.run(table, tile_count, *pairs, arranged, shapes.children, library, *rest)
            rest = self.many, self.job_capacity, listed, rows, self.tile_size, contacts
            most = jobs.gather_contacts(*pairs, arranged, rules.margin, rules.step, *rest)
            if most <= self.many:
                break
            self.many = int(2 * most)
        self.contacts, self.contact_room = contacts, int(bound)

    def _jobs(self, room, tile_count):
        buffer = self._buffer
        return jobs.Jobs(
            buffer("job_pair", room, dtype="i4"),
            buffer("job_child_a", room, dtype="i4"),
            buffer("job_child_b", room, dtype="i4"),
            buffer("job_table", room, dtype="u1"),
            buffer("job_start", room, dtype="i8"),
            buffer("job_found", room, dtype="i4"),
            buffer("job_count", tile_count, dtype="i8"),
        )

    def _contacts(self, room, tile_count, n):
        buffer = self._buffer
        return narrow.Contacts(
            buffer("contact_a", room, dtype="i4"),
            buffer("contact_b", room, dtype="i4"),
            buffer("feature", room, dtype="i4"),
            buffer("normal", room, (3,)),
            buffer("arm", room, (3,)),
            buffer("gap", room),
            buffer("tile_start", tile_count, dtype="i8"),
            buffer("tile_count", tile_count, dtype="i8"),
            buffer("body_first", n, dtype="i4"),
            buffer("body_number", n, dtype="i4"),
        )

    # --- the cone problem
    def match(self, warm):
        self.rolling = self.rules.rolling
        self.impulse = self._buffer("impulse", self.contact_room, (3,))
        self.torque = self._buffer("torque", self.contact_room if self.rolling else 0, (3,))
        memory = self.memory if warm else self._memory(0, 0, self.rolling)
        match.match_contacts(self.contacts, self.order, memory, self.impulse, self.torque)

    def bounce(self):
        """Impacts; needs the inertia of the bodies, which it prepares for the later stages."""
        n = len(self.order)
        self.inertia = self._buffer("inertia", 0 if self.balls else 8 * (n + 1))
        if not self.balls:
            assemble.world_inertia(self.order, self.bodies, self.inertia)
        self.blow = self._buffer("blow", self.contact_room if self.rules.bouncy else 0, (3,))
        if not self.rules.bouncy:
            return 0
        return int(
            impacts.bounce(self.contacts, self.arranged, self.inertia, self.rules.table, self.rules.step, self.rules.threshold, self.blow)
        )

    def add_forces(self, forces, torques):
        tag, velocity, step = self.arranged.tag, self.arranged.velocity, self.rules.step
        integrate.add_gravity(tag, self.rules.gravity, step, velocity)
        if len(forces):
            integrate.add_forces(self.order, tag, self.bodies.inverse_mass, self.bodies.quaternion, forces, torques, step, velocity)

    def measure_joints(self):
        """Gauges of the joints at the bodies' poses."""
        if self.joints is not None:
            where = self._buffer("where", len(self.bodies.tag), dtype="i8")
            self.joints.measure(self.bodies, self.order, where, self.rules.step, self.inertia)

    def assemble(self, warm=True):
        n, tile_count, room = len(self.order), len(self.contacts.count), self.contact_room
        plan = self._kept("plan", (n, tile_count, room), lambda: self._plan(n, tile_count, room))
        run, colours = tiles.plan_blocks(self.contacts, self.arranged.tag, *plan)
        self.slot, block_start = plan[4:6]
        number = int(block_start[-1])
        key = number, n, tile_count, run, colours, self.balls, self.rolling
        blocks, unknowns = self._kept("blocks", key, lambda: self._blocks(number * WIDTH, run, colours, *plan[5:]))
        kernel = assemble.assemble_balls if self.balls else assemble.assemble_any
        kernel(
            self.contacts,
            self.slot,
            self.arranged,
            self.inertia,
            self.rules.table,
            self.impulse,
            self.torque,
            self.rules.scalars,
            self.rules.margin,
            blocks,
            unknowns,
        )
        joints = NO_JOINTS
        if self.joints is not None:
            scalars, joints = self.rules.scalars, self.joints.block
            self.joints.assemble(scalars.step, scalars.recovery_speed, self.rules.threshold, unknowns.velocity, warm)
        self.problem = BlockProblem(blocks, unknowns, self.rules.scalars, self.contact_total, joints)
        return self.problem

    def _plan(self, n, tile_count, room):
        """What ``tiles.plan_blocks`` fills."""
        return (
            self._buffer("degree", n, dtype="i4"),
            self._buffer("mask", n, dtype="u8"),
            self._buffer("tile_colour", tile_count, dtype="i4"),
            self._buffer("colour", room, dtype="u1"),
            self._buffer("slot", room, dtype="i4"),
            self._buffer("block_start", tile_count + 2, dtype="i8"),
            self._buffer("tile_order", tile_count + 1, dtype="i8"),
            self._buffer("colour_start", tiles.COLOURS + 2, dtype="i8"),
        )

    def _blocks(self, lanes, run, colours, block_start, tile_order, colour_start):
        blocks = Blocks(
            self._buffer("rows", lanes * (ROWS_SPHERICAL if self.balls else ROWS_GENERAL)),
            self._buffer("body_a", lanes, dtype="i4"),
            self._buffer("body_b", lanes, dtype="i4"),
            self._buffer("rolling_arms", 2 * lanes if self.rolling else 0),
            block_start,
            tile_order[:run],
            colour_start[: colours + 1],
        )
        impulse, torque = self._buffer("block_impulse", 3 * lanes), self._buffer("block_torque", 3 * lanes if self.rolling else 0)
        return blocks, Unknowns(impulse, torque, self.arranged.velocity.reshape(-1), self.inertia)

    # --- the end of the step
    def commit(self, world):
        """Take the step, unless a body would leave the world or the numbers; returns (its id or -1, kinetic energy)."""
        energies = self._buffer("energies", -(-len(self.order) // bounds.CHUNK), dtype="f8")
        kernel = integrate.commit_balls if self.balls else integrate.commit_any
        left = (0.5 if self.rules.midpoint else 1.0) * self.rules.step
        fault = kernel(self.order, self.bodies, self.arranged.velocity, left, world, energies)
        if fault < 0:
            if self.rules.midpoint:
                for name in ("position", "quaternion", "velocity"):
                    getattr(self.table, name)[:] = getattr(self.bodies, name)
            self.remember()
        return fault, sum(energies.tolist())

    def remember(self):
        memory = self._memory(self.contact_room, len(self.bodies.tag), self.rolling)
        unknowns = self.problem.unknowns
        memory.number[:] = 0
        match.remember(self.tile_size, self.contacts, self.order, unknowns.impulse, unknowns.torque, self.slot, WIDTH, memory)
        self.memory = memory
        if self.joints is not None:
            self.joints.block.remember()

    def _memory(self, contacts, bodies, rolling):
        buffer = self._buffer
        return match.Memory(
            buffer("memory_a", contacts, dtype="i4"),
            buffer("memory_b", contacts, dtype="i4"),
            buffer("memory_feature", contacts, dtype="i4"),
            buffer("memory_impulse", contacts, (3,)),
            buffer("memory_torque", contacts if rolling else 0, (3,)),
            buffer("memory_first", bodies, dtype="i4"),
            buffer("memory_number", bodies, dtype="i4"),
        )
