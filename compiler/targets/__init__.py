"""Targets: emission, loading, running.

arguments.py   the arguments of a kernel, and the checks of arrays against them
foreign.py     arrays of other packages as numpy's, and back
torch_gpus.py  devices of torch: the target of each, its streams and memory
arena.py       memory for workspaces and arrays; address.py the address of an array
target.py      `Target`: the interface of all targets
registry.py    the targets by name, and those of plugins
groups.py      `GroupFacts`: a group of a kernel, and the origin of its schedule
gpus.py        `GpuTarget`: the base class of targets for GPUs
compilers.py   C compilers of the PATH, or of ziglang
launches.py    the kernels that a host function launches
clike          the writer of C and of CUDA C++
timing         the estimated time of kernels
cpu, cuda, c, simt   native code, CUDA C++, C, kernels run on numpy: none imports another
"""
