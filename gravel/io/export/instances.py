"""Bodies as instances of a few meshes: which mesh, how it is scaled, and which colour it has.

In: the arrays of a frame (``gravel.io.vtkhdf.read_frame``). A mesh is named by a ``key``: the number of a kind of shape, whose mesh has the
sizes 1 and is scaled by those of the body; a capsule's also says how long it is for its radius; or the number of a geometry, or of one
that is a compound.
"""

import numpy as np

from gravel.io.triangles import SIDES, template
from gravel.shapes import BOX, CAPSULE, COMPOUND, CONE, CYLINDER, ELLIPSOID, SPHERE
from gravel.shapes.geometry import NONE

PALETTE = ("#66c2a5", "#fc8d62", "#8da0cb", "#e78ac3", "#a6d854", "#ffd92f", "#e5c494")  # of materials, as in pictures
SCALE = ("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725")  # from small to large
GREY = "#b8b8b8"  # of what forces cannot move, so that the others stand out
COLOURS = ("material", "speed", "radius")
KEYS = ("kind", "capsule", "geometry", "compound")


def linear(colour):
    """Red, green and blue from 0 to 1, in proportion to light, of a colour as web pages write it."""
    values = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4).tolist()


def keys_of(data):
    """(the keys that there are, (n,) which of them each body has)."""
    shaped, long = data["geometry"] != NONE, data["shape"] == CAPSULE
    what = np.where(shaped, 2 + (data["shape"] == COMPOUND), long.astype(int))
    ratio = np.round(data["extent"][:, 1].astype(float) / np.maximum(data["extent"][:, 0], 1e-30), 6)
    value = np.select([shaped, long], [data["geometry"], ratio], data["shape"])
    pairs, which = np.unique(np.stack([what, value], axis=1), axis=0, return_inverse=True)
    keys = [(KEYS[int(kind)], float(size) if kind == 1 else int(size)) for kind, size in pairs]
    return keys, which.reshape(-1)


def scales_of(data):
    """(n, 3) by which a body scales its mesh along its own axes."""
    extent, kind = data["extent"].astype(float), data["shape"]
    scale = np.repeat(extent[:, :1], 3, axis=1)  # spheres, capsules, geometries: all sizes by the first
    own = np.isin(kind, (ELLIPSOID, BOX)) & (data["geometry"] == NONE)
    scale[own] = extent[own]
    turned = np.isin(kind, (CYLINDER, CONE)) & (data["geometry"] == NONE)
    scale[turned, 2] = extent[turned, 1]
    return scale


def mesh_of(key, geometries, sides=SIDES[1]):
    """Vertices (v, 3) and triangles (t, 3) of a key's mesh."""
    what, value = key
    if what in ("geometry", "compound"):
        surface = geometries[value]
        return np.asarray(surface["vertices"], "f4"), np.asarray(surface["triangles"], "i4")
    kind = CAPSULE if what == "capsule" else value
    weights, triangles = template(kind, sides)
    sizes = np.array([1.0, value, 0.0] if what == "capsule" else [1.0, 1.0, 1.0])
    return (weights @ sizes).astype("f4"), triangles


def is_sphere(key):
    return key == ("kind", SPHERE)


class Palette:
    """The colours of bodies by material, or by a value in steps from the least to the largest of all frames."""

    def __init__(self, chosen):
        self.name, self.low, self.high = chosen.colour, 0.0, 0.0
        if self.name != "material":
            values = [self._values(data)[data["movable"] > 0] for _, data in chosen]
            self.low = min((float(v.min()) for v in values if len(v)), default=0.0)
            self.high = max((float(v.max()) for v in values if len(v)), default=0.0)

    @property
    def colours(self):
        return (*(PALETTE if self.name == "material" else SCALE), GREY)

    def numbers(self, data):
        """(n,) which of the colours each body has."""
        if self.name == "material":
            number = data["material"] % len(PALETTE)
        else:
            share = (self._values(data) - self.low) / max(self.high - self.low, 1e-30)
            number = np.clip(share * len(SCALE), 0, len(SCALE) - 1).astype(int)
        return np.where(data["movable"] > 0, number, len(self.colours) - 1)

    def _values(self, data):
        return np.linalg.norm(data["velocity"], axis=1) if self.name == "speed" else data["radius"]
