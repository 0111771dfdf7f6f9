"""Facts as data that several rooms read: element types, policies, memory scopes, machines.

dtypes.py      the dtypes, a row each: bits, numpy, LLVM and C
elements.py    element types of tensors and buffers: their scalars and sizes
rounding.py    correct rounding of numbers to a float dtype
policies.py    the floating-point policies and their flags
scopes.py      the scopes of buffers and their memory spaces
machines.py    the facts of CPUs and GPUs, and of this machine
selection.py   a machine by the name of its processor
processors.py  the processors that this process may use
records.py     dataclasses as bytes, and back
"""
