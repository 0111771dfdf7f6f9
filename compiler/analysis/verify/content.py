"""The values that instances of a read find, and the verdicts of a failed proof."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import islpy as isl
from xdsl.ir import Attribute

from compiler.analysis.sets import union_set

Index = TypeVar("Index", bound=Hashable)
Found = TypeVar("Found", isl.UnionMap, isl.UnionSet)


class Refuted(Exception):
    """The scheduled program computes something else; the message names an instance."""


class Unknown(Exception):
    """A program about which the proof does not decide; the message is the reason."""


def join(table: dict[Index, Found], key: Index, points: Found) -> None:
    """Union a map or set into the entry of `table` for a key; create the entry if it is missing."""
    table[key] = table[key].union(points) if key in table else points


@dataclass(frozen=True)
class Lack:
    """Instances that read something else than the needed element. kind: they find its partial sums (partial), another
    element, unknown values, or no value at all (nothing)."""

    kind: Literal["partial", "another", "unknown", "nothing"]
    instances: isl.UnionSet


@dataclass
class Content:
    """The values that the instances of one read find: finished elements (by original buffer), contributions so far (by
    buffer), constants (by value), or unknown ones. The isl maps and sets are over the instances, and disjoint. An
    instance in none of them reads uninitialised memory or an overwritten value."""

    final: dict[str, isl.UnionMap] = field(default_factory=dict)
    partial: dict[str, isl.UnionMap] = field(default_factory=dict)
    constant: dict[Attribute, isl.UnionSet] = field(default_factory=dict)
    unknown: isl.UnionSet = field(default_factory=union_set)

    def where(self, instances: isl.UnionSet) -> Content:
        """Return the content restricted to some instances."""
        return Content(
            {name: points.intersect_domain(instances) for name, points in self.final.items()},
            {name: points.intersect_domain(instances) for name, points in self.partial.items()},
            {value: points.intersect(instances) for value, points in self.constant.items()},
            self.unknown.intersect(instances),
        )

    def join(self, added: Content) -> None:
        """Add the content that further instances find, in place."""
        for name, points in added.final.items():
            join(self.final, name, points)
        for name, points in added.partial.items():
            join(self.partial, name, points)
        for value, instances in added.constant.items():
            join(self.constant, value, instances)
        self.unknown = self.unknown.union(added.unknown)

    def lack(self, buffer: str, expected: isl.UnionMap) -> Lack | None:
        """The instances of one kind, the first of partial, another, nothing and unknown with any, that do not find the
        finished element to which `expected` maps them; None if all do."""
        # expected { R[e] -> V[e] : 0 <= e < 4 }, final { R[e] -> V[e] : e < 3 }: R[3] lacks its element
        elements = self.final.get(buffer)
        wrong = (expected if elements is None else expected.subtract(elements)).domain()
        if wrong.is_empty():
            return None
        for kind, points in (("partial", self.partial.get(buffer)), ("another", elements)):
            affected = None if points is None else points.domain().intersect(wrong)
            if affected is not None and not affected.is_empty():
                return Lack("partial" if kind == "partial" else "another", affected)
        certain = wrong.subtract(self.unknown)
        return Lack("unknown", wrong) if certain.is_empty() else Lack("nothing", certain)
