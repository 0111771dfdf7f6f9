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
    """A program that the method cannot judge."""


def join(table: dict[Index, Found], key: Index, points: Found) -> None:
    """Union a map or set into a table's entry."""
    table[key] = table[key].union(points) if key in table else points


@dataclass(frozen=True)
class Lack:
    """Instances that do not find the element they should: they find partial sums of it, another element, or an unknown
    value."""

    kind: Literal["partial", "another", "unknown", "nothing"]
    instances: isl.UnionSet


@dataclass
class Content:
    """What the instances of one read find: finished elements (by original buffer), contributions so far (by buffer),
    constants (by value), and instances for which this is unknown. Maps and sets of isl over the instances, disjoint. An
    instance in none of them reads uninitialised memory or an overwritten value."""

    final: dict[str, isl.UnionMap] = field(default_factory=dict)
    partial: dict[str, isl.UnionMap] = field(default_factory=dict)
    constant: dict[Attribute, isl.UnionSet] = field(default_factory=dict)
    unknown: isl.UnionSet = field(default_factory=union_set)

    def where(self, instances: isl.UnionSet) -> Content:
        """The content restricted to some instances."""
        return Content(
            {name: points.intersect_domain(instances) for name, points in self.final.items()},
            {name: points.intersect_domain(instances) for name, points in self.partial.items()},
            {value: points.intersect(instances) for value, points in self.constant.items()},
            self.unknown.intersect(instances),
        )

    def join(self, added: Content) -> None:
        """Add the content that other instances find."""
        for name, points in added.final.items():
            join(self.final, name, points)
        for name, points in added.partial.items():
            join(self.partial, name, points)
        for value, instances in added.constant.items():
            join(self.constant, value, instances)
        self.unknown = self.unknown.union(added.unknown)

    def lack(self, buffer: str, expected: isl.UnionMap) -> Lack | None:
        """The instances that do not find the finished elements of a buffer that they should; None if all do."""
        elements = self.final.get(buffer)
        wrong = (expected if elements is None else expected.subtract(elements)).domain()
        if wrong.is_empty():
            return None
        for kind, points in (("partial", self.partial.get(buffer)), ("another", elements)):
            at = None if points is None else points.domain().intersect(wrong)
            if at is not None and not at.is_empty():
                return Lack("partial" if kind == "partial" else "another", at)
        certain = wrong.subtract(self.unknown)
        return Lack("unknown", wrong) if certain.is_empty() else Lack("nothing", certain)
