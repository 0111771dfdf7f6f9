"""Blocks that move into a loop: their nest there, and checks of buffer lifetimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.program.tree import Block, Loop, Node, Program, nested
from compiler.schedule.plan import block_place, labels_in, loop_place, new_label, refuse
from compiler.schedule.region import Interval, inside


def require_visible(program: Program, block: Block, outer: set[int]) -> None:
    """Raise ScheduleError for a block if a loop that privatises one of its buffers is not among the loops `outer`."""
    for name in dict.fromkeys((*block.sources, *block.targets)):
        for loop in program.private_loops(name):
            if loop not in outer:
                refuse(block_place(block.label), f"buffer '{name}' lives in {loop_place(program, loop)} only")


def moved_nest(
    program: Program, block: Block, spans: Mapping[int, Interval], node: Loop, when: Sequence[Condition] = ()
) -> Node:
    """Build the nest of a block that moves into `node`: loops over `spans` and all reduce axes; its guard is `when`, by
    default empty. Raises ScheduleError for another axis that is bound to loops which are not around this nest."""
    around = (*program.enclosing(node.number), node)
    used_labels = {n.label for n in around} | labels_in(node.body)
    complete = dict(spans)
    for number, (axis, bound) in enumerate(zip(block.axes, block.bindings, strict=True)):
        if axis.is_reduce:
            complete.setdefault(number, Interval(lin.constant(0), axis.size))
        elif number not in spans and not bound.variables() <= {n.number for n in around}:
            reason = f"its axis '{axis.label}' indexes no element and is tied to the place where it stands"
            refuse(block_place(block.label), reason)
    labels = [f"{block.label}.{axis.label}" if axis.label in used_labels else axis.label for axis in block.axes]
    return nest_over(program, replace(block, guard=tuple(when)), complete, labels, used_labels)


def nest_over(
    program: Program, block: Block, spans: Mapping[int, Interval], labels: Sequence[str], taken: set[str]
) -> Node:
    """Nest a block in a new loop for each axis with a span of several elements; axes without a span keep their binding.
    `labels` are those of the loops, by axis, with a number if in `taken`, which grows.

    Spans `i .. i + 2` and `0 .. 3` of axes of 8 and 4 elements:
        loop.for "x" = 3 { loop.for "y" = 4 { if i + x < 8: S(i + x, y) } }
    """
    first, ranges = program.fresh_number(), dict(program.ranges)
    loops: list[Loop] = []
    bindings, guard = list(block.bindings), list(block.guard)
    for number, axis in enumerate(block.axes):
        span = spans.get(number)
        if span is None:
            continue
        form = span.low
        if span.extent > 1:
            loop = Loop(first + len(loops), new_label(labels[number], taken), span.extent, ())
            loops.append(loop)
            ranges[loop.number] = (0, loop.extent - 1)
            form = form + loop.variable
        bindings[number] = form
        guard += inside([form], [axis.size], ranges)
    return nested(loops, replace(block, bindings=tuple(bindings), guard=tuple(dict.fromkeys(guard))))


def require_box(program: Program, block: Block) -> None:
    """Raise ScheduleError if a loop binds two axes of a block, which are then not independent."""
    axis_of_loop: dict[int, str] = {}
    for axis, form in zip(block.axes, block.bindings, strict=True):
        for number in form.variables():
            if number in axis_of_loop:
                label = program.loops[number].label
                reason = (
                    f"its axes '{axis_of_loop[number]}' and '{axis.label}' are tied to each other by loop '{label}'"
                )
                refuse(block_place(block.label), reason)
            axis_of_loop[number] = axis.label


def inserted(program: Program, loop: int, position: int, nest: Node) -> Program:
    """Return a program with a nest inserted before the node at a position in the body of a loop, or for the body's
    length behind the last."""

    def insert(here: Node) -> Sequence[Node]:
        assert isinstance(here, Loop)
        return [replace(here, body=(*here.body[:position], nest, *here.body[position:]))]

    return program.replaced(loop, insert)
