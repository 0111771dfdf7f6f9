"""Instructions that replace small loop nests: their declarations, and the match of a nest with one.

model.py     `Intrinsic`: nest, layouts, dtypes, the processor's feature, LLVM's name
declared.py  the instructions of processors, and the table of all by name
warp.py      the instructions of a GPU's warps
fit.py       match a nest with a declaration: loops to axes, reads to operands, or the mismatch in a sentence
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
