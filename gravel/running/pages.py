"""Pages in a browser that follow a simulation (``view.viewer``): each is shown the state after every step, and after a run its last."""

from typing import TYPE_CHECKING, Any

from gravel.errors import SimulationError

if TYPE_CHECKING:
    from gravel.simulation import Simulation
    from gravel.view.viewer.show import View


class Pages(list):
    """The sources of the pages that follow a simulation."""

    def open(self, simulation: "Simulation", browser: bool | None, host: str, port: int, **facts: Any) -> "View":
        """A page that follows a simulation until it is closed; see ``Simulation.view``."""
        from gravel.view.viewer.show import view_of

        if simulation.processes.size > 1:
            raise SimulationError("a simulation that several processes share cannot be viewed while it runs: gravel view its result file")
        made = view_of(simulation, browser, host, port, **facts)
        self.append(made.source)
        made.when_closed = lambda: self.remove(made.source)
        return made

    def after_step(self, simulation: "Simulation") -> None:
        for page in self:
            page(simulation)

    def after_run(self, simulation: "Simulation") -> None:
        for page in self:
            page.rest(simulation)
