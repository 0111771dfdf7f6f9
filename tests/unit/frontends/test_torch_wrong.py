# ruff: noqa: E402
"""Modules, inputs and options of torch that are wrong: each ends in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.doors

import compiler
from compiler.frontends.torch import explain, from_torch
from compiler.support.errors import InputError, TargetError

nn = torch.nn
X = torch.ones(2, 4)
LINEAR = nn.Linear(4, 3).eval()


def of(function: Callable[..., Any]) -> Any:
    """A module whose forward is a function."""
    return type("Made", (nn.Module,), {"forward": lambda self, *inputs: function(*inputs)})()


def raises(error: Exception) -> Any:
    def forward(x: Any) -> Any:
        raise error

    return of(forward)


MODULES: dict[str, tuple[Any, Any, str]] = {
    "a function": (lambda x: x, X, r"takes a torch\.nn\.Module, not a function"),
    "a class": (nn.ReLU, X, "not a type"),
    "a path": ("model.pt", X, "not a str"),
    "no forward": (nn.Module(), X, "torch.export refuses Module: .*forward"),
    "parameters without values": (nn.LazyLinear(3), X, "torch.export refuses LazyLinear: .*uninitialized"),
    "no inputs": (LINEAR, None, "the inputs of a module are a tensor, or a list of them, not a NoneType"),
    "inputs by name": (LINEAR, {"input": X}, "not a dict"),
    "too few inputs": (LINEAR, (), "torch.export refuses Linear: missing a required argument"),
    "an array": (LINEAR, (X.numpy(),), "torch.export refuses Linear: .*numpy.ndarray"),
    "integers for floats": (LINEAR, X.long(), "aten.linear.default: .*dtypes do not mix"),
    "complex numbers": (nn.ReLU(), X.to(torch.complex64), "the dtype complex64"),
    "a sparse tensor": (nn.ReLU(), X.to_sparse(), "the layout sparse_coo"),
    "a tensor elsewhere": (nn.ReLU(), X.to("meta"), "the device meta"),
    "no elements": (nn.ReLU(), X[:0], "extents are at least 1"),
    "training": (nn.BatchNorm1d(4), X, r"writes to 'running_mean' .*training mode: \.eval\(\) makes it"),
    "random numbers": (nn.Dropout(), X, r"native_dropout.* no te form; it is in training mode"),
    "a check that writes nothing": (of(torch.linalg.inv), torch.eye(3), "linalg_inv_ex.default has no te form"),
    "a result that is no tensor": (of(lambda x: (x, "text")), X, "a result of the module is no tensor: 'text'"),
    "a branch on values": (of(lambda x: x + 1 if x.sum() > 0 else x), X, "torch.export refuses Made: Could not guard"),
    "a missing key": (raises(KeyError("w")), X, "torch.export refuses Made: 'w'"),
    "a missing attribute": (of(lambda x: x.nope), X, "torch.export refuses Made: .*nope"),
    "an error without words": (raises(StopIteration()), X, "torch.export refuses Made: StopIteration"),
    "an error of two lines": (raises(ValueError("one\ntwo")), X, "torch.export refuses Made: one$"),
}


@pytest.mark.parametrize("case", MODULES)
def test_a_wrong_module_is_refused_in_a_sentence(case: str) -> None:
    module, inputs, said = MODULES[case]
    with pytest.raises(InputError, match=said) as error:
        from_torch(module, inputs)
    assert "\n" not in str(error.value)


CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "explain a name": (lambda: explain("x", X), "explain takes a model, not a str"),
    "explain a class": (lambda: explain(nn.ReLU, X), "explain takes a model, not a type"),
    "explain another shape": (lambda: explain(LINEAR, X[:, 1:]), "torch refuses the call: a and b must"),
    "explain with an option": (lambda: explain(LINEAR, X, options={"thread": 1}), "no option 'thread'"),
    "build a module": (lambda: compiler.build(LINEAR), "cannot build a Linear: .*what from_torch gives"),
    "build a name": (lambda: compiler.build("model.pt"), "cannot build 'model.pt': give the path of an .mlir file"),
    "build a folder": (lambda: compiler.build(str(Path.cwd())), "cannot build '/.*': give the path"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CALLS)
def test_a_wrong_call_is_refused_in_a_sentence(case: str) -> None:
    call, said = CALLS[case]
    with pytest.raises(InputError, match=said) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (X[:1], r"'input' has shape \(1, 4\), expected \(2, 4\)"),
        (X.double(), "'input' has dtype float64, expected float32"),
        (X.clone().requires_grad_(), r"'input' requires a gradient.*\.detach\(\)"),
        (X.to("meta"), "'input' is on the device meta"),
    ],
)
def test_a_kernel_refuses_wrong_tensors(given: Any, said: str) -> None:
    kernel = compiler.build(from_torch(nn.ReLU(), X), schedule="written")
    with pytest.raises(TargetError, match=said):
        kernel(given)
