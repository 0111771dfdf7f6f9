"""Nodes that read other values in place of some, and nodes that give other values."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace

from compiler.dialects.dense import DenseAttr
from compiler.graph.tree import Call, Compute, Constant, Node
from compiler.program.tree import Buffer


def reading(node: Node, names: Mapping[str, str]) -> Node:
    """A node that reads the values that names stand for; the same object where it reads none of them."""
    if not any(name in names for name in node.operands):
        return node
    if isinstance(node, Call):
        return replace(node, operands=tuple(names.get(name, name) for name in node.operands))
    assert isinstance(node, Compute)
    block = node.block
    reads = tuple(replace(a, buffer=names.get(a.buffer, a.buffer)) for a in block.reads)
    table = block.table
    if table is not None:
        table = replace(table, buffer=names.get(table.buffer, table.buffer))
    return replace(node, block=replace(block, reads=reads, table=table))


def giving(node: Node, buffers: tuple[Buffer, ...]) -> Node:
    """A node whose results have other names."""
    if not isinstance(node, Constant):
        return replace(node, results=buffers)
    (value,), dense = buffers, copy(node.value.data)
    dense.name = value.name
    return Constant(DenseAttr(dense), (value,))
