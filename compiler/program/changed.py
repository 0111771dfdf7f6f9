"""The nests of a program that a step changes: a check of these alone takes no longer in a longer program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compiler.program.tree import Key, Program


@dataclass(frozen=True)
class Changed:
    """The positions, in the bodies before and after a step, of the nodes that are not in both."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def changed_nodes(before: Program, after: Program, keys: Iterable[Key] = ()) -> Changed:
    """The nodes that are not the same object in both bodies, and the nodes that contain one of some keys.

    All nodes if the common ones stand in another order.
    """
    old = {id(node): top for top, node in enumerate(before.body)}
    same = [old[id(node)] for node in after.body if id(node) in old]
    if same != sorted(same):
        return Changed(tuple(range(len(before.body))), tuple(range(len(after.body))))
    named = {id(p.body[p.places.top(key)]) for key in keys for p in (before, after) if key in p.places}
    kept = {id(before.body[top]) for top in same} - named
    return Changed(
        tuple(top for top, node in enumerate(before.body) if id(node) not in kept),
        tuple(top for top, node in enumerate(after.body) if id(node) not in kept),
    )
