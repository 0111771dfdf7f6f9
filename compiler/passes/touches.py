"""The buffers that an op accesses."""

from __future__ import annotations

from collections.abc import Container

from xdsl.ir import Operation, SSAValue

from compiler.dialects.upstream.memref import PrefetchOp
from compiler.dialects.upstream.walk import ops_in


def accessed_buffers(op: Operation, buffers: Container[SSAValue]) -> set[SSAValue]:
    """Return the buffers among `buffers` that an op or its nested ops may read or write; a prefetch does neither."""
    inside = ops_in(op) if op.regions else (op,)
    return {value for o in inside for value in o.operands if value in buffers and not isinstance(o, PrefetchOp)}
