"""The Python front end: tensors computed element by element, and functions of them.

index.py      axes, quasi-affine index expressions, conditions over axes
expr.py       scalar expressions
tensor.py     placeholders and computes
function.py   functions: verified te modules
emit.py       from expressions to te.compute
nn/           named operators, built of the above
"""

from compiler.te import nn
from compiler.te.expr import (
    abs,
    all_of,
    any_of,
    cast,
    const,
    cos,
    equal,
    erf,
    exp,
    floor,
    log,
    max,
    maximum,
    min,
    minimum,
    not_equal,
    pow,
    prod,
    rsqrt,
    select,
    sigmoid,
    sin,
    sqrt,
    sum,
    tanh,
)
from compiler.te.function import Function, function
from compiler.te.tensor import Tensor, compute, placeholder, reduce_axis

__all__ = [
    "Function",
    "Tensor",
    "abs",
    "all_of",
    "any_of",
    "cast",
    "compute",
    "const",
    "cos",
    "equal",
    "erf",
    "exp",
    "floor",
    "function",
    "log",
    "max",
    "maximum",
    "min",
    "minimum",
    "nn",
    "not_equal",
    "placeholder",
    "pow",
    "prod",
    "reduce_axis",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "sqrt",
    "sum",
    "tanh",
]
