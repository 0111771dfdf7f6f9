"""Rows: the axes along which some blocks of a program can share their loops.

A row is the unit that a set of blocks computes from the same unit of each other's results: the batch and the position
of a layer norm, the channel of a batch norm, the column of a softmax over the first axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compiler.affine.linear import Linear
from compiler.program.tree import Block, Program

Axis = tuple[str, int]
"""An axis of a block: the block's label, and the number of the axis."""


@dataclass(frozen=True)
class Rows:
    """The blocks that share loops over rows, in the order of the program, the anchor last: by label the axes that
    run over rows, in the order of the anchor's."""

    axes: dict[str, tuple[int, ...]]

    @property
    def anchor(self) -> str:
        """The last block; its loops over rows become the common ones."""
        return list(self.axes)[-1]


def rows_of(program: Program, anchor: str, within: Iterable[str]) -> Rows | None:
    """The blocks, among some, that can be computed row by row together with an anchor, the last of them; None where
    the anchor has no axis that nothing reduces.

    Two axes are the same row axis if one block writes a dimension along the first and another reads it along the
    second, or if both read a dimension of one argument along them. An axis that is reduced or read otherwise (a window,
    a diagonal, one element) is no row axis, nor is one that some of the blocks lack. A block belongs to the rows if all
    readers of its temporaries do, and no block outside stands between it and the others.
    """
    labels = [label for label in program.blocks if label in {*within, anchor}]
    labels = labels[: labels.index(anchor) + 1]
    classes = _classes(program, [program.blocks[label] for label in labels])
    block = program.blocks[anchor]
    fit = [axis for axis in range(block.spatial) if classes.of((anchor, axis)) not in classes.along]
    long = [axis for axis in fit if block.axes[axis].size > 1]
    wanted = [classes.of((anchor, axis)) for axis in long or fit]
    if not wanted or _found(classes, block, wanted) is None:
        return None
    axes = {label: _found(classes, program.blocks[label], wanted) for label in labels}
    members = {label for label, numbers in axes.items() if numbers is not None}
    members = _connected(program, anchor, members)
    while outside := {label for label in members if label != anchor and not _belongs(program, label, members)}:
        members = _connected(program, anchor, members - outside)
    return Rows({label: numbers for label, numbers in axes.items() if numbers is not None and label in members})


class _Classes:
    """Axes that are the same, as a union-find; `along` are the classes that are no rows."""

    def __init__(self) -> None:
        self.parents: dict[Axis, Axis] = {}
        self.unfit: list[Axis] = []

    def of(self, axis: Axis) -> Axis:
        while (parent := self.parents.get(axis, axis)) != axis:
            axis = parent
        return axis

    def join(self, axis: Axis, partner: Axis) -> None:
        self.parents[self.of(axis)] = self.of(partner)

    @property
    def along(self) -> set[Axis]:
        return {self.of(axis) for axis in self.unfit}


def _classes(program: Program, blocks: Sequence[Block]) -> _Classes:
    classes = _Classes()
    dims: dict[tuple[str, int], Axis] = {}
    for block in blocks:
        classes.unfit += [(block.label, n) for n, axis in enumerate(block.axes) if axis.is_reduce]
        for access in block.writes:
            for dim, form in enumerate(access.index):
                axis = plain(form)
                if axis is not None:
                    _linked(classes, dims, (access.buffer, dim), (block.label, axis))
    written = {access.buffer for block in blocks for access in block.writes}
    for block in blocks:
        for name, dim, form in _reads(block):
            axis = plain(form)
            if axis is not None:
                _linked(classes, dims, (name, dim), (block.label, axis))
            elif name in written and (name, dim) in dims and program.buffers[name].shape[dim] > 1:
                classes.unfit.append(dims[name, dim])
    return classes


def _reads(block: Block) -> Iterator[tuple[str, int, Linear]]:
    for access in block.reads:
        yield from ((access.buffer, dim, form) for dim, form in enumerate(access.index))


def _linked(classes: _Classes, dims: dict[tuple[str, int], Axis], dim: tuple[str, int], axis: Axis) -> None:
    if dim in dims:
        classes.join(axis, dims[dim])
    else:
        dims[dim] = axis


def plain(form: Linear) -> int | None:
    """The axis that a form is, where it is one."""
    if form.constant == 0 and len(form.terms) == 1:
        ((atom, factor),) = form.terms
        if factor == 1 and isinstance(atom, int):
            return atom
    return None


def _found(classes: _Classes, block: Block, wanted: Sequence[Axis]) -> tuple[int, ...] | None:
    """The axes of a block of some classes, one each; None where it has not one of each."""
    classes_here = [classes.of((block.label, axis)) for axis in range(block.spatial)]
    if any(classes_here.count(wanted_class) != 1 for wanted_class in wanted) or not streams(block):
        return None
    return tuple(classes_here.index(wanted_class) for wanted_class in wanted)


def streams(block: Block) -> bool:
    """Whether a reduction has an operand that is read once: a product, whose operands are all used again, and a window
    that overlaps the next one are no work of rows."""
    if not block.combiners:
        return True
    every = {n for n, axis in enumerate(block.axes) if axis.size > 1}
    return any(every <= _separate(access.index) for access in block.reads)


def _separate(index: Sequence[Linear]) -> set[int]:
    """The axes that index dimensions of their own."""
    return set().union(*(v for v in (form.variables() for form in index) if len(v) == 1))


def _connected(program: Program, anchor: str, members: set[str]) -> set[str]:
    """The members that pass values to each other or read the same, beginning with the anchor."""
    reached, pending = {anchor}, [anchor]
    while pending:
        block = program.blocks[pending.pop()]
        touched = {access.buffer for access in (*block.reads, *block.writes)}
        for label in members - reached:
            member = program.blocks[label]
            if touched & {access.buffer for access in (*member.reads, *member.writes)}:
                reached.add(label)
                pending.append(label)
    return reached


def _belongs(program: Program, label: str, members: set[str]) -> bool:
    """Whether a block can be computed with the members: they read all its temporaries, and nothing outside passes its
    values on to them."""
    outside: set[str] = set()
    pending = [program.blocks[label]]
    while pending:
        block = pending.pop()
        for access in block.writes:
            for reader in program.readers[access.buffer]:
                inside = reader.label in members
                if block.label == label and not inside and access.buffer in program.allocs:
                    return False
                if block.label != label and inside:
                    return False
                if not inside and reader.label not in outside:
                    outside.add(reader.label)
                    pending.append(reader)
    return True
