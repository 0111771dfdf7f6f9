"""Expressions as text: parentheses where they are needed, sums and products with constants folded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import add, mul, sub

ATOM, NEGATIVE, PRODUCT, SUM, COMPARED = 100, 14, 13, 12, 9
"""Precedences: primary expressions, casts and signed numbers, products, sums, comparisons."""


@dataclass(frozen=True)
class Text:
    """An expression, and how closely its outermost operator binds."""

    words: str
    precedence: int = ATOM

    def within(self, precedence: int) -> str:
        """In parentheses where its place binds closer."""
        return self.words if self.precedence >= precedence else f"({self.words})"

    def enclosed(self) -> Text:
        """In parentheses."""
        return Text(f"({self.words})")

    def enclosed_unless_atom(self) -> Text:
        """In parentheses, but for a name, a call and the like."""
        return self if self.precedence >= ATOM else self.enclosed()


def is_number(text: Text) -> bool:
    """Whether a text is an integer constant without a suffix."""
    return re.fullmatch(r"-?\d+", text.words) is not None


def infix(sign: str, left: Text, right: Text, precedence: int) -> Text:
    """Two expressions with an operator that binds to the left."""
    return Text(f"{left.within(precedence)} {sign} {right.within(precedence + 1)}", precedence)


def called(name: str, texts: Sequence[Text]) -> Text:
    """A call of a function."""
    return Text(f"{name}({', '.join(text.words for text in texts)})")


def cast(type_: str, text: Text) -> Text:
    """An expression as a value of a type; an integer that is written out is one of 32 bits already."""
    if type_ == "int" and is_number(text) and abs(int(text.words)) < 1 << 31:
        return text
    return Text(f"({type_}){text.within(NEGATIVE)}", NEGATIVE)


def chosen(condition: Text, yes: Text, no: Text) -> Text:
    """One of two expressions."""
    return Text(f"({condition.within(SUM)} ? {yes.within(SUM)} : {no.within(SUM)})")


def arithmetic(sign: str, left: Text, right: Text, precedence: int) -> Text:
    """An expression of indices, constants folded, in the order that the operands have."""
    if (constant := folded(sign, left, right)) is not None:
        return constant
    if sign == "+" and re.fullmatch(r"-\d+", right.words):
        return Text(f"{left.within(precedence)} - {right.words[1:]}", precedence)
    return infix(sign, left, right, precedence)


_FOLDS: Mapping[str, Callable[[int, int], int]] = {"+": add, "-": sub, "*": mul}


def folded(sign: str, left: Text, right: Text) -> Text | None:
    """A sum, difference or product with constants: their value, or the side that the other leaves as it is."""
    if sign not in _FOLDS:
        return None
    a, b = (int(text.words) if is_number(text) else None for text in (left, right))
    if a is not None and b is not None:
        value = _FOLDS[sign](a, b)
        return Text(str(value), ATOM if value >= 0 else NEGATIVE)
    if sign == "*" and 0 in (a, b):
        return Text("0")
    neutral = 1 if sign == "*" else 0
    if a == neutral and sign != "-":
        return right
    return left if b == neutral else None


def plain(sign: str, left: Text, right: Text, precedence: int) -> Text:
    """A sum, difference or product of two expressions."""
    if (constant := folded(sign, left, right)) is not None:
        return constant
    return Text(f"{left.within(precedence)} {sign} {right.within(precedence + (sign != '+'))}", precedence)


def bare(text: str) -> str:
    """A condition without the parentheses that are around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
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
"""Names that a program may have and the language keeps to itself."""
