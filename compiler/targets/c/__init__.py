"""Readable C11: the loops, buffers and vectors of the low level, to be compiled by gcc or clang.

target.py      the facts of the target, for `compiler.targets.registry`
emit.py        a low-level function as a file of C
writer.py      statements
vectors.py     operations on vectors: an operator of the vector extension, or a loop over lanes
helpers.py     functions and types that a text defines if it uses them
language.py    types, literals and conversions
constants.py   constants as arrays of the text
names.py       reserved names
kernel.py      `CKernel`: the text, its arguments, calls
library.py     a text as a shared library, loaded
"""
