"""What a file has for each script and each task, and what pruning would remove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from compiler.database.outcome import Outcome, combine
from compiler.database.record import Key, Record, moment


@dataclass(frozen=True)
class ScriptTrials:
    """The records of one script of a key, in their order, and what they say together: one that was lucky once does not
    win. `number` counts the scripts of the key from 1, in the order in which they were first tried."""

    number: int
    records: tuple[Record, ...]
    outcome: Outcome

    @property
    def ids(self) -> tuple[int, ...]:
        """The numbers of its records."""
        return tuple(record.id for record in self.records)

    @property
    def first(self) -> Record:
        """The first record that was measured, the first if none was."""
        return next((record for record in self.records if record.outcome.ok), self.records[0])

    @property
    def rank(self) -> tuple[float, int]:
        """What orders the scripts of one key, the best first; of equally good ones the earlier."""
        return self.outcome.cost if self.outcome.ranks else float("inf"), self.first.id


def by_script(records: Iterable[Record]) -> list[ScriptTrials]:
    """The scripts of one key, in the order in which they were first tried."""
    grouped: dict[str, list[Record]] = {}
    for record in records:
        grouped.setdefault(record.script, []).append(record)
    return [
        ScriptTrials(number, tuple(trials), combine([record.outcome for record in trials]))
        for number, trials in enumerate(grouped.values(), 1)
    ]


def ranked(scripts: Iterable[ScriptTrials]) -> list[ScriptTrials]:
    """The scripts that were measured, the best first."""
    return sorted((script for script in scripts if script.outcome.ranks), key=lambda s: s.rank)


@dataclass(frozen=True)
class Summary:
    """One task: how many scripts were tried, however often; how many were measured, how many failed by kind; the best.

    `names` are what people called it, the latest last; `best` is the number of a record of the best script and
    `seconds` the median of all samples of that, None where nothing was measured.
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
    """What pruning removes of one task: so many measured and failed trials, `best` if the best is among them."""

    key: Key
    name: str
    ids: tuple[int, ...]
    ok: int
    failed: int
    left: int
    best: bool


def summaries(records: Iterable[Record]) -> list[Summary]:
    """A summary for each key, in the order in which the keys came."""
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
    """What to remove of each key: all of scripts but the `keep` best, those that failed, those made `before`."""
    every = [_removal(key, of_key, keep, failed, before) for key, of_key in _by_key(records).items()]
    return [removal for removal in every if removal.ids]


def _removal(key: Key, records: Sequence[Record], keep: int | None, failed: bool, before: datetime | None) -> Removal:
    scripts = by_script(records)
    in_order = sorted(scripts, key=lambda s: s.rank)
    gone = set() if keep is None or key.whole else {id for script in in_order[keep:] for id in script.ids}
    gone |= {record.id for record in records if failed and not record.outcome.ok}
    gone |= {record.id for record in records if before is not None and moment(record.created) < before}
    stood = {record.id for record in records if record.outcome.stands}
    for script in scripts:
        if gone & stood & set(script.ids):  # a failed script's good trials must not outlive its failure
            gone |= set(script.ids)
    ok = sum(record.outcome.ok for record in records if record.id in gone)
    best = next(iter(ranked(scripts)), None)
    return Removal(
        key=key,
        name=records[-1].name,
        ids=tuple(sorted(gone)),
        ok=ok,
        failed=len(gone) - ok,
        left=len(records) - len(gone),
        best=best is not None and gone.issuperset(best.ids),
    )


def _by_key(records: Iterable[Record]) -> dict[Key, list[Record]]:
    grouped: dict[Key, list[Record]] = {}
    for record in records:
        grouped.setdefault(record.key, []).append(record)
    return grouped
