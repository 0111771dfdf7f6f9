"""Lower scalar expressions to the body of a te.compute; equal reads become one input, shared nodes one op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from compiler.affine.sized import size_map, size_set
from compiler.dialects import te
from compiler.dialects.access import axis_attribute
from compiler.dialects.combination import Combination
from compiler.dialects.gather import Gathered
from compiler.dialects.mathematics import ELEMENTARY
from compiler.dialects.sizes import SizesAttr
from compiler.dialects.upstream.arith import CmpfOp, CmpiOp, SelectOp
from compiler.dialects.upstream.casts import (
    ExtFOp,
    ExtSIOp,
    ExtUIOp,
    FPToSIOp,
    FPToUIOp,
    IndexCastOp,
    SIToFPOp,
    TruncFOp,
    TruncIOp,
    UIToFPOp,
)
from compiler.program.names import spelled
from compiler.te.expr import Apply, AxisValue, Const, Expr, Holds
from compiler.te.index import Axis, Binary, Fixed, Index, Size, numbered
from compiler.te.tensor import Compute, Gather, Read, Tensor, nodes_of
from compiler.types.dtypes import SCALARS, TYPES, has_sign, is_float, limits, width
from compiler.types.rounding import rounded


@dataclass(frozen=True)
class SizeNumbers:
    """The sizes of a function by number, and their attribute; None without sizes."""

    sizes: Sequence[Size] = ()
    attribute: SizesAttr | None = None

    def below(self, axis: Axis) -> AffineMap | None:
        """The extent of an axis as a map of the sizes; None for a constant one."""
        if axis.below is None:
            return None
        return AffineMap(0, len(self.sizes), (axis.below.affine(numbered((), self.sizes)),))


NO_SIZES = SizeNumbers()


def emit_compute(
    op: Compute, label: str, value_of: Callable[[Tensor], SSAValue], sizes: SizeNumbers = NO_SIZES
) -> te.ComputeOp:
    """Build the op te.compute called `label` in a function with `sizes`; `value_of` maps each tensor that it reads to
    an SSA value."""
    body = _Body(op, sizes)
    inputs: list[SSAValue] = []
    accesses: list[te.AccessAttr] = []
    for expr in (e for root in op.bodies for e in nodes_of(root)):
        if isinstance(expr, Read) and expr not in body.values:
            value, access = value_of(expr.tensor), body.access(expr)
            same = [i for i, v in enumerate(inputs) if v is value and accesses[i] == access]
            if not same:
                inputs.append(value)
                accesses.append(access)
                argument = body.block.insert_arg(SCALARS[expr.dtype], len(body.block.args))
                argument.name_hint = spelled(expr.tensor.name).lower()
            body.values[expr] = body.block.args[same[0] if same else -1]
    yielded = [body.emit(root) for root in op.bodies]
    body.block.add_op(te.YieldOp(*yielded))
    shape = [axis.extent for axis in op.spatial]
    types = [TensorType(TYPES[body.dtype], shape) for body in op.bodies]
    axes = [
        axis_attribute(label, axis.extent, axis.reduce, sizes.below(axis))
        for label, axis in zip(op.labels, op.axes, strict=True)
    ]
    region = Region(body.block)
    return te.ComputeOp(label, axes, inputs, accesses, types, region, _combination(op), sizes.attribute)


def emit_gather(
    op: Gather, label: str, value_of: Callable[[Tensor], SSAValue], sizes: SizeNumbers = NO_SIZES
) -> te.GatherOp:
    """Build the op te.gather called `label` in a function with `sizes`; `value_of` maps each tensor that it reads to
    an SSA value."""
    body = _Body(op, sizes)
    numbers = {read: n for n, read in enumerate(op.reads)}
    expressions = [
        AffineExpr.symbol(numbers[index]) if isinstance(index, Read) else index.affine(body.order)
        for index in op.read.indices
    ]
    table = value_of(op.read.tensor)
    gathered = Gathered(
        AffineMap(len(op.axes), len(numbers), tuple(expressions)),
        body.attribute(op.otherwise, op.read.dtype),
        table,
        [value_of(read.tensor) for read in op.reads],
        [body.access(read) for read in op.reads],
    )
    axes = [axis_attribute(axis.name, axis.extent, below=sizes.below(axis)) for axis in op.axes]
    assert isinstance(table.type, TensorType)
    type = TensorType(table.type.get_element_type(), [axis.extent for axis in op.axes])
    return te.GatherOp(label, axes, gathered, type, sizes.attribute)


def _combination(op: Compute) -> Combination:
    if op.joint is None:
        return Combination(op.combiners)
    block = Block(arg_types=[SCALARS[operand.dtype] for operand in op.joint.operands])
    body = _Body(op, NO_SIZES, block, dict(zip(op.joint.operands, block.args, strict=True)))
    yielded = [body.emit(root) for root in op.joint.results]
    block.add_op(te.YieldOp(*yielded))
    identities = [body.attribute(value.value, value.dtype) for value in op.joint.identities]
    return Combination((), identities, Region(block))


@dataclass
class _Body:
    """A block under construction, and the SSA value of each expression, constant and axis emitted to it."""

    op: Compute | Gather
    sizes: SizeNumbers
    block: Block = field(default_factory=Block)
    values: dict[Expr, SSAValue] = field(default_factory=dict)
    constants: dict[Attribute, SSAValue] = field(default_factory=dict)
    indices: dict[str, SSAValue] = field(default_factory=dict)

    @property
    def order(self) -> dict[Axis | Size, int]:
        return numbered(self.op.axes, self.sizes.sizes)

    def access(self, read: Read) -> te.AccessAttr:
        """Return a read's access attribute: its index map, and its condition and the value where that is false."""
        order, axes, sizes = self.order, len(self.op.axes), len(self.sizes.sizes)
        map = size_map(axes, [index.affine(order) for index in read.indices], sizes)
        if read.condition is None:
            return te.AccessAttr(map)
        condition = size_set(axes, read.condition.affine(order), sizes)
        assert read.otherwise is not None
        return te.AccessAttr(map, condition, self.attribute(read.otherwise, read.dtype))

    def emit(self, root: Expr) -> SSAValue:
        """Emit an expression's nodes that have no SSA value yet, operands first; return the expression's value."""
        for expr in nodes_of(root):
            if expr not in self.values:
                self.values[expr] = self._value(expr)
        return self.values[root]

    def _value(self, expr: Expr) -> SSAValue:
        match expr:
            case Const():
                return self._constant(self.attribute(expr.value, expr.dtype))
            case AxisValue():
                return self._add(IndexCastOp(self._index(expr.index), SCALARS["i64"]))
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

    def attribute(self, value: float | int | bool, dtype: str) -> FloatAttr | IntegerAttr:
        """Convert a number to a literal attribute of a dtype; floats beyond the dtype's range become infinite."""
        type = SCALARS[dtype]
        if isinstance(type, AnyFloat):
            return FloatAttr(rounded(value, dtype), type)
        assert isinstance(type, IntegerType)
        return IntegerAttr(int(value), type)

    def _index(self, index: Index) -> SSAValue:
        match index:
            case Axis() | Size():
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

    def _remainder(self, divisor: Expr, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emit the signed remainder lhs - floor(lhs / rhs) * rhs; 0 for a divisor of 0, as in other remainders."""
        remainder = self._integer("%", lhs, rhs)
        if isinstance(divisor, Const) and divisor.value:
            return remainder
        zero = self._constant(self.attribute(0, divisor.dtype))
        return self._add(SelectOp(self._add(CmpiOp(rhs, zero, "eq")), zero, remainder))

    def _unsigned_power(self, dtype: str, base: SSAValue, exponent: SSAValue) -> SSAValue:
        """Emit base^exponent as (base^(exponent / 2))^2, times base for an odd exponent: the half fits the signed
        exponent of ipowi."""
        one = self._constant(self.attribute(1, dtype))
        root = self._add(math_dialect.IPowIOp(base, self._add(arith.ShRUIOp(exponent, one))))
        is_odd = self._add(TruncIOp(exponent, SCALARS["i1"]))
        return self._add(arith.MuliOp(self._add(arith.MuliOp(root, root)), self._add(SelectOp(is_odd, base, one))))

    def _holds(self, expr: Holds) -> SSAValue:
        zero = self._constant(IntegerAttr(0, IndexType()))
        truths = [
            self._add(CmpiOp(self._index(form), zero, "eq" if equal else "sge"))
            for form, equal in expr.condition.constraints
        ]
        conjunction = truths[0]
        for truth in truths[1:]:
            conjunction = self._add(arith.AndIOp(conjunction, truth))
        return conjunction

    def _apply(self, expr: Apply, operands: list[SSAValue]) -> SSAValue:
        source = expr.arguments[-1].dtype
        if expr.name == "cast":
            return self._cast(operands[0], source, expr.dtype)
        if expr.name == "select":
            return self._add(SelectOp(*operands))
        if expr.name in _FLOAT_PREDICATES:
            return self._compare(expr.name, operands, source)
        if is_float(source):
            return self._add(_FLOAT_OPS[expr.name](*operands))
        if expr.name == "floordiv" and has_sign(source):
            return self._integer("//", *operands)
        if expr.name == "mod" and has_sign(source):
            return self._remainder(expr.arguments[1], *operands)
        if expr.name == "neg":
            return self._add(arith.SubiOp(self._constant(self.attribute(0, source)), operands[0]))
        if expr.name == "abs" and not has_sign(source):
            return operands[0]
        if expr.name == "pow" and not has_sign(source):
            return self._unsigned_power(source, *operands)
        table = _INT_OPS if has_sign(source) else _UNSIGNED_OPS
        return self._add(table[expr.name](*operands))

    def _compare(self, relation: str, operands: list[SSAValue], source: str) -> SSAValue:
        lhs, rhs = operands
        if is_float(source):
            return self._add(CmpfOp(lhs, rhs, _FLOAT_PREDICATES[relation]))
        predicate = _INT_PREDICATES[relation]
        if not has_sign(source) and predicate.startswith("s"):
            predicate = f"u{predicate[1:]}"
        return self._add(CmpiOp(lhs, rhs, predicate))

    def _cast(self, value: SSAValue, source: str, target: str) -> SSAValue:
        type = SCALARS[target]
        if target == "i1":
            zero = self._constant(self.attribute(0, source))
            compare = CmpfOp(value, zero, "une") if is_float(source) else CmpiOp(value, zero, "ne")
            return self._add(compare)
        if is_float(source) and is_float(target):
            if width(source) == width(target):  # f16 to bf16 and back, through f32
                value, source = self._add(ExtFOp(value, SCALARS["f32"])), "f32"
            widens = width(target) > width(source)
            return self._add((ExtFOp if widens else TruncFOp)(value, type))
        if is_float(source):
            return self._saturated(value, source, target)
        if is_float(target):
            return self._add((SIToFPOp if has_sign(source) else UIToFPOp)(value, type))
        if width(source) == width(target):
            return value
        if width(source) > width(target):
            return self._add(TruncIOp(value, type))
        return self._add((ExtSIOp if has_sign(source) else ExtUIOp)(value, type))

    def _saturated(self, value: SSAValue, source: str, target: str) -> SSAValue:
        """Convert a float to an integer, saturated, NaN to 0, by selects around LLVM's conversion, undefined if out of
        range."""
        low, high = limits(target)
        unsigned = not has_sign(target)
        converted = self._add((FPToUIOp if unsigned else FPToSIOp)(value, SCALARS[target]))
        beyond = self._add(CmpfOp(value, self._constant(self.attribute(float(high + 1), source)), "oge"))
        converted = self._add(SelectOp(beyond, self._constant(self.attribute(high, target)), converted))
        lowest = self._constant(self.attribute(float(low), source))
        if low:
            below = self._add(CmpfOp(value, lowest, "ole"))
            converted = self._add(SelectOp(below, self._constant(self.attribute(low, target)), converted))
        is_nan_or_below = self._add(CmpfOp(value, value, "uno") if low else CmpfOp(value, lowest, "ule"))
        return self._add(SelectOp(is_nan_or_below, self._constant(self.attribute(0, target)), converted))


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
    **{name: row.op for name, row in ELEMENTARY.items()},
}
_INT_OPS: dict[str, Callable[..., Operation]] = {
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "maximum": arith.MaxSIOp,
    "minimum": arith.MinSIOp,
    "abs": math_dialect.AbsIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
    "xor": arith.XOrIOp,
    "shl": arith.ShLIOp,
    "shr": arith.ShRSIOp,
    "truncdiv": arith.DivSIOp,
    "truncmod": arith.RemSIOp,
    "pow": math_dialect.IPowIOp,
}
_UNSIGNED_OPS = _INT_OPS | {
    "maximum": arith.MaxUIOp,
    "minimum": arith.MinUIOp,
    "floordiv": arith.DivUIOp,
    "mod": arith.RemUIOp,
    "shr": arith.ShRUIOp,
    "truncdiv": arith.DivUIOp,
    "truncmod": arith.RemUIOp,
}
