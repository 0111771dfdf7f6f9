"""`Listing`: the machine loops of a script, compiled when the page is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.database.replay import replay
from compiler.database.summary import ScriptTrials
from compiler.explain.builds import builds
from compiler.explain.code import Code, alike
from compiler.explain.explanation import explain
from compiler.opt.diagnostics import SAID
from compiler.report.tasks import TaskFacts

MOST = 3
"""Machine loops whose assembly is shown."""
LONGEST = 6000
"""Characters of the assembly of a loop."""


@dataclass(frozen=True)
class Listing:
    """The innermost loops of a script's machine code, copies of one once, or why there are none."""

    loops: Sequence[Code] = ()
    reason: str = ""

    @property
    def most_work(self) -> list[Code]:
        """The loops that do most, in their order: those whose assembly is shown."""
        most = sorted(self.loops, key=_work, reverse=True)[:MOST]
        return [code for code in self.loops if code in most]


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
    return Listing([copies[0] for copies in alike(explanation.codes)])


def _work(code: Code) -> tuple[int, int]:
    """What orders loops: the operations of the loop of the program, then the machine loop's own."""
    return (code.path[-1].flops or 0 if code.path else 0), code.census.flops


def shortened(assembly: str) -> str:
    """The assembly of a loop, without the last lines of a long one."""
    if len(assembly) <= LONGEST:
        return assembly
    kept = assembly[:LONGEST].rpartition("\n")[0]
    return f"{kept}\n    ... {assembly.count(chr(10)) - kept.count(chr(10))} more lines"
