"""low -> LLVM: every op against numpy, in scalars and vectors; addresses, alignment, facts, vectorised loops."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import compiler
from compiler import te, universe
from compiler.dialects.dominance import verify_module
from compiler.lowering.low_to_llvm import HANDLERS, emit
from compiler.support.errors import LoweringError, TargetError
from compiler.targets.cpu import compile_llvm
from compiler.targets.cpu.load import load
from compiler.types.machines import host
from tests.low import with_constants
from tests.operators.catalogue import numpy_dtype

LANES = 8
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "i8": np.int8, "i1": np.bool_}
DTYPES |= {"f16": np.float16, "i16": np.int16, "index": np.int64}


def parse(text: str, verify: bool = True) -> ModuleOp:
    module = Parser(universe.context(), with_constants(text)).parse_module()
    if verify:
        verify_module(module)
    return module


def emitted(text: str) -> str:
    return emit(parse(text), host())


def elementwise(op: str, sources: list[str], target: str, attributes: str = "", vector: bool = False) -> str:
    """A function that applies an op to arrays of 24 elements, one by one or eight by eight.

    The op is written with {0}, {1} ... for operands and {t} for the type of the first, {r} for the result's.
    """
    wrap = (lambda t: f"vector<{LANES}x{t}>") if vector else (lambda t: t)
    args = ", ".join(f"%a{i}: memref<24x{t}>" for i, t in enumerate(sources))
    read, write = ("vector.load", "vector.store") if vector else ("memref.load", "memref.store")
    loads = [
        f"%x{i} = {read} %a{i}[%i] : memref<24x{t}>" + (f", {wrap(t)}" if vector else "") for i, t in enumerate(sources)
    ]
    names = [f"%x{i}" for i in range(len(sources))]
    line = op.format(*names, t=wrap(sources[0]), r=wrap(target), i1=wrap("i1"))
    tail = f", {wrap(target)}" if vector else ""
    return f"""
    func.func @f({args}, %out: memref<24x{target}>) attributes {{outputs = 1 : i64}} {{
      %step = arith.constant {LANES if vector else 1} : index
      scf.for %i = %c0 to %c24 step %step {{
        {chr(10).join(loads)}
        %y = {line}
        {write} %y, %out[%i] : memref<24x{target}>{tail}
      }}
      func.return
    }}"""


def sample(dtype: str, number: int, low: float = -3.0, high: float = 3.0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(number)
    kind = DTYPES[dtype]
    if dtype == "i1":
        return rng.random(24) < 0.5
    if np.issubdtype(kind, np.integer):
        return np.where((v := rng.integers(-20, 21, 24)) == 0, 7, v).astype(kind)
    return rng.uniform(low, high, 24).astype(kind)


def check(text: str, inputs: list[Any], expected: Any, ulps: int = 0, verify: bool = True) -> None:
    output = load(parse(text, verify), host())(*inputs)
    expected = np.asarray(expected).astype(output.dtype)
    if ulps:
        np.testing.assert_array_max_ulp(output, expected, ulps)
    else:
        np.testing.assert_array_equal(output, expected)


erf, erfc = (np.vectorize(function, otypes=[np.float64]) for function in (math.erf, math.erfc))


def ceildiv(a: Any, b: Any) -> Any:
    return -(-a // b)


def truncdiv(a: Any, b: Any) -> Any:
    return np.trunc(a.astype(np.float64) / b).astype(a.dtype)


def unsigned(function: Any) -> Any:
    return lambda a, b: function(*(v.view(f"u{v.dtype.itemsize}") for v in (a, b))).view(a.dtype)


FLOAT_OPS = {
    "arith.addf": (2, np.add, 0),
    "arith.subf": (2, np.subtract, 0),
    "arith.mulf": (2, np.multiply, 0),
    "arith.divf": (2, np.divide, 0),
    "arith.remf": (2, np.fmod, 0),
    "arith.negf": (1, np.negative, 0),
    "arith.maximumf": (2, np.maximum, 0),
    "arith.minimumf": (2, np.minimum, 0),
    "arith.maxnumf": (2, np.fmax, 0),
    "arith.minnumf": (2, np.fmin, 0),
    "math.absf": (1, np.abs, 0),
    "math.floor": (1, np.floor, 0),
    "math.ceil": (1, np.ceil, 0),
    "math.trunc": (1, np.trunc, 0),
    "math.roundeven": (1, np.rint, 0),
    "math.round": (1, lambda a: np.copysign(np.floor(np.abs(a) + 0.5), a), 0),
    "math.copysign": (2, np.copysign, 0),
    "math.exp": (1, np.exp, 2),
    "math.exp2": (1, np.exp2, 2),
    "math.expm1": (1, np.expm1, 2),
    "math.sin": (1, np.sin, 2),
    "math.cos": (1, np.cos, 2),
    "math.tan": (1, np.tan, 4),
    "math.atan": (1, np.arctan, 2),
    "math.atan2": (2, np.arctan2, 2),
    "math.sinh": (1, np.sinh, 4),
    "math.cosh": (1, np.cosh, 4),
    "math.tanh": (1, np.tanh, 4),
    "math.asinh": (1, np.arcsinh, 4),
    "math.cbrt": (1, np.cbrt, 2),
    "math.erf": (1, erf, 2),
    "math.erfc": (1, erfc, 2),
    "math.fma": (3, lambda a, b, c: a.astype(np.longdouble) * b + c, 1),
}
POSITIVE_OPS = {
    "math.sqrt": (1, np.sqrt, 0),
    "math.rsqrt": (1, lambda a: 1 / np.sqrt(a), 0),
    "math.log": (1, np.log, 4),
    "math.log2": (1, np.log2, 4),
    "math.log10": (1, np.log10, 4),
    "math.log1p": (1, np.log1p, 4),
    "math.powf": (2, np.power, 2),
    "math.asin": (1, np.arcsin, 4),
    "math.acos": (1, np.arccos, 4),
    "math.atanh": (1, np.arctanh, 4),
    "math.acosh": (1, lambda a: np.arccosh(a), 8),
}
INT_OPS: dict[str, Any] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divsi": truncdiv,
    "arith.remsi": np.fmod,
    "arith.floordivsi": np.floor_divide,
    "arith.ceildivsi": ceildiv,
    "arith.divui": unsigned(np.floor_divide),
    "arith.remui": unsigned(np.mod),
    "arith.ceildivui": unsigned(lambda a, b: a // b + (a % b != 0)),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": unsigned(np.maximum),
    "arith.minui": unsigned(np.minimum),
}
BOTH = pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])


def _applied(name: str, count: int) -> str:
    return f"{name} {', '.join(f'{{{i}}}' for i in range(count))} : {{t}}"


@pytest.mark.sampled
@BOTH
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("table", [FLOAT_OPS, POSITIVE_OPS], ids=["float", "positive"])
def test_float_ops(table: dict[str, Any], dtype: str, vector: bool) -> None:
    for name, (count, reference, ulps) in table.items():
        low, high = (-3.0, 3.0) if table is FLOAT_OPS else (0.05, 0.95)
        shift = 1 if name == "math.acosh" else 0
        inputs = [sample(dtype, i, low + shift, high + shift) for i in range(count)]
        wide = [a.astype(np.float64) if ulps else a for a in inputs]
        text = elementwise(_applied(name, count), [dtype] * count, dtype, vector=vector)
        check(text, inputs, reference(*wide), ulps)


@BOTH
@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_integer_ops(dtype: str, vector: bool) -> None:
    inputs = [sample(dtype, 0), sample(dtype, 1)]
    for name, reference in INT_OPS.items():
        check(elementwise(_applied(name, 2), [dtype] * 2, dtype, vector=vector), inputs, reference(*inputs))


@BOTH
def test_shifts_counts_and_powers(vector: bool) -> None:
    x, n = sample("i32", 0), np.arange(24, dtype=np.int32)
    shifts: dict[str, Any] = {
        "arith.shli": np.left_shift,
        "arith.shrsi": np.right_shift,
        "arith.shrui": lambda a, b: (a.view(np.uint32) >> b.view(np.uint32)).view(np.int32),
    }
    for name, reference in shifts.items():
        check(elementwise(_applied(name, 2), ["i32"] * 2, "i32", vector=vector), [x, n], reference(x, n))
    bits = [f"{int(v):032b}" for v in x.view(np.uint32)]
    for name, count in {
        "math.ctpop": [b.count("1") for b in bits],
        "math.ctlz": [32 - len(b.lstrip("0")) for b in bits],
        "math.cttz": [32 - len(b.rstrip("0")) for b in bits],
    }.items():
        check(elementwise(_applied(name, 1), ["i32"], "i32", vector=vector), [x], count)
    check(elementwise("math.absi {0} : {t}", ["i32"], "i32", vector=vector), [x], np.abs(x))
    small = n % 5
    power = elementwise("math.ipowi {0}, {1} : {t}", ["i32"] * 2, "i32", vector=vector)
    check(power, [x, small], x**small)
    check(power, [np.array([1, -1, 2] * 8, np.int32), np.array([-3] * 24, np.int32)], [1, -1, 0] * 8)
    text = elementwise("math.fpowi {0}, {1} : {t}, TYPE", ["f32", "i32"], "f32", vector=vector)
    y = sample("f32", 3)
    check(text.replace("TYPE", "vector<8xi32>" if vector else "i32"), [y, small], y.astype(float) ** small, 1)


CASTS = [
    ("sitofp", "i32", "f32"),
    ("sitofp", "i64", "f64"),
    ("fptosi", "f32", "i32"),
    ("fptosi", "f64", "i64"),
    ("extf", "f32", "f64"),
    ("truncf", "f64", "f32"),
    ("extf", "f16", "f32"),
    ("truncf", "f32", "f16"),
    ("extsi", "i32", "i64"),
    ("extsi", "i8", "i32"),
    ("trunci", "i64", "i32"),
    ("index_cast", "i32", "index"),
    ("index_cast", "index", "i32"),
    ("index_cast", "i64", "index"),
    ("index_cast", "i8", "index"),
    ("uitofp", "i1", "f32"),
    ("extui", "i1", "i32"),
]


@BOTH
def test_casts(vector: bool) -> None:
    """Unverified, since xDSL knows some casts on scalars only."""

    def cast(name: str, x: Any, source: str, target: str, expected: Any) -> None:
        text = elementwise(f'"arith.{name}"({{0}}) : ({{t}}) -> {{r}}', [source], target, vector=vector)
        check(text, [x], expected, verify=False)

    for name, source, target in CASTS:
        x = sample(source, 5)
        cast(name, x, source, target, x.astype(DTYPES[target]))
    x, y = sample("i32", 6), sample("f32", 7, 0, 9)
    cast("extui", x, "i32", "i64", x.view(np.uint32))
    cast("uitofp", x, "i32", "f64", x.view(np.uint32))
    cast("fptoui", y, "f32", "i32", y)
    cast("trunci", x, "i32", "i1", x & 1)
    cast("bitcast", y, "f32", "i32", y.view(np.int32))
    cast("extsi", x > 0, "i1", "i32", -(x > 0).astype(int))
    cast("index_cast", x > 0, "i1", "index", -(x > 0).astype(int))


CMPI = {
    "eq": np.equal, "ne": np.not_equal, "slt": np.less, "sle": np.less_equal, "sgt": np.greater,
    "sge": np.greater_equal, "ult": np.less, "ule": np.less_equal, "ugt": np.greater, "uge": np.greater_equal,
}  # fmt: skip


@BOTH
def test_integer_comparisons(vector: bool) -> None:
    a, b = sample("i32", 0), np.roll(sample("i32", 0), 1)
    b[:8] = a[:8]
    for predicate, reference in CMPI.items():
        text = elementwise(f"arith.cmpi {predicate}, {{0}}, {{1}} : {{t}}", ["i32"] * 2, "i1", vector=vector)
        x, y = (v.view(np.uint32) if predicate.startswith("u") else v for v in (a, b))
        check(text, [a, b], reference(x, y))


@BOTH
def test_float_comparisons_with_nan(vector: bool) -> None:
    a, b = sample("f32", 0), sample("f32", 1)
    a[::3] = np.nan
    b[::4] = np.nan
    b[1::5] = a[1::5]
    nan = np.isnan(a) | np.isnan(b)
    base = {"eq": a == b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b, "ne": (a < b) | (a > b)}
    expected = {"false": nan & False, "true": nan | True, "ord": ~nan, "uno": nan}
    for name, holds in base.items():
        expected |= {f"o{name}": holds & ~nan, f"u{name}": holds | nan}
    for predicate, holds in expected.items():
        text = elementwise(f"arith.cmpf {predicate}, {{0}}, {{1}} : {{t}}", ["f32"] * 2, "i1", vector=vector)
        check(text, [a, b], holds)


def test_nan_and_zeros_in_max_and_min() -> None:
    a = np.array([np.nan, 1, -0.0, 0.0, np.nan, 2] * 4, np.float32)
    b = np.array([1, np.nan, 0.0, -0.0, np.nan, 1] * 4, np.float32)
    for name, function in {
        "maximumf": np.maximum,
        "minimumf": np.minimum,
        "maxnumf": np.fmax,
        "minnumf": np.fmin,
    }.items():
        output = load(parse(elementwise(_applied(f"arith.{name}", 2), ["f32"] * 2, "f32")), host())(a, b)
        np.testing.assert_array_equal(output, function(a, b))
        if name in ("maximumf", "minimumf"):
            zeros = np.signbit(output[(a == 0) & (b == 0)])
            assert (zeros == (name == "minimumf")).all()


@BOTH
def test_select(vector: bool) -> None:
    c, a, b = sample("i1", 0), sample("f32", 1), sample("f32", 2)
    plain = "arith.select {0}, {1}, {2} : {i1}, {r}" if vector else "arith.select {0}, {1}, {2} : {r}"
    check(elementwise(plain, ["i1", "f32", "f32"], "f32", vector=vector), [c, a, b], np.where(c, a, b))


@BOTH
def test_truth_is_any_byte_but_zero(vector: bool) -> None:
    c = np.arange(24, dtype=np.uint8).view(np.bool_)
    check(
        elementwise('"arith.extui"({0}) : ({t}) -> {r}', ["i1"], "i32", vector=vector),
        [c],
        np.arange(24) > 0,
        verify=False,
    )


@BOTH
def test_division_by_zero_gives_zero_and_never_traps(vector: bool) -> None:
    least = np.iinfo(np.int32).min
    a = np.array([5, -5, least, 0, least, 7] * 4, np.int32)
    b = np.array([0, 0, -1, 0, 0, -2] * 4, np.int32)
    with np.errstate(all="ignore"):
        expected = {"floordivsi": a // b, "remsi": np.fmod(a, b)}
    for name, values in expected.items():
        check(elementwise(_applied(f"arith.{name}", 2), ["i32"] * 2, "i32", vector=vector), [a, b], values)
    for name in ("divsi", "divui", "remui", "ceildivsi", "ceildivui"):
        text = elementwise(_applied(f"arith.{name}", 2), ["i32"] * 2, "i32", vector=vector)
        assert (load(parse(text), host())(a, b)[b == 0] == 0).all()


def test_constant_divisors_cost_nothing() -> None:
    text = elementwise("arith.divsi {0}, %step : {t}", ["index"], "index")
    assert "select" not in emitted(text)
    check(text.replace("divsi", "floordivsi"), [sample("i64", 1)], sample("i64", 1))


@pytest.mark.parametrize("name", ["exp", "tanh", "memcpy", "llvm.fma", "a b\\22é", "f.body"])
def test_a_function_may_have_any_name(name: str) -> None:
    """LLVM calls exp for math.exp: it must not find ours."""
    text = elementwise("math.exp {0} : {t}", ["f64"], "f64").replace("@f(", f'@"{name}"(')
    x = sample("f64", 0)
    check(text, [x], np.exp(x), 2)


def reduction(kind: str, dtype: str, acc: bool) -> str:
    text = f"""
    func.func @f(%a: memref<8x{dtype}>, %s: memref<{dtype}>, %r: memref<{dtype}>) attributes {{outputs = 1 : i64}} {{
      %v = vector.load %a[%c0] : memref<8x{dtype}>, vector<8x{dtype}>
      %x = memref.load %s[] : memref<{dtype}>
      %y = vector.reduction <{kind}>, %v{", %x" if acc else ""} : vector<8x{dtype}> into {dtype}
      memref.store %y, %r[] : memref<{dtype}>
      func.return
    }}"""
    return text


@pytest.mark.parametrize("acc", [False, True])
def test_vector_reductions(acc: bool) -> None:
    integer: dict[str, Any] = {
        "add": np.add, "mul": np.multiply, "minsi": np.minimum, "maxsi": np.maximum,
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    }  # fmt: skip
    real = {
        "add": np.add, "mul": np.multiply, "maximumf": np.maximum, "minimumf": np.minimum,
        "maxnumf": np.fmax, "minnumf": np.fmin,
    }  # fmt: skip
    for table, dtype in ((integer, "i32"), (real, "f32")):
        for kind, function in table.items():
            a, start = sample(dtype, 1)[:8], sample(dtype, 2)[:1]
            values = [*start, *a] if acc else list(a)
            expected = values[0]
            for value in values[1:]:
                expected = function(expected, value)
            output = load(parse(reduction(kind, dtype, acc)), host())(a, start.reshape(()))
            assert output == expected, kind
    a, start = np.array([-1, 2, 3, 4, 5, 6, 7, 8], np.int32), np.array(-9, np.int32)
    both = np.append(a, start) if acc else a
    for kind, picked in {"maxui": np.max, "minui": np.min}.items():
        output = load(parse(reduction(kind, "i32", acc)), host())(a, start)
        assert output.view(np.uint32) == picked(both.view(np.uint32))


def test_fast_math_flags_are_printed_per_instruction() -> None:
    text = elementwise("arith.addf {0}, {1} fastmath<reassoc,contract> : {t}", ["f32"] * 2, "f32")
    assert "fadd contract reassoc float" in emitted(text)
    text = elementwise("arith.addf {0}, {1} fastmath<fast> : {t}", ["f32"] * 2, "f32")
    assert "fadd fast float" in emitted(text)
    text = elementwise("math.exp {0} fastmath<nnan> : {t}", ["f32"], "f32")
    assert "call nnan float @llvm.exp.f32" in emitted(text)
    assert "reduce.fadd.v8f32(float" in emitted(reduction("add", "f32", True))


VECTORS = """
func.func @f(%a: memref<16xf32>, %n: memref<index>, %out: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  %seven = arith.constant 7.0 : f32
  %ramp = arith.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : vector<8xf32>
  %same = arith.constant dense<0.5> : vector<8xf32>
  %x = vector.load %a[%c0] : memref<16xf32>, vector<8xf32>
  %y = vector.load %a[%c8] : memref<16xf32>, vector<8xf32>
  %at = memref.load %n[] : memref<index>
  %mask = vector.create_mask %at : vector<8xi1>
  %m = vector.maskedload %a[%c8], %mask, %ramp : memref<16xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  vector.store %m, %out[%c0, %c0] : memref<6x8xf32>, vector<8xf32>
  %b = vector.broadcast %seven : f32 to vector<8xf32>
  vector.store %b, %out[%c1, %c0] : memref<6x8xf32>, vector<8xf32>
  vector.maskedstore %out[%c1, %c0], %mask, %x : memref<6x8xf32>, vector<8xi1>, vector<8xf32>
  %s = vector.shuffle %x, %y [0, 8, 1, 9, 2, 10, 3, 15] : vector<8xf32>, vector<8xf32>
  vector.store %s, %out[%c2, %c0] : memref<6x8xf32>, vector<8xf32>
  %f = vector.fma %x, %y, %same : vector<8xf32>
  vector.store %f, %out[%c3, %c0] : memref<6x8xf32>, vector<8xf32>
  %e = vector.extract %y[2] : f32 from vector<8xf32>
  %d = vector.extract %y[%at] : f32 from vector<8xf32>
  %i = vector.insert %e, %x[%at] : f32 into vector<8xf32>
  %j = vector.insert %d, %i[0] : f32 into vector<8xf32>
  vector.store %j, %out[%c4, %c0] : memref<6x8xf32>, vector<8xf32>
  %bits = vector.bitcast %x : vector<8xf32> to vector<8xi32>
  %wide = vector.bitcast %bits : vector<8xi32> to vector<4xf64>
  %back = vector.bitcast %wide : vector<4xf64> to vector<8xf32>
  %spread = vector.broadcast %d : f32 to vector<8xf32>
  %sum = arith.addf %back, %spread : vector<8xf32>
  vector.store %sum, %out[%c5, %c0] : memref<6x8xf32>, vector<8xf32>
  func.return
}"""


@pytest.mark.parametrize("n", [0, 3, 7])
def test_vector_ops(n: int) -> None:
    a = sample("f32", 0)[:16]
    x, y = a[:8], a[8:]
    ramp = np.arange(8, dtype=np.float32)
    out = load(parse(VECTORS), host())(a, np.array(n))
    np.testing.assert_array_equal(out[0], np.where(ramp < n, y, ramp))
    np.testing.assert_array_equal(out[1], np.where(ramp < n, x, 7))
    np.testing.assert_array_equal(out[2], a[[0, 8, 1, 9, 2, 10, 3, 15]])
    np.testing.assert_allclose(out[3], x * y + 0.5, rtol=1e-6, atol=1e-6)
    inserted = x.copy()
    inserted[n] = y[2]
    inserted[0] = y[n]
    np.testing.assert_array_equal(out[4], inserted)
    np.testing.assert_array_equal(out[5], x + y[n])


def test_masked_truth_values() -> None:
    text = """
    func.func @f(%a: memref<8xi1>, %n: memref<index>, %out: memref<8xi1>) attributes {outputs = 1 : i64} {
      %yes = arith.constant dense<true> : vector<8xi1>
      %at = memref.load %n[] : memref<index>
      %mask = vector.create_mask %at : vector<8xi1>
      %m = vector.maskedload %a[%c0], %mask, %yes : memref<8xi1>, vector<8xi1>, vector<8xi1> into vector<8xi1>
      vector.store %yes, %out[%c0] : memref<8xi1>, vector<8xi1>
      vector.maskedstore %out[%c0], %yes, %m : memref<8xi1>, vector<8xi1>, vector<8xi1>
      func.return
    }"""
    a = sample("i1", 0)[:8]
    check(text, [a, np.array(5)], np.where(np.arange(8) < 5, a, True))


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "i1"])
def test_gathers_and_scatters(dtype: str) -> None:
    """Column 1 of a matrix goes to every third element, but for the lanes that the mask leaves out."""
    text = f"""
    func.func @f(%a: memref<4x5x{dtype}>, %out: memref<14x{dtype}>) {{
      %down = arith.constant dense<[0, 5, 10, 15]> : vector<4xindex>
      %apart = arith.constant dense<[9, 6, 3, 0]> : vector<4xindex>
      %mask = arith.constant dense<[true, true, false, true]> : vector<4xi1>
      %all = arith.constant dense<true> : vector<4xi1>
      %row = vector.load %a[%c0, %c0] : memref<4x5x{dtype}>, vector<4x{dtype}>
      %x = vector.gather %a[%c0, %c1] [%down], %mask, %row
          : memref<4x5x{dtype}>, vector<4xindex>, vector<4xi1>, vector<4x{dtype}> into vector<4x{dtype}>
      vector.scatter %out[%c1] [%apart], %all, %x
          : memref<14x{dtype}>, vector<4xindex>, vector<4xi1>, vector<4x{dtype}>
      func.return
    }}"""
    a = (np.arange(20).reshape(4, 5) % 3 - 1).astype(numpy_dtype(dtype))
    out = np.zeros(14, a.dtype)
    want = out.copy()
    want[[10, 7, 4, 1]] = [a[0, 1], a[1, 1], a[0, 2], a[3, 1]]
    given = (a.view(np.uint8) * 2).view(np.bool_) if dtype == "i1" else a  # any byte but 0 is true
    load(parse(text), host())(given, out)
    np.testing.assert_array_equal(out, want)


def test_what_is_only_gathered_and_prefetched_is_readonly() -> None:
    text = emitted("""
    func.func @f(%a: memref<8xf32>, %b: memref<8xf32>) {
      %at = arith.constant dense<[0, 2]> : vector<2xindex>
      %all = arith.constant dense<true> : vector<2xi1>
      %zero = arith.constant dense<0.0> : vector<2xf32>
      memref.prefetch %a[%c0], write, locality<1>, data : memref<8xf32>
      %x = vector.gather %a[%c0] [%at], %all, %zero
          : memref<8xf32>, vector<2xindex>, vector<2xi1>, vector<2xf32> into vector<2xf32>
      vector.scatter %b[%c0] [%at], %all, %x : memref<8xf32>, vector<2xindex>, vector<2xi1>, vector<2xf32>
      func.return
    }""")
    body = next(line for line in text.splitlines() if line.startswith("define") and "noinline" in line)
    a, b = (next(p for p in re.split(r", |[()]", body) if p.endswith(name)) for name in ("%a0", "%a1"))
    assert "readonly" in a
    assert "readonly" not in b
    assert re.search(r"call void @llvm.prefetch.p0\(ptr \S+, i32 1, i32 1, i32 1\)", text)


def test_loops_from_negative_bounds_and_on_i32() -> None:
    text = """
    func.func @f(%s: memref<index>, %r: memref<i32>) attributes {outputs = 1 : i64} {
      %low = arith.constant -3 : index
      %z = arith.constant 0 : i32
      %three = arith.constant 3 : i32
      %one = arith.constant 1 : i32
      %high = memref.load %s[] : memref<index>
      %t = scf.for %i = %low to %high step %c2 iter_args(%x = %z) -> (i32) {
        %c = arith.index_cast %i : index to i32
        %y = arith.addi %x, %c : i32
        scf.yield %y : i32
      }
      %u = scf.for %j = %z to %three step %one iter_args(%x = %t) -> (i32) : i32 {
        %y = arith.muli %x, %three : i32
        scf.yield %y : i32
      }
      memref.store %u, %r[] : memref<i32>
      func.return
    }"""
    kernel = load(parse(text), host())
    assert kernel(np.array(6)) == 27 * sum(range(-3, 6, 2))
    assert kernel(np.array(-9)) == 0
    assert "add nsw i64 %i" in emitted(text)


GUARDED = """
func.func @pad(%x: memref<9xf32>, %r: memref<12xf32>, %n: memref<i64>) attributes {outputs = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %count = scf.for %i = %c0 to %c12 step %c1 iter_args(%k = %none) -> (i64) {
    %at = arith.subi %i, %c2 : index
    %low = arith.cmpi sge, %at, %c0 : index
    %high = arith.cmpi slt, %at, %c9 : index
    %in = arith.andi %low, %high : i1
    %v, %next = scf.if %in -> (f32, i64) {
      %e = memref.load %x[%at] : memref<9xf32>
      %k1 = arith.addi %k, %one : i64
      scf.yield %e, %k1 : f32, i64
    } else {
      scf.yield %zero, %k : f32, i64
    }
    memref.store %v, %r[%i] : memref<12xf32>
    scf.if %low {
      %again = memref.load %r[%i] : memref<12xf32>
      memref.store %again, %r[%i] : memref<12xf32>
    }
    scf.yield %next : i64
  }
  memref.store %count, %n[] : memref<i64>
  func.return
}"""


def test_guards_and_their_addresses() -> None:
    x = sample("f32", 0)[:9]
    padded, count = load(parse(GUARDED), host())(x)
    np.testing.assert_array_equal(padded, np.pad(x, (2, 1)))
    assert count == 9
    lines = [line for line in emitted(GUARDED).splitlines() if "getelementptr" in line and "ptr %a0" in line]
    assert lines and all("nusw" in line for line in lines)  # x + i leaves x before 2 is taken off


def test_branches_do_not_share_what_they_compute() -> None:
    """An address of one branch does not dominate the other, nor what follows both."""
    load = "%{0} = memref.load %a[%i, %c1] : memref<4x2xf32>"
    text = f"""
    func.func @f(%a: memref<4x2xf32>, %c: memref<4xi1>, %r: memref<4xf32>) attributes {{outputs = 1 : i64}} {{
      scf.for %i = %c0 to %c4 step %c1 {{
        %t = memref.load %c[%i] : memref<4xi1>
        %y = scf.if %t -> (f32) {{
          {load.format("x")}
          %n = arith.negf %x : f32
          scf.yield %n : f32
        }} else {{
          {load.format("x")}
          scf.yield %x : f32
        }}
        {load.format("z")}
        %s = arith.addf %y, %z : f32
        memref.store %s, %r[%i] : memref<4xf32>
      }}
      func.return
    }}"""
    a, c = sample("f32", 0)[:8].reshape(4, 2), np.array([True, False, False, True])
    check(text, [a, c], np.where(c, 0, 2 * a[:, 1]))


def test_addresses_are_shared_and_constants_come_last() -> None:
    text = """
    func.func @f(%a: memref<8x32xf32>, %r: memref<8x4xf32>) attributes {outputs = 1 : i64} {
      scf.for %i = %c0 to %c8 step %c1 {
        %x = vector.load %a[%i, %c0] : memref<8x32xf32>, vector<4xf32>
        %y = vector.load %a[%i, %c16] : memref<8x32xf32>, vector<4xf32>
        %z = vector.load %a[%i, %c8] {alignment = 32 : i64} : memref<8x32xf32>, vector<4xf32>
        %s = arith.addf %x, %y : vector<4xf32>
        %t = arith.addf %s, %z : vector<4xf32>
        vector.store %t, %r[%i, %c0] : memref<8x4xf32>, vector<4xf32>
      }
      func.return
    }"""
    llvm = emitted(text)
    assert len(re.findall(r"getelementptr inbounds \[4 x i8\], ptr %a0,", llvm)) == 1
    assert re.search(r"getelementptr inbounds \[4 x i8\], ptr %v\d+, i64 16", llvm)
    assert re.search(r"load <4 x float>, ptr %v\d+, align 32", llvm)
    assert re.search(r"load <4 x float>, ptr %v\d+, align 4\b", llvm)


def test_slots_know_their_alignment() -> None:
    text = """
    func.func @f(%a: memref<64xf32>, %r: memref<64xf32>) attributes {outputs = 1 : i64} {
      %slot = memref.alloc() {alignment = 64 : i64} : memref<512xi8>
      %t = memref.view %slot[%c256][] : memref<512xi8> to memref<64xf32>
      %u = memref.alloca() : memref<64xf32>
      "memref.copy"(%a, %t) : (memref<64xf32>, memref<64xf32>) -> ()
      "memref.copy"(%t, %u) : (memref<64xf32>, memref<64xf32>) -> ()
      scf.for %i = %c0 to %c64 step %c8 {
        %x = vector.load %u[%i] : memref<64xf32>, vector<4xf32>
        %i4 = arith.addi %i, %c4 : index
        %y = vector.load %t[%i4] : memref<64xf32>, vector<4xf32>
        vector.store %x, %r[%i4] : memref<64xf32>, vector<4xf32>
        vector.store %y, %r[%i] : memref<64xf32>, vector<4xf32>
      }
      memref.dealloc %slot : memref<512xi8>
      func.return
    }"""
    aligned = re.findall(r"load <4 x float>, ptr %v\d+, align (\d+)", emitted(text))
    assert aligned == ["32", "16"][: len(aligned)] and len(aligned) == 2
    a = sample("f32", 1).repeat(3)[:64]
    check(text, [a], a.reshape(8, 2, 4)[:, ::-1].reshape(64))


def test_facts_of_arguments() -> None:
    llvm = emitted(GUARDED)
    entry, body = (line for line in llvm.splitlines() if line.startswith("define"))
    assert entry == 'define void @"pad"(ptr %a0, ptr %a1, ptr %a2, ptr %workspace) #0 {'
    assert "noinline" in body
    assert "ptr noalias nonnull align 4 dereferenceable(36) readonly %a0" in body
    assert "ptr noalias nonnull align 4 dereferenceable(48) %a1" in body
    assert "min-legal-vector-width" not in llvm
    assert ('"prefer-vector-width"="512" "tune-cpu"="' in llvm) == (host().vector_bits == 512)


@pytest.mark.skipif(host().vector_bits != 512, reason="the processor has no 512-bit vectors")
def test_a_tile_of_14_by_2_vectors_is_not_spilled() -> None:
    X, W = te.placeholder((1, 512, 14, 14), name="X"), te.placeholder((1024, 512, 1, 1), name="W")
    f = te.function("f", [X, W], te.nn.conv2d(X, W))
    asm = compiler.build(f, threads=1, constants={"W": np.ones(W.shape, np.float32)}, schedule="auto").text("asm")
    assert len(re.findall(r"vfmadd231ps\s.*%zmm", asm)) >= 28
    assert re.findall(r"vmovu?a?ps\s+%zmm\d+, -?\d*\(%r[sb]p\)", asm) == []


def test_an_argument_written_through_a_view_is_not_readonly() -> None:
    text = """
    func.func @f(%a: memref<64xi8>, %b: memref<64xi8>) {
      %v = memref.view %a[%c0][] : memref<64xi8> to memref<16xf32>
      %w = memref.view %b[%c0][] : memref<64xi8> to memref<16xf32>
      %x = memref.load %w[%c0] : memref<16xf32>
      memref.store %x, %v[%c0] : memref<16xf32>
      func.return
    }"""
    assert re.findall(r"dereferenceable\(64\) (?:(readonly) )?%a", emitted(text)) == ["", "readonly"]


def test_scalars_are_passed_by_value() -> None:
    text = """
    func.func @axpy(%n: index, %a: f32, %up: i1, %x: memref<8xf32>, %r: memref<8xf32>) attributes {outputs = 1 : i64} {
      %zero = arith.constant 0.0 : f32
      %s = arith.select %up, %a, %zero : f32
      scf.for %i = %c0 to %n step %c1 {
        %e = memref.load %x[%i] : memref<8xf32>
        %p = arith.mulf %e, %s : f32
        memref.store %p, %r[%i] : memref<8xf32>
      }
      func.return
    }"""
    kernel = load(parse(text), host())
    x = sample("f32", 0)[:8]
    np.testing.assert_array_equal(kernel(np.int64(8), np.float32(2), np.True_, x), 2 * x)
    np.testing.assert_array_equal(kernel(np.int64(8), np.float32(2), np.False_, x), 0 * x)


DOT = """
func.func @dot(%A: memref<32x256xf32>, %B: memref<32x256xf32>, %C: memref<32x32xf32>) attributes {outputs = 1 : i64} {
  %z = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c32 step %c1 {
    scf.for %j = %c0 to %c32 step %c1 {
      %s = scf.for %p = %c0 to %c256 step %c1 iter_args(%x = %z) -> (f32) {
        %a = memref.load %A[%i, %p] : memref<32x256xf32>
        %b = memref.load %B[%j, %p] : memref<32x256xf32>
        %m = arith.mulf %a, %b fastmath<FLAGS> : f32
        %y = arith.addf %x, %m fastmath<FLAGS> : f32
        scf.yield %y : f32
      }
      memref.store %s, %C[%i, %j] : memref<32x32xf32>
    }
  }
  func.return
}"""
NEST = """
func.func @mm(%A: memref<32x64xf32>, %B: memref<64x96xf32>, %C: memref<32x96xf32>) {
  scf.for %i = %c0 to %c32 step %c1 {
    scf.for %p = %c0 to %c64 step %c1 {
      scf.for %j = %c0 to %c96 step %c1 {
        %a = memref.load %A[%i, %p] : memref<32x64xf32>
        %b = memref.load %B[%p, %j] : memref<64x96xf32>
        %c = memref.load %C[%i, %j] : memref<32x96xf32>
        %x = arith.mulf %a, %b fastmath<contract> : f32
        %y = arith.addf %c, %x fastmath<contract> : f32
        memref.store %y, %C[%i, %j] : memref<32x96xf32>
      }
    }
  }
  func.return
}"""
CHECKS = re.compile(r"memcheck|%bound\d|%found\.conflict|diff\.check")  # how LLVM names its runtime alias checks
wide = pytest.mark.skipif(host().vector_bits < 512, reason="needs AVX-512")


@wide
def test_a_dot_product_is_vectorised_where_it_may_be_reordered() -> None:
    library = compile_llvm(emitted(DOT.replace("FLAGS", "reassoc,contract")), host())
    assert re.search(r"vfmadd\d+ps\t.*zmm", library.asm("dot.body"))
    assert not CHECKS.search(library.llvm)
    strict = compile_llvm(emitted(DOT.replace("FLAGS", "contract")), host())
    assert not re.search(r"vfmadd\d+ps\t.*zmm", strict.asm("dot.body"))
    kernel = load(parse(DOT.replace("FLAGS", "reassoc,contract")), host())
    a, b = np.random.default_rng(0).random((2, 32, 256), np.float32)
    np.testing.assert_allclose(kernel(a, b), a @ b.T, rtol=1e-5)


@wide
def test_a_loop_nest_is_vectorised_without_alias_checks() -> None:
    text = emitted(NEST)
    library = compile_llvm(text, host())
    assert re.search(r"vfmadd\d+ps\t.*zmm", library.asm("mm.body"))
    assert not CHECKS.search(library.llvm)
    assert not re.search(r"vfmadd\d+ss", library.asm("mm.body"))
    unsure = compile_llvm(text.replace("noalias ", ""), host())
    assert CHECKS.search(unsure.llvm) and re.search(r"vfmadd\d+ss", unsure.asm("mm.body"))


REFUSED = {
    "an unknown op": ("scf.while", "%x = scf.while (%y = %c0) : (index) -> index { scf.condition(%t) %y : index } do "
                      "{ ^bb0(%z: index): scf.yield %z : index }"),
    "an alloc in a loop": ("workspace", "scf.for %i = %c0 to %c0 step %c0 { %q = memref.alloc() : memref<4xf32> }"),
    "a two-dimensional vector": ("one-dimensional", "%v = arith.constant dense<0.0> : vector<2x2xf32> "
                                 "%w = arith.addf %v, %v : vector<2x2xf32>"),
    "a wide integer": ("i128", "%v = arith.constant 0 : i128 %w = arith.addi %v, %v : i128"),
    "a carried buffer": ("carries a buffer", "%m = scf.if %t -> (memref<4xf32>) { scf.yield %a : memref<4xf32> } "
                         "else { scf.yield %a : memref<4xf32> }"),
    "a chosen buffer": ("chosen", "%m = arith.select %t, %a, %a : memref<4xf32> "
                        "%e = memref.load %m[%c0] : memref<4xf32>"),
    "a large stack": ("stack", "%q = memref.alloca() : memref<1048576xf32>"),
    "a large alignment": ("64 bytes", "%q = memref.alloc() {alignment = 128 : i64} : memref<4xf32>"),
    "a vector's broadcast": ("broadcast", "%v = arith.constant dense<0.0> : vector<4xf32> "
                             "%w = vector.broadcast %v : vector<4xf32> to vector<8xf32>"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    said, body = REFUSED[case]
    text = f"""
    func.func @f(%a: memref<4xf32>) {{
      %t = arith.constant true
      {body}
      func.return
    }}"""
    with pytest.raises(LoweringError, match=said):
        emitted(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("func.func private @f(memref<4xf32>) -> f32", "blocks"),
        ("func.func @f(%a: f32) -> f32 { func.return %a : f32 }", "returns values"),
        ("func.func @f(%a: memref<?xf32>) { func.return }", "not static"),
        ("func.func @f(%a: memref<4x4xf32, strided<[1, 4]>>) { func.return }", "row-major"),
        ("func.func @f(%a: memref<4xi7>) { func.return }", "i7"),
        ("builtin.module { builtin.module { } }", "builtin.module"),
    ],
)
def test_refused_functions(text: str, said: str) -> None:
    with pytest.raises(LoweringError, match=said):
        emitted(text)


@pytest.mark.parametrize(
    ("constant", "type", "written"),
    [
        ("0.1", "f32", "float 0x3FB99999A0000000"),
        ("0.1", "f64", "double 0x3FB999999999999A"),
        ("1.5", "f16", "half 0xH3E00"),
        ("1.5", "bf16", "i16 16320"),
        ("18446744073709551615", "i64", "i64 -1"),
        ("255", "i8", "i8 -1"),
    ],
)
def test_constants(constant: str, type: str, written: str) -> None:
    text = f"""
    func.func @f(%r: memref<{type}>) {{
      %x = arith.constant {constant} : {type}
      memref.store %x, %r[] : memref<{type}>
      func.return
    }}"""
    assert f"store {written}, ptr" in emitted(text)


def test_empty_buffers() -> None:
    text = "func.func @f(%a: memref<0x4xf32>, %r: memref<0x4xf32>) attributes {outputs = 1 : i64} { func.return }"
    assert load(parse(text), host())(np.empty((0, 4), np.float32)).shape == (0, 4)


def test_every_scalar_op_has_a_form() -> None:
    """What the low level may hold is emitted, save the ops with two results, and those that are only read."""
    from compiler.dialects.upstream.arith import ARITH
    from compiler.dialects.upstream.math import MATH

    missing = {op.name for op in (*ARITH.operations, *MATH.operations) if op not in HANDLERS}
    two_results = {"arith.addui_extended", "arith.mului_extended", "arith.mulsi_extended"}
    assert missing == two_results | {"arith.index_castui", "arith.scaling_extf", "arith.scaling_truncf"}


def test_text_that_llvm_refuses() -> None:
    with pytest.raises(TargetError, match="LLVM refuses"):
        compile_llvm("define void @f( {", host())
    with pytest.raises(TargetError, match="'nowhere_to_be_found'"):
        compile_llvm("declare void @nowhere_to_be_found()", host())
    library = compile_llvm("define void @f() { ret void }", host())
    assert "ret" in library.asm("f") and "define void @f" in library.llvm
    for ask in (library.address, library.asm):
        with pytest.raises(TargetError, match="no function 'g'"):
            ask("g")
