"""Functions that return one of their inputs while a guard is set, so that their calls can be skipped."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32

from compiler.affine import linear as lin
from compiler.dialects.upstream.arith import CMPF, CmpfOp, SelectOp
from compiler.graph.tree import Compute, Graph
from compiler.program.body import Apply, Read, Scalar
from compiler.program.tree import Block

UNEQUAL = CMPF.index("une")
"""The predicate of arith.cmpf: true if the operands differ or one is NaN."""


@dataclass(frozen=True)
class Guarded:
    """Positions of two inputs of a function: if the input `guard`, one f32, is not zero, the result is the input
    `value`."""

    guard: int
    value: int


def guarded(graph: Graph) -> Guarded | None:
    """The guard of a te function whose last node computes its only result as

        %y = te.compute [...] (%g = %guard[0], %v = %value[i, j, ...], ...) { select %g != 0.0, %v, ... }

    None for any other function.
    """
    last = graph.nodes[-1] if graph.nodes else None
    if not isinstance(last, Compute) or graph.results != (last.results[0].name,) or last.block.combiners:
        return None
    value = last.block.body[0]
    if last.block.table is not None or not isinstance(value, Apply) or value.kind is not SelectOp:
        return None
    test, then, _ = value.operands
    flag = _compared(test)
    if not isinstance(flag, Read) or not isinstance(then, Read):
        return None
    inputs = {buffer.name: n for n, buffer in enumerate(graph.inputs)}
    guard = last.block.reads[flag.position]
    flag_buffer, form = graph.values[guard.buffer], _element(graph, last, then)
    is_one_f32 = guard.index == (lin.constant(0),) and flag_buffer.shape == (1,) and flag_buffer.element == f32
    if not is_one_f32 or guard.where or form is None or not {guard.buffer, form} <= inputs.keys():
        return None
    return Guarded(inputs[guard.buffer], inputs[form])


def without_guard(graph: Graph) -> Graph | None:
    """The te function that `graph` computes if its guard is zero, without its guard and form; None if its last node
    does not select between the form and another of its values.

        %w = te.compute ...    %y = te.compute ... { select %guard[0] != 0.0, %form[i], %w[i] }    return %y
      ->
        %w = te.compute ...    return %w
    """
    found = guarded(graph)
    if found is None:
        return None
    last = graph.nodes[-1]
    assert isinstance(last, Compute) and isinstance(last.block.body[0], Apply)
    otherwise = last.block.body[0].operands[2]
    written = _element(graph, last, otherwise) if isinstance(otherwise, Read) else None
    if written is None:
        return None
    inputs = tuple(value for n, value in enumerate(graph.inputs) if n not in (found.guard, found.value))
    apart = {graph.inputs[found.guard].name, graph.inputs[found.value].name, *graph.results}
    if written in apart or any(apart.intersection(node.operands) for node in graph.nodes[:-1]):
        return None
    return replace(graph, inputs=inputs, nodes=graph.nodes[:-1], results=(written,))


def _element(graph: Graph, node: Compute, read: Read) -> str | None:
    """The name of the value, of the shape of a node's result, that the node reads at its own index; None for another
    read."""
    access = node.block.reads[read.position]
    shape = graph.values[access.buffer].shape
    is_own = not access.where and _is_own(node.block, access.index, shape) and shape == node.results[0].shape
    return access.buffer if is_own else None


def _compared(test: Scalar) -> Scalar | None:
    """The operand x of a comparison `x != 0.0`; None for any other value."""
    if not isinstance(test, Apply) or test.kind is not CmpfOp:
        return None
    predicate = dict(test.properties)["predicate"]
    value, zero = test.operands
    literal = dict(zero.properties).get("value") if isinstance(zero, Apply) else None
    is_zero = isinstance(literal, FloatAttr) and literal.value.data == 0
    is_unequal = isinstance(predicate, IntegerAttr) and predicate.value.data == UNEQUAL
    return value if is_zero and is_unequal else None


def _is_own(block: Block, index: tuple[lin.Linear, ...], shape: tuple[int, ...]) -> bool:
    """Whether an index into a buffer of `shape` is the block's spatial axes in order; dimensions of extent 1 may have
    any index."""
    identity = [lin.variable(n) if size > 1 else lin.constant(0) for n, size in enumerate(shape)]
    return len(shape) == block.spatial and all(
        form == at or size == 1 for form, at, size in zip(index, identity, shape, strict=True)
    )
