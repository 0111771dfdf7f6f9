"""From a program to a loop function."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, FunctionType, IndexType, IntegerAttr, MemRefType, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block as IrBlock
from xdsl.ir import Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from compiler.affine import linear as lin
from compiler.affine.condition import to_set
from compiler.affine.linear import Linear
from compiler.dialects import loop
from compiler.dialects.access import AccessAttr
from compiler.dialects.gather import Gathered
from compiler.program import body
from compiler.program.combiner import to_combination
from compiler.program.tree import Access, Alloc, Block, Buffer, Loop, Node, Program


def write(program: Program) -> FuncOp:
    """A new loop function; equal programs give equal text."""
    types = [_memref(buffer) for buffer in program.arguments]
    block = IrBlock(arg_types=types)
    values: dict[str, SSAValue] = {}
    for buffer, argument in zip(program.arguments, block.args, strict=True):
        argument.name_hint = hint(buffer.name)
        values[buffer.name] = argument
    _fill(block, program.body, values, {})
    block.add_op(ReturnOp())
    function = FuncOp(program.name, FunctionType.from_lists(types, []), Region(block))
    function.attributes["outputs"] = IntegerAttr(program.outputs, i64)
    if program.constants:
        names = [buffer.name for buffer in program.arguments]
        function.attributes["constants"] = DenseArrayBase.from_list(i64, [names.index(n) for n in program.constants])
    return function


def hint(name: str) -> str | None:
    """A name as a value's in the text, where it can be one."""
    return name if SSAValue.is_valid_name(name) else None


def update(function: FuncOp, program: Program) -> None:
    """Replace the arguments, the body and the attribute `outputs` of a loop function by those of a program."""
    new = write(program)
    function.detach_region(function.body)
    function.add_region(new.detach_region(new.body))
    function.properties["function_type"] = new.function_type
    function.attributes |= new.attributes


def _memref(buffer: Buffer) -> MemRefType:
    return MemRefType(buffer.element, buffer.shape)


def _fill(block: IrBlock, nodes: Sequence[Node], buffers: dict[str, SSAValue], loops: dict[int, SSAValue]) -> None:
    for node in nodes:
        match node:
            case Alloc(buffer):
                alloc = loop.AllocOp(buffer.name, _memref(buffer), buffer.scope)
                buffers[buffer.name] = alloc.buffer
                block.add_op(alloc)
            case Loop():
                inner = IrBlock(arg_types=[IndexType()])
                inner.args[0].name_hint = hint(node.label)
                loops[node.number] = inner.args[0]
                _fill(inner, node.body, buffers, loops)
                op: Operation = loop.ForOp(node.label, node.extent, Region(inner), node.kind)
                op.attributes |= dict(node.attributes)
                block.add_op(op)
            case Block():
                block.add_op(_placed(node, buffers, loops))


def _placed(node: Block, buffers: dict[str, SSAValue], loops: dict[int, SSAValue]) -> Operation:
    """A block or gather at its place."""
    used = [number for number in loops if number in node.loops]
    dims = {number: AffineExpr.dimension(n) for n, number in enumerate(used)}
    axes = {n: AffineExpr.dimension(n) for n in range(len(node.axes))}
    place = loop.Place(
        node.label,
        node.axes,
        [loops[number] for number in used],
        AffineMap(len(used), 0, tuple(lin.to_affine(form, dims) for form in node.bindings)),
        to_set(node.guard, dims, len(used)),
        [buffers[access.buffer] for access in node.writes],
        [_access(access, axes) for access in node.writes],
        (node.origin[0], _map(node.origin[1], axes)) if node.origin else None,
    )
    inputs = [buffers[access.buffer] for access in node.reads]
    reads = [_access(access, axes) for access in node.reads]
    op: Operation
    if node.table is None:
        inner = body.to_block(node.body, node.read_types, node.axes)
        for argument, access in zip(inner.args, node.reads, strict=True):
            argument.name_hint = hint(access.buffer.lower())
        combination = to_combination(node.combiners)
        op = loop.BlockOp(place, inputs, reads, Region(inner), combination, node.accumulate)
    else:
        index = [AffineExpr.symbol(d) if isinstance(d, int) else lin.to_affine(d, axes) for d in node.table.index]
        map = AffineMap(len(axes), len(reads), tuple(index))
        op = loop.GatherOp(place, Gathered(map, node.table.otherwise, buffers[node.table.buffer], inputs, reads))
    op.attributes |= dict(node.attributes)
    return op


def _map(forms: Sequence[Linear], axes: dict[int, AffineExpr]) -> AffineMap:
    return AffineMap(len(axes), 0, tuple(lin.to_affine(form, axes) for form in forms))


def _access(access: Access, axes: dict[int, AffineExpr]) -> AccessAttr:
    map = _map(access.index, axes)
    if not access.where or access.otherwise is None:
        return AccessAttr(map)
    return AccessAttr(map, to_set(access.where, axes, len(axes)), access.otherwise)
