"""Upstream dialects, extended by ops of MLIR that xDSL lacks.

arith.py    comparisons and select on vectors; arith.remf
casts.py    conversions of vectors
math.py     math.erfc
affine.py   affine.max, the syntax of affine.if and affine.parallel
scf.py      the syntax of scf.parallel, scf.forall
vector.py   vector.gather, vector.scatter; other ops that are read and printed alone
formats.py  ops by a line of a table: fields and syntax
memref.py   memref.prefetch, the syntax of memref.global and memref.copy
gpu.py      gpu.shuffle
llvm.py     llvm.call_intrinsic, of which llvm.ldexp has no effect
linalg/     linalg.generic, and named ops by a table
tensor.py   padding and reshapes that xDSL refuses
stablehlo/  StableHLO and CHLO, which xDSL lacks, as JAX prints them
nvgpu.py    asynchronous copies, ldmatrix and mma.sync
walk.py     the ops inside an op
builders.py fast constructors of the most frequent ops of unrolled nests

The names and the syntax are MLIR's; a context loads these dialects instead of xDSL's.
"""
