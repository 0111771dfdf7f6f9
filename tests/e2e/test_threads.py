"""Random programs under random schedules with parallel loops: any count of threads gives the same bits, and right ones.

`python -m tests.e2e.test_threads 1000 [first seed]` runs many and reports.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import memref, scf

import compiler
from compiler import recipes, te
from compiler.fuzz.programs import arrays_for
from compiler.interpret import te as evaluator
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support.errors import LoweringError, ScheduleError
from compiler.targets.cpu import Kernel
from compiler.types.policies import POLICIES
from tests.fuzz.scripts import close, walk
from tests.operators import inputs
from tests.sample import some
from tests.schedules import lowered, mm_exp_mm

COUNTS = (2, 3, 5)
"""More threads than cores too: the parts of the work interleave in other ways."""
ROUNDS = 3


def mark(s: Schedule, rng: random.Random) -> None:
    """Make loops parallel where that is legal: the outermost that may be, now and then one more around each block."""
    for name in list(s.program.blocks):
        for loop in s.get_loops(s.get_block(name)):
            try:
                s.parallel(loop)
            except ScheduleError:
                continue
            if rng.random() < 0.8:
                break


def same(kernel: Kernel, arrays: list[Any], expected: list[Any] | None = None) -> None:
    """One thread gives what is expected, and every count of threads the same bits, again and again."""
    alone = results(kernel(*arrays, threads=1))
    assert expected is None or close(alone, expected), "a wrong result on one thread"
    for count in COUNTS * ROUNDS:
        for left, several in zip(alone, results(kernel(*arrays, threads=count)), strict=True):
            assert left.tobytes() == several.tobytes(), f"{count} threads give another result"


def results(actual: Any) -> list[Any]:
    return list(actual) if isinstance(actual, tuple) else [actual]


def check(seed: int) -> str:
    """Run one seed; what was found of parallel loops."""
    function, walker = walk(seed)
    s, rng = walker.s, random.Random(seed)
    mark(s, rng)
    if not any(loop.kind == "parallel" for loop in s.program.loops.values()):
        return "serial"
    arrays = arrays_for(function, seed)
    try:
        kernel = compiler.build(s, policy=rng.choice(list(POLICIES)))
    except LoweringError as error:
        if "inside the parallel loop" in str(error):
            return "nested"
        return "not lowered"
    same(kernel, list(arrays), list(evaluator.evaluate(function.module, arrays)))
    module = parse(kernel.text("low"))
    regions = [op for op in module.walk() if isinstance(op, scf.ParallelOp)]
    if any(isinstance(op, memref.AllocOp) for region in regions for op in region.body.walk()):
        return "private"
    return "collapsed" if any(len(region.body.block.args) > 1 for region in regions) else "parallel"


@pytest.mark.parametrize("chunk", some(range(10)))
def test_random_schedules(chunk: int) -> None:
    answers = Counter(check(seed) for seed in range(9000 + 12 * chunk, 9012 + 12 * chunk))
    assert answers["parallel"] + answers["collapsed"] + answers["private"] > 2


SCHEDULES: dict[str, Callable[[Schedule], Any]] = {}


def schedule(make: Callable[[Schedule], Any]) -> Callable[[Schedule], Any]:
    SCHEDULES[make.__name__] = make
    return make


@schedule
def private_rows(s: Schedule) -> None:
    """Both producers computed inside the parallel loop, into buffers that each iteration has for itself."""
    d, f = s.get_block("D"), s.get_block("F")
    m = s.get_loops(f)[0]
    s.compute_at(d, m)
    s.compute_at(s.get_block("C"), m)
    s.vectorize(s.get_loops(d)[-1])
    s.parallel(m)


@schedule
def private_tiles(s: Schedule) -> None:
    """A guarded tail, and windows of both operands copied inside a loop inside the parallel one."""
    c = s.get_block("C")
    m, l, k = s.get_loops(c)
    m0, m1 = s.split(m, [None, 5])
    k0, k1 = s.split(k, [None, 4])
    s.reorder(m0, k0, m1, l, k1)
    for name in ("A", "B"):
        s.compute_at(s.cache_read(c, name), k0)
    s.parallel(m0)


@schedule
def inside_a_serial_loop(s: Schedule) -> None:
    """The region is entered once for each iteration of a serial loop, whose index it captures."""
    m, l, k = s.get_loops(s.get_block("C"))
    s.reorder(k, m, l)
    s.vectorize(l)
    s.parallel(m)


@schedule
def rows_and_columns(s: Schedule) -> None:
    """Two parallel loops of which the inner one is guarded: one region of two indices."""
    m, l, k = s.get_loops(s.get_block("C"))
    l0, l1 = s.split(l, [None, 4])
    s.reorder(m, l0, k, l1)
    s.parallel(m)
    s.parallel(l0)


@schedule
def three_indices(s: Schedule) -> None:
    m, l, _ = s.get_loops(s.get_block("C"))
    l0, l1 = s.split(l, [None, 5])
    for loop in (m, l0, l1):
        s.parallel(loop)


@schedule
def packed_panels(s: Schedule) -> None:
    """As in BLIS: the panel of B is shared, that of A is each thread's own."""
    tiles = recipes.gebp(s, s.get_block("C"), mc=4, kc=8, nc=8, mr=2, nr=4)
    s.parallel(tiles.ic)


@schedule
def every_block(s: Schedule) -> None:
    for name in ("C", "D", "F"):
        s.parallel(s.get_loops(s.get_block(name))[0])


@pytest.mark.sampled
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("shape", [(12, 10, 14, 9), (1, 3, 5, 2), (33, 17, 40, 8)], ids=str)
def test_schedules(name: str, shape: tuple[int, int, int, int]) -> None:
    function = mm_exp_mm(*shape)
    s = Schedule(lowered(function))
    SCHEDULES[name](s)
    arrays = list(inputs(function, 0))
    kernel = compiler.build(s)
    assert kernel.threads is not None
    same(kernel, arrays, list(evaluator.evaluate(function.module, arrays)))


def test_private_buffers_are_private() -> None:
    s = Schedule(lowered(mm_exp_mm()))
    private_rows(s)
    assert compiler.build(s)._workspace.private > 0


def test_nested_parallel_loops_are_refused() -> None:
    s = Schedule(lowered(mm_exp_mm()))
    private_rows(s)
    s.parallel(s.get_loops(s.get_block("C"))[1])
    with pytest.raises(LoweringError, match=r"loop 'C\.l' is parallel inside the parallel loop 'm'"):
        compiler.build(s)


def test_operators() -> None:
    """A reduction along rows, large enough that threads are at work at once."""
    x = te.placeholder((300, 257), name="X")
    function = te.function("rows", [x], [te.nn.softmax(x)])
    s = Schedule(lowered(function))
    for name in list(s.program.blocks):
        s.parallel(s.get_loops(s.get_block(name))[0])
    arrays = [np.random.default_rng(0).standard_normal((300, 257)).astype(np.float32)]
    same(compiler.build(s), arrays, list(evaluator.evaluate(function.module, arrays)))


def main(count: int, first: int = 0) -> int:
    answers: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            answers[check(seed)] += 1
        except Exception:  # each seed is judged on its own, and all of them are reported
            answers["failed"] += 1
            print(f"seed {seed}: {traceback.format_exc(limit=-1)}", flush=True)
    print(dict(answers))
    return int(answers["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *map(int, sys.argv[2:3])))
