"""Results of a program at each level, and whether they are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.functions import functions
from compiler.interpret import loop as loop_interpreter
from compiler.interpret import te as te_evaluator
from compiler.pipeline.source import level_of

Arrays = list[np.ndarray[Any, Any]]


def results(module: ModuleOp, arrays: Arrays, like: Arrays) -> Arrays:
    """Run the only public function of a module on arrays: by the te evaluator, the loop interpreter, or, at the low
    level, as machine code. `like` has the shapes and dtypes of the results, and is read at the loop level only. Raises
    InputError for arrays that do not match, TeError or InterpretError for a read out of bounds, and TargetError for a
    module that cannot be built."""
    level = level_of(module)
    if level == "te":
        with np.errstate(all="ignore"):
            return list(te_evaluator.evaluate(module, arrays))
    outputs = [np.full_like(each, 77 if each.dtype.kind in "biu" else np.nan) for each in like]
    if level == "loop":
        with np.errstate(all="ignore"):
            loop_interpreter.run(module, [*arrays, *outputs])
        return outputs
    from compiler.driver import build

    computed = build(module)(*arrays)
    return list(computed) if isinstance(computed, tuple) else [computed]


def difference(found: Sequence[np.ndarray[Any, Any]], expected: Sequence[np.ndarray[Any, Any]]) -> str:
    """Return a sentence on the first wrong result, or "" if all are right. Integers are compared exactly, floats with a
    tolerance of 1e-3 (f16: 2e-2, bf16: 0.2), relative to the element or to the largest finite one, at least 1; NaNs are
    equal."""
    if len(found) != len(expected):
        return f"there are {len(found)} results instead of {len(expected)}"
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        if one.shape != other.shape:
            return f"result {number} has the shape {one.shape} instead of {other.shape}"
        wrong = np.argwhere(~_close(one, other))
        if len(wrong):
            place = tuple(map(int, wrong[0]))
            return f"result {number} is wrong at {list(place)}: {one[place]} instead of {other[place]}"
    return ""


def _close(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A mask of the right elements, by the tolerance of `difference`."""
    if found.dtype.kind in "biu":
        return np.asarray(found == expected)
    tolerance = {"float16": 2e-2, "bfloat16": 0.2}.get(found.dtype.name, 1e-3)
    wide, exact = found.astype(np.float64), expected.astype(np.float64)
    largest = float(np.abs(exact[np.isfinite(exact)]).max(initial=0.0))
    with np.errstate(all="ignore"):
        near = np.isclose(wide, exact, rtol=tolerance, atol=tolerance * max(1.0, largest), equal_nan=True)
    return np.asarray(near)


def public_function(module: ModuleOp) -> Any:
    """The only public function of a module; None if there are none or several."""
    public = [f for f in functions(module) if f.sym_visibility is None or f.sym_visibility.data == "public"]
    return public[0] if len(public) == 1 else None
