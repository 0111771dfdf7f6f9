"""Panels fetched several rounds ahead: waits that leave groups of copies in flight, and faults of their counts."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import arith, gpu
from xdsl.dialects.builtin import IntegerAttr, i32

import compiler
from compiler import recipes, te
from compiler.analysis.barriers import AHEAD, barriers, orders_first
from compiler.dialects.upstream import nvgpu
from compiler.program.tree import Loop, loops_in
from compiler.recipes import ThreadTiles, WarpTiles
from compiler.schedule import Schedule
from compiler.support.errors import ScheduleError
from compiler.targets import simt
from compiler.targets.cuda import nvrtc
from compiler.targets.registry import target_named
from tests.host_cuda import needs_gxx, run_on_host
from tests.sample import some
from tests.unit.targets.ptx.kept import parsed, text_of
from tests.unit.targets.test_warps import built, inputs, kernels, matmul, product, scheduled

needs_nvrtc = pytest.mark.skipif(not nvrtc.is_available() or not nvrtc.has_headers(), reason="there is no NVRTC")


def pipelined(stages: int, rounds: int = 8, **facts: object) -> tuple[te.Function, Schedule]:
    function = matmul(64, 32, 16 * rounds, **facts)  # type: ignore[arg-type]
    return function, scheduled(function, WarpTiles((2, 2), (2, 2), 1, twice=True, stages=stages))


CASES = {
    "three": (3, 8, {}, "wait_for_groups<1>();"),
    "four": (4, 8, {}, "wait_for_groups<2>();"),
    "four, B transposed": (4, 8, {"transposed": True}, "wait_for_groups<2>();"),
    "four of bf16, with an epilogue": (4, 7, {"dtype": "bf16", "epilogue": "f32"}, "wait_for_groups<2>();"),
    "as many as rounds": (4, 3, {}, "wait_for_groups<2>();"),
    "two rounds": (2, 2, {}, "wait_for_groups<1>();"),
    "two": (2, 8, {}, "wait_for_copies();"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_wait_leaves_as_many_groups_as_are_not_yet_read(name: str) -> None:
    stages, rounds, facts, wait = CASES[name]
    function, s = pipelined(stages, rounds, **facts)
    assert str(s.verify()) == "proved"
    given = inputs(function)
    checked = simt.run(kernels(s), given)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    want = product(given, bool(facts.get("transposed", False)))
    np.testing.assert_allclose(checked.outputs[0], want, rtol=1e-4, atol=1e-4)
    text = built(s).text
    waits = {line.strip() for line in text.split("\n") if line.strip().startswith("wait_for_")}
    assert waits - {"wait_for_copies();"} == {wait} - {"wait_for_copies();"} and wait in waits
    assert ("commit_copies();" in text) == ("groups" in wait)


@needs_gxx
@pytest.mark.parametrize("name", some(CASES, 2))
def test_the_text_is_right_on_the_host(name: str, tmp_path: Path) -> None:
    stages, rounds, facts, _ = CASES[name]
    function, s = pipelined(stages, rounds, **facts)
    given = inputs(function)
    (on_host,) = run_on_host(built(s), given, tmp_path)
    want = product(given, bool(facts.get("transposed", False)))
    np.testing.assert_allclose(on_host, want, rtol=1e-4, atol=1e-4)


@needs_nvrtc
@pytest.mark.parametrize("name", some(CASES, 2))
def test_the_ptx_is_right(name: str) -> None:
    stages, rounds, facts, _ = CASES[name]
    function, s = pipelined(stages, rounds, **facts)
    given = inputs(function)
    checked = target_named("cuda").check_text(built(s), given, "sm_80")
    assert not checked.faults, [str(fault) for fault in checked.faults]
    want = product(given, bool(facts.get("transposed", False)))
    np.testing.assert_allclose(checked.outputs[0], want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("stages", "rounds"), [(4, 8), (3, 8), (2, 2)])
def test_a_wait_that_leaves_one_group_more_is_named(stages: int, rounds: int) -> None:
    function, s = pipelined(stages, rounds)
    module = kernels(s)
    for wait in [op for op in module.walk() if isinstance(op, nvgpu.WaitOp)]:
        assert wait.groups is not None
        wait.properties["numGroups"] = IntegerAttr(wait.groups.value.data + 1, i32)
    kinds = {fault.kind for fault in simt.run(module, inputs(function)).faults}
    assert "uninitialised read" in kinds


def test_a_missing_barrier_is_a_race() -> None:
    function, s = pipelined(4)
    module = kernels(s)
    waits = [op for op in module.walk() if isinstance(op, gpu.BarrierOp)]
    assert len(waits) == 1, "the rounds that only fetch have none"
    waits[0].detach()
    assert any("race" in fault.kind for fault in simt.run(module, inputs(function)).faults)


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_barrier_orders_nothing_in_the_rounds_that_only_fetch(stages: int) -> None:
    _, s = pipelined(stages)
    (kernel,) = (node for node in s.program.body if isinstance(node, Loop))
    (rounds,) = (loop for loop in loops_in(kernel) if AHEAD in dict(loop.attributes))
    keys = barriers(s.program, kernel)
    assert not orders_first(s.program, kernel, rounds, stages - 1, keys)
    assert orders_first(s.program, kernel, rounds, stages, keys), "the next round reads what others fetched"


def test_a_stage_too_few_is_refused_and_named() -> None:
    """A fetch overwrites what the same round reads: a schedule cannot, and a kernel that does is named."""
    function = matmul(64, 32, 128)
    s = Schedule(compiler.lower(function))
    block = s.get_block("C")
    _, _, k = s.get_loops(block)
    k0, _ = s.split(k, [None, 16])
    fetch = s.cache_read(block, "A", "shared")
    s.compute_at(fetch, k0)
    s.double_buffer(fetch, 3)
    with pytest.raises(ScheduleError):
        s.software_pipeline(k0, [0, 3])
    function, s = pipelined(4)
    module = kernels(s)
    for op in [op for op in module.walk() if isinstance(op, arith.RemUIOp)]:
        bound = op.rhs.owner
        if isinstance(bound, arith.ConstantOp) and bound.value == IntegerAttr.from_index_int_value(4):
            three = arith.ConstantOp(IntegerAttr.from_index_int_value(3))
            assert op.parent is not None
            op.parent.insert_ops_before([three], op)
            later = op.lhs.owner  # of round - 3 = round + 1 modulo 4: the same buffer modulo 3
            op.operands = [later.lhs if isinstance(later, arith.AddiOp) else op.lhs, three.result]
    assert {"uninitialised read"} <= {fault.kind for fault in simt.run(module, inputs(function)).faults}


# What is replaced in the text, by what; the kind of the fault that the PTX has then, or a part of it.
FAULTS = {
    "a count": (r"wait_for_groups<2>", "wait_for_groups<3>", "asynchronous copy that nobody has waited for"),
    "a wait": (r"wait_for_groups<2>\(\);", "", "asynchronous copy that nobody has waited for"),
    "a group": (r"commit_copies\(\);", "", "asynchronous copy that nobody has waited for"),
    "a barrier": (r"__syncthreads\(\);", "", "race"),
    "a stage": (r"\(k_0 \+ 1\) % 4|k_0 % 4", "k_0 % 3", "asynchronous copy that nobody has waited for"),
}


@needs_nvrtc
@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_the_text_are_named(name: str) -> None:
    function, s = pipelined(4)
    old, new, kind = FAULTS[name]
    kernel = built(s)
    text = re.sub(old, new, kernel.text)
    assert text != kernel.text
    faults = parsed(text_of(kernel, text)).run(inputs(function)).faults
    assert any(kind in fault.kind for fault in faults), [fault.kind for fault in faults]


def test_a_product_of_two_rounds_on_threads_overlaps_too() -> None:
    a, b = te.placeholder((32, 16), name="A"), te.placeholder((16, 32), name="B")
    s = Schedule(compiler.lower(te.function("mm", [a, b], te.nn.matmul(a, b, name="C"))))
    recipes.tile_on_threads(s, s.get_block("C"), None, ThreadTiles([(1, 8, 4), (1, 8, 4)], [8], 4, twice=True))
    given = [np.random.default_rng(0).standard_normal(shape, np.float32) for shape in ((32, 16), (16, 32))]
    checked = simt.run(kernels(s), given)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], given[0] @ given[1], rtol=1e-4, atol=1e-4)
    assert "wait_for_groups<1>();" in built(s).text


def test_copies_of_two_loops_are_all_waited_for() -> None:
    """Only a loop with all copies and their uses, under loops over blocks, counts groups."""
    a, b = te.placeholder((4, 32, 32), "f16", name="A"), te.placeholder((4, 32, 16), "f16", name="B")
    r, k = te.reduce_axis(4, name="r"), te.reduce_axis(32, name="k")
    c = te.compute(
        (32, 16), lambda i, j: te.sum(te.cast(a[r, i, k], "f32") * te.cast(b[r, k, j], "f32"), axis=[r, k]), name="C"
    )
    s = Schedule(compiler.lower(te.function("mm", [a, b], c)))
    block = s.get_block("C")
    i, j, r_, k_ = s.get_loops(block)
    s.reorder(r_, k_, i, j)
    fetches = [recipes.cooperative_fetch(s, block, name, r_, 32, 2) for name in "AB"]
    for fetch in fetches:
        s.annotate(s.get_loops(fetch)[-1], "async", 1)
    assert "wait_for_groups" not in built(s).text
