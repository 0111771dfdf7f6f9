"""The CPU through llvmlite: compile.py (text to machine code), kernel.py (machine code to a callable)."""

from compiler.targets.cpu.compile import Library, compile_llvm
from compiler.targets.cpu.kernel import Kernel, Timing, load

__all__ = ["Kernel", "Library", "Timing", "compile_llvm", "load"]
