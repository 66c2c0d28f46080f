"""Contact geometry of two shapes, compiled for the CPU; see ``gravel.formulas.pair_geometry`` and ``gravel.formulas.boxes``."""

import math

from numba import njit

from gravel.formulas import boxes, contact_rows, pair_geometry
from gravel.host.formulas import FORMS
from gravel.host.threads import INNER

MOST_POINTS, MOST_CORNERS = boxes.MOST_POINTS, boxes.MOST_CORNERS
write_contact = FORMS.of(contact_rows).write_contact
_simple = FORMS.of(pair_geometry)
between_spheres, sphere_plane, sphere_box = _simple.between_spheres, _simple.sphere_plane, _simple.sphere_box
ellipsoid_plane, box_plane, box_box = _simple.ellipsoid_plane, _simple.box_plane, FORMS.of(boxes).box_box


@njit(**INNER)
def parted(i, j):
    """A tiny vector between two balls in one place, by their ids. Were it the same for all, many of them would line up, each pushed by
    the last, and those at the ends fly off."""
    turn, x, y, z = 2.399963229728653, 0.0, 0.0, 0.0  # the golden angle: ids that follow each other point far apart
    for sign, k in ((-1.0, i), (1.0, j)):
        height = 2.0 * ((0.6180339887498949 * (k + 0.5)) % 1.0) - 1.0
        across = math.sqrt(1.0 - height * height)
        x, y, z = x + sign * across * math.cos(turn * k), y + sign * across * math.sin(turn * k), z + sign * height
    return 1e-100 * x, 1e-100 * y, 1e-100 * z
