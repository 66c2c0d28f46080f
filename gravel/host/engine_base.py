"""What both engines do on the host: who is where, sleep, joints, collision filters, periodic space, queries, tables.

An engine derives from ``EngineBase`` and brings the stages of the step (``gravel.engine``). The rows of the bodies stand on the host here.
An engine whose state is elsewhere brings fields to the host when ``current`` asks for them, and hears by ``changed`` which ones the host
has written. The CPU engine's rows are always current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gravel.contacts import ContactTable
from gravel.engine import NO_SYNC, Lattice, Partition, Rules, SharedBodySync
from gravel.formulas.bounds import HASTE
from gravel.host import boxes, collision_filter, contact_table, pair_ownership, queries, sleepers
from gravel.host.arrays import BodyArrays
from gravel.host.buffers import Buffers
from gravel.host.contact_cache import ContactCache, cached_by_row, from_listed, taken_by_rows
from gravel.host.joints.stage import JointStage
from gravel.host.periodic_images import ENDLESS
from gravel.host.rows import Rows
from gravel.host.rules import HostRules, make_rules
from gravel.joints.rows import JointArrays, JointState, no_joints
from gravel.shapes.geometry import library_of
from gravel.state import FIELD, IMMOVABLE, MOVABLE, REPLICATED, SLEEPING, STATUS

if TYPE_CHECKING:
    from gravel.shapes.geometry import Geometry, Library

DISTURBING = ("position", "quaternion", "velocity", "force", "torque")  # fields that wake sleepers when they are written
JOINED = ("tag", "position", "quaternion", "velocity", "inverse_mass")  # what joints want to know of bodies


class EngineBase:
    detector: Any
    rules: HostRules

    def __init__(self, real: Any):
        self.sync: SharedBodySync = NO_SYNC
        self.partition: Partition | None = None
        self.rank = 0
        self.real = np.dtype(real)
        self.buffers, self.rows = Buffers(real), Rows(real)
        self.geometries: list[Geometry] = []
        self.library: Library = library_of(())
        self.joints: JointStage | None = None
        self.filtered_pairs = np.empty((0, 2), np.int64)  # ids of pairs that may not touch
        self.excluded: Any = None  # the same by row, as detection wants it
        self.jointed = np.zeros(0, np.bool_)  # which rows have joints; empty where none has
        self.filter_version = -1  # of the rows, when joints and filter last looked for theirs
        self.lattice: Lattice | None = None  # by which space repeats itself where the step looks
        self.end_lattice: Lattice | None = None  # and at its end
        self.surfaces = np.empty(0, np.int64), np.empty((0, 6))  # velocities of the bodies' surfaces by id
        self.surface = np.empty((0, 6))  # the same by row, where some move by themselves
        self.surface_version = -1  # of the rows, when ``surface`` was made
        self.slept = sleepers.nothing_slept(real)  # the contacts of those who sleep
        self.taken = False  # whether the contacts that were found last belong to a step that was taken

    # --- what an engine brings beside the stages
    def current(self, *names: str) -> Rows:
        """The rows, of which these fields are what they are now."""
        return self.rows

    def changed(self, *names: str) -> None:
        """The host has written these fields of the rows."""

    def roll_back(self) -> None:
        """A step that was begun and not taken leaves nothing behind."""

    def contact_cache(self) -> ContactCache:
        """Contacts of the last step that was taken, on the host."""
        raise NotImplementedError

    def set_contact_cache(self, cache: ContactCache) -> None:
        raise NotImplementedError

    def use_threads(self) -> None:
        """Kernels of the host run on as many threads as suit the scene from here on."""

    def solved_impulses(self) -> tuple[np.ndarray, np.ndarray]:
        """(c, 3) impulses of the contacts of the step that was taken last: of the cone problem, and of impacts (or empty)."""
        raise NotImplementedError

    def solved_friction(self) -> np.ndarray:
        """(c, 2) coefficient of friction and cohesive impulse of the same contacts."""
        raise NotImplementedError

    # --- bodies
    def add(self, block: Mapping[str, Any]) -> None:
        self.roll_back()
        self.current(*FIELD).add(block)

    def remove(self, ids: np.ndarray) -> None:
        self.roll_back()
        rows = np.unique(self.rows.rows_of(ids))
        holes, moved = self.current(*FIELD).remove(rows[rows >= 0])
        self.set_contact_cache(taken_by_rows(self.contact_cache(), holes, moved, self.rows.count))

    def refill(self, block: Mapping[str, Any]) -> None:
        """Other bodies instead of all."""
        self.current(*FIELD).clear()
        self.add(block)

    def ids(self) -> np.ndarray:
        return self.rows.id

    def field(self, name: str) -> np.ndarray:
        self.roll_back()
        return getattr(self.current(name), name)

    def pick(self, name: str, ids: Sequence[int] | np.ndarray) -> np.ndarray:
        self.roll_back()
        rows, field = self.rows.rows_of(ids), FIELD[name]
        result = np.full((len(rows), *field.shape), field.gone, getattr(self.rows, name).dtype)
        result[rows >= 0] = self._picked(name, rows[rows >= 0])
        return result

    def _picked(self, name: str, rows: np.ndarray) -> np.ndarray:
        """A field of some rows."""
        return getattr(self.rows, name)[rows]

    def set_field(self, name: str, columns: slice, values: np.ndarray) -> None:
        self.roll_back()
        rows = self.current(name)
        if rows.dozing and name in DISTURBING:
            self._disturb(np.any(getattr(rows, name)[:, columns] != values, axis=1))
        getattr(rows, name)[:, columns] = values
        if name in ("force", "torque"):
            rows.forced = rows.forced or bool(np.any(values))
        self.changed(name)

    # --- several processes
    def set_partition(self, partition: Partition, sync: SharedBodySync) -> None:
        self.partition, self.sync, self.rank = partition, sync, partition.rank

    def put(self, block: Mapping[str, Any]) -> None:
        self.roll_back()
        rows = self.rows.rows_of(block["id"])
        known = rows >= 0
        if known.any():
            self._put_into({name: values[known] for name, values in block.items()}, rows[known])
            self.rows.forced = self.rows.forced or any(name in block and bool(np.any(block[name])) for name in ("force", "torque"))
        if not known.all():
            self.current(*FIELD).add({name: values[~known] for name, values in block.items()})

    def _put_into(self, block: Mapping[str, Any], rows: np.ndarray) -> None:
        for name, values in block.items():
            getattr(self.rows, name)[rows] = values

    def border_margin(self) -> Any:
        """The margin, with what folding into a cell that changes may add to a speed."""
        margin, lattice = self.rules.margin, self.endless_lattice()
        faster = abs(lattice.tilt_rate) + float(np.abs(lattice.rate).sum())
        return margin._replace(absolute=margin.absolute + 2.0 * HASTE * self.rules.step * faster)

    def moved_contacts(self, ids: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        cache, owner = self.contact_cache(), self.current("rank").rank
        rows = np.union1d(self.rows.rows_of(ids), np.flatnonzero(owner == REPLICATED))
        of_pairs = owner, self.rows.row_of_id, self.detector.sphere, self.partition, self.endless_lattice()
        contact, target = pair_ownership.moved_contacts(cache, rows[rows >= 0], *of_pairs)
        torque = cache.torque[contact] if len(cache.torque) else np.zeros((len(contact), 3), self.real)
        return target, (cache.a[contact], cache.b[contact], cache.feature[contact], cache.impulse[contact], torque)

    def endless_lattice(self) -> Lattice:
        """The lattice, also where space does not repeat itself."""
        return ENDLESS if self.lattice is None else self.lattice

    # --- sleep
    def sleep(self, ids: np.ndarray, islands: np.ndarray) -> None:
        asleep, rows = np.zeros(self.rows.count, bool), self.rows.rows_of(ids)
        asleep[rows] = True
        state = self.current("tag", "velocity")
        state.tag[rows, STATUS], state.island[rows], state.velocity[rows] = SLEEPING, islands, 0
        state.dozing = state.dozing or len(rows) > 0
        self.changed("tag", "velocity")
        self.slept = sleepers.put_aside(self.slept, self.contact_cache(), asleep, self.rows.rows_of)

    def wake(self, islands: np.ndarray | None) -> None:
        if not self.rows.dozing:
            return
        island = self.rows.island
        woken = island > 0 if islands is None else (island > 0) & np.isin(island, islands)
        if not woken.any():
            return
        self.current("tag").tag[woken, STATUS], island[woken] = MOVABLE, 0
        self.rows.dozing = bool(island.any())
        self.changed("tag")
        self.slept, cache = sleepers.give_back(self.slept, self.contact_cache(), woken, self.rows.rows_of)
        self.set_contact_cache(cache)

    def touched_sleepers(self) -> np.ndarray:
        found = self.detector
        if not self.rows.dozing or found.contact_total == 0:
            return np.empty(0, np.int32)
        touched, tag = np.zeros(self.rows.count, np.uint8), self.current("tag").tag
        sleepers.find_touched(found.folded_contacts, found.proxies.tag, found.row, tag, touched)
        return np.unique(self.rows.island[touched > 0])

    def _disturb(self, rows: np.ndarray) -> None:
        """Users have written into these rows (a mask): sleepers wake, and where a body has changed on which any may rest, all do."""
        status = self.current("tag").tag[rows, STATUS]
        self.wake(None if np.any(status == IMMOVABLE) else np.unique(self.rows.island[rows]))

    # --- what holds
    def set_rules(self, rules: Rules) -> None:
        if self.geometries != list(rules.geometries):
            self.geometries = list(rules.geometries)
            self.library = library_of(self.geometries)
        self.rules = make_rules(rules, self.library)

    def set_joints(self, joints: JointArrays | None) -> None:
        self.roll_back()
        self.joints = None if joints is None else JointStage(joints, self.current(*JOINED), self.rows.rows_of)
        self.filter_version = -1

    def set_filtered_pairs(self, pairs: np.ndarray) -> None:
        self.filtered_pairs, self.filter_version = pairs, -1

    def set_cell(self, now: Lattice | None, end: Lattice | None) -> None:
        self.lattice, self.end_lattice = now, end

    def set_surfaces(self, ids: np.ndarray, velocities: np.ndarray) -> None:
        self.surfaces, self.surface_version = (ids, velocities), -1

    # --- at the begin of a step
    def look_up_rows(self) -> None:
        """Joints, collision filter and moving surfaces look for their rows where these have moved."""
        self.use_threads()
        if self.filter_version != self.rows.version:
            self.find_filtered()
            self.filter_version = self.rows.version
        if self.surface_version != self.rows.version:
            self._find_surfaces()
        self.detector.know(self.current("tag", "extent", "inverse_mass", "geometry"))

    def find_filtered(self) -> None:
        """Rows of the bodies that have joints or may not touch."""
        rows_of = self.rows.rows_of
        self.excluded = collision_filter.make_excluded(rows_of(self.filtered_pairs), self.rows.count) if len(self.filtered_pairs) else None
        self.jointed = np.zeros(0 if self.joints is None else self.rows.count, np.bool_)
        if self.joints is not None:
            self.joints.find_places()
            self.jointed[self.joints.members.state_row] = True

    def _find_surfaces(self) -> None:
        ids, velocities = self.surfaces
        rows = self.rows.rows_of(ids)
        self.surface = np.zeros((self.rows.count if (rows >= 0).any() else 0, 6))
        self.surface[rows[rows >= 0]] = velocities[rows >= 0]
        self.surface_version = self.rows.version

    @property
    def balls(self) -> bool:
        """Whether the kernels for balls serve; joints act beside a ball's middle."""
        return self.detector.traits.balls and self.joints is None

    def kinds(self) -> tuple[frozenset[int], frozenset[int]]:
        return self.detector.traits.kinds, self.detector.traits.movers

    # --- joints
    def set_laws(self, row: int, values: Mapping[str, float]) -> None:
        assert self.joints is not None
        self.joints.set_laws(row, values)

    def close_joints(self) -> None:
        assert self.joints is not None
        rows = self.current(*JOINED)
        self.joints.close(rows)
        self.changed("position", "quaternion")
        self.joints.look(rows)

    def align_joints(self, joints: np.ndarray) -> None:
        assert self.joints is not None
        rows = self.current(*JOINED)
        self.joints.align(rows, joints)
        self.changed("velocity")
        self.joints.look(rows)

    def break_joints(self, joints: Sequence[int] | np.ndarray) -> None:
        assert self.joints is not None
        self.joints.anchors.broken[joints] = 1

    def joint_state(self) -> JointState:
        return no_joints() if self.joints is None else self.joints.state()

    # --- out
    def contacts(self) -> ContactTable:
        self.use_threads()
        found = self.detector
        solved = contact_table.Solved(*self.solved_impulses(), self.solved_friction()) if self.taken else None
        return contact_table.make_table(found.contacts, found.folded_contacts, found.proxies, solved)

    def virial(self) -> np.ndarray:
        found = self.detector
        if not self.taken or found.contact_total == 0:
            return np.zeros((3, 3))
        return contact_table.virial(found.contacts, found.proxies.tag, found.proxies.sphere, *self.solved_impulses())

    def memory(self) -> dict[str, np.ndarray]:
        slept = {f"slept_{name}": values for name, values in self.slept._asdict().items()}
        return {**cached_by_row(self.contact_cache(), self.rows.count), **slept}

    def restore(self, memory: Mapping[str, np.ndarray]) -> None:
        self.set_contact_cache(from_listed(memory, self.real))
        impulses = memory["slept_impulse"].astype(self.real), memory["slept_torque"].astype(self.real)
        self.slept = sleepers.Slept(memory["slept_a"], memory["slept_b"], memory["slept_feature"], *impulses)

    def cast_rays(self, origins: np.ndarray, directions: np.ndarray, reach: float) -> tuple[np.ndarray, ...]:
        self.roll_back()
        self.use_threads()
        return queries.cast_rays(self.current(*BodyArrays._fields), self.library, origins, directions, reach)

    def bounding_boxes(self) -> tuple[np.ndarray, np.ndarray]:
        self.use_threads()
        return queries.bounding_boxes(self.current(*BodyArrays._fields), self.library)

    # --- detection box by box
    def split(self, positions: np.ndarray, radii: np.ndarray, bodies: np.ndarray, axis: int, at: float) -> tuple[np.ndarray, np.ndarray]:
        self.use_threads()
        return boxes.split_bodies(positions, radii, bodies, axis, at)

    def count_contacts_in(self, low: np.ndarray, high: np.ndarray) -> int:
        self.detector.find_contacts()
        return int(boxes.count_owned(self.detector.contacts, self.detector.proxies.sphere, low, high))

    def contacts_in(self, low: np.ndarray, high: np.ndarray) -> ContactTable:
        self.detector.find_contacts()
        table, proxies = self.contacts(), self.detector.proxies
        sphere = np.empty((self.rows.count, 4))
        sphere[proxies.order] = proxies.sphere
        of = lambda ids: sphere[self.rows.rows_of(ids)]  # noqa: E731
        return table[boxes.owned(of(table.body_a), of(table.body_b), low, high)]
