"""The blocks of a result that show shapes: ``surfaces`` of bodies that move and are no spheres, ``fixed`` ones, and ``planes``.

They are for ParaView and the like; gravel itself reads the bodies. What is fixed stands in the file once.
"""

import numpy as np

from gravel.cautions import warn
from gravel.io.blocks import ROOT, Block, Form, block_lengths
from gravel.io.surfaces import is_round, shown_as_points, squares, surfaces_of, vertices_needed

MOST_VERTICES, MOST_FIXED = 500_000, 5_000_000  # in a frame, unless all are asked for: 8 MB each time, and 100 MB once
ID, MATERIAL = {"id": ((), "i4")}, {"material": ((), "i4")}
FORMS = {
    "surfaces": Form({"Polygons": 3}, {"speed": ((), "f4"), **ID, **MATERIAL}, constant=("id", "material")),
    "fixed": Form({"Polygons": 3}, {**ID, **MATERIAL}, still=True),
    "planes": Form({"Polygons": 4, "Lines": 5}, {}, still=True),
}
CHOICES = (True, False, "auto")


class SurfaceBlocks:
    """Writes the surfaces of frames; a block is made when there is something in it for the first time."""

    def __init__(self, file, common, wanted="auto"):
        """``wanted``: True: surfaces of all bodies; "auto": as long as they have no more than MOST_VERTICES; False: none."""
        self.file, self.common, self.wanted, self.told = file, common, wanted, False
        self.blocks = {name: Block(file[ROOT], name, common, form) for name, form in FORMS.items() if name in file[ROOT]}
        self.meshes = {}

    def prepare(self, data, moves):
        """Make the surfaces of a frame; returns the bytes that they need. ``moves(rows)``: whether some bodies do."""
        if self.wanted is False:
            self.meshes = {}
            return 0
        solid = np.flatnonzero(~shown_as_points(data))
        moving = moves(solid)
        self.meshes = {
            "surfaces": self._surfaces(data, solid[moving], ("speed", "id", "material"), MOST_VERTICES),
            "fixed": self._surfaces(data, solid[~moving], ("id", "material"), MOST_FIXED),
            "planes": squares(data),
        }
        return sum(2 * (20 * len(points) + 4 * sum(map(np.size, cells.values()))) for points, _, cells in self.meshes.values())

    def _surfaces(self, data, rows, names, most):
        """(points, point data, corners) of some bodies; without points where they would have too many."""
        made = surfaces_of(data, rows, most if self.wanted == "auto" else None)
        if made is None:
            self._tell(data, rows, most)
            made = surfaces_of(data, rows[:0])
        values = {name: data[name][made.row] for name in names if name != "speed"}
        if "speed" in names:
            values["speed"] = np.linalg.norm(data["velocity"][made.row], axis=1)
        return made.points, values, {"Polygons": made.triangles}

    def _tell(self, data, rows, most):
        if not self.told:
            least = vertices_needed(data, rows)
            coarse = ", as coarse as can be" if is_round(data)[rows].any() else ""
            warn(
                f"{self.file.filename}: bodies are written as points only, for the surfaces of {len(rows)} bodies would have {least} "
                f"vertices in a frame{coarse}, more than {most}; surfaces=True (--surfaces) writes them, gravel export makes them "
                "later (surfaces=False, --no-surfaces: no such warning)",
            )
        self.told = True

    def write(self):
        """What was prepared becomes a frame."""
        for name, form in FORMS.items():
            nothing = np.zeros((0, 3), "f4"), dict.fromkeys(form.point_data, ()), dict.fromkeys(form.corners, ())
            mesh = self.meshes.get(name, nothing)
            if name not in self.blocks and len(mesh[0]):
                self.blocks[name] = Block(self.file[ROOT], name, self.common, form)
            if name in self.blocks:
                self.blocks[name].write(*mesh)

    def seal(self, frames):
        for block in self.blocks.values():
            block.seal(frames)


def surface_lengths(root, frames):
    """(array, rows that so many frames have in it), for the arrays of these blocks."""
    for name, form in FORMS.items():
        if name in root:
            yield from block_lengths(root[name], form, frames)
