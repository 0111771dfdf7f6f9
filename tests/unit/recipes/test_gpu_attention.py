"""Attention on GPUs: one kernel without an array of scores, right on numpy and in the text on the host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.dialects.gpu import BarrierOp

import compiler
from compiler import te
from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.alternatives import StreamedForm, streamed_attention
from compiler.alternatives.streamed import form as forms
from compiler.alternatives.streamed import running
from compiler.analysis.verify.prove import verify_schedule
from compiler.dialects.access import axis_attribute
from compiler.dialects.functions import find_function
from compiler.driver.devices.unit import STREAMED
from compiler.graph.canonical import canonical
from compiler.graph.read import read
from compiler.graph.write import write
from compiler.interpret.te import evaluate
from compiler.lowering.loop_to_low import versions
from compiler.lowering.loop_to_low.context import Context
from compiler.pipeline.loops import tree_of
from compiler.program.tree import Loop
from compiler.recipes.gpu.attention import StreamTiles, ThreadStreamTiles, stream_on_threads, stream_on_warps
from compiler.recipes.gpu.attention import warps as recipe
from compiler.schedule import Handle, Schedule
from compiler.support.errors import LoweringError, StrataError
from compiler.targets import simt
from compiler.targets.cuda import ARCHITECTURES, CudaKernel, nvrtc
from compiler.targets.registry import target_named
from strata.passes import lower_to_kernels
from tests.host_cuda import needs_gxx, run_on_host
from tests.sample import some

needs_nvrtc = pytest.mark.skipif(not nvrtc.is_available() or not nvrtc.has_headers(), reason="there is no NVRTC")
Array = np.ndarray[Any, Any]
DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i1": np.bool_}


def attention(
    heads: int = 2,
    groups: int = 2,
    queries: int = 64,
    keys: int = 128,
    depth: int = 32,
    columns: int = 32,
    dtype: str = "f16",
    mask: str = "",
    **options: Any,
) -> te.Function:
    """Attention of one batch; `mask` is its dtype, of one row of keys for i1."""
    q = te.placeholder((1, heads, queries, depth), dtype, name="Q")
    k = te.placeholder((1, groups, keys, depth), dtype, name="K")
    v = te.placeholder((1, groups, keys, columns), dtype, name="V")
    masks = [te.placeholder((1, 1, 1 if mask == "i1" else queries, keys), mask, name="mask")] if mask else []
    return te.function("f", [q, k, v, *masks], te.nn.attention(q, k, v, *masks, **options))


def written_out(dtype: str = "f16") -> te.Function:
    """Matmul, scale, softmax, matmul."""
    q, k, v = (te.placeholder((2, n, 32), dtype, name=name) for n, name in ((64, "Q"), (128, "K"), (128, "V")))
    scores = te.nn.mul(te.nn.batch_matmul(q, k, transpose_b=True), 0.2)
    return te.function("f", [q, k, v], te.nn.batch_matmul(te.nn.softmax(scores), v))


CASES: dict[str, tuple[te.Function, float]] = {
    "plain": (attention(), 1),
    "rows near 100": (attention(), 8),
    "bf16": (attention(dtype="bf16"), 1),
    "ragged": (attention(queries=50, keys=70, depth=24, columns=40), 1),
    "causal": (attention(queries=128, causal=True), 1),
    "causal at the end": (attention(queries=40, keys=100, causal=True, offset=60), 1),
    "causal, no key for the first queries": (attention(causal=True, offset=-3), 1),
    "causal, no key at the end": (attention(keys=256, causal=True), 1),
    "grouped heads": (attention(heads=4, groups=2), 1),
    "added mask": (attention(queries=60, keys=72, mask="f16"), 1),
    "masked keys": (attention(mask="i1"), 1),
    "soft cap": (attention(softcap=5.0), 4),
    "one block of keys": (attention(keys=64), 1),
    "depth 128": (attention(depth=128, columns=128), 1),
    "written out": (written_out(), 1),
    "f32": (attention(dtype="f32"), 1),
    "f32, ragged, masked": (attention(queries=50, keys=70, depth=20, columns=44, dtype="f32", mask="f32"), 1),
    "f32, written out, rows near 100": (written_out("f32"), 8),
}


def arrays(function: te.Function, scale: float = 1, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    drawn = [
        rng.standard_normal(a.shape) * scale if a.dtype != "i1" else rng.random(a.shape) < 0.3 for a in function.inputs
    ]
    return [array.astype(DTYPES[a.dtype]) for array, a in zip(drawn, function.inputs, strict=True)]


def form(function: te.Function) -> tuple[Schedule, list[int]]:
    """The streamed form of a program, unscheduled, and the positions of its inputs among the program's."""
    streamed, positions = te_form(function)
    return Schedule(streamed.tied(tree_of(ModuleOp([write(streamed.graph)])))), positions


def te_form(function: te.Function) -> tuple[StreamedForm, list[int]]:
    made = canonical(read(find_function(function.module)))
    streamed = streamed_attention(made.graph, "contract")
    assert streamed is not None
    names = [a.name for a in function.inputs]
    inputs = [value.name for value in streamed.graph.inputs if value.name not in streamed.former]
    return streamed, [names.index(made.names.values.get(name, name)) for name in inputs]


def evaluated(streamed: StreamedForm, given: list[Array]) -> Array:
    """The result of a form: as often as there are blocks of keys, each time with the results of the time before."""
    graph = replace(streamed.graph, results=(*streamed.graph.results, *streamed.former.values()))
    module = ModuleOp([write(graph)])
    former = [np.full(graph.values[name].shape, np.nan, np.float32) for name in streamed.former]
    blocks = former[0].shape[2] if former else 1
    for _ in range(blocks):
        result, *former = evaluate(module, [*given, *former])
    return result


def close(actual: Array, wanted: Array) -> None:
    """Two results in which one dtype is rounded twice."""
    eps = {2: 2.0**-7 if wanted.dtype == ml_dtypes.bfloat16 else 2.0**-10, 4: 2.0**-17}[wanted.dtype.itemsize]
    wanted = wanted.astype(np.float64)
    np.testing.assert_allclose(actual.astype(np.float64), wanted, rtol=eps, atol=eps * np.abs(wanted).max())


def check_form(name: str) -> None:
    """Compare the form of a case with the program as written, both evaluated."""
    function, scale = CASES[name]
    given = arrays(function, scale)
    streamed, positions = te_form(function)
    wanted = evaluate(function.module, given)[0]
    close(evaluated(streamed, [given[n] for n in positions]).reshape(wanted.shape), wanted)


@pytest.mark.parametrize("name", some(CASES, 2))
def test_the_form_computes_the_same(name: str) -> None:
    check_form(name)


FAULTS: dict[str, tuple[str, Any, str, Any]] = {
    "no factor": ("plain", forms, "LOG2_E", 1.0),
    "scaled twice": ("plain", forms, "unscaled", lambda value: (value, forms._constant(value.operands[1]))),
    "no column of ones": ("plain", forms, "number", lambda n, type_: FloatAttr(2.0 if n == 1.0 else n, type_)),
    "no keys, no maximum": ("causal, no key for the first queries", running, "LOWEST", float("-inf")),
    "keys beyond the last": ("ragged", forms.FormWriter, "masked", lambda self, value, *_: value),
    "a maximum of another thread": ("plain", running.RunningMaximum, "_keys_of_block", lambda self: 48),
    "f32, keys beyond the last": ("f32, ragged, masked", forms.FormWriter, "masked", lambda self, value, *_: value),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_form_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, where, attribute, wrong = FAULTS[fault]
    monkeypatch.setattr(where, attribute, wrong)
    with pytest.raises((AssertionError, StrataError)):
        check_form(name)


EXPONENTS = {
    "a logit less the maximum": lambda score, logit, top: logit - top,
    "the maximum less a logit": lambda score, logit, top: top - logit,
    "twice a logit": lambda score, logit, top: 2.0 * logit - top,
    "less twice the maximum": lambda score, logit, top: logit - 2.0 * top,
    "a score less the maximum of logits": lambda score, logit, top: score - top,
}


@pytest.mark.parametrize("name", EXPONENTS)
def test_only_a_logit_less_the_maximum_is_an_exponent(name: str) -> None:
    """Others would be scaled by the wrong factor where the maximum changes."""
    q, k, v = (te.placeholder((2, 64, 32), "f16", name=name) for name in "QKV")
    scores = te.nn.batch_matmul(q, k, transpose_b=True, dtype="f32", name="S")
    logits = te.compute(scores.shape, lambda b, m, n: scores[b, m, n] * 0.125, name="L")
    n = te.reduce_axis(64, "n")
    top = te.compute((2, 64), lambda b, m: te.max(logits[b, m, n], axis=n), name="T")
    exponent = EXPONENTS[name]
    powers = te.compute(
        scores.shape, lambda b, m, n: te.exp(exponent(scores[b, m, n], logits[b, m, n], top[b, m])), name="P"
    )
    total = te.compute((2, 64), lambda b, m: te.sum(powers[b, m, n], axis=n), name="Z")
    weights = te.compute(scores.shape, lambda b, m, n: te.cast(powers[b, m, n] / total[b, m], "f16"), name="W")
    function = te.function("f", [q, k, v], te.nn.batch_matmul(weights, v, name="O"))
    streamed = streamed_attention(canonical(read(find_function(function.module))).graph, "contract")
    assert (streamed is not None) == (name == "a logit less the maximum")


def test_keys_with_the_lowest_number_added_have_equal_weights() -> None:
    function = attention(dtype="bf16", mask="bf16", keys=128)
    given = arrays(function)
    given[3] = np.where(np.arange(64)[:, None] < 5, ml_dtypes.finfo(ml_dtypes.bfloat16).min, given[3])
    streamed, positions = te_form(function)
    wanted = evaluate(function.module, given)[0]
    mean = given[2].astype(np.float32).mean(2)[0, 0]
    np.testing.assert_allclose(wanted[0, 0, :5].astype(np.float32), np.broadcast_to(mean, (5, 32)), atol=0.01)
    close(evaluated(streamed, [given[n] for n in positions]).reshape(wanted.shape), wanted)


def test_a_causal_edge_off_by_one_is_seen() -> None:
    function, _ = CASES["causal"]
    given = arrays(function)
    wanted = evaluate(attention(queries=128, causal=True, offset=1).module, given)[0]
    with pytest.raises(AssertionError):
        close(evaluate(function.module, given)[0], wanted)


def executed_blocks(s: Schedule) -> int:
    """How many blocks of keys all blocks of threads of a scheduled attention go through."""
    guard, (kernel,) = s.program.blocks["wide"].guard, s.program.body
    assert isinstance(kernel, Loop)
    (keys,) = [n for n in kernel.body if isinstance(n, Loop) and "part" in n.nest.blocks]
    points = [{kernel.number: b, keys.number: t} for b in range(kernel.extent) for t in range(keys.extent)]
    return sum(all(lin.evaluate(c.form, point) >= 0 for c in guard) for point in points)


SKIPPED = {
    "as many keys as queries": ({"queries": 256, "keys": 256}, 128, 2 + 4),
    "the same by 64 queries": ({"queries": 256, "keys": 256}, 64, 2 * (2 + 4)),
    "by 64 queries, of an odd number": ({"queries": 320, "keys": 320}, 64, 1 + 2 + 3 + 4 + 5),
    "the last queries": ({"queries": 128, "keys": 512, "offset": 384}, 64, 7 + 8),
    "queries without a key": ({"queries": 192, "keys": 128, "offset": -66}, 64, 0 + 1 + 2),
    "rows that do not fill a block": ({"queries": 300, "keys": 300}, 64, 1 + 2 + 3 + 4 + 5),
    "more queries than keys": ({"queries": 512, "keys": 128}, 64, 8 * 2),
    "not causal": ({"queries": 512, "keys": 512, "causal": False}, 64, 8 * 8),
}


@pytest.mark.parametrize("name", some(SKIPPED, 4))
def test_blocks_of_keys_above_the_diagonal_are_skipped(name: str) -> None:
    options, queries, blocks = SKIPPED[name]
    function = attention(heads=1, groups=1, depth=16, columns=64, **{"causal": True, **options})
    s, positions = form(function)
    stream_on_warps(s, StreamTiles(tiles=queries // 64))
    assert executed_blocks(s) == blocks
    assert str(s.verify()) == "proved"
    given = arrays(function)
    found = simt.run(lower_to_kernels(s.module)[0], [given[n] for n in positions])
    assert found.is_correct, [str(fault) for fault in found.faults]
    wanted = evaluate(function.module, given)[0]
    close(found.outputs[0].reshape(wanted.shape), wanted)


def masked_and_not(s: Schedule) -> int:
    """How many stages of the kernel of a schedule have two versions."""
    module = lower_to_kernels(s.module.clone())[0]
    return sum(isinstance(op, scf.IfOp) and len(op.false_region.blocks) > 0 for op in module.walk())


def test_masks_are_applied_on_the_diagonal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    function = attention(heads=1, groups=1, queries=128, keys=128, depth=16, columns=64, causal=True)
    s, positions = form(function)
    stream_on_warps(s, StreamTiles())
    assert masked_and_not(s) == 2  # the maximum and the powers
    plain, _ = form(attention(heads=1, groups=1, queries=128, keys=128, depth=16, columns=64))
    stream_on_warps(plain, StreamTiles())
    assert masked_and_not(plain) == 0
    given, wanted = arrays(function), evaluate(function.module, arrays(function))[0]

    def outcome() -> Array:
        found = simt.run(lower_to_kernels(s.module.clone())[0], [given[n] for n in positions])
        return found.outputs[0].reshape(wanted.shape)

    close(outcome(), wanted)
    least = versions._least

    def a_block_too_far(*arguments: Any) -> Condition | None:
        condition = least(*arguments)
        return None if condition is None else Condition(condition.form + lin.constant(64))

    monkeypatch.setattr(versions, "_least", a_block_too_far)
    close(outcome(), wanted)  # that condition implies no test: both versions have the selections
    monkeypatch.setattr(Context, "is_implied", lambda self, condition: any(self.facts))
    with pytest.raises(AssertionError):
        close(outcome(), wanted)


def test_each_barrier_is_needed() -> None:
    function, _ = CASES["plain"]
    s, positions = form(function)
    stream_on_warps(s, StreamTiles())
    given = [arrays(function)[n] for n in positions]
    count = sum(isinstance(op, BarrierOp) for op in lower_to_kernels(s.module.clone())[0].walk())
    assert count == 2
    for number in range(count):
        module, _, _ = lower_to_kernels(s.module.clone())
        [op for op in module.walk() if isinstance(op, BarrierOp)][number].detach()
        found = simt.run(module, given)
        assert not found.is_correct and "race" in str(found.faults[0])


def test_threads_compute_with_their_own_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    def far_apart(s: Schedule, loops: tuple[Handle, Handle, Handle], tiles: StreamTiles) -> None:
        m, many, n = loops
        warp, tile, half, group = s.split(m, [tiles.warps, tiles.tiles, 2, 8])
        pair, quad = s.split(n, [2, 4])  # neighbours are another thread's
        s.reorder(warp, group, quad, tile, many, half, pair)
        s.bind(warp, "thread_y")
        s.bind(s.fuse(group, quad), "thread_x")

    monkeypatch.setattr(recipe, "_on_lanes", lambda s, loops, tiles, vector=False: far_apart(s, loops, tiles))
    s, _ = form(CASES["plain"][0])
    stream_on_warps(s, StreamTiles())
    assert str(s.verify()) == "proved"  # the loops are right, the registers are another thread's
    with pytest.raises(LoweringError, match="threads share the local buffer 'factors'"):
        lower_to_kernels(s.module)


def test_a_maximum_of_some_threads_is_refuted() -> None:
    s, _ = form(CASES["plain"][0])
    original = s.program
    stream_on_warps(s, StreamTiles())
    top = s.program.blocks["top"]
    short = replace(top, axes=(*top.axes[:-1], axis_attribute(top.axes[-1].label, 3, True)))
    loop = next(loop for loop in s.program.loops.values() if loop.variable == top.bindings[-1])
    wrong = s.program.replaced("top", lambda _: [short])
    wrong = wrong.replaced(loop.number, lambda old: [replace(old, extent=3)])
    assert str(verify_schedule(wrong, original)).startswith("refuted")


@pytest.mark.parametrize("name", some(CASES, 6))
def test_it_is_proved_and_without_a_fault(name: str) -> None:
    function, scale = CASES[name]
    given = arrays(function, scale)
    s, positions = form(function)
    if "f32" in name:
        stream_on_threads(s, ThreadStreamTiles())
    else:
        stream_on_warps(s, StreamTiles(keys=32 if "one block" in name else 64))
    assert str(s.verify()) == "proved"
    module, _, _ = lower_to_kernels(s.module)
    checked = simt.run(module, [given[n] for n in positions])
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    wanted = evaluate(function.module, given)[0]
    close(checked.outputs[0].reshape(wanted.shape), wanted)


@pytest.mark.parametrize("name", some(CASES, 8))
def test_it_is_the_default_in_one_kernel_without_scores(name: str) -> None:
    function, _ = CASES[name]
    kernel = compiler.build(function, "cuda", arch="sm_80", schedule="auto")
    assert isinstance(kernel, CudaKernel)
    assert len(kernel.launches) == 1 and kernel.workspace_bytes == 0
    assert [STREAMED in group.verdict and "proved" in group.verdict for group in kernel.groups] == [True]
    if "f32" not in name:
        assert kernel.text.count("multiply_add(") >= 3  # both products, and the function, on the tensor cores


@needs_gxx
@pytest.mark.parametrize("name", some(["masked keys", "rows near 100", "causal at the end", "f32, ragged, masked"], 4))
def test_the_text_computes_the_same_on_the_host(name: str, tmp_path: Path) -> None:
    function, scale = CASES[name]
    given = arrays(function, scale)
    given[3:] = [array & False if array.dtype == np.bool_ and name == "masked keys" else array for array in given[3:]]
    kernel = compiler.build(function, "cuda", arch="sm_80", schedule="auto")
    assert isinstance(kernel, CudaKernel)
    (actual,) = run_on_host(kernel, given, tmp_path)
    close(actual, evaluate(function.module, given)[0])


COMPILED = [
    (depth, dtype, arch)
    for depth in (32, 64, 80, 96, 128)
    for dtype in ("f16", "bf16", "f32")
    for arch in ARCHITECTURES
]


@needs_nvrtc
@pytest.mark.parametrize(("depth", "dtype", "arch"), some(COMPILED, 40))
def test_it_compiles_without_spills(depth: int, dtype: str, arch: str) -> None:
    function = attention(queries=512, keys=512, depth=depth, columns=depth, heads=12, groups=12, dtype=dtype)
    kernel = compiler.build(function, "cuda", arch=arch, schedule="auto")
    assert isinstance(kernel, CudaKernel)
    kernel.source.check(arch)
    first = {"f16": "sm_75", "bf16": "sm_80", "f32": "sm_70"}[dtype]
    assert (len(kernel.launches) == 1) == (int(arch[3:]) >= int(first[3:]))
    if arch in nvrtc.architectures():
        assert all(each.spill_bytes == 0 for each in kernel.resources(arch).values())


@pytest.mark.doors
@pytest.mark.parametrize("name", some(["causal", "masked keys", "grouped heads", "f32, ragged, masked"], 2))
def test_the_kernel_agrees_with_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    function, _ = CASES[name]
    given = arrays(function)
    s, positions = form(function)
    (stream_on_threads if "f32" in name else stream_on_warps)(
        s, ThreadStreamTiles() if "f32" in name else StreamTiles()
    )
    found = simt.run(lower_to_kernels(s.module)[0], [given[n] for n in positions])
    tensors = [torch.from_numpy(array if array.dtype == np.bool_ else array.astype(np.float32)) for array in given]
    wanted = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=name == "causal", enable_gqa=True)
    close(found.outputs[0].reshape(wanted.shape), wanted.numpy().astype(given[0].dtype))


@needs_nvrtc
def test_the_ptx_is_right() -> None:
    function, scale = CASES["rows near 100"]
    s, positions = form(function)
    stream_on_warps(s, StreamTiles())
    given = arrays(function, scale)
    kernel = compiler.build(s, "cuda")
    assert isinstance(kernel, CudaKernel)
    checked = target_named("cuda").check_text(kernel, [given[n] for n in positions], "sm_80")
    assert not checked.faults, list(checked.faults)
    wanted = evaluate(function.module, given)[0]
    close(checked.outputs[0].reshape(wanted.shape), wanted)
