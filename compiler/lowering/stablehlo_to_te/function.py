"""Functions of StableHLO: their ops in order, calls inlined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from compiler.dialects.functions import functions, is_private
from compiler.lowering.stablehlo_to_te import operators
from compiler.lowering.stablehlo_to_te.call import PASS, EmptyTensor, HloCall, HloValue, refused, tensor_type
from compiler.lowering.stablehlo_to_te.known import Array, KnownValues
from compiler.lowering.stablehlo_to_te.table import HANDLERS
from compiler.program.names import Names, spelled
from compiler.support.errors import LoweringError, TeError
from compiler.support.spans import called_at, of_location
from compiler.te.constant import constant
from compiler.te.function import Function
from compiler.te.function import function as te_function
from compiler.te.tensor import Tensor, placeholder

MISMATCH = (IndexError, KeyError, ValueError)
"""What Python raises in a handler for attributes that do not fit the operands."""
CAPTURING = ("stablehlo.while", "stablehlo.case", "stablehlo.if")
"""The ops whose results may depend on values around them that are no operands."""
MAX_OPS = 50_000
"""The most ops that are converted, loops unrolled and calls inlined."""
MAX_WEIGHT = 1024
"""The elements from which on a constant becomes a weight, if the caller takes weights."""
assert operators.FAMILIES


@dataclass
class HloConversion:
    """The state of the conversion of one function. functions: the module's functions by name. elements: arrays by name,
    for constants whose text has a name instead of elements. weights: the arrays of large constants that become inputs,
    by name of the input; None if constants stay constants. weight_tensors: those inputs, by dtype, shape and digest of
    the array. swapped: for a product tensor, a function that builds the product with its operands exchanged, and
    returns for each dimension of the stated product the dimension of the new one."""

    functions: Mapping[str, FuncOp]
    elements: Mapping[str, Array] = field(default_factory=dict)
    weights: dict[str, Array] | None = None
    known: KnownValues = field(default_factory=KnownValues)
    names: Names = field(default_factory=lambda: Names(separator="_"))
    weight_tensors: dict[tuple[Any, ...], Tensor] = field(default_factory=dict)
    swapped: dict[Tensor, Callable[[], tuple[Tensor, list[int]]]] = field(default_factory=dict)
    _calls: list[str] = field(default_factory=list)
    _count: int = 0

    def run(self, block: Block, arguments: Sequence[Tensor], values: Mapping[SSAValue, HloValue]) -> list[Tensor]:
        """Convert the ops of a block for tensors of its arguments; return the operands of its last op. `values` has
        those of the blocks around it. Raises LoweringError for an unsupported op, after MAX_OPS ops of the whole
        function, and for a block without a return."""
        scope: dict[SSAValue, HloValue] = dict(values)
        scope |= zip(block.args, arguments, strict=True)
        for op in block.ops:
            if isinstance(op, ReturnOp) or op.name == "stablehlo.return":
                return _operands(op, [scope[value] for value in op.operands])
            self._count += 1
            if self._count > MAX_OPS:
                raise refused(op, f"is beyond the {MAX_OPS} ops that a function may have with its loops unrolled")
            scope |= zip(op.results, self._results(op, scope), strict=True)
        parent = block.parent_op()
        raise LoweringError(f"{PASS}: a block ends without a return").at(parent if parent is not None else op)

    def call(self, op: Operation, name: str, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Convert the body of the function `name` for these arguments, inlined; return its results. Raises
        LoweringError at `op` for an undefined or recursive function, or arguments of other types, and as `run` for the
        body."""
        callee = self.functions.get(name)
        if callee is None or not callee.body.blocks:
            raise refused(op, f"calls @{name}, which the module does not define")
        if name in self._calls:
            raise refused(op, f"calls @{name}, which calls itself")
        expected = [tensor_type(op, argument.type) for argument in callee.body.block.args]
        if [(tensor.shape, tensor.dtype) for tensor in arguments] != expected:
            raise refused(op, f"calls @{name} with arguments of other types")
        self._calls.append(name)
        results = self.run(callee.body.block, arguments, {})
        self._calls.pop()
        return results

    def constant(self, array: Array, dtype: str, name: str) -> Tensor:
        """Return a constant tensor `name` of an array, of the te dtype `dtype`. If weights are collected, an array of
        MAX_WEIGHT elements or more becomes an input tensor instead, named `w0` and so on; equal arrays of a dtype share
        one."""
        if self.weights is None or array.size < MAX_WEIGHT:
            return self.known.add(constant(array, dtype, name), array)
        key = (dtype, array.shape, sha256(np.ascontiguousarray(array).view(np.uint8).data).digest())
        if key not in self.weight_tensors:
            label = self.names.fresh(f"w{len(self.weights)}")
            self.weight_tensors[key] = placeholder(array.shape, dtype, label)
            self.weights[label] = array
        return self.weight_tensors[key]

    def _results(self, op: Operation, scope: Mapping[SSAValue, HloValue]) -> Sequence[HloValue]:
        stated = [tensor_type(op, value.type) for value in op.results]
        if stated and all(0 in shape for shape, _ in stated):
            return [EmptyTensor(*type) for type in stated]
        operands = _operands(op, [scope[value] for value in op.operands])
        hint = op.results[0].name_hint if op.results else None
        name = spelled(hint or op.name.rpartition(".")[2])
        call = HloCall(self, op, operands, self.known, name, scope)
        with called_at(of_location(op.location)):
            try:
                results = self._handled(call)
            except TeError as error:
                raise refused(op, f"has no te form: {error}") from error
            except MISMATCH as error:
                raise refused(op, f"has attributes that do not fit its operands ({error})") from error
        _check_results(op, results)
        return results if op.name in CAPTURING else self.known.settled(results, operands)

    def _handled(self, call: HloCall) -> list[Tensor]:
        if isinstance(call.op, CallOp):
            return self.call(call.op, call.op.callee.string_value(), call.operands)
        handler = HANDLERS.get(call.op.name)
        if handler is None:
            raise call.refused("has no te form")
        results = handler(call)
        return [results] if isinstance(results, Tensor) else list(results)


def _operands(op: Operation, values: Sequence[HloValue]) -> list[Tensor]:
    """Return the tensors of an op's operands; a concatenation loses those without elements. Raises LoweringError for
    such an operand of another op."""
    if op.name == "stablehlo.concatenate":
        values = [value for value in values if not isinstance(value, EmptyTensor)]
    for value in values:
        if isinstance(value, EmptyTensor):
            raise refused(op, f"has an operand of shape {value.shape}, which has no elements")
    return [value for value in values if isinstance(value, Tensor)]


def _check_results(op: Operation, results: Sequence[Tensor]) -> None:
    """Raise LoweringError unless the results have the shapes and dtypes of the op's result types."""
    stated = [tensor_type(op, result.type) for result in op.results]
    computed = [(tensor.shape, tensor.dtype) for tensor in results]
    if stated == computed:
        return
    shown = [", ".join(f"{dtype}{list(shape)}" for shape, dtype in types) for types in (stated, computed)]
    raise refused(op, f"states a result of type {shown[0]}, and its operands and attributes give {shown[1]}")


def convert(
    module: ModuleOp,
    function: FuncOp,
    name: str | None = None,
    labels: Sequence[str] | None = None,
    elements: Mapping[str, Array] | None = None,
    weights: dict[str, Array] | None = None,
) -> Function:
    """Convert a function of StableHLO to a te function called `name` (None: as the function). `labels` name its inputs,
    all of them; None or empty: their hints, else `arg0` and so on; equal names get a number. elements: arrays of
    constants that the text names. weights: an empty dict, to which large constants are added by the name of the input
    that each becomes, behind the other inputs; None keeps them constants. Raises LoweringError for an op without a te
    form, an argument without elements or of a type that te lacks, and a function without results or of other than one
    block."""
    conversion = HloConversion(
        {f.sym_name.data: f for f in functions(module)}, {} if elements is None else elements, weights
    )
    if len(function.body.blocks) != 1:
        raise LoweringError(f"{PASS}: @{function.sym_name.data} has no body of one block").at(function)
    body = function.body.block
    inputs = []
    for number, argument in enumerate(body.args):
        shape, dtype = tensor_type(function, argument.type)
        label = labels[number] if labels else argument.name_hint or f"arg{number}"
        if 0 in shape:
            raise refused(function, f"has the argument {label} of type {argument.type}, which has no elements")
        inputs.append(placeholder(shape, dtype, conversion.names.fresh(spelled(label))))
    outputs = conversion.run(body, inputs, {})
    if not outputs:
        raise LoweringError(f"{PASS}: @{function.sym_name.data} has no results").at(function)
    weight_inputs = [*conversion.weight_tensors.values()]
    return te_function(spelled(name or function.sym_name.data), [*inputs, *weight_inputs], outputs)


def convert_module(module: ModuleOp) -> None:
    """Replace the public functions of a module by te functions, and delete the private ones, the meshes (sdy.mesh) and
    the module's attributes. Raises LoweringError for an op without a te form; the module is then unchanged."""
    converted = [(f, convert(module, f)) for f in functions(module) if not is_private(f)]
    for op in [*module.ops]:
        if op.name == "sdy.mesh" or (isinstance(op, FuncOp) and is_private(op)):
            op.detach()
    for function, te in converted:
        new = te.module.body.block.first_op
        assert new is not None
        new.detach()
        module.body.block.insert_op_before(new, function)
        function.detach()
    for attribute in [*module.attributes]:
        del module.attributes[attribute]
