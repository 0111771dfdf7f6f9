"""Attention by rows of queries: right in the interpreter, compiled, replayed, proved, refused in words."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import compiler
from compiler import recipes, te
from compiler.recipes import AttentionTiles
from compiler.recipes.attention import _price
from compiler.schedule import Schedule
from compiler.support.errors import ScheduleError
from tests.scheduled import check

ATOL = 1e-5
"""What a sum of weights and small integers of both signs may be off by."""


def attention(heads: int, length: int, depth: int) -> te.Function:
    """softmax(Q K^T / sqrt depth) V of [heads, length, depth]."""
    q, k, v = (te.placeholder((heads, length, depth), name=name) for name in "QKV")
    return te.function("attention", [q, k, v], [te.nn.attention(q, k, v, name="O")])


def schedule(s: Schedule, tiles: AttentionTiles | None = None) -> recipes.Attention:
    """The composite on the last block."""
    return recipes.attention(s, s.get_block("O"), tiles)


@pytest.mark.parametrize("shape", [(2, 7, 5), (1, 13, 18), (2, 8, 8), (1, 3, 2), (1, 2, 9)])
def test_attention(shape: tuple[int, int, int]) -> None:
    done = check(attention(*shape), lambda s: schedule(s, AttentionTiles(3, 8, 4)), atol=ATOL)
    assert str(done.verify()) == "proved"


def test_scores_and_weights_are_those_of_some_rows() -> None:
    done = check(attention(2, 13, 18), lambda s: schedule(s, AttentionTiles(3, 8, 4)), atol=ATOL)
    buffers = done.program.buffers
    assert buffers["O.scores"].shape == (1, 3, 13)
    assert buffers["O.softmax"].shape == (1, 3, 4), "as many columns as a vector has lanes"
    assert buffers["K.pack"].shape == (1, 2, 18, 8)
    assert buffers["Q.pack"].shape == (1, 1, 18, 3)
    assert buffers["O.softmax.max.rf"].shape[-1] == 4, "the lanes of a row's partial results are neighbours"
    loops = done.program.enclosing("O")
    assert [loop.kind for loop in loops][-3:] == ["unrolled", "unrolled", "vectorized"]
    assert [loop.extent for loop in loops] == [2, 5, 1, 3, 4, 4, 3, 2, 4], (
        "18 columns are 5 vectors: panels of 2, 2 and 1"
    )


def test_operands_may_be_in_any_order() -> None:
    """A canonical program orders them by structure: keys and values first, here."""
    q, k, v = (te.placeholder((2, 7, 5), name=name) for name in "QKV")
    d, n = te.reduce_axis(5, "d"), te.reduce_axis(7, "n")
    scores = te.compute((2, 7, 7), lambda b, i, j: te.sum(k[b, j, d] * q[b, i, d], axis=d), name="O.scores")
    weights = te.nn.softmax(scores, name="O.softmax")
    o = te.compute((2, 7, 5), lambda b, i, e: te.sum(v[b, n, e] * weights[b, i, n], axis=n), name="O")
    swapped = te.function("attention", [q, k, v], [o])
    done = check(swapped, lambda s: schedule(s, AttentionTiles(3, 8, 4)), atol=ATOL)
    usual = check(attention(2, 7, 5), lambda s: schedule(s, AttentionTiles(3, 8, 4)), atol=ATOL)
    for name in ("K.pack", "Q.pack"):
        assert done.program.buffers[name].shape == usual.program.buffers[name].shape
    assert str(done.verify()) == "proved" and 'prefetch %n.1 "V"' in str(done.script)


def test_a_single_vector_of_keys_has_no_partial_results() -> None:
    done = check(attention(1, 7, 5), lambda s: schedule(s, AttentionTiles(3, 16, 8)), atol=ATOL)
    assert not any(name.endswith(".rf") for name in done.program.buffers)
    assert str(done.verify()) == "proved"


def test_attention_with_heads_that_share_keys_and_a_mask() -> None:
    q = te.placeholder((1, 4, 6, 5), name="Q")
    k, v = (te.placeholder((1, 2, 6, 5), name=name) for name in "KV")
    mask = te.placeholder((6, 6), name="M")
    f = te.function("masked", [q, k, v, mask], [te.nn.attention(q, k, v, mask, name="O")])
    assert str(check(f, lambda s: schedule(s, AttentionTiles(2, 8, 4)), atol=ATOL).verify()) == "proved"


@pytest.mark.parametrize("length", [5, 13])
def test_groups_of_rows_share_a_panel_of_keys(length: int) -> None:
    tiles = AttentionTiles(3, 8, 4, group=2)
    done = check(attention(1, length, 6), lambda s: schedule(s, tiles), atol=ATOL)
    assert str(done.verify()) == "proved"
    assert done.program.buffers["O.scores"].shape == (1, 6, length) or length == 5
    assert done.program.buffers["O.softmax.exp"].shape == (1, 3, length)


def test_tiles_divide_the_depth() -> None:
    made = {depth: recipes.attention_tiles(512, depth) for depth in (8, 64, 80, 96, 112, 128)}
    assert {d: (t.mr, t.nr) for d, t in made.items()} == {
        8: (6, 64),
        64: (6, 64),
        80: (5, 80),
        96: (4, 96),
        112: (6, 64),
        128: (6, 64),
    }
    assert [recipes.attention_tiles(length, 64).group for length in (2048, 2049)] == [1, 4]
    check(attention(1, 9, 17), schedule, atol=ATOL)


def test_panels_are_evened() -> None:
    assert [recipes.even(extent, 64, 16) for extent in (1, 16, 64, 65, 80, 129)] == [1, 1, 4, 3, 3, 3]


def test_refusals() -> None:
    a, b = te.placeholder((2, 4, 6), name="A"), te.placeholder((2, 6, 5), name="B")
    s = Schedule(compiler.lower(te.function("product", [a, b], [te.nn.batch_matmul(a, b, name="O")])))
    before = str(s.module)
    with pytest.raises(ScheduleError) as error:
        schedule(s, AttentionTiles())
    assert str(error.value) == "attention: block 'O': there is not one block of weights: it ends no attention"
    assert str(s.module) == before
    s = Schedule(compiler.lower(attention(2, 4, 1)))
    with pytest.raises(ScheduleError, match="axis 'd' of the scores has one element: there is nothing to tile"):
        schedule(s, AttentionTiles())


@pytest.mark.parametrize(("registers", "depth", "vectors"), [(16, 8, 2), (16, 9, 3), (32, 4, 4), (32, 8, 4)])
def test_the_register_tile_of_least_cycles_comes_first(registers: int, depth: int, vectors: int) -> None:
    draft = SimpleNamespace(machine=SimpleNamespace(registers=registers))
    assert min((2, 3, 4), key=lambda n: _price(draft, n, depth)) == vectors
