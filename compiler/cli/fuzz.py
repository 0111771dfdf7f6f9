"""`strata fuzz --load FILE`: random programs and scripts against the passes, primitives, laws and rules of plugins."""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.cli.printing import show
from compiler.support import plugins
from compiler.support.errors import InputError
from compiler.support.files import read, write
from compiler.support.text import counted, unknown

if TYPE_CHECKING:
    from compiler.fuzz import Failure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    add("--seed", type=int, help="the first seed; a random one by default, which is printed")
    add("--cases", type=int, default=1000, metavar="N", help="programs for each part (default: 1000)")
    add("--seconds", type=float, default=120.0, metavar="S", help="the time for all parts (default: 120)")
    add("--part", action="append", default=[], metavar="NAME", help="only this pass, primitive, law or rule")
    add("--program", metavar="FILE", help="try this program, with its script, instead of random ones")
    add("-o", "--output", metavar="FOLDER", default=".", help="where the programs that go wrong are written")


def run(options: argparse.Namespace) -> int:
    """Try the parts of the loaded plugins; print each failure, and how often each part was applied. With `--program`
    try its file alone. Return 1 after a failure, else 0. Raises InputError if there are no parts to try, or no part of
    a name."""
    from compiler.fuzz import fuzz

    parts = _parts(options.part)
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    if options.program is not None:
        return _try(options.program, parts, seed)
    counts, failures = Counter[str](), 0
    show(f"seed {seed}, at most {options.cases} programs a part and {options.seconds:g} s")
    for failure in fuzz(parts, seed, options.cases, options.seconds, counts):
        failures += 1
        _show(failure, Path(options.output), options.load)
    for part in parts:
        applied = counts[f"{part.name} applied"]
        show(f"{part.kind} {part.name}: {counted(counts[part.name], 'program')}, applied to {applied}")
    return int(failures > 0)


def _parts(names: list[str]) -> list[plugins.Part]:
    from compiler.fuzz.cases import KINDS

    parts = [part for registry in plugins.registries() for part in registry.parts if part.kind in KINDS]
    for name in names:
        if name not in {part.name for part in parts}:
            raise InputError(unknown("pass, primitive, law or rule of a plugin", name, [part.name for part in parts]))
    chosen = [part for part in parts if not names or part.name in names]
    if not chosen:
        raise InputError("there is no pass, primitive, law or rule of a plugin to try: --load FILE loads a plugin")
    return chosen


def _show(failure: Failure, folder: Path, files: list[str]) -> None:
    """Write the program of a failure to a file in `folder`, and print the fault and the commands that repeat and shrink
    it. `files` are the plugins that these load."""
    case, part = failure.case, failure.case.part
    path = folder / f"{part.name.replace(' ', '-')}-{case.seed}.mlir"
    write(path, [case.text])
    show(f"FAIL {part.kind} {part.name}, seed {case.seed}: {failure.fault}")
    first = re.split(r"\W", failure.fault)[0]  # `result`, or the type of an exception, which has to stay the same
    load = " ".join(f"--load {file}" for file in files)
    again = f"strata fuzz {load} --part {part.name} --seed {case.seed} --program"
    show(f"  again:  {again} {path}")
    show(f"  shrink: strata-reduce {load} {path} --test \"not {again} %s | grep '^FAIL.*: {first}'\"")


def _try(file: str, parts: list[plugins.Part], seed: int) -> int:
    """Try parts on the program of a file, and print a verdict for each; return 1 after a failure, else 0."""
    from compiler.fuzz import Case

    failed = False
    for part in parts:
        fault = Case(part, read(file), seed).fault()
        failed |= bool(fault)
        verdict = f"FAIL {part.kind} {part.name}: {fault}" if fault else f"{part.kind} {part.name}: right"
        show(verdict if fault is not None else f"{part.kind} {part.name}: not applied")
    return int(failed)
