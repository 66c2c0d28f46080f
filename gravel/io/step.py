"""Machines from STEP files: parts become bodies with the mass properties of the CAD kernel, and joints are made by name.

``cad.step`` reads the file. Here parts are put together to bodies (``rigid``), weighed, and given shapes for contact, which never
change what they weigh.
"""

import copy
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks
from gravel.cad.step import Model, Product, chosen, read_step, unique
from gravel.io.assembly import Assembly, axes_in
from gravel.io.robots import Inertia, Notes, Reach, check_scene, check_switch, free_groups, inverse, naming, pose_of, quaternion_of, sum_of
from gravel.model.materials import DEFAULT, Material
from gravel.scene import GROUPS, Scene
from gravel.shapes.compounds import Clump, Compound
from gravel.shapes.meshes import Mesh
from gravel.shapes.polyhedra import ConvexHull, Mass, principal

CONTACTS = ("hull", "pieces", "clump", "mesh", "sheet", "none")
SURFACES = ("mesh", "sheet")  # kinds of contact whose shapes are triangles, which compounds do not take
FILLED = 1.05  # a hull larger than its part by this factor is told of
CONCAVITY = 0.05  # of convex pieces: where coacd stops cutting (its own default)
PIECES = 'pip install "gravel[coacd]"'


def load_step(
    scene: Scene,
    path: str | os.PathLike,
    density: float | Mapping[str, float] | None = None,
    material: Material | Mapping[str, Material] | None = None,
    fixed: str | Iterable[str] = (),
    contact: str | Mapping[str, str] = "hull",
    *,
    rigid: str | Sequence[str] | Mapping[str, str | Iterable[str]] | None = None,
    position: ArrayLike = (0.0, 0.0, 0.0),
    quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    tolerance: float | None = None,
    self_collision: bool = False,
    outside_files: bool = False,
) -> Assembly:
    """Add the parts of a STEP file to a scene as bodies and return an ``Assembly``, which knows them by name and makes joints.

    Mass, centre and inertia are those of the exact geometry, whatever the contact shapes are; units come from the file.
    A name means a part; or all parts of a product, of an instance or in an assembly; or a pattern such as "bolt*". Dictionaries go by such
    names; of several that fit a part the last counts, so {"*": 7850, "bucket": 2700} is 7850 but for the bucket.

    ``density``: kg/m3, one or by name (otherwise, that of the material). ``material``: one or by name. ``fixed``: names of parts that do
    not move. ``contact``, one or by name: "hull", the convex hull; "pieces", convex pieces that follow hollows (needs coacd); "clump",
    spheres inside; "mesh", triangles; "sheet", triangles that stop bodies from both sides; "none": the part touches nothing, and its hull
    is only seen. A part that encloses no volume must be fixed, and is a sheet.
    ``rigid``: names of assemblies, each of which becomes one body, or a dictionary of new names -> names of parts that become one body.
    ``position`` (3,) m and ``quaternion`` (4,) place the file's coordinates. ``tolerance``: how far triangles and hulls may be from the
    surface, m (otherwise 1/1000 of a part's size). ``self_collision``: parts collide with each other, except two that a joint connects;
    without it they pass through each other. ``outside_files``: True allows files that the file refers to anywhere, not only in its
    folder.
    """
    check_scene(scene)
    check_switch("self_collision", self_collision)
    place = pose_of(position, quaternion)
    reach = Reach(path, anywhere=outside_files) if isinstance(path, (str, os.PathLike)) else None
    model = read_step(path, tolerance, None if reach is None or reach.anywhere else reach.roots)
    with naming(repr(os.fspath(path))):
        notes = Notes()
        settings = _settings(model.parts, density, material, fixed, contact)
        plan = _Plan(model, place, settings, _bodies(model.parts, rigid), notes)
        plan.add_to(Scene(scene.gravity), 0, 1)  # whatever is refused is refused here
        group = 0 if self_collision else free_groups(scene, 1, "an assembly without self_collision")[0]
        nothing = _touching_nothing(scene, group) if "none" in settings.contacts else None
        bodies, frames = plan.add_to(scene, group, nothing)
        if not self_collision:
            scene.ignore(group, group)
            notes.add("the parts pass through each other, since self_collision is False")
        for other in range(GROUPS if nothing is not None else 0):
            scene.ignore(nothing, other)
        return plan.assembly(bodies, frames, group)


# --- by name
class _Settings(NamedTuple):
    """Of each part."""

    densities: list[float]
    materials: list[Material]
    fixed: set[int]
    contacts: list[str]


def _settings(parts, density, material, fixed, contact):
    materials = _by_name("material", material, parts, DEFAULT)
    for one in materials:
        if not isinstance(one, Material):
            raise TypeError(f"material must be a Material, or a dictionary of names and materials, not {one!r:.80}")
    densities = [
        one.density if given is None else checks.number("density", given, above=0.0)
        for given, one in zip(_by_name("density", density, parts, None), materials)
    ]
    contacts = [checks.choice("contact", one, CONTACTS) for one in _by_name("contact", contact, parts, "hull")]
    names = [fixed] if isinstance(fixed, str) else fixed
    if not isinstance(names, Iterable):
        raise TypeError(f"fixed must be names of parts, not {fixed!r:.80}")
    return _Settings(densities, materials, {number for name in names for number in chosen("fixed", name, parts)}, contacts)


def _by_name(argument, given, parts, default):
    """The value for each part, of one for all or a dictionary by name."""
    if not isinstance(given, Mapping):
        return [default if given is None else given] * len(parts)
    values = [default] * len(parts)
    for name, value in given.items():
        for number in chosen(argument, name, parts):
            values[number] = value
    return values


class _Body(NamedTuple):
    """A body to be: its name, the numbers of its parts, and whether it is a group of parts."""

    name: str
    parts: list[int]
    is_group: bool = False


def _bodies(parts, rigid):
    """All bodies: the rigid groups, and each part that is in none."""
    groups = _groups(parts, rigid)
    taken: dict[int, str] = {}
    for name, numbers in groups:
        for number in numbers:
            if number in taken:
                raise ValueError(f"rigid must have each part once, but {parts[number].name!r} is in {taken[number]!r} and {name!r}")
            taken[number] = name
    for name, numbers in groups:
        for number, part in enumerate(parts):
            if part.name == name and number not in numbers:
                raise ValueError(f"rigid must give new names or those of what is inside, but {name!r} is another part")
    starts = {min(numbers): _Body(name, numbers, True) for name, numbers in groups}
    return [starts.get(number, _Body(part.name, [number])) for number, part in enumerate(parts) if number in starts or number not in taken]


def _groups(parts, rigid):
    """[(name, numbers of parts)]"""
    if rigid is None:
        return []
    if isinstance(rigid, Mapping):
        groups = []
        for name, inner in rigid.items():
            inner = [inner] if isinstance(inner, str) else list(inner)
            groups.append((name, sorted({number for one in inner for number in chosen("rigid", one, parts)})))
        empty = next((name for name, numbers in groups if not numbers), None)
        if empty is not None:
            raise ValueError(f"rigid must give names of parts for each body, but has none for {empty!r}")
        return groups
    assemblies: dict[tuple[str, int], list[int]] = {}  # (name, number of the instance) -> parts
    for number, part in enumerate(parts):
        for level in part.path[:-1]:
            assemblies.setdefault(level, []).append(number)
    found = []
    for name in [rigid] if isinstance(rigid, str) else rigid:
        checks.choice("rigid", name, tuple(dict.fromkeys(name for name, _ in assemblies)))
        found += [level for level in assemblies if level[0] == name]
    return list(zip(unique([name for name, _ in found]), (assemblies[level] for level in found)))


def _touching_nothing(scene, group):
    """The number of a group that ignores all: one that there is, or a free one."""
    there = np.flatnonzero(scene.ignored.all(axis=0))
    return int(there[-1]) if len(there) else free_groups(scene, 1, "parts with contact 'none'", {group})[0]


# --- bodies
class _Plan:
    """All bodies of a model, ready to be added."""

    def __init__(self, model: Model, place, settings, bodies, notes):
        self.model, self.place, self.settings, self.bodies, self.notes = model, place, settings, bodies, notes
        self.shapes = _Shapes(model.products)
        self.ready = []
        for body in bodies:
            with naming(f"part {body.name!r}"):
                self.ready.append(self._prepared(body))

    def _prepared(self, body):
        """(shape, pose of its coordinates in the world, whether fixed, mass kg or None, material, whether it touches)"""
        parts = [self.model.parts[number] for number in body.parts]
        first = parts[0].pose
        are_fixed = {number in self.settings.fixed for number in body.parts}
        materials = {id(self.settings.materials[number]): self.settings.materials[number] for number in body.parts}
        if len(are_fixed) > 1 or len(materials) > 1:
            what = "fixed" if len(are_fixed) > 1 else "material"
            raise ValueError(f"{what} must be the same for all parts of a rigid body")
        (is_fixed,), (material,) = are_fixed, materials.values()
        kinds = [self._kind(number, is_fixed) for number in body.parts]
        places = [np.eye(4), *(inverse(first) @ part.pose for part in parts[1:])]
        items = [(self.model.products[part.product], kind, place) for part, kind, place in zip(parts, kinds, places)]
        touching = [item for item in items if item[1] != "none"]
        shape = self.shapes.of(touching or items)
        mass = None
        if not is_fixed:
            total = sum_of([self._inertia(number, pose) for number, (_, _, pose) in zip(body.parts, items)])
            mass, shape = total.mass, self.shapes.weighed(shape, total)
        return shape, self.place @ first, is_fixed, mass, material, bool(touching)

    def _kind(self, number, is_fixed):
        """The kind of contact of a part, and notes on it."""
        part, kind = self.model.parts[number], self.settings.contacts[number]
        product = self.model.products[part.product]
        if product.volume == 0.0:
            why = "its surface is not closed" if product.broken else "it is no solid"
            if not is_fixed:
                raise ValueError(f"{part.name!r} must enclose a volume to move, but {why}; fixed={part.name!r} makes it a sheet that stays")
            self.notes.add("parts that enclose no volume are sheets", repr(part.name))
            return "none" if kind == "none" else "sheet"
        if product.broken:
            self.notes.add("solids whose surface is not closed are left out", repr(part.name))
        if kind == "hull":
            filled = self.shapes.hull(product).mass.volume / product.volume
            if filled > FILLED:
                what = "hulls fill hollows (contact 'pieces', 'clump' or 'mesh' keeps them)"
                self.notes.add(what, f"{part.name!r} by a factor of {filled:.3g}")
        return kind

    def _inertia(self, number, pose):
        """Of one part, seen from coordinates in which it has this pose."""
        product, density = self.model.products[self.model.parts[number].product], self.settings.densities[number]
        return Inertia(density * product.volume, product.centre, density * product.inertia).seen_from(pose)

    def add_to(self, scene, group, nothing):
        """Add the bodies; returns ids by name, and the frame of each part in its body."""
        ids, frames = {}, {}
        for body, (shape, pose, is_fixed, mass, material, touches) in zip(self.bodies, self.ready):
            with naming(f"part {body.name!r}"):
                weight = {"fixed": True} if is_fixed else {"mass": mass, "inertia": mass * shape.mass.moments}
                number = group if touches else nothing
                made = scene.add_body(shape, pose[:3, 3], material, quaternion=quaternion_of(pose), group=number, **weight)
            for name in dict.fromkeys((body.name, *(self.model.parts[number].name for number in body.parts))):
                scene.body_names.add(scene.body_names.free(name), made)
            ids[body.name] = made
            frame = np.eye(4) if is_fixed else pose_of(*shape.mass_frame)
            first = self.model.parts[body.parts[0]].pose
            for part in (self.model.parts[number] for number in body.parts):
                ids[part.name] = made
                seen = inverse(frame) @ inverse(first) @ part.pose
                frames[part.name] = seen[:3, 3], quaternion_of(seen)
        return ids, frames

    def assembly(self, bodies, frames, group):
        parts, products = self.model.parts, self.model.products
        weights = [density * products[part.product].volume for part, density in zip(parts, self.settings.densities)]
        return Assembly(
            self.model.name,
            self.model.unit,
            bodies,
            {body.name: tuple(parts[number].name for number in body.parts) for body in self.bodies if body.is_group},
            {part.name: "/".join(name for name, _ in part.path) for part in parts},
            {part.name: weight for part, weight in zip(parts, weights) if weight > 0.0},
            {part.name: material for part, material in zip(parts, self.settings.materials)},
            {part.name: part.colour for part in parts},
            tuple(axis for part in parts for axis in axes_in(part.name, products[part.product].cylinders, self.place @ part.pose)),
            group,
            self.notes.sentences(),
            frames,
        )


# --- shapes
class _Shapes:
    """Shapes for contact. Each is made once, so that repeated parts share it."""

    def __init__(self, products: list[Product]):
        self.products, self.made = products, {}

    def hull(self, product):
        return self._once(("hull", id(product)), lambda: ConvexHull(product.vertices))

    def of(self, items):
        """The shape of a body of (product, kind of contact, pose)."""
        if len(items) == 1 and np.array_equal(items[0][2], np.eye(4)):
            return self._single(*items[0][:2])
        kinds = {kind for _, kind, _ in items}
        if not kinds & set(SURFACES):
            return Compound([(self._single(product, kind), pose[:3, 3], quaternion_of(pose)) for product, kind, pose in items])
        if len(kinds) > 1:
            raise ValueError(f"contact must be the same for all parts of a rigid body if it is {min(kinds & set(SURFACES))!r} for one")
        starts = np.cumsum([0, *(len(product.vertices) for product, _, _ in items)])
        vertices = np.concatenate([product.vertices @ pose[:3, :3].T + pose[:3, 3] for product, _, pose in items])
        triangles = np.concatenate([product.triangles + start for (product, _, _), start in zip(items, starts)])
        return _surface(vertices, triangles, kinds.pop())

    def _single(self, product, kind):
        return self._once((kind, id(product)), lambda: self._one(product, kind))

    def _one(self, product, kind):
        if kind in SURFACES:
            return _surface(product.vertices, product.triangles, kind)
        if kind == "clump":
            return Clump.from_mesh(_surface(product.vertices, product.triangles, "mesh"))
        if kind == "pieces":
            return Compound([(piece,) for piece in convex_pieces(product.vertices, product.triangles)])
        return self.hull(product)

    def weighed(self, shape, total):
        """The shape with the centre, axes and moments of an inertia instead of its own."""
        key = ("weighed", id(shape), total.mass, *total.centre, *total.tensor.ravel())
        return self._once(key, lambda: _weighed(shape, total))

    def _once(self, key, make):
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]


def _surface(vertices, triangles, kind):
    """A mesh, closed unless it is a sheet."""
    mesh = Mesh(vertices, triangles, sheet=kind == "sheet")
    if kind == "mesh" and not mesh.closed:
        raise ValueError(
            f"contact must be 'hull', 'pieces' or 'sheet', not 'mesh', since the triangles leave {mesh.open_edges} edges open; a smaller "
            "tolerance may close them"
        )
    return mesh


def convex_pieces(vertices: np.ndarray, triangles: np.ndarray) -> list[ConvexHull]:
    """Hulls that together follow a closed surface, by approximate convex decomposition (CoACD; Wei and others 2022)."""
    try:
        import coacd
    except ImportError:
        raise ImportError(f"contact 'pieces' needs coacd: {PIECES}") from None
    mesh = Mesh(vertices, triangles)
    coacd.set_log_level("error")
    pieces = []
    for points, _ in coacd.run_coacd(coacd.Mesh(mesh.vertices, mesh.triangles), threshold=CONCAVITY, seed=0):
        try:
            pieces.append(ConvexHull(points))
        except ValueError:  # flat: nothing could stand on it
            continue
    if not pieces:
        raise ValueError("contact must be 'hull' or 'mesh', not 'pieces', since no convex piece of it has a volume")
    return pieces


def _weighed(shape, total):
    moments, axes = principal(total.tensor)
    mass = Mass(shape.mass.volume, total.centre, axes, moments / total.mass)
    one = copy.copy(shape)
    object.__setattr__(one, "_mass" if isinstance(shape, Mesh) else "mass", mass)
    object.__setattr__(one, "_made", {})
    return one
