"""Random programs under random scripts, judged at every step: a refusal changes nothing, what is accepted is never
refuted, results stay right, and the script replays.

`python -m tests.fuzz.scripts --seed 0 --cases 1000` runs many and reports each failure; `make fuzz` runs all fuzzers.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler.analysis.verify.prove import Verdict, verify_schedule
from compiler.dialects.dominance import verify_module
from compiler.fuzz.programs import arrays_for, program
from compiler.fuzz.scripts import Walker
from compiler.interpret import loop as interpreter
from compiler.interpret import te as evaluator
from compiler.pipeline.source import parse
from compiler.program.write import write
from compiler.schedule import Schedule, replay
from compiler.support.errors import LoweringError
from compiler.te import Function
from tests.faults import FAULTS
from tests.fuzz.alarm import alarm, asked
from tests.schedules import lowered

STEPS = 15
SECONDS = 10
"""The most that one step, or one proof, may take."""
NATIVE = 10
"""One of so many seeds is compiled as well."""


def close(found: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    """Whether results are right, up to what reassociation may change."""
    return all(_close(f, e) for f, e in zip(found, expected, strict=True))


def _close(found: np.ndarray, expected: np.ndarray) -> bool:
    if found.dtype.kind in "biu":
        return np.array_equal(found, expected)
    tolerance = {"float16": 2e-2, "bfloat16": 0.2}.get(found.dtype.name, 1e-3)
    wide, exact = found.astype(np.float64), expected.astype(np.float64)
    return np.allclose(wide, exact, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(exact).max())))


def interpreted(module: ModuleOp, arrays: list[np.ndarray], expected: list[np.ndarray]) -> list[np.ndarray]:
    """The results of the loop interpreter, outputs poisoned before."""
    collected = [np.full_like(e, 77 if e.dtype.kind in "biu" else np.nan) for e in expected]
    interpreter.run(module, [*arrays, *collected])
    return collected


def walk(seed: int, steps: int = STEPS, judge: bool = False, constants: float = 0.0) -> tuple[Function, Walker]:
    """A random program under a random script; with `judge`, what is accepted is proved at each step, and none is
    refuted. A part of the inputs is constant."""
    rng = random.Random(seed)
    function = program(rng, constants=constants)
    walker = Walker(Schedule(lowered(function), seed=seed), rng)
    for _ in range(rng.randint(1, steps)):
        before = walker.s.program
        with alarm(SECONDS):
            walker.step()
        if judge and walker.s.program is not before:
            with alarm(SECONDS):
                verdict = walker.s.verify()
            assert verdict.answer != "refuted", f"accepted and refuted: {walker.last}: {verdict}"
    return function, walker


def check(seed: int, native: bool, judge: bool = True, constants: float = 0.0) -> tuple[Walker, Verdict]:
    """Run and check one seed; the walk, and the last verdict."""
    function, walker = walk(seed, judge=judge, constants=constants)
    s = walker.s
    verify_module(s.module)
    arrays = arrays_for(function, seed)
    expected = list(evaluator.evaluate(function.module, arrays))
    assert close(interpreted(s.module, arrays, expected), expected), "a wrong result"
    again = replay(parse(str(s.script)), s)
    assert str(again.module) == str(s.module), "the replayed script gives another module"
    assert str(again.script) == str(s.script), "the replayed script is another"
    verdict = s.verify()
    assert verdict.answer != "refuted", str(verdict)
    if native:
        try:
            outputs = compiler.build(s)(*arrays)
        except LoweringError as error:
            said = ("is bound to", "in a vectorized loop", "inside the parallel loop", "prefetches for loop")
            assert any(words in str(error) for words in said), str(error)
        else:
            outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
            assert close(outputs, expected), "a wrong result of the compiled program"
    return walker, verdict


def check_fault(seed: int) -> str:
    """Plant a fault in a random schedule: it must not be proved where it changes the results."""
    function, walker = walk(seed, 6)
    rng = random.Random(seed)
    name = rng.choice(sorted(FAULTS))
    wrong = FAULTS[name](walker.s.program, rng)
    if wrong is None:
        return "none"
    verdict = verify_schedule(wrong, Schedule(walker.s.original).program)
    arrays = arrays_for(function, seed)
    expected = list(evaluator.evaluate(function.module, arrays))
    try:
        right = close(interpreted(ModuleOp([write(wrong)]), arrays, expected), expected)
    except interpreter.InterpretError:
        right = False
    assert right or verdict.answer != "proved", f"{name} was proved"
    return verdict.answer


def main(seed: int, cases: int) -> int:
    """Run seeds from the first on, a part compiled, a part with faults planted; the number of failures."""
    accepted: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    failures = 0
    for number, left in enumerate(range(seed, seed + cases), 1):
        try:
            walker, verdict = check(left, native=left % NATIVE == 0)
            accepted += walker.accepted
            refused += walker.refused
            answers[verdict.answer] += 1
            if left % 4 == 0:
                answers[f"fault {check_fault(left)}"] += 1
        except Exception as error:  # each seed is judged on its own, and all of them are reported
            failures += 1
            at = error.__traceback__
            while at is not None and at.tb_next is not None:
                at = at.tb_next
            where = f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}" if at is not None else ""
            print(f"scripts: seed {left}: {type(error).__name__}: {str(error)[:300]} ({where})", flush=True)
        if number % 250 == 0:
            print(f"scripts: {number} programs, {failures} failures", flush=True)
    for name in sorted(accepted | refused):
        print(f"{name:<22} accepted {accepted[name]:6}  refused {refused[name]:6}")
    print(f"scripts: {cases} programs, {sum(accepted.values())} accepted steps, {failures} failures; {dict(answers)}")
    return failures


if __name__ == "__main__":
    sys.exit(main(*asked(__doc__)) > 0)
