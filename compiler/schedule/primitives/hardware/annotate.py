"""The primitive annotate."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Attribute

from compiler.program.tree import Program
from compiler.schedule.parameters import ANY, LOOP, TEXT
from compiler.schedule.plan import Plan
from compiler.schedule.primitive import primitive


@primitive(
    "$loop $key `=` $value",
    'sched.annotate %m "hint" = 4 : i64',
    "annotate{block=C loop=m key=hint value=4}",
    loop=LOOP,
    key=TEXT,
    value=ANY,
)
def annotate(program: Program, loop: int, key: str, value: Attribute) -> Plan:
    """Attach a named attribute to a loop, for a lowering or rule that knows it.

        loop.for "i" = 16 { S(i) }               // annotate "hint" = 4
      ->
        loop.for "i" = 16 { S(i) } attributes {hint = 4}

    The lowering for CPUs knows `nontemporal`, the name of a buffer whose whole vectors are stored past the caches where
    their address allows it, and refuses one that the loop does not write. That for GPUs knows `async`: copies of whole
    elements to shared memory go on until the next barrier. Elsewhere: TVM annotate, MLIR transform.annotate.
    """
    node = program.loops[loop]
    attributes = tuple(sorted({**dict(node.attributes), key: value}.items()))
    after = program.replaced(loop, lambda _: [replace(node, attributes=attributes)])
    return Plan(after, keeps_order=True)
