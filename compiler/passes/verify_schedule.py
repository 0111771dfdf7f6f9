"""verify-schedule: prove that scheduled functions compute what their originals do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.analysis.verify.prove import verify_schedule
from compiler.dialects import loop
from compiler.dialects.functions import find_function, functions
from compiler.dialects.modules import read_module
from compiler.program.read import read
from compiler.support.errors import InputError, ScheduleError


@dataclass(frozen=True)
class VerifySchedulePass(ModulePass):
    """Prove that each loop function computes the same as the function of its name in the file `original`.

    The scheduled function may come from any script, or be edited by hand; the original is at the loop level, as
    te-to-loop leaves it. Each block is compared with the one that its origin names, each read must find the right
    value, each contribution to a reduction must occur once, and none may be missing. Changes nothing.

    Raises ScheduleError if a function is refuted (with an instance) or, unless `undecided` is true, undecided;
    InputError for an original that cannot be read, is not at the loop level, or lacks the function.
    """

    name = "verify-schedule"
    anchor: ClassVar = "func.func"

    original: str
    undecided: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        originals = _parsed(ctx, self.original)
        for function in functions(op):
            if not any(isinstance(inner, loop.Placed) for inner in function.walk()):
                continue
            name = function.sym_name.data
            verdict = verify_schedule(read(function), read(find_function(originals, name)))
            if verdict.answer == "refuted" or (verdict.answer == "undecided" and not self.undecided):
                raise ScheduleError(str(verdict), self.name, f"@{name}")


def _parsed(ctx: Context, path: str) -> ModuleOp:
    module = read_module(ctx, path, "original")
    if not any(isinstance(op, loop.Placed) for op in module.walk()):
        raise InputError(f"the original '{path}' is not at the loop level; lower it with te-to-loop first")
    return module
