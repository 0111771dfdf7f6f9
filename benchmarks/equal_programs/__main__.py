"""Whether equal programs have one text, and their times, in turns.

Run as `python -m benchmarks.equal_programs [--rounds N] [PART ...]`, for pairs whose names have a part. Both programs
of a pair are built without a trial for one thread, and their results compared with numpy's. *text* is `canonical` where
te-canonicalize makes them one, `choice` where te-alternatives does; ratio is the slower one's time over the other's.
Pairs of law `none` only look equal: they have no common text, and other results.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

import compiler
from benchmarks.equal_programs import FAMILIES, Law, Pair, pairs
from compiler import te
from compiler.alternatives import PROGRAM_LAWS
from compiler.alternatives.law import Conditions
from compiler.alternatives.program import rewrite_graph
from compiler.dialects.functions import find_function
from compiler.graph.canonical import canonical
from compiler.graph.read import read
from compiler.targets.cpu import Kernel
from compiler.types.machines import host

BUDGET = 0.02
"""Seconds of calls of each program in a round."""


def texts(function: te.Function, policy: str) -> tuple[str, str]:
    """The hash of the canonical form of a program, and that of its best form under a policy."""
    form = canonical(read(find_function(function.module)))
    best = rewrite_graph(form.graph, Conditions(host(), policy), PROGRAM_LAWS).form
    return form.hash, form.hash if best is None else best.hash


def common_text(functions: tuple[te.Function, te.Function], policy: str) -> str:
    """The pass after which two programs have one text: `canonical` (te-canonicalize), `choice` (te-alternatives) or
    `none`."""
    (first, best), (second, other) = (texts(function, policy) for function in functions)
    return "canonical" if first == second else "choice" if best == other else "none"


def error(outputs: Any, wanted: Any) -> float:
    """The largest error of some outputs over the largest element of its output; infinite for NaN."""
    both = zip(*(x if isinstance(x, tuple | list) else (x,) for x in (outputs, wanted)), strict=True)
    errors = [np.abs(a - b).max() / np.abs(b).max() for a, b in both]
    return float(np.nan_to_num(max(errors), nan=np.inf))


def in_turns(kernels: Sequence[Kernel], arrays: Sequence[Any], rounds: int) -> list[float]:
    """The median seconds of a call of each of some kernels, in turns."""
    repeats = [max(3, int(BUDGET / kernel.time(*arrays).median)) for kernel in kernels]
    times: list[list[float]] = [[] for _ in kernels]
    for _ in range(rounds):
        for taken, kernel, count in zip(times, kernels, repeats, strict=True):
            taken.append(kernel.time(*arrays, repeats=count).median)
    return list(map(median, times))


def measured(pair: Pair, rounds: int) -> tuple[float, float]:
    """The median seconds of a call of each program of a pair. Raises AssertionError for a wrong result of a program
    that is meant to be right."""
    family, shapes = pair.family, pair.family.large
    functions, arrays = pair.functions(shapes), family.arrays(shapes)
    kernels = [compiler.build(f, threads=1, policy=family.policy, schedule="auto") for f in functions]
    wanted = family.value(*arrays)
    for kernel in kernels if pair.other.law is not Law.NONE else kernels[:1]:
        assert error(kernel(*arrays), wanted) < 1e-4, f"{family.name}, {pair.name}: a wrong result"
    first, other = in_turns(kernels, arrays, rounds)
    return first, other


def main() -> None:
    """Print a row for each pair."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", default=[""])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print(f"{'':62} {'law':7}{'text':10}{'first, us':>10}{'other, us':>10}{'ratio':>7}")
    for pair in pairs(FAMILIES):
        name, law = f"{pair.family.name}: {pair.name}", pair.other.law
        if any(part in f"{name} {law.value}" for part in options.parts):
            text = common_text(pair.functions(pair.family.large), pair.family.policy)
            first, other = measured(pair, options.rounds)
            times = f"{first * 1e6:10.1f}{other * 1e6:10.1f}{max(first, other) / min(first, other):7.2f}"
            print(f"{name:62} {law.value:7}{text:10}{times}", flush=True)


if __name__ == "__main__":
    main()
