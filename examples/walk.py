"""The walk of docs/walk.md, run section by section: each refused in words, or right and proved.

python examples/walk.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import strata
from strata import Schedule, interpret
from strata.te import Function
from tools import document


@dataclass(frozen=True)
class Row:
    """A section of the walk: what was said of its steps, and whether the program then is right, and proved."""

    title: str
    said: list[str]
    right: bool
    proved: str
    seconds: float


def rows() -> Iterator[Row]:
    """The sections of the walk that schedule something, each as soon as it has been run and checked."""
    names: dict[str, Any] = {}
    before = None
    for step in document.run(document.WALK.read_text(), names):
        if "s" not in names:
            continue
        function, schedule = names["f"], names["s"]
        verdict = schedule.verify()
        legal = ["legal"] if schedule.program is not before else []
        said = legal + [f"refused: {refusal}" for refusal in step.refusals]
        yield Row(step.title, said, right(function, schedule), str(verdict), step.seconds)
        before = schedule.program


def right(function: Function, schedule: Schedule) -> bool:
    """Whether the compiled schedule gives what the evaluator of tensor expressions gives."""
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-1, 1, t.shape).astype(np.float32) for t in function.inputs]
    (want,) = interpret.evaluate(function.module, arrays, np.float64)
    return np.allclose(strata.build(schedule)(*arrays), want, rtol=1e-4, atol=1e-4)


def table() -> tuple[Table, bool]:
    """The walk as a table, and whether everything in it is right."""
    printed = Table(title="a schedule step by step (docs/walk.md)", title_justify="left")
    printed.add_column("step")
    printed.add_column("said")
    for heading in ("result", "verify-schedule"):
        printed.add_column(heading, no_wrap=True)
    printed.add_column("ms", justify="right")
    verdicts = []
    for row in rows():
        said, outcome = escape("\n".join(row.said)), "right" if row.right else "WRONG"
        printed.add_row(row.title, said, outcome, escape(row.proved), f"{row.seconds * 1e3:.0f}")
        verdicts.append(row.right)
    return printed, all(verdicts)


def main() -> int:
    """Print the walk; 0, or 1 where a result is wrong."""
    shown, good = table()
    Console().print(shown)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
