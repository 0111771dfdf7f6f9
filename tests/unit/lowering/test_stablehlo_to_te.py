"""StableHLO -> te, without JAX: ops against numpy, calls, loops, branches, and the doors in."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from math import erf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.utils.exceptions import ParseError, VerifyException

import strata
from compiler.__main__ import main
from compiler.interpret.te import evaluate
from compiler.lowering.stablehlo_to_te.scalars import FUNCTIONS
from compiler.pipeline.source import parse
from compiler.support.errors import LoweringError

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)
X, Y = (RANDOM.uniform(-2, 2, (4, 8)).astype(np.float32) for _ in range(2))
U = RANDOM.uniform(0.05, 0.95, (4, 8)).astype(np.float32)
I, J = (RANDOM.integers(-9, 9, (4, 8)).astype(np.int32) for _ in range(2))
P = I > 0
ARRAYS = {"x": X, "y": Y, "u": U, "i": I, "j": J, "p": P}
TYPES = {"f": "tensor<4x8xf32>", "i": "tensor<4x8xi32>", "p": "tensor<4x8xi1>"}


def computed(text: str, *arrays: Array) -> list[Array]:
    """The results of a function by the evaluator of te."""
    return evaluate(parse(text), arrays)


def op_results(op: str, types: str, result_type: str) -> Array:
    """The value of a line `%0 = op` for the arrays that it names."""
    names = dict.fromkeys(re.findall(r"%([xyuijp])\b", op))
    kinds = {name: TYPES["f" if name in "xyu" else "i" if name in "ij" else "p"] for name in names}
    arguments = ", ".join(f"%{name}: {type}" for name, type in kinds.items())
    text = f"func.func @f({arguments}) -> {result_type} {{\n  %0 = {op} : {types}\n  return %0 : {result_type}\n}}"
    (value,) = computed(text, *(ARRAYS[name] for name in names))
    return value


UNARY: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs, "cbrt": np.cbrt, "ceil": np.ceil, "cosine": np.cos, "exponential": np.exp,
    "exponential_minus_one": np.expm1, "floor": np.floor, "log": np.log, "log_plus_one": np.log1p,
    "negate": np.negative, "logistic": lambda x: 1 / (1 + np.exp(-x)), "round_nearest_even": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x), "round_nearest_afz": lambda x: np.trunc(x + np.copysign(0.5, x)),
    "sign": np.sign, "sine": np.sin, "sqrt": np.sqrt,
    "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip
CHLO: dict[str, Callable[[Array], Array]] = {
    "acos": np.arccos, "acosh": lambda x: np.arccosh(x), "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cosh": np.cosh, "sinh": np.sinh, "square": np.square, "tan": np.tan,
    "erf": np.vectorize(erf), "erfc": np.vectorize(lambda x: 1 - erf(x)),
}  # fmt: skip
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "remainder": np.fmod, "atan2": np.arctan2,
}  # fmt: skip
OF_INTEGERS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_an_element(name: str) -> None:
    positive = name in ("log", "sqrt", "rsqrt")
    op = f"stablehlo.{name} %{'u' if positive else 'x'}"
    if name == "log_plus_one":
        op = f"stablehlo.{name} %u"
        positive = True
    value = op_results(op, TYPES["f"], TYPES["f"])
    np.testing.assert_allclose(value, UNARY[name](U if positive else X), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", CHLO)
def test_functions_of_chlo(name: str) -> None:
    with np.errstate(all="ignore"):
        expected = CHLO[name](U.astype(np.float64))
    value = op_results(f"chlo.{name} %u", f"{TYPES['f']} -> {TYPES['f']}", TYPES["f"])
    np.testing.assert_allclose(value, expected, rtol=2e-6, atol=1e-6)


def test_every_function_has_a_case_or_is_of_integers() -> None:
    of_integers = {
        "and", "or", "xor", "not", "popcnt", "count_leading_zeros", "shift_left", "shift_right_arithmetic",
        "shift_right_logical", "select", "clamp", "power", "is_finite",
    }  # fmt: skip
    named = {f"stablehlo.{name}" for name in (*UNARY, *BINARY, *of_integers)} | {f"chlo.{name}" for name in CHLO}
    assert FUNCTIONS.keys() - named == {"chlo.erf_inv", "chlo.is_inf"}


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_floats(name: str) -> None:
    value = op_results(f"stablehlo.{name} %x, %y", TYPES["f"], TYPES["f"])
    np.testing.assert_allclose(value, BINARY[name](X, Y), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_functions_of_two_integers(name: str) -> None:
    value = op_results(f"stablehlo.{name} %i, %j", TYPES["i"], TYPES["i"])
    np.testing.assert_array_equal(value, OF_INTEGERS[name](I, J))


def bits_of(number: int) -> int:
    return int(number) & 0xFFFFFFFF


F, N, T = TYPES["f"], TYPES["i"], TYPES["p"]
CASES: dict[str, tuple[str, str, str, Array]] = {
    "popcnt": ("stablehlo.popcnt %i", N, N, np.vectorize(lambda n: bits_of(n).bit_count())(I)),
    "leading zeros": ("stablehlo.count_leading_zeros %i", N, N,
                      np.vectorize(lambda n: 32 - bits_of(n).bit_length())(I)),
    "not": ("stablehlo.not %i", N, N, ~I),
    "not of truths": ("stablehlo.not %p", T, T, ~P),
    "maximum of truths": ("stablehlo.maximum %p, %p", T, T, P),
    "is_finite": ("stablehlo.is_finite %x", f"({F}) -> {T}", T, np.isfinite(X)),
    "power": ("stablehlo.power %u, %y", F, F, np.power(U, Y)),
    "division": ("stablehlo.divide %i, %i", N, N, (I != 0).astype(np.int32)),
    "clamp": ("stablehlo.clamp %y, %x, %u", F, F, np.minimum(np.maximum(Y, X), U)),
    "select": ("stablehlo.select %p, %x, %y", f"{T}, {F}", F, np.where(P, X, Y)),
    "less": ("stablehlo.compare LT, %x, %y, FLOAT", f"({F}, {F}) -> {T}", T, X < Y),
    "total order": ("stablehlo.compare GE, %x, %y, TOTALORDER", f"({F}, {F}) -> {T}", T, X >= Y),
    "unequal truths": ("stablehlo.compare NE, %p, %p, UNSIGNED", f"({T}, {T}) -> {T}", T, np.zeros_like(P)),
    "convert": ("stablehlo.convert %x", f"({F}) -> {N}", N, X.astype(np.int32)),
    "convert to truths": ("stablehlo.convert %i", f"({N}) -> {T}", T, I != 0),
    "reduce_precision": (
        "stablehlo.reduce_precision %x, format = e5m10", F, F, X.astype(np.float16).astype(np.float32)),
    "iota": ("stablehlo.iota dim = 1", N, N, np.broadcast_to(np.arange(8, dtype=np.int32), (4, 8))),
    "transpose": ("stablehlo.transpose %x, dims = [1, 0]", f"({F}) -> tensor<8x4xf32>", "tensor<8x4xf32>", X.T),
    "broadcast": (
        "stablehlo.broadcast_in_dim %x, dims = [2, 0]", f"({F}) -> tensor<8x3x4xf32>", "tensor<8x3x4xf32>",
        np.broadcast_to(X.T[:, None], (8, 3, 4))),
    "reshape": ("stablehlo.reshape %x", f"({F}) -> tensor<2x16xf32>", "tensor<2x16xf32>", X.reshape(2, 16)),
    "slice": ("stablehlo.slice %x [1:4:2, 2:8]", f"({F}) -> tensor<2x6xf32>", "tensor<2x6xf32>", X[1:4:2, 2:8]),
    "reverse": ("stablehlo.reverse %x, dims = [0]", F, F, X[::-1]),
    "concatenate": (
        "stablehlo.concatenate %x, %y, dim = 1", f"({F}, {F}) -> tensor<4x16xf32>", "tensor<4x16xf32>",
        np.concatenate([X, Y], 1)),
    "dot_general": (
        "stablehlo.dot_general %x, %y, contracting_dims = [1] x [1]", f"({F}, {F}) -> tensor<4x4xf32>",
        "tensor<4x4xf32>", X @ Y.T),
    "dot_general of batches": (
        "stablehlo.dot_general %x, %y, batching_dims = [1] x [1], contracting_dims = [0] x [0]",
        f"({F}, {F}) -> tensor<8xf32>", "tensor<8xf32>", (X * Y).sum(0)),
    "outer product": (
        "stablehlo.dot_general %x, %y, contracting_dims = [] x []", f"({F}, {F}) -> tensor<4x8x4x8xf32>",
        "tensor<4x8x4x8xf32>", X[:, :, None, None] * Y),
    "top_k": (
        "chlo.top_k(%x, k = 8)", f"{F} -> ({F}, tensor<4x8xi32>)", F, -np.sort(-X, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_ops(name: str) -> None:
    op, types, result_type, expected = CASES[name]
    if name == "top_k":
        text = f"func.func @f(%x: {F}) -> {F} {{\n  %0:2 = {op} : {types}\n  return %0#0 : {F}\n}}"
        (value,) = computed(text, X)
    else:
        value = op_results(op, types, result_type)
    np.testing.assert_allclose(value, expected, rtol=2e-6, atol=1e-6)


REDUCER = """
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %c = stablehlo.OP %a, %b : tensor<f32>
  stablehlo.return %c : tensor<f32>
"""
WHOLE: dict[str, tuple[str, list[Array], Array]] = {
    "pad": (
        """func.func @f(%x: tensor<4x8xf32>, %v: tensor<f32>) -> tensor<10x7xf32> {
  %0 = stablehlo.pad %x, %v, low = [1, 0], high = [-1, -1], interior = [2, 0] :
      (tensor<4x8xf32>, tensor<f32>) -> tensor<10x7xf32>
  return %0 : tensor<10x7xf32>
}""",
        [X, np.array(3, np.float32)],
        np.stack([X[n // 3, :7] if n % 3 == 0 else np.full(7, 3, np.float32) for n in range(-1, 9)]),
    ),
    "reduce from a value": (
        """func.func @f(%x: tensor<4x8xf32>, %v: tensor<f32>) -> tensor<8xf32> {
  %0 = stablehlo.reduce(%x init: %v) applies stablehlo.add across dimensions = [0] :
      (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}""",
        [X, np.array(3, np.float32)],
        X.sum(0) + 3,
    ),
    "any": (
        """func.func @f(%p: tensor<4x8xi1>) -> tensor<4xi1> {
  %v = stablehlo.constant dense<false> : tensor<i1>
  %0 = stablehlo.reduce(%p init: %v) applies stablehlo.or across dimensions = [1] :
      (tensor<4x8xi1>, tensor<i1>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}""",
        [P],
        P.any(1),
    ),
    "pooling": (
        f"""func.func @f(%x: tensor<4x8xf32>) -> tensor<3x5xf32> {{
  %v = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %v) <{{padding = dense<[[0, 0], [1, 2]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 1, 2>}}> ({{{REDUCER.replace("OP", "maximum")}
  }}) : (tensor<4x8xf32>, tensor<f32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}}""",
        [X],
        np.stack([[np.pad(X, ((0, 0), (1, 2)), constant_values=-np.inf)[r : r + 2, c : c + 3].max()
                   for c in range(0, 9, 2)] for r in range(3)]),
    ),
    "running sums": (
        f"""func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {{
  %v = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %v) <{{padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 1, 8>}}> ({{{REDUCER.replace("OP", "add")}
  }}) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}}""",
        [X],
        np.cumsum(X, 1),
    ),
    "gather of boxes, inside": (
        """func.func @f(%x: tensor<4x8xf32>, %i: tensor<2xi32>) -> tensor<2x3xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1],
      start_index_map = [0, 1]>, slice_sizes = array<i64: 2, 3>}> :
      (tensor<4x8xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}""",
        [X, np.array([9, -4], np.int32)],
        X[2:4, 0:3],
    ),
    "dynamic_slice": (
        """func.func @f(%x: tensor<4x8xf32>, %i: tensor<i32>) -> tensor<2x8xf32> {
  %c = stablehlo.constant dense<7> : tensor<i32>
  %0 = stablehlo.dynamic_slice %x, %i, %c, sizes = [2, 8] :
      (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}""",
        [X, np.array(1, np.int32)],
        X[1:3],
    ),
    "dynamic_update_slice": (
        """func.func @f(%x: tensor<4x8xf32>, %u: tensor<2x8xf32>, %i: tensor<i32>) -> tensor<4x8xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %c :
      (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}""",
        [X, Y[:2], np.array(7, np.int32)],
        np.concatenate([X[:2], Y[:2]]),
    ),
    "scatter, the last write counts": (
        """func.func @f(%x: tensor<4x8xf32>, %i: tensor<3x1xi32>, %u: tensor<3x8xf32>) -> tensor<4x8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}""",
        [X, np.array([[2], [9], [2]], np.int32), Y[:3]],
        np.stack([X[0], X[1], Y[2], X[3]]),
    ),
    "sort of pairs": (
        """func.func @f(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
    %1 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return %0#1 : tensor<4x8xf32>
}""",
        [X, Y],
        np.take_along_axis(Y, np.argsort(-X, 1), 1),
    ),
    "a slice that begins beyond the end": (
        """func.func @f(%x: tensor<4x8xf32>) -> tensor<2x3xf32> {
  %c = stablehlo.constant dense<7> : tensor<i32>
  %d = stablehlo.constant dense<-7> : tensor<i32>
  %0 = stablehlo.dynamic_slice %x, %c, %d, sizes = [2, 3] :
      (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}""",
        [X],
        X[2:4, :3],
    ),
    "a stable sort": (
        """func.func @f(%p: tensor<4x8xi1>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0:2 = "stablehlo.sort"(%p, %y) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i1>, %b: tensor<i1>, %c: tensor<f32>, %d: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4x8xi1>, tensor<4x8xf32>) -> (tensor<4x8xi1>, tensor<4x8xf32>)
  return %0#1 : tensor<4x8xf32>
}""",
        [P, Y],
        np.take_along_axis(Y, np.argsort(P, 1, kind="stable"), 1),
    ),
    "argmax, the first of equal ones": (
        """func.func @f(%i: tensor<4x8xi32>) -> tensor<4xi32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %low = stablehlo.constant dense<-2147483648> : tensor<i32>
  %k = stablehlo.iota dim = 1 : tensor<4x8xi32>
  %0:2 = stablehlo.reduce(%i init: %low), (%k init: %c) across dimensions = [1] :
      (tensor<4x8xi32>, tensor<4x8xi32>, tensor<i32>, tensor<i32>) -> (tensor<4xi32>, tensor<4xi32>)
   reducer(%a: tensor<i32>, %b: tensor<i32>) (%m: tensor<i32>, %n: tensor<i32>)  {
    %1 = stablehlo.compare GT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = stablehlo.compare EQ, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.compare LT, %m, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = stablehlo.and %2, %3 : tensor<i1>
    %5 = stablehlo.or %1, %4 : tensor<i1>
    %6 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<i32>
    %7 = stablehlo.select %5, %m, %n : tensor<i1>, tensor<i32>
    stablehlo.return %6, %7 : tensor<i32>, tensor<i32>
  }
  return %0#1 : tensor<4xi32>
}""",
        [I // 4],
        np.argmax(I // 4, 1).astype(np.int32),
    ),
    **{
        f"branch {number} of two": (
            f"""func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {{
  %n = stablehlo.constant dense<{number}> : tensor<i32>
  %0 = "stablehlo.case"(%n) ({{
    stablehlo.return %x : tensor<4x8xf32>
  }}, {{
    %1 = stablehlo.add %x, %x : tensor<4x8xf32>
    stablehlo.return %1 : tensor<4x8xf32>
  }}) : (tensor<i32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}}""",
            [X],
            X if number == 0 else X + X,
        )
        for number in (0, 1, 5, -1)
    },
    "a branch of data": (
        """func.func @f(%n: tensor<i32>, %x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "stablehlo.case"(%n) ({
    stablehlo.return %x : tensor<4x8xf32>
  }, {
    %1 = stablehlo.add %x, %x : tensor<4x8xf32>
    stablehlo.return %1 : tensor<4x8xf32>
  }) : (tensor<i32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}""",
        [np.array(7, np.int32), X],
        X + X,
    ),
    "a composite by its decomposition": (
        """module {
  func.func public @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.composite "chlo.unheard_of" %x {decomposition = @impl} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
  func.func private @impl(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.multiply %x, %x : tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}""",
        [X],
        X * X,
    ),
    "a hexadecimal constant": (
        """func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<"0x0000803F00000040"> : tensor<2xf32>
  %0 = stablehlo.add %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}""",
        [X[0, :2]],
        X[0, :2] + np.array([1, 2], np.float32),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_functions(name: str) -> None:
    text, arrays, expected = WHOLE[name]
    (value,) = computed(text, *arrays)
    np.testing.assert_allclose(value, expected, rtol=2e-6, atol=1e-6)


LAYER = """module @jit_layer attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x8xf32>, %arg1: tensor<8x4xf32>) -> (tensor<4x4xf32> {jax.result_info = ""}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] :
        (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %1 = call @relu(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
  func.func private @relu(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}
"""


def test_a_text_is_built() -> None:
    kernel = strata.build(LAYER, threads=1)
    np.testing.assert_allclose(kernel(X, Y.T.copy()), np.maximum(X @ Y.T, 0), rtol=1e-5, atol=1e-5)


def test_a_file_is_built_at_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "layer.stablehlo.mlir"
    path.write_text(LAYER)
    assert main(["build", str(path), "--emit", "te"]) == 0
    assert 'te.compute "dot_general"' in capsys.readouterr().out


CUT = {
    "half of the text": LAYER[: len(LAYER) // 2],
    "no name of an op": LAYER.replace("stablehlo.maximum", "stablehlo."),
    "another word": LAYER.replace("dims = []", "dims = x"),
    "no type": LAYER.replace(": tensor<4x4xf32>\n    return", "\n    return"),
    "an unknown op": LAYER.replace("maximum", "maximise"),
    "no dimension": LAYER.replace("[1] x [0]", "[1] x [5]"),
    "one list": LAYER.replace("[1] x [0]", "[1]"),
    "no list": LAYER.replace(", contracting_dims = [1] x [0]", ""),
    "another shape": LAYER.replace("tensor<8x4xf32>", "tensor<9x4xf32>"),
    "another dtype": LAYER.replace("dense<0.000000e+00> : tensor<f32>", "dense<0> : tensor<i32>"),
}


@pytest.mark.parametrize("name", CUT)
def test_a_damaged_text_ends_in_a_sentence(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((ParseError, LoweringError, VerifyException)):
        parse(CUT[name])
    path = tmp_path / "f.mlir"
    path.write_text(CUT[name])
    assert main(["build", str(path), "--emit", "te"]) == 1
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("position", range(0, len(LAYER), 97))
def test_a_text_without_a_character_ends_in_a_sentence(position: int) -> None:
    with suppress(ParseError, LoweringError, VerifyException):
        parse(LAYER[:position] + LAYER[position + 1 :])
