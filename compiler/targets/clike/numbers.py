"""Numeric functions that a text defines if it uses them, by their return expressions; T is the type of the numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

NUMBERS: Mapping[str, str] = {
    "maximum": "a != a || b != b ? a + b : a > b ? a : b > a ? b : a == (T)0 ? a + b : a",
    "minimum": "a != a || b != b ? a + b : a < b ? a : b < a ? b : a == (T)0 ? -(-a - b) : a",
    "absolute": "a < 0 ? (T)(0 - (unsigned long long)a) : a",
    "integer_power": "b < 0 ? (a == 1 || a == (T)-1 ? (T)(b & 1 ? a : (T)1) : (T)0) : b == 0 ? (T)1 : (T)((b & 1 ? "
    "(unsigned long long)a : 1ULL) * integer_power((T)((unsigned long long)a * (unsigned long long)a), (T)(b >> 1)))",
    "quotient": "b == 0 ? (T)0 : b == (T)-1 ? (T)(0 - (unsigned long long)a) : (T)(a / b)",
    "remainder": "b == 0 || b == (T)-1 ? (T)0 : (T)(a % b)",
    "unsigned_quotient": "b == 0 ? (T)0 : (T)(a / b)",
    "unsigned_remainder": "b == 0 ? (T)0 : (T)(a % b)",
    "floor_quotient": "quotient(a, b) - (remainder(a, b) != 0 && (a < 0) != (b < 0))",
    "ceil_quotient": "quotient(a, b) + (remainder(a, b) != 0 && (a < 0) == (b < 0))",
    "unsigned_ceil_quotient": "unsigned_quotient(a, b) + (unsigned_remainder(a, b) != 0)",
}
"""The return expressions. As in MLIR, maximum and minimum propagate NaN, and +0 is above -0. As on the CPU,
a quotient by zero is zero, and the minimum integer divided by -1 is itself."""

_CALLEES = {
    "floor_quotient": ("quotient", "remainder"),
    "ceil_quotient": ("quotient", "remainder"),
    "unsigned_ceil_quotient": ("unsigned_quotient", "unsigned_remainder"),
}
"""The functions of NUMBERS that a function calls."""


def with_callees(names: Collection[str]) -> list[str]:
    """Return the functions of NUMBERS among `names`, and their callees, callees first, each once; other names are
    dropped."""
    required = {*names, *(callee for name in names for callee in _CALLEES.get(name, ()))}
    return [name for name in NUMBERS if name in required]


def parameters(name: str) -> tuple[str, ...]:
    """Return the names of the parameters of a function of NUMBERS: a, or a and b."""
    return ("a", "b") if re.search(r"\bb\b", NUMBERS[name]) else ("a",)
