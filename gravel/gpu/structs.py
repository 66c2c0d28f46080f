"""What kernels get as one: arrays with the names and types that they have in ``gravel.cpu``, so that a stage may run on either."""

import warp as wp

vec8 = wp.types.vector(length=8, dtype=wp.float32)  # v, -, w, -: a velocity row


@wp.struct
class Bodies:
    """The fields of the bodies where the step looks, see ``gravel.state``."""

    id: wp.array(dtype=wp.int64)
    position: wp.array2d(dtype=wp.float64)
    quaternion: wp.array2d(dtype=wp.float64)
    velocity: wp.array2d(dtype=wp.float32)
    inverse_mass: wp.array2d(dtype=wp.float64)
    extent: wp.array2d(dtype=wp.float64)
    tag: wp.array2d(dtype=wp.int32)
    geometry: wp.array(dtype=wp.int32)


@wp.struct
class Proxies:
    """Bodies as detection and the solver see them; see ``gravel.host.arrays.Proxies``. Here they keep the order of the rows."""

    id: wp.array(dtype=wp.int64)
    sphere: wp.array2d(dtype=wp.float64)  # (n, 4) swept bounding sphere: centre, radius
    extent: wp.array2d(dtype=wp.float64)  # (n, 4) size (of a plane its normal in the world frame), slack
    tag: wp.array2d(dtype=wp.int32)  # (n, 4) shape, material, group, MOVES
    mass: wp.array2d(dtype=wp.float32)  # (n, 2) inverse mass and, of a ball, inverse inertia
    velocity: wp.array2d(dtype=wp.float32)  # (n + 1, 8)
    half: wp.array2d(dtype=wp.float64)  # (n, 3) half extents of the axis-aligned box, with slack; empty where all movable are balls
    quaternion: wp.array2d(dtype=wp.float64)  # (n, 4); empty where nothing looks different when turned
    geometry: wp.array(dtype=wp.int32)  # (n,); empty where there is none


@wp.struct
class Pairs:
    """Candidates, those of one first body side by side: body i has first[i] <= k < first[i + 1]."""

    a: wp.array(dtype=wp.int32)
    b: wp.array(dtype=wp.int32)
    first: wp.array(dtype=wp.int32)  # (n + 1,)


@wp.struct
class Contacts:
    """Those of one first body side by side; see ``gravel.host.arrays.Contacts``."""

    a: wp.array(dtype=wp.int32)
    b: wp.array(dtype=wp.int32)
    feature: wp.array(dtype=wp.int32)
    normal: wp.array2d(dtype=wp.float32)  # (c, 3) from a to b
    arm: wp.array2d(dtype=wp.float32)  # (c, 3) from the centre of a to the contact point
    gap: wp.array(dtype=wp.float32)


@wp.struct
class Margin:
    absolute: float
    share: float


@wp.struct
class Cells:
    """The cells of the grid."""

    width: float  # m
    biggest: float  # m, the largest radius of a body in them
    wrap_x: int  # cells along each axis less one: the mask that wraps them around
    wrap_y: int
    wrap_z: int
    bits_x: int
    bits_y: int
    total: int


@wp.struct
class Rows:
    """The contacts of a cone problem, in the order in which they are solved; see ``gravel.cpu.solve.blocks``."""

    a: wp.array(dtype=wp.int32)  # velocity rows
    b: wp.array(dtype=wp.int32)
    normal: wp.array(dtype=wp.vec3)
    bias: wp.array(dtype=wp.vec3)  # m/s
    friction: wp.array(dtype=wp.vec2)  # coefficient, cohesive impulse
    mass: wp.array(dtype=wp.vec2)  # inverse masses
    balls: wp.array(dtype=wp.vec4)  # arms along the normal, inverse inertias; empty where a body is no ball
    arm_a: wp.array(dtype=wp.vec3)  # or, for any other body: arms ...
    arm_b: wp.array(dtype=wp.vec3)
    response: wp.array(dtype=wp.vec4)  # ... and responses: normal, tangential, mean, twist
    rolling: wp.array(dtype=wp.vec2)  # arms of rolling and spinning friction, m; empty where there is none


@wp.struct
class Unknowns:
    """What the kernels change."""

    impulse: wp.array(dtype=wp.vec3)  # p on b, N s
    torque: wp.array(dtype=wp.vec3)  # rolling and spinning, N m s; empty where there is none
    velocity: wp.array(dtype=vec8)  # (bodies + 1,)
    last_impulse: wp.array(dtype=wp.vec3)  # of the sweep before, for momentum
    last_torque: wp.array(dtype=wp.vec3)
    last_velocity: wp.array(dtype=vec8)
    inertia: wp.array2d(dtype=float)  # (bodies + 1, 8) inverse inertia xx xy xz yy yz zz, world frame; empty where all are balls
    de_saxce: wp.array(dtype=float)  # mu |u_t| as of its last update, m/s: De Saxcé's term; empty in the cone model


@wp.struct
class Impulses:
    """A vector of the gradient solvers: impulses of all contacts, or their gradient."""

    impulse: wp.array(dtype=wp.vec3)
    torque: wp.array(dtype=wp.vec3)  # empty where there is no rolling friction


@wp.struct
class ContactInput:
    """What contacts bring to the cone problem beside their geometry; see ``gravel.cpu.solve.assemble.ContactInput``."""

    contact_values: wp.array3d(dtype=float)
    impulse: wp.array2d(dtype=float)
    torque: wp.array2d(dtype=float)
    surface_velocity: wp.array2d(dtype=float)
    overlap_count: wp.array(dtype=int)


@wp.struct
class ContactCache:
    """Contacts of the last step, see ``gravel.host.contact_cache.ContactCache``."""

    a: wp.array(dtype=wp.int64)
    b: wp.array(dtype=wp.int64)
    feature: wp.array(dtype=wp.int32)
    impulse: wp.array2d(dtype=float)
    torque: wp.array2d(dtype=float)
    first: wp.array(dtype=wp.int32)
    number: wp.array(dtype=wp.int32)


def as_rows(array: wp.array) -> wp.array:
    """The same memory, (n, 8) numbers, as n velocity rows."""
    return wp.array(ptr=array.ptr, dtype=vec8, shape=(array.shape[0],), device=array.device, copy=False)
