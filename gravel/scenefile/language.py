"""The language of scene files: ONE table of all keys, with accepted values, units, defaults and meaning. Shapes, bodies and
joints have files of their own.

It defines the checks of files (``gravel.scenefile.load``), the JSON schema (``gravel schema``) and the reference in
docs/SCENE_FILES.md (``gravel schema --reference``). Names and defaults are those of the Python classes that the keys are given to.
"""

from dataclasses import replace

from gravel.engine import ELLIPSOID_METHODS
from gravel.scenefile.body_language import BODY, GRAINS, GROUP, HIGH, LOW, MATERIAL, MATERIAL_NAME, MOTION, PAIR, REGION
from gravel.scenefile.joint_language import JOINT, MOTOR_VALUE
from gravel.scenefile.records import Key, Kinds, Record
from gravel.scenefile.shape_language import ROTATION, SHAPE, SIZE
from gravel.scenefile.values import Choice, Either, Many, Name, Named, Nothing, Number, Text, Vector, Whole, YesNo
from gravel.solvers import SOLVERS

# --- walls, robots, who ignores whom
WALL = Record(
    "servo wall",
    "A plate that slides along its normal and applies a force or stress, or moves at a speed.",
    {
        "name": Key(Text("a name"), "name of the plate"),
        "centre": Key(Vector(3, "m"), "centre of its face", required=True),
        "normal": Key(Vector(3, direction=True), "direction in which it faces and pushes", required=True),
        "size": Key(Vector(2, "m", above=0.0), "size of the plate", required=True),
        "force": Key(MOTOR_VALUE, "force, N"),
        "stress": Key(MOTOR_VALUE, "stress, Pa"),
        "speed": Key(MOTOR_VALUE, "speed, m/s"),
        "area": Key(Number("m2", above=0.0), "area on which a stress acts", default="the plate's"),
        "across": Key(Vector(3, direction=True), "direction of its first size", default="the axis after the normal's"),
        "on": Key(Name("body"), "body on which it slides", default="the world"),
        "mass": Key(Number("kg", above=0.0), "mass of the plate", default="from the density"),
        "thickness": Key(SIZE, "thickness of the plate", default="a tenth of its shorter side"),
        "material": Key(MATERIAL_NAME, "material of the plate"),
        "group": Key(GROUP, "collision group", default=0),
    },
    (("force",), ("stress",), ("speed",)),
)
ROBOT = Record(
    "robot",
    "A robot from a URDF or MJCF file. Its links are bodies with names such as robot.link; its joints likewise.",
    {
        "name": Key(Text("a name"), "prefix of the names of its links", required=True),
        "file": Key(Text("a robot file", (".urdf", ".xml", ".mjcf")), "beside the scene file", required=True),
        "position": Key(Vector(3, "m"), "position of its root", default=[0, 0, 0]),
        "rotation": Key(ROTATION, "rotation of its root", default="none"),
        "base": Key(Choice(("fixed", "floating")), "root of a URDF file", default="fixed"),
        "material": Key(MATERIAL_NAME, "material of its links"),
        "joint_positions": Key(Named(Number("rad or m"), "positions of joints"), "initial positions of joints", default="0"),
    },
)
IGNORE = Record(
    "ignore",
    "Collision filters: bodies that pass through each other.",
    {
        "groups": Key(Many(Many(GROUP, 2, 2)), "pairs of collision groups"),
        "pairs": Key(Many(Many(Name("body"), 2, 2)), "pairs of bodies"),
    },
)
REMOVAL = Record(
    "removal",
    "Bodies that are removed during the run.",
    {
        "below": Key(Number("m"), "removes grains whose z is below this"),
        "every": Key(Number("s", above=0.0), "interval between checks", default=0.01),
        "bodies": Key(Many(Name("body"), 1), "bodies to remove"),
        "at": Key(Number("s", minimum=0.0), "time of removal"),
    },
    (("below",), ("bodies", "at")),
)

# --- the cell
_AXIS = Key(Either((Nothing(), Vector(2, "m"))), "low and high; null: not periodic", default="null")
CELL = Record(
    "cell",
    "A periodic cell: space repeats along some axes.",
    {
        "x": _AXIS,
        "y": _AXIS,
        "z": _AXIS,
        "deformation": Key(
            Record(
                "deformation",
                "How the cell deforms with time.",
                {
                    "strain_rate": Key(Vector(3, "1/s"), "rate d(ln L)/dt of its lengths", default=[0, 0, 0]),
                    "shear_rate": Key(Number("1/s"), "shear rate (Lees and Edwards)", default=0),
                    "direction": Key(Choice(("x", "y", "z")), "direction of the shear", default="x"),
                    "gradient": Key(Choice(("x", "y", "z")), "gradient of the shear", default="z"),
                    "stress": Key(
                        Many(Either((Nothing(), Number("Pa", minimum=0.0))), 3, 3), "target stress of each axis; null: none", default="null"
                    ),
                    "inertia": Key(Number(above=0.0), "inertia of the stress control, in masses of all bodies", default=5),
                    "limit": Key(Number("1/s", above=0.0), "largest strain rate under stress", default=1),
                },
            ),
            "how it deforms",
        ),
    },
)

# --- simulation, output, expectations
_SLEEP = Record(
    "sleep",
    "When bodies at rest fall asleep.",
    {
        "speed": Key(Number("m/s", above=0.0), "speed below which a body is at rest", default="1 % of sqrt(g r)"),
        "time": Key(Number("s", above=0.0), "duration at rest before it sleeps", default=0.5),
    },
)
SIMULATION = Record(
    "simulation",
    "Settings of the simulation.",
    {
        "dt": Key(Number("s", above=0.0), "time step", required=True),
        "time": Key(Number("s", above=0.0), "simulated duration", required=True),
        "solver": Key(Choice(tuple(SOLVERS)), "solver", default="gauss-seidel"),
        "iterations": Key(Whole(1), "most solver iterations in a step (small scenes: 1.5 times as many)", default="600 (others: 300)"),
        "tolerance": Key(Number("m/s", minimum=0.0), "residual at which the solver stops", default="20 % of gravity times dt, rms 1 %"),
        "friction": Key(Choice(("coulomb", "cone")), "Coulomb's law, or the papers' convex cone", default="coulomb"),
        "precision": Key(Choice(("single", "double")), "precision of velocities and impulses", default="single"),
        "joints": Key(Choice(("direct", "iterative")), "how joints are solved", default="direct"),
        "integrator": Key(Choice(("midpoint", "euler")), "time integration", default="midpoint"),
        "broad_phase": Key(Choice(("auto", "grid", "bvh", "sap", "brute")), "algorithm of the broad phase", default="auto"),
        "margin": Key(Number("m", minimum=0.0), "gaps up to this value are contacts", default="1 % of the radius"),
        "recovery": Key(Number(minimum=0.0, maximum=1.0), "share of a penetration that a step corrects", default=0.03),
        "recovery_speed": Key(Number("m/s", above=0.0, infinite=True), "largest speed of that correction", default=1),
        "warm_start": Key(YesNo(), "start from the impulses of the last step", default=True),
        "restitution_threshold": Key(Number("m/s", minimum=0.0), "slower impacts do not bounce", default="5 dt |gravity|"),
        "ellipsoid_method": Key(Choice(tuple(ELLIPSOID_METHODS)), "how contacts of ellipsoids are found", default="direct"),
        "bounds": Key(Record("bounds", "A body that leaves the bounds stops the run.", {"low": LOW, "high": HIGH}), "bounds of space"),
        "sleep": Key(Either((YesNo(), _SLEEP)), "whether bodies at rest sleep", default=False),
    },
)
MEASURES = ("kinetic_energy", "potential_energy", "stress", "coordination", "fabric", "packing_fraction")
LOG = Record(
    "log",
    "A file of measures over time.",
    {
        "file": Key(Text("a file", (".csv", ".h5", ".hdf5")), "in the folder of the run", required=True),
        "measures": Key(Many(Choice(MEASURES), 1), "measures to record", required=True),
        "every": Key(Number("s", above=0.0), "interval between rows", default="every step"),
        "region": Key(REGION, "region of the measures", default="everywhere"),
    },
)
OUTPUT = Record(
    "output",
    "Files that a run writes; options of gravel run take precedence.",
    {
        "file": Key(Text("a file", (".vtkhdf",)), "result file, in the folder of the run", default="the scene file's name with .vtkhdf"),
        "every": Key(Number("s", above=0.0), "interval between frames", default="50 frames"),
        "contacts": Key(YesNo(), "also write contacts and their forces", default=False),
        "checkpoint": Key(Text("a file", (".h5",)), "checkpoint file, from which a run can continue"),
        "checkpoint_every": Key(Number("s", above=0.0), "interval between checkpoints", default="at the end only"),
        "picture": Key(YesNo(), "write a picture of the last frame beside the result", default=True),
        "logs": Key(Many(LOG), "measures over time"),
    },
)
EXPECTATION = Kinds(
    "expectation",
    "A condition at the end of a run; gravel run ends with exit code 3 if it fails.",
    {
        "inside": Record("expectation inside", "All centres are in a box.", {"low": LOW, "high": HIGH}),
        "rest": Record(
            "expectation rest", "The bodies are at rest.", {"speed": Key(Number("m/s", above=0.0), "largest rms speed", required=True)}
        ),
        "penetration": Record(
            "expectation penetration", "No overlap was deeper.", {"depth": Key(Number("m", above=0.0), "largest depth", required=True)}
        ),
        "bodies": Record(
            "expectation bodies",
            "The number of movable bodies.",
            {"least": Key(Whole(0), "smallest number", default=0), "most": Key(Whole(0), "largest number", default="any")},
        ),
        "converged": Record(
            "expectation converged",
            "The share of steps that converged.",
            {"share": Key(Number(minimum=0.0, maximum=1.0), "smallest share", required=True)},
        ),
    },
)

DOCUMENT = Record(
    "scene file",
    "A scene of gravel. All numbers are in SI units.",
    {
        "title": Key(Text(), "title of the scene"),
        "seed": Key(Whole(0), "seed of all random positions and sizes", default=0),
        "gravity": Key(Vector(3, "m/s2"), "acceleration of gravity", default=[0, 0, -9.81]),
        "cell": Key(CELL, "a periodic cell"),
        "materials": Key(Named(MATERIAL, "materials"), "materials by name"),
        "pairs": Key(Many(PAIR, apart=True), "contact values for pairs of materials"),
        "shapes": Key(Named(SHAPE, "shapes"), "shapes by name, shared by bodies"),
        "motions": Key(Named(replace(MOTION, name="kind of motion", names=None), "motions"), "motions by name, shared by bodies"),
        "bodies": Key(Many(BODY, apart=True), "single bodies"),
        "walls": Key(Many(WALL, apart=True), "servo walls"),
        "robots": Key(Many(ROBOT, apart=True), "robots from files"),
        "grains": Key(Many(GRAINS, apart=True), "bodies in bulk"),
        "more_bodies": Key(Many(BODY, apart=True), "single bodies numbered after the grains"),
        "joints": Key(Many(JOINT, apart=True), "joints, springs and gears"),
        "ignore": Key(IGNORE, "collision filters"),
        "removals": Key(Many(REMOVAL, apart=True), "bodies removed during the run"),
        "simulation": Key(SIMULATION, "settings of the simulation", required=True),
        "output": Key(OUTPUT, "files that a run writes"),
        "expect": Key(Many(EXPECTATION, apart=True), "conditions at the end"),
    },
)
