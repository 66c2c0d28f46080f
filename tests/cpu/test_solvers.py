"""Solvers against an interior-point method, dense linear algebra and the laws themselves, on small random problems."""

import clarabel
import numba
import numpy as np
import pytest
import scipy.sparse

import gravel as gv
from gravel.cpu.solve.blocks import WIDTH
from gravel.cpu.solve.tiles import COLOURS, plan_blocks
from gravel.formulas.bounds import BALL, MOVES, OTHER
from gravel.host.arrays import Contacts
from gravel.host.threads import use_threads
from gravel.problem import _frames

SOLVERS = [gv.GaussSeidel, gv.Jacobi, gv.APGD, gv.BarzilaiBorwein]
MODES = ["cone", "coulomb"]


@pytest.fixture(autouse=True)
def one_thread():
    """The problems here are too small to share."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


def well_solved(solver, problem, friction="cone", iterations=20_000, tolerance=1e-10, **options):
    solution = solver(iterations=iterations, tolerance=tolerance, **options).solve(problem, friction=friction)
    assert solution.converged and solution.residual <= tolerance
    return solution


# --- independent solutions


def interior_point(W, q, mu, lower=(), upper=()):
    """min 1/2 x W x + q x; x holds contacts (N, T, T) in their cones, then rows within bounds."""
    rows, right, cones = [], [], []
    n = len(q)
    for c, friction in enumerate(mu):
        block = np.zeros((3, n))
        block[:, 3 * c : 3 * c + 3] = np.diag([-friction if friction > 0 else -1.0, -1.0, -1.0])
        rows.append(block)
        right.append(np.zeros(3))
        flat = [clarabel.NonnegativeConeT(1), clarabel.ZeroConeT(2)]
        cones += [clarabel.SecondOrderConeT(3)] if friction > 0 else flat
    for sign, bounds in ((1.0, upper), (-1.0, lower)):
        for k in np.flatnonzero(np.isfinite(bounds)).tolist():
            row = np.zeros((1, n))
            row[0, 3 * len(mu) + k] = sign
            rows.append(row)
            right.append([sign * bounds[k]])
            cones.append(clarabel.NonnegativeConeT(1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    quadratic, linear = scipy.sparse.csc_matrix(np.triu(W)), scipy.sparse.csc_matrix(np.vstack(rows))
    solver = clarabel.DefaultSolver(quadratic, q, linear, np.concatenate(right), cones, settings)
    return np.array(solver.solve().x)


def project(x, mu):
    """Nearest points (n, 3) in the cones |x_T| <= mu x_N, by cases."""
    normal, slip = x[:, 0], np.linalg.norm(x[:, 1:], axis=1)
    result = np.zeros_like(x)
    inside = slip <= mu * normal
    result[inside & (normal >= 0)] = x[inside & (normal >= 0)]
    on_edge = ~inside & (mu * slip + normal > 0)
    load = (normal + mu * slip)[on_edge] / (1 + mu[on_edge] ** 2)
    result[on_edge, 0] = load
    result[on_edge, 1:] = (mu[on_edge] * load / slip[on_edge])[:, None] * x[on_edge, 1:]
    return result


def residuals(x, u, mu, trace, friction):
    """|x - P(x - eta u)| / eta of each contact, eta = 3 / trace of its diagonal block."""
    eta, u = 3 / trace[:, None], u.copy()
    if friction == "coulomb":
        u[:, 0] += mu * np.linalg.norm(u[:, 1:], axis=1)
    return np.linalg.norm(x - project(x - eta * u, mu), axis=1) / eta[:, 0]


def traces(W):
    return np.trace(np.array([W[k : k + 3, k : k + 3] for k in range(0, len(W), 3)]), axis1=1, axis2=2)


def assert_coulomb(solution, mu, tolerance=1e-7):
    """Signorini's conditions and Coulomb's law, contact by contact."""
    for (rn, *rt), (un, *ut), friction in zip(solution.impulses, solution.velocities, mu):
        slip, push = np.linalg.norm(ut), np.linalg.norm(rt)
        assert rn >= 0 and un >= -tolerance and abs(rn * un) <= tolerance
        assert push <= friction * rn + tolerance
        if slip > 1e-5:  # slides: full friction against the slip
            assert np.allclose(np.array(rt) * slip, -friction * rn * np.array(ut), atol=tolerance)
        if push < friction * rn - 1e-5:
            assert slip <= tolerance


# --- random problems


def random_matrices(seed, contacts=6, bodies=8, mu=None):
    """W of rank 3 contacts from a random D and M; q such that about half of the contacts close."""
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(6 * bodies, 3 * contacts)) * (rng.random((6 * bodies, 3 * contacts)) < 0.4)
    W = D.T @ (D / rng.uniform(0.5, 2, 6 * bodies)[:, None]) + 0.05 * np.eye(3 * contacts)
    return W, rng.normal(size=3 * contacts), rng.uniform(0.1, 1.0, contacts) if mu is None else np.full(contacts, mu)


def random_contacts(seed, movable=6, contacts=10, mass=(0.5, 2.0)):
    """Arguments of a ConeProblem between movable bodies and one immovable, body 0; contacts of any arms and normals."""
    rng = np.random.default_rng(seed)
    bodies = movable + 1
    a = rng.integers(0, bodies, contacts)
    b = (a + rng.integers(1, bodies, contacts)) % bodies
    normal = rng.normal(size=(contacts, 3))
    inertia = np.zeros((bodies, 3, 3))
    for k in range(1, bodies):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        inertia[k] = turn @ np.diag(rng.uniform(1, 4, 3)) @ turn.T
    inverse_mass = np.concatenate([[0.0], 1 / rng.uniform(*mass, movable)])
    velocity = rng.normal(size=(bodies, 6))
    velocity[0] = 0
    return {
        "body_a": a,
        "body_b": b,
        "normal": normal / np.linalg.norm(normal, axis=1, keepdims=True),
        "arm_a": 0.5 * rng.normal(size=(contacts, 3)),
        "arm_b": 0.5 * rng.normal(size=(contacts, 3)),
        "friction": rng.uniform(0.1, 0.8, contacts),
        "inverse_mass": inverse_mass,
        "inverse_inertia": inertia * inverse_mass[:, None, None],
        "velocity": velocity,
        "bias": 0.2 * rng.normal(size=(contacts, 3)),
    }


def random_rows(seed, bodies, pairs):
    """Joint rows with random gradients between given pairs of bodies."""
    rng = np.random.default_rng(seed)
    a, b = np.array(pairs).T
    jacobian = rng.normal(size=(len(pairs), 12))
    return {"body_a": a, "body_b": b, "jacobian": jacobian, "bias": rng.normal(size=len(pairs))}


class Dense:
    """A ConeProblem's arguments as dense matrices: inverse mass, D of the contacts, J of the joint rows."""

    def __init__(self, arguments, joints=None):
        bodies, contacts = len(arguments["inverse_mass"]), len(arguments["normal"])
        self.frames = _frames(np.asarray(arguments["normal"], float))
        self.inverse = np.zeros((6 * bodies, 6 * bodies))
        for k in range(bodies):
            self.inverse[6 * k : 6 * k + 3, 6 * k : 6 * k + 3] = arguments["inverse_mass"][k] * np.eye(3)
            self.inverse[6 * k + 3 : 6 * k + 6, 6 * k + 3 : 6 * k + 6] = arguments["inverse_inertia"][k]
        self.D = np.zeros((6 * bodies, 3 * contacts))
        for c in range(contacts):
            for side, sign in (("a", -1.0), ("b", 1.0)):
                k, arm = 6 * arguments[f"body_{side}"][c], arguments[f"arm_{side}"][c]
                self.D[k : k + 3, 3 * c : 3 * c + 3] += sign * self.frames[c].T
                self.D[k + 3 : k + 6, 3 * c : 3 * c + 3] += sign * np.cross(arm, self.frames[c]).T
        rows = 0 if joints is None else len(joints["bias"])
        self.J = np.zeros((6 * bodies, rows))
        for k in range(rows):
            for side in range(2):
                at = 6 * joints["body_b" if side else "body_a"][k]
                self.J[at : at + 6, k] += joints["jacobian"][k, 6 * side : 6 * side + 6]
        self.velocity = np.ravel(arguments["velocity"])
        bias = arguments.get("bias", np.zeros((contacts, 3)))
        bias = np.einsum("nij,nj->ni", self.frames, bias).ravel()
        self.bias = np.concatenate([bias, [] if joints is None else joints["bias"]])
        self.G = np.hstack([self.D, self.J])
        self.W = self.G.T @ self.inverse @ self.G
        self.q = self.G.T @ self.velocity + self.bias
        self.mu = np.asarray(arguments["friction"], float)

    def velocities(self, x):
        return (self.velocity + self.inverse @ (self.G @ x)).reshape(-1, 6)

    def impulses_of(self, solution):
        return np.concatenate([solution.impulses.ravel(), solution.joint_impulses])

    def objective(self, x):
        return 0.5 * x @ self.W @ x + self.q @ x


def test_contact_frames_are_right_handed_with_the_normal_first():
    normals = np.concatenate([random_contacts(1)["normal"], np.eye(3), -np.eye(3)])
    frames = _frames(normals)
    assert np.allclose(frames[:, 0], normals)
    assert np.allclose(frames @ frames.transpose(0, 2, 1), np.eye(3), atol=1e-12)
    assert np.allclose(np.linalg.det(frames), 1.0)


# --- the cone model


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_matrix_problem_against_interior_point(solver, seed):
    W, q, mu = random_matrices(seed)
    solution = well_solved(solver, gv.ConeProblem.from_matrices(W, q, mu))
    expected = interior_point(W, q, mu)
    assert np.abs(expected).max() > 0.05
    assert np.allclose(solution.impulses.ravel(), expected, atol=1e-6)
    assert np.allclose(solution.velocities.ravel(), W @ expected + q, atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_array_problem_against_interior_point(solver, seed):
    arguments = random_contacts(seed)
    dense = Dense(arguments)
    solution = well_solved(solver, gv.ConeProblem(**arguments))
    expected = interior_point(dense.W, dense.q, dense.mu)
    assert np.abs(expected).max() > 0.1
    assert np.isclose(dense.objective(solution.impulses.ravel()), dense.objective(expected), rtol=1e-8)
    assert np.allclose(solution.body_velocities, dense.velocities(expected), atol=1e-6)
    assert np.allclose(solution.velocities.ravel(), dense.W @ expected + dense.q, atol=1e-6)


@pytest.mark.parametrize("friction", MODES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_array_problem_equals_its_matrix_problem(solver, friction):
    arguments = random_contacts(4)
    dense = Dense(arguments)
    arrays = well_solved(solver, gv.ConeProblem(**arguments), friction, tolerance=1e-8)
    matrices = well_solved(solver, gv.ConeProblem.from_matrices(dense.W, dense.q, dense.mu), friction, tolerance=1e-8)
    assert np.allclose(arrays.velocities, matrices.velocities, atol=1e-7)
    assert np.allclose(arrays.impulses, matrices.impulses, atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_body_velocities_follow_from_the_impulses(solver):
    arguments = random_contacts(5)
    dense = Dense(arguments)
    solution = solver(iterations=7).solve(gv.ConeProblem(**arguments))
    assert np.allclose(solution.body_velocities, dense.velocities(solution.impulses.ravel()), atol=1e-12)
    assert np.allclose(solution.velocities.ravel(), dense.W @ solution.impulses.ravel() + dense.q, atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_matrix_problem_takes_sparse_and_dense_and_slightly_unsymmetric_w(solver):
    W, q, mu = random_matrices(6)
    skew = 1e-3 * np.triu(np.ones_like(W), 1)
    matrices = (W, scipy.sparse.coo_matrix(W + skew - skew.T))
    plain, other = (well_solved(solver, gv.ConeProblem.from_matrices(m, q, mu)) for m in matrices)
    assert np.allclose(plain.impulses, other.impulses, atol=1e-8)


@pytest.mark.parametrize("friction", MODES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_frictionless_problem_against_interior_point(solver, friction):
    W, q, mu = random_matrices(7, mu=0.0)
    solution = well_solved(solver, gv.ConeProblem.from_matrices(W, q, mu), friction)
    assert np.allclose(solution.impulses.ravel(), interior_point(W, q, mu), atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("mass", [(1e-3, 1.0), (1.0, 100.0)])
def test_contacts_between_bodies_of_very_different_mass(solver, mass):
    arguments = random_contacts(8, mass=mass)
    dense = Dense(arguments)
    solution = well_solved(solver, gv.ConeProblem(**arguments), tolerance=1e-8, iterations=100_000)
    expected = interior_point(dense.W, dense.q, dense.mu)
    assert np.isclose(dense.objective(solution.impulses.ravel()), dense.objective(expected), rtol=1e-6)
    assert np.allclose(solution.velocities.ravel(), dense.W @ expected + dense.q, atol=1e-4)


# --- the residual, the cones, the history


@pytest.mark.parametrize("iterations", [1, 4, 200])
@pytest.mark.parametrize("friction", MODES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_residual_of_matrix_problem_is_that_of_the_returned_impulses(solver, friction, iterations):
    W, q, mu = random_matrices(9)
    solution = solver(iterations=iterations).solve(gv.ConeProblem.from_matrices(W, q, mu), friction=friction)
    assert np.allclose(solution.velocities.ravel(), W @ solution.impulses.ravel() + q, atol=1e-12)
    expected = residuals(solution.impulses, solution.velocities, mu, traces(W), friction)
    assert np.isclose(solution.residual, expected.max(), rtol=1e-6, atol=1e-13)
    assert np.isclose(solution.residual_rms, np.sqrt((expected**2).mean()), rtol=1e-6, atol=1e-13)


@pytest.mark.parametrize("iterations", [1, 4, 200])
@pytest.mark.parametrize("friction", MODES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_residual_of_array_problem_is_that_of_the_returned_impulses(solver, friction, iterations):
    arguments = random_contacts(10, movable=12, contacts=25)
    joints = random_rows(10, 13, [(0, 1), (2, 3), (3, 4)])
    dense = Dense(arguments, joints)
    solution = solver(iterations=iterations).solve(gv.ConeProblem(**arguments, joints=joints), friction=friction)
    u = dense.G.T @ solution.body_velocities.ravel() + dense.bias
    assert np.allclose(solution.velocities.ravel(), u[:75], atol=1e-12)
    contact_part = residuals(solution.impulses, solution.velocities, dense.mu, traces(dense.W[:75, :75]), friction)
    expected = np.concatenate([contact_part, np.abs(u[75:])])  # free joint rows: |x - (x - eta u)| / eta
    assert np.isclose(solution.residual, expected.max(), rtol=1e-6, atol=1e-13)
    assert np.isclose(solution.residual_rms, np.sqrt((expected**2).mean()), rtol=1e-6, atol=1e-13)


@pytest.mark.parametrize("iterations", [1, 3, 50])
@pytest.mark.parametrize("solver", SOLVERS)
def test_impulses_are_inside_their_cones_at_any_iteration(solver, iterations):
    arguments = random_contacts(11, movable=10, contacts=30)
    solution = solver(iterations=iterations).solve(gv.ConeProblem(**arguments))
    assert (solution.impulses[:, 0] >= -1e-14).all()
    slack = arguments["friction"] * solution.impulses[:, 0] - np.linalg.norm(solution.impulses[:, 1:], axis=1)
    assert slack.min() >= -1e-12


@pytest.mark.parametrize("friction", MODES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_history_ends_at_the_reported_residual(solver, friction):
    problem = gv.ConeProblem(**random_contacts(12))
    solution = solver(iterations=20_000, tolerance=1e-6).solve(problem, friction=friction, history=True)
    assert solution.converged
    assert len(solution.history) > 1
    assert solution.history[-1] == solution.residual
    assert solution.history[0] > 0.1 > 1e-6 >= solution.residual


@pytest.mark.parametrize("solver", SOLVERS)
def test_history_of_a_solve_that_runs_out_of_iterations_holds_the_reported_residual(solver):
    solution = solver(iterations=5).solve(gv.ConeProblem(**random_contacts(12)), history=True)
    assert not solution.converged
    assert solution.residual == min(solution.history)


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_history_is_kept_unless_asked_for(solver):
    assert solver(iterations=5).solve(gv.ConeProblem(**random_contacts(12))).history == []


@pytest.mark.parametrize("iterations", [1, 2, 5])
@pytest.mark.parametrize("solver", SOLVERS)
def test_no_more_iterations_than_allowed(solver, iterations):
    W, q, mu = random_matrices(13, contacts=30)
    assert solver(iterations=iterations).solve(gv.ConeProblem.from_matrices(W, q, mu)).iterations <= iterations


# --- Coulomb's law


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_coulomb_law_holds_for_matrix_problems(solver, seed):
    W, q, mu = random_matrices(seed)
    solution = well_solved(solver, gv.ConeProblem.from_matrices(W, q, mu), "coulomb", tolerance=1e-8)
    assert_coulomb(solution, mu)
    assert (np.linalg.norm(solution.velocities[:, 1:], axis=1) > 1e-3).any()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_coulomb_law_holds_for_array_problems(solver, seed):
    arguments = random_contacts(seed)
    assert_coulomb(well_solved(solver, gv.ConeProblem(**arguments), "coulomb", tolerance=1e-8), arguments["friction"])


def sliding_block(mu, vx=2.0, vz=-1.0, cohesion=0.0):
    """A body of 1 kg without inertia to speak of that meets the ground with speed (vx, 0, vz)."""
    return gv.ConeProblem(
        body_a=[0],
        body_b=[1],
        normal=[[0, 0, 1]],
        arm_a=np.zeros((1, 3)),
        arm_b=np.zeros((1, 3)),
        friction=[mu],
        inverse_mass=[0, 1],
        inverse_inertia=np.zeros((2, 3, 3)),
        velocity=[[0] * 6, [vx, 0, vz, 0, 0, 0]],
        cohesion=[cohesion],
    )


@pytest.mark.parametrize("solver", SOLVERS)
def test_sliding_block_loses_mu_times_the_normal_impulse_in_coulomb_mode(solver):
    solution = well_solved(solver, sliding_block(0.3), "coulomb")
    assert np.allclose(solution.body_velocities[1], (1.7, 0, 0, 0, 0, 0), atol=1e-9)
    assert np.allclose((solution.impulses[0, 0], np.linalg.norm(solution.impulses[0, 1:])), (1.0, 0.3), atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_sliding_block_lifts_off_by_mu_times_its_slip_in_cone_mode(solver):
    """The relaxation's known artefact: u_N = mu |u_T|."""
    solution = well_solved(solver, sliding_block(0.3), "cone")
    vx, _, vz = solution.body_velocities[1, :3]
    assert np.isclose(vz, 0.3 * vx, atol=1e-9)
    assert np.isclose(vz + 1.0, (1.0 + 0.3 * 2.0) / (1 + 0.3**2), atol=1e-9)  # the normal impulse


@pytest.mark.parametrize("friction", MODES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_sticking_block_stops_in_both_modes(solver, friction):
    solution = well_solved(solver, sliding_block(0.9, vx=0.5), friction)
    assert np.allclose(solution.body_velocities[1], 0, atol=1e-9)


@pytest.mark.parametrize("friction", MODES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("mu", [0.0, 0.3])
@pytest.mark.parametrize("vx", [0.0, 0.5])
def test_separating_block_feels_nothing(solver, friction, mu, vx):
    solution = solver(iterations=20).solve(sliding_block(mu, vx=vx, vz=1.0), friction=friction)
    assert np.array_equal(solution.impulses, np.zeros((1, 3)))
    assert np.array_equal(solution.body_velocities[1], [vx, 0, 1, 0, 0, 0])


@pytest.mark.parametrize("friction", MODES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("mu", [0.0, 0.3])
@pytest.mark.parametrize("slip", [0.0, 0.5])
def test_separating_contact_of_a_matrix_problem_feels_nothing(solver, friction, mu, slip):
    problem = gv.ConeProblem.from_matrices(np.eye(3), [1.0, slip, 0.0], [mu])
    solution = solver(iterations=20).solve(problem, friction=friction)
    assert np.array_equal(solution.impulses, np.zeros((1, 3)))


@pytest.mark.parametrize("solver", SOLVERS)
def test_pushed_and_separating_contacts_in_one_problem(solver):
    """Two contacts without any tangential part: the first closes, the second opens."""
    problem = gv.ConeProblem.from_matrices(np.eye(6), [-1.0, 0, 0, 1.0, 0, 0], [0.3, 0.3])
    solution = solver(iterations=200).solve(problem)
    assert np.allclose(solution.impulses, [[1, 0, 0], [0, 0, 0]], atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("cohesion, speed", [(0.4, 0.6), (2.0, 0.0)])
def test_cohesion_pulls_a_separating_block_up_to_its_limit(solver, cohesion, speed):
    solution = well_solved(solver, sliding_block(0.3, vx=0.0, vz=1.0, cohesion=cohesion))
    assert np.isclose(solution.body_velocities[1, 2], speed, atol=1e-9)
    assert np.isclose(solution.impulses[0, 0], speed - 1.0, atol=1e-9)


# --- joint rows


def no_contacts(movable, seed):
    arguments = random_contacts(seed, movable)
    empty = np.empty((0, 3))
    none = {"body_a": [], "body_b": [], "normal": empty, "arm_a": empty, "arm_b": empty, "friction": [], "bias": empty}
    return {**arguments, **none}


def ball_joint_rows(body_a, arm_a, body_b, arm_b, bias):
    """Three rows: the points at the two arms move alike."""
    skew = lambda r: np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])  # noqa: E731
    jacobian = np.hstack([-np.eye(3), skew(arm_a), np.eye(3), -skew(arm_b)])
    return {"body_a": [body_a] * 3, "body_b": [body_b] * 3, "jacobian": jacobian, "bias": bias}


def joined(*joints):
    return {name: np.concatenate([j[name] for j in joints]) for name in joints[0]}


def kkt_velocities(dense):
    """v and the rows' impulses x from M (v - v0) = J x, J^T v + b = 0, over the movable bodies."""
    movable = np.flatnonzero(np.diag(dense.inverse) > 0)
    mass, J = np.linalg.inv(dense.inverse[np.ix_(movable, movable)]), dense.J[movable]
    m = J.shape[1]
    system = np.block([[mass, -J], [J.T, np.zeros((m, m))]])
    fixed = np.setdiff1d(np.arange(len(dense.velocity)), movable)
    moved = dense.bias[-m:] + dense.J[fixed].T @ dense.velocity[fixed]
    solved = np.linalg.solve(system, np.concatenate([mass @ dense.velocity[movable], -moved]))
    velocity = dense.velocity.copy()
    velocity[movable] = solved[: len(movable)]
    return velocity.reshape(-1, 6), solved[len(movable) :]


@pytest.mark.parametrize("solver", SOLVERS)
def test_bodies_pinned_to_the_world_and_to_each_other_equal_the_dense_kkt_solution(solver):
    arguments = no_contacts(2, seed=14)
    pins = joined(
        ball_joint_rows(0, (0.2, 0, 0.1), 1, (0, -0.4, 0.3), (0.1, 0, -0.2)),
        ball_joint_rows(1, (0.3, 0.3, 0), 2, (-0.5, 0, 0.2), (0, 0.3, 0)),
    )
    expected, impulses = kkt_velocities(Dense(arguments, pins))
    solution = well_solved(solver, gv.ConeProblem(**arguments, joints=pins))
    assert np.allclose(solution.body_velocities, expected, atol=1e-7)
    assert np.allclose(solution.joint_impulses, impulses, atol=1e-7)
    assert np.abs(impulses).min() > 1e-3


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_to_a_moving_wall_carry_its_velocity_over(solver):
    arguments = no_contacts(1, seed=15)
    arguments["velocity"][0] = (0.5, -1.0, 0.25, 0.1, 0.2, -0.3)
    pin = ball_joint_rows(0, (0.2, 0, 0.1), 1, (0.3, 0.1, 0), (0, 0, 0))
    expected, _ = kkt_velocities(Dense(arguments, pin))
    solution = well_solved(solver, gv.ConeProblem(**arguments, joints=pin))
    assert np.allclose(solution.body_velocities, expected, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_contacts_and_joint_rows_together_against_interior_point(solver):
    arguments = random_contacts(16)
    joints = random_rows(16, 7, [(0, 1), (1, 2), (5, 3), (6, 0)])
    dense = Dense(arguments, joints)
    expected = interior_point(dense.W, dense.q, dense.mu)
    solution = well_solved(solver, gv.ConeProblem(**arguments, joints=joints))
    assert np.isclose(dense.objective(dense.impulses_of(solution)), dense.objective(expected), rtol=1e-8)
    assert np.allclose(solution.body_velocities, dense.velocities(expected), atol=1e-6)
    assert np.allclose(dense.J.T @ solution.body_velocities.ravel() + joints["bias"], 0, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_joint_rows_within_bounds_against_interior_point(solver):
    arguments = random_contacts(17)
    joints = random_rows(17, 7, [(0, 1), (1, 2), (5, 3), (6, 0)])
    lower, upper = np.array([-0.05, 0.0, -np.inf, -np.inf]), np.array([0.05, np.inf, 0.1, np.inf])
    dense = Dense(arguments, joints)
    expected = interior_point(dense.W, dense.q, dense.mu, lower, upper)
    solution = well_solved(solver, gv.ConeProblem(**arguments, joints={**joints, "lower": lower, "upper": upper}))
    assert (solution.joint_impulses >= lower - 1e-12).all() and (solution.joint_impulses <= upper + 1e-12).all()
    assert np.allclose(solution.body_velocities, dense.velocities(expected), atol=1e-6)
    assert np.allclose(solution.joint_impulses, expected[-4:], atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("limit, speed", [(1.0, 0.5), (3.0, 0.0)])
def test_brake_of_limited_impulse(solver, limit, speed):
    """A row along x on a body of 2 kg at 1.5 m/s stops it, as far as its bound allows."""
    row = {"body_a": [0], "body_b": [1], "jacobian": np.eye(12)[6:7], "bias": [0.0]}
    row |= {"lower": [-2.0 * limit], "upper": [2.0 * limit]}
    empty = np.empty((0, 3))
    problem = gv.ConeProblem(
        body_a=[],
        body_b=[],
        normal=empty,
        arm_a=empty,
        arm_b=empty,
        friction=[],
        inverse_mass=[0, 0.5],
        inverse_inertia=np.stack([np.zeros((3, 3)), np.eye(3)]),
        velocity=[[0] * 6, [1.5, 0, 0, 0, 0, 0]],
        joints=row,
    )
    solution = well_solved(solver, problem)
    assert np.isclose(solution.body_velocities[1, 0], speed, atol=1e-9)
    assert np.isclose(solution.joint_impulses[0], 2.0 * (speed - 1.5), atol=1e-9)


# --- hubs


def hub_arguments(contacts, fixed):
    """One heavy ball, body 0, that falls into a bowl of many others; these are fixed, or small and free."""
    rng = np.random.default_rng(18)
    normal = rng.normal(size=(contacts, 3))
    normal[:, 2] = -np.abs(normal[:, 2])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    inverse_mass = np.full(contacts + 1, 0.0 if fixed else 5.0)
    inverse_mass[0] = 0.1
    velocity = np.zeros((contacts + 1, 6))
    velocity[0] = (1.0, -0.5, -2.0, 0.3, 0.2, -0.4)
    velocity[1:] = 0 if fixed else -0.5 * np.hstack([normal, np.zeros_like(normal)])
    return {
        "body_a": np.zeros(contacts, int),
        "body_b": np.arange(1, contacts + 1),
        "normal": normal,
        "arm_a": normal,
        "arm_b": -0.2 * normal,
        "friction": rng.uniform(0.1, 0.8, contacts),
        "inverse_mass": inverse_mass,
        "inverse_inertia": 2.5 * inverse_mass[:, None, None] * np.eye(3),
        "velocity": velocity,
        "bias": rng.random((contacts, 1)) * normal,
    }


@pytest.mark.parametrize("solver", [gv.GaussSeidel, gv.APGD, gv.BarzilaiBorwein])
@pytest.mark.parametrize("fixed", [True, False], ids=["on fixed bodies", "on free bodies"])
def test_body_with_200_contacts_against_interior_point(solver, fixed):
    arguments = hub_arguments(200, fixed)
    dense = Dense(arguments)
    expected = interior_point(dense.W, dense.q, dense.mu)
    solution = well_solved(solver, gv.ConeProblem(**arguments), tolerance=1e-8)
    assert np.isclose(dense.objective(solution.impulses.ravel()), dense.objective(expected), rtol=1e-6)
    assert np.allclose(solution.body_velocities, dense.velocities(expected), atol=1e-5)


# --- precision and threads


@pytest.mark.parametrize("friction", MODES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_single_precision_is_close_to_double(solver, friction):
    arguments = random_contacts(19)
    joints = random_rows(19, 7, [(0, 1), (2, 3)])
    problems = (gv.ConeProblem(**arguments, joints=joints, precision=p) for p in ("single", "double"))
    single, double = (solver(iterations=5000, tolerance=1e-5).solve(problem, friction=friction) for problem in problems)
    assert single.converged
    assert np.allclose(single.body_velocities, double.body_velocities, atol=1e-3)
    assert np.allclose(single.velocities, double.velocities, atol=1e-3)


@pytest.mark.slow
def test_threads_do_not_change_a_bit():
    arguments = random_contacts(20, movable=3000, contacts=8000)
    tables = []
    for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
        use_threads(threads, threaded=threads > 1)
        tables.append([solver(iterations=10).solve(gv.ConeProblem(**arguments)).impulses for solver in SOLVERS])
    for one, two in zip(*tables):
        assert np.array_equal(one, two)


# --- the order of the contacts: tiles, colours, blocks


def planned(a, b, movable, tile_bodies, balls):
    """What plan_blocks makes of the contacts, which are put in tiles by their first body. ``balls``: which of the bodies are."""
    order = np.argsort(a // tile_bodies, kind="stable")
    a, b = a[order], b[order]
    bodies, n, tiles = len(movable), len(a), (len(movable) - 1) // tile_bodies + 1
    count = np.bincount(a // tile_bodies, minlength=tiles)
    start = np.concatenate([[0], np.cumsum(count)[:-1]])
    none, none3 = np.empty(0, np.int64), np.empty((0, 3))
    sides = a.astype(np.int32), b.astype(np.int32)
    contacts = Contacts(*sides, none, none3, none3, np.empty(0), start, count, none, none)
    tag = np.zeros((bodies, 4), np.int32)
    tag[:, MOVES] = np.where(movable, np.where(balls, BALL, OTHER), 0)
    slot, block_start = np.full(n, -1, np.int32), np.zeros((2, tiles + 2), np.int64)
    tile_order, colour_start = np.zeros(tiles + 1, np.int64), np.zeros(COLOURS + 2, np.int64)
    run, colours = plan_blocks(
        contacts,
        tag,
        bool(balls.any()),
        not balls.all(),
        np.zeros(bodies, np.int32),
        np.zeros(bodies, np.uint64),
        np.zeros(tiles, np.int32),
        np.zeros(n, np.uint8),
        slot,
        block_start,
        tile_order,
        colour_start,
    )
    return a, b, slot, block_start, tile_order[:run], colour_start[: colours + 1]


def check_plan(a, b, movable, tile_bodies, balls=None):
    balls = np.ones(len(movable), bool) if balls is None else balls
    a, b, slot, block_start, tile_order, colour_start = planned(a, b, movable, tile_bodies, balls)
    # each contact in one slot, within the blocks of its kind
    assert slot.min() >= 0 and slot.max() < block_start[1, -1] * WIDTH
    assert len(set(slot.tolist())) == len(slot)
    other = movable & ~balls
    assert np.array_equal(slot // WIDTH >= block_start[0, -1], other[a] | other[b])
    # no movable body twice in a block
    bodies, blocks = np.concatenate([a, b]), np.tile(slot // WIDTH, 2)
    seen = np.column_stack([blocks, bodies])[movable[bodies]]
    assert len(np.unique(seen, axis=0)) == len(seen)
    # every tile that has blocks runs once, and the blocks of tiles follow each other
    assert (np.diff(block_start) >= 0).all() and block_start[0, 0] == 0 and block_start[1, 0] == block_start[0, -1]
    assert sorted(tile_order.tolist()) == np.flatnonzero(np.diff(block_start).sum(axis=0)).tolist()
    assert colour_start[0] == 0 and colour_start[-1] == len(tile_order) and (np.diff(colour_start) > 0).all()
    # tiles of one colour share no movable body
    colour_of_tile = np.full(block_start.shape[1] - 1, -1)
    for colour in range(len(colour_start) - 1):
        colour_of_tile[tile_order[colour_start[colour] : colour_start[colour + 1]]] = colour
    ball_tile, general_tile = (np.searchsorted(start, slot // WIDTH, side="right") - 1 for start in block_start)
    tile = np.where(slot // WIDTH < block_start[0, -1], ball_tile, general_tile)
    touched = np.column_stack([np.tile(colour_of_tile[tile], 2), bodies, np.tile(tile, 2)])[movable[bodies]]
    touched = np.unique(touched, axis=0)
    assert len(np.unique(touched[:, :2], axis=0)) == len(touched)
    return block_start[0], colour_start


def random_graph(rng, bodies, contacts, reach):
    """Contacts between bodies whose numbers differ by up to ``reach``."""
    a = rng.integers(0, bodies, contacts)
    b = np.clip(a + rng.integers(1, reach + 1, contacts) * rng.choice([-1, 1], contacts), 0, bodies - 1)
    return a[a != b], b[a != b]


@pytest.mark.parametrize("tile_bodies", [16, 128, 512])
@pytest.mark.parametrize("reach", [5, 300])
def test_plan_of_random_contact_graphs(tile_bodies, reach):
    rng = np.random.default_rng(tile_bodies + reach)
    a, b = random_graph(rng, 2000, 6000, reach)
    movable = rng.random(2000) < 0.9
    keep = movable[a] | movable[b]
    check_plan(a[keep], b[keep], movable, tile_bodies)
    check_plan(a[keep], b[keep], movable, tile_bodies, rng.random(2000) < 0.7)
    check_plan(a[keep], b[keep], movable, tile_bodies, np.zeros(2000, bool))


def test_plan_with_a_floor_and_hubs():
    """A fixed body and two movable ones with hundreds of contacts each; the hubs also touch each other."""
    rng = np.random.default_rng(21)
    a, b = random_graph(rng, 1500, 3000, 20)
    partners = rng.choice(np.arange(3, 1500), (3, 400), replace=True)
    a = np.concatenate([a, [0] * 400, [1] * 400, partners[2], [1]])
    b = np.concatenate([b, partners[0], partners[1], [2] * 400, [2]])
    movable = np.arange(1500) != 0
    block_start, _ = check_plan(a, b, movable, 128)
    assert block_start[-1] > block_start[-2]  # the hubs' tile is in use
    check_plan(a, b, movable, 128, np.arange(1500) % 3 != 2)  # one of the hubs is no ball


def test_plan_where_tiles_run_out_of_colours():
    """Every tile touches every other, so that no 63 colours suffice."""
    rng = np.random.default_rng(22)
    a, b = random_graph(rng, 2400, 20_000, 2400)
    block_start, colour_start = check_plan(a, b, np.ones(2400, bool), 16)
    assert len(colour_start) - 1 == COLOURS
    assert block_start[-1] > block_start[-2]


def test_plan_of_a_star_of_one_movable_body_among_fixed_ones():
    a, b = np.zeros(200, int), np.arange(1, 201)
    block_start, _ = check_plan(a, b, np.arange(201) == 0, 64)
    assert block_start[-1] == 200  # one after the other


def test_plan_of_a_floor_below_free_bodies_fills_its_blocks():
    a, b = np.zeros(256, int), np.arange(1, 257)
    block_start, _ = check_plan(a, b, np.arange(257) > 0, 512)
    assert block_start[-1] == 256 // WIDTH


def test_plan_of_no_contacts():
    none = np.empty(0, int)
    _, _, slot, block_start, tile_order, colour_start = planned(none, none, np.ones(10, bool), 4, np.ones(10, bool))
    assert len(slot) == 0 and not block_start.any() and len(tile_order) == 0 and colour_start.tolist() == [0]
