"""Every kernel of the engine compiled to machine code for a GPU that need not be there, and what the compiler made of it.

``compile_all(80, folder)`` needs Warp and neither a driver nor a GPU. Kernels are found by themselves: those of every module below
``gravel.gpu``, and those that factories make (``blocks.sweep_kernels``), for all their arguments.

Local memory of a thread is what the code declares as arrays of its own and what found no register (spilled). The machine code tells the
sum; where ``details`` are asked for, the kernels are compiled to PTX as well, which declares the arrays: what is beyond them is spilled.
"""

import ast
import importlib
import inspect
import itertools
import os
import pkgutil
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import warp as wp

import gravel.gpu
from gravel.gpu.cubin import read_cubin
from gravel.gpu.devices import start_warp

SUFFIX = "_cuda_kernel_forward"
FUNCTION = re.compile(r"^(?:\.visible |\.weak )?\.(?:entry|func)\s+(?:\(.*\)\s*)?(\w+)", re.MULTILINE)
ARRAYS = re.compile(r"\.local .*__local_depot\d+\[(\d+)\]")
SINGLE = re.compile(r"^\s*(?:@!?%p\d+\s+)?(add|sub|mul|fma|div|sqrt|rcp|rsqrt|min|max)[.\w]*\.f32\b", re.MULTILINE)
CALL = re.compile(r"\bcall[.\w]*\s+(?:\([^)]*\),\s*)?(\w+)")


class Compiled(NamedTuple):
    name: str  # module, function and, of a factory's, the arguments that were true
    file: Path
    registers: int  # of a thread
    local: int  # bytes of local memory of a thread: arrays and what is spilled
    spilled: int | None  # bytes of it that hold what found no register; None where that was not asked for
    shared: int  # bytes of shared memory of a block
    constant: int  # bytes of arguments and constants
    operations: int | None  # in single precision, in all branches; None as ``spilled``


def modules_of_engine() -> list[ModuleType]:
    """All modules of the engine, imported."""
    names = (found.name for found in pkgutil.walk_packages(gravel.gpu.__path__, "gravel.gpu."))
    return [importlib.import_module(name) for name in names]


def kernels_of_engine() -> dict[str, wp.Kernel]:
    """All kernels by name. Where a factory gives the same kernel for several arguments, it has the name of the first."""
    found: dict[str, wp.Kernel] = {}
    for module in modules_of_engine():
        place = module.__name__.removeprefix("gravel.gpu.")
        for value in list(vars(module).values()):
            if isinstance(value, wp.Kernel) and value.func.__module__ == module.__name__:
                found[f"{place}.{value.func.__name__}"] = value
        for factory in factories_in(module):
            for given, kernel in _made_by(factory):
                if all(kernel is not known for known in found.values()):
                    found[f"{place}.{kernel.func.__name__}[{', '.join(given)}]"] = kernel
    return found


def is_kernel(node: ast.AST) -> bool:
    """Whether source code is a function that ``wp.kernel`` decorates."""
    return isinstance(node, ast.FunctionDef) and any("wp.kernel" in ast.unparse(decorator) for decorator in node.decorator_list)


def factories_in(module: ModuleType) -> list[Callable[..., Any]]:
    """The functions of a module that make kernels."""
    functions = (node for node in ast.parse(Path(str(module.__file__)).read_text()).body if isinstance(node, ast.FunctionDef))
    return [getattr(module, node.name) for node in functions if any(map(is_kernel, ast.walk(node))) and not is_kernel(node)]


def _made_by(factory: Callable[..., Any]) -> Iterator[tuple[list[str], wp.Kernel]]:
    """(the arguments that were true, kernel) for all arguments of a factory."""
    parameters = inspect.signature(factory).parameters
    for name, parameter in parameters.items():
        if parameter.annotation is not bool:
            raise TypeError(f"factory {factory.__module__}.{factory.__name__} must take bool only, not {name}: {parameter.annotation!r}")
    for values in itertools.product((False, True), repeat=len(parameters)):
        made = factory(*values)
        given = [name for name, value in zip(parameters, values) if value]
        yield from ((given, kernel) for kernel in ([made] if isinstance(made, wp.Kernel) else vars(made).values()))


def compile_all(arch: int, folder: str | os.PathLike, details: bool = False) -> list[Compiled]:
    """Compile every kernel for the compute capability ``arch`` (80: sm_80) into files in ``folder``; ``details``: tell what is
    spilled, and how many operations there are."""
    return compile_kernels(kernels_of_engine(), arch, folder, details)


def compile_kernels(kernels: dict[str, wp.Kernel], arch: int, folder: str | os.PathLike, details: bool = False) -> list[Compiled]:
    """As ``compile_all``, for some kernels by name. Warp compiles module by module, as many at once as there are cores."""
    modules = list({id(kernel.module): kernel.module for kernel in kernels.values()}.values())

    def make(module, use_ptx):
        (file,) = wp.compile_aot_module(module, arch=arch, module_dir=Path(folder) / module.name, use_ptx=use_ptx)
        return file

    start_warp()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        files = dict(zip(map(id, modules), pool.map(lambda module: make(module, False), modules)))
        declared = dict(zip(map(id, modules), pool.map(lambda module: make(module, True), modules))) if details else {}
    usage = {key: read_cubin(file) for key, file in files.items()}
    texts = {key: file.read_text() for key, file in declared.items()}
    return [_compiled(name, kernel, files[id(kernel.module)], usage[id(kernel.module)], texts) for name, kernel in kernels.items()]


def _compiled(name, kernel, file, usage, texts):
    symbol, ptx = kernel.get_mangled_name() + SUFFIX, texts.get(id(kernel.module))
    if symbol not in usage:
        raise RuntimeError(f"{file} has no kernel {symbol}, but {', '.join(usage)}")
    registers, stack, shared, constant = usage[symbol]
    spilled = operations = None
    if ptx is not None:
        spilled, operations = max(stack - local_arrays(ptx).get(symbol, 0), 0), single_operations(ptx, symbol)
    return Compiled(name, file, registers, stack, spilled, shared, constant, operations)


def local_arrays(ptx: str) -> dict[str, int]:
    """Bytes of local memory that each function of a PTX text declares, with the most that one it calls does."""
    own: dict[str, int] = {}
    calls: dict[str, set[str]] = {}
    heads = list(FUNCTION.finditer(ptx))
    for head, following in zip(heads, [*heads[1:], None]):
        body = ptx[head.end() : following.start() if following else len(ptx)]
        own[head[1]] = own.get(head[1], 0) + sum(map(int, ARRAYS.findall(body)))
        calls[head[1]] = calls.get(head[1], set()) | set(CALL.findall(body))

    def declared(name):
        return own.get(name, 0) + max(map(declared, calls.get(name, ())), default=0)

    return {name: declared(name) for name in own}


def single_operations(ptx: str, kernel: str) -> int:
    """Operations in single precision that a kernel's PTX holds, a product with a sum as two. All branches count, and loops once."""
    heads = list(FUNCTION.finditer(ptx))
    (at,) = [k for k, head in enumerate(heads) if head[1] == kernel]
    body = ptx[heads[at].end() : heads[at + 1].start() if at + 1 < len(heads) else len(ptx)]
    return sum(2 if name == "fma" else 1 for name in SINGLE.findall(body))
