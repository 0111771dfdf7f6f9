"""Non-temporal stores: a loop's attribute `nontemporal` names a buffer that it writes past the caches.

Speedup (`python -m benchmarks.price streams`): 1.55 for swish, 1.02 for softmax and layer norm.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr

from compiler.program.tree import Loop, Program, blocks_in
from compiler.support.errors import LoweringError

ATTRIBUTE = "nontemporal"


def streamed_buffers(loop: Loop) -> set[str]:
    """Return the buffer that a loop's attribute `nontemporal` names, as a set; empty without the attribute, and for one
    that is not a string."""
    attribute = dict(loop.attributes).get(ATTRIBUTE)
    return {attribute.data} if isinstance(attribute, StringAttr) else set()


def check_streamed(program: Program) -> None:
    """Raise LoweringError for an attribute `nontemporal` that is not the name of a buffer that the loop writes."""
    for loop in program.loops.values():
        attribute = dict(loop.attributes).get(ATTRIBUTE)
        if attribute is None:
            continue
        if not isinstance(attribute, StringAttr):
            raise LoweringError(f"the attribute {ATTRIBUTE} of loop '{loop.label}' is not the name of a buffer")
        written = list(dict.fromkeys(access.buffer for block in blocks_in(loop) for access in block.writes))
        if attribute.data not in written:
            written_names = " and ".join(f"'{name}'" for name in written) or "nothing"
            reason = f"is to write '{attribute.data}' past the caches, but it writes {written_names}"
            raise LoweringError(f"loop '{loop.label}' {reason}")
