"""How far the functions of expand-math are from the exact result, in units in the last place, over all kinds of input.

The reference is computed with at least eleven more bits: numpy in float64 for f32, in the processor's long double for
f64. Where the exact result rounds to NaN, to an infinity or to zero, the function must give just that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import compiler
from compiler.targets.cpu import Kernel

Array = np.ndarray[Any, Any]
Reference = Callable[[Array], Array]

DTYPES: dict[str, Any] = {"f32": np.float32, "f64": np.float64}
WIDER: dict[str, Any] = {"f32": np.float64, "f64": np.longdouble}
BITS: dict[str, Any] = {"f32": np.uint32, "f64": np.uint64}
CHUNK = 1 << 16
"""How many elements a kernel takes."""


@dataclass(frozen=True)
class Function:
    """A function: the low-level ops that compute %y from %x (TYPE stands for the type), the reference, the bounds."""

    formula: str
    body: str
    reference: Reference
    bounds: tuple[int, int]
    special: tuple[float, ...] = ()

    def bound(self, dtype: str) -> int:
        """The largest error allowed, in units in the last place."""
        return self.bounds[list(DTYPES).index(dtype)]


def _erf(x: Array) -> Array:
    """In float64 the C library's; 2 / sqrt pi e^(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...) in long double.

    The terms are all of one sign, so that nothing cancels.
    """
    if x.dtype == np.float64:
        return _of_library("erf", x)
    wide = np.clip(x, -7, 7)
    term, total = wide.copy(), wide.copy()
    for k in range(1, 240):
        term = term * (2 * wide * wide) / (2 * k + 1)
        total += term
    return 2 / _ROOT_OF_PI * np.exp(-wide * wide) * total


_ROOT_OF_PI = np.sqrt(np.arccos(np.longdouble(-1)))


def _erfc(x: Array) -> Array:
    """In float64 the C library's; in long double 1 - erf x, or from 1 on the continued fraction.

    That is e^(-x^2) / sqrt pi / (x + 1/2 / (x + 1 / (x + 3/2 / (x + ...)))), with x^2 in two exact parts.
    """
    if x.dtype == np.float64:
        return _of_library("erfc", x)
    wide = np.clip(x, 1, 30)
    fraction = wide
    for k in range(400, 0, -1):
        fraction = wide + np.longdouble(k) / 2 / fraction
    high = wide.astype(np.float32).astype(np.longdouble)
    tail = np.exp(-high * high) * np.exp((high - wide) * (high + wide)) / (_ROOT_OF_PI * fraction)
    return np.where(x > 1, tail, 1 - _erf(x))


def _of_library(name: str, x: Array) -> Array:
    """A function of the C library's for double."""
    return np.concatenate([_library(name)(part) for part in chunks(x)])[: len(x)]


@cache
def _library(name: str) -> Kernel:
    return kernel(name, "f64", None, "strict")


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _op(name: str) -> str:
    return f"%y = math.{name} %x : TYPE"


_SIGMOID = """
      %one = arith.constant CONSTANT(1.0) : TYPE
      %m = arith.negf %x : TYPE
      %e = math.exp %m : TYPE
      %s = arith.addf %one, %e : TYPE
      %y = arith.divf %one, %s : TYPE"""

FUNCTIONS: dict[str, Function] = {
    "exp": Function("e^x", _op("exp"), np.exp, (1, 1), (88.72284, -87.33655, -103.972, 709.7827, -708.3964, -745.133)),
    "exp2": Function("2^x", _op("exp2"), np.exp2, (1, 1), (128.0, -126.0, -149.0, -150.0, 1024.0, -1022.0, -1075.0)),
    "expm1": Function("e^x - 1", _op("expm1"), np.expm1, (2, 2), (88.72284, -17.3, 709.7827, -37.4, 0.34657, -0.34657)),
    "log": Function("log x", _op("log"), np.log, (1, 1), (2 / 3, 0.5**0.5, 4 / 3, 2**0.5)),
    "log2": Function("log x to the base 2", _op("log2"), np.log2, (2, 2), (2 / 3, 0.5**0.5, 4 / 3, 2**0.5)),
    "log10": Function("log x to the base 10", _op("log10"), np.log10, (2, 2), (2 / 3, 0.5**0.5, 4 / 3, 2**0.5)),
    "log1p": Function("log (1 + x)", _op("log1p"), np.log1p, (2, 2), (-1.0, -1 / 3, 1 / 3, 0.5**0.5 - 1, 2**0.5 - 1)),
    "tanh": Function("tanh x", _op("tanh"), np.tanh, (3, 3), (9.01, 19.06, 0.17329, 0.54931)),
    "erf": Function("erf x", _op("erf"), _erf, (2, 2), (0.927734375, 3.92, 5.86)),
    "erfc": Function("1 - erf x", _op("erfc"), _erfc, (4, 4), (0.5, 9.19, 10.05, 26.5, 27.22)),
    "sin": Function("sin x", _op("sin"), np.sin, (2, 2), (2.0**16, 2.0**30, *(n * np.pi / 4 for n in range(1, 20)))),
    "cos": Function("cos x", _op("cos"), np.cos, (2, 2), (2.0**16, 2.0**30, *(n * np.pi / 4 for n in range(1, 20)))),
    "rsqrt": Function("1 / sqrt x", _op("rsqrt"), _rsqrt, (2, 2)),
    "sigmoid": Function(
        "1 / (1 + e^-x)", _SIGMOID, lambda x: 1 / (1 + np.exp(-x)), (3, 3), (-87.0, 17.0, -708.0, 37.0)
    ),
}
LEAST_SIGMOID = {"f32": -87.0, "f64": -708.0}
"""Below, e^-x is at its upper limit, and the quotient is 0 where the sigmoid is subnormal."""


def text(function: Function, dtype: str, lanes: int | None, count: int = CHUNK) -> str:
    """The function over an array, at the low level, in so many lanes or one after the other."""
    memory, type = f"memref<{count}x{dtype}>", dtype if lanes is None else f"vector<{lanes}x{dtype}>"
    load, store = ("memref.load", "memref.store") if lanes is None else ("vector.load", "vector.store")
    tail = "" if lanes is None else f", {type}"
    body = function.body.replace("CONSTANT(1.0)", "1.0" if lanes is None else "dense<1.0>").replace("TYPE", type)
    return f"""builtin.module {{
  func.func @f(%A: {memory}, %B: {memory}) attributes {{outputs = 1 : i64}} {{
    %c0 = arith.constant 0 : index
    %end = arith.constant {count - count % (lanes or 1)} : index
    %step = arith.constant {lanes or 1} : index
    scf.for %i = %c0 to %end step %step {{
      %x = {load} %A[%i] : {memory}{tail}
      {body}
      {store} %y, %B[%i] : {memory}{tail}
    }}
    func.return
  }}
}}"""


def kernel(name: str, dtype: str, lanes: int | None, policy: str = "contract") -> Kernel:
    """The function as native code, on arrays of CHUNK elements."""
    return compiler.build(text(FUNCTIONS[name], dtype, lanes), policy=policy)


def errors(name: str, dtype: str, x: Array, y: Array) -> Array:
    """The error of each result in units in the last place of the exact one; infinite where a special one is missed."""
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name].reference(x.astype(WIDER[dtype]))
        rounded = exact.astype(DTYPES[dtype])
        plain = np.isfinite(rounded) & (rounded != 0)
        unit = np.spacing(np.abs(np.where(plain, rounded, 1)))
        actual = np.where(plain, np.abs(y.astype(WIDER[dtype]) - exact) / unit, 0).astype(np.float64)
        same = (y == rounded) & (np.signbit(y) == np.signbit(rounded)) | (np.isnan(y) & np.isnan(rounded))
    return np.where(same & ~plain, 0, np.where(plain & np.isfinite(y), actual, np.inf))


def samples(name: str, dtype: str, count: int, seed: int = 0) -> Iterator[Array]:
    """Inputs in arrays of CHUNK: special ones and all around them, then at least `count` at random.

    Those are bit patterns, of all sizes, and numbers of either sign between 2^-20 and 2^12 in turns.
    """
    rng = np.random.default_rng(seed)
    kind, bits = DTYPES[dtype], BITS[dtype]
    width = np.dtype(bits).itemsize * 8
    yield from chunks(_neighbours(special(name, dtype), dtype, 64))
    for _ in range(-(-count // (2 * CHUNK))):
        yield rng.integers(0, 2**width, CHUNK, bits, endpoint=False).view(kind)
        yield (np.exp2(rng.uniform(-20, 12, CHUNK)) * rng.choice([-1.0, 1.0], CHUNK)).astype(kind)


def special(name: str, dtype: str) -> Array:
    """Where a function changes course: zeros, infinities, NaN, the limits of the format, its own points, both signs."""
    kind = DTYPES[dtype]
    facts = np.finfo(kind)
    common = [0.0, 1.0, 2.0, 0.5, np.inf, np.nan, facts.max, facts.tiny, facts.smallest_subnormal, facts.eps]
    with np.errstate(over="ignore"):
        own = np.array([*common, *FUNCTIONS[name].special], np.float64).astype(kind)
    return np.concatenate([own, -own])


def _neighbours(x: Array, dtype: str, reach: int) -> Array:
    """The numbers whose bit patterns are next to those of x, on either side."""
    steps = np.arange(-reach, reach + 1).astype(np.int64).astype(BITS[dtype])
    actual: Array = (x.view(BITS[dtype])[:, None] + steps[None, :]).ravel()
    return actual.view(DTYPES[dtype])


def every(stride: int = 1) -> Iterator[Array]:
    """All f32, or each `stride`th, in arrays of CHUNK."""
    for start in range(0, 2**32, CHUNK * stride):
        numbers = np.arange(start, min(start + CHUNK * stride, 2**32), stride, dtype=np.uint64)
        yield from chunks(numbers.astype(np.uint32).view(np.float32))


def chunks(x: Array) -> Iterator[Array]:
    """An array in arrays of CHUNK, the last one filled with ones."""
    for start in range(0, len(x), CHUNK):
        part = x[start : start + CHUNK]
        yield np.concatenate([part, np.ones(CHUNK - len(part), x.dtype)])


def usable(name: str, dtype: str, x: Array) -> Array:
    """The inputs on which a bound holds: all but those of a sigmoid whose result is below the normal numbers."""
    if name != "sigmoid":
        return x
    return np.where(x < LEAST_SIGMOID[dtype], x.dtype.type(0), x)


@dataclass(frozen=True)
class Worst:
    """The largest error of a function, and where it is."""

    error: float
    x: float
    y: float


def worst(name: str, dtype: str, compiled: Kernel, inputs: Iterator[Array] | Sequence[Array]) -> Worst:
    """The largest error over arrays of inputs."""
    actual = Worst(0.0, 0.0, 0.0)
    for x in inputs:
        x = usable(name, dtype, x)
        y = compiled(x)
        wrong = errors(name, dtype, x, y)
        at = int(np.argmax(wrong))
        if wrong[at] > actual.error:
            actual = Worst(float(wrong[at]), float(x[at]), float(y[at]))
    return actual
