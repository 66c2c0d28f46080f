"""A URDF file as plain, checked XML.

Files are written in dialects: by people who separate numbers by commas, for Bullet, with marks that ROS fills in. What has one
plain meaning is put into plain URDF and noted; the rest is refused. Nothing outside the file is looked at, not even the environment.
"""

import os
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

from gravel import checks
from gravel.io.robots import LARGEST

HINGES, SLIDES = ("revolute", "continuous"), ("prismatic",)
KINDS = (*HINGES, *SLIDES, "fixed", "floating", "planar", "spherical")
READ = {  # the tags that are used, by the tag around them
    "robot": ("link", "joint", "material"),
    "link": ("inertial", "visual", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}
NUMBERS = {  # attributes and how many numbers they hold
    **dict.fromkeys(("xyz", "rpy", "size", "normal"), (3,)),
    **dict.fromkeys(("radius", "length", "ixx", "ixy", "ixz", "iyy", "iyz", "izz", "lower", "upper", "effort", "velocity"), (1,)),
    **dict.fromkeys(("damping", "friction", "multiplier", "offset"), (1,)),
    "scale": (1, 3),
}
SIZES = ("radius", "length", "size", "scale")
SHAPES = {  # tags of collision shapes and the attributes that they need
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "plane": ("normal",),
    "mesh": ("filename",),
}
OPTIONAL = re.compile(r"\$\(optenv\s+(\w+)\s+([^()]*[^()\s])\s*\)")  # a variable of the environment, and what holds without it
STOPPED = re.compile(r"(\s*[-+]?\d*\.\d+)\.\s*")  # 1.5. is 1.5
XACRO = "has xacro in it: expand it with the command xacro first"


def read_urdf(path, notes):
    """The outermost element of a URDF file, as ElementTree has it."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        root = _parsed(data, notes)
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # the latter two of encodings that there are not
        raise ValueError(f"path must be a URDF file, but {path!r} is no XML: {error}") from None
    _leave_namespace(root, notes)
    if root.tag != "robot":
        raise ValueError(f"path must be a URDF file, whose outermost tag is <robot>, but that of {path!r} is <{root.tag}>")
    if any(str(element.tag).startswith("{") or "${" in str(element.attrib) for element in root.iter()):
        raise ValueError(f"path must be a plain URDF file, but {path!r} {XACRO}")
    root.attrib.setdefault("name", os.path.splitext(os.path.basename(path))[0])
    return root


def _parsed(data, notes):
    try:
        return ElementTree.fromstring(data)
    except ElementTree.ParseError:
        trimmed = _trimmed(data, notes)
        if trimmed == data:
            raise
        return ElementTree.fromstring(trimmed)


def _trimmed(data, notes):
    """Without blanks before the XML declaration, and without what is no XML after the last tag."""
    start = data.lstrip()
    if start != data and start.startswith(b"<?xml"):
        notes.add("blanks before <?xml ...?> are left out")
        data = start
    robot, end, rest = data.rpartition(b"</robot>")
    if end and rest.strip() and b"<" not in rest:
        notes.add("what stands after </robot> is left out")
        data = robot + end
    return data


def _leave_namespace(root, notes):
    """Take the namespace of a <robot xmlns="..."> off all that is in it."""
    space, found, _ = root.tag.rpartition("}")
    if found and root.tag == f"{space}}}robot":
        notes.add("the namespace of <robot> is left out", repr(space[1:]))
        for element in root.iter():
            element.tag = str(element.tag).removeprefix(f"{space}}}")


def make_plain(root, notes):
    """Check what is used and put it into plain URDF; take out the rest, with notes. Shapes that are only seen are not looked at."""
    _check_names(root)
    for outer in (root, *root.findall("link"), *root.findall("joint")):
        _take_out(outer, notes)
    for element in root:
        name = f"{element.tag} {element.get('name')!r}"
        for one in element.iter():
            for key in one.attrib:
                _fill_in(name, one, key, notes)
                _check_numbers(name, one, key, notes)
    for link in root.findall("link"):
        _check_link(link, notes)


def _check_names(root):
    if root.find("link") is None:
        inside = ", ".join(f"<{tag}>" for tag in dict.fromkeys(str(element.tag) for element in root)) or "nothing"
        raise ValueError(f"robot {root.get('name')!r} must have a <link>, but has {inside}")
    for tag in ("link", "joint"):
        seen = set()
        for element in root.findall(tag):
            name = element.get("name")
            if not name:
                raise ValueError(f"each {tag} of robot {root.get('name')!r} must have a name, but one has none")
            if name in seen:
                raise ValueError(f"{tag} {name!r} must be there once, but its name is used twice")
            seen.add(name)
    for joint in root.findall("joint"):
        checks.choice(f"type of joint {joint.get('name')!r}", joint.get("type"), KINDS)
        for end in ("parent", "child"):
            if joint.find(end) is None or joint.find(end).get("link") is None:
                raise ValueError(f"joint {joint.get('name')!r} must have a {end} link, but has none")


def _take_out(outer, notes):
    """Remove what is not used inside <robot>, a <link> or a <joint>."""
    for element in list(outer):
        if element.tag not in READ[outer.tag]:
            notes.add(f"<{element.tag}> is left out", repr((element if outer.tag == "robot" else outer).get("name")))
        if element.tag not in READ[outer.tag] or element.tag in ("visual", "material"):
            outer.remove(element)
            if element.tag == "visual":
                outer.set("seen", "yes")


def _fill_in(name, element, key, notes):
    """Replace $(optenv NAME value) by the value."""
    text = element.get(key)
    for variable, _ in OPTIONAL.findall(text):
        notes.add("$(optenv ...) is what it is without the environment variable", variable)
    plain = OPTIONAL.sub(r"\2", text)
    if "$(" in plain:
        raise ValueError(f"{name}: {key} of <{element.tag}> must be plain, but {text!r} {XACRO}")
    element.set(key, plain)


def _check_numbers(name, element, key, notes):
    """An attribute that should be numbers is, and is written with blanks between them."""
    wanted = (1,) if (element.tag, key) == ("mass", "value") else NUMBERS.get(key)
    if wanted is None:
        return
    text = element.get(key)
    words = text.split(",") if "," in text else text.split()  # never both, since 0,5 1 2 may mean 0.5 1 2
    if any(map(STOPPED.fullmatch, words)):
        notes.add("full stops after numbers are left out", f"{key}={text!r} of {name}")
        words = [STOPPED.sub(r"\1", word) for word in words]
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if 3 in wanted and len(numbers) > 3 and "," not in text:
        notes.add("of more than three numbers the first three are taken", f"{key}={text!r} of {name}")
        numbers = numbers[:3]
    if len(numbers) not in wanted or not (np.abs(numbers) <= LARGEST).all():
        count = "a number" if wanted == (1,) else "three numbers"
        raise ValueError(f"{name}: {key} of <{element.tag}> must be {count} of at most {LARGEST:g}, not {text!r}")
    if key in SIZES and any(0.0 < abs(number) < 1 / LARGEST for number in numbers):
        raise ValueError(f"{name}: {key} of <{element.tag}> must be at least {1 / LARGEST:g}, not {text!r}")
    if "," in text:
        notes.add("commas between numbers are taken for blanks", name)
    element.set(key, " ".join(word.strip() for word in words[: len(numbers)]))


def _check_link(link, notes):
    name = link.get("name")
    if link.get("seen") and link.find("collision") is None:
        notes.add("links with a visual shape but no collision shape touch nothing", repr(name))
    for collision in link.findall("collision"):
        _check_collision(name, collision, notes)
    inertia = link.find("inertial/inertia")
    if inertia is not None and None in map(inertia.get, ("ixx", "iyy", "izz")):
        given = ", ".join(inertia.attrib) or "nothing"
        raise ValueError(f"link {name!r}: <inertia> must have ixx, iyy and izz, but has {given}")


def _check_collision(link, collision, notes):
    shapes = list(collision.find("geometry") if collision.find("geometry") is not None else ())
    if len(shapes) != 1 or shapes[0].tag not in SHAPES:
        found = ", ".join(f"<{shape.tag}>" for shape in shapes) or "nothing"
        *most, last = SHAPES
        raise ValueError(f"link {link!r}: the geometry of <collision> must be a {', '.join(most)} or {last}, not {found}")
    for attribute in SHAPES[shapes[0].tag]:
        if shapes[0].get(attribute) is None:
            raise ValueError(f"link {link!r}: <{shapes[0].tag}> must have a {attribute}, but has none")
    if shapes[0].tag in ("capsule", "plane"):
        notes.add(f"<{shapes[0].tag}>, which not all readers of URDF know, is taken as Bullet does", repr(link))


def taken_collisions(root):
    """Take the collision shapes out of plain URDF: name of a link -> [(element of the shape, pose in the link's frame)]."""
    taken = {}
    for link in root.findall("link"):
        found = link.findall("collision")
        taken[link.get("name")] = [(one.find("geometry")[0], _pose(one.find("origin"))) for one in found]
        for one in found:
            link.remove(one)
    return taken


def numbers_of(element, key):
    """The numbers of an attribute that was checked."""
    return np.array([float(word) for word in element.get(key).split()])


def _pose(origin):
    pose = np.eye(4)
    if origin is not None and origin.get("rpy") is not None:
        pose[:3, :3] = Rotation.from_euler("xyz", numbers_of(origin, "rpy")).as_matrix()
    if origin is not None and origin.get("xyz") is not None:
        pose[:3, 3] = numbers_of(origin, "xyz")
    return pose
