"""Every literal by every way into a program and out of it is the number that numpy has, bit for bit."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from xdsl.utils.exceptions import ParseError

import compiler
from compiler import te
from compiler.interpret.te import evaluate
from compiler.pipeline.source import parse
from compiler.support.errors import StrataError, TeError
from compiler.targets.cuda import CudaKernel
from compiler.types.dtypes import DTYPES
from tests import literals
from tests.fuzz import literals as fuzz
from tests.host_cuda import OnHost, needs_gxx
from tests.literals import WAYS_IN, WAYS_OUT, beyond, differences, program, stored, values

FLOATS = ("f16", "bf16", "f32", "f64")


table = cache(literals.table)
BUILT = ("strict", "contract", "fast", "low text")


@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_literal_is_one_number_everywhere(dtype: str, way: str) -> None:
    step, first = (8, BUILT.index(way)) if way in BUILT else (3, list(WAYS_OUT).index(way) % 3)
    function, arrays, expected = table(dtype, step, first)
    with np.errstate(all="ignore"):
        assert differences(WAYS_OUT[way](function, arrays, expected), expected) == []


@needs_gxx
def test_the_text_of_cuda_kernels_has_the_numbers(tmp_path: Path) -> None:
    cases = [table(dtype, 8, 5) for dtype in DTYPES]
    kernels = [compiler.build(function, "cuda") for function, _, _ in cases]
    assert all(isinstance(kernel, CudaKernel) for kernel in kernels)
    run = OnHost(kernels, tmp_path)
    for number, (_, arrays, expected) in enumerate(cases):
        assert differences(run(number, arrays), expected) == [], list(DTYPES)[number]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
def test_programs_with_different_literals_have_different_keys(dtype: str) -> None:
    """The keys of records, of groups and of machine code are made of the canonical text."""
    numbers = {np.asarray(stored(v, dtype)).tobytes(): v for v in values(dtype) if v == v}
    for way in WAYS_IN:
        keys = [te.canonical_hash(program(dtype, [(way, value)])[0]) for value in numbers.values()]
        assert len(set(keys)) == len(keys), way
        if dtype in FLOATS:
            assert te.canonical_hash(program(dtype, [(way, math.nan)])[0]) not in keys


def test_literals_that_differ_are_cached_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_CACHE_DIR", str(tmp_path))
    for value in (0.0, -0.0, math.nan, math.inf, 1.0, -math.inf):
        for _ in range(2):
            function, arrays, expected = program("f32", [("select", value), ("pad", value)])
            assert differences(compiler.build(function)(*arrays), expected) == []


@pytest.mark.parametrize("way", WAYS_IN)
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_beyond_a_dtype_are_refused(dtype: str, way: str) -> None:
    """Arrays of floats are rounded, as numpy does it: only what no float holds is refused there."""
    is_array = way in ("constant", "element") and dtype in FLOATS
    for value in beyond(dtype):
        if is_array:
            function, arrays, _ = program(dtype, [(way, value)])
            assert np.isinf(evaluate(function.module, arrays)[0][1].astype(np.float64))
        else:
            with pytest.raises(TeError, match=f"{dtype}"):
                program(dtype, [(way, value)])


PADDED = """func.func @f(%X: tensor<4x{dtype}>) -> tensor<5x{dtype}> {{
  %Y = te.compute "Y" [i = 5] (%x = %X[i - 1] where (i - 1 >= 0) else {text}
    : tensor<4x{dtype}>) -> tensor<5x{dtype}> {{
    te.yield %x : {scalar}
  }}
  func.return %Y : tensor<5x{dtype}>
}}
"""


@pytest.mark.parametrize(
    ("dtype", "text", "value"),
    [
        *(("f64", "1.0e-07", 1e-7), ("f64", "-inf", -math.inf), ("f16", "65519.0", 65519), ("f32", "nan", math.nan)),
        *(("f32", "1152921573326323713", 2**60 + 2**36 + 1), ("bf16", "1.00390625000001", 1 + 2.0**-7)),
        *(("f64", "1.0e400", None), ("f16", "65520.0", None), ("bf16", "3.4e38", None), ("f32", "-1.0e39", None)),
        *(("i8", "128", None), ("i8", "-129", None), ("u8", "256", None), ("u8", "255", 255), ("i64", "1.5", None)),
        *(("i64", "9223372036854775808", None), ("u64", "18446744073709551615", 2**64 - 1), ("f32", "9" * 400, None)),
    ],
)
def test_the_number_of_a_read_in_text(dtype: str, text: str, value: float | None) -> None:
    source = PADDED.format(dtype=dtype.replace("u", "ui"), scalar=dtype.replace("u", "i"), text=text)
    if value is None:
        with pytest.raises((StrataError, ParseError), match=r"beyond the greatest|is not a value of"):
            parse(source)
        return
    module = parse(source)
    assert str(parse(str(module))) == str(module)
    found = evaluate(module, [np.zeros(4, DTYPES[dtype].array)])[0]
    assert differences([found[:1]], [np.array([stored(value, dtype)])]) == []


CONSTANT = """func.func @f() -> tensor<1x{dtype}> {{
  %Y = te.compute "Y" [i = 1] () -> tensor<1x{dtype}> {{
    %c = arith.constant {text} : {dtype}
    te.yield %c : {dtype}
  }}
  func.return %Y : tensor<1x{dtype}>
}}
"""


@pytest.mark.parametrize(
    ("dtype", "text", "value"),
    [
        *(("f16", "0x7C00", math.inf), ("bf16", "0xFF80", -math.inf), ("f32", "0x7FC00000", math.nan)),
        *(("f64", "0x8000000000000000", -0.0), ("f32", "1.401298e-45", 2.0**-149), ("f32", "0x4B800001", 2**24 + 2)),
        *(("f16", "70000.0", None), ("f32", "1.0e39", None), ("i8", "256", None), ("i8", "-129", None)),
        *(("i64", "18446744073709551616", None), ("i1", "2", None)),
    ],
)
def test_constants_in_text(dtype: str, text: str, value: float | None) -> None:
    source = CONSTANT.format(dtype=dtype, text=text)
    if value is None:
        with pytest.raises((StrataError, ParseError)):
            parse(source)
        return
    for text in (source, str(parse(source))):
        found = evaluate(parse(text), [])[0]
        assert differences([found], [np.array([stored(value, dtype)])]) == []


@pytest.mark.parametrize("given", ["f64", "i64", "u64", "f32"])
def test_arrays_are_rounded_once(given: str) -> None:
    numbers = [v for v in values(given) if not isinstance(v, bool)]
    array = np.array([stored(v, given) for v in numbers], DTYPES[given].array)
    for dtype in ("bf16", "f16", "f32"):
        with np.errstate(all="ignore"):
            constant = te.constant(array, dtype)
            found = evaluate(te.function("f", [], literals._read(constant)).module, [])[0]
        assert differences([found[:4]], [np.array([stored(v.item(), dtype) for v in array[:4]])]) == []


def test_lists_of_integers_that_no_array_holds() -> None:
    assert (
        te.constant([2**100, 1.5]).dtype == te.constant([10**400, 1.5]).dtype == "f32"
        and te.constant([2**63], "u64").dtype == "u64"
    )
    for elements in ([2**64], [2**63], [2**63, -1], [-(2**63) - 1]):
        with pytest.raises(TeError, match=r"is not a value of i64|is no i64"):
            te.constant(elements)
    with pytest.raises(TeError, match="not lists with something else"):
        te.constant([2**64, "x"])


@pytest.mark.parametrize("identity", [256, -1, math.nan, 0.5])
def test_neutral_values_are_of_the_dtype(identity: float) -> None:
    x, k = te.placeholder((4,), "u8", "X"), te.reduce_axis(4, "k")
    with pytest.raises(TeError, match="is not a value of u8"):
        te.compute((), lambda: te.reduce(te.combiner(lambda a, b: (a[0] + b[0],), (identity,)), x[k], axis=k))


@pytest.mark.doors
@pytest.mark.parametrize("seed", [3710])
def test_literals_that_were_found(seed: int) -> None:
    assert fuzz.faults(seed) == []


@pytest.mark.sampled
@pytest.mark.parametrize("share", range(3))
@pytest.mark.parametrize(
    "door", [pytest.param(door, marks=[pytest.mark.doors][: door is not fuzz.by_te]) for door in fuzz.DOORS]
)
def test_drawn_literals(door: Callable[[random.Random], list[str]], share: int) -> None:
    with np.errstate(all="ignore"):
        assert [said for seed in range(5 * share, 5 * share + 5) for said in door(random.Random(seed))] == []


def test_the_reference_rounds_as_ml_dtypes_does_where_that_is_right() -> None:
    for number in (0.1, 1e-40, 3.3e38, -1.5):
        assert stored(np.float32(number).item(), "bf16") == ml_dtypes.bfloat16(np.float32(number))
