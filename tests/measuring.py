"""What the tests of measuring share: small subjects, and an executor that plants faults in what was built.

`python -m tests.measuring` measures a candidate that never ends, for tests that end the process.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from compiler import lower, te
from compiler.autotune.measure.builder import Built
from compiler.autotune.measure.limits import Limits, Sampling
from compiler.autotune.measure.local import LocalExecutor
from compiler.autotune.measure.measurer import Measurer
from compiler.autotune.measure.runner import Affinity, Runner, RunnerSetup
from compiler.database.outcome import Outcome
from compiler.driver import build_unit
from compiler.driver.reference.subject import Subject
from compiler.driver.units.unit import Unit
from compiler.lowering.low_to_llvm.signature import Workspace
from compiler.schedule import Schedule
from compiler.targets.cpu import presence
from compiler.targets.cpu.compile import ObjectCode, object_code
from compiler.types.machines import host

Fault = Callable[[Unit], Unit]
QUICK = Limits(memory_bytes=2 << 30, sampling=Sampling(min_seconds=1e-4, min_samples=1, max_samples=2, seconds=0.05))


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that disturbs no call, however busy it is: no system says what would tell."""
    monkeypatch.setattr(presence, "_has_fine_clock", lambda: False)
    monkeypatch.setattr(presence, "_switches", lambda threads: 0)
    for name in ("_run_queue_waits", "_stolen_ticks"):
        monkeypatch.setattr(presence, name, dict)
    monkeypatch.setattr(presence, "_STEAL", presence._Steal())


def matmul(m: int = 9, k: int = 1000, n: int = 7, dtype: str = "f32", terms: int | None = None) -> te.Function:
    """A product, of whose sums only some terms may be taken."""
    a, b = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis(terms or k, "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.function("product", [a, b], [c])


def subject(function: te.Function, **stated: Any) -> Subject:
    return Subject(str(lower(function)), **stated)


def scripts(function: te.Function, *changes: Callable[[Schedule], object]) -> list[str]:
    """The script of each change of a te function."""
    collected = []
    for change in changes:
        schedule = Schedule(lower(function))
        change(schedule)
        collected.append(str(schedule.script))
    return collected


def none(s: Schedule) -> None:
    """No step at all."""


def split(s: Schedule) -> None:
    """Split the rows of C."""
    s.split(s.get_loops(s.get_block("C"))[0], [None, 4])


def with_code(unit: Unit, code: ObjectCode) -> Unit:
    """The unit with other machine code."""
    return replace(unit, call=replace(unit.call, object=code))


def native(body: str, declarations: str = "") -> Fault:
    """The unit with other machine code: a body of LLVM IR, for two inputs and an output."""

    def planted(unit: Unit) -> Unit:
        head = f"define void @{unit.call.interface.name}(ptr %a, ptr %b, ptr %c, ptr %scratch)"
        return with_code(unit, object_code(f"{declarations}\n{head} {{\n{body}\n}}\n", host()))

    return planted


SEGFAULT = native("  %p = inttoptr i64 8 to ptr\n  store volatile i32 1, ptr %p\n  ret void")
ABORT = native("  call void @abort()\n  ret void", "declare void @abort()")
EXIT = native("  call void @_exit(i32 3)\n  ret void", "declare void @_exit(i32)")
HANG = native("  br label %again\nagain:\n  br label %again")
NOTHING = native("  ret void")


def hungry(gib: int) -> Fault:
    """The unit with a workspace of so many GiB."""
    workspace = Workspace(gib << 30, 0)
    return lambda unit: replace(
        unit, call=replace(unit.call, interface=replace(unit.call.interface, workspace=workspace))
    )


def short_of_a_term(unit: Unit) -> Unit:
    """The unit of the product whose sums lack their last term."""
    return with_code(unit, build_unit(matmul(terms=999)).call.object)


def started(setup: RunnerSetup) -> Runner:
    """A runner in this process, which may use the same processors as before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Affinity, "_pin", lambda place: None)
        return setup.start()


@dataclass(frozen=True)
class Slow:
    """The setup of workers that take their time to start, and leave a file each when they have."""

    folder: str
    memory_bytes: int = 1 << 46

    def start(self) -> Callable[[object], object]:
        time.sleep(0.2)
        (Path(self.folder) / str(os.getpid())).touch()
        return lambda job: job


@dataclass
class Faulty:
    """An executor that plants faults in candidates, by number; how many are built together depends on the machine."""

    inner: LocalExecutor
    faults: Mapping[int, Fault]
    begun: int = 0

    def build(self, texts: Sequence[str]) -> Iterator[tuple[int, Built | Outcome]]:
        first, self.begun = self.begun, self.begun + len(texts)
        for position, actual in self.inner.build(texts):
            fault = self.faults.get(first + position)
            if fault is not None and isinstance(actual, Built):
                actual = replace(actual, artefact=fault(actual.artefact))
            yield position, actual

    def run(self, candidates: Sequence[Built]) -> Iterator[tuple[int, Outcome]]:
        return self.inner.run(candidates)

    def compare(self, candidates: Sequence[Built], rounds: int) -> list[Outcome]:
        return self.inner.compare(candidates, rounds)

    def calibrate(self, built: Built, cost: float) -> None:
        self.inner.calibrate(built, cost)

    def close(self) -> None:
        self.inner.close()


def main() -> None:
    """Print the numbers of the workers, and measure a candidate that never ends."""
    function = matmul()
    inner = LocalExecutor(subject(function), QUICK, 1)
    with Measurer(subject(function), executor=Faulty(inner, {0: HANG})) as measurer:
        print(*inner.builders.pids, *inner.runner.pids, flush=True)
        for _, outcome in measurer.measure(scripts(function, none)):
            print(outcome, file=sys.stderr)


if __name__ == "__main__":
    main()
