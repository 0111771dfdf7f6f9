"""Instructions that replace small loop nests: what each computes, as data, and whether a nest computes the same.

model.py     an instruction: nest, layouts, dtypes, the processor's feature, LLVM's name
declared.py  the instructions of processors, and all there are by their names
warp.py      those of a GPU's warps
fit.py       a nest beside a declaration: which loop is which axis, or one sentence that names what does not fit
"""

from compiler.intrinsics.declared import INTRINSICS, find
from compiler.intrinsics.fit import Fit, Misfit, PerfectNest, Reference, fit
from compiler.intrinsics.model import Intrinsic, NestAxis, NestOperand

__all__ = [
    "INTRINSICS",
    "Fit",
    "Intrinsic",
    "Misfit",
    "NestAxis",
    "NestOperand",
    "PerfectNest",
    "Reference",
    "find",
    "fit",
]
