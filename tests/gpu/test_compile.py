"""Every kernel of the engine compiles for GPUs of three generations, without one; those of the solver keep all they have in registers."""

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
import warp as wp

import gravel.gpu
from gravel.gpu.compile import compile_all, compile_kernels, factories_in, kernels_of_engine, local_arrays
from gravel.gpu.cubin import read_cubin
from gravel.gpu.solve import blocks

ROOT = Path(gravel.gpu.__file__).parent
DECORATED = re.compile(r"^( *)@wp\.kernel\b.*\n(?: *@.*\n)*\1def (\w+)", re.MULTILINE)
OTHERWISE = re.compile(r"(?<!@)wp\.kernel\(")  # a kernel that no decorator makes
INNER = {
    *("sweep", "measure", "gradient", "apply", "list_steps", "carry_on", "clear", "reduce", "finish_sweep"),
    *("projected_step", "extrapolate", "dot_of_differences"),
}


@wp.kernel(module="unique", enable_backward=False)
def with_array(n: int, x: wp.array(dtype=float)):
    """50 numbers of its own, which no register can hold: which one is read is not known before."""
    own = wp.zeros(shape=(50,), dtype=float)
    for k in range(n):
        own[k % 50] = x[k]
    x[0] = own[n % 50]


def hungry(values, **options):
    """A kernel that needs so many numbers at once."""
    rows = wp.types.vector(length=values, dtype=float)

    @wp.kernel(module="unique", enable_backward=False, **options)
    def mix(x: wp.array(dtype=rows), y: wp.array(dtype=rows)):
        i = wp.tid()
        a = x[i]
        b = y[i]
        s = wp.dot(a, b)
        x[i] = a * s + b
        y[i] = b * s - a

    return mix


def names_in_sources():
    """(module, function) of all that the sources decorate."""
    for path in ROOT.rglob("*.py"):
        place = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield from ((place, found[2]) for found in DECORATED.finditer(path.read_text()))


@pytest.fixture(scope="module")
def for_80(tmp_path_factory):
    return {one.name: one for one in compile_all(80, tmp_path_factory.mktemp("sm_80"))}


def test_the_list_of_kernels_is_complete():
    listed = {tuple(name.split("[")[0].rsplit(".", 1)) for name in kernels_of_engine()}
    wanted = set(names_in_sources())
    assert listed == wanted and len(wanted) > 40
    assert not [str(path) for path in ROOT.rglob("*.py") if OTHERWISE.search(path.read_text())]


def test_factories_are_asked_for_all_that_they_make():
    assert factories_in(blocks) == [blocks.sweep_kernels, blocks.measure_kernels, blocks.vector_kernels]
    made = [kernel for balls in (True, False) for rolling in (True, False) for kernel in vars(blocks.kernels_for(balls, rolling)).values()]
    listed = list(kernels_of_engine().values())
    assert len(made) == 24 and all(any(kernel is one for one in listed) for kernel in made)
    assert len(listed) == len(set(map(id, listed)))  # and nothing twice


def machine_of(path):
    """(ELF machine, compute capability) that a file was made for."""
    head = path.read_bytes()[:64]
    (flags,) = struct.unpack_from("<I", head, 48)
    return struct.unpack_from("<H", head, 18)[0], flags >> 8 & 0xFF


@pytest.mark.slow  # a minute each; the A100 in between is always compiled, below
@pytest.mark.parametrize("arch", [75, 90])
def test_every_kernel_compiles(arch, tmp_path):
    made = compile_all(arch, tmp_path)
    assert [one.name for one in made] == list(kernels_of_engine())
    assert {machine_of(one.file) for one in made} == {(190, arch)}
    assert all(0 < one.registers <= 255 and one.spilled is None for one in made)


def test_every_kernel_compiles_for_an_a100_and_the_file_holds_nothing_else(for_80):
    assert list(for_80) == list(kernels_of_engine())
    assert {machine_of(one.file) for one in for_80.values()} == {(190, 80)}
    held = [name for file in {one.file for one in for_80.values()} for name in read_cubin(file)]
    assert len(held) == len(for_80)  # a module with another kernel would be a kernel that the list has not


def test_kernels_of_the_solver_use_registers_only(for_80):
    inner = [one for name, one in for_80.items() if name.startswith("solve.")]
    assert {one.name.split("[")[0].rsplit(".", 1)[1] for one in inner} >= INNER
    assert [(one.name, one.local) for one in inner if one.local] == []  # so nothing is spilled, either


def test_arrays_and_what_is_spilled_are_told_apart(tmp_path):
    """200 bytes of an array; 32 registers, which two blocks of 1 024 threads leave to each, for 64 numbers at once."""
    tight = hungry(32, launch_bounds=(1024, 2))
    array, roomy, spilling = compile_kernels({"array": with_array, "roomy": hungry(32), "spilling": tight}, 80, tmp_path, details=True)
    assert array.local >= 50 * 4 and array.spilled == 0
    assert roomy.local == roomy.spilled == 0 and roomy.registers > 64
    assert spilling.registers <= 32 and spilling.spilled == spilling.local > 0


PTX = """
.version 7.0
.target sm_80
.address_size 64
.func (.param .b32 out) slow(.param .b32 at)
{
    .local .align 4 .b8 __local_depot1[40];
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u32 %r1, [at];
    mul.wide.u32 %rd1, %r1, 4;
    mov.u64 %rd2, __local_depot1;
    add.u64 %rd3, %rd2, %rd1;
    st.local.u32 [%rd3], %r1;
    ld.local.u32 %r2, [%rd2];
    st.param.b32 [out], %r2;
    ret;
}
.visible .entry first(.param .u64 x, .param .u32 n)
{
    .local .align 4 .b8 __local_depot0[96];
    .shared .align 4 .b8 common[512];
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [x];
    ld.param.u32 %r1, [n];
    mul.wide.u32 %rd2, %r1, 4;
    mov.u64 %rd3, __local_depot0;
    add.u64 %rd4, %rd3, %rd2;
    st.local.u32 [%rd4], %r1;
    ld.local.u32 %r2, [%rd3];
    mov.u32 %r3, common;
    add.u32 %r4, %r3, %r1;
    st.shared.u32 [%r4], %r2;
    ld.shared.u32 %r5, [%r3];
    {
        .param .b32 to;
        .param .b32 back;
        st.param.b32 [to], %r5;
        call.uni (back), slow, (to);
        ld.param.b32 %r6, [back];
    }
    st.global.u32 [%rd1], %r6;
    ret;
}
.visible .entry second(.param .u64 x)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [x];
    st.global.u32 [%rd1], 7;
    ret;
}
"""


def test_ptx_tells_the_arrays_of_a_kernel_and_of_what_it_calls():
    assert local_arrays(PTX) == {"slow": 40, "first": 136, "second": 0}


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="the assembler of CUDA is not there")
def test_what_is_read_is_what_the_assembler_reports(tmp_path):
    source, made = tmp_path / "two.ptx", tmp_path / "two.cubin"
    source.write_text(PTX)
    said = subprocess.run(["ptxas", "-v", "-arch=sm_80", str(source), "-o", str(made)], capture_output=True, text=True, check=True).stderr
    found = read_cubin(made)
    for name in ("first", "second"):
        part = said.split(f"Compiling entry function '{name}'")[1].split("Compiling entry function")[0]
        told = {what: re.search(rf"(\d+) bytes {text}|(\d+) {text}", part) for what, text in WORDS.items()}
        wanted = {what: int(match[1] or match[2]) if match else 0 for what, match in told.items()}
        assert {what: getattr(found[name], what) for what in WORDS} == wanted, name
    assert found["first"].shared == 512 and found["first"].stack >= 96


WORDS = {"registers": "registers", "stack": "cumulative stack size", "shared": "smem", "constant": r"cmem\[0\]"}


def test_what_is_no_machine_code_is_refused(tmp_path):
    text = tmp_path / "text"
    text.write_text("x" * 100)
    with pytest.raises(ValueError, match="is no cubin"):
        read_cubin(text)


def test_a_factory_with_other_arguments_is_refused():
    from gravel.gpu.compile import _made_by

    def kernel_for(width: int):
        return width

    with pytest.raises(TypeError, match="kernel_for must take bool only, not width"):
        list(_made_by(kernel_for))
