"""Convex solids, compiled for the CPU: see ``gravel.formulas.solids``."""

import numpy as np

from gravel.cpu.formulas import FORMS
from gravel.formulas import solids
from gravel.formulas.solids import Hulls, Solid

__all__ = ["Hulls", "Solid", "hulls_of", "solid_of"]

solid_of = FORMS.of(solids).solid_of


def hulls_of(library):
    """The hulls of a library."""
    starts = library.neighbour_start + np.int32(len(library.neighbour_start))
    links = np.concatenate([starts, library.neighbours]).astype(np.int32)
    faces = library.first_face, library.face_start, library.face_corners, library.face_normals
    return Hulls(library.first_vertex, library.vertices, links, *faces)
