# ruff: noqa: F403
"""The Python front end: tensors computed element by element, and functions of them.

index.py     axes, sizes, quasi-affine index expressions, conditions over axes
sizes.py     sizes with their ranges, shapes over them
expr.py      scalar expressions
tensor.py    tensors, and reads of them
scalar.py    functions of scalar expressions, reductions
combiner.py  joint combiners, such as the one of argmax
compute.py   computes
constant.py  tensors of literal elements
gather.py    tensors read at data-dependent indices
function.py  functions: verified te modules
bound.py      functions with sizes as static ones
hashes.py    hashes of functions, independent of names
emit.py      lowering of expressions to te.compute
nn/          named operators, built of the above
"""

from compiler.te import nn, scalar
from compiler.te.bound import bound
from compiler.te.combiner import Combiner, combiner, reduce
from compiler.te.compute import compute
from compiler.te.constant import constant
from compiler.te.function import Function, function
from compiler.te.gather import gather
from compiler.te.hashes import canonical_hash
from compiler.te.scalar import *
from compiler.te.sizes import size
from compiler.te.tensor import Tensor, placeholder, reduce_axis

__all__ = ["Combiner", "Function", "Tensor", "bound", "canonical_hash", "combiner", "compute", "constant", "function"]
__all__ += ["gather", "nn", "placeholder", "reduce", "reduce_axis", "size"]
__all__ += scalar.__all__

_REPLACEMENTS = {
    "create_schedule": "strata.Schedule(function) begins a schedule, of a te.function of inputs and results",
    "create_prim_func": "te.function(name, inputs, results) is a function, and strata.build compiles it",
    "var": "te.size(name, least, most) is an extent that each call gives",
    "size_var": "te.size(name, least, most) is an extent that each call gives",
    "if_then_else": "te.select(condition, then, otherwise) chooses",
    "thread_axis": 'Schedule.bind(loop, "thread_x") binds a loop',
    "scan": "te.nn.cumsum and te.nn.lstm are scans; other recurrences have no form",
    "extern": "te has compute and gather only",
}
"""Names of TVM's te that this one lacks, and their replacements."""


def __getattr__(name: str) -> object:
    hint = _REPLACEMENTS.get(name)
    raise AttributeError(f"module '{__name__}' has no '{name}'{f': {hint}' if hint else ''}")
