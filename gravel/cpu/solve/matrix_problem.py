"""A cone problem given by matrices: u = W r + q, contacts in blocks (N, T1, T2).

Fulfils ``gravel.engine.Problem``, as ``gravel.cpu.solve.block_problem`` does; vectors have the same layout.
"""

import functools
from typing import NamedTuple

import numpy as np
from numba import njit

from gravel.cpu.solve.blocks import ASCENT, BETA, CHANGE, MAX_MOMENTUM, SWEEP_TOLERANCE, SWEEPS, WIDTH, fresh_momentum, set_nesterov_step
from gravel.cpu.solve.cones import Cones, ConeVectors
from gravel.engine import NO_SYNC, SharedBodySync
from gravel.formulas import cones, contact_laws
from gravel.formulas.momentum import RENEWED
from gravel.host.formulas import FORMS
from gravel.host.threads import ALLOCATING, INNER

_laws, project = FORMS.of(contact_laws), FORMS.of(cones).project
lagged_share, renewed_slip, sliding_speed = _laws.lagged_share, _laws.renewed_slip, _laws.sliding_speed
NORMAL = 1.0, 0.0, 0.0  # the first of a contact's three rows
SETTLED = 1e-13  # of a contact's impulse: smaller steps end its solution
STEPS = 50  # of it, at most


class Matrix(NamedTuple):
    """u = W r + q, with what the sweeps need of its diagonal blocks."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    q: np.ndarray
    friction: np.ndarray  # (contacts,)
    diagonal: np.ndarray  # (contacts, 3, 3)
    bound: np.ndarray  # (contacts,) largest eigenvalue of each diagonal block


@njit(**INNER)
def velocity_of(row, matrix, r):
    """u = W r + q in one row."""
    total = matrix.q[row]
    for k in range(matrix.indptr[row], matrix.indptr[row + 1]):
        total += matrix.data[k] * r[matrix.indices[k]]
    return total


@njit(**INNER)
def update_de_saxce(matrix, r, de_saxce, first):
    """De Saxcé's terms mu |u_t|: those of the ``first`` renewal, or a share of what they have changed by."""
    for c in range(de_saxce.size):
        mu, u = matrix.friction[c], (0.0, velocity_of(3 * c + 1, matrix, r), velocity_of(3 * c + 2, matrix, r))
        de_saxce[c] = renewed_slip(de_saxce[c], mu * sliding_speed(u, NORMAL), 1.0 if first else lagged_share(mu))


@njit(**ALLOCATING)
def solve_contact(c, matrix, coulomb, de_saxce, r):
    """The impulse that is best for one contact alone, by projected steps on its 3 x 3 block."""
    mu, bound, diagonal = matrix.friction[c], matrix.bound[c], matrix.diagonal
    u = np.zeros(3)
    for row in range(3):
        u[row] = velocity_of(3 * c + row, matrix, r)
    x, y, z = r[3 * c], r[3 * c + 1], r[3 * c + 2]
    lag, step = lagged_share(mu), 1.0 / bound
    for _ in range(STEPS):
        extra = coulomb * (lag * de_saxce[c] + (1.0 - lag) * mu * np.sqrt(u[1] ** 2 + u[2] ** 2))
        x1, y1, z1, _ = project((x - step * (u[0] + extra), y - step * u[1], z - step * u[2]), NORMAL, mu, 0.0)
        dx, dy, dz = x1 - x, y1 - y, z1 - z
        x, y, z = x1, y1, z1
        for row in range(3):
            u[row] += diagonal[c, row, 0] * dx + diagonal[c, row, 1] * dy + diagonal[c, row, 2] * dz
        if abs(dx) + abs(dy) + abs(dz) <= SETTLED * (abs(x) + abs(y) + abs(z)):
            break
    return x, y, z


@njit(nogil=True, error_model="numpy", cache=True)
def sweep_matrix(matrix, coulomb, r, last, de_saxce, momentum, iterations):
    """Gauss-Seidel: each contact in turn to its own optimum. Momentum and De Saxcé's terms as in ``blocks``."""
    done = 0
    while done < iterations:
        set_nesterov_step(momentum)
        before = r.copy()
        r += momentum[BETA] * (r - last)
        last[:] = before
        if coulomb > 0.0 and momentum[SWEEPS] % RENEWED == 0.0:
            update_de_saxce(matrix, before, de_saxce, momentum[SWEEPS] == 0.0)
        momentum[SWEEPS] += 1.0
        momentum[ASCENT], momentum[CHANGE] = 0.0, 0.0
        for c in range(de_saxce.size):
            impulse, bound, change = solve_contact(c, matrix, coulomb, de_saxce, r), matrix.bound[c], 0.0
            for row in range(3):
                k = 3 * c + row
                momentum[ASCENT] += (r[k] - impulse[row]) * (impulse[row] - last[k]) * bound
                change += (impulse[row] - r[k]) ** 2
                r[k] = impulse[row]
            momentum[CHANGE] = max(momentum[CHANGE], bound * np.sqrt(change))
        done += 1
        if momentum[CHANGE] <= momentum[SWEEP_TOLERANCE]:
            break
    return done


class MatrixProblem(ConeVectors):
    sync: SharedBodySync = NO_SYNC
    real = np.dtype(float)

    def __init__(self, matrix, q, mu, coulomb):
        self.matrix, self.q, self.mu, self.coulomb = matrix.tocsr(), q, mu, bool(coulomb)
        self.contacts = len(mu)
        self.number = -(-self.contacts // WIDTH)
        self.size = self.number * 3 * WIDTH
        self.r, self.lagged_terms = np.zeros(3 * self.contacts), np.zeros(self.contacts)
        self.diagonal = np.stack([self.matrix[3 * c : 3 * c + 3, 3 * c : 3 * c + 3].toarray() for c in range(self.contacts)])
        trace = np.trace(self.diagonal, axis1=1, axis2=2)
        if (trace <= 0).any():
            raise ValueError(f"W must have positive diagonal blocks, but that of contact {int(np.argmin(trace))} has trace {trace.min():g}")
        self.eta = 3 / trace
        self.bound = np.linalg.eigvalsh(0.5 * (self.diagonal + self.diagonal.transpose(0, 2, 1)))[:, -1]

    def warm_start(self):
        """The sweep computes u from r, so there is nothing to do but for the momentum."""
        self.restart_momentum()

    def restart_momentum(self):
        self.last, self.momentum = self.r.copy(), fresh_momentum()

    def sweep(self, iterations, max_momentum, tolerance):
        w, self.momentum[MAX_MOMENTUM], self.momentum[SWEEP_TOLERANCE] = self.matrix, max_momentum, tolerance
        matrix = Matrix(w.indptr, w.indices, w.data, self.q, self.mu, self.diagonal, self.bound)
        return int(sweep_matrix(matrix, float(self.coulomb), self.r, self.last, self.lagged_terms, self.momentum, iterations))

    def measure(self):
        return self.residual(self._to_lanes(self.r), self._to_lanes(self.matrix @ self.r + self.q))

    def start(self):
        return self._to_lanes(self.r)

    @functools.cached_property
    def cones(self):
        normal = np.zeros((self.number, 3, WIDTH))
        lanes = lambda v, fill: np.concatenate([v, np.full(self.number * WIDTH - len(v), fill)]).reshape(-1, WIDTH)  # noqa: E731
        normal[:, 0] = lanes(np.ones(self.contacts), 0.0)
        empty = np.empty(0)
        return Cones(
            normal,
            lanes(self.mu, 0.0),
            np.zeros((self.number, WIDTH)),
            lanes(self.eta, 1.0),
            np.empty((0, 2, WIDTH)),
            np.empty((0, WIDTH)),
            empty,
            empty,
            empty,
        )

    def gradient(self, x, out):
        out[:] = self._to_lanes(self.matrix @ self._from_lanes(x) + self.q)

    def finish(self, x):
        self.r[:] = self._from_lanes(x)

    def _to_lanes(self, r):
        x = np.zeros((self.number * WIDTH, 3))
        x[: self.contacts] = r.reshape(-1, 3)
        return np.ascontiguousarray(x.reshape(self.number, WIDTH, 3).transpose(0, 2, 1)).reshape(-1)

    def _from_lanes(self, x):
        return x.reshape(self.number, 3, WIDTH).transpose(0, 2, 1).reshape(-1, 3)[: self.contacts].reshape(-1)
