"""Convex solids, compiled for the CPU: see ``gravel.formulas.solids``."""

from gravel.formulas import solids
from gravel.formulas.solids import Hulls, Solid
from gravel.host.formulas import FORMS
from gravel.shapes.geometry import links_of

__all__ = ["Hulls", "Solid", "hulls_of", "solid_of"]

solid_of = FORMS.of(solids).solid_of


def hulls_of(library):
    """The hulls of a library."""
    faces = library.first_face, library.face_start, library.face_corners, library.face_normals
    return Hulls(library.first_vertex, library.vertices, links_of(library), *faces)
