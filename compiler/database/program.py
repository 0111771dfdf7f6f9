"""The canonical text of a program, independent of its function's name, and its key."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler.database.outcome import WARM
from compiler.database.record import Key, hash_of
from compiler.dialects.functions import find_function
from compiler.program.read import read
from compiler.program.write import write

NAME = "program"
"""The name of the function in texts that are hashed and stored."""


def program_of(x: object, name: str | None = None) -> str:
    """The text of a program at the loop level: a module of one function, named @program.

    `x` is a program as for `strata.lower`: a te function, a module, text or a path, at the te or loop level; `name`
    selects a function of a module, whose text is independent of the rest of the module. Names of buffers, blocks and
    loops are part of the text, since scripts refer to them; sums in index expressions are in the order of the axes.
    Small constants are included with their elements, large ones with their shapes only. Raises InputError for another
    object, an unreadable file, the low level (except loops of affine or scf), a name that no function has, and several
    functions without `name`; xDSL's ParseError and VerifyException for invalid text.
    """
    from compiler.pipeline.loops import lower

    return text_of(find_function(lower(x), name))


def text_of(function: FuncOp) -> str:
    """Return the text that `program_of` returns for a function at the loop level."""
    written = write(replace(read(function), name=NAME, values=()))
    replaced_attributes = (*written.attributes, "constant_values")
    written.attributes |= {k: v for k, v in function.attributes.items() if k not in replaced_attributes}
    return str(ModuleOp([written]))


def key_of(module: object, machine: str, threads: int, policy: str, name: str | None = None, timing: str = WARM) -> Key:
    """The key of a program (`module` and `name` as for `program_of`) on a machine, by its name, with threads, policy
    and timing. Raises what `program_of` raises."""
    return Key(hash_of(program_of(module, name)), machine, threads, policy, timing)
