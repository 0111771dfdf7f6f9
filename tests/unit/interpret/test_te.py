"""The te evaluator and the scalar semantics against numpy, on programs written by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import builtin, func
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import strata
from compiler.dialects.te import TE
from compiler.dialects.upstream.arith import ARITH
from compiler.dialects.upstream.math import MATH
from compiler.interpret import te
from compiler.support.errors import InputError, TeError

Array = NDArray[Any]

MATMUL = """
func.func @mm(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %C = te.compute "C" [m = 4, l = 6, reduce k = 8] combine [add]
      (%a = %A[m, k] : tensor<4x8xf32>, %b = %B[k, l] : tensor<8x6xf32>) -> tensor<4x6xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  }
  func.return %C : tensor<4x6xf32>
}
"""

CONV = """
func.func @conv(%X: tensor<2x5x6xf32>, %W: tensor<3x2x3x3xf32>) -> tensor<3x5x6xf32> {
  %Y = te.compute "Y" [o = 3, h = 5, w = 6, reduce c = 2, reduce i = 3, reduce j = 3] combine [add]
      (%x = %X[c, h + i - 1, w + j - 1]
        where (h + i - 1 >= 0, 5 - h - i >= 0, w + j - 1 >= 0, 6 - w - j >= 0) else 0.0 : tensor<2x5x6xf32>,
       %w = %W[o, c, i, j] : tensor<3x2x3x3xf32>) -> tensor<3x5x6xf32> {
    %0 = arith.mulf %x, %w : f32
    te.yield %0 : f32
  }
  func.return %Y : tensor<3x5x6xf32>
}
"""


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (builtin.Builtin, func.Func, ARITH, MATH, TE):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def evaluate(text: str, *inputs: Array, dtype: Any = None) -> list[Array]:
    module = parse(text)
    module.verify()
    return te.evaluate(module, inputs, dtype)


def floats(*shape: int) -> Array:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def padded_conv(x: Array, w: Array) -> Array:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1))).astype(np.float64)
    _, height, width = x.shape
    windows = [[padded[:, i : i + height, j : j + width] for j in range(3)] for i in range(3)]
    return np.asarray(np.einsum("ijchw,ocij->ohw", np.array(windows), w))


def one_op(body: str, *inputs: Array, types: str, result: str) -> Array:
    """Evaluate an elementwise body over %0, %1 ... of the given types, yielding %r."""
    size = inputs[0].size
    tensors = [f"tensor<{size}x{t}>" for t in types.split()]
    arguments = ", ".join(f"%A{i}: {t}" for i, t in enumerate(tensors))
    reads = ", ".join(f"%{i} = %A{i}[i] : {t}" for i, t in enumerate(tensors))
    out = f"tensor<{size}x{result}>"
    return evaluate(
        f"""func.func @f({arguments}) -> {out} {{
          %R = te.compute "R" [i = {size}] ({reads}) -> {out} {{
            {body}
            te.yield %r : {result}
          }}
          func.return %R : {out}
        }}""",
        *inputs,
    )[0]


def unary(op: str, values: list[float]) -> Array:
    return one_op(f"%r = {op} %0 : f32", np.array(values, np.float32), types="f32", result="f32")


def pairs(op: str, type_: str, left: list[Any], right: list[Any]) -> list[Any]:
    dtype = {"f32": "f4", "i32": "i4", "i8": "i1", "i1": "?"}[type_]
    arrays = (np.array(left, dtype), np.array(right, dtype))
    output = "i1" if "cmp" in op else type_
    actual = one_op(f"%r = {op} %0, %1 : {type_}", *arrays, types=f"{type_} {type_}", result=output)
    assert actual.dtype == (bool if output == "i1" else dtype)
    return list(actual.tolist())


def cast(op: str, source: str, target: str, values: Array) -> Array:
    return one_op(f"%r = arith.{op} %0 : {source} to {target}", values, types=source, result=target)


def test_matmul_contracts() -> None:
    a, b = floats(4, 8), floats(8, 6)
    (c,) = evaluate(MATMUL, a, b)
    assert c.dtype == np.float32
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-6)


def test_a_transposed_matmul_is_contiguous() -> None:
    text = MATMUL.replace("m = 4, l = 6", "l = 6, m = 4").replace("tensor<4x6xf32>", "tensor<6x4xf32>")
    a, b = floats(4, 8), floats(8, 6)
    (c,) = evaluate(text, a, b)
    assert c.flags.c_contiguous
    np.testing.assert_allclose(c, (a @ b).T, rtol=1e-5, atol=1e-6)


def test_matmul_in_float64_is_exact_to_its_rounding() -> None:
    a, b = floats(4, 8).astype(np.float64), floats(8, 6)
    (c,) = evaluate(MATMUL, a, b, dtype=np.float64)
    assert c.dtype == np.float64
    np.testing.assert_allclose(c, a @ b.astype(np.float64), rtol=1e-13)


def test_a_constant_is_rounded_before_it_is_promoted() -> None:
    text = """
    func.func @f() -> tensor<f32> {
      %C = te.compute "C" [] () -> tensor<f32> {
        %0 = arith.constant 0.1 : f32
        te.yield %0 : f32
      }
      func.return %C : tensor<f32>
    }"""
    assert evaluate(text, dtype=np.float64)[0] == np.float64(np.float32(0.1))


@pytest.mark.parametrize("bound", [1, 7, 50, 1 << 22])
def test_padded_convolution_in_boxes_of_any_size(bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(te, "MAX_POINTS", bound)
    x, w = floats(2, 5, 6), floats(3, 2, 3, 3)
    (y,) = evaluate(CONV, x, w, dtype=np.float64)
    np.testing.assert_allclose(y, padded_conv(x, w), rtol=1e-12, atol=1e-12)


def test_a_window_of_a_larger_tensor_does_not_contract_all_of_it() -> None:
    text = MATMUL.replace("tensor<4x8xf32>", "tensor<5x9xf32>")
    a, b = floats(5, 9), floats(8, 6)
    np.testing.assert_allclose(evaluate(text, a, b)[0], a[:4, :8] @ b, rtol=1e-5, atol=1e-6)


def test_a_reduction_over_an_axis_that_no_read_uses_counts_it() -> None:
    text = """
    func.func @f(%A: tensor<4xf32>, %B: tensor<4xf32>) -> tensor<4xf32> {
      %S = te.compute "S" [i = 4, reduce k = 3] combine [add]
          (%a = %A[i] : tensor<4xf32>, %b = %B[i] : tensor<4xf32>) -> tensor<4xf32> {
        %0 = arith.mulf %a, %b : f32
        te.yield %0 : f32
      }
      func.return %S : tensor<4xf32>
    }"""
    a = floats(4)
    np.testing.assert_allclose(evaluate(text, a, a)[0], 3 * a * a, rtol=1e-6)


@pytest.mark.parametrize("name, expected", [("max", np.max), ("min", np.min), ("mul", np.prod)])
def test_reduction_of_floats_and_rank_zero(name: str, expected: Any) -> None:
    text = f"""
    func.func @f(%A: tensor<3x4xf32>) -> (tensor<3xf32>, tensor<f32>) {{
      %M = te.compute "M" [i = 3, reduce k = 4] combine [{name}]
          (%a = %A[i, k] : tensor<3x4xf32>) -> tensor<3xf32> {{ te.yield %a : f32 }}
      %S = te.compute "S" [reduce i = 3] combine [{name}]
          (%m = %M[i] : tensor<3xf32>) -> tensor<f32> {{ te.yield %m : f32 }}
      func.return %M, %S : tensor<3xf32>, tensor<f32>
    }}"""
    a = floats(3, 4) - 5
    rows, total = evaluate(text, a)
    assert total.shape == ()
    np.testing.assert_allclose(rows, expected(a, axis=1), rtol=1e-6)
    np.testing.assert_allclose(total, expected(a), rtol=1e-6)


def test_a_maximum_propagates_nan() -> None:
    text = """
    func.func @f(%A: tensor<4xf32>) -> tensor<f32> {
      %M = te.compute "M" [reduce k = 4] combine [max]
          (%a = %A[k] : tensor<4xf32>) -> tensor<f32> { te.yield %a : f32 }
      func.return %M : tensor<f32>
    }"""
    assert np.isnan(evaluate(text, np.array([1, np.nan, 3, 2], np.float32))[0])


def test_two_results_with_different_combiners() -> None:
    text = """
    func.func @f(%A: tensor<3x4xi32>) -> (tensor<3xi32>, tensor<3xi32>) {
      %S, %M = te.compute "SM" [i = 3, reduce k = 4] combine [add, max]
          (%a = %A[i, k] : tensor<3x4xi32>) -> tensor<3xi32>, tensor<3xi32> {
        te.yield %a, %a : i32, i32
      }
      func.return %M, %S : tensor<3xi32>, tensor<3xi32>
    }"""
    a = np.arange(12, dtype=np.int32).reshape(3, 4) - 20
    most, sums = evaluate(text, a)
    np.testing.assert_array_equal(most, a.max(axis=1))
    np.testing.assert_array_equal(sums, a.sum(axis=1))
    assert most.dtype == sums.dtype == np.int32


def test_integer_sums_wrap_and_bools_reduce_as_signed_bits() -> None:
    text = """
    func.func @f(%A: tensor<3xi8>, %B: tensor<3xi1>) -> (tensor<i8>, tensor<i1>, tensor<i1>) {
      %S = te.compute "S" [reduce k = 3] combine [add]
          (%a = %A[k] : tensor<3xi8>) -> tensor<i8> { te.yield %a : i8 }
      %X, %M = te.compute "X" [reduce k = 3] combine [add, max]
          (%b = %B[k] : tensor<3xi1>) -> tensor<i1>, tensor<i1> { te.yield %b, %b : i1, i1 }
      func.return %S, %X, %M : tensor<i8>, tensor<i1>, tensor<i1>
    }"""
    actual = evaluate(text, np.array([100, 100, 100], np.int8), np.array([True, False, True]))
    assert [value.item() for value in actual] == [300 - 256, False, False]


def test_index_values() -> None:
    text = """
    func.func @f() -> tensor<2x3xi32> {
      %I = te.compute "I" [i = 2, j = 3] () -> tensor<2x3xi32> {
        %0 = te.index "i" : index
        %1 = te.index "j" : index
        %c = arith.constant 10 : index
        %2 = arith.muli %0, %c : index
        %3 = arith.addi %2, %1 : index
        %4 = arith.index_cast %3 : index to i32
        te.yield %4 : i32
      }
      func.return %I : tensor<2x3xi32>
    }"""
    np.testing.assert_array_equal(evaluate(text)[0], [[0, 1, 2], [10, 11, 12]])


def test_strided_and_folded_reads() -> None:
    text = """
    func.func @f(%A: tensor<12xf32>) -> (tensor<2x3xf32>, tensor<12xf32>) {
      %R = te.compute "R" [i = 2, j = 3] (%a = %A[i * 6 + j * 2 + 1] : tensor<12xf32>) -> tensor<2x3xf32> {
        te.yield %a : f32 }
      %F = te.compute "F" [i = 12] (%a = %R[i floordiv 6, i mod 3] : tensor<2x3xf32>) -> tensor<12xf32> {
        te.yield %a : f32 }
      func.return %R, %F : tensor<2x3xf32>, tensor<12xf32>
    }"""
    a = floats(12)
    strided, folded = evaluate(text, a)
    np.testing.assert_array_equal(strided, a[1::2].reshape(2, 3))
    np.testing.assert_array_equal(folded, [strided[i // 6, i % 3] for i in range(12)])


def test_a_returned_argument_is_a_copy() -> None:
    text = "func.func @f(%A: tensor<2xf32>) -> tensor<2xf32> { func.return %A : tensor<2xf32> }"
    a = floats(2)
    (output,) = evaluate(text, a)
    assert output is not a and not np.shares_memory(output, a)
    np.testing.assert_array_equal(output, a)


@pytest.mark.parametrize(
    "inputs, words",
    [
        ([floats(4, 8)], "takes 2 inputs, not 1"),
        ([floats(4, 8), floats(6, 8)], "'B' is tensor<8x6xf32>, not an array of shape .6, 8."),
        ([floats(4, 8), floats(8, 6).astype(np.float64)], "dtype float64"),
    ],
)
def test_wrong_inputs_are_refused_in_words(inputs: list[Array], words: str) -> None:
    with pytest.raises(InputError, match=words):
        te.evaluate(parse(MATMUL), inputs)


def test_a_read_out_of_bounds_is_refused_even_unverified() -> None:
    for index in ("i - 1", "i + 1"):
        text = f"""
        func.func @f(%A: tensor<4xf32>) -> tensor<4xf32> {{
          %B = te.compute "B" [i = 4] (%a = %A[{index}] : tensor<4xf32>) -> tensor<4xf32> {{
            te.yield %a : f32 }}
          func.return %B : tensor<4xf32>
        }}"""
        with pytest.raises(TeError, match=r"'B' reads a tensor of shape \(4,\) outside its dimension 0"):
            te.evaluate(parse(text), [floats(4)])


def test_an_op_without_meaning_is_refused() -> None:
    with pytest.raises(InputError, match=r"no meaning for the op 'arith.addui_extended'"):
        body = "%r, %o = arith.addui_extended %0, %1 : i32, i1"
        ones = np.ones(2, np.int32)
        one_op(body, ones, ones, types="i32 i32", result="i32")


LEAST = -(2**31)


@pytest.mark.parametrize(
    "op, type_, left, right, expected",
    [
        ("arith.addi", "i32", [2**31 - 1], [1], [LEAST]),
        ("arith.subi", "i8", [-128], [1], [127]),
        ("arith.muli", "i32", [2**30], [6], [LEAST]),
        ("arith.addi", "i1", [1, 1, 0], [1, 0, 0], [False, True, False]),
        ("arith.divsi", "i32", [-7, 7, -7, 6], [2, -2, -2, 3], [-3, -3, 3, 2]),
        ("arith.floordivsi", "i32", [-7, 7, -7, 6], [2, -2, -2, 3], [-4, -4, 3, 2]),
        ("arith.ceildivsi", "i32", [-7, 7, -7, 6], [2, 2, -2, 3], [-3, 4, 4, 2]),
        ("arith.remsi", "i32", [-7, 7, -7], [3, -3, -3], [-1, 1, -1]),
        ("arith.divui", "i32", [-2, 7], [2, 2], [2**31 - 1, 3]),
        ("arith.remui", "i8", [-1, 7], [10, 4], [5, 3]),
        ("arith.ceildivui", "i8", [-1, 8], [2, 4], [-128, 2]),
        ("arith.maxsi", "i32", [-1, 3], [1, 2], [1, 3]),
        ("arith.minsi", "i1", [1, 1, 0], [0, 1, 0], [True, True, False]),
        ("arith.maxui", "i32", [-1, 3], [1, 2], [-1, 3]),
        ("arith.minui", "i1", [1, 1], [0, 1], [False, True]),
        ("arith.andi", "i8", [12], [10], [8]),
        ("arith.ori", "i1", [1, 0], [0, 0], [True, False]),
        ("arith.xori", "i8", [12], [-1], [-13]),
        ("arith.shli", "i8", [1, 3], [7, 1], [-128, 6]),
        ("arith.shrsi", "i8", [-128, 6], [1, 1], [-64, 3]),
        ("arith.shrui", "i8", [-128, 6], [1, 1], [64, 3]),
        ("math.ipowi", "i32", [3, 2, 1, -1, -1, 5], [3, 31, -4, -3, -2, -1], [27, LEAST, 1, -1, 1, 0]),
        ("arith.divf", "f32", [1.0, -1.0], [0.0, 4.0], [math.inf, -0.25]),
        ("arith.remf", "f32", [1e20, -1.0, -2.0], [3.0, math.inf, 1.0], [2.0, -1.0, -0.0]),
        ("math.atan2", "f32", [0.0], [-1.0], [float(np.float32(np.pi))]),
        ("math.copysign", "f32", [3.0], [-0.0], [-3.0]),
        ("math.powf", "f32", [2.0], [-2.0], [0.25]),
    ],
)
def test_binary_ops(op: str, type_: str, left: list[Any], right: list[Any], expected: list[Any]) -> None:
    assert pairs(op, type_, left, right) == expected


def test_maxima_of_nan_and_of_signed_zeros() -> None:
    nan = math.nan
    left, right = [nan, 1.0, 0.0, -0.0, -0.0, -1.0], [1.0, nan, -0.0, 0.0, -0.0, 0.0]
    propagated = [nan, nan, 0.0, 0.0, -0.0, 0.0]
    assert str(pairs("arith.maximumf", "f32", left, right)) == str(propagated)
    least = [nan, nan, -0.0, -0.0, -0.0, -1.0]
    assert str(pairs("arith.minimumf", "f32", left, right)) == str(least)
    assert pairs("arith.maxnumf", "f32", left, right)[:2] == [1.0, 1.0]
    assert pairs("arith.minnumf", "f32", left, right)[:2] == [1.0, 1.0]


@pytest.mark.parametrize(
    "predicate, less, equal, greater, signs",
    [  # 1 ? 2, 2 ? 2, 3 ? 2, -1 ? 1
        ("eq", False, True, False, False),
        ("ne", True, False, True, True),
        ("slt", True, False, False, True),
        ("sle", True, True, False, True),
        ("sgt", False, False, True, False),
        ("sge", False, True, True, False),
        ("ult", True, False, False, False),
        ("ule", True, True, False, False),
        ("ugt", False, False, True, True),
        ("uge", False, True, True, True),
    ],
)
def test_integer_comparisons(predicate: str, less: bool, equal: bool, greater: bool, signs: bool) -> None:
    op = f"arith.cmpi {predicate},"
    assert pairs(op, "i32", [1, 2, 3, -1], [2, 2, 2, 1]) == [less, equal, greater, signs]
    assert pairs(op, "i1", [1, 1], [1, 0]) == [equal, signs]


@pytest.mark.parametrize(
    "predicate, expected",
    [  # 1 ? 2, 2 ? 2, 3 ? 2, nan ? 2
        ("false", "0000"),
        ("oeq", "0100"),
        ("ogt", "0010"),
        ("oge", "0110"),
        ("olt", "1000"),
        ("ole", "1100"),
        ("one", "1010"),
        ("ord", "1110"),
        ("ueq", "0101"),
        ("ugt", "0011"),
        ("uge", "0111"),
        ("ult", "1001"),
        ("ule", "1101"),
        ("une", "1011"),
        ("uno", "0001"),
        ("true", "1111"),
    ],
)
def test_float_comparisons(predicate: str, expected: str) -> None:
    actual = pairs(f"arith.cmpf {predicate},", "f32", [1, 2, 3, math.nan], [2, 2, 2, 2])
    assert "".join(str(int(v)) for v in actual) == expected


def test_select() -> None:
    condition, left, right = np.array([True, False]), floats(2), floats(2) + 1
    body = "%r = arith.select %0, %1, %2 : f32"
    actual = one_op(body, condition, left, right, types="i1 f32 f32", result="f32")
    np.testing.assert_array_equal(actual, [left[0], right[1]])


@pytest.mark.parametrize(
    "op, source, target, values, expected",
    [
        ("sitofp", "i32", "f32", np.array([-3, 2**24 + 1], "i4"), [-3.0, 2.0**24]),
        ("sitofp", "i1", "f32", np.array([True, False]), [-1.0, 0.0]),
        ("uitofp", "i1", "f32", np.array([True, False]), [1.0, 0.0]),
        ("uitofp", "i8", "f32", np.array([-1, 5], "i1"), [255.0, 5.0]),
        ("fptosi", "f32", "i32", np.array([-2.9, 2.9], "f4"), [-2, 2]),
        ("fptoui", "f32", "i8", np.array([200.7, 2.9], "f4"), [-56, 2]),
        ("extf", "f32", "f64", np.array([0.1], "f4"), [float(np.float32(0.1))]),
        ("truncf", "f64", "f32", np.array([0.1], "f8"), [float(np.float32(0.1))]),
        ("extsi", "i8", "i32", np.array([-1], "i1"), [-1]),
        ("extsi", "i1", "i32", np.array([True, False]), [-1, 0]),
        ("extui", "i8", "i32", np.array([-1], "i1"), [255]),
        ("extui", "i1", "i32", np.array([True, False]), [1, 0]),
        ("trunci", "i32", "i8", np.array([300, -129], "i4"), [44, 127]),
        ("trunci", "i32", "i1", np.array([2, -1], "i4"), [False, True]),
        ("index_cast", "index", "i32", np.array([2**32 + 5], "i8"), [5]),
        ("index_cast", "i32", "index", np.array([-5], "i4"), [-5]),
        ("bitcast", "f32", "i32", np.array([1.0], "f4"), [0x3F800000]),
    ],
)
def test_casts(op: str, source: str, target: str, values: Array, expected: list[Any]) -> None:
    assert cast(op, source, target, values).tolist() == expected


def test_rounding_functions() -> None:
    values = [-2.5, -0.4, 0.49999997, 0.5, 1.5, 2.5]
    for op, expected in (
        ("math.floor", [-3.0, -1.0, 0.0, 0.0, 1.0, 2.0]),
        ("math.ceil", [-2.0, -0.0, 1.0, 1.0, 2.0, 3.0]),
        ("math.trunc", [-2.0, -0.0, 0.0, 0.0, 1.0, 2.0]),
        ("math.round", [-3.0, -0.0, 0.0, 1.0, 2.0, 3.0]),
        ("math.roundeven", [-2.0, -0.0, 0.0, 0.0, 2.0, 2.0]),
    ):
        assert str(unary(op, values).tolist()) == str(expected), op


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh", "sin", "cos", "log1p", "expm1", "erf", "erfc"])
def test_functions_stay_in_their_type(name: str) -> None:
    values = [0.25, 0.5, 2.0]
    actual = unary(f"math.{name}", values)
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, [getattr(math, name)(v) for v in values], rtol=1e-6)


def test_absolute_value_negation_and_reciprocal_root() -> None:
    assert unary("math.absf", [-1.5, 2.0]).tolist() == [1.5, 2.0]
    assert unary("math.rsqrt", [4.0]).tolist() == [0.5]
    assert str(unary("arith.negf", [0.0, -2.0]).tolist()) == "[-0.0, 2.0]"
    values = np.array([-5, 5, LEAST], np.int32)
    assert one_op("%r = math.absi %0 : i32", values, types="i32", result="i32").tolist() == [5, 5, LEAST]


def test_fma_rounds_once() -> None:
    x = np.array([1 + 2.0**-12], np.float32)
    c = -(x * x)
    actual = one_op("%r = math.fma %0, %0, %1 : f32", x, c, types="f32 f32", result="f32")
    assert actual == np.float32(2.0**-24)


@pytest.mark.parametrize("op, expected", [("ctpop", [0, 1, 8]), ("ctlz", [8, 3, 0]), ("cttz", [8, 4, 0])])
def test_bit_counts(op: str, expected: list[int]) -> None:
    values = np.array([0, 16, -1], np.int8)
    assert one_op(f"%r = math.{op} %0 : i8", values, types="i8", result="i8").tolist() == expected


def test_a_te_function_and_a_schedule_are_taken_as_they_are() -> None:
    A = strata.te.placeholder((4, 3), name="A")
    f = strata.te.function("f", [A], strata.te.nn.neg(A))
    a, result = np.arange(12, dtype=np.float32).reshape(4, 3), np.empty((4, 3), np.float32)
    np.testing.assert_array_equal(strata.interpret.evaluate(f, [a])[0], -a)
    schedule = strata.Schedule(f)
    schedule.reverse(schedule.get_loops(schedule.get_block(next(iter(schedule.program.blocks))))[0])
    strata.interpret.run(schedule, [a, result])
    np.testing.assert_array_equal(result, -a)
    for call in (strata.interpret.evaluate, strata.interpret.run):
        with pytest.raises(InputError, match="expected a module, a te function or a Schedule, not a int"):
            call(3, [a])  # type: ignore[arg-type, operator]
