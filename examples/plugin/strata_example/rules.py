"""A grouping rule, and a rule of the search space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strata.graph import Choice, View
from strata.recipes import Alternative, Draft


def squares_alone(view: View) -> Iterator[Choice]:
    """Leave what squared_relu gives alone: other groups read it."""
    for name in view.names:
        if name.startswith("squared_relu"):
            yield Choice(name, ())


def halves_on_threads(draft: Draft, label: str) -> Iterator[Alternative]:
    """Run the halves of the outermost loop of an elementwise block on two threads."""
    block = draft.block(label)
    if draft.threads != 2 or block.combiners or len(block.reads) != 1:
        return

    def apply(draft: Draft) -> Sequence[str]:
        s = draft.schedule
        outer, _ = s.halve(s.get_loops(s.get_block(label))[0])
        s.parallel(outer)
        return [label]

    yield Alternative("halves on threads", apply)
