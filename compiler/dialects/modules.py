"""Modules of MLIR text, parsed and verified."""

from __future__ import annotations

from os import PathLike

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError, VerifyException

from compiler.dialects.dominance import last_sentence, verify_module
from compiler.dialects.parser import Parser
from compiler.support import files, spans
from compiler.support.errors import InputError


def parsed(ctx: Context, text: str, source: str) -> ModuleOp:
    """Parse and verify a module; errors show lines of its `source`, a file or a name such as <text>. Raises ParseError
    for a syntax error, and VerifyException for a module that does not verify."""
    spans.remember(source, text)
    module = Parser(ctx, text, source).parse_module()
    verify_module(module)
    return module


def parsed_input(ctx: Context, text: str, source: str, subject: str) -> ModuleOp:
    """Parse and verify the module `text`, named `subject` in errors; `source` is its file or a name such as <text>.
    Raises InputError for a module that does not verify, and, with the line, for a syntax error."""
    try:
        return parsed(ctx, text, source)
    except ParseError as error:
        line = spans.of_parse_error(error).line
        raise InputError(f"{subject} cannot be read: line {line}: {last_sentence(error.msg)}") from error
    except VerifyException as error:
        raise InputError(f"{subject} does not verify: {last_sentence(str(error))}") from error


def read_module(ctx: Context, path: str | PathLike[str], subject: str) -> ModuleOp:
    """Parse and verify the module in a file, named `subject` in errors, such as `script`. Raises InputError if the file
    cannot be read, or the module not parsed or verified."""
    try:
        text = files.read(path)
    except InputError as error:
        raise InputError(f"the {subject} {error}") from error
    return parsed_input(ctx, text, str(path), f"the {subject} '{path}'")
