"""Fast printing of labels and types: xDSL prints each character of a label and each extent of a type by itself, which
dominates the time of printing a program."""

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
    """Print a type; its text is cached."""
    printer.print_string(_type_text(type))


@lru_cache(maxsize=1024)
def _type_text(type: Attribute) -> str:
    return str(type)
