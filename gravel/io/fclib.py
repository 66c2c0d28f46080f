"""FCLIB: friction-contact problems in HDF5, the exchange format of the Siconos collection.

``fclib_local`` holds u = W r + q. ``fclib_global`` holds M v = H r + f, u = H^T v + w, which becomes W = H^T M^-1 H and
q = H^T M^-1 f + w. Matrices are triplets (i row, p column), compressed columns or compressed rows, told apart by ``nz``
(-1 columns, -2 rows, else triplets). Contacts are blocks (N, T1, T2).
"""

import h5py
import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from gravel.problem import ConeProblem


def load_fclib(path):
    """A ``ConeProblem`` from an FCLIB file, local or global, in three dimensions."""
    try:
        file = h5py.File(path, "r")
    except FileNotFoundError:
        raise FileNotFoundError(f"no FCLIB file at {path}") from None
    except OSError as error:
        raise ValueError(f"{path} is not an HDF5 file ({error})") from None
    with file:
        try:
            if "fclib_local" in file:
                return _local(file["fclib_local"])
            if "fclib_global" in file:
                return _global(file["fclib_global"])
        except KeyError as error:
            raise ValueError(f"{path} is not a complete FCLIB file: {error.args[0]}") from None
    raise ValueError(f"{path} holds neither fclib_local nor fclib_global: it is not an FCLIB file")


def _local(group):
    _three_dimensions(group)
    _no_constraints(group, "V", "R")
    return ConeProblem.from_matrices(_matrix(group["W"]), np.ravel(group["vectors/q"]), np.ravel(group["vectors/mu"]))


def _global(group):
    _three_dimensions(group)
    _no_constraints(group, "G")
    mass, contact = _matrix(group["M"]).tocsc(), _matrix(group["H"]).tocsc()
    force, offset = np.ravel(group["vectors/f"]), np.ravel(group["vectors/w"])
    inverse = scipy.sparse.linalg.splu(mass)
    response = np.column_stack([inverse.solve(np.asarray(contact[:, k].todense()).ravel()) for k in range(contact.shape[1])])
    return ConeProblem.from_matrices(contact.T @ response, contact.T @ inverse.solve(force) + offset, np.ravel(group["vectors/mu"]))


def _three_dimensions(group):
    dimension = int(np.ravel(group["spacedim"])[0]) if "spacedim" in group else 3
    if dimension != 3:
        raise ValueError(f"only problems in three dimensions are supported, this one has {dimension}")


def _no_constraints(group, *names):
    for name in names:
        if name in group and int(np.ravel(group[name]["n"])[0]) > 0:
            raise ValueError(f"problems with equality constraints (matrix {name}) are not supported")


def _matrix(group):
    rows, columns = int(np.ravel(group["m"])[0]), int(np.ravel(group["n"])[0])
    kind = int(np.ravel(group["nz"])[0])
    i, p, x = (np.ravel(group[name]) for name in ("i", "p", "x"))
    if kind == -1:
        return scipy.sparse.csc_matrix((x, i, p), shape=(rows, columns))
    if kind == -2:
        return scipy.sparse.csr_matrix((x, i, p), shape=(rows, columns))
    return scipy.sparse.coo_matrix((x[:kind], (i[:kind], p[:kind])), shape=(rows, columns))
