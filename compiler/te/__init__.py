# ruff: noqa: F403
"""The Python front end: tensors computed element by element, and functions of them.

index.py      axes, quasi-affine index expressions, conditions over axes
expr.py       scalar expressions
tensor.py     tensors, and reads of them
scalar.py     functions of scalar expressions, reductions
combiner.py   joint combiners, such as the one of argmax
compute.py    computes
gather.py     tensors read at an index that other tensors hold
function.py   functions: verified te modules
emit.py       from expressions to te.compute
nn/           named operators, built of the above
"""

from compiler.te import nn, scalar
from compiler.te.combiner import Combiner, combiner, reduce
from compiler.te.compute import compute
from compiler.te.function import Function, function
from compiler.te.gather import gather
from compiler.te.scalar import *
from compiler.te.tensor import Tensor, placeholder, reduce_axis

__all__ = ["Combiner", "Function", "Tensor", "combiner", "compute", "function", "gather", "nn", "placeholder"]
__all__ += ["reduce", "reduce_axis", *scalar.__all__]
