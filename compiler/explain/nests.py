"""The loops of the low level as a tree, with the blocks and the work of the loop program."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import UNKNOWN_LOC, IntegerAttr, LocationAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from compiler.analysis.cost import footprint, total_flops
from compiler.dialects.low_loops import loop_numbers
from compiler.lowering.low_to_llvm.marks import LoopOp, loops_of
from compiler.program.tree import Program, blocks_in
from compiler.support.origins import fused, origins


@dataclass(frozen=True)
class LoopNest:
    """A loop and its inner loops.

    number: from 1, in the order of `loops_of`. name: that of its variable. blocks: the labels of its blocks or, without
    a loop program, the buffers that it writes. trips: the largest trip count. exact: whether the trip count is
    constant. flops: those of all its runs in one call. bytes: the footprint of one run, over all buffers. trips, flops
    and bytes are None if unknown. sources: the parts of the user's model that its blocks compute, as text; empty if
    unknown.
    """

    number: int
    name: str
    blocks: tuple[str, ...]
    trips: int | None
    exact: bool
    flops: int | None
    bytes: int | None
    inner: tuple[LoopNest, ...]
    sources: tuple[str, ...] = ()


def nests(
    module: ModuleOp,
    function: FuncOp,
    program: Program | None,
    places: Mapping[str, LocationAttr] = MappingProxyType({}),
) -> tuple[LoopNest, ...]:
    """Return the outermost loops of a low-level function of `module`; `program` is the loop program that it was lowered
    from, without which (None) flops and bytes are unknown. places: the locations of computes by label."""
    numbers = {op: place for place, op in enumerate(loops_of(module), start=1)}
    function_loops = [op for op in numbers if function.is_ancestor(op)]
    runs: Counter[tuple[int, ...]] = Counter()
    for op in function_loops:
        runs[loop_numbers(op)] += _trips(op) or 1

    def nest(op: LoopOp) -> LoopNest:
        inner = tuple(map(nest, _loops(op.body.block.ops)))
        trips = _trips(op)
        loop_nest = LoopNest(numbers[op], _name(op), _written(op), trips, trips is not None, None, None, inner)
        loops = [] if program is None else [program.loops[number] for number in loop_numbers(op)]
        if program is None or not loops:
            return loop_nest
        flops = total_flops(program, loops[:1]) * (trips or 1) // runs[loop_numbers(op)]
        labels = tuple(block.label for block in blocks_in(loops[0]))
        location = fused(_place(label, places) for label in labels)
        return replace(
            loop_nest,
            name=loops[0].label,
            blocks=labels,
            sources=tuple(map(str, origins(location))),
            trips=prod(loop.extent for loop in loops) if trips is None else trips,
            flops=flops,
            bytes=sum(footprint(program, loops[:1]).values()),
        )

    return tuple(map(nest, _loops(function.body.block.ops)))


def _place(label: str, places: Mapping[str, LocationAttr]) -> LocationAttr:
    """The location of a block, `softmax.max.init`, by the longest prefix of its label: `softmax.max`, `softmax`."""
    while label not in places and label:
        label = label.rpartition(".")[0]
    return places.get(label, UNKNOWN_LOC)


def preorder(nests: Iterable[LoopNest]) -> Iterator[LoopNest]:
    """Yield loops and their inner loops in pre-order."""
    for nest in nests:
        yield nest
        yield from preorder(nest.inner)


def paths(nests: Iterable[LoopNest], outer: tuple[LoopNest, ...] = ()) -> dict[int, tuple[LoopNest, ...]]:
    """Map the number of each loop to its path: `outer` and the loops around it, outermost first, then the loop."""
    by_number: dict[int, tuple[LoopNest, ...]] = {}
    for nest in nests:
        by_number[nest.number] = (*outer, nest)
        by_number |= paths(nest.inner, (*outer, nest))
    return by_number


def _loops(ops: Iterable[Operation]) -> Iterator[LoopOp]:
    """Yield the outermost loops among ops, also inside other ops with regions, such as branches."""
    for op in ops:
        if isinstance(op, LoopOp):
            yield op
        else:
            for region in op.regions:
                for block in region.blocks:
                    yield from _loops(block.ops)


def _name(op: LoopOp) -> str:
    """Return the name of a loop's outermost variable, without the suffix of a renamed value; `loop` without a name."""
    return re.sub(r"(_\d+)+$", "", op.body.block.args[0].name_hint or "loop")


def _trips(op: LoopOp) -> int | None:
    if isinstance(op, scf.ForOp):
        return _between(op.lb, op.ub, op.step)
    counts = [_between(*bounds) for bounds in zip(op.lowerBound, op.upperBound, op.step, strict=True)]
    return None if None in counts else prod(trips for trips in counts if trips is not None)


def _between(lower: SSAValue, upper: SSAValue, step: SSAValue) -> int | None:
    low, high, by = map(_constant, (lower, upper, step))
    return None if low is None or high is None or not by else max(0, -((low - high) // by))


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, ConstantOp) and isinstance(owner.value, IntegerAttr):
        return int(owner.value.value.data)
    return None


def _written(op: LoopOp) -> tuple[str, ...]:
    stores = [inner for inner in op.walk() if isinstance(inner, memref.StoreOp | vector.StoreOp | vector.MaskedStoreOp)]
    buffers = [s.memref if isinstance(s, memref.StoreOp) else s.base for s in stores]
    return tuple(dict.fromkeys(buffer.name_hint or "a buffer" for buffer in buffers))
