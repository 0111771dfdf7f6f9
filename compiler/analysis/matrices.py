"""Translation of sets and maps from isl's syntax to matrices in PolyLib's format.

isl reads a matrix about ten times as fast as its own syntax, whose constraints it intersects one by one. Only
conjunctions of quasi-affine constraints are translated; a text of another form, such as a disjunction, is left to isl.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

Factors = dict[str, int]
"""A sum: factors by variable, and the constant under the name CONSTANT. Quotients count as variables."""
CONSTANT = ""

_TEXT = re.compile(
    r"(?P<domain>\w*)\[(?P<variables>[\w, ]*)\](?: -> (?P<range>\w*)\[(?P<forms>[^\]]*)\])?"
    r"(?: : (?:exists [\w, ]* : \((?P<inner>.*)\)|(?P<holds>.*)))?"
)
_TOKEN = re.compile(r"-?\d+|\w+|[()*+/]")
_COMPARISON = re.compile(r" (<=|>=|<|>|=) ")


class Matrix(NamedTuple):
    """A conjunction in PolyLib's format, with the tuple names of its domain and range; `range` is None for a set."""

    text: str
    domain: str
    range: str | None


class Constraint(NamedTuple):
    """A constraint on a sum: sum >= 0 or, with `equal`, sum = 0."""

    equal: bool
    factors: tuple[tuple[str, int], ...]


class _Untranslated(Exception):
    """A text that is no conjunction of quasi-affine constraints."""


def matrix(text: str) -> Matrix | None:
    """Translate a conjunction in isl's syntax, without braces, to a matrix; None for a text of another form.

      [x, y] : 0 <= x <= 7 and y = floor((x)/4)
    ->
      5 5 2 0 1 0      // rows, columns; variables, those of the domain, local ones, parameters
      1 1 0 0 0        // 1: at least zero, 0: zero; x, y, the quotient, the constant
      1 -1 0 0 7
      1 1 0 -4 0
      1 -1 0 4 3
      0 0 -1 1 0
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    inputs, outputs = _listed(match["variables"]), _listed(match["forms"] or "")
    images = [f"_{number}" for number in range(len(outputs))]
    constraints = (match["inner"] or match["holds"] or "true").split(" and ")
    constraints += [f"{image} = {form}" for image, form in zip(images, outputs, strict=True)]
    try:
        rows = list(dict.fromkeys(row for constraint in constraints for row in _rows(constraint)))
    except _Untranslated:
        return None
    names = {name: None for row in rows for name, _ in row.factors}
    local = [name for name in names if name not in (*images, *inputs, CONSTANT)]
    columns = [*images, *inputs, *local, CONSTANT]
    dims = (len(inputs), 0) if match["forms"] is None else (len(images), len(inputs))
    head = (len(rows), len(columns) + 1, *dims, len(local), 0)
    return Matrix("\n".join(_lines(head, rows, columns)), match["domain"], match["range"])


def _listed(text: str) -> list[str]:
    return text.split(", ") if text else []


def _lines(head: tuple[int, ...], rows: list[Constraint], columns: list[str]) -> Iterator[str]:
    yield " ".join(map(str, head))
    positions = {name: position for position, name in enumerate(columns, 1)}
    for row in rows:
        cells = ["0" if row.equal else "1", *["0"] * len(columns)]
        for name, factor in row.factors:
            cells[positions[name]] = str(factor)
        yield " ".join(cells)


@lru_cache(maxsize=8192)
def _rows(constraint: str) -> tuple[Constraint, ...]:
    """The rows of a constraint: its quotients' and one for each comparison. Raises _Untranslated for other text."""
    if constraint == "true":
        return ()
    first, *operators_and_sides = _COMPARISON.split(constraint)
    if not operators_and_sides:
        raise _Untranslated
    rows: list[Constraint] = []
    left = _Sum(first, rows).factors
    for comparison, text in zip(operators_and_sides[::2], operators_and_sides[1::2], strict=True):
        right = _Sum(text, rows).factors
        small, large = (right, left) if comparison.startswith(">") else (left, right)
        rows.append(_row(comparison == "=", _joined(large, small, -1), 0 if "=" in comparison else -1))
        left = right
    return tuple(rows)


def _row(equal: bool, factors: Factors, constant: int = 0) -> Constraint:
    factors[CONSTANT] = factors.get(CONSTANT, 0) + constant
    return Constraint(equal, tuple(factors.items()))


def _joined(left: Factors, right: Factors, times: int = 1) -> Factors:
    """Return left + times * right, for sums as factors by variable; the arguments are unchanged."""
    joined = dict(left)
    for name, factor in right.items():
        joined[name] = joined.get(name, 0) + times * factor
    return joined


class _Sum:
    """Parser of a sum. The constraints of its quotients are appended to `rows`. Raises _Untranslated for other text."""

    def __init__(self, text: str, rows: list[Constraint]) -> None:
        self.tokens: list[str] = _TOKEN.findall(text)[::-1]
        self.rows = rows
        if "".join(reversed(self.tokens)) != text.replace(" ", ""):
            raise _Untranslated
        self.factors = self._sum()
        if self.tokens:
            raise _Untranslated

    def _take(self, expected: str = "") -> str:
        if not self.tokens or (expected and self.tokens[-1] != expected):
            raise _Untranslated
        return self.tokens.pop()

    def _next_is(self, token: str) -> bool:
        """Consume the next token if it is `token`; return whether it was."""
        return bool(self.tokens) and self.tokens[-1] == token and bool(self.tokens.pop())

    def _integer(self) -> int:
        try:
            return int(self._take())
        except ValueError as error:
            raise _Untranslated from error

    def _sum(self) -> Factors:
        total = self._term()
        while self._next_is("+"):
            total = _joined(total, self._term())
        return total

    def _term(self) -> Factors:
        token = self._take()
        if token.lstrip("-").isdigit():
            return _joined({}, self._term(), int(token)) if self._next_is("*") else {CONSTANT: int(token)}
        if token == "floor":
            self._take("(")
            inner = self._term()
            self._take("/")
            divisor = self._integer()
            self._take(")")
            return {self._quotient(inner, divisor): 1}
        if token.isidentifier():
            return {token: 1}
        if token != "(":
            raise _Untranslated
        inner = self._sum()
        if self._next_is("mod"):
            divisor = self._integer()
            inner = _joined(inner, {self._quotient(inner, divisor): 1}, -divisor)
        self._take(")")
        return inner

    def _quotient(self, dividend: Factors, divisor: int) -> str:
        """Return the name of a new variable for floor(dividend / divisor); append the constraints that define it."""
        name = f"{dividend}/{divisor}"
        remainder = _joined(dividend, {name: 1}, -divisor)
        self.rows += [_row(False, remainder), _row(False, _joined({}, remainder, -1), divisor - 1)]
        return name
