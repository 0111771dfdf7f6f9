"""Naive programs, built without a trial, beside hand-written schedules of them, in turns.

Run as `python -m benchmarks.equal_programs.hand_written [--rounds N]`. The scripts are those of
`compiler/bench/schedules.py`, each of the spelling that it is written for; the chain of products is scheduled by hand
in its best order. The ratio is the naive program's time over the script's.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import compiler
from benchmarks.equal_programs import FAMILIES, Family
from benchmarks.equal_programs.__main__ import in_turns
from benchmarks.equal_programs.family import Spelled
from compiler import te
from compiler.bench import schedules
from compiler.pipeline.loops import lower
from compiler.schedule import Schedule
from compiler.targets.cpu import Kernel
from compiler.types.machines import host


def _best_order(a: te.Tensor, b: te.Tensor, c: te.Tensor, d: te.Tensor) -> te.Tensor:
    """A B C D in the order of the fewest multiplications for the family's sizes: A ((B C) D)."""
    return te.nn.matmul(te.nn.matmul(a, te.nn.matmul(b, c)), d)


SCRIPTS: dict[str, tuple[Spelled | None, schedules.Script, tuple[str, ...]]] = {
    "softmax": (None, schedules.by_rows, ("max, exp, sum, division", "powers computed twice")),
    "layer norm": (None, schedules.by_rows, ("mean of squared deviations",)),
    "attention": (None, schedules.attention, ("softmax by hand", "scaled before the product")),
    "chain of products": (
        _best_order,
        schedules.products,
        ("from the right to the left", "from both ends", "transposed"),
    ),
}
"""By family the spelling that is scheduled by hand, None for the first one; its script; and naive spellings."""


def kernels(family: Family) -> Iterator[tuple[str, Kernel]]:
    """Yield ("by hand", the hand-scheduled kernel), then the family's first spelling and its naive ones, each by name,
    built without a trial."""
    made, script, names = SCRIPTS[family.name]
    schedule = Schedule(lower(family.function(made or family.first, family.large)))
    script(schedule, host(), 1)
    yield "by hand", compiler.build(schedule, threads=1, policy=family.policy)
    spellings: dict[str, Spelled] = {"first": family.first} | {name: family.others[name].made for name in names}
    for name, spelled in spellings.items():
        function = family.function(spelled, family.large)
        yield name, compiler.build(function, threads=1, policy=family.policy, schedule="auto")


def main() -> None:
    """Print a row for each naive program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    print(f"{'':50}{'by hand, us':>12}{'naive, us':>12}{'ratio':>7}")
    for family in (family for family in FAMILIES if family.name in SCRIPTS):
        named, arrays = dict(kernels(family)), family.arrays(family.large)
        by_hand, *naive = in_turns(list(named.values()), arrays, rounds)
        for name, seconds in zip(list(named)[1:], naive, strict=True):
            row = f"{family.name + ': ' + name:50}{by_hand * 1e6:12.1f}{seconds * 1e6:12.1f}"
            print(f"{row}{seconds / by_hand:7.2f}", flush=True)


if __name__ == "__main__":
    main()
