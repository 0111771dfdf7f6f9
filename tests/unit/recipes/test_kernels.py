"""The composites behind the benchmarks' scripts: right, proved and replayed on shapes that fit nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.bench import workloads
from compiler.bench.schedules import SCRIPTS, scheduled
from compiler.schedule import Schedule
from compiler.te import Tensor
from tests.sample import pairs
from tests.scheduled import check

ROWS: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": te.nn.softmax,
    "log_softmax": te.nn.log_softmax,
    "logsumexp": lambda x: te.nn.add(te.nn.softmax(x), x),
}


def last(s: Schedule) -> str:
    """The last block of a program."""
    return list(s.program.blocks)[-1]


@pytest.mark.sampled
@pytest.mark.parametrize("shape", [(3, 32), (2, 37), (5, 7), (1, 100)])
@pytest.mark.parametrize("name", ROWS)
def test_by_rows(name: str, shape: tuple[int, int]) -> None:
    x = te.placeholder(shape, name="X")
    function = te.function("rows", [x], [ROWS[name](x)])
    done = check(
        function, lambda s: recipes.by_rows(s, s.get_block(last(s)), lanes=4, vectors=2, streamed=True), rtol=1e-5
    )
    assert done.verify()
    assert len({s.program.enclosing(b)[0].label for s in (done,) for b in s.program.blocks}) == 1


@pytest.mark.parametrize("shape", [(3, 32), (2, 45)])
def test_layer_norm_by_rows(shape: tuple[int, int]) -> None:
    x, g, b = te.placeholder(shape, name="X"), te.placeholder(shape[1:], name="G"), te.placeholder(shape[1:], name="B")
    function = te.function("norm", [x, g, b], [te.nn.layer_norm(x, g, b)])
    assert check(function, lambda s: recipes.by_rows(s, s.get_block(last(s)), lanes=4), rtol=1e-4).verify()


@pytest.mark.sampled
@pytest.mark.parametrize("image", [(1, 3, 5, 9), (2, 4, 4, 4), (1, 1, 3, 17)])
@pytest.mark.parametrize("sizes", [(4, 8, 2), (3, 4, 100), (5, 16, 1)])
def test_implicit_gemm(image: tuple[int, int, int, int], sizes: tuple[int, int, int]) -> None:
    x, w = te.placeholder(image, name="X"), te.placeholder((10, image[1], 3, 3), name="W")
    bias = te.placeholder((10,), name="bias")
    function = te.function("conv", [x, w, bias], [te.nn.relu(te.nn.conv2d(x, w, bias, padding=1))])

    def apply(s: Schedule) -> None:
        conv, added, relu = (s.get_block(label) for label in s.program.blocks)
        s.inline(added)
        recipes.implicit_gemm(s, conv, relu, *sizes, lanes=4)

    assert check(function, apply).verify()


def test_weights_may_be_the_first_operand_of_a_convolution() -> None:
    x, w = te.placeholder((2, 4, 6, 7), name="X"), te.placeholder((10, 4, 3, 3), name="W")
    c, r, q = (te.reduce_axis(extent, name) for extent, name in ((4, "c"), (3, "r"), (3, "q")))
    conv = te.compute(
        (2, 10, 4, 5), lambda n, o, i, j: te.sum(w[o, c, r, q] * x[n, c, i + r, j + q], axis=[c, r, q]), name="conv"
    )
    function = te.function("conv", [x, w], [te.nn.relu(conv)])

    def apply(s: Schedule) -> None:
        recipes.implicit_gemm(s, *(s.get_block(label) for label in s.program.blocks), 4, 8, 2, lanes=4)
        assert "W.pack" in s.program.buffers

    assert check(function, apply).verify()


def test_implicit_gemm_with_a_stride_and_no_epilogue() -> None:
    """The result is an argument, whose layout stays: tiles are copied out."""
    x, w = te.placeholder((1, 3, 9, 9), name="X"), te.placeholder((6, 3, 3, 3), name="W")
    function = te.function("conv", [x, w], [te.nn.conv2d(x, w, stride=2)])

    def apply(s: Schedule) -> object:
        return recipes.implicit_gemm(s, s.get_block(last(s)), None, 4, 4, 2, lanes=4)

    assert check(function, apply).verify()


@pytest.mark.parametrize("size", [7, 28, 80])
@pytest.mark.parametrize("beforehand", [False, True])
def test_weights_are_asked_for_a_few_lines_at_a_time(size: int, beforehand: bool) -> None:
    """A chunk of weights has 288 lines: over channels where the image is small, over tiles of a row, over rows."""
    x, w = te.placeholder((1, 32, size, size), name="X"), te.placeholder((32, 32, 3, 3), name="W")
    s = Schedule(compiler.lower(te.function("conv", [x, w], [te.nn.relu(te.nn.conv2d(x, w, padding=1))])))
    conv, relu = (s.get_block(label) for label in s.program.blocks)
    done = recipes.implicit_gemm(s, conv, relu, 7, 32, 16, beforehand=beforehand)
    loops = s.get_loops(conv)
    channels = loops[[s.label(loop) for loop in loops].index(s.label(done.tiles)) + 1]
    expected = {7: channels, 28: done.tiles, 80: done.rows}[size]
    asking = [loop.label for loop in s.program.loops.values() if "prefetch" in dict(loop.attributes)]
    assert asking == [s.label(expected)]


@pytest.mark.sampled
@pytest.mark.parametrize("shape", [(9, 10, 11, 13), (8, 32, 16, 16), (1, 5, 3, 2)])
@pytest.mark.parametrize("rows", [4, 3])
def test_a_chain_of_products(shape: tuple[int, int, int, int], rows: int) -> None:
    m, k, l, n = shape
    a, b, e = te.placeholder((m, k), name="A"), te.placeholder((k, l), name="B"), te.placeholder((l, n), name="E")
    middle = te.nn.relu(te.nn.matmul(a, b, name="T"), name="X")
    function = te.function("chain", [a, b, e], [te.nn.matmul(middle, e, name="C")])

    def apply(s: Schedule) -> None:
        first, between, second = (s.get_block(label) for label in s.program.blocks)
        done = recipes.gebp(s, first, rows, 4, 8, rows, 8, lanes=4)
        recipes.store_packed(s, between, done, rows, lanes=4)
        recipes.gebp(s, second, rows, 4, 8, rows, 8, lanes=4, pack="b")

    assert check(function, apply).verify()


def test_apply_to_tiles() -> None:
    a, b = te.placeholder((9, 10), name="A"), te.placeholder((10, 21), name="B")
    function = te.function("dense", [a, b], [te.nn.relu(te.nn.matmul(a, b))])

    def apply(s: Schedule) -> None:
        product, relu = (s.get_block(label) for label in s.program.blocks)
        recipes.apply_to_tiles(s, relu, recipes.gebp(s, product, 4, 4, 8, 4, 8, lanes=4), lanes=4)

    assert check(function, apply).verify()


SMALL = {
    "matmul": "9x20x33",
    "batched": "3x9x8x17",
    "mm_exp_mm": "9x10x33x17",
    "mlp": "9x10x33x5",
    "conv": "5x7x9x20",
    "conv_grad_weight": "2x18x5x7",
    "conv_grad_weight_steps": "2x18x5x7",
    "attention": "2x21x16",
    "softmax": "5x100",
    "layernorm": "5x100",
    "swish": "3x70",
}


@pytest.mark.sampled
@pytest.mark.parametrize(("family", "threads"), pairs(list(SCRIPTS), [2, 1]))
def test_the_scripts_of_the_benchmarks(family: str, threads: int) -> None:
    workload = workloads.find(f"{family}:{SMALL[family]}")
    schedule = scheduled(workload, threads)
    assert schedule is not None and schedule.verify()
    inputs = workload.draw(0)
    from compiler.bench.harness import fault

    output = compiler.build(schedule, threads=threads)(*inputs)
    assert fault(output, workload.expected(inputs)) is None


@pytest.mark.parametrize("columns", [64, 37])
def test_results_past_the_caches_may_begin_anywhere(columns: int) -> None:
    x = te.placeholder((3, columns), name="X")
    function = te.function("past", [x], [te.compute((3, columns), lambda i, j: x[i, j] * 2.0, name="Y")])
    s = Schedule(compiler.lower(function))
    block = s.get_block("Y")
    recipes.elementwise(s, block, lanes=4, vectors=2)
    s.annotate(s.get_loops(block)[0], "nontemporal", "Y")
    kernel = compiler.build(s)
    if columns == 64:  # the rest is masked
        assert "nontemporal = true" in kernel.text("low")
        assert "!nontemporal" in kernel.text("llvm") and "fence" in kernel.text("llvm")
    content = np.random.default_rng(0).random((3, columns), np.float32)
    for offset in range(5):
        out = np.full(3 * columns + 16, np.nan, np.float32)
        start = -out.ctypes.data // 4 % 4 + offset
        kernel(content, out=out[start : start + 3 * columns].reshape(3, columns))
        np.testing.assert_array_equal(out[start : start + 3 * columns].reshape(3, columns), content * 2)
        assert np.isnan(out[:start]).all() and np.isnan(out[start + 3 * columns :]).all()
