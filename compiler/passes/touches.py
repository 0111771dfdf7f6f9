"""The buffers that an op accesses, and whether it only writes one."""

from __future__ import annotations

from collections.abc import Container

from xdsl.dialects.memref import DeallocOp
from xdsl.ir import Operation, SSAValue

from compiler.analysis.accesses import access
from compiler.dialects.upstream.memref import PrefetchOp
from compiler.dialects.upstream.walk import ops_in


def accessed_buffers(op: Operation, buffers: Container[SSAValue]) -> set[SSAValue]:
    """Return the buffers among `buffers` that an op or its nested ops may read or write; a prefetch does neither."""
    inside = ops_in(op) if op.regions else (op,)
    return {value for o in inside for value in o.operands if value in buffers and not isinstance(o, PrefetchOp)}


def leaves_unread(user: Operation, buffer: SSAValue) -> bool:
    """Whether an op with the operand `buffer` stores to it, prefetches or frees it, and reads nothing from it."""
    if isinstance(user, PrefetchOp | DeallocOp):
        return True
    accessed = access(user)
    return accessed is not None and accessed.is_store and accessed.buffer is buffer
