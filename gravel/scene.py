"""Scene: bodies, materials, forces and who ignores whom, as arrays, built in bulk or one by one.

Everything is checked here, before the first number is stored: a refused call leaves the scene as it was.
"""

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from gravel import checks, shapes
from gravel.body_names import BodyNames
from gravel.detection.queries import RayHits, bodies_in_box, cast_rays, engine_of
from gravel.engine import GROUPS
from gravel.joints.kinds import AnyJoint
from gravel.joints.mechanism import Mechanism
from gravel.model import materials
from gravel.model.cell import Cell, Deformation
from gravel.model.motion import Motion, SurfaceVelocity, TimeShifted, continued, surface_of
from gravel.printing import formatting
from gravel.rotations import multiply, rotate
from gravel.running.processes import number_new
from gravel.shapes.geometry import Geometries
from gravel.state import ANGULAR, FIELD, IMMOVABLE, LINEAR, MATERIAL, MOVABLE, STATUS, Bodies

if TYPE_CHECKING:
    from gravel.simulation import Simulation


class Scene:
    """What there is at the start. ``Simulation(scene, ...)`` takes a copy, so one scene serves many runs. ``gravity`` (3,) m/s2.

    ``periodic``, for example ((x0, x1), None, (z0, z1)) in m: space repeats itself along some axes; what leaves the cell on one side comes
    in on the other. ``deformation``, a ``Deformation``: the cell is strained, sheared, or follows a stress.

    >>> scene = Scene(gravity=(0, 0, -9.81))
    >>> floor = scene.add_body(Plane(), fixed=True)
    >>> grains = scene.add_bodies(Sphere(0.05), positions=[[0, 0, 0.05], [0, 0, 0.15]])
    """

    def __init__(
        self,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        periodic: Sequence[ArrayLike | None] | None = None,
        deformation: Deformation | None = None,
    ):
        self.gravity = checks.array("gravity", gravity, (3,))
        if periodic is None and deformation is not None:
            raise ValueError("deformation is that of a periodic cell: give periodic=((x0, x1), ...), too")
        self.cell = None if periodic is None else Cell(periodic, deformation)
        self.bodies = Bodies()
        self.geometries = Geometries()
        self.materials = materials.Materials()
        self.motions: dict[int, Any] = {}  # body -> motion
        self.common: int | None = None  # how many bodies all processes have alike, where each has others of its own
        self.next_id: int | None = None  # then the lowest id that is free
        self.driven: set[int] = set()  # ids of bodies that will get motions or moving surfaces, and ...
        self.joined: set[int] = set()  # ... joints: in a scene that comes from a checkpoint, which has these elsewhere
        self.surfaces: dict[int, Any] = {}  # body -> velocity of its surface (6,), or a function of time
        self.forces: dict[int, tuple] = {}  # body -> (force, torque), world frame
        self.ignored = np.zeros((GROUPS, GROUPS), bool)
        self.mechanism = Mechanism()
        self.body_names = BodyNames()  # name -> id, or ids of a group

    def __len__(self) -> int:
        return self.bodies.count

    def __repr__(self) -> str:
        counts = {"bodies": len(self), "joints": len(self.mechanism), "materials": len(self.materials)}
        more = {**({} if self.cell is None else {"cell": self.cell}), **({"names": self.body_names.brief} if self.body_names else {})}
        return formatting.call(self, **counts, gravity=self.gravity, **more)

    def _repr_html_(self) -> str | None:
        from gravel.printing.notebook import html_of

        return html_of(self, len(self))

    @classmethod
    def from_simulation(cls, simulation: "Simulation") -> "Scene":
        """The state of a simulation as a start: poses, velocities, materials, groups, joints, forces, the periodic cell, and motions,
        surfaces and motors that go on from where they are. Time starts at zero.

        Bodies are in the order of their ids, without those that were removed: body ``np.flatnonzero(sim.alive)[k]`` becomes body k.
        Joints keep their ids, broken ones stay broken. What a step remembers of the last one, contact impulses above all, is not
        part of a scene; a checkpoint (``Simulation.save``) keeps that too, and all settings."""
        if not hasattr(simulation, "flush"):
            raise TypeError(f"simulation must be a Simulation, not {simulation!r}")
        simulation.flush()
        scene = cls(simulation.gravity)
        scene.geometries = Geometries(simulation.geometries)
        scene.materials = simulation.materials.copy()
        scene.cell = None if simulation.cell is None else simulation.cell.copy()
        scene.ignored = simulation.ignored.copy()
        scene.body_names = simulation.body_names.renumbered(np.sort(simulation.own_ids()))
        fields = simulation.views.present(*FIELD)
        number = {body: k for k, body in enumerate(fields["id"].tolist())}
        force, torque = fields.pop("force"), fields.pop("torque")
        fields["tag"][:, MATERIAL] = simulation.material_numbers[fields["id"]]
        np.minimum(fields["tag"][:, STATUS], MOVABLE, out=fields["tag"][:, STATUS])  # a start finds all awake
        fields.pop("island")
        scene.bodies.append({**fields, "id": np.arange(len(number))})
        for k in np.flatnonzero(force.any(axis=1) | torque.any(axis=1)).tolist():
            scene.forces[k] = (force[k].copy(), torque[k].copy())
        for body, motion in simulation.motions.items():
            position, quaternion, since = simulation.motion_starts[body]
            scene.motions[number[body]] = continued(motion, simulation.time - since, position, quaternion)
        for body, surface in simulation.surfaces.items():
            if body in number:
                scene.surfaces[number[body]] = TimeShifted(surface, simulation.time) if callable(surface) else surface
        scene.mechanism = simulation.mechanism.renumbered(number, simulation.time)
        return scene

    @classmethod
    def from_file(cls, path: str | os.PathLike, seed: int | None = None) -> "Scene":
        """The scene of a scene file (.yaml, docs/SCENE_FILES.md), without what it pours, takes out, computes and writes: for these see
        ``gravel.load_scene_file``. ``seed``: another one than the file's."""
        from gravel.scenefile.load import load_scene_file

        return load_scene_file(path, seed).scene

    def to_file(self, path: str | os.PathLike, dt: float = 0.002, time: float = 1.0) -> list[str]:
        """Write a scene file (.yaml), as far as a file can say it, and tables of many bodies beside it. ``dt`` and ``time``, s: of the run
        that it describes. Returns what is not in the file, in words: functions of time."""
        from gravel.scenefile.write import scene_to_file

        return scene_to_file(self, path, dt, time)

    def add_body(
        self,
        shape: shapes.Shape,
        position: ArrayLike | None = None,
        material: materials.Material | None = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> int:
        """Add one body and return its id. Options as for ``add_bodies``, in their singular form: ``quaternion``, ``velocity``,
        ``angular_velocity``, ``mass``, ``inertia``, ``fixed``, ``group``, ``motion``, ``surface_velocity``. ``name``: what warnings, the
        viewer and files call it; ``body_names[name]`` is its id."""
        _check_shape(shape)
        if shape.count is not None:
            raise ValueError(f"shape holds {shape.count} sizes, but add_body adds one body; use add_bodies")
        if position is None:
            position = np.zeros(3)
        one = {
            "quaternion": "quaternions",
            "velocity": "velocities",
            "angular_velocity": "angular_velocities",
            "mass": "masses",
            "inertia": "inertias",
        }
        bulk: dict[str, Any] = {}
        for option, value in options.items():
            if option in one:
                bulk[one[option]] = None if value is None else [value]
            else:
                checks.choice("option of add_body", option, (*one, "fixed", "group", "motion", "surface_velocity", "name"))
                bulk[option] = value
        place = checks.array("position", position, (3,))
        if name is not None:
            self.body_names.check(name)
        body = int(self.add_bodies(shape, place[None], material, **bulk)[0])
        if name is not None:
            self.body_names.add(name, body)
        return body

    def add_bodies(
        self,
        shape: shapes.Shape,
        positions: ArrayLike,
        material: materials.Material | None = None,
        *,
        quaternions: ArrayLike | None = None,
        velocities: ArrayLike | None = None,
        angular_velocities: ArrayLike | None = None,
        masses: ArrayLike | None = None,
        inertias: ArrayLike | None = None,
        fixed: bool = False,
        group: int = 0,
        motion: Motion | None = None,
        surface_velocity: SurfaceVelocity | None = None,
        local: bool = False,
        name: str | None = None,
    ) -> np.ndarray:
        """Add N bodies of one kind of shape and return their ids (N,).

        ``positions`` (N, 3) m and ``quaternions`` (N, 4) w x y z place the coordinates in which the shape is given; a body
        that can move is kept at its centre of mass, along its principal axes (the same for all but hulls, meshes, compounds
        and clumps; see their ``mass_frame``). ``velocities`` (N, 3) m/s, of the centre of mass, and ``angular_velocities``
        (N, 3) rad/s are in the world frame. Masses come from the material's density unless ``masses`` (N,) in kg, and
        ``inertias`` (N, 3), principal moments about the body axes in kg m2, are given. ``fixed`` bodies never move;
        bodies with a ``motion`` follow it. Bodies of a ``group`` collide with all groups that ``ignore`` does not name.
        ``surface_velocity`` (3,) m/s: their surface moves so, in the body's frame and along itself, while the body stays (a belt); a pair
        of vectors, in m/s and rad/s: it also turns (a roll, a disc); or a function of time that returns one of these.

        Of several processes (``mpiexec``) each builds the same scene, unless ``local``: then each adds bodies of its own, wherever they are
        and perhaps none, so that no process holds them all. All must call it, with the same shapes and materials in the same order, after
        the bodies that all add.

        ``name``: of all these bodies together; ``body_names[name]`` are their ids, of several processes those of all.
        """
        if name is not None:
            self.body_names.check(name)
        surface = None if surface_velocity is None else surface_of(surface_velocity)
        material = materials.DEFAULT if material is None else material
        block, geometry = body_block(
            shape,
            positions,
            material,
            quaternions,
            velocities,
            angular_velocities,
            masses,
            inertias,
            fixed,
            group,
            motion,
        )
        if local and (motion is not None or surface is not None):
            raise ValueError("bodies with a motion or a surface velocity must be added by all processes alike, not with local=True")
        if self.common is not None and not local:
            raise ValueError("bodies that all processes add must come before those with local=True")
        block["tag"][MATERIAL] = self.material_index(material)
        block["geometry"] = self.geometries.number_of(geometry)
        if local:
            return self._append_local(block, name)
        block["id"] = np.arange(len(self), len(self) + len(block["position"]))
        ids = self.bodies.append(block)
        if motion is not None:
            self.motions.update((int(i), motion) for i in ids)
        if surface is not None:
            self.surfaces.update((int(i), surface) for i in ids)
        if name is not None:
            self.body_names.add(name, range(len(self) - len(ids), len(self)))
        return ids

    def _append_local(self, block, name):
        """Bodies of this process alone; returns their ids."""
        self.common = len(self) if self.common is None else self.common
        first = len(self) if self.next_id is None else self.next_id
        before, total = number_new(len(block["position"]))
        ids = block["id"] = np.arange(first + before, first + before + len(block["position"]))
        self.bodies.append(block)
        self.next_id = first + total
        if name is not None:
            self.body_names.add(name, range(first, first + total))
        return ids

    def material_index(self, material: materials.Material) -> int:
        """The number of a material in this scene; a new one is added."""
        return self.materials.number_of(material)

    @property
    def pairs(self) -> dict[tuple[int, int], dict]:
        """(i, j), i <= j -> contact values that were given for the materials with these numbers."""
        return self.materials.pairs

    def set_pair(self, material_a: materials.Material, material_b: materials.Material, **values: float) -> None:
        """Give the contact values of one pair of materials (``friction``, ``restitution``, ``rolling_friction`` m,
        ``spinning_friction`` m, ``cohesion`` N) instead of the mixing rule's. Meant are the bodies that were, or will be, made with
        these two objects; bodies of other materials with the same values are not. ``gravel.model.materials.DEFAULT`` is the material of
        bodies that were given none."""
        self.materials.set_pair(material_a, material_b, values)

    def ignore(self, group_a: int, group_b: int) -> None:
        """Bodies of group a and of group b pass through each other (a group may ignore itself)."""
        for name, group in (("group_a", group_a), ("group_b", group_b)):
            _check_group(name, group)
        self.ignored[group_a, group_b] = self.ignored[group_b, group_a] = True

    def ignore_pair(self, body_a: int, body_b: int) -> None:
        """Two bodies pass through each other."""
        for name, body in (("body_a", body_a), ("body_b", body_b)):
            if checks.count(name, body) >= len(self):
                raise ValueError(f"{name} must be an id below {len(self)}, not {body}")
        if body_a == body_b:
            raise ValueError(f"body_a and body_b must be two bodies, but both are {body_a}")
        self.mechanism.filtered_pairs.append((int(body_a), int(body_b), -1))

    def set_force(self, body: int, force: ArrayLike = (0.0, 0.0, 0.0), torque: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        """A constant force (N) at the centre of mass and torque (N m), world frame, on one body."""
        self._check_body(body)
        if self.bodies.status[int(body)] != MOVABLE:
            raise ValueError(f"body must be one that forces can move; {body} is fixed or follows a motion")
        self.forces[int(body)] = (checks.array("force", force, (3,)), checks.array("torque", torque, (3,)))

    def add_joint(self, joint: AnyJoint, assemble: bool = False) -> int:
        """Join two bodies, or a body and the world, where they lie; returns the joint's id.

        >>> hinge = scene.add_joint(Revolute(None, door, point=(0, 0, 1), axis=(0, 0, 1)))

        Points and axes that do not meet are refused, unless ``assemble``: then the simulation moves the bodies until they do."""
        return self.mechanism.add(joint, self.bodies, assemble)

    def cast_rays(self, origins: ArrayLike, directions: ArrayLike, reach: float = math.inf) -> RayHits:
        """What rays hit first, a ``RayHits``: see ``gravel.detection.queries.cast_rays``."""
        return cast_rays(engine_of(self.bodies, self.geometries), origins, directions, reach)

    def bodies_in_box(self, low: ArrayLike, high: ArrayLike) -> np.ndarray:
        """Ids of the bodies whose bounding boxes overlap a box, see ``gravel.detection.queries.bodies_in_box``."""
        return bodies_in_box(engine_of(self.bodies, self.geometries), low, high)

    def _check_body(self, body):
        checks.count("body", body)
        if body >= len(self):
            raise ValueError(f"body must be an id below {len(self)}, not {body}")


def body_block(shape, positions, material, quaternions, velocities, angular_velocities, masses, inertias, fixed, group, motion):
    """The checked fields of N new bodies, by name, and their geometry, if they have one. Fields that are the same for all may have
    one row; material, geometry and id are still to be numbered."""
    _check_shape(shape)
    if not isinstance(material, materials.Material):
        raise TypeError(f"material must be a Material, not {material!r}")
    positions = checks.array("positions", positions, (None, 3))
    n = len(positions)
    if shape.count is not None and shape.count != n:
        raise ValueError(f"shape holds {shape.count} sizes, but positions has {n} rows")
    if motion is not None and not callable(motion) and not hasattr(motion, "pose"):
        raise TypeError(f"motion must be a function of time or a ready motion, not {motion!r}")
    _check_group("group", group)
    if not isinstance(fixed, (bool, np.bool_)):
        raise TypeError(f"fixed must be True or False, not {fixed!r}")
    movable = not fixed and motion is None
    if shape.KIND == shapes.PLANE:
        if movable:
            raise ValueError("a Plane has no mass: add it with fixed=True or with a motion")
        positions += shape.offset * shape.normal
    quaternions = unit_quaternions(quaternions, n)
    if movable and shape.mass_frame is not None:
        centre, axes = shape.mass_frame
        positions += rotate(quaternions, shape.rows(n)[:, :1] * centre)
        quaternions = multiply(quaternions, axes)
    alike = 1 if shape.count is None and n else n  # rows of what the shape says
    geometry, sizes = shape.geometry(movable), shape.rows(alike)
    block = {
        "position": positions,
        "quaternion": quaternions,
        "inverse_mass": _inverse_masses(shape, n, alike, material, masses, inertias, movable),
        "extent": np.column_stack([sizes, shape.bounding_radii(alike) if geometry is None else sizes[:, 0] * geometry.radius]),
        "tag": np.array([shape.KIND, 0, group, MOVABLE if movable else IMMOVABLE], np.int32),
    }
    for name, given, columns in (("velocities", velocities, LINEAR), ("angular_velocities", angular_velocities, ANGULAR)):
        if given is not None:
            if not movable:
                raise ValueError(f"{name} cannot be given to bodies that are fixed or have a motion")
            block.setdefault("velocity", np.zeros((n, 8)))[:, columns] = checks.array(name, given, (n, 3))
    return block, geometry


def _inverse_masses(shape, n, alike, material, masses, inertias, movable):
    if masses is not None:
        masses = checks.array("masses", masses, (n,), above=0.0)
    if inertias is not None:
        inertias = checks.array("inertias", inertias, (n, 3), above=0.0)
    if not movable:
        return np.zeros(4)
    masses = shape.volumes(alike) * material.density if masses is None else masses
    inertias = shape.inertias(np.asarray(masses)) if inertias is None else inertias
    masses = np.broadcast_to(masses, len(inertias))
    for name, values in (("mass", masses), ("inertia", inertias)):
        if not (np.isfinite(values) & (np.asarray(values) > 1e-300)).all():
            raise ValueError(f"the shape's size gives a {name} that is no number: {np.ravel(values)[0]:g}")
    wrong = 2 * inertias.max(axis=1) > inertias.sum(axis=1) * (1 + 1e-9)
    if wrong.any():
        worst = inertias[np.argmax(wrong)]
        raise ValueError(f"inertias must satisfy the triangle inequality (no moment above the sum of the others), not {worst.tolist()}")
    return 1.0 / np.column_stack([masses, inertias])


def unit_quaternions(given, n):
    """Checked and normalised quaternions of n bodies; None: not turned."""
    if given is None:
        return np.broadcast_to((1.0, 0.0, 0.0, 0.0), (n, 4))
    result = checks.array("quaternions", given, (n, 4))
    norms = np.linalg.norm(result, axis=1, keepdims=True)
    if (norms < 1e-9).any():
        raise ValueError(f"quaternions must not be zero, but row {int(np.argmin(norms))} is")
    return result / norms


def _check_shape(shape):
    if not hasattr(shape, "KIND") or isinstance(shape, type):
        raise TypeError(f"shape must be one of {', '.join(shapes.SHAPES)}, not {shape!r}")


def _check_group(name, group):
    if checks.count(name, group) >= GROUPS:
        raise ValueError(f"{name} must be below {GROUPS}, not {group}")
