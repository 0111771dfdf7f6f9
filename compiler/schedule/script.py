"""`script_of`: the one script of a module, of MLIR text, or of a file."""

from __future__ import annotations

import os
import re
from os import PathLike
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.transform import NamedSequenceOp, Transform

from compiler.dialects.modules import parsed_input, read_module
from compiler.schedule.dialect import SCHED
from compiler.schedule.primitives import PRIMITIVES, of_plugins
from compiler.support.errors import InputError, ScheduleError
from compiler.support.text import unknown

Script: TypeAlias = ModuleOp | NamedSequenceOp | str | PathLike[str]
"""A script as IR, as MLIR text, or as the path of a file."""
TEXT = "\n{"
"""Characters of which every script has one; a string without them is a path."""
SOURCE = "<script>"


def is_text(x: object) -> bool:
    """Whether a value is MLIR text, a str with a line break or a brace, not the path of a file."""
    return isinstance(x, str) and any(char in x for char in TEXT)


def script_of(script: Script) -> NamedSequenceOp:
    """Return the only script in a module, a text or a file. Raises ScheduleError for another object, a missing file, a
    text that is no valid MLIR, none or several scripts, and a script with other than one argument."""
    if isinstance(script, str | PathLike):
        script = _parsed(script)
    if not isinstance(script, ModuleOp | NamedSequenceOp):
        kinds = "a module with one transform.named_sequence, its text, or the path of a file"
        raise ScheduleError(f"a script is {kinds}, not a {type(script).__name__}")
    scripts = [op for op in script.walk() if isinstance(op, NamedSequenceOp)]
    if len(scripts) != 1:
        raise ScheduleError(f"a script is one transform.named_sequence, and there are {len(scripts)}")
    argument_count = sum(len(block.args) for block in scripts[0].body.blocks)
    if argument_count != 1:
        error = ScheduleError(f"a script takes the function, one handle, and this one takes {argument_count}")
        error.op = scripts[0]
        raise error
    return scripts[0]


def _parsed(script: str | PathLike[str]) -> ModuleOp:
    """Parse and verify the module of a text or a file. Raises ScheduleError for a missing or unreadable file, for a
    text that is no valid MLIR, with the line of a syntax error, and for a module that does not verify."""
    if isinstance(script, str) and not is_text(script) and not os.path.exists(script):
        raise ScheduleError(f"there is no file {script!r}, and it is no text of a script, a transform.named_sequence")
    try:
        if isinstance(script, str) and is_text(script):
            return parsed_input(_context(), script, SOURCE, "the script")
        return read_module(_context(), script, "script")
    except InputError as error:
        raise ScheduleError(re.sub(r"Operation sched\.(\S+) is not registered$", _unknown, str(error))) from error


def _unknown(missing: re.Match[str]) -> str:
    """The sentence about an unknown primitive, with similar names."""
    return unknown("primitive", missing[1], [*PRIMITIVES, *of_plugins()])


def _context() -> Context:
    """A context with the ops of scripts, those of plugins included."""
    context = Context()
    for dialect in (Builtin, Transform, SCHED):
        context.load_dialect(dialect)
    for primitive in of_plugins().values():
        context.load_op(primitive.op)
    return context
