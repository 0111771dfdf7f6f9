"""The CPU through llvmlite.

compile.py     LLVM IR text to machine code in this process
arguments.py   what a kernel expects of its arrays, and the sentences for what does not fit
kernel.py      a compiled function as a Python callable
load.py        a low-level module to a kernel
"""

from compiler.targets.cpu.arguments import Argument
from compiler.targets.cpu.compile import Library, compile_llvm
from compiler.targets.cpu.kernel import Kernel, Timing
from compiler.targets.cpu.load import load

__all__ = ["Argument", "Kernel", "Library", "Timing", "compile_llvm", "load"]
