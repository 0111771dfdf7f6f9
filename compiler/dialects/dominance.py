"""Verification of a whole module: each op by its own verifier, then dominance, which xDSL does not check."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from compiler.affine.limits import bad_shape, fits
from compiler.dialects.calls import recursive
from compiler.dialects.foreign_errors import is_foreign, said
from compiler.dialects.signature import signature
from compiler.dialects.sizes import size_faults
from compiler.support import plugins

MOST_SIGNATURES = 4096
"""The number of signatures of verified computes to cache."""
_verified: set[Hashable] = set()


class Refusal(VerifyException):
    """A verification error in one sentence, with the op at fault."""

    def __init__(self, op: Operation, sentence: str) -> None:
        super().__init__(sentence)
        self.op = op


Report = Callable[[Refusal], None]
"""The receiver of refusals; `verify_module`'s raises the first."""


def verify_module(module: ModuleOp) -> None:
    """Raise Refusal unless every op is valid, every value is defined before its uses, the sizes of shapes fit 64 bits,
    and no function calls itself, directly or through others. In a region of several blocks the order of definitions is
    not checked. Raises PluginError for an op of a plugin whose verifier crashes."""
    _verify(module, _raise)


def refusals(module: ModuleOp) -> list[Refusal]:
    """Return all refusals of a module, where `verify_module` raises the first: at most one of each op by its verifier,
    one for its sizes, one for its operands; empty for a valid module.

    Raises PluginError for an op of a plugin whose verifier crashes.
    """
    found: list[Refusal] = []
    _verify(module, found.append)
    return found


def _raise(refusal: Refusal) -> None:
    raise refusal from refusal.__cause__


def _verify(module: ModuleOp, report: Report) -> None:
    _check(module, set(), report)
    circle = recursive(module)
    if circle is not None:
        report(Refusal(circle, f"@{circle.sym_name.data} calls itself, at once or through others"))


def _check(op: Operation, seen: set[SSAValue], report: Report) -> None:
    """Report unless an op and its regions are valid, with the values `seen` defined before the op. Computes that differ
    only in names are verified once."""
    op_signature = signature(op) if op.name == "te.compute" else None
    if op_signature is None:
        _check_each(op, seen, report)
        return
    if op_signature in _verified:
        return
    faults: list[Refusal] = []

    def reported(refusal: Refusal) -> None:
        faults.append(refusal)
        report(refusal)

    _check_each(op, seen, reported)
    if not faults:
        if len(_verified) >= MOST_SIGNATURES:
            _verified.clear()
        _verified.add(op_signature)


def _check_each(op: Operation, seen: set[SSAValue], report: Report) -> None:
    fault = _own_fault(op) or _size_fault(op)
    if fault is not None:
        report(fault)
    if isinstance(op, FuncOp):
        for at, sentence in size_faults(op):
            report(Refusal(at, sentence))
    for region in op.regions:
        blocks = list(region.blocks)
        if len(blocks) > 1:
            inside = {value for b in blocks for op in b.ops for value in op.results}
            seen = seen | inside | {argument for b in blocks for argument in b.args}  # a graph of blocks: not judged
        for block in blocks:
            _check_block(block, seen, report)


def _own_fault(op: Operation) -> Refusal | None:
    """The refusal of an op by its own verifier; None if it is valid. Raises PluginError for a plugin's that crashes."""
    try:
        op.verify(verify_nested_ops=False)
    except VerifyException as error:
        return _caused(Refusal(op, last_sentence(str(error))), error)
    except Exception as error:
        plugin = plugins.owner(op.name)
        if plugin is not None:
            raise plugin.failed(error).at(op) from error
        if is_foreign(error):
            return _caused(Refusal(op, f"'{op.name}' cannot be verified: {said(error)}"), error)
        raise
    return None


def _caused(refusal: Refusal, cause: Exception) -> Refusal:
    refusal.__cause__ = cause
    return refusal


def _size_fault(op: Operation) -> Refusal | None:
    """A refusal unless shapes have less than 2^63 bytes and constants of type index fit 64 bits."""
    values = [*op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args)]
    for value in values:
        fault = bad_shape(value.type)
        if fault:
            return Refusal(op, fault)
    if isinstance(op, ConstantOp) and isinstance(op.value, IntegerAttr) and isinstance(op.value.type, IndexType):
        number = op.value.value.data
        if not fits(number):
            return Refusal(op, f"the index {number} is no signed 64-bit integer")
    return None


def _check_block(block: Block, outer: set[SSAValue], report: Report) -> None:
    visible = outer | set(block.args)
    for op in block.ops:
        for operand in op.operands:
            if operand not in visible:
                name = f"'%{operand.name_hint}'" if operand.name_hint else "a value"
                report(Refusal(op, f"'{op.name}' uses {name} before it is defined"))
                break
        _check(op, visible, report)
        visible.update(op.results)


def last_sentence(message: str) -> str:
    """Return the sentence in a message of xDSL, which prints the op around it: the last line with words; "the input is
    malformed" without one."""
    lines = [line.strip().lstrip("^- ").strip() for line in message.strip().splitlines()]
    sentences = [line for line in lines if line and not set(line) <= set("^-~ ")]
    return sentences[-1] if sentences else "the input is malformed"
