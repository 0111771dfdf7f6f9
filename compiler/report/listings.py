"""`Listing`: the machine loops of a script, compiled when the page is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.database.replay import replay
from compiler.database.summary import ScriptTrials
from compiler.explain.builds import builds
from compiler.explain.code import LoopCode, group_copies
from compiler.explain.explanation import explain
from compiler.opt.diagnostics import PROGRAM_ERRORS
from compiler.report.tasks import TaskFacts

MAX_LOOPS = 3
"""The number of machine loops whose assembly is shown."""
MAX_CHARACTERS = 6000
"""The number of characters of a loop's assembly that are shown."""


@dataclass(frozen=True)
class Listing:
    """The innermost loops of a script's machine code, one of each group of copies; `reason` if there is no code."""

    loops: Sequence[LoopCode] = ()
    reason: str = ""

    @property
    def most_work(self) -> list[LoopCode]:
        """The MAX_LOOPS loops with the most operations, in program order: the assembly of these is shown."""
        selected = sorted(self.loops, key=_work, reverse=True)[:MAX_LOOPS]
        return [code for code in self.loops if code in selected]


def listing(task: TaskFacts, script: ScriptTrials) -> Listing:
    """Compile a script of a task for this machine; return its machine loops, adjacent copies once, or the reason why
    there are none: records of another machine, or an error of the build."""
    if not task.is_of_this_machine:
        return Listing(
            reason=f"the records are of {task.key.machine}, and machine code is made for the machine at hand"
        )
    try:
        explanation = explain(builds(replay(script.first).module, task.key.policy))
    except PROGRAM_ERRORS as error:
        return Listing(reason=f"there is no machine code: {error}")
    return Listing([copies[0] for copies in group_copies(explanation.codes)])


def _work(code: LoopCode) -> tuple[int, int]:
    """The sort key of loops: the operations of the source loop, then those of the machine loop."""
    return (code.path[-1].flops or 0 if code.path else 0), code.census.flops


def shortened(assembly: str) -> str:
    """Return the assembly of a loop; of one beyond MAX_CHARACTERS the first lines, and the number of the others."""
    if len(assembly) <= MAX_CHARACTERS:
        return assembly
    kept = assembly[:MAX_CHARACTERS].rpartition("\n")[0]
    return f"{kept}\n    ... {assembly.count(chr(10)) - kept.count(chr(10))} more lines"
