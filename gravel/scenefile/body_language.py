"""The part of the table of scene files that is about materials, motions and bodies: one by one, and in bulk as grains."""

from gravel.engine import GROUPS
from gravel.model.materials import PAIR_FIELDS
from gravel.scenefile.records import Key, Kinds, Record
from gravel.scenefile.shape_language import ROTATION, SCALE, SHAPE, SIZE, TABLE_ENDINGS
from gravel.scenefile.values import Choice, Either, Many, Name, Number, Text, Vector, Whole, YesNo

MATERIAL_NAME = Name("material")
GROUP = Whole(0, GROUPS - 1)

# --- materials
_CONTACT = {
    "friction": Key(Number(minimum=0.0), "tangential over normal force, at most", default=0.5),
    "restitution": Key(Number(minimum=0.0, maximum=1.0), "speed after an impact over speed before", default=0),
    "rolling_friction": Key(Number("m", minimum=0.0), "torque against rolling over normal force, at most", default=0),
    "spinning_friction": Key(Number("m", minimum=0.0), "torque about the normal over normal force, at most", default=0),
    "cohesion": Key(Number("N", minimum=0.0), "pull that a contact can bear", default=0),
}
assert tuple(_CONTACT) == PAIR_FIELDS
MATERIAL = Record(
    "material",
    "What bodies are made of.",
    {"density": Key(Number("kg/m3", above=0.0), "gives bodies their mass", default=1000), **_CONTACT},
)
PAIR = Record(
    "pair",
    "Contact values of two materials, instead of the mixing rule's.",
    {
        "materials": Key(Many(MATERIAL_NAME, 2, 2), "the two", required=True),
        **{name: Key(key.value, key.doc) for name, key in _CONTACT.items()},
    },
)

# --- motions
MOTION = Kinds(
    "motion",
    "Where a body goes, whatever touches it, from the pose that it is given.",
    {
        "constant": Record(
            "motion constant",
            "Straight and turning at constant velocity.",
            {
                "velocity": Key(Vector(3, "m/s"), "of the body", default=[0, 0, 0]),
                "angular_velocity": Key(Vector(3, "rad/s"), "about the world's axes", default=[0, 0, 0]),
            },
        ),
        "oscillation": Record(
            "motion oscillation",
            "To and fro: amplitude (sin(2 pi f t + phase) - sin(phase)).",
            {
                "amplitude": Key(Vector(3, "m"), "of the way", required=True),
                "frequency": Key(Number("Hz", above=0.0), "f", required=True),
                "phase": Key(Number("rad"), "at the start", default=0),
            },
        ),
        "table": Record(
            "motion table",
            "A way from time to time, straight in between; before the first and after the last row it stands still.",
            {
                "times": Key(Many(Number("s"), 2), "rising", required=True),
                "displacements": Key(Many(Vector(3, "m"), 2), "from where the body is at the start", default="none"),
                "turns": Key(Many(Vector(3, "degrees"), 2), "rotation vectors from the pose at the start", default="none"),
            },
        ),
    },
    Name("motion"),
)
SURFACE = Either(
    (
        Vector(3, "m/s"),
        Record(
            "surface velocity",
            "How a surface moves along itself, in the body's frame.",
            {
                "velocity": Key(Vector(3, "m/s"), "straight", default=[0, 0, 0]),
                "angular_velocity": Key(Vector(3, "rad/s"), "turning", default=[0, 0, 0]),
            },
        ),
    )
)

# --- bodies
_COMMON = {
    "name": Key(Text("a name"), "by which joints and others refer to it"),
    "material": Key(MATERIAL_NAME, "what it is made of", default="density 1000, friction 0.5"),
    "fixed": Key(YesNo(), "it never moves; not beside motion, mass or inertia", default=False),
    "motion": Key(MOTION, "it follows this, whatever touches it"),
    "surface_velocity": Key(SURFACE, "its surface moves while it stays: a belt, a roll"),
    "group": Key(GROUP, "collision group, for ignore", default=0),
    "velocity": Key(Vector(3, "m/s"), "of the centre of mass, at the start", default=[0, 0, 0]),
    "angular_velocity": Key(Vector(3, "rad/s"), "about the world's axes, at the start", default=[0, 0, 0]),
}
BODY = Record(
    "body",
    "One body.",
    {
        "shape": Key(SHAPE, "what it looks like", required=True),
        "position": Key(Vector(3, "m"), "of the coordinates in which the shape is given", default=[0, 0, 0]),
        "rotation": Key(ROTATION, "of the same", default="none"),
        **_COMMON,
        "mass": Key(Number("kg", above=0.0), "instead of the density's"),
        "inertia": Key(Vector(3, "kg m2", above=0.0), "principal moments, instead of the shape's"),
        "force": Key(Vector(3, "N"), "constant, at the centre of mass", default=[0, 0, 0]),
        "torque": Key(Vector(3, "N m"), "constant, about the world's axes", default=[0, 0, 0]),
    },
)

# --- grains
LOW, HIGH = Key(Vector(3, "m"), "lowest corner", required=True), Key(Vector(3, "m"), "highest corner", required=True)
REGION = Kinds(
    "region",
    "A part of space.",
    {
        "box": Record("region box", "A box along the axes.", {"low": LOW, "high": HIGH}),
        "cylinder": Record(
            "region cylinder",
            "A cylinder between two points.",
            {
                "start": Key(Vector(3, "m"), "centre of one face", required=True),
                "end": Key(Vector(3, "m"), "centre of the other", required=True),
                "radius": Key(SIZE, "radius", required=True),
            },
        ),
        "ball": Record(
            "region ball",
            "A ball.",
            {"centre": Key(Vector(3, "m"), "its middle", required=True), "radius": Key(SIZE, "radius", required=True)},
        ),
        "hopper": Record(
            "region hopper",
            "A cylinder above a cone that narrows downwards to its outlet.",
            {
                "outlet_radius": Key(Number("m", minimum=0.0), "radius below", required=True),
                "top_radius": Key(SIZE, "radius above", required=True),
                "cone_height": Key(SIZE, "of the cone", required=True),
                "cylinder_height": Key(Number("m", minimum=0.0), "of the cylinder", required=True),
                "outlet": Key(Vector(3, "m"), "centre of the outlet", default=[0, 0, 0]),
            },
        ),
        "mesh": Record(
            "region mesh",
            "What a closed mesh encloses.",
            {"file": Key(Text("a mesh file"), "beside the scene file", required=True), "scale": SCALE},
        ),
    },
)
_CUT = {
    "low": Key(SIZE, "smallest size", default="none"),
    "high": Key(SIZE, "largest size", default="none"),
}
SIZES = Kinds(
    "distribution of sizes",
    "Sizes by number: radii of balls (shape: sphere), else factors for the shape.",
    {
        "uniform": Record(
            "uniform sizes", "Evenly spread.", {"low": Key(SIZE, "smallest", required=True), "high": Key(SIZE, "largest", required=True)}
        ),
        "normal": Record(
            "normal sizes",
            "Normal, cut off.",
            {"mean": Key(SIZE, "mean", required=True), "deviation": Key(SIZE, "standard deviation", required=True), **_CUT},
        ),
        "log_normal": Record(
            "log normal sizes",
            "The logarithm is normal.",
            {"median": Key(SIZE, "median", required=True), "sigma": Key(Number(above=0.0), "of the logarithm", required=True), **_CUT},
        ),
        "weibull": Record(
            "weibull sizes",
            "Weibull, Rosin-Rammler.",
            {"scale": Key(SIZE, "scale", required=True), "shape": Key(Number(above=0.0), "exponent", required=True), **_CUT},
        ),
        "sieve": Record(
            "sieve curve",
            "By mass, from a sieve curve.",
            {
                "diameters": Key(Many(SIZE, 2), "of the sieves, rising", required=True),
                "passing": Key(Many(Number(minimum=0.0, maximum=1.0), 2), "share by mass, from 0 to 1", required=True),
            },
        ),
    },
)
_ROWS = {
    "positions": Key(Many(Vector(3, "m"), 1), "a row for each body", required=True),
    "quaternions": Key(Many(Vector(4, direction=True)), "(w, x, y, z) of each"),
    "velocities": Key(Many(Vector(3, "m/s")), "of each"),
    "angular_velocities": Key(Many(Vector(3, "rad/s")), "of each"),
    "masses": Key(Many(Number("kg", above=0.0)), "of each"),
    "inertias": Key(Many(Vector(3, "kg m2", above=0.0)), "principal moments of each"),
    "sizes": Key(
        Many(Either((SIZE, Many(SIZE, 1, 3)))),
        "of each: its own numbers in their order, if the shape is a word (shape: sphere), else a factor",
    ),
}
PLACEMENT = Kinds(
    "placement",
    "Where grains are.",
    {
        "lattice": Record(
            "placement lattice",
            "Rows and layers within a box, from below.",
            {
                "low": LOW,
                "high": HIGH,
                "spacing": Key(SIZE, "from centre to centre", required=True),
                "count": Key(Whole(1), "how many", default="as many as fit"),
                "jitter": Key(Number("m", minimum=0.0), "by which each is moved at random along each axis", default=0),
            },
        ),
        "random": Record(
            "placement random",
            "At random in a region, wholly inside and without overlap.",
            {
                "region": Key(REGION, "where", required=True),
                "fraction": Key(Number(above=0.0, maximum=1.0), "of the region's volume: loose 0.3, dense 0.6"),
                "count": Key(Whole(1), "how many"),
                "gap": Key(Number("m", minimum=0.0), "between bodies, at least", default=0),
            },
            (("fraction",), ("count",)),
        ),
        "pour": Record(
            "placement pour",
            "Fed into a region over time, where there is room.",
            {
                "inlet": Key(REGION, "where they appear", required=True),
                "rate": Key(Number("kg/s", above=0.0), "how fast"),
                "number_rate": Key(Number("1/s", above=0.0), "how fast, in bodies"),
                "start": Key(Number("s"), "when it begins", default=0),
                "until": Key(Number("s"), "when it ends", default="never"),
                "total": Key(Number(above=0.0), "at most, in kg or bodies, as the rate", default="no end"),
            },
            (("rate",), ("number_rate",)),
        ),
        "listed": Record("placement listed", "One by one.", _ROWS),
        "table": Record(
            "placement table",
            "One by one, in a file beside the scene file: columns x y z, qw qx qy qz, vx vy vz, wx wy wz, mass, ix iy iz, size or "
            "size1 size2 size3 (.csv), or arrays positions, quaternions and so on (.npz).",
            {"file": Key(Text("a table", TABLE_ENDINGS), "beside the scene file", required=True)},
        ),
    },
)
MIXED = Record(
    "part of a mixture",
    "One kind of body in a mixture.",
    {
        "shape": Key(SHAPE, "what it looks like", required=True),
        "share": Key(Number(above=0.0), "of the volume of all bodies; shares need not add up to 1", required=True),
        "sizes": Key(SIZES, "how large"),
        "material": Key(MATERIAL_NAME, "what it is made of", default="that of the grains"),
    },
)
GRAINS = Record(
    "group of grains",
    "Many bodies alike.",
    {
        "shape": Key(SHAPE, "what each looks like"),
        "mixture": Key(Many(MIXED, 1), "several kinds, for random and pour"),
        "sizes": Key(SIZES, "how large", default="all alike"),
        "placement": Key(PLACEMENT, "where they are", required=True),
        "rotation": Key(Either((Choice(("none", "random")), ROTATION)), "with lattice: of each", default="none"),
        **_COMMON,
        "force": Key(Vector(3, "N"), "constant, on each of them", default=[0, 0, 0]),
        "torque": Key(Vector(3, "N m"), "constant, on each of them", default=[0, 0, 0]),
        "seed": Key(Whole(0), "of its random numbers", default="that of the file, plus its place in the list"),
    },
    (("shape",), ("mixture",)),
)
