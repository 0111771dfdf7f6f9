"""Random programs of 6 to 15 computes over all dtypes: the evaluator of te, the loop interpreter and the compiled
program agree, under each floating-point policy.

`python -m tests.fuzz.programs --seed 0 --cases 1000` runs many and reports each failure.
"""

from __future__ import annotations

import random
import sys

import numpy as np

import compiler
from compiler.fuzz import programs as random_programs
from compiler.fuzz.programs import arrays_for, program
from compiler.interpret import te as evaluator
from tests.fuzz.alarm import asked, failures_of
from tests.fuzz.scripts import interpreted
from tests.schedules import lowered

DTYPES = (*random_programs.DTYPES, "u16", "u32", "u64")


POLICIES = ("strict", "contract", "fast")
SECONDS = 60
"""The most that one program may take, on a machine that others use as well."""
ULPS = 64
"""Errors, in units of the last place of the largest element, that may come together in a chain of computes."""


def agree(found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether a result is right: integers exactly, floats up to errors of rounding relative to the largest element;
    infinities and NaN stand where they should."""
    if found.dtype.kind in "biu":
        return np.array_equal(found, expected)
    precision = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
    wide, exact = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(exact)
    largest = float(np.abs(exact[finite]).max(initial=0.0))
    if largest > 0.25 * limit(expected.dtype):  # whether the next operation overflows is a matter of rounding
        return True
    same = np.array_equal(np.isnan(wide), np.isnan(exact)) and np.array_equal(
        wide[np.isinf(exact)], exact[np.isinf(exact)]
    )
    tolerance = ULPS * precision[expected.dtype.name] * max(1.0, largest)
    return same and bool((np.abs(wide[finite] - exact[finite]) <= tolerance).all())


def limit(dtype: np.dtype) -> float:  # type: ignore[type-arg]
    """The largest finite number of a float."""
    return {"bfloat16": 3.38e38, "float16": 65504.0, "float32": 3.4e38}.get(dtype.name, 1.7e308)


def check(seed: int) -> None:
    """Run one program in all ways. Raises AssertionError."""
    rng = random.Random(seed)
    function = program(rng, rng.randint(6, 15), DTYPES[seed % len(DTYPES)])
    arrays = arrays_for(function, seed)
    with np.errstate(all="ignore"):
        expected = list(evaluator.evaluate(function.module, arrays))
        actual = {"interpreter": interpreted(lowered(function), arrays, expected)}
    for policy in POLICIES if seed % 3 == 0 else ("contract",):
        outputs = compiler.build(function, policy=policy)(*arrays)
        actual[policy] = list(outputs) if isinstance(outputs, tuple) else [outputs]
    for way, outputs in actual.items():
        for position, (computed, wanted) in enumerate(zip(outputs, expected, strict=True)):
            assert agree(computed, wanted), (
                f"result {position} of {way} is wrong: {computed.ravel()[:6]}, expected {wanted.ravel()[:6]}"
            )


def main(seed: int, cases: int) -> int:
    """Run seeds from the first on; the number of failures."""
    failures = failures_of("programs", check, range(seed, seed + cases), SECONDS)
    print(f"programs: {cases} programs, {failures} failures")
    return failures


if __name__ == "__main__":
    sys.exit(main(*asked(__doc__)) > 0)
