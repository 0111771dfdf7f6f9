"""The constants that kernels read: arrays of bit patterns in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import fill, indent

from compiler.dialects.dense import DenseAttr
from compiler.dialects.dense_elements import Dense
from compiler.dialects.upstream.memref import GlobalOp
from compiler.support.errors import LoweringError

BANK = 32 << 10
"""The bytes of constants that go to constant memory, of which a module has 64 KiB; the others are in global memory."""
MAX_BYTES = 1 << 20
"""The most bytes of constants that a text may contain."""

_WORDS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}


def c_name(symbol: str) -> str:
    """Return a constant's C identifier: its symbol with `_` for all but ASCII letters, digits and `_`."""
    return re.sub(r"\W", "_", symbol, flags=re.ASCII)


def declarations(constants: Sequence[GlobalOp]) -> Iterator[str]:
    """Yield the declarations of constants, smallest first: in `__constant__` memory up to BANK bytes in total, then in
    global memory; elements are bit patterns in hexadecimal digits. Raises LoweringError above MAX_BYTES in total."""
    total_bytes = 0
    for op in sorted(constants, key=lambda op: len(_dense(op).data)):
        dense = _dense(op)
        total_bytes += len(dense.data)
        if total_bytes > MAX_BYTES:
            raise LoweringError(f"the kernels have constants of more than {MAX_BYTES} bytes: give large ones as inputs")
        space = "__constant__" if total_bytes <= BANK else "__device__ const"
        bits = dense.bits
        elements = indent(fill(", ".join(hex(int(number)) for number in bits), 118), "  ")
        declarator = f"{space} __align__(16) {_WORDS[bits.itemsize]} {c_name(op.sym_name.data)}[{len(bits)}] = {{"
        yield f"// {dense.type}\n{declarator}\n{elements}\n}};"


def _dense(op: GlobalOp) -> Dense:
    assert isinstance(op.initial_value, DenseAttr)
    return op.initial_value.data
