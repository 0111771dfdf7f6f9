"""Whether a compiled graph is slower than the same graph in eager: both are timed in its first call."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from time import perf_counter
from typing import Any

import torch
from torch import fx
from torch._guards import TracingContext

from compiler.frontends.torch.report import GraphReport
from compiler.support.text import counted, duration
from compiler.torch_backend.costs import Cost

ROUNDS = 5
"""The most turns; the first in which the compiled graph is not slower is the last."""
LONGEST = 1.0
"""Seconds of a call from which on none is compared, and of all calls after which no turn begins."""
SLOWER, LOSS = 1.1, 1e-4
"""The ratio and the seconds from which on a graph is slower: closer times are not told apart in so few runs."""


@dataclass
class Compared:
    """A compiled graph, `run`, that is timed beside `eager` within its first call, and warns where it is slower.

    report: how many of its operators are compiled. costs: gives the costs of its groups.
    """

    run: Callable[..., Any]
    eager: Callable[..., Any]
    report: GraphReport
    costs: Callable[[], Iterable[Cost]]
    _once: Lock = field(default_factory=Lock)
    """Held from the first call on."""

    def __call__(self, *inputs: Any) -> Any:
        """The graph's results."""
        results = self.run(*inputs)
        if self._once.acquire(blocking=False):
            seconds = slower(lambda: self.run(*inputs), lambda: self.eager(*inputs))
            if seconds is not None:
                warnings.warn(self._sentence(*seconds), stacklevel=2)
        return results

    def _sentence(self, ours: float, theirs: float) -> str:
        times = f"{ours / theirs:.2f} times as long as eager ({duration(ours)}, {duration(theirs)})"
        worst = max(self.costs(), key=lambda cost: cost.excess, default=None)
        group = "" if worst is None else f"; the group furthest above its bound is {worst}"
        left, total = self.report.total - self.report.compiled, self.report.total
        stays = f"; {left} of {counted(total, 'operator')} stay with torch" if left else ""
        return f"strata: this graph takes {times}{group}{stays}"


def slower(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float] | None:
    """The least seconds of two calls in turns, where the first is the slower one; None where it is not, takes too long
    to be compared, or the second raises an error."""
    began = perf_counter()
    first, second = _seconds(ours), inf
    if first > LONGEST:
        return None
    try:
        theirs()  # allocates, and packs weights
    except (RuntimeError, IndexError, TypeError, ValueError):  # torch's: such as for an index beyond a table
        return None
    for _ in range(ROUNDS):
        first, second = min(first, _seconds(ours)), min(second, _seconds(theirs))
        if not _is_slower(first, second):
            return None
        if perf_counter() - began > LONGEST:
            break
    return first, second


def _is_slower(ours: float, theirs: float) -> bool:
    return ours > SLOWER * theirs and ours - theirs > LOSS


def _seconds(call: Callable[[], object]) -> float:
    begin = perf_counter()
    call()
    return perf_counter() - begin


def is_repeatable(graph: fx.GraphModule) -> bool:
    """Whether a graph that is being compiled may run again unnoticed: all that it calls are torch's own operators, none
    of which draws random numbers, and nothing is written to."""
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None or any(info.mutates_data or info.mutates_metadata for info in metadata.input_info):
        return False
    return all(map(_is_pure, _calls(graph)))


def _calls(graph: fx.GraphModule) -> Iterator[Any]:
    return (n.target for n in graph.graph.nodes if n.op not in ("placeholder", "output", "get_attr"))


def _is_pure(target: Any) -> bool:
    if target is operator.getitem:
        return True
    own = isinstance(target, torch._ops.OpOverload) and target.namespace in ("aten", "prims")
    return own and not target._schema.is_mutable and torch.Tag.nondeterministic_seeded not in target.tags
