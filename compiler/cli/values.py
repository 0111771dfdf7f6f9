"""Values of options in a range; argparse prints the sentence for others."""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError
from fractions import Fraction

from compiler.support.validation import LARGEST

_FACTOR = re.compile(r"\d{1,9}(\.\d{0,9}|/\d{1,9})?|\.\d{1,9}", re.ASCII)


def positive(text: str) -> int:
    """Parse an integer from 1 to 2^63 - 1. Raises ArgumentTypeError for other text."""
    return _at_least(1, text)


def natural(text: str) -> int:
    """Parse an integer from 0 to 2^63 - 1. Raises ArgumentTypeError for other text."""
    return _at_least(0, text)


def scale(text: str) -> Fraction:
    """Parse a positive factor, such as 1/4 or 0.25. Raises ArgumentTypeError for other text."""
    try:
        value = Fraction(text) if _FACTOR.fullmatch(text) else Fraction(0)  # an exponent could take forever
    except ZeroDivisionError:
        value = Fraction(0)
    if value <= 0:
        raise ArgumentTypeError(f"{text!r} is not a positive number such as 1/4")
    return value


def fraction(text: str) -> float:
    """Parse a number in [0, 1), such as 3e-5. Raises ArgumentTypeError for other text."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise ArgumentTypeError(f"{text!r} is not a number from 0 to 1, such as 3e-5")
    return value


def seconds(text: str) -> float:
    """Parse a time in seconds, above 0 and finite. Raises ArgumentTypeError for other text."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return value


def _at_least(minimum: int, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = minimum - 1
    if not minimum <= value <= LARGEST:
        raise ArgumentTypeError(f"{text!r} is not an integer of at least {minimum}, up to 2^63 - 1")
    return value
