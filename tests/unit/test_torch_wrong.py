# ruff: noqa: E402
"""Modules, inputs and options that are wrong: each ends in a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn

import compiler
from compiler.errors import InputError
from compiler.frontends.torch import explain, from_torch


class Branch(nn.Module):  # type: ignore[misc]
    """Takes one of two ways, by values."""

    def forward(self, x: Any) -> Any:
        return x + 1 if x.sum() > 0 else x - 1


class Decomposed(nn.Module):  # type: ignore[misc]
    """Uses what te has no form for."""

    def forward(self, x: Any) -> Any:
        return torch.linalg.svd(x)[0]


def _linear() -> Any:
    return nn.Linear(3, 4).eval()


def _ones(*shape: int, dtype: Any = None) -> Any:
    return torch.ones(shape, dtype=dtype)


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "no module": (lambda: from_torch(3, (_ones(2, 3),)), "takes a torch.nn.Module, not a int"),
    "no inputs": (lambda: from_torch(_linear(), ()), "torch.export refuses Linear: missing a required argument"),
    "another shape": (lambda: from_torch(_linear(), (_ones(2, 5),)), "torch.export refuses Linear"),
    "an array": (lambda: from_torch(_linear(), (_ones(2, 3).numpy(),)), "Unsupported input type"),
    "a branch on values": (lambda: from_torch(Branch(), (_ones(2),)), "torch.export refuses Branch"),
    "complex numbers": (lambda: from_torch(nn.Identity(), (_ones(2, dtype=torch.complex64),)), "dtype complex64"),
    "no te form": (lambda: from_torch(Decomposed(), (_ones(2, 2),)), "aten._linalg_svd.default has no te form"),
    "in training": (
        lambda: from_torch(nn.Dropout().train(), (_ones(2),)),
        "aten.native_dropout.default has no te form",
    ),
    "statistics": (
        lambda: from_torch(nn.BatchNorm1d(3).train(), (_ones(2, 3),)),
        "the module writes to 'running_mean'",
    ),
    "explain no model": (lambda: explain("x", _ones(2)), "explain takes a model, not a str"),
    "explain another shape": (
        lambda: explain(_linear(), _ones(2, 5)),
        "torch refuses the call: a and b must",
    ),
    "explain an option": (lambda: explain(_linear(), _ones(2, 3), options={"thread": 1}), "no option 'thread'"),
    "build a module": (lambda: compiler.build(_linear()), "cannot build a Linear: give a te function"),
    "build a name": (lambda: compiler.build("model.pt"), "cannot build 'model.pt': give the path of an .mlir file"),
    "build a folder": (lambda: compiler.build(str(Path.cwd())), "cannot build '/.*': give the path"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", WRONG)
def test_it_ends_in_a_sentence(case: str) -> None:
    do, said = WRONG[case]
    with pytest.raises(InputError, match=said) as error:
        do()
    assert len(str(error.value).splitlines()) == 1 and not re.search("Traceback|FakeTensor", str(error.value))
