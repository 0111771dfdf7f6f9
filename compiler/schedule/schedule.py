"""`Schedule`: a loop function with the script of the primitives applied to it."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.transform import AnyOpType, NamedSequenceOp, YieldOp
from xdsl.ir import Block, Region

from compiler.dialects import loop
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import find_function
from compiler.errors import ScheduleError


class Schedule:
    """A private copy of a loop-level module, and the script that leads from the original to it.

    The script is a module with one `transform.named_sequence @schedule`; it is empty as long as no primitive is
    applied. Raises ScheduleError for a module that is not at the loop level or has several functions unnamed.
    """

    def __init__(self, module: ModuleOp, name: str | None = None) -> None:
        if not isinstance(module, ModuleOp):
            raise ScheduleError(f"a schedule is of a loop-level module, not of a {type(module).__name__}")
        function = find_function(module, name)
        if not any(isinstance(op, loop.ForOp | loop.BlockOp) for op in function.walk()):
            raise ScheduleError(f"@{function.sym_name.data} is not at the loop level; lower it with te-to-loop first")
        self.module = module.clone()
        self.name = function.sym_name.data
        self.script = _empty_script()
        verify_module(self.module)

    @property
    def function(self) -> FuncOp:
        """The scheduled function."""
        return find_function(self.module, self.name)

    def __str__(self) -> str:
        return str(self.script)


def _empty_script() -> ModuleOp:
    body = Block(arg_types=[AnyOpType()])
    body.args[0].name_hint = "f"
    body.add_op(YieldOp())
    return ModuleOp([NamedSequenceOp("schedule", ([AnyOpType()], []), Region(body))])
