"""CPU seconds of a first build, by stage, beside those of LLVM alone: `python -m benchmarks.cold_builds [NAME ...]`.

Each program is built in a process of its own on one processor, with the cache of machine code off, after a small build
has imported what builds need. A stage counts without the stages inside it:

    front     canonical form, groups, loops, and all that no other stage is
    rules     the schedule that rules prefer: applying their steps
    legality  judging these steps
    proof     verify-schedule
    passes    from scheduled loops to the low level
    emission  LLVM IR as text
    llvm      reading that text, optimising it, machine code
    prepared  running what depends on constants alone, such as the packing of weights

The next columns are the whole, and the whole without `prepared` by LLVM's. The last three are wall seconds on one
processor and on two, with an empty cache and without these timers, in processes that take turns, the least of REPEATS
of each; and their ratio.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

STAGES = {
    "rules": [("compiler.space.derivation", "preferred")],
    "legality": [("compiler.analysis.legal", "legal")],
    "proof": [("compiler.analysis.verify.prove", "verify_schedule")],
    "passes": [("compiler.driver.units.compile", "lowered")],
    "emission": [("compiler.lowering.low_to_llvm", "emit")],
    "llvm": [("compiler.targets.cpu.compile", "object_code")],
    "prepared": [("compiler.driver.main.constants", "fill")],
}
"""The functions that are timed, by stage."""
COLUMNS = ("front", *STAGES)
REPEATS = 3
PRODUCTS = "mm_exp_mm"
"""The one program that is no network."""


class Stages:
    """CPU seconds by stage; a stage counts without the stages inside it, and the rest counts as `front`."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(COLUMNS, 0.0)
        self._running = ["front"]
        self._since = time.process_time()

    def _switch(self) -> None:
        now = time.process_time()
        self.seconds[self._running[-1]] += now - self._since
        self._since = now

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls `function` and counts its time as that of a stage."""

        def call(*arguments: Any, **named: Any) -> Any:
            self._switch()
            self._running.append(stage)
            try:
                return function(*arguments, **named)
            finally:
                self._switch()
                self._running.pop()

        return call

    def install(self) -> None:
        """Replace the functions of STAGES by timed ones in all modules of the compiler that have imported them."""
        for stage, places in STAGES.items():
            for module, name in places:
                function = getattr(sys.modules[module], name)
                timed = self.timed(stage, function)
                for holder in [m for n, m in sys.modules.items() if n.startswith("compiler.")]:
                    for key, value in list(vars(holder).items()):
                        if value is function:
                            setattr(holder, key, timed)

    def done(self) -> dict[str, float]:
        """The CPU seconds of each stage since the object was made."""
        self._switch()
        return self.seconds


def program(name: str) -> Any:
    """The workload PRODUCTS, or a network of `benchmarks.torch_models`, imported from torch."""
    import strata
    from compiler.bench.workloads import find

    if name == PRODUCTS:
        return find(name).function()
    import torch

    from benchmarks.torch_models import MODELS

    torch.manual_seed(0)
    model, inputs = MODELS[name]
    return strata.from_torch(model().eval(), inputs())


def measure(name: str, stages: bool) -> None:
    """Build one program, and print the CPU seconds of each stage of COLUMNS or, without `stages`, the wall seconds."""
    import strata
    from strata import te

    built = program(name)
    small = te.placeholder((64, 48), name="A")
    weights = te.placeholder((48, 32), name="W")
    strata.build(te.function("small", [small, weights], te.nn.exp(te.nn.matmul(small, weights))), threads=1)
    if not stages:
        start = time.perf_counter()
        strata.build(built, threads=1)
        return print(time.perf_counter() - start)
    timers = Stages()
    timers.install()
    strata.build(built, threads=1)
    return print(*timers.done().values())


def measured(name: str, processors: str, option: str, cache: Mapping[str, str]) -> list[float]:
    """The numbers that `measure` prints in another process, on the processors of a list such as 0,1. option: --measure
    or --wall. cache: the environment variables of the cache."""
    command = ["taskset", "-c", processors, sys.executable, "-m", "benchmarks.cold_builds", option, name]
    run = subprocess.run(command, env={**os.environ, **cache}, capture_output=True, text=True, check=True)
    return [float(number) for number in run.stdout.splitlines()[-1].split()]


def wall(name: str, processors: str) -> float:
    """The wall seconds of a build on the processors of a list such as 0,1, with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        return measured(name, processors, "--wall", {"STRATA_CACHE_DIR": folder})[0]


def row(name: str) -> str:
    """The row of a program."""
    seconds = dict(zip(COLUMNS, measured(name, "0", "--measure", {"STRATA_CACHE": "off"}), strict=True))
    whole = sum(seconds.values())
    walls = [(wall(name, "0"), wall(name, "0,1")) for _ in range(REPEATS)]
    one, two = map(min, zip(*walls, strict=True))
    by_llvm = (whole - seconds["prepared"]) / seconds["llvm"]
    cells = " | ".join(f"{s:.2f}" for s in [*seconds.values(), whole])
    return f"| {name} | {cells} | {by_llvm:.1f} | {one:.2f} | {two:.2f} | {one / two:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold_builds", description=__doc__.split("\n")[0])
    parser.add_argument("--measure", metavar="NAME", help="build in this process, and print the seconds of each stage")
    parser.add_argument("--wall", metavar="NAME", help="build in this process, and print the seconds of the whole")
    parser.add_argument("names", nargs="*", default=[PRODUCTS, "ResNet-50", "MobileNetV2", "BERT-base, 128 words"])
    options = parser.parse_args(arguments)
    if options.measure or options.wall:
        return measure(options.measure or options.wall, stages=bool(options.measure))
    print(f"| | {' | '.join(COLUMNS)} | whole | by LLVM | one core | two cores | ratio |")
    print("|---" * (len(COLUMNS) + 6) + "|")
    for name in options.names:
        print(row(name), flush=True)


if __name__ == "__main__":
    main()
