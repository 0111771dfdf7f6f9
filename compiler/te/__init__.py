# ruff: noqa: F403
"""The Python front end: tensors computed element by element, and functions of them.

index.py      axes, quasi-affine index expressions, conditions over axes
expr.py       scalar expressions
tensor.py     tensors, and reads of them
scalar.py     functions of scalar expressions, reductions
combiner.py   joint combiners, such as the one of argmax
compute.py    computes
constant.py   tensors whose elements the program states
gather.py     tensors read at an index that other tensors hold
function.py   functions: verified te modules
canonical.py  hashes of functions, which no name changes
emit.py       from expressions to te.compute
nn/           named operators, built of the above
"""

from compiler.te import nn, scalar
from compiler.te.canonical import canonical_hash
from compiler.te.combiner import Combiner, combiner, reduce
from compiler.te.compute import compute
from compiler.te.constant import constant
from compiler.te.function import Function, function
from compiler.te.gather import gather
from compiler.te.scalar import *
from compiler.te.tensor import Tensor, placeholder, reduce_axis

__all__ = ["Combiner", "Function", "Tensor", "canonical_hash", "combiner", "compute", "constant", "function", "gather"]
__all__ += ["nn", "placeholder", "reduce", "reduce_axis", *scalar.__all__]
