"""The text by which a program is known, whatever its function is called, and the key that it gives."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr

from compiler.autotune.database.record import Key, hash_of
from compiler.dialects.functions import find_function

NAME = "program"
"""What every function is called in the texts that are hashed and stored."""


def program_of(x: object, name: str | None = None) -> str:
    """The text of a program at the loop level, its function called @program, with nothing else in the module.

    `x` is what `compiler.lower` takes: a te function, a module, text or a path, at the te or loop level; `name` picks a
    function of a module, which has the same text whatever stands beside it. The names of buffers, blocks and loops
    stay, since scripts speak of them. Raises InputError for the low level and for a module with several functions
    unnamed, xDSL's ParseError and VerifyException for text that is no program.
    """
    from compiler.driver import lower

    function = find_function(lower(x), name)
    function.detach()
    function.sym_name, function.sym_visibility = StringAttr(NAME), None
    return str(ModuleOp([function]))


def key_of(module: object, machine: str, threads: int, policy: str, name: str | None = None) -> Key:
    """The key of a program, given as to `program_of`, on a machine, with so many threads, under a policy."""
    return Key(hash_of(program_of(module, name)), machine, threads, policy)
