"""Make the init of every reduction an explicit loop nest, so that each block with combiners accumulates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.affine import linear as lin
from compiler.dialects.functions import functions
from compiler.dialects.loop import BlockOp
from compiler.intrinsics import INTRINSICS
from compiler.program.init import init_block, init_depth, init_nest
from compiler.program.names import fresh
from compiler.program.read import read
from compiler.program.tree import Block, Loop, Node, Program, key_of, loops_in
from compiler.program.write import update
from compiler.support.errors import LoweringError


@dataclass(frozen=True)
class DecomposeReductionsPass(ModulePass):
    """Write each implicit init as a nest before the outermost loop that binds a reduce axis. Reductions that a whole
    warp computes stay. Raises LoweringError for a reduction whose write is indexed by a reduce axis.

      loop.for "k" { loop.for "l" { block "C" [l, reduce k] combine [add] } }
    ->
      loop.for "l" { block "C.init" [l] { 0 } }
      loop.for "k" { loop.for "l" { block "C" [l, reduce k] combine [add] accumulate } }
    """

    name = "decompose-reductions"
    anchor: ClassVar = "func.func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            if any(isinstance(inner, BlockOp) and inner.is_reduction for inner in function.walk()):
                update(function, decompose_reductions(read(function)))


def decompose_reductions(program: Program) -> Program:
    """Return the program with the init of every reduction as a separate nest; reductions by whole warps stay. Raises
    LoweringError for a reduction whose write is indexed by a reduce axis."""
    inits: dict[object, list[Node]] = {}
    decomposed: set[str] = set()
    labels, number = set(program.blocks), program.fresh_number()
    for block in program.blocks.values():
        enclosing_loops = program.enclosing(block.label)
        if not block.has_init or _is_whole_warp_sum(block, enclosing_loops):
            continue
        spatial = set(range(block.spatial))
        if any(not form.variables() <= spatial for access in block.writes for form in access.index):
            raise LoweringError("a reduction writes at an index that depends on a reduce axis")
        depth, label = init_depth(block, enclosing_loops), fresh(f"{block.label}.init", labels)
        labels.add(label)
        nest = init_nest(program, init_block(program, block, label), enclosing_loops[depth:], number, lanes=True).node
        number += len(loops_in(nest))
        inits.setdefault(enclosing_loops[depth].number if depth < len(enclosing_loops) else block.label, []).append(
            nest
        )
        decomposed.add(block.label)
    return replace(program, body=_with_inits(program.body, inits, decomposed)) if inits else program


def _is_whole_warp_sum(block: Block, enclosing_loops: Sequence[Loop]) -> bool:
    """Whether one warp intrinsic computes a complete reduction and sets its target: each outer loop that the block
    uses is bound to a spatial axis, so that no two iterations add to one element."""
    depth = next((n for n, loop in enumerate(enclosing_loops) if loop.intrinsic), len(enclosing_loops))
    intrinsic = INTRINSICS.get(enclosing_loops[depth].intrinsic or "") if depth < len(enclosing_loops) else None
    if intrinsic is None or intrinsic.form != "sum":
        return False
    reduced = {loop.number for loop in enclosing_loops[depth:]} & block.loops_of(True)
    spatial = block.bindings[: block.spatial]
    spatial_loops = {loop.number for loop in enclosing_loops if lin.variable(loop.number) in spatial}
    return len(reduced) == 1 and block.loops_of(True) - spatial_loops == reduced


def _with_inits(
    nodes: Sequence[Node], inits: Mapping[object, Sequence[Node]], decomposed: Collection[str]
) -> tuple[Node, ...]:
    """Insert the nests of `inits` before the nodes of their keys, and mark the `decomposed` blocks as accumulating."""
    new_nodes: list[Node] = []
    for node in nodes:
        new_nodes += inits.get(key_of(node), ())
        if isinstance(node, Loop):
            node = replace(node, body=_with_inits(node.body, inits, decomposed))
        elif isinstance(node, Block) and node.label in decomposed:
            node = replace(node, accumulate=True)
        new_nodes.append(node)
    return tuple(new_nodes)
