"""The slow checks of a document, which run in another process: the passes of RUN lines, scripts on their programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.transform import NamedSequenceOp
from xdsl.printer import Printer

from compiler import universe
from compiler.analysis.legal import Violation
from compiler.dialects.functions import functions
from compiler.dialects.loop import Placed
from compiler.lsp.analysis import ERROR, Analysis, Finding, RelatedPlace
from compiler.lsp.index import SOURCE
from compiler.lsp.runs import RunCommand
from compiler.lsp.snapshot import Section, Snapshot, expected, placed
from compiler.lsp.text import Text, TextRange, token_at
from compiler.opt.diagnostics import PROGRAM_ERRORS, Diagnostic, diagnose
from compiler.opt.expectations import UNEXPECTED, mismatches
from compiler.opt.source import Piece
from compiler.pipeline.parser import PipelineStep, steps
from compiler.pipeline.passes import TO_LLVM, run
from compiler.pipeline.source import level_of
from compiler.support.errors import InputError, ScheduleError
from compiler.support.spans import Span

APPLY = "apply-schedule"
"""The pass that applies the script of a module."""


@dataclass(frozen=True)
class ImplicitRun:
    """The passes of a piece without a RUN line. `is_check`: whether they are run to check the piece, as a script is;
    the passes to machine code are only offered."""

    passes: Sequence[PipelineStep]
    is_check: bool


def implicit_run(analysis: Analysis) -> ImplicitRun | None:
    """The passes of a piece that no RUN line states: of a script with its program apply-schedule, of a program those to
    machine code by its level; None for a piece with errors, and without a function."""
    module = analysis.module
    if module is None or not analysis.is_valid or not functions(module):
        return None
    if any(isinstance(op, NamedSequenceOp) for op in module.ops):
        return ImplicitRun(steps(APPLY), True)
    return ImplicitRun(steps(TO_LLVM[level_of(module)]), False)


def passes_of(snapshot: Snapshot, section: Section) -> Sequence[PipelineStep]:
    """The passes of a piece: those of the first command of the RUN lines that has some, else the implicit ones."""
    stated = [command.passes for command in snapshot.commands if command.passes and command.reads_only_this]
    if stated:
        return stated[0]
    implicit = implicit_run(section.analysis)
    return () if implicit is None else implicit.passes


def has_deep_checks(snapshot: Snapshot) -> bool:
    """Whether `deep_findings` runs passes on a piece of a document: by a RUN line, or since it has a script and its
    program."""
    valid = [section for section in snapshot.sections if section.analysis.is_valid]
    if snapshot.commands:
        return bool(valid) and any(command.passes and command.reads_only_this for command in snapshot.commands)
    implicit = (implicit_run(section.analysis) for section in valid)
    return any(run is not None and run.is_check for run in implicit)


def deep_findings(snapshot: Snapshot) -> list[Finding]:
    """The findings of the passes that RUN lines, or scripts, run on the pieces of a document that are valid.

    Errors that a RUN line expects are information; with --verify-diagnostics one that is expected and missing is an
    error.
    """
    return [
        placed(section, finding)
        for section in snapshot.sections
        if section.analysis.is_valid
        for finding in _section_findings(snapshot, section)
    ]


def _section_findings(snapshot: Snapshot, section: Section) -> Iterator[Finding]:
    commands = [c for c in snapshot.commands if c.options is not None and c.reads_only_this and c.passes]
    if not snapshot.commands:
        implicit = implicit_run(section.analysis)
        if implicit is not None and implicit.is_check:
            yield from _run(section, implicit.passes, None)
    seen: set[Finding] = set()
    for command in commands:
        for finding in _run(section, command.passes, command):
            if finding not in seen:
                seen.add(finding)
                yield finding


def _run(section: Section, passes: Sequence[PipelineStep], command: RunCommand | None) -> list[Finding]:
    """Run passes on a copy of a piece's module; return the findings in its text."""
    refusal = applied(section.analysis, passes, len(passes))
    refused = [] if isinstance(refusal, ModuleOp) else [refusal]
    if command is None:
        return refused
    if command.is_inverted:
        return [expected(finding) for finding in refused]
    if not command.verifies:
        return refused
    line = Text(section.text).position
    diagnostics = [Diagnostic(Span("", line(f.range.start)[0] + 1, 1), f.sentence, f.is_located) for f in refused]
    wrong = mismatches(Piece("", section.text, 0), diagnostics)
    findings = [] if any(w.sentence.startswith(UNEXPECTED) for w in wrong) else [expected(f) for f in refused]
    rows = Text(section.text).line_range
    findings += refused if not findings else []
    missing = [w for w in wrong if not w.sentence.startswith(UNEXPECTED)]
    return findings + [Finding(rows(w.span.line - 1), w.sentence) for w in missing]


def applied(analysis: Analysis, passes: Sequence[PipelineStep], count: int) -> ModuleOp | Finding:
    """A copy of a piece's module after the first `count` passes, verified after each, or the finding, in the piece's
    text, of the pass that refuses it. The module must have been parsed as a whole."""
    assert analysis.module is not None
    module, running = analysis.module.clone(), None
    try:
        for running in passes[:count]:
            run(universe.context(), module, [running.module_pass], verify=True)
    except PROGRAM_ERRORS as error:
        return _finding(analysis, error, running)
    return module


def ir_after(snapshot: Snapshot, number: int, count: int) -> str:
    """The IR of piece `number` of a document after the first `count` of its passes, as text. Raises InputError for a
    piece with errors, and for one that a pass refuses."""
    sections = snapshot.sections
    if not 0 <= number < len(sections) or not sections[number].analysis.is_valid:
        raise InputError("the program has errors: its passes cannot run")
    after = applied(sections[number].analysis, passes_of(snapshot, sections[number]), count)
    if isinstance(after, Finding):
        line, _ = snapshot.lines.position(placed(sections[number], after).range.start)
        raise InputError(f"line {line + 1}: {after.sentence}")
    stream = StringIO()
    Printer(stream).print_op(after)
    return stream.getvalue() + "\n"


def _finding(analysis: Analysis, error: BaseException, running: PipelineStep | None) -> Finding:
    """The finding of an exception of a pass, at the op at fault; of a refused step with the two instances."""
    diagnostic = diagnose(error, Span(SOURCE, 1, 1), running)
    is_located = diagnostic.known and diagnostic.span.source == SOURCE
    at = _named(analysis, diagnostic.span) if is_located else analysis.first_line
    sentence = diagnostic.sentence
    if running is not None and not sentence.startswith(running.module_pass.name):
        sentence = f"{running.module_pass.name}: {sentence}" if running.module_pass.name != APPLY else sentence
    return Finding(at, sentence, ERROR, tuple(_witnesses(analysis, error)), is_located)


def _named(analysis: Analysis, span: Span) -> TextRange:
    """The name of the op that begins at a location of the text; else the token there."""
    offset = Text(analysis.text).offset(span.line - 1, span.column - 1)
    for entry in analysis.index.ops:
        if entry.range.start == offset:
            return entry.name_range
    token = token_at(analysis.text, offset)
    return TextRange(offset, offset + 1) if token is None else token.range


def _witnesses(analysis: Analysis, error: BaseException | object) -> Iterator[RelatedPlace]:
    """Yield the blocks of the two instances that a refused step reverses, or runs at once, each with its instance."""
    violation = error
    while isinstance(violation, ScheduleError):
        violation = violation.reason
    if not isinstance(violation, Violation) or violation.points is None:
        return
    for statement, point in zip((violation.first, violation.second), violation.points, strict=True):
        name = statement.block.label
        entry = next((e for e in analysis.index.ops if e.label == name and isinstance(e.op, Placed)), None)
        init = "the init of " if statement.is_init else ""
        if entry is not None:
            yield RelatedPlace(entry.name_range, f"{init}{statement.instance(point)}")
