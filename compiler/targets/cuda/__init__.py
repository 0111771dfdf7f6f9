"""GPUs through CUDA C++: readable text, machine code by NVRTC, calls by CuPy.

target.py      the facts of GPUs of NVIDIA, for `compiler.targets.registry`
emit.py        a host function's kernels as text, and their launches
writer.py      one kernel
unrolling.py   the loops that are unrolled
language.py    `Cuda`: CUDA C++ as a language of the C family
indices.py     the indices that need 64 bits
types.py       types and literals
constants.py   constants that kernels read, as arrays of the text
helpers.py     functions that the text defines if it uses them
names.py       reserved names
interface.py   arguments, temporaries and launches, for hosts in other languages
launcher.py    a function in C that launches the kernels
nvrtc.py       text to machine code, without a GPU
checked.py     the text run as PTX on numpy, without a GPU
kernel.py      CudaKernel: text, launches, machine code, calls
graphs.py      a call captured in a CUDA graph
callers.py     arrays of callers, and results for them
runtime.py     arrays, launches and times on a GPU
programs.py    a program as data; programs of several functions, joined
machines.py    the representative GPU of each architecture
"""

from compiler.targets.cuda.emit import CudaSource, Launch
from compiler.targets.cuda.kernel import CudaKernel, make_kernel
from compiler.targets.cuda.machines import ARCHITECTURES, representative_gpu
from compiler.targets.cuda.nvrtc import Cubin, Resources
from compiler.targets.cuda.programs import CudaProgram
from compiler.targets.cuda.runtime import local_gpu

__all__ = [
    "ARCHITECTURES",
    "Cubin",
    "CudaKernel",
    "CudaProgram",
    "CudaSource",
    "Launch",
    "Resources",
    "local_gpu",
    "make_kernel",
    "representative_gpu",
]
