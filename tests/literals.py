"""Literals: awkward numbers of each dtype, ways into a program and ways out of it, and what numpy says they are."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import compiler
from compiler import te
from compiler.graph.canonical import canonicalize
from compiler.interpret import loop as loop_interpreter
from compiler.interpret.te import evaluate
from compiler.pipeline.loops import lower, lower_to_kernels
from compiler.pipeline.source import parse
from compiler.targets import simt
from compiler.types.dtypes import DTYPES, is_float, limits
from tests.bitwise import same_bits
from tests.operators.catalogue import numpy_dtype
from tests.sample import some

Array = np.ndarray[Any, Any]
Number = float | int | bool

FORMATS = {"f16": (11, 15), "bf16": (8, 127), "f32": (24, 127), "f64": (53, 1023)}
"""The binary digits and the greatest exponent of a float dtype."""
SIZE = 4
CONDITION, INPUT, INDEX = np.array([1, 0, 1, 0], bool), np.array([1, 0, 1, 0]), np.array([0, 9, 2, -1])


def stored(value: Number, dtype: str) -> Any:
    """A number as the dtype holds it; floats rounded once, by exact arithmetic."""
    kind = numpy_dtype(dtype).type
    if not is_float(dtype) or value == 0 or not -math.inf < value < math.inf:
        return kind(value)
    digits, top = FORMATS[dtype]
    exact = abs(Fraction(value))
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    exponent = max(1 - top, exponent - (exact < Fraction(2) ** exponent))
    unit = Fraction(2) ** (exponent - digits + 1)
    nearest = round(Fraction(value) / unit) * unit
    beyond = abs(nearest) >= Fraction(2) ** (top + 1)
    magnitude = math.inf if beyond else float(abs(nearest))
    return kind(-magnitude if value < 0 else magnitude)


def values(dtype: str) -> list[Number]:
    """NaN, infinities, both zeros, limits, ties, subnormal numbers, and others that the dtype rounds."""
    return _floats(dtype) if is_float(dtype) else [False, True, 0, 1] if dtype == "i1" else _integers(dtype)


def _floats(dtype: str) -> list[Number]:
    digits, top = FORMATS[dtype]
    unit, least, normal = 2.0 ** (1 - digits), 2.0 ** (2 - top - digits), 2.0 ** (1 - top)
    greatest = (2 - unit) * 2.0**top
    special = [math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0, 0, 1, -1, True]
    edges = [least, -least, 3 * least, normal, normal - least, greatest, -greatest]
    plain = [0.1, -1 / 3, 1e-7, 3e-5, 1e16, 12345, 1e10, 1e300]
    ties = [1 + unit / 2, 1 + 1.5 * unit, 1 + unit / 2 + 2.0**-50]
    tiny = [least / 2, least / 4, least * 0.75, least * (0.5 + 2.0**-30), math.nextafter(greatest, math.inf)]
    wide = [2**24 + 1, 2**53 + 1, 2**60 + 2**36 + 1, 2**62 + 2**54 + 1, 2**100 + 2**76 + 1, 2**100 + 2**47 + 1]
    known: list[Number] = [*special, *edges, *plain, *ties, *(tiny if dtype != "f64" else []), *wide]
    finite = DTYPES[dtype].infinite
    return [value for value in known if not -math.inf < value < math.inf or abs(value) < finite]


def _integers(dtype: str) -> list[Number]:
    low, high = limits(dtype)
    known = (low, high, low + 1, high - 1, 0, 1, -1, 3, high // 2 + 1, 2**31, 2**32 - 1, 2**53 + 1, 2**63)
    return [*sorted({value for value in known if low <= value <= high}), True]


def beyond(dtype: str) -> list[Number]:
    """Finite numbers that the dtype does not hold."""
    if is_float(dtype):
        greatest = DTYPES[dtype].infinite
        return [greatest, -greatest, 10**400, *([float(greatest), -1e300] if dtype != "f64" else [])]
    low, high = limits(dtype)
    return [low - 1, high + 1, 10**400, -(2**64), 0.5, math.nan, math.inf, -math.inf]


X, B, N = "X", "B", "N"
ScheduleMode = tuple[Callable[..., te.Tensor], Callable[..., Any]]
WAYS_IN: dict[str, ScheduleMode] = {
    "const": (lambda v, t, x, b, n: te.compute((SIZE,), lambda i: te.const(v, t)), lambda v, x: np.full(SIZE, v)),
    "select": (
        lambda v, t, x, b, n: te.compute((SIZE,), lambda i: te.select(b[i], x[i], v)),
        lambda v, x: np.where(CONDITION, x, v),
    ),
    "read": (
        lambda v, t, x, b, n: te.compute((SIZE,), lambda i: te.select(i >= 2, x[i - 2], v)),
        lambda v, x: np.array([v, v, x[0], x[1]]),
    ),
    "pad": (lambda v, t, x, b, n: te.nn.pad(x, [(1, 0)], value=v), lambda v, x: np.concatenate([[v], x])),
    "gather": (
        lambda v, t, x, b, n: te.gather((SIZE,), lambda i: x.at(n[i]), otherwise=v),
        lambda v, x: np.array([x[0], v, x[2], v]),
    ),
    "constant": (lambda v, t, x, b, n: _read(te.constant([v] * SIZE, t)), lambda v, x: np.full(SIZE, v)),
    "element": (
        lambda v, t, x, b, n: _read(te.constant([v if n == 1 else n % 2 for n in range(SIZE)], t)),
        lambda v, x: np.array([x[1], v, x[1], x[0]]),
    ),
}
"""Functions of a number, its dtype and the inputs that make a tensor, and of the stored number that say what it is."""


def _read(constant: te.Tensor) -> te.Tensor:
    return te.compute((SIZE,), lambda i: constant[i])


def program(dtype: str, cases: Iterable[tuple[str, Number]]) -> tuple[te.Function, list[Array], list[Array]]:
    """A program with a result for each way in and number; its inputs, and what it must give."""
    x, b, n = te.placeholder((SIZE,), dtype, X), te.placeholder((SIZE,), "i1", B), te.placeholder((SIZE,), "i64", N)
    array = INPUT.astype(numpy_dtype(dtype))
    outputs, expected = list[te.Tensor](), list[Array]()
    for way, value in cases:
        make, numpy = WAYS_IN[way]
        outputs.append(make(value, dtype, x, b, n))
        expected.append(np.asarray(numpy(stored(value, dtype), array), array.dtype))
    return te.function("literals", [x, b, n], outputs), [array, CONDITION, INDEX], expected


def table(dtype: str, step: int = 1, first: int = 0) -> tuple[te.Function, list[Array], list[Array]]:
    """The numbers of a dtype by the ways in, or one of each `step` pairs; all where the environment asks for it."""
    cases = [(way, value) for way in WAYS_IN for value in values(dtype)]
    return program(dtype, some(cases[first:] + cases[:first], step))


def drawn(rng: random.Random) -> tuple[te.Function, list[Array], list[Array]]:
    """A few literals of one dtype at random, half of them with bits at random."""
    dtype = rng.choice(list(DTYPES))
    return program(dtype, [(rng.choice(list(WAYS_IN)), any_value(rng, dtype)) for _ in range(rng.randint(3, 8))])


def any_value(rng: random.Random, dtype: str) -> Number:
    """A number of a dtype: one of `values`, or one whose bits are drawn."""
    if rng.random() < 0.5 or dtype == "i1":
        return rng.choice(values(dtype))
    if not is_float(dtype):
        return rng.randint(*limits(dtype))
    value = float(np.uint64(rng.getrandbits(64)).view(np.float64))
    while not -DTYPES[dtype].infinite < value < DTYPES[dtype].infinite:
        value = math.ldexp(rng.uniform(-1, 1), rng.randint(-1080, FORMATS[dtype][1]))
    return value


def _loops(module: Any, arrays: Sequence[Array], expected: Sequence[Array]) -> list[Array]:
    outputs = [np.zeros_like(array) for array in expected]
    loop_interpreter.run(module, [*arrays, *outputs])
    return outputs


def _simulated(function: te.Function, arrays: Sequence[Array], expected: Sequence[Array]) -> list[Array]:
    module, _, _ = lower_to_kernels(function.module.clone())
    checked = simt.run(module, arrays, counts=False)
    assert checked.is_correct, str(checked.faults[0])
    return [np.asarray(out).view(want.dtype) for out, want in zip(checked.outputs, expected, strict=True)]


def _built(source: object, arrays: Sequence[Array], policy: str = "contract") -> list[Array]:
    outputs = compiler.build(source, policy=policy)(*arrays)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


WAYS_OUT: dict[str, Callable[[te.Function, list[Array], list[Array]], Sequence[Array]]] = {
    "evaluator": lambda f, a, e: evaluate(f.module, a),
    "te text": lambda f, a, e: evaluate(parse(str(f)), a),
    "canonical": lambda f, a, e: evaluate(parse(str(canonicalize(f.module))), a),
    "loops": lambda f, a, e: _loops(lower(f), a, e),
    "loop text": lambda f, a, e: _loops(parse(str(lower(f))), a, e),
    "strict": lambda f, a, e: _built(f, a, "strict"),
    "contract": lambda f, a, e: _built(str(f), a),
    "fast": lambda f, a, e: _built(f, a, "fast"),
    "low text": lambda f, a, e: _built(compiler.build(lower(f)).text("low"), a),
    "kernels on numpy": _simulated,
}
"""Ways to run a program."""


def differences(found: Sequence[Array], expected: Sequence[Array]) -> list[str]:
    """Results that are not what they must be, bit for bit; all NaNs are one."""
    pairs = enumerate(zip(found, expected, strict=True))
    return [f"result {n}: {f}, expected {e}" for n, (f, e) in pairs if not same_bits(f, e)]
