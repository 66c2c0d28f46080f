"""From the checked keys of a scene file to a ``Scene``: materials, bodies, walls, robots, grains, more bodies, joints, in this
order.

Every part is tried, so that all that is wrong is told at once; what refers to a part that is wrong is passed over.
"""

import re

import numpy as np

from gravel.body_names import LONGEST, is_name
from gravel.io.mjcf import load_mjcf
from gravel.io.urdf import load_urdf
from gravel.joints.drives import ForceMotor, Limits, PositionMotor, SpeedMotor, SpringLaw
from gravel.joints.kinds import Joint
from gravel.model.cell import Deformation
from gravel.model.materials import DEFAULT, Material
from gravel.model.servo import ServoWall
from gravel.scene import Scene
from gravel.scenefile.diagnostics import suggestion
from gravel.scenefile.error_locations import attempt
from gravel.scenefile.joint_language import JOINT_KINDS
from gravel.scenefile.making import Shapes, beside, motion_of, number_or_table, surface_of, turn_of
from gravel.scenefile.placing import place
from gravel.scenefile.records import Given
from gravel.scenefile.values import BAD, any_bad

AXES = ("x", "y", "z")


class Builder:
    """Builds the scene of a file. ``given``: the checked keys of the whole file, wrong ones BAD."""

    def __init__(self, given, folder, faults, seed):
        self.given, self.folder, self.faults, self.seed = given, folder, faults, seed
        self.scene = self._empty_scene()
        self.materials = {name: self._made(Material, one, name=name) for name, one in self.section("materials", {}).items()}
        self.shapes = Shapes(folder, self.section("shapes", {}), faults, lambda name: given.item.value["shapes"].value[name].at)
        self.motions = {name: self._motion(one) for name, one in self.section("motions", {}).items()}
        self.bodies: dict = {}  # name -> ids, BAD if it was not made
        self.joints: dict = {}  # name -> id
        self.pours: list = []
        self.used: set = set()  # names of materials that something is made of
        self.pairs: set = set()  # of names of materials, for which values were given

    def section(self, name, empty):
        """A section of the file; empty where it is not there, or wrong as a whole."""
        value = self.given.get(name, empty)
        return empty if value is BAD else value

    def build(self) -> Scene:
        for name in self.section("shapes", {}):
            self.shapes.make(name)
        self._each("bodies", self._add_body)
        self._each("walls", self._add_wall)
        self._each("robots", self._add_robot)
        if not self.faults.found:  # placing may take long: not for nothing
            for k, one in enumerate(self.section("grains", [])):
                place(self, one, self.seed + k)
        else:
            for one in self.section("grains", []):
                if one is not BAD:
                    self.remember(one, BAD)
        self._each("more_bodies", self._add_body)
        self._each("pairs", self._set_pair)
        self._each("joints", self._add_joint)
        self._ignore()
        return self.scene

    def _each(self, name, function):
        for one in self.section(name, []):
            if one is not BAD:
                function(one)

    def attempt(self, given, function, *arguments, **options):
        return attempt(self.faults, given, function, *arguments, **options)

    def _made(self, kind, given, **more):
        return BAD if given is BAD else self.attempt(given, kind, **given, **more)

    def _empty_scene(self):
        gravity, cell = self.section("gravity", (0.0, 0.0, -9.81)), self.section("cell", None)
        if cell is None:
            return Scene(gravity)
        deformation = cell.get("deformation")
        made = None if deformation is None else self.attempt(deformation, Deformation, **deformation)
        if made is BAD:
            return Scene(gravity)
        periodic = [cell.get(axis) for axis in AXES]
        scene = self.attempt(cell, _periodic_scene, gravity, periodic, made)
        return Scene(gravity) if scene is BAD else scene

    # --- what bodies have
    def _motion(self, value):
        if value is BAD:
            return BAD
        if isinstance(value, str):
            return self.motions.get(value, BAD)
        return self.attempt(value.given, motion_of, value)

    def material(self, name):
        if name is None:
            return DEFAULT
        self.used.add(name)
        return self.materials[name]

    def common(self, given):
        """Options of ``add_bodies`` that bodies and grains share; None if one of them was not made."""
        options = {"material": self.material(given.get("material")), **given.only("fixed", "group")}
        for name in ("motion", "mass", "inertia") if given.get("fixed") else ():
            if name in given:
                words = "cannot be given beside fixed: true, with which a body never moves"
                self.faults.add(given.line_of(name), given.path_of(name), words)
        if "motion" in given:
            options["motion"] = self._motion(given["motion"])
        if "surface_velocity" in given:
            options["surface_velocity"] = surface_of(given["surface_velocity"])
        return None if any_bad(options.values()) else options

    def remember(self, given, ids, single=False):
        """What a name stands for; BAD: a thing that was not made. ``single``: one body, not a group that may have one."""
        if "name" not in given:
            return
        name = given["name"]
        self.bodies[name] = ids
        if ids is BAD or not len(ids):  # not made, or to be poured
            return
        if is_name(name):
            self.scene.body_names.add(name, int(ids[0]) if single else range(int(ids[0]), int(ids[-1]) + 1))
        else:
            words = f"must be a text of one line, of 1 to {LONGEST} letters, without blanks at its ends, not {name!r:.80}"
            self.faults.add(given.line_of("name"), given.path_of("name"), words)

    # --- bodies
    def _add_body(self, given):
        shape, options = self.shapes.make(given["shape"]), self.common(given)
        if isinstance(shape, type):
            word = given["shape"]
            self.faults.add(
                given.line_of("shape"), given.path_of("shape"), f"must say how large it is, as in {word}: {{...}}, not just {word!r}"
            )
            shape = BAD
        if shape is BAD or options is None:
            return self.remember(given, BAD)
        options.update(given.only("velocity", "angular_velocity", "mass", "inertia"))
        position, turn = given.get("position", (0.0, 0.0, 0.0)), turn_of(given.get("rotation"))
        body = self.attempt(given, self.scene.add_body, shape, position, quaternion=turn, **options)
        if body is not BAD and ("force" in given or "torque" in given):
            self.attempt(given, self.scene.set_force, body, **given.only("force", "torque"))
        return self.remember(given, body if body is BAD else [body], single=True)

    def _add_wall(self, given):
        options = {name: value for name, value in given.items() if name not in ("name", "on", "material")}
        for name in ("force", "stress", "speed"):
            if name in options:
                options[name] = number_or_table(options[name])
        options["material"] = self.material(given.get("material"))
        options["on"] = self.body(given, "on", given["on"]) if "on" in given else None
        wall = BAD if any_bad(options.values()) else self.attempt(given, ServoWall, self.scene, **options)
        self.remember(given, BAD if wall is BAD else [wall.body], single=True)
        if "name" in given:
            self.joints[given["name"]] = BAD if wall is BAD else wall.joint

    def _add_robot(self, given):
        options = {**given.only("position", "joint_positions"), "quaternion": turn_of(given.get("rotation"))}
        if "material" in given:
            options["material"] = self.material(given["material"])
        urdf = given["file"].lower().endswith(".urdf")
        if urdf:
            options.update(given.only("base"))
        elif "base" in given:
            self.faults.add(given.line_of("base"), given.path_of("base"), "goes with a .urdf file")
            return
        if any_bad(options.values()):
            return
        path = self.attempt(given, beside, self.folder, given["file"])
        options["outside_files"] = self.folder.outside_files
        before = self.scene.body_names.copy()
        robot = BAD if path is BAD else self.attempt(given, load_urdf if urdf else load_mjcf, self.scene, str(path), **options)
        if robot is BAD:
            self.remember(given, BAD)
        else:
            self.scene.body_names = before  # links are called robot.link here
            for link, body in robot.links.items():
                self.bodies[f"{given['name']}.{link}"] = [body]
                before.add(before.free(f"{given['name']}.{link}"), body)
            self.joints.update({f"{given['name']}.{joint}": number for joint, number in robot.joints.items()})

    # --- who with whom
    def body(self, given, key, name):
        """The id of a body by its name, ``name[k]`` of grains, or None for the world; BAD where there is none."""
        if name == "world":
            return None
        base, index = (name, None) if name in self.bodies else re.fullmatch(r"(.*?)(?:\[(\d+)\])?", name).groups()
        found = self.bodies.get(base)
        if found is BAD or (found is None and self._failed(base)):
            return BAD
        words = ""
        if found is None:
            words = f"must be the name of a body, not {name!r}{suggestion(name, self.bodies)}"
        elif index is None and len(found) > 1:
            words = f"must be one body: {name!r} are {len(found)}, say which, from {name}[0] on"
        elif int(index or 0) >= len(found):
            there = f"one of {len(found)} bodies, {base}[0] to {base}[{len(found) - 1}]" if len(found) else "there from the start"
            words = f"must be {there}, not {name!r}" + ("" if len(found) else f": {base!r} are poured")
        if words:
            self.faults.add(given.line_of(key), given.path_of(key), words)
            return BAD
        return int(found[int(index or 0)])

    def _failed(self, name):
        """Whether a name is given to something that was not made, of which a fault tells already."""
        robot = name.split(".")[0]
        return self.bodies.get(robot) is BAD or name in self.faults.names["body"]

    def _set_pair(self, given):
        first, second = (self.materials[name] for name in given["materials"])
        values, pair = {name: value for name, value in given.items() if name != "materials"}, frozenset(given["materials"])
        if not values or pair in self.pairs:
            words = "must have a value such as friction" if not values else "are a pair that is there already"
            self.faults.add(given.line_of("materials"), given.path_of("materials") if values else given.path, words)
        elif not any_bad((first, second)):
            self.attempt(given, self.scene.set_pair, first, second, **values)
        self.pairs.add(pair)

    def _ignore(self):
        given = self.section("ignore", Given(None, ""))
        for pair in given.get("groups", []):
            self.scene.ignore(*pair)
        for number, names in enumerate(given.get("pairs", [])):
            here = _Entry(given, "pairs", number)
            bodies = [self.body(here, None, name) for name in names]
            if not any_bad(bodies):
                self.attempt(here, self.scene.ignore_pair, *bodies)

    # --- joints
    def _add_joint(self, value):
        given, kind = value.given, JOINT_KINDS[value.kind]
        options = {name: self._option(name, one) for name, one in given.items() if name not in ("name", "between", "joints", "assemble")}
        if issubclass(kind, Joint):
            ends = [self.body(given, "between", name) for name in given["between"]]
        else:
            ends = [self._joint(given, name) for name in given["joints"]]
        number = BAD
        if not any_bad((*ends, *options.values())):
            number = self.attempt(given, self._joined, kind, ends, options, given.get("assemble", False))
        if "name" in given:
            self.joints[given["name"]] = number

    def _joined(self, kind, ends, options, assemble):
        return self.scene.add_joint(kind(*ends, **options), assemble)

    def _joint(self, given, name):
        if name not in self.joints:
            if name in self.faults.names["joint"] and self.faults.found:
                return BAD
            self.faults.add(given.line_of("joints"), given.path_of("joints"), f"must be the name of a joint above it, not {name!r}")
            return BAD
        return self.joints[name]

    def _option(self, name, value):
        """Limits, motors and springs of a joint from their keys."""
        if not isinstance(value, Given):
            return value
        make = {"limits": Limits, "motor": motor_of, "spring": SpringLaw}[name.removeprefix("turn_")]
        return self.attempt(value, make, **value)


class _Entry:
    """One entry of a list, for errors that are about it."""

    def __init__(self, given, key, number):
        self.path, self.at, self.value = f"{given.path_of(key)}[{number}]", given.item.value[key].value[number].at, {}

    @property
    def item(self):
        return self

    def line_of(self, key=None):
        return self.at

    def path_of(self, key=None):
        return self.path


def motor_of(speed=None, position=None, force=None, **options):
    if speed is not None:
        return _driven(SpeedMotor, speed, ("limit",), options)
    if position is not None:
        return _driven(PositionMotor, position, ("limit", "stiffness", "damping"), options)
    return _driven(ForceMotor, force, (), options)


def _driven(kind, value, allowed, options):
    for name in options:
        if name not in allowed:
            raise ValueError(f"{name} goes with {'position' if name != 'limit' else 'speed or position'}")
    return kind(number_or_table(value), **options)


def _periodic_scene(gravity, periodic, deformation):
    return Scene(gravity, periodic, deformation)


def ids_of(found) -> np.ndarray:
    """The ids that names stand for, as an array."""
    return np.concatenate([np.asarray(ids, int) for ids in found]) if found else np.empty(0, int)
