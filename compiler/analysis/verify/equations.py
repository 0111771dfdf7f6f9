"""The equations of the original: each element of a buffer is a combination, over a block's reduce axes, of its body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.program.combiner import Combiner
from compiler.program.tree import Block, Program


class NotFunctional(Exception):
    """An original whose buffers do not have one value for each element; the message is the reason."""


@dataclass(frozen=True)
class Equation:
    """The value of a buffer's elements: result number `result` of a block, over the block's axes.

    `dims[d]` is the spatial axis that indexes dimension d, or None where that has one element.
    """

    buffer: str
    block: Block
    result: int
    dims: tuple[int | None, ...]

    @property
    def combiner(self) -> Combiner | None:
        """The combiner of the contributions; None without reduction."""
        return self.block.combiners[self.result] if self.block.combiners else None

    @property
    def is_recurrent(self) -> bool:
        """Whether the block reads its own results."""
        return not {*self.block.sources}.isdisjoint(self.block.targets)


def equations(program: Program) -> Mapping[str, Equation]:
    """The equation of each buffer that the original writes.

    Raises NotFunctional unless one block writes each element of a buffer exactly once, before it is read. A block may
    read its own results, as a recurrence does: at an earlier iteration of one serial loop.
    """
    by_buffer: dict[str, Equation] = {}
    order = {label: program.places[label].positions[0] for label in program.blocks}
    for block in program.blocks.values():
        if block.combiners and block.accumulate:
            raise NotFunctional(f"block '{block.label}' of the original accumulates onto what is there")
        for number, access in enumerate(block.writes):
            if access.buffer in by_buffer:
                raise NotFunctional(f"'{access.buffer}' is written by several blocks of the original")
            if access.buffer in program.allocs and program.enclosing((access.buffer,)):
                raise NotFunctional(f"'{access.buffer}' of the original lives in a loop")
            by_buffer[access.buffer] = Equation(access.buffer, block, number, _dims(program, block, number))
    for block in program.blocks.values():
        for name in block.sources:
            writer = by_buffer.get(name)
            if writer is not None and writer.block is block and _is_recurrence(program, block):
                continue
            if writer is not None and order[writer.block.label] >= order[block.label]:
                raise NotFunctional(f"block '{block.label}' of the original reads '{name}' before it is finished")
    return by_buffer


def _is_recurrence(program: Program, block: Block) -> bool:
    """Whether a block without reduction reads its results at its own index, but along one axis some iterations back,
    and the loop of this axis is serial and has the axis as its variable."""
    # M[i, t] = max(M[i, t - 1], A[i, t]): one iteration of t back. Not so M[i, t + 1], M[i - 1, t - 1] and M[i, 7 - t].
    axes: set[int | None] = set()
    for written in block.writes:
        for access in block.reads:
            if access.buffer != written.buffer:
                continue
            gaps = [(to, to - form) for to, form in zip(written.index, access.index, strict=True) if to != form]
            if len(gaps) != 1 or not gaps[0][1].is_constant or gaps[0][1].constant <= 0:
                return False
            axes.add(gaps[0][0].as_variable)
    axis = axes.pop() if len(axes) == 1 else None
    if axis is None or block.combiners or block.guard or block.table is not None:
        return False
    number = block.bindings[axis].as_variable
    return number is not None and program.loops[number].kind == "serial"


def _dims(program: Program, block: Block, number: int) -> tuple[int | None, ...]:
    access = block.writes[number]
    dims: list[int | None] = []
    for form, size in zip(access.index, program.buffers[access.buffer].shape, strict=True):
        if form.is_constant and form.constant == 0 and size == 1:
            dims.append(None)
            continue
        axis = form.as_variable
        if axis is None or axis in dims or axis >= block.spatial:
            raise NotFunctional(
                f"block '{block.label}' of the original does not write one element for each of its axes"
            )
        if block.axes[axis].size != size:
            raise NotFunctional(f"block '{block.label}' of the original does not write all of '{access.buffer}'")
        dims.append(axis)
    if any(n not in dims and block.axes[n].size > 1 for n in range(block.spatial)):
        raise NotFunctional(f"block '{block.label}' of the original writes elements several times")
    return tuple(dims)
