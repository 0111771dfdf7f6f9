"""Upstream as an oracle: mlir-opt-22 lowers our low level its own way, mlir-runner-22 runs it.

Many functions share one module, one mlir-opt and one mlir-runner. Inputs go in as raw bytes and results come
out as bit patterns, so that nothing is rounded on the way.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.types.dtypes import DTYPES
from tests.operators.catalogue import numpy_dtype

Array = np.ndarray[Any, Any]

MLIR_OPT = shutil.which("mlir-opt-22")
RUNNER = shutil.which("mlir-runner-22")
needs_mlir_opt = pytest.mark.skipif(MLIR_OPT is None, reason="there is no mlir-opt-22")
PIPELINE = (
    "builtin.module("
    "convert-vector-to-scf,arith-expand,convert-math-to-llvm,convert-math-to-libm,convert-scf-to-cf,"
    "expand-strided-metadata,lower-affine,convert-vector-to-llvm,finalize-memref-to-llvm,convert-arith-to-llvm,"
    "convert-index-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)"
)
"""Mathematics before vectors: a libm call on a vector takes it apart with ops of the vector dialect."""
LIBRARIES = ("runner_utils", "c_runner_utils", "float16_utils")
SECONDS = 120
"""The longest that one process may take."""

POISON = 0x7FFB_5B5B_7FFB_5B5B
"""What outputs hold before a call: its low bits are a NaN of f64 and f32, and an odd number of every integer."""
POISON_HALF = 0x7FFB
"""The same for f16 and bf16."""


def assert_accepted(text: str) -> None:
    """Check that mlir-opt parses and verifies a module."""
    done = subprocess.run([str(MLIR_OPT)], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Case:
    """A function of the low level, what it is called on, and the shape and dtype (f32, u8, ...) of each result."""

    text: str
    name: str
    arrays: Sequence[Array]
    results: Sequence[tuple[tuple[int, ...], str]]


@dataclass(frozen=True)
class Failure:
    """Why upstream has no result for a function: the tool that failed, and the line in which it said so."""

    tool: str
    reason: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.reason}"


def missing() -> str:
    """What is not installed of upstream, in words; empty where all is there."""
    tools = {"mlir-opt-22": MLIR_OPT, "mlir-runner-22": RUNNER}
    absent = [name for name, path in tools.items() if path is None]
    if absent:
        return f"{' and '.join(absent)} not installed"
    return "" if len(libraries()) == len(LIBRARIES) else "the libraries of mlir-runner-22 are not installed"


def libraries() -> list[str]:
    root = Path(str(RUNNER)).resolve().parent.parent / "lib"
    collected = [next(root.glob(f"libmlir_{name}.so*"), None) for name in LIBRARIES]
    return [str(path) for path in collected if path is not None]


def run(cases: Sequence[Case]) -> list[list[Array] | Failure]:
    """The results of each function, bit for bit, or why there are none.

    A batch that fails is halved until the functions that fail stand alone; the others keep their results.
    """
    if not cases:
        return []
    actual = _batch(cases)
    if not isinstance(actual, Failure):
        return list(actual)
    if len(cases) == 1:
        return [actual]
    half = len(cases) // 2
    return run(cases[:half]) + run(cases[half:])


def _batch(cases: Sequence[Case]) -> list[list[Array]] | Failure:
    lowered = _process([str(MLIR_OPT), f"--pass-pipeline={PIPELINE}"], module(cases))
    if isinstance(lowered, Failure):
        return lowered
    flags = ["-e", "main", "-entry-point-result=void", f"-shared-libs={','.join(libraries())}"]
    printed = _process([str(RUNNER), *flags], lowered)
    return printed if isinstance(printed, Failure) else _parsed(printed, cases)


def _process(command: list[str], text: str) -> str | Failure:
    tool = Path(command[0]).name
    try:
        done = subprocess.run(command, input=text, text=True, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return Failure(tool, f"no end after {SECONDS} s")
    return done.stdout if done.returncode == 0 else Failure(tool, _said(done.stderr, done.returncode))


def _said(stderr: str, code: int) -> str:
    """The line that says what is wrong, without the place in a file that no one sees."""
    symbols = re.search(r"Symbols not found: \[(.*?)\]", stderr)
    if symbols is not None:
        return f"no function {symbols[1].strip()}"
    errors = re.findall(r"error: (.*)", stderr)
    return errors[0] if errors else f"exit status {code}"


def module(cases: Sequence[Case]) -> str:
    """One module of all functions, each with a caller, and a main that calls one after the other."""
    dtypes = sorted({dtype for case in cases for _, dtype in case.results})
    lines = [
        "func.func private @printI64(i64)",
        "func.func private @printNewline()",
        *map(_show, dtypes),
        *map(_poison, dtypes),
    ]
    for number, case in enumerate(cases):
        lines += [_renamed(case.text, number), *_caller(case, number)]
    calls = [f"  func.call @call.{number}() : () -> ()" for number in range(len(cases))]
    return "\n".join([*lines, "func.func @main() {", *calls, "  func.return", "}"])


def _renamed(text: str, number: int) -> str:
    """The functions of a module, with symbols of their own."""
    inside = text.strip().removeprefix("builtin.module {").removesuffix("}")
    return re.sub(r"@([A-Za-z_][\w$.]*)", rf"@\1.{number}", inside)


def _caller(case: Case, number: int) -> list[str]:
    """Constants for the inputs, and a function that calls on them and prints what comes out."""
    inputs = [_memref(array.shape, _stored(array)) for array in case.arrays]
    outputs = [_memref(shape, element(dtype)) for shape, dtype in case.results]
    lines = [
        f'memref.global "private" constant @in.{number}.{i} : {type} = {_dense(array)}'
        for i, (type, array) in enumerate(zip(inputs, case.arrays, strict=True))
    ]
    lines.append(f"func.func @call.{number}() {{")
    lines += [f"  %in{i} = memref.get_global @in.{number}.{i} : {type}" for i, type in enumerate(inputs)]
    for i, (type, (shape, dtype)) in enumerate(zip(outputs, case.results, strict=True)):
        lines += [
            f"  %out{i} = memref.alloc() {{alignment = 64 : i64}} : {type}",
            f"  %flat{i} = memref.reinterpret_cast %out{i} to offset: [0], sizes: [{_count(shape)}], strides: [1] "
            f": {type} to memref<{_count(shape)}x{element(dtype)}>",
            f"  %any{i} = memref.cast %flat{i} : memref<{_count(shape)}x{element(dtype)}> to {_flat(dtype)}",
            f"  func.call @poison_{dtype}(%any{i}) : ({_flat(dtype)}) -> ()",
        ]
    values = [*(f"%in{i}" for i in range(len(inputs))), *(f"%out{i}" for i in range(len(outputs)))]
    lines.append(f"  func.call @{case.name}.{number}({', '.join(values)}) : ({', '.join([*inputs, *outputs])}) -> ()")
    for i, (type, (_, dtype)) in enumerate(zip(outputs, case.results, strict=True)):
        lines.append(f"  func.call @show_{dtype}(%any{i}) : ({_flat(dtype)}) -> ()")
        lines.append(f"  memref.dealloc %out{i} : {type}")
    return [*lines, "  func.return", "}"]


def _show(dtype: str) -> str:
    """A function that prints the bits of each element, as a number of 64 bits on a line."""
    width, type = DTYPES[dtype].bits, element(dtype)
    bits = f"%v = arith.bitcast %e : {type} to i{width}" if "f" in dtype else ""
    value = "%v" if bits else "%e"
    wide = f"%w = arith.extui {value} : i{width} to i64" if width < 64 else ""
    return _each(
        f"show_{dtype}",
        dtype,
        f"%e = memref.load %m[%i] : {_flat(dtype)}",
        bits,
        wide,
        f"func.call @printI64({'%w' if wide else value}) : (i64) -> ()",
        "func.call @printNewline() : () -> ()",
    )


def _poison(dtype: str) -> str:
    """A function that overwrites each element with a pattern that no function computes."""
    width, type = DTYPES[dtype].bits, element(dtype)
    pattern = (POISON_HALF if dtype in ("f16", "bf16") else POISON) % 2**width
    constant = f"%b = arith.constant {'true' if width == 1 else f'{pattern} : i{width}'}"
    value = f"%p = arith.bitcast %b : i{width} to {type}" if "f" in dtype else ""
    store = f"memref.store {'%p' if value else '%b'}, %m[%i] : {_flat(dtype)}"
    return _each(f"poison_{dtype}", dtype, constant, value, store)


def _each(name: str, dtype: str, *body: str) -> str:
    lines = "\n    ".join(line for line in body if line)
    return f"""func.func private @{name}(%m: {_flat(dtype)}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %m, %c0 : {_flat(dtype)}
  scf.for %i = %c0 to %n step %c1 {{
    {lines}
  }}
  func.return
}}"""


def _flat(dtype: str) -> str:
    return f"memref<?x{element(dtype)}>"


def _memref(shape: tuple[int, ...], element: str) -> str:
    return f"memref<{'x'.join([*map(str, shape), element])}>"


def element(dtype: str) -> str:
    """The element type of a dtype's memrefs, which have no sign upstream."""
    return str(DTYPES[dtype].scalar)


def _stored(array: Array) -> str:
    if array.dtype.name == "bfloat16":
        return "bf16"
    width = 8 * array.dtype.itemsize
    return {"f": f"f{width}", "b": "i1"}.get(array.dtype.kind, f"i{width}")


def _dense(array: Array) -> str:
    """The bytes of an array as an attribute; bits have none of their own and are listed."""
    if array.dtype.kind == "b":
        return f"dense<{str(array.tolist()).lower()}>"
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}">'


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def _parsed(printed: str, cases: Sequence[Case]) -> list[list[Array]]:
    """The printed bit patterns as arrays, in the order of the results."""
    words = np.array(printed.split(), dtype=np.int64)
    actual, at = [], 0
    for case in cases:
        outputs = []
        for shape, dtype in case.results:
            count = _count(shape)
            outputs.append(_array(words[at : at + count], dtype).reshape(shape))
            at += count
        actual.append(outputs)
    assert at == len(words), f"{len(words)} numbers were printed, {at} expected"
    return actual


def _array(words: Array, dtype: str) -> Array:
    narrow = words.astype(f"u{max(1, DTYPES[dtype].bits // 8)}")
    return narrow.astype(bool) if dtype == "i1" else narrow.view(numpy_dtype(dtype))
