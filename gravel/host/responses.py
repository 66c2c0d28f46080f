"""Responses of contacts (``gravel.formulas.responses``) between bodies whose inverse inertia stands in rows of eight, world frame."""

from numba import njit

from gravel.formulas import responses
from gravel.host.formulas import FORMS
from gravel.host.threads import INNER
from gravel.host.vectors import tangents

_formulas = FORMS.of(responses)
response_to, turning_response = _formulas.response_to, _formulas.turning_response
bounded_responses, twist_response = _formulas.contact_responses, _formulas.twist_response


@njit(**INNER)
def inertia_of(inertia, body):
    """xx xy xz yy yz zz"""
    k = 8 * body
    return inertia[k], inertia[k + 1], inertia[k + 2], inertia[k + 3], inertia[k + 4], inertia[k + 5]


@njit(**INNER)
def contact_responses(inertia, mass, a, b, n, arm_a, arm_b):
    """(normal, tangential, residual's eta, twist) of a contact between any two bodies, see ``gravel.formulas.responses``."""
    ux, uy, uz, wx, wy, wz = tangents(n[0], n[1], n[2])
    ja, jb = inertia_of(inertia, a), inertia_of(inertia, b)
    normal, across, trace = bounded_responses(mass, ja, jb, arm_a, arm_b, n, (ux, uy, uz), (wx, wy, wz))
    return normal, across, 3.0 / trace, twist_response(ja, jb)
