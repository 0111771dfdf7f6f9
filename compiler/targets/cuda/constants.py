"""The constants that kernels read: arrays of the text, which have the bits of the elements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import fill, indent

from compiler.dialects.dense import Dense, DenseAttr
from compiler.dialects.upstream.memref import GlobalOp
from compiler.support.errors import LoweringError

BANK = 32 << 10
"""The bytes of constants in constant memory, of which a module has 64 KiB; further constants are in global memory."""
MOST = 1 << 20
"""The bytes of constants that a text may have."""

_WORDS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}


def word(symbol: str) -> str:
    """The name of a constant in the text."""
    return re.sub(r"\W", "_", symbol, flags=re.ASCII)


def declarations(constants: Sequence[GlobalOp]) -> Iterator[str]:
    """The declarations of constants. Raises LoweringError for more bytes than MOST."""
    taken = 0
    for op in sorted(constants, key=lambda op: len(_held(op).data)):
        dense = _held(op)
        taken += len(dense.data)
        if taken > MOST:
            raise LoweringError(f"the kernels have constants of more than {MOST} bytes: give large ones as inputs")
        space = "__constant__" if taken <= BANK else "__device__ const"
        bits = dense.bits
        elements = indent(fill(", ".join(hex(int(number)) for number in bits), 118), "  ")
        head = f"{space} __align__(16) {_WORDS[bits.itemsize]} {word(op.sym_name.data)}[{len(bits)}] = {{"
        yield f"// {dense.type}\n{head}\n{elements}\n}};"


def _held(op: GlobalOp) -> Dense:
    assert isinstance(op.initial_value, DenseAttr)
    return op.initial_value.data
