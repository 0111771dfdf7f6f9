"""C11 that a person reads: the loops, buffers and vectors of the low level as they are, compiled by whoever wants it.

target.py      the facts of the target, for `compiler.targets.registry`
emit.py        a low-level function as a file of C
writer.py      statements
vectors.py     operations on vectors: of whole ones where C has them, else lane by lane
helpers.py     functions and types that a text defines where it uses them
language.py    types, literals and conversions
constants.py   constants as arrays of the text
names.py       names that no variable may have
kernel.py      `CKernel`: the text, its arguments, calls
compilers.py   gcc or clang, where there is one
"""
