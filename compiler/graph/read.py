"""Read a te function as a graph."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from compiler.dialects import te
from compiler.dialects.checks import element_type
from compiler.dialects.functions import is_private
from compiler.dialects.sizes import not_built
from compiler.graph.tree import Call, Compute, Constant, Graph, Node
from compiler.program.names import Names
from compiler.program.read import computed, gathered
from compiler.program.tree import Buffer
from compiler.support.errors import InputError

_PROPERTIES = ("sym_name", "sym_visibility", "function_type")


def read(function: FuncOp) -> Graph:
    """Read the graph of a te function. Inputs and constants are named by their hints, else `arg0` and so on or by the
    constant's own name; the result of a compute by its label, of a call by the callee, several results `label.0`,
    `label.1`. Equal names get a number.

    Raises InputError for a function with sizes or of other than one block, a value that is no tensor, and an op that is
    neither of te nor a call.

    >>> A = te.placeholder((4,), name="A")
    >>> function = strata.dialects.find_function(te.function("f", [A], te.nn.exp(A, name="B")).module)
    >>> strata.graph.read(function).results
    ('B',)
    """
    return _Reader(function).graph()


class _Reader:
    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.names: dict[SSAValue, str] = {}
        self.fresh = Names()

    def graph(self) -> Graph:
        function = self.function
        name = function.sym_name.data
        if len(function.body.blocks) != 1:
            raise InputError(f"@{name} has {len(function.body.blocks)} blocks, expected one")
        fault = not_built(function)
        if fault:
            raise InputError(fault)
        block = function.body.block
        inputs = tuple(self._value(v, v.name_hint or f"arg{n}") for n, v in enumerate(block.args))
        nodes = tuple(self._node(op) for op in block.ops if not isinstance(op, ReturnOp))
        assert block.last_op is not None
        result_names = tuple(self.names[value] for value in block.last_op.operands)
        attributes = {k: v for k, v in function.attributes.items() if k not in _PROPERTIES}
        return Graph(name, inputs, nodes, result_names, is_private(function), attributes, function.location)

    def _value(self, value: SSAValue, stem: str) -> Buffer:
        if not isinstance(value.type, TensorType):
            raise InputError(f"@{self.function.sym_name.data}: '{stem}' is of type {value.type}, expected a tensor")
        name = self.names[value] = self.fresh.fresh(stem)
        return Buffer(name, tuple(value.type.get_shape()), element_type(value))

    def _node(self, op: Operation) -> Node:
        match op:
            case te.ComputeOp() | te.GatherOp():
                block = computed(op, self.names) if isinstance(op, te.ComputeOp) else gathered(op, self.names)
                block = replace(block, attributes=tuple(sorted(op.attributes.items())))
                return Compute(block, self._results(op, op.label.data))
            case te.ConstantOp():
                return Constant(op.value, (self._value(op.output, op.output.name_hint or op.value.data.name),))
            case CallOp():
                operands = tuple(self.names[value] for value in op.arguments)
                results = self._results(op, op.callee.string_value())
                return Call(op.callee.string_value(), operands, results, op.location)
        raise InputError(f"@{self.function.sym_name.data}: '{op.name}' is not an op of te functions")

    def _results(self, op: Operation, stem: str) -> tuple[Buffer, ...]:
        """The results of an op, named `stem`, or `stem.0`, `stem.1`, ... if several; not by hints, which printing
        numbers."""
        many = len(op.results) > 1
        return tuple(self._value(v, f"{stem}.{n}" if many else stem) for n, v in enumerate(op.results))
