"""Bodies that come and go while a simulation runs.

In: the fields of new bodies, or the ids of those that go. Out: an engine on each process with those that it shall know, ids that are never
used again, and arrays of users that have the right length.
"""

from typing import Any

import numpy as np

from gravel.body_names import BodyNames
from gravel.engine import Engine
from gravel.model.materials import Material
from gravel.running.bodies import typical_radius
from gravel.running.body_materials import BodyMaterials
from gravel.running.machines import Machines
from gravel.running.prescribed import Prescribed
from gravel.running.processes import Processes
from gravel.shapes.geometry import Geometries, Geometry
from gravel.state import MATERIAL, STATUS, Views, can_move

LARGE = 4.0  # times the median radius of what moves: fixed bodies of this size are known to all processes


class Population:
    """The bodies of a simulation as a whole."""

    def __init__(
        self,
        engine: Engine,
        processes: Processes,
        views: Views,
        materials: BodyMaterials,
        geometries: Geometries,
        machines: Machines,
        prescribed: Prescribed,
        names: BodyNames,
    ):
        self.engine, self.processes, self.views = engine, processes, views
        self.materials, self.geometries, self.machines, self.prescribed = materials, geometries, machines, prescribed
        self.names = names

    def add(
        self, block: dict[str, Any], geometry: Geometry | None, material: Material, driven: bool, local: bool, name: str | None
    ) -> np.ndarray:
        """New bodies with the fields ``block`` (``scene.body_block``); returns their ids. ``driven``: whether they have a motion or a
        surface that moves; ``local``: whether they are this process's own; ``name``: of all together."""
        if name is not None:
            self.names.check(name)
        number = self.materials.number_of(material)
        block["tag"][MATERIAL] = self.materials.table.row[number]
        if geometry is not None:
            block["geometry"] = self.geometries.number_of(geometry)
        count, many = self.views.count, len(block["position"])
        before, total = self.processes.count_new(many, local)
        ids = block["id"] = np.arange(count + before, count + before + many)
        self.materials.append(count, self.processes.allgather((many, number)) if local else [(total, number)])
        self.views.invalidate(count + total)
        if name is not None:
            self.names.add(name, range(count, count + total))
        self.processes.add_bodies(self.engine, block, self._known_to_all(block, driven), local)
        self.views.refresh()
        return ids

    def _known_to_all(self, block, driven):
        """Mask of the new bodies that all processes shall know: of those that forces cannot move, the large and the driven ones."""
        (radius,) = self.processes.largest(typical_radius(self.engine))
        large = np.asarray(block["extent"])[:, 3] > LARGE * radius
        return np.full(len(block["position"]), not can_move(block["tag"][STATUS])) & (large | driven)

    def remove(self, ids: np.ndarray) -> None:
        """Take bodies out, those that any process names."""
        ids = self.processes.union(ids)
        self.views.flush_writes()
        self.engine.wake(None)
        self.prescribed.forget(ids)
        self.machines.release_joints_of(ids)
        self.processes.remove(self.engine, ids)
        self.views.refresh()
