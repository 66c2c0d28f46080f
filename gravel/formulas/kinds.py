"""What formulas are annotated with beside ``float`` and ``int``: each engine says what these are on its device."""

from typing import Any

import numpy as np

Matrix = Any  # a rotation, m[i][j]
Vector = Any  # three numbers, d[i]
Turn = Any  # a quaternion w x y z, q[i]
Symmetric = Any  # a symmetric matrix, in a form of the engine's own
Inertia = Any  # xx xy xz yy yz zz of a symmetric matrix, m[i]
Numbers = Any  # (n,) numbers
Table = Any  # (n, columns) numbers
Names = Any  # (n,) whole numbers
Corners = Any  # (n, columns) whole numbers
Marks = Any  # (n,) true or false
Tables = Any  # (m, n, columns) numbers
whole = np.int64  # a cast: whole numbers are as wide as the engine counts with
