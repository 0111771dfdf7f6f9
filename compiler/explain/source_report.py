"""`SourceReport`, which `Kernel.explain` returns: the time of a program by the parts of its model, with answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import StringIO

from rich.console import Console

from compiler.driver.build_origin import BuildOrigin
from compiler.explain.advice import Answer, answer
from compiler.explain.source_text import answer_lines, source_heading, source_rows
from compiler.explain.sources import SourceTable, SourceTime, source_table
from compiler.support.errors import InputError

SHOWN, ANSWERED = 10, 3
"""The rows of the report as text, and those of them for which a primitive is named."""
WIDTH = 240
"""The columns of the report as text."""


@dataclass(frozen=True)
class SourceReport:
    """The parts of a model by the seconds that they could win; `str` is the report as text. name: of the program."""

    name: str
    table: SourceTable

    @property
    def rows(self) -> tuple[SourceTime, ...]:
        """The parts of the model, those with most seconds above their bound first."""
        return self.table.rows

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """What would change the time of the first rows; their groups are built alone for it."""
        return tuple(answer(self.table, row) for row in self.rows[:ANSWERED])

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        text = StringIO()
        Console(file=text, width=WIDTH).print(source_rows(self.table, self.rows[:SHOWN]))
        yield source_heading(self.table, self.name)
        yield from (line.rstrip() for line in text.getvalue().splitlines())
        for row, answered in zip(self.rows, self.answers, strict=False):
            yield from answer_lines(row, answered)


def explain_kernel(name: str, origin: BuildOrigin, runs: int) -> SourceReport:
    """Build the program of a kernel again and time it: see `Kernel.explain`. Raises InputError for a program that is no
    longer in memory and for one of several functions, and the errors of `source_table`."""
    program = origin.program()
    if program is None:
        raise InputError(f"the program of {name} has large constants, and is no longer in memory")
    if origin.name is not None:
        raise InputError(f"{name} is one of several functions: build a module of it alone")
    table = source_table(
        program, origin.threads, origin.policy, origin.schedule, origin.error, runs, constants=origin.constants
    )
    return SourceReport(name, table)
