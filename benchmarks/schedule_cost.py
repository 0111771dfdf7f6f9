"""What legality costs: a script of over 30 steps on mm_exp_mm at full size, and proving its result; and what a build
costs, from te to machine code.

Run as `python -m benchmarks.schedule_cost`; each round begins with empty caches.
"""

from __future__ import annotations

import time
from statistics import median

import compiler
from compiler.analysis import sets, statements
from compiler.bench import workloads
from compiler.bench.schedules import scheduled
from compiler.schedule import Handle, Schedule

ROUNDS = 15


def packed_matmul(s: Schedule, name: str, buffers: tuple[str, str], rows: int, columns: int, depth: int) -> Handle:
    """Tile, pack both operands, decompose the reduction, unroll, vectorize and prefetch."""
    block = s.get_block(name)
    m, l, k = s.get_loops(block)
    m0, m1 = s.split(m, [None, rows])
    l0, l1, l2 = s.split(l, [2, None, columns])
    k0, k1 = s.split(k, [None, depth])
    s.reorder(l0, k0, m0, l1, k1, m1, l2)
    s.compute_at(s.pack(block, buffers[1], [1, columns], [1, 0, 2]), k0)
    s.compute_at(s.pack(block, buffers[0], [rows, 1], [0, 1, 2]), m0)
    s.decompose_reduction(block, l0)
    s.unroll(m1)
    s.vectorize(l2)
    s.prefetch(k1, buffers[1] + ".pack", 8)
    s.prefetch(k1, buffers[0] + ".pack", 16)
    return l0


def script(s: Schedule) -> None:
    """Both multiplications packed, exp vectorized, all three on threads."""
    names = list(s.program.blocks)
    first, second = s.program.blocks[names[0]], s.program.blocks[names[2]]
    first_rows = packed_matmul(s, names[0], (first.reads[0].buffer, first.reads[1].buffer), 8, 48, 512)
    second_rows = packed_matmul(s, names[2], (second.reads[0].buffer, second.reads[1].buffer), 8, 48, 512)
    rows, columns = s.get_loops(s.get_block(names[1]))
    _, inner = s.split(columns, [None, 16])
    s.vectorize(inner)
    for loop in (first_rows, second_rows, rows):
        s.parallel(loop)


def forget() -> None:
    """Empty every cache of the analysis."""
    sets.cached_sample.cache_clear()
    statements.forget()


def main() -> None:
    """Measure and print milliseconds: median, least and most of the rounds."""
    module = compiler.lower(workloads.find("mm_exp_mm").function())
    applied, proved, counts = [], [], (0, 0)
    for _ in range(ROUNDS):
        forget()
        s = Schedule(module)
        start = time.perf_counter()
        script(s)
        applied.append(time.perf_counter() - start)
        start = time.perf_counter()
        verdict = s.verify()
        proved.append(time.perf_counter() - start)
        assert verdict, str(verdict)
        ops = [op.name for op in s.script.walk() if op.name.startswith("sched.")]
        counts = (len(ops), sum(not name.startswith("sched.get_") for name in ops))
    print(f"mm_exp_mm, {counts[1]} primitives ({counts[0]} ops), {ROUNDS} rounds, milliseconds")
    for what, times in (("applied, legality included", applied), ("verify-schedule", proved)):
        low, middle, high = (1e3 * f(times) for f in (min, median, max))
        print(f"{what:<28} median {middle:5.0f}   least {low:5.0f}   most {high:5.0f}")
    _builds()


def _builds() -> None:
    """Print the milliseconds from te to machine code under the workloads' own scripts."""
    for name in ("matmul_1024", "mm_exp_mm"):
        workload = workloads.find(name)
        scripted, built = [], []
        for _ in range(ROUNDS):
            forget()
            start = time.perf_counter()
            s = scheduled(workload)
            scripted.append(time.perf_counter() - start)
            start = time.perf_counter()
            compiler.build(s)
            built.append(time.perf_counter() - start)
        print(f"{name}: te and script {1e3 * median(scripted):.0f}, machine code {1e3 * median(built):.0f}")


if __name__ == "__main__":
    main()
