"""Every operator under random scripts: refused with nothing changed, or right, and never refuted.

python -m tests.e2e.test_operator_schedules 20                  20 scripts for each operator
python -m tests.e2e.test_operator_schedules 20 conv2d softmax   for these
"""

from __future__ import annotations

import math
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.dialects.dominance import verify_module
from compiler.fuzz.scripts import Walker
from compiler.interpret import loop as interpreter
from compiler.interpret import te as evaluator
from compiler.pipeline.source import parse
from compiler.schedule import Schedule, replay
from compiler.support.errors import LoweringError
from tests import upstream
from tests.agreement import bound, error, poisoned, widened
from tests.operator_runs import references
from tests.operators import OPERATORS
from tests.operators.catalogue import Operator, Parameters
from tests.sample import some

STEPS = 8
POINTS = 3000
"""The most iterations of one function: the interpreter takes them one by one."""

PACKED = re.compile(r"memref<[\dx]*i1>, vector<")
"""Upstream loads and stores a vector of i1 as bits side by side, and a single one as a byte; ours are bytes."""

Arrays = list[np.ndarray]


def points(function: te.Function) -> int:
    """The iterations of all blocks of a function, unscheduled."""
    blocks = Schedule(compiler.lower(function)).program.blocks.values()
    return sum(math.prod(axis.size for axis in block.axes) for block in blocks)


def small(operator: Operator, dtype: str, rng: random.Random) -> tuple[Parameters, te.Function]:
    """A random function that the interpreter can run; the smallest of some where none is small enough."""
    drawn: list[tuple[Parameters, te.Function]] = []
    for _ in range(10):
        parameters = operator.sample(rng)
        drawn.append((parameters, operator.build(dtype, parameters)))
        if points(drawn[-1][1]) <= POINTS:
            return drawn[-1]
    return min(drawn, key=lambda sample: points(sample[1]))


def agree(dtype: str, actual: Arrays, expected: Arrays) -> None:
    """Results are right, up to what another order of sums may change."""
    for got, want in zip(actual, expected, strict=True):
        wrong = error(got, widened(want))
        assert wrong <= 10 * bound(dtype, got), f"an error of {wrong}"


def check(operator: Operator, number: int) -> tuple[Walker, str]:
    """Run and check one random script on one of the operator's dtypes; the walk, and the verdict of law 2."""
    dtype = operator.dtypes[number % len(operator.dtypes)]
    rng = random.Random(f"{operator.name} {dtype} {number}")
    parameters, function = small(operator, dtype, rng)
    walker = Walker(Schedule(compiler.lower(function), seed=number), rng)
    for _ in range(rng.randint(1, STEPS)):
        walker.step()
    s = walker.s
    verify_module(s.module)
    arrays = operator.inputs(function, number)
    expected = list(evaluator.evaluate(function.module, arrays))
    agree(dtype, expected, references(operator, parameters, arrays))
    outputs = poisoned(expected)
    interpreter.run(s.module, [*arrays, *outputs])
    agree(dtype, outputs, expected)
    again = replay(parse(str(s.script)), s)
    assert str(again.module) == str(s.module), "the replayed script gives another module"
    verdict = s.verify()
    assert verdict.answer != "refuted", str(verdict)
    for outputs in compiled(s, function, arrays, poisoned(expected)):
        agree(dtype, outputs, expected)
    return walker, verdict.answer


def compiled(s: Schedule, function: te.Function, arrays: Arrays, actuals: Arrays) -> Iterator[Arrays]:
    """The results of native code, ours and upstream's; none where a loop's kind has no code on the CPU."""
    try:
        kernel = compiler.build(s)
    except LoweringError as refused:
        assert "is bound to" in str(refused) or "in a vectorized loop" in str(refused)
        return
    kernel(*arrays, out=tuple(actuals))
    yield actuals
    if not upstream.missing() and not PACKED.search(kernel.text("low")):
        outputs = [(t.shape, t.dtype) for t in function.outputs]
        (actual,) = upstream.run([upstream.Case(kernel.text("low"), function.name, arrays, outputs)])
        assert not isinstance(actual, upstream.Failure), str(actual)
        yield actual


@pytest.mark.sampled
@pytest.mark.parametrize("name", some(OPERATORS, 4))
def test_a_random_script(name: str) -> None:
    check(OPERATORS[name], 0)


def seeds(names: list[str], count: int) -> Iterator[tuple[Operator, int]]:
    """Every pair to run."""
    for name in names or OPERATORS:
        yield from ((OPERATORS[name], number) for number in range(count))


def main(count: int, names: list[str]) -> int:
    """Run many scripts and report what was accepted, what was proved, and each failure with its seed."""
    steps: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    failed = 0
    for operator, number in seeds(names, count):
        try:
            walker, answer = check(operator, number)
        except Exception as wrong:  # each script is judged on its own, and all of them are reported
            failed += 1
            print(f"{operator.name} {number}: {type(wrong).__name__}: {str(wrong)[:300]} ({_place(wrong)})", flush=True)
        else:
            steps["accepted"] += sum(walker.accepted.values())
            steps["refused"] += sum(walker.refused.values())
            answers[answer] += 1
    print(f"{count} scripts an operator, steps {dict(steps)}, verdicts {dict(answers)}, {failed} failures")
    return int(failed > 0)


def _place(wrong: BaseException) -> str:
    at = wrong.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return f"{os.path.basename(at.tb_frame.f_code.co_filename)}:{at.tb_lineno}" if at is not None else ""


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
