"""Translation of a program to a loop function."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

from xdsl.dialects.builtin import FloatAttr, FunctionType, IntegerAttr, MemRefType, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir import Block as IrBlock
from xdsl.ir.affine import AffineExpr, AffineMap

from compiler.affine import linear as lin
from compiler.affine.condition import Condition, to_set
from compiler.affine.linear import Linear
from compiler.dialects import loop
from compiler.dialects.access import AccessAttr
from compiler.dialects.dense import DenseAttr
from compiler.dialects.functions import state_constants
from compiler.dialects.gather import Gathered
from compiler.program import body
from compiler.program.combiner import to_combination
from compiler.program.tree import Alloc, Block, Loop, Node, Program
from compiler.support.origins import fused


def write(program: Program) -> FuncOp:
    """Translate a program to a new loop function. Equal programs print as equal text."""
    types = [memref_type(buffer.element, buffer.shape) for buffer in program.arguments]
    block = IrBlock(arg_types=types)
    values: dict[str, SSAValue] = {}
    for buffer, argument in zip(program.arguments, block.args, strict=True):
        argument.name_hint = hint(buffer.name)
        values[buffer.name] = argument
    for literal in program.literals:
        constant = loop.ConstantOp(literal.buffer.name, literal.value)
        values[literal.buffer.name] = constant.buffer
        block.add_op(constant)
    _fill(block, program.body, values, {})
    _locate_allocs(block, program)
    location = fused(op.location for op in block.ops)
    block.add_op(end := ReturnOp())
    function = FuncOp(program.name, FunctionType.from_lists(types, []), Region(block))
    function.location = end.location = location
    function.attributes["outputs"] = IntegerAttr(program.outputs, i64)
    state_constants(function, constant_arguments(program))
    return function


def _locate_allocs(block: IrBlock, program: Program) -> None:
    """Set the location of each allocation and literal to those of the blocks that write or read the buffer."""
    users = {**program.readers, **program.writers}
    for op in block.walk():
        if isinstance(op, loop.AllocOp | loop.ConstantOp):
            op.location = fused(b.location for b in users.get(op.label.data, ()))


def constant_arguments(program: Program) -> dict[int, DenseAttr | None]:
    """Map the positions of constant arguments to their elements, or to None if these are unknown."""
    elements = dict(program.values)
    return {n: elements.get(b.name) for n, b in enumerate(program.arguments) if b.name in program.constants}


def hint(name: str) -> str | None:
    """The name hint of an SSA value; None for a name that xDSL does not accept."""
    return name if SSAValue.is_valid_name(name) else None


def update(function: FuncOp, program: Program) -> None:
    """Replace a loop function's arguments and body, and its attributes for outputs and constants, by a program's."""
    new = write(program)
    replace_body(function, new.detach_region(new.body))
    function.attributes |= new.attributes


def replace_body(function: FuncOp, body: Region) -> None:
    """Replace a function's body by one block, and its type by one without results. Erase the former body, whose
    reference cycles would keep it in memory."""
    function.detach_region(function.body).erase()
    function.add_region(body)
    function.properties["function_type"] = FunctionType.from_lists(body.block.arg_types, [])


_dimension = cache(AffineExpr.dimension)


@lru_cache(maxsize=1024)
def memref_type(element: Attribute, shape: tuple[int, ...]) -> MemRefType:
    """The memref type of a buffer; cached, since xDSL takes long to make one."""
    return MemRefType(element, shape)


def _fill(block: IrBlock, nodes: Sequence[Node], buffers: dict[str, SSAValue], loops: dict[int, SSAValue]) -> None:
    for node in nodes:
        match node:
            case Alloc(buffer):
                alloc = loop.AllocOp(buffer.name, memref_type(buffer.element, buffer.shape), buffer.scope)
                buffers[buffer.name] = alloc.buffer
                block.add_op(alloc)
            case Loop():
                inner = IrBlock(arg_types=[body.INDEX])
                inner.args[0].name_hint = hint(node.label)
                loops[node.number] = inner.args[0]
                _fill(inner, node.body, buffers, loops)
                op: Operation = loop.ForOp(node.label, node.extent, Region(inner), node.kind)
                op.attributes |= dict(node.attributes)
                op.location = fused(inner_op.location for inner_op in inner.ops)
                block.add_op(op)
            case Block():
                block.add_op(_placed(node, buffers, loops))


def _placed(node: Block, buffers: dict[str, SSAValue], loops: dict[int, SSAValue]) -> Operation:
    """Build the op of a block or gather; `buffers` are the values of buffers by name, `loops` those of loops by
    number."""
    used = [number for number in loops if number in node.loops]
    dims = {number: _dimension(n) for n, number in enumerate(used)}
    axes = {n: _dimension(n) for n in range(len(node.axes))}
    header = loop.Header(
        node.label,
        node.axes,
        [loops[number] for number in used],
        AffineMap(len(used), 0, tuple(lin.to_affine(form, dims) for form in node.bindings)),
        to_set(node.guard, dims, len(used)),
        [buffers[access.buffer] for access in node.writes],
        [access_attribute(len(axes), a.index, a.where, a.otherwise) for a in node.writes],
        (node.origin[0], _map(node.origin[1], axes)) if node.origin else None,
    )
    inputs = [buffers[access.buffer] for access in node.reads]
    reads = [access_attribute(len(axes), a.index, a.where, a.otherwise) for a in node.reads]
    op: Operation
    if node.table is None:
        inner = body.to_block(node.body, node.read_types, node.axes)
        for argument, access in zip(inner.args, node.reads, strict=True):
            argument.name_hint = hint(access.buffer.lower())
        combination = to_combination(node.combiners)
        op = loop.BlockOp(header, inputs, reads, Region(inner), combination, node.accumulate)
    else:
        index = [AffineExpr.symbol(d) if isinstance(d, int) else lin.to_affine(d, axes) for d in node.table.index]
        map = AffineMap(len(axes), len(reads), tuple(index))
        op = loop.GatherOp(header, Gathered(map, node.table.otherwise, buffers[node.table.buffer], inputs, reads))
    op.attributes |= dict(node.attributes)
    for inner_op in op.walk():
        inner_op.location = node.location
    return op


def _map(forms: Sequence[Linear], axes: dict[int, AffineExpr]) -> AffineMap:
    return AffineMap(len(axes), 0, tuple(lin.to_affine(form, axes) for form in forms))


@lru_cache(maxsize=4096)
def access_attribute(
    count: int, index: tuple[Linear, ...], where: tuple[Condition, ...], otherwise: FloatAttr | IntegerAttr | None
) -> AccessAttr:
    """The attribute of an access by a block with `count` axes; without a condition, or without `otherwise`, an
    unconditional one."""
    axes = {n: _dimension(n) for n in range(count)}
    if not where or otherwise is None:
        return AccessAttr(_map(index, axes))
    return AccessAttr(_map(index, axes), to_set(where, axes, count), otherwise)
