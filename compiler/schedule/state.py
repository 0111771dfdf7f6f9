"""A program under a script: ops are applied one by one, judged, and recorded."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.dialects.transform import AnyOpType, NamedSequenceOp, YieldOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from compiler.analysis.legal import legal
from compiler.dialects.dominance import last_sentence
from compiler.dialects.sched import BlockType, LoopType, ParamType, SchedOp
from compiler.program.limits import bad_sizes
from compiler.program.tree import Program
from compiler.schedule.plan import Plan
from compiler.support.errors import ScheduleError, refused_by

ROOT = -1
"""In place of a loop: outside all loops, where a block stands anyway."""
INLINE = -2
"""In place of a loop: nowhere, the block is inlined."""


@dataclass(eq=False)
class State:
    """The program so far, the target of each handle, the handles of each loop and block, the program in which each
    choice was decided (by its first result), and the script so far."""

    program: Program
    random: random.Random
    script: Block
    values: dict[SSAValue, int | str | None] = field(default_factory=dict)
    handles: dict[int | str, list[SSAValue]] = field(default_factory=dict)
    names: dict[SSAValue, str] = field(default_factory=dict)
    consumed: dict[SSAValue, str] = field(default_factory=dict)
    decided: dict[SSAValue, Program] = field(default_factory=dict)
    judged: bool = True

    @property
    def function(self) -> SSAValue:
        """The handle on the function."""
        return self.script.args[0]

    def fork(self, script: Block, handles: Mapping[SSAValue, SSAValue]) -> State:
        """The same state over a copy of the script, and a map from this state's handles to the copy's."""
        draws = random.Random()
        draws.setstate(self.random.getstate())
        values = {handles[handle]: value for handle, value in self.values.items()}
        names = {handles[handle]: name for handle, name in self.names.items()}
        consumed = {handles[handle]: by for handle, by in self.consumed.items()}
        by_value = {value: [handles[handle] for handle in same] for value, same in self.handles.items()}
        decided = {handles[handle]: program for handle, program in self.decided.items()}
        return State(self.program, draws, script, values, by_value, names, consumed, decided, self.judged)

    def apply(self, op: SchedOp, call: Callable[[State, SchedOp], Plan], judged: bool = True) -> None:
        """Plan an op, judge the plan, and only then take it over and record the op.

        Without `judged`, here or of the state, an illegal plan is taken over, too: the caller proves the whole
        schedule. Raises ScheduleError, after which nothing has changed.
        """
        judged = judged and self.judged
        with refused_by(op.primitive):
            try:
                op.verify_()
            except VerifyException as error:
                raise ScheduleError(last_sentence(str(error))) from error
            plan = call(self, op)
            step = plan.step
            if step.program is not self.program:
                fault = bad_sizes(step.program, self.program) or (judged and legal(step.program, self.program, step))
                if fault:
                    raise ScheduleError(fault)
        self.take(op, plan)

    def take(self, op: SchedOp, plan: Plan) -> None:
        """Commit an op's plan, and record the op; whether the plan is legal is the caller's to know."""
        primitive = op.primitive
        before, after = self.program, plan.step.program
        self.program = after
        if after is not before:
            loops, blocks = before.loops.keys() - after.loops.keys(), before.blocks.keys() - after.blocks.keys()
            for gone in set[int | str]() | loops | blocks:
                for handle in self.handles.pop(gone, []):
                    self.consumed.setdefault(handle, primitive)  # by handle: numbers and labels may come back
        for handle in op.consumed():
            self.consumed[handle] = primitive
        if isinstance(plan.decision, int):
            op.properties["decision"] = IntegerAttr(plan.decision, i64)
        elif plan.decision is not None:
            op.properties["decision"] = DenseArrayBase.from_list(i64, plan.decision)
        if plan.decision is not None:
            self.decided[op.results[0]] = before
        last = self.script.last_op
        assert last is not None
        self.script.insert_op_before(op, last)
        given: list[int | str | None] = [*plan.loops, *plan.blocks, *plan.params]
        for given_handle, value in zip(op.results, given, strict=True):
            self.values[given_handle] = value
            if value is not None and not isinstance(given_handle.type, ParamType):
                self.handles.setdefault(value, []).append(given_handle)
            given_handle.name_hint = self._hint(given_handle, value)

    def drop_after(self, length: int) -> None:
        """Forget the ops of the script beyond so many, which only gave handles."""
        for op in reversed(list(self.script.ops)[length:-1]):
            for handle in op.results:
                value = self.values.pop(handle)
                self.names.pop(handle, None)
                if value is not None:
                    self.handles[value].remove(handle)
            self.script.erase_op(op)

    def _hint(self, handle: SSAValue, value: int | str | None) -> str | None:
        if isinstance(handle.type, LoopType) and isinstance(value, int) and value >= 0:
            name = self.names[handle] = self.program.loops[value].label
        elif isinstance(handle.type, BlockType) and isinstance(value, str) and value:
            name = self.names[handle] = value
        else:
            name = handle.name_hint or "param" if isinstance(handle.type, ParamType) else "at"
        return name if SSAValue.is_valid_name(name) else "".join(c if c.isalnum() else "_" for c in f"x{name}")

    def loop(self, value: SSAValue, special: bool = False) -> int:
        """The loop of a handle; with `special` also ROOT and INLINE. Raises ScheduleError for a dead handle."""
        number = self._live(value, "loop")
        assert isinstance(number, int)
        if number < 0 and not special:
            raise ScheduleError("the location is no loop: the block stays, or is inlined")
        return number

    def block(self, value: SSAValue) -> str:
        """The block of a handle. Raises ScheduleError for a dead handle."""
        label = self._live(value, "block")
        if not isinstance(label, str):
            raise ScheduleError("it takes the handle of a block, not of a loop")
        return label

    def _live(self, value: SSAValue, what: str) -> int | str:
        if value not in self.values:
            raise ScheduleError(f"the {what} handle belongs to another schedule")
        target = self.values[value]
        place = f"{what} '{self.names.get(value, '?')}'"
        if target is None or target == "":
            raise ScheduleError(f"there is no such {what}: nothing had to be copied")
        by = self.consumed.get(value)
        if by is not None:
            raise ScheduleError(f"it has been consumed by '{by}'", place=place)
        return target

    def size(self, value: int | SSAValue) -> int:
        """A constant, or the integer of a parameter."""
        return value if isinstance(value, int) else self.param(value)

    def param(self, value: SSAValue) -> int:
        """The integer of a parameter."""
        if value not in self.values:
            raise ScheduleError("the parameter belongs to another schedule")
        number = self.values[value]
        assert number is not None and not isinstance(number, str)
        return number


def empty_script() -> tuple[ModuleOp, Block]:
    """A module with an empty `transform.named_sequence @schedule`, and the body of that."""
    body = Block(arg_types=[AnyOpType()])
    body.args[0].name_hint = "f"
    body.add_op(YieldOp())
    readonly = ArrayAttr([DictionaryAttr({"transform.readonly": UnitAttr()})])
    sequence = NamedSequenceOp("schedule", ([AnyOpType()], []), Region(body), arg_attrs=readonly)
    return ModuleOp([sequence]), body
