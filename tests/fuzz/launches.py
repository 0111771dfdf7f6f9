"""Random programs as CUDA builds them by default, each for an architecture by its seed: nothing is refused, the
architecture takes each launch, and no kernel spills more than FEW bytes where NVRTC is installed.

`python -m tests.fuzz.launches --seed 0 --cases 1000` runs many and reports each failure.
"""

from __future__ import annotations

import random
import sys

import compiler
from compiler import te
from compiler.fuzz.programs import DTYPES, program
from compiler.targets.cuda import ARCHITECTURES, CudaKernel
from tests.fuzz.alarm import asked, failures_of

EXTENTS = (1, 2, 3, 7, 32, 33, 64, 100, 257, 1000)
LARGEST = 100_000
FEW = 16
"""The bytes that ptxas spills at times although registers are left."""
SECONDS = 60
"""The most that one program may take, on a machine that others use as well."""


def drawn(seed: int) -> tuple[te.Function, str]:
    """A program of one to five computes, and an architecture."""
    rng = random.Random(seed)
    dtype = DTYPES[seed // len(ARCHITECTURES) % len(DTYPES)]
    function = program(rng, rng.randint(1, 5), dtype, views=seed % 2 == 0, extents=EXTENTS, largest=LARGEST)
    return function, ARCHITECTURES[seed % len(ARCHITECTURES)]


def check(seed: int) -> None:
    """Build one program. Raises AssertionError, and the error of a build that is refused."""
    function, arch = drawn(seed)
    kernel = compiler.build(function, "cuda", arch=arch, schedule="auto")
    assert isinstance(kernel, CudaKernel) and kernel.source.takes(arch), f"launches beyond {arch}"
    unproved = [group.verdict for group in kernel.groups if "proved" not in group.verdict]
    assert not unproved, unproved[0]
    if kernel.can_compile:
        spilled = {name: r.spill_bytes for name, r in kernel.resources(arch).items() if r.spill_bytes > FEW}
        assert not spilled, f"{spilled} spill on {arch}"


def main(seed: int, cases: int) -> int:
    """Run seeds from the first on; the number of failures."""
    failures = failures_of("launches", check, range(seed, seed + cases), SECONDS)
    print(f"launches: {cases} programs, {failures} failures")
    return failures


if __name__ == "__main__":
    sys.exit(main(*asked(__doc__)) > 0)
