"""The IR of a function after each pass, and the lines that each pass changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler import universe
from compiler.pipeline.passes import run
from compiler.view.records import IrStage

MAX_LINES = 4000
"""The number of lines of a stage that are shown."""
MAX_COLUMNS = 600
"""The number of characters of a line that are shown."""
_NUMBERED = re.compile(r"%v?\d+\b|\b(?:head|body|done)\d+\b")
_LOCATION = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_DEBUG = re.compile(r"\s*\.(?:file|cfi_\w+|ident|section\s+\".note)|\.L(?:tmp|func)\w+:")
_LLVM_ARGUMENT = re.compile(r"^define .*?\((.*)\)", re.MULTILINE)


def after_passes(module: ModuleOp, passes: Sequence[ModulePass]) -> list[IrStage]:
    """Run passes on a module, in place, and return the stage after each of them. Raises the errors of the passes."""
    stages = list[IrStage]()
    start = perf_counter()

    def record(applied: ModulePass, module: ModuleOp) -> None:
        nonlocal start
        stages.append(stage(applied.name, str(module), perf_counter() - start))
        start = perf_counter()

    run(universe.context(), module, passes, after=record)
    return stages


def stage(name: str, text: str, seconds: float | None = None) -> IrStage:
    """A stage with a text, cut to MAX_LINES lines of MAX_COLUMNS characters."""
    lines = text.rstrip().split("\n")
    hidden = len(lines) - MAX_LINES
    shown = [line if len(line) <= MAX_COLUMNS else f"{line[:MAX_COLUMNS]} ..." for line in lines[:MAX_LINES]]
    return IrStage(name, "\n".join([*shown, *([f"... {hidden} more lines"] if hidden > 0 else [])]), seconds)


def compared(stages: Iterable[IrStage]) -> list[IrStage]:
    """The stages with the lines that each changes; lines that differ in the numbers of values only are equal."""
    result = list[IrStage]()
    for current in stages:
        if not result:
            result.append(current)
            continue
        before, after = (_NUMBERED.sub("%#", text).split("\n") for text in (result[-1].text, current.text))
        blocks = SequenceMatcher(None, before, after).get_opcodes()
        result.append(replace(current, changed=tuple(block[1:] for block in blocks if block[0] != "equal")))
    return result


def llvm_stage(text: str, arguments: Sequence[str]) -> IrStage:
    """The stage of LLVM IR; the names `a0`, `a1` ... of its arguments are aliases of `arguments`."""
    header = _LLVM_ARGUMENT.search(text)
    named = {f"a{n}": name for n, name in enumerate(arguments) if header is not None and f"%a{n}" in header[1]}
    return replace(stage("llvm", text), aliases=named)


def assembly_stage(text: str, loops: Mapping[int, str], seconds: float) -> IrStage:
    """The stage of an assembly with debug locations, which become comments with the names `loops` of source loops, by
    number."""
    lines, last = list[str](), -1
    for line in text.partition("\n\t.section\t.debug")[0].split("\n"):
        located = _LOCATION.match(line)
        if located is None:
            lines += [] if _DEBUG.match(line) else [line.replace("\t", "    ")]
        elif int(located[1]) != last:
            last = int(located[1])
            lines.append(f'    # loop "{loops[last]}"' if last in loops else "    # outside of loops")
    return stage("assembly", "\n".join(lines), seconds)
