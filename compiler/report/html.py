"""HTML elements of a page; text from a database is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from compiler.support.text import printable

STYLE = """
body { font: 16px/1.5 sans-serif; margin: 1.5rem 0; padding: 0 clamp(1rem, 3vw, 4rem);
  color: #1a1a1a; background: #fff }
h1, h2, h3 { line-height: 1.2; overflow-wrap: anywhere }
h2 { margin-top: 2rem; border-top: 2px solid #1a1a1a; padding-top: .5rem }
h3 { margin: 1.5rem 0 .3rem }
p { max-width: 64rem; margin: .4rem 0 }
table { border-collapse: collapse; font-size: 14px }
td, th { padding: .15rem .8rem .15rem 0; text-align: right; white-space: nowrap }
th { border-bottom: 1px solid #888 }
.words { text-align: left }
td.long { white-space: normal; min-width: 16rem }
tr.sum td { border-top: 1px solid #888 }
pre { background: #f4f4f1; padding: .8rem; overflow-x: auto; font: 12px/1.4 monospace; margin: .4rem 0 }
details { margin: .5rem 0 }
summary { cursor: pointer; overflow-wrap: anywhere }
.task { border-top: 1px solid #bbb }
.task > summary { font-weight: bold; padding: .4rem 0 }
.scroll { overflow-x: auto; margin: .6rem 0 }
.pictures, .sides { display: grid; gap: 1rem 2rem }
.pictures { grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)) }
.sides { grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)) }
.sides table { font-size: 13px }
.sides td, .sides th { padding-right: .5rem }
.pictures > *, .sides > * { min-width: 0 }
figure { margin: .6rem 0; max-width: 38rem }
figcaption { font-size: 14px; color: #444 }
svg { display: block; width: 100%; max-width: 100%; height: auto }
svg text { font: 12px sans-serif; fill: #333 }
.name { font-weight: bold; paint-order: stroke; stroke: #fff; stroke-width: 3px }
.grid { stroke: #ddd; fill: none }
.point { fill: #0072b2; fill-opacity: .65 }
.line { fill: none; stroke: #d55e00; stroke-width: 2 }
.dashed { fill: none; stroke: #555; stroke-width: 1.5; stroke-dasharray: 5 4 }
.area { fill: #56b4e9; stroke: #fff; stroke-width: .5 }
.busy { fill: #e69f00 }
.point:hover, .area:hover, .busy:hover { fill: #d55e00 }
.bar { display: inline-block; width: clamp(6rem, 16vw, 30rem); height: .8rem; background: #eee; vertical-align: middle;
  position: relative; print-color-adjust: exact; -webkit-print-color-adjust: exact }
.bar span { position: absolute; left: 0; top: 0; bottom: 0; background: #56b4e9 }
.bar span + span { background: #0072b2 }
@media print {
  body { font-size: 10px; max-width: none; margin: 0 }
  .scroll, pre { overflow: visible }
  table, figcaption { font-size: 9px }
  td, th { padding-right: .5rem }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 7px }
  details::details-content { content-visibility: visible; display: block; height: auto }
  .pictures, .sides { grid-template-columns: 1fr 1fr }
  .bar { width: 6rem }
  figure, tr { break-inside: avoid }
  h2, h3, summary { break-after: avoid }
}
"""
"""Colours that are distinguishable with colour blindness, of Okabe and Ito (2008)."""


TEXTS, SENTENCES = ("computes", "limit", "layers"), ("its reason", "mean time by option")
"""The headings of text columns, and of columns with line breaks."""


def document(title: str, style: str) -> Iterator[str]:
    """Yield the lines of a page up to the begin of its body: its title, as text, and its style."""
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escaped(title)}</title><style>{style}</style></head><body>"


def escaped(text: str) -> str:
    """Escape a text for elements and attributes; unprintable characters are made visible."""
    return escape(printable(text))


def paragraph(text: str) -> str:
    """A text as an HTML paragraph."""
    return f"<p>{escaped(text)}</p>"


def figure(picture: str, caption: str) -> str:
    """An HTML figure: a picture in SVG, with its caption."""
    return f"<figure>{picture}<figcaption>{escaped(caption)}</figcaption></figure>"


def listing(text: str) -> str:
    """A text as a preformatted HTML element."""
    return f"<pre>{escaped(text)}</pre>"


def collapsible(summary: str, parts: Iterable[str], name: str = "", is_open: bool = False) -> Iterator[str]:
    """Yield a section with a summary, collapsed unless `is_open`; a link to its `name` opens it."""
    kind, place = (' class="task"', f'<div id="{escaped(name)}">') if name else ("", "<div>")
    yield f"<details{kind}{' open' if is_open else ''}><summary>{escaped(summary)}</summary>{place}"
    yield from parts
    yield "</div></details>"


@dataclass(frozen=True)
class Cell:
    """A table cell: text, a section to link to, a bar of length 0 to 1, dark up to `dark`, and the bar's tooltip."""

    text: str
    link: str = ""
    bar: float | None = None
    dark: float | None = None
    tip: str = ""

    def html(self) -> str:
        """The content of the cell as HTML, without its `td` element."""
        text = f'<a href="#{escaped(self.link)}">{escaped(self.text)}</a>' if self.link else escaped(self.text)
        if self.bar is None:
            return text
        parts = "".join(
            f'<span style="width:{100 * part:.1f}%"></span>' for part in (self.bar, self.dark) if part is not None
        )
        return f'{text} <span class="bar" title="{escaped(self.tip)}">{parts}</span>'


def table(
    headings: Sequence[str], rows: Iterable[Sequence[Cell | str]], words: int = 1, has_sum: bool = False
) -> Iterator[str]:
    """Yield the HTML of a table. The first `words` columns and those in TEXTS and SENTENCES are text; with `has_sum`
    the last row is a sum."""

    def class_of(column: int) -> str:
        if headings[column] in SENTENCES:
            return ' class="words long"'
        return ' class="words"' if column < words or headings[column] in TEXTS else ""

    cells = "".join(f'<th scope="col"{class_of(n)}>{escaped(text)}</th>' for n, text in enumerate(headings))
    yield f'<div class="scroll"><table><thead><tr>{cells}</tr></thead><tbody>'
    all_rows = list(rows)
    for number, row in enumerate(all_rows, 1):
        row_cells = (cell if isinstance(cell, Cell) else Cell(cell) for cell in row)
        line = ' class="sum"' if has_sum and number == len(all_rows) else ""
        yield f"<tr{line}>{''.join(f'<td{class_of(n)}>{cell.html()}</td>' for n, cell in enumerate(row_cells))}</tr>"
    yield "</tbody></table></div>"
