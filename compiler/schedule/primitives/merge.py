"""The primitive merge."""

from __future__ import annotations

from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.program.tree import Alloc, Loop, Node, Program, blocks_in, rebind
from compiler.schedule.parameters import ANY_LOOP, INT
from compiler.schedule.plan import (
    Plan,
    block_place,
    labels_around,
    labels_in,
    loop_place,
    new_label,
    refuse,
    require_serial,
)
from compiler.schedule.primitive import primitive
from compiler.schedule.region import inside


@primitive(
    "$first `,` $second (`shift` $shift^)?",
    "%both = sched.merge %m, %n",
    "merge{first=C.m second=D.m shift=0}",
    gives={"merged": "loop"},
    consumes=["first", "second"],
    first=ANY_LOOP,
    second=ANY_LOOP,
    shift=INT.or_else(0),
)
def merge(program: Program, first: int, second: int, shift: int = 0) -> Plan:
    """Let two adjacent nests share their outer loop: bodies one after the other. With a shift, iteration i of the
    second runs in iteration i + shift. If the extents differ, the bodies are guarded.

        loop.for "i" = 4 { S(i) }  loop.for "j" = 4 { T(j) }
      ->
        loop.for "i" = 4 { S(i)  T(i) }

    Two reductions may share an outer loop, and a shifted consumer follows a rolling window of its producer. Requires
    serial loops, one after the other in one body (allocations between them move before), and no negative shift. Refused
    where a dependence would be reversed. Elsewhere: Exo fuse, Halide compute_with, MLIR affine-loop-fusion; TVM merge
    takes equal extents and no shift.
    """
    require_serial(program, [first, second])
    first_loop, second_loop = program.loops[first], program.loops[second]
    if shift < 0:
        refuse(loop_place(program, second), f"the shift {shift} is negative")
    _require_adjacent(program, first_loop, second_loop)
    label = first_loop.label
    if label in (labels := labels_in(second_loop.body)):
        label = new_label(label, labels_around(program, first) | labels)
    extent = max(first_loop.extent, second_loop.extent + shift)
    merged = Loop(program.fresh_number(), label, extent, (), "serial", first_loop.attributes)
    ranges = program.ranges_with(merged)
    body: list[Node] = []
    shifts: dict[str, dict[int, Linear]] = {}
    for node, value in ((first_loop, merged.variable), (second_loop, merged.variable - lin.constant(shift))):
        body += rebind(node.body, {node.number: value}, ranges, inside([value], [node.extent], ranges))
        shifts |= {block.label: {node.number: value} for block in blocks_in(node)}
    merged = replace(merged, body=tuple(body))
    after = program.replaced(second, lambda _: [merged]).replaced(first, lambda _: [])
    return Plan(after, shifts=shifts, loops=(merged.number,))


def _require_adjacent(program: Program, first: Loop, second: Loop) -> None:
    """Raise ScheduleError unless the loops are in one body, in order, with only allocations between them."""
    first_place, second_place = program.places[first.number], program.places[second.number]
    if [n.number for n in first_place.loops] != [n.number for n in second_place.loops]:
        refuse(loop_place(program, second.number), f"it does not stand beside loop '{first.label}'")
    siblings = first_place.loops[-1].body if first_place.loops else program.body
    start, end = first_place.positions[-1], second_place.positions[-1]
    if start >= end:
        refuse(loop_place(program, second.number), f"it does not come after loop '{first.label}'")
    for node in siblings[start + 1 : end]:
        if not isinstance(node, Alloc):
            what = f"loop '{node.label}'" if isinstance(node, Loop) else block_place(node.label)
            refuse(loop_place(program, second.number), f"{what} stands between it and loop '{first.label}'")
