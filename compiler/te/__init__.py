"""The Python front end: tensors computed element by element, and functions of them.

index.py      axes, quasi-affine index expressions, conditions over axes
dtypes.py     the dtypes
expr.py       scalar expressions
combiner.py   joint combiners, such as the one of argmax
tensor.py     placeholders and computes
gather.py     tensors read at an index that other tensors hold
function.py   functions: verified te modules
emit.py       from expressions to te.compute
nn/           named operators, built of the above
"""

from compiler.te import nn
from compiler.te.combiner import Combiner, combiner, reduce
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
    round,
    rsqrt,
    select,
    sigmoid,
    sin,
    sqrt,
    sum,
    tanh,
)
from compiler.te.function import Function, function
from compiler.te.gather import gather
from compiler.te.tensor import Tensor, compute, placeholder, reduce_axis

__all__ = [
    "Combiner",
    "Function",
    "Tensor",
    "abs",
    "all_of",
    "any_of",
    "cast",
    "combiner",
    "compute",
    "const",
    "cos",
    "equal",
    "erf",
    "exp",
    "floor",
    "function",
    "gather",
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
    "reduce",
    "reduce_axis",
    "round",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "sqrt",
    "sum",
    "tanh",
]
