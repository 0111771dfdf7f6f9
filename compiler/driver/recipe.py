"""`Recipe`: how a program is compiled, before it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from compiler.dialects.dense import DenseAttr
from compiler.driver.inputs import Face
from compiler.driver.main.linked import Linked
from compiler.driver.units.unit import Unit
from compiler.targets.arena import Allocate, arena
from compiler.targets.cpu.facts import GroupFacts
from compiler.targets.cpu.kernel import Text

Code: TypeAlias = Unit | Linked
"""What is compiled of a program: a unit, or units that main calls."""


@dataclass(frozen=True)
class Texts:
    """The texts of a program by level, and the texts of its preparation."""

    main: Mapping[str, Text]
    preparation: Mapping[str, Text] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """How a program is compiled.

    face: what a caller knows of it; None where nothing of it can be constant. known: the constants whose elements the
    program has, by their names. compiled: compile it. texts: its texts, most of which are made when they are asked for.
    group: what a kernel of one group says of it. allocate: gives the memory of the constants.
    """

    face: Face | None
    known: Mapping[str, DenseAttr]
    compiled: Callable[[], Code]
    texts: Callable[[], Texts]
    group: GroupFacts | None = None
    allocate: Allocate = arena
