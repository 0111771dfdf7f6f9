"""`Report`: the compiled and uncompiled parts of a model, with reasons."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from compiler.support.text import counted, duration

NOISE = 1.05
"""Ratio of times below which a difference is not reported."""


@dataclass
class GraphReport:
    """A graph captured by torch.

    compiled, total: the number of compiled nodes, and of all nodes that compute.
    reasons: the number of uncompiled nodes by reason.
    seconds_compiled, seconds: the time of one call, in kernels and in total.
    """

    compiled: int
    total: int
    parts: int
    reasons: Counter[str] = field(default_factory=Counter)
    seconds_compiled: float = 0.0
    seconds: float = 0.0


@dataclass
class Report:
    """The result of `explain`: the graphs of a call, the reasons of graph breaks, and the time in eager mode."""

    graphs: list[GraphReport] = field(default_factory=list)
    breaks: list[str] = field(default_factory=list)
    seconds_eager: float | None = None

    @property
    def nodes_share(self) -> float:
        """The fraction of nodes that are compiled."""
        return _share(sum(g.compiled for g in self.graphs), sum(g.total for g in self.graphs))

    @property
    def time_share(self) -> float:
        """The fraction of the graphs' time spent in kernels."""
        return _share(sum(g.seconds_compiled for g in self.graphs), self.seconds)

    @property
    def unsupported(self) -> Counter[str]:
        """The number of uncompiled nodes by operator and reason."""
        return sum((g.reasons for g in self.graphs), Counter())

    @property
    def seconds(self) -> float:
        """The time of all graphs, in kernels and in torch's operators."""
        return sum(g.seconds for g in self.graphs)

    @property
    def is_slower(self) -> bool:
        """True if the graphs are slower than eager mode."""
        return self.seconds_eager is not None and self.seconds > NOISE * self.seconds_eager

    def __str__(self) -> str:
        nodes, compiled = sum(g.total for g in self.graphs), sum(g.compiled for g in self.graphs)
        lines = [
            f"{counted(len(self.graphs), 'graph')}, {counted(len(self.breaks), 'graph break')}",
            f"nodes compiled: {compiled} of {nodes}, {self.nodes_share:.0%}; of the time: {self.time_share:.0%}",
        ]
        if self.is_slower and self.seconds_eager is not None:
            lines.append(f"slower than eager: {duration(self.seconds)}, eager {duration(self.seconds_eager)}")
        lines += [f"graph break: {reason}" for reason in self.breaks]
        lines += [f"left to torch ({n}): {reason}" for reason, n in self.unsupported.most_common()]
        return "\n".join(lines)


def _share(part: float, total: float) -> float:
    return part / total if total else 1.0
