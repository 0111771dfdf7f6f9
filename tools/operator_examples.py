"""Examples of te.nn's operators, made of the samples that the tests build and compare with numpy and torch."""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any
from unittest.mock import patch

from compiler import te

OPERATORS: Mapping[str, Any] = import_module("tests.operators").OPERATORS  # the types of tests are not checked
"""The rows of the tests, `tests.operators.Operator`, by the names of the operators."""
SAMPLES = 8
"""The samples of an operator among which the example is chosen."""


@dataclass(frozen=True)
class Call:
    """A call of an operator: the te function around it, the arguments and the defaults of all parameters by name, and
    the result."""

    function: te.Function
    arguments: dict[str, Any]
    defaults: dict[str, Any]
    result: te.Tensor | tuple[te.Tensor, ...]

    @property
    def is_degenerate(self) -> bool:
        """Whether a tensor has an extent of 1, or all tensors are vectors."""
        shapes = [tensor.shape for tensor in (*self.function.inputs, *self.function.outputs)]
        return any(1 in shape for shape in shapes) or max(map(len, shapes)) < 2

    def text(self, name: str) -> str:
        """The call as a session of Python: a line for each placeholder, the call and its result."""
        lines = [f">>> {_variable(tensor)} = te.placeholder({_placed(tensor)})" for tensor in self.function.inputs]
        return "\n".join([*lines, f">>> te.nn.{name}({', '.join(self._shown())})", repr(self.result)])

    def _shown(self) -> Iterator[str]:
        """Yield the arguments that are no defaults; those with a default by keyword."""
        for name, value in self.arguments.items():
            if not _is_tensor(value) and name in self.defaults and self.defaults[name] == value:
                continue
            required = self.defaults.get(name) is inspect.Parameter.empty
            yield _value(value) if required else f"{name}={_value(value)}"


def _is_tensor(value: object) -> bool:
    return isinstance(value, te.Tensor) or (isinstance(value, list | tuple) and any(map(_is_tensor, value)))


def _value(value: object) -> str:
    if isinstance(value, te.Tensor):
        return _variable(value)
    if isinstance(value, list | tuple) and _is_tensor(value):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _variable(tensor: te.Tensor) -> str:
    """The name of a tensor without the prefix by which tests draw positive elements: posT is T, pos is X."""
    return tensor.name.removeprefix("pos").removeprefix("_") or "X"


def _placed(tensor: te.Tensor) -> str:
    dtype = "" if tensor.dtype == "f32" else f', "{tensor.dtype}"'
    return f'{tensor.shape}{dtype}, name="{_variable(tensor)}"'


@cache
def example(name: str) -> str:
    """The example of an operator of te.nn: a call of the first sample that is not degenerate, else of the first."""
    calls = [_call(OPERATORS[name], 0)]
    while calls[-1].is_degenerate and len(calls) < SAMPLES:
        calls.append(_call(OPERATORS[name], len(calls)))
    return next((call for call in calls if not call.is_degenerate), calls[0]).text(name)


def _call(operator: Any, seed: int) -> Call:
    """The last call of an operator while the sample of a seed is built, in f32 if the operator takes it."""
    calls: list[tuple[inspect.BoundArguments, Any]] = []
    original = getattr(te.nn, operator.name)
    signature = inspect.signature(original)

    def recorded(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        calls.append((signature.bind(*args, **kwargs), result))
        return result

    dtype = "f32" if "f32" in operator.dtypes else operator.dtypes[0]
    with patch.object(te.nn, operator.name, recorded):
        function = operator.build(dtype, operator.sample(random.Random(seed)))
    bound, result = calls[-1]
    defaults = {parameter.name: parameter.default for parameter in signature.parameters.values()}
    return Call(function, dict(bound.arguments), defaults, result)
