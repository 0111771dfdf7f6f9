"""The CPU through llvmlite.

target.py      the facts of the CPU, for `compiler.targets.registry`
compile.py     LLVM IR text to machine code in this process
openmp.py      the runtime of parallel loops, and how many threads they get
kernel.py      a compiled function as a Python callable
binding.py     what native code is passed for the arrays of a call
calls.py       the usual call as a Python function that is written for each kernel; kinds.py for which arrays
facts.py       what a build says of its kernel: groups, memory, seconds
load.py        a low-level module to a kernel
tiles.py       permission to use the tile registers of AMX
single_lanes.py masked stores of one lane as scalar stores
presence.py    whether a thread had its processor while it was timed; samples that are repeated until it had
ceilings.py    what the machine can do at that moment
assembly.py    assembly text to functions, basic blocks and innermost loops
instructions.py what an instruction is and does; the count of many
throughput.py  cycles of a loop's iteration
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.support.deferral import lazy_names

if TYPE_CHECKING:
    from compiler.targets.cpu.compile import Library, compile_llvm
    from compiler.targets.cpu.kernel import Kernel, Timing
    from compiler.targets.cpu.openmp import thread_count

__all__ = ["Kernel", "Library", "Timing", "compile_llvm", "thread_count"]
__getattr__ = lazy_names(
    __name__,
    {"Kernel": "kernel", "Library": "compile", "Timing": "kernel", "compile_llvm": "compile", "thread_count": "openmp"},
)
