"""`python -m benchmarks.defaults [FAMILY[/NAME] ...]`: what defaults reach of their bounds, and of what is written.

The bound of a group is the longer of two times: of its multiplications and additions at the machine's ceiling, and of
negating an array into another, together as large as its arguments. Both are taken in turns with the kernels. Times
are of CPU time of one thread, so that a neighbour on the machine counts little; weights are constant.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from math import exp, log

import numpy as np

from benchmarks.defaults.cases import FAMILIES, Made
from compiler import te
from compiler.analysis.cost import flops, instances
from compiler.analysis.verify.prove import verify_schedule
from compiler.autotune.measure.reference import draw
from compiler.autotune.space.rules import RULES
from compiler.autotune.space.rules.derive import preferred
from compiler.autotune.task import SearchTask
from compiler.driver import build, build_groups
from compiler.errors import StrataError
from compiler.native.unit import Source
from compiler.program.tree import Program
from compiler.schedule import Schedule
from compiler.targets.arguments import Array, room
from compiler.targets.cpu import Kernel
from compiler.targets.cpu.ceilings import Arithmetic

BURST = 4e-3
"""Seconds of CPU time that the calls of a round last, at least."""
ROUNDS = 7


@dataclass(frozen=True)
class Row:
    """What was found of a case, times in seconds; `said` is the verdict and what the rules decided."""

    written: float
    default: float
    arithmetic: float
    copy: float
    said: str

    @property
    def share(self) -> float:
        """Of its bound."""
        return max(self.arithmetic, self.copy) / self.default

    def __str__(self) -> str:
        of = "flops" if self.arithmetic > self.copy else "bytes"
        gain = self.written / self.default
        return f"{self.written * 1e3:9.3f} {self.default * 1e3:9.3f} {gain:7.2f} {self.share:7.0%} {of}  {self.said}"


HEAD = f"{'':28} {'written':>9} {'default':>9} {'gain':>7} {'bound':>7}"


def measured(function: te.Function) -> Row:
    """Measure a case. Raises StrataError for a default that is not built or wrong."""
    weights = [tensor.name for tensor in function.inputs if tensor.name[0] in "Wb"]
    task = SearchTask(function, threads=1, constants=weights)
    sources, said = _sources(task)
    random = np.random.default_rng(0)
    arrays = {tensor.name: array for tensor, array in zip(function.inputs, _drawn(function, random), strict=True)}
    constants = {name: arrays[name] for name in weights}
    given = [array for name, array in arrays.items() if name not in constants]
    written = build(function, threads=1, constants=constants)
    default = _built(task, sources, constants)
    outs = [[room(a) for a in kernel.arguments[len(given) :]] for kernel in (written, default)]
    calls = [k.bound(*given, out=out) for k, out in zip((written, default), outs, strict=True)]
    for each in calls:
        each()
    for one, other in zip(*outs, strict=True):
        np.testing.assert_allclose(_wide(other), _wide(one), rtol=2e-2 if one.itemsize < 4 else 1e-3, atol=1e-3)
    size = sum(array.nbytes for array in (*arrays.values(), *outs[0]))
    source, target = (np.ones(size // 8 + 1, np.float32) for _ in range(2))
    turns: list[Callable[[], object]] = [*calls, partial(np.negative, source, target)]
    peak = Arithmetic(1)
    found: list[list[float]] = [[] for _ in turns]
    rates = []
    for _ in range(ROUNDS):
        rates.append(peak.probe(0.02).rate)
        for samples, call in zip(found, turns, strict=True):
            samples.append(_taken(call))
    work = sum(_work(one.schedule.program) * one.occurrences for one in task.groups or (task,))
    slow, fast, copy = map(min, found)
    return Row(slow, fast, work / max(rates), copy, said)


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind not in "iub" else array


def _drawn(function: te.Function, random: np.random.Generator) -> Iterator[Array]:
    kernel = build(function, threads=1)
    for tensor, argument in zip(function.inputs, kernel.arguments, strict=False):
        yield np.arange(argument.shape[0], dtype=argument.dtype) if tensor.name == "I" else draw(argument, random)


def _sources(task: SearchTask) -> tuple[dict[str, Source], str]:
    """The preferred script of each group, and what is said of all."""
    sources, said = {}, []
    for one in task.groups or (task,):
        start = time.process_time()
        derivation = preferred(one.schedule, RULES, one.machine, 1)
        seconds = time.process_time() - start
        schedule = derivation.draft.schedule
        verdict = verify_schedule(schedule.program, one.schedule.program)
        sources[one.name.removeprefix(f"{task.name}.")] = Source(str(schedule.script), "default", str(verdict))
        said.append(f"{str(verdict)[:30]} {seconds * 1e3:.0f} ms [{derivation.name}]")
    return sources, " | ".join(said)


def _built(task: SearchTask, sources: dict[str, Source], constants: dict[str, Array]) -> Kernel:
    if task.groups:
        whole = task._whole
        assert whole is not None
        return build_groups(whole.module, sources, 1, "contract", whole.own_names(constants), whole.hashes)
    single, script = task._single, sources[task.name].script
    assert single is not None and script is not None
    schedule = Schedule(single.spelled(task.schedule_of(script)))
    return build(schedule, threads=1, constants=constants) if constants else build(schedule, threads=1)


def _work(program: Program) -> float:
    """Floating-point operations of reductions: what else there is costs less than its bytes."""
    return float(sum(flops(b) * instances(program, b) for b in program.blocks.values() if b.combiners))


def _taken(call: Callable[[], object]) -> float:
    """CPU seconds of a call, as many in succession as last long enough."""
    count = 1
    while True:
        start = time.process_time()
        for _ in range(count):
            call()
        spent = time.process_time() - start
        if spent >= BURST:
            return spent / count
        count = max(2 * count, int(count * BURST / max(spent, 1e-6)))


def chosen(patterns: Sequence[str]) -> Iterator[tuple[str, str, Made]]:
    """The cases that patterns name: a family, or FAMILY/NAME with wildcards."""
    for family, cases in FAMILIES.items():
        for name, make in cases.items():
            if not patterns or any(fnmatch(family, p) or fnmatch(f"{family}/{name}", p) for p in patterns):
                yield family, name, make


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__)
    parser.add_argument("cases", nargs="*", help="FAMILY, or FAMILY/NAME with wildcards")
    shares, gains = [], []
    print(HEAD)
    for _, name, make in chosen(parser.parse_args().cases):
        try:
            row = measured(make())
        except (StrataError, AssertionError) as error:
            print(f"{name:28} {str(error).strip().splitlines()[0][:120]}", flush=True)
            continue
        shares.append(row.share)
        gains.append(row.written / row.default)
        print(f"{name:28} {row}", flush=True)
    if shares:
        print(f"of bounds: geometric mean {_mean(shares):.0%}, least {min(shares):.0%};", end=" ")
        print(f"gain over written: geometric mean {_mean(gains):.2f}, least {min(gains):.2f}")


def _mean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


if __name__ == "__main__":
    main()
