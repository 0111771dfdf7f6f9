"""The primitive prefetch."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, i64

from compiler.program.tree import Program, touched
from compiler.schedule.parameters import INT, LOOP, TEXT
from compiler.schedule.plan import Plan, loop_place, refuse
from compiler.schedule.primitive import primitive


@primitive(
    "$loop $buffer `ahead` $ahead (`over` $over^)?",
    'sched.prefetch %k "B" ahead 8\nsched.prefetch %m "A" ahead 1 over %l',
    "prefetch{block=C loop=k buffer=B ahead=8 over=j}",
    loop=LOOP,
    buffer=TEXT,
    ahead=INT.such_that(lambda n: n > 0, "the distance {} is not positive"),
    over=replace(LOOP, optional=True),
)
def prefetch(program: Program, loop: int, buffer: str, ahead: int, over: int | None = None) -> Plan:
    """Prefetch the elements of a buffer that a loop touches some iterations later.

        loop.for "k" { S(k) }                    // prefetch B ahead 8
      ->
        loop.for "k" { S(k) } attributes {prefetch = {B = 8}}

    Each iteration prefetches the window of a later one at its start. With `over`, a loop inside, each iteration of that
    loop prefetches a share of the window instead: its attribute is {prefetch = {B = [8, "k"]}}.

    Requires a buffer that the loop's body touches and that outlives one iteration of it, and that `over` is inside the
    loop, which is not vectorized. The prefetching loop is serial or parallel: an unrolled or vectorized one prefetches
    nothing. Elsewhere: Halide prefetch, TVM software prefetch, MLIR memref.prefetch.
    """
    node = program.loops[loop]
    place = loop_place(program, loop)
    reads, writes = touched([node])
    if buffer not in reads | writes:
        refuse(place, f"its body does not touch '{buffer}'")
    if loop in program.private_loops(buffer):
        refuse(place, f"'{buffer}' lives in one iteration of it; lift_alloc first")
    if over is not None and loop not in program.outer(over):
        refuse(loop_place(program, over), f"it is not inside loop '{node.label}'")
    if over is not None and node.kind == "vectorized":
        refuse(place, "it is vectorized: no iteration is later")
    carrier = node if over is None else program.loops[over]
    distance = IntegerAttr(ahead, i64)
    attribute = dict(carrier.attributes).get("prefetch")
    prefetches = dict(attribute.data) if isinstance(attribute, DictionaryAttr) else {}
    prefetches[buffer] = distance if over is None else ArrayAttr([distance, StringAttr(node.label)])
    attributes = {**dict(carrier.attributes), "prefetch": DictionaryAttr(prefetches)}
    new = replace(carrier, attributes=tuple(sorted(attributes.items())))
    return Plan(program.replaced(carrier.number, lambda _: [new]), keeps_order=True)
