"""Blocks that move into a loop: the nest at the new place, and the buffers that must live there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.program.tree import Block, Loop, Node, Program, nested
from compiler.schedule.plan import block_place, labels_in, new_label, refuse
from compiler.schedule.region import Interval, inside


def require_visible(program: Program, block: Block, outer: set[int]) -> None:
    """Every buffer of the block lives at its new place."""
    for name in dict.fromkeys((*block.sources, *(a.buffer for a in block.writes))):
        around = program.enclosing((name,)) if name in program.allocs else ()
        for loop in around:
            if loop.number not in outer:
                refuse(block_place(block.label), f"buffer '{name}' lives in loop '{loop.label}' only")


def moved_nest(
    program: Program, block: Block, spans: dict[int, Interval], node: Loop, when: Sequence[Condition] = ()
) -> Node:
    """The block under new loops inside `node`, over the spans of its axes and all of its reductions."""
    taken = {n.label for n in (*program.enclosing(node.number), node)} | labels_in(node.body)
    number = program.fresh_number()
    ranges = dict(program.ranges)
    loops: list[Loop] = []
    bindings: list[Linear] = []
    guard = list(when)
    for position, (axis, bound) in enumerate(zip(block.axes, block.bindings, strict=True)):
        span = spans.get(position)
        if span is None and not axis.is_reduce:
            if not bound.variables() <= {n.number for n in (*program.enclosing(node.number), node)}:
                reason = f"its axis '{axis.label}' indexes no element and is tied to the place where it stands"
                refuse(block_place(block.label), reason)
            bindings.append(bound)
            continue
        span = span or Interval(lin.constant(0), axis.size)
        form = span.low
        if span.extent > 1:
            label = new_label(axis.label if axis.label not in taken else f"{block.label}.{axis.label}", taken)
            loops.append(Loop(number, label, span.extent, ()))
            ranges[number] = (0, span.extent - 1)
            form = form + lin.variable(number)
            number += 1
        bindings.append(form)
        guard += inside([form], [axis.size], ranges)
    return nested(loops, replace(block, bindings=tuple(bindings), guard=tuple(dict.fromkeys(guard))))


def require_box(program: Program, block: Block) -> None:
    """The axes vary independently of each other: no loop binds two of them."""
    seen: dict[int, str] = {}
    for axis, form in zip(block.axes, block.bindings, strict=True):
        for number in form.variables():
            if number in seen:
                label = program.loops[number].label
                reason = f"its axes '{seen[number]}' and '{axis.label}' are tied to each other by loop '{label}'"
                refuse(block_place(block.label), reason)
            seen[number] = axis.label


def inserted(program: Program, loop: int, position: int, nest: Node) -> Program:
    """The program with a nest at a position in the body of a loop."""

    def insert(here: Node) -> Sequence[Node]:
        assert isinstance(here, Loop)
        return [replace(here, body=(*here.body[:position], nest, *here.body[position:]))]

    after = program.replaced(loop, insert)
    return after.with_body(after.body)
