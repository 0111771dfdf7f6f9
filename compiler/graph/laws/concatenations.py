"""Reads that stay inside one part of a concatenation."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr

from compiler.affine import linear as lin
from compiler.affine.limits import END
from compiler.affine.linear import Linear
from compiler.graph.laws.views import ReadView, reading_through
from compiler.graph.tree import Compute, Graph, Node
from compiler.program.body import Apply, Index, Read, Scalar
from compiler.program.tree import Access

_COMPARED = ("eq", "ne", "slt", "sle", "sgt", "sge")
_LOGIC = {"arith.andi": False, "arith.ori": True}
"""Map a logical operation to the operand value that determines its result: false for `and`, true for `or`."""


def read_parts(graph: Graph) -> Graph:
    """Read a part of a concatenation directly, if the index of a read never leaves that part.

        %J = te.compute "J" [i = 8] (%a = %A[i] where (-i + 3 >= 0) else 0.0,
            %b = %B[i - 4] where (i - 4 >= 0) else 0.0) { select i < 4, %a, %b }
        %Y = te.compute "Y" [i = 4] (%j = %J[i + 4] ...) { ... }
      ->
        %Y = te.compute "Y" [i = 4] (%j = %B[i] ...) { ... }

    Any compute that only selects among its reads, by comparisons of its axes, counts as a concatenation.
    """
    joins: dict[str, tuple[Compute, int]] = {}

    def part(access: Access, node: Compute) -> ReadView | None:
        join = joins.get(access.buffer)
        return None if join is None else _part(*join, access, node, graph)

    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, Compute):
            node = reading_through(node, part)
            if not node.block.combiners:
                selects = [n for n, value in enumerate(node.block.body) if _is_select(value)]
                joins |= {node.results[n].name: (node, n) for n in selects}
        nodes.append(node)
    return graph.with_nodes(nodes)


def _is_select(value: Scalar) -> bool:
    return isinstance(value, Apply) and value.kind.name == "arith.select"


def _part(join: Compute, position: int, access: Access, node: Compute, graph: Graph) -> ReadView | None:
    """The only part that a read touches of a concatenation, the result of `join` at `position`, as a view; None if it
    touches several, for the table of a gather, and for a part that is undecided, computed or converted."""
    if node.block.table is not None and access.buffer == node.block.table.buffer:
        return None
    value = read_at(join.block.body[position], dict(enumerate(access.index)), node.block.axis_ranges)
    joined = join.results[position]
    if not isinstance(value, Read):
        return None
    read = join.block.reads[value.position]
    source = graph.values[read.buffer]
    return ReadView(source, read, joined.shape) if source.element == joined.element else None


def read_at(value: Scalar, indices: Mapping[int, Linear], ranges: lin.Ranges) -> Scalar | None:
    """The operand that the selects of a value choose if its axes have the values `indices`, the value itself if it is
    no select; None if the choice varies or is undecided. `ranges` are those of the variables in `indices`."""
    while isinstance(value, Apply) and value.kind.name == "arith.select":
        truth = truth_at(value.operands[0], indices, ranges)
        if truth is None:
            return None
        value = value.operands[1 if truth else 2]
    return value


def truth_at(value: Scalar, indices: Mapping[int, Linear], ranges: lin.Ranges) -> bool | None:
    """The truth of a condition if its axes have the values `indices`; None if it varies or is undecided. `ranges` are
    those of the variables in `indices`."""
    if not isinstance(value, Apply):
        return None
    if value.kind.name == "arith.cmpi":
        return _compared(value, indices, ranges)
    if value.kind.name in _LOGIC:
        decisive = _LOGIC[value.kind.name]
        sides = [truth_at(operand, indices, ranges) for operand in value.operands]
        return decisive if decisive in sides else None if None in sides else not decisive
    if value.kind.name == "arith.constant":
        literal = dict(value.properties)["value"]
        return bool(literal.value.data) if isinstance(literal, IntegerAttr) else None
    return None


def _compared(value: Apply, indices: Mapping[int, Linear], ranges: lin.Ranges) -> bool | None:
    """The truth of a comparison of type index at `indices`, from the bounds of the difference of its operands over
    `ranges`; None if it varies or is undecided."""
    predicate = dict(value.properties)["predicate"]
    first, second = map(_form, value.operands)
    if first is None or second is None or not isinstance(predicate, IntegerAttr) or predicate.value.data > 5:
        return None
    # `i < 4` at i := j + 4, j in 0..3: the difference (j + 4) - 4 is in 0..3, never below 0, so it is False.
    difference = lin.substitute(first - second, indices, ranges)
    if lin.largest(difference, ranges) >= END:
        return None
    low, high = lin.bounds(difference, ranges)
    name = _COMPARED[predicate.value.data]
    if name in ("eq", "ne"):
        equal = True if low == high == 0 else False if low > 0 or high < 0 else None
        return equal if equal is None or name == "eq" else not equal
    always = {"slt": high < 0, "sle": high <= 0, "sgt": low > 0, "sge": low >= 0}[name]
    never = {"slt": low >= 0, "sle": low > 0, "sgt": high <= 0, "sge": high < 0}[name]
    return True if always else False if never else None


def _form(value: Scalar) -> Linear | None:
    """A value of type index as an affine form over axes; None if it is not affine."""
    if isinstance(value, Index):
        return lin.variable(value.axis)
    if not isinstance(value, Apply):
        return None
    if value.kind.name == "arith.constant":
        literal = dict(value.properties)["value"]
        return lin.constant(literal.value.data) if isinstance(literal, IntegerAttr) else None
    if len(value.operands) != 2:
        return None
    first, second = map(_form, value.operands)
    if first is None or second is None:
        return None
    if value.kind.name == "arith.addi":
        return first + second
    if value.kind.name == "arith.subi":
        return first - second
    if value.kind.name == "arith.muli" and (first.is_constant or second.is_constant):
        return first.scaled(second.constant) if second.is_constant else second.scaled(first.constant)
    return None
