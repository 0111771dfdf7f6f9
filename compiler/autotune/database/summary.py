"""What a file has for each task, and what pruning would remove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from compiler.autotune.database.record import Key
from compiler.autotune.outcome import Outcome, combine


@dataclass(frozen=True)
class Trial:
    """What summaries need of a record; the `reason` of its outcome and what it took to build are left out."""

    id: int
    key: Key
    name: str
    script: str
    outcome: Outcome
    created: datetime


@dataclass(frozen=True)
class ScriptTrials:
    """What the trials of one script say together: one that was lucky once does not win.

    `ids` are the numbers of its records; `id` that of the first that was measured, of the first if none was.
    """

    id: int
    ids: tuple[int, ...]
    outcome: Outcome

    @property
    def rank(self) -> tuple[float, int]:
        """What orders the scripts of one key, the best first; of equally good ones the earlier."""
        return self.outcome.cost if self.outcome.ranks else float("inf"), self.id


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


def standings(trials: Iterable[Trial]) -> list[ScriptTrials]:
    """The scripts of one key, in the order in which they were first tried."""
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.script, []).append(trial)
    return [_standing(own) for own in found.values()]


def _standing(trials: Sequence[Trial]) -> ScriptTrials:
    first = next((trial for trial in trials if trial.outcome.ok), trials[0])
    return ScriptTrials(first.id, tuple(t.id for t in trials), combine([t.outcome for t in trials]))


def ranked(scripts: Iterable[ScriptTrials]) -> list[ScriptTrials]:
    """The scripts that were measured, the best first."""
    return sorted((script for script in scripts if script.outcome.ranks), key=lambda s: s.rank)


def summaries(trials: Iterable[Trial]) -> list[Summary]:
    """A summary for each key, in the order in which the keys came."""
    return [_summary(key, own) for key, own in _by_key(trials).items()]


def _summary(key: Key, trials: Sequence[Trial]) -> Summary:
    scripts = standings(trials)
    best = next(iter(ranked(scripts)), None)
    names = dict.fromkeys(trial.name for trial in reversed(trials))
    failed = Counter(script.outcome.kind for script in scripts if not script.outcome.ok)
    return Summary(
        key=key,
        names=tuple(names)[::-1],
        trials=len(scripts),
        ok=len(scripts) - failed.total(),
        failed=dict(sorted(failed.items())),
        best=None if best is None else best.id,
        seconds=None if best is None else median(best.outcome.seconds),
    )


def removals(trials: Iterable[Trial], keep: int | None, failed: bool, before: datetime | None) -> list[Removal]:
    """What to remove of each key: all of scripts but the `keep` best, those that failed, those made `before`."""
    found = [_removal(key, own, keep, failed, before) for key, own in _by_key(trials).items()]
    return [removal for removal in found if removal.ids]


def _removal(key: Key, trials: Sequence[Trial], keep: int | None, failed: bool, before: datetime | None) -> Removal:
    scripts = standings(trials)
    in_order = sorted(scripts, key=lambda s: s.rank)
    gone = set() if keep is None else {id for script in in_order[keep:] for id in script.ids}
    gone |= {trial.id for trial in trials if failed and not trial.outcome.ok}
    gone |= {trial.id for trial in trials if before is not None and trial.created < before}
    stood = {trial.id for trial in trials if trial.outcome.stands}
    for script in scripts:
        if gone & stood & set(script.ids):  # what was measured of it must not outlive the knowledge that it is wrong
            gone |= set(script.ids)
    ok = sum(trial.outcome.ok for trial in trials if trial.id in gone)
    best = next(iter(ranked(scripts)), None)
    return Removal(
        key=key,
        name=trials[-1].name,
        ids=tuple(sorted(gone)),
        ok=ok,
        failed=len(gone) - ok,
        left=len(trials) - len(gone),
        best=best is not None and gone.issuperset(best.ids),
    )


def _by_key(trials: Iterable[Trial]) -> dict[Key, list[Trial]]:
    found: dict[Key, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.key, []).append(trial)
    return found
