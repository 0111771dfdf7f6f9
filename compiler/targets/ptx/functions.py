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
def elementary(at: PtxInstruction) -> Computation:
    """`ex2.approx.ftz.f32`, `rcp.rn.f32` and their like, to nearest."""
    type_ = one_type(at)
    modifiers = modifiers_of(at, "approx", "full", "rn", "ftz")
    function = _FUNCTIONS[at.parts[0]]
    if type_ == "f64" and "ftz" in modifiers:
        return elementwise(type_, 1, lambda x: _high_word(function(_high_word(x))))
    return elementwise(type_, 1, finished(type_, modifiers, lambda x: function(x.astype(np.float64)).astype(x.dtype)))


def _high_word(values: Array) -> Array:
    """float64 without its low 32 bits, as `rcp.approx.ftz.f64` takes and gives them."""
    return (values.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
