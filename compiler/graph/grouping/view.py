"""`View`: a te function while rules group its computes. A compute is identified by the name of its first result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from compiler.graph.grouping.facts import Kind, kind_of, size
from compiler.graph.grouping.order import Acyclic
from compiler.graph.tree import Compute, Graph
from compiler.program.tree import Block, Buffer


@dataclass(frozen=True)
class Anchors:
    """The reductions of a group: the name `latest` of the deepest, "" without any, and the counts of contractions, row
    and window reductions. The truth value is whether there is one."""

    latest: str = ""
    contractions: int = 0
    rows: int = 0
    windows: int = 0

    def __bool__(self) -> bool:
        return bool(self.latest)


class View:
    """The computes of a graph, their neighbours, and the groups made of them so far, each compute alone at first.

    >>> A = te.placeholder((4,), name="A")
    >>> f = te.function("f", [A], te.nn.exp(te.nn.relu(A, name="B"), name="C"))
    >>> view = strata.graph.View(strata.graph.read(strata.dialects.find_function(f.module)))
    >>> view.readers("B"), view.producers("C")
    (['C'], ['B'])
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = {node.results[0].name: node for node in graph.nodes if isinstance(node, Compute)}
        self.names = list(self.nodes)
        """The computes in the order of the graph."""
        self.place = {name: place for place, name in enumerate(self.names)}
        """Map each compute to its position in `names`."""
        self.age: dict[str, tuple[int, int]] = {}
        """Map each compute to its depth (the computes on the longest path that ends with it) and its position."""
        self._kinds = {name: kind_of(node.block) for name, node in self.nodes.items()}
        self._owner = {value.name: name for name, node in self.nodes.items() for value in node.results}
        self._readers: dict[str, dict[str, None]] = {name: {} for name in self.names}
        self._producers = {name: self._read_by(node) for name, node in self.nodes.items()}
        for name, producers in self._producers.items():
            for producer in producers:
                self._readers[producer][name] = None
        for name in self.names:
            self.age[name] = 1 + max((self.age[p][0] for p in self.producers(name)), default=0), self.place[name]
        self.returned = {self._owner[value] for value in graph.results if value in self._owner}
        """The computes of which the function returns a result."""
        self._groups = Acyclic([[self.place[r] for r in self._readers[name]] for name in self.names])
        self._closed: set[int] = set()
        self._anchors = [self._own_anchors(name) for name in self.names]

    def kind(self, name: str) -> Kind:
        """The `Kind` of a compute."""
        return self._kinds[name]

    def block(self, name: str) -> Block:
        """The block of a compute."""
        return self.nodes[name].block

    def producers(self, name: str) -> list[str]:
        """The names of the computes that produce a compute's operands, each once; inputs and constants have none."""
        return self._producers[name]

    def readers(self, name: str) -> list[str]:
        """The computes that read a compute's results, each once, in the order of the graph."""
        return list(self._readers[name])

    def read(self, reader: str, producer: str) -> list[Buffer]:
        """The results of `producer` that `reader` reads."""
        operands = self.nodes[reader].operands
        return [value for value in self.nodes[producer].results if value.name in operands]

    def members(self, name: str) -> list[str]:
        """The computes of a compute's group, in the order of the graph."""
        return [self.names[place] for place in sorted(self._groups.members(self.place[name]))]

    def group(self, name: str) -> int:
        """The number of a compute's group; the next join may change it."""
        return self._groups.group(self.place[name])

    def same(self, *names: str) -> bool:
        """Whether all of the computes `names` are in one group; true for no name or one."""
        return len({self.group(name) for name in names}) < 2

    def anchors(self, name: str) -> Anchors:
        """The reductions of a compute's group."""
        return self._anchors[self.group(name)]

    def join(self, names: Iterable[str]) -> bool:
        """Merge the groups of computes, at least one, and return True. Return False, without a change, for a closed
        group, a cycle of groups, or too long a test for one."""
        groups = {self.group(name) for name in names}
        if len(groups) > 1 and groups & self._closed:
            return False
        merged = Anchors()
        for anchors in (self._anchors[group] for group in sorted(groups)):
            latest = max((a for a in (merged.latest, anchors.latest) if a), key=self.age.__getitem__, default="")
            merged = Anchors(
                latest,
                merged.contractions + anchors.contractions,
                merged.rows + anchors.rows,
                merged.windows + anchors.windows,
            )
        if not self._groups.join(groups):
            return False
        self._anchors[self._groups.group(min(groups))] = merged
        return True

    def close(self, name: str) -> None:
        """Forbid further joins of a compute's group."""
        self._closed.add(self.group(name))

    def groups(self) -> list[list[str]]:
        """All groups in an order of execution: of the groups that are ready, the first in the graph is next. Computes
        of a group are in the order of the graph."""
        numbers = {self.group(name): None for name in self.names}
        first = {group: min(self._groups.members(group)) for group in numbers}
        needs = {
            group: {self.group(p) for n in self._groups.members(group) for p in self.producers(self.names[n])} - {group}
            for group in numbers
        }
        waiting = {group: len(before) for group, before in needs.items()}
        after: dict[int, list[int]] = {group: [] for group in numbers}
        for group, before in needs.items():
            for neighbour in before:
                after[neighbour].append(group)
        ready = [(first[group], group) for group, count in waiting.items() if not count]
        heapify(ready)
        ordered = []
        while ready:
            _, group = heappop(ready)
            ordered.append([self.names[n] for n in sorted(self._groups.members(group))])
            for neighbour in after[group]:
                waiting[neighbour] -= 1
                if not waiting[neighbour]:
                    heappush(ready, (first[neighbour], neighbour))
        assert len(ordered) == len(numbers), "groups need each other"
        return ordered

    def crossing(self, name: str, group: Iterable[str]) -> int:
        """The bytes that a compute reads from and writes for computes outside its group and the groups of `group`;
        function arguments and constants do not count, returned results do."""
        inside = {self.group(member) for member in group} | {self.group(name)}
        operands = [v for p in self.producers(name) if self.group(p) not in inside for v in self.read(name, p)]
        leaves = name in self.returned or any(self.group(r) not in inside for r in self._readers[name])
        return sum(map(size, operands)) + (sum(map(size, self.nodes[name].results)) if leaves else 0)

    def _read_by(self, node: Compute) -> list[str]:
        return list(dict.fromkeys(self._owner[v] for v in node.operands if v in self._owner))

    def _own_anchors(self, name: str) -> Anchors:
        match self._kinds[name]:
            case Kind.CONTRACTION:
                return Anchors(name, contractions=1)
            case Kind.ROWS:
                return Anchors(name, rows=1)
            case Kind.WINDOW:
                return Anchors(name, windows=1)
        return Anchors()
