"""Upstream MLIR dialects, with what xDSL's definitions leave out: each file names what that is.

arith.py    comparisons, select and conversions on vectors
vector.py   vector.gather, vector.scatter
memref.py   memref.prefetch
gpu.py      gpu.shuffle
nvgpu.py    asynchronous copies, and products of MMA tiles by warps

The names and the syntax are upstream's; a context loads these dialects in the place of xDSL's.
"""
