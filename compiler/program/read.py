"""Translation of a loop function to a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block as IrBlock
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap, AffineSymExpr

from compiler.affine import linear as lin
from compiler.affine.condition import conditions
from compiler.affine.linear import Linear
from compiler.dialects import loop, te
from compiler.dialects.access import AccessAttr, names_of
from compiler.dialects.checks import element_type
from compiler.dialects.functions import constant_values, outputs, positions
from compiler.dialects.gather import scalar_of
from compiler.program import body, combiner
from compiler.program.names import Names
from compiler.program.tree import Access, Alloc, Block, Buffer, Literal, Loop, Node, Program, Table
from compiler.support.errors import InputError


def read(function: FuncOp) -> Program:
    """Translate a loop function to a program. A label of a block, or name of a buffer, that occurs twice gets a number.

    Raises InputError for a declaration, an op that is not of the loop level, and an argument that is not a memref.

    >>> A = te.placeholder((4, 8), name="A")
    >>> module = lower(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> print(strata.schedule.outline(strata.program.read(strata.dialects.find_function(module))))
    i0 = 4
      i1 = 8
        B = f(A)
    """
    return _Reader(function).program()


class _Reader:
    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.names: dict[SSAValue, str] = {}
        self.buffers, self.labels = Names(), Names()
        self.loops: dict[SSAValue, int] = {}
        self.ranges: dict[int, lin.Range] = {}

    def program(self) -> Program:
        if not self.function.body.blocks:
            raise InputError(f"@{self.function.sym_name.data} has no body")
        block = self.function.body.block
        arguments = []
        for number, value in enumerate(block.args):
            if not isinstance(value.type, MemRefType):
                raise InputError(
                    f"argument {number} of @{self.function.sym_name.data} is no memref: not a loop function"
                )
            arguments.append(self._buffer(value, value.name_hint or f"arg{number}", "global"))
        literals = tuple(self._literal(op) for op in block.ops if isinstance(op, loop.ConstantOp))
        nodes = self._nodes(block)
        constants = tuple(arguments[n].name for n in sorted(positions(self.function, "constants")))
        values = tuple((arguments[n].name, value) for n, value in constant_values(self.function).items())
        name, output_count = self.function.sym_name.data, outputs(self.function)
        return Program(name, tuple(arguments), output_count, nodes, constants, literals, values)

    def _literal(self, op: loop.ConstantOp) -> Literal:
        return Literal(self._buffer(op.buffer, op.label.data, "global"), op.value)

    def _buffer(self, value: SSAValue, name: str, scope: str) -> Buffer:
        name = self.names[value] = self.buffers.fresh(name)
        assert isinstance(value.type, MemRefType)
        return Buffer(name, value.type.get_shape(), element_type(value), scope)

    def _nodes(self, block: IrBlock) -> tuple[Node, ...]:
        return tuple(self._node(op) for op in block.ops if not isinstance(op, ReturnOp | loop.ConstantOp))

    def _node(self, op: Operation) -> Node:
        match op:
            case loop.AllocOp():
                return Alloc(self._buffer(op.buffer, op.label.data, op.scope.data))
            case loop.ForOp():
                number = self.loops[op.iv] = len(self.loops)
                self.ranges[number] = (0, op.size - 1)
                attributes = tuple(sorted(op.attributes.items()))
                nodes = self._nodes(op.body.block)
                return Loop(number, op.label.data, op.size, nodes, op.loop_kind, attributes)
            case loop.BlockOp():
                return self._placed(op, computed(op, self.names))
            case loop.GatherOp():
                return self._placed(op, gathered(op, self.names))
        if isinstance(op, CallOp):
            name = self.function.sym_name.data
            raise InputError(f"@{name} calls others, each with loops of its own: name one of them")
        raise InputError(f"'{op.name}' is not an op of the loop level")

    def _placed(self, op: loop.Placed, block: Block) -> Block:
        """Add the bindings, guard, targets and origin of an op to its computation."""
        label = self.labels.fresh(block.label)
        loops = [lin.variable(self.loops[value]) for value in op.loops]
        origin = None
        if op.origin_label is not None and op.origin_map is not None:
            origin = (op.origin_label.data, _forms(op.origin_map.data, block.axis_ranges))
        return replace(
            block,
            label=label,
            bindings=tuple(lin.linear(e, loops, self.ranges) for e in op.bindings.data.results),
            guard=tuple(conditions(op.guard, loops, self.ranges)) if op.guard is not None else (),
            writes=_accesses(op.targets, op.writes, self.names, block.axis_ranges),
            origin=origin,
            attributes=tuple(sorted(op.attributes.items())),
        )


def computed(op: loop.BlockOp | te.ComputeOp, names: Mapping[SSAValue, str]) -> Block:
    """Translate a block or te.compute, without bindings, guard and writes; `names` maps its inputs to buffer names."""
    return Block(
        op.label.data,
        tuple(op.axes),
        bindings=(),
        guard=(),
        reads=_accesses(op.inputs, op.reads, names, _axis_ranges(op)),
        read_types=tuple(map(scalar_of, op.inputs)),
        writes=(),
        body=body.from_block(op.body.block, names_of(op.axes.data)),
        combiners=combiner.from_op(op),
        accumulate=isinstance(op, loop.BlockOp) and op.accumulate is not None,
        location=op.location,
    )


def gathered(op: loop.GatherOp | te.GatherOp, names: Mapping[SSAValue, str]) -> Block:
    """Translate a gather, without bindings, guard and writes; `names` maps its operands to buffer names."""
    ranges = _axis_ranges(op)
    dims = lin.variables(len(ranges))
    index = tuple(
        e.position if isinstance(e, AffineSymExpr) else lin.linear(e, dims, ranges) for e in op.table_map.data.results
    )
    return Block(
        op.label.data,
        tuple(op.axes),
        bindings=(),
        guard=(),
        reads=_accesses(op.indices, op.reads, names, ranges),
        read_types=tuple(map(scalar_of, op.indices)),
        writes=(),
        body=(body.read(len(op.reads), scalar_of(op.table)),),
        table=Table(names[op.table], index, op.outside),
        location=op.location,
    )


def _accesses(
    values: Sequence[SSAValue], accesses: Iterable[AccessAttr], names: Mapping[SSAValue, str], ranges: lin.Ranges
) -> tuple[Access, ...]:
    return tuple(_access(names[v], access, ranges) for v, access in zip(values, accesses, strict=True))


def _access(name: str, access: AccessAttr, ranges: lin.Ranges) -> Access:
    index = _forms(access.affine_map, ranges)
    if access.condition is None:
        return Access(name, index)
    dims = lin.variables(len(ranges))
    return Access(name, index, tuple(conditions(access.condition, dims, ranges)), access.otherwise)


def _axis_ranges(op: loop.Placed | te.ComputeOp | te.GatherOp) -> dict[int, lin.Range]:
    return lin.box([axis.size for axis in op.axes])


def _forms(map: AffineMap, ranges: lin.Ranges) -> tuple[Linear, ...]:
    dims = lin.variables(len(ranges))
    return tuple(lin.linear(e, dims, ranges) for e in map.results)
