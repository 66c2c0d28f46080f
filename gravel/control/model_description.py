"""The model description of a co-simulation unit, for FMI 2.0 and 3.0: its variables with units, start values, causality and variability.

The same variables make both; the two versions differ in the names of elements and in where units and start values stand."""

import datetime
import re
from xml.etree.ElementTree import Element, SubElement

from gravel.control.machine import Machine
from gravel.control.variables import BOOLEAN, INTEGER, REAL

UNITS = {  # of variables -> name in the description, exponents of SI units
    "s": ("s", {"s": 1}),
    "m": ("m", {"m": 1}),
    "m/s": ("m/s", {"m": 1, "s": -1}),
    "m/s2": ("m/s2", {"m": 1, "s": -2}),
    "rad": ("rad", {"rad": 1}),
    "rad/s": ("rad/s", {"rad": 1, "s": -1}),
    "N": ("N", {"kg": 1, "m": 1, "s": -2}),
    "N m": ("N.m", {"kg": 1, "m": 2, "s": -2}),
}
TYPES = {2: {REAL: "Real", BOOLEAN: "Boolean", INTEGER: "Integer"}, 3: {REAL: "Float64", BOOLEAN: "Boolean", INTEGER: "Int32"}}
STATE = {2: "FMUstate", 3: "FMUState"}  # how the versions spell it
CATEGORIES = {"logStatusWarning": "Warnings", "logStatusError": "Errors", "logAll": "All messages"}
PART = re.compile(r"[A-Za-z_]\w*(\[\d+\])?", re.ASCII)


def written(name: str) -> str:
    """A variable's name by the rules of structured names: parts that are no identifiers stand in quotes."""
    quoted = lambda part: "'" + part.replace("\\", "\\\\").replace("'", "\\'") + "'"  # noqa: E731
    return ".".join(part if PART.fullmatch(part) else quoted(part) for part in name.split("."))


def model_description(machine: Machine, fmi: int, generator: str) -> Element:
    """The description of a machine as XML. ``generator``: the program that makes it."""
    about = machine.about
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
    token = {2: "guid", 3: "instantiationToken"}[fmi]
    root = Element(
        "fmiModelDescription",
        {"fmiVersion": f"{fmi}.0", "modelName": machine.name, token: about["token"], "description": about["description"]}
        | {"generationTool": generator, "generationDateAndTime": now, "variableNamingConvention": "structured"},
    )
    step = repr(float(machine.plant.simulation.dt))
    able = {"modelIdentifier": machine.name, "needsExecutionTool": "true"}
    able |= {f"canGetAndSet{STATE[fmi]}": "true", f"canSerialize{STATE[fmi]}": "true"}
    if fmi == 2:  # it cannot say that multiples of a step are meant
        able |= {"canHandleVariableCommunicationStepSize": "false", "canNotUseMemoryManagementFunctions": "true"}
    else:
        able |= {"canHandleVariableCommunicationStepSize": "true", "fixedInternalStepSize": step}
    SubElement(root, "CoSimulation", able)
    _add_units(root, machine)
    categories = SubElement(root, "LogCategories")
    for name, words in CATEGORIES.items():
        SubElement(categories, "Category", {"name": name, "description": words})
    SubElement(root, "DefaultExperiment", {"startTime": "0", "stopTime": repr(about["stop"]), "stepSize": repr(about["step"])})
    _add_variables(root, machine, fmi)
    _add_structure(root, machine, fmi)
    return root


def _add_units(root, machine):
    used = {"s", *(variable.unit for _, variable in machine.numbers)} - {""}
    units = SubElement(root, "UnitDefinitions")
    for unit in sorted(used):
        name, exponents = UNITS[unit]
        base = SubElement(SubElement(units, "Unit", {"name": name}), "BaseUnit")
        for symbol, exponent in exponents.items():
            base.set(symbol, str(exponent))


def _add_variables(root, machine, fmi):
    variables = SubElement(root, "ModelVariables")
    time = {"name": "time", "valueReference": "0", "causality": "independent", "variability": "continuous", "description": "time"}
    _add_variable(variables, fmi, REAL, time, {"unit": "s"})
    starts = machine.set.tolist()
    for k, (name, variable) in enumerate(machine.numbers):
        is_input, is_real = k < len(starts), variable.kind == REAL
        attributes = {
            "name": written(name),
            "valueReference": str(k + 1),
            "description": variable.meaning,
            "causality": "input" if is_input else "output",
            "variability": "continuous" if is_real else "discrete",
            **({} if is_input else {"initial": "calculated"}),
        }
        own = {"unit": UNITS[variable.unit][0]} if variable.unit else {}
        _add_variable(variables, fmi, variable.kind, attributes, own | ({"start": repr(starts[k])} if is_input else {}))


def _add_variable(variables, fmi, kind, attributes, own):
    """FMI 2 puts unit and start value into an element of the type, FMI 3 has elements by type."""
    if fmi == 2:
        SubElement(SubElement(variables, "ScalarVariable", attributes), TYPES[fmi][kind], own)
    else:
        SubElement(variables, TYPES[fmi][kind], attributes | own)


def _add_structure(root, machine, fmi):
    """Outputs are the state at a communication point: they do not depend on the inputs that are set there."""
    structure = SubElement(root, "ModelStructure")
    first = len(machine.set) + 1
    outputs = range(first, len(machine.numbers) + 1)
    if fmi == 3:
        for name in ("Output", "InitialUnknown"):
            for reference in outputs:
                SubElement(structure, name, {"valueReference": str(reference), "dependencies": ""})
        return
    for name in ("Outputs", "InitialUnknowns") if outputs else ():
        unknowns = SubElement(structure, name)
        for reference in outputs:
            SubElement(unknowns, "Unknown", {"index": str(reference + 1), "dependencies": ""})
