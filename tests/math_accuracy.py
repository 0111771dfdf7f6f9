"""How far functions and operators are from the exact result, in units in the last place, over all kinds of input.

The reference is computed with at least eleven more bits: numpy in float64 for f32, in the processor's long double for
f64. Where the exact result rounds to NaN, to an infinity or to zero, the function must give just that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import compiler
from compiler import te
from compiler.targets.cpu import Kernel
from tests.math_rows import ROWS, Array, Function

DTYPES: dict[str, Any] = {"f32": np.float32, "f64": np.float64}
WIDER: dict[str, Any] = {"f32": np.float64, "f64": np.longdouble}
BITS: dict[str, Any] = {"f32": np.uint32, "f64": np.uint64}
ONNX = {"f32": "FLOAT", "f64": "DOUBLE"}
CHUNK = 1 << 16
"""How many elements a kernel takes."""
HARMLESS = 0.75
"""Where every bound holds."""


def text(function: Function, dtype: str, lanes: int | None, count: int = CHUNK) -> str:
    """The function over an array, at the low level, in so many lanes or one after the other."""
    assert isinstance(function.body, str)
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
    """The function as native code, on arrays of CHUNK elements; one that only torch has as it is imported."""
    body = ROWS[name].body
    if isinstance(body, str):
        return compiler.build(text(ROWS[name], dtype, lanes), policy=policy)
    if body is None:
        return of_torch(name, dtype)
    x = te.placeholder((CHUNK,), dtype, name="X")
    return compiler.build(te.function(name, [x], [body(x)]), policy=policy)


def of_torch(name: str, dtype: str) -> Kernel:
    """torch's function as the front end imports it, on arrays of CHUNK elements."""
    import torch
    from torch.nn import functional

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return eval(ROWS[name].torch, {"x": x, "F": functional, "torch": torch})

    zeros = torch.zeros(CHUNK, dtype=getattr(torch, DTYPES[dtype].__name__))
    return compiler.build(compiler.from_torch(Module(), (zeros,)))


def of_onnx(name: str, dtype: str) -> Kernel:
    """ONNX's operator as the front end imports it, on arrays of CHUNK elements."""
    from onnx import TensorProto, helper

    assert ROWS[name].onnx is not None
    operator, attributes = ROWS[name].onnx
    values = [helper.make_tensor_value_info(n, getattr(TensorProto, ONNX[dtype]), (CHUNK,)) for n in "xy"]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"], **attributes)], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return compiler.build(compiler.from_onnx(model))


def errors(name: str, dtype: str, x: Array, y: Array) -> Array:
    """The error of each result in units in the last place of the exact one; infinite where a special one is missed."""
    with np.errstate(all="ignore"):
        exact = ROWS[name].reference(x.astype(WIDER[dtype]))
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
        own = np.array([*common, *ROWS[name].special], np.float64).astype(kind)
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


def usable(name: str, x: Array) -> Array:
    """The inputs on which a bound holds, the others replaced."""
    with np.errstate(all="ignore"):
        return np.where(ROWS[name].where(x), x, x.dtype.type(HARMLESS))


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
        x = usable(name, x)
        y = compiled(x)
        wrong = errors(name, dtype, x, y)
        at = int(np.argmax(wrong))
        if wrong[at] > actual.error:
            actual = Worst(float(wrong[at]), float(x[at]), float(y[at]))
    return actual
