"""Programs that also return what they compute on the way: right, and still by rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import compiler
from benchmarks.additional_outputs import PROGRAMS, with_outputs
from compiler import recipes, te
from compiler.autotune import SearchTask
from compiler.program.tree import Loop
from compiler.schedule import Schedule
from tests.sample import pairs, some

ROWS, LENGTH = 24, 144  # more than eight vectors, the widest too: shorter rows may stay as they are written
NAMES = ["add_softmax", "softmax", "layer_norm", "add_and_norm"]


def arrays(f: te.Function) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, t.shape).astype(np.float32) for t in f.inputs]


def check(f: te.Function, make: Callable[[SearchTask], Schedule], threads: int = 1) -> Schedule:
    task = SearchTask(func=f, threads=threads)
    s = make(task)
    check_schedule(f, s, threads)
    return s


def check_schedule(f: te.Function, s: Schedule, threads: int = 1) -> None:
    assert s.verify()
    expected, got = compiler.build(f)(*arrays(f)), compiler.build(s, threads=threads)(*arrays(f))
    for want, actual in zip(expected, got, strict=True):
        np.testing.assert_allclose(actual, want, rtol=1e-4, atol=1e-5)


def nests(s: Schedule) -> int:
    return len([node for node in s.program.body if isinstance(node, Loop)])


def preferred(task: SearchTask) -> Schedule:
    return task.schedule_of(task.space.script(task.space.defaults[0]))


@pytest.mark.parametrize(("name", "threads"), pairs(NAMES, [1, 2]))
def test_rows_share_a_loop_with_every_additional_output(name: str, threads: int) -> None:
    programs = with_outputs(PROGRAMS[name](ROWS, LENGTH))
    for outputs in some([outputs for outputs in reversed(programs) if outputs], 6):
        assert nests(check(programs[outputs], preferred, threads)) == 1, outputs


@pytest.mark.parametrize(("outputs", "threads"), [("attention.scores", 1), ("all", 2)])
def test_attention_stays_one_nest_with_additional_outputs(outputs: str, threads: int) -> None:
    assert nests(check(with_outputs(PROGRAMS["attention"](ROWS, 16))[outputs], preferred, threads)) == 1


def attention(q: tuple[int, ...], k: tuple[int, ...], mask: str = "", causal: bool = False) -> te.Function:
    """Attention of queries and as many values as keys; the mask is of a dtype."""
    inputs = [te.placeholder(shape, name=name) for shape, name in ((q, "q"), (k, "k"), (k, "v"))]
    if mask:
        inputs.append(te.placeholder((q[-2], k[-2]), mask, name="mask"))
    return te.function("attention", inputs, [te.nn.attention(*inputs[:3], *inputs[3:], causal=causal)])


SHAPES = {
    "rows and keys that no tile divides": attention((2, 13, 6), (2, 11, 6)),
    "one head": attention((1, 13, 6), (1, 13, 6)),
    "one query of several heads": attention((3, 1, 6), (3, 11, 6)),
    "heads that share keys, and a mask": attention((1, 4, 7, 5), (1, 2, 9, 5), mask="f32"),
    "causal, of a batch": attention((2, 2, 9, 5), (2, 2, 9, 5), causal=True),
    "narrow tiles only": attention((1, 2, 2), (1, 3, 2)),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("shape", "group"), pairs(list(SHAPES), [1, 2]))
def test_attention_of_any_shape_with_additional_outputs(shape: str, group: int) -> None:
    f = with_outputs(SHAPES[shape])["all"]
    s = Schedule(compiler.lower(f))
    recipes.attention(s, s.get_block("attention"), recipes.AttentionTiles(3, 8, 4, group))
    assert nests(s) == 1
    check_schedule(f, s)


def test_attention_without_heads() -> None:
    """A canonical program of one head has no axis for it."""
    q, k, v = (te.placeholder((13, 6), name=name) for name in "qkv")
    scores = te.nn.matmul(q, te.nn.transpose(k, (1, 0)), name="scores")
    weights = te.nn.softmax(scores, name="weights")
    f = te.function("attention", [q, k, v], [weights, te.nn.matmul(weights, v, name="O")])
    s = Schedule(compiler.lower(f))
    s.inline(s.get_block(next(label for label in s.program.blocks if "transpose" in label)))
    done = recipes.attention(s, s.get_block("O"), recipes.AttentionTiles(3, 8, 4))
    assert done.heads == []
    check_schedule(f, s)


def test_a_sum_of_columns_shares_the_loop_over_these() -> None:
    x = te.placeholder((ROWS, LENGTH), name="X")
    k = te.reduce_axis(ROWS, "k")
    total = te.compute((1, LENGTH), lambda i, j: te.sum(x[k, j], axis=k), name="total")
    y = te.compute((ROWS, LENGTH), lambda i, j: x[i, j] - total[0, j], name="Y")
    f = te.function("centred", [x], [total, y])
    s = Schedule(compiler.lower(f))
    row = s.label(recipes.by_rows(s, s.get_block("Y")))
    assert all(row in {loop.label for loop in s.program.enclosing(label)} for label in s.program.blocks)
    check_schedule(f, s)
    check(f, preferred)
