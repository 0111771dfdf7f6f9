# ruff: noqa: E402
"""Small forms of the networks that are measured, as te functions, evaluated, beside torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.doors

from benchmarks.models_torch import Bert, Gpt2, MobileNetV2, ResNet, UNet, Unrolled, ViT, numbered
from compiler import te
from compiler.frontends.torch import from_torch
from compiler.interpret.te import evaluate
from compiler.support import spans
from tests.sample import some

nn = torch.nn


def encoder() -> Any:
    """torch's own encoder, which has a fast path of its own."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def image(size: int = 16) -> tuple[Any, ...]:
    return (torch.rand(1, 3, size, size),)


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], tuple[Any, ...]]]] = {
    "gpt-2": (lambda: Gpt2(2, 16, 2, 50), lambda: (numbered((1, 7), 50),)),
    "mobilenet": (lambda: MobileNetV2(MobileNetV2.STAGES[:3], 10), lambda: image(32)),
    "resnet-50": (lambda: ResNet((1, 1), True, 4, 10), image),
    "bert": (lambda: Bert(2, 16, 2, 50), lambda: (numbered((2, 7), 50), torch.ones(2, 7, dtype=torch.int64))),
    "u-net": (lambda: UNet(8, 2), image),
    "vit": (lambda: ViT(1, 16, 2, 8, 16), image),
    "lstm cell": (lambda: Unrolled(4, 8), lambda: (torch.rand(2, 3, 4),)),
    "encoder": (encoder, lambda: (torch.rand(2, 5, 8),)),
    "resnet-18": (lambda: ResNet((1, 1), False, 4, 10), image),
}


@pytest.mark.parametrize("name", some(MODELS, 2))
def test_networks_give_what_torch_gives(name: str) -> None:
    torch.manual_seed(0)
    model, inputs = MODELS[name][0]().eval(), MODELS[name][1]()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program, wanted = from_torch(model, inputs), model(*inputs)
    arguments = iter(inputs)
    given = [program.constants.get(t.name) for t in program.function.inputs]
    actual = evaluate(program.function.module, [(next(arguments) if g is None else g).numpy() for g in given])
    for ours, theirs in zip(actual, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-3, atol=1e-4)


class TwoLines(nn.Module):  # type: ignore[name-defined,misc]
    """A model whose lines are known."""

    def forward(self, x: Any) -> Any:
        y = nn.functional.gelu(x)
        return y + 1


def test_what_a_model_computes_has_the_lines_of_the_model() -> None:
    first = TwoLines.forward.__code__.co_firstlineno + 1
    program = from_torch(TwoLines(), (torch.ones(3, 4),)).function.module
    found = [spans.of_location(op.location) for op in program.walk() if op.name == "te.compute"]
    assert {(p.source, p.line, p.column) for p in found if p} == {(__file__, first, 9), (__file__, first + 1, 9)}
    x = te.placeholder((4,), name="X")
    after = te.function("f", [x], te.nn.relu(x)).module
    assert {p.line > first + 2 for op in after.walk() if (p := spans.of_location(op.location))} == {True}
