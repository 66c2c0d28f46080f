"""Shape pairs: what a table's kernel gets of a pair of simple shapes, and where it puts what it finds.

A table is a function of a ``Task``: it launches a kernel with a thread for each of its shape pairs (or workers that take them in turn). The
kernel makes a ``ShapePair`` (``shape_pair_of``), finds rows as formulas write them, and hands them in (``keep_rows``).
"""

from typing import Any, NamedTuple

import warp as wp

from gravel.formulas import bounds, tables
from gravel.gpu.formulas import FORMS
from gravel.gpu.structs import Pairs, Proxies
from gravel.shapes import BOX, PLANE, SPHERE
from gravel.shapes.geometry import Library
from gravel.state import SHAPE

wp.set_module_options({"enable_backward": False, "max_unroll": 0})

# of kernels that shall be compiled when they are needed, and no sooner
SEPARATE: dict[str, Any] = {"module": "unique", "module_options": {"enable_backward": False, "max_unroll": 0}}

scale_of, is_behind = FORMS.of(bounds).scale_of, FORMS.of(tables).is_behind


class Shapes(NamedTuple):
    """The shapes of a scene, on the host."""

    library: Library
    method: int  # for ellipsoids, see ``gravel.formulas.ellipsoids``


@wp.struct
class Children:
    """What the library holds of compounds; see ``gravel.shapes.geometry``. In double precision: a compound may be much larger than what
    touches it."""

    first_child: wp.array(dtype=wp.int32)
    child_kind: wp.array(dtype=wp.int32)
    child_size: wp.array2d(dtype=wp.float64)
    child_radius: wp.array(dtype=wp.float64)
    child_position: wp.array2d(dtype=wp.float64)
    child_quaternion: wp.array2d(dtype=wp.float64)
    child_geometry: wp.array(dtype=wp.int32)


@wp.struct
class ShapePairs:
    """Those of one pair side by side, in the order of the pairs."""

    pair: wp.array(dtype=wp.int32)
    child_a: wp.array(dtype=wp.int32)  # row of the child, or -1: the body itself
    child_b: wp.array(dtype=wp.int32)
    table: wp.array(dtype=wp.int32)
    start: wp.array(dtype=wp.int32)  # (shape pairs + 1,) its first row in ``Rows``; the next one's is its end
    found: wp.array(dtype=wp.int32)  # how many rows it has filled
    most: wp.array(dtype=wp.int32)  # (1,) the most rows that a shape pair has found, of those that found more than had room


@wp.struct
class Rows:
    """Contacts of the shape pairs, before it is known which of them are near enough."""

    values: wp.array2d(dtype=wp.float32)  # (rows, 7) as in ``gravel.formulas.contact_rows``
    feature: wp.array(dtype=wp.int32)


@wp.struct
class ShapePair:
    """Two shapes; the kind of a is not behind that of b."""

    kind_a: int
    kind_b: int
    number_a: int  # of its geometry, or -1
    number_b: int
    size_a: wp.vec3  # of a plane its normal in the world frame
    size_b: wp.vec3
    radius_a: float  # of the balls around them
    radius_b: float
    turn_a: wp.vec4
    turn_b: wp.vec4
    d: wp.vec3  # centre of b - centre of a; where b is a plane, that of its point which is nearest to a's centre
    place: wp.vec3d  # of a's centre in the frame of b, where a is a ball and b a box: the box may be much larger;
    half: wp.vec3d  # its size
    size: float  # see ``gravel.formulas.bounds.scale_of``
    limit: float  # gaps above it need not be reported
    sign: float  # -1 where a is the second body's: then normals are turned round
    offset: wp.vec3  # from the centre of the first body to that of a
    name: wp.int64  # to which features are added


class Task(NamedTuple):
    """The shape pairs of one table: order[first] to order[first + count - 1], and all that its kernel needs."""

    first: int
    count: int
    order: wp.array
    proxies: Any  # Proxies
    pairs: Any  # Pairs
    children: Any  # Children
    shape_pairs: Any  # Jobs
    rows: Any  # Rows
    many: int  # rows that a shape pair with a mesh may fill
    shapes: Shapes
    arrays: Any  # DeviceBuffers
    device: str


class Kept:
    """What was made of the last few libraries, by identity."""

    FEW = 4

    def __init__(self, make):
        self.make, self.held = make, {}

    def __call__(self, library: Library, device: str):
        key = id(library), str(device)
        if key not in self.held:
            while len(self.held) >= self.FEW:
                self.held.pop(next(iter(self.held)))
            self.held[key] = library, self.make(library, device)  # with the library, so that no other gets its identity
        return self.held[key][1]


def _children_on(library: Library, device: str):
    children = Children()
    for name, kind in Children.vars.items():
        setattr(children, name, wp.array(getattr(library, name), dtype=kind.type.dtype, ndim=kind.type.ndim, device=device))
    return children


children_on = Kept(_children_on)


# --- in double precision
@wp.func
def turned(q: wp.vec4d, v: wp.vec3d):
    """A vector turned by a quaternion (w, x, y, z)."""
    u = wp.vec3d(q[1], q[2], q[3])
    t = wp.float64(2.0) * wp.cross(u, v)
    return v + q[0] * t + wp.cross(u, t)


@wp.func
def turned_back(q: wp.vec4d, v: wp.vec3d):
    return turned(wp.vec4d(q[0], -q[1], -q[2], -q[3]), v)


@wp.func
def product(q: wp.vec4d, c: wp.vec4d):
    """Of two quaternions: first c, then q."""
    return wp.vec4d(
        q[0] * c[0] - q[1] * c[1] - q[2] * c[2] - q[3] * c[3],
        q[0] * c[1] + q[1] * c[0] + q[2] * c[3] - q[3] * c[2],
        q[0] * c[2] - q[1] * c[3] + q[2] * c[0] + q[3] * c[1],
        q[0] * c[3] + q[1] * c[2] - q[2] * c[1] + q[3] * c[0],
    )


@wp.func
def row3(table: wp.array2d(dtype=wp.float64), k: int):
    return wp.vec3d(table[k, 0], table[k, 1], table[k, 2])


@wp.func
def row4(table: wp.array2d(dtype=wp.float64), k: int):
    return wp.vec4d(table[k, 0], table[k, 1], table[k, 2], table[k, 3])


@wp.func
def narrowed(v: wp.vec3d):
    return wp.vec3(float(v[0]), float(v[1]), float(v[2]))


# --- the shapes of a shape pair
@wp.func
def in_order(k: int, pairs: Pairs, proxies: Proxies):
    """The two bodies of a pair by the ranks of their kinds, of two alike the lower id first."""
    a, b = pairs.a[k], pairs.b[k]
    kind_a, kind_b = proxies.tag[a, SHAPE], proxies.tag[b, SHAPE]
    if is_behind(kind_a, kind_b) or (kind_a == kind_b and proxies.id[a] > proxies.id[b]):
        return b, a
    return a, b


@wp.func
def centre_of_child(body: int, child: int, proxies: Proxies, children: Children):
    """Where a child's centre, or that of the body itself, lies from the body's."""
    if child < 0:
        return wp.vec3d(wp.float64(0.0), wp.float64(0.0), wp.float64(0.0))
    return turned(row4(proxies.quaternion, body), proxies.extent[body, 0] * row3(children.child_position, child))


@wp.func
def radius_of_child(body: int, child: int, proxies: Proxies, children: Children):
    """Of the ball around a child, or around the body itself."""
    if child < 0:
        return proxies.sphere[body, 3] - proxies.extent[body, 3]
    return proxies.extent[body, 0] * children.child_radius[child]


@wp.func
def kind_of(body: int, child: int, proxies: Proxies, children: Children):
    if child < 0:
        return proxies.tag[body, SHAPE]
    return children.child_kind[child]


@wp.func
def number_of(body: int, child: int, proxies: Proxies, children: Children):
    """Of the geometry, or -1."""
    if child >= 0:
        return children.child_geometry[child]
    if proxies.geometry.shape[0] > 0:
        return proxies.geometry[body]
    return -1


@wp.func
def size_of(body: int, child: int, proxies: Proxies, children: Children):
    if child < 0:
        return row3(proxies.extent, body)
    return proxies.extent[body, 0] * row3(children.child_size, child)


@wp.func
def turn_of(body: int, child: int, proxies: Proxies, children: Children):
    if child >= 0:
        return product(row4(proxies.quaternion, body), row4(children.child_quaternion, child))
    kind = proxies.tag[body, SHAPE]
    if kind == SPHERE or kind == PLANE:
        return wp.vec4d(wp.float64(1.0), wp.float64(0.0), wp.float64(0.0), wp.float64(0.0))
    return row4(proxies.quaternion, body)


@wp.func
def shape_pair_between(a: int, i: int, b: int, j: int, d: wp.vec3d, proxies: Proxies, children: Children):
    """Child i of body a and child j of body b as a shape pair, the kind of the first not behind that of the second."""
    turn_a, turn_b = turn_of(a, i, proxies, children), turn_of(b, j, proxies, children)
    radius_a, radius_b = radius_of_child(a, i, proxies, children), radius_of_child(b, j, proxies, children)
    shape_pair = ShapePair()
    shape_pair.kind_a = kind_of(a, i, proxies, children)
    shape_pair.kind_b = kind_of(b, j, proxies, children)
    shape_pair.number_a = number_of(a, i, proxies, children)
    shape_pair.number_b = number_of(b, j, proxies, children)
    shape_pair.size_a = narrowed(size_of(a, i, proxies, children))
    shape_pair.size_b = narrowed(size_of(b, j, proxies, children))
    shape_pair.turn_a = wp.vec4(turn_a)
    shape_pair.turn_b = wp.vec4(turn_b)
    shape_pair.d = narrowed(d)
    if shape_pair.kind_a == SPHERE and shape_pair.kind_b == BOX:
        shape_pair.place = turned_back(turn_b, -d)
        shape_pair.half = size_of(b, j, proxies, children)
    shape_pair.radius_a = float(radius_a)
    shape_pair.radius_b = float(radius_b)
    shape_pair.size = scale_of(shape_pair.radius_a, shape_pair.radius_b)
    shape_pair.limit = float(proxies.extent[a, 3] + proxies.extent[b, 3])
    return shape_pair


@wp.func
def shape_pair_of(number: int, proxies: Proxies, pairs: Pairs, children: Children, shape_pairs: ShapePairs):
    """The shapes of a shape pair."""
    i, j = shape_pairs.child_a[number], shape_pairs.child_b[number]
    a, b = in_order(shape_pairs.pair[number], pairs, proxies)
    kind_a, kind_b = kind_of(a, i, proxies, children), kind_of(b, j, proxies, children)
    centre = centre_of_child(a, i, proxies, children)
    d = row3(proxies.sphere, b) - row3(proxies.sphere, a) + centre_of_child(b, j, proxies, children) - centre
    if kind_b == PLANE:
        normal = row3(proxies.extent, b)
        d = wp.dot(d, normal) * normal
    if not is_behind(kind_a, kind_b):
        shape_pair = shape_pair_between(a, i, b, j, d, proxies, children)
        shape_pair.sign = 1.0
        shape_pair.offset = narrowed(centre)
    else:  # children may come the other way round
        shape_pair = shape_pair_between(b, j, a, i, -d, proxies, children)
        shape_pair.sign = -1.0
        shape_pair.offset = narrowed(centre + d)
    shape_pair.name = (wp.int64(i + 1) * wp.int64(1009) + wp.int64(j + 1)) * wp.int64(8209)
    return shape_pair


@wp.func
def keep_rows(
    number: int,
    shape_pair: ShapePair,
    found: int,
    out: wp.array2d(dtype=float),
    feature: wp.array(dtype=int),
    shape_pairs: ShapePairs,
    rows: Rows,
):
    """Hand in the rows of a shape pair, as those of its pair of bodies: normals from the first body to the second, points from the centre
    of the first."""
    start = shape_pairs.start[number]
    room = shape_pairs.start[number + 1] - start
    shape_pairs.found[number] = wp.min(found, room)
    if found > room:
        wp.atomic_max(shape_pairs.most, 0, found)
    for c in range(wp.min(found, room)):
        for axis in range(3):
            rows.values[start + c, axis] = shape_pair.sign * out[c, axis]
            rows.values[start + c, 3 + axis] = out[c, 3 + axis] + shape_pair.offset[axis]
        rows.values[start + c, 6] = out[c, 6]
        rows.feature[start + c] = int((shape_pair.name + wp.int64(feature[c])) & wp.int64(0x7FFFFFFF))
