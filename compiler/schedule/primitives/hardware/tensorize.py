"""The primitive tensorize."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import StringAttr

from compiler.analysis.tensorized import loops_under, matched
from compiler.intrinsics import Misfit, find
from compiler.program.tree import INTRINSIC, Program, nested
from compiler.schedule.parameters import LOOP, TEXT
from compiler.schedule.plan import Plan, loop_place, refuse, require_serial
from compiler.schedule.primitive import primitive


@primitive(
    "$loop `with` $intrinsic",
    'sched.tensorize %l with "dot.i32.u8i8x4"',
    "tensorize{block=C loop=j intrinsic=dot.i32.u8i8x4}",
    loop=LOOP,
    intrinsic=TEXT,
)
def tensorize(program: Program, loop: int, intrinsic: str) -> Plan:
    """Mark the nest from a loop inward as one that a declared intrinsic replaces.

        loop.for "j" = 16 { loop.for "k" = 4 { C[j] += extend(A[k]) * extend(B[j, k]) } }     // u8, i8, i32
      ->
        loop.for "j" = 16 tensorized "dot.i32.u8i8x4" { loop.for "k" = 4 tensorized { ... } }

    The semantics of the loops stays the same. `compiler/intrinsics` lists the intrinsics, the nests that they replace
    and the processor features that they need. If a guard excludes a part of the nest, the intrinsic still runs whole.
    Dot products in i32 and interleaving are exact. Dot products of bf16 and `tile.f32.bf16` take denormals for zero and
    round differently from the loops, so the lowering refuses them under the policy strict. Those whose names begin with
    `mma` and `warp` are run by a GPU's warps, the 32 threads along x: no loop around the nest may be bound to x.
    `mma.f32.tf32` rounds operands to fewer digits, and requires the policy fast.

    Requires serial loops in a perfect nest around one block, with the extents of the intrinsic's, in any order; its
    dtypes, its product and its sum; operands that move by its steps, as packed ones do. Refused where it would read
    beyond a guard what is not known to be zero, of floats in both operands, unless the sum lands in a temporary where
    the program never writes. Elsewhere: TVM tensorize, Exo replace, MLIR vector.contract patterns.
    """
    place = loop_place(program, loop)
    declared = find(intrinsic)
    try:
        loops, block = loops_under(program, loop)
        require_serial(program, [n.number for n in loops])
        matched(program, loop, declared)
    except Misfit as misfit:
        refuse(place, misfit)
    attributes = tuple(sorted({**dict(loops[0].attributes), INTRINSIC: StringAttr(intrinsic)}.items()))
    outermost = replace(loops[0], attributes=attributes)
    nest = nested([replace(node, kind="tensorized") for node in (outermost, *loops[1:])], block)
    return Plan(program.replaced(loop, lambda _: [nest]), keeps_order=True)
