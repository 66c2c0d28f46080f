"""Detection: the stages from bodies to contacts in their order, and the arrays between them.

In: the engine's rows where the step looks, and its rules. Out: ``contacts`` between proxies, by their indices, tile by tile. In periodic
space some of these are images (``images``): ``folded`` are the same contacts with the bodies themselves instead of images, and ``row``
gives the rows of the bodies; else these are ``contacts`` and ``order``.
"""

import numpy as np

from gravel.cpu.collide import bounds, brute, bvh, grid, narrow, sap, shape_pairs
from gravel.host import collision_filter, pair_ownership, periodic_images, tree
from gravel.host.arrays import CHUNK, Contacts, Pairs, Proxies
from gravel.host.threads import Workers
from gravel.host.traits import FEW_BODIES, traits_of


def tile_size(n):
    """Bodies per tile: small enough for the cache and for all threads to find work, large enough to fill blocks."""
    return 512 if n >= 65536 else 256 if n >= 8192 else 128


class Detector:
    def __init__(self, buffers, broad_phase):
        self.buffers, self.broad_phase = buffers, broad_phase
        self.workers = Workers()
        self.shapes = None  # ``pair_functions.Shapes`` of the scene
        self.cells = grid.make_cells()
        self.members = self.contacts = self.periodic = None
        self.pair_capacity = 0
        self.many = 8  # contacts allowed for of a shape with a mesh
        self.shape_pair_capacity = 512
        self.wait_for_tables = None  # a function, while another process compiles them
        self.contact_total, self.penetration, self.contact_room = 0, 0.0, 0

    def know(self, rows):
        """Take note of what kinds of bodies there are."""
        if self.members != rows.members:
            self.members, self.traits = rows.members, traits_of(rows)
            self.pair_kernel = narrow.pair_kernel_of(self.traits.kinds, self.traits.movers)
            self.kernel = getattr(narrow, f"find_{self.pair_kernel.name}_contacts", None)
            suits = "brute" if rows.count <= FEW_BODIES else "bvh" if self.traits.mixed else "grid"
            self.phase = suits if self.broad_phase == "auto" else self.broad_phase

    # --- the stages
    def find_bounds(self, bodies, rules, balls, periodic=None, lattice=None):
        """``balls``: nothing but balls can move, and no joint acts beside their middle. ``seen``: the bodies with their periodic images,
        and the lattice."""
        self.real_bodies, self.periodic, self.lattice = len(bodies.tag), periodic, lattice
        bodies = bodies if periodic is None else periodic.bodies
        n = len(bodies.tag)
        self.bodies, self.rules, self.balls = bodies, rules, balls
        chunks = -(-n // CHUNK)
        self.tile_size = tile_size(n)
        self.sphere = self.buffers.array("sphere", n, (4,), "f8")
        self.statistics = self.buffers.kept("statistics", chunks, lambda: self._statistics(chunks))
        of_bodies = bodies.position, bodies.velocity, bodies.extent, bodies.tag
        bounds.find_bounds(*of_bodies, rules.margin, rules.step, self.sphere, self.statistics)

    def sort_bodies(self, jointed):
        """Bring the bodies into the order of the broad phase. ``jointed``: which of them have joints; empty where none has."""
        n, array = len(self.bodies.tag), self.buffers.array
        self.order, keys, spare, self.cell_start = self.buffers.kept("orders", (n, self.phase), lambda: self._orders(n))
        if self.phase == "grid":
            grid.sort_into_cells(self.sphere, self.statistics, self.cells, keys, self.order, spare, self.cell_start)
        elif self.phase == "bvh":
            self.in_tree = tree.sort_along_curve(self.sphere, keys, self.order, spare)
            self.tree = array("tree", tree.tree_rows(self.in_tree), (6,), "f8")
        elif self.phase == "sap":
            self.line = array("line", 3, dtype="f8")
            self.swept = sap.sort_along_axis(self.sphere, self.statistics, keys, self.order, spare, self.line)
        key = n, self.balls, self.traits.turned, self.traits.shared
        self.proxies = self.buffers.kept("proxies", key, lambda: self._allocate_proxies(n))
        rules = self.rules
        bounds_and_proxies = rules.half, rules.margin, rules.step, self.sphere, self.balls, self.proxies
        bounds.make_proxies(self.order, keys, self.bodies, jointed, *bounds_and_proxies)
        self.row = self.order
        if self.periodic is not None:
            names = "index_of", "row", "home"
            index_of, self.row, self.home = (array(name, n, dtype="i4") for name in names)
            periodic_images.find_homes(self.order, self.periodic.source, index_of, self.row, self.home)

    def list_pairs(self, fits=None):
        """Fill ``pairs``. ``fits(pairs, room)``, where given, may say that so many are too many: then this returns False."""
        self.pair_capacity = max(self.pair_capacity, 4 * self.tile_size)
        while True:
            most = self._look_for_pairs(self.pair_capacity)
            if self.periodic is not None and most <= self.pair_capacity:
                periodic_pairs = self.real_bodies, self.proxies, self.lattice, self.tile_size, self.pairs
                most = periodic_images.fold_pairs(self.pair_capacity, *periodic_pairs)
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
        pair_list = self.rules.ignored, self.tile_size, capacity, self.balls, self.pairs
        if self.phase == "grid":
            return grid.find_pairs(self.proxies, self.cells, self.cell_start, *pair_list)
        if self.phase == "bvh":
            return bvh.find_pairs(self.proxies, self.in_tree, self.tree, *pair_list)
        if self.phase == "sap":
            return sap.find_pairs(self.proxies, self.swept, self.line, *pair_list)
        return brute.find_all_pairs(self.proxies, *pair_list)

    def exclude_pairs(self, excluded):
        """Take out the pairs that the collision filter excludes, if any."""
        if excluded is not None:
            collision_filter.exclude_pairs(self.pair_capacity, self.row, excluded, self.pairs)

    def keep_own_pairs(self, owner, partition):
        """Take out the pairs that other processes solve; ``owner`` of each row."""
        lattice = periodic_images.ENDLESS if self.lattice is None else self.lattice
        pair_ownership.keep_own_pairs(self.pair_capacity, self.row, owner, self.proxies.sphere, partition, lattice, self.pairs)

    def find_contacts(self):
        self.contacts = None  # what the last step has found is not needed any more
        if not self.pairs.count.any():  # nothing is near: the kernels are not needed, and perhaps not compiled yet
            self.contacts, self.contact_room, self.contact_total, self.penetration = self._contacts_with_room(0), 0, 0, 0.0
            for numbers in (self.contacts.start, self.contacts.count, self.contacts.first, self.contacts.number):
                numbers[:] = 0
            self.folded_contacts = self.contacts
            return
        if self.pair_kernel.name == "any":
            self._find_by_shape_pairs()
        else:
            self._find_by_pair_kernel()
        self.contact_total, self.penetration = narrow.summarise(self.contacts.start, self.contacts.count, self.contacts.gap)
        self.folded_contacts = self.contacts
        if self.periodic is not None:
            a, b = (self.buffers.array(name, len(self.contacts.a), dtype="i4") for name in ("touching_a", "touching_b"))
            periodic_images.fold_contacts(self.contacts, self.home, a, b)
            self.folded_contacts = self.contacts._replace(a=a, b=b)

    def _find_by_pair_kernel(self):
        """In one pass: the kernel's table holds all pairs."""
        rules, room = self.rules, 0
        library = self.pair_kernel.library(self.shapes)
        while True:
            contacts = self._contacts_with_room(room)
            contact_list = self.many, self.tile_size, rules.margin, rules.step, contacts
            bound = int(self.kernel(self.pairs, self.pair_capacity, self.proxies, *library, *contact_list))
            if 0 <= bound <= len(contacts.a):
                break
            room, contacts = max(bound, 0), None
            self.many *= 2 if bound < 0 else 1
        self.contacts, self.contact_room = contacts, bound

    def _find_by_shape_pairs(self):
        """Shape pair by shape pair and table by table, see ``shape_pairs``."""
        rules, proxies, shapes = self.rules, self.proxies, self.shapes
        pairs, tile_count = (self.pairs, self.pair_capacity), len(self.pairs.count)
        while True:
            listed = self._shape_pairs(tile_count * self.shape_pair_capacity, tile_count)
            most = shape_pairs.list_shape_pairs(*pairs, proxies, shapes.children, self.shape_pair_capacity, listed)
            if most <= self.shape_pair_capacity:
                break
            self.shape_pair_capacity = int(most + most // 4)
        if self.wait_for_tables is not None:
            self.wait_for_tables()
            self.wait_for_tables = None
        of_meshes = shapes.hulls, shapes.meshes
        libraries = shapes.method, 0, shapes.hulls, of_meshes, of_meshes
        while True:
            start = self.buffers.array("tile_start", tile_count, dtype="i8")
            room, bound, used = shape_pairs.make_room(*pairs, proxies.tag, self.shape_pair_capacity, listed, self.many, start)
            contacts = self._contacts_with_room(bound)
            values, features = self.buffers.array("row_values", room, (7,), "f8"), self.buffers.array("row_feature", room, dtype="i4")
            rows = shape_pairs.Rows(values, features)
            for table, library, needed in zip(shape_pairs.TABLES, libraries, used):
                if needed:
                    pair_rows = self.many, self.shape_pair_capacity, listed, rows
                    self.workers.run(table, tile_count, *pairs, proxies, shapes.children, library, *pair_rows)
            pair_rows = self.many, self.shape_pair_capacity, listed, rows, self.tile_size, contacts
            most = shape_pairs.gather_contacts(*pairs, proxies, rules.margin, rules.step, *pair_rows)
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

    def _allocate_proxies(self, n):
        array = self.buffers.array
        return Proxies(
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
        return Pairs(array("pair_a", room, dtype="i4"), array("pair_b", room, dtype="i4"), array("pair_count", tile_count, dtype="i8"))

    def _shape_pairs(self, room, tile_count):
        array = self.buffers.array
        return shape_pairs.ShapePairs(
            array("shape_pair_pair", room, dtype="i4"),
            array("shape_pair_child_a", room, dtype="i4"),
            array("shape_pair_child_b", room, dtype="i4"),
            array("shape_pair_table", room, dtype="u1"),
            array("shape_pair_start", room, dtype="i8"),
            array("shape_pair_found", room, dtype="i4"),
            array("shape_pair_count", tile_count, dtype="i8"),
        )

    def _contacts_with_room(self, room):
        """Contacts with at least so much room."""
        held, n, tile_count = self.buffers.room("contact_a"), len(self.order), len(self.pairs.count)
        room = max(held, 1024) if room <= max(held, 1024) else room + room // 8
        return self.buffers.kept("contacts", (room, tile_count, n), lambda: self._contacts(room, tile_count, n))

    def _contacts(self, room, tile_count, n):
        array = self.buffers.array
        return Contacts(
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
