"""Each scalar operation as CUDA C++: on adversarial numbers its text gives what MLIR's op means."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i16, i32, i64

import compiler
from compiler.dialects.numbers import dtype_of
from compiler.dialects.upstream.arith import CMPF, CMPI
from compiler.interpret.scalar import Body
from compiler.pipeline.source import parse
from compiler.support.errors import LoweringError
from compiler.targets.cuda import nvrtc
from compiler.targets.cuda.checked import run_text
from tests import sample
from tests.host_cuda import OnHost, needs_gxx

Array = np.ndarray[Any, Any]
INTEGERS, FLOATS = ("i8", "i16", "i32", "i64"), ("f16", "bf16", "f32", "f64")
TYPES: Mapping[str, Any] = {
    "i1": i1,
    "i8": i8,
    "i16": i16,
    "i32": i32,
    "i64": i64,
    "f16": f16,
    "bf16": bf16,
    "f32": f32,
    "f64": f64,
}
ARITHMETIC = ("addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxsi", "minui", "maxui")
DIVISIONS = ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")
SHIFTS = ("shli", "shrsi", "shrui")
ON_FLOATS = ("addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf")
ON_ONE = ("absf", "exp", "log", "sqrt", "rsqrt", "tanh", "erf", "erfc", "sin", "cos", "floor", "roundeven")
WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


@dataclass(frozen=True)
class Case:
    """One op: its words with %a and %b, the types of these, and that of the result."""

    words: str
    operand: str
    result: str

    @property
    def text(self) -> str:
        """A function that runs it on every pair of the numbers."""
        count = len(pairs(self.operand)[0])
        of, to = f"memref<{count}x{self.operand}>", f"memref<{count}x{self.result}>"
        return f"""
            func.func @f(%A: {of}, %B: {of}, %C: {to}) attributes {{outputs = 1 : i64}} {{
              loop.for "i" %i = {count} thread_x {{
                loop.block "C" [i = {count} at %i] (%a = %A[i] : {of}, %b = %B[i] : {of}) -> (%C[i] : {to}) {{
                  {"%s" if "%s" in self.words else "%r"} = {self.words}
                  loop.yield %r : {self.result}
                }}
              }}
              func.return
            }}"""


def pairs(type_: str) -> tuple[Array, Array]:
    """Every pair of some numbers of a type: the extreme ones, those about zero, NaN, infinities, both zeros."""
    dtype = dtype_of(TYPES[type_])
    if type_ == "i1":
        numbers = np.array([False, True])
    elif type_ in INTEGERS:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        numbers = np.array([low, low + 1, -100, -7, -2, -1, 0, 1, 2, 3, 7, 100, high - 1, high], dtype)
    else:
        held = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, 127.5, -128.5, 3e4, 1e-7, np.inf, -np.inf, np.nan]
        numbers = np.array(held, np.float64).astype(dtype)
    return np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))


def binary(names: Sequence[str], types: Sequence[str], tail: str = "") -> Iterator[Case]:
    for name, type_ in product(names, types):
        yield Case(f"arith.{name} %a, %b : {type_}", type_, type_)


def casts() -> Iterator[Case]:
    integers = ("i1", *INTEGERS)
    for source, target in product(integers, integers):
        names = ("extsi", "extui") if WIDTHS[source] < WIDTHS[target] else ("trunci",)
        if source != target:
            yield from (Case(f"arith.{name} %a : {source} to {target}", source, target) for name in names)
    for integer, float_ in product(integers, FLOATS):
        yield from (Case(f"arith.{n} %a : {integer} to {float_}", integer, float_) for n in ("sitofp", "uitofp"))
    for float_, integer in product(FLOATS, INTEGERS):
        yield from (Case(f"arith.{n} %a : {float_} to {integer}", float_, integer) for n in ("fptosi", "fptoui"))
    for source, target in (("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64"), ("f32", "f64")):
        yield Case(f"arith.extf %a : {source} to {target}", source, target)
        yield Case(f"arith.truncf %a : {target} to {source}", target, source)


def chained() -> Iterator[Case]:
    """What an op gives is used at once, without memory that wraps it."""
    for name, type_ in sample.pairs((*ARITHMETIC, *SHIFTS), INTEGERS[:-1]):
        words = f"arith.{name} %a, %b : {type_}  %r = arith.extsi %s : {type_} to i64".replace("  %r", "\n%r")
        yield Case(words, type_, "i64")


def alone() -> Iterator[Case]:
    """An op by itself, on each of its types."""
    yield from binary((*ARITHMETIC, *DIVISIONS), INTEGERS)
    yield from binary(ARITHMETIC, ["i1"])
    yield from binary(SHIFTS, INTEGERS)
    yield from binary(ON_FLOATS, FLOATS)
    for predicate, type_ in product(CMPI, ("i1", *INTEGERS)):
        yield Case(f"arith.cmpi {predicate}, %a, %b : {type_}", type_, "i1")
    for predicate, type_ in product(CMPF, FLOATS):
        yield Case(f"arith.cmpf {predicate}, %a, %b : {type_}", type_, "i1")
    yield from (Case(f"math.absi %a : {type_}", type_, type_) for type_ in INTEGERS)
    yield from (Case(f"arith.negf %a : {type_}", type_, type_) for type_ in FLOATS)
    for name, type_ in product(ON_ONE, FLOATS):
        yield Case(f"math.{name} %a : {type_}", type_, type_)
    yield from (Case(f"math.powf %a, %b : {type_}", type_, type_) for type_ in FLOATS)
    yield from casts()


CASES = [*chained(), *sample.some(alone(), 3)]  # each operation of MLIR is among them


@needs_gxx
def test_every_operation_gives_what_it_means(tmp_path: Path) -> None:
    on_host = OnHost([compiler.build(case.text, "cuda", policy="strict") for case in CASES], tmp_path)
    wrong = [said for number, case in enumerate(CASES) if (said := fault(case, on_host, number))]
    assert not wrong, "\n".join(wrong)


def fault(case: Case, on_host: Callable[[int, Sequence[Array]], Sequence[Array]], number: int) -> str:
    """The first pair on which a case gives something else than the interpreter."""
    left, right = pairs(case.operand)
    (actual,) = on_host(number, [left, right])
    block = next(op for op in parse(case.text).walk() if op.name == "loop.block").regions[0].block
    op = next(iter(block.ops))
    with np.errstate(all="ignore"):
        (want,) = map(np.asarray, Body(block, [])([left, right], []))
    defined = _defined(op, left, right)
    same = _same(actual, want, exact=not case.words.startswith("math.") or case.operand not in FLOATS) | ~defined
    if same.all():
        return ""
    at = int(np.argmin(same))
    return f"{case.words}: {left[at]}, {right[at]} give {actual[at]} instead of {want[at]}"


def _defined(op: Any, left: Array, right: Array) -> Array:
    """Where MLIR says what a result is: shifts below the width, floats that an integer holds; of a division by zero and
    of that of the least integer by -1 as the code for the CPU has it."""
    name = op.name.removeprefix("arith.")
    if name in SHIFTS:
        return (right >= 0) & (right < left.dtype.itemsize * 8)
    if name in DIVISIONS:
        return (right != 0) & ~((right == -1) & (left == np.iinfo(left.dtype).min))
    if name in ("fptosi", "fptoui"):
        bits = op.results[0].type.width.data
        low, high = (0, 2.0**bits) if name == "fptoui" else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
        truncated = np.trunc(left.astype(np.float64))
        return (truncated >= low) & (truncated < high)
    if name in ("maxnumf", "minnumf"):
        return ~((left == 0) & (right == 0))
    return np.ones(left.shape, np.bool_)


def _same(actual: Array, want: Array, exact: bool) -> Array:
    """The same bits, zeros told apart; of mathematics up to some rounding."""
    if actual.dtype.kind in "biu":
        return np.asarray(actual == want)
    a, b = actual.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(a - b) <= (0 if exact else 2e-2 if actual.dtype.itemsize == 2 else 1e-6) * np.abs(b)
    return np.asarray((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b))) | (close & (b != 0)))


@needs_gxx
def test_divisions_by_zero_are_those_of_the_cpu(tmp_path: Path) -> None:
    chosen = list(binary(DIVISIONS, INTEGERS))
    on_host = OnHost([compiler.build(case.text, "cuda") for case in chosen], tmp_path)
    for number, case in enumerate(chosen):
        left, right = pairs(case.operand)
        unbound = case.text.replace(" thread_x", "")
        np.testing.assert_array_equal(
            on_host(number, [left, right])[0], compiler.build(unbound)(left, right), case.words
        )


CONSTANTS = {"i8": (-128, 127), "i16": (-32768, 32767), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1)}


@needs_gxx
@pytest.mark.parametrize("dtype", sample.some(CONSTANTS, 2))
def test_extreme_constants(dtype: str, tmp_path: Path) -> None:
    """The least integer of a type has no literal in C."""
    chosen = []
    for number, name in product(CONSTANTS[dtype], ("minsi", "maxsi", "addi", "muli")):
        case = Case(f"arith.{name} %a, %k : {dtype}", dtype, dtype)
        chosen.append((number, name, case.text.replace("%r =", f"%k = arith.constant {number} : {dtype}  %r =")))
    on_host = OnHost([compiler.build(text, "cuda") for _, _, text in chosen], tmp_path)
    left, right = pairs(dtype)
    ops = {"minsi": np.minimum, "maxsi": np.maximum, "addi": np.add, "muli": np.multiply}
    for position, (number, name, _) in enumerate(chosen):
        with np.errstate(all="ignore"):
            want = ops[name](left, np.array(number, left.dtype))
        np.testing.assert_array_equal(on_host(position, [left, right])[0], want, f"{name} {number}")


@pytest.mark.skipif(not nvrtc.is_available() or not nvrtc.has_headers(), reason="there is no NVRTC")
def test_nvrtc_takes_every_operation() -> None:
    """All texts as one, each kernel under a name of its own."""
    head: dict[str, None] = {}
    kernels = []
    for number, case in enumerate(CASES):
        before, grid, body = compiler.build(case.text, "cuda").text.partition("// grid")
        head |= dict.fromkeys(part for part in re.split(r"\n(?=#if|#include|template <class)", before.strip()) if part)
        kernels.append((grid + body).replace("f_C(", f"f_{number}(", 1))
    nvrtc.compiled("\n".join([*head, *kernels]), "sm_75")


@pytest.mark.skipif(not nvrtc.is_available() or not nvrtc.has_headers(), reason="there is no NVRTC")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
def test_extrema_order_zeros_and_propagate_nan(arch: str) -> None:
    """In one instruction from sm_80 on, and in several before; of f64 always in several."""
    for case in binary(("maximumf", "minimumf"), FLOATS):
        kernel = compiler.build(case.text, "cuda")
        computed_in = {"bf16": "f32"}.get(case.operand, case.operand)
        ptx = nvrtc.ptx(kernel.text, arch)
        is_one = f"{case.words.removeprefix('arith.')[:3]}.NaN.{computed_in}" in ptx
        assert is_one == (arch == "sm_80" and case.operand != "f64"), case.words
        right, plain = (
            fault(case, lambda _, inputs, k=kernel, t=text: run_text(k, t, inputs).outputs, 0)
            for text in (ptx, ptx.replace(".NaN", ""))
        )
        assert not right and ("nan" in plain or not is_one)


@pytest.mark.parametrize("words", ["math.ctpop %a : i32", "arith.shli %a, %b : i1"])
def test_what_has_no_spelling_is_refused(words: str) -> None:
    type_ = words.rsplit(" ", 1)[1]
    with pytest.raises(LoweringError, match=rf"kernels have no '{words.split()[0]}'"):
        compiler.build(Case(words, type_, type_).text, "cuda")


def test_the_arithmetic_of_mlir_is_covered() -> None:
    """An op of arith that the interpreter knows, and that is not listed here, is refused by kernels."""
    covered = {case.words.split()[0] for case in CASES} | {"arith.constant", "arith.select", "arith.index_cast"}
    refused = {"arith.bitcast", "arith.remf", "arith.addui_extended", "arith.mulsi_extended", "arith.mului_extended"}
    known = {op.name for op in arith.Arith.operations}
    assert known - covered - refused == set()
