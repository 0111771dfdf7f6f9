"""Scalar operations as expressions of C and CUDA C++ with MLIR's semantics: integers wrap at their width, the op
decides on signedness, and comparisons define NaN."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import IndexType, IntegerType, f32, i1
from xdsl.ir import Attribute, Operation

from compiler.dialects.mathematics import ELEMENTARY
from compiler.dialects.upstream.arith import CMPF, CMPI
from compiler.dialects.upstream.casts import element_of
from compiler.targets.clike.expressions import (
    COMPARED,
    NEGATIVE,
    PRODUCT,
    SUM,
    CExpr,
    arithmetic,
    cast,
    function_call,
    infix,
    is_number,
    ternary,
)
from compiler.targets.clike.language import NARROW_FLOATS, Integer, Language

Texts = Sequence[CExpr]

ARITHMETIC: Mapping[type[Operation], tuple[str, int]] = {
    arith.AddfOp: ("+", SUM),
    arith.SubfOp: ("-", SUM),
    arith.MulfOp: ("*", PRODUCT),
    arith.DivfOp: ("/", PRODUCT),
}
"""Infix operators of float ops with their precedence in C; a higher one binds tighter."""

_WRAPPING: Mapping[type[Operation], tuple[str, int]] = {
    arith.AddiOp: ("+", SUM),
    arith.SubiOp: ("-", SUM),
    arith.MuliOp: ("*", PRODUCT),
    arith.ShLIOp: ("<<", 11),
}
"""Infix operators of integer ops that may overflow, with their precedence."""

_BITWISE: Mapping[type[Operation], tuple[str, int]] = {
    arith.AndIOp: ("&", 8),
    arith.OrIOp: ("|", 6),
    arith.XOrIOp: ("^", 7),
    arith.ShRSIOp: (">>", 11),
}
"""Infix operators of integer ops that cannot overflow, with their precedence."""

DIVISIONS: Mapping[type[Operation], tuple[str, str | None, bool]] = {
    arith.DivSIOp: ("quotient", "/", False),
    arith.RemSIOp: ("remainder", "%", False),
    arith.DivUIOp: ("unsigned_quotient", "/", True),
    arith.RemUIOp: ("unsigned_remainder", "%", True),
    arith.FloorDivSIOp: ("floor_quotient", None, False),
    arith.CeilDivSIOp: ("ceil_quotient", None, False),
    arith.CeilDivUIOp: ("unsigned_ceil_quotient", None, True),
}
"""The helper of a division, the operator for a constant positive divisor (None if C has none), and whether operands are
unsigned."""

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
"""Infix operators of ops on truth values, with their precedence."""

FUNCTIONS: Mapping[type[Operation], str] = {
    **{row.op: row.c for row in ELEMENTARY.values()},
    arith.MaxnumfOp: "fmax",
    arith.MinnumfOp: "fmin",
    vector.FMAOp: "fma",
}
"""Functions of <math.h> by op; they have the suffix f for f32, in which f16 and bf16 are computed, too."""

_SPECIAL = {
    arith.MaximumfOp: "maximum",
    arith.MinimumfOp: "minimum",
    math.AbsIOp: "absolute",
    math.IPowIOp: "integer_power",
}
"""The helpers of ops, defined for the type of the result."""

_RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_COMPLEMENTS = {"gt": "<=", "ge": "<", "lt": ">=", "le": ">"}
"""The negated relation: `!(a <= b)` is true for NaN, as an unordered `a > b` is."""


def expression(op: Operation, texts: Texts, language: Language, wide: Sequence[bool], is_wide: bool = False) -> CExpr:
    """Write an op on scalars, or on one lane of vectors, as an expression of its operands `texts`. wide: for each
    operand whether it is an index of 64 bits; is_wide: whether the result is one; both matter for values of type index
    only. Helpers in use are added to those of the language. Raises LoweringError for an op that the language lacks."""
    source = element_of(op.operands[-1].type)
    target = element_of(op.results[0].type)
    if op.name in _CONVERSIONS:
        return _CONVERSIONS[op.name](
            language, texts[0], ConversionTypes(source, target, language.integer(target, is_wide))
        )
    if not isinstance(source, IntegerType | IndexType):
        return _float_op(op, texts, target, language)
    is_index = isinstance(source, IndexType)
    long = is_index and (is_wide or any(wide))
    if long:
        texts = [
            _as_long(text) if is_short else text
            for text, is_short in zip(texts, _are_short_indices(op, wide), strict=True)
        ]
    if op.name == "arith.select":
        text = ternary(*texts)
    elif source == i1:
        return _on_booleans(op, texts, language)
    else:
        integer = language.integer(source, long)
        assert integer is not None
        text = _integer_op(op, texts, IntegerOperands(integer, is_index, is_index and not long), language)
    return cast("int", text) if long and not is_wide and isinstance(target, IndexType) else text


def _are_short_indices(op: Operation, wide: Sequence[bool]) -> list[bool]:
    """Return for each operand whether it is an index of 32 bits. wide: for each operand whether it is an index of 64
    bits."""
    pairs = zip(op.operands, wide, strict=True)
    return [isinstance(element_of(value.type), IndexType) and not is_wide for value, is_wide in pairs]


def _as_long(text: CExpr) -> CExpr:
    return CExpr(f"{text.code}LL", text.precedence) if is_number(text) else cast("long long", text)


# --- integers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IntegerOperands:
    """The integer type of an op's operands: its spelling, whether it is index, and whether it is a 32-bit index >=
    0."""

    spelling: Integer
    are_indices: bool
    are_natural: bool


def _integer_op(op: Operation, texts: Texts, numbers: IntegerOperands, language: Language) -> CExpr:
    """Write an op on integers with results wrapped to their width; index arithmetic never overflows. Raises
    LoweringError for an op that the language lacks."""
    kind, integer, is_index = type(op), numbers.spelling, numbers.are_indices
    if kind in _WRAPPING:
        sign, precedence = _WRAPPING[kind]
        if is_index:
            return arithmetic(sign, texts[0], texts[1], precedence)
        return cast(integer.signed, infix(sign, cast(integer.wrapping, texts[0]), texts[1], precedence))
    if kind in _BITWISE:
        return infix(_BITWISE[kind][0], texts[0], texts[1], _BITWISE[kind][1])
    if isinstance(op, arith.ShRUIOp):
        return cast(integer.signed, infix(">>", cast(integer.unsigned, texts[0]), texts[1], 11))
    if kind in DIVISIONS:
        return _division(kind, texts, numbers, language)
    if kind in _EXTREMES:
        name, unsigned = _EXTREMES[kind]
        type_ = integer.unsigned if unsigned else integer.signed
        function = language.helper(name, type_)
        if not unsigned and integer.bits >= 32:
            return function_call(function, texts)
        return cast(integer.signed, function_call(function, [cast(type_, text) for text in texts]))
    if op.name == "arith.cmpi":
        return _compared_integers(CMPI[op.properties["predicate"].value.data], texts, integer, is_index)  # type: ignore[attr-defined]
    if kind in _SPECIAL:
        return function_call(language.helper(_SPECIAL[kind], integer.signed), texts)
    raise language.lacks(f"'{op.name}'")


def _division(kind: type[Operation], texts: Texts, numbers: IntegerOperands, language: Language) -> CExpr:
    (name, sign, unsigned), integer = DIVISIONS[kind], numbers.spelling
    type_ = integer.unsigned if unsigned and not numbers.are_natural else integer.signed
    if sign is not None and re.fullmatch(r"[1-9]\d*(LL)?", texts[1].code):
        if type_ == integer.signed:
            return infix(sign, texts[0], texts[1], PRODUCT)
        return cast(integer.signed, infix(sign, cast(type_, texts[0]), cast(type_, texts[1]), PRODUCT))
    call = function_call(language.helper(name, type_), texts)
    return call if type_ == integer.signed else cast(integer.signed, call)


def _compared_integers(predicate: str, texts: Texts, integer: Integer, is_index: bool) -> CExpr:
    left, right = texts
    if predicate.startswith("u"):
        left, right = (text if text.code.isdigit() else cast(integer.unsigned, text) for text in texts)
    elif predicate == "sge" and is_index and left.code.isdigit():
        return infix("<", right, CExpr(str(int(left.code) + 1)), COMPARED).enclosed()
    return infix(_RELATIONS[predicate[-2:]], left, right, COMPARED).enclosed()


def _on_booleans(op: Operation, texts: Texts, language: Language) -> CExpr:
    """Write an op on truth values; in signed comparisons and extrema true is -1. Raises LoweringError for ops other
    than comparisons, logic, sums, differences, products and extrema."""
    if op.name == "arith.cmpi":
        predicate = CMPI[op.properties["predicate"].value.data]  # type: ignore[attr-defined]
        left, right = reversed(texts) if predicate.startswith("s") else texts
        return infix(_RELATIONS[predicate[-2:]], left, right, COMPARED).enclosed()
    if type(op) not in _LOGICAL:
        raise language.lacks(f"'{op.name}' on truth values")
    return infix(_LOGICAL[type(op)][0], texts[0], texts[1], _LOGICAL[type(op)][1])


# --- floats -----------------------------------------------------------------------------------------------------------


def _float_op(op: Operation, texts: Texts, target: Attribute, language: Language) -> CExpr:
    kind = type(op)
    exact = language.exact(op, texts)
    if exact is not None:
        return exact
    if kind in ARITHMETIC:
        sign, precedence = ARITHMETIC[kind]
        return infix(sign, texts[0], texts[1], precedence)
    if op.name == "arith.select":
        return ternary(*texts)
    if op.name == "arith.cmpf":
        return _compared_floats(CMPF[op.properties["predicate"].value.data], texts)  # type: ignore[attr-defined]
    if isinstance(op, arith.NegfOp):
        return CExpr(f"(-({texts[0].code}))")
    if kind in _SPECIAL:
        return function_call(language.helper(_SPECIAL[kind], language.spelled(target)), texts)
    if kind not in FUNCTIONS:
        raise language.lacks(f"'{op.name}'")
    if isinstance(target, NARROW_FLOATS):
        wide = [language.converted(text, target, f32) for text in texts]
        return language.converted(function_call(language.function(FUNCTIONS[kind], f32), wide), f32, target)
    return function_call(language.function(FUNCTIONS[kind], target), texts)


def _compared_floats(predicate: str, texts: Texts) -> CExpr:
    """Write a comparison of floats by a predicate of arith.cmpf: ordered ones (o) are false for NaN, unordered ones (u)
    true."""
    a, b = (text.within(COMPARED + 1) for text in texts)
    match predicate:
        case "true" | "false":
            return CExpr(predicate)
        case "ord":
            return CExpr(f"({a} == {a} && {b} == {b})")
        case "uno":
            return CExpr(f"({a} != {a} || {b} != {b})")
        case "one":
            return CExpr(f"({a} < {b} || {a} > {b})")
        case "ueq":
            return CExpr(f"(!({a} < {b} || {a} > {b}))")
    relation = predicate[1:]
    if predicate[0] == "u" and relation in _COMPLEMENTS:
        return CExpr(f"(!({a} {_COMPLEMENTS[relation]} {b}))")
    return CExpr(f"({a} {_RELATIONS[relation]} {b})")


# --- conversions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConversionTypes:
    """The types of a conversion; `integer` spells an integer result, None for floats and truth values."""

    source: Attribute
    target: Attribute
    integer: Integer | None


Conversion = Callable[[Language, CExpr, ConversionTypes], CExpr]


def _signed(language: Language, text: CExpr, types: ConversionTypes) -> CExpr:
    value = ternary(text, CExpr("-1", NEGATIVE), CExpr("0")) if types.source == i1 else text
    return _number(language, value, types)


def _unsigned(language: Language, text: CExpr, types: ConversionTypes) -> CExpr:
    spelling = language.integer(types.source)
    return _number(language, cast("int" if spelling is None else spelling.unsigned, text), types)


def _number(language: Language, value: CExpr, types: ConversionTypes) -> CExpr:
    if types.integer is not None:
        return cast(types.integer.signed, value)
    return language.converted(value, types.source, types.target)


def _truncated(language: Language, text: CExpr, types: ConversionTypes) -> CExpr:
    if types.integer is not None:
        return cast(types.integer.signed, text)
    return infix("!=", infix("&", text, CExpr("1"), 8).enclosed(), CExpr("0"), COMPARED).enclosed()


def _float_to_integer(unsigned: bool) -> Conversion:
    def convert(language: Language, text: CExpr, types: ConversionTypes) -> CExpr:
        """Truncate a float to an integer; a value out of range is undefined. Raises LoweringError for a result of
        i1."""
        if types.integer is None:
            raise language.lacks("conversion of floats to truth values")
        is_narrow = isinstance(types.source, NARROW_FLOATS)
        value = language.converted(text, types.source, f32) if is_narrow else text
        return cast(types.integer.signed, cast(types.integer.unsigned, value) if unsigned else value)

    return convert


def _float(language: Language, text: CExpr, types: ConversionTypes) -> CExpr:
    return language.converted(text, types.source, types.target)


_CONVERSIONS: Mapping[str, Conversion] = {
    "arith.index_cast": _signed,
    "arith.extsi": _signed,
    "arith.sitofp": _signed,
    "arith.extui": _unsigned,
    "arith.uitofp": _unsigned,
    "arith.trunci": _truncated,
    "arith.fptosi": _float_to_integer(unsigned=False),
    "arith.fptoui": _float_to_integer(unsigned=True),
    "arith.extf": _float,
    "arith.truncf": _float,
}
