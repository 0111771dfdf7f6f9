"""Values on the command line that are not any number; argparse says what is wrong with others."""

from __future__ import annotations

from argparse import ArgumentTypeError
from fractions import Fraction


def positive(text: str) -> int:
    """A count: an integer of at least 1."""
    return _at_least(1, text)


def seed(text: str) -> int:
    """A seed of random inputs: an integer that is not negative."""
    return _at_least(0, text)


def scale(text: str) -> Fraction:
    """A positive factor, written as 1/4 or 0.25."""
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value <= 0:
        raise ArgumentTypeError(f"'{text}' is not a positive number such as 1/4")
    return value


def _at_least(least: int, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise ArgumentTypeError(f"'{text}' is not an integer of at least {least}")
    return value
