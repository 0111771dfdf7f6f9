"""Targets: emission, loading, running.

arguments.py   what a kernel expects of its arrays, and the sentences for what does not fit
foreign.py     arrays of other packages as numpy's, and back
arena.py       memory for workspaces and arrays; address.py the address of an array
target.py      `Target`: what programs are compiled for, and the facts that other rooms read of it
registry.py    the targets by name, and those of plugins
gpus.py        what the targets of GPUs have in common
launches.py    the kernels that a host function launches
clike          what the texts of C and of CUDA C++ have in common
cpu, cuda, c, simt   native code, CUDA C++, C, kernels run on numpy: none imports another
"""
