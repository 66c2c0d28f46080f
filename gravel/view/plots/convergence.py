"""The residual over the iterations of solvers, on the cone problem of a simulation's next step."""

import numpy as np

from gravel import checks
from gravel.solvers import SOLVERS
from gravel.view.plots.style import QUIET, logarithmic

ITERATING = tuple(name for name, solver in SOLVERS.items() if not solver.local)
LAST = ("gauss-seidel",)  # its last iterate counts, not its best
ITERATIONS = 300


def residual_histories(simulation, solvers=ITERATING, iterations=ITERATIONS, warm_start=False):
    """Name of a solver -> (n + 1,) m/s, the residual before the first and after each iteration on the next step's problem, from no
    impulses or (``warm_start``) from those of the last step. The simulation stays as it is."""
    count = checks.count("iterations", iterations, minimum=1)
    names = [solvers] if isinstance(solvers, str) else solvers
    for name in names:
        checks.choice("solver", name, ITERATING)
    found = {}
    for name in names:
        solver = SOLVERS[name](iterations=count, tolerance=0.0)
        found[name] = np.array(solver.run(simulation.next_problem(warm_start), history=True).history)
    return found


def residual_over_iterations(simulation, axes, solvers=ITERATING, iterations=ITERATIONS, warm_start=False):
    """What each solver would give if it stopped there: the best iterate so far, or of Gauss-Seidel the last; faint, those in between."""
    histories = residual_histories(simulation, solvers, iterations, warm_start)
    if not any(history.any() for history in histories.values()):
        raise ValueError(f"the next step at t = {simulation.time:g} s has nothing to solve: no contacts and no joints with a residual")
    for name, history in histories.items():
        axes.plot(np.arange(len(history)), history if name in LAST else np.minimum.accumulate(history), label=name)
    for line, name in zip(list(axes.lines), histories):
        if name not in LAST:
            axes.plot(np.arange(len(histories[name])), histories[name], color=line.get_color(), ls="-", lw=0.7, alpha=0.4)
    axes.axhline(simulation.tolerance, color=QUIET, ls="--", lw=1, label="tolerance of the simulation")
    logarithmic(axes, *histories.values())
    axes.set(xlabel=f"iterations, from {'the last impulses' if warm_start else 'no impulses'}", ylabel="largest residual, m/s")
    axes.set_title(f"next step at t = {simulation.time:.4g} s, friction {simulation.friction}, precision {simulation.precision}")
    axes.legend()
