"""AMX in plain LLVM IR: a module that computes on tiles becomes one that any processor runs.

Written from the pseudocode of TILELOADD, TILESTORED and TDPBF16PS in Intel's Software Developer's Manual, without a
look at the compiler; denormals, which the instruction flushes, are left as they are.
"""

from __future__ import annotations

import re

_BODIES = """
define <256 x i32> @emulated.load(i16 %rows, i16 %bytes, ptr %p, i64 %stride) {
entry:
  %tile = alloca [1024 x i8], align 64
  br label %loop
loop:
  %r = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = mul i64 %r, %stride
  %source = getelementptr i8, ptr %p, i64 %from
  %row = load <16 x i32>, ptr %source, align 1
  %to = mul i64 %r, 64
  %target = getelementptr i8, ptr %tile, i64 %to
  store <16 x i32> %row, ptr %target, align 64
  %next = add i64 %r, 1
  %more = icmp ult i64 %next, 16
  br i1 %more, label %loop, label %done
done:
  %all = load <256 x i32>, ptr %tile, align 64
  ret <256 x i32> %all
}
define void @emulated.store(i16 %rows, i16 %bytes, ptr %p, i64 %stride, <256 x i32> %value) {
entry:
  %tile = alloca [1024 x i8], align 64
  store <256 x i32> %value, ptr %tile, align 64
  br label %loop
loop:
  %r = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = mul i64 %r, 64
  %source = getelementptr i8, ptr %tile, i64 %from
  %row = load <16 x i32>, ptr %source, align 64
  %to = mul i64 %r, %stride
  %target = getelementptr i8, ptr %p, i64 %to
  store <16 x i32> %row, ptr %target, align 1
  %next = add i64 %r, 1
  %more = icmp ult i64 %next, 16
  br i1 %more, label %loop, label %done
done:
  ret void
}
define internal float @emulated.wide(ptr %tile, i64 %row, i64 %column) {
  %at = mul i64 %row, 32
  %place = add i64 %at, %column
  %p = getelementptr i16, ptr %tile, i64 %place
  %bits = load i16, ptr %p, align 2
  %word = zext i16 %bits to i32
  %high = shl i32 %word, 16
  %value = bitcast i32 %high to float
  ret float %value
}
define <256 x i32> @emulated.dot(i16 %m, i16 %n, i16 %k, <256 x i32> %c, <256 x i32> %a, <256 x i32> %b) {
entry:
  %tc = alloca [1024 x i8], align 64
  %ta = alloca [1024 x i8], align 64
  %tb = alloca [1024 x i8], align 64
  store <256 x i32> %c, ptr %tc, align 64
  store <256 x i32> %a, ptr %ta, align 64
  store <256 x i32> %b, ptr %tb, align 64
  br label %loop
loop:
  %t = phi i64 [ 0, %entry ], [ %next, %loop ]
  %i = udiv i64 %t, 512
  %rest = urem i64 %t, 512
  %g = udiv i64 %rest, 32
  %inner = urem i64 %rest, 32
  %j = udiv i64 %inner, 2
  %h = urem i64 %inner, 2
  %g2 = mul i64 %g, 2
  %ka = add i64 %g2, %h
  %j2 = mul i64 %j, 2
  %jb = add i64 %j2, %h
  %x = call float @emulated.wide(ptr %ta, i64 %i, i64 %ka)
  %y = call float @emulated.wide(ptr %tb, i64 %g, i64 %jb)
  %product = fmul float %x, %y
  %row = mul i64 %i, 16
  %place = add i64 %row, %j
  %p = getelementptr float, ptr %tc, i64 %place
  %old = load float, ptr %p, align 4
  %sum = fadd float %old, %product
  store float %sum, ptr %p, align 4
  %next = add i64 %t, 1
  %more = icmp ult i64 %next, 8192
  br i1 %more, label %loop, label %done
done:
  %all = load <256 x i32>, ptr %tc, align 64
  ret <256 x i32> %all
}
define <256 x i32> @emulated.same(<256 x i32> %x) {
  ret <256 x i32> %x
}
"""
_NAMES = {
    "llvm.x86.tileloadd64.internal": "emulated.load",
    "llvm.x86.tilestored64.internal": "emulated.store",
    "llvm.x86.tdpbf16ps.internal": "emulated.dot",
    "llvm.x86.cast.vector.to.tile.v256i32": "emulated.same",
    "llvm.x86.cast.tile.to.vector.v256i32": "emulated.same",
}


def emulated(text: str) -> str:
    """The text of a module with plain functions in the place of tile instructions and their features."""
    for name, right in _NAMES.items():
        text = re.sub(rf"^declare .*@{re.escape(name)}\(.*\n", "", text, flags=re.MULTILINE)
        text = text.replace(f"@{name}(", f"@{right}(")
    text = re.sub(r",?[+-]amx-[\w-]+", "", text)
    return text.replace("x86_amx", "<256 x i32>") + _BODIES
