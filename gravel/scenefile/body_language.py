"""The part of the table of scene files for materials, motions and bodies: single bodies, and grains in bulk."""

from gravel.engine import GROUPS
from gravel.model.materials import PAIR_FIELDS
from gravel.scenefile.records import Key, Kinds, Record
from gravel.scenefile.shape_language import ROTATION, SCALE, SHAPE, SIZE, TABLE_ENDINGS
from gravel.scenefile.values import Angle, Choice, Either, Many, Name, Number, Text, Vector, Whole, YesNo

MATERIAL_NAME = Name("material")
GROUP = Whole(0, GROUPS - 1)

# --- materials
_CONTACT = {
    "friction": Key(Number(minimum=0.0), "largest ratio of tangential to normal force", default=0.5),
    "restitution": Key(Number(minimum=0.0, maximum=1.0), "ratio of normal speeds after and before an impact", default=0),
    "rolling_friction": Key(Number("m", minimum=0.0), "largest ratio of rolling torque to normal force", default=0),
    "spinning_friction": Key(Number("m", minimum=0.0), "largest ratio of torque about the normal to normal force", default=0),
    "cohesion": Key(Number("N", minimum=0.0), "largest tensile force of a contact", default=0),
}
assert tuple(_CONTACT) == PAIR_FIELDS
MATERIAL = Record(
    "material",
    "A material of bodies.",
    {"density": Key(Number("kg/m3", above=0.0), "density, which gives bodies their mass", default=1000), **_CONTACT},
)
PAIR = Record(
    "pair",
    "Contact values of two materials. Where none is given, they are mixed: the geometric mean of friction, rolling and spinning friction, "
    "the larger restitution, the smaller cohesion.",
    {
        "materials": Key(Many(MATERIAL_NAME, 2, 2), "the two materials", required=True),
        **{name: Key(key.value, key.doc) for name, key in _CONTACT.items()},
    },
)

# --- motions
MOTION = Kinds(
    "motion",
    "A prescribed motion, relative to the initial pose; contacts do not affect it.",
    {
        "constant": Record(
            "motion constant",
            "Constant velocity and angular velocity.",
            {
                "velocity": Key(Vector(3, "m/s"), "velocity of the body", default=[0, 0, 0]),
                "angular_velocity": Key(Vector(3, "rad/s"), "angular velocity in the world frame", default=[0, 0, 0]),
            },
        ),
        "oscillation": Record(
            "motion oscillation",
            "Oscillation: amplitude (sin(2 pi f t + phase) - sin(phase)).",
            {
                "amplitude": Key(Vector(3, "m"), "amplitude of the displacement", required=True),
                "frequency": Key(Number("Hz", above=0.0), "frequency f", required=True),
                "phase": Key(Angle(), "phase at the start", default=0),
            },
        ),
        "table": Record(
            "motion table",
            "Poses at given times, linear in between; the body rests before the first and after the last row.",
            {
                "times": Key(Many(Number("s"), 2), "increasing times", required=True),
                "displacements": Key(Many(Vector(3, "m"), 2), "displacements from the initial position", default="none"),
                "turns": Key(Many(Many(Angle(), 3, 3), 2), "rotation vectors from the initial orientation", default="none"),
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
            "Tangential velocity of a surface, in the body's frame.",
            {
                "velocity": Key(Vector(3, "m/s"), "translation of the surface", default=[0, 0, 0]),
                "angular_velocity": Key(Vector(3, "rad/s"), "rotation of the surface", default=[0, 0, 0]),
            },
        ),
    )
)

# --- bodies
_COMMON = {
    "name": Key(Text("a name"), "name for joints and other references"),
    "material": Key(MATERIAL_NAME, "material", default="density 1000, friction 0.5"),
    "fixed": Key(YesNo(), "the body never moves; not allowed with motion, mass or inertia", default=False),
    "motion": Key(MOTION, "prescribed motion"),
    "surface_velocity": Key(SURFACE, "the surface moves while the body stays: a belt, a roll"),
    "group": Key(GROUP, "collision group, for ignore", default=0),
    "velocity": Key(Vector(3, "m/s"), "initial velocity of the centre of mass", default=[0, 0, 0]),
    "angular_velocity": Key(Vector(3, "rad/s"), "initial angular velocity in the world frame", default=[0, 0, 0]),
}
BODY = Record(
    "body",
    "One body.",
    {
        "shape": Key(SHAPE, "shape", required=True),
        "position": Key(Vector(3, "m"), "position of the origin of the shape", default=[0, 0, 0]),
        "rotation": Key(ROTATION, "rotation of the shape", default="none"),
        **_COMMON,
        "mass": Key(Number("kg", above=0.0), "mass, instead of that from the density"),
        "inertia": Key(Vector(3, "kg m2", above=0.0), "principal moments, instead of those of the shape"),
        "force": Key(Vector(3, "N"), "constant force at the centre of mass", default=[0, 0, 0]),
        "torque": Key(Vector(3, "N m"), "constant torque in the world frame", default=[0, 0, 0]),
    },
    others={"quaternion": "rotation"},
)

# --- grains
LOW, HIGH = Key(Vector(3, "m"), "lowest corner", required=True), Key(Vector(3, "m"), "highest corner", required=True)
REGION = Kinds(
    "region",
    "A region of space.",
    {
        "box": Record("region box", "A box aligned with the axes.", {"low": LOW, "high": HIGH}),
        "cylinder": Record(
            "region cylinder",
            "A cylinder between two points.",
            {
                "start": Key(Vector(3, "m"), "centre of one face", required=True),
                "end": Key(Vector(3, "m"), "centre of the other face", required=True),
                "radius": Key(SIZE, "radius", required=True),
            },
        ),
        "sphere": Record(
            "region sphere",
            "A ball.",
            {"centre": Key(Vector(3, "m"), "centre", required=True), "radius": Key(SIZE, "radius", required=True)},
        ),
        "hopper": Record(
            "region hopper",
            "A cylinder above a cone that narrows downwards to its outlet.",
            {
                "outlet_radius": Key(Number("m", minimum=0.0), "radius of the outlet", required=True),
                "top_radius": Key(SIZE, "radius of the top", required=True),
                "cone_height": Key(SIZE, "height of the cone", required=True),
                "cylinder_height": Key(Number("m", minimum=0.0), "height of the cylinder", required=True),
                "outlet": Key(Vector(3, "m"), "centre of the outlet", default=[0, 0, 0]),
            },
        ),
        "mesh": Record(
            "region mesh",
            "The inside of a closed mesh.",
            {"file": Key(Text("a mesh file"), "beside the scene file", required=True), "scale": SCALE},
        ),
    },
    others={"ball": "sphere"},
)
_CUT = {
    "low": Key(SIZE, "smallest size", default="none"),
    "high": Key(SIZE, "largest size", default="none"),
}
SIZES = Kinds(
    "distribution of sizes",
    "Distribution of sizes by number: radii of balls (shape: sphere), otherwise scale factors of the shape.",
    {
        "uniform": Record(
            "uniform sizes",
            "Uniform distribution.",
            {"low": Key(SIZE, "smallest", required=True), "high": Key(SIZE, "largest", required=True)},
        ),
        "normal": Record(
            "normal sizes",
            "Normal distribution, truncated.",
            {"mean": Key(SIZE, "mean", required=True), "deviation": Key(SIZE, "standard deviation", required=True), **_CUT},
        ),
        "log_normal": Record(
            "log normal sizes",
            "Log-normal distribution.",
            {
                "median": Key(SIZE, "median", required=True),
                "sigma": Key(Number(above=0.0), "standard deviation of the logarithm", required=True),
                **_CUT,
            },
        ),
        "weibull": Record(
            "weibull sizes",
            "Weibull (Rosin-Rammler) distribution.",
            {"scale": Key(SIZE, "scale", required=True), "shape": Key(Number(above=0.0), "exponent", required=True), **_CUT},
        ),
        "sieve": Record(
            "sieve curve",
            "Distribution by mass, from a sieve curve.",
            {
                "diameters": Key(Many(SIZE, 2), "diameters of the sieves, increasing", required=True),
                "passing": Key(Many(Number(minimum=0.0, maximum=1.0), 2), "share of the mass that passes, from 0 to 1", required=True),
            },
        ),
    },
)
_ROWS = {
    "positions": Key(Many(Vector(3, "m"), 1), "one row for each body", required=True),
    "quaternions": Key(Many(Vector(4, direction=True)), "(w, x, y, z) of each body"),
    "velocities": Key(Many(Vector(3, "m/s")), "velocity of each body"),
    "angular_velocities": Key(Many(Vector(3, "rad/s")), "angular velocity of each body"),
    "masses": Key(Many(Number("kg", above=0.0)), "mass of each body"),
    "inertias": Key(Many(Vector(3, "kg m2", above=0.0)), "principal moments of each body"),
    "sizes": Key(
        Many(Either((SIZE, Many(SIZE, 1, 3)))),
        "sizes of each body: those of the shape in order, if the shape is a word (shape: sphere), otherwise a scale factor",
    ),
}
PLACEMENT = Kinds(
    "placement",
    "Positions of grains.",
    {
        "lattice": Record(
            "placement lattice",
            "Rows and layers within a box, from the bottom.",
            {
                "low": LOW,
                "high": HIGH,
                "spacing": Key(SIZE, "distance between centres", required=True),
                "count": Key(Whole(1), "number of grains", default="as many as fit"),
                "jitter": Key(Number("m", minimum=0.0), "largest random displacement along each axis", default=0),
            },
        ),
        "random": Record(
            "placement random",
            "Random positions in a region, wholly inside and without overlap.",
            {
                "region": Key(REGION, "region to fill", required=True),
                "fraction": Key(Number(above=0.0, maximum=1.0), "share of the region's volume: loose 0.3, dense 0.6"),
                "count": Key(Whole(1), "number of grains"),
                "gap": Key(Number("m", minimum=0.0), "smallest gap between bodies", default=0),
            },
            (("fraction",), ("count",)),
        ),
        "pour": Record(
            "placement pour",
            "Fed into a region over time, where there is room.",
            {
                "inlet": Key(REGION, "region in which they appear", required=True),
                "rate": Key(Number("kg/s", above=0.0), "feed rate by mass"),
                "number_rate": Key(Number("1/s", above=0.0), "feed rate by number"),
                "start": Key(Number("s"), "start time", default=0),
                "until": Key(Number("s"), "end time", default="never"),
                "total": Key(Number(above=0.0), "largest total, in kg or bodies, as the rate", default="unlimited"),
            },
            (("rate",), ("number_rate",)),
        ),
        "listed": Record("placement listed", "A list of single bodies.", _ROWS),
        "table": Record(
            "placement table",
            "A list in a file beside the scene file: columns x y z, qw qx qy qz, vx vy vz, wx wy wz, mass, ix iy iz, size or "
            "size1 size2 size3 (.csv), or arrays positions, quaternions and so on (.npz).",
            {"file": Key(Text("a table", TABLE_ENDINGS), "beside the scene file", required=True)},
        ),
    },
)
MIXED = Record(
    "part of a mixture",
    "One kind of body in a mixture.",
    {
        "shape": Key(SHAPE, "shape", required=True),
        "share": Key(Number(above=0.0), "share of the volume of all bodies; shares need not add up to 1", required=True),
        "sizes": Key(SIZES, "sizes"),
        "material": Key(MATERIAL_NAME, "material", default="that of the grains"),
    },
)
GRAINS = Record(
    "group of grains",
    "Many bodies of one kind or mixture.",
    {
        "shape": Key(SHAPE, "shape of each grain"),
        "mixture": Key(Many(MIXED, 1), "several kinds, with placement random or pour"),
        "sizes": Key(SIZES, "sizes", default="all equal"),
        "placement": Key(PLACEMENT, "positions", required=True),
        "rotation": Key(Either((Choice(("none", "random")), ROTATION)), "with lattice: rotation of each grain", default="none"),
        **_COMMON,
        "force": Key(Vector(3, "N"), "constant, on each grain", default=[0, 0, 0]),
        "torque": Key(Vector(3, "N m"), "constant, on each grain", default=[0, 0, 0]),
        "seed": Key(Whole(0), "seed of its random numbers", default="that of the file, plus its index in the list"),
    },
    (("shape",), ("mixture",)),
)
