"""Write a graph as a te function."""

from __future__ import annotations

from xdsl.dialects.builtin import FunctionType, StringAttr, TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir import Block as IrBlock
from xdsl.ir.affine import AffineExpr, AffineMap

from compiler.affine import linear as lin
from compiler.dialects import te
from compiler.dialects.gather import Gathered
from compiler.graph.tree import Call, Compute, Constant, Graph, Node
from compiler.program import body
from compiler.program.combiner import to_combination
from compiler.program.tree import Block, Buffer
from compiler.program.write import access_attribute, hint


def write(graph: Graph) -> FuncOp:
    """Write a graph as a new te function; equal graphs are written as equal IR text."""
    types = [_type(value) for value in graph.inputs]
    block = IrBlock(arg_types=types)
    values: dict[str, SSAValue] = {}
    for value, argument in zip(graph.inputs, block.args, strict=True):
        _name(value, argument, values)
    for node in graph.nodes:
        op = _operation(node, values)
        block.add_op(op)
        for value, output in zip(node.results, op.results, strict=True):
            _name(value, output, values)
    returned = [values[name] for name in graph.results]
    block.add_op(end := ReturnOp(*returned))
    end.location = graph.location
    type = FunctionType.from_lists(types, [value.type for value in returned])
    function = FuncOp(graph.name, type, Region(block), StringAttr("private") if graph.private else None)
    function.attributes |= dict(graph.attributes)
    function.location = graph.location
    return function


def _type(value: Buffer) -> Attribute:
    return TensorType(value.element, value.shape)


def _name(value: Buffer, ssa: SSAValue, values: dict[str, SSAValue]) -> None:
    ssa.name_hint = hint(value.name)
    values[value.name] = ssa


def _operation(node: Node, values: dict[str, SSAValue]) -> Operation:
    types = [_type(value) for value in node.results]
    match node:
        case Compute():
            return _compute(node.block, values, types)
        case Constant():
            return te.ConstantOp(node.value)
        case Call():
            call = CallOp(node.callee, [values[name] for name in node.operands], types)
            call.location = node.location
            return call


def _compute(block: Block, values: dict[str, SSAValue], types: list[Attribute]) -> Operation:
    count = len(block.axes)
    inputs = [values[access.buffer] for access in block.reads]
    reads = [access_attribute(count, a.index, a.where, a.otherwise) for a in block.reads]
    op: Operation
    if block.table is None:
        inner = body.to_block(block.body, block.read_types, block.axes, te.IndexOp, te.YieldOp)
        for argument, access in zip(inner.args, block.reads, strict=True):
            argument.name_hint = hint(access.buffer.lower())
        combination = to_combination(block.combiners, te.YieldOp)
        op = te.ComputeOp(block.label, block.axes, inputs, reads, types, Region(inner), combination)
    else:
        dims = {n: AffineExpr.dimension(n) for n in range(count)}
        index = [AffineExpr.symbol(d) if isinstance(d, int) else lin.to_affine(d, dims) for d in block.table.index]
        map = AffineMap(count, len(reads), tuple(index))
        gathered = Gathered(map, block.table.otherwise, values[block.table.buffer], inputs, reads)
        op = te.GatherOp(block.label, block.axes, gathered, types[0])
    op.attributes |= dict(block.attributes)
    for inner_op in op.walk():
        inner_op.location = block.location
    return op
