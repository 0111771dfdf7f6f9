"""Rows: the axes along which blocks of a program can share their loops.

A row is a slice of the results that blocks compute from the same slice of each other's results: a batch and position of
a layer norm, a channel of a batch norm, a column of a softmax over the first axis.
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
    """The blocks that share loops over rows, in the order of the program, the anchor last. `axes` maps a label to the
    block's row axes, in the order of the anchor's.

    >>> A = te.placeholder((4, 8), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(te.nn.relu(A, name="B"), name="C")))
    >>> strata.analysis.rows_of(s.program, "C", ["B", "C"])
    Rows(axes={'B': (0, 1), 'C': (0, 1)})
    """

    axes: dict[str, tuple[int, ...]]

    @property
    def anchor(self) -> str:
        """The last block, whose loops over rows become the common ones."""
        return list(self.axes)[-1]


def rows_of(program: Program, anchor: str, within: Iterable[str]) -> Rows | None:
    """Find the blocks in `within` that can be computed row by row with the block `anchor`, the last of them; None if
    the anchor has no row axis.

    Two axes are the same row axis if one block writes a dimension along the first and another reads it along the
    second, or if both read a dimension of one argument along them. An axis that is reduced or read otherwise (a window,
    a diagonal, one element) is no row axis; one of extent 1 is one only if all are. A block belongs to the rows if it
    streams and has each row axis once, all readers of its temporaries belong to them, and no other block passes its
    values on to them. None also if the anchor does not stream.

    >>> A = te.placeholder((4, 8), name="A")
    >>> B = te.nn.sum(A, axis=1, keepdims=True, name="B")
    >>> program = Schedule(te.function("f", [A], te.nn.sub(A, B, name="C"))).program
    >>> strata.analysis.rows_of(program, "C", ["B", "C"])
    Rows(axes={'B': (0,), 'C': (0,)})
    """
    labels = [label for label in program.blocks if label in {*within, anchor}]
    labels = labels[: labels.index(anchor) + 1]
    classes = _classes(program, [program.blocks[label] for label in labels])
    block = program.blocks[anchor]
    fit = [axis for axis in range(block.spatial) if classes.of((anchor, axis)) not in classes.unfit_classes]
    long = [axis for axis in fit if block.axes[axis].size > 1]
    row_classes = [classes.of((anchor, axis)) for axis in long or fit]
    if not row_classes or _row_axes(classes, block, row_classes) is None:
        return None
    axes = {label: _row_axes(classes, program.blocks[label], row_classes) for label in labels}
    members = {label for label, numbers in axes.items() if numbers is not None}
    members = _connected(program, anchor, members)
    while outside := {label for label in members if label != anchor and not _belongs(program, label, members)}:
        members = _connected(program, anchor, members - outside)
    return Rows({label: numbers for label, numbers in axes.items() if numbers is not None and label in members})


class _Classes:
    """Union-find of the axes that are the same row axis; `unfit` are axes that cannot be row axes."""

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
    def unfit_classes(self) -> set[Axis]:
        return {self.of(axis) for axis in self.unfit}


def _classes(program: Program, blocks: Sequence[Block]) -> _Classes:
    classes = _Classes()
    dims: dict[tuple[str, int], Axis] = {}
    for block in blocks:
        classes.unfit += [(block.label, n) for n, axis in enumerate(block.axes) if axis.is_reduce]
        for access in block.writes:
            for dim, form in enumerate(access.index):
                axis = form.as_variable
                if axis is not None:
                    _linked(classes, dims, (access.buffer, dim), (block.label, axis))
    written = {access.buffer for block in blocks for access in block.writes}
    for block in blocks:
        for name, dim, form in _reads(block):
            axis = form.as_variable
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


def _row_axes(classes: _Classes, block: Block, row_classes: Sequence[Axis]) -> tuple[int, ...] | None:
    """Return a block's axis in each class, in order; None unless each has exactly one and the block streams."""
    classes_here = [classes.of((block.label, axis)) for axis in range(block.spatial)]
    if any(classes_here.count(row_class) != 1 for row_class in row_classes) or not streams(block):
        return None
    return tuple(classes_here.index(row_class) for row_class in row_classes)


def streams(block: Block) -> bool:
    """Return true for a block that is no reduction, or that reads each element of some operand once.

    False for a product, which reuses all operands, and for overlapping windows.

    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 4), name="B")
    >>> product = Schedule(te.function("f", [A, B], te.nn.matmul(A, B, name="C"))).program.blocks["C"]
    >>> total = Schedule(te.function("g", [A], te.nn.sum(A, name="C"))).program.blocks["C"]
    >>> strata.analysis.streams(product), strata.analysis.streams(total)
    (False, True)
    """
    if not block.combiners:
        return True
    axes = {n for n, axis in enumerate(block.axes) if axis.size > 1}
    return any(axes <= _separate(access.index) for access in block.reads)


def _separate(index: Sequence[Linear]) -> set[int]:
    """The axes that are alone in the form of some dimension."""
    return set().union(*(v for v in (form.variables() for form in index) if len(v) == 1))


def _connected(program: Program, anchor: str, members: set[str]) -> set[str]:
    """Return the members reached from the anchor through buffers that two members access; the anchor is one."""
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
    """Whether all readers of a block's temporaries are members, and no outside block passes values on to members."""
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
