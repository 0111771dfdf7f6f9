"""Stores past the caches: a loop's attribute `nontemporal` names a buffer that the loop writes so.

`python -m benchmarks.price streams`, times without over with: 1.55 for swish, 1.02 for softmax and layer norm.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr

from compiler.program.tree import Loop, Program, blocks_in
from compiler.support.errors import LoweringError

ATTRIBUTE = "nontemporal"


def streamed(loop: Loop) -> set[str]:
    """The buffers that a loop itself asks to write past the caches, by name."""
    asked = dict(loop.attributes).get(ATTRIBUTE)
    return {asked.data} if isinstance(asked, StringAttr) else set()


def check_streamed(program: Program) -> None:
    """Raise LoweringError for a loop whose attribute is not the name of a buffer that it writes."""
    for loop in program.loops.values():
        asked = dict(loop.attributes).get(ATTRIBUTE)
        if asked is None:
            continue
        if not isinstance(asked, StringAttr):
            raise LoweringError(f"the attribute {ATTRIBUTE} of loop '{loop.label}' is not the name of a buffer")
        written = list(dict.fromkeys(access.buffer for block in blocks_in(loop) for access in block.writes))
        if asked.data not in written:
            written_names = " and ".join(f"'{name}'" for name in written) or "nothing"
            said = f"is to write '{asked.data}' past the caches, but it writes {written_names}"
            raise LoweringError(f"loop '{loop.label}' {said}")
