"""te -> loop: one loop nest a compute, axes in their order, a buffer for each tensor.

A function's results become trailing arguments; intermediates become loop.alloc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import (
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass

from compiler.dialects import loop, te
from compiler.dialects.combination import Combination
from compiler.dialects.functions import functions
from compiler.dialects.levels import has_tensors, require
from compiler.elements import scalar_type
from compiler.program.tree import fresh


@dataclass(frozen=True)
class TeToLoopPass(ModulePass):
    """Lower tensor expressions to loop nests, one a compute or gather.

        %C = te.compute "C" [m = 4, reduce k = 8] combine [add] (%a = %A[m, k] ...) { ... }
      ->
        loop.for "m" { loop.for "k" { loop.block "C" [...] (%a = %A[m, k] ...) -> (%C[m]) { ... } } }

    Raises LoweringError, see `compiler.dialects.levels`.
    """

    name = "te-to-loop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require(op, "te", self.name)
        for function in functions(op):
            if has_tensors(function):
                _lower_function(function)


def buffer_type(tensor: object) -> MemRefType:
    """The memref of a tensor."""
    assert isinstance(tensor, TensorType)
    return MemRefType(tensor.get_element_type(), tensor.get_shape())


def _lower_function(function: FuncOp) -> None:
    body = function.body.block
    terminator = body.last_op
    assert isinstance(terminator, ReturnOp)
    returned = list(terminator.operands)
    buffers = _Buffers(function, returned)
    for op in list(body.ops):
        if isinstance(op, te.ComputeOp):
            targets = [buffers.of_result(result, op) for result in op.outputs]
            body.insert_op_before(_nest(op, [buffers.of[v] for v in op.inputs], targets), op)
        elif isinstance(op, te.GatherOp):
            inputs = [buffers.of[v] for v in op.inputs]
            body.insert_op_before(_gather_nest(op, inputs, buffers.of_result(op.output, op)), op)
    labels = {op.label.data for op in body.ops if isinstance(op, te.ComputeOp | te.GatherOp)}
    for source, target in buffers.resolve_copies():
        label = fresh(f"copy_{target.name_hint or 'result'}", labels)
        labels.add(label)
        body.insert_op_before(_copy(label, source, target), terminator)
    body.insert_op_before(ReturnOp(), terminator)
    for op in reversed([op for op in body.ops if isinstance(op, te.ComputeOp | te.GatherOp) or op is terminator]):
        body.erase_op(op)
    buffers.finish()


class _Buffers:
    """Which buffer stands for which tensor of one function."""

    def __init__(self, function: FuncOp, returned: Sequence[SSAValue]) -> None:
        self.function = function
        self.body = function.body.block
        self.of: dict[SSAValue, SSAValue] = {}
        self.copies: list[tuple[SSAValue, SSAValue]] = []
        self.arguments = list(self.body.args)
        for argument in self.arguments:
            self.of[argument] = self._argument(argument)
        self.targets: dict[SSAValue, SSAValue] = {}
        for number, value in enumerate(returned):
            target = self._argument(value, f"result{number}")
            if isinstance(value.owner, te.ComputeOp | te.GatherOp) and value not in self.targets:
                self.targets[value] = target
            else:
                self.copies.append((value, target))
        self.outputs = len(returned)

    def _argument(self, value: SSAValue, default: str | None = None) -> BlockArgument:
        argument = self.body.insert_arg(buffer_type(value.type), len(self.body.args))
        argument.name_hint = value.name_hint or default
        return argument

    def of_result(self, result: SSAValue, op: te.ComputeOp | te.GatherOp) -> SSAValue:
        buffer = self.targets.get(result)
        if buffer is None:
            alloc = loop.AllocOp(result.name_hint or op.label.data, buffer_type(result.type))
            self.body.insert_op_before(alloc, op)
            buffer = alloc.buffer
        self.of[result] = buffer
        return buffer

    def finish(self) -> None:
        for argument in self.arguments:
            self.body.erase_arg(argument)
        types = [argument.type for argument in self.body.args]
        self.function.properties["function_type"] = FunctionType.from_lists(types, [])
        self.function.attributes["outputs"] = IntegerAttr(self.outputs, i64)

    def resolve_copies(self) -> list[tuple[SSAValue, SSAValue]]:
        """Source and target buffers of the results that no compute writes directly."""
        return [(self.of[source], target) for source, target in self.copies]


def _nest(op: te.ComputeOp, inputs: Sequence[SSAValue], targets: Sequence[SSAValue]) -> Operation:
    axes = op.axes.data
    spatial = AffineMap(len(axes), 0, AffineMap.identity(len(axes)).results[: len(op.spatial_axes)])
    writes = [te.AccessAttr(spatial)] * len(targets)
    origin = (op.label.data, AffineMap.identity(len(axes)))
    body = _loop_body(op.body)
    return nest(op.label.data, axes, inputs, op.reads.data, targets, writes, body, _loop_combination(op), origin)


def nest(
    label: str,
    axes: Sequence[te.AxisAttr],
    inputs: Sequence[SSAValue],
    reads: Sequence[te.AccessAttr],
    targets: Sequence[SSAValue],
    writes: Sequence[te.AccessAttr],
    body: Region,
    combination: Combination,
    origin: tuple[str, AffineMap] | None,
) -> Operation:
    """A block under one loop an axis, the first axis outermost."""

    def block(loops: list[SSAValue], bindings: AffineMap) -> Operation:
        return loop.BlockOp(
            label, axes, loops, bindings, inputs, reads, targets, writes, body, combination, origin=origin
        )

    return _under_loops(axes, block)


def _gather_nest(op: te.GatherOp, inputs: Sequence[SSAValue], target: SSAValue) -> Operation:
    """A loop.gather under one loop an axis."""
    axes, identity = op.axes.data, AffineMap.identity(len(op.axes))
    gathered = replace(op.gathered, table=inputs[-1], indices=inputs[:-1])

    def gather(loops: list[SSAValue], bindings: AffineMap) -> Operation:
        origin = (op.label.data, identity)
        write = te.AccessAttr(identity)
        return loop.GatherOp(op.label.data, axes, loops, bindings, gathered, target, write, origin=origin)

    return _under_loops(axes, gather)


def _under_loops(axes: Sequence[te.AxisAttr], make: Callable[[list[SSAValue], AffineMap], Operation]) -> Operation:
    """What `make` gives for loop variables and bindings, under one loop an axis, the first outermost."""
    bodies = [Block(arg_types=[IndexType()]) for _ in axes]
    for block, axis in zip(bodies, axes, strict=True):
        block.args[0].name_hint = axis.label
    op = make([block.args[0] for block in bodies], AffineMap.identity(len(axes)))
    for axis, block in reversed(list(zip(axes, bodies, strict=True))):
        block.add_op(op)
        op = loop.ForOp(axis.label, axis.size, Region(block))
    return op


def _loop_combination(op: te.ComputeOp) -> Combination:
    combination = op.combination
    region = _loop_body(combination.region) if combination.region is not None else None
    return Combination(combination.names, combination.identities, region)


def _loop_body(region: Region) -> Region:
    body = region.clone()
    for inner in list(body.block.ops):
        if isinstance(inner, te.IndexOp):
            index = loop.IndexOp(inner.label.data)
            body.block.insert_op_before(index, inner)
            inner.value.replace_all_uses_with(index.value)
            body.block.erase_op(inner)
        elif isinstance(inner, te.YieldOp):
            body.block.add_op(loop.YieldOp(*inner.values))
            body.block.erase_op(inner)
    return body


def _copy(label: str, source: SSAValue, target: SSAValue) -> Operation:
    assert isinstance(target.type, MemRefType)
    shape = target.type.get_shape()
    axes = [te.AxisAttr(f"i{d}", size) for d, size in enumerate(shape)]
    block = Block(arg_types=[scalar_type(target.type.get_element_type())])
    block.add_op(loop.YieldOp(block.args[0]))
    access = te.AccessAttr(AffineMap.identity(len(shape)))
    origin = (label, AffineMap.identity(len(shape)))
    return nest(label, axes, [source], [access], [target], [access], Region(block), Combination(), origin)
