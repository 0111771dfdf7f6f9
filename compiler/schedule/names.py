"""Names of blocks and loops as arguments: "C" or "C.k" becomes the handle of a get_block or get_loops."""

from __future__ import annotations

from typing import Protocol

from xdsl.dialects.transform import AnyOpType

from compiler.dialects.sched import BlockType, LoopType
from compiler.program.tree import Program, blocks_in
from compiler.schedule.parameters import Handle, HandleParameter, Value
from compiler.schedule.primitive import Primitive
from compiler.schedule.primitives import PRIMITIVES
from compiler.support.errors import ScheduleError


class ScheduleQueries(Protocol):
    """The methods of a schedule that map names to handles."""

    @property
    def program(self) -> Program:
        """The scheduled program."""

    def handle_on(self, value: int | str) -> Handle | None:
        """The handle on a loop, by number, or a block, by label, that no step has consumed; None without one."""

    def call(self, primitive: Primitive, *args: object) -> list[Handle]:
        """Apply a primitive, and return its results."""

    def label(self, handle: Handle) -> str:
        """The label of the block or loop of a handle."""


def handles_of(s: ScheduleQueries, kind: HandleParameter, value: Value) -> Value:
    """Replace names of blocks and loops in an argument by handles, or raise ScheduleError; other values stay."""
    if kind.several and isinstance(value, tuple | list):
        return [_handle_of(s, kind, each) for each in value]
    return _handle_of(s, kind, value)


def _handle_of(s: ScheduleQueries, kind: HandleParameter, value: Value) -> Value:
    if not isinstance(value, str) or isinstance(kind.handles, AnyOpType):
        return value
    if isinstance(kind.handles, BlockType):
        return block_named(s, value)
    return loop_named(s, value) if isinstance(kind.handles, LoopType) else value


def block_named(s: ScheduleQueries, label: str) -> Handle:
    """The handle of a block: one from the script, or that of a new get_block. Raises ScheduleError if there is none."""
    return s.handle_on(label) or s.call(PRIMITIVES["get_block"], label)[0]


def loop_named(s: ScheduleQueries, name: str) -> Handle:
    """The handle of the loop "C.k", the loop k around the block C; or of "k", if only one loop has that name. Raises
    ScheduleError for any other name.

    Labels have dots too: the block is the longest label before a dot around which there is such a loop.
    """
    alike = [number for number, loop in s.program.loops.items() if loop.label == name]
    if len(alike) == 1:
        inside = blocks_in(s.program.loops[alike[0]])[0].label
        return s.handle_on(alike[0]) or loop_of(s, block_named(s, inside), name)
    if alike:
        places = [f"'{blocks_in(s.program.loops[number])[0].label}.{name}'" for number in alike]
        raise ScheduleError(f"there are {len(alike)} loops '{name}': say which, {' or '.join(places)}")
    dots = [end for end, character in enumerate(name) if character == "." and name[:end] in s.program.blocks]
    if not dots:
        loops = dict.fromkeys(loop.label for loop in s.program.loops.values())
        raise ScheduleError(
            f"there is no loop '{name}' (there are {', '.join(loops) or 'none'}); a loop around a block is written "
            f"block.loop, with a block of {', '.join(s.program.blocks)}"
        )
    fitting = [end for end in dots if name[end + 1 :] in {n.label for n in s.program.enclosing(name[:end])}]
    end = (fitting or dots)[-1]
    return loop_of(s, block_named(s, name[:end]), name[end + 1 :])


def loop_of(s: ScheduleQueries, block: Handle, label: str) -> Handle:
    """The handle of the loop with a label around a block. Raises ScheduleError if there is none."""
    block_label = s.label(block)
    for loop in s.program.enclosing(block_label):
        if loop.label == label and (handle_there := s.handle_on(loop.number)) is not None:
            return handle_there
    for handle in s.call(PRIMITIVES["get_loops"], block):
        if s.label(handle) == label:
            return handle
    known_labels = ", ".join(loop.label for loop in s.program.enclosing(block_label)) or "none"
    raise ScheduleError(f"it has no loop '{label}' (it has {known_labels})", "get_loops", f"block '{block_label}'")
