"""The signature of a te.compute: equal ones pass the same verifiers, whatever the computes and their operands are
called."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from xdsl.ir import Block, Operation, Region, SSAValue


def signature(op: Operation) -> Hashable | None:
    """Return a hashable key of all that verifiers read of a compute and its regions, except for its label's value.

    None if an op in a region has regions or successors, or uses a value from outside its block, and for one over sizes,
    whose verifier reads the extents of its operands: it is verified anew.
    """
    if "sizes" in op.properties:
        return None
    properties = tuple((name, type(value) if name == "label" else value) for name, value in op.properties.items())
    outer = _types(op.operands), _types(op.results), properties, tuple(op.attributes.items())
    try:
        return (*outer, *map(_region, op.regions))
    except KeyError:
        return None


def _region(region: Region) -> Hashable:
    return tuple(_block(block) for block in region.blocks)


def _block(block: Block) -> Hashable:
    """The types of a block's arguments, and its ops with operands numbered in order of definition. Raises KeyError for
    an operand from outside the block, and for an op with regions or successors."""
    numbers: dict[SSAValue, int] = {value: n for n, value in enumerate(block.args)}
    rows: list[Hashable] = []
    for op in block.ops:
        if op.regions or op.successors:
            raise KeyError(op)
        rows.append(_row(op, numbers))
        for value in op.results:
            numbers[value] = len(numbers)
    return _types(block.args), tuple(rows)


def _row(op: Operation, numbers: dict[SSAValue, int]) -> Hashable:
    operands = tuple([numbers[value] for value in op.operands])
    return type(op), operands, _types(op.results), tuple(op.properties.items()), tuple(op.attributes.items())


def _types(values: Iterable[SSAValue]) -> Hashable:
    return tuple([value.type for value in values])
