"""The work of a loop program or of some of its nodes: floating-point operations, instances, bytes touched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute, Operation

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.upstream.arith import RemFOp
from compiler.program.body import Apply, Scalar, reached
from compiler.program.combiner import Joint
from compiler.program.tree import Block, Loop, Node, Program, blocks_in, walk
from compiler.types.elements import element_bytes

Points: TypeAlias = Any  # arrays of values by variable, which `evaluate` accepts like integers
EXACT = 1 << 20
"""Guards over at most this many points are counted by enumeration; larger ones are taken to hold."""

_ARITHMETIC: tuple[type[Operation], ...] = (
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp),
    *(arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp, RemFOp),
)


def flops(block: Block) -> int:
    """The floating-point operations of one instance: arithmetic of the body and its combination.

    Each operation counts one, an elementary function too, an fma two; integers, comparisons and conversions none.
    """
    return _flops(block.body) + sum(_combination(block, position) for position in range(len(block.combiners)))


def instances(program: Program, block: Block) -> int:
    """Execution count of a block: the iterations of the loops around it in which its guard holds.

    Exact where no more than `EXACT` points decide the guard; otherwise as if it always held.
    """
    around = {loop.number: loop.extent for loop in program.enclosing(block.label)}
    total = 1
    for group in _groups(block.guard):
        numbers = sorted(set().union(*(c.form.variables() for c in group)))
        points = prod(around.pop(number) for number in numbers)
        total *= _holding(program, group, numbers) if points <= EXACT else points
    return total * prod(around.values())


def total_flops(program: Program, nodes: Sequence[Node]) -> int:
    """Count the floating-point operations of the blocks at or inside some nodes, in one call of the function.

    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 4), name="B")
    >>> program = Schedule(te.function("f", [A, B], te.nn.matmul(A, B, name="C"))).program
    >>> strata.analysis.total_flops(program, program.body)
    256
    """
    return sum(flops(block) * instances(program, block) for block in blocks_in(*nodes))


def footprint(program: Program, nodes: Sequence[Node]) -> dict[str, int]:
    """Upper bound of the bytes of each buffer that some nodes touch in one iteration of the loops around them.

    Each dimension counts from the smallest to the largest index; a gather's table counts whole.

    >>> A = te.placeholder((4, 8), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> strata.analysis.footprint(s.program, s.program.body)
    {'A': 128, 'B': 128}
    >>> strata.analysis.footprint(s.program, s.program.body[0].body)
    {'A': 32, 'B': 32}
    """
    return {name: _bytes(program.buffers[name].element, spans) for name, spans in touched_boxes(program, nodes).items()}


def touched_boxes(
    program: Program, nodes: Sequence[Node], at: Mapping[int, int] = MappingProxyType({})
) -> dict[str, list[lin.Range]]:
    """The smallest box of each buffer that has all elements that some nodes touch: the first and the last index of each
    dimension. at: the iterations of loops around the nodes, by number; 0 without one."""
    inner = {node.number for node in walk(nodes) if isinstance(node, Loop)}
    ranges = {
        number: span if number in inner else (at.get(number, 0), at.get(number, 0))
        for number, span in program.ranges.items()
    }
    boxes: dict[str, list[lin.Range]] = {}
    for block in blocks_in(*nodes):
        for buffer, index in _places(block):
            forms = [block.at(form, program.ranges) if isinstance(form, Linear) else None for form in index]
            shape = program.buffers[buffer].shape
            spans = [_span(form, ranges, extent) for form, extent in zip(forms, shape, strict=True)]
            box = boxes.get(buffer, spans)
            boxes[buffer] = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(box, spans, strict=True)]
    return boxes


def _span(form: Linear | None, ranges: lin.Ranges, extent: int) -> lin.Range:
    """The interval of a dimension that an index reaches, cut to the extent; all of it for None, a loaded index."""
    low, high = (0, extent - 1) if form is None else lin.bounds(form, ranges)
    return max(0, low), min(extent - 1, high)


def _bytes(element: Attribute, spans: Sequence[lin.Range]) -> int:
    return prod(max(0, high - low + 1) for low, high in spans) * element_bytes(element)


def _places(block: Block) -> Iterator[tuple[str, Sequence[Linear | int]]]:
    """Yield each buffer that a block accesses with the index; 0 stands for a gather's data-dependent index."""
    for access in (*block.reads, *block.writes):
        yield access.buffer, access.index
    if block.table is not None:
        yield block.table.buffer, [i if isinstance(i, Linear) else 0 for i in block.table.index]


def _flops(nodes: Sequence[Scalar]) -> int:
    return sum(_weight(op.kind) for op in reached(nodes) if isinstance(op, Apply) and isinstance(op.types[0], AnyFloat))


def _weight(kind: type[Operation]) -> int:
    if kind is math.FmaOp:
        return 2
    return int(kind in _ARITHMETIC or kind.name.startswith("math."))


def _combination(block: Block, position: int) -> int:
    """The operations that combine value `position` into its target; a joint combiner's count for its first target."""
    combiner = block.combiners[position]
    if isinstance(combiner, Joint):
        return _flops(combiner.body) if position == 0 else 0
    return int(isinstance(_type(block.body[position], block), AnyFloat))


def _type(value: Scalar, block: Block) -> Attribute | None:
    if isinstance(value, Apply):
        return value.types[value.result]
    return getattr(value, "type", None)


def _groups(conditions: Sequence[Condition]) -> list[list[Condition]]:
    """Partition conditions into groups that share no variables."""
    groups: list[list[Condition]] = []
    for condition in conditions:
        variables = condition.form.variables()
        joined = [g for g in groups if any(variables & c.form.variables() for c in g)]
        groups = [g for g in groups if g not in joined]
        groups.append([condition, *(c for g in joined for c in g)])
    return groups


def _holding(program: Program, conditions: Sequence[Condition], numbers: Sequence[int]) -> int:
    """Count the points of the loops `numbers` at which all conditions hold: i in [0, 8), j in [0, 4), i <= 5 and j = 0:
    6."""
    axes = np.meshgrid(*(np.arange(program.loops[n].extent) for n in numbers), indexing="ij")
    values: Points = dict(zip(numbers, axes, strict=True))
    holds = np.ones([program.loops[n].extent for n in numbers], bool)
    for condition in conditions:
        value = np.asarray(lin.evaluate(condition.form, values))
        holds &= (value == 0) if condition.equal else (value >= 0)
    return int(holds.sum())
