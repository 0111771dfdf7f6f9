"""low -> LLVM IR text, for llvmlite.

types.py      types and literals as LLVM spells them
function.py   one function under emission: values, labels, control flow, addresses
scalar.py     arith and math, on scalars and vectors
memory.py     memref and vector

A function becomes two: `NAME(ptr ..., ptr workspace)`, which callers see, and `NAME.body`, whose parameters are
the arguments and each slot of the workspace, all noalias (LLVM takes that fact from parameters only).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.functions import functions
from compiler.lowering.low_to_llvm.function import FunctionEmitter
from compiler.lowering.low_to_llvm.memory import MEMORY
from compiler.lowering.low_to_llvm.scalar import SCALAR
from compiler.targets.machine import Machine


def emit(module: ModuleOp, machine: Machine) -> str:
    """The LLVM IR text of every function of a low-level module, for a machine.

    Raises LoweringError for an op that the low level does not have, and for types without a native form.
    """
    emitters = [FunctionEmitter(function, SCALAR | MEMORY) for function in functions(module)]
    bodies = [emitter.emit() for emitter in emitters]
    declarations = sorted({line for emitter in emitters for line in emitter.declarations})
    return "\n".join([*bodies, *declarations, _attributes(machine), ""])


def _attributes(machine: Machine) -> str:
    width = f' "prefer-vector-width"="{machine.vector_bits}"'
    return (
        f'attributes #0 = {{ nounwind mustprogress "target-cpu"="{machine.cpu}" '
        f'"target-features"="{machine.features}"{width} }}'
    )
