"""Replay: apply a record's script to its stored program."""

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
from compiler.opt.diagnostics import PROGRAM_ERRORS, diagnose
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
    """Apply the script of a record to its stored program; if `judged`, the legality of each step is checked.

    Raises ScheduleError if the program or the script is invalid, for a record of a form, which has no script, and for a
    step that does not apply, or is a choice without a decision, with its number and line: 'step 7, sched.split:
    loop 'm': ... (line 9: %m.0, %m.1 = sched.split %m by [-1, 8] : !sched.loop, !sched.loop)'.
    """
    if record.form:
        raise ScheduleError(f"it is the time of the form {record.form}, and has no script")
    program = _parse("program", record.program)
    script = _parse("script", record.script)
    _check_script(script, record.script)
    return _apply(program, script, record.script, judged)


def _apply(program: ModuleOp, script: ModuleOp, text: str, judged: bool) -> Schedule:
    """Apply a script, parsed from `text`, to a program, with checks of legality if `judged`. Raises ScheduleError with
    the step and its line in `text`."""
    try:
        return Schedule(program).apply(script, judged)
    except ScheduleError as error:
        raise _at_step(error, script, text) from error


class HasScript(Protocol):
    """An object with a stored program and a script, such as a record."""

    @property
    def program(self) -> str:
        """The text of the program."""

    @property
    def script(self) -> str:
        """The text of the script."""


def plan_record(record: HasScript) -> tuple[Program, Program]:
    """Return the stored program of a record, and the program after its script, as trees; legality is not checked.

    This takes about 10 ms; a proof of each step would take 100 ms. Raises ScheduleError for an invalid program or
    script, and, with the step and its line, for a step that does not apply or is a choice without a decision.
    """
    module = _parse("program", record.program)
    script = _parse("script", record.script)
    _check_script(script, record.script)
    sequence, steps = script_of(script), _script_steps(script)
    for op in steps:
        if not isinstance(op, SchedOp):
            raise _at_step(_step_error(op, "it is not an op of the sched dialect"), script, record.script)
    if any(isinstance(op, IncludeOp) for op in steps):
        schedule = _apply(module, script, record.script, False)
        return schedule.unscheduled, schedule.program
    original = read(find_function(module))

    def plan(state: State, number: int, op: SchedOp) -> Plan:
        try:
            return planned_step(state, number, op)
        except ScheduleError as error:
            error.op = steps[number]
            raise _at_step(error, script, record.script) from error

    return original, replayed_state(original, list(sequence.body.block.ops), plan).program


def _parse(what: str, text: str) -> ModuleOp:
    """Parse and verify a text, named `what` in errors, such as `script`. Raises ScheduleError for an invalid text."""
    try:
        return _verify(Parser(universe.context(), text, f"<{what}>").parse_module(), text)
    except ScheduleError:
        raise
    except PROGRAM_ERRORS as error:
        diagnostic = diagnose(error, Span(f"<{what}>", 1, 1))
    raise ScheduleError(f"its {what} cannot be read: line {diagnostic.span.line}: {diagnostic.sentence}")


def _verify(module: ModuleOp, text: str) -> ModuleOp:
    """Verify a module, parsed from `text`, and return it. Raises ScheduleError for an invalid step, with its line,
    Refusal for other faults."""
    try:
        verify_module(module)
    except Refusal as error:
        if error.op not in _script_steps(module):
            raise
        raise _at_step(_step_error(error.op, str(error)), module, text) from error
    return module


def _check_script(script: ModuleOp, text: str) -> None:
    """Raise ScheduleError unless the sequences of a script take one handle, the function, and all choices are
    decided."""
    for sequence in script.ops:
        if isinstance(sequence, NamedSequenceOp) and len(sequence.body.block.args) != 1:
            raise ScheduleError(f"its script takes {len(sequence.body.block.args)} handles, expected the function")
    for op in _script_steps(script):
        if applies(op, *CHOICES) and "decision" not in op.properties:
            raise _at_step(_step_error(op, "it has no decision, which a record's choices have"), script, text)


def _step_error(op: Operation, reason: str) -> ScheduleError:
    error = ScheduleError(reason)
    error.op = op
    return error


def _script_steps(script: ModuleOp) -> list[Operation]:
    """The steps of a script: the ops of its first sequence, without the terminator."""
    sequences = [op for op in script.ops if isinstance(op, NamedSequenceOp)]
    return [op for s in sequences[:1] for block in s.body.blocks for op in block.ops if not isinstance(op, YieldOp)]


def _at_step(error: ScheduleError, script: ModuleOp, text: str) -> ScheduleError:
    """Return an error with the number of the step at fault, from 1, and its line in the text of the script; the error
    itself if it names no op."""
    op = error.op
    if not isinstance(op, Operation):
        return error
    number = next(n for n, step in enumerate(_script_steps(script), 1) if step is op)
    span = of_op(op)
    line = 0 if span is None else span.line
    line_text = text.split("\n")[line - 1].strip()
    message = ": ".join(str(part) for part in (error.place, error.reason) if part)
    located = ScheduleError(f"step {number}, {op.name}: {message} (line {line}: {line_text})")
    located.op = op
    return located
