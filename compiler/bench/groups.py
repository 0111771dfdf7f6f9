"""The times of the groups of a tuned program, beside the whole: a table after the contenders' table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table

from compiler.bench.contenders import Settings
from compiler.bench.workload import Workload
from compiler.support.errors import InputError


def breakdowns(workload: Workload, contenders: Iterable[str], settings: Settings) -> Iterator[Table]:
    """A table for each contender that runs tuned groups; none for a program of one group, or without records."""
    from compiler.autotune.task import SearchTask

    constants: dict[str, Sequence[str]] = {"tuned": (), "tuned.prepared": workload.constants}
    for name in contenders:
        if name not in constants:
            continue
        task = SearchTask(
            workload.function(), threads=settings.threads, policy=settings.policy, constants=constants[name]
        )
        try:
            records = task.best(settings.database) if task.groups else None
        except InputError:
            continue
        if records is not None:
            table = task.breakdown(records).table()
            table.title, table.title_justify = f"{name}, by groups", "left"
            yield table
