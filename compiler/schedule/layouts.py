"""Layouts of buffers: index maps of temporaries, and blocked dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.program.tree import Access, Block, Buffer, Program, index_at
from compiler.schedule.plan import block_place, only_target, refuse
from compiler.schedule.region import touches, with_accesses, with_buffer


def no_temporary(program: Program, buffer: str) -> str:
    """Return the reason for which a buffer is no temporary: unknown, a constant, or an argument. Requires that it is
    none."""
    if buffer not in program.buffers:
        return "there is no such buffer"
    return f"it is {'a constant' if buffer in program.stated else 'an argument'}, not a temporary"


def temporary(program: Program, block: str, name: str | None = None) -> Buffer:
    """Find a temporary by its name or, without one, as the only target of a block. Raises ScheduleError for an
    argument, a constant or an unknown name, and, without a name, for a block of none or several targets."""
    name = name if name is not None else only_target(program.blocks[block])
    if name not in program.allocs:
        refuse(f"buffer '{name}'", no_temporary(program, name))
    return program.buffers[name]


def tiled_dimensions(tiles: Sequence[int]) -> list[int]:
    """The dimensions that are blocked: those with a tile size above 1."""
    return [d for d, tile in enumerate(tiles) if tile > 1]


def blocked_shape(buffer: Buffer, tiles: Sequence[int]) -> list[int]:
    """The shape of a blocked buffer: the number of blocks in each dimension, then the tile sizes above 1."""
    return [-(-n // t) for n, t in zip(buffer.shape, tiles, strict=True)] + [tiles[d] for d in tiled_dimensions(tiles)]


def in_blocks(index: Sequence[Linear], tiles: Sequence[int], order: Sequence[int], ranges: lin.Ranges) -> list[Linear]:
    """Return an index of a buffer as an index of the blocked buffer, whose dimensions are permuted by `order`: `[i, j]`
    with tiles [1, 8] becomes `[i, j floordiv 8, j mod 8]`."""
    outer = [lin.floordiv(form, tile, ranges) for form, tile in zip(index, tiles, strict=True)]
    index_forms = [*outer, *(lin.mod(index[d], tiles[d], ranges) for d in tiled_dimensions(tiles))]
    return [index_forms[d] for d in order]


def dimension_order(block: str, buffer: str, source: Buffer, tiles: Sequence[int], order: Sequence[int]) -> list[int]:
    """The order of the dimensions of a blocked buffer: `order`, or 0, 1, 2 ... if it is empty. Raises ScheduleError if
    there is not one tile size for each dimension of `source`, or the order is no permutation of the dimensions; the
    message names `block` and `buffer`."""
    if len(tiles) != len(source.shape):
        reason = f"{len(tiles)} tiles do not fit the {len(source.shape)} dimensions of '{buffer}'"
        refuse(block_place(block), reason)
    rank = len(tiles) + len(tiled_dimensions(tiles))
    if order and sorted(order) != list(range(rank)):
        refuse(block_place(block), f"the order {list(order)} is no permutation of {rank} dimensions")
    return list(order) or list(range(rank))


def relaid(program: Program, old: Buffer, new: Buffer, forms: Sequence[Linear]) -> Program:
    """Return a program with the buffer `old` replaced by `new`, of another layout; `forms` are the new index over the
    dimensions of the former index."""

    def change(block: Block) -> Block:
        if not touches(block, old.name):
            return block

        def access(a: Access) -> Access:
            index = index_at(forms, dict(enumerate(a.index)), block.axis_ranges)
            return replace(a, index=tuple(map(lin.joined, index)))

        return with_accesses(block, old.name, access)

    return with_buffer(program.map_blocks(change), old.name, new)
