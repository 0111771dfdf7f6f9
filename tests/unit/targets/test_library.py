"""Libraries of kernels and programs: `strata.load` of them gives the kernel's bits; pickles; wrong words."""

from __future__ import annotations

import copy
import ctypes
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strata
from compiler.lowering.low_to_llvm.signature import Workspace
from compiler.targets import compilers
from compiler.targets.arguments import Argument
from compiler.targets.cpu.kernel import Interface
from compiler.targets.cpu.library.description import describe
from compiler.targets.cpu.library.statuses import STATUSES
from compiler.targets.cpu.linked import Linked
from compiler.types.machines import host
from strata import te
from strata.errors import InputError, TargetError
from tests.low import with_constants
from tests.operators.catalogue import numpy_dtype
from tests.programs import matmul
from tests.unit.targets.calls import said
from tests.unit.targets.libraries import INPUTS, WEIGHTS, Array, CLibrary, needs_compiler, network, normal, tool
from tests.unit.targets.test_kernel import IN_PLACE

pytestmark = needs_compiler

BY_VALUE = with_constants("""
func.func @by_value(%s: f32, %x: memref<8xf32>, %n: i32, %flag: i1, %wide: f64, %r: memref<8xf32>)
    attributes {outputs = 1 : i64} {
  %m = arith.sitofp %n : i32 to f32
  %w = arith.truncf %wide : f64 to f32
  %f = arith.select %flag, %s, %m : f32
  scf.for %i = %c0 to %c8 step %c1 {
    %a = memref.load %x[%i] : memref<8xf32>
    %b = arith.mulf %a, %f : f32
    %c = arith.addf %b, %w : f32
    memref.store %c, %r[%i] : memref<8xf32>
  }
  func.return
}""")
DTYPES = ("i8", "u8", "i32", "i64", "f16", "bf16", "f32", "f64")


def kinds() -> te.Function:
    """A result of each dtype, and one of truth values."""
    inputs = [te.placeholder((5,), dtype, name=dtype) for dtype in DTYPES]
    flag = te.placeholder((5,), "bool", name="flag")
    results = [te.compute((5,), lambda i, x=x: x[i] + x[i], name=f"{x.name}_out") for x in inputs]
    inverted = te.compute((5,), lambda i: te.select(flag[i], te.const(False, "bool"), te.const(True, "bool")), name="r")
    return te.function("kinds", [*inputs, flag], [*results, inverted])


def of_kinds() -> list[Array]:
    return [*(np.arange(5).astype(numpy_dtype(dtype)) for dtype in DTYPES), np.arange(5) % 2 == 0]


def parallel(threads: int) -> strata.Kernel:
    schedule = strata.Schedule(strata.lower(matmul(32, 48, 64)))
    schedule.parallel(schedule.get_loops(schedule.get_block("C"))[0])
    return strata.build(schedule, threads=threads)


def packed() -> strata.Kernel:
    return strata.build(matmul(32, 48, 64), threads=1, constants={"B": normal(64, 48)}, schedule="auto")


PROGRAMS: dict[str, tuple[Callable[[], strata.Kernel], Callable[[], list[Any]]]] = {
    "one group": (lambda: strata.build(matmul(3, 5, 4), threads=1), lambda: [normal(3, 4), normal(4, 5)]),
    "a preparation": (packed, lambda: [normal(32, 64)]),
    "a network": (lambda: strata.build(network(), threads=1, constants=WEIGHTS, schedule="auto"), lambda: INPUTS),
    "a network as written": (lambda: strata.build(network(), threads=1, constants=WEIGHTS), lambda: INPUTS),
    "scalars by value": (
        lambda: strata.build(BY_VALUE, threads=1),
        lambda: [np.float32(2), normal(8), np.int32(-3), np.bool_(False), np.float64(0.5)],
    ),
    "kinds of elements": (lambda: strata.build(kinds(), threads=1), of_kinds),
    "extents of one": (lambda: strata.build(matmul(1, 1, 1), threads=1), lambda: [normal(1, 1), normal(1, 1)]),
    "serial loops": (lambda: parallel(1), lambda: [normal(32, 64), normal(64, 48)]),
    "parallel loops": (lambda: parallel(2), lambda: [normal(32, 64), normal(64, 48)]),
}


def same_bits(left: strata.Kernel, right: strata.Kernel, inputs: list[Any], **options: Any) -> bool:
    first, second = left(*inputs, **options), right(*inputs, **options)
    pairs = zip(first, second, strict=True) if isinstance(first, tuple) else [(first, second)]
    return all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)


@pytest.mark.sampled
@pytest.mark.parametrize("case", PROGRAMS)
def test_a_library_gives_the_bits_of_its_kernel(case: str, tmp_path: Path) -> None:
    build, inputs = PROGRAMS[case]
    kernel = build()
    assert {path.name for path in kernel.export(tmp_path / "libit.so")} >= {"it.h", "it.hpp", "libit.so"}
    loaded = strata.load(tmp_path / "libit.so")
    assert (repr(loaded), loaded.threads, loaded.policy) == (repr(kernel), kernel.threads, kernel.policy)
    assert loaded.constant_bytes == -(-kernel.constant_bytes // 64) * 64
    assert same_bits(loaded, kernel, inputs())
    assert same_bits(loaded, kernel, inputs(), threads=2)
    for copied in (pickle.loads(pickle.dumps(kernel)), copy.copy(kernel), copy.deepcopy(kernel)):
        assert [group.verdict for group in copied.groups] == [group.verdict for group in kernel.groups]
        assert (repr(copied), copied.threads, copied.policy) == (repr(kernel), kernel.threads, kernel.policy)
        assert same_bits(copied, kernel, inputs())


def test_a_function_that_works_in_place(tmp_path: Path) -> None:
    kernel = strata.build(IN_PLACE)
    kernel.export(tmp_path / "libscale.so")
    for other in (strata.load(tmp_path / "libscale.so"), copy.copy(kernel)):
        x = np.arange(8, dtype=np.float32)
        assert other(x, np.array(3, np.float32)) is None
        np.testing.assert_array_equal(x, 3 * np.arange(8))


REST = [np.int32(-3), np.bool_(False), np.float64(0.5)]


def named(name: str) -> str:
    """The text of BY_VALUE under another name."""
    escaped = name.replace("\\", "\\5C").replace('"', "\\22").replace("\n", "\\0A")
    return BY_VALUE.replace("@by_value", f'@"{escaped}"')


FUNCTIONS = ("check", "getenv", "odd_run", "run_0", "GOMP_ends", 'a"b', "a b", "größe", "int", "x*/y", "a\nb", "@name@")


@pytest.mark.sampled
@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_name_of_a_function(name: str, tmp_path: Path) -> None:
    """Also one that the C text uses, and one that looks like a function of the library."""
    kernel = strata.build(named(name), threads=1)
    assert kernel.name == name
    kernel.export(tmp_path / "libodd.so")
    loaded = strata.load(tmp_path / "libodd.so")
    assert repr(loaded) == repr(kernel) and same_bits(loaded, kernel, [np.float32(2), normal(8), *REST])
    library = CLibrary(tmp_path / "libodd.so")
    assert library.version and library.prepare(None, None, 0) == "NULL"


def test_any_names_of_inputs(tmp_path: Path) -> None:
    texts = (
        "größe",
        "int",
        "errno",
        "x*/y",
        "/*",
        "a\nb",
        "a\0\rb",
        "@name@",
        "@PREFIX@",
        "\\",
        "??/",
        "%s",
        "{}",
        "w" * 999,
    )
    names = ('a"b', "a b", *texts)
    tensors = [te.placeholder((2,), name=name) for name in names]
    total = tensors[0]
    for tensor in tensors[1:]:
        total = te.nn.add(total, tensor)
    weights = {name: normal(2, seed=number) for number, name in enumerate(names[1:])}
    function = te.function("f", tensors, [total])
    kernel = strata.build(function, threads=1, constants=weights)
    strata.export(function, tmp_path / "libnames.so", threads=1, constants=weights)
    loaded = strata.load(tmp_path / "libnames.so")
    assert [a.name for a in loaded.arguments] == [a.name for a in kernel.arguments]
    assert same_bits(loaded, kernel, [normal(2)])


@pytest.mark.parametrize("file", ["lib3d.so", "libmost.so", "libgrö-x.so", "net.so", "libnet.v2.so"])
def test_any_name_of_a_library(file: str, tmp_path: Path) -> None:
    kernel = strata.build(matmul(3, 5, 4), threads=1)
    kernel.export(tmp_path / file)
    assert same_bits(strata.load(tmp_path / file), kernel, [normal(3, 4), normal(4, 5)])


HEADERS = ("unistd", "sys/mman", "sys/socket", "netdb", "elf", "errno", "sysexits", "sys/timex", "limits", "math")


@pytest.mark.parametrize("name", ["f", "map", "NULL", "errno"])
def test_a_name_beside_headers_of_the_system(name: str, tmp_path: Path) -> None:
    """With F_OK of unistd.h, MAP_FILE of sys/mman.h: no macro of the header is one of theirs."""
    strata.export(matmul(3, 5, 4), tmp_path / f"lib{name}.so", threads=1)
    text = "".join(f"#include <{header}.h>\n" for header in HEADERS) + f'#include "{name}.h"\n'
    (tmp_path / "use.c").write_text(f"{text}int used(void) {{ return {name}_prepare(0, 0, 0); }}\n")
    (tmp_path / "use.cc").write_text(f'{text}#include "{name}.hpp"\n{name}_library::Workspace *used();\n')
    compilers.run_compiler(["-Werror", "-Wall", "-c", "use.c"], tmp_path)
    subprocess.run([tool("g++"), "-Werror", "-Wall", "-c", "use.cc"], check=True, cwd=tmp_path)
    assert strata.load(tmp_path / f"lib{name}.so").name == "product"


def test_a_stated_name(tmp_path: Path) -> None:
    kernel = strata.build(matmul(3, 5, 4), threads=1)
    names = {path.name for path in kernel.export(tmp_path / "folder", name="mm")}
    assert names >= {"mm.h", "mm.hpp", "libmm.so", "libmm.a", "mm.c"}
    (tmp_path / "folder/libmm.so").rename(tmp_path / "other.so")
    assert same_bits(strata.load(tmp_path / "other.so", name="mm"), kernel, [normal(3, 4), normal(4, 5)])
    said(lambda: strata.load(tmp_path / "other.so"), "has no function other_interface: state the library's name=")


@pytest.mark.parametrize("way", ["library", "file", "none"])
@pytest.mark.parametrize("form", ["filled", "raw"])
def test_the_weights(form: str, way: str, tmp_path: Path) -> None:
    path = tmp_path / "libnet.so"
    kernel = strata.build(network(), threads=1, constants=WEIGHTS, schedule="auto")
    if form == "filled":
        written = kernel.export(path, way)
    else:
        written = strata.export(network(), path, way, threads=1, constants=WEIGHTS, schedule="auto")
    assert ("net.safetensors" in [file.name for file in written]) == (way == "file")
    assert ("prepare_file" in (tmp_path / "net.h").read_text()) == (way == "file")
    if way == "none":
        said(lambda: strata.load(path), "a pointer is null")
    else:
        assert same_bits(strata.load(path), kernel, INPUTS)
    assert same_bits(strata.load(path, WEIGHTS), kernel, INPUTS)
    others = {name: array[::-1] for name, array in WEIGHTS.items()}
    other = strata.build(network(), threads=1, constants=others, schedule="auto")
    assert same_bits(strata.load(path, others), other, INPUTS) and not same_bits(other, kernel, INPUTS)
    said(lambda: strata.load(path, {"W": WEIGHTS["W"], "V": WEIGHTS["V"]}), "the weight 'b' is missing")
    said(lambda: strata.load(path, {**WEIGHTS, "c": WEIGHTS["b"]}), "there is no weight 'c' (there are V, W, b)")
    said(lambda: strata.load(path, {**WEIGHTS, "b": WEIGHTS["W"]}), "'b' has shape (64, 48), expected (48,)")


def test_a_file_of_weights_that_is_not_the_librarys(tmp_path: Path) -> None:
    kernel = strata.build(network(), threads=1, constants=WEIGHTS)
    kernel.export(tmp_path / "libnet.so", "file")
    weights = tmp_path / "net.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    said(lambda: strata.load(tmp_path / "libnet.so"), "is not the one that was written with the library")
    weights.unlink()
    said(lambda: strata.load(tmp_path / "libnet.so"), "the file of the weights cannot be read")


def test_raw_weights_are_a_file_of_safetensors(tmp_path: Path) -> None:
    tensors = pytest.importorskip("safetensors.numpy")
    strata.export(network(), tmp_path / "libnet.so", "file", threads=1, constants=WEIGHTS)
    read = tensors.load_file(tmp_path / "net.safetensors")
    assert all(read[name].tobytes() == array.tobytes() for name, array in WEIGHTS.items())


def test_libraries_beside_each_other_and_one_that_is_replaced(tmp_path: Path) -> None:
    """A library stays what it was when another takes its place on disk, and the new one is loaded by the same path."""
    first = strata.build(network(), threads=1, constants=WEIGHTS)
    others = {name: 2 * array for name, array in WEIGHTS.items()}
    second = strata.build(network(), threads=1, constants=others)
    assert not same_bits(first, second, INPUTS)
    path = tmp_path / "libnet.so"
    first.export(path)
    loaded = strata.load(path)
    second.export(path)
    again = strata.load(path)
    assert same_bits(loaded, first, INPUTS) and same_bits(again, second, INPUTS) and same_bits(loaded, first, INPUTS)


def test_a_pickle_in_another_process(tmp_path: Path) -> None:
    kernel = strata.build(network(), threads=1, constants=WEIGHTS, schedule="auto")
    (tmp_path / "kernel").write_bytes(pickle.dumps(kernel))
    np.savez(tmp_path / "inputs", *INPUTS)
    code = (
        "import pickle, sys, numpy as np; from pathlib import Path; folder = Path(sys.argv[1])\n"
        "kernel = pickle.loads((folder / 'kernel').read_bytes())\n"
        "np.savez(folder / 'outputs', *kernel(*np.load(folder / 'inputs.npz').values()))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=120)
    for result, expected in zip(np.load(tmp_path / "outputs.npz").values(), kernel(*INPUTS), strict=True):
        assert result.tobytes() == expected.tobytes()


def test_what_is_not_pickled(tmp_path: Path) -> None:
    kernel = strata.build(matmul(3, 5, 4), threads=1)
    kernel.export(tmp_path / "libmm.so")
    loaded = strata.load(tmp_path / "libmm.so")
    for attempt in (lambda: pickle.dumps(loaded), lambda: copy.copy(loaded)):
        with pytest.raises(TypeError, match="the code of this kernel was not kept"):
            attempt()
    said(lambda: loaded.export(tmp_path / "again.so"), "the code of this kernel was not kept")
    said(lambda: pickle.loads(pickle.dumps(kernel)).text("asm"), "no level 'asm'")


def test_wrong_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, f = strata.build(matmul(3, 5, 4), threads=1), matmul(3, 5, 4)
    (tmp_path / "file").touch()
    for wrong, words in (
        (
            lambda: kernel.export(tmp_path / "net.dll"),
            "ends in .so, .a, .o, .h, .c, .ll, .s or is a folder, not 'net.dll'",
        ),
        (lambda: kernel.export(tmp_path / "net.so", "elsewhere"), "weights is 'elsewhere', expected library, file,"),
        (lambda: kernel.export(tmp_path / "lib.so"), "'' gives no name of C functions"),
        (lambda: kernel.export(tmp_path / "net.so", name="***"), "'***' gives no name of C functions"),
        (lambda: kernel.export(tmp_path / "argp_program.so"), "'argp_program_version' is a name of the C library"),
        (lambda: kernel.export(tmp_path / "file" / "net.so"), "file/net.h cannot be written"),
        (lambda: kernel.export(tmp_path / "file"), "file/file.h cannot be written"),
        (lambda: strata.export(f, tmp_path / "x.so", cpus=()), "cpus is ()"),
        (lambda: strata.export(f, tmp_path / "x.so", cpus="haswell"), "cpus is 'haswell'"),
        (lambda: strata.export(f, tmp_path / "x.so", cpus=("avx2", "avx2")), "distinct names"),
        (lambda: strata.export(f, tmp_path / "x.so", cpus=("z80",)), "there is no processor 'z80' (there are native,"),
        (lambda: strata.export(f, tmp_path / "x.so", cpus=("avx512-amx", "sapphirerapids")), "two versions of x are"),
        (lambda: strata.export(f, tmp_path / "x.so", features="avx2"), "'avx2' is not a feature with a sign"),
        (lambda: strata.export(f, tmp_path / "x.so", features="+avx3"), "there is no feature 'avx3'"),
    ):
        with pytest.raises((InputError, TargetError)) as refused:
            wrong()
        assert words in str(refused.value)
    (tmp_path / "text.so").write_text("no library")
    said(lambda: strata.load(tmp_path / "text.so"), "text.so cannot be loaded")
    said(lambda: strata.load(tmp_path / "missing.so"), "missing.so cannot be loaded")
    monkeypatch.setattr(compilers, "compiler_command", lambda: None)
    said(lambda: kernel.export(tmp_path / "net.so"), "there is no C compiler")
    assert [path.name for path in kernel.export(tmp_path / "net.h", "file")] == ["net.h"]
    assert "prepare_file" not in (tmp_path / "net.h").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "net.h", "text.so"]


def test_no_objcopy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared library of one version needs the C compiler alone."""
    monkeypatch.setattr("compiler.targets.cpu.library.export.binary_tool", lambda *names: None)
    kernel = strata.build(matmul(3, 5, 4), threads=1)
    kernel.export(tmp_path / "libmm.so")
    said(lambda: kernel.export(tmp_path / "libmm.a"), "objcopy of binutils, which is not on the PATH")
    versions = ("haswell", "x86-64")
    said(lambda: strata.export(matmul(3, 5, 4), tmp_path / "x.so", cpus=versions), "objcopy of binutils")


def test_messages(tmp_path: Path) -> None:
    strata.build(matmul(3, 5, 4), threads=1).export(tmp_path / "libmm.so")
    library = CLibrary(tmp_path / "libmm.so")
    messages = [library.call("message", ctypes.c_char_p, n).decode() for n in range(-1, len(STATUSES) + 1)]
    assert messages == ["unknown status", *(status.message for status in STATUSES), "unknown status"]


def test_an_output_that_is_described_as_an_input_is() -> None:
    argument = Argument("x", (4,), np.dtype(np.float32))
    interface = Interface("f", (argument, argument), 1, Workspace(0, 0), None)
    description = describe("net", [Linked(interface, host(), (), "contract", 1, False)])
    assert (len(description.inputs), len(description.outputs)) == (1, 1)
