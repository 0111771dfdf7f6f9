"""The IR of a function after each pass, and the lines that each pass changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from io import StringIO
from time import perf_counter
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from compiler import universe
from compiler.pipeline.passes import run
from compiler.view.nests import origin_text
from compiler.view.records import IrStage

MAX_LINES = 4000
"""The number of lines of a stage that are shown."""
MAX_COLUMNS = 600
"""The number of characters of a line that are shown."""
_NUMBERED = re.compile(r"%v?\d+\b|\b(?:head|body|done)\d+\b")
_LOCATION = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_DEBUG = re.compile(r"\s*\.(?:file|cfi_\w+|ident|section\s+\".note)|\.L(?:tmp|func)\w+:")
_DEBUG_USE = re.compile(r",? !dbg !(\d+)")
_DEBUG_LINE = re.compile(r"^!(\d+) = !DILocation\(line: (\d+)", re.MULTILINE)
Loops: TypeAlias = Mapping[int, tuple[str, str]]
"""The name of each source loop, and the place in the user's source of what it computes, by the loop's number."""
_LLVM_ARGUMENT = re.compile(r"^define .*?\((.*)\)", re.MULTILINE)


def after_passes(module: ModuleOp, passes: Sequence[ModulePass]) -> list[IrStage]:
    """Run passes on a module, in place, and return the stage after each of them. Raises the errors of the passes."""
    stages = list[IrStage]()
    start = perf_counter()

    def record(applied: ModulePass, module: ModuleOp) -> None:
        nonlocal start
        seconds = perf_counter() - start
        stages.append(module_stage(applied.name, module, seconds))
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


def llvm_stage(text: str, arguments: Sequence[str], loops: Loops) -> IrStage:
    """The stage of LLVM IR with debug locations, which become comments with the names of source loops; the names `a0`,
    `a1` ... of its arguments are aliases of `arguments`."""
    header = _LLVM_ARGUMENT.search(text)
    named = {f"a{n}": name for n, name in enumerate(arguments) if header is not None and f"%a{n}" in header[1]}
    numbers = dict(_DEBUG_LINE.findall(text))

    def lines() -> Iterator[tuple[str, int | None]]:
        for line in text.partition("\n!llvm.dbg.cu")[0].split("\n"):
            node = _DEBUG_USE.search(line)
            number = None if node is None or line.startswith("define") else int(numbers.get(node[1], 0))
            yield _DEBUG_USE.sub("", line), number

    return replace(_in_loops("llvm", lines(), loops, ";"), aliases=named)


def assembly_stage(text: str, loops: Loops, seconds: float) -> IrStage:
    """The stage of an assembly with debug locations, which become comments with the names of source loops."""

    def lines() -> Iterator[tuple[str, int | None]]:
        number = None
        for line in text.partition("\n\t.section\t.debug")[0].split("\n"):
            located = _LOCATION.match(line)
            if located is not None:
                number = int(located[1])
            elif not _DEBUG.match(line):
                yield line.replace("\t", "    "), number

    return replace(_in_loops("assembly", lines(), loops, "#"), seconds=seconds)


def _in_loops(name: str, numbered: Iterable[tuple[str, int | None]], loops: Loops, comment: str) -> IrStage:
    """A stage of lines, each with the number of its source loop or None for that of the line before; a comment names
    the loop at each change."""
    lines, places, last = list[str](), list[str](), -1
    for line, number in numbered:
        if number is not None and number != last:
            last = number
            lines.append(
                f'    {comment} loop "{loops[last][0]}"' if last in loops else f"    {comment} outside of loops"
            )
        lines.append(line)
        places += [loops[last][1] if last in loops else ""] * (len(lines) - len(places))
    return placed(stage(name, "\n".join(lines)), places)


def placed(stage: IrStage, places: Sequence[str]) -> IrStage:
    """A stage with the place in the user's source of each line, empty for none."""
    distinct = list(dict.fromkeys(place for place in places if place))
    number = {place: n for n, place in enumerate(distinct)} | {"": -1}
    runs = [n for n, place in enumerate(places) if n == 0 or place != places[n - 1]]
    return replace(stage, places=distinct, runs=[(n, number[places[n]]) for n in runs])


class _LinePrinter(Printer):
    """A printer that records the place in the user's source of the op that begins at each line, by the line's number
    from 0."""

    def __init__(self, stream: StringIO) -> None:
        super().__init__(stream)
        self.places: dict[int, str] = {}

    def print_op(self, op: Operation) -> None:
        """Print an op, and record its place."""
        self.places.setdefault(self._current_line, origin_text(op.location))
        super().print_op(op)


def module_stage(name: str, module: ModuleOp, seconds: float | None = None) -> IrStage:
    """The stage of a module, with the places of its ops; a line where no op begins has that of the line before."""
    stream = StringIO()
    printer = _LinePrinter(stream)
    printer.print_op(module)
    text, places = stream.getvalue(), list[str]()
    for number in range(text.count("\n") + 1):
        places.append(printer.places.get(number, places[-1] if places else ""))
    return placed(stage(name, text, seconds), places)
