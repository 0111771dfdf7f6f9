"""`Imported`: the result of an import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from compiler.te.function import Function


@dataclass(frozen=True)
class Imported:
    """A model as a te function, and the arrays of its constant inputs, such as weights, by name.

    >>> A, W = te.placeholder((4, 8), name="A"), te.placeholder((8, 2), name="W")
    >>> f = te.function("f", [A, W], te.nn.matmul(A, W, name="C"))
    >>> imported = strata.frontends.Imported(f, {"W": np.ones((8, 2), np.float32)})
    >>> build(imported, threads=1)
    <Kernel f(A: float32[4, 8], C: float32[4, 2]), 1 output>
    """

    function: Function
    constants: Mapping[str, NDArray[Any]]
