"""The text by which a program is known, whatever its function is called, and the key that it gives."""

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
"""What every function is called in the texts that are hashed and stored."""


def program_of(x: object, name: str | None = None) -> str:
    """The text of a program at the loop level, its function called @program, with nothing else in the module.

    `x` is what `strata.lower` takes: a te function, a module, text or a path, at the te or loop level; `name` picks a
    function of a module, which has the same text whatever stands beside it. The names of buffers, blocks and loops
    stay, since scripts speak of them; sums in index expressions are in the order of the axes. The elements of small
    constants are part of the text, of large ones only the shapes. Raises InputError for the low level and for a module
    with several functions unnamed, xDSL's ParseError and VerifyException for text that is no program.
    """
    from compiler.pipeline import lower

    return text_of(find_function(lower(x), name))


def text_of(function: FuncOp) -> str:
    """The same of a function that is lowered."""
    written = write(replace(read(function), name=NAME, values=()))
    stale = (*written.attributes, "constant_values")
    written.attributes |= {k: v for k, v in function.attributes.items() if k not in stale}
    return str(ModuleOp([written]))


def key_of(module: object, machine: str, threads: int, policy: str, name: str | None = None, timing: str = WARM) -> Key:
    """The key of a program, given as to `program_of`, on a machine, with so many threads, under a policy, by a
    timing."""
    return Key(hash_of(program_of(module, name)), machine, threads, policy, timing)
