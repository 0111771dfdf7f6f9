"""Graphs: a te function that is read and written is the same function."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from compiler import te
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import functions
from compiler.graph.read import read
from compiler.graph.write import write
from compiler.pipeline.source import parse
from compiler.support.errors import InputError


def again(module: ModuleOp) -> ModuleOp:
    written = ModuleOp([write(read(function)) for function in functions(module)])
    verify_module(written)
    return written


def network() -> te.Function:
    X, W = te.placeholder((8, 12), name="X"), te.placeholder((12, 16), name="W")
    I = te.placeholder((3,), "i64", name="I")
    hidden = te.nn.softmax(te.nn.gelu(te.nn.matmul(X, W)))
    padded = te.nn.pad(hidden, [(1, 2), (0, 3)])
    return te.function("net", [X, W, I], [te.nn.embedding(I, padded), te.nn.transpose(hidden), X])


def test_what_is_written_reads_as_the_same_graph() -> None:
    (function,) = functions(network().module)
    graph = read(function)
    written = write(graph)
    assert read(written) == graph
    assert str(written) == str(write(read(written)))
    assert [b.name for b in graph.inputs] == ["X", "W", "I"] and graph.results[-1] == "X"
    assert graph.producers[graph.results[0]].operands == tuple(graph.producers[graph.results[0]].block.sources)  # type: ignore[union-attr]


def test_users_of_a_value_are_known() -> None:
    graph = read(functions(network().module)[0])
    (product,) = [node for node in graph.nodes if node.results[0].name == "matmul"]
    assert graph.producers["matmul"] is product
    assert all("matmul" in node.operands for node in graph.consumers["matmul"])
    assert len({id(node) for node in graph.consumers["matmul"]}) == len(graph.consumers["matmul"])


def test_joint_combiners_and_several_results_stay() -> None:
    A = te.placeholder((4, 9), name="A")
    module = te.function("top", [A], [te.nn.argmax(A, -1), te.nn.max(A, -1)]).module
    graph = read(functions(module)[0])
    assert any(len(node.results) == 2 for node in graph.nodes)
    assert read(functions(again(module))[0]) == graph


def test_what_is_no_te_function_is_refused_in_words() -> None:
    module = parse("func.func @f(%A: memref<4xf32>) {\n func.return\n}")
    with pytest.raises(InputError, match="@f: 'A' is of type memref<4xf32>, expected a tensor"):
        read(functions(module)[0])
