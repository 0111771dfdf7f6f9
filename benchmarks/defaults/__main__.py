"""`python -m benchmarks.defaults [FAMILY[/NAME] ...]`: what defaults reach of their bounds, and of what is written.

The bound of a group is the longer of two times: of its multiplications and additions at the machine's ceiling, and of
negating an array into another, together as large as its arguments. Both are taken in turns with the kernels. Times
are of CPU time of one thread, so that a neighbour on the machine counts little; weights are constant.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import partial
from math import exp, log
from pathlib import Path

import numpy as np

import compiler
from benchmarks.defaults.cases import FAMILIES, Made
from benchmarks.defaults.timing import least
from compiler import te
from compiler.analysis.cost import flops, instances
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.driver.reference.cases import draw
from compiler.program.tree import Block, Program
from compiler.support.errors import StrataError
from compiler.targets.arguments import Argument, Array, new_array
from compiler.targets.cpu import Kernel
from compiler.targets.cpu.ceilings import Arithmetic
from compiler.types.elements import element_bytes

PROBE = 0.02
"""Seconds of a probe of the ceiling."""
ROUNDS = 7


@dataclass(frozen=True)
class Row:
    """The figures of a case. written, default, tuned: seconds as written, by default, and tuned if asked for.
    arithmetic, copy: its bounds, the seconds of its operations at the machine's peak and of a copy of its bytes. said:
    the sources and verdicts of its schedules. peers: seconds by runtime."""

    written: float
    default: float
    arithmetic: float
    copy: float
    said: str
    tuned: float | None = None
    peers: Mapping[str, float] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """The fraction of the bound that the default reaches."""
        return max(self.arithmetic, self.copy) / self.default

    def __str__(self) -> str:
        of = "flops" if self.arithmetic > self.copy else "bytes"
        gain = self.written / self.default
        tuned = "" if self.tuned is None else f" {self.tuned * 1e3:9.3f} {self.tuned / self.default:6.0%}"
        times = f"{self.written * 1e3:9.3f} {self.default * 1e3:9.3f}"
        peers = "".join(f" {name} {time * 1e3:.3f}" for name, time in self.peers.items())
        return f"{times} {gain:7.2f} {self.share:7.0%} {of}{tuned} {peers} {self.said}"


def measured(function: te.Function, database: Path | None = None, trials: int = 0) -> Row:
    """Measure a function by `measured_module`, with the inputs whose names begin with W or b as constants."""
    weights = [tensor.name for tensor in function.inputs if tensor.name[0] in "Wb"]
    return measured_module(function, weights, database, trials)


Peers = Callable[[Mapping[str, Array]], Mapping[str, Callable[..., Array]]]
"""Other compilers: given the weights, each is a call of the other inputs that returns the result."""


def measured_module(
    x: object, weights: Sequence[str], database: Path | None = None, trials: int = 0, peers: Peers | None = None
) -> Row:
    """Measure a program whose inputs named `weights` are constant, also tuned if there is a database.

    A task without records in the database is first tuned with `trials` trials; peers are timed beside. Raises
    StrataError for a program that cannot be built, AssertionError for results that differ.
    """
    task = SearchTask(x, threads=1, constants=weights)
    written = compiler.build(x, threads=1, schedule="written")
    random = np.random.default_rng(0)
    inputs = written.arguments[: len(written.arguments) - written.outputs]
    arrays = {a.name: _drawn(a, random) for a in inputs}
    constants = {name: array for name, array in arrays.items() if name in weights}
    given = [array for name, array in arrays.items() if name not in constants]
    kernels = [written if not constants else _built(x, constants, "written"), _built(x, constants, "auto")]
    if database is not None:
        _tune(task, database, trials)
        kernels.append(_built(x, constants, database))
    outs = [[new_array(a) for a in kernel.arguments[len(given) :]] for kernel in kernels]
    calls = [kernel.bound(*given, out=out) for kernel, out in zip(kernels, outs, strict=True)]
    for each in calls:
        each()
    peer_calls = {name: partial(call, *given) for name, call in (peers(constants) if peers else {}).items()}
    _compare([*outs, *([call()] for call in peer_calls.values())])
    size = sum(array.nbytes for array in (*arrays.values(), *outs[0]))
    source, target = (np.ones(size // 8 + 1, np.float32) for _ in range(2))
    seconds, rate = _turns([*calls, partial(np.negative, source, target), *peer_calls.values()])
    every = sum(work(group.schedule.program) * group.occurrences for group in task.groups or (task,))
    times, (copy, *beside) = seconds[: len(calls)], seconds[len(calls) :]
    said = ", ".join(dict.fromkeys(f"{group.source}, {group.verdict[:40]}" for group in kernels[1].groups))
    tuned = times[2] if database is not None else None
    return Row(times[0], times[1], every / rate, copy, said, tuned, dict(zip(peer_calls, beside, strict=True)))


def _built(x: object, constants: Mapping[str, Array], schedule: object) -> Kernel:
    return compiler.build(x, threads=1, constants=constants or None, schedule=schedule)


def _tune(task: SearchTask, database: Path, trials: int) -> None:
    """Tune a task with `trials` trials unless the database has records of it."""
    if not database.exists() or not task.records(database):
        task.tune(TuningOptions(trials=trials, database=str(database)))


def _compare(outs: Sequence[Sequence[Array]]) -> None:
    for outputs in outs[1:]:
        for expected, actual in zip(outs[0], outputs, strict=True):
            tolerance = 2e-2 if expected.itemsize < 4 else 1e-3
            np.testing.assert_allclose(_wide(actual), _wide(expected), rtol=tolerance, atol=tolerance)


def _turns(calls: Sequence[Callable[[], object]]) -> tuple[list[float], float]:
    """The least CPU seconds of each call, taken in turns, and the operations a second that the machine reached."""
    peak = Arithmetic(1)
    rounds = [(peak.probe(PROBE).rate, least(calls, 1)) for _ in range(ROUNDS)]
    rates, samples = zip(*rounds, strict=True)
    return [min(each) for each in zip(*samples, strict=True)], max(rates)


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind not in "iub" else array


def _drawn(argument: Argument, random: np.random.Generator) -> Array:
    """Random elements; integers may be indices, so they are not negative."""
    drawn = draw(argument, random)
    return np.abs(drawn) if drawn.dtype.kind == "i" else drawn


def work(program: Program) -> float:
    """Floating-point operations of reductions: other operations cost less than their bytes."""
    return float(sum(_operations(program, b) for b in program.blocks.values() if b.combiners))


def _operations(program: Program, block: Block) -> float:
    """The operations of a block, each of f64 counted twice: a vector has half the lanes."""
    wide = element_bytes(program.buffers[block.writes[0].buffer].element) == 8
    return float(flops(block) * instances(program, block) * (2 if wide else 1))


def chosen(patterns: Sequence[str]) -> Iterator[tuple[str, str, Made]]:
    """Yield the family, the name and the maker of the cases that match one of the patterns, FAMILY or FAMILY/NAME with
    wildcards; of all cases without patterns."""
    for family, cases in FAMILIES.items():
        for name, make in cases.items():
            if not patterns or any(fnmatch(family, p) or fnmatch(f"{family}/{name}", p) for p in patterns):
                yield family, name, make


def arguments() -> argparse.ArgumentParser:
    """The options of this benchmark and of that of networks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tuned", metavar="DATABASE", type=Path, help="a database of records; tuned are also measured")
    parser.add_argument("--trials", type=int, default=32, help="how many for what the database does not have")
    return parser


class Table:
    """Rows, printed as they are measured, and their means."""

    def __init__(self, tuned: bool) -> None:
        self.rows: list[Row] = []
        beside = f"{'tuned':>15} {'share':>6}" if tuned else ""
        print(f"{'':28} {'written':>9} {'default':>9} {'gain':>7} {'bound':>7}{beside}")

    def add(self, name: str, measure: Callable[[], Row]) -> Row | None:
        """Measure a case, print its row and return it; for a refused or wrong case print a sentence and return None."""
        try:
            row = measure()
        except (StrataError, AssertionError) as error:
            print(f"{name:28} {str(error).strip().splitlines()[0][:120]}", flush=True)
            return None
        self.rows.append(row)
        print(f"{name:28} {row}", flush=True)
        return row

    def conclude(self) -> None:
        """Print the means."""
        for peer in dict.fromkeys(name for row in self.rows for name in row.peers):
            ratios = [row.peers[peer] / row.default for row in self.rows if peer in row.peers]
            print(f"times faster than {peer}: {_spread(ratios)}")
        shares, gains = [row.share for row in self.rows], [row.written / row.default for row in self.rows]
        tuned = [row.tuned / row.default for row in self.rows if row.tuned is not None]
        for what, values in (("share of the bound", shares), ("gain over written", gains), ("of tuned", tuned)):
            if values:
                print(f"{what}: {_spread(values)}")


def _spread(values: Sequence[float]) -> str:
    return f"geometric mean {exp(sum(map(log, values)) / len(values)):.2f}, least {min(values):.2f}"


def main() -> None:
    """Measure and print."""
    parser = arguments()
    parser.add_argument("cases", nargs="*", help="FAMILY, or FAMILY/NAME with wildcards")
    options = parser.parse_args()
    table = Table(options.tuned is not None)
    for _, name, make in chosen(options.cases):
        table.add(name, lambda make=make: measured(make(), options.tuned, options.trials))  # type: ignore[misc]
    table.conclude()


if __name__ == "__main__":
    main()
