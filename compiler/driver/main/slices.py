"""Concatenations written by their producers: the parts become views of one buffer, and the copying call is removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects.func import FuncOp

from compiler.graph.concatenation import Slot, contiguous_parts
from compiler.graph.main import BufferCall, BufferCopy, BufferView, Main, Step
from compiler.graph.read import read
from compiler.program.names import Names
from compiler.program.tree import Buffer
from compiler.types.elements import element_bytes

Joins: TypeAlias = Mapping[str, tuple[Slot, ...]]
"""The parts of concatenations, by the names of their functions."""


def joins(functions: Iterable[FuncOp]) -> Joins:
    """Map the names of those te functions that only concatenate inputs to their parts, contiguous in the result."""
    parts_of = {function.sym_name.data: contiguous_parts(read(function)) for function in functions}
    return {name: parts for name, parts in parts_of.items() if parts is not None}


def sliced(main: Main, joins: Joins, buffers: Mapping[str, Buffer]) -> Main:
    """Remove the calls of concatenations whose producers can write into slices of the result; return the new main.

        call @f(%x, %a)  call @g(%x, %b)  call @join(%a, %b, %c)
      ->
        %a = view of %c  %b = view of %c  call @f(%x, %a)  call @g(%x, %b)

    `joins`: the parts of each concatenating function, by its name. A temporary becomes a slice of the last
    concatenation that has it; other parts are copied into their slices. If all parts of a concatenation are in another
    one at the same relative offsets, it becomes a view of that one: of the nested concatenations of a dense block only
    the last has memory. Otherwise, if no part can be a slice, the call stays. `buffers`: main's buffers and the
    constants that main reads, by name.
    """
    slices = _Slices(main, buffers)
    for number in reversed(range(len(main.steps))):
        step = main.steps[number]
        if isinstance(step, BufferCall) and step.callee in joins:
            slices.join(number, step, joins[step.callee])
    return slices.main()


_Place: TypeAlias = tuple[str, int]
"""A buffer that is no view, and an offset in it in bytes."""


@dataclass
class _Copied:
    """A buffer that is copied into a slice, and the number of the step before which it is copied."""

    source: str
    step: int


class _Slices:
    """The buffers and offsets at which the parts of concatenations are. `join` takes concatenations from the last to
    the first, so that one inside another is joined after it."""

    def __init__(self, main: Main, buffers: Mapping[str, Buffer]) -> None:
        self._main, self._buffers = main, buffers
        self._temporaries = {buffer.name for buffer in main.temporaries}
        self._places: dict[str, _Place] = {}
        self._copied: dict[_Place, _Copied] = {}
        self._copies: dict[str, list[_Place]] = {}
        """The places of the copies of each buffer."""
        self._gone: set[int] = set()

    def join(self, number: int, call: BufferCall, parts: Sequence[Slot]) -> None:
        """Make the parts of a concatenation, the call of step `number`, slices or copies, and remove the step. Keep it
        if no part can be a slice and the parts are not all in another concatenation."""
        target = call.outputs[0]
        width = element_bytes(self._buffers[target].scalar)
        pieces = [(call.inputs[part.input], part.start * width) for part in parts]
        within = self._within(target, pieces)
        if within is not None:
            self._places[target] = within
            for name, offset in pieces:
                copied = self._copied.get((within[0], within[1] + offset))
                if copied is not None and self._places.get(name) != (within[0], within[1] + offset):
                    copied.step = number
            self._gone.add(number)
        elif any(map(self._is_free, call.inputs)):
            self._place(number, self._places.get(target, (target, 0)), pieces)
            self._gone.add(number)

    def _is_free(self, name: str) -> bool:
        return name in self._temporaries and name not in self._places

    def _place(self, number: int, within: _Place, pieces: Sequence[tuple[str, int]]) -> None:
        """Make the parts `pieces`, names with offsets in bytes, slices at their offsets from the place `within`; parts
        that cannot be slices are copied there before step `number`."""
        for name, offset in pieces:
            slot = (within[0], within[1] + offset)
            if self._is_free(name):
                self._places[name] = slot
            else:
                self._copied[slot] = _Copied(name, number)
                self._copies.setdefault(name, []).append(slot)

    def _within(self, target: str, pieces: Sequence[tuple[str, int]]) -> _Place | None:
        """The place in another buffer where all parts `pieces` already have the offsets of the concatenation `target`;
        None without one. Parts a at 0 and b at 64 bytes. In t, a is at 128 and b at 192: the place is (t, 128)."""
        first, start = pieces[0]
        for joined, offset in self._all_places(first) if self._is_free(target) else ():
            begin = offset - start
            if all((joined, begin + piece_start) in self._all_places(name) for name, piece_start in pieces):
                return joined, begin
        return None

    def _all_places(self, name: str) -> list[_Place]:
        """The places of a buffer in other buffers, as a slice or as copies."""
        placed = [self._places[name]] if name in self._places else []
        return placed + self._copies.get(name, [])

    def main(self) -> Main:
        """Main with views and copies instead of the removed calls."""
        main, names = self._main, Names(self._buffers)
        views = [BufferView(self._buffers[name], *place) for name, place in self._places.items()]
        copies: dict[int, list[BufferCopy]] = {}
        for place, copied in self._copied.items():
            buffer = replace(self._buffers[copied.source], name=names.fresh(f"{copied.source}.copy"))
            views.append(BufferView(buffer, *place))
            copies.setdefault(copied.step, []).append(BufferCopy(copied.source, buffer.name))
        steps = list[Step]()
        for number, step in enumerate(main.steps):
            steps += copies.get(number, ())
            steps += () if number in self._gone else (step,)
        temporaries = tuple(buffer for buffer in main.temporaries if buffer.name not in self._places)
        return replace(main, temporaries=temporaries, steps=tuple(steps), views=tuple(views))
