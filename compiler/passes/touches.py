"""Which of some buffers an op touches, for passes that go through a block once."""

from __future__ import annotations

from collections.abc import Container

from xdsl.ir import Operation, SSAValue

from compiler.dialects.upstream.memref import PrefetchOp
from compiler.dialects.upstream.walk import ops_in


def accessed_buffers(op: Operation, buffers: Container[SSAValue]) -> set[SSAValue]:
    """Those of some buffers that the ops at or inside an op may read or write; a prefetch does neither."""
    inside = ops_in(op) if op.regions else (op,)
    return {value for o in inside for value in o.operands if value in buffers and not isinstance(o, PrefetchOp)}
