"""Objects as one line of text, and as HTML of a notebook, with names escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from compiler.support.text import printable


def line(text: object) -> str:
    """The text of an object in one line, with line ends, tabs and control characters escaped."""
    return printable(str(text)).replace("\n", "\\n").replace("\t", "\\t")


def table(caption: object, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table with a caption; each cell is one line of escaped text."""
    head = "".join(f"<th>{_text(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{_text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def text(caption: object, lines: str) -> str:
    """An HTML block: a caption, and `lines` (one text) escaped and preformatted."""
    return f"<div>{_text(caption)}<pre>{escape(printable(lines))}</pre></div>"


def _text(value: object) -> str:
    return escape(line(value))
