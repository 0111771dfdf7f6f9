"""Levels of functions: te, loop and low. A pass requires one by `require`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType, UnrealizedConversionCastOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.memref import CopyOp, LoadOp, ViewOp
from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import Block, Operation

from compiler.dialects import loop
from compiler.dialects.calls import is_main
from compiler.dialects.functions import functions, has_tensors
from compiler.dialects.sizes import not_built
from compiler.dialects.upstream.arith import CmpfOp
from compiler.dialects.upstream.walk import ops_in
from compiler.support.errors import LoweringError

Level = Literal["te", "loop", "low"]

_SHAPED = {"te": (TensorType, "tensor"), "loop": (MemRefType, "memref")}
_UPPER_OPS = ("te.", "loop.")
Upper = Literal["te", "loop"]


def require(module: ModuleOp, level: Level, by: str) -> None:
    """Check that all functions of a module are at a level, for the pass `by`; at te, functions without tensors in their
    type are skipped.

    A te function has te ops and the return, and its arguments and results are tensors. A loop function has loop ops and
    the return, its arguments are memrefs, and it has no results. Every other function is low. A function that calls
    others computes nothing itself: in te it has calls and constants, at the loop level calls, allocations, copies,
    views and guards. Raises LoweringError at the first op or function that does not belong.
    """
    if level == "low":
        _require_low(module, by)
        return
    for function in functions(module):
        if level == "loop" or has_tensors(function):
            _require_upper(function, level, by)


def _require_low(module: ModuleOp, by: str) -> None:
    for op in ops_in(module):
        if op.name.startswith(_UPPER_OPS) or (type(op) is FuncOp and has_tensors(op)):
            raise LoweringError(f"{by} takes the low level, which '{op.name}' here is above").at(op)


def _require_upper(function: FuncOp, level: Upper, by: str) -> None:
    name, (kind, word) = function.sym_name.data, _SHAPED[level]
    if len(function.body.blocks) != 1:
        raise LoweringError(f"{by} takes functions with one block: @{name} has {len(function.body.blocks)}").at(
            function
        )
    body, fault = function.body.block, not_built(function)
    if fault:
        raise LoweringError(fault).at(function)
    for number, type in enumerate(function.function_type.inputs):
        if not isinstance(type, kind):
            reason = f"argument {number} of @{name} is of type {type}, expected a {word}"
            raise LoweringError(f"{by} takes the {level} level: {reason}").at(function)
    for type in function.function_type.outputs:
        if level == "loop" or not isinstance(type, kind):
            expected = "none: its results are its last arguments" if level == "loop" else f"a {word}"
            reason = f"a result of @{name} is of type {type}, expected {expected}"
            raise LoweringError(f"{by} takes the {level} level: {reason}").at(function)
    if not isinstance(body.last_op, ReturnOp):
        raise LoweringError(f"@{name} does not end with func.return").at(function)
    if is_main(function):
        _require_main(function, level)
        return
    for op in _own(body):
        if op.name.split(".")[0] != level and op is not body.last_op:
            hint = ": raise-affine-to-loop raises nests of affine and scf loops" if _has_nests(function) else ""
            raise LoweringError(f"'{op.name}' is not an op of the {level} level, which {by} takes{hint}").at(op)


def _has_nests(function: FuncOp) -> bool:
    return any(op.name.startswith("affine.") or isinstance(op, ForOp) for op in function.body.block.ops)


def _require_main(function: FuncOp, level: Upper) -> None:
    """Check that a function that calls others has only calls beside its return, and at the te level constants, at the
    loop level allocations, copies, views and guards. Raises LoweringError at another op."""
    loops = (CallOp, CopyOp, loop.AllocOp, ViewOp, UnrealizedConversionCastOp, ConstantOp, LoadOp, CmpfOp, IfOp)
    allowed: tuple[type[Operation], ...] = (CallOp,) if level == "te" else loops
    words = "calls and te.constant" if level == "te" else "calls, loop.alloc, memref.copy, views, and guards"
    for op in function.body.block.ops:
        is_constant = level == "te" and op.name == "te.constant"
        if not isinstance(op, allowed) and not is_constant and op is not function.body.block.last_op:
            name = function.sym_name.data
            raise LoweringError(f"@{name} calls functions, so it has only {words} beside, not '{op.name}'").at(op)


def _own(body: Block) -> Iterator[Operation]:
    """The ops of a function and of its loops, without scalar bodies."""
    for op in body.ops:
        yield op
        if isinstance(op, loop.ForOp):
            yield from _own(op.body.block)
