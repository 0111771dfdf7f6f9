"""Compare a compiled graph with eager mode: both are timed in its first call."""

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
from compiler.targets.torch_gpus import TorchGpu
from compiler.torch_backend.costs import Cost

ROUNDS = 5
"""The maximal number of rounds of one call each; no round follows one after which the compiled graph is not slower."""
LONGEST = 1.0
"""A limit in seconds: a graph whose call takes longer is not compared, and no round begins after that time."""
SLOWER, LOSS = 1.1, 1e-4
"""A graph is slower if its time exceeds SLOWER times that of eager mode, and by more than LOSS seconds: else noise."""


@dataclass
class EagerComparison:
    """A compiled graph, `run`, that is timed beside `eager` in its first call, with a warning if it is slower.

    report: counts the operators that stay with torch. costs: measures the groups; the warning names the worst. gpu: on
    which the graph runs, None for the CPU: calls are timed to the end of their kernels there, and none while a CUDA
    graph is captured.
    """

    run: Callable[..., Any]
    eager: Callable[..., Any]
    report: GraphReport
    costs: Callable[[], Iterable[Cost]]
    gpu: TorchGpu | None = None
    _once: Lock = field(default_factory=Lock)
    """Acquired by the first call."""

    def __call__(self, *inputs: Any) -> Any:
        """Run the compiled graph and return its results. The first call then times it beside eager mode, and warns if
        it is slower; a call that a CUDA graph captures does not."""
        results = self.run(*inputs)
        if not (self.gpu is not None and self.gpu.is_capturing()) and self._once.acquire(blocking=False):
            wait = _wait if self.gpu is None else self.gpu.synchronize
            wait()
            seconds = slower(lambda: (self.run(*inputs), wait()), lambda: (self.eager(*inputs), wait()))
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
    """Time calls of two functions alternately; return the least seconds of a call of each, ours first, if ours is still
    slower after each of ROUNDS rounds, fewer if they take longer than LONGEST seconds; else None. Also None if the
    first call of ours takes longer than that, or the first of theirs raises one of torch's errors."""
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


def _wait() -> None:
    """Return at once: calls on the CPU end when they return."""


def _is_slower(ours: float, theirs: float) -> bool:
    return ours > SLOWER * theirs and ours - theirs > LOSS


def _seconds(call: Callable[[], object]) -> float:
    begin = perf_counter()
    call()
    return perf_counter() - begin


def is_repeatable(graph: fx.GraphModule) -> bool:
    """Return whether a graph can be run again without side effects: all calls are to torch's own operators, none
    draws random numbers or writes to an input. False outside of torch's compilation, where this is unknown."""
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
