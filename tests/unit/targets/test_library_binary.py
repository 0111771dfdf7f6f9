"""Files of libraries: what they export and need, warnings of their C text, and versions for several processors."""

from __future__ import annotations

import ctypes
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

import strata
from compiler.targets.arena import arena
from compiler.targets.compilers import run_compiler
from compiler.targets.cpu.library import source as sources
from compiler.targets.cpu.library.description import Description, describe
from compiler.targets.cpu.library.features import BITS, required, states
from compiler.targets.cpu.library.header import cpp_header, header
from compiler.targets.cpu.library.source import Stored, source
from compiler.targets.cpu.library.weights import layout
from compiler.types.machines import MACHINES, detect_machine, host, missing_features
from compiler.types.selection import compiling_for, machine_for
from tests.programs import matmul
from tests.unit.targets.calls import said
from tests.unit.targets.libraries import INPUTS, SHAPES, WEIGHTS, Call, CLibrary, needs_compiler, network, normal, tool
from tests.unit.targets.test_library import BY_VALUE, IN_PLACE, named, parallel, same_bits

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(detect_machine().architecture != "x86_64", reason="the processors are x86-64's"),
]
FUNCTIONS = ("version", "interface", "certificate", "constants_bytes", "workspace_bytes", "prepare", "run", "message")
FUNCTIONS += ("function",)
OF_THE_SYSTEM = {"free", "aligned_alloc", "getenv", "memcpy", "memset", "strcmp", "_GLOBAL_OFFSET_TABLE_"}


def printed(name: str, *arguments: object) -> str:
    command = [tool(name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def exported(path: Path, *options: str) -> set[str]:
    return {line.split()[-1] for line in printed("nm", *options, "--defined-only", path).splitlines() if " " in line}


def needed(path: Path) -> set[str]:
    return set(re.findall(r"NEEDED.*\[(.*?)\]", printed("readelf", "-d", path)))


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the network for three processors, its weights in a file."""
    folder = tmp_path_factory.mktemp("versions") / "net"
    cpus = ("native", "haswell", "x86-64")
    strata.export(network("net_run"), folder, "file", cpus, threads=1, constants=WEIGHTS, schedule="auto")
    return folder


def test_what_a_library_exports_and_needs(versions: Path) -> None:
    functions = {f"net_{name}" for name in (*FUNCTIONS, "prepare_file")}
    shared, static = versions / "libnet.so", versions / "libnet.a"
    assert exported(shared, "-D") == functions == exported(static, "-g")
    dynamic = printed("readelf", "-d", shared)
    assert needed(shared) <= {"libm.so.6", "libc.so.6"} and not re.search("TEXTREL|RPATH|RUNPATH", dynamic)
    assert re.search(r"GNU_STACK.* RW ", printed("readelf", "-lW", shared))
    undefined = {line.split()[-1] for line in printed("nm", "-u", static).splitlines() if " U " in line}
    assert undefined <= OF_THE_SYSTEM | {"fmaf", "open", "close", "fstat", "mmap", "munmap"}


@pytest.mark.parametrize("suffix", [".o", ".a"])
def test_a_library_has_no_state(suffix: str, versions: Path, tmp_path: Path) -> None:
    path = tmp_path / f"net{suffix}"
    strata.build(network(), threads=1, constants=WEIGHTS, schedule="auto").export(path)
    sections = printed("readelf", "-SW", path)
    sizes = dict(re.findall(r"\] (\.(?:t?data|t?bss)\S*) +\w+ +\w+ \w+ (\w+)", sections))
    assert ".data" in sizes
    assert all(int(size, 16) == 0 for name, size in sizes.items() if not name.startswith(".data.rel.ro"))
    assert "COMMON" not in printed("readelf", "-sW", path)


def test_parallel_loops_need_openmp_for_several_threads_only(tmp_path: Path) -> None:
    for threads in (1, 2):
        parallel(threads).export(tmp_path / f"lib{threads}.so")
    assert "libgomp.so.1" not in needed(tmp_path / "lib1.so") and "libgomp.so.1" in needed(tmp_path / "lib2.so")
    assert exported(tmp_path / "lib1.so", "-D") == {f"_1_{name}" for name in FUNCTIONS}
    library = CLibrary(tmp_path / "lib1.so")
    assert library.version == host().cpu


def test_a_static_library_with_parallel_loops(tmp_path: Path) -> None:
    kernel = parallel(2)
    kernel.export(tmp_path / "libmm.a")
    options = ["-Wl,--whole-archive", "libmm.a", "-Wl,--no-whole-archive", "-lgomp", "-lm"]
    run_compiler(["-shared", "-o", "libmm.so", *options], tmp_path)
    loaded, inputs = strata.load(tmp_path / "libmm.so"), [normal(32, 64), normal(64, 48)]
    for threads in (1, 2, 3):
        assert same_bits(loaded, kernel, inputs, threads=threads)


def described() -> dict[str, tuple[Description, Stored | None]]:
    """Descriptions of libraries of each kind, with their stored weights."""
    net = strata.build(network(), threads=1, constants=WEIGHTS, schedule="auto")
    assert net.program is not None
    linked, names = net.program.linked, ("V", "W", "b")
    tiled = describe("tiled", [linked])
    tiled = replace(tiled, versions=(replace(tiled.versions[0], tiles=True),))
    in_file = Stored([64, 128, 192], False, layout({name: WEIGHTS[name] for name in names}, {}), 7)
    kernels = {"serial": parallel(1), "by_value": strata.build(BY_VALUE), "in_place": strata.build(IN_PLACE)}
    kernels["odd"] = strata.build(named('a*/b/*"\\?\n'), threads=1)
    descriptions = {name: describe(name, [k.program.linked]) for name, k in kernels.items() if k.program is not None}
    with compiling_for(machine_for("x86-64")):
        other = strata.build(network(), threads=1, constants=WEIGHTS, schedule="auto")
    assert other.program is not None
    several = describe("several", [linked, other.program.linked])
    plain: dict[str, tuple[Description, Stored | None]] = {name: (d, None) for name, d in descriptions.items()}
    return {
        **plain,
        "tiled": (tiled, Stored([0], True)),
        "file": (describe("file", [linked]), in_file),
        "filled": (describe("filled", [linked]), replace(in_file, is_filled=True)),
        "several": (several, Stored([0, 64, 128], False)),
    }


def test_the_c_text_has_no_warnings(tmp_path: Path) -> None:
    strict = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-O2")
    for name, (description, stored) in described().items():
        has_file = stored is not None and stored.file is not None
        (tmp_path / f"{name}.h").write_text(header(description, has_file))
        (tmp_path / f"{name}.hpp").write_text(cpp_header(description, has_file))
        (tmp_path / f"{name}.c").write_text(source(description, stored))
        (tmp_path / f"{name}.user.c").write_text(
            f'#include "{name}.h"\n#include "{name}.h"\nint main(void) {{ return 0; }}\n'
        )
        (tmp_path / f"{name}.user.cpp").write_text(f'#include "{name}.hpp"\n#include "{name}.hpp"\nint main() {{}}\n')
        run_compiler([*strict, "-std=c11", "-Wno-overlength-strings", f"{name}.c"], tmp_path)
        run_compiler([*strict, "-std=c99", "-x", "c", f"{name}.user.c"], tmp_path)
        command = [tool("g++"), *strict, "-std=c++17", f"{name}.user.cpp"]
        subprocess.run(command, check=True, cwd=tmp_path, timeout=60)


def test_each_version_computes_the_same_to_rounding(versions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = strata.build(network("net_run"), threads=1, constants=WEIGHTS, schedule="auto")
    expected, library = kernel(*INPUTS), CLibrary(versions / "libnet.so")
    assert library.version == host().cpu
    assert same_bits(strata.load(versions / "libnet.so"), kernel, INPUTS)
    results = {}
    for cpu in (host().cpu, "haswell", "x86-64"):
        monkeypatch.setenv("NET_CPU", cpu)
        assert library.version == cpu
        results[cpu] = strata.load(versions / "libnet.so")(*INPUTS)
        for result, array in zip(results[cpu], expected, strict=True):
            np.testing.assert_allclose(result, array, rtol=1e-4, atol=1e-5)
    assert any(a.tobytes() != b.tobytes() for a, b in zip(results["x86-64"], expected, strict=True))
    monkeypatch.setenv("NET_CPU", "")
    assert library.version == host().cpu


def test_an_unknown_processor(versions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, block = CLibrary(versions / "libnet.so"), arena(1 << 16)
    monkeypatch.setenv("NET_CPU", "z80")
    sizes = library.constants_bytes, library.workspace_bytes()
    assert (library.version, *sizes, library.call("function", ctypes.c_void_p)) == ("", 0, 0, None)
    assert library.prepare([0, 0, 0], block.ctypes.data, len(block)) == "PROCESSOR"
    assert library.prepare_file(versions / "net.safetensors", block.ctypes.data, len(block)) == "PROCESSOR"
    said(lambda: strata.load(versions / "libnet.so"), "no version runs on this processor (it has ", "haswell, x86-64)")


def test_constants_are_run_by_the_version_that_has_filled_them(versions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, constants, outputs = CLibrary(versions / "libnet.so"), {}, {}
    memory = arena(1 << 16)
    for cpu in ("haswell", "x86-64"):
        monkeypatch.setenv("NET_CPU", cpu)
        constants[cpu] = arena(library.constants_bytes)
        filled = constants[cpu].ctypes.data, len(constants[cpu])
        assert library.prepare_file(versions / "net.safetensors", *filled) == "OK"
        outputs[cpu] = strata.load(versions / "libnet.so")(*INPUTS)
    for cpu, pinned in (("haswell", "x86-64"), ("x86-64", "haswell"), ("haswell", "z80")):
        monkeypatch.setenv("NET_CPU", pinned)
        results = [np.empty(shape, np.float32) for shape in SHAPES]
        addresses = [array.ctypes.data for array in INPUTS], [array.ctypes.data for array in results]
        assert library.run(Call(constants[cpu].ctypes.data, *addresses, memory.ctypes.data, len(memory))) == "OK"
        assert [a.tobytes() for a in results] == [a.tobytes() for a in outputs[cpu]]


@pytest.fixture(scope="module")
def has_features(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("features")
    text = (Path(sources.__file__).parent / "features.c").read_text()
    wrapper = "int has(const struct bit *f, size_t n, uint64_t s) { return has_features(f, n, s); }"
    (folder / "f.c").write_text(f"#include <cpuid.h>\n#include <stddef.h>\n#include <stdint.h>\n{text}\n{wrapper}\n")
    run_compiler(["-shared", "-fPIC", "-o", "f.so", "f.c"], folder)
    return ctypes.CDLL(str(folder / "f.so"))


def has(functions: ctypes.CDLL, bits: list[tuple[int, int, int, int]], saved: int = 0) -> bool:
    table = (ctypes.c_uint * (4 * len(bits) + 1))(*(number for bit in bits for number in bit))
    return bool(functions.has(table, ctypes.c_size_t(len(bits)), ctypes.c_uint64(saved)))


def test_features_are_those_that_llvm_sees(has_features: ctypes.CDLL) -> None:
    features = llvm.get_host_cpu_features()
    known = {name for name in BITS if name in features}
    assert BITS.keys() - known <= {"osxsave"} and {"avx2", "avx512f", "fma", "amx-tile"} <= known
    for name in sorted(known):
        assert has(has_features, required([name]), states([name])) == features[name], name
    present = {name for name in known if features[name]}
    assert has(has_features, required(present), states(present))
    absent = sorted(known - present)
    assert absent and not any(has(has_features, [*required(present), BITS[name]]) for name in absent)
    assert not has(has_features, [(0x7FFFFFFF, 0, 0, 0)]) and not has(has_features, [], 1 << 62)


def test_each_machine_demands_its_features() -> None:
    for name, machine in MACHINES.items():
        if machine.architecture != "x86_64":
            continue
        assert {BITS[feature] for feature in machine.present} <= {*required(machine.present)}, name
        assert bool(states(machine.present) & 0xE0) == (machine.vector_bits == 512), name
    assert states(["amx-int8"]) == 0x60000 and states(["sse4.2"]) == 0 and states(["avx"]) == 6


def test_features_on_demand() -> None:
    """Features bring those that they need; removed ones take those with them that need them, and LLVM is told."""
    assert {"avx512f", "avx2", "fma", "avx"} <= machine_for("haswell", "+avx512vnni").present
    without = machine_for("znver4", "-avx2")
    assert not [name for name in without.present if name.startswith("avx") and name != "avx"]
    assert {"-avx2", "-avx512f", "-avx512bf16"} <= set(without.features.split(",")) and without.vector_bits == 128
    assert machine_for("znver4", "-avx512f").vector_bits == 256
    assert machine_for("x86-64", "-avx2,+avx2").present >= {"avx", "avx2"}
    assert machine_for("native") == host() and machine_for("avx2").cores == host().cores
    arm = machine_for("neoverse-n1", "-dotprod")
    assert (arm.vector_bits, arm.registers, "dotprod" in arm.present) == (128, 32, False)
    said(lambda: machine_for("neoverse-n1", "+avx2"), "there is no feature 'avx2'")
    with compiling_for(machine_for("skylake-avx512", "-avx")):
        text = strata.build(matmul(16, 16, 16), threads=1).text("asm")
    assert "xmm" in text and "ymm" not in text and "zmm" not in text


def test_a_kernel_for_a_processor_that_is_not_here(tmp_path: Path) -> None:
    """It is exported and pickled like any other, and runs nowhere here."""
    machine = machine_for("sapphirerapids")
    if not missing_features(machine):
        pytest.skip("this processor has all features")
    strata.export(matmul(3, 5, 4), tmp_path / "libmm.so", cpus=("sapphirerapids",), threads=1)
    said(lambda: strata.load(tmp_path / "libmm.so"), "no version runs on this processor (it has sapphirerapids)")
    strata.export(matmul(3, 5, 4), tmp_path / "libmm.so", cpus=("sapphirerapids", "x86-64"), threads=1)
    kernel = strata.load(tmp_path / "libmm.so")
    a, b = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
    np.testing.assert_array_equal(kernel(a, b), a @ b)
