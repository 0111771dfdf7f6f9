"""Scalar operations as expressions of CUDA C++ with MLIR's semantics: integers wrap at their width, the operation
decides about signs, and comparisons define NaN."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import Float32Type, Float64Type, IndexType, IntegerType, i1
from xdsl.ir import Attribute, Operation

from compiler.dialects.mathematics import ELEMENTARY
from compiler.dialects.upstream.arith import CMPF, CMPI, element_of
from compiler.support.errors import LoweringError
from compiler.targets.cuda.expressions import (
    COMPARED,
    NEGATIVE,
    PRODUCT,
    SUM,
    Text,
    arithmetic,
    called,
    cast,
    chosen,
    infix,
    is_number,
)
from compiler.targets.cuda.types import NARROW_FLOATS, Integer, integer, spelled

Texts = Sequence[Text]

_FLOAT: Mapping[type[Operation], tuple[str, int]] = {
    arith.AddfOp: ("+", SUM),
    arith.SubfOp: ("-", SUM),
    arith.MulfOp: ("*", PRODUCT),
    arith.DivfOp: ("/", PRODUCT),
}
"""Infix operators with their precedence in C, higher binding closer."""

_WRAPPING: Mapping[type[Operation], tuple[str, int]] = {
    arith.AddiOp: ("+", SUM),
    arith.SubiOp: ("-", SUM),
    arith.MuliOp: ("*", PRODUCT),
    arith.ShLIOp: ("<<", 11),
}
"""Those that may overflow."""

_BITWISE: Mapping[type[Operation], tuple[str, int]] = {
    arith.AndIOp: ("&", 8),
    arith.OrIOp: ("|", 6),
    arith.XOrIOp: ("^", 7),
    arith.ShRSIOp: (">>", 11),
}
"""Those whose results the type of the operands holds."""

_DIVISIONS: Mapping[type[Operation], tuple[str, str | None, bool]] = {
    arith.DivSIOp: ("quotient", "/", False),
    arith.RemSIOp: ("remainder", "%", False),
    arith.DivUIOp: ("unsigned_quotient", "/", True),
    arith.RemUIOp: ("unsigned_remainder", "%", True),
    arith.FloorDivSIOp: ("floor_quotient", None, False),
    arith.CeilDivSIOp: ("ceil_quotient", None, False),
    arith.CeilDivUIOp: ("unsigned_ceil_quotient", None, True),
}
"""The helper of a division, the operator that does where the divisor is a harmless constant, and whether operands have
no sign."""

_EXTREMES: Mapping[type[Operation], tuple[str, bool]] = {
    arith.MinSIOp: ("min", False),
    arith.MaxSIOp: ("max", False),
    arith.MinUIOp: ("min", True),
    arith.MaxUIOp: ("max", True),
}

_LOGICAL: Mapping[type[Operation], tuple[str, int]] = {
    arith.AndIOp: ("&&", 5),
    arith.OrIOp: ("||", 4),
    arith.XOrIOp: ("!=", 9),
    arith.AddiOp: ("!=", 9),
    arith.SubiOp: ("!=", 9),
    arith.MuliOp: ("&&", 5),
    arith.MinUIOp: ("&&", 5),
    arith.MaxUIOp: ("||", 4),
    arith.MinSIOp: ("||", 4),  # true is -1
    arith.MaxSIOp: ("&&", 5),
}
"""Operations on truth values."""

FUNCTIONS: Mapping[type[Operation], str] = {
    **{row.op: row.c for row in ELEMENTARY.values()},
    arith.MaxnumfOp: "fmax",
    arith.MinnumfOp: "fmin",
    vector.FMAOp: "fma",
}
"""Functions of CUDA's mathematics; f in single precision, in which narrower floats are computed, too."""

_SPECIAL = {
    arith.MaximumfOp: "maximum",
    arith.MinimumfOp: "minimum",
    math.AbsIOp: "absolute",
    math.IPowIOp: "integer_power",
}
"""Helpers on numbers of the result's type."""

_RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_COMPLEMENTS = {"gt": "<=", "ge": "<", "lt": ">=", "le": ">"}
"""Of a relation that also holds of NaN: the one that then does not."""
_ROUNDED: Mapping[type[Operation], str] = {arith.AddfOp: "add", arith.SubfOp: "sub", arith.MulfOp: "mul"}


def expression(op: Operation, texts: Texts, helpers: set[str], wide: Sequence[bool], is_wide: bool = False) -> Text:
    """An op on scalars, or on one lane of vectors, as an expression of its operands with the value range of its type.

    `wide` says which operands are indices of 64 bits, `is_wide` whether the result is. Helpers that it needs are added
    to `helpers`. Raises LoweringError for what kernels lack.
    """
    source = element_of(op.operands[-1].type)
    target = element_of(op.results[0].type)
    if op.name in _CONVERSIONS:
        return _CONVERSIONS[op.name](texts[0], source, integer(target, is_wide), target)
    if not isinstance(source, IntegerType | IndexType):
        return _on_floats(op, texts, target, helpers)
    is_index = isinstance(source, IndexType)
    long = is_index and (is_wide or any(wide))
    if long:
        texts = [_longer(text) if is_short else text for text, is_short in zip(texts, _short(op, wide), strict=True)]
    if op.name == "arith.select":
        text = chosen(*texts)
    elif source == i1:
        return _on_truth(op, texts)
    else:
        at = integer(source, long)
        assert at is not None
        text = _on_integers(op, texts, at, is_index, helpers)
    return cast("int", text) if long and not is_wide and isinstance(target, IndexType) else text


def _short(op: Operation, wide: Sequence[bool]) -> list[bool]:
    """Which operands are indices of 32 bits."""
    pairs = zip(op.operands, wide, strict=True)
    return [isinstance(element_of(value.type), IndexType) and not is_wide for value, is_wide in pairs]


def _longer(text: Text) -> Text:
    """An index of 32 bits as one of 64."""
    return Text(f"{text.words}LL", text.precedence) if is_number(text) else cast("long long", text)


# --- integers ---------------------------------------------------------------------------------------------------------


def _on_integers(op: Operation, texts: Texts, at: Integer, is_index: bool, helpers: set[str]) -> Text:
    """An op on integers of a width; indices never overflow."""
    kind = type(op)
    if kind in _WRAPPING:
        sign, precedence = _WRAPPING[kind]
        if is_index:
            return arithmetic(sign, texts[0], texts[1], precedence)
        return cast(at.signed, infix(sign, cast(at.wrapping, texts[0]), texts[1], precedence))
    if kind in _BITWISE:
        return infix(_BITWISE[kind][0], texts[0], texts[1], _BITWISE[kind][1])
    if isinstance(op, arith.ShRUIOp):
        return cast(at.signed, infix(">>", cast(at.unsigned, texts[0]), texts[1], 11))
    if kind in _DIVISIONS:
        return _divided(kind, texts, at, is_index, helpers)
    if kind in _EXTREMES:
        name, unsigned = _EXTREMES[kind]
        if not unsigned and at.bits >= 32:
            return called(name, texts)
        type_ = at.unsigned if unsigned else at.signed
        return cast(at.signed, called(name, [cast(type_, text) for text in texts]))
    if op.name == "arith.cmpi":
        return _compared_integers(CMPI[op.properties["predicate"].value.data], texts, at, is_index)  # type: ignore[attr-defined]
    if kind in _SPECIAL:
        helpers.add(_SPECIAL[kind])
        return called(f"{_SPECIAL[kind]}<{at.signed}>", texts)
    raise LoweringError(f"kernels have no '{op.name}'")


def _divided(kind: type[Operation], texts: Texts, at: Integer, is_index: bool, helpers: set[str]) -> Text:
    name, sign, unsigned = _DIVISIONS[kind]
    is_small = is_index and at.bits < 64  # then it is known not to be negative
    type_ = at.unsigned if unsigned and not is_small else at.signed
    if sign is not None and re.fullmatch(r"[1-9]\d*(LL)?", texts[1].words):
        if type_ == at.signed:
            return infix(sign, texts[0], texts[1], PRODUCT)
        return cast(at.signed, infix(sign, cast(type_, texts[0]), cast(type_, texts[1]), PRODUCT))
    helpers.add(name)
    call = called(f"{name}<{type_}>", texts)
    return call if type_ == at.signed else cast(at.signed, call)


def _compared_integers(predicate: str, texts: Texts, at: Integer, is_index: bool) -> Text:
    left, right = texts
    if predicate.startswith("u"):
        left, right = (text if text.words.isdigit() else cast(at.unsigned, text) for text in texts)
    elif predicate == "sge" and is_index and left.words.isdigit():
        return infix("<", right, Text(str(int(left.words) + 1)), COMPARED).enclosed()
    return infix(_RELATIONS[predicate[-2:]], left, right, COMPARED).enclosed()


def _on_truth(op: Operation, texts: Texts) -> Text:
    """An op on truth values; as a signed integer true is -1."""
    if op.name == "arith.cmpi":
        predicate = CMPI[op.properties["predicate"].value.data]  # type: ignore[attr-defined]
        left, right = reversed(texts) if predicate.startswith("s") else texts
        return infix(_RELATIONS[predicate[-2:]], left, right, COMPARED).enclosed()
    if type(op) not in _LOGICAL:
        raise LoweringError(f"kernels have no '{op.name}' on truth values")
    return infix(_LOGICAL[type(op)][0], texts[0], texts[1], _LOGICAL[type(op)][1])


# --- floats -----------------------------------------------------------------------------------------------------------


def _on_floats(op: Operation, texts: Texts, target: Attribute, helpers: set[str]) -> Text:
    kind = type(op)
    exact = rounded(op, texts)
    if exact is not None:
        return exact
    if kind in _FLOAT:
        sign, precedence = _FLOAT[kind]
        return infix(sign, texts[0], texts[1], precedence)
    if op.name == "arith.select":
        return chosen(*texts)
    if op.name == "arith.cmpf":
        return _compared_floats(CMPF[op.properties["predicate"].value.data], texts)  # type: ignore[attr-defined]
    if isinstance(op, arith.NegfOp):
        return Text(f"(-({texts[0].words}))")
    if kind in _SPECIAL:
        helpers.add(_SPECIAL[kind])
        return called(f"{_SPECIAL[kind]}<{spelled(target)}>", texts)
    if kind not in FUNCTIONS:
        raise LoweringError(f"kernels have no '{op.name}'")
    if isinstance(target, NARROW_FLOATS):
        return cast(spelled(target), called(f"{FUNCTIONS[kind]}f", [cast("float", text) for text in texts]))
    return called(f"{FUNCTIONS[kind]}{'f' if isinstance(target, Float32Type) else ''}", texts)


def _compared_floats(predicate: str, texts: Texts) -> Text:
    """A comparison that is ordered, o, where NaN makes it false, or unordered, u, where NaN makes it true."""
    a, b = (text.within(COMPARED + 1) for text in texts)
    match predicate:
        case "true" | "false":
            return Text(predicate)
        case "ord":
            return Text(f"({a} == {a} && {b} == {b})")
        case "uno":
            return Text(f"({a} != {a} || {b} != {b})")
        case "one":
            return Text(f"({a} < {b} || {a} > {b})")
        case "ueq":
            return Text(f"(!({a} < {b} || {a} > {b}))")
    relation = predicate[1:]
    if predicate[0] == "u" and relation in _COMPLEMENTS:
        return Text(f"(!({a} {_COMPLEMENTS[relation]} {b}))")
    return Text(f"({a} {_RELATIONS[relation]} {b})")


def rounded(op: Operation, texts: Texts) -> Text | None:
    """A sum or product that must not be contracted, as the intrinsic that never is; None where it may be."""
    name, type_ = _ROUNDED.get(type(op)), element_of(op.results[0].type)
    flags = getattr(op, "fastmath", None)
    if name is None or not isinstance(type_, Float32Type | Float64Type):
        return None
    if flags is not None and any(str(flag) in ("contract", "fast") or "contract" in str(flag) for flag in flags.data):
        return None
    return called(f"__{'f' if isinstance(type_, Float32Type) else 'd'}{name}_rn", texts)


# --- conversions ------------------------------------------------------------------------------------------------------

Conversion = Callable[[Text, Attribute, Integer | None, Attribute], Text]


def _signed(text: Text, source: Attribute, to: Integer | None, target: Attribute) -> Text:
    """An integer with its sign, as one of another width or as a float."""
    value = chosen(text, Text("-1", NEGATIVE), Text("0")) if source == i1 else text
    return cast(to.signed if to is not None else spelled(target), value)


def _unsigned(text: Text, source: Attribute, to: Integer | None, target: Attribute) -> Text:
    """The bits of an integer without a sign, as one of another width or as a float."""
    of = integer(source)
    value = cast("int", text) if of is None else cast(of.unsigned, text)
    return cast(to.signed if to is not None else spelled(target), value)


def _truncated(text: Text, source: Attribute, to: Integer | None, target: Attribute) -> Text:
    """The low bits of an integer."""
    if to is not None:
        return cast(to.signed, text)
    return infix("!=", infix("&", text, Text("1"), 8).enclosed(), Text("0"), COMPARED).enclosed()


def _whole(unsigned: bool) -> Conversion:
    def convert(text: Text, source: Attribute, to: Integer | None, target: Attribute) -> Text:
        """A float without its fraction; beyond the limits of the integer it is undefined."""
        if to is None:
            raise LoweringError("kernels make no truth values of floats")
        value = cast("float", text) if isinstance(source, NARROW_FLOATS) else text
        return cast(to.signed, cast(to.unsigned, value) if unsigned else value)

    return convert


def _float(text: Text, source: Attribute, to: Integer | None, target: Attribute) -> Text:
    """A float of another width: narrow ones become doubles by way of single precision."""
    by_single = isinstance(source, NARROW_FLOATS) and isinstance(target, Float64Type)
    return cast(spelled(target), cast("float", text) if by_single else text)


_CONVERSIONS: Mapping[str, Conversion] = {
    "arith.index_cast": _signed,
    "arith.extsi": _signed,
    "arith.sitofp": _signed,
    "arith.extui": _unsigned,
    "arith.uitofp": _unsigned,
    "arith.trunci": _truncated,
    "arith.fptosi": _whole(unsigned=False),
    "arith.fptoui": _whole(unsigned=True),
    "arith.extf": _float,
    "arith.truncf": _float,
}
