"""A module that a pass reads from a file of its own."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError, VerifyException

from compiler.dialects.parser import parsed, unreadable
from compiler.support.errors import InputError
from compiler.support.files import read


def read_module(ctx: Context, path: str, what: str) -> ModuleOp:
    """The verified module of a file, which is called `what` in errors. Raises InputError, with the line."""
    try:
        text = read(path)
    except InputError as error:
        raise InputError(f"the {what} {error}") from error
    try:
        return parsed(ctx, text, path)
    except (ParseError, VerifyException) as error:
        raise InputError(unreadable(f"the {what} '{path}'", error)) from error
