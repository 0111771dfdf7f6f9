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

from compiler.te import nn as nn
from compiler.te.combiner import Combiner as Combiner
from compiler.te.combiner import combiner as combiner
from compiler.te.combiner import reduce as reduce
from compiler.te.compute import compute as compute
from compiler.te.function import Function as Function
from compiler.te.function import function as function
from compiler.te.gather import gather as gather
from compiler.te.scalar import *
from compiler.te.tensor import Tensor as Tensor
from compiler.te.tensor import placeholder as placeholder
from compiler.te.tensor import reduce_axis as reduce_axis
