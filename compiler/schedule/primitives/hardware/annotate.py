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
    """Attach a named attribute to a loop, for a lowering or rule that reads it.

        loop.for "i" = 16 { S(i) }               // annotate "hint" = 4
      ->
        loop.for "i" = 16 { S(i) } attributes {hint = 4}

    The lowering for CPUs reads `nontemporal`, the name of a buffer that the loop must write: aligned whole vectors are
    stored past the caches. That for GPUs reads `async`: copies of whole elements to shared memory may run until the
    next barrier; and of a kernel's outermost loop `resident`, the fewest blocks that a multiprocessor has at once, by
    which a compiler of kernels chooses registers. Elsewhere: TVM annotate, MLIR transform.annotate.
    """
    node = program.loops[loop]
    attributes = tuple(sorted({**dict(node.attributes), key: value}.items()))
    after = program.replaced(loop, lambda _: [replace(node, attributes=attributes)])
    return Plan(after, keeps_order=True)
