"""Targets: emission, loading, running.

arguments.py   what a kernel expects of its arrays, and the sentences for what does not fit
foreign.py     arrays of other packages as numpy's, and back
arena.py       memory for workspaces and arrays; address.py the address of an array
gpus.py        the GPU targets by name
launches.py    the kernels that a host function launches
cpu, cuda, simt   native code, CUDA C++, kernels run on numpy: none imports another
"""
