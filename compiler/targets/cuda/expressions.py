"""Expressions as text: parentheses where they are needed, sums and products with constants folded."""

from __future__ import annotations

import re
from dataclasses import dataclass

ATOM, SUM, NEGATIVE = 100, 12, 14
"""Precedences: of what never needs parentheses, of sums, and of numbers with a sign."""


@dataclass(frozen=True)
class Text:
    """An expression, and how closely its outermost operator binds."""

    words: str
    precedence: int = ATOM

    def within(self, precedence: int) -> str:
        """In parentheses where its place binds closer."""
        return self.words if self.precedence >= precedence else f"({self.words})"


def folded(sign: str, left: str, right: str) -> Text | int | None:
    """A sum or product with constants: its value, or which of both sides it is."""
    numbers = [int(text) if re.fullmatch(r"-?\d+", text) else None for text in (left, right)]
    a, b = numbers
    if a is not None and b is not None and sign in "+-*":
        value = a + b if sign == "+" else a - b if sign == "-" else a * b
        return Text(str(value), ATOM if value >= 0 else NEGATIVE)
    if sign == "+" and 0 in numbers:
        return 1 if a == 0 else 0
    if sign == "-" and b == 0:
        return 0
    if sign == "*" and 0 in numbers:
        return Text("0")
    if sign == "*" and 1 in numbers:
        return 1 if a == 1 else 0
    return None


def plain(sign: str, left: Text, right: Text, precedence: int) -> Text:
    """A sum, difference or product of two expressions."""
    found = folded(sign, left.words, right.words)
    if found is not None:
        return found if isinstance(found, Text) else (left, right)[found]
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
    """auto bool break case char class const continue default do double else enum extern float for goto if inline int
    long namespace new operator private public register return short signed sizeof static struct switch template this
    typedef union unsigned using virtual void volatile while""".split()  # noqa: SIM905 - a list a word a line is no better
)
"""Names that a program may have and the language keeps to itself."""
