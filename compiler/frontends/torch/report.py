"""`Report`: the compiled and uncompiled parts of a model, with reasons."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from compiler.support.text import counted, duration

NOISE = 1.05
"""The ratio to eager mode's time up to which graphs do not count as slower."""


@dataclass
class GraphReport:
    """A graph captured by torch.

    compiled, total: the number of compiled nodes, and of all nodes that compute.
    parts: the number of compiled parts.
    reasons: the number of uncompiled nodes by reason.
    seconds_compiled, seconds: the time of the last call, in compiled parts and in total.
    """

    compiled: int
    total: int
    parts: int
    reasons: Counter[str] = field(default_factory=Counter)
    seconds_compiled: float = 0.0
    seconds: float = 0.0


@dataclass
class Report:
    """The result of `explain`: the graphs of a call, the reasons of graph breaks, and the call's time in eager mode.

    seconds_eager: None if eager mode was not timed.
    """

    graphs: list[GraphReport] = field(default_factory=list)
    breaks: list[str] = field(default_factory=list)
    seconds_eager: float | None = None

    @property
    def nodes_share(self) -> float:
        """The fraction of computing nodes that are compiled; 1 without nodes."""
        return _share(sum(g.compiled for g in self.graphs), sum(g.total for g in self.graphs))

    @property
    def time_share(self) -> float:
        """The fraction of the graphs' time that compiled parts take; 1 without times."""
        return _share(sum(g.seconds_compiled for g in self.graphs), self.seconds)

    @property
    def unsupported(self) -> Counter[str]:
        """The number of uncompiled nodes of all graphs by reason, which names the operator."""
        return sum((g.reasons for g in self.graphs), Counter())

    @property
    def seconds(self) -> float:
        """The total seconds of all graphs, in compiled parts and in torch's operators."""
        return sum(g.seconds for g in self.graphs)

    @property
    def is_slower(self) -> bool:
        """Whether the graphs take more than NOISE times the seconds of eager mode; False if that was not timed."""
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
