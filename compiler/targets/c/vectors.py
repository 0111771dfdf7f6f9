"""Operations on vectors: an operator of the vector extension if there is one, else a loop over lanes; masks are
bytes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, Float32Type, Float64Type, VectorType
from xdsl.ir import Attribute, Operation, SSAValue, Use

from compiler.dialects.upstream.casts import element_of
from compiler.dialects.upstream.llvm import is_ldexp
from compiler.dialects.upstream.vector import GatherOp, ScatterOp
from compiler.targets.c.language import C, lanes
from compiler.targets.c.names import LANE
from compiler.targets.clike.expressions import COMPARED, CExpr, function_call, infix, ternary
from compiler.targets.clike.language import NARROW_FLOATS
from compiler.targets.clike.operations import ARITHMETIC, expression
from compiler.targets.clike.statements import SourceWriter

DYNAMIC = -(1 << 63)
"""The entry in `static_position` for a position that is an SSA value."""
_REDUCTIONS: Mapping[str, tuple[str, str]] = {
    "add": ("+", ""),
    "mul": ("*", ""),
    "and": ("&", ""),
    "or": ("|", ""),
    "xor": ("^", ""),
    "maxsi": ("", "max"),
    "minsi": ("", "min"),
    "maxui": ("", "max"),
    "minui": ("", "min"),
    "maximumf": ("", "maximum"),
    "minimumf": ("", "minimum"),
    "maxnumf": ("", "fmax"),
    "minnumf": ("", "fmin"),
}
"""The operator, or the function, that joins two lanes, by the kind of a reduction."""


class VectorStatements(SourceWriter):
    """Writer of the statements of vector operations."""

    language: C

    @abstractmethod
    def element(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> str:
        """Return the expression of an element of a buffer."""

    def address(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> str:
        """Return the expression of the address of an element."""
        return f"&{self.element(buffer, indices)}"

    def vector_op(self, op: Operation) -> bool:
        """Write an op with a vector among its operands and results and return True; for other ops return False. A mask
        that needs no variable is not written, but returns True. Raises LoweringError for an op on vectors that C lacks.
        """
        values = (*op.operands, *op.results)
        if not any(isinstance(value.type, VectorType) for value in values):
            return False
        is_unused_mask = isinstance(op, arith.AndIOp) and not _is_needed(op.result)
        if not is_unused_mask and not self._memory_op(op) and not self._lane_op(op):
            self._arithmetic_op(op)
        return True

    def helper(self, kind: str, type_: Attribute, at: Attribute | None = None) -> str:
        """Add the function of a kind (a key of VECTORS such as `load`) for a vector type, and for index vectors of type
        `at` (gather and scatter only), to the text's helpers, unless the text has it; return its name."""
        assert isinstance(type_, VectorType)
        language, element = self.language, type_.element_type
        language.spelled(type_)
        index_type = "" if at is None else language.spelled(at)
        return language.helpers.on_vector(
            kind, language.dtype(element), language.stored(element), lanes(type_), index_type
        )

    # --- values -------------------------------------------------------------------------------------------------------

    def text(self, value: SSAValue) -> CExpr:
        """Return the expression of a value: for a broadcast of a scalar and a vector constant of equal lanes a call of
        the helper `splat`, else the value's text."""
        scalar = self._scalar_of(value)
        if scalar is None:
            return super().text(value)
        return CExpr(f"{self.helper('splat', value.type)}({scalar.code})")

    def _scalar_of(self, value: SSAValue) -> CExpr | None:
        """Return the scalar of a broadcast of a scalar, or of a constant with equal lanes; None for other values."""
        owner = value.owner
        if isinstance(owner, vector.BroadcastOp) and not isinstance(owner.source.type, VectorType):
            return super().text(owner.source)
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr):
            return CExpr(self.language.literal(owner.value.get_attrs()[0])) if owner.value.is_splat() else None
        return None

    def operand(self, value: SSAValue) -> CExpr:
        """Return the expression of an operand of vector arithmetic: a scalar if all lanes equal it, else the vector."""
        scalar = self._scalar_of(value)
        return self.text(value) if scalar is None else scalar

    def _lane(self, value: SSAValue) -> CExpr:
        """Return the lane of a vector at the index of a loop over lanes; a scalar, or the scalar that all lanes equal,
        unchanged."""
        if not isinstance(value.type, VectorType):
            return super().text(value)
        scalar = self._scalar_of(value)
        return CExpr(f"{self.text(value).enclosed_unless_atom().code}[{LANE}]") if scalar is None else scalar

    def _by_lane(self, op: Operation, text: CExpr) -> None:
        count, name = lanes(op.results[0].type), self.variable(op.results[0])
        self.line(f"for (int {LANE} = 0; {LANE} < {count}; ++{LANE}) {name}[{LANE}] = {text.code};")

    # --- memory -------------------------------------------------------------------------------------------------------

    def _memory_op(self, op: Operation) -> bool:
        match op:
            case vector.LoadOp():
                load = self.helper("load", op.result.type)
                self.declared(op.result, f"{load}({self.address(op.base, op.indices)})")
            case vector.StoreOp():
                store = self.helper("store", op.vector.type)
                self.line(f"{store}({self.address(op.base, op.indices)}, {self.text(op.vector).code});")
            case vector.MaskedLoadOp():
                self._masked_load(op)
            case vector.MaskedStoreOp():
                self._masked_store(op)
            case GatherOp():
                self._gather(op)
            case ScatterOp():
                self._scatter(op)
            case _:
                return False
        return True

    def _masked_load(self, op: vector.MaskedLoadOp) -> None:
        address, pass_thru, type_ = self.address(op.base, op.indices), self.text(op.pass_thru).code, op.result.type
        prefix = _prefix(op.mask)
        if prefix is None:
            load_text = f"{self.helper('load_where', type_)}({address}, {self.text(op.mask).code}, {pass_thru})"
        elif prefix.count is None:
            load_text = f"{self._condition(prefix)} ? {self.helper('load', type_)}({address}) : {pass_thru}"
        else:
            load_text = f"{self.helper('load_first', type_)}({address}, {self._count(prefix)}, {pass_thru})"
        self.declared(op.result, load_text)

    def _masked_store(self, op: vector.MaskedStoreOp) -> None:
        address, value, type_ = (
            self.address(op.base, op.indices),
            self.text(op.value_to_store).code,
            op.value_to_store.type,
        )
        prefix = _prefix(op.mask)
        if prefix is None:
            self.line(f"{self.helper('store_where', type_)}({address}, {self.text(op.mask).code}, {value});")
        elif prefix.count is None:
            self.line(f"if ({self._condition(prefix)}) {self.helper('store', type_)}({address}, {value});")
        else:
            self.line(f"{self.helper('store_first', type_)}({address}, {self._count(prefix)}, {value});")

    def _condition(self, prefix: Prefix) -> str:
        texts = [super(VectorStatements, self).text(condition) for condition in prefix.conditions]
        return " && ".join(text.within(COMPARED) for text in texts)

    def _count(self, prefix: Prefix) -> str:
        """Return the expression of a mask's number of leading lanes, 0 if its conditions fail."""
        assert prefix.count is not None
        code = super().text(prefix.count).code
        return f"{self._condition(prefix)} ? {code} : 0" if prefix.conditions else code

    def _gather(self, op: GatherOp) -> None:
        name = self.helper("gather", op.result.type, op.index_vec.type)
        code = [self.text(value).code for value in (op.index_vec, op.mask, op.pass_thru)]
        self.declared(op.result, f"{name}({', '.join((self.address(op.base, op.indices), *code))})")

    def _scatter(self, op: ScatterOp) -> None:
        name = self.helper("scatter", op.value.type, op.index_vec.type)
        code = [self.text(value).code for value in (op.index_vec, op.mask, op.value)]
        self.line(f"{name}({', '.join((self.address(op.base, op.indices), *code))});")

    # --- lanes --------------------------------------------------------------------------------------------------------

    def _lane_op(self, op: Operation) -> bool:
        match op:
            case arith.ConstantOp():
                self._constant(op)
            case vector.BroadcastOp():
                if isinstance(op.source.type, VectorType):
                    self._broadcast(op)
            case vector.ExtractOp():
                position = self._position(op)
                self.value(op, CExpr(f"{self.text(op.vector).enclosed_unless_atom().code}[{position}]"))
            case vector.InsertOp():
                name = self.variable(op.result, f" = {self.text(op.dest).code}")
                self.line(f"{name}[{self._position(op)}] = {self.text(op.source).code};")
            case vector.CreateMaskOp():
                if _is_needed(op.mask_vector):
                    self._by_lane(op, infix("<", CExpr(LANE), super().text(op.mask_dim_sizes[0]), COMPARED))
            case vector.ShuffleOp():
                self._shuffle(op)
            case vector.BitcastOp() | arith.BitcastOp():
                (source,), (result,) = op.operands, op.results
                self.declared(result, f"({self.type_of(result)}){self.text(source).enclosed_unless_atom().code}")
            case vector.ReductionOp():
                self._reduction(op)
            case _:
                return False
        return True

    def _constant(self, op: arith.ConstantOp) -> None:
        """Declare a constant vector, unless all its lanes are one number."""
        if isinstance(op.value, DenseIntOrFPElementsAttr) and self._scalar_of(op.result) is None:
            numbers = ", ".join(map(self._stored_literal, op.value.get_attrs()))
            self.declared(op.result, f"{{{numbers}}}")

    def _stored_literal(self, value: Attribute) -> str:
        return {"true": "1", "false": "0"}.get(text := self.language.literal(value), text)

    def _broadcast(self, op: vector.BroadcastOp) -> None:
        if lanes(op.source.type) != 1:
            raise self.language.lacks(f"a vector.broadcast of {op.source.type}")
        self._by_lane(op, CExpr(f"{self.text(op.source).enclosed_unless_atom().code}[0]"))

    def _position(self, op: vector.ExtractOp | vector.InsertOp) -> str:
        positions = op.static_position.get_values()
        if len(positions) != 1:
            raise self.language.lacks(f"a '{op.name}' at {len(positions)} positions")
        return super().text(op.dynamic_position[0]).code if positions[0] == DYNAMIC else str(positions[0])

    def _shuffle(self, op: vector.ShuffleOp) -> None:
        assert isinstance(op.mask, DenseArrayBase)
        first, second = (self.text(value).enclosed_unless_atom().code for value in (op.v1, op.v2))
        count = lanes(op.v1.type)
        indices = [int(pick) for pick in op.mask.get_values()]
        code = ["0" if n < 0 else f"{first}[{n}]" if n < count else f"{second}[{n - count}]" for n in indices]
        self.declared(op.result, f"{{{', '.join(code)}}}")

    def _reduction(self, op: vector.ReductionOp) -> None:
        """Combine the lanes in order, after the accumulator if there is one. Raises LoweringError for f16 and bf16, and
        for a kind that _REDUCTIONS lacks."""
        kind, type_ = op.kind.data.value, op.dest.type
        if isinstance(type_, NARROW_FLOATS) or kind not in _REDUCTIONS:
            raise self.language.lacks(f"a vector.reduction <{kind}> of {op.vector.type}")
        source = self.text(op.vector).enclosed_unless_atom().code
        first_lane, initial = (0, self.text(op.acc).code) if op.acc is not None else (1, f"{source}[0]")
        name = self.variable(op.dest, f" = {initial}")
        joined = self._combined(kind, type_, name, f"{source}[{LANE}]")
        loop_header = f"for (int {LANE} = {first_lane}; {LANE} < {lanes(op.vector.type)}; ++{LANE})"
        self.line(f"{loop_header} {name} = {joined};")

    def _combined(self, kind: str, type_: Attribute, left: str, right: str) -> str:
        operator, function = _REDUCTIONS[kind]
        integer = self.language.integer(type_)
        if operator:
            wraps = integer is not None and operator in "+*"
            return (
                f"({integer.signed})(({integer.wrapping}){left} {operator} {right})"
                if wraps and integer
                else f"{left} {operator} {right}"
            )
        if function.startswith("f"):
            return f"{self.language.function(function, type_)}({left}, {right})"
        if integer is None:
            return f"{self.language.helper(function, self.language.spelled(type_))}({left}, {right})"
        return f"{self.language.helper(function, integer.unsigned if 'u' in kind else integer.signed)}({left}, {right})"

    # --- arithmetic ---------------------------------------------------------------------------------------------------

    def _arithmetic_op(self, op: Operation) -> None:
        """Write an operator on vectors, or another op lane by lane. Raises LoweringError for an op that C lacks."""
        if not op.results or not isinstance(op.results[0].type, VectorType) or op.regions:
            raise self.language.lacks(f"'{op.name}' on vectors")
        if _has_operator(op):
            self._infix(op)
            return
        texts = [self._lane(value) for value in op.operands]
        if is_ldexp(op):
            function = self.language.function("ldexp", element_of(op.results[0].type))
            self._by_lane(op, function_call(function, texts[:2]))
        elif op.name == "arith.select":
            self._by_lane(op, ternary(*texts))
        else:
            self._by_lane(op, expression(op, texts, self.language, [True] * len(texts), True))

    def _infix(self, op: Operation) -> None:
        left, right = op.operands
        scalars = [self._scalar_of(value) for value in (left, right)]
        texts = [self.text(value) for value in (left, right)]
        if scalars[0] is None or scalars[1] is None:
            pairs = zip(scalars, texts, strict=True)
            texts = [text if scalar is None else scalar for scalar, text in pairs]
        sign, precedence = ARITHMETIC[type(op)]
        self.value(op, infix(sign, texts[0], texts[1], precedence))

    def is_in_place(self, op: Operation) -> bool:
        """Return whether the value of an op may be written in place of its only use; a vector only in arithmetic by an
        operator, in unmasked stores and in yields."""
        if not super().is_in_place(op):
            return False
        if not isinstance(op.results[0].type, VectorType):
            return True
        user = next(iter(op.results[0].uses)).operation
        return _has_operator(user) or isinstance(user, vector.StoreOp | scf.YieldOp)


def _has_operator(op: Operation) -> bool:
    if type(op) not in ARITHMETIC or not isinstance(op.results[0].type, VectorType):
        return False
    return isinstance(element_of(op.results[0].type), Float32Type | Float64Type)


@dataclass(frozen=True)
class Prefix:
    """The leading `count` lanes of a vector (all lanes without a count) under the conjunction of `conditions`."""

    conditions: tuple[SSAValue, ...]
    count: SSAValue | None


def _prefix(mask: SSAValue) -> Prefix | None:
    """Return the lanes of a mask as a prefix; None for a mask that is no conjunction of create_mask and broadcasts, or
    with two counts."""
    owner = mask.owner
    if isinstance(owner, vector.CreateMaskOp):
        return Prefix((), owner.mask_dim_sizes[0])
    if isinstance(owner, vector.BroadcastOp) and not isinstance(owner.source.type, VectorType):
        return Prefix((owner.source,), None)
    if not isinstance(owner, arith.AndIOp):
        return None
    left, right = _prefix(owner.lhs), _prefix(owner.rhs)
    if left is None or right is None or (left.count is not None and right.count is not None):
        return None
    return Prefix((*left.conditions, *right.conditions), left.count if right.count is None else right.count)


def _is_needed(mask: SSAValue) -> bool:
    """Return whether a mask needs a variable: it is no prefix of the lanes, or an op uses it other than as the mask of
    a masked load or store, directly or in a conjunction."""
    return _prefix(mask) is None or any(map(_takes_lanes, mask.uses))


def _takes_lanes(use: Use) -> bool:
    op = use.operation
    if isinstance(op, arith.AndIOp):
        return _is_needed(op.result)
    return not (isinstance(op, vector.MaskedLoadOp | vector.MaskedStoreOp) and op.operands[use.index] is op.mask)
