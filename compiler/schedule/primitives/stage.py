"""The primitive stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.cover import covered
from compiler.analysis.legal import Step
from compiler.dialects.access import AxisAttr
from compiler.program import body
from compiler.program.init import init_depth
from compiler.program.tree import (
    Access,
    Alloc,
    Block,
    Buffer,
    Loop,
    Node,
    Program,
    blocks_in,
    map_blocks,
    nested,
    touched,
)
from compiler.schedule.parameters import LOOP, TEXT, word
from compiler.schedule.placement import inserted
from compiler.schedule.plan import Plan, loop_place, new_label, no_table, refuse
from compiler.schedule.primitive import primitive
from compiler.schedule.region import Interval, inside, region, touches, window_axis, with_accesses
from compiler.types.scopes import SCOPES


@primitive(
    "$loop $buffer `in` $scope",
    '%in, %out = sched.stage %m "C" in "local"',
    "stage{block=C loop=m buffer=C scope=local}",
    gives={"copy_in": "block", "copy_out": "block"},
    loop=LOOP,
    buffer=TEXT,
    scope=word("scope", SCOPES),
)
def stage(program: Program, loop: int, buffer: str, scope: str = "local") -> Plan:
    """Work on a copy of the window of a buffer that a loop's body touches: copy it in, work, copy it out.

        loop.for "i" { loop.for "j" = 4 { C[i, j] += f(i, j) } }                      // stage C at i, C accumulates
      ->
        loop.for "i" { alloc C.local[1, 4];  copy in;  loop.for "j" { C.local[0, j] += f(i, j) }  copy out }

    Copies in unless the iteration writes each element of the window before it reads it; copies out if the body writes.
    Windows may overlap, and partial sums may travel in and out: a rolling window is a stage whose allocation is lifted.

    Requires a buffer that the body touches, not as the table of a gather, with an init, if any, in the same iteration
    or apart (decompose_reduction). Elsewhere: Exo stage_mem, Halide store_at and fold_storage; TVM cache_read and
    cache_write.
    """
    node = program.loops[loop]
    inner = blocks_in(node)
    reads, writes = touched([node])
    if buffer not in reads | writes:
        refuse(loop_place(program, loop), f"its body does not touch '{buffer}'")
    no_table(loop_place(program, loop), inner, buffer)
    outer = {n.number for n in (*program.enclosing(loop), node)}
    if buffer in program.allocs and loop in {n.number for n in program.enclosing((buffer,))}:
        refuse(loop_place(program, loop), f"'{buffer}' lives inside it already")
    depth = len(program.enclosing(loop)) + 1
    for writer in inner:
        writes_it = any(access.buffer == buffer for access in writer.writes)
        if writes_it and writer.has_init and init_depth(writer, program.enclosing(writer.label)) < depth:
            reason = f"the init of block '{writer.label}' stands outside; decompose_reduction first"
            refuse(loop_place(program, loop), reason)
    spans = region(program, buffer, inner, outer, writes=None)
    source = program.buffers[buffer]
    copy = Buffer(program.fresh_buffer(f"{buffer}.{scope}"), tuple(s.extent for s in spans), source.element, scope)
    changed = map_blocks(node.body, lambda b: _windowed(program, b, buffer, copy.name, spans))
    first = program.fresh_number()
    staged = replace(node, body=(Alloc(copy), *changed))
    staged_program = program.replaced(loop, lambda _: [staged])
    written = buffer in writes
    parts: list[Node] = [Alloc(copy)]
    label_in = label_out = ""
    if not covered(_copied_out(staged_program, copy) if written else staged_program, copy.name, depth):
        label_in, nest = _window_nest(program, node, buffer, copy, spans, "in", first)
        parts.append(nest)
        first += len(spans)
    parts += changed
    if written:
        label_out, nest = _window_nest(program, node, buffer, copy, spans, "out", first)
        parts.append(nest)
    after = program.replaced(loop, lambda _: [replace(node, body=tuple(parts))])
    return Plan(Step(after), blocks=(label_in, label_out))


def _copied_out(program: Program, copy: Buffer) -> Program:
    """The program with a read of the whole window at the end of the body where it lives."""
    access = Access(copy.name, tuple(lin.variable(d) for d in range(len(copy.shape))))
    first = program.fresh_number()
    axes = tuple(AxisAttr(f"ax{d}", n) for d, n in enumerate(copy.shape))
    bindings = tuple(lin.variable(first + d) for d in range(len(copy.shape)))
    probe = Block("?", axes, bindings, (), (access,), (copy.scalar,), (), ())
    loops = [Loop(first + d, f"ax{d}", n, ()) for d, n in enumerate(copy.shape)]
    holder = program.enclosing((copy.name,))[-1]
    return inserted(program, holder.number, len(holder.body), nested(loops, probe))


def _windowed(program: Program, block: Block, buffer: str, name: str, spans: Sequence[Interval]) -> Block:
    """The block with its accesses to a buffer redirected to a window of it."""
    if not touches(block, buffer):
        return block
    offsets: list[Linear] = []
    for span in spans:
        if span.low.is_constant:
            offsets.append(span.low)
        else:
            block, axis, low = window_axis(program, block, span.low)  # the last spatial axis: no other moves
            offsets.append(lin.variable(axis) + lin.constant(low))

    def redirect(access: Access) -> Access:
        index = tuple(f - o for f, o in zip(access.index, offsets, strict=True))
        return replace(access, buffer=name, index=index)

    return with_accesses(block, buffer, redirect)


def _window_nest(
    program: Program, node: Loop, buffer: str, copy: Buffer, spans: Sequence[Interval], way: str, first: int
) -> tuple[str, Node]:
    """The nest that copies a window of a buffer `in` or `out`, its loops numbered from `first`, and its label."""
    source = program.buffers[buffer]
    label = f"{copy.name}.{way}"
    while label in program.blocks:
        label += "'"
    taken = {n.label for n in (*program.enclosing(node.number), node)}
    ranges = dict(program.ranges)
    loops, forms = [], []
    guard: list[Condition] = []
    for d, span in enumerate(spans):
        loop = Loop(first + d, new_label(f"ax{d}", taken), span.extent, ())
        form = span.low
        if span.extent > 1:
            loops.append(loop)
            ranges[loop.number] = (0, span.extent - 1)
            form = form + lin.variable(loop.number)
        forms.append(form)
        guard += inside([form], [source.shape[d]], ranges)
    window_access = Access(buffer, tuple(lin.variable(d) for d in range(len(source.shape))))
    block = Block(
        label,
        tuple(AxisAttr(f"ax{d}", n) for d, n in enumerate(source.shape)),
        tuple(forms),
        tuple(guard),
        (window_access,),
        (source.scalar,),
        (window_access,),
        (body.read(0, source.scalar),),
        location=next(b.location for b in blocks_in(node) if any(buffer in t for t in touched([b]))),
    )
    part = _windowed(program, block, buffer, copy.name, spans)
    nest: Node = replace(part, writes=(window_access,)) if way == "out" else replace(part, reads=(window_access,))
    return label, nested(loops, nest)
