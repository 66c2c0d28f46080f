"""Detection: the stages from bodies to contacts in their order, and the arrays between them.

In: the engine's rows where the step looks, and its rules. Out: ``contacts`` between bodies that are numbered by their place in
``arranged``, tile by tile. In periodic space some of these are images (``images``): ``touching`` are the same contacts with the bodies
themselves in their stead, and ``row`` tells whose rows they have; else these are ``contacts`` and ``order``.
"""

import numpy as np

from gravel.cpu.collide import bounds, brute, bvh, grid, jobs, narrow, sap
from gravel.cpu.solve import match
from gravel.host import collision_filter as exclude
from gravel.host import pair_ownership as territory
from gravel.host import periodic_images as images
from gravel.host.threads import Workers
from gravel.host.traits import traits_of

FEW_BODIES = 64  # up to so many, testing all pairs is quicker than sorting them


def tile_size(n):
    """Bodies per tile: small enough for the cache and for all threads to find work, large enough to fill blocks."""
    return 512 if n >= 65536 else 256 if n >= 8192 else 128


class Detector:
    def __init__(self, buffers, broad_phase):
        self.buffers, self.broad_phase = buffers, broad_phase
        self.workers = Workers()
        self.cells = grid.make_cells()
        self.members = self.contacts = self.seen = None
        self.pair_capacity = 0
        self.many = 8  # contacts allowed for of a shape with a mesh
        self.job_capacity = 512
        self.wait_for_tables = None  # a function, while another process compiles them
        self.contact_total, self.penetration, self.contact_room = 0, 0.0, 0

    def know(self, rows):
        """Take note of what kinds of bodies there are."""
        if self.members != rows.members:
            self.members, self.traits = rows.members, traits_of(rows)
            self.family = self.traits.family
            self.kernel = getattr(narrow, f"find_{self.family.name}_contacts", None)
            suits = "brute" if rows.count <= FEW_BODIES else "bvh" if self.traits.mixed else "grid"
            self.phase = suits if self.broad_phase == "auto" else self.broad_phase

    # --- the stages
    def find_bounds(self, bodies, rules, balls, seen=None, lattice=None):
        """``balls``: nothing but balls can move, and no joint acts beside their middle. ``seen``: what is seen of the bodies in periodic
        space, and by which lattice."""
        self.real_bodies, self.seen, self.lattice = len(bodies.tag), seen, lattice
        bodies = bodies if seen is None else seen.bodies
        n = len(bodies.tag)
        self.bodies, self.rules, self.balls = bodies, rules, balls
        chunks = -(-n // bounds.CHUNK)
        self.tile_size = tile_size(n)
        self.reach = self.buffers.array("reach", n, (4,), "f8")
        self.statistics = self.buffers.kept("statistics", chunks, lambda: self._statistics(chunks))
        of_bodies = bodies.position, bodies.velocity, bodies.extent, bodies.tag
        bounds.find_bounds(*of_bodies, rules.margin, rules.step, self.reach, self.statistics)

    def sort_bodies(self, jointed):
        """Bring the bodies into the order of the broad phase. ``jointed``: which of them have joints; empty where none has."""
        n, array = len(self.bodies.tag), self.buffers.array
        self.order, keys, spare, self.cell_start = self.buffers.kept("orders", (n, self.phase), lambda: self._orders(n))
        if self.phase == "grid":
            grid.sort_into_cells(self.reach, self.statistics, self.cells, keys, self.order, spare, self.cell_start)
        elif self.phase == "bvh":
            self.in_tree = bvh.sort_along_curve(self.reach, keys, self.order, spare)
            self.tree = array("tree", bvh.tree_rows(self.in_tree), (6,), "f8")
        elif self.phase == "sap":
            self.line = array("line", 3, dtype="f8")
            self.swept = sap.sort_along_axis(self.reach, self.statistics, keys, self.order, spare, self.line)
        key = n, self.balls, self.traits.turned, self.traits.shared
        self.arranged = self.buffers.kept("arranged", key, lambda: self._arranged(n))
        rules = self.rules
        rest = rules.half, rules.margin, rules.step, self.reach, self.balls, self.arranged
        bounds.arrange(self.order, keys, self.bodies, jointed, *rest)
        self.row = self.order
        if self.seen is not None:
            names = "place_of", "row", "home"
            place_of, self.row, self.home = (array(name, n, dtype="i4") for name in names)
            images.find_homes(self.order, self.seen.source, place_of, self.row, self.home)

    def list_pairs(self, fits=None):
        """Fill ``pairs``. ``fits(pairs, room)``, where given, may say that so many are too many: then this returns False."""
        self.pair_capacity = max(self.pair_capacity, 4 * self.tile_size)
        while True:
            most = self._look_for_pairs(self.pair_capacity)
            if self.seen is not None and most <= self.pair_capacity:
                rest = self.real_bodies, self.arranged, self.lattice, self.tile_size, self.pairs
                most = images.fold_pairs(self.pair_capacity, *rest)
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
        self.pairs = self.buffers.kept("pairs", (room, tile_count), lambda: self._pairs(room, tile_count))
        rest = self.rules.ignored, self.tile_size, capacity, self.balls, self.pairs
        if self.phase == "grid":
            return grid.find_pairs(self.arranged, self.cells, self.cell_start, *rest)
        if self.phase == "bvh":
            return bvh.find_pairs(self.arranged, self.in_tree, self.tree, *rest)
        if self.phase == "sap":
            return sap.find_pairs(self.arranged, self.swept, self.line, *rest)
        return brute.find_all_pairs(self.arranged, *rest)

    def exclude_pairs(self, excluded):
        """Take out the pairs that may not touch, where there are any."""
        if excluded is not None:
            exclude.exclude_pairs(self.pair_capacity, self.row, excluded, self.pairs)

    def keep_own_pairs(self, owner, partition):
        """Take out the pairs that other processes solve; ``owner`` of each row."""
        lattice = images.ENDLESS if self.lattice is None else self.lattice
        territory.keep_own_pairs(self.pair_capacity, self.row, owner, self.arranged.reach, partition, lattice, self.pairs)

    def find_contacts(self):
        self.contacts = None  # what the last step has found is not needed any more
        if not self.pairs.count.any():  # nothing is near: the kernels are not needed, and perhaps not compiled yet
            self.contacts, self.contact_room, self.contact_total, self.penetration = self._contacts_with_room(0), 0, 0, 0.0
            for numbers in (self.contacts.start, self.contacts.count, self.contacts.first, self.contacts.number):
                numbers[:] = 0
            self.touching = self.contacts
            return
        if self.family.name == "any":
            self._find_by_jobs()
        else:
            self._find_by_family()
        self.contact_total, self.penetration = match.summarise(self.contacts.start, self.contacts.count, self.contacts.gap)
        self.touching = self.contacts
        if self.seen is not None:
            a, b = (self.buffers.array(name, len(self.contacts.a), dtype="i4") for name in ("touching_a", "touching_b"))
            images.fold_contacts(self.contacts, self.home, a, b)
            self.touching = self.contacts._replace(a=a, b=b)

    def _find_by_family(self):
        """In one pass: the family's table holds all pairs."""
        rules, room = self.rules, 0
        library = self.family.library(rules.shapes)
        while True:
            contacts = self._contacts_with_room(room)
            rest = self.many, self.tile_size, rules.margin, rules.step, contacts
            bound = int(self.kernel(self.pairs, self.pair_capacity, self.arranged, *library, *rest))
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
        if self.wait_for_tables is not None:
            self.wait_for_tables()
            self.wait_for_tables = None
        of_meshes = shapes.hulls, shapes.meshes
        libraries = shapes.method, 0, shapes.hulls, of_meshes, of_meshes
        while True:
            start = self.buffers.array("tile_start", tile_count, dtype="i8")
            room, bound, used = jobs.make_room(*pairs, arranged.tag, self.job_capacity, listed, self.many, start)
            contacts = self._contacts_with_room(bound)
            values, features = self.buffers.array("row_values", room, (7,), "f8"), self.buffers.array("row_feature", room, dtype="i4")
            rows = jobs.Rows(values, features)
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

    # --- the arrays
    def _statistics(self, chunks):
        array = self.buffers.array
        return bounds.Statistics(array("bin_count", chunks, (bounds.BINS,), "i8"), array("bin_largest", chunks, (bounds.BINS,), "f8"))

    def _orders(self, n):
        names = ("order", n), ("keys", n), ("spare", n), ("cell_start", grid.most_cells(n) + 1 if self.phase == "grid" else 0)
        arrays = tuple(self.buffers.array(name, room, dtype="i4") for name, room in names)
        arrays[0][:] = np.arange(n)  # which brute force keeps
        return arrays

    def _arranged(self, n):
        array = self.buffers.array
        return bounds.Arranged(
            array("order", n, dtype="i4"),
            array("arranged_id", n, dtype="i8"),
            array("arranged_key", n, dtype="i4"),
            array("arranged_reach", n, (4,), "f8"),
            array("arranged_extent", n, (4,), "f8"),
            array("arranged_tag", n, (4,), "i4"),
            array("arranged_mass", n, (2,)),
            array("velocity", n + 1, (8,)),
            array("half", 0 if self.balls else n, (3,), "f8"),
            array("arranged_quaternion", n if self.traits.turned else 0, (4,), "f8"),
            array("arranged_geometry", n if self.traits.shared else 0, dtype="i4"),
        )

    def _pairs(self, room, tile_count):
        array = self.buffers.array
        return grid.Pairs(array("pair_a", room, dtype="i4"), array("pair_b", room, dtype="i4"), array("pair_count", tile_count, dtype="i8"))

    def _jobs(self, room, tile_count):
        array = self.buffers.array
        return jobs.Jobs(
            array("job_pair", room, dtype="i4"),
            array("job_child_a", room, dtype="i4"),
            array("job_child_b", room, dtype="i4"),
            array("job_table", room, dtype="u1"),
            array("job_start", room, dtype="i8"),
            array("job_found", room, dtype="i4"),
            array("job_count", tile_count, dtype="i8"),
        )

    def _contacts_with_room(self, room):
        """Contacts with at least so much room."""
        held, n, tile_count = self.buffers.room("contact_a"), len(self.order), len(self.pairs.count)
        room = max(held, 1024) if room <= max(held, 1024) else room + room // 8
        return self.buffers.kept("contacts", (room, tile_count, n), lambda: self._contacts(room, tile_count, n))

    def _contacts(self, room, tile_count, n):
        array = self.buffers.array
        return narrow.Contacts(
            array("contact_a", room, dtype="i4"),
            array("contact_b", room, dtype="i4"),
            array("feature", room, dtype="i4"),
            array("normal", room, (3,)),
            array("arm", room, (3,)),
            array("gap", room),
            array("tile_start", tile_count, dtype="i8"),
            array("tile_count", tile_count, dtype="i8"),
            array("body_first", n, dtype="i4"),
            array("body_number", n, dtype="i4"),
        )
