"""Notebooks as pages: ``docs/notebooks/NAME.md`` is replaced by ``notebooks/NAME.ipynb`` while the site is built: its text with its
formulas, and its code. With ``-D run_notebooks=1`` they are run, and what they print and draw stands below each piece of code.
"""

import html
import json
import pathlib

FOLDER = pathlib.Path(__file__).parents[2] / "notebooks"
PREFIX = "notebooks/"


def cells_of(path, run):
    """The cells of a notebook, with their outputs if it is to be run."""
    if not run:
        return json.loads(path.read_text(encoding="utf-8"))["cells"]
    import tempfile

    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    return book.cells


def text_of(cell):
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def markdown_of(cells, note):
    """A page in Markdown; ``note`` stands below its title."""
    pieces = []
    for cell in cells:
        if cell["cell_type"] == "markdown":
            pieces.append(text_of(cell))
        elif text_of(cell).strip():
            pieces.append(f"```python\n{text_of(cell)}\n```")
            pieces += filter(None, map(shown, cell.get("outputs", ())))
    title, _, rest = pieces[0].partition("\n")
    return "\n\n".join([title, note, rest, *pieces[1:]]) + "\n"


def shown(output):
    """An output of a cell: a picture, else a table, else text; pages within pages need their server, and are left out."""
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="what the code above draws" src="data:image/png;base64,{data["image/png"].strip()}">'
    if "text/html" in data:
        table = "\n".join(line for line in data["text/html"].splitlines() if line.strip())  # an empty line would end raw HTML
        return None if "<iframe" in table else f'<div class="table-wrapper">\n{table}\n</div>'
    text = output.get("text") or data.get("text/plain") or ""
    return f"<pre>{html.escape(text.strip())}</pre>" if text.strip() and output.get("name") != "stderr" else None


def replace_page(app, docname, source):
    path = FOLDER / f"{docname.removeprefix(PREFIX)}.ipynb"
    if not docname.startswith(PREFIX) or not path.exists():
        return
    app.env.note_dependency(str(path))
    run = bool(int(app.config.run_notebooks))
    note = f"`notebooks/{path.name}`" + ("" if run else ": open it in Jupyter to see what it prints and draws.")
    source[0] = markdown_of(cells_of(path, run), note)


def setup(app):
    app.add_config_value("run_notebooks", 0, "env")
    app.connect("source-read", replace_page, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
