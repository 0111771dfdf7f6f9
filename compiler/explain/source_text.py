"""The time of a program by parts of the model, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table

from compiler.explain.advice import Answer
from compiler.explain.sources import SourceTable, SourceTime
from compiler.explain.trial import TriedSchedule
from compiler.support.origins import SourceOrigin
from compiler.support.text import counted, duration, printable
from compiler.types.machines import host

MOST_GROUPS = 3
"""The groups of a row that are named."""


def source_heading(table: SourceTable, program: str) -> str:
    """Return a sentence with the time of a run, and the rates of the bounds."""
    threads = counted(table.threads, "thread")
    if table.seconds is None or table.rates is None:
        return f"{program} by source, for {threads} of {host().cpu}: approximate times, nothing was run"
    rates = f"{table.rates.flops / 1e9:.0f} GFLOP/s and {table.rates.bytes / 1e9:.0f} GB/s"
    return f"{program} by source: a run takes {duration(table.seconds)} on {threads}; bounds by {rates}"


def source_rows(table: SourceTable, rows: Sequence[SourceTime]) -> Table:
    """Return the table of `rows`: the part of the model, its groups, the time of its calls in a run with the share of
    all calls, the bound, the factor over it and the time to be won at most."""
    shown = Table(box=None, pad_edge=False)
    for number, heading in enumerate(("source", "group", "calls", "time", "%", "bound", "x bound", "to win", "with")):
        text = number < 2 or heading == "with"
        shown.add_column(heading, justify="left" if text else "right", no_wrap=number < 8)
    total = sum(row.seconds for row in table.rows)
    for row in rows:
        bound = "-" if row.bound is None else f"{duration(row.bound.seconds)} {row.bound.resource}"
        factor = "-" if row.factor is None else f"{row.factor:.2f}"
        share = f"{100 * row.seconds / total:.1f}" if total else "-"
        won = "-" if row.bound is None else duration(row.excess)
        also = ", ".join(part.name or part.place for part in row.also)
        cells = (str(row.origin), _groups(row), str(len(row.calls)), duration(row.seconds), share)
        shown.add_row(*map(printable, (*cells, bound, factor, won, also)))
    return shown


def _groups(row: SourceTime) -> str:
    """The names of the groups of a row, those after the third counted."""
    rest = len(row.groups) - MOST_GROUPS
    return ", ".join(row.groups[:MOST_GROUPS]) + (f" and {counted(rest, 'other')}" if rest > 0 else "")


def answer_lines(row: SourceTime, answer: Answer) -> Iterator[str]:
    """Yield the answer for a row: the part of the model with its factor, the shares of its parts if there are several,
    then a line for each primitive."""
    call = row.slowest
    factor = "of unknown bound" if call.factor is None else f"{call.factor:.2f} times its bound"
    among = f", of {len(row.calls)} calls the one with most to win" if len(row.calls) > 1 else ""
    yield f"{row.origin}, {call.group}: {duration(call.seconds)}, {factor}{among}"
    if len(answer.parts) > 1:
        shares = [f"{100 * share:.0f}% {' + '.join(map(str, parts)) or 'unknown'}" for parts, share in answer.parts]
        yield f"  cycles of its machine loops with all data in L1: {', '.join(shares)}"
    yield from (f"  {item.primitive}: {item.reason}" for item in answer.advice)


def tried_line(tried: TriedSchedule | None) -> str:
    """Return a sentence on the best schedule that was tried; None: that none could be measured."""
    if tried is None:
        return "  tried: no schedule could be measured"
    changes = ""
    if tried.added or tried.removed:
        added, removed = ", ".join(tried.added) or "nothing", ", ".join(tried.removed) or "nothing"
        changes = f"; its script has {added} more, and {removed} less"
    else:
        changes = "; its script has the same steps with other sizes"
    verdict = f"takes {tried.ratio:.2f} of the time inside the program"
    return f"  tried: the best of {counted(tried.trials, 'trial')} {verdict}{changes}"


def source_data(row: SourceTime, answer: Answer) -> dict[str, Any]:
    """Return a row as JSON data; times in seconds, `bound` None if unknown."""
    bound = row.bound
    return {
        "source": _part(row.origin),
        "also": [_part(part) for part in row.also],
        "groups": list(row.groups),
        "calls": len(row.calls),
        "seconds": row.seconds,
        "bound": None if bound is None else {"seconds": bound.seconds, "resource": bound.resource},
        "advice": [{"primitive": item.primitive, "reason": item.reason} for item in answer.advice],
        "shares": [{"sources": list(map(_part, parts)), "share": share} for parts, share in answer.parts],
    }


def _part(part: SourceOrigin) -> dict[str, Any]:
    return {"name": part.name, "operator": part.operator, "file": part.file, "line": part.line}
