"""Which functions are at the level of linalg."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler.dialects.functions import functions, has_tensors


def has_linalg(module: ModuleOp) -> bool:
    """Return whether a module has a function at the level of linalg, by `is_linalg`."""
    return any(map(is_linalg, functions(module)))


def is_linalg(function: FuncOp) -> bool:
    """Whether a function has ops of linalg or tensor at the top of its blocks, or has tensors and, at the top of its
    blocks, ops of arith or math."""
    dialects = {op.name.partition(".")[0] for block in function.body.blocks for op in block.ops}
    return not dialects.isdisjoint(("linalg", "tensor")) or (
        has_tensors(function) and not dialects.isdisjoint(("arith", "math"))
    )
