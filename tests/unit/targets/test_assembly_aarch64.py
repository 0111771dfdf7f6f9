"""Assembly of AArch64: instruction classes, loops as comments tell them, and what is counted; on stored text only."""

from __future__ import annotations

import pytest

from compiler.targets.cpu.aarch64_instructions import parse_aarch64
from compiler.targets.cpu.assembly import parse_assembly
from compiler.targets.cpu.throughput import estimate

# Four fmla of a register tile with a spilled accumulator, in a loop in a loop.
TILE = """
	.type	f.body,@function
f.body:                                 // @f.body
.Lfunc_begin1:
	.cfi_startproc
	sub	sp, sp, #144
	movi	v0.2d, #0000000000000000
.LBB1_1:                                // %outer
                                        // =>This Loop Header: Depth=1
                                        //     Child Loop BB1_2 Depth 2
	.loc	1 2 0 prologue_end              // loops:2
	mov	x12, x25                        // =0x10
.LBB1_2:                                // %inner
                                        //   Parent Loop BB1_1 Depth=1
                                        // =>  This Inner Loop Header: Depth=2
	.loc	1 3 0 is_stmt 0                 // loops:3
	ldp	q16, q17, [x12]
	ldr	s4, [x11], #4
	str	q20, [sp, #112]
	fmla	v18.4s, v16.4s, v4.s[0]
	fmla	v19.4s, v17.4s, v4.s[0]
	ldr	q20, [sp, #112]
	subs	x13, x13, #1
	add	x12, x12, #32
	fmla	v20.4s, v16.4s, v4.4s
	bl	expf
	b.ne	.LBB1_2
// %bb.3:                               // %latch
                                        //   in Loop: Header=BB1_1 Depth=1
	cbnz	x9, .LBB1_1
	ret
.Lfunc_end1:
	.size	f.body, .Lfunc_end1-f.body
"""


def test_an_innermost_loop_and_its_counts() -> None:
    (function,) = parse_assembly(TILE, "aarch64")
    (loop,) = function.innermost
    counts = function.count_instructions(loop)
    assert (loop.label, loop.depth, loop.owner, function.name) == (".LBB1_2", 2, 3, "f.body")
    assert (counts.instructions, counts.fma, counts.flops, counts.width) == (11, 3, 24, "q")
    assert (counts.loads, counts.stores, counts.stack_loads, counts.stack_stores) == (3, 1, 1, 1)
    assert (counts.branches, counts.calls) == (0, ("expf",))
    assert [i.mnemonic for i in function.outside] == ["sub", "movi", "mov", "cbnz", "ret"]


KINDS = {
    "fmla v0.4s, v1.4s, v2.s[1]": ({"fma"}, 8, 128),
    "fmla v0.2d, v1.2d, v2.2d": ({"fma"}, 4, 128),
    "fmadd s0, s1, s2, s3": ({"fma"}, 2, 64),
    "fmla v0.2s, v1.2s, v2.2s": ({"fma"}, 4, 64),
    "fadd v0.4s, v1.4s, v2.4s": (set(), 4, 128),
    "fdiv v0.4s, v1.4s, v2.4s": ({"division"}, 4, 128),
    "sdot v0.4s, v1.16b, v2.4b[1]": ({"fma"}, 0, 128),
    "bfdot v0.4s, v1.8h, v2.2h[1]": ({"fma"}, 16, 128),
    "bfmmla v0.4s, v1.8h, v2.8h": ({"fma"}, 32, 128),
    "mla v0.4s, v1.4s, v2.s[0]": ({"fma"}, 0, 128),
    "ld1r { v0.4s }, [x1], #4": ({"load", "broadcast"}, 0, 128),
    "ld1 { v0.s }[1], [x1]": ({"load", "shuffle"}, 0, 64),
    "st1 { v0.s }[1], [x1]": ({"store", "shuffle"}, 0, 64),
    "mov v0.s[1], v1.s[0]": ({"shuffle"}, 0, 64),
    "zip1 v0.4s, v1.4s, v2.4s": ({"shuffle"}, 0, 128),
    "stp q0, q1, [x0, #32]": ({"store"}, 0, 128),
    "prfm pldl1keep, [x0]": ({"prefetch"}, 0, 0),
    "tbz w0, #3, .LBB0_1": ({"branch"}, 0, 0),
    "blr x8": ({"call"}, 0, 0),
    "fcvtl v0.4s, v1.4h": (set(), 0, 128),
}


@pytest.mark.parametrize("text", KINDS)
def test_kinds_and_operations(text: str) -> None:
    kinds, flops, bits = KINDS[text]
    instruction = parse_aarch64(text)
    assert (instruction.kinds, instruction.flops, instruction.bits) == (frozenset(kinds), flops, bits)


ACCESSES = {
    "fmla v0.4s, v1.4s, v2.s[1]": (("v0", "v1", "v2"), ("v0",), ()),
    "fadd v0.4s, v1.4s, v2.4s": (("v1", "v2"), ("v0",), ()),
    "ldp q0, q1, [x2], #32": ((), ("v0", "v1", "x2"), ("x2",)),
    "ldr s4, [x11, x12, lsl #2]": ((), ("v4",), ("x11", "x12")),
    "ldr q4, [x11, #16]!": ((), ("v4", "x11"), ("x11",)),
    "stp q0, q1, [sp, #32]": (("v0", "v1"), (), ("sp",)),
    "ld1 { v0.s }[1], [x1]": (("v0",), ("v0",), ("x1",)),
    "ins v0.s[1], v1.s[0]": (("v0", "v1"), ("v0",), ()),
    "cmp w1, w2": (("x1", "x2"), (), ()),
    "bsl v0.16b, v1.16b, v2.16b": (("v0", "v1", "v2"), ("v0",), ()),
}


@pytest.mark.parametrize("text", ACCESSES)
def test_registers(text: str) -> None:
    instruction = parse_aarch64(text)
    assert (instruction.read, instruction.written, instruction.addressed) == ACCESSES[text]


def test_cycles_of_a_chain_and_of_a_full_tile() -> None:
    chain = [parse_aarch64("fmla v0.4s, v1.4s, v2.4s")]
    assert (estimate(chain, "aarch64").limit, estimate(chain, "aarch64").cycles) == ("latency", 4.0)
    tile = [parse_aarch64(f"fmla v{n}.4s, v30.4s, v31.4s") for n in range(24)]
    assert (estimate(tile, "aarch64").limit, estimate(tile, "aarch64").cycles) == ("fma", 12.0)
