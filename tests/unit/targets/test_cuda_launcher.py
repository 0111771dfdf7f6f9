"""The launcher in C of a `.cu` file: it compiles, runs on the host, and refuses wrong calls before any launch."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import compiler
from compiler import te
from compiler.__main__ import main
from compiler.cli.build import LEVELS
from compiler.targets.cuda import CudaKernel, nvrtc
from compiler.targets.cuda.interface import SLOT, WORKSPACE
from compiler.targets.registry import TARGET_TEXTS, TARGETS, target_named
from tests.gpu_schedules import product, tiled
from tests.host_cuda import compiled_file, needs_gxx
from tests.said import refusal
from tests.sample import some
from tests.unit.targets.test_launch_limits import held

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)
OK, NULL, MISALIGNED, TOO_SMALL = 0, -1, -2, -3
STREAM = 0x5EED
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
needs_nvrtc = pytest.mark.skipif(not nvrtc.has_headers(), reason="there is no NVRTC, or no headers of CUDA")


def layer() -> te.Function:
    """Several kernels, with temporaries between them."""
    x, w = te.placeholder((6, 9), name="X"), te.placeholder((9, 5), name="W")
    return te.function("layer", [x, w], te.nn.softmax(te.nn.relu(te.nn.matmul(x, w))))


def dtypes() -> te.Function:
    """Unsigned, truth values, f16 and bf16."""
    x, p = te.placeholder((7, 9), "u8", name="X"), te.placeholder((7, 9), "i1", name="P")
    h, b = te.placeholder((7, 9), "f16", name="H"), te.placeholder((7, 9), "bf16", name="B")
    twice = te.compute((7, 9), lambda i, j: x[i, j] + x[i, j], name="U")
    chosen = te.compute((7, 9), lambda i, j: te.select(p[i, j], h[i, j], -h[i, j]), name="S")
    return te.function("dtypes", [x, p, h, b], [twice, chosen, te.nn.relu(b, name="R")])


NAMES = ("stream", "int", "EOF", "run_run", "workspace", "cudaLaunchKernel", "run_OK", "arguments")


def names() -> te.Function:
    """A kernel called like the launcher; arguments called like it, its variables, and words of C++."""
    first, *others = tensors = [te.placeholder((4,), name=name) for name in NAMES]

    def total(i: te.Expr) -> te.Expr:
        return sum((tensor[i] * (2.0 + n) for n, tensor in enumerate(others)), first[i])

    return te.function("run", tensors, te.compute((4,), total, name="run"))


LARGE, SMALL = RANDOM.standard_normal((64, 48), np.float32), np.arange(48, dtype=np.float32)


def constants() -> te.Function:
    """A large constant, which is an argument of the launcher, and a small one, which is in the text."""
    x, large = te.placeholder((3, 64), name="X"), te.constant(LARGE, name="W")
    small, y = te.constant(SMALL, name="s"), te.nn.matmul(x, large, name="Y")
    return te.function("my.constants", [x], te.compute((3, 48), lambda i, j: y[i, j] + small[j], name="Z"))


def normal(*shape: int) -> Array:
    return RANDOM.standard_normal(shape, np.float32)


def softmax(z: Array) -> Array:
    exponentials = np.exp(z - z.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def signs(x: Array, p: Array, h: Array, b: Array) -> list[Array]:
    return [x + x, np.where(p, h, -h), np.maximum(b, b.dtype.type(0))]


DTYPED = (
    RANDOM.integers(0, 256, (7, 9), np.uint8),
    normal(7, 9) > 0,
    normal(7, 9).astype(np.float16),
    normal(7, 9).astype(ml_dtypes.bfloat16),
)
Case = tuple[Callable[[], Any], tuple[Array, ...], Callable[..., Array | list[Array]]]
CASES: dict[str, Case] = {
    "temporaries": (layer, (normal(6, 9), normal(9, 5)), lambda x, w: softmax(np.maximum(x @ w, 0))),
    "one kernel": (lambda: tiled(product(40, 20, 30)), (normal(40, 30), normal(30, 20)), np.matmul),
    "dynamic shared memory": (lambda: held(64), (normal(4, 1 << 14),), lambda x: x + 1),
    "dtypes": (dtypes, DTYPED, signs),
    "names": (names, (normal(8, 4),), lambda x: x[0] + np.arange(2, 9, dtype=np.float32) @ x[1:]),
    "constants": (constants, (normal(3, 64), LARGE), lambda x, w: x @ w + SMALL),
}


@cache
def built(case: str) -> CudaKernel:
    """The kernel of a case."""
    return compiler.build(CASES[case][0](), "cuda")


def aligned(size: int) -> Array:
    """Poisoned bytes at a multiple of 64."""
    memory = np.full(size + 64, 0xFF, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size]


class Launcher:
    """A compiled `.cu` file with aligned arrays for all parameters of its launcher."""

    def __init__(self, kernel: CudaKernel, library: ctypes.CDLL, inputs: tuple[Array, ...] = ()) -> None:
        self.library, self.symbol = library, kernel.interface.symbol
        self.arguments = [aligned(buffer.size) for buffer in kernel.interface.arguments]
        for memory, array in zip(self.arguments, inputs, strict=False):
            memory[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        function = getattr(library, f"{self.symbol}_workspace_bytes")
        function.restype = ctypes.c_size_t
        self.size = function()
        self.workspace = aligned(self.size)

    @property
    def addresses(self) -> list[int]:
        """The addresses of the arguments and of the workspace."""
        return [memory.ctypes.data for memory in (*self.arguments, self.workspace)]

    def run(self, addresses: list[int], size: int) -> int:
        """The status of a call, with a workspace of some bytes."""
        stated = [*map(ctypes.c_void_p, addresses), ctypes.c_size_t(size), ctypes.c_void_p(STREAM)]
        return int(getattr(self.library, f"{self.symbol}_run")(*stated))

    @property
    def launched(self) -> int:
        """The number of kernels launched up to now; only for a text compiled for the host."""
        return ctypes.c_int.in_dll(self.library, "launched").value

    def wrong_calls(self) -> list[tuple[int, list[int], int]]:
        """Calls with one address that is null or misaligned, or a short workspace, and the status of each."""
        right, calls = self.addresses, []
        for n in range(len(right) if self.size else len(right) - 1):
            calls.append((NULL, [*right[:n], 0, *right[n + 1 :]], self.size))
            calls.append((MISALIGNED, [*right[:n], right[n] + 8, *right[n + 1 :]], self.size))
        return [*calls, *([(TOO_SMALL, right, self.size - 1), (TOO_SMALL, right, 0)] if self.size else [])]


@needs_gxx
@pytest.mark.parametrize("case", CASES)
def test_it_launches_all_kernels_on_the_stream_and_refuses_wrong_calls(case: str, tmp_path: Path) -> None:
    kernel, (_, inputs, reference) = built(case), CASES[case]
    given = tuple(inputs[0]) if case == "names" else inputs
    launcher = Launcher(kernel, compiled_file(kernel, tmp_path), given)
    for status, addresses, size in launcher.wrong_calls():
        assert launcher.run(addresses, size) == status
    assert launcher.launched == 0
    assert launcher.run(launcher.addresses, launcher.size) == OK
    assert launcher.launched == len(kernel.launches)
    assert ctypes.c_void_p.in_dll(launcher.library, "used_stream").value == STREAM
    expected = reference(*inputs)
    outputs = launcher.arguments[len(given) :]
    for memory, array in zip(outputs, expected if isinstance(expected, list) else [expected], strict=True):
        actual = memory.view(array.dtype).reshape(array.shape).astype(np.float32)
        np.testing.assert_allclose(actual, array.astype(np.float32), rtol=1e-4, atol=1e-4)


@needs_gxx
def test_an_error_of_the_runtime_is_returned_before_a_launch(tmp_path: Path) -> None:
    kernel = built("dynamic shared memory")
    launcher = Launcher(kernel, compiled_file(kernel, tmp_path))
    ctypes.c_int.in_dll(launcher.library, "device_bytes").value = 1000
    assert launcher.run(launcher.addresses, 0) == 1 and launcher.launched == 0


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("case", CASES)
def test_nvrtc_takes_the_file(case: str, arch: str) -> None:
    assert nvrtc.compiled(built(case).file_text, arch).resources.keys() == {la.name for la in built(case).launches}


@needs_nvcc
@pytest.mark.parametrize("case", some(CASES))
def test_nvcc_makes_a_library_of_the_file(case: str, tmp_path: Path) -> None:
    kernel, file, library = built(case), tmp_path / "x.cu", tmp_path / "x.so"
    file.write_text(kernel.file_text)
    known = subprocess.run(["nvcc", "--list-gpu-code"], capture_output=True, text=True, check=True).stdout.split()
    first = next(arch for arch in known if int(arch[3:]) >= int(kernel.least_architecture[3:]))
    options = (f"-arch={first}", *kernel.interface.options)
    command = ["nvcc", "-Werror=all-warnings", "-shared", "-Xcompiler=-fPIC", *options]
    subprocess.run([*command, str(file), "-o", str(library)], check=True)
    launcher = Launcher(kernel, ctypes.CDLL(str(library)))
    assert all(launcher.run(addresses, size) == status for status, addresses, size in launcher.wrong_calls())


def test_temporaries_of_one_launch_are_apart_in_the_workspace() -> None:
    interface = built("temporaries").interface
    assert len(interface.temporaries) >= 3 and all(buffer.within == WORKSPACE for buffer in interface.temporaries)
    uses: dict[str, list[int]] = {}
    for step, launch in enumerate(interface.launches):
        for number in launch.arguments:
            uses.setdefault(interface.buffers[number].name, []).append(step)
    for one, other in combinations(interface.temporaries, 2):
        live_together = uses[one.name][0] <= uses[other.name][-1] and uses[other.name][0] <= uses[one.name][-1]
        ends = (one.offset + one.size, other.offset + other.size)
        assert not live_together or ends[0] <= other.offset or ends[1] <= one.offset
    assert all(buffer.offset % SLOT == 0 for buffer in interface.temporaries)
    assert max(buffer.offset + buffer.size for buffer in interface.temporaries) <= interface.workspace_bytes


def test_an_input_that_kernels_write_is_no_const_parameter() -> None:
    text = """
        func.func @"1f"(%A: memref<4xf32>, %B: memref<4xf32>) attributes {outputs = 1 : i64} {
          loop.for "i" %i = 4 thread_x {
            loop.block "C" [i = 4 at %i] (%a = %A[i] : memref<4xf32>) -> (%A[i] : memref<4xf32>) {
              loop.yield %a : f32
            }
          }
          loop.for "i" %i = 4 thread_x {
            loop.block "D" [i = 4 at %i] (%a = %A[i] : memref<4xf32>) -> (%B[i] : memref<4xf32>) {
              loop.yield %a : f32
            }
          }
          func.return
        }"""
    kernel = compiler.build(text, "cuda")
    assert [buffer.role for buffer in kernel.interface.buffers] == ["updated", "output"]
    assert "_1f_run(float* A, float* B, void* workspace" in kernel.file_text
    assert [launch.name for launch in kernel.launches] == ["_1f_C", "_1f_D"]  # no digit in front
    assert "layer_run(\n    const float* X,\n" in built("temporaries").file_text


def test_the_least_architecture() -> None:
    assert built("temporaries").least_architecture == "sm_70"
    assert compiler.build(held(100), "cuda", arch="sm_90").least_architecture == "sm_80"
    assert compiler.build(held(200), "cuda", arch="sm_90").least_architecture == "sm_90"


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a program, in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    Path("layer.mlir").write_text(str(layer()))
    return "layer.mlir"


def test_what_the_commands_write(in_folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    build = ["build", in_folder, "--target", "cuda"]
    assert main([*build, "-o", "x.cu"]) == main([*build, "-o", "x.json"]) == 0
    assert main(build) == main([*build, "--emit", "launches"]) == 0
    text, facts = Path("x.cu").read_text(), Path("x.json").read_text()
    assert capsys.readouterr().out == text + facts
    assert 'extern "C" int layer_run(' in text
    kernel, parsed = compiler.build(layer(), "cuda"), json.loads(facts)
    assert parsed["launches"][0]["arguments"] == ["matmul", "X", "W"]
    assert [tuple(launch["grid"]) for launch in parsed["launches"]] == [launch.grid for launch in kernel.launches]
    assert parsed["workspace_bytes"] == kernel.interface.workspace_bytes == 3 * SLOT


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--emit", "asm"], "the target cuda has no text 'asm' (it has cuda, launches)"),
        (["--emit", "te"], "the target cuda has no text 'te' (it has cuda, launches)"),
        (["--target", "cpu", "--emit", "launches"], "no text 'launches' (it has te, loop, low, llvm, asm)"),
        (["--target", "c", "--emit", "cuda"], "the target c has no text 'cuda' (it has c)"),
        (["-o", "x.txt"], "give -o FILE.cu, -o FILE.json, or --emit (cuda, launches)"),
    ],
)
def test_texts_that_a_target_does_not_have(
    arguments: list[str], sentence: str, in_folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", in_folder, "--target", "cuda", *arguments]) == 1
    assert refusal(capsys.readouterr().err).endswith(sentence)


def test_every_text_of_a_target_can_be_named() -> None:
    assert {text for name in TARGETS for text in target_named(name).texts} <= {*LEVELS, *TARGET_TEXTS}
