"""Nests that copy buffers, and blocks that read the copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.dialects.access import AxisAttr
from compiler.program import body
from compiler.program.tree import Access, Alloc, Block, Buffer, Node, Program, blocks_in, key_of, touched
from compiler.schedule.placement import nest_over
from compiler.schedule.plan import Plan
from compiler.schedule.region import Interval


def redirected(block: Block, names: Mapping[str, str]) -> Block:
    """Return a block with the buffers that it accesses, also in a gather's table, renamed by `names`, old to new."""

    def redirect(access: Access) -> Access:
        return replace(access, buffer=names.get(access.buffer, access.buffer))

    table = block.table and replace(block.table, buffer=names.get(block.table.buffer, block.table.buffer))
    reads, writes = tuple(map(redirect, block.reads)), tuple(map(redirect, block.writes))
    return replace(block, reads=reads, writes=writes, table=table)


def read_copy(program: Program, reader: Block, through: Block, source: Access, copy: Buffer) -> Plan:
    """Plan to copy the elements that `source` reads to `copy`, before the outermost loop around the reader in which
    nothing writes their buffer, and to replace the reader by `through`, which reads the copy."""
    place = _before_reads(program, reader.label, source.buffer)
    label, nest = copy_nest(program, copy.name, copy.shape, [(source, copy)], place)
    after = program.replaced(reader.label, lambda _: [through])
    after = after.replaced(place, lambda node: [Alloc(copy), nest, node])
    return Plan(after, blocks=(label,))


def _before_reads(program: Program, block: str, buffer: str) -> int | str:
    """Return the key of the outermost node, a loop around `block` or the block, that contains no write of a buffer,
    which the block itself must not write; loops that privatise the buffer are not considered."""
    path: list[Node] = [*program.enclosing(block), program.blocks[block]]
    for node in path[len(program.private_loops(buffer)) :]:
        if buffer not in touched([node])[1]:
            return key_of(node)  # type: ignore[return-value]
    raise AssertionError("a block that does not write the buffer is such a place")


def copy_nest(
    program: Program, label: str, shape: Sequence[int], copies: Sequence[tuple[Access, Buffer]], place: int | str
) -> tuple[str, Node]:
    """Build a nest for the position of the node `place` that copies each source to its target of shape `shape`; return
    its block's label, which is `label` or differs by a number, and the nest."""
    reads = [source for source, _ in copies]
    writes = [Access(target.name, lin.variables(len(shape))) for _, target in copies]
    types = [target.scalar for _, target in copies]
    block = copy_block(program.fresh_block(label), shape, reads, writes, types, _location(program, place))
    used_labels = {loop.label for loop in program.enclosing(place)}
    return block.label, copy_loops(program, block, [Interval(lin.constant(0), n) for n in shape], used_labels)


def copy_block(
    label: str,
    shape: Sequence[int],
    reads: Sequence[Access],
    writes: Sequence[Access],
    types: Sequence[Attribute],
    location: LocationAttr,
) -> Block:
    """Build a block `label` that copies each of `reads` to the write at the same position: one axis for each dimension
    of the shape, bound to zero. `types` are those of the elements."""
    axes = tuple(AxisAttr(f"ax{d}", n) for d, n in enumerate(shape))
    zeros = (lin.constant(0),) * len(axes)
    values = tuple(body.read(n, type) for n, type in enumerate(types))
    return Block(label, axes, zeros, (), tuple(reads), tuple(types), tuple(writes), values, location=location)


def copy_loops(program: Program, block: Block, spans: Sequence[Interval], taken: set[str]) -> Node:
    """Return a copying block inside a new loop for each axis whose span has several elements; the loops' labels differ
    from `taken`, to which they are added."""
    return nest_over(program, block, dict(enumerate(spans)), [axis.label for axis in block.axes], taken)


def _location(program: Program, place: int | str) -> LocationAttr:
    """The location of the first block at or inside a node; UNKNOWN_LOC without one."""
    node = program.blocks[place] if isinstance(place, str) else program.loops[place]
    return next((block.location for block in blocks_in(node)), UNKNOWN_LOC)
