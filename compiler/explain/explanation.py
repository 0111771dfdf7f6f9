"""`Explanation`: all results about the code of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compiler.explain.builds import Builds
from compiler.explain.code import LoopCode, Outside, machine_code
from compiler.explain.nests import LoopNest, nests
from compiler.explain.profile import PeakProbe, Profile, profile
from compiler.explain.temporaries import Temporaries, temporaries
from compiler.support.errors import InputError
from compiler.support.text import counted
from compiler.targets.arguments import Array
from compiler.targets.cpu import Kernel

InputSource = Callable[[Kernel], Sequence[Array]]
"""A function that creates the inputs of a kernel."""


@dataclass(frozen=True)
class Explanation:
    """The results for a kernel: source loops, machine loops, instructions outside of these, times, temporaries.
    `profile` is None if the program was not run or has no loops."""

    kernel: Kernel
    nests: tuple[LoopNest, ...]
    codes: tuple[LoopCode, ...]
    outside: tuple[Outside, ...]
    profile: Profile | None
    temporaries: Temporaries


def explain(b: Builds, draw: InputSource | None = None, calls: int = 5, probe: PeakProbe | None = None) -> Explanation:
    """Analyse the code of a program. With `draw`, which creates inputs, also time `calls` calls, at least one, unless
    there are no loops; `probe`, if any, measures the machine's peak beside each call. Raises TargetError for an
    architecture whose assembly has no parser."""
    loop_nests = nests(b.module, b.function, b.program, b.places)
    code = machine_code(b, loop_nests)
    measured = None if draw is None or not loop_nests else profile(b, loop_nests, draw(b.kernel), calls, probe)
    return Explanation(b.kernel, loop_nests, code.loops, code.outside, measured, temporaries(b))


def loop_numbered(e: Explanation, number: int) -> LoopCode:
    """Return the machine loop with a number, which is at least 1. Raises InputError for a number above that of the
    loops."""
    if number > len(e.codes):
        raise InputError(f"there is no loop {number}: the machine code has {counted(len(e.codes), 'innermost loop')}")
    return e.codes[number - 1]
