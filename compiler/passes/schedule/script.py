"""apply-schedule: apply a script."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.transform import NamedSequenceOp
from xdsl.passes import ModulePass

from compiler.dialects.modules import read_module
from compiler.passes.schedule.scheduling_pass import replace_function
from compiler.schedule import Schedule
from compiler.support.errors import ScheduleError


@dataclass(frozen=True)
class ApplySchedulePass(ModulePass):
    """Apply a script, the `transform.named_sequence` of the module or of the file `script`, to a loop function.

    The script is erased from the module. `function` selects one of several. Choices without a decision are drawn at
    random from `seed`. With `verify` the result must be proved to be equivalent to the original.

    Raises ScheduleError at the refused op of the script; for a script of a file the message names the op. Raises
    ScheduleError also unless there is exactly one script, and for a result that is not proved; InputError for a file
    that cannot be read.
    """

    name = "apply-schedule"

    script: str | None = None
    function: str | None = None
    seed: int = 0
    verify: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        sequences = [inner for inner in op.ops if isinstance(inner, NamedSequenceOp)]
        script = _sequence(sequences if self.script is None else _from_file(ctx, self.script))
        schedule = Schedule(op, self.function, self.seed)
        try:
            schedule.apply(script)
        except ScheduleError as error:
            if self.script is None:
                raise
            raise ScheduleError(error, f"{self.script}: {error.op!s}") from error
        if self.verify:
            verdict = schedule.verify()
            if not verdict:
                raise ScheduleError(str(verdict), self.name, f"@{schedule.name}")
        replace_function(op, schedule)
        for sequence in sequences:
            op.body.block.erase_op(sequence)


def _sequence(sequences: list[NamedSequenceOp]) -> NamedSequenceOp:
    if len(sequences) != 1:
        raise ScheduleError(
            f"a script is one transform.named_sequence, and there are {len(sequences)}", "apply-schedule"
        )
    return sequences[0]


def _from_file(ctx: Context, path: str) -> list[NamedSequenceOp]:
    module = read_module(ctx, path, "script")
    return [op for op in module.ops if isinstance(op, NamedSequenceOp)]
