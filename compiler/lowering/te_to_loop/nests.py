"""The loop program of a te function: a nest a compute, axes in their order, and a buffer for each tensor.

Results become trailing arguments; intermediates become loop.alloc, constants loop.constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from compiler.affine import linear as lin
from compiler.dialects import te
from compiler.dialects.access import AxisAttr
from compiler.dialects.checks import element_type, shape_of
from compiler.dialects.functions import constant_values, positions
from compiler.dialects.sizes import not_built
from compiler.program import body
from compiler.program.names import fresh
from compiler.program.read import computed, gathered
from compiler.program.tree import Access, Alloc, Block, Buffer, Literal, Loop, Node, Program, nested
from compiler.support.errors import LoweringError


def lowered(function: FuncOp) -> Program:
    """Return the loop program of a te function without calls; its fields `constants` and `values` are empty. Arguments
    are the inputs, then the results; each other tensor has a buffer."""
    return _TeLowering(function).program()


def program_of(function: FuncOp) -> Program:
    """Return the loop program of a te function without calls, with the names of its constant arguments, in the order of
    the arguments, and the values of those that have one."""
    program = lowered(function)
    names, elements = [buffer.name for buffer in program.arguments], constant_values(function)
    values = tuple((names[n], value) for n, value in elements.items())
    return replace(program, constants=tuple(names[n] for n in sorted(positions(function, "constants"))), values=values)


def arguments_of(function: FuncOp) -> tuple[Buffer, ...]:
    """Return the buffer arguments of a te function's loop program: its inputs, then its results."""
    lowering = _TeLowering(function)
    lowering.arguments()
    return tuple(lowering.buffers.values())


class _TeLowering:
    """The program of one function under construction: the buffer of each tensor, and the nests."""

    def __init__(self, function: FuncOp) -> None:
        fault = not_built(function)
        if fault:
            raise LoweringError(fault).at(function)
        self.function = function
        self.names: dict[SSAValue, str] = {}
        self.buffers: dict[str, Buffer] = {}
        self.nodes: list[Node] = []
        self.literals: list[Literal] = []
        self.labels: set[str] = set()
        self.loops = 0

    def program(self) -> Program:
        """Return the program: each op's nest, then copies of results that no nest writes or that are returned twice."""
        copies = self.arguments()
        arguments = tuple(self.buffers.values())
        for op in self.function.body.block.ops:
            if isinstance(op, te.ComputeOp):
                self._nest(computed(op, self.names), op.label.data, [self._target(v, op) for v in op.outputs])
            elif isinstance(op, te.ConstantOp):
                buffer = self._buffer(op.output, op.output.name_hint or "c")
                self.names[op.output] = buffer.name
                self.literals.append(Literal(buffer, op.value))
            elif isinstance(op, te.GatherOp):
                self._nest(gathered(op, self.names), op.label.data, [self._target(op.output, op)])
        for value, target in copies:
            self._copy(self.names[value], target)
        name, output_count = self.function.sym_name.data, len(self._returned)
        return Program(name, arguments, output_count, tuple(self.nodes), literals=tuple(self.literals))

    @property
    def _returned(self) -> Sequence[SSAValue]:
        terminator = self.function.body.block.last_op
        assert isinstance(terminator, ReturnOp)
        return terminator.operands

    def arguments(self) -> list[tuple[SSAValue, Buffer]]:
        """Create the buffers of the arguments and results; return the results to copy, each with its buffer."""
        for number, argument in enumerate(self.function.body.block.args):
            self.names[argument] = self._buffer(argument, argument.name_hint or f"arg{number}").name
        copies: list[tuple[SSAValue, Buffer]] = []
        for number, value in enumerate(self._returned):
            target = self._buffer(value, value.name_hint or f"result{number}")
            if isinstance(value.owner, te.ComputeOp | te.GatherOp) and value not in self.names:
                self.names[value] = target.name
            else:
                copies.append((value, target))
        return copies

    def _buffer(self, value: SSAValue, name: str) -> Buffer:
        buffer = Buffer(fresh(name, self.buffers), tuple(shape_of(value)), element_type(value))
        self.buffers[buffer.name] = buffer
        return buffer

    def _target(self, value: SSAValue, op: te.ComputeOp | te.GatherOp) -> str:
        """Return the name of the buffer that a tensor is written to; for an intermediate, append the allocation of a
        temporary."""
        if value not in self.names:
            buffer = self._buffer(value, value.name_hint or op.label.data)
            self.names[value] = buffer.name
            self.nodes.append(Alloc(buffer))
        return self.names[value]

    def _nest(self, block: Block, origin: str, targets: Sequence[str]) -> None:
        """Append a nest of one loop for each axis, the first outermost, with a block that writes `targets` at its
        spatial axes; `origin` is the te label that its writes compute."""
        label = fresh(block.label, self.labels)
        self.labels.add(label)
        axes = tuple(lin.variable(n) for n in range(len(block.axes)))
        numbers = range(self.loops, self.loops + len(axes))
        self.loops += len(axes)
        loops = [Loop(number, axis.label, axis.size, ()) for number, axis in zip(numbers, block.axes, strict=True)]
        bound_block = replace(
            block,
            label=label,
            bindings=tuple(map(lin.variable, numbers)),
            writes=tuple(Access(target, axes[: block.spatial]) for target in targets),
            origin=(origin, axes),
        )
        self.nodes.append(nested(loops, bound_block))

    def _copy(self, source: str, target: Buffer) -> None:
        axes = tuple(AxisAttr(f"i{d}", size) for d, size in enumerate(target.shape))
        index = tuple(lin.variable(d) for d in range(len(axes)))
        label = fresh(f"copy_{source}", self.labels)
        value = body.read(0, target.scalar)
        block = Block(label, axes, (), (), (Access(source, index),), (target.scalar,), (), (value,))
        self._nest(block, label, [target.name])
