"""strata-reduce: shrink a file as long as a test holds, as llvm-reduce and mlir-reduce.

delta.py    delta debugging: subsets of a list that are removed
modules.py  modules of MLIR, on every level, and scripts: functions, ops, operands, attributes, numbers
models.py   ONNX models: nodes, outputs, initializers
main.py     the command
"""

from compiler.reduce.main import main
from compiler.reduce.models import reduce_model
from compiler.reduce.modules import reduce_module

__all__ = ["main", "reduce_model", "reduce_module"]
