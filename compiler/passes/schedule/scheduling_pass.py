"""`SchedulingPass`: the base class of passes that apply primitives to the module's loop functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from compiler.dialects import loop
from compiler.dialects.functions import find_function, functions
from compiler.schedule import Handle, Schedule
from compiler.schedule.names import loop_of
from compiler.support.errors import ScheduleError


@dataclass(frozen=True, kw_only=True)
class SchedulingPass(ModulePass, ABC):
    """A pass that schedules the loop function named `function`, or all of the module's; on a refusal none is changed.

    Raises ScheduleError for a refusal; its op is the block of the option `block`, or else the function.
    """

    anchor: ClassVar = "func.func"
    function: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loop_functions = functions(op) if self.function is None else [find_function(op, self.function)]
        loop_functions = [f for f in loop_functions if any(isinstance(inner, loop.Placed) for inner in f.walk())]
        if not loop_functions:
            raise ScheduleError("no function of the module is at the loop level; lower it with te-to-loop", self.name)
        for schedule in [self._scheduled(op, function) for function in loop_functions]:
            replace_function(op, schedule)

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
        """Apply the primitives of the pass to a schedule. Raises ScheduleError if one is refused."""


def loops_of(s: Schedule, block: str, labels: Sequence[str]) -> list[Handle]:
    """Return the loops of these labels around a block, in the labels' order. Raises ScheduleError without one."""
    handle = s.get_block(block)
    return [loop_of(s, handle, label) for label in labels]


def replace_function(module: ModuleOp, schedule: Schedule) -> None:
    """Replace the module's function of the same name by a schedule's function, which is moved out of the schedule's
    module."""
    old = find_function(module, schedule.name)
    new = schedule.function
    new.detach()
    module.body.block.insert_op_before(new, old)
    module.body.block.erase_op(old)
