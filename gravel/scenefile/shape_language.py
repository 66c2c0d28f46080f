"""The part of the table of scene files that is about shapes and how bodies are turned."""

from gravel.scenefile.records import Key, Kinds, Record
from gravel.scenefile.values import Either, Many, Name, Number, Text, Vector, Whole, YesNo
from gravel.shapes import SOLIDS, Plane

SIZE = Number("m", above=0.0)
TABLE_ENDINGS = (".csv", ".npz")
LENGTHS = Either((SIZE, Vector(2, "m", above=0.0)))

ROTATION = Record(
    "rotation",
    "A turn, given in one of three ways.",
    {
        "quaternion": Key(Vector(4, direction=True), "(w, x, y, z)"),
        "axis": Key(Vector(3, direction=True), "axis of the turn, with angle"),
        "angle": Key(Number("degrees"), "right-handed about the axis"),
        "euler": Key(Vector(3, "degrees"), "turns about x, then y, then z of the world"),
    },
    (("quaternion",), ("axis", "angle"), ("euler",)),
)

CENTRED = Key(YesNo(), "its coordinates are those of its centre of mass and principal axes already", default=False)
SCALE = Key(Number(above=0.0), "factor for all lengths", default=1)
MESH_FILE = Key(Text("a mesh file (.stl, .ply, .obj ...), or .npz with the arrays"), "beside the scene file")


def _shape(name, doc, ways=(), **keys):
    return Record(f"shape {name}", doc, keys, ways)


def _sized(solid):
    """The keys of a shape that its sizes describe."""
    kind_of = lambda size: SIZE if size.columns == 1 else Vector(size.columns, "m", above=0.0)  # noqa: E731
    return _shape(solid.NAME, solid.SAYS, **{size.name: Key(kind_of(size), size.says, required=True) for size in solid.SIZES})


SHAPE = Kinds(
    "shape",
    "What a body looks like.",
    {
        **{solid.NAME: _sized(solid) for solid in SOLIDS},
        "plane": _shape(
            "plane",
            Plane.SAYS,
            normal=Key(Vector(3, direction=True), "points out of it", default=[0, 0, 1]),
            offset=Key(Number("m"), "along the normal", default=0),
        ),
        "hull": _shape(
            "hull",
            "The convex hull of points.",
            (("points",), ("file",)),
            points=Key(Many(Vector(3, "m"), 4), "the points"),
            file=MESH_FILE,
            scale=SCALE,
            centred=CENTRED,
        ),
        "mesh": _shape(
            "mesh",
            "A surface of triangles.",
            (("vertices", "triangles"), ("file",)),
            vertices=Key(Many(Vector(3, "m"), 3), "its corners"),
            triangles=Key(Many(Many(Whole(0), 3, 3), 1), "three vertices each, counted from 0, counter-clockwise from outside"),
            file=MESH_FILE,
            scale=SCALE,
            sheet=Key(YesNo(), "a thin sheet that stops bodies from both sides, such as a drum", default=False),
            repair=Key(YesNo(), "put right what is wound the wrong way, fill small holes", default=False),
            centred=CENTRED,
        ),
        "height_field": _shape(
            "height field",
            "Ground, fixed: heights on a grid over x and y.",
            (("heights",), ("file",)),
            heights=Key(Many(Many(Number("m"), 2), 2), "a row for each x, a number in it for each y"),
            file=Key(Text("a table", TABLE_ENDINGS), "the same in a file beside the scene file (.npz: heights)"),
            spacing=Key(LENGTHS, "of the grid, one or along x and y", required=True),
            origin=Key(Vector(2, "m"), "x and y of the first height", default="the middle is at 0, 0"),
        ),
        "clump": _shape(
            "clump",
            "Overlapping spheres, as one body.",
            (("positions", "radii"), ("file",)),
            positions=Key(Many(Vector(3, "m"), 1), "centres of the spheres"),
            radii=Key(Either((SIZE, Many(SIZE, 1))), "one for all, or one each"),
            file=Key(Text("a mesh file"), "a closed mesh that is filled with spheres"),
            spheres=Key(Whole(1), "with file: at most so many", default=50),
            radius=Key(SIZE, "with file: of all spheres"),
            resolution=Key(Whole(8), "with file: voxels along the longest side", default=40),
            scale=SCALE,
            centred=CENTRED,
        ),
        "compound": _shape(
            "compound",
            "Several shapes, as one body.",
            items=Key(None, "the shapes and their places", required=True),  # type: ignore[arg-type]  # below: it holds shapes itself
            scale=SCALE,
            centred=CENTRED,
        ),
    },
    Name("shape", tuple(solid.NAME for solid in SOLIDS)),
)
_PART = Record(
    "part",
    "A shape in a compound.",
    {
        "shape": Key(SHAPE, "convex, or itself a compound", required=True),
        "position": Key(Vector(3, "m"), "of the part", default=[0, 0, 0]),
        "rotation": Key(ROTATION, "of the part"),
        "relative_density": Key(Number(above=0.0), "times the density of the material", default=1),
    },
)
SHAPE.kinds["compound"].keys["items"] = Key(Many(_PART, 1), "the shapes and their places", required=True)
