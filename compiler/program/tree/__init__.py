"""The tree: a program is a sequence of loops, allocations and blocks; every change makes a new tree.

nodes.py    loops, allocations and blocks, and what a nest has
walks.py    what is in some nodes, and nodes changed
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
from compiler.program.tree.walks import blocks_in, loops_in, map_blocks, nested, pruned, rebound, touched, walk

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
    "blocks_in",
    "key_of",
    "loops_in",
    "map_blocks",
    "nested",
    "pruned",
    "rebound",
    "touched",
    "walk",
]
