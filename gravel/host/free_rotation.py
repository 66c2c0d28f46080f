"""Free rotation of a rigid body: the angular momentum stays, the angular velocity does not (the gyroscopic term).

Strang splitting into turns about the principal axes keeps the momentum exactly and the energy within a bound that does not grow
(McLachlan 1993), where an explicit gyroscopic torque gains energy.
"""

from numba import njit

from gravel.host.threads import INNER
from gravel.host.vectors import rotate, rotate_back, to_matrix, turn


@njit(**INNER)
def turn_freely(quaternion, b, ix, iy, iz, wx, wy, wz, step):
    """Turn body b with constant angular momentum L: axis by axis, the rate about axis k being (R^T L)_k / I_k."""
    m = to_matrix(quaternion[b])
    x, y, z = rotate_back(m, wx, wy, wz)
    lx, ly, lz = rotate(m, x / ix, y / iy, z / iz)
    for stage in range(5):
        axis = stage if stage < 3 else 4 - stage
        m = to_matrix(quaternion[b])
        body, inverse = rotate_back(m, lx, ly, lz), (ix, iy, iz)
        angle = (1.0 if stage == 2 else 0.5) * step * body[axis] * inverse[axis]
        turn(quaternion, b, angle * m[0][axis], angle * m[1][axis], angle * m[2][axis])


@njit(**INNER)
def carry_momentum(before, after, ix, iy, iz, wx, wy, wz):
    """Angular velocity of a body whose turn changes from matrix ``before`` to ``after`` while its momentum stays."""
    x, y, z = rotate_back(before, wx, wy, wz)
    lx, ly, lz = rotate(before, x / ix, y / iy, z / iz)
    x, y, z = rotate_back(after, lx, ly, lz)
    return rotate(after, x * ix, y * iy, z * iz)
