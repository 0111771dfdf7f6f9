"""`Imported`: what a front end makes of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from compiler.te.function import Function


@dataclass(frozen=True)
class Imported:
    """A model as a te function, and the arrays of those inputs of it that never change, such as weights, by name."""

    function: Function
    constants: Mapping[str, NDArray[Any]]
