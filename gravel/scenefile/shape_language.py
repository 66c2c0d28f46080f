"""The part of the table of scene files for shapes and rotations."""

from gravel.scenefile.records import Key, Kinds, Record
from gravel.scenefile.values import Angle, Either, Many, Name, Number, Text, Vector, Whole, YesNo
from gravel.shapes import SOLIDS, Plane

SIZE = Number("m", above=0.0)
TABLE_ENDINGS = (".csv", ".npz")
LENGTHS = Either((SIZE, Vector(2, "m", above=0.0)))

ROTATION = Record(
    "rotation",
    "A rotation, given in one of three ways.",
    {
        "quaternion": Key(Vector(4, direction=True), "(w, x, y, z)"),
        "axis": Key(Vector(3, direction=True), "rotation axis, with angle"),
        "angle": Key(Angle(), "right-handed angle about the axis"),
        "euler": Key(Many(Angle(), 3, 3), "rotations about x, then y, then z of the world"),
    },
    (("quaternion",), ("axis", "angle"), ("euler",)),
)

CENTRED = Key(YesNo(), "the coordinates already refer to centre of mass and principal axes", default=False)
SCALE = Key(Number(above=0.0), "factor for all lengths", default=1)
MESH_FILE = Key(Text("a mesh file (.stl, .ply, .obj, .step ...), or .npz with the arrays"), "mesh file beside the scene file")


def _shape(name, doc, ways=(), **keys):
    return Record(f"shape {name}", doc, keys, ways)


def _sized(solid):
    """The keys of a shape that its sizes describe."""
    kind_of = lambda size: SIZE if size.columns == 1 else Vector(size.columns, "m", above=0.0)  # noqa: E731
    return _shape(solid.NAME, solid.SAYS, **{size.name: Key(kind_of(size), size.says, required=True) for size in solid.SIZES})


SHAPE = Kinds(
    "shape",
    "The shape of a body.",
    {
        **{solid.NAME: _sized(solid) for solid in SOLIDS},
        "plane": _shape(
            "plane",
            Plane.SAYS,
            normal=Key(Vector(3, direction=True), "outward normal", default=[0, 0, 1]),
            offset=Key(Number("m"), "offset along the normal", default=0),
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
            vertices=Key(Many(Vector(3, "m"), 3), "vertices"),
            triangles=Key(Many(Many(Whole(0), 3, 3), 1), "three vertices each, counted from 0, counter-clockwise from outside"),
            file=MESH_FILE,
            scale=SCALE,
            sheet=Key(YesNo(), "open surface that collides on both sides, such as a drum", default=False),
            repair=Key(YesNo(), "correct inverted triangles and fill small holes", default=False),
            centred=CENTRED,
        ),
        "height_field": _shape(
            "height field",
            "Fixed terrain: heights on a grid over x and y.",
            (("heights",), ("file",)),
            heights=Key(Many(Many(Number("m"), 2), 2), "one row for each x, with one number for each y"),
            file=Key(Text("a table", TABLE_ENDINGS), "the same in a file beside the scene file (.npz: heights)"),
            spacing=Key(LENGTHS, "spacing of the grid, one number or along x and y", required=True),
            origin=Key(Vector(2, "m"), "x and y of the first height", default="the grid is centred at 0, 0"),
        ),
        "clump": _shape(
            "clump",
            "One rigid body of overlapping spheres.",
            (("positions", "radii"), ("file",)),
            positions=Key(Many(Vector(3, "m"), 1), "centres of the spheres"),
            radii=Key(Either((SIZE, Many(SIZE, 1))), "one radius for all, or one for each"),
            file=Key(Text("a mesh file"), "a closed mesh that is filled with spheres"),
            spheres=Key(Whole(1), "with file: largest number of spheres", default=50),
            radius=Key(SIZE, "with file: radius of all spheres"),
            resolution=Key(Whole(8), "with file: voxels along the longest side", default=40),
            scale=SCALE,
            centred=CENTRED,
        ),
        "compound": _shape(
            "compound",
            "One rigid body of several shapes.",
            items=Key(None, "the shapes and their poses", required=True),  # type: ignore[arg-type]  # below: it holds shapes itself
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
        "position": Key(Vector(3, "m"), "position of the part", default=[0, 0, 0]),
        "rotation": Key(ROTATION, "rotation of the part"),
        "relative_density": Key(Number(above=0.0), "factor for the density of the material", default=1),
    },
)
SHAPE.kinds["compound"].others["parts"] = "items"
SHAPE.kinds["compound"].keys["items"] = Key(Many(_PART, 1), "the shapes and their poses", required=True)
