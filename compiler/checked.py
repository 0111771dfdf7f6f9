"""Arguments of public functions: what is of the wrong type is refused by name, in one sentence."""

from __future__ import annotations

import math
from operator import index

from compiler.errors import StrataError


def integer(value: object, what: str, error: type[StrataError], least: int, most: int = 2**63 - 1) -> int:
    """An integer between two bounds, not a truth value. Raises the error for anything else."""
    try:
        number = None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        bound = f"from {least} on" if most == 2**63 - 1 else f"from {least} to {most}"
        raise error(f"{what}={value!r}: expected an integer {bound}")
    return number


def seconds(value: object, what: str, error: type[StrataError]) -> float:
    """A finite number that is not negative. Raises the error for anything else."""
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    number = float(value) if fits and abs(value) < 2**63 else math.nan  # type: ignore[arg-type]
    if not 0 <= number < math.inf:
        raise error(f"{what}={value!r}: expected a number of seconds")
    return number


def text(value: object, what: str, error: type[StrataError]) -> str:
    """A string. Raises the error for anything else."""
    if not isinstance(value, str):
        raise error(f"{what} is a {type(value).__name__}, expected a string")
    return value


def optional_text(value: object, what: str, error: type[StrataError]) -> str | None:
    """A string or None. Raises the error for anything else."""
    return None if value is None else text(value, what, error)
