"""The declared intrinsics. A new one is an entry of the table, if the lowering emits its `form`."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from compiler.intrinsics.model import BF16, F32, I8, I32, U8, Intrinsic, NestAxis, NestOperand
from compiler.intrinsics.warp import WARP
from compiler.support.errors import ScheduleError


def _dot_u8i8(bits: int, name: str, features: tuple[tuple[str, ...], ...]) -> Intrinsic:
    """Declare vpdpbusd: each i32 accumulator of a vector of `bits` adds four products, u8 by i8, without saturation."""
    return Intrinsic(
        name=name,
        axes=(NestAxis("j", bits // 32), NestAxis("k", 4)),
        reads=(NestOperand(U8, (("k", 1),), "arith.extui"), NestOperand(I8, (("j", 4), ("k", 1)), "arith.extsi")),
        target=NestOperand(I32, (("j", 1),)),
        features=features,
        mnemonic="vpdpbusd",
        llvm=f"llvm.x86.avx512.vpdpbusd.{bits}",
        product="arith.muli",
        combiner="add",
    )


def _dot_bf16(bits: int, name: str, features: tuple[tuple[str, ...], ...]) -> Intrinsic:
    """Declare vdpbf16ps: each f32 accumulator of a vector of `bits` adds two products of bf16; denormals are zero."""
    return Intrinsic(
        name=name,
        axes=(NestAxis("j", bits // 32), NestAxis("k", 2)),
        reads=(NestOperand(BF16, (("k", 1),), "arith.extf"), NestOperand(BF16, (("j", 2), ("k", 1)), "arith.extf")),
        target=NestOperand(F32, (("j", 1),)),
        features=features,
        mnemonic="vdpbf16ps",
        llvm=f"llvm.x86.avx512bf16.dpbf16ps.{bits}",
        product="arith.mulf",
        combiner="add",
        exact=False,
    )


_SIGNS = {U8: ("u", "arith.extui"), I8: ("s", "arith.extsi")}


def _dot_neon(shared: IntegerType, own: IntegerType, feature: str) -> Intrinsic:
    """Declare sdot, udot or usdot: each of 4 i32 accumulators adds four products of bytes, without saturation.
    `shared`: the dtype of the bytes that all accumulators read; `own`: that of the bytes of one. feature: LLVM's, which
    it needs."""
    (first, widened), (second, own_widened) = _SIGNS[shared], _SIGNS[own]
    mnemonic = f"{first if shared == own else first + second}dot"
    return Intrinsic(
        name=f"dot.i32.{'iu'[shared == U8]}8{'iu'[own == U8]}8x4.neon",
        axes=(NestAxis("j", 4), NestAxis("k", 4)),
        reads=(NestOperand(shared, (("k", 1),), widened), NestOperand(own, (("j", 4), ("k", 1)), own_widened)),
        target=NestOperand(I32, (("j", 1),)),
        features=((feature,),),
        mnemonic=mnemonic,
        llvm=f"llvm.aarch64.neon.{mnemonic}.v4i32.v16i8",
        product="arith.muli",
        combiner="add",
    )


_BFDOT = replace(
    _dot_bf16(128, "dot.f32.bf16x2.neon", (("bf16",),)),
    mnemonic="bfdot",
    llvm="llvm.aarch64.neon.bfdot.v4f32.v8bf16",
)
"""Each of 4 f32 accumulators adds two products of bf16, rounded to odd; denormals are zero."""

_ROWS, _COLUMNS = NestAxis("i", 16), NestAxis("j", 16)
_TILE = NestOperand(F32, (("i", 16), ("j", 1)), fragment="tile")
_IN_MEMORY = NestOperand(F32, (("i", None), ("j", 1)))

_TILE_BF16 = Intrinsic(
    name="tile.f32.bf16",
    axes=(_ROWS, _COLUMNS, NestAxis("k", 16), NestAxis("p", 2)),
    reads=(
        NestOperand(BF16, (("i", None), ("k", 2), ("p", 1)), "arith.extf"),
        NestOperand(BF16, (("j", 2), ("k", None), ("p", 1)), "arith.extf"),
    ),
    target=_TILE,
    features=(("amx-tile", "amx-bf16"),),
    mnemonic="tdpbf16ps",
    llvm="llvm.x86.tdpbf16ps.internal",
    product="arith.mulf",
    combiner="add",
    form="tile",
    exact=False,
)


def _tile_move(name: str, reads: tuple[NestOperand, ...], target: NestOperand, mnemonic: str) -> Intrinsic:
    """Declare an instruction that zeroes an AMX tile of f32, or moves it between a tile register and rows in memory."""
    return Intrinsic(name, (_ROWS, _COLUMNS), reads, target, (("amx-tile",),), mnemonic, form="tile")


def _interleave(name: str, element: Attribute, group: int) -> Intrinsic:
    """Declare the shuffles that interleave `group` rows of 16 elements: groups[j, k] = rows[k, j]."""
    axes = (NestAxis("j", 16), NestAxis("k", group))
    rows = NestOperand(element, (("j", 1), ("k", None)))
    groups = NestOperand(element, (("j", group), ("k", 1)))
    return Intrinsic(name, axes, (rows,), groups, ((),), "shuffle", form="interleave")


_VNNI_NARROW = (("avxvnni",), ("avx512vnni", "avx512vl"))
_BF16_NARROW = (("avx512bf16", "avx512vl"),)

INTRINSICS: dict[str, Intrinsic] = {
    intrinsic.name: intrinsic
    for intrinsic in (
        _dot_u8i8(512, "dot.i32.u8i8x4", (("avx512vnni",),)),
        _dot_u8i8(256, "dot.i32.u8i8x4.256", _VNNI_NARROW),
        _dot_u8i8(128, "dot.i32.u8i8x4.128", _VNNI_NARROW),
        _dot_bf16(512, "dot.f32.bf16x2", (("avx512bf16",),)),
        _dot_bf16(256, "dot.f32.bf16x2.256", _BF16_NARROW),
        _dot_bf16(128, "dot.f32.bf16x2.128", _BF16_NARROW),
        _dot_neon(I8, I8, "dotprod"),
        _dot_neon(U8, U8, "dotprod"),
        _dot_neon(U8, I8, "i8mm"),
        _BFDOT,
        _interleave("interleave.i8x4", I8, 4),
        _interleave("interleave.u8x4", U8, 4),
        _interleave("interleave.bf16x2", BF16, 2),
        _TILE_BF16,
        _tile_move("tile.zero.f32", (), _TILE, "tilezero"),
        _tile_move("tile.load.f32", (_IN_MEMORY,), _TILE, "tileloadd"),
        _tile_move("tile.store.f32", (_TILE,), _IN_MEMORY, "tilestored"),
        *WARP,
    )
}
"""Every declared intrinsic, by name. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2;
of those of NEON: Arm Architecture Reference Manual for A-profile, chapter C7; for warps NVIDIA's PTX ISA, "Warp-level
matrix instructions"."""


def find(name: str) -> Intrinsic:
    """Return the intrinsic of a name. Raises ScheduleError for an unknown name; the message lists its family's names.

    >>> strata.intrinsics.find("dot.f32.bf16x2").mnemonic
    'vdpbf16ps'
    """
    if name not in INTRINSICS:
        family = [declared for declared in INTRINSICS if declared.split(".")[0] == name.split(".")[0]]
        alternatives = family or [
            f"{first}.*" for first in dict.fromkeys(declared.split(".")[0] for declared in INTRINSICS)
        ]
        raise ScheduleError(f"there is no intrinsic '{name}' (there are {', '.join(alternatives)})")
    return INTRINSICS[name]
