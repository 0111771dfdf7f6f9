"""What instances of a read find, and how a proof ends that fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import islpy as isl
from xdsl.ir import Attribute

from compiler.analysis.sets import context


class Refuted(Exception):
    """The scheduled program computes something else; the message names an instance."""


class Unknown(Exception):
    """A program that the method cannot judge."""


@dataclass
class Content:
    """What instances of one read find: finished elements (by original buffer), contributions so far (by buffer),
    constants (by value), and the instances of which it is not known. Maps and sets of isl, over the instances;
    disjoint. An instance that is in none finds what is wrong: memory that nobody has set, or a value spoilt since."""

    final: dict[str, Any] = field(default_factory=dict)
    partial: dict[str, Any] = field(default_factory=dict)
    constant: dict[Attribute, Any] = field(default_factory=dict)
    unknown: Any = field(default_factory=lambda: isl.UnionSet("{ }", context()))

    def add(self, kind: str, key: Any, found: Any) -> None:
        """Join a map or set to what is there."""
        table = getattr(self, kind)
        table[key] = table[key].union(found) if key in table else found

    def where(self, instances: Any) -> Content:
        """What some of the instances find."""
        return Content(
            {name: points.intersect_domain(instances) for name, points in self.final.items()},
            {name: points.intersect_domain(instances) for name, points in self.partial.items()},
            {value: found.intersect(instances) for value, found in self.constant.items()},
            self.unknown.intersect(instances),
        )

    def join(self, other: Content) -> None:
        """Add what other instances find."""
        for kind in ("final", "partial", "constant"):
            for key, found in getattr(other, kind).items():
                self.add(kind, key, found)
        self.unknown = self.unknown.union(other.unknown)
