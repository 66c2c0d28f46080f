"""What all importers of robots share: bodies about given masses, a plan of parts and joints, all or nothing.

An importer makes a ``Plan`` of parts (bodies with their links, shapes and inertias), joints and couplings; ``Plan.add_to`` tries it out
on an empty scene and then adds it, so that a file that is refused leaves the scene as it was. The ``Robot`` that comes back knows
bodies and joints by name. A body of gravel sits at its centre of mass along its principal axes; ``Robot.link_pose`` tells where the
link's own frame is.
"""

import contextlib
import math
import os
import pathlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from gravel import checks
from gravel.cautions import warn
from gravel.printing import formatting
from gravel.rotations import multiply, rotate
from gravel.scene import GROUPS, Scene, unit_quaternions
from gravel.shapes import Simple, Sphere
from gravel.shapes.compounds import Compound
from gravel.shapes.polyhedra import Mass, principal
from gravel.state import GROUP

if TYPE_CHECKING:
    from gravel.simulation import Simulation

INSTALL = 'pip install "gravel[robots]"'
ROUNDED = 1e-3  # moments that break the triangle inequality by less, as files with few digits do, are evened out
GHOST_RADIUS = 0.01  # m: the sphere that stands for a fixed link without a shape
LARGEST = 1e30  # of any number in a file; beyond, products of a few of them may not be numbers any more
# folders for meshes that a robot file may refer to if they are beside its own folder: robot/meshes of robot/urdf/robot.urdf
BESIDE = ("mesh", "meshes", "asset", "assets", "visual", "visuals", "collision", "collisions", "stl", "stls", "texture", "textures")


@dataclass(frozen=True, repr=False)
class Robot:
    """What was added to a scene. Links that are joined rigidly share a body, and joints that act as one share an id.

    - ``links``: name of a link -> id of its body; the scene's ``body_names`` has them too, a name that is taken with a number
    - ``joints``: name of a joint -> id of the joint
    - ``messages``: one sentence for each thing that was simplified or left out
    - ``frames``: name of a link -> (position m, quaternion) of the link's own frame in its body's
    """

    name: str
    links: dict[str, int]
    joints: dict[str, int]
    messages: list[str]
    frames: dict[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        return formatting.call(self, name=self.name, links=len(self.links), joints=len(self.joints), messages=len(self.messages))

    def link_pose(self, world: "Scene | Simulation", link: str) -> tuple[np.ndarray, np.ndarray]:
        """(position (3,) m, quaternion (4,)) of a link's own frame, in a Simulation or in the Scene that it was added to."""
        checks.choice("link", link, self.links)
        body, (position, quaternion) = self.links[link], self.frames[link]
        if isinstance(world, Scene):
            place, turn = world.bodies.position[body], world.bodies.quaternion[body]
        else:
            place, turn = world.positions[body], world.quaternions[body]
        return place + rotate(turn, position), multiply(turn, quaternion)


def check_scene(scene):
    if not isinstance(scene, Scene):
        raise TypeError(f"scene must be a Scene, not {scene!r:.80}")


def existing_file(path, what):
    """The path as a string, or a refusal."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be the name of {what}, not {path!r:.80}")
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"path must be {what}, but {path!r} {'is no file' if os.path.exists(path) else 'does not exist'}")
    return path


def check_switch(name, value):
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, not {value!r}")


class Reach:
    """The files that a robot file may refer to, wherever symbolic links lead: those in its own folder, in its package (the nearest
    folder above with a package.xml), in folders for meshes beside its own (those named in BESIDE, as in robot/urdf and robot/meshes),
    and in ``extra`` folders. A robot file that is a link itself counts both where it is and where it leads.
    """

    def __init__(self, path, extra=(), anywhere=False):
        """``path``: of the robot file, or of the folder that stands for it. ``anywhere``: every file is allowed."""
        check_switch("outside_files", anywhere)
        self.anywhere = anywhere
        self.folder = _folder_of(os.path.abspath(path))
        self.homes = list(dict.fromkeys((os.path.realpath(self.folder), _folder_of(os.path.realpath(path)))))
        self.above = [[home, *map(str, pathlib.PurePath(home).parents)] for home in self.homes]
        packages = [next((folder for folder in above if _is_package(folder)), above[0]) for above in self.above]
        self.roots = list(dict.fromkeys((*self.homes, *packages, *map(os.path.realpath, extra))))

    def allows(self, path, package=None):
        """``package``: the name in package://name/..., which adds the folder above of that name, and packages of that name beside
        folders above."""
        roots = self.roots + self._named(package)
        # some open a/../b as b, which is another place where a is a link
        ways = {os.path.realpath(path), os.path.realpath(os.path.normpath(path))}
        return self.anywhere or all(self._is_beside(way) or any(_is_within(way, root) for root in roots) for way in ways)

    def refusal(self, written, path):
        """The error for a file that is not allowed, as it is written in the robot file."""
        allowed = f"must be a file in {', '.join(map(repr, self.roots))}, or in a folder such as meshes or assets beside it"
        return ValueError(f"{written!r} {allowed}, but leads to {os.path.realpath(path)!r}; outside_files=True allows files anywhere")

    def _named(self, package):
        if package in (None, "", os.curdir, os.pardir):
            return []
        user = os.path.realpath(os.path.expanduser("~"))
        found = []
        for folder in (folder for above in self.above for folder in above):
            other = os.path.join(os.path.dirname(folder), package)
            if _is_package(other) or (other == folder and not _is_within(user, other)):  # package://home is no package
                found.append(os.path.realpath(other))
        return found

    def _is_beside(self, path):
        """Is it in a folder for meshes beside the robot file's?"""
        for place in map(os.path.dirname, self.homes):
            inner = pathlib.PurePath(path).relative_to(place).parts if _is_within(path, place) else ()
            if len(inner) > 1 and inner[0].lower() in BESIDE:
                return True
        return False


def _folder_of(path):
    return path if os.path.isdir(path) else os.path.dirname(path)


def _is_package(folder):
    return os.path.isfile(os.path.join(folder, "package.xml"))


def _is_within(path, folder):
    return pathlib.PurePath(path).is_relative_to(folder)


class Notes:
    """What was simplified or left out, and of which links or joints. A loss changes the physics and is warned about."""

    def __init__(self):
        self._names, self._losses = {}, []

    def add(self, what, *names, loss=False):
        known = self._names.setdefault(what, [])
        known += [name for name in names if name not in known]
        if loss and what not in self._losses:
            self._losses.append(what)

    def sentences(self, losses_only=False):
        chosen = self._losses if losses_only else self._names
        return [what + (": " + ", ".join(map(str, self._names[what])) if self._names[what] else "") for what in chosen]

    def warn(self, name):
        """One warning with all losses, if there are any."""
        if self._losses:
            warn(f"robot {name!r} is not quite as in its file: " + "; ".join(self.sentences(True)))


def pose_of(position, quaternion):
    """The checked pose of a position (3,) and a quaternion (4,)."""
    pose = np.eye(4)
    pose[:3, 3] = checks.array("position", position, (3,))
    quaternion = unit_quaternions(checks.array("quaternion", quaternion, (4,))[None], 1)[0]
    pose[:3, :3] = Rotation.from_quat(np.roll(quaternion, -1)).as_matrix()
    return pose


def quaternion_of(pose):
    return np.roll(Rotation.from_matrix(pose[:3, :3]).as_quat(canonical=True), 1)


def inverse(pose):
    turn = pose[:3, :3].T
    result = np.eye(4)
    result[:3, :3], result[:3, 3] = turn, -turn @ pose[:3, 3]
    return result


class Inertia(NamedTuple):
    """Mass kg, centre of mass m, and tensor kg m2 about that centre, all in one frame."""

    mass: float
    centre: np.ndarray
    tensor: np.ndarray

    def seen_from(self, pose):
        """The same in the frame in which its own frame has this pose."""
        turn = pose[:3, :3]
        return Inertia(self.mass, turn @ self.centre + pose[:3, 3], turn @ self.tensor @ turn.T)


def sum_of(inertias):
    """All of them joined rigidly; None if there is no mass."""
    mass = sum(one.mass for one in inertias)
    if not mass > 0.0:
        return None
    centre = sum(one.mass * one.centre for one in inertias) / mass
    tensor = np.zeros((3, 3))
    rounding = 1e-12 * max(np.abs(one.centre).max() for one in inertias)
    for one in inertias:
        arm = one.centre - centre
        arm[np.abs(arm) < rounding] = 0.0  # or a link without moments of inertia would get some
        tensor += one.tensor + one.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return Inertia(mass, centre, tensor)


def possible_moments(moments, name, repair, notes):
    """Principal moments that a body can have: those given, evened out where rounding broke them or ``repair`` is asked for
    (None: it cannot be)."""
    excess = 2 * moments.max() - moments.sum()
    if moments.min() > 0.0 and excess <= 0.0:
        return moments
    if moments.min() > 0.0 and excess <= ROUNDED * moments.max():
        notes.add("moments of inertia were evened out to satisfy the triangle inequality", f"{name} by {excess / moments.max():.1e}")
        lifted = moments + 0.5 * excess * (1 + 1e-12)
        lifted[np.argmax(moments)] = moments.max()
        return lifted
    if repair and moments.mean() > 0.0:
        notes.add("impossible moments of inertia were replaced by their mean", name)
        return np.full(3, moments.mean())
    written = ", ".join(f"{m:g}" for m in moments)
    allowed = "must be above 0 and none above the sum of the others"
    advice = "; repair_inertia=True replaces them" if repair is False else ""
    raise ValueError(f"moments of inertia of {name} {allowed}, not {written}{advice}")


@dataclass(frozen=True, eq=False, repr=False)
class WeighedCompound(Compound):
    """A compound in the frame of its body's centre of mass and principal axes, whose mass and inertia are given elsewhere: what it
    would weigh by its own shapes does not count."""

    def __post_init__(self):
        super().__post_init__()
        at_centre = Mass(self.mass.volume, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), self.mass.moments)
        object.__setattr__(self, "mass", at_centre)


class Part(NamedTuple):
    """One body to be. ``items``: (shape, pose in the part's frame); ``links``: name -> pose of its frame in the part's."""

    name: str
    pose: np.ndarray  # of the part's frame, world
    items: list
    inertia: Inertia  # in the part's frame; None: fixed
    links: dict
    group: int = None  # None: the robot's
    material: object = None  # None: the robot's
    moments: np.ndarray = None  # principal, if they were repaired

    @property
    def frame(self):
        """(pose, moments): the body's frame in the part's, and its principal moments; None if it is fixed."""
        frame = np.eye(4)
        if self.inertia is None:
            if len(self.items) == 1:
                frame = self.items[0][1]
            return frame, None
        moments, axes = principal(self.inertia.tensor)
        frame = pose_of(self.inertia.centre, axes)
        return frame, moments if self.moments is None else self.moments

    def shape_in(self, frame):
        """The shape as seen from the body's frame; None if there is none."""
        items = [(shape, inverse(frame) @ pose) for shape, pose in self.items]
        if len(items) == 1 and np.allclose(items[0][1], np.eye(4), rtol=0.0, atol=1e-12):
            shape = items[0][0]
            if isinstance(shape, Simple) or self.inertia is None:
                return shape
        return WeighedCompound([(shape, pose[:3, 3], quaternion_of(pose)) for shape, pose in items]) if items else None


class PlannedJoint(NamedTuple):
    """One joint to be. Bodies are numbers of parts, or None for the world; the options are those of ``kind``."""

    names: tuple  # of the joints in the file that it stands for
    kind: type
    body_a: int
    body_b: int
    options: dict
    assemble: bool = False


class Coupling(NamedTuple):
    """A Gear, SlideGear or RackPinion to be, of planned joints by number."""

    name: str
    kind: type
    joint_1: int
    joint_2: int
    factor: float


class Plan:
    """All that a robot adds to a scene. Numbers of parts and joints count from its own first."""

    def __init__(self, name):
        self.name = name
        self.parts, self.joints, self.couplings = [], [], []
        self.apart = []  # pairs of parts that do not touch each other
        self.forces = {}  # part -> force, N
        self.ignored = []  # pairs of collision groups

    def add_to(self, scene, notes, material, group):
        """Add everything, or refuse and add nothing; returns the ``Robot``."""
        ghosts = self._ghost_group(scene, group.number)
        self._build(Scene(scene.gravity), notes, material, group.number, ghosts)  # whatever is refused is refused here
        robot = self._build(scene, notes, material, group.number, ghosts)
        if group.ignores_itself:
            scene.ignore(group.number, group.number)
        for a, b in self.ignored:
            scene.ignore(a, b)
        if ghosts is not None:
            for other in range(GROUPS):
                scene.ignore(ghosts, other)
        notes.warn(self.name)
        return robot

    def _build(self, scene, notes, material, group, ghosts):
        bodies, links, frames = [], {}, {}
        for part in self.parts:
            frame, moments = part.frame
            with naming(f"link {part.name!r}"):
                bodies.append(self._add_part(scene, part, frame, moments, material, group, ghosts))
            for name, pose in part.links.items():
                scene.body_names.add(scene.body_names.free(name), bodies[-1])
                seen = inverse(frame) @ pose
                links[name], frames[name] = bodies[-1], (seen[:3, 3], quaternion_of(seen))
        joints, names = [], {}
        for one in self.joints:
            ends = [None if number is None else bodies[number] for number in (one.body_a, one.body_b)]
            with naming(f"joint {one.names[0]!r}" if one.names else "a joint that has no name"):
                joints.append(scene.add_joint(one.kind(*ends, **one.options), assemble=one.assemble))
            names.update(dict.fromkeys(one.names, joints[-1]))
        for one in self.couplings:
            with naming(f"joint {one.name!r}"):
                scene.add_joint(one.kind(joints[one.joint_1], joints[one.joint_2], one.factor))
        for a, b in self.apart:
            scene.ignore_pair(bodies[a], bodies[b])
        for number, force in self.forces.items():
            scene.set_force(bodies[number], force)
        return Robot(self.name, links, names, notes.sentences(), frames)

    def _add_part(self, scene, part, frame, moments, material, group, ghosts):
        shape, pose = part.shape_in(frame), part.pose @ frame
        number = group if part.group is None else part.group
        if shape is None:
            shape, number = Sphere(ghost_radius(part, moments)), ghosts
        weight = {"fixed": True} if moments is None else {"mass": part.inertia.mass, "inertia": moments}
        material = material if part.material is None else part.material
        return scene.add_body(shape, pose[:3, 3], material, quaternion=quaternion_of(pose), group=number, **weight)

    def _ghost_group(self, scene, robot_group):
        """The group of bodies that touch nothing, if this plan needs one: one that there is, or the last one that is free."""
        if all(part.items for part in self.parts):
            return None
        ghosts = np.flatnonzero(scene.ignored.all(axis=0))
        taken = {robot_group, *(part.group for part in self.parts)}
        return int(ghosts[-1]) if len(ghosts) else free_groups(scene, 1, "links without a collision shape", taken)[0]


def ghost_radius(part, moments):
    """That of a ball with the same mean moment of inertia."""
    return GHOST_RADIUS if moments is None else math.sqrt(2.5 * moments.mean() / part.inertia.mass)


@contextlib.contextmanager
def naming(name):
    """What is refused inside is said to be of ``name``."""
    try:
        yield
    except (ValueError, TypeError, FileNotFoundError) as error:
        kind = next(kind for kind in (ValueError, TypeError, FileNotFoundError) if isinstance(error, kind))  # some want other arguments
        raise kind(f"{name}: {error}") from None


class RobotGroup(NamedTuple):
    number: int
    ignores_itself: bool


def robot_group(scene, group, self_collision):
    check_switch("self_collision", self_collision)
    if group is None:
        group = 0 if self_collision else free_groups(scene, 1, "a robot without self_collision")[0]
    if checks.count("group", group) >= GROUPS:
        raise ValueError(f"group must be below {GROUPS}, not {group}")
    return RobotGroup(group, not self_collision)


def free_groups(scene, count, whom, taken=()):
    """The last ``count`` collision groups in which no body is and which ignore nobody but ghosts."""
    ghosts = scene.ignored.all(axis=0)
    used = {0, *taken, *scene.bodies.tag[:, GROUP].tolist()}
    used.update(np.flatnonzero(ghosts | scene.ignored[:, ~ghosts].any(axis=1)).tolist())
    free = [group for group in range(GROUPS - 1, 0, -1) if group not in used]
    if len(free) < count:
        raise ValueError(f"scene must have {count} unused collision groups for {whom}, but of {GROUPS} only {len(free)} are unused")
    return free[:count]


def motors_for(names, motors):
    """Name -> motor of those joints that get one."""
    if motors is None:
        return {}
    if callable(motors):
        motors = {name: motors(name) for name in names}
    if not hasattr(motors, "items"):
        raise TypeError(f"motors must be a dictionary of joint names or a function of the name, not {motors!r:.80}")
    for name in motors:
        checks.choice("motors", name, names)
    return {name: motor for name, motor in motors.items() if motor is not None}
