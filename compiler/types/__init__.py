"""Facts as data that several rooms read: element types, policies, memory scopes, machines.

elements.py    the dtypes, a row each: bits, numpy, LLVM and C
rounding.py    numbers as a float dtype holds them, rounded once
policies.py    the floating-point policies and their flags
scopes.py      the scopes of buffers and their memory spaces
machines.py    the facts of CPUs and GPUs, and those of the machine at hand
processors.py  the processors that this process may use
"""
