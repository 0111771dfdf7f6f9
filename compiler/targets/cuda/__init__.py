"""GPUs through CUDA C++: text that a person reads, machine code by NVRTC, calls by CuPy.

target.py      the facts of GPUs of NVIDIA, for `compiler.targets.registry`
emit.py        a host function's kernels as text, and their launches
writer.py      one kernel
language.py    how CUDA C++ spells what it has in common with C
indices.py     which indices are int, and which long long
types.py       types and literals
constants.py   constants that kernels read, as arrays of the text
helpers.py     functions that the text defines where it uses them
names.py       names that no buffer may have
nvrtc.py       text to machine code, without a GPU
kernel.py      CudaKernel: text, launches, machine code, calls
runtime.py     arrays, launches and times on a GPU
machines.py    the GPUs that kernels are made for
"""

from compiler.targets.cuda.emit import CudaSource, Launch
from compiler.targets.cuda.kernel import CudaKernel, made
from compiler.targets.cuda.machines import machine
from compiler.targets.cuda.nvrtc import ARCHITECTURES, Cubin, Resources
from compiler.targets.cuda.runtime import at_hand

__all__ = ["ARCHITECTURES", "Cubin", "CudaKernel", "CudaSource", "Launch", "Resources", "at_hand", "machine", "made"]
