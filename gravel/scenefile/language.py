"""The language of scene files: ONE table of all keys, with what they take, their units, defaults and meaning. Shapes, bodies and joints
have files of their own.

From it come the checks of files (``gravel.scenefile.load``), the JSON schema (``gravel schema``) and the reference in
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
    "A plate that slides along its normal and pushes with a force or stress, or moves at a speed.",
    {
        "name": Key(Text("a name"), "of the plate"),
        "centre": Key(Vector(3, "m"), "middle of its face", required=True),
        "normal": Key(Vector(3, direction=True), "the way it faces and pushes", required=True),
        "size": Key(Vector(2, "m", above=0.0), "of the plate", required=True),
        "force": Key(MOTOR_VALUE, "N"),
        "stress": Key(MOTOR_VALUE, "Pa"),
        "speed": Key(MOTOR_VALUE, "m/s"),
        "area": Key(Number("m2", above=0.0), "that a stress pushes on", default="the plate's"),
        "across": Key(Vector(3, direction=True), "direction of the first of its sizes", default="the axis after the normal's"),
        "on": Key(Name("body"), "a body that it slides on", default="the world"),
        "mass": Key(Number("kg", above=0.0), "of the plate", default="from the density"),
        "thickness": Key(SIZE, "of the plate", default="a tenth of its shorter side"),
        "material": Key(MATERIAL_NAME, "of the plate"),
        "group": Key(GROUP, "collision group", default=0),
    },
    (("force",), ("stress",), ("speed",)),
)
ROBOT = Record(
    "robot",
    "A robot from a URDF or MJCF file; its links are bodies by the name robot.link, its joints likewise.",
    {
        "name": Key(Text("a name"), "before the names of its links", required=True),
        "file": Key(Text("a robot file", (".urdf", ".xml", ".mjcf")), "beside the scene file", required=True),
        "position": Key(Vector(3, "m"), "of its root", default=[0, 0, 0]),
        "rotation": Key(ROTATION, "of its root", default="none"),
        "base": Key(Choice(("fixed", "floating")), "of a URDF file", default="fixed"),
        "material": Key(MATERIAL_NAME, "of its links"),
        "joint_positions": Key(Named(Number("rad or m"), "positions of joints"), "at the start", default="0"),
    },
)
IGNORE = Record(
    "ignore",
    "Who passes through whom.",
    {
        "groups": Key(Many(Many(GROUP, 2, 2)), "pairs of collision groups"),
        "pairs": Key(Many(Many(Name("body"), 2, 2)), "pairs of bodies"),
    },
)
REMOVAL = Record(
    "removal",
    "Bodies that are taken out while it runs.",
    {
        "below": Key(Number("m"), "grains whose z is below this"),
        "every": Key(Number("s", above=0.0), "between two looks", default=0.01),
        "bodies": Key(Many(Name("body"), 1), "these"),
        "at": Key(Number("s", minimum=0.0), "when"),
    },
    (("below",), ("bodies", "at")),
)

# --- the cell
_AXIS = Key(Either((Nothing(), Vector(2, "m"))), "low and high; null: it does not repeat", default="null")
CELL = Record(
    "cell",
    "Space repeats itself along some axes.",
    {
        "x": _AXIS,
        "y": _AXIS,
        "z": _AXIS,
        "deformation": Key(
            Record(
                "deformation",
                "How the cell changes with time.",
                {
                    "strain_rate": Key(Vector(3, "1/s"), "d(ln L)/dt of its lengths", default=[0, 0, 0]),
                    "shear_rate": Key(Number("1/s"), "of Lees and Edwards", default=0),
                    "direction": Key(Choice(("x", "y", "z")), "of the shear", default="x"),
                    "gradient": Key(Choice(("x", "y", "z")), "of the shear", default="z"),
                    "stress": Key(
                        Many(Either((Nothing(), Number("Pa", minimum=0.0))), 3, 3), "that its lengths follow; null: not", default="null"
                    ),
                    "inertia": Key(Number(above=0.0), "of the piston that a stress is, in masses of all bodies", default=5),
                    "limit": Key(Number("1/s", above=0.0), "of the strain rate under stress", default=1),
                },
            ),
            "how it changes",
        ),
    },
)

# --- simulation, output, expectations
_SLEEP = Record(
    "sleep",
    "When bodies at rest may sleep.",
    {
        "speed": Key(Number("m/s", above=0.0), "below which a body rests", default="1 % of sqrt(g r)"),
        "time": Key(Number("s", above=0.0), "for so long", default=0.5),
    },
)
SIMULATION = Record(
    "simulation",
    "How it is computed.",
    {
        "dt": Key(Number("s", above=0.0), "time step", required=True),
        "time": Key(Number("s", above=0.0), "how long it runs", required=True),
        "solver": Key(Choice(tuple(SOLVERS)), "what solves a step", default="gauss-seidel"),
        "iterations": Key(Whole(1), "of the solver in a step, at most (small scenes: 1.5 times as many)", default="600 (others: 300)"),
        "tolerance": Key(Number("m/s", minimum=0.0), "largest residual at which it stops", default="20 % of gravity times dt, rms 1 %"),
        "friction": Key(Choice(("coulomb", "cone")), "Coulomb's law, or the papers' convex cone", default="coulomb"),
        "precision": Key(Choice(("single", "double")), "of velocities and impulses", default="single"),
        "joints": Key(Choice(("direct", "iterative")), "how joints are solved", default="direct"),
        "integrator": Key(Choice(("midpoint", "euler")), "of the motion", default="midpoint"),
        "broad_phase": Key(Choice(("auto", "grid", "bvh", "sap", "brute")), "what finds near bodies", default="auto"),
        "margin": Key(Number("m", minimum=0.0), "gaps up to this are contacts", default="1 % of the radius"),
        "recovery": Key(Number(minimum=0.0, maximum=1.0), "share of a penetration that a step takes back", default=0.03),
        "recovery_speed": Key(Number("m/s", above=0.0, infinite=True), "at most", default=1),
        "warm_start": Key(YesNo(), "start from the last step's impulses", default=True),
        "restitution_threshold": Key(Number("m/s", minimum=0.0), "slower impacts do not bounce", default="5 dt |gravity|"),
        "ellipsoid_method": Key(Choice(tuple(ELLIPSOID_METHODS)), "how contacts of ellipsoids are found", default="direct"),
        "bounds": Key(Record("bounds", "A body that leaves them stops the run.", {"low": LOW, "high": HIGH}), "of space"),
        "sleep": Key(Either((YesNo(), _SLEEP)), "whether bodies at rest may sleep", default=False),
    },
)
MEASURES = ("kinetic_energy", "potential_energy", "stress", "coordination", "fabric", "packing_fraction")
LOG = Record(
    "log",
    "A file of measures over time.",
    {
        "file": Key(Text("a file", (".csv", ".h5", ".hdf5")), "in the folder of the run", required=True),
        "measures": Key(Many(Choice(MEASURES), 1), "what is measured", required=True),
        "every": Key(Number("s", above=0.0), "between two rows", default="every step"),
        "region": Key(REGION, "where", default="everywhere"),
    },
)
OUTPUT = Record(
    "output",
    "What a run leaves; options of gravel run go before it.",
    {
        "file": Key(Text("a file", (".vtkhdf",)), "result, in the folder of the run", default="the scene file's name with .vtkhdf"),
        "every": Key(Number("s", above=0.0), "between two frames", default="50 frames"),
        "contacts": Key(YesNo(), "write contacts and their forces, too", default=False),
        "checkpoint": Key(Text("a file", (".h5",)), "from which a run can go on"),
        "checkpoint_every": Key(Number("s", above=0.0), "between two checkpoints", default="at the end only"),
        "picture": Key(YesNo(), "a picture of the last frame beside the result", default=True),
        "logs": Key(Many(LOG), "measures over time"),
    },
)
EXPECTATION = Kinds(
    "expectation",
    "What must hold at the end of a run; gravel run ends with exit code 3 if it does not.",
    {
        "inside": Record("expectation inside", "All centres are in a box.", {"low": LOW, "high": HIGH}),
        "rest": Record(
            "expectation rest", "It has come to rest.", {"speed": Key(Number("m/s", above=0.0), "root mean square, at most", required=True)}
        ),
        "penetration": Record(
            "expectation penetration", "No overlap was deeper.", {"depth": Key(Number("m", above=0.0), "at most", required=True)}
        ),
        "bodies": Record(
            "expectation bodies",
            "So many can move.",
            {"least": Key(Whole(0), "at least", default=0), "most": Key(Whole(0), "at most", default="any")},
        ),
        "converged": Record(
            "expectation converged", "So many steps converged.", {"share": Key(Number(minimum=0.0, maximum=1.0), "at least", required=True)}
        ),
    },
)

DOCUMENT = Record(
    "scene file",
    "A scene of gravel. All numbers are in SI units.",
    {
        "title": Key(Text(), "what it shows"),
        "seed": Key(Whole(0), "of all random places and sizes", default=0),
        "gravity": Key(Vector(3, "m/s2"), "acceleration", default=[0, 0, -9.81]),
        "cell": Key(CELL, "a periodic cell"),
        "materials": Key(Named(MATERIAL, "materials"), "by name"),
        "pairs": Key(Many(PAIR, apart=True), "values for two materials"),
        "shapes": Key(Named(SHAPE, "shapes"), "by name, for bodies to share"),
        "motions": Key(Named(replace(MOTION, name="kind of motion", names=None), "motions"), "by name, for bodies to share"),
        "bodies": Key(Many(BODY, apart=True), "bodies one by one"),
        "walls": Key(Many(WALL, apart=True), "servo walls"),
        "robots": Key(Many(ROBOT, apart=True), "robots from files"),
        "grains": Key(Many(GRAINS, apart=True), "bodies in bulk"),
        "more_bodies": Key(Many(BODY, apart=True), "bodies one by one that come after the grains, and so have higher ids"),
        "joints": Key(Many(JOINT, apart=True), "what holds bodies together"),
        "ignore": Key(IGNORE, "who passes through whom"),
        "removals": Key(Many(REMOVAL, apart=True), "who is taken out while it runs"),
        "simulation": Key(SIMULATION, "how it is computed", required=True),
        "output": Key(OUTPUT, "what a run leaves"),
        "expect": Key(Many(EXPECTATION, apart=True), "what must hold at the end"),
    },
)
