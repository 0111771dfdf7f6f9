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
                make = _block if node.table is None else _gather
                block.add_op(make(node, buffers, loops))


def _block(node: Block, buffers: dict[str, SSAValue], loops: dict[int, SSAValue]) -> loop.BlockOp:
    used = [number for number in loops if number in node.loops]
    dims = {number: AffineExpr.dimension(n) for n, number in enumerate(used)}
    axes = {n: AffineExpr.dimension(n) for n in range(len(node.axes))}
    inner = body.to_block(node.body, node.read_types, node.axes)
    for argument, access in zip(inner.args, node.reads, strict=True):
        argument.name_hint = hint(access.buffer.lower())
    op = loop.BlockOp(
        node.label,
        node.axes,
        [loops[number] for number in used],
        AffineMap(len(used), 0, tuple(lin.to_affine(form, dims) for form in node.bindings)),
        [buffers[a.buffer] for a in node.reads],
        [_access(a, axes) for a in node.reads],
        [buffers[a.buffer] for a in node.writes],
        [_access(a, axes) for a in node.writes],
        Region(inner),
        to_combination(node.combiners),
        to_set(node.guard, dims, len(used)),
        node.accumulate,
        (node.origin[0], _map(node.origin[1], axes)) if node.origin else None,
    )
    op.attributes |= dict(node.attributes)
    return op


def _gather(node: Block, buffers: dict[str, SSAValue], loops: dict[int, SSAValue]) -> loop.GatherOp:
    assert node.table is not None
    used = [number for number in loops if number in node.loops]
    dims = {number: AffineExpr.dimension(n) for n, number in enumerate(used)}
    axes = {n: AffineExpr.dimension(n) for n in range(len(node.axes))}
    index = [AffineExpr.symbol(d) if isinstance(d, int) else lin.to_affine(d, axes) for d in node.table.index]
    gathered = Gathered(
        AffineMap(len(axes), len(node.reads), tuple(index)),
        node.table.otherwise,
        buffers[node.table.buffer],
        [buffers[a.buffer] for a in node.reads],
        [_access(a, axes) for a in node.reads],
    )
    op = loop.GatherOp(
        node.label,
        node.axes,
        [loops[number] for number in used],
        AffineMap(len(used), 0, tuple(lin.to_affine(form, dims) for form in node.bindings)),
        gathered,
        buffers[node.writes[0].buffer],
        _access(node.writes[0], axes),
        to_set(node.guard, dims, len(used)),
        (node.origin[0], _map(node.origin[1], axes)) if node.origin else None,
    )
    op.attributes |= dict(node.attributes)
    return op


def _map(forms: Sequence[Linear], axes: dict[int, AffineExpr]) -> AffineMap:
    return AffineMap(len(axes), 0, tuple(lin.to_affine(form, axes) for form in forms))


def _access(access: Access, axes: dict[int, AffineExpr]) -> AccessAttr:
    map = _map(access.index, axes)
    if not access.where or access.otherwise is None:
        return AccessAttr(map)
    return AccessAttr(map, to_set(access.where, axes, len(axes)), access.otherwise)
