"""Loop kinds and imperfect splits change nothing: compiled code equals the evaluator under random ones.

Every loop of a lowered operator may be unrolled, one around each block vectorized (reductions too), and each may be
split with a guard, before the function is compiled; the same program also runs in the loop interpreter.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr, IndexType, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Region
from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr, AffineMap, AffineSet

import compiler
from compiler.dialects.dominance import verify_module
from compiler.dialects.loop import BlockOp, ForOp, Header, enclosing_loops
from compiler.interpret import loop as interpreter
from compiler.interpret import te as evaluator
from compiler.pipeline.source import parse
from tests.e2e.test_operators import close
from tests.operators import CASES, inputs
from tests.sample import pairs, some

NAMES = [n for n in CASES if n.rpartition("-")[0] not in ("exp", "log", "sqrt", "neg", "sub", "minimum", "min")]


def split(loop: ForOp, factor: int) -> None:
    """Split a loop in two, with a guard where the factor does not divide its extent."""
    outer = -(-loop.size // factor)
    inner = ForOp(f"{loop.label.data}.1", factor, Region(Block(arg_types=[IndexType()])))
    inner.iv.name_hint = f"{loop.label.data}.1"
    old_iv, size = loop.iv, loop.size
    for op in list(loop.body.block.ops):
        op.detach()
        inner.body.block.add_op(op)
    loop.body.block.add_op(inner)
    loop.properties |= {"extent": IntAttr(outer), "label": StringAttr(f"{loop.label.data}.0")}
    for block in [b for b in inner.walk() if isinstance(b, BlockOp)]:
        if old_iv in block.loops:
            _rebind(block, list(block.loops).index(old_iv), inner, factor, size if size % factor else 0)


def _rebind(block: BlockOp, position: int, inner: ForOp, factor: int, limit: int) -> None:
    count = len(block.loops)
    dims = [AffineExpr.dimension(d) for d in range(count)]
    dims[position] = dims[position] * factor + AffineExpr.dimension(count)
    outputs = tuple(e.replace_dims_and_symbols(dims, ()) for e in block.bindings.data.results)
    constraints = list(block.guard.constraints) if block.guard is not None else []
    zero = AffineExpr.constant(0)
    constraints = [AffineConstraintExpr(c.kind, c.lhs.replace_dims_and_symbols(dims, ()), zero) for c in constraints]
    if limit:
        form = dims[position] * -1 + (limit - 1)
        constraints.append(AffineConstraintExpr(AffineConstraintKind.ge, form, zero))
    block.properties["bindings"] = AffineMapAttr(AffineMap(count + 1, 0, outputs))
    if constraints:
        block.properties["where"] = AffineSetAttr(AffineSet(count + 1, 0, tuple(constraints)))
    origin = block.origin_label.data if block.origin_label else None
    place = Header(
        block.label.data,
        block.axes.data,
        [*block.loops, inner.iv],
        block.bindings.data,
        block.guard or AffineSet(count + 1, 0, ()),
        list(block.targets),
        block.writes.data,
        (origin, block.origin_map.data) if origin and block.origin_map else None,
    )
    body, combination = block.detach_region(block.body), block.combination.clone()
    new = BlockOp(place, list(block.inputs), block.reads.data, body, combination)
    parent = block.parent_block()
    assert parent is not None
    parent.insert_op_before(new, block)
    parent.erase_op(block)


def disturb(module: ModuleOp, rng: random.Random) -> None:
    """Split, unroll and vectorize loops at random."""
    for loop in [op for op in module.walk() if isinstance(op, ForOp)]:
        if rng.random() < 0.4:
            split(loop, rng.randint(1, 5))
    for block in [op for op in module.walk() if isinstance(op, BlockOp)]:
        loops = enclosing_loops(block)
        for loop in loops:
            if loop.size <= 4 and rng.random() < 0.4:
                loop.properties["kind"] = StringAttr("unrolled")
        if loops and rng.random() < 0.8:
            rng.choice(loops).properties["kind"] = StringAttr("vectorized")


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "seed"), pairs(some(NAMES), range(3)))
def test_kinds_change_nothing(name: str, seed: int) -> None:
    function = CASES[name]()
    if name.startswith("dtype") and seed:
        pytest.skip("one disturbance is enough for the long list of operations")
    rng = random.Random(f"{name}/{seed}")
    module = parse(compiler.build(function).text("loop"))
    disturb(module, rng)
    verify_module(module)
    arrays = inputs(function)
    expected = evaluator.evaluate(function.module, arrays)
    computed = compiler.build(module)(*arrays)
    for got, want in zip(computed if isinstance(computed, tuple) else (computed,), expected, strict=True):
        close(got, want)
    if seed == 0 and max(e.size for e in expected) < 200 and not name.startswith("dtype"):
        outputs = [np.empty_like(e) for e in expected]
        interpreter.run(module, [*arrays, *outputs])
        for got, want in zip(outputs, expected, strict=True):
            close(got, want)
