"""Nodes with renamed operands or results."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace

from compiler.dialects.dense import DenseAttr
from compiler.graph.tree import Call, Compute, Constant, Node
from compiler.program.tree import Buffer


def with_operands(node: Node, names: Mapping[str, str]) -> Node:
    """A node with its operands renamed by `names`, from old to new; the same object if no operand is in `names`."""
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


def with_results(node: Node, buffers: tuple[Buffer, ...]) -> Node:
    """A node with `buffers` as its results, which differ from its own results in names only; a constant is renamed as
    well."""
    if not isinstance(node, Constant):
        return replace(node, results=buffers)
    (value,), dense = buffers, copy(node.value.data)
    dense.name = value.name
    return Constant(DenseAttr(dense), (value,))
