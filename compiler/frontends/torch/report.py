"""`Report`: the compiled parts of a model, the parts that stay with torch, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from compiler.support.text import counted, duration

NOISE = 1.05
"""Times closer than this ratio are not told apart."""


@dataclass
class GraphReport:
    """One graph that torch captured.

    compiled, total: its nodes that compute, those compiled and all.
    reasons: why others stayed with torch, each with how many nodes.
    seconds_compiled, seconds: of one call, in kernels and in all.
    """

    compiled: int
    total: int
    parts: int
    reasons: Counter[str] = field(default_factory=Counter)
    seconds_compiled: float = 0.0
    seconds: float = 0.0


@dataclass
class Report:
    """What `explain` found: the graphs of a call, where torch broke between them, and the time of the call in eager."""

    graphs: list[GraphReport] = field(default_factory=list)
    breaks: list[str] = field(default_factory=list)
    seconds_eager: float | None = None

    @property
    def nodes_share(self) -> float:
        """The part of all nodes that is compiled."""
        return _share(sum(g.compiled for g in self.graphs), sum(g.total for g in self.graphs))

    @property
    def time_share(self) -> float:
        """The part of the time of all graphs that kernels take."""
        return _share(sum(g.seconds_compiled for g in self.graphs), self.seconds)

    @property
    def unsupported(self) -> Counter[str]:
        """Each operator that stayed with torch, with its reason, and how often."""
        return sum((g.reasons for g in self.graphs), Counter())

    @property
    def seconds(self) -> float:
        """Of all graphs, in kernels and in operators of torch."""
        return sum(g.seconds for g in self.graphs)

    @property
    def is_slower(self) -> bool:
        """Whether the graphs take longer than the same call without a compiler."""
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
