"""Whatever the named operators are given: a tensor, or a TeError with a sentence; never another exception."""

from __future__ import annotations

import inspect
import random
from typing import Any

import numpy as np
import pytest

from compiler import te
from compiler.support.errors import TeError

P = te.placeholder
OPERATORS = sorted(name for name, made in vars(te.nn).items() if callable(made) and not name.startswith("_"))
TENSORS = [
    *(P(shape, name=f"X{n}") for n, shape in enumerate([(), (1,), (4,), (2, 3), (3, 2), (1, 2, 4), (2, 3, 4, 5)])),
    *(P((2, 4, 3, 3), dtype, name=f"Y{dtype}") for dtype in ("f16", "u8", "i1")),
    P((4, 4, 3, 3), name="W"),
    P((2, 2, 4, 4, 4), name="V"),
    P((4,), "i64", name="I"),
    P((3,), "f64", name="D"),
]
THINGS = [
    *(0, 1, 2, -1, 3, -7, 100, True, False, None, 1.5, -0.5, float("nan"), float("inf"), 10**400),
    *("same", "mean", "none", "f32", "i8", "f8", "", (), [], (1, 2), [1, 1], (0, 0), (-1, -1), (1, 2, 3), (2, 3, 4, 5)),
    *((1.5, 2), ("a", "b"), (None, None), [(1, 1)], [(0, 1), (1, 0)], [(0,)], {}, object(), np.int64(2), np.float32(1)),
    *(np.zeros(3), np.array(2), lambda x: x, range(3), b"x", ((1, 2), (3, 4)), [TENSORS[2], TENSORS[2]], [TENSORS[3]]),
]


def given(parameter: inspect.Parameter, rng: random.Random) -> Any:
    """Something for a parameter: mostly a tensor where it is one, else mostly not."""
    tensors = "Tensor" in str(parameter.annotation)
    return rng.choice(TENSORS if (rng.random() < 0.9) == tensors else THINGS)


@pytest.mark.parametrize("name", OPERATORS)
def test_garbage_ends_in_a_sentence(name: str) -> None:
    operator, rng = getattr(te.nn, name), random.Random(name)
    parameters = [p for p in inspect.signature(operator).parameters.values() if p.name != "name"]
    refused = 0
    for _ in range(400):
        chosen = [p for p in parameters if p.default is p.empty or rng.random() < 0.5]
        arguments = {p.name: given(p, rng) for p in chosen}
        try:
            output = operator(**arguments)
        except TeError as error:
            refused += 1
            assert len(str(error)) > 10
        else:
            assert all(isinstance(part, te.Tensor) for part in (output if isinstance(output, tuple) else (output,)))
    assert refused


A, B = P((2, 3), name="A"), P((3,), "i32", name="B")
AXIS = te.reduce_axis(3)
EXPRESSIONS = [A[0, 1], B[2], AXIS, AXIS * 2, AXIS > 1, A[0, 1] > 2.0, te.const(3, "i8"), te.cast(AXIS, "i64"), *THINGS]
FRONT: dict[str, Any] = {
    "placeholder": te.placeholder,
    "reduce_axis": te.reduce_axis,
    "const": te.const,
    "function": lambda name, inputs, outputs: te.function(name, inputs, outputs),
    "compute": lambda shape, value, axes: te.compute(shape, lambda *i: value, "C", axes),
    "reduced": lambda value, axis: te.compute((), lambda: te.sum(value, axis=axis), "C"),
    "gather": lambda shape, at, otherwise: te.gather(shape, lambda *i: A.at(at, 0), "G", otherwise=otherwise),
    "cast": te.cast,
    "select": te.select,
    "padded": lambda value, at: A.padded(value)[at, 0],
    "combiner": te.combiner,
    "reduce": lambda identity, value, axis: te.reduce(te.combiner(lambda a, b: a, identity), value, axis),
    "combined": lambda value: te.reduce(te.combiner(lambda a, b: value, (0,)), (A[0, AXIS],), AXIS),
    **{name: getattr(te, name) for name in ("exp", "abs", "round", "maximum", "pow", "equal", "all_of", "any_of")},
}
"""Functions of the front end, of whatever they are given."""


@pytest.mark.parametrize("name", FRONT)
def test_the_front_end_refuses_garbage(name: str) -> None:
    call, rng = FRONT[name], random.Random(name)
    parameters = inspect.signature(call).parameters.values()
    for _ in range(400):
        given = [rng.choice([*EXPRESSIONS, *TENSORS[2:5]]) for p in parameters if p.kind is not p.VAR_POSITIONAL]
        more = [rng.choice(EXPRESSIONS) for p in parameters if p.kind is p.VAR_POSITIONAL for _ in range(2)]
        try:
            call(*given, *more)
        except TeError as error:
            assert len(str(error)) > 10


@pytest.mark.parametrize("name", [3, None, b"x"])
def test_names(name: Any) -> None:
    with pytest.raises(TeError, match="cannot name a tensor"):
        te.nn.relu(TENSORS[2], name)
