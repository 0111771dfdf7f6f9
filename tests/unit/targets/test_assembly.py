"""Assembly: instruction classes, blocks, loops as comments tell them, and what is counted; on stored text only."""

from __future__ import annotations

import pytest

from compiler.targets.cpu.assembly import AssemblyFunction, parse_assembly
from compiler.targets.cpu.instructions import Instruction, on_stack, parse_instruction

# The register tile of a packed matmul, 2 by 32 instead of 8 by 32, with the locations of three nested loops.
GEBP = """
	.text
	.globl	matmul
	.type	matmul,@function
matmul:
	jmp	matmul.body
.Lfunc_end0:
	.size	matmul, .Lfunc_end0-matmul
	.section	.rodata,"a",@progbits
.LCPI1_0:
	.long	0
	.text
	.type	matmul.body,@function
matmul.body:
.Lfunc_begin0:
	.file	1 "." "loops"
	.loc	1 0 0
	.cfi_startproc
	pushq	%rbx
	xorl	%r8d, %r8d
.LBB1_1:                                # %outer
                                        # =>This Loop Header: Depth=1
                                        #     Child Loop BB1_2 Depth 2
.Ltmp0:
	.loc	1 2 0 prologue_end
	vmovups	(%r11,%rdi), %zmm7
	xorl	%ebp, %ebp
	.p2align	4
.LBB1_2:                                # %inner
                                        #   Parent Loop BB1_1 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
.Ltmp1:
	.loc	1 3 0 is_stmt 0
	vmovaps	(%r10,%rbp,4), %zmm16
	vmovaps	64(%r10,%rbp,4), %zmm17
	vbroadcastss	-28(%rax,%rbp), %zmm18
	vfmadd231ps	%zmm18, %zmm17, %zmm8
	vfmadd231ps	%zmm18, %zmm16, %zmm7
	vfmadd231ps	-24(%rax,%rbp){1to16}, %zmm17, %zmm6
	.loc	1 2 0
	vfmadd231ps	%zmm18, %zmm16, %zmm15
	.loc	1 3 0
	addq	$32, %rbp
	cmpq	$8192, %rbp
	jne	.LBB1_2
.Ltmp2:
# %bb.3:                                # %latch
                                        #   in Loop: Header=BB1_1 Depth=1
	.loc	1 2 0
	vmovups	%zmm7, (%r11,%rdi)
	incq	%r8
	cmpq	$8, %r8
	jne	.LBB1_1
# %bb.4:                                # %done
	popq	%rbx
	retq
.Lfunc_end1:
	.size	matmul.body, .Lfunc_end1-matmul.body
"""

# Calls of the C library by a register, spills around them, a branch inside, rbp as the frame.
CALLS = """
	.type	"exp of.body",@function
"exp of.body":
	pushq	%rbp
	movq	%rsp, %rbp
	movabsq	$expf, %rbx
.LBB0_1:                                # =>This Inner Loop Header: Depth=1
	vmovss	(%r14,%r13,4), %xmm0
	vmovaps	%xmm1, -32(%rbp)                # 16-byte Spill
	testb	%al, %al
	je	.LBB0_3
# %bb.2:                                #   in Loop: Header=BB0_1 Depth=1
	callq	*%rbx
	vdivss	%xmm1, %xmm0, %xmm0
	callq	logf@PLT
.LBB0_3:                                #   in Loop: Header=BB0_1 Depth=1
	addq	$1, 16(%rsp)
	vmovaps	-32(%rbp), %xmm1                # 16-byte Reload
	vmovss	%xmm0, (%r15,%r13,4)
	incq	%r13
	jmp	.LBB0_5
.LBB0_5:                                #   in Loop: Header=BB0_1 Depth=1
	cmpq	$64, %r13
	jb	.LBB0_1
	jmp	.LBB0_6
.LBB0_6:
	retq
.Lfunc_end0:
"""


def body(text: str) -> AssemblyFunction:
    return parse_assembly(text)[-1]


def test_functions_blocks_and_loops() -> None:
    entry, function = parse_assembly(GEBP)
    assert (entry.name, function.name) == ("matmul", "matmul.body")
    assert entry.innermost == ()
    assert [(block.name, block.header) for block in function.blocks] == [
        ("", ""),
        ("BB1_1", "BB1_1"),
        ("BB1_2", "BB1_2"),
        ("", "BB1_1"),
        ("", ""),
    ]
    (inner,) = function.innermost
    assert (inner.label, inner.depth, len(inner.blocks)) == (".LBB1_2", 2, 1)
    assert len(function.outside) + len(inner.instructions) == sum(len(block.instructions) for block in function.blocks)
    assert parse_assembly("") == []


def test_a_loop_is_what_its_jump_back_says() -> None:
    def owner(text: str) -> int:
        return body(text).innermost[0].owner

    assert owner(GEBP) == 3
    unrolled = GEBP.replace("1 3 0 is_stmt 0", "1 9 0")  # the body of a loop inside, but the jump is of this one
    assert owner(unrolled) == 3
    assert owner(GEBP.replace("\t.loc\t1 3 0\n\taddq", "\t.loc\t1 0 0\n\taddq")) == 3
    assert owner("\n".join(line for line in GEBP.splitlines() if ".loc" not in line)) == 0


def test_what_is_counted_in_a_register_tile() -> None:
    function = body(GEBP)
    actual = function.count_instructions(function.innermost[0])
    assert (actual.instructions, actual.fma, actual.flops, actual.width, actual.float_bits) == (10, 4, 128, "zmm", 32)
    assert (actual.loads, actual.stores, actual.broadcasts, actual.branches) == (4, 0, 2, 0)
    assert (actual.loads_per_fma, actual.stores_per_fma) == (1.0, 0.0)
    assert function.innermost[0].text.splitlines()[:2] == [".LBB1_2:", "    vmovaps (%r10,%rbp,4), %zmm16"]


def test_calls_spills_divisions_and_branches() -> None:
    function = body(CALLS)
    assert function.name == "exp of.body"
    (loop,) = function.innermost
    actual = function.count_instructions(loop)
    assert actual.calls == ("expf", "logf")
    assert (actual.stack_loads, actual.stack_stores) == (2, 2)
    assert (actual.loads, actual.stores, actual.divisions, actual.branches) == (3, 3, 1, 2)
    assert (actual.width, actual.flops) == ("scalar", 1)


def test_a_name_in_quotes() -> None:
    assert body(CALLS.replace("exp of.body", r"caf\\xe9 of.body")).name == r"caf\xe9 of.body"


def test_a_register_that_held_no_address_names_nobody() -> None:
    text = CALLS.replace("movabsq	$expf, %rbx", "movq	8(%rdi), %rbx")
    function = body(text)
    assert function.count_instructions(function.innermost[0]).calls[0] == "an address in a register"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("vfmadd213pd (%rax), %ymm1, %ymm2", {"fma", "load"}),
        ("vdpbf16ps %zmm1, %zmm2, %zmm3", {"fma"}),
        ("vmovups %zmm0, (%rax) {%k1}", {"store"}),
        ("vmovups (%rax), %zmm0 {%k1} {z}", {"load"}),
        ("vbroadcastss %xmm0, %zmm1", {"broadcast"}),
        ("vgatherqps (%rax,%zmm1,4), %ymm2 {%k1}", {"gather", "load"}),
        ("vpscatterdd %zmm1, (%rax,%zmm2,4) {%k1}", {"scatter", "store"}),
        ("vpermt2ps %zmm7, %zmm1, %zmm14", {"shuffle"}),
        ("vextractf32x4 $1, %zmm0, (%rax)", {"shuffle", "store"}),
        ("leaq 8(%rax,%rcx), %rdx", set()),
        ("nopw 0(%rax,%rax)", set()),
        ("prefetcht0 64(%rax)", {"prefetch"}),
        ("cmpq $8, (%rax)", {"load"}),
        ("addq $1, (%rax)", {"load", "store"}),
        ("lock incl (%rax)", {"load", "store"}),
        ("movq $0, (%rax)", {"store"}),
        ("idivq %rcx", {"division"}),
        ("vsqrtps %zmm0, %zmm1", {"division"}),
        ("callq *8(%rax)", {"call", "load"}),
        ("jmpq *(%rax,%rcx,8)", {"branch"}),
    ],
)
def test_classes(text: str, kinds: set[str]) -> None:
    assert parse_instruction(text).kinds == kinds


@pytest.mark.parametrize(
    ("text", "flops"),
    [
        ("vaddps %zmm0, %zmm1, %zmm2", 16),
        ("vfnmadd231pd %ymm0, %ymm1, %ymm2", 8),
        ("vmulss %xmm0, %xmm1, %xmm2", 1),
        ("mulsd %xmm0, %xmm1", 1),
        ("vmaxps (%rax), %ymm1, %ymm2", 8),
        ("vfmadd231sh %xmm0, %xmm1, %xmm2", 2),
        ("vcvtps2pd %ymm0, %zmm1", 0),
        ("vpaddd %zmm0, %zmm1, %zmm2", 0),
        ("vcmpltps %zmm0, %zmm1, %k1", 0),
    ],
)
def test_operations(text: str, flops: int) -> None:
    assert parse_instruction(text).flops == flops


@pytest.mark.parametrize(
    ("text", "read", "written"),
    [
        ("vfmadd231ps %zmm18, %zmm17, %zmm8", {"v18", "v17", "v8"}, {"v8"}),
        ("vaddps %ymm1, %ymm2, %ymm3", {"v1", "v2"}, {"v3"}),
        ("vxorps %xmm1, %xmm1, %xmm1", set(), {"v1"}),
        ("movl %ecx, %r9d", {"cx"}, {"r9"}),
        ("addb %cl, %dil", {"cx", "di"}, {"di"}),
        ("cmpq %rax, %rbx", {"ax", "bx"}, set()),
        ("vmovups %zmm0, (%rax)", {"v0"}, set()),
        ("vblendmps %zmm0, %zmm1, %zmm2 {%k1}", {"v0", "v1", "v2", "k1"}, {"v2"}),
    ],
)
def test_registers(text: str, read: set[str], written: set[str]) -> None:
    instruction = parse_instruction(text)
    assert (set(instruction.read), set(instruction.written)) == (read, written)


def test_operands_and_the_stack() -> None:
    actual = parse_instruction("vmovaps 64(%r10,%rbp,4), %zmm17")
    assert actual == Instruction("vmovaps", ("64(%r10,%rbp,4)", "%zmm17"))
    assert not on_stack(actual, ("%rsp", "%rbp"))
    assert on_stack(parse_instruction("vmovaps %zmm1, 64(%rsp,%rax)"), ("%rsp",))
