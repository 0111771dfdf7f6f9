"""The second opinion: mlir-opt-22 lowers our low level its own way, mlir-runner-22 runs it, the numbers agree."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from tests.operators import CASES, inputs

MLIR_OPT = shutil.which("mlir-opt-22")
RUNNER = shutil.which("mlir-runner-22")
PIPELINE = (
    "builtin.module(convert-vector-to-scf,convert-scf-to-cf,expand-strided-metadata,lower-affine,"
    "convert-vector-to-llvm,convert-math-to-llvm,convert-math-to-libm,finalize-memref-to-llvm,"
    "convert-arith-to-llvm,convert-index-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)"
)
NAMES = [
    "matmul-0",
    "batch_matmul-3",
    "dense-1",
    "conv2d-1",
    "conv2d-4",
    "max_pool2d-3",
    "avg_pool2d-1",
    "softmax-3",
    "layer_norm-3",
    "gelu-2",
    "pow-1",
    "mean-3",
    "transpose-4",
    "pad-1",
]

pytestmark = pytest.mark.skipif(
    MLIR_OPT is None or RUNNER is None, reason="mlir-opt-22 and mlir-runner-22 are not installed"
)


def libraries() -> list[str]:
    root = Path(str(RUNNER)).resolve().parent.parent / "lib"
    found = [next(root.glob(f"lib{name}.so*"), None) for name in ("mlir_runner_utils", "mlir_c_runner_utils")]
    return [str(path) for path in found if path is not None]


def program(function: te.Function, arrays: list[np.ndarray[Any, Any]]) -> str:
    """Our low level, with a main that calls it on constants and prints the result."""
    low = compiler.build(function).text("low").strip().removeprefix("builtin.module {").removesuffix("}")
    (result,) = function.outputs
    types = [f"memref<{'x'.join(map(str, (*t.shape, t.dtype)))}>" for t in (*function.inputs, result)]
    lines = ["func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}", low]
    for i, array in enumerate(arrays):
        lines.append(f'memref.global "private" constant @in{i} : {types[i]} = dense<{array.tolist()}>')
    lines.append("func.func @main() {")
    for i in range(len(arrays)):
        lines.append(f"%in{i} = memref.get_global @in{i} : {types[i]}")
    lines.append(f"%out = memref.alloc() : {types[-1]}")
    values = ", ".join([*(f"%in{i}" for i in range(len(arrays))), "%out"])
    lines.append(f"func.call @{function.name}({values}) : ({', '.join(types)}) -> ()")
    lines.append(f"%any = memref.cast %out : {types[-1]} to memref<*xf32>")
    lines.append("func.call @printMemrefF32(%any) : (memref<*xf32>) -> ()\nfunc.return\n}")
    return "\n".join(lines)


@pytest.mark.parametrize("name", NAMES)
def test_upstream_agrees(name: str) -> None:
    if len(libraries()) < 2:
        pytest.skip("the runner's libraries are not installed")
    function = CASES[name]()
    arrays = inputs(function)
    lowered = subprocess.run(
        [str(MLIR_OPT), f"--pass-pipeline={PIPELINE}"],
        input=program(function, arrays),
        text=True,
        capture_output=True,
    )
    assert lowered.returncode == 0, lowered.stderr[:2000]
    command = [str(RUNNER), "-e", "main", "-entry-point-result=void", f"-shared-libs={','.join(libraries())}"]
    ran = subprocess.run(command, input=lowered.stdout, text=True, capture_output=True)
    assert ran.returncode == 0, ran.stderr[:2000]
    text = ran.stdout.partition("data =")[2]
    printed = np.array([float(word) for word in text.replace("[", " ").replace("]", " ").replace(",", " ").split()])
    ours = compiler.build(function)(*arrays)
    np.testing.assert_allclose(printed, ours.ravel(), rtol=1e-4, atol=1e-5)
