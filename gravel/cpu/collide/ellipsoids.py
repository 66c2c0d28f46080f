"""Two ellipsoids, compiled for the CPU; see ``gravel.formulas.ellipsoids``."""

from gravel.formulas import ellipsoids
from gravel.formulas.ellipsoids import DIRECT, METHOD_1, METHOD_2
from gravel.host.formulas import FORMS

_formulas = FORMS.of(ellipsoids)
between_ellipsoids, ellipsoid_ellipsoid = _formulas.between_ellipsoids, _formulas.ellipsoid_ellipsoid

__all__ = ["DIRECT", "METHOD_1", "METHOD_2", "between_ellipsoids", "ellipsoid_ellipsoid"]
