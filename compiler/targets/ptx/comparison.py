"""Comparisons and selections: setp, selp, slct."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from compiler.targets.ptx.syntax import PtxInstruction, RegisterList
from compiler.targets.ptx.table import Computation, modifiers_of, one_type, pure, types_of
from compiler.targets.ptx.values import Array, is_float_type

_ORDERED: Mapping[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_BOOLEAN: Mapping[str, Callable[..., Any]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


@pure("setp")
def comparison(instruction: PtxInstruction) -> Computation:
    """Return the computation of a `setp` such as `setp.lt.f32 p, a, b`. With a NaN operand `lt` and `ne` are false,
    `ltu` is true. For `p|q` it returns the predicate and its negation. A boolean modifier, such as `.and`, combines
    each with a third, predicate operand. Raises PtxError for packed types, unknown modifiers, and other than one
    relation."""
    type_ = [*types_of(instruction), "none"][0]
    modifiers = modifiers_of(
        instruction, *_ORDERED, *_UNSIGNED, *(f"{name}u" for name in _ORDERED), "num", "nan", *_BOOLEAN
    )
    joins = modifiers & set(_BOOLEAN)
    names = modifiers - joins
    if len(names) != 1 or "x2" in type_:
        raise instruction.refused("it compares two numbers")
    compare = _comparison(names.pop(), is_float_type(type_))
    is_pair = isinstance(instruction.operands[0], RegisterList)
    join = _BOOLEAN[joins.pop()] if joins else None

    def compute(a: Array, b: Array, *former: Array) -> Array | tuple[Array, ...]:
        result = compare(a, b)
        results = (result, ~result) if is_pair else (result,)
        if join is not None:
            results = tuple(join(each, former[0]) for each in results)
        return results if is_pair else results[0]

    return Computation((type_, type_, "pred") if join else (type_, type_), "pred", compute)


def _comparison(name: str, is_float: bool) -> Callable[..., Array]:
    name = _UNSIGNED.get(name, name)
    if name in ("num", "nan"):
        unordered = name == "nan"
        return lambda a, b: (np.isnan(a) | np.isnan(b)) == unordered
    if name in _ORDERED and not (is_float and name == "ne"):
        return _ORDERED[name]
    if name == "ne":  # of floats ordered, unlike numpy's
        return lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b)
    ordered = _ORDERED[name[:-1]]
    return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)


@pure("selp")
def selection(instruction: PtxInstruction) -> Computation:
    """Return the computation of `selp d, a, b, p`: a where the predicate p is true, else b. Raises PtxError for any
    modifier."""
    type_ = one_type(instruction)
    modifiers_of(instruction)
    return Computation((type_, type_, "pred"), type_, lambda a, b, p: np.where(p, a, b))


@pure("slct")
def selection_by_sign(instruction: PtxInstruction) -> Computation:
    """Return the computation of `slct d, a, b, c`: a where c >= 0, else b, also for NaN. Raises PtxError for a modifier
    other than `.ftz`, which has no effect."""
    modifiers_of(instruction, "ftz")
    type_, by = types_of(instruction)
    return Computation((type_, type_, by), type_, lambda a, b, c: np.where(c >= 0, a, b))
