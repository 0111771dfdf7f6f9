"""lift-constants: turn large constants of a te function into arguments with constant elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.passes import ModulePass

from compiler.dialects import loop, te
from compiler.dialects.dense import DenseAttr, bytes_of
from compiler.dialects.functions import constant_values, functions, is_private, positions, state_constants
from compiler.dialects.numbers import Array, array_of
from compiler.program.names import fresh

MAX_INLINE_BYTES = 4096
"""Larger constants become arguments; others are part of the code."""


@dataclass(frozen=True)
class LiftConstantsPass(ModulePass):
    """Turn the large constants of te functions into arguments, whose elements are an attribute of the function.

        func @f(%X) { %W = te.constant dense_resource<W>; ... %X, %W ... }
      ->
        func @f(%X, %W) attributes {constants = [1], constant_values = [dense_resource<W>]} { ... %X, %W ... }

    Functions that call others, and private ones, are not changed. Equal constants become one argument. Constants of up
    to `bytes` bytes stay, and so do splat constants that only computes read. split-constants uses the arguments.
    """

    name = "lift-constants"
    anchor: ClassVar = "func.func"

    bytes: int = MAX_INLINE_BYTES

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            if not is_private(function) and not any(isinstance(inner, CallOp) for inner in function.walk()):
                lift_constants(function, self.bytes)


def lift_constants(function: FuncOp, max_inline: int = MAX_INLINE_BYTES) -> dict[str, Array]:
    """Turn a te function's constants of more than `max_inline` bytes into trailing arguments, in place; splat constants
    that only computes read stay. Return the elements of all constant arguments, by name.

    >>> f = te.function("f", [], te.nn.relu(te.constant(np.arange(2048.0), name="W")))
    >>> arrays = strata.passes.lift_constants(strata.dialects.find_function(f.module))
    >>> {name: array.shape for name, array in arrays.items()}
    {'W': (2048,)}
    """
    if not function.body.blocks:
        return {}
    lift(function, max_inline)
    return constant_arrays(function)


def lift(function: FuncOp, max_inline: int = MAX_INLINE_BYTES) -> None:
    """Turn a te function's constants of more than `max_inline` bytes into trailing arguments, in place: one for equal
    constants, none for splat constants that only computes read. The function has a body."""
    values: dict[int, DenseAttr | None] = dict.fromkeys(positions(function, "constants"))
    values |= constant_values(function)
    body, lifted = function.body.block, dict[DenseAttr, BlockArgument]()
    names_in_use = {name for value in _values(function) if (name := value.name_hint)}
    for op in list(body.ops):
        if not isinstance(op, te.ConstantOp) or bytes_of(op.value.type) <= max_inline or _is_inline_splat(op):
            continue
        if op.value not in lifted:
            argument = lifted[op.value] = body.insert_arg(op.value.type, len(body.args))
            values[argument.index] = op.value
            hint, op.output.name_hint = op.output.name_hint or "c", None
            argument.name_hint = hint if hint in names_in_use else fresh(hint, names_in_use)
        op.output.replace_all_uses_with(lifted[op.value])
        op.detach()
        op.erase()
    if lifted:
        outputs = list(function.function_type.outputs)
        function.properties["function_type"] = FunctionType.from_lists(body.arg_types, outputs)
        if function.arg_attrs is not None:
            function.arg_attrs = ArrayAttr([*function.arg_attrs, *(DictionaryAttr({}) for _ in lifted)])
        state_constants(function, values)


def _is_inline_splat(op: te.ConstantOp) -> bool:
    """Return whether a constant needs no array: only computes read it, and all elements are one number, not NaN."""
    dense = op.value.data
    if not dense.is_splat or not all(isinstance(use.operation, te.ComputeOp) for use in op.output.uses):
        return False
    return dense.row.kind != "f" or not np.isnan(array_of(dense).flat[0].astype(np.float64))


def constant_arrays(function: FuncOp) -> dict[str, Array]:
    """Return the elements of a function's constant arguments as read-only arrays, by name (`arg0` for an argument
    without one)."""
    arguments = function.body.block.args
    return {arguments[n].name_hint or f"arg{n}": array_of(v.data) for n, v in constant_values(function).items()}


def _values(function: FuncOp) -> list[SSAValue]:
    body = function.body.block
    return [*body.args, *(value for op in body.ops for value in op.results)]


def has_constants(function: FuncOp) -> bool:
    """Return whether a function at the te or loop level has constants: ops in its body, or arguments with elements."""
    ops = function.body.block.ops if function.body.blocks else ()
    has_ops = any(isinstance(op, te.ConstantOp | loop.ConstantOp) for op in ops)
    return has_ops or "constant_values" in function.attributes
