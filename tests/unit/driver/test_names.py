"""Any text is a name: of functions, computes, axes, inputs and results; by te, ONNX, torch and text."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compiler
from compiler import te
from compiler.database import Database, Key, Record, program_of
from compiler.database.outcome import MEASURED, Outcome
from compiler.database.record import hash_of
from compiler.interpret.te import evaluate
from compiler.pipeline.loops import lower
from compiler.pipeline.source import parse
from compiler.program.names import spelled, spellings
from compiler.report.page import page
from compiler.report.programs import gather
from compiler.schedule import Schedule
from compiler.schedule.python import as_python
from tests.host_cuda import OnHost, needs_gxx

NUMBERS = ("0", "7", "_7", "_1_2", "7a", "1.5", "-1", "__1")
CHARACTERS = ("", " ", "a b", "a\nb", "\0", "\x1b[2J", 'a"b', "a'b", "%x", "%d%s", "@f", "$x", "a;b", "{", "<b>&amp;")
WORDS_OF_C = ("float", "int", "main", "exp", "tanhf", "memcpy", "malloc", "printf", "errno", "NULL", "class", "asm")
WORDS_OF_OTHERS = ("llvm.memcpy", "__syncthreads", "threadIdx", "pool", "half", "true", "inf", "nan", "else", "where")
RESERVED = ("mod", "floordiv", "reduce", "strata", "omp_get_thread_num", "__strata", "workspace", "value")
PLACES = ("a/b", "../../x", "/dev/null", "C:\\x", ".", "..", "a.b", "a_b", "x" * 3000, "\u00e9", "\u540d", "x\u202ey")
NASTY = (*NUMBERS, *CHARACTERS, *WORDS_OF_C, *WORDS_OF_OTHERS, *RESERVED, *PLACES)
ONE = np.array([1, 2, 4], np.float32)
INPUTS = [ONE, 8 * ONE]
EXPECTED = [np.maximum(9 * ONE, 0), 18 * ONE]


def program(name: str, other: str = "b") -> te.Function:
    """A program in which a name is that of all that has one."""
    a, b = te.placeholder((3,), name=name), te.placeholder((3,), name=other)
    added = te.compute((3,), lambda i: a[i] + b[i], name, axes=(name,))
    k = te.reduce_axis(1, name)
    summed = te.compute((3,), lambda i: te.sum(te.cast(k, "f32") + added[i] * 2, axis=k), name)
    return te.function(name, [a, b], [te.nn.relu(added, name=name), summed])


def check(found: Any) -> None:
    for actual, wanted in zip(found, EXPECTED, strict=True):
        np.testing.assert_array_equal(actual, wanted)


def stable(text: str) -> str:
    """The text, which is the same once it is read and printed again."""
    assert str(parse(text)) == text
    return text


@pytest.mark.sampled
@pytest.mark.parametrize("name", NASTY, ids=lambda name: ascii(name[:12]))
def test_a_program_of_one_name(name: str) -> None:
    function = program(name)
    check(evaluate(parse(stable(str(function))), INPUTS))
    kernel = compiler.build(lower(function))
    check(kernel(*INPUTS))
    loops = compiler.build(stable(str(lower(function))))
    assert [a.name for a in loops.arguments] == [a.name for a in kernel.arguments]
    check(compiler.build(kernel.text("low"))(*INPUTS))


def test_programs_built_by_groups_take_any_name(tmp_path: Path) -> None:
    for name in NASTY[::4]:
        check(compiler.build(program(name))(*INPUTS))


def test_names_that_are_spelled_alike_stay_apart() -> None:
    """Each input keeps its own place, and a text that is a name is that input's name."""
    names = ["a b", "a_b", "a/b", "7", "_7", "n7", "", "value"]
    inputs = [te.placeholder((3,), name=name) for name in names]
    terms = [te.compute((3,), lambda i, x=x: x[i] * 2, "a b") for x in inputs]
    arguments = compiler.build(te.function("f", inputs, terms)).arguments
    actual = [argument.name for argument in arguments]
    assert len(set(actual)) == len(actual)
    assert [actual[names.index(own)] for own in ("a_b", "n7", "value")] == ["a_b", "n7", "value"]


def test_names_that_are_names_stay() -> None:
    for name in ("x", "_", "__", "x_7", "__1", "a.b$c", "X", "float", "_x", "x" * 3000):
        assert spelled(name) == name


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(max_size=12), max_size=6))
def test_any_text_is_spelled(names: list[str]) -> None:
    chosen = spellings(names)
    assert len(set(chosen)) == len(set(names))
    for name, spelling in zip(names, chosen, strict=True):
        assert re.fullmatch(r"[A-Za-z_][\w.$]*", spelling, re.ASCII) and spelled(spelling) == spelling
        assert spelling == name or spelled(name) != name


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_names_a_program(name: str, other: str) -> None:
    if name != other:
        text = stable(str(program(name, other)))
        check(evaluate(parse(text), INPUTS))
        stable(str(lower(text)))


TEXT = """func.func @{name}(%_7: tensor<3xf32>) -> tensor<3xf32> {{
  %_1_2 = te.compute {name} [i = 3] (%x = %_7[i] : tensor<3xf32>) -> tensor<3xf32> {{
    te.yield %x : f32
  }}
  func.return %_1_2 : tensor<3xf32>
}}
"""


def quoted(name: str) -> str:
    """A name as MLIR quotes it, its bytes as escapes."""
    return '"' + "".join(f"\\{byte:02X}" for byte in name.encode()) + '"'


@pytest.mark.sampled
@pytest.mark.parametrize("name", NASTY[::2], ids=lambda name: ascii(name[:12]))
def test_quoted_names_in_text(name: str) -> None:
    text = stable(str(parse(TEXT.format(name=quoted(name)))))
    loops = compiler.build(stable(str(lower(text))))
    np.testing.assert_array_equal(loops(ONE), ONE)
    np.testing.assert_array_equal(compiler.build(loops.text("low"))(ONE), ONE)


@pytest.mark.parametrize("name", ["class", "None", "_", "s", "a b", "7", "lambda", "\u00e9", "__1"])
def test_scripts_in_python(name: str) -> None:
    a = te.placeholder((8,), name="A")
    schedule = Schedule(lower(te.function("f", [a], te.compute((8,), lambda i: a[i] * 2, name, axes=(name,)))))
    (loop,) = schedule.get_loops(schedule.get_block(spelled(name)))
    schedule.unroll(schedule.split(loop, [None, 2])[-1])
    scope: dict[str, Any] = {}
    exec(as_python(schedule.script), scope)
    again = Schedule(lower(te.function("f", [a], te.compute((8,), lambda i: a[i] * 2, name, axes=(name,)))))
    scope["schedule"](again)
    assert str(again.module) == str(schedule.module) and stable(str(again.script)) == str(schedule.script)


@needs_gxx
def test_kernels_of_cuda_take_any_name(tmp_path: Path) -> None:
    names = [*NASTY[1::3], "asm", "float4", "uint4", "errno", "__shared__", "min", "NULL", "typename"]
    run = OnHost([compiler.build(program(name), "cuda") for name in names], tmp_path)
    for number in range(len(names)):
        check(run(number, INPUTS))


@cache
def onnx_model(name: str) -> Any:
    """A model whose graph, input, output, initialiser and nodes have one name, each with another end."""
    from onnx import TensorProto, helper

    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Add", [name, f"{name} w"], [f"{name} m"], name=name),
        helper.make_node("Relu", [f"{name} m"], [f"{name}_1"], name=name),
    ]
    weights = helper.make_tensor(f"{name} w", TensorProto.FLOAT, [3], 8 * ONE)
    given, result = info(name, TensorProto.FLOAT, [3]), info(f"{name}_1", TensorProto.FLOAT, [3])
    graph = helper.make_graph(nodes, name or "g", [given], [result], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.doors
@pytest.mark.parametrize("name", [n for n in NASTY[::2] if n], ids=lambda name: ascii(name[:12]))
def test_models_of_onnx(name: str) -> None:
    imported = compiler.from_onnx(onnx_model(name))
    stable(str(imported.function))
    np.testing.assert_array_equal(compiler.build(imported, schedule="written")(ONE), 9 * ONE)


@pytest.mark.doors
@pytest.mark.parametrize("name", ["7", "_7", "a b", "\u00e9", "int", "mod", "a/b", "x-y"])
def test_parameters_of_torch(name: str) -> None:
    import torch

    import compiler.torch_backend  # noqa: F401  # the backend's name

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_parameter(name, torch.nn.Parameter(torch.tensor(8 * ONE)))
            self.add_module(f"{name} m", torch.nn.ReLU())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.get_submodule(f"{name} m")(x + self.get_parameter(name))

    torch._dynamo.reset()
    with torch.no_grad():
        found = torch.compile(Module(), backend="strata")(torch.tensor(ONE))
    np.testing.assert_array_equal(found.numpy(), 9 * ONE)


def test_records_and_pages_take_any_name(tmp_path: Path) -> None:
    records = []
    for name in NASTY:
        text = program_of(lower(program(name)))
        key = Key(hash_of(text), "machine", 1, "contract")
        records.append(Record(key, program(name).name, text, "// script", Outcome(MEASURED, (1.0,), (1.0,))))
    with Database(tmp_path / "records.sqlite") as database:
        for record in records:
            database.add(record)
        kept = database.records()
        text = "\n".join(page(gather(database, database.keys()), 0))
    assert {(record.name, record.program) for record in kept} == {(record.name, record.program) for record in records}
    assert "<b>&amp;</" not in text and "\0" not in text and "\x1b" not in text and "\u202e" not in text
