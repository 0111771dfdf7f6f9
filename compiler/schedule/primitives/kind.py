"""The kinds of loops, and annotations."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute

from compiler.analysis.legal import Step
from compiler.analysis.tensorized import ATTRIBUTE, loops_under, matched
from compiler.intrinsics import Misfit, find
from compiler.program.tree import Loop, Node, Program, walk
from compiler.schedule.plan import Plan, loop_place, refuse, require_serial


def unroll(program: Program, loop: int) -> Plan:
    """Mark a loop to be unrolled by the lowering.

        loop.for "i" = 4 { S(i) }
      ->
        loop.for "i" = 4 unrolled { S(i) }

    Requires a serial loop. Elsewhere: TVM unroll, Halide unroll, Exo unroll_loop, MLIR loop.unroll.
    """
    return _with_kind("unroll", program, loop, "unrolled")


def vectorize(program: Program, loop: int) -> Plan:
    """Mark a loop whose iterations become the lanes of vectors.

        loop.for "i" = 16 { S(i) }
      ->
        loop.for "i" = 16 vectorized { S(i) }

    A buffer that lives inside the loop is another one in each lane.

    Requires a serial loop with no vectorized loop around or inside it. Refused where its iterations depend on each
    other, reductions included: rfactor first. Elsewhere: TVM vectorize, Halide vectorize, MLIR vectorize.
    """
    nested = [*program.enclosing(loop), *(n for n in walk(program.loops[loop].body) if isinstance(n, Loop))]
    for other in nested:
        if other.kind == "vectorized":
            refuse(
                "vectorize", loop_place(program, loop), f"loop '{other.label}' in the same nest is vectorized already"
            )
    return _with_kind("vectorize", program, loop, "vectorized")


def parallel(program: Program, loop: int) -> Plan:
    """Mark a loop whose iterations run on several threads.

        loop.for "i" = 16 { S(i) }
      ->
        loop.for "i" = 16 parallel { S(i) }

    What is allocated in it each thread has for itself. On the CPU the iterations are cut into contiguous shares, one a
    thread; a parallel loop inside another one is lowered where they are perfectly nested, as one. Requires a serial
    loop. Refused where its iterations depend on each other. Elsewhere: TVM parallel, Halide parallel, Exo
    parallelize_loop, MLIR scf.forall.
    """
    return _with_kind("parallel", program, loop, "parallel")


def bind(program: Program, loop: int, thread: str) -> Plan:
    """Bind a loop to a hardware index: block_x to block_z, thread_x to thread_z, or vthread.

        loop.for "i" = 16 { S(i) }               // bind to thread_x
      ->
        loop.for "i" = 16 thread_x { S(i) }

    Requires a serial loop with no loop of the same binding around or inside it. Refused where its iterations depend
    on each other. Elsewhere: TVM bind, Halide gpu_blocks and gpu_threads, MLIR map_forall_to_blocks.
    """
    nested = [*program.enclosing(loop), *(n for n in walk(program.loops[loop].body) if isinstance(n, Loop))]
    for other in nested:
        if other.kind == thread and thread != "vthread":
            refuse(
                "bind", loop_place(program, loop), f"loop '{other.label}' in the same nest is bound to {thread} already"
            )
    return _with_kind("bind", program, loop, thread)


def tensorize(program: Program, loop: int, intrinsic: str) -> Plan:
    """Mark the nest from a loop inward as one that a declared intrinsic replaces.

        loop.for "j" = 16 { loop.for "k" = 4 { C[j] += extend(A[k]) * extend(B[j, k]) } }     // u8, i8, i32
      ->
        loop.for "j" = 16 tensorized "dot.i32.u8i8x4" { loop.for "k" = 4 tensorized { ... } }

    The loops mean what they meant. `compiler/intrinsics` lists the intrinsics: which nests they replace,
    and which feature of the processor they need. Where guards cut the nest off, the intrinsic runs whole all the same.
    `dot.i32.u8i8x4` and the interleaving ones are exact. `dot.f32.bf16x2` and `tile.f32.bf16` take denormals for zero
    and round at other places than the loops, so the lowering refuses them where floating point is strict. Those whose
    names begin with `mma` and `warp` are run by a GPU's warps: the 32 threads along x, of which no loop around the nest
    may be one. `mma.f32.tf32` drops digits, and wants floating point that is fast.

    Requires serial loops in a perfect nest around one block, with the extents of the intrinsic's, in any order; its
    dtypes, its product and its sum; operands that move by its steps, as packed ones do. Refused where it would read
    beyond a guard what is not known to be zero, of floats in both operands, unless the sum lands in a temporary where
    the program never writes. Elsewhere: TVM tensorize, Exo replace, MLIR vector.contract patterns.
    """
    place = loop_place(program, loop)
    declared = find(intrinsic)
    try:
        loops, block = loops_under(program, loop)
        require_serial("tensorize", program, [n.number for n in loops])
        matched(program, loop, declared)
    except Misfit as misfit:
        refuse("tensorize", place, misfit)
    named = tuple(sorted({**dict(loops[0].attributes), ATTRIBUTE: StringAttr(intrinsic)}.items()))
    nest: Node = block
    for node in reversed([replace(loops[0], attributes=named), *loops[1:]]):
        nest = replace(node, kind="tensorized", body=(nest,))
    return Plan(Step(program.replaced(loop, lambda _: [nest]), keeps_order=True))


def _with_kind(primitive: str, program: Program, loop: int, kind: str) -> Plan:
    node = program.loops[loop]
    if node.kind != "serial":
        refuse(primitive, loop_place(program, loop), f"it is {node.kind} already")
    after = program.replaced(loop, lambda _: [replace(node, kind=kind)])
    return Plan(Step(after, keeps_order=True))


def annotate(program: Program, loop: int, key: str, value: Attribute) -> Plan:
    """Attach a named attribute to a loop, for a lowering or rule that knows it.

        loop.for "i" = 16 { S(i) }               // annotate "hint" = 4
      ->
        loop.for "i" = 16 { S(i) } attributes {hint = 4}

    The lowering for CPUs knows `nontemporal`, the name of a buffer whose whole vectors are stored past the caches where
    their address allows it, and refuses one that the loop does not write. That for GPUs knows `async`: copies of whole
    elements to shared memory go on until the next barrier. Elsewhere: TVM annotate, MLIR transform.annotate.
    """
    node = program.loops[loop]
    attributes = tuple(sorted({**dict(node.attributes), key: value}.items()))
    after = program.replaced(loop, lambda _: [replace(node, attributes=attributes)])
    return Plan(Step(after, keeps_order=True))
