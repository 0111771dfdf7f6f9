"""Identities of arith: operands that do not change a value, and equal operands."""

from __future__ import annotations

from collections.abc import Mapping
from math import copysign, inf

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.folder import Folder
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.traits import ConstantLike, HasCanonicalizationPatternsTrait, HasFolder

from compiler.dialects.upstream.arith import CmpiOp

_UNITS: Mapping[type[Operation], int] = {
    **dict.fromkeys((arith.AddiOp, arith.SubiOp, arith.OrIOp, arith.XOrIOp), 0),
    **dict.fromkeys((arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp), 0),
    **dict.fromkeys((arith.MuliOp, arith.DivUIOp, arith.FloorDivSIOp), 1),
    **dict.fromkeys((arith.DivSIOp, arith.CeilDivSIOp, arith.CeilDivUIOp), 1),
    arith.AndIOp: -1,
}
"""The right operand that changes no value, by op."""
_ZEROS = (arith.MuliOp, arith.AndIOp)
"""The ops whose result is zero if an operand is."""
_EQUAL = (
    *(arith.AndIOp, arith.OrIOp, arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp),
    *(arith.MaximumfOp, arith.MinimumfOp),
)
"""The ops of two equal operands that are their operand; SubiOp and XOrIOp are zero."""
_REALS: Mapping[type[Operation], float] = {
    arith.AddfOp: -0.0,
    arith.SubfOp: 0.0,
    arith.MulfOp: 1.0,
    arith.DivfOp: 1.0,
    arith.MaximumfOp: -inf,
    arith.MinimumfOp: inf,
}
"""The right operand that changes no float, by op: x + 0.0 is 0.0 where x is -0.0."""
_COMMUTATIVE = (
    *(arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp),
    *(arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp),
    *(arith.AddfOp, arith.MulfOp, arith.MaximumfOp, arith.MinimumfOp),
)
_MIRRORED = (0, 1, 4, 5, 2, 3, 8, 9, 6, 7)
"""The predicate of cmpi with its operands exchanged, by predicate."""


class FoldByInterface(RewritePattern):
    """Fold an op whose class has a folder of its own: xDSL's interface HasFolderInterface.

        %1 = arith.select %true, %a, %b : f32
      ->
        %a

    xDSL's folder of integers is left out: it does not wrap values of type index.
    """

    def __init__(self, context: Context) -> None:
        self.folder = Folder(context)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if isinstance(op, arith.SignlessIntegerBinaryOperation) or op.has_trait(ConstantLike):
            return
        if op.has_trait(HasFolder):
            self.folder.replace_with_fold(op, rewriter)


class FoldIdentities(RewritePattern):
    """Replace an op by an operand or by zero where the other operand, or that both are equal, decides.

      x + 0, x * 1, x & -1, x << 0;  x * 0, x & 0;  x & x, min(x, x);  x - x, x ^ x;  x + -0.0, max(x, -inf)
    ->
      x;                             0;             x;                 0;             x
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if len(op.operands) != 2 or len(op.results) != 1 or not op.name.startswith("arith."):
            return
        left, right = op.operands
        value = _identity(op, left, right)
        if isinstance(value, SSAValue):
            rewriter.replace(op, (), (value,))
        elif value is not None:
            rewriter.replace(op, arith.ConstantOp(value))


def _identity(op: Operation, left: SSAValue, right: SSAValue) -> SSAValue | IntegerAttr | None:
    kind = type(op)
    if left is right and left.type == op.results[0].type:
        if kind in _EQUAL:
            return left
        if kind in (arith.SubiOp, arith.XOrIOp):
            return _zero(left.type)
    number = _number(right)
    if isinstance(number, IntegerAttr):
        if kind in _UNITS and number == IntegerAttr(_UNITS[kind], number.type):
            return left
        return right if kind in _ZEROS and number.value.data == 0 else None
    if isinstance(number, FloatAttr) and kind in _REALS:
        real, unit = number.value.data, _REALS[kind]
        return left if real == unit and copysign(1, real) == copysign(1, unit) else None
    return None


def _number(value: SSAValue) -> Attribute | None:
    """The constant of a value: a number, or that of all lanes of a vector; None for others."""
    constant = ConstantLike.get_constant_value(value)
    if isinstance(constant, DenseIntOrFPElementsAttr) and constant.is_splat():
        return next(iter(constant.iter_attrs()))
    return constant


def _zero(type: Attribute) -> IntegerAttr | None:
    return IntegerAttr(0, type) if isinstance(type, IntegerType | IndexType) else None


class JoinConstants(RewritePattern):
    """Combine two integer constants in a row at once, of additions, products, and bitwise and, or and xor.

      %1 = arith.addi %x, %c4 : index;  %2 = arith.addi %1, %c3 : index
    ->
      %2 = arith.addi %x, %c7 : index
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, arith.AddiOp | arith.MuliOp | arith.AndIOp | arith.OrIOp | arith.XOrIOp):
            return
        inner = op.lhs.owner
        if type(inner) is not type(op) or not _is_constant(op.rhs) or not _is_constant(inner.operands[1]):
            return
        both = type(op)(inner.operands[1], op.rhs)
        rewriter.replace(op, [both, type(op)(inner.operands[0], both)])


class ConstantsLast(RewritePattern):
    """Exchange the operands of a commutative op, or of a comparison of integers, whose left operand alone is constant.

        %0 = arith.addi %c4, %a : index;  %1 = arith.cmpi slt, %c4, %a : index
      ->
        %0 = arith.addi %a, %c4 : index;  %1 = arith.cmpi sgt, %a, %c4 : index

    Two NaNs may differ in their payload behind it, as between processors.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, (*_COMMUTATIVE, CmpiOp)):
            return
        left, right = op.operands
        if not _is_constant(left) or _is_constant(right):
            return
        op.operands = [right, left]
        if isinstance(op, CmpiOp):
            predicate = _MIRRORED[op.predicate.value.data]
            op.properties["predicate"] = IntegerAttr(predicate, op.predicate.type)
        rewriter.notify_op_modified(op)


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and value.owner.has_trait(ConstantLike)


class UpstreamPatterns(RewritePattern):
    """Apply the canonicalisations that xDSL has for an op, except for those of arith: they fail where a float
    overflows."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if op.name.startswith("arith."):
            return
        for trait in op.get_traits_of_type(HasCanonicalizationPatternsTrait):  # type: ignore[type-abstract]
            for pattern in trait.get_patterns(type(op)):
                pattern.match_and_rewrite(op, rewriter)
                if rewriter.has_done_action:
                    return
