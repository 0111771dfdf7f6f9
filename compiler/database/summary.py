"""Summaries of a file by script and task, and the removals of pruning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from compiler.database.outcome import Outcome, combine
from compiler.database.record import Key, Record, utc_time


@dataclass(frozen=True)
class ScriptTrials:
    """The records of one script of a key, by id, and their merged outcome, whose cost is a median over all samples.
    number: counts the scripts of the key from 1, in the order of first trials."""

    number: int
    records: tuple[Record, ...]
    outcome: Outcome

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the records."""
        return tuple(record.id for record in self.records)

    @property
    def first(self) -> Record:
        """The first measured record; the first record if none was measured."""
        return next((record for record in self.records if record.outcome.ok), self.records[0])

    @property
    def rank(self) -> tuple[float, int]:
        """The sort key of the scripts of a key, best first; ties go to the earliest."""
        return self.outcome.cost if self.outcome.is_comparable else float("inf"), self.first.id


def by_script(records: Iterable[Record]) -> list[ScriptTrials]:
    """Group the records of one key by script, in the order of first trials."""
    grouped: dict[str, list[Record]] = {}
    for record in records:
        grouped.setdefault(record.script, []).append(record)
    return [
        ScriptTrials(number, tuple(trials), combine([record.outcome for record in trials]))
        for number, trials in enumerate(grouped.values(), 1)
    ]


def ranked(scripts: Iterable[ScriptTrials]) -> list[ScriptTrials]:
    """Sort the measured scripts, best first; scripts without a comparable cost are dropped."""
    return sorted((script for script in scripts if script.outcome.is_comparable), key=lambda s: s.rank)


@dataclass(frozen=True)
class Summary:
    """A task: the numbers of scripts (`trials`), of measured ones (`ok`), and of failed ones by kind; its best script.

    names: the names of the task, latest last. best: the id of the best script's first measured record. seconds: the
    median of the best script's samples; both None without a measured script.
    """

    key: Key
    names: tuple[str, ...]
    trials: int
    ok: int
    failed: Mapping[str, int]
    best: int | None
    seconds: float | None


@dataclass(frozen=True)
class Removal:
    """The removal of a task's records: the task's latest name, the ids, how many of these measured (`ok`) and failed,
    the number of records left; `best` tells whether all records of the best script are removed."""

    key: Key
    name: str
    ids: tuple[int, ...]
    ok: int
    failed: int
    left: int
    best: bool


def summaries(records: Iterable[Record]) -> list[Summary]:
    """A summary of each key, in the order of the keys' first records."""
    return [_summary(key, of_key) for key, of_key in _by_key(records).items()]


def _summary(key: Key, records: Sequence[Record]) -> Summary:
    scripts = by_script(records)
    best = next(iter(ranked(scripts)), None)
    names = dict.fromkeys(record.name for record in reversed(records))
    failed = Counter(script.outcome.kind for script in scripts if not script.outcome.ok)
    return Summary(
        key=key,
        names=tuple(names)[::-1],
        trials=len(scripts),
        ok=len(scripts) - failed.total(),
        failed=dict(sorted(failed.items())),
        best=None if best is None else best.first.id,
        seconds=None if best is None else median(best.outcome.seconds),
    )


def removals(records: Iterable[Record], keep: int | None, failed: bool, before: datetime | None) -> list[Removal]:
    """The removals of each key by the criteria of `Database.prune`; keys without a removal are left out."""
    all_removals = [_removal(key, of_key, keep, failed, before) for key, of_key in _by_key(records).items()]
    return [removal for removal in all_removals if removal.ids]


def _removal(key: Key, records: Sequence[Record], keep: int | None, failed: bool, before: datetime | None) -> Removal:
    scripts = by_script(records)
    ordered = sorted(scripts, key=lambda s: s.rank)
    removed_ids = set() if keep is None or key.whole else {id for script in ordered[keep:] for id in script.ids}
    removed_ids |= {record.id for record in records if failed and not record.outcome.ok}
    removed_ids |= {record.id for record in records if before is not None and utc_time(record.created) < before}
    final_failures = {record.id for record in records if record.outcome.is_final}
    for script in scripts:
        if removed_ids & final_failures & set(script.ids):  # a failed script's good trials must not outlive its failure
            removed_ids |= set(script.ids)
    ok = sum(record.outcome.ok for record in records if record.id in removed_ids)
    best = next(iter(ranked(scripts)), None)
    return Removal(
        key=key,
        name=records[-1].name,
        ids=tuple(sorted(removed_ids)),
        ok=ok,
        failed=len(removed_ids) - ok,
        left=len(records) - len(removed_ids),
        best=best is not None and removed_ids.issuperset(best.ids),
    )


def _by_key(records: Iterable[Record]) -> dict[Key, list[Record]]:
    grouped: dict[Key, list[Record]] = {}
    for record in records:
        grouped.setdefault(record.key, []).append(record)
    return grouped
