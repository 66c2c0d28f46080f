"""The parts of a simulation, and the one place that puts them together.

Each part has one reason to change and is given what it works with when it is made: the engine, the processes, other parts. None of them
knows the simulation; ``Simulation`` calls them, in the order of a step.
"""

import numpy as np

from gravel.engine import Engine
from gravel.errors import SimulationError
from gravel.model.cell import Cell
from gravel.running import start
from gravel.running.body_materials import BodyMaterials
from gravel.running.exclusive import ExclusiveAccess
from gravel.running.last_contacts import LastContacts
from gravel.running.machines import Machines
from gravel.running.pages import Pages
from gravel.running.population import Population
from gravel.running.processes import Processes
from gravel.running.rules import RulesUpload
from gravel.running.sanity_checks import StepWarnings
from gravel.running.settings import Settings
from gravel.running.sleep import SleepControl
from gravel.running.warm_up import WarmUp
from gravel.scene import Scene
from gravel.shapes.geometry import Geometries
from gravel.state import LocalViews, Views


class Parts:
    """What a simulation consists of. The constructor of ``Simulation`` sets the plain attributes, then ``_make_parts`` makes the others."""

    _made: bool  # whether the constructor has ended
    _settings: Settings
    steps: int
    start_time: float  # s
    device: str
    precision: str
    joint_mode: str
    engine: Engine
    processes: Processes
    geometries: Geometries
    ignored: np.ndarray  # pairs of groups that pass through each other
    cell: Cell | None

    def _make_parts(self, scene: Scene) -> None:
        engine, processes = self.engine, self.processes
        self._materials = BodyMaterials(engine, scene.materials.copy(), start.place_bodies(scene, engine, processes))
        self.views = self._make_views(len(self._materials))
        self._prescribed = start.prescribed_of(scene, engine)
        self._machines = Machines(scene.mechanism.copy(), engine, processes, self.joint_mode == "direct")
        mechanism = self._machines.mechanism
        names = scene.body_names.copy()
        self._rules = RulesUpload(
            engine, processes, self._settings, self._materials, self.geometries, self.ignored, mechanism, self.precision, names
        )
        self._sleepers = SleepControl(engine, mechanism, self._prescribed, self.cell)
        self._population = Population(
            engine, processes, self.views, self._materials, self.geometries, self._machines, self._prescribed, names
        )
        self._contacts, self._warnings = LastContacts(engine), StepWarnings()
        self._warm_up = WarmUp(engine, processes, self._rules, self._machines)
        self._exclusive, self._pages = ExclusiveAccess(), Pages()

    def _make_views(self, count: int) -> Views:
        if self.processes.size == 1:
            return Views(self.engine, count, self._refusal)
        return LocalViews(self.engine, count, self._refusal, self.processes.rank)

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self.start_time + self.steps * self._settings.dt

    def _refusal(self, words: str, body: int) -> SimulationError:
        """The error for what the next step cannot take."""
        message = f"{words} in step {self.steps + 1}, t = {self.time:g} s; the state before that step is kept"
        return SimulationError(message, body, self.time, self.steps + 1)
