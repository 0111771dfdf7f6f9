"""Operations on vectors: of whole ones where C has an operator, else lane by lane; masks are bytes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float32Type,
    Float64Type,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue, Use

from compiler.dialects.intr import LdexpOp
from compiler.dialects.upstream.arith import element_of
from compiler.dialects.upstream.vector import GatherOp, ScatterOp
from compiler.targets.c.language import C, lanes
from compiler.targets.c.names import LANE
from compiler.targets.clike.expressions import COMPARED, Text, called, chosen, infix
from compiler.targets.clike.language import NARROW_FLOATS
from compiler.targets.clike.operations import ARITHMETIC, expression
from compiler.targets.clike.statements import SourceText

DYNAMIC = -(1 << 63)
"""A position that is a value."""
_KINDS: Mapping[str, tuple[str, str]] = {
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
"""By the kind of a reduction the operator that joins two lanes, or the function."""


class VectorStatements(SourceText):
    """The statements of vector operations."""

    language: C

    @abstractmethod
    def element(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> str:
        """An element of a buffer."""

    def address(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> str:
        """The address of an element."""
        return f"&{self.element(buffer, indices)}"

    def vector_op(self, op: Operation) -> bool:
        """Write an op that has vectors among its operands and results; whether it is one."""
        values = (*op.operands, *op.results)
        if not any(isinstance(value.type, VectorType) for value in values):
            return False
        is_unneeded = isinstance(op, arith.AndIOp) and not _is_needed(op.result)
        if not is_unneeded and not self._memory(op) and not self._lanes_moved(op):
            self._computed(op)
        return True

    def helper(self, kind: str, type_: Attribute, at: Attribute | None = None) -> str:
        """A function on vectors of a type, at places of a type."""
        assert isinstance(type_, VectorType)
        language, element = self.language, type_.element_type
        language.spelled(type_)
        places = "" if at is None else language.spelled(at)
        return language.helpers.on_vector(kind, language.dtype(element), language.stored(element), lanes(type_), places)

    # --- values -------------------------------------------------------------------------------------------------------

    def text(self, value: SSAValue) -> Text:
        """The expression of a value; of a vector whose lanes are one scalar, all of them."""
        scalar = self._scalar_of(value)
        if scalar is None:
            return super().text(value)
        return Text(f"{self.helper('splat', value.type)}({scalar.words})")

    def _scalar_of(self, value: SSAValue) -> Text | None:
        """The scalar that each lane of a vector is; None for other values."""
        owner = value.owner
        if isinstance(owner, vector.BroadcastOp) and not isinstance(owner.source.type, VectorType):
            return super().text(owner.source)
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr):
            return Text(self.language.literal(owner.value.get_attrs()[0])) if owner.value.is_splat() else None
        return None

    def operand(self, value: SSAValue) -> Text:
        """A value beside a vector: where each lane is one scalar, that scalar."""
        scalar = self._scalar_of(value)
        return self.text(value) if scalar is None else scalar

    def _lane(self, value: SSAValue) -> Text:
        """The lane of a vector in a loop over lanes; a scalar as it is."""
        if not isinstance(value.type, VectorType):
            return super().text(value)
        scalar = self._scalar_of(value)
        return Text(f"{self.text(value).enclosed_unless_atom().words}[{LANE}]") if scalar is None else scalar

    def _by_lane(self, op: Operation, text: Text) -> None:
        """A loop that sets each lane of a result."""
        count, name = lanes(op.results[0].type), self.variable(op.results[0])
        self.line(f"for (int {LANE} = 0; {LANE} < {count}; ++{LANE}) {name}[{LANE}] = {text.words};")

    # --- memory -------------------------------------------------------------------------------------------------------

    def _memory(self, op: Operation) -> bool:
        match op:
            case vector.LoadOp():
                load = self.helper("load", op.result.type)
                self.declared(op.result, f"{load}({self.address(op.base, op.indices)})")
            case vector.StoreOp():
                store = self.helper("store", op.vector.type)
                self.line(f"{store}({self.address(op.base, op.indices)}, {self.text(op.vector).words});")
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
        at, other, type_ = self.address(op.base, op.indices), self.text(op.pass_thru).words, op.result.type
        prefix = _prefix(op.mask)
        if prefix is None:
            words = f"{self.helper('load_where', type_)}({at}, {self.text(op.mask).words}, {other})"
        elif prefix.count is None:
            words = f"{self._condition(prefix)} ? {self.helper('load', type_)}({at}) : {other}"
        else:
            words = f"{self.helper('load_first', type_)}({at}, {self._count(prefix)}, {other})"
        self.declared(op.result, words)

    def _masked_store(self, op: vector.MaskedStoreOp) -> None:
        at, value, type_ = self.address(op.base, op.indices), self.text(op.value_to_store).words, op.value_to_store.type
        prefix = _prefix(op.mask)
        if prefix is None:
            self.line(f"{self.helper('store_where', type_)}({at}, {self.text(op.mask).words}, {value});")
        elif prefix.count is None:
            self.line(f"if ({self._condition(prefix)}) {self.helper('store', type_)}({at}, {value});")
        else:
            self.line(f"{self.helper('store_first', type_)}({at}, {self._count(prefix)}, {value});")

    def _condition(self, prefix: Prefix) -> str:
        texts = [super(VectorStatements, self).text(condition) for condition in prefix.conditions]
        return " && ".join(text.within(COMPARED) for text in texts)

    def _count(self, prefix: Prefix) -> str:
        """How many lanes, the first ones, a mask has."""
        assert prefix.count is not None
        words = super().text(prefix.count).words
        return f"{self._condition(prefix)} ? {words} : 0" if prefix.conditions else words

    def _gather(self, op: GatherOp) -> None:
        name = self.helper("gather", op.result.type, op.index_vec.type)
        words = [self.text(value).words for value in (op.index_vec, op.mask, op.pass_thru)]
        self.declared(op.result, f"{name}({', '.join((self.address(op.base, op.indices), *words))})")

    def _scatter(self, op: ScatterOp) -> None:
        name = self.helper("scatter", op.value.type, op.index_vec.type)
        words = [self.text(value).words for value in (op.index_vec, op.mask, op.value)]
        self.line(f"{name}({', '.join((self.address(op.base, op.indices), *words))});")

    # --- lanes --------------------------------------------------------------------------------------------------------

    def _lanes_moved(self, op: Operation) -> bool:
        match op:
            case arith.ConstantOp():
                self._constant(op)
            case vector.BroadcastOp():
                if isinstance(op.source.type, VectorType):
                    self._spread(op)
            case vector.ExtractOp():
                place = self._position(op)
                self.value(op, Text(f"{self.text(op.vector).enclosed_unless_atom().words}[{place}]"))
            case vector.InsertOp():
                name = self.variable(op.result, f" = {self.text(op.dest).words}")
                self.line(f"{name}[{self._position(op)}] = {self.text(op.source).words};")
            case vector.CreateMaskOp():
                if _is_needed(op.mask_vector):
                    self._by_lane(op, infix("<", Text(LANE), super().text(op.mask_dim_sizes[0]), COMPARED))
            case vector.ShuffleOp():
                self._shuffled(op)
            case vector.BitcastOp() | arith.BitcastOp():
                (source,), (result,) = op.operands, op.results
                self.declared(result, f"({self.type_of(result)}){self.text(source).enclosed_unless_atom().words}")
            case vector.ReductionOp():
                self._reduced(op)
            case _:
                return False
        return True

    def _constant(self, op: arith.ConstantOp) -> None:
        """A vector of different numbers, as a variable."""
        if isinstance(op.value, DenseIntOrFPElementsAttr) and self._scalar_of(op.result) is None:
            numbers = ", ".join(map(self._stored_literal, op.value.get_attrs()))
            self.declared(op.result, f"{{{numbers}}}")

    def _stored_literal(self, value: Attribute) -> str:
        return {"true": "1", "false": "0"}.get(text := self.language.literal(value), text)

    def _spread(self, op: vector.BroadcastOp) -> None:
        """The only lane of a vector as all lanes of another."""
        if lanes(op.source.type) != 1:
            raise self.language.lacks(f"a vector.broadcast of {op.source.type}")
        self._by_lane(op, Text(f"{self.text(op.source).enclosed_unless_atom().words}[0]"))

    def _position(self, op: vector.ExtractOp | vector.InsertOp) -> str:
        places = op.static_position.get_values()
        if len(places) != 1:
            raise self.language.lacks(f"a '{op.name}' at {len(places)} positions")
        return super().text(op.dynamic_position[0]).words if places[0] == DYNAMIC else str(places[0])

    def _shuffled(self, op: vector.ShuffleOp) -> None:
        assert isinstance(op.mask, DenseArrayBase)
        first, second = (self.text(value).enclosed_unless_atom().words for value in (op.v1, op.v2))
        count = lanes(op.v1.type)
        picks = [int(pick) for pick in op.mask.get_values()]
        words = ["0" if n < 0 else f"{first}[{n}]" if n < count else f"{second}[{n - count}]" for n in picks]
        self.declared(op.result, f"{{{', '.join(words)}}}")

    def _reduced(self, op: vector.ReductionOp) -> None:
        """The lanes joined one after the other, behind the accumulator."""
        kind, type_ = op.kind.data.value, op.dest.type
        if isinstance(type_, NARROW_FLOATS) or kind not in _KINDS:
            raise self.language.lacks(f"a vector.reduction <{kind}> of {op.vector.type}")
        source = self.text(op.vector).enclosed_unless_atom().words
        first, start = (0, self.text(op.acc).words) if op.acc is not None else (1, f"{source}[0]")
        name = self.variable(op.dest, f" = {start}")
        joined = self._joined(kind, type_, name, f"{source}[{LANE}]")
        head = f"for (int {LANE} = {first}; {LANE} < {lanes(op.vector.type)}; ++{LANE})"
        self.line(f"{head} {name} = {joined};")

    def _joined(self, kind: str, type_: Attribute, left: str, right: str) -> str:
        sign, function = _KINDS[kind]
        at = self.language.integer(type_)
        if sign:
            wraps = at is not None and sign in "+*"
            return f"({at.signed})(({at.wrapping}){left} {sign} {right})" if wraps and at else f"{left} {sign} {right}"
        if function.startswith("f"):
            return f"{self.language.function(function, type_)}({left}, {right})"
        if at is None:
            return f"{self.language.helper(function, self.language.spelled(type_))}({left}, {right})"
        return f"{self.language.helper(function, at.unsigned if 'u' in kind else at.signed)}({left}, {right})"

    # --- arithmetic ---------------------------------------------------------------------------------------------------

    def _computed(self, op: Operation) -> None:
        """An operator of whole vectors, or any other operation lane by lane."""
        if not op.results or not isinstance(op.results[0].type, VectorType) or op.regions:
            raise self.language.lacks(f"'{op.name}' on vectors")
        if _has_operator(op):
            self._infix(op)
            return
        texts = [self._lane(value) for value in op.operands]
        if isinstance(op, LdexpOp):
            function = self.language.function("ldexp", element_of(op.result.type))
            self._by_lane(op, called(function, texts[:2]))
        elif op.name == "arith.select":
            self._by_lane(op, chosen(*texts))
        else:
            self._by_lane(op, expression(op, texts, self.language, [True] * len(texts), True))

    def _infix(self, op: Operation) -> None:
        """A sum, product and so on; one operand may be a scalar."""
        left, right = op.operands
        scalars = [self._scalar_of(value) for value in (left, right)]
        texts = [self.text(value) for value in (left, right)]
        if scalars[0] is None or scalars[1] is None:
            pairs = zip(scalars, texts, strict=True)
            texts = [text if scalar is None else scalar for scalar, text in pairs]
        sign, precedence = ARITHMETIC[type(op)]
        self.value(op, infix(sign, texts[0], texts[1], precedence))

    def is_in_place(self, op: Operation) -> bool:
        """Whether a value may stand where it is used; of a vector only in sums, in stores, and as a new value of a
        loop's variable."""
        if not super().is_in_place(op):
            return False
        if not isinstance(op.results[0].type, VectorType):
            return True
        user = next(iter(op.results[0].uses)).operation
        return _has_operator(user) or isinstance(user, vector.StoreOp | scf.YieldOp)


def _has_operator(op: Operation) -> bool:
    """Whether C has an operator for whole vectors of the results of an op."""
    if type(op) not in ARITHMETIC or not isinstance(op.results[0].type, VectorType):
        return False
    return isinstance(element_of(op.results[0].type), Float32Type | Float64Type)


@dataclass(frozen=True)
class Prefix:
    """The lanes of a mask that has the first `count` lanes, all where there is no count, if all conditions hold."""

    conditions: tuple[SSAValue, ...]
    count: SSAValue | None


def _prefix(mask: SSAValue) -> Prefix | None:
    """The lanes of a mask where these are the first ones; None for other masks."""
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
    """Whether a mask has to be a variable: something else takes it than loads and stores of its first lanes."""
    return _prefix(mask) is None or any(map(_takes_lanes, mask.uses))


def _takes_lanes(use: Use) -> bool:
    op = use.operation
    if isinstance(op, arith.AndIOp):
        return _is_needed(op.result)
    return not (isinstance(op, vector.MaskedLoadOp | vector.MaskedStoreOp) and op.operands[use.index] is op.mask)
