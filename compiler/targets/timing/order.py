"""`with_loads_first`: the order that an assembler such as ptxas gives to straight-line code."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from compiler.targets.timing.code import BARRIER, CONTROL, COPY, MEMORY, WAIT, Code, Repeat, WarpInstruction

AHEAD = 16
"""The most loads that are moved before the use of the first one: registers hold them."""


def with_loads_first(code: Sequence[Code]) -> list[Code]:
    """Return code in which, between jumps and barriers, loads begin before the instructions that use their results.

      a = load; s1 = s0 + a; b = load; s2 = s1 + b
    ->
      a = load; b = load; s1 = s0 + a; s2 = s1 + b
    """
    ordered: list[Code] = []
    stretch: list[WarpInstruction] = []
    for item in code:
        if isinstance(item, Repeat):
            ordered += [*_ordered(stretch), Repeat(item.trips, with_loads_first(item.body))]
            stretch = []
        elif item.kind in (BARRIER, CONTROL, WAIT):
            ordered += [*_ordered(stretch), item]
            stretch = []
        else:
            stretch.append(item)
    return [*ordered, *_ordered(stretch)]


def _ordered(stretch: Sequence[WarpInstruction]) -> Iterator[WarpInstruction]:
    """Yield the instructions of a stretch, loads and their sources first, AHEAD loads at a time."""
    rest = list(stretch)
    while rest:
        early: list[int] = []
        late, written = set[Hashable](), set[str]()
        """Registers that this round does not compute early, or that its loads set."""
        loads = 0
        for n, instruction in enumerate(rest):
            depends = not late.isdisjoint(instruction.sources) or instruction.target in late
            is_load = instruction.is_load and instruction.kind not in written
            if depends or instruction.kind == COPY or (instruction.kind in MEMORY and not is_load) or loads == AHEAD:
                late.add(instruction.target)
                late.update(instruction.sources if instruction.kind == COPY else ())
                if instruction.kind in MEMORY and not instruction.is_load:
                    written.add(instruction.kind)
            elif is_load:
                loads += 1
                early.append(n)
                late.add(instruction.target)
            else:
                early.append(n)
        if not loads:
            yield from rest
            return
        chosen = set(early)
        yield from (rest[n] for n in early)
        rest = [instruction for n, instruction in enumerate(rest) if n not in chosen]
