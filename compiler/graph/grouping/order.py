"""Disjoint groups of nodes without cycles among the groups: a join that would make one is refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

LIMIT = 1000
"""The most groups that the cycle test of a join visits in each direction; a join that needs more is refused, so that
all joins take linear time."""


class Acyclic:
    """Disjoint groups of the nodes 0, 1, ... of a graph, in a topological order of the groups.

    The order is maintained as by Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs",
    2006: a join visits only the groups between those that it joins.
    """

    def __init__(self, successors: Sequence[Iterable[int]]) -> None:
        """Begin with one group for each node. `successors[n]` are the successors of node n, whose numbers must be above
        n."""
        self._parent = list(range(len(successors)))
        self._position = list(range(len(successors)))
        self._after = [set(nodes) for nodes in successors]
        self._before: list[set[int]] = [set() for _ in successors]
        self._members = [[node] for node in self._parent]
        for node, after in enumerate(self._after):
            for successor in after:
                self._before[successor].add(node)

    def group(self, node: int) -> int:
        """The node that represents a node's group; the same for all members."""
        while self._parent[node] != node:
            self._parent[node] = self._parent[self._parent[node]]
            node = self._parent[node]
        return node

    def members(self, node: int) -> list[int]:
        """The nodes of a node's group."""
        return self._members[self.group(node)]

    def position(self, node: int) -> int:
        """The position of a node's group in the topological order; positions may have gaps."""
        return self._position[self.group(node)]

    def join(self, nodes: Iterable[int]) -> bool:
        """Merge the groups of some nodes and return True. Return False, without a change, if that makes a cycle or the
        test of it visits more than LIMIT groups."""
        joined = {self.group(node) for node in nodes}
        if len(joined) < 2:
            return True
        positions = [self._position[g] for g in joined]
        after = self._reached(joined, self._after, min(positions), max(positions))
        before = None if after is None else self._reached(joined, self._before, min(positions), max(positions))
        if after is None or before is None:
            return False
        free = sorted(self._position[g] for g in (*joined, *before, *after))
        united_number = self._united(joined)
        for position, group in zip(free, sorted(before, key=self._position.__getitem__), strict=False):
            self._position[group] = position
        following = sorted(after, key=self._position.__getitem__)
        for position, group in zip(reversed(free), reversed(following), strict=False):
            self._position[group] = position
        self._position[united_number] = free[len(before)]
        return True

    def _reached(self, start: Collection[int], neighbours: Sequence[set[int]], low: int, high: int) -> set[int] | None:
        """The groups that `start` reaches through `neighbours` strictly between positions `low` and `high`; None if a
        path returns to `start`, or for more than LIMIT groups."""
        visited: set[int] = set()
        stack = [n for g in start for n in neighbours[g] if n not in start]
        while stack:
            group = stack.pop()
            if group in start or len(visited) > LIMIT:
                return None
            if group not in visited and low < self._position[group] < high:
                visited.add(group)
                stack += neighbours[group]
        return visited

    def _united(self, groups: Collection[int]) -> int:
        """Merge groups into the one with the most neighbours, and return its representative."""
        largest = max(groups, key=lambda g: (len(self._after[g]) + len(self._before[g]), -g))
        for group in sorted(groups):
            if group != largest:
                self._parent[group] = largest
                short, long = sorted((self._members[group], self._members[largest]), key=len)
                long += short
                self._members[largest] = long
                self._move(group, largest, self._after, self._before)
                self._move(group, largest, self._before, self._after)
        return largest

    def _move(self, group: int, target: int, neighbours: list[set[int]], backwards: list[set[int]]) -> None:
        """Move the edges of a group in one direction, `neighbours`, to `target`, the group that it joined; `backwards`
        are the edges in the other direction."""
        for neighbour in neighbours[group]:
            backwards[neighbour].discard(group)
            if neighbour != target:
                backwards[neighbour].add(target)
                neighbours[target].add(neighbour)
        neighbours[group] = set()
