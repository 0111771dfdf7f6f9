"""Programs for GPUs with something wrong in them: other loops, scopes, numbers, types, operations, lines."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

KINDS = (
    "",
    "unrolled ",
    "parallel ",
    "vectorized ",
    "vthread ",
    *(f"{w}_{s} " for w in ("block", "thread") for s in "xyz"),
)
SCOPES = ("shared", "local", "global", "fragment")
TYPES = ("f16", "bf16", "f64", "i8", "i1", "i64", "ui8", "index")
OPERATIONS = (
    "addi",
    "divui",
    "remsi",
    "floordivsi",
    "shrui",
    "minui",
    "mulf",
    "maximumf",
    "maxnumf",
    "remf",
    "bitcast",
)
Mutation = Callable[[random.Random, str], str]


def _replaced(pattern: str, second: Callable[[random.Random, re.Match[str]], str]) -> Mutation:
    """One of the places where a pattern occurs is another text."""

    def mutate(rng: random.Random, text: str) -> str:
        places = list(re.finditer(pattern, text))
        if not places:
            return text
        place = rng.choice(places)
        return text[: place.start()] + second(rng, place) + text[place.end() :]

    return mutate


def _without_a_line(rng: random.Random, text: str) -> str:
    lines = text.splitlines()
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines)


def _with_a_line_twice(rng: random.Random, text: str) -> str:
    lines = text.splitlines()
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return "\n".join(lines)


def _without_a_block(rng: random.Random, text: str) -> str:
    """A block with its body is gone."""
    places = [match.start() for match in re.finditer(r"loop\.block", text)]
    if not places:
        return text
    start = rng.choice(places)
    end, depth = text.index("{", start) + 1, 1
    while depth and end < len(text):
        depth += (text[end] == "{") - (text[end] == "}")
        end += 1
    return text[:start] + text[end:]


def _with_another_type(rng: random.Random, text: str) -> str:
    return re.sub(r"\bf32\b", rng.choice(TYPES), text)


def _number(rng: random.Random, place: re.Match[str]) -> str:
    near = int(place.group()) + rng.choice([-1, 1])
    return str(rng.choice([0, 1, 2, 3, 7, 33, 1025, max(0, near), 1 << 31]))


MUTATIONS: tuple[Mutation, ...] = (
    _replaced(r"(?<= = )(\d+) (\w+ )?(?=\{)", lambda rng, place: f"{place[1]} {rng.choice(KINDS)}"),
    _replaced(r"\b(shared|local|global|fragment)\b", lambda rng, place: rng.choice(SCOPES)),
    _replaced(r"\b\d+\b", _number),
    _replaced(r"%[\w.]+", lambda rng, place: rng.choice(re.findall(r"%[\w.]+", place.string))),
    _replaced(r"(?<=arith\.)\w+(?= %)", lambda rng, place: rng.choice(OPERATIONS)),
    _without_a_line,
    _with_a_line_twice,
    _without_a_block,
    _with_another_type,
)


def mutant(text: str, seed: int) -> str:
    """A program with one to three things changed."""
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 3)):
        text = rng.choice(MUTATIONS)(rng, text)
    return text
