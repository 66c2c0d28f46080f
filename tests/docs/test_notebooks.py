"""The notebooks run from top to bottom, and what they say is so: their own numbers, against laws and each other."""

import json
import pathlib

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = pathlib.Path(__file__).parents[2] / "notebooks"


def run(name, tmp_path, *wanted):
    """The values of some variables, after a notebook has run in a folder of its own; and the notebook with its outputs."""
    book = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    nbformat.validate(book)
    book.cells.append(nbformat.v4.new_code_cell(f"import json; print(json.dumps([{', '.join(wanted)}], default=list))"))
    NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    return json.loads(book.cells.pop().outputs[0].text), book


def shown(book, kind):
    """How many outputs of a kind there are."""
    return sum(kind in output.get("data", {}) for cell in book.cells for output in cell.get("outputs", ()))


def complaints(book):
    """What was written to the standard error, warnings above all."""
    return [output.text for cell in book.cells for output in cell.get("outputs", ()) if output.get("name") == "stderr"]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(path):
    book = nbformat.read(path, as_version=4)
    assert [cell for cell in book.cells if cell.cell_type == "code" and (cell.outputs or cell.execution_count)] == []
    assert book.cells[0].cell_type == "markdown" and book.cells[0].source.startswith("# ")


def test_silo_flows_as_beverloo_says(tmp_path):
    (rate, low, high, down, solid, moving), book = run(
        "silo_flow", tmp_path, "rate", "beverloo(1.6, 0.55)", "beverloo(1.4, 0.65)", "float(down[high_up].mean())", "solid", "float(moving)"
    )
    assert 0.9 * low < rate < 1.1 * high and 0.55 < solid < 0.64 and 0.45 < moving < solid
    assert down == pytest.approx(rate / (moving * 2500 * 0.16**2), rel=0.1)  # the same mass passes at all heights
    assert shown(book, "image/png") == 3 and shown(book, "text/html") == 2 and complaints(book) == []


def test_stirrer_needs_the_torque_that_the_grains_resist_with(tmp_path):
    (torque, held, reach), book = run("machine_in_sand", tmp_path, "torque", "held", "reach")
    for motor, grains in zip(torque, held):
        assert motor == pytest.approx(-grains, rel=0.02) and motor > 0
    assert torque[1] > 1.3 * torque[0] and reach[1] - reach[0] == pytest.approx(0.01)
    assert shown(book, "image/png") == 2 and shown(book, "text/html") == 2 and complaints(book) == []


def test_momentum_and_warm_starts_help(tmp_path):
    (cold, warm, plain), book = run(
        "solver_convergence",
        tmp_path,
        "[float(cold[name][-1]) for name in solvers]",
        "[float(warm[name][20]) for name in solvers]",
        "[float(cold[name][20]) for name in solvers]",
    )
    jacobi, sweeps, momentum, apgd, _ = cold
    assert momentum < 0.3 * sweeps < 0.3 * jacobi and apgd < jacobi
    assert all(a < b for a, b in zip(warm[:4], plain[:4]))
    assert shown(book, "image/png") == 3 and shown(book, "text/html") == 3 and complaints(book) == []
