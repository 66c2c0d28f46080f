"""Bodies as instances of a few meshes: which mesh, how it is scaled, and which colour it has.

In: the arrays of a frame (``gravel.io.vtkhdf.read_frame``). Meshes are named by keys:
("kind", number): of a kind of shape, with sizes 1, scaled by those of the body, as ``SCALING`` of its record says;
("proportions", number, lengths): of a kind of shape that is scaled as a whole, with these lengths for a bounding radius of 1;
("geometry", number), ("compound", number): of a geometry, or of one that is a compound.
"""

import numpy as np

from gravel.io.triangles import SIDES, lengths_of, template
from gravel.shapes import COMPOUND, SOLIDS, SPHERE
from gravel.shapes.geometry import NONE

PALETTE = ("#66c2a5", "#fc8d62", "#8da0cb", "#e78ac3", "#a6d854", "#ffd92f", "#e5c494")  # of materials, as in pictures
SCALE = ("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725")  # from small to large
GREY = "#b8b8b8"  # of what forces cannot move, so that the others stand out
COLOURS = ("material", "speed", "radius")
KEYS = ("kind", "proportions", "geometry", "compound")
SCALED_BY = {"first": (0, 0, 0), "axes": (0, 1, 2), "turned": (0, 0, 1)}  # the sizes by which a mesh is scaled along x, y and z


def linear(colour):
    """Red, green and blue from 0 to 1, in proportion to light, of a colour as web pages write it."""
    values = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4).tolist()


def keys_of(data):
    """(the keys that there are, (n,) which of them each body has)."""
    shaped, own = data["geometry"] != NONE, _by_proportions(data)
    rows = np.zeros((len(own), 6))
    rows[:, 0] = np.where(shaped, 2 + (data["shape"] == COMPOUND), own)
    rows[:, 1] = np.where(shaped, data["geometry"], data["shape"])
    lengths, radii = lengths_of(data["extent"][own].astype(float), data["radius"][own].astype(float)), data["radius"][own]
    rows[own, 2:] = np.round(lengths / np.maximum(radii, 1e-30)[:, None], 6)
    alike, which = np.unique(rows, axis=0, return_inverse=True)
    keys = [(KEYS[int(row[0])], int(row[1]), *([tuple(row[2:].tolist())] if row[0] == 1 else [])) for row in alike]
    return keys, which.reshape(-1)


def _by_proportions(data):
    """(n,) whether bodies of their kind have a mesh for each of their proportions."""
    kinds = [solid.KIND for solid in SOLIDS if solid.SCALING == "proportions"]
    return np.isin(data["shape"], kinds) & (data["geometry"] == NONE)


def scales_of(data):
    """(n, 3) by which a body scales its mesh along its own axes."""
    extent, simple = data["extent"].astype(float), data["geometry"] == NONE
    scale = np.repeat(extent[:, :1], 3, axis=1)  # geometries: all sizes by the first
    for solid in SOLIDS:
        rows = simple & (data["shape"] == solid.KIND)
        scale[rows] = data["radius"][rows, None] if solid.SCALING == "proportions" else extent[rows][:, SCALED_BY[solid.SCALING]]
    return scale


def mesh_of(key, geometries, sides=SIDES[1]):
    """Vertices (v, 3) and triangles (t, 3) of a key's mesh."""
    what, number = key[:2]
    if what in ("geometry", "compound"):
        surface = geometries[number]
        return np.asarray(surface["vertices"], "f4"), np.asarray(surface["triangles"], "i4")
    weights, triangles, _ = template(number, sides)
    lengths = np.array(key[2] if what == "proportions" else (1.0, 1.0, 1.0, 0.0))
    return (weights @ lengths[: weights.shape[2]]).astype("f4"), triangles


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
