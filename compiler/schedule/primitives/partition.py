"""The primitive partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.program.names import Names
from compiler.program.tree import Alloc, Block, Loop, Node, Program, blocks_in, rebind, rebound
from compiler.schedule.copies import redirected
from compiler.schedule.parameters import INT, LOOP
from compiler.schedule.plan import Plan, labels_around, loop_place, new_label, refuse, require_serial
from compiler.schedule.primitive import primitive


@primitive(
    "$loop `at` $position",
    "%head, %rest = sched.partition %m at 48",
    "partition{block=C loop=m at=48}",
    gives={"head": "loop", "rest": "loop"},
    consumes=["loop"],
    loop=LOOP,
    position=INT.called("at"),
)
def partition(program: Program, loop: int, position: int) -> Plan:
    """Cut a loop in two, one after the other: the iterations below a position, and the rest.

        loop.for "i" = 100 { S(i) }              // partition at 96
      ->
        loop.for "i.head" = 96 { S(i.head) }  loop.for "i.rest" = 4 { S(96 + i.rest) }

    The blocks of the rest are copies with new labels; where the loop belongs to a reduction they accumulate.

    Requires a serial loop and a position inside its extent. Elsewhere: Exo cut_loop, TVM loop partition, Halide
    TailStrategy, MLIR loop.peel.
    """
    require_serial(program, [loop])
    node = program.loops[loop]
    if not 0 < position < node.extent:
        refuse(loop_place(program, loop), f"position {position} is not inside its extent {node.extent}")
    for block in blocks_in(node):
        guarded = any(loop in c.form.variables() for c in block.guard)
        if block.has_init and loop in block.loops_of(True) and guarded:
            reason = f"it is in the guard of block '{block.label}', whose init would see it; decompose_reduction first"
            refuse(loop_place(program, loop), reason)
        if block.has_init and loop in block.loops_of(True) & block.loops_of(False):
            reason = f"it binds spatial and reduce axes of block '{block.label}' alike; decompose_reduction first"
            refuse(loop_place(program, loop), reason)
    number = program.fresh_number()
    used_labels = labels_around(program, loop)
    head_label, rest_label = new_label(f"{node.label}.head", used_labels), new_label(f"{node.label}.rest", used_labels)
    ranges = dict(program.ranges) | {number: (0, position - 1), number + 1: (0, node.extent - position - 1)}
    at_head = {loop: lin.variable(number) if position > 1 else lin.constant(0)}
    after = lin.variable(number + 1) if node.extent - position > 1 else lin.constant(0)
    at_rest = {loop: after + lin.constant(position)}
    head = replace(node, number=number, label=head_label, extent=position, body=rebind(node.body, at_head, ranges))
    copier = _Copier(program, number + 2, at_rest, ranges, loop)
    tail = Loop(number + 1, rest_label, node.extent - position, copier.copy(node.body), node.kind, node.attributes)
    shifts: dict[str, dict[int, Linear]] = {b.label: dict(at_head) for b in blocks_in(head)}
    shifts |= {label: {**at_rest, **copier.former} for label in copier.labels.values()}
    sources = {(new, i): (old, i) for old, new in copier.labels.items() for i in (False, True)}
    parted = program.replaced(loop, lambda _: [head, tail])
    return Plan(parted, shifts=shifts, sources=sources, loops=(number, number + 1))


class _Copier:
    """Copier of nodes, with loop numbers from `number` on and new labels and buffers. `values` maps former loops to
    forms over the new ones, `former` those of them that are copied, `labels` and `buffers` former names to new ones.
    Reductions over the loop `loop` accumulate in the copies."""

    def __init__(self, program: Program, number: int, values: dict[int, Linear], ranges: lin.Ranges, loop: int) -> None:
        self.ranges, self.loop, self.numbers = dict(ranges), loop, count(number)
        self.values = dict(values)
        self.former: dict[int, Linear] = {}
        self.labels: dict[str, str] = {}
        self.buffers: dict[str, str] = {}
        self.taken_labels, self.taken_buffers = Names(program.blocks), Names(program.buffers)

    def copy(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """Copy nodes, and record the copies' numbers, labels and buffers by the former ones."""
        return tuple(self._node(node) for node in nodes)

    def _node(self, node: Node) -> Node:
        match node:
            case Loop():
                number = next(self.numbers)
                self.values[node.number] = self.former[node.number] = lin.variable(number)
                self.ranges[number] = (0, node.extent - 1)
                return replace(node, number=number, body=self.copy(node.body))
            case Alloc():
                name = self.buffers[node.buffer.name] = self.taken_buffers.fresh(node.buffer.name)
                return Alloc(replace(node.buffer, name=name))
            case Block():
                label = self.labels[node.label] = self.taken_labels.fresh(node.label)
                new = redirected(rebound(node, self.values, self.ranges), self.buffers)
                reduces = bool(node.combiners) and self.loop in node.loops_of(True)
                return replace(new, label=label, accumulate=new.accumulate or reduces)
