"""What the faces of primitives share: a pass over the module's loop functions, and loops by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from compiler.dialects import loop
from compiler.dialects.functions import find_function, functions
from compiler.errors import ScheduleError
from compiler.schedule import Handle, Schedule
from compiler.schedule.recorder import take_over


@dataclass(frozen=True, kw_only=True)
class FacePass(ModulePass, ABC):
    """A pass that schedules the loop function named `function`, or all of the module's; all of them or none.

    Raises ScheduleError for a refusal, with the block that it is about as its op.
    """

    function: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        wanted = functions(op) if self.function is None else [find_function(op, self.function)]
        wanted = [f for f in wanted if any(isinstance(inner, loop.Placed) for inner in f.walk())]
        if not wanted:
            raise ScheduleError("no function of the module is at the loop level; lower it with te-to-loop", self.name)
        for schedule in [self._scheduled(op, function) for function in wanted]:
            take_over(op, schedule)

    def _scheduled(self, module: ModuleOp, function: FuncOp) -> Schedule:
        schedule = Schedule(module, function.sym_name.data)
        try:
            self.schedule(schedule)
        except ScheduleError as error:
            label = getattr(self, "block", None)
            blocks = (op for op in function.walk() if isinstance(op, loop.Placed) and op.label.data == label)
            error.op = next(blocks, function)
            raise
        return schedule

    @abstractmethod
    def schedule(self, s: Schedule) -> None:
        """Call the primitive."""


def loop_of(s: Schedule, block: Handle, label: str) -> Handle:
    """The loop of that name around a block."""
    loops = s.get_loops(block)
    for handle in loops:
        if s.label(handle) == label:
            return handle
    known = ", ".join(s.label(handle) for handle in loops) or "none"
    raise ScheduleError(f"it has no loop '{label}' (it has {known})", "get_loops", f"block '{s.label(block)}'")


def loops_of(s: Schedule, block: str, labels: Sequence[str]) -> list[Handle]:
    """The loops of these names around a block, in this order."""
    handle = s.get_block(block)
    return [loop_of(s, handle, label) for label in labels]


def named(s: Schedule, name: str) -> Handle:
    """The loop written `block.loop`, such as `C.m` or `C.init.m.0`; the longest block name that fits is meant."""
    dots = [at for at, character in enumerate(name) if character == "." and name[:at] in s.program.blocks]
    if not dots:
        known = ", ".join(s.program.blocks)
        raise ScheduleError(f"a loop is written block.loop, and '{name}' names no block (there are {known})")
    fitting = [at for at in dots if name[at + 1 :] in {n.label for n in s.program.enclosing(name[:at])}]
    at = (fitting or dots)[-1]
    return loop_of(s, s.get_block(name[:at]), name[at + 1 :])
