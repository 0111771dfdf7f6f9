"""low -> LLVM IR text, for llvmlite.

types.py       types as LLVM spells them
literals.py    constants and flags
function.py    one function under emission
signature.py   entry and body, slots of the workspace
address.py     where an op accesses a buffer
control.py     func, scf            arithmetic.py  arith
memory.py      memref               mathematics.py math
vectors.py     vector           conversions.py conversions to and from floats

A function becomes two: `NAME(ptr ..., ptr workspace)`, which callers see, and `NAME.body`, whose parameters
are the arguments and each slot of the workspace, all noalias (LLVM takes that fact from parameters only).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler.errors import LoweringError
from compiler.lowering.low_to_llvm.arithmetic import ARITHMETIC
from compiler.lowering.low_to_llvm.control import CONTROL, SCALAR
from compiler.lowering.low_to_llvm.conversions import CONVERSIONS
from compiler.lowering.low_to_llvm.mathematics import MATHEMATICS
from compiler.lowering.low_to_llvm.memory import MEMORY
from compiler.lowering.low_to_llvm.signature import emit_function
from compiler.lowering.low_to_llvm.vectors import VECTORS
from compiler.targets.machine import Machine

HANDLERS = {**CONTROL, **ARITHMETIC, **CONVERSIONS, **MATHEMATICS, **MEMORY, **VECTORS}


def emit(module: ModuleOp, machine: Machine) -> str:
    """The LLVM IR text of every function of a low-level module, for a machine.

    Buffers are bare pointers in row-major order, i1 in them is a byte; an argument is aligned to its element,
    a slot to 64 bytes. Integer division by zero gives 0, as in numpy. Raises LoweringError for an op or a
    type without a native form.
    """
    texts: list[str] = []
    externals: set[str] = set()
    for op in module.ops:
        if not isinstance(op, FuncOp):
            raise LoweringError(f"'{op.name}' has no form in LLVM IR")
        text, needed = emit_function(op, HANDLERS)
        texts.append(text)
        externals |= needed
    marked = SCALAR if any("!llvm.loop" in text for text in texts) else ()
    return "\n".join([*texts, *sorted(externals), _attributes(machine), *marked, ""])


def _attributes(machine: Machine) -> str:
    """LLVM tunes some 512-bit machines for 256 bits unless it is told so."""
    wide = ' "prefer-vector-width"="512"' if machine.vector_bits == 512 else ""
    return (
        f'attributes #0 = {{ nounwind mustprogress "target-cpu"="{machine.cpu}" '
        f'"target-features"="{machine.features}"{wide} }}'
    )
