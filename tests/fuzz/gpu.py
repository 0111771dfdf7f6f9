"""Random programs as CUDA runs them when nobody schedules them: proved, on several threads, without a fault on numpy,
and right.

`python -m tests.fuzz.gpu --seed 0 --cases 1000` runs many and reports each failure.
"""

from __future__ import annotations

import random
import sys

import numpy as np

from compiler import te
from compiler.fuzz.programs import arrays_for, program
from compiler.interpret import te as evaluator
from compiler.pipeline.loops import lower_to_kernels
from compiler.targets import simt
from tests.fuzz.alarm import asked, failures_of
from tests.fuzz.programs import agree
from tests.gpu_schedules import default, serial_blocks

EXTENTS = (2, 3, 7, 16, 33, 40, 64, 100, 257, 1000)
LARGEST = 4000
MOST = 64
"""The most iterations of one thread alone."""
SECONDS = 60
"""The most that one program may take, on a machine that others use as well."""


def drawn(seed: int) -> te.Function:
    """A program, whose reductions may be long."""
    return program(random.Random(seed), extents=EXTENTS, largest=LARGEST)


def check(seed: int) -> None:
    """Schedule and run one program. Raises AssertionError."""
    function = drawn(seed)
    s = default(function)
    assert serial_blocks(s.program, MOST) == {}
    assert str(s.verify()) == "proved", str(s.verify())
    arrays = arrays_for(function, seed)
    module, _, _ = lower_to_kernels(s.module.clone())
    with np.errstate(all="ignore"):
        expected = evaluator.evaluate(function.module, arrays)
        checked = simt.run(module, arrays, counts=False)
    assert checked.is_correct, str(checked.faults[0])
    for position, (out, want) in enumerate(zip(checked.outputs, expected, strict=True)):
        assert agree(np.asarray(out).view(want.dtype), want), f"result {position} is wrong"


def main(seed: int, cases: int) -> int:
    """Run seeds from the first on; the number of failures."""
    failures = failures_of("gpu", check, range(seed, seed + cases), SECONDS)
    print(f"gpu: {cases} programs, {failures} failures")
    return failures


if __name__ == "__main__":
    sys.exit(main(*asked(__doc__)) > 0)
