"""Mutants of IR text: whatever a file says, strata-opt ends with 0, or with 1 and one sentence with a place.

    python -m tests.fuzz.mutants --seed 7 --cases 1000

The originals are the files of tests/filecheck, and what examples look like at each level. A mutant changes one to
three things: tokens or lines, numbers, types, attributes, names of values. It is run through the passes of its file's
RUN lines or a standard pipeline.
"""

from __future__ import annotations

import argparse
import io
import random
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from compiler import universe
from compiler.filecheck.payload import FOLDER, expanded
from compiler.opt import main as strata_opt
from tests.fuzz.alarm import TooLong, limit

ROOT = Path(__file__).parents[2]
SECONDS = 10
PIPELINES = ("cpu", "loop-to-cpu", "low-to-cpu", "te-to-low", "loop-to-gpu", "loop-to-low", "te-to-loop", "cse")
NUMBERS = ("0", "-1", "1", "7", "2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551616")
TYPES = ("f32", "f16", "bf16", "f64", "i1", "i8", "i32", "i64", "index", "i65536", "ui8", "none", "vector<4xf32>")
SHAPES = ("memref<4xf32>", "memref<f32>", "tensor<4xf32>", "memref<?xf32>", "memref<4x4xi32, 3>", "tensor<*xf32>")
KINDS = (
    *("serial", "parallel", "vectorized", "unrolled", "block_x", "thread_x", "thread_y", "vthread", "tensorized"),
    *("global", "shared", "local", "fragment", "add", "mul", "max", "min", "spatial", "reduce"),
    *("addf", "mulf", "addi", "muli", "maxsi", "divsi", "cmpf", "cmpi", "select", "exp", "constant", "guard", "pad"),
)

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|[%@#^!]?[\w.$]+|->|//[^\n]*|\s+|.', re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.%@#])-?\d+(?![\w.])")
_SCALAR = re.compile(r"\b(?:[su]?i\d+|b?f\d+|index)\b")
_SHAPED = re.compile(r"\b(?:memref|tensor|vector)<[^<>]*>")
_ATTRIBUTES = re.compile(r"(?:attributes )?\{[\w.]+ = [^{}]*\}| where \([^\n]*?\)(?= )| accumulate| combine \[[^\]]*\]")
_KIND = re.compile(r"\b(?:" + "|".join(KINDS) + r")\b")
_VALUE = re.compile(r"%[\w.]+")
_COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)

Mutation = Callable[[str, random.Random], str]


@dataclass(frozen=True)
class Original:
    """A text that is mutated, and the options that it is run with."""

    name: str
    text: str
    runs: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Mutant:
    """A text and how it is run."""

    name: str
    text: str
    options: tuple[str, ...]


@cache
def originals() -> tuple[Original, ...]:
    """All originals, in an order that is the same everywhere."""
    return (*_filechecks(), *_levels())


def _filechecks() -> Iterator[Original]:
    for path in sorted((ROOT / "tests" / "filecheck").rglob("*.mlir")):
        if path.parent.name == FOLDER:
            continue
        text = expanded(path)
        runs = tuple(run for line in re.findall(r"//\s*RUN:\s*(.*)", text) for run in _options(line))
        for number, piece in enumerate(text.split("// -----\n")):
            yield Original(f"{path.relative_to(ROOT)}:{number}", _COMMENT.sub("", piece), runs)


def _options(line: str) -> Iterator[tuple[str, ...]]:
    """The passes that a RUN line names."""
    words = shlex.split(line.split("|")[0].removesuffix("\\"))
    for before, word in pairwise(words):
        if before == "-p" and "%t" not in word:
            yield ("-p", word.replace("%s", "FILE"))


def _levels() -> Iterator[Original]:
    """Examples at each level, as they are printed there."""
    from compiler.pipeline.loops import lower
    from compiler.pipeline.parser import parse_passes
    from compiler.pipeline.passes import run
    from compiler.schedule import Schedule
    from tests.schedules import SCHEDULES, mm_exp_mm

    function = mm_exp_mm()
    yield Original("te", str(function.module), (("-p", "cpu"), ("-p", "te-to-low")))
    for name, make in SCHEDULES.items():
        schedule = Schedule(lower(function))
        make(schedule)
        module = schedule.module.clone()
        yield Original(f"loop {name}", str(module), (("-p", "loop-to-cpu"), ("-p", "loop-to-gpu")))
        run(universe.context(), module, parse_passes("loop-to-low,promote-buffers"))
        yield Original(f"low {name}", str(module), (("-p", "low-to-cpu"), ("-t", "llvm")))


def draw(seed: int, case: int) -> Mutant:
    """The mutant of a number, which a seed and the number alone decide."""
    chance = random.Random(f"{seed}:{case}")
    original = chance.choice(originals())
    text = original.text
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        text = chance.choice(MUTATIONS)(text, chance)
    standard = ("-p", chance.choice(PIPELINES), "-t", chance.choice(("mlir", "mlir", "llvm", "asm")))
    own = original.runs or (standard,)
    options = chance.choice((*own, *own, standard, standard, ()))
    return Mutant(original.name, text, options)


def _replaced(
    pattern: re.Pattern[str], new: Callable[[random.Random, str], str]
) -> Callable[[str, random.Random], str]:
    def mutate(text: str, chance: random.Random) -> str:
        actual = list(pattern.finditer(text))
        if not actual:
            return text
        match = chance.choice(actual)
        return text[: match.start()] + new(chance, match[0]) + text[match.end() :]

    return mutate


def _shuffled(parts: Callable[[str], list[str]]) -> Mutation:
    """Delete, duplicate or swap parts of a text."""

    def mutate(text: str, chance: random.Random) -> str:
        pieces = parts(text)
        if len(pieces) < 2:
            return text
        a, b = chance.randrange(len(pieces)), chance.randrange(len(pieces))
        match chance.randrange(4):
            case 0:
                del pieces[a]
            case 1:
                pieces.insert(b, pieces[a])
            case 2:
                pieces[a], pieces[b] = pieces[b], pieces[a]
            case _:
                pieces[a] = pieces[b]
        return "".join(pieces)

    return mutate


def _other_value(text: str, chance: random.Random) -> str:
    """One use or definition of a value renamed to another of the text."""
    names = _VALUE.findall(text)
    return _replaced(_VALUE, lambda c, _: c.choice(names))(text, chance) if names else text


def _everywhere(pattern: re.Pattern[str], new: tuple[str, ...]) -> Mutation:
    """One word replaced wherever it stands, so that what belongs together still fits."""

    def mutate(text: str, chance: random.Random) -> str:
        actual = pattern.findall(text)
        if not actual:
            return text
        old, put = chance.choice(actual), chance.choice(new)
        return pattern.sub(lambda match: put if match[0] == old else match[0], text)

    return mutate


MUTATIONS: tuple[Mutation, ...] = (
    _shuffled(_TOKEN.findall),
    _shuffled(lambda text: text.splitlines(keepends=True)),
    _replaced(_NUMBER, lambda chance, _: chance.choice(NUMBERS)),
    _replaced(_NUMBER, lambda chance, old: str(int(old) + chance.choice((-1, 1)))),
    _replaced(_SCALAR, lambda chance, _: chance.choice(TYPES)),
    _replaced(_SHAPED, lambda chance, _: chance.choice((*SHAPES, *TYPES))),
    _everywhere(_SCALAR, TYPES),
    _everywhere(_NUMBER, NUMBERS),
    _everywhere(_KIND, KINDS),
    _replaced(_ATTRIBUTES, lambda chance, _: ""),
    _other_value,
)


def fault(mutant: Mutant, folder: Path) -> str | None:
    """What is wrong with how strata-opt ends on a mutant; None if nothing is."""
    path = folder / "mutant.mlir"
    path.write_text(mutant.text, encoding="utf-8")
    options = [word.replace("FILE", str(path)) for word in mutant.options]
    out, err = io.StringIO(), io.StringIO()
    try:
        with limit(SECONDS), redirect_stdout(out), redirect_stderr(err):
            status = strata_opt([str(path), *options])
    except TooLong:
        return f"took over {SECONDS} s"
    except (Exception, SystemExit):
        return traceback.format_exc()
    said = err.getvalue()
    if status not in (0, 1) or "Traceback" in said or (status == 1) != ("error: " in said):
        return f"ended with {status} and said: {said}"
    return None


def failures(seed: int, cases: Iterable[int]) -> Iterator[tuple[int, Mutant, str]]:
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            mutant = draw(seed, case)
            actual = fault(mutant, Path(folder))
            if actual is not None:
                yield case, mutant, actual


def main(seed: int, cases: int) -> int:
    """Run some mutants of a seed; print those that end wrongly and how to see them again; how many they are."""
    count = 0
    for case, mutant, actual in failures(seed, range(cases)):
        count += 1
        print(f"mutants: seed {seed} case {case} ({mutant.name}, {shlex.join(mutant.options)}):\n{actual}")
        print(f"  again: python -m tests.fuzz.mutants --seed {seed} --only {case} > mutant.mlir\n", flush=True)
    print(f"mutants: {count} failures of {cases} cases, seed {seed}")
    return count


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutants", description="Attack strata-opt with mutants.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--only", type=int, metavar="CASE", help="print this mutant's text, and run nothing")
    return parser.parse_args()


if __name__ == "__main__":
    options = _arguments()
    if options.only is not None:
        chosen = draw(options.seed, options.only)
        print(f"// strata-opt {shlex.join(chosen.options)}\n{chosen.text}")
        sys.exit(0)
    sys.exit(main(options.seed, options.cases) > 0)
