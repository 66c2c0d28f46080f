"""ConeProblem: what every solver solves, from arrays of contacts and joint rows, or from matrices.

Minimise 1/2 x N x + r x over the friction cones, N = D^T M^-1 D; equivalently x in K, u = D^T v + b in K*, x . u = 0.
In Coulomb mode mu |u_t| is added to the normal part of u (De Saxcé), which removes the dilation of sliding contacts.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from gravel import checks
from gravel.engine import make_matrix_problem, make_problem
from gravel.printing import formatting


@dataclass(frozen=True, repr=False)
class Solution:
    """What a solver found for a ``ConeProblem``. Contacts have rows of three: along the normal, and two across it.

    - ``impulses`` (n, 3) normal and two tangential parts, N s
    - ``velocities`` (n, 3) relative velocity with bias, in the same frames, m/s
    - ``residual`` m/s, largest over rows
    - ``history``: residual after each iteration, if asked for
    - ``body_velocities`` (bodies, 6), of problems between bodies
    - ``joint_impulses`` (m,), of problems with joint rows
    """

    impulses: np.ndarray
    velocities: np.ndarray
    residual: float
    residual_rms: float
    iterations: int
    converged: bool
    history: list[float]
    body_velocities: np.ndarray | None = None
    joint_impulses: np.ndarray | None = None

    def __repr__(self) -> str:
        residual = formatting.rough(self.residual)
        return formatting.call(self, contacts=len(self.impulses), iterations=self.iterations, residual=residual, converged=self.converged)


class ConeProblem:
    """A frictional contact problem between bodies.

    ``body_a``, ``body_b`` (n,) rows of the bodies; ``normal`` (n, 3) from a to b; ``arm_a``, ``arm_b`` (n, 3) from the
    centres of mass to the contact; ``friction`` (n,); ``bias`` (n, 3) added to the relative velocity, world frame;
    ``cohesion`` (n,) impulse that a contact can pull with. ``inverse_mass`` (bodies,), ``inverse_inertia``
    (bodies, 3, 3) in the world frame, both zero for immovable bodies; ``velocity`` (bodies, 6) linear and angular.
    Joint rows: ``joints`` = dict(body_a (m,), body_b (m,), jacobian (m, 12), bias (m,), lower (m,), upper (m,)).
    """

    def __init__(
        self,
        body_a: ArrayLike,
        body_b: ArrayLike,
        normal: ArrayLike,
        arm_a: ArrayLike,
        arm_b: ArrayLike,
        friction: ArrayLike,
        inverse_mass: ArrayLike,
        inverse_inertia: ArrayLike,
        velocity: ArrayLike,
        bias: ArrayLike | None = None,
        cohesion: ArrayLike | None = None,
        joints: dict[str, Any] | None = None,
        precision: str = "double",
    ):
        checks.choice("precision", precision, ("single", "double"))
        self.real = np.float32 if precision == "single" else np.float64
        self.normal = checks.array("normal", normal, (None, 3))
        n = len(self.normal)
        self.inverse_mass = checks.array("inverse_mass", inverse_mass, (None,))
        bodies = len(self.inverse_mass)
        self.inverse_inertia = checks.array("inverse_inertia", inverse_inertia, (bodies, 3, 3))
        self.velocity = checks.array("velocity", velocity, (bodies, 6))
        self.body_a, self.body_b = _bodies("body_a", body_a, n, bodies), _bodies("body_b", body_b, n, bodies)
        self.arm_a, self.arm_b = checks.array("arm_a", arm_a, (n, 3)), checks.array("arm_b", arm_b, (n, 3))
        self.friction = checks.array("friction", friction, (n,))
        self.bias = np.zeros((n, 3)) if bias is None else checks.array("bias", bias, (n, 3))
        self.cohesion = np.zeros(n) if cohesion is None else checks.array("cohesion", cohesion, (n,))
        for name, values in (("friction", self.friction), ("cohesion", self.cohesion), ("inverse_mass", self.inverse_mass)):
            if (values < 0).any():
                raise ValueError(f"{name} must not be negative, but {name}[{int(np.argmin(values))}] is {values.min():g}")
        lengths = np.linalg.norm(self.normal, axis=1)
        if (np.abs(lengths - 1) > 1e-6).any():
            raise ValueError(
                f"normal must have length 1, but row {int(np.argmax(np.abs(lengths - 1)))} has {lengths[np.argmax(np.abs(lengths - 1))]:g}"
            )
        still = (self.inverse_mass[self.body_a] == 0) & (self.inverse_mass[self.body_b] == 0)
        if still.any():
            raise ValueError(f"contact {int(np.argmax(still))} is between two immovable bodies")
        self.joints = _joint_arrays(joints, bodies)

    def __repr__(self) -> str:
        return formatting.call(self, contacts=len(self.normal), bodies=len(self.inverse_mass), joint_rows=len(self.joints["bias"]))

    @staticmethod
    def from_matrices(W: Any, q: ArrayLike, mu: ArrayLike) -> "MatrixConeProblem":
        """u = W r + q with contacts in blocks (N, T1, T2): W (3n, 3n) sparse or dense, q (3n,), mu (n,).

        W is replaced by its symmetric part: mechanics makes it symmetric, files hold it with rounding.
        """
        return MatrixConeProblem(W, q, mu)

    def prepare(self, friction: str) -> Any:
        """The problem in the form that solvers take, by the law of ``friction``: "cone" or "coulomb"."""
        return make_problem(self, friction == "coulomb")

    def solution(self, work: Any, outcome: Any, tolerance: float) -> Solution:
        """What a solver has left in the prepared problem."""
        frames = _frames(self.normal)
        u = self.bias + self._point_velocity(work, 1) - self._point_velocity(work, 0)
        impulse = work.impulse_of_contacts()
        return Solution(
            np.einsum("nij,nj->ni", frames, impulse),
            np.einsum("nij,nj->ni", frames, u),
            outcome.residual,
            outcome.residual_rms,
            outcome.iterations,
            outcome.residual <= tolerance,
            outcome.history,
            work.body_velocities(),
            np.array(work.joints.impulse),
        )

    def _point_velocity(self, work, side):
        v = work.body_velocities()[self.body_b if side else self.body_a].astype(float)
        return v[:, :3] + np.cross(v[:, 3:], self.arm_b if side else self.arm_a)


class MatrixConeProblem:
    """See ``ConeProblem.from_matrices``."""

    def __init__(self, W: Any, q: ArrayLike, mu: ArrayLike):
        self.mu = checks.array("mu", mu, (None,))
        n = 3 * len(self.mu)
        self.q = checks.array("q", q, (n,))
        self.W = scipy.sparse.csr_matrix(W, dtype=float)
        if self.W.shape != (n, n):
            raise ValueError(f"W must have shape ({n}, {n}) for {len(self.mu)} contacts, not {self.W.shape}")
        if not np.isfinite(self.W.data).all():
            raise ValueError("W must be finite")
        if (self.mu < 0).any():
            raise ValueError(f"mu must not be negative, but mu[{int(np.argmin(self.mu))}] is {self.mu.min():g}")
        self.W = (0.5 * (self.W + self.W.T)).tocsr()

    def __repr__(self) -> str:
        return formatting.call(self, contacts=len(self.mu))

    def objective(self, impulses: ArrayLike) -> float:
        """1/2 r W r + q r"""
        r = np.asarray(impulses, float).reshape(-1)
        return float(0.5 * r @ (self.W @ r) + self.q @ r)

    def prepare(self, friction: str) -> Any:
        """The problem in the form that solvers take, by the law of ``friction``: "cone" or "coulomb"."""
        return make_matrix_problem(self, friction == "coulomb")

    def solution(self, work: Any, outcome: Any, tolerance: float) -> Solution:
        """What a solver has left in the prepared problem."""
        u = self.W @ work.r + self.q
        return Solution(
            work.r.reshape(-1, 3).copy(),
            u.reshape(-1, 3),
            outcome.residual,
            outcome.residual_rms,
            outcome.iterations,
            outcome.residual <= tolerance,
            outcome.history,
        )


def _bodies(name, given, n, bodies):
    result = checks.array(name, given, (n,), dtype=np.int64)
    if n and (result.min() < 0 or result.max() >= bodies):
        raise ValueError(f"{name} must hold rows below {bodies}, not {result.min()} to {result.max()}")
    return result


def _joint_arrays(joints, bodies):
    joints = joints or {"body_a": [], "body_b": [], "jacobian": np.empty((0, 12)), "bias": []}
    for name in joints:
        checks.choice("key of joints", name, ("body_a", "body_b", "jacobian", "bias", "lower", "upper"))
    jacobian = checks.array("joints jacobian", joints["jacobian"], (None, 12))
    m = len(jacobian)
    return {
        "body_a": _bodies("joints body_a", joints["body_a"], m, bodies),
        "body_b": _bodies("joints body_b", joints["body_b"], m, bodies),
        "jacobian": jacobian,
        "bias": checks.array("joints bias", joints["bias"], (m,)),
        "lower": np.broadcast_to(np.asarray(joints.get("lower", -np.inf), float), m),
        "upper": np.broadcast_to(np.asarray(joints.get("upper", np.inf), float), m),
    }


def _frames(normals):
    """(n, 3, 3), rows n, u, w of each contact: u and w complete n to a right-handed frame (Duff et al. 2017)."""
    nx, ny, nz = normals.T
    sign = np.where(nz >= 0.0, 1.0, -1.0)
    a = -1.0 / (sign + nz)
    b = nx * ny * a
    u = np.stack([1.0 + sign * nx * nx * a, sign * b, -sign * nx], axis=1)
    return np.stack([normals, u, np.stack([b, sign + ny * ny * a, -ny], axis=1)], axis=1)
