"""`SCOPES`: where a buffer can lie, and the memory space that stands for it in the type of a memref."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, MemRefType

SCOPES: dict[str, int | None] = {"global": None, "shared": 3, "local": 5, "fragment": 5}
"""The memory space of each scope as NVVM numbers it, None for the default one.

Fragments lie in the registers of a warp's threads, as each thread's local buffers do.
"""


def space_of(type: MemRefType) -> int | None:
    """The memory space of a memref, None for the default one."""
    return type.memory_space.value.data if isinstance(type.memory_space, IntegerAttr) else None
