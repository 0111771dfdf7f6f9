"""`Query`: a question to isl, or a claim of a proof, with its answer; `recorded`: those in a context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from compiler.analysis.sets import OBSERVERS


@dataclass(frozen=True)
class Query:
    """A query to isl.

    kind: `sample`, `within`, `injective`, or `claim`, a part of a proof. text: the set or map in isl's syntax, of
    `within` two with the word between them; of a claim its sentence. answer: a point, True or False; None for an empty
    set and for a claim that holds. answered: False beyond the operation limit, and for a claim that does not hold.
    seconds: until the answer. cached: whether it was answered without isl, from the cache of former queries.
    """

    kind: str
    text: str
    answer: tuple[int, ...] | bool | None
    answered: bool
    seconds: float
    cached: bool


@contextmanager
def recorded() -> Iterator[list[Query]]:
    """Yield a list to which all queries in the context are appended when they are answered.

    >>> from compiler.analysis.sets import sample
    >>> from compiler.view.queries import recorded
    >>> with recorded() as queries:
    ...     sample("[x, y] : 0 <= x < 4 and 0 <= y < 4 and x + y = 5")
    (2, 3)
    >>> queries[0].kind, queries[0].answer
    ('sample', (2, 3))
    """
    queries: list[Query] = []

    def observe(kind: str, text: str, answer: object, seconds: float, cached: bool) -> None:
        point = answer if isinstance(answer, tuple | bool) else None
        queries.append(Query(kind, text, point, answer is not ..., seconds, cached))

    OBSERVERS.append(observe)
    try:
        yield queries
    finally:
        OBSERVERS.remove(observe)
