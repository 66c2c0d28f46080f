"""Formulas in the form of an engine: the same functions, compiled for its device.

A formula is a plain function of numbers and arrays, with annotations that say which (``kinds``). It calls other formulas by name; the
copies made here find the engine's form of each under that name. What both compilers understand is less than Python: no tuple is
assigned to elements of arrays, chosen by a condition or nested; a variable that changes in a loop starts as ``float(0.0)`` or
``int(0)``; scratch arrays come from the caller.
"""

import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any


class Forms:
    def __init__(self, compile: Callable[[types.FunctionType], Any], own: Mapping[str, Any]):
        """``compile`` makes a device function of a plain one; ``own``: what the engine has instead, by the names that formulas use."""
        self.compile, self.own = compile, own
        self.made: dict[str, types.SimpleNamespace] = {}

    def of(self, module: types.ModuleType) -> types.SimpleNamespace:
        """The formulas of a module, by name."""
        if module.__name__ not in self.made:
            names = dict(vars(module))
            self.made[module.__name__] = forms = types.SimpleNamespace()
            for name, value in vars(module).items():
                if name in self.own:
                    names[name] = self.own[name]
                elif inspect.isfunction(value) and value.__module__ == module.__name__:
                    names[name] = self.compile(_copy(value, names))
                elif inspect.isfunction(value) and value.__module__.startswith("gravel.formulas."):
                    names[name] = getattr(self.of(sys.modules[value.__module__]), value.__name__)
                else:
                    continue
                setattr(forms, name, names[name])
        return self.made[module.__name__]


def _copy(function: types.FunctionType, names: dict[str, Any]) -> types.FunctionType:
    copy = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    copy.__annotations__ = dict(function.__annotations__)
    return copy
