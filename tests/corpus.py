"""A corpus of (program, script) pairs, and the text that each becomes: how a refactoring is proved.

    python -m tests.corpus pairs DIR              write the pairs that this checkout makes
    python -m tests.corpus emit DIR OUT [--some]  replay them here; each module and its LLVM or CUDA text to OUT
    python -m tests.corpus compare OUT OTHER      what differs; exit status 1 where anything does

Write the pairs once, emit in both checkouts, compare. `--some` takes every seventh pair.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import compiler
from compiler import universe
from compiler.autotune import SearchTask
from compiler.bench.schedules import scheduled
from compiler.bench.workloads import PRESETS, find
from compiler.driver import build_as_written
from compiler.fuzz.programs import program
from compiler.fuzz.scripts import Walker
from compiler.lowering.low_to_llvm import emit
from compiler.pipeline.to_llvm import passes_from
from compiler.schedule import Schedule, replay
from compiler.support.errors import LoweringError, ScheduleError, TargetError
from compiler.te import Function
from compiler.types.machines import host
from strata.passes import parse, run
from tests.operators import CASES
from tests.schedules import SCHEDULES, lowered, mm_exp_mm

CANDIDATES = 6
"""So many default candidates of a preset's space are pairs."""
SEEDS = 160
"""So many random programs under random scripts are pairs."""
SMALL = {"matmul_512", "matmul_127x333x511", "batched", "softmax", "layernorm", "attention", "mlp", "conv_7x7"}
"""The presets whose GPU spaces are asked."""


class Pair(NamedTuple):
    """A loop-level program, the script that is applied to it, and for which target, both as text."""

    name: str
    target: str
    program: str
    script: str


def pairs() -> Iterator[Pair]:
    """The pairs of this checkout."""
    for name in PRESETS:
        for threads in (1, 2):
            by_hand = scheduled(find(name), threads)
            if by_hand is not None:
                yield _pair(f"hand-{name}-{threads}", "cpu", by_hand)
        yield from _candidates(name, find(name).function(), "cpu")
        if name in SMALL:
            yield from _candidates(name, find(name).function(), "cuda")
    for name, make in SCHEDULES.items():
        schedule = Schedule(lowered(mm_exp_mm()))
        make(schedule)
        yield _pair(f"kind-{name}", "cpu", schedule)
    for name, function in CASES.items():
        yield _pair(f"operator-{name}", "cpu", Schedule(compiler.lower(function() if callable(function) else function)))
    for seed in range(SEEDS):
        rng = random.Random(seed)
        walker = Walker(Schedule(lowered(program(rng)), seed=seed), rng)
        for _ in range(rng.randint(1, 15)):
            walker.step()
        yield _pair(f"random-{seed}", "cpu", walker.s)


def _candidates(name: str, function: Function, target: str) -> Iterator[Pair]:
    gpu = {"arch": "sm_80"} if target != "cpu" else {"threads": 1}
    task = SearchTask(func=function, target=target, **gpu)
    for number, candidate in enumerate(task.space.defaults[:CANDIDATES]):
        schedule = replay(parse(task.space.script(candidate), "x"), task.module)
        yield _pair(f"candidate-{target}-{name}-{number}", target, schedule)


def _pair(name: str, target: str, schedule: Schedule) -> Pair:
    return Pair(name, target, str(schedule.original), str(schedule.script))


def emitted(pair: Pair) -> dict[str, str]:
    """What a pair becomes: the scheduled module, and the LLVM or CUDA text; or the refusal."""
    schedule = Schedule(parse(pair.program, pair.name)).apply(parse(pair.script, pair.name))
    texts = {"module": str(schedule.module)}
    try:
        texts[pair.target] = (
            _llvm(schedule) if pair.target == "cpu" else build_as_written(schedule, "cuda", arch="sm_80").text
        )
    except (LoweringError, ScheduleError, TargetError) as error:
        texts[pair.target] = f"refused: {error}"
    return texts


def _llvm(schedule: Schedule) -> str:
    module = schedule.module.clone()
    run(universe.context(), module, passes_from("loop", "contract"))
    return emit(module, host())


def _write(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    made = [pair._asdict() for pair in pairs()]
    (folder / "pairs.json").write_text(json.dumps(made))
    print(f"{len(made)} pairs")
    return 0


def _emit(folder: Path, out: Path, step: int) -> int:
    out.mkdir(parents=True, exist_ok=True)
    chosen = [Pair(**pair) for pair in json.loads((folder / "pairs.json").read_text())][::step]
    begun = time.perf_counter()
    for pair in chosen:
        for kind, text in emitted(pair).items():
            (out / f"{pair.name.replace('/', '_')}.{kind}").write_text(text)
    print(f"{len(chosen)} pairs in {time.perf_counter() - begun:.1f} s")
    return 0


def _compare(out: Path, reference: Path) -> int:
    names = sorted(path.name for path in out.iterdir())
    differing = [name for name in names if (out / name).read_text() != (reference / name).read_text()]
    print(*(f"differs: {name}" for name in differing), f"{len(names)} texts, {len(differing)} differ", sep="\n")
    return 1 if differing else 0


def main(arguments: list[str]) -> int:
    match arguments:
        case ["pairs", folder]:
            return _write(Path(folder))
        case ["emit", folder, out, *remaining]:
            return _emit(Path(folder), Path(out), 7 if remaining == ["--some"] else 1)
        case ["compare", out, reference]:
            return _compare(Path(out), Path(reference))
    print(__doc__)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
