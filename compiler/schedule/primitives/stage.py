"""The primitive stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import UNKNOWN_LOC

from compiler.affine import linear as lin
from compiler.analysis.cover import covered
from compiler.program.init import init_depth
from compiler.program.tree import Access, Alloc, Block, Buffer, Loop, Node, Program, blocks_in, map_blocks, touched
from compiler.schedule.copies import copy_block, copy_loops
from compiler.schedule.parameters import LOOP, TEXT, word
from compiler.schedule.placement import inserted
from compiler.schedule.plan import Plan, loop_place, no_table, refuse
from compiler.schedule.primitive import primitive
from compiler.schedule.region import Interval, region, windowed
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
    outer = program.outer(loop) | {loop}
    if loop in program.private_loops(buffer):
        refuse(loop_place(program, loop), f"'{buffer}' lives inside it already")
    depth = len(program.enclosing(loop)) + 1
    for writer in inner:
        writes_it = buffer in writer.targets
        if writes_it and writer.has_init and init_depth(writer, program.enclosing(writer.label)) < depth:
            reason = f"the init of block '{writer.label}' stands outside; decompose_reduction first"
            refuse(loop_place(program, loop), reason)
    spans = region(program, buffer, inner, outer, writes=None)
    source = program.buffers[buffer]
    copy = Buffer(program.fresh_buffer(f"{buffer}.{scope}"), tuple(s.extent for s in spans), source.element, scope)
    changed = map_blocks(node.body, lambda b: windowed(program, b, buffer, dict(enumerate(spans)), copy.name))
    staged = program.replaced(loop, lambda _: [replace(node, body=(Alloc(copy), *changed))])
    written = buffer in writes
    label_in = label_out = ""
    if not covered(_copied_out(staged, copy) if written else staged, copy.name, depth):
        label_in, nest = _window_nest(staged, node, buffer, copy, spans, "in")
        staged = inserted(staged, loop, 1, nest)
    if written:
        label_out, nest = _window_nest(staged, node, buffer, copy, spans, "out")
        staged = inserted(staged, loop, len(staged.loops[loop].body), nest)
    return Plan(staged, blocks=(label_in, label_out))


def _copied_out(program: Program, copy: Buffer) -> Program:
    """Add a read of the whole copy at the end of the loop body that allocates it, in place of the copy out."""
    window = Access(copy.name, lin.variables(len(copy.shape)))
    probe = replace(copy_block("?", copy.shape, [window], [window], [copy.scalar], UNKNOWN_LOC), writes=(), body=())
    holder = program.enclosing((copy.name,))[-1]
    nest = copy_loops(program, probe, [Interval(lin.constant(0), n) for n in copy.shape], set())
    return inserted(program, holder.number, len(holder.body), nest)


def _window_nest(
    program: Program, node: Loop, buffer: str, copy: Buffer, spans: Sequence[Interval], way: str
) -> tuple[str, Node]:
    """Copy the window `spans` to `copy` (way "in") or back ("out"): return the label of the block and its nest."""
    source = program.buffers[buffer]
    label = f"{copy.name}.{way}"
    while label in program.blocks:
        label += "'"
    source_access = Access(buffer, lin.variables(len(source.shape)))
    location = next(b.location for b in blocks_in(node) if any(buffer in t for t in touched([b])))
    block = copy_block(label, source.shape, [source_access], [source_access], [source.scalar], location)
    nest = copy_loops(program, block, spans, {n.label for n in (*program.enclosing(node.number), node)})

    def redirected(copier: Block) -> Block:
        new = windowed(program, copier, buffer, dict(enumerate(spans)), copy.name)
        return replace(new, writes=(source_access,)) if way == "out" else replace(new, reads=(source_access,))

    return label, map_blocks([nest], redirected)[0]
