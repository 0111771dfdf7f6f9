"""`python -m benchmarks.whole --groups`: groups of a network, timed inside it by the clock, beside their bounds.

A bound is the longer of two times, as in `benchmarks.defaults`: of the multiplications and additions of the group's
form at the machine's ceiling, and of negating an array into another, together as large as its arguments, warm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path

import numpy as np

from benchmarks.defaults.__main__ import PROBE, work
from benchmarks.defaults.timing import least
from compiler import te
from compiler.alternatives import Conditions
from compiler.autotune.display.operator import operator
from compiler.autotune.measure.turns import ProfiledProgram
from compiler.bench.error_bounds import Array
from compiler.driver.building import build_scheduled, chosen_partition, records_of, source_of
from compiler.driver.parts.groups import Group
from compiler.driver.parts.partition import alternatives
from compiler.targets.cpu import Kernel
from compiler.targets.cpu.ceilings import Arithmetic
from compiler.types.elements import element_bytes
from compiler.types.machines import host

ROUNDS, SHOWN = 25, 10
POLICY = "contract"


@dataclass(frozen=True)
class Row:
    """A group: the seconds of all its calls in a run, those of their bound, its limit (`by`: flops or bytes), the law
    that gave its form, and the origin of its schedule."""

    group: Group
    seconds: float
    bound: float
    by: str
    law: str
    source: str

    def __str__(self) -> str:
        calls = f"{self.group.name} x {self.group.occurrences}"
        times = f"{self.seconds * 1e3:8.3f} {self.bound * 1e3:8.3f} {self.seconds / self.bound:6.2f} {self.by}"
        return f"{calls:32} {times}  {operator(self.group.tree)}; {self.law or 'written'}, {self.source}"


def print_groups(
    name: str, function: te.Function, arrays: Mapping[str, Array], schedule: str, error: float | None
) -> None:
    """Build a network for one thread, and print its time, the sums of its groups' times and of their bounds, and the
    groups that lose most to their bounds."""
    conditions = Conditions(host(), POLICY, error=error)
    offers, database = alternatives(function, list(arrays), conditions=conditions), Path(schedule)
    program = offers.preferred if schedule == "auto" else chosen_partition(offers, database, 1, POLICY)
    if program.grouped is None:
        print(f"{name} is one group")
        return
    parts = {part.name: part for part in program.parts(1, POLICY)}
    records = {} if schedule == "auto" else records_of(parts, database, program)
    sources = {part: source_of(parts[part], records.get(part)) for part in parts}
    kernel = build_scheduled(program, function, sources, 1, POLICY, arrays, profiled=True)
    laws = {facts.name: facts.law for facts in kernel.groups}
    times = _times(kernel, [call.callee for call in program.grouped.constant_split.main.calls])
    rows = [
        Row(group, times.groups[group.name], *_bound(group, times.rate), laws[group.name], sources[group.name].origin)
        for group in program.grouped.groups
    ]
    whole, groups, bounds = times.whole, sum(times.groups.values()), sum(row.bound for row in rows)
    print(f"{name}: whole {whole * 1e3:.2f} ms, {len(rows)} groups {groups * 1e3:.2f}, bounds {bounds * 1e3:.2f}")
    print(f"  program laws: {', '.join(program.laws) or 'none'}")
    print(f"  {'':32} {'ms':>8} {'bound':>8} {'ratio':>6}")
    for row in sorted(rows, key=lambda row: row.bound - row.seconds)[:SHOWN]:
        print(f"  {row}", flush=True)


@dataclass(frozen=True)
class _Times:
    """The least seconds of a run, and of all calls of each function, and the most operations a second that the machine
    reached meanwhile: other work on the core counts little."""

    whole: float
    groups: Mapping[str, float]
    rate: float


def _times(kernel: Kernel, callees: Sequence[str]) -> _Times:
    program, ceiling = ProfiledProgram(kernel, len(callees)), Arithmetic(1)
    program.run()
    rounds = [(ceiling.probe(PROBE).rate, program.run()) for _ in range(ROUNDS)]
    seconds = dict.fromkeys(callees, 0.0)
    for callee, *each in zip(callees, *(run.calls for _, run in rounds), strict=True):
        seconds[callee] += float(min(each))
    return _Times(min(run.whole for _, run in rounds), seconds, max(rate for rate, _ in rounds))


def _bound(group: Group, rate: float) -> tuple[float, str]:
    """Return the least seconds that all calls of a group can take, at `rate` operations a second, and its limit, flops
    or bytes."""
    size = sum(prod(buffer.shape) * element_bytes(buffer.element) for buffer in group.tree.arguments)
    source, target = (np.ones(size // 8 + 1, np.float32) for _ in range(2))
    (copy,), arithmetic = least([partial(np.negative, source, target)], 3), work(group.tree) / rate
    return group.occurrences * max(arithmetic, copy), "flops" if arithmetic > copy else "bytes"
