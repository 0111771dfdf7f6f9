"""Scalar operations as expressions of C and CUDA C++ with MLIR's semantics: integers wrap at their width, the operation
decides about signs, and comparisons define NaN."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import IndexType, IntegerType, f32, i1
from xdsl.ir import Attribute, Operation

from compiler.dialects.mathematics import ELEMENTARY
from compiler.dialects.upstream.arith import CMPF, CMPI, element_of
from compiler.targets.clike.expressions import (
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
from compiler.targets.clike.language import NARROW_FLOATS, Integer, Language

Texts = Sequence[Text]

ARITHMETIC: Mapping[type[Operation], tuple[str, int]] = {
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

DIVISIONS: Mapping[type[Operation], tuple[str, str | None, bool]] = {
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
"""Functions of the libraries of mathematics; f in single precision, in which narrower floats are computed, too."""

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


def expression(op: Operation, texts: Texts, to: Language, wide: Sequence[bool], is_wide: bool = False) -> Text:
    """An op on scalars, or on one lane of vectors, as an expression of its operands with the value range of its type.

    `wide` says which operands are indices of 64 bits, `is_wide` whether the result is. Helpers that it needs are added
    to those of the language. Raises LoweringError for what the language lacks.
    """
    source = element_of(op.operands[-1].type)
    target = element_of(op.results[0].type)
    if op.name in _CONVERSIONS:
        return _CONVERSIONS[op.name](to, texts[0], Types(source, target, to.integer(target, is_wide)))
    if not isinstance(source, IntegerType | IndexType):
        return _on_floats(op, texts, target, to)
    is_index = isinstance(source, IndexType)
    long = is_index and (is_wide or any(wide))
    if long:
        texts = [_longer(text) if is_short else text for text, is_short in zip(texts, _short(op, wide), strict=True)]
    if op.name == "arith.select":
        text = chosen(*texts)
    elif source == i1:
        return _on_truth(op, texts, to)
    else:
        at = to.integer(source, long)
        assert at is not None
        text = _on_integers(op, texts, Numbers(at, is_index, is_index and not long), to)
    return cast("int", text) if long and not is_wide and isinstance(target, IndexType) else text


def _short(op: Operation, wide: Sequence[bool]) -> list[bool]:
    """Which operands are indices of 32 bits."""
    pairs = zip(op.operands, wide, strict=True)
    return [isinstance(element_of(value.type), IndexType) and not is_wide for value, is_wide in pairs]


def _longer(text: Text) -> Text:
    """An index of 32 bits as one of 64."""
    return Text(f"{text.words}LL", text.precedence) if is_number(text) else cast("long long", text)


# --- integers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """Integers that an op computes with: how they are spelled, whether they are indices, and such as are not wide: then
    they are known not to be negative."""

    spelling: Integer
    are_indices: bool
    are_natural: bool


def _on_integers(op: Operation, texts: Texts, numbers: Numbers, to: Language) -> Text:
    """An op on integers of a width; indices never overflow."""
    kind, at, is_index = type(op), numbers.spelling, numbers.are_indices
    if kind in _WRAPPING:
        sign, precedence = _WRAPPING[kind]
        if is_index:
            return arithmetic(sign, texts[0], texts[1], precedence)
        return cast(at.signed, infix(sign, cast(at.wrapping, texts[0]), texts[1], precedence))
    if kind in _BITWISE:
        return infix(_BITWISE[kind][0], texts[0], texts[1], _BITWISE[kind][1])
    if isinstance(op, arith.ShRUIOp):
        return cast(at.signed, infix(">>", cast(at.unsigned, texts[0]), texts[1], 11))
    if kind in DIVISIONS:
        return _divided(kind, texts, numbers, to)
    if kind in _EXTREMES:
        name, unsigned = _EXTREMES[kind]
        type_ = at.unsigned if unsigned else at.signed
        function = to.helper(name, type_)
        if not unsigned and at.bits >= 32:
            return called(function, texts)
        return cast(at.signed, called(function, [cast(type_, text) for text in texts]))
    if op.name == "arith.cmpi":
        return _compared_integers(CMPI[op.properties["predicate"].value.data], texts, at, is_index)  # type: ignore[attr-defined]
    if kind in _SPECIAL:
        return called(to.helper(_SPECIAL[kind], at.signed), texts)
    raise to.lacks(f"'{op.name}'")


def _divided(kind: type[Operation], texts: Texts, numbers: Numbers, to: Language) -> Text:
    (name, sign, unsigned), at = DIVISIONS[kind], numbers.spelling
    type_ = at.unsigned if unsigned and not numbers.are_natural else at.signed
    if sign is not None and re.fullmatch(r"[1-9]\d*(LL)?", texts[1].words):
        if type_ == at.signed:
            return infix(sign, texts[0], texts[1], PRODUCT)
        return cast(at.signed, infix(sign, cast(type_, texts[0]), cast(type_, texts[1]), PRODUCT))
    call = called(to.helper(name, type_), texts)
    return call if type_ == at.signed else cast(at.signed, call)


def _compared_integers(predicate: str, texts: Texts, at: Integer, is_index: bool) -> Text:
    left, right = texts
    if predicate.startswith("u"):
        left, right = (text if text.words.isdigit() else cast(at.unsigned, text) for text in texts)
    elif predicate == "sge" and is_index and left.words.isdigit():
        return infix("<", right, Text(str(int(left.words) + 1)), COMPARED).enclosed()
    return infix(_RELATIONS[predicate[-2:]], left, right, COMPARED).enclosed()


def _on_truth(op: Operation, texts: Texts, to: Language) -> Text:
    """An op on truth values; as a signed integer true is -1."""
    if op.name == "arith.cmpi":
        predicate = CMPI[op.properties["predicate"].value.data]  # type: ignore[attr-defined]
        left, right = reversed(texts) if predicate.startswith("s") else texts
        return infix(_RELATIONS[predicate[-2:]], left, right, COMPARED).enclosed()
    if type(op) not in _LOGICAL:
        raise to.lacks(f"'{op.name}' on truth values")
    return infix(_LOGICAL[type(op)][0], texts[0], texts[1], _LOGICAL[type(op)][1])


# --- floats -----------------------------------------------------------------------------------------------------------


def _on_floats(op: Operation, texts: Texts, target: Attribute, to: Language) -> Text:
    kind = type(op)
    exact = to.exact(op, texts)
    if exact is not None:
        return exact
    if kind in ARITHMETIC:
        sign, precedence = ARITHMETIC[kind]
        return infix(sign, texts[0], texts[1], precedence)
    if op.name == "arith.select":
        return chosen(*texts)
    if op.name == "arith.cmpf":
        return _compared_floats(CMPF[op.properties["predicate"].value.data], texts)  # type: ignore[attr-defined]
    if isinstance(op, arith.NegfOp):
        return Text(f"(-({texts[0].words}))")
    if kind in _SPECIAL:
        return called(to.helper(_SPECIAL[kind], to.spelled(target)), texts)
    if kind not in FUNCTIONS:
        raise to.lacks(f"'{op.name}'")
    if isinstance(target, NARROW_FLOATS):
        wide = [to.converted(text, target, f32) for text in texts]
        return to.converted(called(to.function(FUNCTIONS[kind], f32), wide), f32, target)
    return called(to.function(FUNCTIONS[kind], target), texts)


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


# --- conversions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Types:
    """The types of a conversion; `to` is how an integer that it gives is spelled, None for floats and truth values."""

    source: Attribute
    target: Attribute
    to: Integer | None


Conversion = Callable[[Language, Text, Types], Text]


def _signed(language: Language, text: Text, types: Types) -> Text:
    """An integer with its sign, as one of another width or as a float."""
    value = chosen(text, Text("-1", NEGATIVE), Text("0")) if types.source == i1 else text
    return _number(language, value, types)


def _unsigned(language: Language, text: Text, types: Types) -> Text:
    """The bits of an integer without a sign, as one of another width or as a float."""
    of = language.integer(types.source)
    return _number(language, cast("int" if of is None else of.unsigned, text), types)


def _number(language: Language, value: Text, types: Types) -> Text:
    """An integer as one of another width, or as a float."""
    if types.to is not None:
        return cast(types.to.signed, value)
    return language.converted(value, types.source, types.target)


def _truncated(language: Language, text: Text, types: Types) -> Text:
    """The low bits of an integer."""
    if types.to is not None:
        return cast(types.to.signed, text)
    return infix("!=", infix("&", text, Text("1"), 8).enclosed(), Text("0"), COMPARED).enclosed()


def _whole(unsigned: bool) -> Conversion:
    def convert(language: Language, text: Text, types: Types) -> Text:
        """A float without its fraction; beyond the limits of the integer it is undefined."""
        if types.to is None:
            raise language.lacks("conversion of floats to truth values")
        is_narrow = isinstance(types.source, NARROW_FLOATS)
        value = language.converted(text, types.source, f32) if is_narrow else text
        return cast(types.to.signed, cast(types.to.unsigned, value) if unsigned else value)

    return convert


def _float(language: Language, text: Text, types: Types) -> Text:
    """A float of another width."""
    return language.converted(text, types.source, types.target)


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
