# ruff: noqa: E402
"""The table of torch's operators: each case of tests/torch_cases.py as a te function, evaluated, beside torch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from compiler import te
from compiler.errors import InputError
from compiler.frontends.torch import from_torch
from compiler.frontends.torch.conversion import why_not
from compiler.frontends.torch.dtypes import DTYPES
from compiler.imported import Imported
from compiler.interpret.te import evaluate
from tests.sample import some
from tests.torch_cases import CASES, Case

NARROW = {torch.float16: 2e-2, torch.bfloat16: 1e-1, torch.float64: 1e-7}
OF_ANY_DTYPE = ("activations", "arithmetic", "products", "attention", "convolutions", "softmax", "norms", "pooling")


class Calls(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A module that calls a function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Any) -> Any:
        """The function's results."""
        return self.function(*arguments)


def array(tensor: Any) -> Any:
    """A tensor's elements; numpy has no bf16, te's evaluator has ml_dtypes'."""
    if tensor.dtype is not torch.bfloat16:
        return tensor.numpy()
    import ml_dtypes

    return tensor.float().numpy().astype(ml_dtypes.bfloat16)


def imported(case: Case) -> Imported:
    """A case as a te function."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return from_torch(Calls(case[0]), case[1])


def check(case: Case, tolerance: float) -> None:
    """The te function of a case gives what torch does."""
    program, arguments = imported(case), iter(case[1])
    inputs = program.function.inputs
    given = [program.constants[t.name] if t.name in program.constants else next(arguments) for t in inputs]
    actual = evaluate(program.function.module, [array(tensor) for tensor in given])
    wanted = case[0](*(argument.clone() for argument in case[1]))
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    assert len(actual) == len(wanted)
    for n, (ours, theirs, tensor) in enumerate(zip(actual, wanted, program.function.outputs, strict=True)):
        assert DTYPES[theirs.dtype] == tensor.dtype and tuple(theirs.shape) == ours.shape, f"result {n}"
        left, right = ours.astype(np.float64), array(theirs).astype(np.float64)
        np.testing.assert_allclose(left, right, tolerance, tolerance, err_msg=f"result {n}")


@pytest.mark.parametrize("name", some(CASES, 2))
def test_operators_give_what_torch_gives(name: str) -> None:
    check(CASES[name], 2e-4)


@pytest.mark.parametrize(
    ("name", "dtype"), some([(name, dtype) for name in OF_ANY_DTYPE for dtype in NARROW], 5), ids=str
)
def test_operators_of_other_dtypes(name: str, dtype: Any) -> None:
    function, arguments = CASES[name]
    given = tuple(a.to(dtype) if a.is_floating_point() else a for a in arguments)
    check((function, given), NARROW[dtype])


def refused(function: Any, *arguments: Any) -> str:
    """What from_torch says."""
    with pytest.raises(InputError) as error:
        imported((function, arguments))
    return str(error.value)


def test_all_operators_without_a_form_are_named_at_once() -> None:
    said = refused(lambda a: (torch.lgamma(a), torch.fft.fft(a).real, a.relu()), torch.ones(3))
    assert "aten.lgamma.default has no te form; aten._fft_r2c.default has no te form" in said and "relu" not in said


def test_what_cannot_be_a_te_function_is_refused() -> None:
    assert "torch.export refuses" in refused(lambda a: a + 1 if a.sum() > 0 else a, torch.ones(3))
    with pytest.raises(InputError, match=r"takes a torch\.nn\.Module"):
        from_torch(3, ())
    assert "writes to" in refused(lambda a: a.add_(1), torch.ones(3))
    assert "integers are divided by a tensor" in refused(lambda a: a // a, torch.ones(3, dtype=torch.int64))
    assert "extent 0" in refused(lambda a: a[:0] + 1, torch.ones(3))


def test_parameters_are_constants_under_their_names() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).eval()
    program = from_torch(module, (torch.ones(2, 3),))
    assert {"0.weight", "0.bias", "1.running_mean"} <= {name.removeprefix("x_") for name in program.constants}
    assert isinstance(program.function, te.Function)


def test_arguments_that_a_form_does_not_take_keep_an_operator_with_torch() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.ops.aten.relu.default, (x,), {"of_tomorrow": 1})
    x.meta["val"] = node.meta["val"] = torch.ones(2)
    assert why_not(node) == "aten.relu.default: got an unexpected keyword argument 'of_tomorrow'"
