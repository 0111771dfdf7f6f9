"""Code lenses: the IR after each pass, scripts that can be applied, and code actions of expected errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.transform import NamedSequenceOp

from compiler.dialects.functions import functions
from compiler.lsp.analysis import ERROR, Finding
from compiler.lsp.checks import APPLY, passes_of
from compiler.lsp.snapshot import Section, Snapshot
from compiler.lsp.text import TextRange

IR_AFTER, VIEW = "strata.irAfter", "strata.view"
"""The commands of lenses, which the client has: their arguments are the document's address, then for IR_AFTER the
number of the piece, the number of passes, and a title."""


@dataclass(frozen=True)
class Lens:
    """A lens above a range of a document: its title, the command of the client, and the arguments behind the document's
    address."""

    range: TextRange
    title: str
    command: str
    arguments: Sequence[object] = ()


def lenses(snapshot: Snapshot, has_view: bool = False) -> list[Lens]:
    """The lenses of a document: above the first function of each piece without errors one for each pass of its RUN
    line, or of its pipeline to machine code; above a script `apply script`; if `has_view`, one that shows a page about
    the file."""
    all_lenses = [
        lens for number, section in enumerate(snapshot.sections) for lens in _lenses(snapshot, number, section)
    ]
    if has_view and all_lenses:
        all_lenses.insert(0, Lens(all_lenses[0].range, "show page", VIEW))
    return all_lenses


def _lenses(snapshot: Snapshot, number: int, section: Section) -> Iterator[Lens]:
    module = section.analysis.module
    if module is None or not section.analysis.is_valid or not functions(module):
        return
    scripts = [op for op in module.ops if isinstance(op, NamedSequenceOp)]
    passes = passes_of(snapshot, section)
    first = _place(section, module)
    for count, step in enumerate(passes, 1):
        name = step.module_pass.name
        if not (scripts and name == APPLY):
            yield Lens(first, f"after {name}", IR_AFTER, (number, count, f"after {name}"))
    for script in scripts:
        at = section.in_document(section.analysis.op_range(script))
        count = next((n for n, step in enumerate(passes, 1) if step.module_pass.name == APPLY), 0)
        if count:
            yield Lens(at, "apply script", IR_AFTER, (number, count, f"after @{script.sym_name.data}"))


def _place(section: Section, module: ModuleOp) -> TextRange:
    return section.in_document(section.analysis.op_range(functions(module)[0]))


@dataclass(frozen=True)
class QuickFix:
    """A code action: its title, and the text that it inserts at an offset of the document."""

    title: str
    offset: int
    text: str


def expectations(snapshot: Snapshot, findings: Sequence[Finding], part: TextRange) -> list[QuickFix]:
    """The code actions of a part of a document: for each error there one that inserts the comment `expected-error`, in
    files with --verify-diagnostics."""
    if not any(command.verifies for command in snapshot.commands):
        return []
    fixes = []
    for finding in findings:
        touches = finding.range.start <= part.end and part.start <= finding.range.end
        if finding.severity == ERROR and touches and not finding.sentence.startswith("expected "):
            line = snapshot.lines.line_range(snapshot.lines.position(finding.range.start)[0])
            text = snapshot.text[line.start : line.end]
            indent = text[: len(text) - len(text.lstrip())]
            comment = f"{indent}// expected-error@below {{{{{finding.sentence}}}}}\n"
            fixes.append(QuickFix("Expect this error", line.start, comment))
    return fixes
