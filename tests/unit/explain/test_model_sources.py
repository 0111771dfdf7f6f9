"""Origins of models: the modules and lines of torch, the nodes and operators of ONNX."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("onnx")

import onnx
import torch

import strata
from compiler.driver.parts.groups import grouped_program
from compiler.explain.sources import SourceTable, source_table
from compiler.frontends.model import Imported
from compiler.frontends.torch.conversion import path_of
from compiler.support.origins import SourceOrigin, origins
from examples.network import PATH
from tests.said import Strata

pytestmark = pytest.mark.doors
FILE = __file__


class Attention(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.q_proj, self.k_proj = torch.nn.Linear(width, width), torch.nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.q_proj(x) @ self.k_proj(x).transpose(-1, -2), -1) @ x


class Scan(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum((x.t() @ x.exp()).repeat(4, 4), 0).cumsum(1)


class Net(torch.nn.Module):
    def __init__(self, width: int = 32, slow: bool = False) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(Attention(width) for _ in range(2))
        self.odd = Scan() if slow else torch.nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x)
        return self.odd(x)


def line_of(part: object, text: str) -> int:
    lines, first = inspect.getsourcelines(part)  # type: ignore[arg-type]
    return first + next(n for n, line in enumerate(lines) if text in line)


def imported(slow: bool = False) -> Imported:
    return strata.from_torch(Net(slow=slow).eval(), torch.ones(24, 32))


def table_of(slow: bool = False) -> SourceTable:
    return source_table(imported(slow), threads=1, runs=3)


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        ("L['self'].layers.0.attn.q_proj", "layers.0.attn.q_proj"),
        ("L['s'].layers[0].attn", "layers.0.attn"),
        ("L['self']._modules['layers']._modules['0'].proj", "layers.0.proj"),
        ("L['self']", ""),
        ("encoder.layers.0", "encoder.layers.0"),
        ("", ""),
    ],
)
def test_paths_of_modules(expression: str, path: str) -> None:
    assert path_of(expression) == path


def test_computes_of_torch_have_the_module_and_the_line() -> None:
    model = imported()
    found = {o for op in model.function.module.walk() if op.name == "te.compute" for o in origins(op.location)}
    line = line_of(Attention, "return torch.softmax")
    for layer in (0, 1):
        assert SourceOrigin(f"layers.{layer}.q_proj", "", FILE, line) in found
        assert SourceOrigin(f"layers.{layer}", "", FILE, line) in found
    assert SourceOrigin("", "", FILE, line_of(Net, "x = x + layer(x)")) in found


def test_calls_of_one_group_have_the_modules_of_each() -> None:
    model = imported()
    program = grouped_program(model.function, list(model.constants))
    assert program is not None
    calls = program.constant_split.main.calls
    names = [origins(call.location)[0].name for call in calls]
    assert {"layers.0.q_proj", "layers.1.q_proj"} <= set(names) and len({c.callee for c in calls}) < len(calls)


def test_a_planted_slow_module_is_named_first() -> None:
    table = table_of(slow=True)
    assert table.rows[0].origin.name == "odd" and table.rows[0].origin.line == line_of(Scan, "return torch.cumsum")
    assert table.of_line(f"{Path(FILE).name}:{table.rows[0].origin.line}")[0] is table.rows[0]
    assert {row.origin.name for row in table.of_name("layers.1")} >= {"layers.1.k_proj"}


def test_nodes_of_onnx_have_names_and_operators() -> None:
    graph = onnx.parser.parse_graph(
        "net (float[8, 8] x, float[8] s) => (float[8, 8] y)"
        "{ a = MatMul(x, x) b = LayerNormalization(a, s) y = Relu(b) }"
    )
    graph.node[0].name = "/encoder/MatMul"
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    function = strata.from_onnx(model).function
    found = {o for op in function.module.walk() if op.name == "te.compute" for o in origins(op.location)}
    assert found == {
        SourceOrigin("/encoder/MatMul", "MatMul"),
        SourceOrigin("b", "LayerNormalization"),
        SourceOrigin("y", "Relu"),
    }


def test_the_command_on_a_model(strata: Strata) -> None:
    arguments = ("explain", str(PATH), "--shape", "N=1", "--static")
    rows = json.loads(strata(*arguments, "--source", "--json"))
    operators = {row["source"]["operator"] for row in rows}
    assert {"Conv", "Gemm", "Softmax"} <= operators
    narrowed = strata(*arguments, "--module", "conv_6")
    assert "conv_6 (Conv)" in narrowed and "batchnormalization_7" in narrowed and "gemm" not in narrowed
    for wrong, sentence in {
        ("--module", "conv_66"): "there is no module or node 'conv_66'; did you mean 'conv_6'",
        ("--line", "network.py:3"): "there is no line 'network.py:3' (no part of the program has lines)",
    }.items():
        assert sentence in strata(*arguments, *wrong, status=1)
