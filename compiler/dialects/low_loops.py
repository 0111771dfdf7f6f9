"""Loops of the low level that were lowered from a loop program carry the numbers that they have in its tree.

    scf.for %k = %c0 to %c64 step %c1 { ... } {loops = array<i64: 3>}

A parallel nest is one op with a number for each of its loops, outermost first. A loop that is cut or inside an unrolled
one becomes several ops with the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, i64
from xdsl.ir import Operation

ATTRIBUTE = "loops"


def number_loops(op: Operation, numbers: Iterable[int]) -> None:
    """Attach to an op the numbers of the loops that it was lowered from, outermost first."""
    op.attributes[ATTRIBUTE] = _attribute(tuple(numbers))


@lru_cache(maxsize=4096)
def _attribute(numbers: tuple[int, ...]) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i64, numbers)


def loop_numbers(op: Operation) -> tuple[int, ...]:
    """The numbers of the loops that an op was lowered from, outermost first; empty for other ops."""
    numbers = op.attributes.get(ATTRIBUTE)
    return tuple(int(number) for number in numbers.get_values()) if isinstance(numbers, DenseArrayBase) else ()
