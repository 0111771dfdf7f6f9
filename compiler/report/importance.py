"""The influence of choices on the measured times: main effects on the logarithm of the time.

The effect of a choice is epsilon squared of a one-way analysis of variance (Kelley, 1935): the share of the variance
between its options, corrected for chance. Choices are parsed from the texts of scripts: a sketch is a text without its
decisions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import mean

from compiler.database.summary import ScriptTrials
from compiler.report.tasks import TaskFacts

MIN_TRIALS = 12
"""The minimum number of trials to compute an importance."""
MIN_DEGREES = 4
"""The minimum number of trials minus options of a choice: with fewer, chance explains as much variance."""
MAX_LINE = 2000
"""The maximum characters of a line that is parsed as a choice; the tuner writes shorter lines."""
_DECISION = re.compile(r"%(?P<name>[^\s,]+).* = sched\.sample_\w+(?P<over>.*) decision (?P<made>\[[^\]]*\]|-?\d+)")
_CANDIDATES = re.compile(r"\[([^\]]*)\]")
_INCLUDE = re.compile(r"sched\.include @\w+\(%[^)]*\) with \{(?P<made>[^}]*)\}")
_SIZE = re.compile(r"(?P<name>\w+) = (?P<made>-?\d+|array<i64(?:: ([^>]*))?>)")


@dataclass(frozen=True)
class OptionStats:
    """An option of a choice: its text, the number of its trials, and the geometric mean of their seconds."""

    name: str
    trials: int
    seconds: float


@dataclass(frozen=True)
class Importance:
    """A choice by its name in the script, the share of the variance that it explains, and its options, best first."""

    name: str
    share: float
    options: tuple[OptionStats, ...]


@dataclass(frozen=True)
class Choices:
    """The importances of a task's choices. sketches: of the choice of a sketch; None for one sketch or too few trials.
    trials: the number of measured scripts of the best script's sketch. choices: of that sketch's choices, the most
    important first, without those of one option or too few trials."""

    sketches: Importance | None
    trials: int
    choices: tuple[Importance, ...]


def choices_of(task: TaskFacts) -> Choices:
    """Compute the importance of the choice among a task's sketches, and of the choices in the best script's sketch, the
    most important first. A choice with too few trials, or with one option, is left out."""
    by_sketch: defaultdict[str, list[ScriptTrials]] = defaultdict(list)
    for script in task.ranked:
        by_sketch[_sketch(script.first.script)].append(script)
    of_best_sketch = next(iter(by_sketch.values()), [])
    decided = [decisions_of(script.first.script) for script in of_best_sketch]
    seconds = [task.seconds_of(script) for script in of_best_sketch]
    names = list(_distinct([name for name, _ in decided[0]])) if decided else []
    measures = (
        importance(name, [decisions[position][1] for decisions in decided], seconds)
        for position, name in enumerate(names)
    )
    ranked = sorted((choice for choice in measures if choice is not None), key=lambda choice: -choice.share)
    return Choices(_sketch_choice(task, by_sketch), len(of_best_sketch), tuple(ranked))


def importance(name: str, options: Sequence[str], seconds: Sequence[float]) -> Importance | None:
    """Compute the importance of the choice `name` from each trial's option and time in seconds; None for too few trials
    or one option."""
    groups: defaultdict[str, list[float]] = defaultdict(list)
    for option, time in zip(options, seconds, strict=True):
        groups[option].append(log(time))
    if len(seconds) < max(MIN_TRIALS, len(groups) + MIN_DEGREES) or len(groups) < 2:
        return None
    best_first = sorted(groups, key=lambda option: mean(groups[option]))
    options_best_first = tuple(
        OptionStats(option, len(groups[option]), exp(mean(groups[option]))) for option in best_first
    )
    return Importance(name, _epsilon_squared(groups), options_best_first)


def _epsilon_squared(groups: Mapping[str, Sequence[float]]) -> float:
    values_ = [value for values in groups.values() for value in values]
    grand_mean = mean(values_)
    total = sum((value - grand_mean) ** 2 for value in values_)
    between = sum(len(values) * (mean(values) - grand_mean) ** 2 for values in groups.values())
    if total <= 0:
        return 0.0
    within = (total - between) / (len(values_) - len(groups))
    return min(max((between - (len(groups) - 1) * within) / total, 0.0), 1.0)


def _sketch_choice(task: TaskFacts, by_sketch: Mapping[str, Sequence[ScriptTrials]]) -> Importance | None:
    names = {script.number: _sketch_name(scripts[0]) for scripts in by_sketch.values() for script in scripts}
    trials = [(names[script.number], task.seconds_of(script)) for script in task.ranked]
    return importance("sketch", [name for name, _ in trials], [seconds for _, seconds in trials])


def _sketch_name(script: ScriptTrials) -> str:
    candidate = script.first.candidate
    return f"like trial {script.number}" if candidate is None else f"number {candidate[0]}"


def _sketch(script: str) -> str:
    """Return the text of a script without its decisions."""
    lines = script.split("\n")
    return "\n".join(
        line[: match.start("made")] if (match := _choice(line) or _include(line)) else line for line in lines
    )


def decisions_of(script: str) -> list[tuple[str, str]]:
    """Return the name and the decision of each choice of a script, in order, those of its recipes included."""
    decisions: list[tuple[str, str]] = []
    for line in script.split("\n"):
        if choice := _choice(line):
            decisions.append((choice["name"], _decision_text(choice["over"], choice["made"])))
        elif include := _include(line):
            decisions += [(size["name"], _size(size["made"])) for size in _SIZE.finditer(include["made"])]
    return decisions


def _include(line: str) -> re.Match[str] | None:
    return _INCLUDE.search(line) if "sched.include" in line and len(line) <= MAX_LINE else None


def _size(made: str) -> str:
    return made if made.lstrip("-").isdigit() else made.partition(":")[2].strip(" >").replace(", ", " x ")


def _choice(line: str) -> re.Match[str] | None:
    return _DECISION.search(line) if "sched.sample_" in line and len(line) <= MAX_LINE else None


def _decision_text(over: str, decision: str) -> str:
    """Return a decision in words: the candidate at a position in the list of `over`, the factors of a tile, or the
    decision itself."""
    if decision.startswith("["):
        return decision.strip("[]").replace(", ", " x ")
    candidates = _CANDIDATES.search(over)
    options = candidates[1].split(", ") if candidates else []
    return options[int(decision)] if 0 <= int(decision) < len(options) else decision


def _distinct(names: Sequence[str]) -> Iterator[str]:
    """Yield names; the second of equal ones gets ` (2)`, and so on."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} ({seen[name]})"
