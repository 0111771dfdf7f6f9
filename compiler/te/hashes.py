"""`canonical_hash`: a digest of the computation of a te function."""

from __future__ import annotations

from os import PathLike
from reprlib import repr as short

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func

from compiler.dialects.modules import parsed
from compiler.dialects.te import TE
from compiler.dialects.upstream.arith import ARITH
from compiler.dialects.upstream.math import MATH
from compiler.support.errors import TeError
from compiler.support.files import read
from compiler.te.function import Function

DIALECTS = (Builtin, Func, ARITH, MATH, TE)
"""The dialects of te modules."""


def canonical_hash(f: Function | ModuleOp | str | PathLike[str]) -> str:
    """A hash of a te function's computation, in hexadecimal digits.

    It is independent of names and of the order of computes, commutative operands and reductions, but not of the order
    of arguments and results. `f` is a te function, a module, its text, or the path of an `.mlir` file. A module's hash
    is that of its only function, or of its only public one.

    Raises TeError for any other object, InputError for a file that cannot be read and for a module without such a
    function, and xDSL's ParseError and VerifyException for text that is no te program.

    >>> A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    >>> f, g = te.function("f", [A], te.nn.exp(A)), te.function("g", [B], te.nn.exp(B))
    >>> te.canonical_hash(f) == te.canonical_hash(g)
    True
    """
    from compiler.graph import canonical

    return canonical.canonical_hash(_module(f))


def _module(f: object) -> ModuleOp:
    if isinstance(f, Function):
        return f.module
    if isinstance(f, ModuleOp):
        return f
    if isinstance(f, PathLike) or (isinstance(f, str) and "\n" not in f and f.endswith(".mlir")):
        return _parsed(read(f), str(f))
    if isinstance(f, str) and "\n" in f:
        return _parsed(f, "<text>")
    shown = short(f) if isinstance(f, str) else f"a {type(f).__name__}"
    raise TeError(f"canonical_hash takes a te function, a module, its text or the path of an .mlir file, not {shown}")


def _parsed(text: str, source: str) -> ModuleOp:
    context = Context()
    for dialect in DIALECTS:
        context.load_dialect(dialect)
    return parsed(context, text, source)
