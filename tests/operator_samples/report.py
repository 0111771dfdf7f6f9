"""Shares, reasons, and what is wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.operator_samples.running import COMPILED, CRASHED, LEFT, OTHER, REFUSED, WRONG, Outcome

SHOWN = 40
"""How many reasons are printed."""


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    counted = [o for o in outcomes if o.left_out is None and o.kind != REFUSED]
    kinds = Counter(o.kind for o in counted)
    by_operator: dict[str, set[str]] = {}
    for o in counted:
        by_operator.setdefault(o.unit.operator, set()).add(o.kind)
    whole = sum(found == {COMPILED} for found in by_operator.values())
    reasons = Counter(reason for o in counted if o.kind == LEFT for reason in set(o.reasons))
    return {
        "samples": len(outcomes),
        "left out": dict(Counter(o.left_out for o in outcomes if o.left_out is not None)),
        REFUSED: sum(o.kind == REFUSED and o.left_out is None for o in outcomes),
        "counted": len(counted),
        COMPILED: kinds[COMPILED],
        LEFT: kinds[LEFT],
        WRONG: sum(o.kind == WRONG for o in outcomes),
        CRASHED: sum(o.kind == CRASHED for o in outcomes),
        OTHER: dict(Counter(o.reasons[0] for o in outcomes if o.kind == OTHER).most_common()),
        "operators": len(by_operator),
        "operators compiled": whole,
        "reasons": dict(reasons.most_common()),
    }


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    found = summary(outcomes)
    yield f"samples: {found['samples']}; refused by torch itself: {found[REFUSED]}"
    yield "left out: " + (", ".join(f"{title} {n}" for title, n in found["left out"].items()) or "none")
    yield f"compiled: {found[COMPILED]} of {found['counted']}, {_share(found[COMPILED], found['counted'])}"
    whole, operators = found["operators compiled"], found["operators"]
    yield f"operators whose samples are all compiled: {whole} of {operators}, {_share(whole, operators)}"
    yield f"wrong: {found[WRONG]}; crashed: {found[CRASHED]}"
    for reason, n in found[OTHER].items():
        yield f"  {OTHER} ({n}): {reason}"
    for title in (WRONG, CRASHED):
        for o in [o for o in outcomes if o.kind == title][:SHOWN]:
            yield f"  {title}: {_place(o)}: {'; '.join(o.reasons)}"
    for reason, n in list(found["reasons"].items())[:SHOWN]:
        yield f"  left to torch ({n}): {reason}"


def write(outcomes: Sequence[Outcome], path: Path) -> None:
    """The figures, and each sample that is not compiled, as JSON."""
    rows = [
        {"sample": _place(o), "kind": o.kind, "reasons": o.reasons, "left out": o.left_out}
        for o in outcomes
        if o.kind != COMPILED
    ]
    path.write_text(json.dumps({"summary": summary(outcomes), "samples": rows}, indent=1) + "\n")


def _place(o: Outcome) -> str:
    return f"{o.unit.operator} {o.unit.dtype} {o.number}{f' ({o.variant})' if o.variant else ''} [{o.through}]"


def _share(part: int, total: int) -> str:
    return f"{part / total:.1%}" if total else "-"
