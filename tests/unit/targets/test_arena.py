"""Workspaces: large ones on large pages, of the right size, writable throughout, and one for each thread."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.dialects.functions import SLOT_ALIGNMENT
from compiler.targets.arena import LARGE_PAGE, arena, prefault_arena


@pytest.mark.parametrize(
    "size", [1, 64, 1000, LARGE_PAGE // 4 - 1, LARGE_PAGE // 4, LARGE_PAGE - 1, LARGE_PAGE, 3 * LARGE_PAGE + 1]
)
def test_memory_holds_an_aligned_workspace(size: int) -> None:
    memory = arena(size)
    assert memory.dtype == np.uint8
    assert -memory.ctypes.data % SLOT_ALIGNMENT + size <= memory.size
    assert memory.flags.writeable
    memory[:] = 255
    if size >= LARGE_PAGE // 4:
        assert memory.ctypes.data % LARGE_PAGE == 0
        assert memory.size % LARGE_PAGE == 0
        assert memory.size - size < LARGE_PAGE


@pytest.mark.parametrize("size", [0, 1000, LARGE_PAGE, 3 * LARGE_PAGE + 1])
@pytest.mark.parametrize("actual", [1, 1000, LARGE_PAGE, 3 * LARGE_PAGE + 100, 20 * LARGE_PAGE])
def test_an_arena_made_ahead_has_the_size_that_turns_out(size: int, actual: int) -> None:
    memory = prefault_arena(size)(actual)
    assert actual <= memory.size and memory.ctypes.data % SLOT_ALIGNMENT == 0
    memory[:] = 255


def test_an_arena_made_ahead_is_the_one_that_was_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    allocate = prefault_arena(4 * LARGE_PAGE)
    monkeypatch.setattr("compiler.targets.arena.arena", lambda size: pytest.fail("made again"))
    assert allocate(4 * LARGE_PAGE + 1).size == 4 * LARGE_PAGE + 1


def test_an_arena_made_ahead_may_be_dropped() -> None:
    for _ in range(20):
        prefault_arena(16 * LARGE_PAGE)
    for thread in threading.enumerate():
        if thread.daemon and "_touch" in thread.name:
            thread.join()


def test_without_large_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("mmap.MADV_HUGEPAGE", raising=False)
    memory = arena(2 * LARGE_PAGE)
    assert memory.size >= 2 * LARGE_PAGE and memory.ctypes.data % SLOT_ALIGNMENT == 0
    memory[:] = 255


def test_two_arenas_are_apart() -> None:
    first, second = arena(LARGE_PAGE), arena(LARGE_PAGE)
    first[:] = 1
    second[:] = 2
    assert (first == 1).all()


def test_threads_have_workspaces_of_their_own() -> None:
    """The temporary of each call is some megabytes that the next call of the same thread finds again."""
    a = te.placeholder((1024, 1024), name="A")
    t = te.compute((1024, 1024), lambda i, j: a[i, j] * 2, name="T")
    kernel = compiler.build(te.function("f", [a], [te.compute((1024, 1024), lambda i, j: t[j, i] + 1, name="C")]))
    x = np.arange(1024 * 1024, dtype=np.float32).reshape(1024, 1024)
    collected: dict[int, bool] = {}

    def work(number: int) -> None:
        y = x + number
        collected[number] = all(np.array_equal(kernel(y), y.T * 2 + 1) for _ in range(3))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert collected == dict.fromkeys(range(4), True)


def test_a_forked_child_has_its_own() -> None:
    """Memory is private: what a child writes the parent does not see."""
    memory = arena(LARGE_PAGE)
    memory[:] = 1
    child = os.fork()
    if child == 0:
        memory[:] = 2
        os._exit(0)
    os.waitpid(child, 0)
    assert (memory == 1).all()
