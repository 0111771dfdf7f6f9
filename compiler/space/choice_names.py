"""The names of the choices of a script, for `sched.include`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from compiler.schedule.primitive import CHOICES, applies


def choice_names(ops: Sequence[Operation]) -> dict[Operation, str]:
    """Map each choice among ops to a unique name: `location`, the name hint of its first result, or `size`, with a
    number if it is taken."""
    names: dict[Operation, str] = {}
    for op in ops:
        if not applies(op, *CHOICES):
            continue
        name = "location" if applies(op, "sample_location") else op.results[0].name_hint or "size"
        count = 2
        while name in names.values():
            name, count = f"{name.rstrip('_0123456789')}_{count}", count + 1
        names[op] = name
    return names
