"""linalg -> te: programs as torch-mlir, IREE and MLIR's own tests write them, against numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.analysis.combiners import check_combiners
from compiler.dialects.functions import functions
from compiler.interpret.te import evaluate
from compiler.pipeline.source import parse
from tools import linalg_share

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(0)
A, B = (RANDOM.uniform(-2, 2, (7, 4)).astype(np.float32) for _ in range(2))
X = np.float32(3.5)


def packed() -> Array:
    """A in tiles of 4 x 2, the outer dimensions in the other order."""
    padded = np.pad(A, [(0, 1), (0, 0)], constant_values=X)
    return padded.reshape(2, 4, 2, 2).transpose(2, 0, 1, 3)


def inserted(at: tuple[int, int]) -> Array:
    expected = A.copy()
    expected[at] = X
    return expected


CASES: dict[str, tuple[str, Array]] = {
    "one element of rank 0": (
        "%e = tensor.extract_slice %A[0, 0] [1, 1] [1, 1] : tensor<7x4xf32> to tensor<f32>\n"
        "%y = tensor.expand_shape %e [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32>\n"
        "%z = tensor.collapse_shape %y [] : tensor<1x1xf32> into tensor<f32>\n"
        "%0 = linalg.broadcast ins(%z : tensor<f32>) outs(%e : tensor<f32>) dimensions = []",
        A[0, 0],
    ),
    "a static result of a padding by operands": (
        "%two = arith.constant 2 : index\n%0 = tensor.pad %A low[%two, 0] high[0, 1] {\n"
        "^bb0(%i: index, %j: index):\n  tensor.yield %x : f32\n} : tensor<7x4xf32> to tensor<9x5xf32>",
        np.pad(A, [(2, 0), (0, 1)], constant_values=X),
    ),
    "a shape that a cast leaves open": (
        "%c = tensor.cast %A : tensor<7x4xf32> to tensor<?x4xf32>\n"
        "%0 = linalg.add ins(%c, %B : tensor<?x4xf32>, tensor<7x4xf32>) outs(%A : tensor<7x4xf32>) -> tensor<7x4xf32>",
        A + B,
    ),
    "extents in index arithmetic": (
        "%one = arith.constant 1 : index\n%two = arith.constant 2 : index\n"
        "%c = tensor.cast %A : tensor<7x4xf32> to tensor<?x?xf32>\n"
        "%n = tensor.dim %c, %one : tensor<?x?xf32>\n%h = arith.divui %n, %two : index\n"
        "%m = affine.min affine_map<(d0)[s0] -> (d0 + s0, 100)>(%h)[%one]\n"
        "%s = tensor.extract_slice %c[%h, 0] [%m, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>\n"
        "%e = tensor.empty(%m, %n) : tensor<?x?xf32>\n"
        "%r = linalg.exp ins(%s : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>\n"
        "%0 = tensor.cast %r : tensor<?x?xf32> to tensor<3x4xf32>",
        np.exp(A[2:5]),
    ),
    "an open shape collapsed, expanded and padded": (
        "%z = arith.constant 0.0 : f32\n%two = arith.constant 2 : index\n"
        "%c = tensor.cast %A : tensor<7x4xf32> to tensor<?x4xf32>\n"
        "%l = tensor.collapse_shape %c [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>\n"
        "%y = tensor.expand_shape %l [[0, 1]] output_shape [%two, 14] : tensor<?xf32> into tensor<?x14xf32>\n"
        "%0 = tensor.pad %y low[0, %two] high[1, 0] {\n^bb0(%i: index, %j: index):\n  tensor.yield %z : f32\n"
        "} : tensor<?x14xf32> to tensor<?x?xf32>",
        np.pad(A.reshape(2, 14), [(0, 1), (2, 0)]),
    ),
    "a rank-reducing slice of an open shape": (
        "%one = arith.constant 1 : index\n%four = arith.constant 4 : index\n"
        "%0 = tensor.extract_slice %A[%one, 0] [1, %four] [1, 1] : tensor<7x4xf32> to tensor<?xf32>",
        A[1],
    ),
    "a slice into an open shape": (
        "%two = arith.constant 2 : index\n%c = tensor.cast %B : tensor<7x4xf32> to tensor<?x?xf32>\n"
        "%s = tensor.extract_slice %A[0, 0] [2, 4] [1, 1] : tensor<7x4xf32> to tensor<2x4xf32>\n"
        "%0 = tensor.insert_slice %s into %c[%two, 0] [%two, 4] [1, 1] : tensor<2x4xf32> into tensor<?x?xf32>",
        np.concatenate([B[:2], A[:2], B[4:]]),
    ),
    "halves into an empty tensor": (
        "%e = tensor.empty() : tensor<14x4xf32>\n"
        "%h = tensor.insert_slice %A into %e[7, 0] [7, 4] [1, 1] : tensor<7x4xf32> into tensor<14x4xf32>\n"
        "%0 = tensor.insert_slice %B into %h[0, 0] [7, 4] [1, 1] : tensor<7x4xf32> into tensor<14x4xf32>",
        np.concatenate([B, A]),
    ),
    "a scalar argument": ("%s = tensor.splat %x : tensor<7x4xf32>\n%0 = arith.mulf %A, %s : tensor<7x4xf32>", A * X),
    "padding by an argument": (
        "%0 = tensor.pad %A low[1, 0] high[0, 2] {\n^bb0(%i: index, %j: index):\n  tensor.yield %x : f32\n"
        "} : tensor<7x4xf32> to tensor<8x6xf32>",
        np.pad(A, [(1, 0), (0, 2)], constant_values=X),
    ),
    "no padding by an argument": (
        "%0 = tensor.pad %A low[0, 0] high[0, 0] {\n^bb0(%i: index, %j: index):\n  tensor.yield %x : f32\n"
        "} : tensor<7x4xf32> to tensor<7x4xf32>",
        A,
    ),
    "an element inserted": (
        "%i = arith.constant 5 : index\n%j = arith.constant 1 : index\n"
        "%0 = tensor.insert %x into %A[%i, %j] : tensor<7x4xf32>",
        inserted((5, 1)),
    ),
    "an element inserted into rank 0": (
        "%e = tensor.empty() : tensor<f32>\n%0 = tensor.insert %x into %e[] : tensor<f32>",
        np.array(X),
    ),
    "elements that are computed": (
        "%i = arith.constant 3 : index\n%a = tensor.extract %A[%i, %i] : tensor<7x4xf32>\n"
        "%c = arith.constant 9.0 : f32\n%0 = tensor.from_elements %a, %x, %c, %a : tensor<2x2xf32>",
        np.array([[A[3, 3], X], [9, A[3, 3]]], np.float32),
    ),
    "a tensor allocated": (
        "%e = bufferization.alloc_tensor() : tensor<7x4xf32>\n"
        "%0 = linalg.copy ins(%A : tensor<7x4xf32>) outs(%e : tensor<7x4xf32>) -> tensor<7x4xf32>",
        A,
    ),
    "an assertion": ('%t = arith.constant true\ncf.assert %t, "holds"\n%0 = arith.negf %A : tensor<7x4xf32>', -A),
    "a body with an extent": (
        "%e = tensor.empty() : tensor<4xf32>\n%one = arith.constant 1 : index\n"
        '%0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}'
        " outs(%e : tensor<4xf32>) {\n^bb0(%o: f32):\n  %n = tensor.dim %A, %one : tensor<7x4xf32>\n"
        "  %i = linalg.index 0 : index\n  %k = arith.subi %n, %one : index\n  %j = arith.subi %k, %i : index\n"
        "  %a = tensor.extract %A[%one, %j] : tensor<7x4xf32>\n  %h = arith.index_cast %n : index to i32\n"
        "  %f = arith.sitofp %h : i32 to f32\n  %s = arith.addf %a, %f : f32\n  linalg.yield %s : f32\n"
        "} -> tensor<4xf32>",
        A[1, ::-1] + 4,
    ),
    "a short body with properties": (
        "%i = arith.fptosi %A : tensor<7x4xf32> to tensor<7x4xi32>\n%z = arith.constant dense<0> : tensor<7xi32>\n"
        "%0 = linalg.reduce { arith.addi {overflowFlags = #arith.overflow<none>} } ins(%i : tensor<7x4xi32>)"
        " outs(%z : tensor<7xi32>) dimensions = [1] -> tensor<7xi32>",
        np.trunc(A).astype(np.int32).sum(1, dtype=np.int32),
    ),
    "truth values in the bits of a string": (
        '%m = arith.constant dense<"0x050301"> : tensor<17xi1>\n%n = arith.constant dense<"0xFF"> : tensor<17xi1>\n'
        "%0 = arith.andi %m, %n : tensor<17xi1>",
        np.unpackbits(np.array([5, 3, 1], np.uint8), bitorder="little")[:17].astype(bool),
    ),
    "a packed tensor": (
        "%e = tensor.empty() : tensor<2x2x4x2xf32>\n"
        "%0 = linalg.pack %A padding_value(%x : f32) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1]"
        " inner_tiles = [4, 2] into %e : tensor<7x4xf32> -> tensor<2x2x4x2xf32>",
        packed(),
    ),
    "one dimension packed": (
        "%e = tensor.empty() : tensor<7x2x2xf32>\n"
        "%0 = linalg.pack %A inner_dims_pos = [1] inner_tiles = [2] into %e : tensor<7x4xf32> -> tensor<7x2x2xf32>",
        A.reshape(7, 2, 2),
    ),
    "a packed tensor unpacked": (
        "%e = tensor.empty() : tensor<2x2x4x2xf32>\n%n = arith.constant 4 : index\n"
        "%p = linalg.pack %A padding_value(%x : f32) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1]"
        " inner_tiles = [%n, 2] into %e : tensor<7x4xf32> -> tensor<2x2x4x2xf32>\n"
        "%d = tensor.empty() : tensor<7x4xf32>\n"
        "%0 = linalg.unpack %p outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [%n, 2]"
        " into %d : tensor<2x2x4x2xf32> -> tensor<7x4xf32>",
        A,
    ),
}
"""Map each case to a body whose value is %0, and that value."""


@pytest.mark.parametrize("name", CASES)
def test_programs_as_others_write_them(name: str) -> None:
    body, expected = CASES[name]
    type = "tensor<f32>" if body.endswith("= []") else body.split()[-1]
    text = (
        f"func.func @f(%A: tensor<7x4xf32>, %B: tensor<7x4xf32>, %x: f32) -> {type} {{\n{body}\nreturn %0 : {type}\n}}"
    )
    (value,) = evaluate(parse(text), [A, B, np.array(X)])
    assert value.dtype == expected.dtype and value.shape == expected.shape
    np.testing.assert_allclose(value, expected, rtol=1e-6)


CALLER = """func.func private @scaled(%A: tensor<7x4xf32>, %n: index, %x: f32) -> tensor<?x4xf32> {
  %s = tensor.extract_slice %A[0, 0] [%n, 4] [1, 1] : tensor<7x4xf32> to tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %r = linalg.mul ins(%s, %s : tensor<?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
func.func @main(%A: tensor<7x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, f32) {
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %x = arith.constant 2.5 : f32
  %a = call @scaled(%A, %two, %x) : (tensor<7x4xf32>, index, f32) -> tensor<?x4xf32>
  %b = call @scaled(%A, %three, %x) : (tensor<7x4xf32>, index, f32) -> tensor<?x4xf32>
  return %a, %b, %x : tensor<?x4xf32>, tensor<?x4xf32>, f32
}"""


@pytest.mark.parametrize("visibility", ["private ", ""])
def test_calls_are_inlined_and_callees_that_are_private_or_open_removed(visibility: str) -> None:
    module = parse(CALLER.replace("private ", visibility))
    (function,) = functions(module)
    assert function.sym_name.data == "main"
    two, three, number = evaluate(module, [A])
    np.testing.assert_array_equal(two, A[:2] ** 2)
    np.testing.assert_array_equal(three, A[:3] ** 2)
    assert number == 2.5


REDUCED = """#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @f(%A: tensor<7x4x{element}>, %I: tensor<7x{element}>) -> tensor<7x{element}> {{
  %init = {init}
  %0 = linalg.generic {{indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%A : tensor<7x4x{element}>) outs(%init : tensor<7x{element}>) {{
  ^bb0(%a: {element}, %out: {element}):
    %zero = arith.constant 0{point} : {element}
    {body}
    linalg.yield %r : {element}
  }} -> tensor<7x{element}>
  return %0 : tensor<7x{element}>
}}"""
POSITIVE, NEGATIVE = "%c = arith.cmpf ogt, %a, %zero : f32\n", "%c = arith.cmpf olt, %a, %zero : f32\n"
I = RANDOM.integers(-9, 9, (7, 4)).astype(np.int32)
U = I.view(np.uint32)


def selected(op: str, predicate: str, order: str, element: str) -> str:
    """A body that selects one of its value and its output by a comparison."""
    return f"%c = arith.{op} {predicate}, %a, %out : {element}\n%r = arith.select %c, {order} : {element}"


UPDATES: dict[str, tuple[str, Array, Array]] = {
    "a sum of what is positive": (
        POSITIVE + "%s = arith.addf %a, %out : f32\n%r = arith.select %c, %s, %out : f32",
        A,
        np.where(A > 0, A, 0).sum(1),
    ),
    "a difference of what is not negative": (
        NEGATIVE + "%s = arith.subf %out, %a : f32\n%r = arith.select %c, %out, %s : f32",
        A,
        -np.where(A < 0, 0, A).sum(1),
    ),
    "a maximum under two conditions": (
        POSITIVE + "%one = arith.constant 1.0 : f32\n%d = arith.cmpf olt, %a, %one : f32\n"
        "%m = arith.maximumf %a, %out : f32\n%n = arith.select %d, %m, %out : f32\n"
        "%r = arith.select %c, %n, %out : f32",
        A,
        np.where((A > 0) & (A < 1), A, -np.inf).max(1),
    ),
    "a maximum by a comparison": (selected("cmpf", "ogt", "%a, %out", "f32"), A, A.max(1)),
    "a minimum by a comparison that fails": (selected("cmpf", "oge", "%out, %a", "f32"), A, A.min(1)),
    "a maximum of integers": (selected("cmpi", "sgt", "%a, %out", "i32"), I, I.max(1)),
    "a minimum of unsigned integers": (selected("cmpi", "ult", "%a, %out", "i32"), I, U.min(1).view(np.int32)),
    "a maximum of unsigned integers": (selected("cmpi", "ule", "%out, %a", "i32"), I, U.max(1).view(np.int32)),
}
FOLDS: dict[str, Any] = {"sum": np.add, "difference": np.add, "maximum": np.maximum, "minimum": np.minimum}


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("name", UPDATES)
def test_updates_under_conditions_and_by_comparisons(name: str, is_known: bool) -> None:
    body, array, reduced = UPDATES[name]
    element, point = ("f32", ".0") if array is A else ("i32", "")
    init = "arith.constant dense<3{point}> : tensor<7x{element}>" if is_known else "tensor.cast %I : {type} to {type}"
    stated = init.format(point=point, element=element, type=f"tensor<7x{element}>")
    module = parse(REDUCED.format(element=element, point=point, init=stated, body=body))
    check_combiners(module)
    starts = np.full(7, 3, array.dtype) if is_known else RANDOM.integers(-3, 4, 7).astype(array.dtype)
    fold = FOLDS[name.split()[1]]
    expected = fold(*(x.view(np.uint32) for x in (starts, reduced))) if "unsigned" in name else fold(starts, reduced)
    (value,) = evaluate(module, [array, starts])
    np.testing.assert_allclose(value, expected.view(array.dtype), rtol=1e-5)


@pytest.mark.parametrize("predicate", ["ugt", "ult", "uge", "ule"])
def test_an_unsigned_extremum_with_its_index(predicate: str) -> None:
    is_greatest, takes_last = predicate[1] == "g", predicate[2] == "e"
    text = f"""func.func @f(%A: tensor<7x4xi8>) -> (tensor<7xi8>, tensor<7xi64>) {{
  %s = arith.constant dense<{0 if is_greatest else -1}> : tensor<7xi8>
  %z = arith.constant dense<0> : tensor<7xi64>
  %B:2 = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>,
      affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}}
      ins(%A : tensor<7x4xi8>) outs(%s, %z : tensor<7xi8>, tensor<7xi64>) {{
  ^bb0(%a: i8, %v: i8, %i: i64):
    %k = linalg.index 1 : index
    %j = arith.index_cast %k : index to i64
    %m = arith.{"maxui" if is_greatest else "minui"} %a, %v : i8
    %c = arith.cmpi {predicate}, %a, %v : i8
    %n = arith.select %c, %j, %i : i64
    linalg.yield %m, %n : i8, i64
  }} -> (tensor<7xi8>, tensor<7xi64>)
  return %B#0, %B#1 : tensor<7xi8>, tensor<7xi64>
}}"""
    module, array = parse(text), RANDOM.choice(np.array([1, 100, 200], np.uint8), (7, 4))
    check_combiners(module)
    value, index = evaluate(module, [array.view(np.int8)])
    turned = array[:, ::-1] if takes_last else array
    at = turned.argmax(1) if is_greatest else turned.argmin(1)
    np.testing.assert_array_equal(value.view(np.uint8), array.max(1) if is_greatest else array.min(1))
    np.testing.assert_array_equal(index, 3 - at if takes_last else at)


def test_a_comparison_of_nan_keeps_the_output() -> None:
    body, _, _ = UPDATES["a maximum by a comparison"]
    init = "arith.constant dense<0xFF800000> : tensor<7xf32>"
    array = A.copy()
    array[0, 1], array[1] = np.nan, np.nan
    (value,) = evaluate(parse(REDUCED.format(element="f32", point=".0", init=init, body=body)), [array, A[:, 0]])
    np.testing.assert_array_equal(value, np.fmax.reduce(np.nan_to_num(array, nan=-np.inf), 1))


def test_a_public_callee_of_static_shape_stays() -> None:
    text = CALLER.replace("private ", "").replace("%n: index, ", "").replace("index, ", "").replace("?x4", "2x4")
    text = (
        text.replace("[%n, 4]", "[2, 4]").replace("empty(%n)", "empty()").replace("%two, ", "").replace("%three, ", "")
    )
    assert [function.sym_name.data for function in functions(parse(text))] == ["scaled", "main"]


FILE = """#map = affine_map<(d0) -> (d0)>
func.func @checked() {
  %a = util.unfoldable_constant dense<[1.0, 2.0]> : tensor<2xf32>  // a comment
  %b = flow.tensor.dynamic_constant dense<[3.0, 4.0]> : tensor<2xf32> -> tensor<?xf32>
  %c = call @sum(%a, %b) : (tensor<2xf32>, tensor<?xf32>) -> tensor<2xf32>
  check.expect_almost_eq_const(%c, dense<[4.0, 6.0]> : tensor<2xf32>) : tensor<2xf32>
  return
}
func.func private @sum(%a: tensor<2xf32>, %b: tensor<?xf32>) -> tensor<2xf32> {
  %e = tensor.empty() : tensor<2xf32>
  %c = linalg.add ins(%a, %b : tensor<2xf32>, tensor<?xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  return %c : tensor<2xf32>
}
// -----
func.func @foreign(%a: tensor<2xf32>) -> tensor<2xf32> {
  %b = linalg.copy ins(%a : tensor<2xf32>) outs(%a : tensor<2xf32>) -> tensor<2xf32>
  %c = other.op %b : tensor<2xf32>
  return %c : tensor<2xf32>
}
// -----
func.func @buffers(%a: memref<2xf32>) {
  linalg.exp ins(%a : memref<2xf32>) outs(%a : memref<2xf32>)
  return
}
"""


@pytest.mark.parametrize("is_right", [True, False])
def test_the_share_of_a_folder_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str], is_right: bool) -> None:
    (tmp_path / "a.mlir").write_text(FILE if is_right else FILE.replace("[4.0, 6.0]", "[4.0, 7.0]"))
    linalg_share.main([str(tmp_path), "--each"])
    printed = capsys.readouterr().out
    assert "0 of 0 static functions are read" in printed
    assert f"{1 if is_right else 0} of 2 dynamic functions are read" in printed
    assert ("@checked: is WRONG" in printed) is not is_right
    assert "@sum: convert-linalg-to-te: 'func.func' has a value that te lacks" in printed
    assert "0 of 1 foreign functions are read" in printed and "other.op is not registered" in printed
