"""Composites for GPUs: proved, without a fault on numpy, right there and in the text that runs on the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.dialects.upstream import nvgpu
from compiler.pipeline.loops import lower_to_kernels
from compiler.recipes import ThreadTiles
from compiler.recipes.draft import Draft
from compiler.recipes.gpu.tiles import tiled_on_threads
from compiler.schedule import Schedule
from compiler.support.errors import LoweringError, ScheduleError
from compiler.targets import simt
from compiler.targets.cuda import ARCHITECTURES, CudaKernel, nvrtc
from compiler.targets.registry import target_named
from compiler.types.elements import element_bytes
from tests.host_cuda import needs_gxx, run_on_host
from tests.programs import applied
from tests.sample import some

RANDOM = np.random.default_rng(0)


def convolution(co: int = 8, ci: int = 6, h: int = 7, w: int = 7) -> te.Function:
    x, f = te.placeholder((1, ci, h, w), name="X"), te.placeholder((co, ci, 3, 3), name="F")
    b = te.placeholder((1, co, 1, 1), name="b")
    return te.function("conv", [x, f, b], te.nn.relu(te.nn.add(te.nn.conv2d(x, f, padding=1, name="C"), b), name="Y"))


def conv_tiles(s: Schedule) -> None:
    s.inline(s.get_block("add"))
    tiles = ThreadTiles([(1, 1, 1), (2, 4, 1), (1, 7, 1), (1, 1, 7)], [4, 3, 3])
    recipes.tile_on_threads(s, s.get_block("C"), s.get_block("Y"), tiles)


def batched(n: int = 3, m: int = 20, k: int = 12, o: int = 24) -> te.Function:
    return applied(partial(te.nn.batch_matmul, name="C"), (n, m, k), (n, k, o), name="batched", inputs="AB")


def product_tiles(s: Schedule) -> None:
    recipes.tile_on_threads(s, s.get_block("C"), None, ThreadTiles([(1, 1, 1), (2, 4, 2), (2, 8, 1)], [8]))


def ahead(s: Schedule) -> None:
    """Tiles whose panels are fetched a round ahead."""
    tiles = ThreadTiles([(1, 1, 1), (1, 5, 2), (1, 6, 4)], [4], vector=4, twice=True)
    recipes.tile_on_threads(s, s.get_block("C"), None, tiles)


def conv_ahead(s: Schedule) -> None:
    s.inline(s.get_block("add"))
    tiles = ThreadTiles([(1, 1, 1), (2, 4, 1), (1, 7, 1), (1, 1, 7)], [2, 3, 1], twice=True)
    recipes.tile_on_threads(s, s.get_block("C"), s.get_block("Y"), tiles)


def ragged() -> te.Function:
    return batched(2, 13, 11, 19)


def ragged_tiles(s: Schedule) -> None:
    """Tiles that exceed the extents along m, n and k."""
    recipes.tile_on_threads(s, s.get_block("C"), None, ThreadTiles([(1, 1, 1), (1, 4, 2), (1, 8, 2)], [4]))


def softmax(m: int = 5, n: int = 100) -> te.Function:
    return applied(partial(te.nn.softmax, name="Y"), (m, n), name="rows")


def norm(m: int = 4, n: int = 70) -> te.Function:
    x, g, b = te.placeholder((m, n), name="X"), te.placeholder((n,), name="g"), te.placeholder((n,), name="b")
    return te.function("norm", [x, g, b], te.nn.layer_norm(x, g, b))


def by_rows(s: Schedule) -> None:
    recipes.rows_on_threads(s, s.get_block(list(s.program.blocks)[-1]), 2)


def elementwise(m: int = 9, n: int = 33) -> te.Function:
    x, y = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="Z")
    return te.function(
        "swish", [x, y], te.compute((m, n), lambda i, j: x[i, j] * te.sigmoid(x[i, j]) * y[i, j], name="Y")
    )


def sums(m: int = 40, n: int = 33) -> te.Function:
    x, k = te.placeholder((m, n), name="X"), te.reduce_axis(n, "k")
    return te.function("sums", [x], te.compute((m,), lambda i: te.sum(x[i, k], k), name="Y"))


def narrow(dtype: str) -> te.Function:
    """A product in a narrow dtype, whose sums are f32, and mathematics on it."""
    a, b = te.placeholder((12, 16), dtype, name="A"), te.placeholder((16, 20), dtype, name="B")
    c = te.nn.matmul(a, b, name="C")
    return te.function("narrow", [a, b], te.compute((12, 20), lambda i, j: te.exp(c[i, j] * 0.125) - c[i, j], name="Y"))


def each_on_threads(s: Schedule) -> None:
    for label in list(s.program.blocks):
        recipes.spread(s, s.get_block(label), 32)


CASES: dict[str, tuple[Callable[[], te.Function], Callable[[Schedule], Any]]] = {
    "a convolution with what comes after": (convolution, conv_tiles),
    "products": (batched, product_tiles),
    "products, a round ahead": (batched, ahead),
    "a convolution, a round ahead": (lambda: convolution(8, 4, 7, 7), conv_ahead),
    "products with edges": (ragged, ragged_tiles),
    "softmax": (softmax, by_rows),
    "layer norm": (norm, by_rows),
    "an elementwise function": (elementwise, lambda s: recipes.spread(s, s.get_block("Y"), 64)),
    "one by short vectors": (lambda: elementwise(8, 32), lambda s: recipes.spread(s, s.get_block("Y"), 16, vector=4)),
    "sums, each by a thread": (sums, lambda s: recipes.spread(s, s.get_block("Y"), 32)),
}


@cache
def prepared(name: str) -> tuple[Schedule, list[Any], Any]:
    """The schedule of a case, inputs, and the result of the CPU."""
    make, schedule = CASES[name]
    function = make()
    s = Schedule(compiler.lower(function))
    schedule(s)
    reference = compiler.build(function)
    inputs = [RANDOM.standard_normal(a.shape, np.float32) for a in reference.arguments[:-1]]
    return s, inputs, reference(*inputs)


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_it_is_right_and_without_a_fault(name: str) -> None:
    s, inputs, want = prepared(name)
    assert str(s.verify()) == "proved"
    assert len(kernel(s).launches) == 1
    module, _, _ = lower_to_kernels(s.module.clone())
    checked = simt.run(module, inputs)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], want, rtol=1e-4, atol=1e-4)


@needs_gxx
@pytest.mark.parametrize("name", some(CASES, 2))
def test_the_text_is_right_on_the_host(name: str, tmp_path: Path) -> None:
    s, inputs, want = prepared(name)
    (actual,) = run_on_host(kernel(s), inputs, tmp_path)
    np.testing.assert_allclose(actual, want, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not nvrtc.is_available(), reason="there is no NVRTC")
@pytest.mark.parametrize("name", CASES)
def test_it_compiles_without_spills(name: str) -> None:
    s, _, _ = prepared(name)
    for arch in sorted({*ARCHITECTURES} & {*nvrtc.architectures()}):
        assert all(resource.spill_bytes == resource.stack_bytes == 0 for resource in kernel(s).resources(arch).values())


def kernel(s: Schedule) -> CudaKernel:
    made = compiler.build(s, "cuda")
    assert isinstance(made, CudaKernel)
    return made


def test_a_round_ahead_needs_one_barrier_a_round_and_waits_before_it() -> None:
    s = Schedule(compiler.lower(batched()))
    ahead(s)
    text = kernel(s).text
    assert text.count("__syncthreads();") == 1 and text.count("  wait_for_copies();\n    __syncthreads();") == 1
    assert text.count("copy_async<16>(&") == 2
    module, _, _ = lower_to_kernels(s.module.clone())
    inputs = [RANDOM.standard_normal(a.shape, np.float32) for a in kernel(s).arguments[:-1]]
    (wait,) = (op for op in module.walk() if isinstance(op, nvgpu.WaitOp))
    wait.detach()
    checked = simt.run(module, inputs)
    assert {fault.kind for fault in checked.faults} == {"uninitialised read", "race of a write with a copy"}


@pytest.mark.parametrize(("vector", "twice"), some([(1, False), (4, False), (4, True)], 2))
def test_longer_rows_begin_in_different_banks(vector: int, twice: bool) -> None:
    function, conflicts = batched(1, 32, 32, 32), []
    inputs = [RANDOM.standard_normal((1, 32, 32), np.float32) for _ in range(2)]
    for padded in (False, True):
        s = Schedule(compiler.lower(function))
        tiles = ThreadTiles([(1, 1, 1), (1, 8, 2), (1, 8, 2)], [16], vector, twice, padded)
        recipes.tile_on_threads(s, s.get_block("C"), None, tiles)
        assert str(s.verify()) == "proved"
        module, _, _ = lower_to_kernels(s.module.clone())
        checked = simt.run(module, inputs)
        assert checked.is_correct, [str(fault) for fault in checked.faults]
        np.testing.assert_allclose(checked.outputs[0], inputs[0] @ inputs[1], rtol=1e-4, atol=1e-4)
        conflicts.append(sum(counts["conflicts"] for (_, name), counts in checked.counts.items() if name == "A.shared"))
    assert conflicts[0] > 100 and conflicts[1] < conflicts[0] / 4


@needs_gxx
@pytest.mark.parametrize("dtype", some(["f16", "bf16"], 2))
def test_narrow_floats_are_those_of_the_cpu(dtype: str, tmp_path: Path) -> None:
    """What is computed in f32 and rounded is the same there, on numpy and in the text, up to roundings of exp."""
    function = narrow(dtype)
    s = Schedule(compiler.lower(function))
    each_on_threads(s)
    made = compiler.build(s, "cuda", policy="strict")
    reference = compiler.build(function, policy="strict")
    inputs = [RANDOM.standard_normal(a.shape).astype(a.dtype) for a in reference.arguments[:-1]]
    want = reference(*inputs).astype(np.float32)
    module, _, _ = lower_to_kernels(s.module.clone(), policy="strict")
    checked = simt.run(module, inputs)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    (on_host,) = run_on_host(made, inputs, tmp_path)
    tolerance = {"f16": 2e-3, "bf16": 2e-2}[dtype]
    np.testing.assert_allclose(checked.outputs[0].astype(np.float32), want, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(on_host.astype(np.float32), want, rtol=tolerance, atol=tolerance)
    if nvrtc.is_available() and nvrtc.has_headers():
        assert made.resources("sm_80")


def test_copies_to_registers_are_waited_for() -> None:
    """And so are those of a stage that uses what it copies: nobody waits within a stage."""
    s = Schedule(compiler.lower(batched(1, 8, 8, 8)))
    block = s.get_block("C")
    _, m, _, _ = s.get_loops(block)
    fetched = s.cache_read(block, "A", "local")
    s.compute_at(fetched, m)
    s.bind(m, "thread_x")
    s.annotate(s.get_loops(fetched)[-1], "async", 1)
    assert "copy_async" not in kernel(s).text
    x = te.placeholder((8, 8), name="X")
    s = Schedule(compiler.lower(te.function("twice", [x], te.compute((8, 8), lambda i, j: x[i, j] * 2.0, name="D"))))
    i, j = s.get_loops(s.get_block("D"))
    fetched = s.cache_read(s.get_block("D"), "X", "shared")
    s.compute_at(fetched, i)
    both = s.merge(s.get_loops(fetched)[-1], j)
    s.bind(both, "thread_x")
    s.annotate(both, "async", 1)
    assert "copy_async" not in kernel(s).text


def test_a_shared_buffer_of_one_thread_is_refused() -> None:
    x = te.placeholder((8, 8), name="X")
    s = Schedule(compiler.lower(te.function("twice", [x], te.compute((8, 8), lambda i, j: x[i, j] * 2.0, name="D"))))
    i, _ = s.get_loops(s.get_block("D"))
    fetched = s.cache_read(s.get_block("D"), "X", "shared")
    s.compute_at(fetched, i)
    s.bind(i, "thread_x")
    with pytest.raises(LoweringError, match=r"the shared buffer 'X\.shared' lives in one iteration of loop 'i'"):
        kernel(s)


@needs_gxx
def test_constants_are_stored_by_short_vectors(tmp_path: Path) -> None:
    """The zeros with which sums begin."""
    function = batched(1, 8, 8, 8)
    s = Schedule(compiler.lower(function))
    _, m, n, k = s.get_loops(s.get_block("C"))
    outer, lanes = s.split(n, [None, 4])
    s.reorder(outer, k, lanes)
    s.bind(m, "thread_x")
    s.vectorize(lanes)
    assert "= {0.0f, 0.0f, 0.0f, 0.0f};" in kernel(s).text
    inputs = [RANDOM.standard_normal((1, 8, 8), np.float32) for _ in range(2)]
    (actual,) = run_on_host(kernel(s), inputs, tmp_path)
    np.testing.assert_allclose(actual, inputs[0] @ inputs[1], rtol=1e-4, atol=1e-4)


def test_short_vectors_are_loaded_and_stored_whole() -> None:
    s = Schedule(compiler.lower(elementwise(8, 32)))
    recipes.spread(s, s.get_block("Y"), 16, vector=4)
    assert kernel(s).text.count("reinterpret_cast<const float4*>") == 2


def test_tiles_for_other_axes_are_refused() -> None:
    s = Schedule(compiler.lower(batched()))
    with pytest.raises(ScheduleError, match="it has 4 loops, and there are tiles for 3"):
        recipes.tile_on_threads(s, s.get_block("C"), None, ThreadTiles([(1, 1, 1), (1, 8, 1)], [8]))


@pytest.mark.parametrize("warps", [1, 8])
@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 64, 100, 130])
def test_rows_of_any_length(n: int, warps: int) -> None:
    """Shorter than a warp, than all threads, and no multiple of either."""
    function = softmax(3, n)
    s = Schedule(compiler.lower(function))
    recipes.rows_on_threads(s, s.get_block(list(s.program.blocks)[-1]), warps)
    assert str(s.verify()) == "proved"
    module, _, _ = lower_to_kernels(s.module.clone())
    x = RANDOM.standard_normal((3, n), np.float32)
    checked = simt.run(module, [x])
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(checked.outputs[0], e / e.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(("dtype", "reduce"), [("f64", "sum"), ("f32", "prod"), ("i32", "sum")])
def test_sums_that_no_warp_has(dtype: str, reduce: str) -> None:
    x, k = te.placeholder((4, 200), dtype, name="X"), te.reduce_axis(200, name="k")
    r = te.compute((4, 1), lambda i, _: getattr(te, reduce)(x[i, k], axis=k), name="R")
    y = te.compute((4, 200), lambda i, j: x[i, j] + r[i, 0], name="Y")
    s = Schedule(compiler.lower(te.function("f", [x], [y])))
    recipes.rows_on_threads(s, s.get_block("Y"), 2)
    assert str(s.verify()) == "proved" and "tensorized" not in str(s.module)
    module, _, _ = lower_to_kernels(s.module.clone())
    given = (RANDOM.standard_normal((4, 200)) / 8 + 1).astype(np.dtype(dtype.replace("f", "float").replace("i", "int")))
    checked = simt.run(module, [given])
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], given + getattr(np, reduce)(given, axis=1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize(
    "o, c, h, k, stride, twice", [(64, 3, 224, 7, 2, False), (96, 16, 112, 3, 2, True), (768, 3, 224, 16, 16, False)]
)
def test_default_tiles_fit_half_the_shared_memory(o: int, c: int, h: int, k: int, stride: int, twice: bool) -> None:
    x, f = te.placeholder((1, c, h, h), name="X"), te.placeholder((o, c, k, k), name="F")
    conv = te.function("conv", [x, f], te.nn.conv2d(x, f, stride=stride, padding=k // 2 if k < 16 else 0, name="C"))
    gpu = target_named("cuda").machine("sm_80")
    draft = Draft(Schedule(compiler.lower(conv)).fork(judged=False)[0], gpu, 1, ("C",))
    way = next(way for way in tiled_on_threads(draft, "C") if ("ahead" in way.name) == twice)
    way.apply(draft)
    shared = [b for b in draft.schedule.program.buffers.values() if b.scope == "shared"]
    total = sum(prod(b.shape) * element_bytes(b.element) for b in shared)
    assert 0 < total <= gpu.shared_bytes // 2


def test_edges_are_filled_with_zeros_and_only_stores_and_fetches_are_guarded() -> None:
    s = Schedule(compiler.lower(ragged()))
    ragged_tiles(s)
    text = kernel(s).text
    (update,) = [n for n, line in enumerate(text.splitlines()) if "C_local" in line and "+=" in line]
    around = text.splitlines()[update - 6 : update]
    assert [line.strip() for line in around if "if (" in line] == ["if (k_0 * 4 + k_1 < 11) {"]
    assert text.count("= 0.0f;") == 3  # the sums, and both operands beyond their edges
