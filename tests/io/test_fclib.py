"""FCLIB problems: optimum, residual and cones against reference data; reading of the file format."""

import json
import pathlib
import time

import h5py
import numba
import numpy as np
import pytest
import scipy.sparse

import gravel as gv

FOLDER = pathlib.Path(__file__).parents[2] / "../shared/data/fclib"
OPTIMA = json.loads((FOLDER / "ccp_optimum.json").read_text()) if FOLDER.is_dir() else {}
NAMES = sorted(OPTIMA) or ["none"]

needs_data = pytest.mark.skipif(not FOLDER.is_dir(), reason="the reference data ../shared/data/fclib is not here")


@pytest.fixture(autouse=True)
def one_thread():
    """The problems here are too small to share."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


def residual(problem, solution, friction):
    """Design, section 4, in NumPy: max |r - P(r - eta u)| / eta with eta = 3 / trace of the diagonal block."""
    r, u, mu = solution.impulses, (problem.W @ solution.impulses.ravel() + problem.q).reshape(-1, 3), problem.mu
    eta = 3 / problem.W.diagonal().reshape(-1, 3).sum(axis=1)
    if friction == "coulomb":
        u[:, 0] += mu * np.linalg.norm(u[:, 1:], axis=1)
    x = r - eta[:, None] * u
    normal, slip = x[:, 0], np.linalg.norm(x[:, 1:], axis=1)
    load = np.maximum((normal + mu * slip) / (1 + mu**2), 0)
    keep = np.where(slip > 0, mu * load / np.maximum(slip, 1e-300), 0)
    edge = np.column_stack([load, keep[:, None] * x[:, 1:]])
    projected = np.where((slip <= mu * normal)[:, None], x, edge)
    return (np.linalg.norm(r - projected, axis=1) / eta).max()


def solved(name, solver, friction):
    """The problem and its solution to 1e-6 of |q|."""
    problem = gv.load_fclib(FOLDER / name)
    size = OPTIMA[name]["q_norm"]
    return problem, solver(iterations=20_000, tolerance=1e-6 * size).solve(problem, friction=friction), size


@needs_data
@pytest.mark.parametrize("name", NAMES)
def test_sizes_and_offsets_are_those_of_the_reference(name):
    problem = gv.load_fclib(FOLDER / name)
    assert len(problem.mu) == OPTIMA[name]["contacts"]
    assert np.isclose(np.linalg.norm(problem.q), OPTIMA[name]["q_norm"], rtol=1e-9)
    assert abs(problem.W - problem.W.T).max() == 0


@needs_data
@pytest.mark.parametrize("solver", [gv.APGD, gv.GaussSeidel])
@pytest.mark.parametrize("name", NAMES)
def test_cone_mode_reaches_the_optimum(name, solver):
    problem, solution, size = solved(name, solver, "cone")
    optimum = OPTIMA[name]["ccp_optimum"]
    assert abs(problem.objective(solution.impulses) - optimum) <= 1e-6 * abs(optimum)
    assert solution.residual <= 1e-4 * size
    assert np.isclose(residual(problem, solution, "cone"), solution.residual, rtol=1e-3)


@needs_data
@pytest.mark.parametrize("friction", ["cone", "coulomb"])
@pytest.mark.parametrize("solver", [gv.APGD, gv.GaussSeidel])
@pytest.mark.parametrize("name", NAMES)
def test_impulses_are_inside_their_cones(name, solver, friction):
    problem = gv.load_fclib(FOLDER / name)
    r = solver(iterations=30).solve(problem, friction=friction).impulses
    scale = np.abs(r).max()
    assert scale > 0
    assert (r[:, 0] >= -1e-14 * scale).all()
    assert (np.linalg.norm(r[:, 1:], axis=1) <= problem.mu * r[:, 0] + 1e-12 * scale).all()


@needs_data
@pytest.mark.parametrize("solver", [gv.APGD, gv.GaussSeidel])
@pytest.mark.parametrize("name", NAMES)
def test_coulomb_mode_converges(name, solver):
    problem, solution, size = solved(name, solver, "coulomb")
    assert solution.converged
    assert solution.residual <= 1e-4 * size
    assert np.isclose(residual(problem, solution, "coulomb"), solution.residual, rtol=1e-3)
    u = solution.velocities
    assert u[:, 0].min() >= -1e-4 * size  # nothing sinks in
    assert np.abs(solution.impulses[:, 0] * u[:, 0]).max() <= 1e-3 * size * np.abs(solution.impulses).max()


# --- the format, with files of our own


W = np.array([[4.0, 1, 0, 0.5, 0, 0], [1, 3, 0, 0, 0, 0.25], [0, 0, 2, 0, 0, 0]])
W = np.vstack([W, [[0.5, 0, 0, 5, 1, 0], [0, 0, 0, 1, 4, 0], [0, 0.25, 0, 0, 0, 3]]])
Q, MU = np.array([-1.0, 0.5, 0, -2, 0, 0.3]), np.array([0.3, 0.7])


def write_matrix(group, matrix, layout):
    matrix = scipy.sparse.csc_matrix(matrix)
    group["m"], group["n"], group["nzmax"] = [matrix.shape[0]], [matrix.shape[1]], [matrix.nnz]
    if layout == "triplets":
        matrix = matrix.tocoo()
        group["nz"], group["i"], group["p"], group["x"] = [matrix.nnz], matrix.row, matrix.col, matrix.data
    else:
        matrix = matrix.tocsr() if layout == "rows" else matrix
        group["nz"] = [-2 if layout == "rows" else -1]
        group["i"], group["p"], group["x"] = matrix.indices, matrix.indptr, matrix.data


def write_local(path, layout="columns", dimension=3, leave_out=None):
    with h5py.File(path, "w") as file:
        write_matrix(file.create_group("fclib_local/W"), W, layout)
        file["fclib_local/spacedim"] = [dimension]
        for name, values in (("q", Q), ("mu", MU)):
            if name != leave_out:
                file[f"fclib_local/vectors/{name}"] = values


@pytest.mark.parametrize("layout", ["triplets", "columns", "rows"])
def test_local_problem_in_each_matrix_layout(tmp_path, layout):
    write_local(tmp_path / "local.hdf5", layout)
    problem = gv.load_fclib(tmp_path / "local.hdf5")
    assert np.array_equal(problem.W.toarray(), W)
    assert np.array_equal(problem.q, Q) and np.array_equal(problem.mu, MU)


@pytest.mark.parametrize("layout", ["triplets", "columns", "rows"])
def test_global_problem_is_reduced_to_the_contacts(tmp_path, layout):
    """M v = H r + f, u = H^T v + w."""
    rng = np.random.default_rng(1)
    M = np.diag(rng.uniform(1, 3, 9)) + 0.1
    H, f, w = rng.normal(size=(9, 6)) * (rng.random((9, 6)) < 0.6), rng.normal(size=9), rng.normal(size=6)
    with h5py.File(tmp_path / "global.hdf5", "w") as file:
        write_matrix(file.create_group("fclib_global/M"), M, layout)
        write_matrix(file.create_group("fclib_global/H"), H, layout)
        for name, values in (("f", f), ("w", w), ("mu", MU)):
            file[f"fclib_global/vectors/{name}"] = values
    problem = gv.load_fclib(tmp_path / "global.hdf5")
    r = rng.normal(size=6)
    u = H.T @ np.linalg.solve(M, H @ r + f) + w
    assert np.allclose(problem.W @ r + problem.q, u, atol=1e-12)


def test_unsymmetric_w_is_replaced_by_its_symmetric_part(tmp_path):
    with h5py.File(tmp_path / "local.hdf5", "w") as file:
        skew = np.triu(np.full((6, 6), 1e-3), 1)
        write_matrix(file.create_group("fclib_local/W"), W + skew - skew.T, "columns")
        file["fclib_local/vectors/q"], file["fclib_local/vectors/mu"] = Q, MU
    assert np.allclose(gv.load_fclib(tmp_path / "local.hdf5").W.toarray(), W, atol=1e-15)


# --- errors


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.hdf5"):
        gv.load_fclib(tmp_path / "nowhere.hdf5")


@pytest.mark.parametrize("content", [b"", b"solid cube\n", b"\x89HDF\r\n\x1a\n"], ids=["empty", "text", "cut off"])
def test_file_that_is_not_hdf5_is_refused(tmp_path, content):
    (tmp_path / "wrong.hdf5").write_bytes(content)
    with pytest.raises(ValueError, match="wrong.hdf5 is not an HDF5 file"):
        gv.load_fclib(tmp_path / "wrong.hdf5")


def test_hdf5_without_the_groups_is_refused(tmp_path):
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["positions"] = np.zeros((3, 3))
    with pytest.raises(ValueError, match="other.hdf5 holds neither fclib_local nor fclib_global"):
        gv.load_fclib(tmp_path / "other.hdf5")


@pytest.mark.parametrize("name", ["q", "mu"])
def test_incomplete_file_is_refused(tmp_path, name):
    write_local(tmp_path / "part.hdf5", leave_out=name)
    with pytest.raises(ValueError, match="part.hdf5 is not a complete FCLIB file"):
        gv.load_fclib(tmp_path / "part.hdf5")


def test_file_without_the_matrix_is_refused(tmp_path):
    with h5py.File(tmp_path / "part.hdf5", "w") as file:
        file["fclib_local/vectors/q"], file["fclib_local/vectors/mu"] = Q, MU
    with pytest.raises(ValueError, match="part.hdf5 is not a complete FCLIB file"):
        gv.load_fclib(tmp_path / "part.hdf5")


def test_two_dimensional_problem_is_refused(tmp_path):
    write_local(tmp_path / "flat.hdf5", dimension=2)
    with pytest.raises(ValueError, match="three dimensions"):
        gv.load_fclib(tmp_path / "flat.hdf5")


@pytest.mark.parametrize("kind", ["local", "global"])
def test_equality_constraints_are_not_ignored_in_silence(tmp_path, kind):
    """V, R of a local and G of a global problem hold joints; without them it is another problem."""
    with h5py.File(tmp_path / "joints.hdf5", "w") as file:
        group = file.create_group(f"fclib_{kind}")
        if kind == "local":
            write_matrix(group.create_group("W"), W, "columns")
            write_matrix(group.create_group("V"), np.ones((6, 1)), "columns")
            write_matrix(group.create_group("R"), np.ones((1, 1)), "columns")
            vectors = {"q": Q, "mu": MU, "s": np.ones(1)}
        else:
            write_matrix(group.create_group("M"), np.eye(6), "columns")
            write_matrix(group.create_group("H"), np.eye(6), "columns")
            write_matrix(group.create_group("G"), np.ones((6, 1)), "columns")
            vectors = {"f": Q, "w": Q, "mu": MU, "b": np.ones(1)}
        for name, values in vectors.items():
            group[f"vectors/{name}"] = values
    with pytest.raises(ValueError, match="constraint|joint|bilateral|equalit"):
        gv.load_fclib(tmp_path / "joints.hdf5")


def compare_sweeps():
    """What momentum saves: sweeps and seconds to a residual of 1e-6 m/s, plain and with it."""
    for name, friction in ((name, friction) for name in NAMES for friction in ("cone", "coulomb")):
        problem = gv.load_fclib(FOLDER / name)
        for momentum in (0.0, 0.9):
            solver = gv.GaussSeidel(iterations=20_000, tolerance=1e-6, momentum=momentum, check_every=10)
            solver.solve(problem, friction=friction)  # compiles
            begin = time.perf_counter()
            solution = solver.solve(problem, friction=friction)
            seconds = time.perf_counter() - begin
            print(f"{name} {friction} momentum {momentum}: {solution.iterations} sweeps, {seconds:.3g} s, {solution.residual:.1e} m/s")


if __name__ == "__main__":
    compare_sweeps()
