"""The samples of an operator and a dtype."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

from compiler.frontends.torch.dtypes import DTYPES

BY_NAME = {name: dtype for dtype, name in DTYPES.items()}
WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64}
FEW = 3
"""How many samples of an operator are taken of dtypes other than f32."""


@dataclass(frozen=True)
class Unit:
    """The samples of one operator and dtype.

    most: how many of them, by seed; all for None.
    special: with special values, and in other layouts.
    dry: captured and converted, but neither built nor compared.
    dynamo: all through torch.compile, not the first one only.
    """

    operator: str
    dtype: str
    most: int | None = None
    special: bool = False
    dry: bool = False
    dynamo: bool = False


@dataclass(frozen=True)
class Sample:
    """A call: a function of the tensors among its arguments that returns the tensors among its results.

    `widened` asks for wider dtypes where arguments name dtypes.
    """

    function: Callable[..., tuple[Any, ...]]
    widened: Callable[..., tuple[Any, ...]]
    tensors: tuple[Any, ...]


@cache
def operators() -> dict[str, Any]:
    """torch's entries by name, with the variant's."""
    return {op.name if not op.variant_test_name else f"{op.name}:{op.variant_test_name}": op for op in op_db}


def units(dtypes: Sequence[str], pattern: str, **options: Any) -> list[Unit]:
    """What a run has to do: the options are those of Unit."""
    found = [(name, op.supported_dtypes("cpu")) for name, op in operators().items() if re.search(pattern, name)]
    return [
        Unit(name, dtype, **options) for dtype in dtypes for name, supported in found if BY_NAME[dtype] in supported
    ]


def seed(*words: object) -> None:
    """Make what is drawn repeat."""
    number = crc32(" ".join(map(str, words)).encode())
    torch.manual_seed(number)
    random.seed(number)
    np.random.seed(number % 2**32)


def drawn(unit: Unit) -> Iterator[tuple[int, Sample]]:
    """The samples of a unit, each with its number."""
    op = operators()[unit.operator]
    seed(unit.operator, unit.dtype)
    inputs = list(op.sample_inputs("cpu", BY_NAME[unit.dtype], requires_grad=False))
    numbers = range(len(inputs))
    if unit.most is not None and len(inputs) > unit.most:
        choose = random.Random(f"{unit.operator} {unit.dtype}")
        numbers = sorted(choose.sample(numbers, unit.most))
    for number in numbers:
        yield number, _call(op.op, inputs[number])


def _call(op: Callable[..., Any], given: Any) -> Sample:
    leaves, structure = tree_flatten((given.input, tuple(given.args), dict(given.kwargs)))
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def calling(given: Sequence[Any]) -> Callable[..., tuple[Any, ...]]:
        def function(*tensors: Any) -> tuple[Any, ...]:
            own = list(given)
            for place, tensor in zip(places, tensors, strict=True):
                own[place] = tensor
            first, others, named = tree_unflatten(own, structure)
            outputs, _ = tree_flatten(op(first, *others, **named))
            return tuple(output for output in outputs if isinstance(output, torch.Tensor))

        return function

    wide = [WIDER.get(leaf, leaf) if isinstance(leaf, torch.dtype) else leaf for leaf in leaves]
    return Sample(calling(leaves), calling(wide), tuple(leaves[n].detach() for n in places))


def tolerance(operator: str, dtype: Any) -> tuple[float, float]:
    """The relative and absolute tolerance of a dtype: torch's default, or an entry's where it is wider."""
    rtol, atol = torch.testing._comparison.default_tolerances(dtype)
    for info in operators()[operator].decorators:
        for decorator in getattr(info, "decorators", ()):
            if isinstance(decorator, toleranceOverride) and dtype in decorator.d:
                rtol, atol = max(rtol, decorator.d[dtype].rtol), max(atol, decorator.d[dtype].atol)
    return rtol, atol
