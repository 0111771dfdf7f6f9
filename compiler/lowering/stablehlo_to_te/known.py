"""`KnownValues`: the tensors whose elements are known before a run, which te's evaluator computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compiler.interpret.te import evaluate
from compiler.te.constant import constant
from compiler.te.function import function
from compiler.te.tensor import Tensor

Array: TypeAlias = NDArray[Any]

MAX_EAGER = 16
"""The most elements of a computed value that becomes a constant at once, such as a counter of a loop."""
MAX_ELEMENTS = 1 << 16
"""The most elements of a value that is computed if an op needs to know them, such as where a slice starts."""


@dataclass
class KnownValues:
    """Tensors whose elements depend on constants only. numbers: for a tensor whose elements are all equal, their value.
    arrays: the elements of constants and of tensors evaluated so far. computed: all tensors that depend on constants
    only."""

    numbers: dict[Tensor, Any] = field(default_factory=dict)
    arrays: dict[Tensor, Array] = field(default_factory=dict)
    computed: set[Tensor] = field(default_factory=set)

    def add(self, tensor: Tensor, array: Array) -> Tensor:
        """Record the elements of a tensor, and their value if there are any and all have the same bits (0.0 and -0.0
        differ); return the tensor."""
        self.arrays[tensor] = array
        self.computed.add(tensor)
        first = array.reshape(-1)[:1]
        if array.size and bool((array.view(_BITS[array.itemsize]) == first.view(_BITS[array.itemsize])).all()):
            self.add_number(tensor, first[0].item() if array.dtype.kind != "V" else float(first[0]))
        return tensor

    def add_number(self, tensor: Tensor, number: Any) -> Tensor:
        """Record that all elements of a tensor are equal to a number, as a float unless it is an int or bool; return
        the tensor."""
        self.numbers[tensor] = float(number) if not isinstance(number, bool | int) else number
        self.computed.add(tensor)
        return tensor

    def number(self, tensor: Tensor) -> Any:
        """Return the number that all elements of a tensor are known to be equal to; else None."""
        return self.numbers.get(tensor)

    def array(self, tensor: Tensor) -> Array | None:
        """Return the elements of a tensor; they are evaluated at the first call. None if they depend on inputs, or if
        they are no constant's and more than MAX_ELEMENTS."""
        if tensor in self.arrays:
            return self.arrays[tensor]
        if tensor not in self.computed or prod(tensor.shape) > MAX_ELEMENTS:
            return None
        (self.arrays[tensor],) = evaluate(function("known", [], [tensor]).module, [])
        return self.arrays[tensor]

    def settled(self, results: Sequence[Tensor], operands: Sequence[Tensor]) -> list[Tensor]:
        """Return the results of an op. If it has operands, all of them known, the results are recorded as known, and
        those of at most MAX_EAGER elements, unless they were known before, are replaced by constants. Other results are
        returned unchanged."""
        if not operands or not all(operand in self.computed for operand in operands):
            return list(results)
        return [self._settled(result) for result in results]

    def _settled(self, result: Tensor) -> Tensor:
        if result in self.computed:
            return result
        self.computed.add(result)
        if prod(result.shape) > MAX_EAGER:
            return result
        array = self.array(result)
        assert array is not None
        return self.add(constant(array, result.dtype, result.name), array)


_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
