"""The directive ``public-names``: autodoc of every public name of gravel that comes from some modules, so that a new name is never missing.

    ```{public-names} gravel.shapes gravel.model.materials
    ```

``rest`` in place of modules: the names that no other directive of the folder ``api`` takes. Docstrings are prose with double backticks and
formulas, not reStructuredText: what would be markup there is escaped.

Signatures say what users may give: arguments that are converted (dataclasses keep them as ``Any``) take whatever NumPy makes an array of,
and the union that this is goes by its name, ArrayLike. The arguments that all joints share are explained once, at the top of their page.
"""

import dataclasses
import inspect
import pathlib
import re
import typing

from numpy.typing import ArrayLike
from sphinx.util import inspect as sphinx_inspect
from sphinx.util import typing as sphinx_typing
from sphinx.util.docutils import SphinxDirective

import gravel
from gravel.joints.kinds import Joint, TwoDrives
from gravel.shapes import Shape

KINDS = {"class": "autoclass", "function": "autofunction"}
INNER = {  # what objects say to the rest of gravel, by what they are; not for users
    "Joint": "rows across describe held_at seen drives",
    "Drive": "law evaluate is_function after",
    "Shape": "take count of_extent sizes_of volumes inertias bounding_radii box reach inside inner_radius template scale mass has_mass "
    "one_sided children",
    "Solver": "iterate",
    "ConeProblem": "prepare solution",
    "Simulation": "flush know_contacts knows_contacts restore_watch watch_arrays aim midpoint motion_starts own_ids typical_radius "
    "mechanism contact_lag",
    "Cell": "lattice check_step advance follow to_values from_values",
    "Deformation": "controls_stress",
    "ConstantVelocity": "pose",
    "Oscillation": "pose",
    "Scene": "material_index",
    "Result": "reading place",
    "Log": "go_on",
    "Sleep": "speed_for",
    "Bisection": "cut",
    "Grid": "cut",
    "Hexagons": "cut",
}
SHARED = [field.name for field in dataclasses.fields(TwoDrives)]  # arguments that joints share, explained at the top of their page
OF_FIELDS = {  # types of arguments that dataclasses keep as Any and that are no arrays
    ("Compound", "items"): "Sequence",
    ("MeshRegion", "mesh"): "Mesh | str | PathLike",
    ("RevoluteTranslational", "slide"): "ArrayLike | None",
}
WITH_BASES = {"Simulation": "object"}  # its arrays, tables and questions stand in a base class; without the members of these
FORMULA = re.compile(r"\$([^$\s](?:[^$]*[^$\s])?)\$")
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


def inner(thing):
    """Names of the members of a class that are not for users."""
    module = thing.__module__
    kinds = {base.__name__ for base in thing.__mro__}
    kinds |= {kind for kind, start in (("Shape", "gravel.shapes"), ("Drive", "gravel.joints")) if module.startswith(start)}
    return sorted({name for kind in kinds for name in INNER.get(kind, "").split()} | {*getattr(thing, "_fields", ())})  # in its signature


def described(path, thing):
    """Lines of Markdown that let autodoc describe one thing."""
    kind = "class" if inspect.isclass(thing) else "function" if callable(thing) else "data"
    if kind == "data":  # it has no docstring of its own
        return ["```{eval-rst}", f".. py:data:: {path}", f"   :value: {thing!r}", "```", ""]
    lines = ["```{eval-rst}", f".. {KINDS[kind]}:: {path}"]
    if kind == "class":
        lines += ["   :members:", f"   :exclude-members: {', '.join(inner(thing))}"]
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


def _escaped(text):
    """Prose in which nothing is markup but formulas between dollars."""
    parts = FORMULA.split(text)
    parts[::2] = [re.sub(r"([*|`_\\])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f":math:`{part}`\\ " for part in parts[1::2]]
    return "".join(parts)


def plain(app, what, name, thing, options, lines):
    """Escapes what reStructuredText would take for markup outside of literals; examples stay."""
    inside = False
    for k, line in enumerate(lines):
        inside = line.startswith(">>>") or (inside and bool(line.strip()))
        if inside:
            continue
        parts = LITERAL.split(line)
        lines[k] = "".join(part if part.startswith("``") else _escaped(part) for part in parts)


# --- signatures
def written(annotation):
    """An annotation as Sphinx writes it."""
    return sphinx_typing.stringify_annotation(annotation, "smart")


ALIASES = {" | ".join(map(written, typing.get_args(alias))): name for name, alias in (("Shape", Shape), ("ArrayLike", ArrayLike))}
PARTS = {written(part) for part in typing.get_args(ArrayLike)}


def signature_of(app, what, name, thing, options, signature, returns):
    """The signature of a class or function with types that users know."""
    if what == "class" and dataclasses.is_dataclass(thing):
        made = sphinx_inspect.signature(thing)
        arguments = [_argument(thing, argument) for argument in made.parameters.values()]
        signature = sphinx_inspect.stringify_signature(
            made.replace(parameters=arguments), show_return_annotation=False, unqualified_typehints=True
        )
    return _by_name(signature), _by_name(returns)


def _argument(thing, argument):
    """An argument of a dataclass with the type of what may be given; those that all joints share have none here."""
    if issubclass(thing, Joint) and argument.name in SHARED:
        return argument.replace(annotation=inspect.Parameter.empty)
    annotation = argument.annotation
    if isinstance(annotation, dataclasses.InitVar):
        annotation = annotation.type
    if annotation is typing.Any:
        annotation = OF_FIELDS.get((thing.__name__, argument.name), "ArrayLike | None" if argument.default is None else "ArrayLike")
    return argument.replace(annotation=annotation)


def _by_name(text):
    """Unions that have a name in gravel or NumPy go by it."""
    for union, name in ALIASES.items():
        text = text and text.replace(union, name)
    if text and any(part in text for part in PARTS):  # the parts of the union stand among others: "str" comes before the rest
        rest = [part for part in map(written, typing.get_args(ArrayLike)) if part != "str"]
        text = text.replace(" | ".join(rest), "ArrayLike")
    return text


def setup(app):
    app.connect("autodoc-process-signature", signature_of)
    app.add_directive("public-names", PublicNames)
    app.add_directive("public-measures", Measures)
    app.connect("autodoc-process-docstring", plain)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
