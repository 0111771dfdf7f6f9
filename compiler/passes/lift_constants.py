"""lift-constants: large constants of a te function become arguments that are the same in all calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.passes import ModulePass

from compiler.dialects import loop, te
from compiler.dialects.dense import DenseAttr, bytes_of
from compiler.dialects.functions import constant_values, functions, is_private, positions, state_constants
from compiler.dialects.numbers import Array, array_of
from compiler.program.names import fresh

MAX_INLINE_BYTES = 4096
"""A constant of more bytes is large: code has it as an argument, not inside."""


@dataclass(frozen=True)
class LiftConstantsPass(ModulePass):
    """Make arguments of the large constants of te functions, which then know the elements of these arguments.

        func @f(%X) { %W = te.constant dense_resource<W>; ... %X, %W ... }
      ->
        func @f(%X, %W) attributes {constants = [1], constant_values = [dense_resource<W>]} { ... %X, %W ... }

    Functions that call others, and private ones, stay as they are. Equal constants become one argument. Constants of up
    to `bytes` bytes stay, and so do splat constants that only computes read. See split-constants for the use of the
    arguments.
    """

    name = "lift-constants"

    bytes: int = MAX_INLINE_BYTES

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            if not is_private(function) and not any(isinstance(inner, CallOp) for inner in function.walk()):
                lift_constants(function, self.bytes)


def lift_constants(function: FuncOp, most_inline: int = MAX_INLINE_BYTES) -> dict[str, Array]:
    """Make arguments, behind the others, of a te function's constants of more than `most_inline` bytes, in place.

    Gives the elements of all arguments whose elements the function knows, by the names of the arguments.

    >>> f = te.function("f", [], te.nn.relu(te.constant(np.arange(2048.0), name="W")))
    >>> arrays = strata.passes.lift_constants(strata.dialects.find_function(f.module))
    >>> {name: array.shape for name, array in arrays.items()}
    {'W': (2048,)}
    """
    if not function.body.blocks:
        return {}
    values: dict[int, DenseAttr | None] = dict.fromkeys(positions(function, "constants"))
    values |= constant_values(function)
    body, made = function.body.block, dict[DenseAttr, BlockArgument]()
    taken = {name for value in _values(function) if (name := value.name_hint)}
    for op in list(body.ops):
        if not isinstance(op, te.ConstantOp) or bytes_of(op.value.type) <= most_inline or _is_inline_splat(op):
            continue
        if op.value not in made:
            argument = made[op.value] = body.insert_arg(op.value.type, len(body.args))
            values[argument.index] = op.value
            hint, op.output.name_hint = op.output.name_hint or "c", None
            argument.name_hint = hint if hint in taken else fresh(hint, taken)
        op.output.replace_all_uses_with(made[op.value])
        op.detach()
        op.erase()
    if made:
        outputs = list(function.function_type.outputs)
        function.properties["function_type"] = FunctionType.from_lists(body.arg_types, outputs)
        state_constants(function, values)
    return constant_arrays(function)


def _is_inline_splat(op: te.ConstantOp) -> bool:
    """Whether code needs no array of a constant: it is read by computes only, and all elements are one number."""
    dense = op.value.data
    if not dense.is_splat or not all(isinstance(use.operation, te.ComputeOp) for use in op.output.uses):
        return False
    return dense.row.kind != "f" or not np.isnan(array_of(dense).flat[0].astype(np.float64))


def constant_arrays(function: FuncOp) -> dict[str, Array]:
    """The elements of the arguments whose elements a function knows, by the names of the arguments; read-only."""
    arguments = function.body.block.args
    return {arguments[n].name_hint or f"arg{n}": array_of(v.data) for n, v in constant_values(function).items()}


def _values(function: FuncOp) -> list[SSAValue]:
    body = function.body.block
    return [*body.args, *(value for op in body.ops for value in op.results)]


def has_constants(function: FuncOp) -> bool:
    """Whether a function at the te or loop level has constants whose elements it knows."""
    ops = function.body.block.ops if function.body.blocks else ()
    inside = any(isinstance(op, te.ConstantOp | loop.ConstantOp) for op in ops)
    return inside or "constant_values" in function.attributes
