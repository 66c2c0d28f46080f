"""A cone problem given by matrices: u = W r + q, contacts in blocks (N, T1, T2).

Fulfils ``gravel.engine.Problem``, as ``gravel.cpu.solve.block_problem`` does; vectors have the same layout.
"""

import functools

import numpy as np
from numba import njit

from gravel.cpu.solve.blocks import BETA, CAP, CHANGE, ENOUGH, SWEEPS, UPHILL, WIDTH, fresh_momentum, set_pace
from gravel.cpu.solve.cones import Cones, ConeVectors, project
from gravel.engine import ALONE, Share
from gravel.formulas.momentum import LAGGED, RENEWED
from gravel.host.threads import INNER


@njit(**INNER)
def velocity_of(row, indptr, indices, data, q, r):
    """u = W r + q in one row."""
    total = q[row]
    for k in range(indptr[row], indptr[row + 1]):
        total += data[k] * r[indices[k]]
    return total


@njit(**INNER)
def renew_slip(indptr, indices, data, q, mu, r, slip, first):
    """De Saxcé's terms mu |u_t|: those of the ``first`` renewal, or a share of what they have changed by."""
    for c in range(mu.size):
        y = velocity_of(3 * c + 1, indptr, indices, data, q, r)
        z = velocity_of(3 * c + 2, indptr, indices, data, q, r)
        taken = 1.0 if first else min(1.0, LAGGED / max(mu[c], 1e-300))
        slip[c] += taken * (mu[c] * np.sqrt(y * y + z * z) - slip[c])


@njit(nogil=True, error_model="numpy", cache=True)
def sweep_matrix(indptr, indices, data, q, mu, diagonal, bound, coulomb, r, last, slip, momentum, passes):
    """Gauss-Seidel: each contact in turn to its own optimum, by projected steps on its 3 x 3 block. Momentum and De Saxcé's terms as in
    ``blocks``."""
    done = 0
    while done < passes:
        set_pace(momentum)
        before = r.copy()
        r += momentum[BETA] * (r - last)
        last[:] = before
        if coulomb > 0.0 and momentum[SWEEPS] % RENEWED == 0.0:
            renew_slip(indptr, indices, data, q, mu, before, slip, momentum[SWEEPS] == 0.0)
        momentum[SWEEPS] += 1.0
        momentum[UPHILL], momentum[CHANGE] = 0.0, 0.0
        for c in range(mu.size):
            u = np.zeros(3)
            for row in range(3):
                u[row] = velocity_of(3 * c + row, indptr, indices, data, q, r)
            x, y, z = r[3 * c], r[3 * c + 1], r[3 * c + 2]
            lag = min(1.0, LAGGED / max(mu[c], 1e-300))
            for _ in range(50):
                extra = coulomb * (lag * slip[c] + (1.0 - lag) * mu[c] * np.sqrt(u[1] ** 2 + u[2] ** 2))
                step = 1.0 / bound[c]
                where = x - step * (u[0] + extra), y - step * u[1], z - step * u[2]
                x1, y1, z1, _ = project(*where, 1.0, 0.0, 0.0, mu[c], 0.0, 0.0, 1.0, 1e-300)
                dx, dy, dz = x1 - x, y1 - y, z1 - z
                x, y, z = x1, y1, z1
                for row in range(3):
                    u[row] += diagonal[c, row, 0] * dx + diagonal[c, row, 1] * dy + diagonal[c, row, 2] * dz
                if abs(dx) + abs(dy) + abs(dz) <= 1e-13 * (abs(x) + abs(y) + abs(z)):
                    break
            change = 0.0
            for row in range(3):
                k = 3 * c + row
                new = x if row == 0 else y if row == 1 else z
                momentum[UPHILL] += (r[k] - new) * (new - last[k]) * bound[c]
                change += (new - r[k]) ** 2
                r[k] = new
            momentum[CHANGE] = max(momentum[CHANGE], bound[c] * np.sqrt(change))
        done += 1
        if momentum[CHANGE] <= momentum[ENOUGH]:
            break
    return done


class MatrixProblem(ConeVectors):
    share: Share = ALONE
    real = np.dtype(float)

    def __init__(self, matrix, q, mu, coulomb):
        self.matrix, self.q, self.mu, self.coulomb = matrix.tocsr(), q, mu, bool(coulomb)
        self.contacts = len(mu)
        self.number = -(-self.contacts // WIDTH)
        self.size = self.number * 3 * WIDTH
        self.r, self.slips = np.zeros(3 * self.contacts), np.zeros(self.contacts)
        self.diagonal = np.stack([self.matrix[3 * c : 3 * c + 3, 3 * c : 3 * c + 3].toarray() for c in range(self.contacts)])
        trace = np.trace(self.diagonal, axis1=1, axis2=2)
        if (trace <= 0).any():
            raise ValueError(f"W must have positive diagonal blocks, but that of contact {int(np.argmin(trace))} has trace {trace.min():g}")
        self.eta = 3 / trace
        self.bound = np.linalg.eigvalsh(0.5 * (self.diagonal + self.diagonal.transpose(0, 2, 1)))[:, -1]

    def begin(self):
        """The sweep computes u from r, so there is nothing to do but for the momentum."""
        self.calm()

    def calm(self):
        self.last, self.momentum = self.r.copy(), fresh_momentum()

    def sweep(self, passes, cap, enough):
        w, self.momentum[CAP], self.momentum[ENOUGH] = self.matrix, cap, enough
        rest = float(self.coulomb), self.r, self.last, self.slips, self.momentum, passes
        return int(sweep_matrix(w.indptr, w.indices, w.data, self.q, self.mu, self.diagonal, self.bound, *rest))

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
