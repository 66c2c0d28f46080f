"""Robots from URDF files.

``urdf_file`` checks them, yourdfpy reads links and joints. Links that fixed joints connect become one body, unless they are to be
welded; meshes become their convex hulls. What has no counterpart is named in ``Robot.messages``.
"""

import io
import math
import os
import pathlib
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from gravel import checks
from gravel.io.robots import (
    INSTALL,
    Coupling,
    Inertia,
    Notes,
    Part,
    Plan,
    PlannedJoint,
    Reach,
    Robot,
    check_scene,
    check_switch,
    existing_file,
    inverse,
    motors_for,
    naming,
    pose_of,
    possible_moments,
    quaternion_of,
    robot_group,
    sum_of,
)
from gravel.io.urdf_file import HINGES, SLIDES, make_plain, numbers_of, read_urdf, taken_collisions
from gravel.joints.drives import ForceMotor, Motor, SpringLaw
from gravel.joints.kinds import Fixed, Gear, Planar, Prismatic, RackPinion, Revolute, SlideGear, Spherical
from gravel.model.materials import Material
from gravel.scene import Scene
from gravel.shapes import PLANE, Box, Capsule, Cylinder, Plane, Sphere
from gravel.shapes.compounds import Clump, Compound
from gravel.shapes.meshes import Mesh
from gravel.shapes.polyhedra import ConvexHull, principal, read_mesh

WATER = 1000.0  # kg/m3: of links of which nothing but the mass is known


def load_urdf(
    scene: Scene,
    path: str | os.PathLike,
    position: ArrayLike = (0.0, 0.0, 0.0),
    quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    base: str = "fixed",
    material: Material | None = None,
    joint_positions: Mapping[str, float] | None = None,
    motors: Mapping[str, Motor] | Callable[[str], Motor | None] | None = None,
    *,
    self_collision: bool = False,
    merge_fixed: bool = True,
    meshes: str = "hull",
    mesh_folder: str | os.PathLike | None = None,
    repair_inertia: bool = False,
    group: int | None = None,
    outside_files: bool = False,
) -> Robot:
    """Add the robot of a URDF file to a scene and return a ``Robot``.

    ``position`` (3,) m and ``quaternion`` (4,) place the frame of the root link, which is ``base="fixed"`` to the world or ``"floating"``.
    ``joint_positions``: name -> rad or m at the start (otherwise 0, or the nearest limit). ``motors``: name -> motor, or a function
    of the name that returns one or None; a motor without a limit gets the joint's effort. All bodies are of one ``material``.
    ``self_collision``: links collide with each other, except two that a joint connects; without it the robot's links pass through
    each other. Links on fixed joints become one body unless ``merge_fixed`` is False; then a weld holds those that have a mass.
    ``meshes``: "hull" takes the convex hull of a collision mesh, "clump" fills it with spheres. They are looked for next to the
    file, in the folders above it and in ``mesh_folder``; they must lie in the file's own folder, in its package (the nearest folder
    above with a package.xml, or the one that package://name names), in ``mesh_folder``, or in a folder called meshes, assets, visual,
    collision or the like beside the file's own. ``outside_files``: True takes them from anywhere, so only for files that one trusts.
    ``repair_inertia``: moments of inertia that no body can have are replaced by their mean instead of being refused; where that is
    not above 0, or there are none, by those of the collision shapes with the link's mass (without a shape, of a ball of water).
    ``group``: the collision group of the bodies.
    """
    check_scene(scene)
    checks.choice("base", base, ("fixed", "floating"))
    checks.choice("meshes", meshes, ("hull", "clump"))
    check_switch("repair_inertia", repair_inertia)
    path, place = existing_file(path, "a URDF file"), pose_of(position, quaternion)
    group = robot_group(scene, group, self_collision)
    shapes = _Shapes(path, mesh_folder, meshes, outside_files)
    notes = Notes()
    root = read_urdf(path, notes)
    with naming(repr(path)):
        make_plain(root, notes)
        collisions = taken_collisions(root)
        tree = Tree(_links_and_joints(root), collisions, notes)
        values = _joint_values(tree, joint_positions, notes)
        poses = _link_poses(tree, values, place)
        plan = Plan(tree.name)
        part_of = _plan_bodies(plan, tree, poses, base, merge_fixed, shapes, repair_inertia, notes)
        numbers = _plan_joints(plan, tree, poses, values, part_of, _motors_by_name(tree, motors), notes)
        _plan_mimics(plan, tree, numbers, notes)
        if not self_collision:
            notes.add("the robot's links pass through each other, since self_collision is False")
        return plan.add_to(scene, notes, material, group)


# --- the file
def _links_and_joints(root):
    """The robot of plain URDF without shapes, as yourdfpy reads it."""
    try:
        import yourdfpy
    except ImportError:
        raise ImportError(f"reading URDF files needs yourdfpy: {INSTALL}") from None
    with naming("it cannot be read as URDF"):
        text = io.BytesIO(ElementTree.tostring(root))
        return yourdfpy.URDF.load(text, build_scene_graph=False, load_meshes=False).robot


# --- the tree
class Tree:
    """Links and joints by name, checked; ``order``: links from the root outwards; ``above``: link -> the joint to its parent;
    ``collisions``: link -> [(element of a shape, pose)]."""

    def __init__(self, robot, collisions, notes):
        self.name, self.collisions = robot.name, collisions
        self.links = {link.name: link for link in robot.links}
        self.joints = {joint.name: joint for joint in robot.joints}
        self.above = {}
        for joint in robot.joints:
            for end in (joint.parent, joint.child):
                checks.choice(f"link of joint {joint.name!r}", end, self.links)
            if joint.child in self.above:
                both = f"{self.above[joint.child].name!r} and {joint.name!r}"
                raise ValueError(f"link {joint.child!r} must be the child of one joint, but is that of {both}; URDF has no closed loops")
            self.above[joint.child] = joint
            self._check_joint(joint, notes)
        roots = [name for name in self.links if name not in self.above]
        if len(roots) != 1:
            found = f"has {len(roots)}: {', '.join(map(repr, roots))}" if roots else "its joints go round in a circle"
            raise ValueError(f"robot {self.name!r} must have one root link, but {found}")
        self.order = self._outwards(roots[0])

    def _outwards(self, root):
        order = [root]
        for link in order:
            order += [joint.child for joint in self.joints.values() if joint.parent == link]
        if len(order) < len(self.links):
            lost = next(name for name in self.links if name not in order)
            raise ValueError(f"link {lost!r} must be reached from the root {root!r}, but its joints go round in a circle")
        return order

    def _check_joint(self, joint, notes):
        if joint.origin is None:
            joint.origin = np.eye(4)
        if joint.type != "fixed":
            joint.axis = checks.unit(f"axis of joint {joint.name!r}", joint.axis)
        for name in ("damping", "friction"):
            value = float(getattr(joint.dynamics, name, None) or 0.0)
            checks.number(f"{name} of joint {joint.name!r}", value, minimum=0.0)
        if joint.mimic is not None:
            checks.choice(f"mimic of joint {joint.name!r}", joint.mimic.joint, self.joints)
        limit = joint.limit
        if limit is None or joint.type not in ("revolute", "prismatic"):
            return
        if limit.lower is None and limit.upper is None:
            notes.add("limits without lower and upper are taken for none", repr(joint.name))
        elif (limit.lower or 0.0) > (limit.upper or 0.0):
            notes.add("limits with lower above upper are taken for none, as Bullet does", repr(joint.name), loss=True)

    def has_coordinate(self, name):
        return self.joints[name].type in (*HINGES, *SLIDES)

    def limits(self, name):
        """(lower, upper) of a joint, or None."""
        joint = self.joints[name]
        if joint.type not in ("revolute", "prismatic") or joint.limit is None or (joint.limit.lower, joint.limit.upper) == (None, None):
            return None
        lower, upper = joint.limit.lower or 0.0, joint.limit.upper or 0.0  # URDF: 0 where one is not given
        return (lower, upper) if lower <= upper else None

    def mimicked(self, name):
        """The joint that a joint mimics in the end, by way of others, with factor and offset: q = factor q_other + offset."""
        factor, offset, seen = 1.0, 0.0, [name]
        while self.joints[name].mimic is not None:
            mimic = self.joints[name].mimic
            factor, offset, name = factor * mimic.multiplier, offset + factor * mimic.offset, mimic.joint
            if name in seen:
                raise ValueError(f"joint {name!r} must not mimic itself, but does by way of {', '.join(map(repr, seen))}")
            seen.append(name)
        return name, factor, offset


def _joint_values(tree, given, notes):
    """The value of each hinge and slide at the start, by name."""
    given = {} if given is None else given
    if not hasattr(given, "items"):
        raise TypeError(f"joint_positions must be a dictionary of joint names, not {given!r:.80}")
    for name, value in given.items():
        checks.choice("joint_positions", name, [n for n in tree.joints if tree.has_coordinate(n)])
        checks.number(f"joint_positions[{name!r}]", value)
    leaders = {name: _leader_value(tree, name, given, notes) for name in tree.joints if tree.joints[name].mimic is None}
    values = dict(leaders)
    for name, joint in tree.joints.items():
        if joint.mimic is not None:
            leader, factor, offset = tree.mimicked(name)
            values[name] = factor * leaders[leader] + offset
            if abs(given.get(name, values[name]) - values[name]) > 1e-9:
                must = f"must be {values[name]:g}, since it mimics {leader!r}"
                raise ValueError(f"joint_positions[{name!r}] {must}, not {given[name]!r}; give that of {leader!r}")
        if tree.limits(name) and not _within(values[name], tree.limits(name)):
            allowed = "must be within its limits, {:g} to {:g}".format(*tree.limits(name))
            raise ValueError(f"position of joint {name!r} at the start {allowed}, not {values[name]:g}")
    return values


def _leader_value(tree, name, given, notes):
    value = float(given.get(name, 0.0))
    limits = tree.limits(name)
    if limits and name not in given and not _within(0.0, limits):
        value = min(limits, key=abs)
        notes.add("joints start at the limit nearest to 0, which their limits exclude", f"{name!r} at {value:g}")
    return value


def _within(value, limits):
    return limits[0] - 1e-9 <= value <= limits[1] + 1e-9


def _link_poses(tree, values, root):
    """Pose of each link's frame in the world: forward kinematics."""
    poses = {tree.order[0]: root}
    for link in tree.order[1:]:
        joint = tree.above[link]
        motion = np.eye(4)
        if joint.type in HINGES:
            motion[:3, :3] = Rotation.from_rotvec(values[joint.name] * joint.axis).as_matrix()
        elif joint.type in SLIDES:
            motion[:3, 3] = values[joint.name] * joint.axis
        poses[link] = poses[joint.parent] @ joint.origin @ motion
    return poses


# --- bodies
def _plan_bodies(plan, tree, poses, base, merge_fixed, shapes, repair, notes):
    """Parts of the plan; returns the number of each link's part."""
    inertias = {name: _link_inertia(link, repair) for name, link in tree.links.items()}
    members, part_of = [], {}
    for link in tree.order:
        joint = tree.above.get(link)
        if joint is not None and joint.type == "fixed" and (merge_fixed or inertias[link] is None):
            part_of[link] = part_of[joint.parent]
            members[part_of[link]].append(link)
        else:
            part_of[link] = len(members)
            members.append([link])
    for links in members:
        fixed = base == "fixed" and links[0] == tree.order[0]
        plan.parts.append(_part(tree, links, poses, inertias, fixed, shapes, repair, notes))
    for number, part in enumerate(plan.parts[:]):
        plan.parts[number], planes = _apart_from_planes(part)
        plan.parts += planes
    return part_of


def _part(tree, links, poses, inertias, fixed, shapes, repair, notes):
    """The body of links that are joined rigidly, in the frame of the first."""
    first = links[0]
    seen = {link: inverse(poses[first]) @ poses[link] for link in links}
    items = [(shape, seen[link] @ pose) for link in links for shape, pose in shapes.of(link, tree.collisions[link])]
    if not items:
        notes.add("links without a collision shape are spheres that touch nothing", repr(first))
    inertia, moments = None, None
    if not fixed:
        if any(shape.KIND == PLANE for shape, _ in items):
            raise ValueError(f"link {first!r} must be fixed to the world, since it has a <plane>, but it moves")
        inertia = sum_of([inertias[link].seen_from(seen[link]) for link in links if inertias[link] is not None])
        if inertia is None:
            raise ValueError(f"link {first!r} must have a mass above 0 kg, since it moves, but has none (nor have links fixed to it)")
        moments = principal(inertia.tensor)[0]
        if repair and not moments.mean() > 1e-9 * np.abs(moments).max():
            inertia = inertia._replace(tensor=_tensor_by_shape(inertia.mass, items, first, notes))
            moments = principal(inertia.tensor)[0]
        moments = possible_moments(moments, f"link {first!r}", repair, notes)
    if len(links) > 1:
        notes.add("links on fixed joints are one body with their parent", *map(repr, links[1:]))
    return Part(first, poses[first], items, inertia, seen, moments=moments)


def _apart_from_planes(part):
    """The part without planes, which can share a body with nothing else, and a fixed part for each of them."""
    planes, others = ([item for item in part.items if (item[0].KIND == PLANE) == wanted] for wanted in (True, False))
    if not planes or len(part.items) == 1:
        return part, []
    kept = others or [planes.pop(0)]
    return part._replace(items=kept), [Part(part.name, part.pose, [item], None, {}) for item in planes]


def _tensor_by_shape(mass, items, name, notes):
    """The tensor of inertia, kg m2, of shapes that fill with a mass, about their own centre."""
    if not items:
        notes.add("moments of inertia that are not above 0 were replaced by those of a ball of water of that mass", f"link {name!r}")
        return 0.4 * mass * (0.75 * mass / (math.pi * WATER)) ** (2 / 3) * np.eye(3)
    notes.add("moments of inertia that are not above 0 were replaced by those of the collision shapes", f"link {name!r}")
    whole = Compound([(shape, pose[:3, 3], quaternion_of(pose)) for shape, pose in items]).mass
    turn = pose_of(whole.centre, whole.axes)[:3, :3]
    return mass * turn @ np.diag(whole.moments) @ turn.T


def _link_inertia(link, repair):
    """In the link's frame; None without a mass."""
    given = link.inertial
    if given is None or given.mass is None or given.mass == 0.0:
        return None
    checks.number(f"mass of link {link.name!r}", given.mass, above=0.0)
    if given.inertia is None and not repair:
        advice = "repair_inertia=True takes that of its shapes"
        raise ValueError(f"link {link.name!r} must have an <inertia> with its mass of {given.mass:g} kg, but has none; {advice}")
    tensor = np.zeros((3, 3)) if given.inertia is None else given.inertia
    pose = np.eye(4) if given.origin is None else given.origin
    return Inertia(given.mass, np.zeros(3), tensor).seen_from(pose)


class _Shapes:
    """Collision shapes of links. Each mesh file is read once for each scale."""

    def __init__(self, path, mesh_folder, meshes, outside_files):
        self.folders = [] if mesh_folder is None else [os.path.abspath(os.fspath(mesh_folder))]
        self.reach = Reach(path, self.folders, outside_files)
        self.folders += map(str, pathlib.PurePath(os.path.abspath(path)).parents)
        self.meshes, self.made = meshes, {}

    def of(self, link, collisions):
        """[(shape, pose in the link's frame)]"""
        with naming(f"link {link!r}"):
            return [(self._shape(element), pose) for element, pose in collisions]

    def _shape(self, element):
        sizes = [numbers_of(element, key) for key in ("size", "normal") if element.get(key)]
        if element.tag == "box":
            return Box(0.5 * sizes[0])
        if element.tag == "plane":
            return Plane(sizes[0])
        if element.tag == "mesh":
            return self._mesh_once(element)
        radius, half_length = (factor * float(element.get(key, 0.0)) for key, factor in (("radius", 1.0), ("length", 0.5)))
        return Sphere(radius) if element.tag == "sphere" else {"cylinder": Cylinder, "capsule": Capsule}[element.tag](radius, half_length)

    def _mesh_once(self, element):
        scale = np.ones(3) if element.get("scale") is None else np.broadcast_to(numbers_of(element, "scale"), 3)
        key = element.get("filename"), tuple(scale)
        if key not in self.made:
            self.made[key] = self._mesh(*key)
        return self.made[key]

    def _mesh(self, filename, scale):
        path = self._found(filename)
        vertices, triangles = read_mesh(path)
        if self.meshes == "hull":
            return ConvexHull(scale * vertices, source=path)
        triangles = triangles[:, ::-1] if np.prod(scale) < 0 else triangles  # a mirror turns triangles over
        return Clump.from_mesh(Mesh(scale * vertices, triangles, source=path))

    def _found(self, filename):
        """The mesh file that a URDF names: package://name/rest, file://path or a path."""
        plain = filename.split("://", 1)[-1]
        names, package = [plain], None
        if filename.startswith(("package://", "model://")):
            package, _, rest = plain.partition("/")
            names.append(rest)
        places = [path for folder in self.folders for path in (os.path.join(folder, name) for name in names) if os.path.isfile(path)]
        if not places:
            raise ValueError(f"mesh {filename!r} must be beside or above the URDF file, or in mesh_folder, but was not found")
        for path in places:
            if self.reach.allows(path, package):
                return path
        raise self.reach.refusal(filename, places[0])


# --- joints
def _motors_by_name(tree, motors):
    """Joint name -> motor, from a dictionary or a function."""
    driven = [name for name in tree.joints if tree.has_coordinate(name)]
    return motors_for(driven, motors)


def _plan_joints(plan, tree, poses, values, part_of, motors, notes):
    """Joints of the plan; returns the number of each by name."""
    numbers = {}
    for link in tree.order[1:]:
        joint = tree.above[link]
        ends = part_of[joint.parent], part_of[link]
        if ends[0] == ends[1]:
            continue
        if joint.type == "floating":
            notes.add("floating joints hold nothing: their links are free", repr(joint.name))
            continue
        options = {"point": poses[link][:3, 3], "axis": poses[link][:3, :3] @ joint.axis}
        kind = {"fixed": Fixed, "planar": Planar, "prismatic": Prismatic, "spherical": Spherical}.get(joint.type, Revolute)
        if tree.has_coordinate(joint.name):
            options.update(_drive(tree, joint, values[joint.name], motors.get(joint.name), notes))
        elif joint.type != "fixed":
            _note_undriven(joint, notes)
        numbers[joint.name] = len(plan.joints)
        plan.joints.append(PlannedJoint((joint.name,), kind, *ends, options))
    return numbers


def _drive(tree, joint, value, motor, notes):
    """What acts on the coordinate of a hinge or slide."""
    damping, friction = (float(getattr(joint.dynamics, name, None) or 0.0) for name in ("damping", "friction"))
    if joint.limit is not None and joint.limit.velocity:
        notes.add("velocity limits are not enforced", repr(joint.name))
    return {
        "start": value,
        "limits": tree.limits(joint.name),
        "friction": friction,
        "spring": SpringLaw(damping=damping) if damping else None,
        "motor": motor if motor is None else _limited(motor, joint, notes),
    }


def _limited(motor, joint, notes):
    """The motor with the joint's effort as its limit, if it has none of its own."""
    effort = joint.limit.effort if joint.limit is not None else None
    if effort is None or isinstance(motor, ForceMotor) or getattr(motor, "limit", 0.0) != math.inf:
        return motor
    if effort <= 0.0:
        notes.add("efforts that are not above 0 are no limits of motors", repr(joint.name))
        return motor
    return replace(motor, limit=effort)


def _note_undriven(joint, notes):
    """What a planar or spherical joint has in the file, but not here."""
    if joint.type == "spherical":
        notes.add("spherical joints, which not all readers of URDF know, are taken as Bullet does", repr(joint.name))
    lost = [name for name in ("damping", "friction") if float(getattr(joint.dynamics, name, None) or 0.0)]
    lost += ["limits"] * (joint.limit is not None)
    if lost:
        notes.add(f"{', '.join(lost)} of {joint.type} joints cannot be had", repr(joint.name), loss=True)


def _plan_mimics(plan, tree, numbers, notes):
    """Couplings of joints that mimic others: q = factor q_other + offset; the start satisfies the offset."""
    for name, joint in tree.joints.items():
        if joint.mimic is None or name not in numbers:
            continue
        leader, factor, _ = tree.mimicked(name)
        if leader not in numbers or factor == 0.0 or not (tree.has_coordinate(leader) and tree.has_coordinate(name)):
            notes.add("mimic of or by a joint without a coordinate, or with multiplier 0, is left out", repr(name), loss=True)
            continue
        first, second = (tree.joints[one].type in HINGES for one in (leader, name))
        if first and second:
            plan.couplings.append(Coupling(name, Gear, numbers[leader], numbers[name], factor))
        elif first:
            plan.couplings.append(Coupling(name, RackPinion, numbers[leader], numbers[name], factor))
        elif second:
            plan.couplings.append(Coupling(name, RackPinion, numbers[name], numbers[leader], 1 / factor))
        else:
            plan.couplings.append(Coupling(name, SlideGear, numbers[leader], numbers[name], factor))
