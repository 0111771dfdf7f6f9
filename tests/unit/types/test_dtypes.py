"""Every dtype against numpy and ml_dtypes: all halves, all pairs of bytes; evaluator, loop interpreter, native code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr

import compiler
from compiler import te, universe
from compiler.dialects.loop import ForOp
from compiler.driver import build_as_written
from compiler.interpret import loop as loop_interpreter
from compiler.interpret.te import evaluate
from compiler.pipeline.loops import lower
from compiler.schedule import Schedule
from compiler.support.errors import InputError, TargetError, TeError
from compiler.targets.cpu.load import load
from compiler.types.machines import host
from strata.passes import parse, parse_passes, run

Array = np.ndarray[Any, Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
NUMPY: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": BF16,
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "i1": np.dtype(np.bool_),
}
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


def same(found: Array, expected: Array) -> None:
    """Equal bit for bit, except that any NaN is as good as another."""
    assert found.dtype == expected.dtype
    if found.dtype.kind in "iub":
        np.testing.assert_array_equal(found, expected)
        return
    with np.errstate(all="ignore"):
        nan, nans = expected != expected, found != found
    np.testing.assert_array_equal(nans, nan)
    bits = f"u{found.itemsize}"
    np.testing.assert_array_equal(found.view(bits)[~nan], expected.view(bits)[~nan])


def run_both(function: te.Function, inputs: list[Array]) -> list[Array]:
    """The evaluator's results, which native code must repeat to the bit."""
    expected = evaluate(function.module, inputs)
    actual = build_as_written(function, policy="strict")(*inputs)
    for left, right in zip(actual if isinstance(actual, tuple) else (actual,), expected, strict=True):
        same(left, right)
    return expected


def run_loops(function: te.Function, inputs: list[Array], expected: list[Array]) -> None:
    """The loop interpreter gives the evaluator's results."""
    module = parse(str(lower(function)))
    outputs = [np.zeros_like(e) for e in expected]
    loop_interpreter.run(module, [*inputs, *outputs])
    for output, right in zip(outputs, expected, strict=True):
        same(output, right)


def converted(source: Array, target: str) -> Array:
    """The conversion that te.cast promises, by way of float64 and exact steps."""
    dtype = NUMPY[target]
    if target == "i1":
        return np.asarray(source != 0)
    if target in INTEGERS and (source.dtype.kind == "f" or source.dtype == BF16):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        wide = source.astype(np.float64)
        integers = [0 if v != v else low if v <= low else high if v >= high else int(v) for v in wide.ravel()]
        return np.array(integers, dtype).reshape(source.shape)
    if target in INTEGERS:
        return source.astype(dtype)
    if target == "f16" and source.dtype == np.float64:
        return source.astype(np.float16)  # numpy rounds doubles to halves once
    if target in ("f16", "bf16"):
        return np.array([nearest(v, target) for v in source.ravel().tolist()], dtype).reshape(source.shape)
    return source.astype(dtype)


def nearest(value: float | int, target: str) -> Any:
    """A number as the nearest half, by exact comparison with both neighbours."""
    dtype = NUMPY[target]
    if value != value or value in (float("inf"), float("-inf")) or value == 0:
        return dtype.type(value)
    guess = np.float32(value).astype(dtype)
    bits = int(np.asarray(guess).view(np.uint16))
    collected: list[tuple[Any, int, int]] = []
    top = 0x7C00 if target == "f16" else 0x7F80
    for near in (bits - 1, bits, bits + 1):
        if near & 0x7FFF <= top and near >> 15 == bits >> 15:
            beyond = near & 0x7FFF == top
            size = (1 << 16 if target == "f16" else 1 << 128) if beyond else None
            number = float(np.uint16(near).view(dtype)) if size is None else float(size) * (-1 if bits >> 15 else 1)
            collected.append((abs(exact(value) - exact(number)), near & 1, near))
    return np.uint16(min(collected)[2]).view(dtype)


def exact(value: float | int) -> Any:
    """The number without rounding."""
    from fractions import Fraction

    return Fraction(value)


def others(dtype: str) -> list[str]:
    """All dtypes but one."""
    return [d for d in NUMPY if d != dtype]


def cast_all(dtype: str, shape: tuple[int, ...]) -> te.Function:
    """One input as every other dtype."""
    x = te.placeholder(shape, dtype, name="X")
    outputs = [te.compute(shape, lambda i, j, t=t: te.cast(x[i, j], t), f"to_{t}") for t in others(dtype)]
    return te.function("casts", [x], outputs)


HALVES = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_every_half_to_every_dtype(dtype: str) -> None:
    x = HALVES.view(NUMPY[dtype])
    with np.errstate(all="ignore"):
        for actual, target in zip(run_both(cast_all(dtype, x.shape), [x]), others(dtype), strict=True):
            same(actual, converted(x, target))


def samples(dtype: str) -> Array:
    """Limits, ties and their neighbours, subnormal numbers, and many at random."""
    rng = np.random.default_rng(0)
    kind = NUMPY[dtype]
    if dtype in INTEGERS:
        limits = np.iinfo(kind)
        random = rng.integers(limits.min, limits.max, 2000, kind, endpoint=True)
        shifted = random >> rng.integers(0, kind.itemsize * 8 - 1, 2000).astype(kind)
        ties = [v for n in range(7, 64) for s in (1, -1) for e in (-1, 0, 1) for v in (s * ((257 << n) // 256 + e),)]
        edges = [v for v in (*ties, limits.min, limits.max, 0, 1) if limits.min <= v <= limits.max]
        return np.concatenate([random, shifted, np.array(edges, kind)])
    with np.errstate(all="ignore"):
        halves = [HALVES.ravel()[::37].view(NUMPY[h]).astype(np.float64) for h in ("f16", "bf16")]
        middles = [(h[:-1] + h[1:]) / 2 for h in halves]
        near = [np.nextafter(m, t) for m in middles for t in (np.inf, -np.inf)]
        edges = np.array([s * (2.0**n + e) for n in (7, 8, 15, 31, 63) for e in (-1, -0.5, 0, 0.5, 1) for s in (1, -1)])
        return np.concatenate([*halves, *middles, *near, edges, [np.nan, np.inf, -np.inf, -0.0]]).astype(kind)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["f32", "f64", *INTEGERS])
def test_conversions_round_once_and_saturate(dtype: str) -> None:
    x = samples(dtype)
    x = np.resize(x, (2, -(-len(x) // 2)))
    with np.errstate(all="ignore"):
        for actual, target in zip(run_both(cast_all(dtype, x.shape), [x]), others(dtype), strict=True):
            same(actual, converted(x, target))


BYTES = np.arange(256, dtype=np.uint8)


def adversarial(dtype: str) -> Array:
    """All bytes; of wider integers the limits, powers of two and their neighbours."""
    kind = NUMPY[dtype]
    if kind.itemsize == 1:
        return BYTES.view(kind).copy()
    limits = np.iinfo(kind)
    near = [s * 2**n + e for n in (0, 1, 7, 8, 15, 16, 31, 32, 52, 53, 62, 63, 64) for s in (1, -1) for e in (-1, 0, 1)]
    values = sorted({v for v in (*near, limits.min, limits.max, 3, 10, 1000) if limits.min <= v <= limits.max})
    return np.resize(np.array(values, kind), 64)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", INTEGERS)
def test_pairs_of_integers(dtype: str) -> None:
    x, y = adversarial(dtype), adversarial(dtype)
    size = len(x)
    a, b = (te.placeholder((size,), dtype, name=n) for n in "AB")
    made: dict[str, Any] = {
        "add": lambda p, q: p + q,
        "sub": lambda p, q: p - q,
        "mul": lambda p, q: p * q,
        "quotient": lambda p, q: p // q,
        "rest": lambda p, q: p % q,
        "max": te.maximum,
        "min": te.minimum,
        "lt": lambda p, q: p < q,
        "ge": lambda p, q: p >= q,
        "abs": lambda p, q: te.abs(p),
        "neg": lambda p, q: -p,
    }
    numpy = made | {"max": np.maximum, "min": np.minimum}
    numpy |= {"abs": lambda p, q: np.abs(p) + 0 * q, "neg": lambda p, q: -p + 0 * q}
    outputs = [te.compute((size, size), lambda i, j, f=f: f(a[i], b[j]), n) for n, f in made.items()]
    actual = run_both(te.function("pairs", [a, b], outputs), [x, y])
    with np.errstate(all="ignore"):
        for (name, f), left in zip(numpy.items(), actual, strict=True):
            second = f(x[:, None], y[None, :])
            if name in ("quotient", "rest"):  # by zero is 0
                left, second = left[:, y != 0], second[:, y != 0]
            same(np.ascontiguousarray(left), np.ascontiguousarray(second))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_arithmetic_of_halves_rounds_each_step(dtype: str) -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.integers(0, 1 << 16, (64, 64)).astype(np.uint16).view(NUMPY[dtype]) for _ in range(2))
    a, b = (te.placeholder((64, 64), dtype, name=n) for n in "AB")
    made: list[Any] = [
        lambda p, q: p + q,
        lambda p, q: p - q,
        lambda p, q: p * q,
        lambda p, q: p / q,
        lambda p, q: p * q + p,
        lambda p, q: te.sqrt(te.abs(p)),
        lambda p, q: te.floor(p),
        lambda p, q: te.round(p),
        te.maximum,
        te.minimum,
        lambda p, q: -p,
        lambda p, q: te.select(p < q, p, q),
    ]
    outputs = [te.compute((64, 64), lambda i, j, f=f: f(a[i, j], b[i, j]), f"T{n}") for n, f in enumerate(made)]
    actual = run_both(te.function("halves", [a, b], outputs), [x, y])
    with np.errstate(all="ignore"):
        for f, left in zip(made[:4], actual, strict=False):
            same(left, f(x, y))


def mixed(dtype: str) -> te.Function:
    """Reductions, padding with a literal that needs the whole range, and casts."""
    a = te.placeholder((5, 19), dtype, name="A")
    k = te.reduce_axis(19, "k")
    wide = "f32" if dtype in FLOATS else "i32"
    rows = [
        te.compute((5,), lambda i: te.max(a[i, k], axis=k), "most"),
        te.compute((5,), lambda i: te.min(a[i, k], axis=k), "least"),
        te.compute((5,), lambda i: te.sum(te.cast(a[i, k], wide), axis=k), "total"),
        te.compute((7, 19), lambda i, j: a.padded(200 if dtype == "u8" else 3)[i - 1, j], "padded"),
        te.compute((5, 19), lambda i, j: te.cast(te.cast(a[i, j], "f32") * 1.5, dtype), "scaled"),
    ]
    return te.function("mixed", [a], rows)


def inputs(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Random elements: floats of moderate size, integers of the whole range."""
    rng = np.random.default_rng(seed)
    if dtype in FLOATS:
        return rng.uniform(-9, 9, shape).astype(NUMPY[dtype])
    limits = np.iinfo(NUMPY[dtype])
    low, high = max(limits.min, -(1 << 20)), min(limits.max, 1 << 20)
    return rng.integers(low, high, shape, endpoint=True).astype(NUMPY[dtype])


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["f16", "bf16", *INTEGERS])
def test_reductions_and_literals(dtype: str) -> None:
    function = mixed(dtype)
    x = inputs(dtype, (5, 19))
    expected = evaluate(function.module, [x])
    np.testing.assert_array_equal(expected[0], x.max(axis=1))
    np.testing.assert_array_equal(expected[1], x.min(axis=1))
    assert expected[3][0, 0] == (200 if dtype == "u8" else 3)
    actual = build_as_written(function)(x)
    for position, (output, wanted) in enumerate(zip(actual, expected, strict=True)):
        if position == 2 and dtype in FLOATS:
            np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
        else:
            same(output, wanted)
    if dtype not in FLOATS:
        run_loops(function, [x], expected)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_vectorized(dtype: str) -> None:
    """Casts, arithmetic and reductions in vectors, guarded and not."""
    function = mixed(dtype)
    x = inputs(dtype, (5, 19), 3)
    expected = evaluate(function.module, [x])
    schedule = Schedule(lower(function))
    for name in ("padded", "scaled"):
        inner = schedule.get_loops(schedule.get_block(name))[-1]
        schedule.vectorize(schedule.split(inner, [None, 8])[-1])
    for name in ("most", "least"):  # no schedule may: their iterations depend on each other; the lowering can
        schedule.split(schedule.get_loops(schedule.get_block(name))[-1], [None, 8])
    for loop in schedule.module.walk():
        if isinstance(loop, ForOp) and loop.label.data == "k.1":
            loop.properties["kind"] = StringAttr("vectorized")
    kernel = build_as_written(schedule.module)
    low = kernel.text("low")
    assert "vector.reduction" in low and "vector.maskedload" in low and "vector<8x" in low
    for position, (output, wanted) in enumerate(zip(kernel(x), expected, strict=True)):
        if position != 2:
            same(output, wanted)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "u8"])
def test_another_processor(dtype: str) -> None:
    """Without AVX-512, and without the instructions for halves."""
    function, x = mixed(dtype), inputs(dtype, (5, 19), 5)
    module = function.module.clone()
    run(universe.context(), module, parse_passes("cpu"))
    kernel = load(module, replace(host(), cpu="x86-64-v3", features="", vector_bits=256))
    for position, (output, wanted) in enumerate(zip(kernel(x), evaluate(function.module, [x]), strict=True)):
        if position != 2:
            same(output, wanted)


def test_unsigned_arguments_are_known_at_the_low_level() -> None:
    function = mixed("u8")
    x = inputs("u8", (5, 19))
    kernel = build_as_written(function)
    low = kernel.text("low")
    assert "unsigned = array<i64: 0, 1, 2, 4, 5>" in low and "ui8" not in low
    again = build_as_written(low)
    assert [a.dtype for a in again.arguments] == [a.dtype for a in kernel.arguments]
    for left, right in zip(again(x), kernel(x), strict=True):
        same(left, right)
    with pytest.raises(TargetError, match="has dtype int8, expected uint8"):
        kernel(x.view(np.int8))
    with pytest.raises(InputError, match="'unsigned' of @mixed does not list its arguments"):
        build_as_written(low.replace("array<i64: 0, 1, 2, 4, 5>", "array<i64: 9>"))


def test_integers_clamp_where_asked() -> None:
    x = samples("i16")
    a = te.placeholder(x.shape, "i16", name="A")
    targets = ("i8", "u8", "i32")
    outputs = [te.compute(x.shape, lambda i, t=t: te.cast(a[i], t, saturate=True), f"to_{t}") for t in targets]
    actual = run_both(te.function("clamp", [a], outputs), [x])
    for left, target in zip(actual, targets, strict=True):
        limits = np.iinfo(NUMPY[target])
        same(left, np.clip(x.astype(np.int64), limits.min, limits.max).astype(NUMPY[target]))


def test_bytes_clamp_across_signedness() -> None:
    x = BYTES.copy()
    a = te.placeholder((256,), "u8", name="A")
    there = te.compute((256,), lambda i: te.cast(a[i], "i8", saturate=True), "there")
    back = te.compute((256,), lambda i: te.cast(te.cast(a[i], "i8"), "u8", saturate=True), "back")
    actual = run_both(te.function("clamp", [a], [there, back]), [x])
    same(actual[0], np.minimum(x, 127).astype(np.int8))
    same(actual[1], np.where(x < 128, x, 0).astype(np.uint8))


def test_evaluation_in_float64() -> None:
    function, x = mixed("bf16"), inputs("bf16", (5, 19))
    exact_results = evaluate(function.module, [x], np.float64)
    assert all(r.dtype == np.float64 for r in exact_results)
    np.testing.assert_array_equal(exact_results[2], x.astype(np.float64).sum(axis=1))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        *((300, "u8"), (-1, "u8"), (128, "i8"), (-129, "i8"), (1 << 15, "i16"), (1 << 31, "i32"), (1 << 63, "i64")),
        *((65520, "f16"), (1e39, "bf16"), (1e39, "f32"), (1.5, "i8"), (float("nan"), "u8"), (float("inf"), "i64")),
        *((10**400, "f64"), (10**400, "i64")),
    ],
)
def test_numbers_that_a_dtype_does_not_hold(value: float, dtype: str) -> None:
    with pytest.raises(TeError, match=f"is not a value of {dtype}"):
        te.const(value, dtype)


def test_numbers_that_a_dtype_holds() -> None:
    integers = ((255, "u8"), (-128, "i8"), (True, "i1"))
    for value, dtype in (*integers, (65519, "f16"), (float("inf"), "bf16"), (3.3e38, "bf16")):
        te.const(value, dtype)


def test_a_literal_is_rounded_once() -> None:
    """2**-8 + 2**-40 above 1 is more than half of bf16's last digit; a float in between would lose it."""
    a = te.placeholder((1,), "bf16", name="A")
    out = te.compute((1,), lambda i: a[i] * (1 + 2.0**-8 + 2.0**-40), "B")
    (actual,) = run_both(te.function("literal", [a], [out]), [np.ones(1, BF16)])
    assert float(actual[0]) == 1 + 2.0**-7


def test_one_value_as_two_dtypes() -> None:
    x = te.placeholder((4,), name="x")

    def rounded(i: Any, dtype: str) -> Any:
        return te.cast(te.cast(x[i], dtype), "f32")

    def element(i: Any) -> Any:
        return te.select(te.cast(i, "f32") < 1.5, te.cast(te.cast(i, "f64") * 0.5, "f32"), 1.0)

    halves = te.compute((4,), lambda i: rounded(i, "f16") - rounded(i, "bf16"), name="halves")
    steps = te.compute((4,), element, name="steps")
    given = np.array([1.2345, 3.3, -7.77, 100.1], np.float32)
    expected = given.astype(np.float16).astype(np.float32) - given.astype(BF16).astype(np.float32)
    for schedule in ("auto", "written"):
        actual = compiler.build(te.function("f", [x], [halves, steps]), threads=1, schedule=schedule)(given)
        np.testing.assert_array_equal(actual[0], expected)
        np.testing.assert_array_equal(actual[1], [0, 0.5, 1, 1])


def test_dtypes_do_not_mix() -> None:
    a, b = te.placeholder((4,), "u8", name="A"), te.placeholder((4,), "i8", name="B")
    with pytest.raises(TeError, match="add of u8 and i8: dtypes do not mix"):
        te.compute((4,), lambda i: a[i] + b[i])
    with pytest.raises(TeError, match="unknown dtype 'u4'"):
        te.placeholder((4,), "u4")
