"""A te program of one group is tuned in its canonical form: one task for all its spellings, in the user's names."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler import te
from compiler.autotune.task import SearchTask
from compiler.bench.workloads import find
from compiler.database import Database, Record
from compiler.database.outcome import Outcome
from compiler.dialects.functions import find_function
from compiler.driver.main import assemble
from compiler.driver.parts.groups import OWN, grouped_program
from compiler.graph.read import read
from compiler.graph.write import write
from compiler.lowering.low_to_llvm import emit
from compiler.pipeline.loops import lower
from compiler.pipeline.passes import run
from compiler.pipeline.to_llvm import passes_from
from compiler.program.write import write as write_loops
from compiler.support.errors import InputError
from compiler.types.machines import host
from compiler.universe import context
from tests.graph_variants import variant, with_inputs
from tests.sample import some

P, nn = te.placeholder, te.nn
Make = Callable[[], te.Function]


def task(program: object, **stated: object) -> SearchTask:
    return SearchTask(program, threads=1, **stated)  # type: ignore[arg-type]


# --- one key for all spellings --------------------------------------------------------------------------------------


def layer() -> te.Function:
    x, w, b = P((6, 8), name="X"), P((8, 5), name="W"), P((5,), name="b")
    return te.function("layer", [x, w, b], nn.relu(nn.add(nn.matmul(x, w), b)))


def other_names() -> te.Function:
    first, second, third = P((5,), name="one"), P((8, 5), name="two"), P((6, 8), name="three")
    k = te.reduce_axis(8, "depth")
    product = te.compute((6, 5), lambda row, column: te.sum(second[k, column] * third[row, k], axis=k), name="P")
    shifted = te.compute((6, 5), lambda row, column: first[column] + product[row, column], name="S")
    return te.function("net", [first, second, third], te.compute((6, 5), lambda i, j: te.maximum(0.0, shifted[i, j])))


def in_steps(reverse: bool = False) -> te.Function:
    """A sum over two axes, in one order or the other: it is open."""
    x, w, b = P((6, 2, 4), name="X"), P((8, 5), name="W"), P((5,), name="b")
    outer, inner = te.reduce_axis(2, "o"), te.reduce_axis(4, "i")
    axes = (inner, outer) if reverse else (outer, inner)
    product = te.compute((6, 5), lambda m, n: te.sum(x[m, outer, inner] * w[outer * 4 + inner, n], axis=axes))
    return te.function("f", [x, w, b], nn.relu(nn.add(product, b)))


def reshaped() -> te.Function:
    x, w, b = P((6, 8), name="X"), P((8, 5), name="W"), P((5,), name="b")
    there = nn.reshape(nn.matmul(x, w), (2, 3, 5))
    return te.function("layer", [x, w, b], nn.relu(nn.add(nn.reshape(there, (6, 5)), b)))


def transposed_twice() -> te.Function:
    x, w, b = P((6, 8), name="X"), P((8, 5), name="W"), P((5,), name="b")
    product = nn.transpose(nn.transpose(nn.matmul(x, w), (1, 0)), (1, 0))
    return te.function("layer", [x, w, b], nn.relu(nn.add(product, b)))


def with_extents_of_one() -> te.Function:
    x, w, b = P((6, 8), name="X"), P((8, 5), name="W"), P((5,), name="b")
    product = nn.matmul(x, w)
    unit = te.compute((6, 1, 5), lambda i, u, j: product[i, j] + b[j], name="unit")
    return te.function("layer", [x, w, b], te.compute((6, 5), lambda i, j: te.maximum(unit[i, 0, j], 0.0)))


def with_unused_input() -> te.Function:
    x, w, b, left = P((6, 8), name="X"), P((8, 5), name="W"), P((5,), name="b"), P((3,), name="left")
    return te.function("layer", [left, b, w, x], nn.relu(nn.add(nn.matmul(x, w), b)))


def attention(order: Sequence[int] = (0, 1, 2)) -> te.Function:
    inputs = [P((2, 8, 4), name=name) for name in "QKV"]
    return te.function("attention", [inputs[n] for n in order], nn.attention(*inputs))


def softmax() -> te.Function:
    x = P((6, 9), name="X")
    return te.function("softmax", [x], nn.softmax(x, name="S"))


def softmax_by_hand(again: bool = False) -> te.Function:
    """Of rows that keep no dimension; or with each exponential computed twice."""
    x, k, r = P((6, 9), name="A"), te.reduce_axis(9), te.reduce_axis(9)
    top = te.compute((6,), lambda i: te.max(x[i, k], axis=k), name="M")
    powers = te.compute((6, 9), lambda i, j: te.exp(x[i, j] - top[i]), name="E")
    second = te.compute((6, 9), lambda i, j: te.exp(x[i, j] - top[i]), name="F") if again else powers
    total = te.compute((6,), lambda i: te.sum(second[i, r], axis=r), name="T")
    return te.function("rows", [x], te.compute((6, 9), lambda i, j: powers[i, j] * (1.0 / total[i]), name="R"))


def convolution(swapped: bool = False) -> te.Function:
    x, w, b = P((1, 3, 6, 6), name="X"), P((4, 3, 3, 3), name="W"), P((4,), name="b")
    inputs = [b, w, x] if swapped else [x, w, b]
    return te.function("conv", inputs, nn.relu(nn.conv2d(x, w, b, padding=1)))


SPELLINGS: list[tuple[Make, Make]] = [
    (layer, other_names),
    (layer, reshaped),
    (layer, transposed_twice),
    (layer, with_extents_of_one),
    (layer, with_unused_input),
    (in_steps, lambda: in_steps(reverse=True)),
    *((attention, lambda order=order: attention(order)) for order in ((2, 1, 0), (1, 2, 0), (0, 2, 1))),  # type: ignore[misc]
    (softmax, softmax_by_hand),
    (softmax, lambda: softmax_by_hand(again=True)),
    (convolution, lambda: convolution(swapped=True)),
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_other_spellings_are_one_task(one: Make, other: Make) -> None:
    first, second = task(one()), task(other())
    assert first.key == second.key and first.program == second.program
    assert len(first.groups) == len(second.groups) == 0


@pytest.mark.parametrize("make", [layer, attention, softmax, convolution])
def test_words_and_orders_are_no_part_of_a_key(make: Make) -> None:
    graph, rng = read(find_function(make().module)), random.Random(1)
    for _ in range(3):
        order = rng.sample(range(len(graph.inputs)), len(graph.inputs))
        second = ModuleOp([write(variant(with_inputs(graph, order), rng))])
        assert task(second).key == task(make()).key


def test_another_program_is_another_task() -> None:
    x, w, b = P((6, 8), name="X"), P((8, 5), name="W"), P((5,), name="b")
    function = te.function("layer", [x, w, b], nn.relu(nn.sub(nn.matmul(x, w), b)))
    keys = {task(make()).key for make in (layer, attention, softmax, convolution)} | {task(function).key}
    assert len(keys) == 5
    assert task(layer()).key != task(layer(), constants=["W"]).key == task(with_unused_input(), constants=["W"]).key


KNOWN = ["conv_grad_weight", "softmax", "batched", "swish", "conv_7x7", "layernorm", "attention", "mlp", "mm_exp_mm"]


@pytest.mark.parametrize("name", some(KNOWN, 5))
def test_rules_know_canonical_programs(name: str) -> None:
    """They find in a canonical program what they find in the program as it is written, in the same order."""
    function = find(name, Fraction(1, 4)).function()
    kinds = [
        [re.sub(r"[\w.]+: ", "", re.sub("'.*?'", "''", sketch.name)) for sketch in task(program).space.sketches]
        for program in (function, lower(function))
    ]
    assert kinds[0] == kinds[1]


# --- kernels --------------------------------------------------------------------------------------------------------


def recorded(what: SearchTask, script: str, seconds: float = 1e-6) -> Record:
    return Record(what.key, what.name, what.program, script, Outcome("measured", (seconds,), (1.0,)))


def preferred(what: SearchTask) -> str:
    return what.space.script(what.space.defaults[0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tuned.db"


def keep(path: Path, *records: Record) -> None:
    with Database(path) as database:
        for record in records:
            database.add(record)


def drawn(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def test_a_kernel_of_a_shared_record_has_the_callers_arguments(path: Path) -> None:
    """The record is made of one spelling; each has its own order and names, an input that nothing reads too."""
    keep(path, recorded(task(layer()), preferred(task(layer()))))
    x, w, b, left = drawn((6, 8), (8, 5), (5,), (3,))
    right = np.maximum(x @ w + b, 0)
    first, second, third = (task(make()).apply_best(path) for make in (layer, other_names, with_unused_input))
    assert [a.name for a in first.arguments[:3]] == ["X", "W", "b"]
    assert [a.name for a in second.arguments[:3]] == ["one", "two", "three"]
    assert [a.name for a in third.arguments[:4]] == ["left", "b", "W", "X"]
    for actual in (first(x, w, b), second(b, w, x), third(left, b, w, x), third(X=x, W=w, b=b, left=left)):
        np.testing.assert_allclose(actual, right, rtol=1e-5, atol=1e-6)
    assert '"matmul"' in first.text("loop") and "product0" not in first.text("loop")
    written = compiler.build(with_unused_input())
    assert [a.name for a in written.arguments] == [a.name for a in third.arguments]


def test_results_keep_their_order_and_their_names(path: Path) -> None:
    """Also what is returned twice, and an input that is."""
    x = P((4, 6), name="X")
    y, z = nn.exp(x, name="Y"), nn.tanh(x, name="Z")
    s = te.compute((4, 6), lambda i, j: y[i, j] + z[i, j], name="S")
    for outputs in some([[z, s, z], [s, y, z], [z, s, y], [y, x, s]]):
        function = te.function("both", [x], outputs)
        what = task(function)
        assert not what.groups
        keep(path, recorded(what, what.space.script(what.space.defaults[1])))
        kernel, written, (a,) = what.apply_best(path), compiler.build(function), drawn((4, 6))
        assert [b.name for b in kernel.arguments] == [b.name for b in written.arguments]
        for left, right in zip(kernel(a), written(a), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-6)


def test_constants_are_those_of_the_callers_names(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    what = task(with_unused_input(), constants=["W", "left"])
    keep(path, recorded(what, preferred(what)))
    x, w, b, left = drawn((6, 8), (8, 5), (5,), (3,))
    kernel = what.apply_best(path, {"W": w, "left": left})
    np.testing.assert_allclose(kernel(b, x), np.maximum(x @ w + b, 0), rtol=1e-5, atol=1e-6)
    what.print_best(path, "llvm")
    assert "layer" in capsys.readouterr().out
    with pytest.raises(InputError, match="has no input 'V'"):
        task(layer(), constants=["V"])


@pytest.mark.parametrize("name", some(["matmul_512", "conv_7x7", "attention", "softmax", "layernorm", "swish"]))
def test_names_change_no_code(name: str) -> None:
    """Of every sketch: attributes of loops name buffers and loops too, those that are prefetched or past the caches."""

    def llvm(module: ModuleOp) -> str:
        module = module.clone()
        run(context(), module, passes_from("loop", "contract"))
        return emit(module, host())

    what = task(find(name).function())
    assert what._single is not None
    for candidate in what.space.defaults[:2]:
        schedule = what.schedule_of(what.space.script(candidate))
        texts = llvm(schedule.module), llvm(ModuleOp([write_loops(what._single.with_user_names(schedule.program))]))
        assert len(set(map(shape, texts))) == 1


def shape(llvm: str) -> tuple[tuple[str, ...], ...]:
    """The opcodes of LLVM IR, line by line, without names."""
    lines = [line.split("=")[-1].split() for line in llvm.splitlines()]
    return tuple(tuple(words[:2]) for words in lines if words and not words[0].startswith(("%", '"', "!")))


def test_the_hashes_of_groups_are_known_before_they_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, v = P((6, 8), name="X"), P((8, 8), name="W"), P((8, 8), name="V")
    function = te.function("net", [x, w, v], nn.relu(nn.matmul(nn.softmax(nn.relu(nn.matmul(x, w))), v)))
    program = grouped_program(function, ())
    assert program is not None and len(program.groups) > 1
    expected = {group.name: te.canonical_hash(group.module) for group in program.groups}
    monkeypatch.setattr(assemble, "canonical_hash", None)
    assert {group.name: group.hash for group in compiler.build(function).groups} == expected


# --- in the user's names --------------------------------------------------------------------------------------------


def test_what_is_shown_has_the_users_names(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, w = P((16, 32), name="X"), P((32, 24), name="W")
    what = task(te.function("f", [x, w], nn.relu(nn.matmul(x, w, name="mm"), name="act")))
    record = recorded(what, preferred(what))
    keep(path, record)
    assert what.compute_dag.splitlines() == [
        "X: input 16x32 f32",
        "W: input 32x24 f32",
        "act: output 16x24 f32",
        "mm: temporary 16x24 f32",
        "mm[m, n] += f(X, W) for m = 16, n = 24, reduce k = 32",
        "act[i0, i1] = f(mm) for i0 = 16, i1 = 24",
    ]
    assert all("product0" not in sketch.name for sketch in what.space.sketches)
    assert what.space.sketches[0].name.startswith("mm: ")
    assert '"product0"' in record.script and "mm" not in record.script
    for mode in ("script", "python"):
        what.print_best(path, mode)
        out = capsys.readouterr().out
        assert out.count("mm") > 4 and "product0" not in out
    assert what.with_user_names("product0[3, 4] is 1.0, 2.0 expected") == "mm[3, 4] is 1.0, 2.0 expected"
    assert what.script(recorded(what, "no script")) == "no script"


# --- what is not rewritten ------------------------------------------------------------------------------------------


def test_what_a_person_writes_stays_as_it_stands() -> None:
    module = lower(layer())
    text = str(module)
    assert str(task(module).module) == text and task(module).provenance == OWN
    template = """
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %t = sched.get_block %f "matmul"
      transform.yield
    }
    """
    own = task(layer(), template=template)
    assert str(own.module) == text and own.provenance == OWN and own.key == task(module).key
    assert "matmul" in own.schedule.program.blocks


def test_a_program_that_computes_nothing_stays() -> None:
    x = P((4,), name="X")
    assert task(te.function("same", [x], [x])).provenance == OWN
