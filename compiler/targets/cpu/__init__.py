"""The CPU through llvmlite.

target.py      the facts of the CPU, for `compiler.targets.registry`
compile.py     LLVM IR text to object code, and its loading
perf.py        functions and their addresses for Linux's perf
openmp.py      the runtime of parallel loops, and their number of threads
kernel.py      a compiled function as a Python callable
linked.py      `Linked`: a compiled program as data
programs.py    the kernel of such a program, its pickle and its library
binding.py     the arrays of a call to the arguments of native code
calls.py       the fast path of a call: a Python function generated for each kernel and each of kinds.py's array classes
library        libraries with C headers, for callers without Python
facts.py       `BuildFacts`: groups, memory, seconds
load.py        a low-level module to a kernel
tiles.py       permission to use the tile registers of AMX
single_lanes.py masked stores of one lane as scalar stores
presence.py    timing that detects preemption, and repeats disturbed samples
ceilings.py    probes of the machine's arithmetic and memory rates
assembly.py    assembly text to functions, basic blocks and innermost loops
instructions.py kinds and operands of instructions of x86; their counts
aarch64_instructions.py the same of AArch64
throughput.py  cycles of a loop iteration
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
