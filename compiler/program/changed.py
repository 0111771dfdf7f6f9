"""The nests that a step changes: the time of checks limited to these nests does not grow with the program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compiler.program.tree import Key, Program


@dataclass(frozen=True)
class Changed:
    """Positions of the changed nodes in the body before a step, and in the body after it."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def changed_nodes(before: Program, after: Program, keys: Iterable[Key] = ()) -> Changed:
    """Compare two bodies: a node is changed if it is no object of the other body, or contains a node of `keys`.

    If the common nodes are in another order, all nodes are changed.
    """
    old = {id(node): top for top, node in enumerate(before.body)}
    common = [old[id(node)] for node in after.body if id(node) in old]
    if common != sorted(common):
        return Changed(tuple(range(len(before.body))), tuple(range(len(after.body))))
    named = {id(p.body[p.places.top(key)]) for key in keys for p in (before, after) if key in p.places}
    unchanged = {id(before.body[top]) for top in common} - named
    return Changed(
        tuple(top for top, node in enumerate(before.body) if id(node) not in unchanged),
        tuple(top for top, node in enumerate(after.body) if id(node) not in unchanged),
    )
