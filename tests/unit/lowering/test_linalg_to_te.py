"""linalg -> te: ops without a row in the tables against numpy, initial values, combiners, constants, the doors in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strata
from compiler.analysis.combiners import check_combiners
from compiler.interpret.te import evaluate
from compiler.pipeline.source import parse
from compiler.support.errors import LoweringError

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)
A, B = (RANDOM.uniform(-2, 2, (4, 8)).astype(np.float32) for _ in range(2))
TYPES = {"f32": "tensor<4x8xf32>", "i1": "tensor<4x8xi1>", "i32": "tensor<4x8xi32>"}
MAP = "affine_map<(d0, d1) -> (d0, d1)>"


def computed(
    result: str, body: str, *arrays: Array, arguments: str = "%A: tensor<4x8xf32>, %B: tensor<4x8xf32>"
) -> Array:
    """The value of a function's %0, whose type is `result`, by the evaluator of te."""
    text = f"func.func @f({arguments}) -> {result} {{\n{body}\n  return %0 : {result}\n}}"
    (value,) = evaluate(parse(text), arrays or (A, B))
    return value


def slice_of(source: str, kind: str) -> str:
    return f"  %0 = tensor.extract_slice %A{source} : tensor<4x8xf32> to {kind}"


def inserted() -> Array:
    expected = B.copy()
    expected[1::2, 2:6] = A[:2, :4]
    return expected


CASES: dict[str, tuple[str, str, Array]] = {
    "arith": ("tensor<4x8xf32>", "  %0 = arith.subf %A, %B : tensor<4x8xf32>", A - B),
    "math": ("tensor<4x8xf32>", "  %0 = math.exp %A : tensor<4x8xf32>", np.exp(A)),
    "compare": ("tensor<4x8xi1>", "  %0 = arith.cmpf ogt, %A, %B : tensor<4x8xf32>", A > B),
    "select": (
        "tensor<4x8xf32>",
        "  %c = arith.cmpf ogt, %A, %B : tensor<4x8xf32>\n"
        "  %0 = arith.select %c, %A, %B : tensor<4x8xi1>, tensor<4x8xf32>",
        np.maximum(A, B),
    ),
    "cast": (
        "tensor<4x8xi32>",
        "  %0 = arith.fptosi %A : tensor<4x8xf32> to tensor<4x8xi32>",
        np.trunc(A).astype(np.int32),
    ),
    "slice": ("tensor<2x4xf32>", slice_of("[1, 0] [2, 4] [2, 2]", "tensor<2x4xf32>"), A[1::2, ::2]),
    "row": ("tensor<8xf32>", slice_of("[2, 0] [1, 8] [1, 1]", "tensor<8xf32>"), A[2]),
    "column kept": ("tensor<4x1xf32>", slice_of("[0, 3] [4, 1] [1, 1]", "tensor<4x1xf32>"), A[:, 3:4]),
    "element": ("tensor<f32>", slice_of("[2, 3] [1, 1] [1, 1]", "tensor<f32>"), A[2, 3]),
    "insert": (
        "tensor<4x8xf32>",
        slice_of("[0, 0] [2, 4] [1, 1]", "tensor<2x4xf32>").replace("%0", "%s")
        + "\n  %0 = tensor.insert_slice %s into %B[1, 2] [2, 4] [2, 1] : tensor<2x4xf32> into tensor<4x8xf32>",
        inserted(),
    ),
    "insert all": (
        "tensor<4x8xf32>",
        "  %e = tensor.empty() : tensor<4x8xf32>\n"
        "  %0 = tensor.insert_slice %A into %e[0, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<4x8xf32>",
        A,
    ),
    "insert row": (
        "tensor<4x8xf32>",
        slice_of("[2, 0] [1, 8] [1, 1]", "tensor<8xf32>").replace("%0", "%s")
        + "\n  %0 = tensor.insert_slice %s into %B[1, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>",
        np.concatenate([B[:1], A[2:3], B[2:]]),
    ),
    "pad": (
        "tensor<7x9xf32>",
        "  %c = arith.constant -1.5 : f32\n"
        "  %0 = tensor.pad %A low[1, 0] high[2, 1] {\n  ^bb0(%i: index, %j: index):\n    tensor.yield %c : f32\n"
        "  } : tensor<4x8xf32> to tensor<7x9xf32>",
        np.pad(A, [(1, 2), (0, 1)], constant_values=-1.5),
    ),
    "collapse": (
        "tensor<32xf32>",
        "  %0 = tensor.collapse_shape %A [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>",
        A.reshape(32),
    ),
    "expand": (
        "tensor<2x2x8xf32>",
        "  %0 = tensor.expand_shape %A [[0, 1], [2]] output_shape [2, 2, 8] : tensor<4x8xf32> into tensor<2x2x8xf32>",
        A.reshape(2, 2, 8),
    ),
    "concat": (
        "tensor<4x16xf32>",
        "  %0 = tensor.concat dim(1) %A, %B : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>",
        np.concatenate([A, B], 1),
    ),
    "splat": (
        "tensor<3xf32>",
        "  %c = arith.constant 2.5 : f32\n  %0 = tensor.splat %c : tensor<3xf32>",
        np.full(3, 2.5, np.float32),
    ),
    "splat of an element": (
        "tensor<3xf32>",
        "  %i = arith.constant 3 : index\n  %c = tensor.extract %A[%i, %i] : tensor<4x8xf32>\n"
        "  %d = arith.addf %c, %c : f32\n  %0 = tensor.splat %d : tensor<3xf32>",
        np.full(3, 2 * A[3, 3], np.float32),
    ),
    "elements": (
        "tensor<2x2xi64>",
        "  %a = arith.constant 7 : i64\n  %b = arith.constant -7 : i64\n"
        "  %0 = tensor.from_elements %a, %b, %b, %a : tensor<2x2xi64>",
        np.array([[7, -7], [-7, 7]]),
    ),
    "dim": (
        "tensor<index>",
        "  %i = arith.constant 1 : index\n  %d = tensor.dim %A, %i : tensor<4x8xf32>\n"
        "  %0 = tensor.splat %d : tensor<index>",
        np.array(8),
    ),
    "softmax": (
        "tensor<4x8xf32>",
        "  %e = tensor.empty() : tensor<4x8xf32>\n"
        "  %0 = linalg.softmax dimension(0) ins(%A : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>",
        np.exp(A) / np.exp(A).sum(0, keepdims=True),
    ),
    "transpose": (
        "tensor<8x4xf32>",
        "  %e = tensor.empty() : tensor<8x4xf32>\n"
        "  %0 = linalg.transpose ins(%A : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]",
        A.T,
    ),
    "broadcast": (
        "tensor<4x3x8xf32>",
        "  %e = tensor.empty() : tensor<4x3x8xf32>\n"
        "  %0 = linalg.broadcast ins(%A : tensor<4x8xf32>) outs(%e : tensor<4x3x8xf32>) dimensions = [1]",
        np.repeat(A[:, None], 3, 1),
    ),
    "map": (
        "tensor<4x8xf32>",
        "  %e = tensor.empty() : tensor<4x8xf32>\n"
        "  %0 = linalg.map { arith.divf } ins(%A, %B : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>)",
        A / B,
    ),
    "index": (
        "tensor<4x8xf32>",
        f"  %0 = linalg.generic {{indexing_maps = [{MAP}, {MAP}], iterator_types = ['parallel', 'parallel']}}".replace(
            "'", '"'
        )
        + " ins(%A : tensor<4x8xf32>) outs(%B : tensor<4x8xf32>) {\n  ^bb0(%a: f32, %o: f32):\n"
        "    %i = linalg.index 1 : index\n    %j = arith.index_cast %i : index to i32\n"
        "    %k = arith.sitofp %j : i32 to f32\n    %r = arith.addf %k, %o : f32\n    linalg.yield %r : f32\n"
        "  } -> tensor<4x8xf32>",
        B + np.arange(8, dtype=np.float32),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_ops_without_a_row_compute_what_mlir_states(name: str) -> None:
    result, body, expected = CASES[name]
    value = computed(result, body)
    assert value.dtype == expected.dtype and value.shape == expected.shape
    np.testing.assert_allclose(value, expected, rtol=1e-6)


def reduced(op: str, element: str, init: str, array: Array) -> Array:
    """The result of linalg.reduce over the second dimension by an op, from an initial value."""
    kind = f"tensor<4x8x{element}>"
    body = (
        f"  %i = arith.constant dense<{init}> : tensor<4x{element}>\n"
        f"  %0 = linalg.reduce {{ arith.{op} }} ins(%A : {kind}) outs(%i : tensor<4x{element}>) dimensions = [1]"
    )
    text = f"func.func @f(%A: {kind}) -> tensor<4x{element}> {{\n{body}\n  return %0 : tensor<4x{element}>\n}}"
    module = parse(text)
    check_combiners(module)
    (value,) = evaluate(module, [array])
    kernel = strata.build(module, threads=1)
    np.testing.assert_allclose(kernel(array), value, rtol=1e-6)
    return value


I = RANDOM.integers(-100, 100, (4, 8)).astype(np.int32)
U = I.view(np.uint32)
REDUCTIONS: dict[str, tuple[str, str, str, Array, Array]] = {
    "addf": ("addf", "f32", "0.0", A, A.sum(1)),
    "addf from 2": ("addf", "f32", "2.0", A, A.sum(1) + 2),
    "mulf": ("mulf", "f32", "1.0", A, A.prod(1)),
    "subf": ("subf", "f32", "0.0", A, -A.sum(1)),
    "subf from 1": ("subf", "f32", "1.0", A, 1 - A.sum(1)),
    "maximumf": ("maximumf", "f32", "0xFF800000", A, A.max(1)),
    "maximumf from 1": ("maximumf", "f32", "1.0", A, np.maximum(A.max(1), 1)),
    "maxnumf": ("maxnumf", "f32", "0xFF800000", A, A.max(1)),
    "minnumf from -1": ("minnumf", "f32", "-1.0", A, np.minimum(A.min(1), -1)),
    "addi": ("addi", "i32", "0", I, I.sum(1)),
    "subi from 1": ("subi", "i32", "1", I, 1 - I.sum(1)),
    "minsi": ("minsi", "i32", "2147483647", I, I.min(1)),
    "maxui": ("maxui", "i32", "0", I, U.max(1).view(np.int32)),
    "minui from 9": ("minui", "i32", "9", I, np.minimum(U.min(1), 9).view(np.int32)),
    "andi": ("andi", "i32", "-1", I, np.bitwise_and.reduce(I, 1)),
    "ori from 8": ("ori", "i32", "8", I, np.bitwise_or.reduce(I, 1) | 8),
    "xori": ("xori", "i32", "0", I, np.bitwise_xor.reduce(I, 1)),
    "ori of i1": ("ori", "i1", "false", A > 1.5, (A > 1.5).any(1)),
    "andi of i1": ("andi", "i1", "true", A > -1.5, (A > -1.5).all(1)),
    "addi of i1": ("addi", "i1", "false", A > 0, np.logical_xor.reduce(A > 0, 1)),
    "addi of i1 from true": ("addi", "i1", "true", A > 0, ~np.logical_xor.reduce(A > 0, 1)),
    "muli of i1": ("muli", "i1", "true", A > -1.5, (A > -1.5).all(1)),
    "maxsi of i1": ("maxsi", "i1", "true", A > -1.5, (A > -1.5).all(1)),
    "minsi of i1": ("minsi", "i1", "false", A > 1.5, (A > 1.5).any(1)),
}


@pytest.mark.parametrize("start", [np.nan, -np.inf, 0.5])
@pytest.mark.parametrize("op", ["maxnumf", "minnumf"])
def test_rows_of_nan_are_the_start(op: str, start: float) -> None:
    text = f"""func.func @f(%A: tensor<4x8xf32>, %I: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = linalg.reduce {{ arith.{op} }} ins(%A : tensor<4x8xf32>) outs(%I : tensor<4xf32>) dimensions = [1]
  return %0 : tensor<4xf32>
}}"""
    module, array, starts = parse(text), A.copy(), np.full(4, start, np.float32)
    array[1], array[2, 3] = np.nan, np.nan
    check_combiners(module)
    fold = np.fmax if op == "maxnumf" else np.fmin
    expected = fold(fold.reduce(array, 1), starts)
    np.testing.assert_array_equal(evaluate(module, [array, starts])[0], expected)
    np.testing.assert_array_equal(strata.build(module, threads=1)(array, starts), expected)


@pytest.mark.sampled
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_from_neutral_and_other_initial_values(name: str) -> None:
    op, element, init, array, expected = REDUCTIONS[name]
    np.testing.assert_allclose(reduced(op, element, init, array), expected, rtol=1e-5)


GENERIC = (
    f"linalg.generic {{indexing_maps = [{MAP}, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], "
    'iterator_types = ["parallel", "reduction"]}'
)
EXTREMA = {
    "ogt, %a, %v": ("%j, %i", lambda a, v: a > v),
    "oge, %a, %v": ("%j, %i", lambda a, v: a >= v),
    "olt, %a, %v": ("%j, %i", lambda a, v: a < v),
    "ole, %v, %a": ("%i, %j", lambda a, v: not v <= a),
    "ogt, %v, %a": ("%i, %j", lambda a, v: not v > a),
    "olt, %v, %a": ("%j, %i", lambda a, v: v < a),
}


@pytest.mark.parametrize("start", ["0xFF800000", "0x7F800000", "1.0"])
@pytest.mark.parametrize("compared", EXTREMA)
def test_an_extremum_with_its_index_takes_the_one_of_mlirs_loops(compared: str, start: str) -> None:
    order, takes = EXTREMA[compared]
    values = order.replace("%j", "%a").replace("%i", "%v")
    text = f"""func.func @f(%A: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xi32>) {{
  %s = arith.constant dense<{start}> : tensor<4xf32>
  %z = arith.constant dense<-7> : tensor<4xi32>
  %B:2 = {GENERIC} ins(%A : tensor<4x8xf32>) outs(%s, %z : tensor<4xf32>, tensor<4xi32>) {{
  ^bb0(%a: f32, %v: f32, %i: i32):
    %k = linalg.index 1 : index
    %j = arith.index_cast %k : index to i32
    %c = arith.cmpf {compared} : f32
    %w = arith.select %c, {values} : f32
    %n = arith.select %c, {order} : i32
    linalg.yield %w, %n : f32, i32
  }} -> (tensor<4xf32>, tensor<4xi32>)
  return %B#0, %B#1 : tensor<4xf32>, tensor<4xi32>
}}"""
    array = RANDOM.integers(-2, 3, (4, 8)).astype(np.float32)
    array[0] = {"0xFF800000": -np.inf, "0x7F800000": np.inf, "1.0": 1.0}[start]
    module = parse(text)
    check_combiners(module)
    for row, value, index in zip(array, *evaluate(module, [array]), strict=True):
        best, at = array[0, 0], -7
        for k, element in enumerate(row):
            if takes(element, best):
                best, at = element, k
        assert (value, index) == (best, at)


def test_the_bytes_of_resources_are_constants() -> None:
    elements = np.arange(80, dtype="<f4")
    text = (
        "func.func @f(%A: tensor<80xf32>) -> tensor<80xf32> {\n"
        "  %w = arith.constant dense_resource<big> : tensor<80xf32>\n"
        "  %0 = arith.addf %A, %w : tensor<80xf32>\n  return %0 : tensor<80xf32>\n}\n"
        f'{{-# dialect_resources: {{ builtin: {{ big: "0x04000000{elements.tobytes().hex()}" }} }} #-}}'
    )
    (value,) = evaluate(parse(text), [np.ones(80, np.float32)])
    np.testing.assert_array_equal(value, elements + 1)


TEXT = """func.func @f(%A: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %A : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def test_every_door_takes_linalg(tmp_path: Path) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(TEXT)
    array = np.ones(4, np.float32)
    for program in (TEXT, file, str(file)):
        np.testing.assert_allclose(strata.build(program, threads=1)(array), np.exp(array), rtol=1e-6)
        assert "loop.block" in str(strata.lower(program))


def test_a_refusal_has_the_op() -> None:
    text = TEXT.replace("return", "%1 = tensor.cast %0 : tensor<4xf32> to tensor<*xf32>\n  return")
    with pytest.raises(LoweringError) as refusal:
        parse(text)
    assert "tensor.cast" in str(refusal.value.op)
