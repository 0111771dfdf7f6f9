"""Labels and types of te and loop ops as text, in one piece: xDSL prints each character of a label by itself, and each
extent of a type, which is most of the time of printing a program."""

from __future__ import annotations

from functools import lru_cache

from xdsl.ir import Attribute
from xdsl.printer import Printer


def print_label(printer: Printer, label: str) -> None:
    """Print a label as a string literal."""
    if label.isascii() and label.isprintable() and '"' not in label and "\\" not in label:
        printer.print_string(f'"{label}"')
    else:
        printer.print_string_literal(label)


def print_type(printer: Printer, type: Attribute) -> None:
    """Print a type; a program has few."""
    printer.print_string(_type_text(type))


@lru_cache(maxsize=1024)
def _type_text(type: Attribute) -> str:
    return str(type)
