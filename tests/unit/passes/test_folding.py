"""canonicalize and cse: the same results at each level, constants as mlir-opt folds them, effects of each op, fewer ops
than behind xDSL's passes."""

from __future__ import annotations

import math
import random
import shutil
import subprocess
from collections import Counter

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.traits import IsTerminator, MemoryEffect
from xdsl.transforms.canonicalize import CanonicalizePass as Upstream

from compiler import universe
from compiler.dialects.parser import Parser
from compiler.dialects.upstream.walk import ops_in
from compiler.passes.canonicalize import constants
from compiler.pipeline.parser import parse_passes
from compiler.pipeline.passes import run
from tests.constant_ops import Constants
from tests.fuzz import folding
from tests.sample import some

MLIR = shutil.which("mlir-opt-22")


@pytest.mark.parametrize("seed", some(range(1, 24)))
def test_random_programs_of_te_and_loops_compute_the_same(seed: int) -> None:
    if seed % folding.NATIVE:
        folding.check(seed)


@pytest.mark.parametrize("seed", some(range(0, 16 * folding.NATIVE, folding.NATIVE)))
def test_random_machine_code_computes_the_same(seed: int) -> None:
    folding.check(seed)


def test_a_wrong_rule_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold of subtraction that adds is found within some programs."""
    right = constants.function
    wrong = lambda op: right(arith.AddfOp(*op.operands) if isinstance(op, arith.SubfOp) else op)  # noqa: E731
    monkeypatch.setattr(constants, "function", wrong)
    with pytest.raises(AssertionError, match="is another"):
        for seed in range(1, 200):
            folding.check(seed)


@pytest.mark.skipif(MLIR is None, reason="mlir-opt-22 is not installed")
@pytest.mark.parametrize("seed", some(range(12), 6))
def test_constants_are_those_of_mlir(seed: int) -> None:
    """Each of 400 ops on constants that mlir-opt folds is folded, to the same bits but for the payload of NaN.
    Which zero maxnumf gives is left open, so it is not folded."""
    drawn = Constants(random.Random(seed))
    drawn.draw(400)
    ours = folding.lowered(parsed(drawn.text), "canonicalize")
    command = [str(MLIR), "-canonicalize", "--mlir-print-op-generic"]
    theirs = parsed(subprocess.run(command, input=drawn.text, capture_output=True, text=True, check=True).stdout)
    both = 0
    for line, mine, other in zip(drawn.lines, _values(ours), _values(theirs), strict=True):
        open_zero = "numf 0.0, -0.0" in line or "numf -0.0, 0.0" in line
        if other is not None and not (open_zero and mine is None):
            assert mine is not None and _same(mine, other), f"{line} is {mine}, and for mlir-opt {other}"
            both += 1
    assert both > 300


def _values(module: ModuleOp) -> list[int | float | None]:
    """The numbers that the only function returns; None for what is no constant."""
    (function,) = module.ops
    values: list[int | float | None] = []
    for value in function.regions[0].block.last_op.operands:  # type: ignore[union-attr]
        owner = value.owner
        known = isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr | IntegerAttr)
        values.append(owner.value.value.data if known else None)  # type: ignore[union-attr]
    return values


def _same(a: float, b: float) -> bool:
    return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def parsed(text: str) -> ModuleOp:
    """The module of a text."""
    return Parser(universe.context(), text, "<text>").parse_module()


EFFECTS = {
    "Pure": "te.compute te.constant te.gather te.index loop.constant loop.index unit.dot unit.tile_dot arith.cmpi "
    "arith.cmpf arith.select arith.index_cast arith.fptosi arith.fptoui arith.sitofp arith.uitofp arith.extf "
    "arith.truncf arith.trunci arith.extsi arith.extui arith.remf arith.index_castui arith.scaling_extf "
    "arith.scaling_truncf math.erfc affine.max affine.delinearize_index affine.linearize_index nvgpu.mma.sync "
    "gpu.shuffle tensor.bitcast tensor.rank memref.rank memref.transpose vector.contract vector.outerproduct "
    "vector.to_elements vector.from_elements vector.shape_cast vector.transpose vector.type_cast vector.step "
    "vector.vscale vector.constant_mask vector.extract_strided_slice vector.insert_strided_slice vector.interleave "
    "vector.deinterleave vector.multi_reduction vector.scan",
    "MemoryReadEffect": "unit.load unit.tile_load vector.gather nvgpu.ldmatrix",
    "MemoryWriteEffect": "unit.store unit.tile_store vector.scatter nvgpu.device_async_create_group",
    "MemoryReadEffect MemoryWriteEffect": "grid.arrive loop.block loop.gather memref.prefetch nvgpu.device_async_copy "
    "nvgpu.device_async_wait",
    "RecursiveMemoryEffect": "loop.for",
    "_AllocEffect": "loop.alloc",
    "_IntrinsicEffect": "llvm.call_intrinsic",
}
"""The ops of ours with known effects, by the effects. Others have unknown ones: they are neither merged nor dropped."""


def test_an_op_has_the_effects_that_it_should() -> None:
    """An op that is wrongly pure is dropped or merged: each is listed by hand."""
    effects: dict[str, set[str]] = {}
    for path in (universe.DIALECTS | universe.UPSTREAM).values():
        for op in universe.load(path).operations:
            if op.__module__.startswith("xdsl.") or any(isinstance(t, IsTerminator) for t in op.traits):
                continue
            names = " ".join(sorted(type(t).__name__ for t in op.traits if isinstance(t, MemoryEffect)))
            effects.setdefault(names, set()).add(op.name)
    del effects[""]
    assert effects == {names: set(ops.split()) for names, ops in EFFECTS.items()}


def test_loads_merge_across_other_loads_and_not_across_stores() -> None:
    """Ops of xDSL that state no effects would keep loads apart."""
    text = """func.func @f(%A: memref<8xf32>, %B: memref<8xf32>, %i: index) -> (f32, vector<4xf32>, vector<4xf32>) {
      %0 = memref.load %A[%i] : memref<8xf32>
      %1 = vector.load %A[%i] : memref<8xf32>, vector<4xf32>
      %2 = vector.load %A[%i] : memref<8xf32>, vector<4xf32>
      %3 = memref.load %A[%i] : memref<8xf32>
      %4 = arith.addf %0, %3 : f32
      vector.store %1, %B[%i] : memref<8xf32>, vector<4xf32>
      %5 = vector.load %A[%i] : memref<8xf32>, vector<4xf32>
      func.return %4, %2, %5 : f32, vector<4xf32>, vector<4xf32>
    }"""
    names = Counter(op.name for op in ops_in(folding.lowered(parsed(text), "cse")))
    assert names["memref.load"] == 1 and names["vector.load"] == 2 and names["vector.store"] == 1


def test_fewer_ops_remain_than_behind_the_passes_of_xdsl() -> None:
    counts: Counter[str] = Counter()
    for seed in range(8):
        rng = random.Random(seed)
        module = folding.disturbed(folding.drawn(rng, seed)[0], rng)
        theirs = module.clone()
        try:
            Upstream().apply(universe.context(), theirs)
        except OverflowError:  # a float, in its fold
            continue
        run(universe.context(), module, parse_passes("canonicalize"))
        counts["ours"] += len(ops_in(module))
        counts["theirs"] += len(ops_in(theirs))
    assert 0 < counts["ours"] < counts["theirs"]
