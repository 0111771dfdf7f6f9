"""`SCOPES`: the memory scopes of buffers, and their memory spaces in memref types."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, MemRefType

SCOPES: dict[str, int | None] = {"global": None, "shared": 3, "local": 5, "fragment": 5}
"""The memory space of each scope as NVVM numbers it, None for the default one.

Fragments lie in the registers of a warp's threads, as each thread's local buffers do.
"""


def space_of(type: MemRefType) -> int | None:
    """The memory space of a memref, None for the default one."""
    return type.memory_space.value.data if isinstance(type.memory_space, IntegerAttr) else None
