"""`Runs`: the traced runs of a sketch as a tree of decisions, which tells for each candidate whose run is like its own.

The same code that has got the same answers so far asks the same question next. So runs that begin alike share a path,
and many candidates are sorted by asking each question once for all that come to it. Where a cache of the code under
trace remembers an earlier run, a run may ask otherwise: such runs lie apart, and are asked one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler.space.trace import Array, TraceGraph

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Structure:
    """What the candidates of a sketch that answer some guards alike have in common: the nodes of their features, and of
    why they are infeasible; none where the script's own primitives refuse them."""

    guards: tuple[tuple[int, bool], ...]
    nodes: tuple[int, ...] | None


@dataclass
class _Question:
    """A guard, and where its answers lead: to the next, to the end of a run, or to what no run has come by."""

    guard: int
    after: dict[bool, _Question | Structure | None]


class Runs:
    """The runs that have been traced, by their guards."""

    def __init__(self) -> None:
        self._first: dict[bool, _Question | Structure | None] = {True: None}
        self._apart: list[Structure] = []

    def add(self, structure: Structure) -> None:
        """Add a run that no other has the guards of."""
        at, answer = self._first, True
        for guard, next_answer in structure.guards:
            question = at[answer]
            if question is None:
                question = at[answer] = _Question(guard, {True: None, False: None})
            if not isinstance(question, _Question) or question.guard != guard:
                self._apart.append(structure)
                return
            at, answer = question.after, next_answer
        if at[answer] is None:
            at[answer] = structure
        else:
            self._apart.append(structure)

    def sorted(
        self, graph: TraceGraph, columns: Array, evaluated: dict[int, Array], rows: Rows
    ) -> Iterator[tuple[Structure | None, Rows]]:
        """The rows of some columns by their structures; None for those that are like no run."""
        stack = [(self._first[True], rows)]
        while stack:
            at, mine = stack.pop()
            if isinstance(at, Structure):
                yield at, mine
            if at is None:
                yield from self._asked(graph, columns, evaluated, mine)
            if not isinstance(at, _Question):
                continue
            (array,) = graph.evaluate((at.guard,), columns, evaluated)
            holds = array[mine] != 0 if array.ndim else np.full(len(mine), bool(array))
            count = np.count_nonzero(holds)
            if 0 < count < len(mine):
                stack += [(at.after[True], mine[holds]), (at.after[False], mine[~holds])]
            else:
                stack.append((at.after[bool(count)], mine))

    def _asked(
        self, graph: TraceGraph, columns: Array, evaluated: dict[int, Array], rows: Rows
    ) -> Iterator[tuple[Structure | None, Rows]]:
        """The rows of the runs that lie apart, and those of none."""
        for structure in self._apart:
            agree = np.ones(len(rows), np.bool_)
            for guard, answer in structure.guards:
                (array,) = graph.evaluate((guard,), columns, evaluated)
                agree &= ((array[rows] if array.ndim else array) != 0) == answer
                if not agree.any():
                    break
            if agree.any():
                yield structure, rows[agree]
                rows = rows[~agree]
        if len(rows):
            yield None, rows
