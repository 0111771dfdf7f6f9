"""Functions that only lay out their inputs one after another in memory: concatenations, reshapes, stacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.graph.laws.concatenations import read_at
from compiler.graph.tree import Compute, Graph
from compiler.program.body import Read


@dataclass(frozen=True)
class Slot:
    """An input, by its position, and its row-major offset in the result, in elements."""

    input: int
    start: int


def contiguous_parts(graph: Graph) -> tuple[Slot, ...] | None:
    """The slots of a function whose result consists of whole inputs, one after another; None for any other function,
    and for a result without dimensions.

        %J = te.compute "J" [i = 8, j = 2] (%a = %A[i, j] where (-i + 3 >= 0) else 0.0,
            %b = %B[i - 4, j] where (i - 4 >= 0) else 0.0) { select i < 4, %a, %b }
      ->
        Slot(0, 0), Slot(1, 8)      // A, B

    The slots divide the first axis of extent above 1. An input may have another shape than its slot: a reshape.
    """
    node = graph.nodes[0] if len(graph.nodes) == 1 else None
    if not isinstance(node, Compute) or node.block.combiners or node.block.table is not None:
        return None
    if graph.results != tuple(value.name for value in node.results) or len(node.block.body) != 1:
        return None
    shape, inputs = node.results[0].shape, [buffer.name for buffer in graph.inputs]
    if not shape:
        return None
    axis = next((d for d, extent in enumerate(shape) if extent > 1), 0)
    inner, start, slots = prod(shape[axis + 1 :]), 0, list[Slot]()
    while start < shape[axis]:
        position = _read_at(node, {axis: lin.constant(start)}, node.block.axis_ranges)
        name = "" if position is None else node.block.reads[position].buffer
        length, remainder = divmod(prod(graph.values[name].shape) if name in inputs else 0, inner)
        if position is None or remainder or not 0 < length <= shape[axis] - start:
            return None
        if not _is_whole(graph, node, position, axis, start, length):
            return None
        slots.append(Slot(inputs.index(name), start * inner))
        start += length
    return tuple(slots)


def _read_at(node: Compute, values: Mapping[int, Linear], ranges: lin.Ranges) -> int | None:
    """The position of the read that a compute copies where its axes have `values`; None if it computes its value."""
    value = read_at(node.block.body[0], values, ranges)
    return value.position if isinstance(value, Read) else None


def _is_whole(graph: Graph, node: Compute, position: int, axis: int, start: int, length: int) -> bool:
    """Whether result[start : start + length] along `axis` is the whole buffer of read `position`, row-major, of its
    dtype."""
    block, joined = node.block, node.results[0]
    access, source = block.reads[position], graph.values[block.reads[position].buffer]
    values = {d: lin.constant(0) for d, extent in enumerate(joined.shape) if extent == 1}
    values[axis] = lin.constant(start) + (lin.variable(axis) if length > 1 else lin.constant(0))
    ranges = {**block.axis_ranges, axis: (0, length - 1)}
    if _read_at(node, values, ranges) != position or source.element != joined.element:
        return False
    if not all(condition.substitute(values, ranges).always(ranges) for condition in access.where):
        return False
    # %B of `contiguous_parts`: start 4, length 4. Its index [i - 4, j] at i := 4 + i is [i, j], at the offset
    # 2 * i + j. The result at [4 + i, j] is at 2 * (4 + i) + j, less 2 * 4 for the start: the same, so it is whole.
    index = [lin.substitute(form, values, ranges) for form in access.index]
    target = [values.get(d, lin.variable(d)) for d in range(len(joined.shape))]
    stretch_offset = lin.offset(target, joined.shape) - lin.constant(start * prod(joined.shape[axis + 1 :]))
    return lin.joined(lin.offset(index, source.shape)) == stretch_offset
