"""Offsets of temporaries in an arena."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compiler.analysis.arena import Arena, Lifetime, plan

LIFETIMES = st.lists(
    st.builds(lambda s, f, n: Lifetime(s, f, f + n), st.integers(0, 500), st.integers(0, 12), st.integers(0, 6))
)


def overlapping(lifetimes: list[Lifetime], arena: Arena) -> list[tuple[int, int]]:
    """The pairs that live at the same time in the same memory."""
    every = list(zip(lifetimes, arena.offsets, strict=True))
    return [
        (m, n)
        for m, (a, at) in enumerate(every)
        for n, (b, bt) in enumerate(every[:m])
        if a.first <= b.last and b.first <= a.last and at < bt + b.size and bt < at + a.size
    ]


@given(LIFETIMES)
def test_what_lives_together_lies_apart(lifetimes: list[Lifetime]) -> None:
    arena = plan(lifetimes, 64)
    assert overlapping(lifetimes, arena) == []
    assert all(offset % 64 == 0 for offset in arena.offsets)
    assert arena.size >= max((offset + x.size for x, offset in zip(lifetimes, arena.offsets, strict=True)), default=0)
    steps = [sum(x.size for x in lifetimes if x.first <= step <= x.last) for step in range(20)]
    assert max(steps) <= arena.size <= sum(-(-x.size // 64) * 64 for x in lifetimes)


def test_an_overlap_is_seen() -> None:
    lifetimes = [Lifetime(100, 0, 1), Lifetime(100, 1, 2)]
    assert overlapping(lifetimes, Arena((0, 64), 164)) == [(1, 0)]


def test_a_chain_takes_two_buffers() -> None:
    arena = plan([Lifetime(4096, n, n + 1) for n in range(50)], 64)
    assert arena.size == 2 * 4096 and set(arena.offsets) == {0, 4096}


def test_the_smallest_gap_is_taken() -> None:
    placed = [Lifetime(640, 0, 9), Lifetime(576, 0, 1), Lifetime(512, 0, 9), Lifetime(448, 0, 1), Lifetime(384, 0, 9)]
    arena = plan([*placed, Lifetime(64, 2, 3)], 64)
    assert arena.offsets == (0, 640, 1216, 1728, 2176, 1728)


def test_what_is_large_goes_first() -> None:
    small, large = [Lifetime(64, n, n + 1) for n in range(4)], Lifetime(4096, 2, 2)
    arena = plan([*small, large], 64)
    assert arena.offsets[-1] == 0 and arena.size == 4096 + 2 * 64
