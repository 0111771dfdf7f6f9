"""apply-schedule: a whole script."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.transform import NamedSequenceOp
from xdsl.passes import ModulePass

from compiler.dialects.parser import read_module
from compiler.passes.schedule.face import replace_function
from compiler.schedule import Schedule
from compiler.support.errors import ScheduleError


@dataclass(frozen=True)
class ApplySchedulePass(ModulePass):
    """Apply a script, the `transform.named_sequence` of the module or of the file `script`, to a loop function.

    The script leaves the module. Choices without a decision are drawn at random by the seed. With `verify` the result
    is proved to compute what the original does.

    Raises ScheduleError at the op of the script that is refused, which a script of a file names in words.
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
