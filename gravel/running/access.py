"""Read access to a simulation: its bodies as arrays by id, its contacts and joints as tables, and questions about where things are.

Arrays come from ``gravel.state.Views``: what users write into those that say so is taken back before the next step, and an array that is
asked for again after it is fresh. Nothing here changes the state.
"""

import hashlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from gravel.body_names import BodyNames, rows_among
from gravel.contacts import ContactTable
from gravel.detection.queries import RayHits, bodies_in_box, cast_rays
from gravel.joints.mechanism import Mechanism
from gravel.joints.table import JointTable
from gravel.model.materials import Material, Materials
from gravel.model.motion import Motion
from gravel.printing import formatting, tables
from gravel.running import bodies, rules
from gravel.running.parts import Parts
from gravel.running.prescribed import Start
from gravel.running.settings import setting
from gravel.running.sleep import Sleep
from gravel.shapes import Shape
from gravel.shapes.described import names_of_kinds, shape_of_body
from gravel.shapes.geometry import NONE
from gravel.solvers import Goal, Solver
from gravel.state import REMOVED, SHAPE, SLEEPING, STATUS, Views, can_move

if TYPE_CHECKING:
    import pandas


class StateAccess(Parts):
    """What can be asked of a simulation."""

    dt: float = setting()
    solver: Solver = setting()
    gravity: np.ndarray = setting()
    friction: str = setting()
    integrator: str = setting()
    ellipsoid_method: str = setting()
    margin: float | None = setting()
    recovery: float = setting()
    recovery_speed: float = setting()
    warm_start: bool = setting()
    restitution_threshold: float | None = setting()
    sleep: Sleep | None = setting()

    def __repr__(self) -> str:
        if not self.__dict__.get("_made"):
            return "Simulation(not made yet)"
        here = {"process": f"{self.processes.rank} of {self.processes.size}"} if self.processes.size > 1 else {}
        counts = {"steps": self.steps, "bodies": self.views.own_count, "joints": len(self.mechanism)}
        solver = type(self.solver).__name__
        here = {**here, **({"names": self.body_names.brief} if self.body_names else {})}
        time, dt = formatting.rough(self.time), formatting.rough(self.dt)
        return formatting.call(self, time=time, **counts, dt=dt, solver=solver, device=self.device, **here)

    def _repr_html_(self) -> str | None:
        from gravel.printing.notebook import html_of

        return html_of(self, self.views.own_count)

    # --- tolerances
    @property
    def tolerance(self) -> float:
        """m/s: the largest residual with which a step counts as converged. Where the solver does not say: 20 % of the speed that a body
        gains by gravity in a step, or 2e-3 where there is no gravity."""
        return rules.tolerance(self._settings)

    @property
    def rms_tolerance(self) -> float:
        """m/s: the root mean square of the residuals with which a step counts as converged. Where the solver does not say: 1 % of the
        speed that a body gains by gravity in a step, or 1e-4 where there is no gravity; else infinite."""
        return rules.rms_tolerance(self._settings)

    @property
    def aim(self) -> Goal | None:
        """Residuals, m/s, towards which the solver goes on where that costs little; None where the solver has its own tolerance."""
        return rules.aim(self._settings)

    @property
    def midpoint(self) -> bool:
        """Whether the step looks half a step ahead."""
        return self._settings.midpoint

    # --- arrays that users may write into
    @property
    def ids(self) -> np.ndarray:
        """(N,) ids of the bodies that arrays are of, in their order: every id that was ever given or, of several processes, those of the
        bodies that this one owns."""
        return self.views.ids

    @property
    def positions(self) -> np.ndarray:
        """(N, 3) m; NaN for bodies that were removed. Write to it: the next step takes it."""
        return self.views.borrow("positions")

    @property
    def quaternions(self) -> np.ndarray:
        """(N, 4) w x y z; NaN for bodies that were removed. Write to it."""
        return self.views.borrow("quaternions")

    @property
    def velocities(self) -> np.ndarray:
        """(N, 3) m/s; write to it."""
        return self.views.borrow("velocities")

    @property
    def angular_velocities(self) -> np.ndarray:
        """(N, 3) rad/s, world frame; write to it."""
        return self.views.borrow("angular_velocities")

    @property
    def forces(self) -> np.ndarray:
        """(N, 3) N, forces applied in every step at the centres of mass; write to it."""
        return self.views.borrow("forces")

    @property
    def torques(self) -> np.ndarray:
        """(N, 3) N m, world frame, applied in every step; write to it."""
        return self.views.borrow("torques")

    # --- arrays to be read
    @property
    def windings(self) -> np.ndarray:
        """(N, 3) how often bodies have left a periodic cell along each axis, upwards less downwards; to be read."""
        return self.views.winding

    @property
    def unwrapped_positions(self) -> np.ndarray:
        """(N, 3) m, to be read: where bodies would be if a periodic cell did not bring them back to its other side."""
        return self.positions if self.cell is None else self.positions + self.cell.shifts(self.windings)

    @property
    def bodies(self) -> Views:
        """All fields of the bodies by id, to be read: ``sim.bodies.extent`` (see ``gravel.state.FIELDS``)."""
        return self.views

    @property
    def body_names(self) -> BodyNames:
        """Name -> id of a body, or ids (n,) of a group: ``sim.positions[sim.body_names["drum"]]``. To be read; also of bodies that were
        removed. Of several processes, arrays are those of the bodies that this one owns: ``sim.rows_of("drum")`` tells where in them."""
        return self._population.names

    def rows_of(self, which: str | ArrayLike) -> np.ndarray:
        """(n,) where bodies, ``which`` a name or ids, stand in arrays such as ``positions``; of several processes, of those that this one
        owns. Bodies that were removed are left out."""
        ids = np.atleast_1d(self.body_names[which]) if isinstance(which, str) else bodies.checked_ids(which, self.count)
        there = np.flatnonzero(self.alive)
        return there[rows_among(self.ids[there], ids)]

    @property
    def count(self) -> int:
        """How many ids were ever given, those of removed bodies included: the length of the arrays."""
        return self.views.count

    def own_ids(self) -> np.ndarray:
        """Ids of the bodies that this process writes into files: each body that is there is written by one of ``team``."""
        return self.views.present("id")["id"]

    @property
    def alive(self) -> np.ndarray:
        """(N,) False for bodies that were removed."""
        return self.views.status != REMOVED

    @property
    def movable(self) -> np.ndarray:
        """(N,) True for bodies that forces can move."""
        return can_move(self.views.status)

    @property
    def asleep(self) -> np.ndarray:
        """(N,) True for bodies that sleep (``Sleep``), to be read."""
        asleep = self.views.status == SLEEPING
        asleep &= not self._sleepers.wake_all_pending
        asleep.flags.writeable = False
        return asleep

    @property
    def masses(self) -> np.ndarray:
        """(N,) kg, to be read; infinite for bodies that forces cannot move, zero for those that were removed."""
        with np.errstate(divide="ignore"):
            masses = 1.0 / self.views.inverse_mass[:, 0]
        masses.flags.writeable = False
        return masses

    @property
    def inertias(self) -> np.ndarray:
        """(N, 3) kg m2, principal moments about the body's axes, to be read; infinite for bodies that forces cannot turn, zero for
        those that were removed."""
        with np.errstate(divide="ignore"):
            moments = 1.0 / self.views.inverse_mass[:, 1:]
        moments.flags.writeable = False
        return moments

    @property
    def radii(self) -> np.ndarray:
        """(N,) m, of the ball about the centre of each body that holds it all, to be read; infinite for planes, zero for bodies that were
        removed."""
        return self.views.extent[:, 3]

    @property
    def typical_radius(self) -> float:
        """m, median bounding radius of the bodies that can move; 0 where there are none."""
        return bodies.typical_radius(self.engine)

    # --- shapes, materials, motions
    @property
    def shapes(self) -> np.ndarray:
        """(N,) names of the bodies' kinds of shape, "sphere", "box" and so on (``gravel.shapes.kinds.NAMES``), to be read; empty
        for bodies that were removed. ``shape_of`` gives sizes, and ``sim.bodies.extent`` those of all bodies."""
        tag = self.views.tag
        names = names_of_kinds(tag[:, SHAPE], tag[:, STATUS] != REMOVED)
        names.flags.writeable = False
        return names

    def shape_of(self, body: int) -> Shape:
        """The shape of a body, such as Sphere(0.01), in the frame that its pose places: of a hull, mesh or compound that can move, about
        its centre of mass and along its principal axes. Ground comes back as a Mesh, spheres that are joined as a Clump."""
        tag = self.engine.pick("tag", [bodies.checked_body(body, self.engine, self.count)])[0]
        number = int(self.engine.pick("geometry", [body])[0])
        return shape_of_body(int(tag[SHAPE]), self.engine.pick("extent", [body])[0], None if number == NONE else self.geometries[number])

    @property
    def materials(self) -> Materials:
        """The materials of the bodies, by number."""
        return self._materials.table

    @property
    def pairs(self) -> dict[tuple[int, int], dict]:
        """(i, j), i <= j -> contact values that were given for ``materials[i]`` and ``materials[j]``."""
        return self.materials.pairs

    def material_of(self, body: int) -> Material:
        """The material of a body: the object with which it was made, or after ``load`` the one that stands for it."""
        return self._materials.material_of(body)

    @property
    def material_numbers(self) -> np.ndarray:
        """(N,) numbers in ``materials`` of the bodies' materials, to be read; -1 where an id was never used."""
        return self._materials.numbers(self.count)

    @property
    def motions(self) -> dict[int, Motion]:
        """Body -> the motion that it follows."""
        return self._prescribed.motions

    @property
    def motion_starts(self) -> dict[int, Start]:
        """Body -> position, quaternion and time at which its motion has begun."""
        return self._prescribed.starts

    @property
    def surfaces(self) -> dict[int, Any]:
        """Body -> the velocity of its surface, six numbers or a function of time."""
        return self._prescribed.surfaces

    # --- contacts and joints
    @property
    def contacts(self) -> ContactTable:
        """The contacts of the last step with their impulses, a ``ContactTable``."""
        return self._contacts.table()

    @property
    def knows_contacts(self) -> bool:
        """Whether ``contacts`` are those of a step that was taken, or none was yet."""
        return self._contacts.known

    @property
    def contact_lag(self) -> float:
        """s: how long before the present time the contacts of the last step were found; points and poses belong together there."""
        return 0.5 * self.dt if self.midpoint else self.dt

    @property
    def mechanism(self) -> Mechanism:
        """The joints, as they were described."""
        return self._machines.mechanism

    @property
    def joints(self) -> JointTable:
        """The joints with their positions, speeds, reactions and efforts, a ``JointTable``; one row per joint id."""
        return self._machines.table()

    # --- questions
    def cast_rays(self, origins: ArrayLike, directions: ArrayLike, reach: float = math.inf) -> RayHits:
        """What rays hit first, a ``RayHits``: see ``gravel.detection.queries.cast_rays``."""
        return cast_rays(self._engine_now(), origins, directions, reach)

    def bodies_in_box(self, low: ArrayLike, high: ArrayLike) -> np.ndarray:
        """Ids of the bodies whose bounding boxes overlap a box, see ``gravel.detection.queries.bodies_in_box``."""
        return bodies_in_box(self._engine_now(), low, high)

    def _engine_now(self):
        """The engine with all that users wrote."""
        self.views.flush_writes()
        self._rules.upload()
        return self.engine

    # --- the whole
    def to_pandas(self) -> "pandas.DataFrame":
        """The bodies that are there as a pandas DataFrame, a row for each id: shape, material, sizes, pose and velocities. Vectors
        are columns such as ``position_x``, and ``attrs["units"]`` has their units."""
        there = self.alive
        columns = {name: getattr(self, source)[there] for name, (source, _) in tables.BODIES.items()}
        columns["material"] = self.material_numbers[self.ids[there]]
        if self.body_names:
            columns["name"] = self.body_names.labels(self.ids[there])
        return tables.data_frame(columns, tables.BODY_UNITS, tables.need("pandas", "to_pandas").Index(self.ids[there], name="id"))

    def state_hash(self) -> str:
        """A fingerprint of all bodies' states: equal if and only if they are equal to the last bit, on any number of processes."""
        digest = hashlib.sha256(np.array([self.time]).tobytes())
        pieces = self.processes.allgather(self.views.present("id", "tag", "position", "quaternion", "velocity"))
        order = np.argsort(np.concatenate([piece["id"] for piece in pieces]), kind="stable")
        for name in pieces[0]:
            values = np.concatenate([piece[name] for piece in pieces])[order]
            digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()[:32]

    def gather(self, *names: str) -> Any:
        """Bring arrays of all bodies, by id as on one process, to the first process: ``x, v = sim.gather("positions", "velocities")``; also
        "contacts" and "joints". The others get None. All processes must call it."""
        from gravel.running.gather import gather

        return gather(self, names)  # type: ignore[arg-type]

    def watch_arrays(self) -> dict[str, np.ndarray]:
        """Who has been at rest since when, for a file."""
        return self._sleepers.watch.to_arrays()
