"""The directive ``public-names``: autodoc of every public name of gravel that comes from some modules, so that a new name is never missing.

    ```{public-names} gravel.shapes gravel.model.materials
    ```

``rest`` in place of modules: the names that no other directive of the folder ``api`` takes. Docstrings are prose with double backticks and
formulas, not reStructuredText: what would be markup there is escaped.
"""

import inspect
import pathlib
import re

from sphinx.util.docutils import SphinxDirective

import gravel

KINDS = {"class": "autoclass", "function": "autofunction"}
INNER = "rows, across, describe, held_at, seen, drives, after"  # what joints and drives say to the engine
WITH_BASES = {"Simulation": "object"}  # its arrays, tables and questions stand in a base class; without the members of these
LITERAL = re.compile(r"(``.+?``)", re.S)


def home(name):
    """The module that a public name comes from."""
    thing = getattr(gravel, name)
    return getattr(thing, "__module__", None) or "gravel.simulation"  # PAPER_SCHEME is a plain dictionary


def within(name, modules):
    return any(home(name) == module or home(name).startswith(module + ".") for module in modules)


def taken(folder):
    """Modules that directives of the pages in a folder name."""
    found = []
    for page in sorted(pathlib.Path(folder).glob("*.md")):
        for names in re.findall(r"^```\{public-names\} (.+)$", page.read_text(encoding="utf-8"), re.M):
            found += names.split()
    return found


def public_names(modules, folder):
    """Names of the package that come from these modules, or with "rest" from none that a page names."""
    names = [name for name in gravel.__all__ if not inspect.ismodule(getattr(gravel, name))]
    if list(modules) == ["rest"]:
        return [name for name in names if not within(name, taken(folder))]
    return [name for name in names if within(name, modules)]


def described(path, thing):
    """Lines of Markdown that let autodoc describe one thing."""
    kind = "class" if inspect.isclass(thing) else "function" if callable(thing) else "data"
    if kind == "data":  # it has no docstring of its own
        return ["```{eval-rst}", f".. py:data:: {path}", f"   :value: {thing!r}", "```", ""]
    lines = ["```{eval-rst}", f".. {KINDS[kind]}:: {path}"]
    if kind == "class":
        lines += ["   :members:", f"   :exclude-members: {INNER}"]
        lines += [f"   :inherited-members: {WITH_BASES[thing.__name__]}"] if thing.__name__ in WITH_BASES else []
    return [*lines, "```", ""]


class PublicNames(SphinxDirective):
    required_arguments, final_argument_whitespace, has_content = 1, True, False

    def run(self):
        folder = pathlib.Path(self.env.doc2path(self.env.docname)).parent
        for page in folder.glob("*.md"):
            self.env.note_dependency(str(page))
        lines = []
        for name in public_names(self.arguments[0].split(), folder):
            lines += described(f"gravel.{name}", getattr(gravel, name))
        return self.parse_text_to_nodes("\n".join(lines)) if lines else []


class Measures(SphinxDirective):
    has_content = False

    def run(self):
        lines = []
        for name in gravel.measures.__all__:
            lines += described(f"gravel.measures.{name}", getattr(gravel.measures, name))
        return self.parse_text_to_nodes("\n".join(lines))


def plain(app, what, name, thing, options, lines):
    """Escapes what reStructuredText would take for markup outside of literals; examples stay."""
    inside = False
    for k, line in enumerate(lines):
        inside = line.startswith(">>>") or (inside and bool(line.strip()))
        if inside:
            continue
        parts = LITERAL.split(line)
        lines[k] = "".join(part if LITERAL.fullmatch(part) else re.sub(r"([*|`_\\])", r"\\\1", part) for part in parts)


def setup(app):
    app.add_directive("public-names", PublicNames)
    app.add_directive("public-measures", Measures)
    app.connect("autodoc-process-docstring", plain)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
