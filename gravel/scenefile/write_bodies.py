"""The bodies of a scene as keys of a scene file: one by one, or many alike in rows, with tables beside the file."""

from typing import Any

import numpy as np

from gravel.packing.blend import scaled
from gravel.scenefile.described import CannotWrite, geometry_shape, motion_keys, shape_for_mass, simple_shape, surface_keys
from gravel.scenefile.making import SIZE_COLUMNS, TABLE_COLUMNS
from gravel.shapes import KINDS, PLANE
from gravel.shapes.geometry import NONE
from gravel.state import ANGULAR, GROUP, LINEAR, MATERIAL, MOVABLE, SHAPE, STATUS

BULK = 5  # bodies alike in a row that are written together
BULK_FIXED = 25  # the same of bodies that do not move: walls are easier to read one by one
MOST_INLINE = 60  # rows in the file itself; more go into a table beside it
MOST_TEXT = 50_000  # rows of a .csv file; more go into .npz
MOST_SINGLE = 300  # bodies with joints that are written one by one
MOST_NUMBERS = 1500  # of a shape, in the file itself
EXACT = 1e-13  # masses that differ by less from the shape's own are those


class BodyWriter:
    """Writes the bodies of a scene. ``files``: path -> text or arrays to be written beside the scene file; ``notes``: what is left out."""

    def __init__(self, scene, path):
        self.scene, self.path, self.bodies = scene, path, scene.bodies
        self.files: dict = {}
        self.notes: list[str] = []
        self.material_names = _material_names(scene.materials)
        self._names: dict[int, str] = {}  # id -> what others call it
        self._given, self._groups = _given_names(scene.body_names)  # id -> its own name; (first, behind the last) -> name of a group
        self._asked: set[str] = set()  # names that were made up and that others use
        self._made_up: set[str] = set()
        self._shapes: dict[int, tuple] = {}  # geometry -> (name, keys)
        self._motions: dict[int, tuple] = {}  # id of the motion object -> (name, keys)
        self._said: set[str] = set()

    def name_of(self, body) -> str:
        if body is None:
            return "world"
        self._asked.add(self._names[int(body)].partition("[")[0])
        return self._names[int(body)]

    def without_idle_names(self, sections) -> dict:
        """The sections without names that were made up and that nothing else in the file uses."""
        idle = self._made_up - self._asked
        for name in ("bodies", "grains", "more_bodies"):
            for keys in sections.get(name, ()):
                if keys["name"] in idle:
                    del keys["name"]
        return sections

    def _own_name(self, name, fallback):
        """A name that the scene gave, or one that is made up and that the scene gave to nobody."""
        if name is not None:
            return name
        while fallback in self.scene.body_names:
            fallback += "'"
        self._made_up.add(fallback)
        return fallback

    def sections(self) -> dict:
        """The sections shapes, motions, bodies, grains and more_bodies."""
        runs = self._runs()
        many = [k for k, (first, last) in enumerate(runs) if last - first >= self._least(first) or (first, last) in self._groups]
        start, stop = (many[0], many[-1] + 1) if many else (len(runs), len(runs))
        singles = [self._single(body) for first, last in runs[:start] for body in range(first, last)]
        bulks = [self._bulk(np.arange(first, last), k + 1) for k, (first, last) in enumerate(runs[start:stop])]
        after = [self._single(body) for first, last in runs[stop:] for body in range(first, last)]
        found = {
            "shapes": {name: keys for name, keys in self._shapes.values() if name},
            "motions": {name: keys for name, keys in self._motions.values() if name},
            "bodies": singles,
            "grains": bulks,
            "more_bodies": after,
        }
        lost = set(self.scene.body_names) - set(self._names.values()) - {name.partition("[")[0] for name in self._names.values()}
        for name in sorted(lost):
            self._say(f"the name {name!r}: a file has one for each body or group of bodies that are alike, and none that is 'world'")
        return {name: value for name, value in found.items() if value}

    # --- who is alike
    def _least(self, body):
        return BULK if self.bodies.tag[body, STATUS] == MOVABLE else BULK_FIXED

    def _runs(self):
        """(first, last + 1) of bodies that can be written together."""
        n, tag = len(self.scene), self.bodies.tag
        alike = np.column_stack([tag[:, [SHAPE, MATERIAL, GROUP, STATUS]], self.bodies.geometry, self._marks(n)])
        new = np.ones(n, bool)
        new[1:] = (alike[1:] != alike[:-1]).any(axis=1) | (tag[1:, SHAPE] == PLANE)
        starts = np.flatnonzero(new).tolist()
        return list(zip(starts, [*starts[1:], n]))

    def _marks(self, n):
        """(n,) numbers: equal for bodies that have the same motion, surface and force, another one for each that stands alone."""
        marks, known = np.zeros(n, np.int64), {}
        special = {*self.scene.motions, *self.scene.surfaces, *self.scene.forces}
        for body in special:
            motion, surface = self.scene.motions.get(body), self.scene.surfaces.get(body)
            force = tuple(np.concatenate(self.scene.forces[body]).tolist()) if body in self.scene.forces else None
            key = id(motion) if motion is not None else None, id(surface) if callable(surface) else surface, force
            marks[body] = known.setdefault(key, len(known) + 1)
        for k, (first, stop) in enumerate(self._groups):  # a group is not written together with others
            marks[first:stop] += (len(known) + 1) * (k + 1)
        alone = np.union1d(self.scene.mechanism.bodies(), list(self._given)).astype(np.int64)
        if len(alone) <= MOST_SINGLE:
            marks[alone] = marks.max(initial=0) + 1 + np.arange(len(alone))
        return marks

    # --- what a body has
    def _common(self, body) -> dict:
        """Keys that all bodies of a run share."""
        material, group, status = (int(self.bodies.tag[body, column]) for column in (MATERIAL, GROUP, STATUS))
        keys: dict[str, Any] = {"material": self.material_names[material]}
        motion = self.scene.motions.get(body)
        if motion is not None:
            try:
                keys["motion"] = self._motion(motion)
            except CannotWrite as error:
                self._say(f"{error}: bodies that had one are fixed")
                motion = None
        if status != MOVABLE and motion is None:
            keys["fixed"] = True
        if body in self.scene.surfaces:
            try:
                keys["surface_velocity"] = surface_keys(self.scene.surfaces[body])
            except CannotWrite as error:
                self._say(str(error))
        if group:
            keys["group"] = group
        force, torque = self.scene.forces.get(body, ((), ()))
        for name, value in (("force", force), ("torque", torque)):
            if np.any(value):
                keys[name] = np.asarray(value).tolist()
        return keys

    def _say(self, words):
        if words not in self._said:
            self._said.add(words)
            self.notes.append(words)

    def _motion(self, motion):
        """Its keys, or its name where several bodies share it."""
        if id(motion) not in self._motions:
            shared = sum(other is motion for other in self.scene.motions.values()) > 1
            name = f"motion {1 + sum(bool(one) for one, _ in self._motions.values())}" if shared else ""
            self._motions[id(motion)] = name, motion_keys(motion)
        name, keys = self._motions[id(motion)]
        return name or keys

    def _geometry(self, body):
        """The shape of a body with a geometry: its name, for there may be others of it."""
        number = int(self.bodies.geometry[body])
        if number not in self._shapes:
            kind, movable = int(self.bodies.tag[body, SHAPE]), self.bodies.tag[body, STATUS] == MOVABLE
            keys = geometry_shape(kind, self.scene.geometries[number], bool(movable))
            self._shapes[number] = f"shape {len(self._shapes) + 1}", self._beside(keys, len(self._shapes) + 1)
        return self._shapes[number][0]

    def _beside(self, keys, number):
        """Large arrays of a shape go into a file of their own."""
        ((word, inner),) = keys.items()
        arrays = {name: np.asarray(v) for name, v in inner.items() if name in ("points", "vertices", "triangles", "heights")}
        if sum(array.size for array in arrays.values()) <= MOST_NUMBERS:
            return keys
        path = self.path.with_name(f"{self.path.stem}-shape-{number}.npz")
        self.files[path] = arrays
        return {word: {"file": path.name, **{name: value for name, value in inner.items() if name not in arrays}}}

    def _pose(self, body):
        keys: dict[str, Any] = {"position": self.bodies.position[body].tolist()}
        if self.bodies.quaternion[body].tolist() != [1.0, 0.0, 0.0, 0.0]:
            keys["rotation"] = {"quaternion": self.bodies.quaternion[body].tolist()}
        return keys

    # --- one by one
    def _single(self, body) -> dict:
        self._names[body] = name = self._own_name(self._given.get(body), f"body {body}")
        kind, geometry = int(self.bodies.tag[body, SHAPE]), int(self.bodies.geometry[body])
        keys: dict[str, Any] = {"name": name}
        if geometry == NONE:
            keys["shape"] = simple_shape(kind, self.bodies.extent[body])
        else:
            keys["shape"] = self._scaled(body, self._geometry(body))
        keys.update(self._pose(body), **self._common(body))
        rows = self._rows(np.array([body]))
        single = {"velocities": "velocity", "angular_velocities": "angular_velocity", "masses": "mass", "inertias": "inertia"}
        keys.update({single[name]: np.asarray(values[0]).tolist() for name, values in rows.items() if name in single})
        return keys

    def _scaled(self, body, name):
        """A shape of another scale than 1 has keys of its own."""
        scale = float(self.bodies.extent[body, 0])
        if scale == 1.0:
            return name
        ((word, inner),) = next(keys for known, keys in self._shapes.values() if known == name).items()
        return {word: {**inner, "scale": scale}}

    # --- in bulk
    def _bulk(self, ids, number) -> dict:
        name = self._own_name(self._groups.get((int(ids[0]), int(ids[-1]) + 1)), f"grains {number}")
        self._names.update({body: f"{name}[{k}]" for k, body in enumerate(ids.tolist())} if len(ids) > 1 else {int(ids[0]): name})
        body = int(ids[0])
        kind, geometry, sizes = int(self.bodies.tag[body, SHAPE]), int(self.bodies.geometry[body]), self.bodies.extent[ids]
        rows = {"positions": self.bodies.position[ids], **self._rows(ids)}
        if (self.bodies.quaternion[ids] != (1.0, 0.0, 0.0, 0.0)).any():
            rows["quaternions"] = self.bodies.quaternion[ids]
        shape: Any
        if geometry != NONE:
            shape = self._geometry(body)
            if (sizes[:, 0] != 1.0).any():
                rows["sizes"] = sizes[:, 0]
        elif (sizes == sizes[0]).all() or kind == PLANE:
            shape = simple_shape(kind, sizes[0])
        else:
            shape, columns = KINDS[kind].NAME, np.column_stack(KINDS[kind].sizes_of(sizes))
            rows["sizes"] = columns[:, 0] if columns.shape[1] == 1 else columns
        return {"name": name, "shape": shape, **self._common(body), "placement": self._placement(rows, number)}

    def _placement(self, rows, number):
        n = len(rows["positions"])
        if n <= MOST_INLINE:
            return {"listed": {name: values.tolist() for name, values in rows.items()}}
        text = n <= MOST_TEXT
        path = self.path.with_name(f"{self.path.stem}-grains-{number}.{'csv' if text else 'npz'}")
        self.files[path] = _csv_text(rows) if text else rows
        return {"table": {"file": path.name}}

    def _rows(self, ids) -> dict:
        """Velocities that are not zero, and masses and moments that are not those of the shape, a row for each body."""
        rows: dict[str, Any] = {}
        for name, columns in (("velocities", LINEAR), ("angular_velocities", ANGULAR)):
            if self.bodies.velocity[ids][:, columns].any():
                rows[name] = np.array(self.bodies.velocity[ids][:, columns], float)
        if self.bodies.tag[ids[0], STATUS] == MOVABLE:
            given = 1.0 / self.bodies.inverse_mass[ids]
            masses, inertias = self._own_masses(ids, given[:, 0])
            if (np.abs(given[:, 0] - masses) > EXACT * masses).any():
                rows["masses"] = given[:, 0]
            if (np.abs(given[:, 1:] - inertias) > EXACT * inertias).any():
                rows["inertias"] = given[:, 1:]
        return rows

    def _own_masses(self, ids, given):
        """(masses by the density, moments that the shape gives to the ``given`` masses)."""
        body = int(ids[0])
        kind, number, extent = int(self.bodies.tag[body, SHAPE]), int(self.bodies.geometry[body]), self.bodies.extent[ids]
        if number == NONE:
            shape = KINDS[kind].of_extent(extent)
        else:
            one = shape_for_mass(kind, self.scene.geometries[number])
            if one is None:
                return np.zeros(len(ids)), np.zeros((len(ids), 3))
            shape = scaled(one, extent[:, 0])
        density = self.scene.materials[int(self.bodies.tag[body, MATERIAL])].density
        return shape.volumes(len(ids)) * density, shape.inertias(given)


def _given_names(names):
    """(id -> name, (first id, behind the last) -> name of a group), of those that a file can hold."""
    single: dict[int, str] = {}
    groups: dict[tuple[int, int], str] = {}
    for name, ids in names.ranges.items():
        if name == "world" or "[" in name:
            continue
        if isinstance(ids, range):
            groups.setdefault((ids.start, ids.stop), name)
        else:
            single.setdefault(ids, name)
    return single, groups


def _csv_text(rows) -> str:
    """A table with a line of names; numbers are read back to the bit."""
    names: list[str] = []
    for name, values in rows.items():
        names += TABLE_COLUMNS.get(name) or SIZE_COLUMNS[0 if values.ndim == 1 else values.shape[1] - 1]
    table = np.column_stack(list(rows.values()))
    return "\n".join([",".join(names), *(",".join(map(repr, row)) for row in table.tolist())]) + "\n"


def _material_names(materials) -> list[str]:
    """What a file calls materials: their own names, if no other before them has the same."""
    names: dict[str, None] = {}
    for number, material in enumerate(materials, 1):
        name = material.name or f"material {number}"
        names[name if name not in names else f"{name} ({number})"] = None
    return list(names)
