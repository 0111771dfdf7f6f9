"""Checks of a caller's arguments: each function returns the value in its plain type, or raises `error`, by default
InputError; `what` names the argument in the message."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Real
from operator import index
from reprlib import repr as short
from typing import Any, TypeVar

from compiler.support.errors import InputError, StrataError

LARGEST = 2**63 - 1
"""The largest integer in databases and seeds."""
Kind = TypeVar("Kind")


def integer(
    what: str, value: object, minimum: int, maximum: int = LARGEST, error: type[StrataError] = InputError
) -> int:
    """Return an integer (also numpy's) in [minimum, maximum]. Raises `error`, naming `what`, for others and bool."""
    try:
        number = minimum - 1 if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = minimum - 1
    if not minimum <= number <= maximum:
        bound = f"of at least {minimum}" if maximum == LARGEST else f"from {minimum} to {maximum}"
        raise error(f"{what} is {short(value)}, expected an integer {bound}")
    return number


def positive(what: str, value: object) -> float:
    """Return a finite number above 0 as a float. Raises InputError, naming `what`, for other values."""
    return _number(what, value, lambda n: 0 < n < math.inf, "a finite number above 0")


def seconds(what: str, value: object, error: type[StrataError] = InputError) -> float:
    """Return a finite number of at least 0 as a float. Raises `error`, naming `what`, for other values."""
    return _number(what, value, lambda n: 0 <= n < math.inf, "a number of seconds", error)


def share(what: str, value: object) -> float:
    """Return a number from 0 to 1 as a float. Raises InputError, naming `what`, for other values."""
    return _number(what, value, lambda n: 0 <= n <= 1, "a share between 0 and 1")


def flag(what: str, value: object) -> bool:
    """Return a boolean. Raises InputError, naming `what`, for other values."""
    if not isinstance(value, bool):
        raise InputError(f"{what} is {short(value)}, expected True or False")
    return value


def text(what: str, value: object, error: type[StrataError] = InputError) -> str:
    """Return a string. Raises `error`, naming `what`, for other values."""
    if not isinstance(value, str):
        raise error(f"{what} is {short(value)}, expected a string")
    return value


def line(what: str, value: object) -> str:
    """Return a string of printable characters, not all blank. Raises InputError, naming `what`, for other values."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InputError(f"{what} is {short(value)}, expected a line of text")
    return value


def sequence(what: str, value: Any, kind: str, is_member: Callable[[Any], bool]) -> tuple[Any, ...]:
    """Return the members of an iterable as a tuple. Raises InputError, naming `what`, for a string, bytes, values that
    cannot be iterated, and a member for which `is_member` is false; `kind` is the members' noun in messages."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InputError(f"{what} is {short(value)}, expected a list of {kind}")
    members = tuple(value)
    for member in members:
        if not is_member(member):
            raise InputError(f"{what} has {short(member)}, expected {kind}")
    return members


def instance(what: str, value: object, kind: type[Kind]) -> Kind:
    """Return a value that is an instance of `kind`. Raises InputError, naming `what`, for other values."""
    if not isinstance(value, kind):
        raise InputError(f"{what} is {short(value)}, expected {kind.__name__}")
    return value


def _number(
    what: str, value: object, fits: Callable[[float], bool], expected: str, error: type[StrataError] = InputError
) -> float:
    """Return a real number for which `fits` is true, as a float. Raises `error`, naming `what`, for other values and
    booleans; they are tested as NaN. `expected` is the noun of the fitting numbers in the message."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:
        number = math.inf
    if not fits(number):
        raise error(f"{what} is {short(value)}, expected {expected}")
    return number
