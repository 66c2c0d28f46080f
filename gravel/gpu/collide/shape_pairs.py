"""Contacts of all shapes: pairs of bodies are expanded to pairs of simple shapes, and each table of functions handles its own.

The stages are those of ``gravel.cpu.collide.shape_pairs``: shape pairs are listed in the order of the pairs, every table fills in the rows
of its own, and in the end the rows of each pair that are near enough are gathered as contacts. Threads cannot append to a list in an
order that stays the same, so each list is made in two passes: how many, and after a sum over all before, where.
"""

import warp as wp

from gravel.formulas import pair_geometry, tables
from gravel.formulas.bounds import HASTE, MOVES
from gravel.formulas.tables import BOXES, CONVEX, MESH_PAIRS, MESHES, ROUND
from gravel.gpu.buffers import DeviceBuffers
from gravel.gpu.collide.shape_pair_types import (
    Children,
    Rows,
    ShapePairs,
    Shapes,
    Task,
    centre_of_child,
    children_on,
    in_order,
    kind_of,
    narrowed,
    radius_of_child,
    row3,
)
from gravel.gpu.collide.simple import fill_boxes, fill_round
from gravel.gpu.collide.solids import fill_convex, fill_mesh_pairs, fill_meshes
from gravel.gpu.formulas import FORMS
from gravel.gpu.structs import Contacts, Margin, Pairs, Proxies
from gravel.shapes import COMPOUND, PLANE, SPHERE
from gravel.state import SHAPE

wp.set_module_options({"enable_backward": False, "max_unroll": 0})

TABLES = {  # functions of a ``Task``
    ROUND: fill_round,
    BOXES: fill_boxes,
    CONVEX: fill_convex,
    MESHES: fill_meshes,
    MESH_PAIRS: fill_mesh_pairs,
}
NAMES = {ROUND: "ROUND", BOXES: "BOXES", CONVEX: "CONVEX", MESHES: "MESHES", MESH_PAIRS: "MESH_PAIRS"}
TABLE_COUNT = len(NAMES)
MANY = 8  # contacts allowed for of a shape with a mesh, at first
MOST_ROWS = 2**31 - 1  # what an index of 32 bits can tell apart

_tables = FORMS.of(tables)
table_between, rows_of = _tables.table_between, _tables.rows_of
between_spheres = FORMS.of(pair_geometry).between_spheres


# --- pairs to shape pairs
@wp.func
def children_of(body: int, proxies: Proxies, children: Children):
    """(first, last) child of a compound; of any other body (-1, 0), the one that stands for itself."""
    if proxies.tag[body, SHAPE] != COMPOUND:
        return -1, 0
    number = proxies.geometry[body]
    return children.first_child[number], children.first_child[number + 1]


@wp.func
def are_apart(a: int, i: int, b: int, j: int, proxies: Proxies, children: Children):
    """Whether the balls around two children, or around the bodies themselves, are too far apart for a contact."""
    d = row3(proxies.sphere, b) - row3(proxies.sphere, a)
    d = d + centre_of_child(b, j, proxies, children) - centre_of_child(a, i, proxies, children)
    far = radius_of_child(a, i, proxies, children) + proxies.extent[a, 3] + proxies.extent[b, 3]
    if proxies.tag[b, SHAPE] == PLANE:
        return -wp.dot(d, row3(proxies.extent, b)) > far
    far += radius_of_child(b, j, proxies, children)
    return wp.dot(d, d) > far * far


@wp.kernel
def list_shape_pairs(
    writes: bool,
    last: int,
    proxies: Proxies,
    pairs: Pairs,
    children: Children,
    first: wp.array(dtype=int),
    shape_pairs: ShapePairs,
    count: wp.array(dtype=int),
):
    """``count`` the shape pairs of each pair; or write them, from ``first`` on. One kernel, so that both come to the same in their last
    bit."""
    k = wp.tid()
    if k == last:  # so that the sum over all before it is that of all
        count[k] = 0
        return
    a, b = in_order(k, pairs, proxies)
    listed = int(0)
    if not (proxies.tag[a, SHAPE] == SPHERE and proxies.tag[b, SHAPE] == SPHERE):
        first_a, last_a = children_of(a, proxies, children)
        first_b, last_b = children_of(b, proxies, children)
        for i in range(first_a, last_a):
            for j in range(first_b, last_b):
                if not are_apart(a, i, b, j, proxies, children):
                    if writes:
                        kind_a, kind_b = kind_of(a, i, proxies, children), kind_of(b, j, proxies, children)
                        at = first[k] + listed
                        shape_pairs.pair[at] = k
                        shape_pairs.child_a[at] = i
                        shape_pairs.child_b[at] = j
                        shape_pairs.table[at] = table_between(kind_a, kind_b)
                    listed += 1
    count[k] = listed


@wp.kernel
def mark_tables(total: int, shape_pairs: ShapePairs, marks: wp.array(dtype=int)):
    """marks[t * total + j] := whether shape pair j is of table t."""
    j = wp.tid()
    if j == total:
        marks[TABLE_COUNT * total] = 0
        return
    for t in range(TABLE_COUNT):
        marks[t * total + j] = 1 if shape_pairs.table[j] == t else 0


@wp.kernel
def sort_by_table(total: int, shape_pairs: ShapePairs, place: wp.array(dtype=int), order: wp.array(dtype=int)):
    j = wp.tid()
    order[place[shape_pairs.table[j] * total + j]] = j


@wp.kernel
def count_rows(total: int, many: int, shape_pairs: ShapePairs, count: wp.array(dtype=int)):
    """Rows that each shape pair may fill."""
    j = wp.tid()
    if j == total:
        count[j] = 0
    else:
        count[j] = rows_of(shape_pairs.table[j], many)


# --- rows to contacts
@wp.func
def margin_of(margin: Margin, a: int, b: int, proxies: Proxies):
    """The gap below which two bodies count as touching."""
    contact_distance = margin.absolute
    if proxies.tag[a, MOVES] != 0:
        contact_distance += margin.share * float(proxies.sphere[a, 3] - proxies.extent[a, 3])
    if proxies.tag[b, MOVES] != 0:
        contact_distance += margin.share * float(proxies.sphere[b, 3] - proxies.extent[b, 3])
    return contact_distance


@wp.func
def velocity_at(body: int, arm: wp.vec3, proxies: Proxies):
    v = proxies.velocity
    return wp.vec3(v[body, 0], v[body, 1], v[body, 2]) + wp.cross(wp.vec3(v[body, 4], v[body, 5], v[body, 6]), arm)


@wp.func
def may_close(gap: float, contact_distance: float, step: float, a: int, b: int, arm: wp.vec3, proxies: Proxies):
    """Whether a gap is within the margin, or could be closed within the step; see ``gravel.cpu.collide.narrow``."""
    if gap <= contact_distance:
        return True
    if step <= 0.0:
        return False
    of_a = velocity_at(a, arm, proxies)
    of_b = velocity_at(b, arm + narrowed(row3(proxies.sphere, a) - row3(proxies.sphere, b)), proxies)
    speed = wp.max(wp.length(of_b - of_a), wp.max(wp.length(of_a), wp.length(of_b)))
    return gap <= contact_distance + step * HASTE * speed


@wp.func
def parted(i: wp.int64, j: wp.int64):
    """A tiny vector between two balls in one place, by their ids: see ``gravel.cpu.collide.pair_geometry``."""
    one, turn = wp.float64(1.0), wp.float64(2.399963229728653)
    d = wp.vec3d(wp.float64(0.0), wp.float64(0.0), wp.float64(0.0))
    for end in range(2):
        k = wp.float64(i if end == 0 else j)
        height = wp.float64(2.0) * wp.mod(wp.float64(0.6180339887498949) * (k + wp.float64(0.5)), one) - one
        across = wp.sqrt(one - height * height)
        d = wp.vec3d(across * wp.cos(turn * k), across * wp.sin(turn * k), height) - d
    return wp.float64(1.0e-15) * d  # whose square single precision still has


@wp.func
def between_balls(a: int, b: int, proxies: Proxies):
    """(normal, arm, gap) of two balls."""
    d = narrowed(row3(proxies.sphere, b) - row3(proxies.sphere, a))
    if wp.dot(d, d) == 0.0:
        d = narrowed(parted(proxies.id[a], proxies.id[b]))
    nx, ny, nz, x, y, z, gap = between_spheres(float(proxies.extent[a, 0]), float(proxies.extent[b, 0]), d[0], d[1], d[2])
    return wp.vec3(nx, ny, nz), wp.vec3(x, y, z), gap


@wp.func
def are_balls(a: int, b: int, proxies: Proxies):
    return proxies.tag[a, SHAPE] == SPHERE and proxies.tag[b, SHAPE] == SPHERE


@wp.kernel
def count_contacts(
    last: int,
    proxies: Proxies,
    pairs: Pairs,
    margin: Margin,
    step: float,
    first_shape_pair: wp.array(dtype=int),
    shape_pairs: ShapePairs,
    rows: Rows,
    count: wp.array(dtype=int),
):
    """How many contacts each pair has. Of each shape pair, the rows that are near enough move to its front, and are those it has found."""
    k = wp.tid()
    if k == last:
        count[k] = 0
        return
    a, b = in_order(k, pairs, proxies)
    contact_distance, total = margin_of(margin, a, b, proxies), int(0)
    if are_balls(a, b, proxies):
        normal, arm, gap = between_balls(a, b, proxies)
        if may_close(gap, contact_distance, step, a, b, arm, proxies):
            total = 1
    else:
        for shape_pair in range(first_shape_pair[k], first_shape_pair[k + 1]):
            start, kept = shape_pairs.start[shape_pair], int(0)
            for r in range(start, start + shape_pairs.found[shape_pair]):
                v = rows.values
                if may_close(v[r, 6], contact_distance, step, a, b, wp.vec3(v[r, 3], v[r, 4], v[r, 5]), proxies):
                    for c in range(7):
                        rows.values[start + kept, c] = rows.values[r, c]
                    rows.feature[start + kept] = rows.feature[r]
                    kept += 1
            shape_pairs.found[shape_pair] = kept
            total += kept
    count[k] = total


@wp.func
def write_contact(contacts: Contacts, c: int, a: int, b: int, name: int, normal: wp.vec3, arm: wp.vec3, gap: float):
    contacts.a[c] = a
    contacts.b[c] = b
    contacts.feature[c] = name
    contacts.gap[c] = gap
    for axis in range(3):
        contacts.normal[c, axis] = normal[axis]
        contacts.arm[c, axis] = arm[axis]


@wp.kernel
def write_contacts(
    proxies: Proxies,
    pairs: Pairs,
    first_shape_pair: wp.array(dtype=int),
    shape_pairs: ShapePairs,
    rows: Rows,
    first_contact: wp.array(dtype=int),
    contacts: Contacts,
):
    """The contacts of each pair, those that ``count_contacts`` has counted."""
    k = wp.tid()
    c = first_contact[k]
    if first_contact[k + 1] == c:
        return
    a, b = in_order(k, pairs, proxies)
    if are_balls(a, b, proxies):
        normal, arm, gap = between_balls(a, b, proxies)
        write_contact(contacts, c, a, b, 0, normal, arm, gap)
        return
    v = rows.values
    for shape_pair in range(first_shape_pair[k], first_shape_pair[k + 1]):
        start = shape_pairs.start[shape_pair]
        for r in range(start, start + shape_pairs.found[shape_pair]):
            normal, arm = wp.vec3(v[r, 0], v[r, 1], v[r, 2]), wp.vec3(v[r, 3], v[r, 4], v[r, 5])
            write_contact(contacts, c, a, b, rows.feature[r], normal, arm, v[r, 6])
            c += 1


@wp.kernel
def contacts_of_bodies(pairs: Pairs, first_contact: wp.array(dtype=int), first: wp.array(dtype=int), number: wp.array(dtype=int)):
    """Of each body the first contact that it found, and how many."""
    i = wp.tid()
    begin = first_contact[pairs.first[i]]
    first[i] = begin
    number[i] = first_contact[pairs.first[i + 1]] - begin


# --- the stages
class Stages:
    """One search, with what its stages share."""

    def __init__(self, proxies, pairs, pair_count: int, shapes: Shapes, arrays: DeviceBuffers, device: str):
        self.proxies, self.pairs, self.pair_count = proxies, pairs, pair_count
        self.shapes, self.arrays, self.device = shapes, arrays, device
        self.children = children_on(shapes.library, device)
        self.shape_pairs, self.rows = ShapePairs(), Rows()
        self.first_shape_pair = self._whole("first_shape_pair", pair_count + 1)

    def list_shape_pairs(self) -> int:
        """Fill ``shape_pairs``; returns how many there are."""
        count = self._whole("pair_count", self.pair_count + 1)
        self._list(False, count)
        total = self._sum_before(count, self.first_shape_pair)
        for name in ("pair", "child_a", "child_b", "table", "found"):
            setattr(self.shape_pairs, name, self._whole(f"job_{name}", total))
        self.shape_pairs.start, self.shape_pairs.most = self._whole("shape_pair_start", total + 1), self._whole("shape_pair_most", 1)
        if total > 0:
            self._list(True, count)
        return total

    def _list(self, writes, count):
        pair_list = self.proxies, self.pairs, self.children, self.first_shape_pair, self.shape_pairs, count
        self._launch(list_shape_pairs, self.pair_count + 1, writes, self.pair_count, *pair_list)

    def sort_shape_pairs(self, total: int) -> tuple[wp.array, list[int]]:
        """(shape pairs in the order of their tables, where each table's begin and the last one's end)."""
        marks, place = self._whole("table_mark", TABLE_COUNT * total + 1), self._whole("table_place", TABLE_COUNT * total + 1)
        self._launch(mark_tables, total + 1, total, self.shape_pairs, marks)
        wp.utils.array_scan(marks, place, inclusive=False)
        order = self._whole("shape_pair_order", total)
        self._launch(sort_by_table, total, total, self.shape_pairs, place, order)
        return order, place[::total].numpy().tolist()

    def fill_rows(self, total: int, order: wp.array, begins: list[int], many: int) -> int:
        """Let each table handle its shape pairs; returns the most rows that one of them has found."""
        sizes = [end - begin for begin, end in zip(begins, begins[1:])]
        missing = [NAMES[table] for table, size in enumerate(sizes) if size > 0 and table not in TABLES]
        if missing:
            raise NotImplementedError(f"contacts of this scene need the tables {missing}, which {self.device} does not have yet")
        room = sum(size * tables.rows_of(table, many) for table, size in enumerate(sizes))
        if room > MOST_ROWS:
            raise MemoryError(f"contacts of {total} pairs of shapes need {room} rows; {self.device} has room for {MOST_ROWS} at most")
        count = self._whole("row_count", total + 1)
        self._launch(count_rows, total + 1, total, many, self.shape_pairs, count)
        wp.utils.array_scan(count, self.shape_pairs.start, inclusive=False)
        self.rows.values = self.arrays.array("row_values", room, (7,))
        self.rows.feature = self._whole("row_feature", room)
        self.shape_pairs.most.zero_()
        for table, size in enumerate(sizes):
            if size > 0:
                things = self.proxies, self.pairs, self.children, self.shape_pairs, self.rows
                TABLES[table](Task(begins[table], size, order, *things, many, self.shapes, self.arrays, self.device))
        return int(self.shape_pairs.most.numpy()[0]) if sizes[MESHES] + sizes[MESH_PAIRS] > 0 else 0

    def gather_contacts(self, n: int, margin, step: float):
        """(contacts, first, number, total)."""
        count, first_contact = self._whole("pair_count", self.pair_count + 1), self._whole("first_contact", self.pair_count + 1)
        found = self.first_shape_pair, self.shape_pairs, self.rows
        self._launch(count_contacts, self.pair_count + 1, self.pair_count, self.proxies, self.pairs, margin, step, *found, count)
        total = self._sum_before(count, first_contact)
        contacts = contacts_with_room(self.arrays, total)
        self._launch(write_contacts, self.pair_count, self.proxies, self.pairs, *found, first_contact, contacts)
        first, number = self._whole("body_first", n), self._whole("body_number", n)
        self._launch(contacts_of_bodies, n, self.pairs, first_contact, first, number)
        return contacts, first, number, total

    def _whole(self, name, rows):
        return self.arrays.array(name, rows, dtype=wp.int32)

    def _sum_before(self, count, first):
        """first[k] := count[0] + ... + count[k - 1]; returns the sum of all, of which the last is zero."""
        wp.utils.array_scan(count, first, inclusive=False)
        total = int(first[len(first) - 1 :].numpy()[0])
        if total < 0:
            raise MemoryError(f"{self.device} counts up to {MOST_ROWS} contacts, and {self.pair_count} pairs have more")
        return total

    def _launch(self, kernel, size, *arguments):
        wp.launch(kernel, size, inputs=list(arguments), device=self.device)


def contacts_with_room(arrays: DeviceBuffers, room: int):
    contacts = Contacts()
    for name in ("a", "b", "feature"):
        setattr(contacts, name, arrays.array(f"contact_{name}", room, dtype=wp.int32))
    contacts.normal, contacts.arm = arrays.array("contact_normal", room, (3,)), arrays.array("contact_arm", room, (3,))
    contacts.gap = arrays.array("contact_gap", room)
    return contacts


def find_contacts_by_shape_pairs(
    proxies, pairs, pair_count: int, n: int, margin, step: float, shapes: Shapes, arrays: DeviceBuffers, device: str
):
    """(``Contacts``, first (n,), number (n,), total): contacts of the pairs, in their order, and of each body its first and how many.

    ``margin``: a ``Margin``; ``step``: s, 0 in a detection alone, where nothing moves. The arrays are those of ``arrays`` and hold until
    the next call.
    """
    stages = Stages(proxies, pairs, pair_count, shapes, arrays, device)
    total = stages.list_shape_pairs()
    if total > 0:
        order, begins = stages.sort_shape_pairs(total)
        many = arrays.enough.get("many", MANY)
        while (most := stages.fill_rows(total, order, begins, many)) > many:
            many = arrays.enough["many"] = 2 * most
    return stages.gather_contacts(n, margin, step)
