"""Concatenations that their producers write: the parts are views of one buffer, and the call that copied them goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects.func import FuncOp

from compiler.graph.concatenation import Slot, contiguous_parts
from compiler.graph.main import Call, Copy, Main, Step, View
from compiler.graph.read import read
from compiler.program.names import Names
from compiler.program.tree import Buffer
from compiler.types.elements import element_bytes

Joins: TypeAlias = Mapping[str, tuple[Slot, ...]]
"""By the names of functions that only put inputs one behind the other, their parts."""


def joins(functions: Iterable[FuncOp]) -> Joins:
    """Those of some te functions that only put inputs one behind the other in memory."""
    parts_of = {function.sym_name.data: contiguous_parts(read(function)) for function in functions}
    return {name: parts for name, parts in parts_of.items() if parts is not None}


def sliced(main: Main, joins: Joins, buffers: Mapping[str, Buffer]) -> Main:
    """Main without the calls of concatenations whose producers can write into their slices.

        call @f(%x, %a)  call @g(%x, %b)  call @join(%a, %b, %c)
      ->
        %a = view of %c  %b = view of %c  call @f(%x, %a)  call @g(%x, %b)

    A part qualifies that a call of main gives, that is no result of main, and that stands in no other concatenation;
    others are copied into their slices. Where none qualifies the call stays. A concatenation all of whose parts stand
    in another one, in its order, is a view of that one; so of blocks that each read all earlier results only the last
    has memory. `buffers` are those of main, and the constants that it reads.
    """
    slices = _Slices(main, buffers)
    for number in reversed(range(len(main.steps))):
        step = main.steps[number]
        if isinstance(step, Call) and step.callee in joins:
            slices.join(number, step, joins[step.callee])
    return slices.main()


_Place: TypeAlias = tuple[str, int]
"""A buffer that is no view, and an offset in it in bytes."""


@dataclass
class _Copied:
    """What stands as a copy in another buffer, and the number of the step before which it is copied."""

    source: str
    step: int


class _Slices:
    """Where the parts of concatenations stand, the last concatenation first: what contains it is then known."""

    def __init__(self, main: Main, buffers: Mapping[str, Buffer]) -> None:
        self._main, self._buffers = main, buffers
        self._temporaries = {buffer.name for buffer in main.temporaries}
        self._places: dict[str, _Place] = {}
        self._copied: dict[_Place, _Copied] = {}
        self._copies: dict[str, list[_Place]] = {}
        """The places of the copies of each buffer."""
        self._gone: set[int] = set()

    def join(self, number: int, call: Call, parts: Sequence[Slot]) -> None:
        """Place the parts of the concatenation that a step calls, if any can be placed."""
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
        """Place parts at offsets from a place; those that stand elsewhere are copied."""
        for name, offset in pieces:
            place = (within[0], within[1] + offset)
            if self._is_free(name):
                self._places[name] = place
            else:
                self._copied[place] = _Copied(name, number)
                self._copies.setdefault(name, []).append(place)

    def _within(self, target: str, pieces: Sequence[tuple[str, int]]) -> _Place | None:
        """Where all parts of a concatenation already stand as they would in it."""
        first, start = pieces[0]
        for joined, offset in self._all_places(first) if self._is_free(target) else ():
            begin = offset - start
            if all((joined, begin + piece_start) in self._all_places(name) for name, piece_start in pieces):
                return joined, begin
        return None

    def _all_places(self, name: str) -> list[_Place]:
        """Where the elements of a buffer stand in others."""
        placed = [self._places[name]] if name in self._places else []
        return placed + self._copies.get(name, [])

    def main(self) -> Main:
        """Main with views and copies for the calls that are gone."""
        main, names = self._main, Names(self._buffers)
        views = [View(self._buffers[name], *place) for name, place in self._places.items()]
        copies: dict[int, list[Copy]] = {}
        for place, copied in self._copied.items():
            buffer = replace(self._buffers[copied.source], name=names.fresh(f"{copied.source}.copy"))
            views.append(View(buffer, *place))
            copies.setdefault(copied.step, []).append(Copy(copied.source, buffer.name))
        steps = list[Step]()
        for number, step in enumerate(main.steps):
            steps += copies.get(number, ())
            steps += () if number in self._gone else (step,)
        temporaries = tuple(buffer for buffer in main.temporaries if buffer.name not in self._places)
        return replace(main, temporaries=temporaries, steps=tuple(steps), views=tuple(views))
