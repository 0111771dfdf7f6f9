"""A corpus of schedules of exp(A @ B) @ E, one for each kind of rewriting, and what runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from compiler import te
from compiler.interpret import loop as interpreter
from compiler.interpret import te as evaluator
from compiler.program.tree import Program
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.universe import context
from strata.passes import parse_passes, run
from tests.operators import inputs


def lowered(function: te.Function) -> ModuleOp:
    """The unscheduled loops of a te function."""
    module = function.module.clone()
    run(context(), module, parse_passes("te-to-loop"))
    return module


def mm_exp_mm(m: int = 12, k: int = 10, l: int = 14, n: int = 9) -> te.Function:
    """exp(A @ B) @ E, blocks C, D and F."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, l), name="B")
    e = te.placeholder((l, n), name="E")
    rk, rl = te.reduce_axis(k, "k"), te.reduce_axis(l, "l")
    c = te.compute((m, l), lambda m, l: te.sum(a[m, rk] * b[rk, l], axis=rk), name="C")
    d = te.compute((m, l), lambda m, l: te.exp(c[m, l]), name="D")
    f = te.compute((m, n), lambda m, n: te.sum(d[m, rl] * e[rl, n], axis=rl), name="F")
    return te.function("mm_exp_mm", [a, b, e], [f])


def agree(program: Program, function: te.Function, seed: int = 0) -> bool:
    """Whether the interpreted program equals the evaluated function, outputs poisoned before."""
    arrays = inputs(function, seed)
    expected = evaluator.evaluate(function.module, arrays)
    collected = [np.full_like(e, np.nan if e.dtype.kind == "f" else 77) for e in expected]
    try:
        interpreter.run(ModuleOp([write(program)]), [*arrays, *collected])
    except interpreter.InterpretError:
        return False
    pairs = zip(collected, expected, strict=True)
    return all(np.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True) for a, b in pairs)


SCHEDULES: dict[str, Callable[[Schedule], Any]] = {}


def _schedule(make: Callable[[Schedule], Any]) -> Callable[[Schedule], Any]:
    SCHEDULES[make.__name__] = make
    return make


def _loops(s: Schedule, *blocks: str) -> list[list[Any]]:
    return [s.get_loops(s.get_block(name)) for name in blocks]


@_schedule
def tail_partition(s: Schedule) -> None:
    m, _, k = s.get_loops(s.get_block("C"))
    s.split(m, [None, 5], tail="partition")
    s.split(k, [None, 4], tail="partition")


@_schedule
def partition_reduction(s: Schedule) -> None:
    m, l, k = s.get_loops(s.get_block("C"))
    s.reorder(k, m, l)
    s.partition(k, 3)


@_schedule
def tail_pad(s: Schedule) -> None:
    m, l, _ = s.get_loops(s.get_block("C"))
    s.split(m, [None, 5], tail="pad")
    s.split(l, [None, 4], tail="pad")


@_schedule
def fuse(s: Schedule) -> None:
    s.fuse(*s.get_loops(s.get_block("C")))


@_schedule
def merge_rows(s: Schedule) -> None:
    c, d, f = _loops(s, "C", "D", "F")
    both = s.merge(c[0], d[0])
    s.parallel(s.merge(both, f[0]))


@_schedule
def merge_columns(s: Schedule) -> None:
    c, d, f = _loops(s, "C", "D", "F")
    s.merge(s.merge(c[0], d[0]), f[0])
    columns = s.merge(c[1], d[1])
    s.reorder(f[2], f[1])
    s.merge(columns, f[2])


@_schedule
def distribute(s: Schedule) -> None:
    c, d = _loops(s, "C", "D")
    s.merge(c[0], d[0])
    s.distribute(s.merge(c[1], d[1]), s.get_block("C"))


@_schedule
def inline(s: Schedule) -> None:
    s.inline(s.get_block("D"))


@_schedule
def compute_at(s: Schedule) -> None:
    d, f = s.get_block("D"), s.get_block("F")
    m, n, l = s.get_loops(f)
    m0, m1 = s.split(m, [None, 5])
    l0, l1 = s.split(l, [None, 4])
    s.reorder(m0, l0, m1, n, l1)
    s.compute_at(d, l0)
    s.compute_at(s.get_block("C"), l0)
    s.vectorize(s.get_loops(d)[-1])


@_schedule
def cache_reads(s: Schedule) -> None:
    c = s.get_block("C")
    m, l, k = s.get_loops(c)
    k0, k1 = s.split(k, [None, 4])
    s.reorder(k0, m, l, k1)
    s.compute_at(s.cache_read(c, "B", "local"), k0)
    s.compute_at(s.cache_read(c, "A", "shared"), m)


@_schedule
def cache_write(s: Schedule) -> None:
    c = s.get_block("C")
    outer, _ = s.split(s.get_loops(c)[0], [None, 5])
    s.reverse_compute_at(s.cache_write(c, "local"), outer)


@_schedule
def decompose(s: Schedule) -> None:
    c = s.get_block("C")
    m, l, k = s.get_loops(c)
    s.reorder(m, k, l)
    s.vectorize(s.get_loops(s.decompose_reduction(c, k))[-1])


@_schedule
def rfactor_inner(s: Schedule) -> None:
    c = s.get_block("C")
    _, inner = s.split(s.get_loops(c)[2], [None, 4])
    s.rfactor(c, inner)
    s.vectorize(inner)


@_schedule
def rfactor_outer(s: Schedule) -> None:
    c = s.get_block("C")
    outer, _ = s.split(s.get_loops(c)[2], [None, 4])
    s.rfactor(c, outer)
    s.parallel(outer)


@_schedule
def stage_partial_sums(s: Schedule) -> None:
    c = s.get_block("C")
    m, l, k = s.get_loops(c)
    k0, k1 = s.split(k, [None, 4])
    m0, m1 = s.split(m, [None, 5])
    s.reorder(k0, m0, m1, l, k1)
    s.decompose_reduction(c, k0)
    s.stage(m0, "C", "local")
    s.stage(m0, "A", "shared")


@_schedule
def stage(s: Schedule) -> None:
    outer, _ = s.split(s.get_loops(s.get_block("C"))[0], [None, 5])
    s.stage(outer, "C")


@_schedule
def layouts(s: Schedule) -> None:
    c, d = s.get_block("C"), s.get_block("D")
    s.transform_layout(c, "C", lambda i, j: (j // 4, i, j % 4))
    s.storage_align(d, 0, 8, 3)
    s.swizzle(d, 1)
    s.set_scope(d, "shared")


@_schedule
def pack(s: Schedule) -> None:
    c = s.get_block("C")
    m, l, k = s.get_loops(c)
    l0, l1 = s.split(l, [None, 4])
    packed = s.pack(c, "B", [1, 4], [1, 0, 2])
    s.pack(c, "A", [5, 1])
    s.reorder(l0, m, k, l1)
    s.compute_at(packed, l0)


@_schedule
def rolling_window(s: Schedule) -> None:
    c, d = _loops(s, "C", "D")
    s.merge(c[0], d[0], shift=2)
    s.transform_layout(s.get_block("C"), "C", lambda i, j: (i % 3, j))


@_schedule
def pipeline(s: Schedule) -> None:
    c = s.get_block("C")
    m, l, k = s.get_loops(c)
    k0, k1 = s.split(k, [None, 4])
    s.reorder(k0, m, l, k1)
    copy = s.cache_read(c, "B", "local")
    s.compute_at(copy, k0)
    s.double_buffer(copy)
    s.prefetch(k0, "A", 2)
    s.software_pipeline(k0, [0, 1])


@_schedule
def choices(s: Schedule) -> None:
    d = s.get_block("D")
    s.compute_at(d, s.sample_location(d))
    c = s.get_loops(s.get_block("C"))
    s.split(c[0], s.sample_perfect_tile(c[0], 3, 4))
    s.split(c[1], [s.sample_categorical([7]), s.sample_categorical([2])])
