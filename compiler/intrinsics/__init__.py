"""Instructions that replace small loop nests: what each computes, as data, and whether a nest computes the same.

declared.py  the instructions: nest, layouts, dtypes, the processor's feature, LLVM's name
fit.py       a nest beside a declaration: which loop is which axis, or one sentence that names what does not fit
"""

from compiler.intrinsics.declared import INTRINSICS, Axis, Intrinsic, Operand, find
from compiler.intrinsics.fit import Fit, Misfit, Nest, Reference, fit

__all__ = ["INTRINSICS", "Axis", "Fit", "Intrinsic", "Misfit", "Nest", "Operand", "Reference", "find", "fit"]
