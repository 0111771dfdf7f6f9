"""The loop interpreter against numpy, on nests written by hand: inits, guards, orders, lifetimes, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.rewriter import InsertPoint, Rewriter

from compiler.dialects.loop import KINDS, LOOP, BlockOp, ForOp
from compiler.dialects.te import TE
from compiler.dialects.upstream.math import MATH
from compiler.interpret import loop, te
from compiler.interpret.loop import InterpretError
from compiler.lowering.te_to_loop import TeToLoopPass
from compiler.support.errors import InputError

Array = NDArray[Any]
MATMUL_SIGNATURE = "(%A: memref<4x8xf32>, %B: memref<8x6xf32>, %C: memref<4x6xf32>)"
MATMUL_ACCESSES = """
    (%a = %A[m, k] : memref<4x8xf32>, %b = %B[k, l] : memref<8x6xf32>) -> (%C[m, l] : memref<4x6xf32>) {
      %p = arith.mulf %a, %b : f32
      loop.yield %p : f32
    }"""
SUM_ROWS = "(%a = %A[m, k] : memref<4x8xf32>) -> (%S[m] : memref<4xf32>) { loop.yield %a : f32 }"
SUM_SIGNATURE = "(%A: memref<4x8xf32>, %S: memref<4xf32>)"


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (builtin.Builtin, func.Func, arith.Arith, MATH, TE, LOOP):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def function(signature: str, body: str, outputs: int = 1) -> ModuleOp:
    return parse(f"func.func @f{signature} attributes {{outputs = {outputs} : i64}} {{ {body} func.return }}")


def run(signature: str, body: str, *arrays: Array, outputs: int = 1) -> None:
    module = function(signature, body, outputs)
    module.verify()
    loop.run(module, arrays)


def floats(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def unset(*shape: int) -> Array:
    return np.full(shape, np.nan, np.float32)


def matmul(nest: str) -> None:
    """Run a nest around the block of a matmul, and compare."""
    a, b, c = floats(4, 8), floats(8, 6), unset(4, 6)
    run(MATMUL_SIGNATURE, nest.replace("BODY", MATMUL_ACCESSES), a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-6)


def sums(nest: str, initial: Array | None = None) -> Array:
    """Run a nest around the block of a row sum on ones; gives the sums."""
    output = unset(4) if initial is None else initial.astype(np.float32)
    run(SUM_SIGNATURE, nest.replace("BODY", SUM_ROWS), np.ones((4, 8), np.float32), output)
    return output


NESTS = {
    "reduction innermost": """
      loop.for "m" %m = 4 { loop.for "l" %l = 6 { loop.for "k" %k = 8 {
        loop.block "C" [m = 4 at %m, l = 6 at %l, reduce k = 8 at %k] combine [add] BODY }}}""",
    "guards of imperfect splits": """
      loop.for "m.0" %m0 = 2 { loop.for "k.0" %k0 = 3 { loop.for "m.1" %m1 = 3 { loop.for "k.1" %k1 = 3 {
        loop.for "l" %l = 6 {
          loop.block "C" [m = 4 at %m0 * 3 + %m1, l = 6 at %l, reduce k = 8 at %k0 * 3 + %k1]
            where (3 - %m0 * 3 - %m1 >= 0, 7 - %k0 * 3 - %k1 >= 0) combine [add] BODY }}}}}""",
    "reduction outermost: everything is initialised once before it": """
      loop.for "k" %k = 8 { loop.for "l" %l = 6 { loop.for "m" %m = 4 {
        loop.block "C" [m = 4 at %m, l = 6 at %l, reduce k = 8 at %k] combine [add] BODY }}}""",
    "fused spatial and reduce loop": """
      loop.for "l" %l = 6 { loop.for "mk" %f = 32 {
        loop.block "C" [m = 4 at %f floordiv 8, l = 6 at %l, reduce k = 8 at %f mod 8]
          combine [add] BODY }}""",
    "the init respects the guard of a fused loop": """
      loop.for "l" %l = 6 { loop.for "mk.0" %f = 5 { loop.for "mk.1" %g = 7 {
        loop.block "C" [m = 4 at (%f * 7 + %g) floordiv 8, l = 6 at %l, reduce k = 8 at (%f * 7 + %g) mod 8]
          where (31 - %f * 7 - %g >= 0) combine [add] BODY }}}""",
    "a loop that binds nothing repeats the init": """
      loop.for "again" %t = 3 { loop.for "m" %m = 4 { loop.for "l" %l = 6 { loop.for "k" %k = 8 {
        loop.block "C" [m = 4 at %m, l = 6 at %l, reduce k = 8 at %k] combine [add] BODY }}}}""",
}


@pytest.mark.parametrize("name", NESTS)
def test_matmul(name: str) -> None:
    matmul(NESTS[name])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_loop_runs_as_a_loop(kind: str) -> None:
    name = {"serial": "", "tensorized": 'tensorized "dot.i32.u8i8x4"'}.get(kind, kind)
    matmul(f"""
      loop.for "m" %m = 4 {{ loop.for "k" %k = 8 {{ loop.for "l" %l = 6 {name} {{
        loop.block "C" [m = 4 at %m, l = 6 at %l, reduce k = 8 at %k] combine [add] BODY }}}}}}""")


def test_a_loop_that_binds_nothing_inside_the_reduction_repeats_the_contribution() -> None:
    nest = """
      loop.for "m" %m = 4 { loop.for "k" %k = 8 { loop.for "again" %t = 3 {
        loop.block "S" [m = 4 at %m, reduce k = 8 at %k] combine [add] BODY }}}"""
    assert sums(nest).tolist() == [24.0] * 4


def test_accumulate_keeps_what_is_there() -> None:
    nest = """
      loop.for "m" %m = 4 { loop.for "k" %k = 8 {
        loop.block "S" [m = 4 at %m, reduce k = 8 at %k] combine [add] accumulate BODY }}"""
    assert sums(nest, np.arange(4)).tolist() == [8.0, 9.0, 10.0, 11.0]


def test_the_init_respects_a_spatial_guard_and_not_a_reduce_one() -> None:
    nest = """
      loop.for "k" %k = 8 { loop.for "m" %m = 4 {
        loop.block "S" [m = 4 at %m, reduce k = 8 at %k]
          where (%m - 1 >= 0, %k - 8 >= 0) combine [add] BODY }}"""
    assert sums(nest, np.full(4, 5.0)).tolist() == [5.0, 0.0, 0.0, 0.0]


def test_the_init_ignores_a_constraint_that_mixes_spatial_and_reduce_only_loops() -> None:
    nest = """
      loop.for "k" %k = 8 { loop.for "m" %m = 4 {
        loop.block "S" [m = 4 at %m, reduce k = 8 at %k] where (%m - %k - 2 >= 0) combine [add] BODY }}"""
    assert sums(nest).tolist() == [0.0, 0.0, 1.0, 2.0]


def test_the_init_of_a_guarded_loop_that_binds_nothing() -> None:
    nest = """
      loop.for "k" %k = 8 { loop.for "t" %t = 2 { loop.for "m" %m = 4 {
        loop.block "S" [m = 4 at %m, reduce k = 8 at %k] where (%t - %m >= 0) combine [add] BODY }}}"""
    actual = sums(nest, np.full(4, 5.0))
    assert actual.tolist() == [16.0, 8.0, 5.0, 5.0]


def test_a_reduction_of_one_step_bound_to_no_loop_starts_anew_each_time() -> None:
    nest = """
      loop.for "again" %t = 2 { loop.for "m" %m = 4 {
        loop.block "S" [m = 4 at %m, reduce k = 8 at 3] combine [add] BODY }}"""
    assert sums(nest).tolist() == [1.0] * 4


def test_a_loop_that_is_spatial_for_one_block_and_a_reduction_for_the_other() -> None:
    a, rows, total = floats(4, 8), unset(4), unset()
    run(
        "(%A: memref<4x8xf32>, %S: memref<4xf32>, %T: memref<f32>)",
        f"""
        loop.for "m" %m = 4 {{
          loop.for "k" %k = 8 {{ loop.block "S" [m = 4 at %m, reduce k = 8 at %k] combine [add] {SUM_ROWS} }}
          loop.block "T" [reduce r = 4 at %m] combine [max]
            (%s = %S[r] : memref<4xf32>) -> (%T[] : memref<f32>) {{ loop.yield %s : f32 }}
        }}""",
        a,
        rows,
        total,
        outputs=2,
    )
    np.testing.assert_allclose(rows, a.sum(axis=1), rtol=1e-5, atol=1e-6)
    assert total == rows.max()


def test_padded_convolution() -> None:
    x, w, y = floats(7), floats(3), unset(7)
    run(
        "(%X: memref<7xf32>, %W: memref<3xf32>, %Y: memref<7xf32>)",
        """
        loop.for "i" %i = 3 { loop.for "h" %h = 7 {
          loop.block "Y" [h = 7 at %h, reduce i = 3 at %i] combine [add]
              (%x = %X[h + i - 1] where (h + i - 1 >= 0, 7 - h - i >= 0) else 0.0 : memref<7xf32>,
               %w = %W[i] : memref<3xf32>) -> (%Y[h] : memref<7xf32>) {
            %0 = arith.mulf %x, %w : f32
            loop.yield %0 : f32
          }}}""",
        x,
        w,
        y,
    )
    np.testing.assert_allclose(y, np.convolve(x, w[::-1], mode="same"), rtol=1e-5, atol=1e-6)


def test_two_results_of_integers() -> None:
    a = np.arange(12, dtype=np.int32).reshape(3, 4) - 20
    product, most = np.zeros(3, np.int32), np.zeros(3, np.int32)
    run(
        "(%A: memref<3x4xi32>, %P: memref<3xi32>, %M: memref<3xi32>)",
        """
        loop.for "k" %k = 4 { loop.for "i" %i = 3 {
          loop.block "PM" [i = 3 at %i, reduce k = 4 at %k] combine [mul, max]
              (%a = %A[i, k] : memref<3x4xi32>) -> (%P[i] : memref<3xi32>, %M[i] : memref<3xi32>) {
            loop.yield %a, %a : i32, i32
          }}}""",
        a,
        product,
        most,
        outputs=2,
    )
    np.testing.assert_array_equal(product, a.prod(axis=1, dtype=np.int32))
    np.testing.assert_array_equal(most, a.max(axis=1))


def test_both_results_are_computed_before_one_is_written() -> None:
    left, right = np.zeros((), np.float32), np.ones((), np.float32)
    run(
        "(%L: memref<f32>, %R: memref<f32>)",
        """loop.block "swap" [] (%l = %L[] : memref<f32>, %r = %R[] : memref<f32>)
             -> (%L[] : memref<f32>, %R[] : memref<f32>) { loop.yield %r, %l : f32, f32 }""",
        left,
        right,
        outputs=2,
    )
    assert left == 1.0
    assert right == 0.0


def test_index_and_integer_ops() -> None:
    out = np.zeros((2, 3), np.int32)
    run(
        "(%I: memref<2x3xi32>)",
        """
        loop.for "j" %j = 3 { loop.for "i" %i = 2 {
          loop.block "I" [i = 2 at %i, j = 3 at %j] () -> (%I[i, j] : memref<2x3xi32>) {
            %0 = loop.index "i" : index
            %1 = loop.index "j" : index
            %2 = arith.subi %0, %1 : index
            %c = arith.constant 2 : index
            %3 = arith.floordivsi %2, %c : index
            %4 = arith.index_cast %3 : index to i32
            %big = arith.constant 2147483647 : i32
            %5 = arith.subi %4, %big : i32
            loop.yield %5 : i32
          }}}""",
        out,
    )
    exact = [[(i - j) // 2 - (2**31 - 1) for j in range(3)] for i in range(2)]
    np.testing.assert_array_equal(out, np.array(exact).astype(np.int32))


def test_a_buffer_lives_for_one_iteration_and_starts_poisoned() -> None:
    out = np.zeros(3, np.float32)
    run(
        "(%O: memref<3xf32>)",
        """
        loop.for "i" %i = 3 {
          %T = loop.alloc "T" local : memref<3xf32>
          loop.block "set" [i = 3 at %i] where (%i - 1 == 0) () -> (%T[1] : memref<3xf32>) {
            %c = arith.constant 4.0 : f32
            loop.yield %c : f32 }
          loop.block "get" [i = 3 at %i] (%t = %T[1] : memref<3xf32>) -> (%O[i] : memref<3xf32>) {
            loop.yield %t : f32 }
        }""",
        out,
    )
    np.testing.assert_array_equal(out, [np.nan, 4.0, np.nan])


COPY = "(%s = %S[{read}] : memref<4xf32>) -> (%T[{write}] : memref<4xf32>) {{ loop.yield %s : f32 }}"


@pytest.mark.parametrize(
    "read, write, words",
    [
        ("i + 1", "i", r"block 'T' reads 'S' at index \[4\], outside its shape \[4\], at t = 0, i = 3"),
        ("i - 1", "i", r"block 'T' reads 'S' at index \[-1\], outside its shape \[4\], at t = 0, i = 0"),
        ("i", "i + 2", r"block 'T' writes 'T' at index \[4\], outside its shape \[4\], at t = 0, i = 2"),
    ],
)
def test_accesses_out_of_bounds_are_reported(read: str, write: str, words: str) -> None:
    block = f'loop.block "T" [i = 4 at %i] {COPY.format(read=read, write=write)}'
    nest = f'loop.for "t" %t = 2 {{ loop.for "i" %i = 4 {{ {block} }} }}'
    module = function("(%S: memref<4xf32>, %T: memref<4xf32>)", nest)
    with pytest.raises(InterpretError, match=words):
        loop.run(module, [floats(4), floats(4)])


def test_a_condition_keeps_a_read_in_bounds() -> None:
    copy = COPY.format(read="i + 1", write="i").replace("] :", "] where (2 - i >= 0) else -1.0 :", 1)
    nest = f'loop.for "i" %i = 4 {{ loop.block "T" [i = 4 at %i] {copy} }}'
    source, target = floats(4), floats(4)
    run("(%S: memref<4xf32>, %T: memref<4xf32>)", nest, source, target)
    np.testing.assert_array_equal(target, [*source[1:], -1.0])


@pytest.mark.parametrize(
    "nest, words",
    [
        (
            """loop.for "m.0" %m = 2 { loop.for "m.1" %n = 3 {
                 loop.block "S" [m = 4 at %m * 3 + %n, reduce k = 8 at 0] combine [add] BODY }}""",
            "iterator 'm' of block 'S' is 4, outside its extent 4, at m.0 = 1, m.1 = 1",
        ),
        (
            """loop.for "t" %t = 2 { loop.for "k" %k = 8 { loop.for "m" %m = 5 {
                 loop.block "S" [m = 4 at %m, reduce k = 8 at %k] combine [add] BODY }}}""",
            "iterator 'm' of block 'S' is 4, outside its extent 4, at t = 0, m = 4$",
        ),
        (
            """loop.for "k" %k = 8 { %S2 = loop.alloc "S2" : memref<4xf32>
                 loop.for "m" %m = 4 { loop.block "S" [m = 4 at %m, reduce k = 8 at %k] combine [add]
                   (%a = %A[m, k] : memref<4x8xf32>) -> (%S2[m] : memref<4xf32>) {
                     loop.yield %a : f32 } }}""",
            "block 'S' uses 'S2' where it is not allocated",
        ),
        (
            """loop.for "m" %m = 4 { loop.for "k" %k = 8 {
                 loop.block "S" [m = 4 at %m, reduce k = 8 at %k] combine [add]
                   (%a = %A[m, k] : memref<4x8xf32>) -> (%A[m, k] : memref<4x8xf32>) {
                     loop.yield %a : f32 } }}""",
            "block 'S' writes its reduction at an index of a reduce axis",
        ),
    ],
)
def test_malformed_blocks_are_reported(nest: str, words: str) -> None:
    module = function(SUM_SIGNATURE, nest.replace("BODY", SUM_ROWS))
    with pytest.raises(InterpretError, match=words):
        loop.run(module, [floats(4, 8), floats(4)])


def test_a_buffer_is_gone_after_its_loop() -> None:
    get = 'loop.block "T" [] (%t = %X[] : memref<f32>) -> (%O[] : memref<f32>) { loop.yield %t : f32 }'
    nest = f'loop.for "i" %i = 2 {{ %X = loop.alloc "X" : memref<f32> {get} }}'
    module = function("(%O: memref<f32>)", nest)
    around = next(op for op in module.walk() if isinstance(op, ForOp))
    block = next(op for op in module.walk() if isinstance(op, BlockOp))
    around.body.block.detach_op(block)
    Rewriter.insert_op(block, InsertPoint.after(around))
    with pytest.raises(InterpretError, match="block 'T' uses 'X' where it is not allocated"):
        loop.run(module, [unset()])


@pytest.mark.parametrize(
    "arrays, words",
    [
        ([floats(4, 8)], "takes 2 arrays, not 1"),
        ([floats(4, 8), floats(5)], "'S' is memref<4xf32>, not an array of shape .5,."),
        ([floats(4, 8), floats(4).astype(np.float64)], "dtype float64"),
    ],
)
def test_wrong_arrays_are_refused_in_words(arrays: list[Array], words: str) -> None:
    nest = f'loop.for "m" %m = 4 {{ loop.block "S" [m = 4 at %m, reduce k = 8 at 0] combine [add] {SUM_ROWS} }}'
    with pytest.raises(InputError, match=words):
        loop.run(function(SUM_SIGNATURE, nest), arrays)


def test_a_read_only_result_is_refused() -> None:
    nest = f'loop.for "m" %m = 4 {{ loop.block "S" [m = 4 at %m, reduce k = 8 at 0] combine [add] {SUM_ROWS} }}'
    output = floats(4)
    output.flags.writeable = False
    with pytest.raises(InputError, match="'S' is written but is read-only"):
        loop.run(function(SUM_SIGNATURE, nest), [floats(4, 8), output])


TE_PROGRAM = """
func.func @pool(%X: tensor<6x7xf32>) -> (tensor<3x4xf32>, tensor<3xf32>) {
  %P = te.compute "P" [h = 3, w = 4, reduce i = 3, reduce j = 2] combine [max]
      (%x = %X[h * 2 + i - 1, w * 2 + j] where (h * 2 + i - 1 >= 0, 6 - w * 2 - j >= 0) else -1.0e9
        : tensor<6x7xf32>) -> tensor<3x4xf32> { te.yield %x : f32 }
  %E = te.compute "E" [h = 3, w = 4] (%p = %P[h, w] : tensor<3x4xf32>) -> tensor<3x4xf32> {
    %i = te.index "w" : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %t = math.tanh %p : f32
    %s = arith.addf %t, %f : f32
    te.yield %s : f32
  }
  %S = te.compute "S" [h = 3, reduce w = 4] combine [add]
      (%e = %E[h, w] : tensor<3x4xf32>) -> tensor<3xf32> { te.yield %e : f32 }
  func.return %E, %S : tensor<3x4xf32>, tensor<3xf32>
}
"""


def test_a_lowered_te_program_agrees_with_its_reference() -> None:
    module = parse(TE_PROGRAM)
    x = floats(6, 7)
    expected = te.evaluate(module, [x])
    TeToLoopPass().apply(Context(), module)
    module.verify()
    outputs = [unset(3, 4), unset(3)]
    loop.run(module, [x, *outputs])
    for output, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(output, wanted, rtol=1e-6)
