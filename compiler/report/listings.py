"""`Listing`: the machine loops of a script, compiled when the page is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.database.replay import replay
from compiler.database.summary import ScriptTrials
from compiler.explain.builds import builds
from compiler.explain.code import Code, alike
from compiler.explain.explanation import explain
from compiler.explain.text import where
from compiler.opt.diagnostics import SAID
from compiler.report.tasks import TaskFacts

MOST = 3
"""Machine loops whose assembly is shown."""
LONGEST = 6000
"""Characters of the assembly of a loop."""


@dataclass(frozen=True)
class MachineLoop:
    """An innermost loop of the machine code: which loop of the program it repeats, the figures of `strata explain` for
    one iteration, and its assembly, where it is one of those that do most; empty otherwise."""

    name: str
    instructions: int
    flops: int
    cycles: float
    percent: float | None
    limit: str
    assembly: str


@dataclass(frozen=True)
class Listing:
    """The machine loops of a script, or why there are none."""

    loops: tuple[MachineLoop, ...] = ()
    reason: str = ""


def listing(task: TaskFacts, script: ScriptTrials) -> Listing:
    """The machine loops of a script of a task, built on this machine."""
    if not task.is_of_this_machine:
        return Listing(
            reason=f"the records are of {task.key.machine}, and machine code is made for the machine at hand"
        )
    try:
        explanation = explain(builds(replay(script.first).module, task.key.policy))
    except SAID as error:
        return Listing(reason=f"there is no machine code: {error}")
    return Listing(tuple(_loops(explanation.codes)))


def _loops(codes: Sequence[Code]) -> list[MachineLoop]:
    """The machine loops, each with its copies once."""
    firsts = [group[0] for group in alike(codes)]
    shown = sorted(firsts, key=_work, reverse=True)[:MOST]
    return [
        MachineLoop(
            where(code),
            code.census.instructions,
            code.census.flops,
            code.estimate.cycles,
            code.percent,
            code.estimate.limit,
            _shortened(code.text) if code in shown else "",
        )
        for code in firsts
    ]


def _work(code: Code) -> tuple[int, int]:
    """What orders loops: the operations of the loop of the program, then the machine loop's own."""
    return (code.path[-1].flops or 0 if code.path else 0), code.census.flops


def _shortened(assembly: str) -> str:
    if len(assembly) <= LONGEST:
        return assembly
    kept = assembly[:LONGEST].rpartition("\n")[0]
    return f"{kept}\n    ... {assembly.count(chr(10)) - kept.count(chr(10))} more lines"
