"""Intrinsics of a GPU's warp: MMA on tensor cores, reductions by shuffles.

    mma.f32.f16           c[16, 8] += a[16, 16] * b[16, 8], operands in f16; the same of bf16, and of tf32 with k of 8
    mma.zero.f32          c[16, 8] = 0
    mma.load.a.f16        a[16, 16] = rows in shared memory
    mma.load.b.f16        b[16, 8] = rows along k in shared memory; .t: rows along n, as where B is transposed
    mma.load.b2.f16       two neighbouring tiles b at once, the same
    mma.store.f32         rows in memory = c[16, 8]
    warp.add.f32          s[] += p[32], also max and min
    quad.add.f32          s[8, 4] += p[8, 4] along the last dimension, for each of 4 threads; also max and min
    half.add.f32          s[16] += p[16], for each of 16 threads; also max and min

tf32 is f32 without the last 13 bits.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute

from compiler.intrinsics.model import BF16, F16, F32, Intrinsic, NestAxis, NestOperand

ROWS, COLUMNS, LANES = 16, 8, 32
"""The rows and columns of an MMA accumulator, and the threads of a warp."""
QUAD = 4
"""The threads that share a row of an accumulator, or a column of operand b; each has pairs of neighbours."""

_SUMS = NestOperand(F32, (("i", COLUMNS), ("j", 1)), fragment="c")
_I, _J = NestAxis("i", ROWS), NestAxis("j", COLUMNS)
TILES = "t"
"""The axis of an intrinsic over MMA tiles."""
_TWO = NestAxis(TILES, 2)


def _mma_family(kind: str, element: Attribute, depth: int, arch: str) -> Iterator[Intrinsic]:
    """Yield the MMA of an operand kind such as f16, with `depth` iterations of k, and the loads of its fragments.

    element: the dtype of a and b in memory. arch: the oldest GPU architecture with this MMA, such as sm_80.
    """
    needed, k = ((arch,),), NestAxis("k", depth)
    widened = "" if element == F32 else "arith.extf"
    a = NestOperand(element, (("i", depth), ("k", 1)), widened, "a")
    b = NestOperand(element, (("k", COLUMNS), ("j", 1)), widened, "b")
    yield Intrinsic(
        f"mma.f32.{kind}",
        (_I, _J, k),
        (a, b),
        _SUMS,
        needed,
        "mma.sync",
        product="arith.mulf",
        combiner="add",
        form="matrix",
        exact=False,
        narrow=kind == "tf32",
    )
    rows = NestOperand(element, (("i", None), ("k", 1)))
    yield _tile_transfer(f"mma.load.a.{kind}", (_I, k), rows, NestOperand(element, a.steps, fragment="a"), "ldmatrix")
    fragment_b = NestOperand(element, b.steps, fragment="b")
    yield _tile_transfer(
        f"mma.load.b.{kind}.t", (_J, k), NestOperand(element, (("j", None), ("k", 1))), fragment_b, "ldmatrix"
    )
    if element != F32:  # the hardware transposes 16 bits at a time
        yield _tile_transfer(
            f"mma.load.b.{kind}", (k, _J), NestOperand(element, (("k", None), ("j", 1))), fragment_b, "ldmatrix.trans"
        )
        two = NestOperand(element, ((TILES, depth * COLUMNS), *b.steps), fragment="b")
        along_n = NestOperand(element, ((TILES, None), ("j", None), ("k", 1)))
        along_k = NestOperand(element, ((TILES, COLUMNS), ("k", None), ("j", 1)))
        yield _tile_transfer(f"mma.load.b2.{kind}.t", (_TWO, _J, k), along_n, two, "ldmatrix")
        yield _tile_transfer(f"mma.load.b2.{kind}", (_TWO, k, _J), along_k, two, "ldmatrix.trans")


def _tile_transfer(
    name: str, axes: tuple[NestAxis, ...], read: NestOperand, target: NestOperand, mnemonic: str
) -> Intrinsic:
    """Declare a move of an MMA tile from `read` to `target`, one of them in memory, one in the registers of a warp."""
    return Intrinsic(name, axes, (read,), target, (("sm_75",),), mnemonic, form="matrix")


def _sum(combiner: str) -> Intrinsic:
    """Declare the reduction by `combiner` of 32 f32 numbers, one of each thread of a warp, by butterfly shuffles."""
    parts, total = NestOperand(F32, (("t", 1),)), NestOperand(F32, ())
    return Intrinsic(
        f"warp.{combiner}.f32",
        (NestAxis("t", LANES),),
        (parts,),
        total,
        (("sm_75",),),
        "shfl.sync.bfly",
        combiner=combiner,
        form="sum",
        exact=combiner != "add",
    )


def _sums_for_each(name: str, threads: int, combiner: str) -> Intrinsic:
    """Declare the reduction by `combiner` of the f32 numbers, one of each thread, of `threads` neighbours, each of
    which gets the result. Of QUAD threads, those that share a row of an accumulator, all rows at once: thread 4 i + j
    has the number [i, j]."""
    parts, sums = (NestOperand(F32, (*((("i", None),) if threads == QUAD else ()), (axis, 1))) for axis in "tj")
    rows = (NestAxis("i", LANES // QUAD),) if threads == QUAD else ()
    return Intrinsic(
        f"{name}.{combiner}.f32",
        (*rows, NestAxis("j", threads), NestAxis("t", threads)),
        (parts,),
        sums,
        (("sm_70",),),
        "shfl.sync.bfly",
        combiner=combiner,
        form="sum",
        exact=combiner != "add",
    )


def threads_along_x(intrinsic: Intrinsic) -> int:
    """Return the threads along x of a block that runs an intrinsic of a warp: half of a warp for sums of a half."""
    is_of_half = intrinsic.form == "sum" and all(axis.extent == LANES // 2 for axis in intrinsic.axes)
    return LANES // 2 if is_of_half else LANES


def matrix_shape(intrinsic: Intrinsic, operand: NestOperand) -> tuple[int, int]:
    """Return the rows and columns of an operand's MMA tile; the largest step in it is the number of columns."""
    columns = max(step or 1 for axis, step in operand.steps if axis != TILES)
    return intrinsic.length(operand) // tile_count(intrinsic) // columns, columns


def tile_count(intrinsic: Intrinsic) -> int:
    """Return the number of MMA tiles that an intrinsic loads: the extent of its axis TILES, 1 without one."""
    return next((axis.extent for axis in intrinsic.axes if axis.label == TILES), 1)


def fragment_vector(intrinsic: Intrinsic, operand: NestOperand) -> VectorType:
    """Return the type of one thread's fragment of a tile: [32-bit registers, elements of each]; for an accumulator of
    f32 [pairs of registers, 2]."""
    register_elements = 1 if operand.fragment != "c" and operand.element == F32 else 2
    elements = intrinsic.length(operand) // tile_count(intrinsic) // LANES
    return VectorType(operand.element, [elements // register_elements, register_elements])


WARP: tuple[Intrinsic, ...] = (
    *_mma_family("f16", F16, 16, "sm_75"),
    *_mma_family("bf16", BF16, 16, "sm_80"),
    *_mma_family("tf32", F32, 8, "sm_80"),
    Intrinsic("mma.zero.f32", (_I, _J), (), _SUMS, (("sm_75",),), "mov", form="matrix"),
    _tile_transfer("mma.store.f32", (_I, _J), _SUMS, NestOperand(F32, (("i", None), ("j", 1))), "st"),
    *map(_sum, ("add", "max", "min")),
    *(_sums_for_each("quad", QUAD, combiner) for combiner in ("add", "max", "min")),
    *(_sums_for_each("half", LANES // 2, combiner) for combiner in ("add", "max", "min")),
)
