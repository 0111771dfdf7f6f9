"""The RUN lines of a document: the passes of each strata-opt command, and what the words of such a line mean."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compiler.filecheck.payload import FileCheckError
from compiler.filecheck.shell import pipes
from compiler.lsp.analysis import Finding
from compiler.lsp.text import TextRange
from compiler.opt.command_line import arguments
from compiler.opt.spelling import normalized
from compiler.pipeline.parser import PipelineStep, nested_steps, steps
from compiler.support.errors import InputError

_RUN = re.compile(r"^[ \t]*//[ \t]*RUN:(?:[^\n]*\\\r?\n[ \t]*//(?:[ \t]*RUN:)?)*[^\n]*", re.MULTILINE)
_CONTINUED = re.compile(r"\\\r?\n[ \t]*//(?:[ \t]*RUN:)?")
TOOL = "strata-opt"


@dataclass(frozen=True)
class RunCommand:
    """A strata-opt command of a RUN line: the line's range, the command's words, its parsed options, and its passes.
    `is_inverted`: whether `not` is before it. `fault` is the finding of options or passes that are refused."""

    range: TextRange
    words: Sequence[str]
    options: argparse.Namespace | None = None
    passes: Sequence[PipelineStep] = ()
    is_inverted: bool = False
    fault: Finding | None = None

    @property
    def verifies(self) -> bool:
        """Whether the command compares errors with comments."""
        return self.options is not None and bool(self.options.verify_diagnostics)

    @property
    def allows_unregistered(self) -> bool:
        """Whether the command accepts ops of unknown dialects."""
        return self.options is not None and bool(self.options.allow_unregistered_dialect)

    @property
    def reads_only_this(self) -> bool:
        """Whether no pass reads another file: no word has a substitution besides `%s`."""
        return not any(re.search(r"%[a-zA-Z{]", word) for word in self.words if word != "%s")


def run_commands(text: str) -> list[RunCommand]:
    """The strata-opt commands at the beginning of the pipes of a text's RUN lines."""
    return [command for match in _RUN.finditer(text) for command in _commands(text, match)]


def run_line_at(text: str, offset: int) -> TextRange | None:
    """The range of the RUN line at an offset, with its continuations; None if there is none."""
    for match in _RUN.finditer(text):
        if match.start() <= offset <= match.end():
            return TextRange(*match.span())
    return None


def _commands(text: str, match: re.Match[str]) -> Iterator[RunCommand]:
    part = TextRange(*match.span())
    line = _CONTINUED.sub(" ", match[0].partition("RUN:")[2]).strip()
    try:
        parsed = pipes(line) if line else []
    except FileCheckError as error:
        yield RunCommand(part, (), fault=Finding(part, str(error)))
        return
    except ValueError as error:
        yield RunCommand(part, (), fault=Finding(part, f"the RUN line cannot be read: {error}"))
        return
    for commands in parsed:
        words = commands[0].words
        is_inverted = words[0] == "not"
        words = words[1:] if is_inverted else words
        if words[:1] == [TOOL]:
            yield _command(text, part, words[1:], is_inverted)


def _command(text: str, part: TextRange, words: Sequence[str], is_inverted: bool) -> RunCommand:
    parser = arguments()
    try:
        options = parser.parse_args(normalized(words, parser))
        passes = [step for stated in options.passes for step in steps(stated)]
        if options.pass_pipeline is not None:
            passes = nested_steps(options.pass_pipeline)
    except InputError as error:
        at = part
        if error.span is not None:
            stated = error.span.text
            start = text.find(stated, part.start, part.end)
            if stated and start >= 0:
                at = TextRange(start, start + error.span.length).shifted(error.span.column - 1)
        return RunCommand(part, words, is_inverted=is_inverted, fault=None if is_inverted else Finding(at, str(error)))
    except SystemExit:  # of --help and --version
        return RunCommand(part, words, is_inverted=is_inverted)
    return RunCommand(part, words, options, passes, is_inverted)
