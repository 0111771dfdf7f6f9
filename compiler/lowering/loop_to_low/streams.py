"""Stores past the caches: a loop's attribute `nontemporal` names a buffer that the loop writes so."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from compiler.dialects import loop
from compiler.errors import LoweringError

ATTRIBUTE = "nontemporal"


def streamed(op: Operation) -> set[str]:
    """The buffers that an op itself asks to write past the caches, by name."""
    asked = op.attributes.get(ATTRIBUTE) if isinstance(op, loop.ForOp) else None
    return {asked.data} if isinstance(asked, StringAttr) else set()


def check_streamed(function: FuncOp, names: Mapping[SSAValue, str]) -> None:
    """Raise LoweringError for a loop whose attribute is not the name of a buffer that it writes."""
    for op in function.walk():
        if isinstance(op, loop.ForOp) and ATTRIBUTE in op.attributes:
            _check(op, names)


def _check(op: loop.ForOp, names: Mapping[SSAValue, str]) -> None:
    label, asked = op.label.data, op.attributes[ATTRIBUTE]
    if not isinstance(asked, StringAttr):
        raise LoweringError(f"the attribute {ATTRIBUTE} of loop '{label}' is not the name of a buffer")
    blocks = (inner for inner in op.walk() if isinstance(inner, loop.Placed))
    written = list(dict.fromkeys(names[target] for block in blocks for target in block.targets))
    if asked.data not in written:
        found = " and ".join(f"'{name}'" for name in written) or "nothing"
        raise LoweringError(f"loop '{label}' is to write '{asked.data}' past the caches, but it writes {found}")
