"""ptx: run the PTX of kernels on numpy and check their memory accesses, without a GPU.

syntax.py        instructions, operands, variables, functions
parse.py         the text that NVRTC writes
link.py          `LinkedKernel`: jumps resolved, variables laid out
values.py        types as dtypes, the bits of registers
table.py         the table of opcodes
arithmetic.py    add, mul, mad, fma, div, min, max and their like
rounding.py      sums and products rounded once, in each direction
carries.py       sums of several words
bits.py          logic, shifts, fields, permutations of bytes
comparison.py    setp, selp
conversion.py    cvt, cvta
functions.py     rcp, sqrt, ex2, lg2 and their like
moves.py         mov
loads.py         ld, st
atomics.py       atom, red
fences.py        membar, fence
block_order.py   `BlockOrder`: accesses of different blocks that fences order
async_copies.py  cp.async and its groups
async_groups.py  `AsyncGroups`: copies that nobody has waited for
warps.py         shfl, vote, activemask
matrices.py      mma, ldmatrix, movmatrix
fragments.py     which thread holds which element of a tile
addresses.py     the ranges of addresses
memory.py        `PtxMemory`: bounds, alignment
shadow.py        `Shadow`: what is set, races
lanes.py         `PtxLanes`: the state of the threads of some blocks
prepare.py       instructions as functions of that state
scheduler.py     program counters, barriers, divergence
faults.py        `PtxFault`, and the log of them
run.py           launches on arrays
"""

from compiler.targets.ptx.faults import PtxFault
from compiler.targets.ptx.parse import parse_ptx
from compiler.targets.ptx.run import PtxBuffer, PtxLaunch, PtxResult, run_ptx
from compiler.targets.ptx.syntax import PtxError

__all__ = ["PtxBuffer", "PtxError", "PtxFault", "PtxLaunch", "PtxResult", "parse_ptx", "run_ptx"]
