"""The ops of the low level in the order of the text, for passes that look at all of them."""

from __future__ import annotations

from xdsl.ir import Operation


def ops_in(op: Operation) -> list[Operation]:
    """Return the ops at and inside an op, in the order of the text. xDSL's `walk` passes each op through generators of
    all the levels above it, which costs several times as much."""
    inside = [op]
    for region in op.regions:
        for block in region.blocks:
            inner = block.first_op
            while inner is not None:
                if inner.regions:
                    inside += ops_in(inner)
                else:
                    inside.append(inner)
                inner = inner.next_op
    return inside
