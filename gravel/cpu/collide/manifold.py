"""Contact points of two convex solids, compiled for the CPU: see ``gravel.formulas.manifold``."""

from gravel.formulas import manifold
from gravel.host.formulas import FORMS

_manifold = FORMS.of(manifold)
convex_convex, convex_plane = _manifold.convex_convex, _manifold.convex_plane
