"""From scalar expressions to the body of a te.compute; equal reads become one input, shared nodes one op."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap, AffineSet

from compiler.dialects import te
from compiler.dialects.vector_arith import CmpfOp, CmpiOp, SelectOp
from compiler.te.expr import Apply, AxisValue, Const, Expr, Holds, Read, is_float
from compiler.te.index import Axis, Binary, Fixed, Index
from compiler.te.tensor import Compute, Tensor, reads_of

Types = Mapping[str, Any]
_WIDTHS = {"i1": 1, "i32": 32, "i64": 64, "f32": 32, "f64": 64}


def emit_compute(op: Compute, label: str, value_of: Callable[[Tensor], SSAValue], types: Types) -> te.ComputeOp:
    """The te.compute of a compute, on the values of the tensors that it reads."""
    body = _Body(op, types)
    inputs: list[SSAValue] = []
    accesses: list[te.AccessAttr] = []
    for expr in (e for root in op.bodies for e in reads_of(root)):
        if isinstance(expr, Read) and expr not in body.values:
            value, access = value_of(expr.tensor), body.access(expr)
            known = [i for i, v in enumerate(inputs) if v is value and accesses[i] == access]
            if not known:
                inputs.append(value)
                accesses.append(access)
                argument = body.block.insert_arg(types[expr.dtype], len(body.block.args))
                argument.name_hint = expr.tensor.name.lower()
            body.values[expr] = body.block.args[known[0] if known else -1]
    yielded = [body.emit(root) for root in op.bodies]
    body.block.add_op(te.YieldOp(*yielded))
    shape = [axis.extent for axis in op.spatial]
    results = [TensorType(value.type, shape) for value in yielded]
    axes = [te.AxisAttr(axis.name, axis.extent, axis.reduce) for axis in op.axes]
    return te.ComputeOp(label, axes, inputs, accesses, results, Region(body.block), op.combiners)


@dataclass
class _Body:
    """The block under construction, and the values of expressions already in it."""

    op: Compute
    types: Types
    block: Block = field(default_factory=Block)
    values: dict[Expr, SSAValue] = field(default_factory=dict)
    constants: dict[Attribute, SSAValue] = field(default_factory=dict)
    indices: dict[str, SSAValue] = field(default_factory=dict)

    @property
    def order(self) -> dict[Axis, int]:
        return {axis: i for i, axis in enumerate(self.op.axes)}

    def access(self, read: Read) -> te.AccessAttr:
        """How a read indexes its tensor."""
        order = self.order
        map = AffineMap(len(order), 0, tuple(index.affine(order) for index in read.indices))
        if read.condition is None:
            return te.AccessAttr(map)
        condition = AffineSet(len(order), 0, read.condition.affine(order))
        assert read.otherwise is not None
        return te.AccessAttr(map, condition, self._attribute(read.otherwise, read.dtype))

    def emit(self, root: Expr) -> SSAValue:
        """The value of an expression."""
        for expr in reads_of(root):
            if expr not in self.values:
                self.values[expr] = self._value(expr)
        return self.values[root]

    def _value(self, expr: Expr) -> SSAValue:
        match expr:
            case Const():
                return self._constant(self._attribute(expr.value, expr.dtype))
            case AxisValue():
                return self._add(arith.IndexCastOp(self._index(expr.index), self.types["i64"]))
            case Holds():
                return self._holds(expr)
            case Apply():
                return self._apply(expr, [self.values[e] for e in expr.arguments])
        raise AssertionError(f"no body form for {expr}")

    def _add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def _constant(self, value: FloatAttr | IntegerAttr) -> SSAValue:
        if value not in self.constants:
            self.constants[value] = self._add(arith.ConstantOp(value))
        return self.constants[value]

    def _attribute(self, value: float | int | bool, dtype: str) -> FloatAttr | IntegerAttr:
        if is_float(dtype):
            return FloatAttr(float(value), self.types[dtype])
        return IntegerAttr(int(value), self.types[dtype])

    def _index(self, index: Index) -> SSAValue:
        match index:
            case Axis():
                index.affine(self.order)
                if index.name not in self.indices:
                    self.indices[index.name] = self._add(te.IndexOp(index.name))
                return self.indices[index.name]
            case Fixed():
                return self._constant(IntegerAttr(index.value, IndexType()))
            case Binary():
                lhs, rhs = self._index(index.lhs), self._index(index.rhs)
                return self._integer(index.operator, lhs, rhs)
        raise AssertionError(f"no body form for {index}")

    def _integer(self, operator: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        match operator:
            case "+":
                return self._add(arith.AddiOp(lhs, rhs))
            case "-":
                return self._add(arith.SubiOp(lhs, rhs))
            case "*":
                return self._add(arith.MuliOp(lhs, rhs))
        quotient = self._add(arith.FloorDivSIOp(lhs, rhs))
        if operator == "//":
            return quotient
        return self._add(arith.SubiOp(lhs, self._add(arith.MuliOp(quotient, rhs))))

    def _holds(self, expr: Holds) -> SSAValue:
        zero = self._constant(IntegerAttr(0, IndexType()))
        truths = [
            self._add(CmpiOp(self._index(form), zero, "eq" if equal else "sge"))
            for form, equal in expr.condition.constraints
        ]
        result = truths[0]
        for truth in truths[1:]:
            result = self._add(arith.AndIOp(result, truth))
        return result

    def _apply(self, expr: Apply, operands: list[SSAValue]) -> SSAValue:
        source = expr.arguments[-1].dtype
        if expr.name == "cast":
            return self._cast(operands[0], source, expr.dtype)
        if expr.name == "select":
            return self._add(SelectOp(*operands))
        if expr.name in _FLOAT_PREDICATES:
            if is_float(source):
                return self._add(CmpfOp(operands[0], operands[1], _FLOAT_PREDICATES[expr.name]))
            return self._add(CmpiOp(operands[0], operands[1], _INT_PREDICATES[expr.name]))
        if not is_float(source) and expr.name in ("floordiv", "mod"):
            return self._integer("//" if expr.name == "floordiv" else "%", *operands)
        if not is_float(source) and expr.name == "neg":
            zero = self._constant(self._attribute(0, source))
            return self._add(arith.SubiOp(zero, operands[0]))
        table = _FLOAT_OPS if is_float(source) else _INT_OPS
        return self._add(table[expr.name](*operands))

    def _cast(self, value: SSAValue, source: str, target: str) -> SSAValue:
        type = self.types[target]
        if target == "i1":
            zero = self._constant(self._attribute(0, source))
            compare = CmpfOp(value, zero, "une") if is_float(source) else CmpiOp(value, zero, "ne")
            return self._add(compare)
        if is_float(source) and is_float(target):
            widens = _WIDTHS[target] > _WIDTHS[source]
            return self._add((arith.ExtFOp if widens else arith.TruncFOp)(value, type))
        if is_float(source):
            return self._add(arith.FPToSIOp(value, type))
        if is_float(target):
            return self._add((arith.UIToFPOp if source == "i1" else arith.SIToFPOp)(value, type))
        if source == "i1":
            return self._add(arith.ExtUIOp(value, type))
        widens = _WIDTHS[target] > _WIDTHS[source]
        return self._add((arith.ExtSIOp if widens else arith.TruncIOp)(value, type))


_FLOAT_PREDICATES = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_INT_PREDICATES = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_FLOAT_OPS: dict[str, Callable[..., Operation]] = {
    "add": arith.AddfOp,
    "sub": arith.SubfOp,
    "mul": arith.MulfOp,
    "div": arith.DivfOp,
    "maximum": arith.MaximumfOp,
    "minimum": arith.MinimumfOp,
    "neg": arith.NegfOp,
    "pow": math.PowFOp,
    "exp": math.ExpOp,
    "log": math.LogOp,
    "sqrt": math.SqrtOp,
    "rsqrt": math.RsqrtOp,
    "tanh": math.TanhOp,
    "erf": math.ErfOp,
    "sin": math.SinOp,
    "cos": math.CosOp,
    "floor": math.FloorOp,
    "abs": math.AbsFOp,
}
_INT_OPS: dict[str, Callable[..., Operation]] = {
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "maximum": arith.MaxSIOp,
    "minimum": arith.MinSIOp,
    "abs": math.AbsIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
    "xor": arith.XOrIOp,
}
