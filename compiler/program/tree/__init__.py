"""The tree: a program is a sequence of loops, allocations and blocks; every change makes a new tree.

nodes.py    loops, allocations and blocks, and the lookup tables of a nest
walks.py    traversals and rewrites of nodes
program.py  a loop function, with the places of its nodes
"""

from compiler.program.tree.nodes import (
    CONCURRENT,
    INTRINSIC,
    Access,
    Alloc,
    Block,
    Buffer,
    Key,
    Literal,
    Loop,
    Nest,
    Node,
    Place,
    Table,
    key_of,
)
from compiler.program.tree.program import Places, Program
from compiler.program.tree.walks import (
    access_at,
    blocks_in,
    index_at,
    loops_in,
    map_blocks,
    nested,
    pruned,
    rebind,
    rebound,
    renumbered,
    touched,
    walk,
)

__all__ = [
    "CONCURRENT",
    "INTRINSIC",
    "Access",
    "Alloc",
    "Block",
    "Buffer",
    "Key",
    "Literal",
    "Loop",
    "Nest",
    "Node",
    "Place",
    "Places",
    "Program",
    "Table",
    "access_at",
    "blocks_in",
    "index_at",
    "key_of",
    "loops_in",
    "map_blocks",
    "nested",
    "pruned",
    "rebind",
    "rebound",
    "renumbered",
    "touched",
    "walk",
]
