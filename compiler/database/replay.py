"""A record's script applied to its program: what a file says replays from the file alone."""

from __future__ import annotations

from typing import Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.transform import NamedSequenceOp, YieldOp
from xdsl.ir import Operation

from compiler import universe
from compiler.database.record import Record
from compiler.dialects.dominance import Refusal, verify_module
from compiler.dialects.functions import find_function
from compiler.dialects.parser import Parser
from compiler.dialects.sched import SchedOp
from compiler.opt.diagnostics import SAID, diagnose
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.schedule import Schedule
from compiler.schedule.include import IncludeOp
from compiler.schedule.plan import Plan
from compiler.schedule.primitive import CHOICES, applies
from compiler.schedule.script import script_of
from compiler.schedule.state import State
from compiler.space.sketch import planned_step, replayed_state
from compiler.support.errors import ScheduleError
from compiler.support.spans import Span, of_op


def replay(record: Record, judged: bool = True) -> Schedule:
    """The schedule of a record: its stored program, and every step of its script; `judged` as in `Schedule.apply`.

    Raises ScheduleError where the program or the script cannot be read, and for a step that does not apply, or is a
    choice without a decision; it says which step, counted from 1, and which line of the script: 'step 7, sched.split:
    loop 'm': ... (line 9: %m.0, %m.1 = sched.split %m by [-1, 8] : !sched.loop, !sched.loop)'.
    """
    if record.form:
        raise ScheduleError(f"it is the time of the form {record.form}, and has no script")
    program = _parsed("program", record.program)
    script = _parsed("script", record.script)
    _check_script(script, record.script)
    return _applied(program, script, record.script, judged)


def _applied(program: ModuleOp, script: ModuleOp, text: str, judged: bool) -> Schedule:
    """The schedule of a program by a script. Raises ScheduleError with the step and the line."""
    try:
        return Schedule(program).apply(script, judged)
    except ScheduleError as error:
        raise _at_step(error, script, text) from error


class Scripted(Protocol):
    """A stored program and a script, such as a record has."""

    @property
    def program(self) -> str:
        """The text of the program."""

    @property
    def script(self) -> str:
        """The text of the script."""


def planned(record: Scripted) -> tuple[Program, Program]:
    """The stored program of a record as a tree, and what its script makes of it; whether that is legal is not judged.

    It takes some ten milliseconds, where proving each step takes a hundred. Raises ScheduleError as `replay` does.
    """
    module = _parsed("program", record.program)
    script = _parsed("script", record.script)
    _check_script(script, record.script)
    sequence, steps = script_of(script), _steps(script)
    for op in steps:
        if not isinstance(op, SchedOp):
            raise _at_step(_about(op, "it is not an op of the sched dialect"), script, record.script)
    if any(isinstance(op, IncludeOp) for op in steps):
        schedule = _applied(module, script, record.script, False)
        return schedule.unscheduled, schedule.program
    original = read(find_function(module))

    def plan(state: State, place: int, op: SchedOp) -> Plan:
        try:
            return planned_step(state, place, op)
        except ScheduleError as error:
            error.op = steps[place]
            raise _at_step(error, script, record.script) from error

    return original, replayed_state(original, list(sequence.body.block.ops), plan).program


def _parsed(what: str, text: str) -> ModuleOp:
    """The verified module of a text."""
    try:
        return _verified(Parser(universe.context(), text, f"<{what}>").parse_module(), text)
    except ScheduleError:
        raise
    except SAID as error:
        diagnostic = diagnose(error, Span(f"<{what}>", 1, 1))
    raise ScheduleError(f"its {what} cannot be read: line {diagnostic.span.line}: {diagnostic.sentence}")


def _verified(module: ModuleOp, text: str) -> ModuleOp:
    """The module. Raises ScheduleError where a step does not verify, Refusal where something else does not."""
    try:
        verify_module(module)
    except Refusal as error:
        if error.op not in _steps(module):
            raise
        raise _at_step(_about(error.op, str(error)), module, text) from error
    return module


def _check_script(script: ModuleOp, text: str) -> None:
    """Check that a script takes a function, and that its choices are decided."""
    for sequence in script.ops:
        if isinstance(sequence, NamedSequenceOp) and len(sequence.body.block.args) != 1:
            raise ScheduleError(f"its script takes {len(sequence.body.block.args)} handles, expected the function")
    for op in _steps(script):
        if applies(op, *CHOICES) and "decision" not in op.properties:
            raise _at_step(_about(op, "it has no decision, which a record's choices have"), script, text)


def _about(op: Operation, reason: str) -> ScheduleError:
    error = ScheduleError(reason)
    error.op = op
    return error


def _steps(script: ModuleOp) -> list[Operation]:
    """The ops of the sequence, if there is one, without its end."""
    sequences = [op for op in script.ops if isinstance(op, NamedSequenceOp)]
    return [op for s in sequences[:1] for block in s.body.blocks for op in block.ops if not isinstance(op, YieldOp)]


def _at_step(error: ScheduleError, script: ModuleOp, text: str) -> ScheduleError:
    """The same error, with the step and the line of the script."""
    op = error.op
    if not isinstance(op, Operation):
        return error
    number = next(n for n, step in enumerate(_steps(script), 1) if step is op)
    span = of_op(op)
    line = 0 if span is None else span.line
    stated = text.split("\n")[line - 1].strip()
    said = ": ".join(str(part) for part in (error.place, error.reason) if part)
    placed = ScheduleError(f"step {number}, {op.name}: {said} (line {line}: {stated})")
    placed.op = op
    return placed
