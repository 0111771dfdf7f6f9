"""Verification of a whole module: each op by its own verifier, then dominance, which xDSL does not check."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException


def verify_module(module: ModuleOp) -> None:
    """Verify every op, and that every value is defined before it is used.

    Raises VerifyException.
    """
    module.verify()
    _check(module, set())


def _check(op: Operation, seen: set[SSAValue]) -> None:
    for region in op.regions:
        blocks = list(region.blocks)
        if len(blocks) > 1:
            seen = seen | {r for b in blocks for o in b.ops for r in o.results}  # a graph of blocks: not judged
        for block in blocks:
            _check_block(block, seen)


def _check_block(block: Block, outer: set[SSAValue]) -> None:
    seen = outer | set(block.args)
    for op in block.ops:
        for operand in op.operands:
            if operand not in seen:
                name = f"'%{operand.name_hint}'" if operand.name_hint else "a value"
                raise VerifyException(f"'{op.name}' uses {name} before it is defined")
        _check(op, seen)
        seen.update(op.results)
