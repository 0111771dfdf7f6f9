"""Which choices the measured times depend on: main effects on the logarithm of the time.

The effect of a choice is epsilon squared of a one-way analysis of variance (Kelley, 1935): the share of the variance
between its options, less what options would explain by chance. Choices are read from the texts of scripts: a sketch is
a text with its decisions taken out.
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

FEWEST = 12
"""Trials from which on an importance is computed."""
FREE = 4
"""How many more trials than options a choice needs: else chance explains as much."""
LONGEST = 2000
"""Characters of a line that is read as a choice: longer ones are not the tuner's."""
_DECISION = re.compile(r"%(?P<name>[^\s,]+).* = sched\.sample_\w+(?P<over>.*) decision (?P<made>\[[^\]]*\]|-?\d+)")
_CANDIDATES = re.compile(r"\[([^\]]*)\]")
_INCLUDE = re.compile(r"sched\.include @\w+\(%[^)]*\) with \{(?P<made>[^}]*)\}")
_SIZE = re.compile(r"(?P<name>\w+) = (?P<made>-?\d+|array<i64(?:: ([^>]*))?>)")


@dataclass(frozen=True)
class Option:
    """What a choice can be: in words, how many trials had it, and the geometric mean of their seconds."""

    name: str
    trials: int
    seconds: float


@dataclass(frozen=True)
class Importance:
    """A choice by its name in the script, the share of the variance that it explains, and its options, best first."""

    name: str
    share: float
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Choices:
    """The choices of a task, the most important first, and the trials that this rests on: `sketches` compares those of
    all sketches, the others those of the sketch that the best is of."""

    sketches: Importance | None
    trials: int
    choices: tuple[Importance, ...]


def choices_of(task: TaskFacts) -> Choices:
    """The importance of the choices of a task; none where there are too few trials."""
    by_sketch: defaultdict[str, list[ScriptTrials]] = defaultdict(list)
    for script in task.ranked:
        by_sketch[_sketch(script.first.script)].append(script)
    of_best_sketch = next(iter(by_sketch.values()), [])
    decided = [decisions_of(script.first.script) for script in of_best_sketch]
    seconds = [task.seconds_of(script) for script in of_best_sketch]
    names = list(_distinct([name for name, _ in decided[0]])) if decided else []
    measures = (
        importance(name, [decisions[place][1] for decisions in decided], seconds) for place, name in enumerate(names)
    )
    ranked = sorted((choice for choice in measures if choice is not None), key=lambda choice: -choice.share)
    return Choices(_sketch_choice(task, by_sketch), len(of_best_sketch), tuple(ranked))


def importance(name: str, options: Sequence[str], seconds: Sequence[float]) -> Importance | None:
    """The importance of a choice, by the option and the time of each trial; None where there are too few trials, or all
    have one option."""
    groups: defaultdict[str, list[float]] = defaultdict(list)
    for option, time in zip(options, seconds, strict=True):
        groups[option].append(log(time))
    if len(seconds) < max(FEWEST, len(groups) + FREE) or len(groups) < 2:
        return None
    best_first = sorted(groups, key=lambda option: mean(groups[option]))
    described = tuple(Option(option, len(groups[option]), exp(mean(groups[option]))) for option in best_first)
    return Importance(name, _explained(groups), described)


def _explained(groups: Mapping[str, Sequence[float]]) -> float:
    """Epsilon squared, from 0 to 1."""
    every = [value for values in groups.values() for value in values]
    middle = mean(every)
    total = sum((value - middle) ** 2 for value in every)
    between = sum(len(values) * (mean(values) - middle) ** 2 for values in groups.values())
    if total <= 0:
        return 0.0
    within = (total - between) / (len(every) - len(groups))
    return min(max((between - (len(groups) - 1) * within) / total, 0.0), 1.0)


def _sketch_choice(task: TaskFacts, by_sketch: Mapping[str, Sequence[ScriptTrials]]) -> Importance | None:
    """How far the times depend on the sketch."""
    names = {script.number: _sketch_name(scripts[0]) for scripts in by_sketch.values() for script in scripts}
    every = [(names[script.number], task.seconds_of(script)) for script in task.ranked]
    return importance("sketch", [name for name, _ in every], [seconds for _, seconds in every])


def _sketch_name(script: ScriptTrials) -> str:
    candidate = script.first.candidate
    return f"like trial {script.number}" if candidate is None else f"number {candidate[0]}"


def _sketch(script: str) -> str:
    """The text of a script without its decisions."""
    lines = script.split("\n")
    return "\n".join(
        line[: found.start("made")] if (found := _choice(line) or _include(line)) else line for line in lines
    )


def decisions_of(script: str) -> list[tuple[str, str]]:
    """The choices of a script in their order, those of its recipes too: the name of each, and its decision."""
    decisions: list[tuple[str, str]] = []
    for line in script.split("\n"):
        if choice := _choice(line):
            decisions.append((choice["name"], _decided(choice["over"], choice["made"])))
        elif include := _include(line):
            decisions += [(size["name"], _size(size["made"])) for size in _SIZE.finditer(include["made"])]
    return decisions


def _include(line: str) -> re.Match[str] | None:
    """The recipe with sizes that a line of a script includes, if it does."""
    return _INCLUDE.search(line) if "sched.include" in line and len(line) <= LONGEST else None


def _size(made: str) -> str:
    """A size in words: an integer, or the factors of a tile."""
    return made if made.lstrip("-").isdigit() else made.partition(":")[2].strip(" >").replace(", ", " x ")


def _choice(line: str) -> re.Match[str] | None:
    """The choice that a line of a script is, if it is one."""
    return _DECISION.search(line) if "sched.sample_" in line and len(line) <= LONGEST else None


def _decided(over: str, decision: str) -> str:
    """A decision in words: the candidate that a position picks, the factors of a tile, or the decision itself."""
    if decision.startswith("["):
        return decision.strip("[]").replace(", ", " x ")
    candidates = _CANDIDATES.search(over)
    options = candidates[1].split(", ") if candidates else []
    return options[int(decision)] if 0 <= int(decision) < len(options) else decision


def _distinct(names: Sequence[str]) -> Iterator[str]:
    """Names; duplicates get a number."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} ({seen[name]})"
