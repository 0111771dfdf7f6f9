"""`canonical_hash`: what a te function computes, as a short text."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from compiler.errors import TeError
from compiler.te.function import Function


def canonical_hash(f: Function | ModuleOp) -> str:
    """A hash of what a te function computes, and how, in hexadecimal digits.

    It depends on no name, nor on the order of computes, commutative operands and reductions; on the order of arguments
    and results it does. Of a module it is that of its only function, or of the only one that is not private.

    Raises TeError for what is neither, InputError for a module without such a function.
    """
    from compiler.graph import canonical

    module = f.module if isinstance(f, Function) else f
    if not isinstance(module, ModuleOp):
        raise TeError(f"canonical_hash takes a te function or a module, not {type(f).__name__}")
    return canonical.canonical_hash(module)
