"""What kernels get as one: arrays with the names and types that they have in ``gravel.cpu``, so that a stage may run on either."""

import warp as wp


@wp.struct
class Arranged:
    """Bodies as detection and the solver see them; see ``gravel.cpu.collide.bounds.Arranged``. Here they keep the order of the rows."""

    id: wp.array(dtype=wp.int64)
    reach: wp.array2d(dtype=wp.float64)  # (n, 4) centre, reach
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
    """Those of one first body side by side; see ``gravel.cpu.collide.narrow.Contacts``."""

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
