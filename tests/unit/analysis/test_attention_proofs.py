"""Proofs of programs that reshape and transpose, as the heads of attention do: no budget ends in an error, and no step
that was legal is refuted."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import compiler
from compiler import te
from compiler.analysis.sets import MAX_OPERATIONS, context
from compiler.fuzz.scripts import Walker
from compiler.schedule import Schedule
from compiler.te import nn
from compiler.te.tensor import Tensor
from tests.sample import some

LENGTH, HEADS, DEPTH = 12, 3, 8


def attention() -> te.Function:
    """Attention of heads that lie side by side in the columns of its inputs."""
    q, k, v = (te.placeholder((LENGTH, HEADS * DEPTH), name=name) for name in "qkv")

    def heads(t: Tensor) -> Tensor:
        return nn.transpose(nn.reshape(t, (LENGTH, HEADS, DEPTH)), (1, 0, 2))

    together = nn.transpose(nn.attention(heads(q), heads(k), heads(v)), (1, 0, 2))
    return te.function("heads", [q, k, v], [nn.reshape(together, (LENGTH, HEADS * DEPTH))])


def factored(size: int, rng: random.Random) -> Iterator[int]:
    """Some factors of a size, in order."""
    while size > 1 and rng.random() < 0.7:
        factor = rng.choice([n for n in range(2, size + 1) if size % n == 0])
        yield factor
        size //= factor
    if size > 1:
        yield size


def rearranged(rng: random.Random) -> te.Function:
    """A random chain of reshapes, transpositions, sums along rows and products."""
    x = first = te.placeholder((LENGTH, HEADS * DEPTH), name="X")
    for _ in range(rng.randint(2, 6)):
        rank = len(x.shape)
        match rng.choice(["reshape", "transpose", "relu", "softmax", "product"]):
            case "reshape":
                total = 1
                for size in x.shape:
                    total *= size
                x = nn.reshape(x, tuple(factored(total, rng)) or (total,))
            case "transpose":
                x = nn.transpose(x, tuple(rng.sample(range(rank), rank)))
            case "relu":
                x = nn.relu(x)
            case "softmax":
                x = nn.softmax(x)
            case "product" if rank == 2:
                x = nn.matmul(x, nn.transpose(x, (1, 0)))
    return te.function("rearranged", [first], [x])


@pytest.mark.parametrize("seed", some(range(24)))
def test_legal_steps_on_reshapes_are_not_refuted(seed: int) -> None:
    rng = random.Random(seed)
    f = rearranged(rng)
    if not any(True for output in f.outputs if output.source):
        return
    walker = Walker(Schedule(compiler.lower(f), seed=seed), rng)
    for _ in range(8):
        walker.step()
    assert walker.s.verify().answer != "refuted", walker.s.script


@pytest.mark.parametrize("budget", [1, 50, 500, 2000, 8000, 30_000, 100_000])
def test_a_budget_that_ends_anywhere_leaves_it_undecided(budget: int) -> None:
    """isl says that it cannot parse a text where its budget ends while it does."""
    s = Schedule(compiler.lower(attention()))
    i, j = s.get_loops(s.get_block("attention.scores"))[-3:-1]
    s.split(i, [None, 5])
    s.split(j, [None, 5])
    context().set_max_operations(budget)
    try:
        verdict = s.verify()
    finally:
        context().set_max_operations(MAX_OPERATIONS)
    assert verdict.answer in ("proved", "undecided")
    assert verdict or budget < 100_000


def test_the_budget_is_one_for_each_question() -> None:
    """A longer program is proved within the budget that a short one needs."""
    context().set_max_operations(100_000)
    try:
        x = first = te.placeholder((LENGTH, HEADS * DEPTH), name="X")
        for _ in range(20):
            x = nn.relu(nn.reshape(nn.transpose(nn.reshape(x, (LENGTH, HEADS, DEPTH)), (1, 0, 2)), first.shape))
        s = Schedule(compiler.lower(te.function("long", [first], [x])))
        for label in s.program.blocks:
            s.split(s.get_loops(s.get_block(label))[-1], [None, 5])
        assert s.verify()
    finally:
        context().set_max_operations(MAX_OPERATIONS)
