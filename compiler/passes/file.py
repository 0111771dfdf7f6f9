"""A module that a pass reads from a file of its own."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError, VerifyException

from compiler.dialects.dominance import last_sentence, verify_module
from compiler.dialects.parser import Parser
from compiler.support.errors import InputError
from compiler.support.files import read


def read_module(ctx: Context, path: str, what: str) -> ModuleOp:
    """The verified module of a file, which is called `what` in errors. Raises InputError, with the line."""
    try:
        text = read(path)
    except InputError as error:
        raise InputError(f"the {what} {error}") from error
    try:
        module = Parser(ctx, text, path).parse_module()
        verify_module(module)
    except ParseError as error:
        line = text.count("\n", 0, error.span.start) + 1
        raise InputError(f"the {what} '{path}' cannot be read: line {line}: {last_sentence(error.msg)}") from error
    except VerifyException as error:
        raise InputError(f"the {what} '{path}' does not verify: {last_sentence(str(error))}") from error
    return module
