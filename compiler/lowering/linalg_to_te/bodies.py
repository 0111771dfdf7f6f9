"""Scalar bodies: the body of a te.compute under construction."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from compiler.dialects import te
from compiler.dialects.access import AccessAttr, AxisAttr
from compiler.dialects.checks import element_type
from compiler.dialects.combination import Combination
from compiler.dialects.upstream.arith import kind_of
from compiler.lowering.linalg_to_te.values import Literal, TeValues, refusal
from compiler.types.elements import scalar_type

SCALAR_DIALECTS = ("arith", "math")


class ComputeBody:
    """The body of a te.compute over `axes`, under construction: its tensors read, their accesses, and its block.

    source: the op that is converted. arguments: for each argument of that op's body, the operand and its map over the
    axes; it is read at its first use.
    """

    def __init__(self, values: TeValues, axes: Sequence[AxisAttr], source: Operation) -> None:
        self.values = values
        self.axes = axes
        self.source = source
        self.block = Block()
        self.inputs: list[SSAValue] = []
        self.reads: list[AccessAttr] = []
        self.arguments: dict[SSAValue, tuple[SSAValue, AffineMap]] = {}
        self._literals: dict[Attribute, SSAValue] = {}

    def like(self, axes: Sequence[AxisAttr]) -> ComputeBody:
        """Return an empty body over other axes that shares this body's arguments."""
        body = ComputeBody(self.values, axes, self.source)
        body.arguments = self.arguments
        return body

    def read(self, value: SSAValue, map: AffineMap) -> SSAValue:
        """Return the scalar of a tensor, or of a scalar for a map without results, at an index map over the axes; a
        constant for a known scalar or splat. Raises LoweringError for a value without a te value."""
        if value in self.values.literals:
            return self.literal(self.values.literals[value])
        return self.read_te(self.values.tensor(value, self.source), AccessAttr(map))

    def read_te(self, tensor: SSAValue, access: AccessAttr) -> SSAValue:
        """Return the scalar of a te value at an access: a block argument, which equal reads share; a constant for a
        splat read without a condition."""
        if tensor in self.values.splats and access.condition is None:
            return self.literal(self.values.splats[tensor])
        for n, known in enumerate(zip(self.inputs, self.reads, strict=True)):
            if known == (tensor, access):
                return self.block.args[n]
        self.inputs.append(tensor)
        self.reads.append(access)
        argument = self.block.insert_arg(scalar_type(element_type(tensor)), len(self.block.args))
        argument.name_hint = tensor.name_hint.lower() if tensor.name_hint else None
        return argument

    def literal(self, value: Literal) -> SSAValue:
        """Return the constant of a literal; equal literals share one op."""
        if value not in self._literals:
            self._literals[value] = self.add(arith.ConstantOp(value))
        return self._literals[value]

    def add(self, op: Operation) -> SSAValue:
        """Append an op, and return its first result."""
        self.block.add_op(op)
        return op.results[0]

    def copied(self, op: Operation, operands: Sequence[SSAValue]) -> Operation:
        """Append a copy of `op` on scalars, without fastmath flags, since the policy decides; return the new op."""
        properties = dict(op.properties)
        if "fastmath" in properties:
            properties["fastmath"] = FastMathFlagsAttr("none")
        types = [_scalar(result.type) for result in op.results]
        new = kind_of(op).create(operands=operands, result_types=types, properties=properties)
        self.block.add_op(new)
        return new

    def value(self, value: SSAValue, values: dict[SSAValue, SSAValue]) -> SSAValue:
        """Return the te scalar of a value of the source op's body, or of a scalar defined outside. values: the scalars
        so far, by value; an absent one is read and added. Raises LoweringError for a value without a te value."""
        if value not in values:
            values[value] = self.read(*self.arguments.get(value, (value, AffineMap(len(self.axes), 0, ()))))
        return values[value]

    def compute(self, label: str, yields: Sequence[SSAValue], combination: Combination | None = None) -> te.ComputeOp:
        """Yield the scalars, which ends the body, and return the te.compute `label` of one result for each; a reduction
        by `combination` unless None. The caller adds it to the function."""
        self.block.add_op(te.YieldOp(*yields))
        shape = [axis.size for axis in self.axes if not axis.is_reduce]
        types = [TensorType(value.type, shape) for value in yields]
        region = Region(self.block)
        return te.ComputeOp(label, self.axes, self.inputs, self.reads, types, region, combination)


def is_scalar(op: Operation) -> bool:
    """Whether an op is of arith or math without regions, so that a te body may contain it."""
    return op.name.partition(".")[0] in SCALAR_DIALECTS and not op.regions


def check_scalar_op(op: Operation) -> None:
    """Raise LoweringError for an op that is no scalar op of arith or math, or is on signed or unsigned integers."""
    if not is_scalar(op):
        raise refusal(op, "is no op on scalars of arith or math, so no te body has it")
    for type in (_scalar(value.type) for value in (*op.operands, *op.results)):
        if isinstance(type, IntegerType) and type.signedness.data is not Signedness.SIGNLESS:
            raise refusal(op, f"is on elements of type {type}: MLIR computes with signless integers only")


def _scalar(type: Attribute) -> Attribute:
    return type.get_element_type() if isinstance(type, TensorType) else type
