"""`Family`: equal programs, and programs that only look equal, as spellings of one function of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from compiler import te

Spelled: TypeAlias = Callable[..., Any]
"""Tensors -> one tensor, or several."""
Array: TypeAlias = "np.ndarray[Any, Any]"
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]


class Law(Enum):
    """The relation of a spelling to the first one of its family."""

    EXACT = "exact"
    """te-canonicalize gives both one text."""
    CHOICE = "choice"
    """te-alternatives gives both one text, under the family's policy."""
    SPEED = "speed"
    """They stay two programs, which rules bring to the same time."""
    APART = "apart"
    """They stay two programs, one of which is slower by more than 5%."""
    NONE = "none"
    """It only looks equal: it computes something else."""


@dataclass(frozen=True)
class Spelling:
    """A way to write a program. `scale` and `shift` of normal operands that show the difference, for a program that
    only looks equal."""

    law: Law
    made: Spelled
    scale: float = 1.0
    shift: float = 0.0


@dataclass(frozen=True)
class Family:
    """A program in its first spelling, its value in numpy, its operands' shapes in tests (`small`) and for timing
    (`large`), the policy under which it is built, and its other spellings by name."""

    name: str
    first: Spelled
    value: Callable[..., Any]
    small: Shapes
    large: Shapes
    others: Mapping[str, Spelling]
    policy: str = "contract"
    dtypes: Mapping[str, str] = field(default_factory=dict)
    """Other dtypes than f32, by operand."""

    def function(self, made: Spelled, shapes: Shapes) -> te.Function:
        """A spelling as a te function."""
        inputs = [te.placeholder(shape, self.dtypes.get(name, "f32"), name=name) for name, shape in shapes.items()]
        return te.function("spelled", inputs, made(*inputs))

    def arrays(self, shapes: Shapes, scale: float = 1.0, shift: float = 0.0) -> list[Array]:
        """Draw normal operands of the shapes, times `scale` plus `shift`, always the same."""
        random = np.random.default_rng(0)
        normal = [random.standard_normal(shape) * scale + shift for shape in shapes.values()]
        dtypes = [np.dtype({"f32": "f4", "i32": "i4"}[self.dtypes.get(name, "f32")]) for name in shapes]
        return [array.astype(dtype) for array, dtype in zip(normal, dtypes, strict=True)]


@dataclass(frozen=True)
class Pair:
    """The first spelling of a family and another one."""

    family: Family
    name: str
    other: Spelling

    def functions(self, shapes: Shapes) -> tuple[te.Function, te.Function]:
        """Both as te functions."""
        first, second = (self.family.function(made, shapes) for made in (self.family.first, self.other.made))
        return first, second


def pairs(families: tuple[Family, ...]) -> Iterator[Pair]:
    """All pairs of some families, in their order."""
    for family in families:
        for name, other in family.others.items():
            yield Pair(family, name, other)


def exact(made: Spelled) -> Spelling:
    """A spelling with the same canonical text."""
    return Spelling(Law.EXACT, made)


def choice(made: Spelled) -> Spelling:
    """A spelling that te-alternatives turns into the same text."""
    return Spelling(Law.CHOICE, made)


def speed(made: Spelled) -> Spelling:
    """A spelling that stays another program, of the same value and time."""
    return Spelling(Law.SPEED, made)


def apart(made: Spelled) -> Spelling:
    """A spelling that stays another program, of the same value and of another time."""
    return Spelling(Law.APART, made)


def different(made: Spelled, scale: float = 1.0, shift: float = 0.0) -> Spelling:
    """A spelling of another program, which only looks equal; operands with `scale` and `shift` show the difference."""
    return Spelling(Law.NONE, made, scale, shift)
