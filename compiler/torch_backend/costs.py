"""The cost of each group of a kernel beside its bound, the minimal time on the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from compiler.alternatives import Conditions
from compiler.analysis.cost import total_flops
from compiler.autotune.display.operator import operator
from compiler.driver.parts.groups import Group
from compiler.driver.parts.partition import partition
from compiler.driver.reference.cases import draw
from compiler.support.text import counted, duration
from compiler.targets.arguments import Array
from compiler.targets.cpu import Kernel
from compiler.targets.cpu.ceilings import MIN_SECONDS, Arithmetic
from compiler.targets.groups import RUN_AS_FALLBACK, RUN_ONCE
from compiler.te.function import Function
from compiler.types.machines import host

REPEATS = 3
"""The number of measurements of a group, and of the memory's rate; the minimum counts."""


@dataclass(frozen=True)
class Cost:
    """A group's calls in one run of its kernel: their number and their total seconds, measured and at the bound.
    `operator` describes the group, such as `matmul`."""

    name: str
    operator: str
    calls: int
    seconds: float
    bound: float

    @property
    def excess(self) -> float:
        """Measured seconds minus the bound."""
        return self.seconds - self.bound

    def __str__(self) -> str:
        calls = "" if self.calls == 1 else f"{counted(self.calls, 'call')}, "
        return f"{self.name} ({self.operator}; {calls}{duration(self.seconds)}, bound {duration(self.bound)})"


def costs(kernel: Kernel, program: Function, constants: list[str], error: float | None) -> Iterator[Cost]:
    """Measure the cost of each group that a run of a kernel calls, alone and with operands in the caches.

    Groups of prepared constants and of fallbacks are left out. program, constants, error: the arguments of the kernel's
    build. The bound is the longer of two times: the floating-point operations at the machine's ceiling, and the
    transfer of the arguments' bytes through the caches, divided among the threads.
    """
    parts = partition(program, constants, conditions=Conditions(host(), kernel.policy, error=error))
    groups = parts.grouped.groups if parts.grouped else filter(None, [parts.group])
    by_name: dict[str, Group] = {group.name: group for group in groups}
    threads = kernel.threads or 1
    rate = Arithmetic(threads).probe(MIN_SECONDS).rate
    for facts in kernel.groups:
        group = by_name.get(facts.name.partition(".")[0])  # the suffix distinguishes units of one function
        if group is None or facts.verdict in (RUN_ONCE, RUN_AS_FALLBACK):
            continue
        seconds, size = _timed(kernel.group(facts.name))
        tree, calls = group.tree, facts.occurrences
        bound = max(total_flops(tree, tree.body) / rate, _passing(size) / threads)
        yield Cost(group.name, operator(tree), calls, calls * seconds, calls * bound)


def _timed(kernel: Kernel) -> tuple[float, int]:
    """Return the minimal seconds of a call on random inputs, and the total bytes of inputs and outputs."""
    random, count = np.random.default_rng(0), len(kernel.arguments) - kernel.outputs
    inputs: list[Array] = [draw(argument, random) for argument in kernel.arguments[:count]]
    timing = kernel.time(*inputs, repeats=REPEATS, min_seconds=MIN_SECONDS)
    return timing.minimum, sum(argument.size for argument in kernel.arguments)


def _passing(size: int) -> float:
    """Return the seconds in which one thread negates an f32 array into another; both together have `size` bytes."""
    source, target = (np.ones(size // 8 + 1, np.float32) for _ in range(2))
    times = []
    for _ in range(REPEATS):
        begin = perf_counter()
        np.negative(source, target)
        times.append(perf_counter() - begin)
    return min(times)
