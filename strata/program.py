"""The immutable tree of a loop function, and the scalars in its blocks."""

from compiler.program import body
from compiler.program.body import Apply, Index, Read
from compiler.program.read import read
from compiler.program.tree import (
    Access,
    Alloc,
    Block,
    Buffer,
    Loop,
    Nest,
    Node,
    Program,
    Table,
    blocks_in,
    loops_in,
    map_blocks,
    renumbered,
    walk,
)
from compiler.types.elements import element_bytes

__all__ = [
    "Access",
    "Alloc",
    "Apply",
    "Block",
    "Buffer",
    "Index",
    "Loop",
    "Nest",
    "Node",
    "Program",
    "Read",
    "Table",
    "blocks_in",
    "body",
    "element_bytes",
    "loops_in",
    "map_blocks",
    "read",
    "renumbered",
    "walk",
]
