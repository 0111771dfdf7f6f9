"""The program of a schedule and its handles: each op is planned, judged, applied and recorded."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.dialects.transform import AnyOpType, NamedSequenceOp, YieldOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from compiler.analysis.legal import Step, legal
from compiler.dialects.dominance import last_sentence
from compiler.dialects.sched import BlockType, LoopType, ParamType, SchedOp
from compiler.program.limits import bad_sizes
from compiler.program.names import fresh
from compiler.program.tree import Loop, Program
from compiler.schedule.plan import Plan
from compiler.support.actions import is_watched, perform
from compiler.support.errors import ScheduleError, refused_by

ROOT = -1
"""A location instead of a loop: the block stays outside all loops."""
INLINE = -2
"""A location instead of a loop: the block is inlined."""


@dataclass(frozen=True)
class UnitLoop:
    """A loop of one iteration that the program omits, since its block moved out of the loop with the number `former`.
    It is restored around the block when a step uses a handle on it."""

    block: str
    former: int


@dataclass(eq=False)
class State:
    """The program and the script so far. By handle: `values`, its loop, block or integer, None or "" if the step had
    nothing to copy; `names`, its label; `consumed`, the primitive that consumed it; `units`, an omitted loop;
    `decided`, the program before a choice (by its first result). `handles` lists the handles on each loop and block.
    `random` generates the sampled decisions. `script` is the body of the script, `judged` whether steps are checked for
    legality."""

    program: Program
    random: random.Random
    script: Block
    values: dict[SSAValue, int | str | None] = field(default_factory=dict)
    handles: dict[int | str, list[SSAValue]] = field(default_factory=dict)
    names: dict[SSAValue, str] = field(default_factory=dict)
    consumed: dict[SSAValue, str] = field(default_factory=dict)
    units: dict[SSAValue, UnitLoop] = field(default_factory=dict)
    decided: dict[SSAValue, Program] = field(default_factory=dict)
    judged: bool = True

    @property
    def function(self) -> SSAValue:
        """The handle on the function."""
        return self.script.args[0]

    def fork(self, script: Block, handles: Mapping[SSAValue, SSAValue]) -> State:
        """Copy the state to a copy of the script; `handles` maps all handles to those of the copy. Both then draw the
        same random numbers."""
        draws = random.Random()
        draws.setstate(self.random.getstate())
        by_value = {value: [handles[handle] for handle in same] for value, same in self.handles.items()}
        copies: dict[str, Any] = {}
        for name in ("values", "names", "consumed", "units", "decided"):
            copies[name] = {handles[handle]: entry for handle, entry in getattr(self, name).items()}
        return replace(self, random=draws, script=script, handles=by_value, **copies)

    def apply(self, op: SchedOp, call: Callable[[State, SchedOp], Plan], judged: bool = True) -> None:
        """Plan an op by `call`, judge the plan, commit it, and record the op.

        Without `judged`, here or of the state, legality is not checked: the caller proves the whole schedule. Raises
        ScheduleError, and then nothing has changed.
        """
        judged = judged and self.judged
        with refused_by(op.primitive):
            try:
                op.verify_()
            except VerifyException as error:
                raise ScheduleError(last_sentence(str(error))) from error
            before, units = self.program, dict(self.units)
            omitted = dict.fromkeys(self.units[handle] for handle in op.operands if handle in self.units)
            restored = [self._restore(unit) for unit in omitted]
            try:
                plan = self._judged(call(self, op), judged)
                if is_watched():
                    names = ", ".join(self.names[value] for value in op.operands if value in self.names)
                    settings = " ".join(f"{name}={value}" for name, value in op.properties.items())
                    perform("step", op.primitive, f"{names} {settings}".strip())
            except ScheduleError:
                self.program, self.units = before, units
                for number in restored:
                    del self.handles[number]
                raise
        self.take(op, plan)

    def _judged(self, plan: Plan, judged: bool) -> Plan:
        """Return a plan if its sizes fit 64 bits and, with `judged`, it is legal. Else raise ScheduleError."""
        after = plan.program
        if after is not self.program:
            fault = bad_sizes(after, self.program) or (judged and legal(after, self.program, plan))
            perform("legality", "judged" if judged else "unjudged", fault or "legal")
            if fault:
                raise ScheduleError(fault)
        return plan

    def _restore(self, unit: UnitLoop) -> int:
        """Restore an omitted loop, as the innermost around its block, for all handles on it; return its number."""
        handles = [handle for handle, same in self.units.items() if same == unit]
        label = fresh(self.names[handles[0]], {loop.label for loop in self.program.enclosing(unit.block)})
        number = self.program.fresh_number()
        self.program = self.program.replaced(unit.block, lambda block: [Loop(number, label, 1, (block,))])
        self.handles[number] = handles
        for handle in handles:
            self.values[handle] = number
            del self.units[handle]
        return number

    def take(self, op: SchedOp, plan: Plan) -> None:
        """Commit the plan of an op, unchecked: record the op with the plan's decision, define its results, and consume
        the handles that the op consumes and those on removed loops and blocks."""
        primitive = op.primitive
        before, after = self.program, plan.program
        self.program = after
        if after is not before:
            self._forward(before, plan)
            loops, blocks = before.loops.keys() - after.loops.keys(), before.blocks.keys() - after.blocks.keys()
            for gone in set[int | str]() | loops | blocks:
                for handle in self.handles.pop(gone, []):
                    self.consumed.setdefault(handle, primitive)  # by handle: numbers and labels may come back
            for handle in [handle for handle, unit in self.units.items() if unit.block in blocks]:
                del self.units[handle]
                self.consumed.setdefault(handle, primitive)
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
        results: list[int | str | None] = [*plan.loops, *plan.blocks, *plan.params]
        for given_handle, value in zip(op.results, results, strict=True):
            self.values[given_handle] = value
            if value is not None and not isinstance(given_handle.type, ParamType):
                self.handles.setdefault(value, []).append(given_handle)
            given_handle.name_hint = self._hint(given_handle, value)

    def _forward(self, before: Program, step: Step) -> None:
        """Redirect the handles on the former loops of moved blocks.

        The only loop of an axis becomes the loop over the part of the axis that is needed or, for one element, an
        omitted loop. A former loop of one iteration is omitted too.
        """
        after = step.program
        for label in step.moved:
            removed_loops = {loop.number: loop for loop in before.enclosing(label) if loop.number not in after.loops}
            former_block, block = before.blocks[label], after.blocks[label]
            by_axis = {axis.label: form for axis, form in zip(block.axes, block.bindings, strict=True)}  # or more axes
            for axis, old in zip(former_block.axes, former_block.bindings, strict=True):
                new = by_axis[axis.label]
                successors = [after.loops[number] for number in new.variables() - before.loops.keys()]
                former = list(old.variables())
                if len(former) == 1 and former[0] in removed_loops:
                    self._follow(former[0], label, successors[0] if successors else None)
            for number, loop in removed_loops.items():
                if loop.extent == 1:
                    self._follow(number, label, None)

    def _follow(self, former: int, block: str, loop: Loop | None) -> None:
        """Redirect the handles on a former loop to another loop or, for None, to an omitted loop around a block."""
        handles = self.handles.pop(former, [])
        if loop is None:
            self.units |= dict.fromkeys(handles, UnitLoop(block, former))
            return
        self.values |= dict.fromkeys(handles, loop.number)
        self.names |= dict.fromkeys(handles, loop.label)
        self.handles.setdefault(loop.number, []).extend(handles)

    def drop_after(self, length: int) -> None:
        """Erase the ops of the script after the first `length`. Requires that these only define handles."""
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
        """The number of the loop of a handle; with `special` also ROOT and INLINE. Raises ScheduleError for a consumed
        handle, one of another schedule and, without `special`, a location."""
        number = self._live(value, "loop")
        assert isinstance(number, int)
        if number < 0 and not special:
            raise ScheduleError("the location is no loop: the block stays, or is inlined")
        return number

    def block(self, value: SSAValue) -> str:
        """The label of the block of a handle. Raises ScheduleError for a handle of a loop, of another schedule,
        consumed, or of no block since nothing had to be copied."""
        label = self._live(value, "block")
        if not isinstance(label, str):
            raise ScheduleError("it takes the handle of a block, not of a loop")
        return label

    def _live(self, value: SSAValue, kind: str) -> int | str:
        if value not in self.values:
            raise ScheduleError(f"the {kind} handle belongs to another schedule")
        target = self.values[value]
        place = f"{kind} '{self.names.get(value, '?')}'"
        if target is None or target == "":
            raise ScheduleError(f"there is no such {kind}: nothing had to be copied")
        by = self.consumed.get(value)
        if by is not None:
            raise ScheduleError(f"it has been consumed by '{by}'", place=place)
        return target

    def size(self, value: int | SSAValue) -> int:
        """The constant, or the integer of the parameter of a handle. Raises ScheduleError for a handle of another
        schedule."""
        return value if isinstance(value, int) else self.param(value)

    def param(self, value: SSAValue) -> int:
        """The integer of the parameter of a handle. Raises ScheduleError for a handle of another schedule. Requires no
        handle of a block."""
        if value not in self.values:
            raise ScheduleError("the parameter belongs to another schedule")
        number = self.values[value]
        assert number is not None and not isinstance(number, str)
        return number


def empty_script() -> tuple[ModuleOp, Block]:
    """Build a module with an empty `transform.named_sequence @schedule`; return it and the body."""
    body = Block(arg_types=[AnyOpType()])
    body.args[0].name_hint = "f"
    body.add_op(YieldOp())
    readonly = ArrayAttr([DictionaryAttr({"transform.readonly": UnitAttr()})])
    sequence = NamedSequenceOp("schedule", ([AnyOpType()], []), Region(body), arg_attrs=readonly)
    return ModuleOp([sequence]), body
