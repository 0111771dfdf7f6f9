"""Expressions as text: parentheses by precedence, sums and products with constants folded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import add, mul, sub

ATOM, NEGATIVE, PRODUCT, SUM, COMPARED = 100, 14, 13, 12, 9
"""Precedences of primary expressions, casts and signed numbers, products, sums, comparisons; a higher one binds
tighter."""


@dataclass(frozen=True)
class CExpr:
    """The text of an expression, and the precedence of its outermost operator."""

    code: str
    precedence: int = ATOM

    def within(self, precedence: int) -> str:
        """The text as an operand of an operator of `precedence`: in parentheses if that binds tighter."""
        return self.code if self.precedence >= precedence else f"({self.code})"

    def enclosed(self) -> CExpr:
        """The expression in parentheses."""
        return CExpr(f"({self.code})")

    def enclosed_unless_atom(self) -> CExpr:
        """The expression in parentheses, unless it is a primary expression such as a name or a call."""
        return self if self.precedence >= ATOM else self.enclosed()


def is_number(expression: CExpr) -> bool:
    """Return whether an expression is an integer literal without a suffix, perhaps negative."""
    return re.fullmatch(r"-?\d+", expression.code) is not None


def infix(sign: str, left: CExpr, right: CExpr, precedence: int) -> CExpr:
    """Join two expressions by a left-associative operator `sign` of a precedence, with the parentheses needed."""
    return CExpr(f"{left.within(precedence)} {sign} {right.within(precedence + 1)}", precedence)


def function_call(name: str, texts: Sequence[CExpr]) -> CExpr:
    """Write the call of the function `name` on the arguments `texts`."""
    return CExpr(f"{name}({', '.join(text.code for text in texts)})")


def cast(type_: str, text: CExpr) -> CExpr:
    """Cast an expression to the C type `type_`; a literal that fits an int is not cast to int."""
    if type_ == "int" and is_number(text) and abs(int(text.code)) < 1 << 31:
        return text
    return CExpr(f"({type_}){text.within(NEGATIVE)}", NEGATIVE)


def ternary(condition: CExpr, yes: CExpr, no: CExpr) -> CExpr:
    """Write the conditional expression `condition ? yes : no`, in parentheses."""
    return CExpr(f"({condition.within(SUM)} ? {yes.within(SUM)} : {no.within(SUM)})")


def arithmetic(sign: str, left: CExpr, right: CExpr, precedence: int) -> CExpr:
    """Join two index expressions by the operator `sign` of a precedence, with constants folded; `x + -3` becomes `x -
    3`."""
    if (constant := fold_constants(sign, left, right)) is not None:
        return constant
    if sign == "+" and re.fullmatch(r"-\d+", right.code):
        return CExpr(f"{left.within(precedence)} - {right.code[1:]}", precedence)
    return infix(sign, left, right, precedence)


_FOLDS: Mapping[str, Callable[[int, int], int]] = {"+": add, "-": sub, "*": mul}


def fold_constants(sign: str, left: CExpr, right: CExpr) -> CExpr | None:
    """Fold a sum, difference or product of two literals, with a neutral element, or with a factor of 0. Return None for
    other expressions, and for another operator `sign` than `+`, `-` and `*`."""
    if sign not in _FOLDS:
        return None
    a, b = (int(text.code) if is_number(text) else None for text in (left, right))
    if a is not None and b is not None:
        value = _FOLDS[sign](a, b)
        return CExpr(str(value), ATOM if value >= 0 else NEGATIVE)
    if sign == "*" and 0 in (a, b):
        return CExpr("0")
    neutral = 1 if sign == "*" else 0
    if a == neutral and sign != "-":
        return right
    return left if b == neutral else None


def associative(sign: str, left: CExpr, right: CExpr, precedence: int) -> CExpr:
    """Join two index expressions by the associative operator `sign` of a precedence, with constants folded and no
    parentheses for sums: `a + (b + c)` is `a + b + c`."""
    if (constant := fold_constants(sign, left, right)) is not None:
        return constant
    return CExpr(f"{left.within(precedence)} {sign} {right.within(precedence + (sign != '+'))}", precedence)


def bare(text: str) -> str:
    """Return a text without one pair of parentheses that encloses all of it; unchanged if there is none."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and position < len(text) - 1:
            return text
    return text[1:-1]


KEYWORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
    false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
    operator or or_eq private protected public register reinterpret_cast requires return short signed
    sizeof static static_assert static_cast struct switch template this thread_local throw true try
    typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor
    xor_eq""".split()  # noqa: SIM905
)
"""Reserved words of C and C++, which a program may use as names."""
