"""Modules of several functions: one is meant, the others are private groups or stand beside it."""

from __future__ import annotations

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.database.program import key_of
from compiler.dialects.calls import alone
from compiler.dialects.functions import find_function, functions
from compiler.pipeline.source import parse
from compiler.schedule import Schedule, replay
from compiler.support.errors import InputError
from tests.schedules import lowered

X = np.arange(48, dtype=np.float32).reshape(6, 8) / 48


def scaled(name: str, factor: float) -> te.Function:
    """A function whose buffers, blocks and loops have the names of every other one's."""
    a = te.placeholder((6, 8), name="A")
    t = te.compute((6, 8), lambda i, j: te.exp(a[i, j]), name="T")
    d = te.compute((6, 8), lambda i, j: t[i, j] * factor, name="D")
    return te.function(name, [a], [d])


def module_of(*names: str) -> str:
    """A module with a private function for each name but the last."""
    texts = [str(find_function(lowered(scaled(name, n + 2.0)))) for n, name in enumerate(names)]
    private = [text.replace("func.func @", "func.func private @") for text in texts[:-1]]
    return "\n".join([*private, texts[-1]])


def test_the_public_function_is_meant() -> None:
    text = module_of("group_0", "group_1", "main")
    assert find_function(parse(text)).sym_name.data == "main"
    np.testing.assert_allclose(compiler.build(text)(X), 4 * np.exp(X), rtol=1e-5)
    np.testing.assert_allclose(compiler.build(text, name="group_1")(X), 3 * np.exp(X), rtol=1e-5)
    with pytest.raises(InputError, match="several functions"):
        find_function(parse(text.replace("private ", "")))


def test_a_build_compiles_what_is_meant() -> None:
    kernel = compiler.build(module_of("group_0", "group_1", "main"), name="group_0")
    assert "group_1" not in kernel.text("llvm") and "main" not in kernel.text("llvm")


def test_a_group_has_the_key_that_it_has_alone() -> None:
    module = parse(module_of("group_0", "group_1", "main"))
    for n, name in enumerate(("group_0", "group_1", "main")):
        own = key_of(scaled("whatever", n + 2.0), "a machine", 1, "strict")
        assert key_of(module, "a machine", 1, "strict", name) == own
    assert key_of(module, "a machine", 1, "strict") == own


def test_names_are_of_a_group() -> None:
    """Blocks, loops and buffers of two groups share their names; a schedule of one leaves the other as it is."""
    module = parse(module_of("group_0", "main"))
    s = Schedule(module, "group_0")
    i, j = s.get_loops(s.get_block("D"))
    s.compute_at(s.get_block("T"), i)
    s.parallel(i)
    s.vectorize(j)
    assert str(find_function(s.module, "main")) == str(find_function(module, "main"))
    assert str(replay(s.script, s, "group_0").module) == str(s.module)
    both = Schedule(s.module, "main")
    both.inline(both.get_block("T"))
    for name, factor in (("group_0", 2.0), ("main", 3.0)):
        np.testing.assert_allclose(compiler.build(both, name=name, threads=2)(X), factor * np.exp(X), rtol=1e-5)


def test_what_a_function_calls_comes_along() -> None:
    text = """
    func.func private @leaf() { func.return }
    func.func private @group() { func.call @leaf() : () -> ()  func.return }
    func.func private @idle() { func.return }
    func.func @main() { func.call @group() : () -> ()  func.call @group() : () -> ()  func.return }
    """
    assert [f.sym_name.data for f in functions(alone(parse(text)))] == ["leaf", "group", "main"]
    assert [f.sym_name.data for f in functions(alone(parse(text), "group"))] == ["leaf", "group"]
