"""How much memory a process keeps of many different programs: python -m benchmarks.memory [build|schedule].

`build` compiles a program and drops the kernel; `schedule` lowers, schedules, verifies and interprets one. Printed is
by how much the resident memory has grown since the first programs, after each hundred.
"""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import compiler
from compiler import te
from compiler.interpret import loop as interpreter
from compiler.schedule import Schedule


def resident() -> float:
    """The resident memory of this process in MiB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def program(number: int) -> te.Function:
    """A program of two elementwise computes; its shape and constant depend on `number`, so that no two are equal."""
    shape = (8 + number % 97, 5 + number // 97)
    a = te.placeholder(shape, name="A")
    t = te.compute(shape, lambda i, j: a[i, j] * (2.0 + number), name="T")
    u = te.compute(shape, lambda i, j: t[i, j] + 1.0, name="U")
    return te.function("f", [a], [u])


def build(number: int) -> None:
    """Compile a program."""
    compiler.build(program(number), threads=1)


def schedule(number: int) -> None:
    """Schedule a program, prove that it is the same, and interpret it."""
    made = Schedule(compiler.lower(program(number)))
    outer, _ = made.split(made.get_loops(made.get_block("U"))[0], [None, 4])
    made.compute_at(made.get_block("T"), outer)
    assert made.verify().answer == "proved"
    shape = made.program.arguments[0].shape
    interpreter.run(made.module, [np.ones(shape, np.float32), np.zeros(shape, np.float32)])


KINDS: dict[str, Callable[[int], None]] = {"build": build, "schedule": schedule}


def growth(work: Callable[[int], None], first: int, count: int, step: int) -> Iterator[tuple[int, float]]:
    """Yield, after each `step` programs behind the first `first`, the number of programs and the growth of the resident
    memory since then in MiB."""
    before = 0.0
    for number in range(1, count + 1):
        work(number)
        if number == first:
            before = resident()
        elif number > first and (number - first) % step == 0:
            yield number, resident() - before


def main() -> None:
    """Print how the memory of each kind of work grows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description="Look for leaks.")
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)}; all by default")
    parser.add_argument("--first", type=int, default=100, help="programs that fill the caches (default 100)")
    parser.add_argument("--count", type=int, default=1000, help="programs in all (default 1000)")
    parser.add_argument("--step", type=int, default=100, help="programs between two lines (default 100)")
    options = parser.parse_args()
    for kind in options.kinds or KINDS:
        for number, grown in growth(KINDS[kind], options.first, options.count, options.step):
            print(f"{kind} {number}: {grown:+.2f} MiB", flush=True)


if __name__ == "__main__":
    main()
