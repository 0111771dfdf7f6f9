"""Masked stores of one lane become scalar stores, since LLVM 22.1 writes too many bytes there.

Its X86 backend merges a truncation into the masked store behind it, and lowers a constant mask with a single lane to a
store of the element before the truncation: `trunc <8 x i32> to <8 x i16>` stored under <1, 0, 0 ...> writes four bytes
instead of two. Masks become constants in LLVM's optimisation, so this pass runs on its output.
"""

from __future__ import annotations

import re

_STORE = re.compile(
    r"(?:tail )?call void @llvm\.masked\.store\.\S+?\((?P<vector><\d+ x (?P<element>i\d+)>) (?P<value>%[-\w$.]+), "
    r"ptr (?P<attributes>[^%,]*)(?P<pointer>%[-\w$.]+), <\d+ x i1> <(?P<mask>i1 [^>]*)>\).*"
)


def with_scalar_stores(llvm: str) -> str:
    """Replace each masked store of a single integer lane in LLVM IR.

    call @llvm.masked.store(<4 x i16> %x, ptr align 2 %p, <4 x i1> <i1 true, i1 false, i1 false, i1 false>)
      ->
    %lane = extractelement <4 x i16> %x, i64 0    store i16 %lane, ptr %p, align 2
    """
    count = 0

    def scalar_store(match: re.Match[str]) -> str:
        nonlocal count
        lanes = [n for n, bit in enumerate(match["mask"].split(", ")) if bit == "i1 true"]
        if len(lanes) != 1:
            return match[0]
        (lane,), name, element = lanes, f"%single.lane.{count}", match["element"]
        count += 1
        alignment = re.search(r"align (\d+)", match["attributes"])
        lines = [
            f"{name} = extractelement {match['vector']} {match['value']}, i64 {lane}",
            f"{name}.at = getelementptr {element}, ptr {match['pointer']}, i64 {lane}",
            f"store {element} {name}, ptr {name}.at, align {1 if alignment is None or lane else alignment[1]}",
        ]
        return "\n  ".join(lines)

    return _STORE.sub(scalar_store, llvm)
