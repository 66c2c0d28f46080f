"""FCLIB: friction-contact problems in HDF5, the exchange format of the Siconos collection.

``fclib_local`` holds u = W r + q. ``fclib_global`` holds M v = H r + f, u = H^T v + w, which becomes W = H^T M^-1 H and
q = H^T M^-1 f + w. Matrices are triplets (i row, p column), compressed columns or compressed rows, told apart by ``nz``
(-1 columns, -2 rows, else triplets). Contacts are blocks (N, T1, T2).
"""

import os

import h5py
import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from gravel.io.validate_file import DAMAGE, stored
from gravel.problem import ConeProblem, MatrixConeProblem


def load_fclib(path: str | os.PathLike) -> MatrixConeProblem:
    """A ``ConeProblem`` from an FCLIB file, local or global, in three dimensions."""
    try:
        file = h5py.File(path, "r")
    except FileNotFoundError:
        raise FileNotFoundError(f"no FCLIB file at {path}") from None
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{path} is not an HDF5 file ({error})") from None
    with file:
        try:
            if "fclib_local" in file:
                return _local(file["fclib_local"])
            if "fclib_global" in file:
                return _global(file["fclib_global"])
        except KeyError as error:
            raise ValueError(f"{path} is not a complete FCLIB file: {error.args[0]}") from None
        except DAMAGE as error:
            raise ValueError(f"{path} cannot be read as an FCLIB problem: {' '.join(str(error).split())}") from None
    raise ValueError(f"{path} holds neither fclib_local nor fclib_global: it is not an FCLIB file")


def _local(group):
    _three_dimensions(group)
    _no_constraints(group, "V", "R")
    offset = _vector(group, "q")
    return _problem(_matrix(group, "W", (len(offset), len(offset))), offset, _vector(group, "mu"))


def _global(group):
    _three_dimensions(group)
    _no_constraints(group, "G")
    force, offset = _vector(group, "f"), _vector(group, "w")
    mass, contact = _matrix(group, "M", (len(force), len(force))).tocsc(), _matrix(group, "H", (len(force), len(offset))).tocsc()
    inverse = scipy.sparse.linalg.splu(mass)
    response = np.column_stack([inverse.solve(np.asarray(contact[:, k].todense()).ravel()) for k in range(contact.shape[1])])
    return _problem(contact.T @ response, contact.T @ inverse.solve(force) + offset, _vector(group, "mu"))


def _problem(W, q, mu):
    problem = ConeProblem.from_matrices(W, q, mu)
    if not np.isfinite(problem.W.data).all():
        raise ValueError("W must be finite, but the sum of two of its numbers is not")
    return problem


def _three_dimensions(group):
    dimension = _number(group, "spacedim") if "spacedim" in group else 3
    if dimension != 3:
        raise ValueError(f"only problems in three dimensions are supported, this one has {dimension}")


def _no_constraints(group, *names):
    for name in names:
        if name in group and _number(group[name], "n") > 0:
            raise ValueError(f"problems with equality constraints (matrix {name}) are not supported")


def _number(group, name):
    return int(np.ravel(stored(group, name))[0])


def _vector(group, name):
    values = np.ravel(stored(group, f"vectors/{name}"))
    if not np.isfinite(values).all():
        raise ValueError(f"vector {name} must be finite")
    return values


def _matrix(group, name, shape):
    """A matrix whose shape the vectors tell. Its indices are looked at here: a wrong one would lead outside of arrays later."""
    group = group[name]
    size, kind = (_number(group, "m"), _number(group, "n")), _number(group, "nz")
    if size != shape:
        raise ValueError(f"matrix {name} must have the shape {shape} of its vectors, not {size}")
    i, p, x = (np.ravel(stored(group, part)) for part in ("i", "p", "x"))
    if i.dtype.kind not in "iu" or p.dtype.kind not in "iu" or not np.isfinite(x).all():
        raise ValueError(f"matrix {name} must have whole numbers for indices and finite ones in it")
    if kind in (-1, -2):
        along = _unpacked(p.astype(np.int64), shape[1] if kind == -1 else shape[0], min(len(i), len(x)), name)
        i, p, kind = (i, along, len(along)) if kind == -1 else (along, i, len(along))
    if not 0 <= kind <= min(len(i), len(p), len(x)):
        raise ValueError(f"nz of matrix {name} must be -1, -2 or the number of its triplets, not {kind}")
    return scipy.sparse.coo_matrix((x[:kind], (i[:kind], p[:kind])), shape=shape)  # refuses indices beyond its shape


def _unpacked(starts, lines, most, name):
    """The number of the column (or row) of each entry, from where each column starts."""
    counts = np.diff(starts)
    if len(starts) != lines + 1 or starts[0] != 0 or starts[-1] > most or (counts < 0).any():
        raise ValueError(f"p of matrix {name} must rise from 0 to at most {most} in {lines} steps")
    return np.repeat(np.arange(lines), counts)
