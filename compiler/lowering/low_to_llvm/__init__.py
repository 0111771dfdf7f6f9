"""low -> LLVM IR text, for llvmlite.

types.py       LLVM types
literals.py    constants and flags
function.py    one function under emission
signature.py   symbols, parameters, slots of the workspace
body.py        entry and body; long bodies are cut into parts
captured.py    the values that an outlined function captures
address.py     addresses of elements
control.py     func, scf            arithmetic.py  arith
parallel.py    scf.parallel       team.py        the threads of a region and their processors
memrefs.py     memref               mathematics.py math
vectors.py     vector           conversions.py conversions to and from floats
intrinsics.py  llvm.ldexp       lane_loads.py  scalars side by side, as lanes of one vector
marks.py       for `strata explain`: the loop of each instruction, the time of each loop
tensor.py      unit: intrinsics of tensorized nests

A function becomes two: `NAME(ptr ..., ptr workspace)`, which callers see, and `NAME.body`, whose parameters are the
arguments and each slot of the workspace, all noalias (LLVM takes that fact from parameters only). With parallel loops
both take the thread count last, and each such loop is outlined. A body of many loops is split into functions.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler.dialects.upstream.memref import GlobalOp
from compiler.lowering.low_to_llvm.arithmetic import ARITHMETIC, selections
from compiler.lowering.low_to_llvm.body import emit_function
from compiler.lowering.low_to_llvm.control import CONTROL, loop_metadata
from compiler.lowering.low_to_llvm.conversions import CONVERSIONS
from compiler.lowering.low_to_llvm.function import Handlers
from compiler.lowering.low_to_llvm.intrinsics import intrinsics
from compiler.lowering.low_to_llvm.lane_loads import lane_loads
from compiler.lowering.low_to_llvm.mathematics import MATHEMATICS
from compiler.lowering.low_to_llvm.memrefs import MEMORY, emit_global
from compiler.lowering.low_to_llvm.parallel import PARALLEL
from compiler.lowering.low_to_llvm.tensor import TENSOR, check_features
from compiler.lowering.low_to_llvm.vectors import VECTORS, stores
from compiler.support.errors import LoweringError
from compiler.types.machines import Machine

HANDLERS = {**CONTROL, **PARALLEL, **ARITHMETIC, **CONVERSIONS, **MATHEMATICS, **MEMORY, **VECTORS, **TENSOR}
"""The handlers that all machines share."""


TUNED_FOR_512 = "sapphirerapids"
"""The processor whose scheduling model LLVM uses for 512-bit vectors."""


def emit(module: ModuleOp, machine: Machine, handlers: Handlers = HANDLERS) -> str:
    """Emit the LLVM IR text of a low-level module, for a machine. Buffers are bare pointers in row-major order, with a
    byte for an i1; an argument is aligned to its element, a slot of the workspace, and an argument in the attribute
    `aligned`, to 64 bytes. Integer division by zero gives 0, as in numpy. `handlers` emit ops by class; those for the
    machine's instructions are added to them. Raises LoweringError for an op or a type without a native form, and for an
    instruction that the machine lacks."""
    handlers = {**handlers, **intrinsics(machine), **stores(machine), **selections(machine)}
    handlers = {**handlers, **lane_loads(machine, handlers)}
    texts: list[str] = []
    externals: set[str] = set()
    check_features(module, machine)
    for op in module.ops:
        if isinstance(op, GlobalOp):
            texts.append(emit_global(op))
            continue
        if not isinstance(op, FuncOp):
            raise LoweringError(f"'{op.name}' has no form in LLVM IR")
        text, needed = emit_function(op, handlers)
        texts.append(text)
        externals |= needed
    joined = "\n".join([*texts, *sorted(externals), _attributes(machine)])
    return "\n".join([*loop_metadata(joined), ""])


def _attributes(machine: Machine) -> str:
    """Return the attributes of all functions.

    LLVM prefers 256-bit vectors on some 512-bit machines. By the scheduling models of some of them (Zen, Ice Lake) it
    loads all operands of a register tile of 14 by 2 vectors first, and spills accumulators in the innermost loop. The
    registers of SVE have the bits of the machine's vectors: LLVM takes them for vectors of these bits then.
    """
    scale = machine.vector_scale
    fixed = f"vscale_range({scale},{scale}) " if scale else ""
    wide = f' "prefer-vector-width"="512" "tune-cpu"="{TUNED_FOR_512}"' if machine.vector_bits == 512 else ""
    return (
        f'attributes #0 = {{ nounwind mustprogress {fixed}"target-cpu"="{machine.cpu}" '
        f'"target-features"="{machine.features}"{wide} }}'
    )
