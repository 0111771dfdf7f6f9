"""`Runs`: the traced runs of a sketch as a decision tree, which finds the run that is valid for each candidate.

After the same answers to its guards so far, the traced code meets the same guard next. So runs share a path up to their
first different answer, and each guard is evaluated once for all candidates that reach it. A cache in the traced code
may skip guards: runs that do not fit the tree are in a list, and are compared one by one.
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
    """A traced run, valid for all candidates that answer its guards alike. guards: with their answers. nodes: of the
    features and of the reasons not to build; None if a primitive of the script refuses a step."""

    guards: tuple[tuple[int, bool], ...]
    nodes: tuple[int, ...] | None


@dataclass
class _Question:
    """A node of the decision tree: a guard, and for each answer the next question, the run that ends there, or None."""

    guard: int
    after: dict[bool, _Question | Structure | None]


class Runs:
    """The traced runs of a sketch, searched by the answers to their guards."""

    def __init__(self) -> None:
        self._first: dict[bool, _Question | Structure | None] = {True: None}
        self._apart: list[Structure] = []

    def add(self, structure: Structure) -> None:
        """Add a run, whose guards and answers no other run has: to the tree, or to the list if it does not fit."""
        branches, answer = self._first, True
        for guard, next_answer in structure.guards:
            question = branches[answer]
            if question is None:
                question = branches[answer] = _Question(guard, {True: None, False: None})
            if not isinstance(question, _Question) or question.guard != guard:
                self._apart.append(structure)
                return
            branches, answer = question.after, next_answer
        if branches[answer] is None:
            branches[answer] = structure
        else:
            self._apart.append(structure)

    def sorted(
        self, graph: TraceGraph, columns: Array, evaluated: dict[int, Array], rows: Rows
    ) -> Iterator[tuple[Structure | None, Rows]]:
        """Group rows of candidates by the valid structure. Yield each structure with its rows, and None with rows
        without a valid one; either may come several times. rows: indices into `columns` (n, inputs). evaluated: a cache
        of arrays by node."""
        stack = [(self._first[True], rows)]
        while stack:
            node, node_rows = stack.pop()
            if isinstance(node, Structure):
                yield node, node_rows
            if node is None:
                yield from self._asked(graph, columns, evaluated, node_rows)
            if not isinstance(node, _Question):
                continue
            (array,) = graph.evaluate((node.guard,), columns, evaluated)
            holds = array[node_rows] != 0 if array.ndim else np.full(len(node_rows), bool(array))
            count = np.count_nonzero(holds)
            if 0 < count < len(node_rows):
                stack += [(node.after[True], node_rows[holds]), (node.after[False], node_rows[~holds])]
            else:
                stack.append((node.after[bool(count)], node_rows))

    def _asked(
        self, graph: TraceGraph, columns: Array, evaluated: dict[int, Array], rows: Rows
    ) -> Iterator[tuple[Structure | None, Rows]]:
        """Group rows by the runs outside the tree, compared one by one: yield each valid structure with its rows, and
        None with rows for which no run is valid."""
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
