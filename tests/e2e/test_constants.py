"""Constants: what is prepared of them gives the same results, on random programs; and what kernels do with them."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler import recipes, te
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import find_function
from compiler.fuzz.programs import arrays_for, program
from compiler.interpret import loop as interpreter
from compiler.interpret import te as evaluator
from compiler.passes.split_constants import SplitProgram, split
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.support.errors import InputError, LoweringError, StrataError, TargetError
from compiler.targets.cpu import Kernel
from tests.fuzz.scripts import close, walk
from tests.sample import some

Array = np.ndarray[Any, Any]
CHUNK = 20


def drawn(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def on_a_line(array: Array) -> Array:
    """A copy that begins at a cache line."""
    memory = np.empty(array.size + 16, array.dtype)
    start = -memory.ctypes.data % 64 // array.itemsize
    actual = memory[start : start + array.size].reshape(array.shape)
    actual[...] = array
    return actual


def matmul(m: int = 30, k: int = 48, n: int = 50) -> te.Function:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    bias = te.placeholder((n,), name="bias")
    return te.function("matmul", [a, b, bias], te.nn.relu(te.nn.add(te.nn.matmul(a, b, name="C"), bias)))


def packed(function: te.Function, parallel: bool = False, **tiles: int) -> Schedule:
    """GEBP with B packed as a whole, in a nest of its own."""
    s = Schedule(compiler.lower(function))
    block = s.get_block("C")
    pack = s.pack(block, "B", [1, 16], [1, 0, 2])
    recipes.copy_in_vectors(s, pack, 16)
    sizes = {"mc": 16, "kc": 16, "nc": 64, "mr": 4, "nr": 16} | tiles
    gebp = recipes.gebp(s, block, **sizes, pack="a")
    if parallel:
        s.parallel(s.get_loops(pack)[0])
        s.parallel(gebp.ic)
    return s


def interpreted(parts: SplitProgram, arrays: dict[str, Array], expected: list[Array]) -> list[Array]:
    """The results of the two functions one after the other, every buffer poisoned before."""
    program = parts.main
    buffers = dict(arrays)
    for buffer in (*(parts.prepare.arguments if parts.prepare else ()), *program.arguments):
        if buffer.name not in arrays:
            kind = expected[0].dtype if buffer.element == program.arguments[-1].element else np.dtype(np.float64)
            buffers[buffer.name] = poisoned(buffer.shape, kind)
    for buffer, value in zip(program.arguments[len(program.arguments) - program.outputs :], expected, strict=True):
        buffers[buffer.name] = poisoned(value.shape, value.dtype)
    for part in (parts.prepare, program):
        if part is not None:
            interpreter.run(ModuleOp([write(part)]), [buffers[b.name] for b in part.arguments])
    return [buffers[b.name] for b in program.arguments[len(program.arguments) - program.outputs :]]


def poisoned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return np.full(shape, 77 if dtype.kind in "biu" else np.nan, dtype)


def chosen(rng: random.Random, names: list[str]) -> list[str]:
    return [name for name in names if rng.random() < 0.6] or names[:1]


def check(seed: int, scheduled: bool, native: bool) -> SplitProgram:
    """Split a random program, scheduled at random or as it comes, by constants at random."""
    rng = random.Random(seed)
    function = program(rng)
    source: Any = function
    if scheduled:
        function, walker = walk(seed)
        source = walker.s
    module = source.module if scheduled else compiler.lower(source)
    arrays = dict(zip((t.name for t in function.inputs), arrays_for(function, seed), strict=True))
    expected = list(evaluator.evaluate(function.module, list(arrays.values())))
    constants = chosen(rng, list(arrays))
    parts = split(find_function(module, function.name), constants)
    for part in parts.functions():
        verify_module(ModuleOp([part.clone()]))
    if parts.prepare is None or all(b.element == parts.main.arguments[-1].element for b in crossing(parts)):
        assert close(interpreted(parts, arrays, expected), expected), "a wrong result"
    if native:
        kernel = built(source, {name: arrays.pop(name) for name in constants})
        outputs = None if kernel is None else kernel(*arrays.values())
        assert kernel is None or close(list(outputs) if isinstance(outputs, tuple) else [outputs], expected)
    return parts


def built(source: Any, constants: dict[str, Array]) -> Kernel | None:
    try:
        return compiler.build(source, constants=constants)
    except LoweringError as error:
        said = ("is bound to", "in a vectorized loop", "inside the parallel loop")
        assert any(words in str(error) for words in said)
        return None


def crossing(parts: SplitProgram) -> list[Any]:
    return [b for b in parts.main.arguments if b.name in parts.prepared]


@pytest.mark.sampled
@pytest.mark.parametrize("chunk", some(range(5), 2))
@pytest.mark.parametrize("scheduled", [False, True])
def test_random_programs(chunk: int, scheduled: bool) -> None:
    seeds = range(chunk * CHUNK, (chunk + 1) * CHUNK)
    collected = [check(seed, scheduled, native=seed % 5 == 0) for seed in seeds]
    assert any(parts.prepare for parts in collected) and not all(parts.prepare for parts in collected)


@pytest.mark.parametrize("extents", [(30, 48, 50), (8, 16, 32), (1, 3, 70), (33, 17, 5)])
def test_a_packed_operand_is_not_packed_in_calls(extents: tuple[int, int, int]) -> None:
    function = matmul(*extents)
    s = packed(function)
    a, b, bias = (drawn(t.shape, n) for n, t in enumerate(function.inputs))
    kernel = compiler.build(s, constants={"B": b, "bias": bias})
    np.testing.assert_array_equal(kernel(a), np.maximum(a @ b + bias, 0))
    assert [x.name for x in kernel.arguments] == ["A", kernel.arguments[-1].name]
    assert kernel.fixed.preparation is not None
    assert '"B.pack"' in kernel.fixed.preparation.text("loop") and 'loop.block "B.pack"' not in kernel.text("loop")
    assert "%B:" not in kernel.text("low") and "%B.pack:" in kernel.text("low")
    assert "te.compute" not in kernel.text("loop") and "align 64" in kernel.text("llvm")


def test_what_was_prepared_is_read_in_each_call() -> None:
    a, b, bias = drawn((30, 48)), drawn((48, 50), 1), np.zeros(50, np.float32)
    kernel = compiler.build(packed(matmul()), constants={"B": b})
    (panels,) = kernel.fixed.arrays.values()
    before = kernel(a, bias)
    with pytest.raises(ValueError, match="read-only"):
        panels[...] = 0
    panels.flags.writeable = True
    panels[...] = 0
    assert before.any() and not kernel(a, bias).any()


def test_two_kernels_of_one_schedule_have_their_own_constants() -> None:
    s, a, bias = packed(matmul()), drawn((30, 48)), drawn((50,), 3)
    first_weights, second_weights = drawn((48, 50), 1), drawn((48, 50), 2)
    first, second = (compiler.build(s, constants={"B": b}) for b in (first_weights, second_weights))
    np.testing.assert_array_equal(first(a, bias), np.maximum(a @ first_weights + bias, 0))
    np.testing.assert_array_equal(second(a, bias), np.maximum(a @ second_weights + bias, 0))
    np.testing.assert_array_equal(compiler.build(s)(a, first_weights, bias), first(a, bias))


@pytest.mark.parametrize("scheduled", [False, True])
def test_a_constant_that_changes_after_the_build_changes_nothing(scheduled: bool) -> None:
    function = matmul()
    a, b, bias = (drawn(t.shape, n) for n, t in enumerate(function.inputs))
    b, bias = on_a_line(b), on_a_line(bias)  # what native code can read as it is
    kernel = compiler.build(packed(function) if scheduled else function, constants={"B": b, "bias": bias})
    want = kernel(a)
    b[...], bias[...] = 7, 9
    np.testing.assert_array_equal(kernel(a), want)


def test_nothing_is_prepared_when_nothing_can_be() -> None:
    function = matmul()
    a, b, bias = (drawn(t.shape, n) for n, t in enumerate(function.inputs))
    for constants in ({}, {"A": a}, {"B": b}, {"bias": bias}):
        kernel = compiler.build(packed(function) if "A" in constants else function, constants=constants)
        assert kernel.fixed.preparation is None
        given = [x for x, t in zip((a, b, bias), function.inputs, strict=True) if t.name not in constants]
        np.testing.assert_array_equal(kernel(*given), np.maximum(a @ b + bias, 0))


DEAD = """
func.func @dead(%X: memref<4xf32>, %W: memref<4xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<4xf32>
  loop.for "i" %i = 4 {
    loop.block "T" [i = 4 at %i] (%w = %W[i] : memref<4xf32>) -> (%T[i] : memref<4xf32>) {
      loop.yield %w : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "Y" [i = 4 at %i] (%x = %X[i] : memref<4xf32>) -> (%Y[i] : memref<4xf32>) {
      loop.yield %x : f32
    }
  }
  func.return
}"""


def test_what_nothing_reads_is_not_prepared() -> None:
    kernel = compiler.build(DEAD, constants={"W": drawn((4,))})
    assert kernel.fixed.preparation is None
    np.testing.assert_array_equal(kernel(drawn((4,), 1)), drawn((4,), 1))


def test_what_is_prepared_in_a_row_needs_no_room_in_calls() -> None:
    w, x = te.placeholder((6, 5), name="W"), te.placeholder((6,), name="X")
    double = te.compute((6, 5), lambda i, j: w[i, j] * 2, name="double")
    turned = te.compute((5, 6), lambda j, i: double[i, j], name="turned")
    i = te.reduce_axis(6, "i")
    y = te.compute((5,), lambda j: te.sum(turned[j, i] * x[i], axis=i), name="Y")
    f = te.function("f", [w, x], [y, te.compute((6, 5), lambda i, j: w[i, j] + 1, name="Z")])
    weights = drawn((6, 5))
    kernel = compiler.build(compiler.lower(f), constants={"W": weights})  # one loop program, not groups
    first, second = kernel(drawn((6,), 1))
    np.testing.assert_array_equal(first, weights.T * 2 @ drawn((6,), 1))
    np.testing.assert_array_equal(second, weights + 1)
    assert sorted(array.shape for array in kernel.fixed.arrays.values()) == [(5, 6), (6, 5)]  # turned, and W for Z
    assert "double" not in kernel.text("loop")
    groups = compiler.build(f, constants={"W": weights})
    assert groups.constant_bytes == 2 * 128
    np.testing.assert_array_equal(groups(drawn((6,), 1))[0], first)


def test_threads() -> None:
    function = matmul(64, 64, 96)
    s = packed(function, parallel=True)
    a, b, bias = (drawn(t.shape, n) for n, t in enumerate(function.inputs))
    kernel = compiler.build(s, constants={"B": b}, threads=2)
    assert kernel.threads == 2 and kernel.fixed.preparation is not None and kernel.fixed.preparation.threads == 2
    want = np.maximum(a @ b + bias, 0)
    np.testing.assert_array_equal(kernel(a, bias), want)
    np.testing.assert_array_equal(kernel(a, bias, threads=1), want)
    collected: list[Array] = []
    callers = [threading.Thread(target=lambda: collected.extend(kernel(a, bias) for _ in range(20))) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(collected) == 60 and all(np.array_equal(each, want) for each in collected)


def test_time_bound_and_out() -> None:
    function = matmul()
    a, b, bias = (drawn(t.shape, n) for n, t in enumerate(function.inputs))
    kernel = compiler.build(packed(function), constants={"B": b, "bias": bias})
    out = np.empty((30, 50), np.float32)
    call = kernel.bound(a, out=out)
    assert kernel.time(a).median > 0
    call()
    np.testing.assert_array_equal(out, np.maximum(a @ b + bias, 0))
    assert kernel(a, out=out) is out
    with pytest.raises(TargetError, match="takes 1 array, got 3"):
        kernel(a, b, bias)


def test_a_function_in_place() -> None:
    text = """
    func.func @add(%X: memref<4xf32>, %W: memref<4xf32>) {
      %T = loop.alloc "T" : memref<4xf32>
      loop.for "i" %i = 4 {
        loop.block "T" [i = 4 at %i] (%w = %W[i] : memref<4xf32>) -> (%T[i] : memref<4xf32>) {
          %0 = arith.addf %w, %w : f32
          loop.yield %0 : f32
        }
      }
      loop.for "i" %i = 4 {
        loop.block "X" [i = 4 at %i] (%x = %X[i] : memref<4xf32>, %t = %T[i] : memref<4xf32>)
            -> (%X[i] : memref<4xf32>) {
          %0 = arith.addf %x, %t : f32
          loop.yield %0 : f32
        }
      }
      func.return
    }"""
    x, w = drawn((4,)), drawn((4,), 1)
    kernel = compiler.build(text, constants={"W": w})
    want = x + 2 * w
    assert kernel(x) is None and kernel.fixed.preparation is not None
    np.testing.assert_array_equal(x, want)
    with pytest.raises(InputError, match="'X' cannot be constant: @add writes it"):
        compiler.build(text, constants={"X": x})


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64", "i8", "u8", "i64", "u16", "u32", "u64", "i1"])
def test_dtypes(dtype: str) -> None:
    x, w = te.placeholder((4, 6), dtype, name="X"), te.placeholder((6, 4), dtype, name="W")
    turned = te.compute((4, 6), lambda i, j: w[j, i], name="turned")
    unit, zero = te.const(1, "i32"), te.const(0, "i32")
    same = te.compute((4, 6), lambda i, j: te.select(te.equal(x[i, j], turned[i, j]), unit, zero), name="same")
    f = te.function("f", [x, w], [same])
    plain = compiler.build(f)
    a, b = (np.arange(24).reshape(s).astype(p.dtype) for s, p in zip(((4, 6), (6, 4)), plain.arguments, strict=False))
    kernel = compiler.build(f, constants={"W": b})
    np.testing.assert_array_equal(kernel(a), plain(a, b))
    assert kernel.fixed.preparation is not None


def test_names_that_end_in_a_number() -> None:
    first, second_weights = te.placeholder((3,), name="W_1"), te.placeholder((3,), name="W_2")
    f = te.function("f", [first, second_weights], [te.compute((3,), lambda i: first[i] - second_weights[i], name="Y")])
    a, b = drawn((3,)), drawn((3,), 1)
    np.testing.assert_array_equal(compiler.build(f, constants={"W_1": a})(b), a - b)
    np.testing.assert_array_equal(compiler.build(f, constants={"W_2": b})(a), a - b)
    with pytest.raises(InputError, match=r"has no input 'W' \(it has W_1, W_2\)"):
        compiler.build(f, constants={"W": b})


B = drawn((48, 50))
LOW = "func.func @low(%W: memref<4xf32>) {\n  func.return\n}\n"
REFUSED: dict[str, tuple[Any, str]] = {
    "unknown": ({"Z": B}, "@matmul has no input 'Z' (it has A, B, bias)"),
    "a temporary": ({"C": B}, "@matmul has no input 'C' (it has A, B, bias)"),
    "no name": ({1: B}, "@matmul has no input '1' (it has A, B, bias)"),
    "an output": ({"relu": B}, "'relu' cannot be constant: it is an output of @matmul"),
    "a shape": ({"B": B[1:]}, "matmul: argument 'B' has shape (47, 50), expected (48, 50)"),
    "a dtype": ({"B": B.astype(np.float64)}, "matmul: argument 'B' has dtype float64, expected float32"),
    "no array": ({"B": [1.0]}, "matmul: argument 'B' is a list, expected a numpy array"),
    "no mapping": ([B], "constants is a list, expected arrays by the names of inputs"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_wrong_constants_end_in_a_sentence(kind: str) -> None:
    given, sentence = REFUSED[kind]
    with pytest.raises(StrataError) as caught:
        compiler.build(matmul(), constants=given)
    assert str(caught.value) == sentence


def test_the_low_level_has_no_constants() -> None:
    with pytest.raises(InputError, match="the program is at the low level"):
        compiler.build(LOW, constants={"W": drawn((4,))})


def test_strides_and_byte_order_of_constants_are_free() -> None:
    function = matmul()
    a, b, bias = (drawn(t.shape, n) for n, t in enumerate(function.inputs))
    odd = np.asfortranarray(b).astype(">f4")
    for source in (function, packed(function)):
        kernel = compiler.build(source, constants={"B": odd, "bias": np.repeat(bias, 2)[::2]})
        np.testing.assert_array_equal(kernel(a), np.maximum(a @ b + bias, 0))


ALIGNED = """
func.func @copy(%x: memref<16xf32>, %y: memref<16xf32>) attributes {outputs = 1 : i64, aligned = array<i64: 0, 1>} {
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
  vector.store %v, %y[%c0] : memref<16xf32>, vector<16xf32>
  func.return
}"""


def test_aligned_arguments_get_aligned_arrays() -> None:
    kernel = compiler.build(ALIGNED)
    assert "align 64" in kernel.text("llvm") and "align 4" not in kernel.text("llvm")
    memory = np.arange(33, dtype=np.float32)
    offset = 1 if memory.ctypes.data % 64 == 0 else 0
    x = memory[offset : offset + 16]
    assert x.ctypes.data % 64
    np.testing.assert_array_equal(kernel(x), x)
    assert kernel(x).ctypes.data % 64 == 0
    with pytest.raises(TargetError, match="'y' is written, but is not aligned to 64 bytes"):
        kernel(memory[:16].copy(), out=x)


def test_an_attribute_that_does_not_list_arguments_is_refused() -> None:
    with pytest.raises(InputError, match="the attribute 'aligned' of @copy does not list its arguments"):
        compiler.build(ALIGNED.replace("0, 1>", "0, 2>"))


def test_splitting_again_keeps_what_was_aligned() -> None:
    function = matmul()
    parts = split(find_function(packed(function).module), ["B"])
    again = split(parts.functions()[-1], ["bias"])
    assert again.prepare is None
    names = [b.name for b in read(again.functions()[-1]).arguments]
    assert (
        str(again.functions()[-1].attributes["aligned"])
        == f"array<i64: {names.index('bias')}, {names.index('B.pack')}>"
    )
    assert isinstance(parts.prepare, Program) and parts.prepared == ["B.pack"]
