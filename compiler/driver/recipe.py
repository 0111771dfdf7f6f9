"""`Recipe`: how a program is compiled, before it is; `Nest`: a program that calls no others, compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from compiler.dialects.dense import DenseAttr
from compiler.driver.inputs import Face
from compiler.driver.main.linked import Linked
from compiler.program.tree import Buffer
from compiler.targets.cpu.artefact import Artefact
from compiler.targets.cpu.facts import Group
from compiler.targets.cpu.kernel import Text


@dataclass(frozen=True)
class Nest:
    """A function as data that makes a kernel, the group that it is, if it is one, and what is run once before it is
    called, if anything is: it reads the constants `takes` and fills the arrays `prepared`.

    `arguments` are those of the function where some are constants or prepared, which no call gives.
    """

    main: Artefact
    group: Group | None = None
    arguments: tuple[Buffer, ...] = ()
    preparation: Artefact | None = None
    takes: tuple[str, ...] = ()
    prepared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Texts:
    """The texts of a program by level, and the texts of its preparation."""

    main: Mapping[str, Text]
    preparation: Mapping[str, Text] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """How a program is compiled.

    face: what a caller knows of it; None where it has no constants. known: the constants whose elements the program
    has, by their names. compiled: compile it. texts: its texts, most of which are made when they are asked for.
    """

    face: Face | None
    known: Mapping[str, DenseAttr]
    compiled: Callable[[], Nest | Linked]
    texts: Callable[[], Texts]
