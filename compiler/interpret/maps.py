"""Affine maps and conditions as Python functions of ints or arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSet,
)

from compiler.dialects.mathematics import Value


def index_function(map: AffineMap) -> Callable[..., tuple[Value, ...]]:
    """Compile a map without symbols to a Python function from its dimensions, ints or arrays, to the tuple of
    results."""
    return _compiled(map.num_dims, f"({''.join(f'{_python(e)}, ' for e in map.results)})")


def condition_function(condition: AffineSet | None, dims: int) -> Callable[..., Value]:
    """Compile a condition to a Python function of `dims` dimensions, ints or arrays, to its truth; None is always
    true."""
    constraints = condition.constraints if condition is not None else ()
    tests = [f"({_python(c.lhs)} {c.kind.value} {_python(c.rhs)})" for c in constraints]
    return _compiled(dims, " & ".join(tests) or "True")


@lru_cache(maxsize=4096)
def _compiled(dims: int, text: str) -> Callable[..., Value]:
    compiled: Callable[..., Value] = eval(f"lambda {', '.join(f'd{i}' for i in range(dims))}: {text}", {})
    return compiled


_PYTHON = {
    AffineBinaryOpKind.Add: "({} + {})",
    AffineBinaryOpKind.Mul: "({} * {})",
    AffineBinaryOpKind.Mod: "({} % {})",
    AffineBinaryOpKind.FloorDiv: "({} // {})",
    AffineBinaryOpKind.CeilDiv: "(-(-{} // {}))",
}


def _python(expr: AffineExpr) -> str:
    match expr:
        case AffineConstantExpr(value):
            return f"({value})"
        case AffineDimExpr(position):
            return f"d{position}"
        case AffineBinaryOpExpr(kind, lhs, rhs):
            return _PYTHON[kind].format(_python(lhs), _python(rhs))
    raise AssertionError(f"symbols do not occur here: {expr}")
