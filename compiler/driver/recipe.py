"""`Recipe`: the deferred compilation of a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from compiler.dialects.dense import DenseAttr
from compiler.driver.inputs import Signature
from compiler.targets.arena import Allocate, arena
from compiler.targets.cpu.kernel import LevelText
from compiler.targets.cpu.linked import Linked


@dataclass(frozen=True)
class Texts:
    """The texts of a program by level, such as "loop" or "llvm", and those of its preparation."""

    main: Mapping[str, LevelText]
    preparation: Mapping[str, LevelText] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """The deferred compilation of a program. signature: None for a program that cannot have constants.
    stated_constants: the constants whose elements the program states, by name. compiled: a function that compiles the
    program. texts: a function that returns its texts by level, most of them computed when requested. allocate:
    allocates the memory of the constants, by bytes."""

    signature: Signature | None
    stated_constants: Mapping[str, DenseAttr]
    compiled: Callable[[], Linked]
    texts: Callable[[], Texts]
    allocate: Allocate = arena


def text_of(text: LevelText) -> str:
    """Return a text of a level: the text itself, or the result of the function that computes it."""
    return text if isinstance(text, str) else text()
