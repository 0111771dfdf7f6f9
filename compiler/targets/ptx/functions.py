"""Elementary functions: rcp, sqrt, rsqrt, ex2, lg2, sin, cos, tanh. Approximations are computed exactly and rounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from compiler.targets.ptx.arithmetic import finished
from compiler.targets.ptx.syntax import PtxInstruction
from compiler.targets.ptx.table import Computation, elementwise, modifiers_of, one_type, pure
from compiler.targets.ptx.values import Array

_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "rcp": lambda x: 1.0 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}


@pure(*_FUNCTIONS)
def elementary(instruction: PtxInstruction) -> Computation:
    """Return the computation of an elementary function, such as `ex2.approx.ftz.f32`: evaluated in float64 and rounded
    to the type, also for `.approx`. `.ftz.f32` makes denormals zero, `.ftz.f64` clears the low 32 bits of operand and
    result. Raises PtxError for a modifier other than `.approx`, `.full`, `.rn` and `.ftz`."""
    type_ = one_type(instruction)
    modifiers = modifiers_of(instruction, "approx", "full", "rn", "ftz")
    function = _FUNCTIONS[instruction.parts[0]]
    if type_ == "f64" and "ftz" in modifiers:
        return elementwise(type_, 1, lambda x: _high_word(function(_high_word(x))))
    return elementwise(type_, 1, finished(type_, modifiers, lambda x: function(x.astype(np.float64)).astype(x.dtype)))


def _high_word(values: Array) -> Array:
    """Return float64 values with their low 32 bits cleared, as `rcp.approx.ftz.f64` reads and writes them."""
    return (values.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
