"""Robots from MJCF, MuJoCo's files.

MuJoCo's own compiler reads them: after it, all defaults, frames, masses and meshes are resolved, and its kinematics place bodies and
axes. Here they become bodies and joints of gravel. What has no counterpart is named in ``Robot.messages``; what of it changes the
physics is also warned about. Contacts, limits and equalities, which are springs in MuJoCo, are rigid here.
"""

import math
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.io.robots import (
    INSTALL,
    LARGEST,
    Coupling,
    Inertia,
    Notes,
    Part,
    Plan,
    PlannedJoint,
    Reach,
    Robot,
    RobotGroup,
    check_scene,
    check_switch,
    existing_file,
    free_groups,
    inverse,
    motors_for,
    naming,
    pose_of,
    possible_moments,
    sum_of,
)
from gravel.joints.drives import ForceMotor, Limits, Motor, PositionMotor, SpringLaw
from gravel.joints.kinds import Bushing, Cylindrical, Fixed, Gear, Planar, Prismatic, RackPinion, Revolute, SlideGear, Spherical, Universal
from gravel.model.materials import Material
from gravel.scene import GROUPS, Scene
from gravel.shapes import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from gravel.shapes.meshes import HeightField
from gravel.shapes.polyhedra import ConvexHull, principal

FREE, BALL, SLIDE, HINGE = range(4)  # types of joints, as MuJoCo numbers them
WORLD = 0
GEAR = 30.0  # turns of a rotor for each of its joint; more would make fast joints turn it too far in one step
PINION = 0.01  # m: radius of the rotor of a slide
MEETING = 1e-6  # m, rad: what lies nearer than this is at one place, or parallel
EVERYONE = 1, 1  # the contype and conaffinity of bodies that are not from MJCF
SEEN_ONLY = ("cameras", "ncam"), ("lights", "nlight"), ("sites", "nsite"), ("sensors", "nsensor"), ("skins", "nskin")
SOFT_BODIES = ("flexible bodies", "nflex"), ("plugins", "nplugin"), ("contact pairs", "npair")
NUMBERS = ("actuator_", "body_", "dof_", "eq_", "geom_", "hfield_", "jnt_", "key_", "mesh_", "qpos", "site_", "tendon_")  # that are used
UNHEARD = {  # options of geoms, joints and actuators that have no counterpart, where they are not zero
    "geom": ("margin", "adhesion", "surfacevel"),
    "dof": ("dampingpoly",),
    "jnt": ("stiffnesspoly", "springyield", "actgravcomp"),
    "actuator": ("armature", "damping", "dampingpoly", "delay"),
}


def load_mjcf(
    scene: Scene,
    path_or_xml: str | os.PathLike,
    position: ArrayLike = (0.0, 0.0, 0.0),
    quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    material: Material | None = None,
    joint_positions: Mapping[str, float] | None = None,
    motors: Mapping[str, Motor] | Callable[[str], Motor | None] | None = None,
    *,
    keyframe: str | int | None = None,
    controls: Mapping[str, float | Callable[[float], float]] | None = None,
    static: bool = True,
    rotors: bool = True,
    intermediate_mass: float = 1e-4,
    outside_files: bool = False,
) -> Robot:
    """Add the model of an MJCF file, or of a string with its XML, to a scene and return a ``Robot``.

    ``position`` (3,) m and ``quaternion`` (4,) place the model's world. ``material``: of all bodies; None takes the frictions of the file.
    It starts in the pose of ``keyframe`` (a name or number; None: the model's own), changed by ``joint_positions``: name -> rad or m.
    ``controls``: name of an actuator -> number or function of time; without it they have those of the keyframe, or 0.
    ``motors``: name of a hinge or slide -> motor, or a function of the name, instead of its actuators. ``static``: what is fixed to
    the world (floors, walls) is added, too: as bodies of that name, planes and height fields as "body/geom".
    ``rotors``: the armature of a hinge or slide becomes two small bodies on the parent that the joint turns by way of gears; without
    them it is left out. A body on several joints hangs on intermediate bodies, of ``intermediate_mass`` times its own, unless one
    joint of gravel is the same. ``Robot.joints`` has no free joints: nothing holds such a body.
    The model may refer to files (included ones, meshes, height fields, textures) in its own folder (of a text: the current one), in
    its package (the nearest folder above with a package.xml), or in a folder called meshes, assets, textures or the like beside its
    own. ``outside_files``: True takes them from anywhere, so only for files that one trusts.
    """
    check_scene(scene)
    checks.number("intermediate_mass", intermediate_mass, above=0.0, maximum=1.0)
    for name, value in (("static", static), ("rotors", rotors), ("outside_files", outside_files)):
        check_switch(name, value)
    place, source, notes = pose_of(position, quaternion), _Source(path_or_xml), Notes()
    model = _compiled(source, outside_files)
    with naming(source.name):
        file = _File(model, keyframe, joint_positions, place, notes)
        plan = Plan(file.model_name)
        _note_what_is_left_out(file, scene, notes)
        classes = _Classes(scene, plan, file, static, notes)
        part_of, standing = _plan_bodies(plan, file, static, classes, material, notes)
        drives = _drives(file, controls, motors, notes)
        _plan_gravity_compensation(plan, file, part_of, scene)
        coordinates = _plan_joints(plan, file, part_of, drives, intermediate_mass, notes)
        _plan_equalities(plan, file, part_of, coordinates, notes)
        _plan_armature(plan, file, part_of, coordinates, rotors, intermediate_mass, notes)
        _plan_excluded(plan, file, part_of, standing)
        return plan.add_to(scene, notes, material, RobotGroup(0, False))


# --- the text, and the files that it refers to
class _Source:
    """MJCF as it was given: the path of a file, or a text."""

    def __init__(self, path_or_xml):
        self.is_text = isinstance(path_or_xml, str) and path_or_xml.lstrip().startswith("<")
        self.given = path_or_xml if self.is_text else existing_file(path_or_xml, "an MJCF file or XML text")
        self.name = "the text" if self.is_text else repr(self.given)

    def root(self):
        return _root(self.given if self.is_text else _bytes(self.given), "it")


def _bytes(path):
    with open(path, "rb") as file:
        return file.read()


def _root(content, name):
    """The outermost element of a text, if MuJoCo sees it in the same way: its own reader takes more for XML, and knows no DOCTYPE."""
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        if "<!DOCTYPE" in text:
            raise ValueError("it has a DOCTYPE")
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        reason = f"path_or_xml must be an MJCF model, but {name} is no plain XML ({error})"
        hint = "so that the files it refers to cannot be told; outside_files=True lets MuJoCo read it all the same"
        raise ValueError(f"{reason}, {hint}") from None


def _refuse_outside(source):
    """Refuse a model that refers to files which it must not, before MuJoCo reads any of them.

    MuJoCo looks for a file from the folder of the model or of the file that names it, by way of the compiler's folders or not, with or
    without the folders in its own name. Whatever there is at one of these places must be allowed.
    """
    reach = Reach(os.getcwd() if source.is_text else source.given)
    documents, seen = [(source.root(), reach.folder)], set()
    for root, folder in documents:  # which grows by what is included
        for element in root.iter():
            if element.tag.lower() not in ("include", "model"):
                continue
            for path in _existing(reach, element.get("file", ""), (reach.folder, folder)):
                if os.path.isfile(path) and os.path.realpath(path) not in seen:
                    seen.add(os.path.realpath(path))
                    documents.append((_root(_bytes(path), f"{element.get('file')!r}, to which it refers,"), os.path.dirname(path)))
    elements = [(element, folder) for root, folder in documents for element in root.iter()]
    inner = {element.get(name, "") for element, _ in elements for name in ("meshdir", "texturedir", "assetdir")}
    inner |= set(map(_with_slashes, inner))
    for element, folder in elements:
        for name, written in element.items():
            if name.startswith("file"):  # file, fileright and so on
                _existing(reach, written, [os.path.join(start, way) for start in (reach.folder, folder) for way in inner])


def _existing(reach, written, folders):
    """The files that may be meant by a name in a model; refuses those that are not allowed."""
    plain = written.split("://", 1)[-1]
    names = dict.fromkeys((plain, _with_slashes(plain), os.path.basename(_with_slashes(plain))))
    paths = [path for folder in folders for path in (os.path.join(folder, name) for name in names if name) if os.path.exists(path)]
    for path in paths:
        if not reach.allows(path):
            raise reach.refusal(written, path)
    return paths


def _with_slashes(path):
    return path.replace("\\", "/")  # both separate folders for MuJoCo, on every system


# --- the compiled model
def _mujoco():
    try:
        import mujoco
    except ImportError:
        raise ImportError(f"reading MJCF files needs mujoco: {INSTALL}") from None
    return mujoco


def _compiled(source, outside_files):
    mujoco = _mujoco()
    if not outside_files:
        with naming(source.name):
            _refuse_outside(source)
    read = mujoco.MjModel.from_xml_string if source.is_text else mujoco.MjModel.from_xml_path
    try:
        model = read(source.given)
    except (ValueError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"path_or_xml must be an MJCF model, but {source.name} is refused by MuJoCo: {reason}") from None
    with naming(source.name):
        _check_numbers(model)
    return model


def _check_numbers(model):
    """MuJoCo takes nan and inf for numbers."""
    names = [name for name in dir(model) if name.startswith(NUMBERS) and not name.endswith("_user")]
    arrays = {name: getattr(model, name) for name in names}
    arrays.update({f"option {name}": getattr(model.opt, name) for name in ("gravity", "wind", "density", "viscosity")})
    for name, values in arrays.items():
        size = np.abs(np.asarray(values))
        allowed = f"numbers of at most {LARGEST:g}"
        wrong = ~(size <= LARGEST) if size.dtype.kind == "f" else np.zeros(0, bool)
        if name in ("geom_size", "hfield_size") and not wrong.any():
            wrong, allowed = (size > 0) & (size < 1 / LARGEST), f"at least {1 / LARGEST:g}"
        if wrong.any():
            raise ValueError(f"{name.replace('_', ' ')} must be {allowed}, but one is {np.asarray(values)[wrong].flat[0]:g}")


class _File:
    """The compiled model in its pose at the start, with names and poses at hand."""

    def __init__(self, model, keyframe, joint_positions, place, notes):
        mujoco = _mujoco()
        self.model, self.place, self.mujoco = model, place, mujoco
        objects = {"body": "BODY", "joint": "JOINT", "geom": "GEOM", "actuator": "ACTUATOR", "equality": "EQUALITY", "tendon": "TENDON"}
        counts = {"body": "nbody", "joint": "njnt", "geom": "ngeom", "actuator": "nu", "equality": "neq", "tendon": "ntendon"}
        for kind, code in objects.items():
            number = self.code("Obj", code)
            count = len(model.actuator_trntype) if kind == "actuator" else getattr(model, counts[kind])
            setattr(self, kind, [mujoco.mj_id2name(model, number, k) or f"{kind}{k}" for k in range(count)])
        self.model_name = bytes(model.names).split(b"\0")[0].decode() or "MJCF model"
        self.data = mujoco.MjData(model)
        self.has_keyframe = keyframe is not None
        if self.has_keyframe:
            self._take_keyframe(keyframe, notes)
        self._take_positions({} if joint_positions is None else joint_positions)
        self._keep_limits({} if joint_positions is None else joint_positions, notes)
        mujoco.mj_kinematics(model, self.data)

    def _take_keyframe(self, keyframe, notes):
        model, mujoco = self.model, self.mujoco
        names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_KEY, k) or str(k) for k in range(model.nkey)]
        if isinstance(keyframe, (int, np.integer)) and not isinstance(keyframe, bool):
            keyframe = str(keyframe) if keyframe not in range(model.nkey) else names[keyframe]
        number = names.index(checks.choice("keyframe", keyframe, names))
        mujoco.mj_resetDataKeyframe(model, self.data, number)
        if self.data.qvel.any():
            notes.add("the velocities of a keyframe are left out: the robot starts at rest", repr(keyframe), loss=True)

    def _take_positions(self, given):
        if not hasattr(given, "items"):
            raise TypeError(f"joint_positions must be a dictionary of joint names, not {given!r:.80}")
        for name, value in given.items():
            checks.choice("joint_positions", name, [self.joint[j] for j in self.with_coordinate()])
            self.data.qpos[self.model.jnt_qposadr[self.joint.index(name)]] = checks.number(f"joint_positions[{name!r}]", value)

    def _keep_limits(self, given, notes):
        """Poses of files may lie beyond the ranges of joints, which are soft in MuJoCo; such joints start at the nearest limit."""
        for j in self.with_coordinate():
            low, high = self.limits(j) or (-math.inf, math.inf)
            name, value = self.joint[j], self.value(j)
            if low - 1e-9 <= value <= high + 1e-9:
                continue
            if name in given:
                raise ValueError(f"joint_positions[{name!r}] must be within the joint's range, {low:g} to {high:g}, not {given[name]!r}")
            self.data.qpos[self.model.jnt_qposadr[j]] = min(max(value, low), high)
            notes.add("joints that the file starts beyond their range start at its end", f"{name!r} at {self.value(j):g}, not {value:g}")

    def code(self, kind, name):
        """The number that MuJoCo has for a name of one of its enumerations: code("Eq", "WELD")."""
        return int(getattr(getattr(self.mujoco, f"mjt{kind}"), f"mj{kind.upper()}_{name}"))

    def with_coordinate(self):
        return [j for j in range(self.model.njnt) if self.model.jnt_type[j] in (SLIDE, HINGE)]

    def value(self, joint):
        return float(self.data.qpos[self.model.jnt_qposadr[joint]])

    def limits(self, joint):
        return tuple(self.model.jnt_range[joint].tolist()) if self.model.jnt_limited[joint] else None

    def of_dof(self, joint, name):
        """An option of the first degree of freedom of a joint: damping, frictionloss."""
        return float(getattr(self.model, f"dof_{name}")[self.model.jnt_dofadr[joint]])

    def pose(self, body):
        return self.place @ pose_of(self.data.xpos[body], self.data.xquat[body])

    def anchor(self, joint):
        return self.place[:3, :3] @ self.data.xanchor[joint] + self.place[:3, 3]

    def axis(self, joint):
        return self.place[:3, :3] @ self.data.xaxis[joint]

    def joints_of(self, body):
        first = self.model.body_jntadr[body]
        return list(range(first, first + self.model.body_jntnum[body]))

    def holder(self, body):
        """The first of the bodies to which a body is welded; WORLD if it is fixed."""
        return int(self.model.body_weldid[body])

    def moves(self, body):
        return self.holder(body) != WORLD and self.model.body_jntnum[self.holder(body)] > 0

    def geoms_of(self, body):
        first = self.model.body_geomadr[body]
        touching = range(first, first + self.model.body_geomnum[body])
        return [g for g in touching if self.model.geom_contype[g] or self.model.geom_conaffinity[g]]

    def kind_of(self, geom):
        """The name of a geom's type: "sphere", "box" and so on."""
        return self.mujoco.mjtGeom(int(self.model.geom_type[geom])).name.removeprefix("mjGEOM_").lower()


def _note_what_is_left_out(file, scene, notes):
    """Everything in the model that no later stage looks at."""
    model, mujoco = file.model, file.mujoco
    for words, count in SEEN_ONLY:
        if getattr(model, count, 0):
            notes.add(f"{words} are left out ({getattr(model, count)})")
    for words, count in SOFT_BODIES:
        if getattr(model, count, 0):
            notes.add(f"{words} are left out ({getattr(model, count)})", loss=True)
    bare = [file.geom[g] for g in range(model.ngeom) if not (model.geom_contype[g] or model.geom_conaffinity[g])]
    if bare:
        notes.add("geoms that collide with nothing are left out", *map(repr, bare))
    option = model.opt
    if not np.allclose(file.place[:3, :3] @ option.gravity, scene.gravity, atol=1e-9):
        notes.add(f"the scene's gravity {scene.gravity.tolist()} acts, not the model's {option.gravity.tolist()}", loss=True)
    if option.density or option.viscosity or option.wind.any():
        notes.add("forces of a fluid (density, viscosity, wind) are left out", loss=True)
    flags = [flag for flag in mujoco.mjtDisableBit.__members__.values() if option.disableflags & int(flag)]
    if flags:
        names = (flag.name.removeprefix("mjDSBL_").lower() for flag in flags)
        notes.add("flags that switch something off have no effect", *names, loss=True)
    _note_unheard(file, notes)
    _note_tendons(file, notes)


def _note_unheard(file, notes):
    model = file.model
    owners = {
        "geom": file.geom.__getitem__,
        "dof": lambda k: file.joint[model.dof_jntid[k]],
        "jnt": file.joint.__getitem__,
        "actuator": file.actuator.__getitem__,
    }
    for prefix, options in UNHEARD.items():
        for option in options:
            values = np.asarray(getattr(model, f"{prefix}_{option}", ()), float)
            for k in np.flatnonzero(values.reshape(len(values), -1).any(axis=1)) if values.size else ():
                notes.add(f"{option} is left out", repr(owners[prefix](k)), loss=True)


def _note_tendons(file, notes):
    """Tendons pull on nothing here. Those that only measure a length are no loss."""
    model = file.model
    for k, name in enumerate(file.tendon):
        acts = any(np.any(getattr(model, f"tendon_{what}")[k]) for what in ("stiffness", "damping", "frictionloss", "limited"))
        notes.add("tendons are left out", repr(name), loss=bool(acts))


# --- bodies
class _Classes:
    """Collision groups for the bodies' pairs of contype and conaffinity: two bodies collide if a bit of the one's contype is in the
    other's conaffinity. Bodies that are not from the file count as (1, 1)."""

    def __init__(self, scene, plan, file, static, notes):
        self.file, self.notes = file, notes
        found = [self._bits(bodies) for bodies in _bodies_together(file).values() if static or file.moves(bodies[0])]
        others = sorted(set(found) - {None, EVERYONE})
        groups = free_groups(scene, len(others), "the contype and conaffinity of this model") if others else []
        self.groups = {EVERYONE: 0, **dict(zip(others, groups))}
        strangers = [group for group in range(GROUPS) if group not in groups]
        for bits, group in zip(others, groups):
            plan.ignored += [(group, other) for other in strangers if not _collide(bits, EVERYONE)]
            plan.ignored += [(group, self.groups[other]) for other in others if not _collide(bits, other)]

    def _bits(self, bodies):
        """The bits of all geoms of bodies that are one; None without geoms."""
        model, geoms = self.file.model, [g for body in bodies for g in self.file.geoms_of(body)]
        pairs = {(int(model.geom_contype[g]), int(model.geom_conaffinity[g])) for g in geoms}
        if len(pairs) > 1:
            self.notes.add("the bits of contype and conaffinity of a body's geoms are joined", repr(self.file.body[bodies[0]]), loss=True)
        return tuple(np.bitwise_or.reduce(list(pairs), axis=0).tolist()) if pairs else None

    def of(self, bodies):
        bits = self._bits(bodies)
        return None if bits is None else self.groups[bits]


def _collide(one, other):
    return bool(one[0] & other[1] or other[0] & one[1])


def _bodies_together(file):
    """Bodies that are one here, by the first of them: those welded to a moving one; each that is fixed is alone."""
    together = {}
    for body in range(file.model.nbody):
        together.setdefault(file.holder(body) if file.moves(body) else body, []).append(body)
    return together


def _plan_bodies(plan, file, static, classes, material, notes):
    """Parts of the plan; returns the number of each body's part, None for what is fixed, and the numbers of each fixed body's parts."""
    part_of, standing = {}, {}
    for first, bodies in _bodies_together(file).items():
        if file.moves(first):
            part_of.update(dict.fromkeys(bodies, len(plan.parts)))
            plan.parts.append(_moving_part(file, bodies, classes, material, notes))
            continue
        parts = _static_parts(file, first, classes, material, notes) if static else []
        part_of[first], standing[first] = None, [len(plan.parts) + k for k in range(len(parts))]
        plan.parts += parts
        if file.model.body_mocapid[first] >= 0:
            notes.add("mocap bodies stand still", repr(file.body[first]), loss=True)
    return part_of, standing


def _moving_part(file, bodies, classes, material, notes):
    """The body of MJCF bodies that are welded together, in the frame of the first."""
    model, first = file.model, bodies[0]
    seen = {body: inverse(file.pose(first)) @ file.pose(body) for body in bodies}
    items = []
    for body in bodies:
        for geom in file.geoms_of(body):
            shape = _shape(file, geom, notes)
            if shape is not None:
                items.append((shape, seen[body] @ pose_of(model.geom_pos[geom], model.geom_quat[geom])))
    inertia = sum_of([_inertia(model, body).seen_from(seen[body]) for body in bodies])
    name = file.body[first]
    if len(bodies) > 1:
        notes.add("bodies without joints are one body with their parent", *(repr(file.body[body]) for body in bodies[1:]))
    if not items:
        notes.add("bodies without a shape that collides are spheres that touch nothing", repr(name))
    if material is None:
        material = _material(file, [geom for body in bodies for geom in file.geoms_of(body)], name, notes)
    moments = possible_moments(principal(inertia.tensor)[0], f"body {name!r}", None, notes)
    links = {file.body[body]: pose for body, pose in seen.items()}
    return Part(name, file.pose(first), items, inertia, links, classes.of(bodies), material, moments)


def _inertia(model, body):
    turn = pose_of(model.body_ipos[body], model.body_iquat[body])
    return Inertia(float(model.body_mass[body]), np.zeros(3), np.diag(model.body_inertia[body])).seen_from(turn)


def _static_parts(file, body, classes, material, notes):
    """Fixed bodies of one body of the file: its convex geoms together, planes and height fields each alone."""
    name, group, parts, items, convex = file.body[body], classes.of([body]), [], [], []
    for geom in file.geoms_of(body):
        own = _material(file, [geom], name, notes) if material is None else material
        pose = pose_of(file.model.geom_pos[geom], file.model.geom_quat[geom])
        place, label = file.pose(body) @ pose, f"{name}/{file.geom[geom]}"
        if file.kind_of(geom) == "plane":
            flat = np.eye(4)
            flat[:3, 3] = place[:3, 3]
            parts.append(Part(label, flat, [(Plane(place[:3, 2]), np.eye(4))], None, {label: np.eye(4)}, group, own))
        elif file.kind_of(geom) == "hfield":
            parts.append(Part(label, place, [(_height_field(file.model, geom), np.eye(4))], None, {label: np.eye(4)}, group, own))
        else:
            shape = _shape(file, geom, notes)
            items += [] if shape is None else [(shape, pose)]
            convex.append(geom)
    if items:
        own = _material(file, convex, name, notes) if material is None else material
        parts.append(Part(name, file.pose(body), items, None, {name: np.eye(4)}, group, own))
    return parts


def _shape(file, geom, notes):
    """The shape of a convex geom; None, and a note, for others."""
    model, kind = file.model, file.kind_of(geom)
    a, b, c = (float(size) for size in model.geom_size[geom])
    with naming(f"geom {file.geom[geom]!r}"):
        if kind == "mesh":
            first, count = (getattr(model, f"mesh_vert{what}")[model.geom_dataid[geom]] for what in ("adr", "num"))
            return ConvexHull(model.mesh_vert[first : first + count])
        sizes = {"sphere": (a,), "capsule": (a, b), "cylinder": (a, b), "ellipsoid": ((a, b, c),), "box": ((a, b, c),)}
        shapes = {"sphere": Sphere, "capsule": Capsule, "cylinder": Cylinder, "ellipsoid": Ellipsoid, "box": Box}
        if kind in shapes:
            return shapes[kind](*sizes[kind])
    notes.add(f"geoms of type {kind} on bodies that move, or unknown here, are left out", repr(file.geom[geom]), loss=True)
    return None


def _height_field(model, geom):
    number = model.geom_dataid[geom]
    rows, columns, first = (int(getattr(model, f"hfield_{what}")[number]) for what in ("nrow", "ncol", "adr"))
    x, y, top, _ = model.hfield_size[number]
    heights = top * model.hfield_data[first : first + rows * columns].reshape(rows, columns).T  # rows run along y
    return HeightField(heights, (2 * x / (columns - 1), 2 * y / (rows - 1)))


def _material(file, geoms, name, notes):
    """The frictions of a body's geoms; None without geoms."""
    model = file.model
    rows = {(*(model.geom_friction[g].tolist()), int(model.geom_condim[g])) for g in geoms}
    if not rows:
        return None
    if len(rows) > 1:
        notes.add("the frictions of a body's geoms differ: the largest is taken", repr(name), loss=True)
    slide, spin, roll, dimensions = np.max(list(rows), axis=0)
    if slide != 1.0:
        notes.add("frictions of two bodies are mixed as the root of their product, not the larger one, as MuJoCo does")
    return Material(
        friction=slide if dimensions > 1 else 0.0,
        spinning_friction=spin if dimensions > 3 else 0.0,
        rolling_friction=roll if dimensions > 4 else 0.0,
    )


def _plan_gravity_compensation(plan, file, part_of, scene):
    """Bodies with gravcomp are carried by a constant force, which acts at the body of their whole part."""
    for body in np.flatnonzero(file.model.body_gravcomp):
        part = part_of[int(body)]
        if part is not None:
            force = -file.model.body_gravcomp[body] * file.model.body_mass[body] * scene.gravity
            plan.forces[part] = plan.forces.get(part, 0.0) + force


# --- what acts on hinges and slides
class _Drive(NamedTuple):
    """Options of a joint's coordinate, without their prefix, and whether there are any."""

    options: dict

    @property
    def acts(self):
        return any(self.options[name] for name in ("limits", "motor", "friction", "spring"))

    def written(self, prefix=""):
        return {prefix + name: value for name, value in self.options.items()}


def _drives(file, controls, motors, notes):
    """Joint number -> drive of each hinge and slide."""
    names = [file.joint[j] for j in file.with_coordinate()]
    given = motors_for(names, motors)
    acting = _actuators(file, controls, given, notes)
    drives = {}
    for j in file.with_coordinate():
        motor, damping = acting.get(j, (None, 0.0))
        motor = given.get(file.joint[j], motor)
        stiffness, damping = float(file.model.jnt_stiffness[j]), damping + file.of_dof(j, "damping")
        rest = float(file.model.qpos_spring[file.model.jnt_qposadr[j]])
        drives[j] = _Drive(
            {
                "start": file.value(j),
                "limits": None if file.limits(j) is None else Limits(*file.limits(j)),
                "motor": motor,
                "friction": file.of_dof(j, "frictionloss"),
                "spring": SpringLaw(stiffness, damping, rest) if stiffness or damping else None,
            }
        )
    return drives


def _actuators(file, controls, replaced, notes):
    """Joint number -> (motor, damping) of the actuators that act on hinges and slides."""
    controls = {} if controls is None else controls
    if not hasattr(controls, "items"):
        raise TypeError(f"controls must be a dictionary of actuator names, not {controls!r:.80}")
    for name, control in controls.items():
        checks.choice("controls", name, file.actuator)
        if not callable(control):
            checks.number(f"controls[{name!r}]", control)
    acting, model = {}, file.model
    on_joints = file.code("Trn", "JOINT"), file.code("Trn", "JOINTINPARENT")
    for a, name in enumerate(file.actuator):
        joint = int(model.actuator_trnid[a, 0])
        if model.actuator_trntype[a] not in on_joints or model.jnt_type[joint] not in (SLIDE, HINGE):
            notes.add("actuators that do not act on a hinge or slide are left out", repr(name), loss=True)
        elif file.joint[joint] in replaced:
            notes.add("actuators are replaced by motors", repr(name))
        elif joint in acting:
            notes.add("second actuators of a joint are left out", repr(name), loss=True)
        else:
            control = controls.get(name, float(file.data.ctrl[a]) if file.has_keyframe else 0.0)
            motor = _motor(file, a, control, notes)
            if motor is not None:
                acting[joint] = motor
    return acting


def _motor(file, a, control, notes):
    """(motor, damping) of one actuator, whose force is gear (gain u + b0 + b1 gear q + b2 gear q'); None, and a note, if it is of
    another law."""
    model, name = file.model, repr(file.actuator[a])
    affine = model.actuator_biastype[a] == file.code("Bias", "AFFINE")
    b0, b1, b2 = (float(b) for b in model.actuator_biasprm[a, :3]) if affine else (0.0, 0.0, 0.0)
    plain = model.actuator_dyntype[a] == file.code("Dyn", "NONE") and model.actuator_gaintype[a] == file.code("Gain", "FIXED")
    if not plain or not (affine or model.actuator_biastype[a] == file.code("Bias", "NONE")) or b1 > 0.0 or b2 > 0.0:
        notes.add("actuators with dynamics of their own, or gains that are not constant, are left out", name, loss=True)
        return None
    gear, gain = float(model.actuator_gear[a, 0]), float(model.actuator_gainprm[a, 0])
    low, high = model.actuator_ctrlrange[a].tolist() if model.actuator_ctrllimited[a] else (-math.inf, math.inf)
    push = lambda u: gain * min(max(u, low), high) + b0  # noqa: E731
    reach = _force_range(file, a)
    if b1 < 0.0 and gear:
        if callable(control) and b2:
            notes.add("the damping of a servo acts on the difference to the speed of its control", name)
        limit = abs(gear) * max(map(abs, reach))
        if reach[0] != -reach[1]:
            notes.add("force ranges are taken as equal both ways", name, loss=True)
        return PositionMotor(_of(control, push, -1 / (b1 * gear)), limit, -b1 * gear**2, -b2 * gear**2), 0.0
    if b2 and reach != (-math.inf, math.inf):
        notes.add("force ranges of velocity actuators are left out", name, loss=True)
        reach = -math.inf, math.inf
    return ForceMotor(_of(control, lambda u: min(max(push(u), reach[0]), reach[1]), gear)), -b2 * gear**2


def _force_range(file, a):
    model, joint = file.model, file.model.actuator_trnid[a, 0]
    low, high = model.actuator_forcerange[a].tolist() if model.actuator_forcelimited[a] else (-math.inf, math.inf)
    if model.jnt_actfrclimited[joint]:
        gear = abs(float(model.actuator_gear[a, 0])) or 1.0
        low, high = max(low, model.jnt_actfrcrange[joint, 0] / gear), min(high, model.jnt_actfrcrange[joint, 1] / gear)
    return float(low), float(high)


def _of(control, law, factor):
    """factor law(control): a number, or a function of time if the control is one."""
    return (lambda time: factor * law(control(time))) if callable(control) else factor * law(float(control))


# --- joints
class _Step(NamedTuple):
    """One joint of gravel for one or several of the file, in the order from the parent outwards."""

    joints: list
    kind: type
    options: dict


def _plan_joints(plan, file, part_of, drives, intermediate_mass, notes):
    """Joints of the plan; returns joint number -> (number in the plan, True for a hinge)."""
    coordinates = {}
    for body in range(file.model.nbody):
        joints = file.joints_of(body)
        if not joints or file.model.jnt_type[joints[0]] == FREE:
            _note_free(file, joints, notes)
            continue
        parent, child = part_of[int(file.model.body_parentid[body])], part_of[body]
        steps = _steps(file, joints, drives)
        above = parent
        for step, onward in zip(steps, [*steps[1:], None]):
            below = child if onward is None else _plan_intermediate(plan, file, child, onward, intermediate_mass, notes)
            for j in step.joints:
                coordinates[j] = len(plan.joints), file.model.jnt_type[j] == HINGE
            names = tuple(file.joint[j] for j in step.joints)
            plan.joints.append(PlannedJoint(names, step.kind, above, below, step.options))
            if step.kind is Spherical:
                _plan_ball(plan, file, step, above, below, notes)
            above = below
        if len(steps) > 1 and parent is not None:
            plan.apart.append((parent, child))
    return coordinates


def _note_free(file, joints, notes):
    for j in joints:
        if file.of_dof(j, "damping") or file.of_dof(j, "frictionloss"):
            notes.add("damping and frictionloss of free joints are left out", repr(file.joint[j]), loss=True)


def _steps(file, joints, drives):
    """The joints of one body as few of gravel's joints as are the same."""
    idle = [j in drives and not drives[j].acts and not file.of_dof(j, "armature") for j in joints]
    kinds = [int(file.model.jnt_type[j]) for j in joints]
    whole = _as_one(file, joints, kinds) if len(joints) > 1 and all(idle) else None
    if whole is not None:
        return [whole]
    steps, left = [], list(joints)
    while left:
        pair = left[:2]
        if len(pair) == 2 and _is_cylindrical(file, pair):
            steps.append(_cylindrical(file, pair, drives))
        else:
            pair = left[:1]
            steps.append(_single(file, left[0], drives))
        left = left[len(pair) :]
    return steps


def _as_one(file, joints, kinds):
    """Several joints on which nothing acts as one: planar, universal or ball joint; None if they are none of these."""
    axes = np.array([file.axis(j) for j in joints])
    anchors = np.array([file.anchor(j) for j in joints])
    if sorted(kinds) == [SLIDE, SLIDE, HINGE]:
        hinge = kinds.index(HINGE)
        slides = np.delete(axes, hinge, axis=0)
        if np.abs(slides @ axes[hinge]).max() < MEETING and np.linalg.norm(np.cross(*slides)) > MEETING:
            return _Step(joints, Planar, {"point": anchors[hinge], "axis": axes[hinge]})
    one_place = np.ptp(anchors, axis=0).max() < MEETING
    if kinds == [HINGE, HINGE] and one_place and abs(axes[0] @ axes[1]) < MEETING:
        return _Step(joints, Universal, {"point": anchors[0], "axis": axes[0], "axis_b": axes[1]})
    if kinds == [HINGE] * 3 and one_place and abs(np.linalg.det(axes)) > MEETING:
        return _Step(joints, Spherical, {"point": anchors[0]})
    return None


def _is_cylindrical(file, pair):
    """Is it a slide and a hinge along one direction?"""
    axes = [file.axis(j) for j in pair]
    return sorted(file.model.jnt_type[j] for j in pair) == [SLIDE, HINGE] and axes[0] @ axes[1] > 1 - MEETING**2


def _cylindrical(file, pair, drives):
    slide, hinge = sorted(pair, key=lambda j: file.model.jnt_type[j])
    options = {"point": file.anchor(hinge), "axis": file.axis(hinge), **drives[slide].written(), **drives[hinge].written("turn_")}
    return _Step(pair, Cylindrical, options)


def _single(file, joint, drives):
    kind = {BALL: Spherical, SLIDE: Prismatic, HINGE: Revolute}[int(file.model.jnt_type[joint])]
    options = {"point": file.anchor(joint)}
    if kind is not Spherical:
        options.update(axis=file.axis(joint), **drives[joint].written())
    return _Step([joint], kind, options)


def _plan_ball(plan, file, step, above, below, notes):
    """What acts on a ball joint: its spring and damper as a Bushing; limits and friction are lost."""
    j, name = step.joints[0], repr(file.joint[step.joints[0]])
    if file.model.jnt_type[j] != BALL:
        return
    first = file.model.jnt_qposadr[j]
    stiffness, damping = float(file.model.jnt_stiffness[j]), file.of_dof(j, "damping")
    if file.model.jnt_limited[j] or file.of_dof(j, "frictionloss"):
        notes.add("limits and frictionloss of ball joints are left out", name, loss=True)
    if stiffness and not np.allclose(file.data.qpos[first : first + 4], file.model.qpos_spring[first : first + 4], atol=MEETING):
        notes.add("springs of ball joints rest where the joint starts", name, loss=True)
    if stiffness or damping:
        options = {"point": step.options["point"], "turn_stiffness": stiffness, "turn_damping": damping}
        plan.joints.append(PlannedJoint((), Bushing, above, below, options))


def _plan_intermediate(plan, file, child, onward, share, notes):
    """A small body between two joints of one body; returns its number. It sits where the next joint is and has the same radius of
    gyration as the body itself."""
    part = plan.parts[child]
    name = f"{part.name} on {file.joint[onward.joints[0]]}"
    place = np.eye(4)
    place[:3, 3] = onward.options["point"]
    tensor = share * part.frame[1].mean() * np.eye(3)
    plan.parts.append(Part(name, place, [], Inertia(share * part.inertia.mass, np.zeros(3), tensor), {}))
    notes.add(f"between several joints of a body are small bodies of {share:g} times its mass", repr(part.name))
    return len(plan.parts) - 1


def _plan_armature(plan, file, part_of, coordinates, rotors, share, notes):
    """Armature adds to the inertia of a joint's coordinate, not to that of its bodies, as the rotor of a geared motor does. A rotor of
    inertia J that turns n times as fast as its hinge adds n^2 J; one that turns 1 / r rad for each m of its slide, J / r^2. There are
    two that turn against each other, so that they do not twist the parent."""
    for j in np.unique(file.model.dof_jntid[np.flatnonzero(file.model.dof_armature)]):
        name, armature = file.joint[j], file.of_dof(j, "armature")
        if not rotors or j not in coordinates or file.model.jnt_type[j] == BALL:
            notes.add("armature is left out", repr(name), loss=True)
            continue
        number, turns = coordinates[j]
        mass = share * plan.parts[part_of[int(file.model.jnt_bodyid[j])]].inertia.mass  # armature weighs nothing
        moment = 0.5 * (armature / GEAR**2 if turns else armature * PINION**2)
        for direction in (1.0, -1.0):
            hinge = _plan_rotor(plan, f"rotor of {name}", plan.joints[number], mass, moment)
            ends = (Gear, number, hinge, direction * GEAR) if turns else (RackPinion, hinge, number, direction * PINION)
            plan.couplings.append(Coupling(name, *ends))
        notes.add("armature is a pair of rotors on the parent", repr(name))


def _plan_rotor(plan, name, joint, mass, moment):
    """A body that turns about the axis of a joint on the joint's first body; returns the number of its hinge."""
    place = np.eye(4)
    place[:3, 3] = joint.options["point"]
    plan.parts.append(Part(name, place, [], Inertia(mass, np.zeros(3), moment * np.eye(3)), {}))
    options = {"point": joint.options["point"], "axis": joint.options["axis"]}
    plan.joints.append(PlannedJoint((), Revolute, joint.body_a, len(plan.parts) - 1, options))
    return len(plan.joints) - 1


# --- equalities and exclusions
def _plan_excluded(plan, file, part_of, standing):
    for signature in file.model.exclude_signature:
        ends = (int(body) for body in (signature >> 16, signature & 0xFFFF))
        ones, others = (standing[body] if part_of[body] is None else [part_of[body]] for body in ends)
        plan.apart += [(a, b) for a in ones for b in others if a != b]


def _plan_equalities(plan, file, part_of, coordinates, notes):
    model = file.model
    for k, name in enumerate(file.equality):
        if not model.eq_active0[k]:
            notes.add("equalities that are not active are left out", repr(name))
        elif model.eq_type[k] == file.code("Eq", "JOINT"):
            _plan_coupling(plan, file, k, coordinates, notes)
        elif model.eq_type[k] in (file.code("Eq", "CONNECT"), file.code("Eq", "WELD")):
            _plan_closing(plan, file, k, part_of, notes)
        else:
            notes.add("equalities of tendons and flexible bodies are left out", repr(name), loss=True)


def _plan_coupling(plan, file, k, coordinates, notes):
    """q1 - q1_0 = a0 + a1 (q2 - q2_0): joint 1 follows joint 2."""
    model, name = file.model, file.equality[k]
    follower, leader = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    offset, factor, *higher = model.eq_data[k, :5].tolist()
    ends = coordinates.get(leader), coordinates.get(follower)
    if None in ends or not factor or any(higher) or not _has_coordinates(plan, ends):
        notes.add("equalities of joints that are not linear, or of joints without a coordinate, are left out", repr(name), loss=True)
        return
    turned = [file.value(j) - float(model.qpos0[model.jnt_qposadr[j]]) for j in (follower, leader)]
    if abs(turned[0] - offset - factor * turned[1]) > MEETING:
        notes.add("equalities of joints count from where the joints start", repr(name), loss=True)
    (first, first_turns), (second, second_turns) = ends
    if first_turns != second_turns:
        first, second, factor = (first, second, factor) if first_turns else (second, first, 1 / factor)
        plan.couplings.append(Coupling(name, RackPinion, first, second, factor))
    else:
        plan.couplings.append(Coupling(name, Gear if first_turns else SlideGear, first, second, factor))


def _has_coordinates(plan, ends):
    return all(plan.joints[number].kind in (Revolute, Prismatic, Cylindrical) for number, _ in ends)


def _plan_closing(plan, file, k, part_of, notes):
    """connect and weld: a ball joint or a weld between two bodies, which may hang together otherwise."""
    model, name, is_weld = file.model, file.equality[k], file.model.eq_type[k] == file.code("Eq", "WELD")
    ends, anchors = (int(model.eq_obj1id[k]), int(model.eq_obj2id[k])), (model.eq_data[k, :3], model.eq_data[k, 3:6])
    if model.eq_objtype[k] == file.code("Obj", "SITE"):
        bodies, anchors = [int(model.site_bodyid[site]) for site in ends], np.zeros((2, 3))
        poses = [file.pose(body) @ pose_of(model.site_pos[site], model.site_quat[site]) for body, site in zip(bodies, ends)]
        wanted = np.eye(4)
    else:
        bodies, poses = ends, [file.pose(body) for body in ends]
        wanted = pose_of(model.eq_data[k, 3:6], model.eq_data[k, 6:10]) if is_weld else None
    a, b = (part_of[body] for body in bodies)
    if a == b:
        notes.add("equalities within one body are left out", repr(name))
    elif not is_weld:
        points = [pose[:3, :3] @ anchor + pose[:3, 3] for pose, anchor in zip(poses, anchors)]
        meet = np.linalg.norm(points[1] - points[0]) < MEETING
        options = {"point": points[0], "point_b": None if meet else points[1]}
        plan.joints.append(PlannedJoint((name,), Spherical, a, b, options, assemble=not meet))
    else:
        if np.abs(inverse(poses[0]) @ poses[1] - wanted).max() > MEETING:
            notes.add("welds hold the bodies as they lie at the start", repr(name), loss=True)
        plan.joints.append(PlannedJoint((name,), Fixed, a, b, {"point": poses[1][:3, 3]}))
