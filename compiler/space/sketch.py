"""`Sketch`: a script with open choices, which is a space of schedules; and the programs that its candidates make.

A sketch is read off a schedule that was recorded with some decision at each choice. Decisions are positions in the
options of a choice, in the order of the script.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, i64
from xdsl.dialects.transform import NamedSequenceOp, YieldOp
from xdsl.ir import Operation, SSAValue

from compiler.dialects.sched import SchedOp
from compiler.program.tree import Program
from compiler.schedule.include import Inclusion
from compiler.schedule.plan import Plan
from compiler.schedule.primitive import CHOICES, applies, primitive_of
from compiler.schedule.primitives.choices.sample_location import locations
from compiler.schedule.primitives.choices.sample_perfect_tile import perfect_tiles
from compiler.schedule.schedule import Schedule
from compiler.schedule.state import ROOT, State, empty_script
from compiler.space.trace import Number, TraceGraph

Positions = Sequence[int]


@dataclass(frozen=True)
class OpenChoice:
    """An open choice: its position among the ops of the script, and its options, each the integers of its results.
    name: `location` for a choice of a loop, else the name of its first result or empty."""

    position: int
    options: tuple[tuple[int, ...], ...]
    name: str = ""

    @property
    def is_structural(self) -> bool:
        """Whether the choice is of a loop, not of numbers."""
        return self.name == "location"


@dataclass(frozen=True)
class Sketch:
    """A script with open choices for a program, and these choices in order. recorded_positions: the decisions of the
    recorded schedule; inclusions: the steps of recipes."""

    name: str
    program: Program
    script: ModuleOp
    choices: tuple[OpenChoice, ...]
    recorded_positions: tuple[int, ...] = ()
    inclusions: tuple[Inclusion, ...] = ()

    @classmethod
    def of(cls, name: str, program: Program, recorded: Schedule, closed: Collection[int] = ()) -> Sketch:
        """Return the sketch of a recorded schedule: its script without decisions, except those of ops at positions
        `closed`, by default none."""
        script = recorded.script.clone()
        ops = list(_sequence(script).body.block.ops)
        options = {
            position: choice_options
            for position, choice_options in _options(recorded).items()
            if position not in closed
        }
        choices = [
            OpenChoice(position, options[position], _name(op)) for position, op in enumerate(ops) if position in options
        ]
        positions = tuple(_position(ops[choice.position], choice) for choice in choices)
        for choice in choices:
            del ops[choice.position].properties["decision"]
        return cls(name, program, script, tuple(choices), positions, tuple(recorded.inclusions))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of options of each choice."""
        return tuple(len(choice.options) for choice in self.choices)

    @cached_property
    def ops(self) -> list[Operation]:
        """The ops of the script in order, its final yield included."""
        return list(_sequence(self.script).body.block.ops)

    def decided(self, positions: Positions) -> ModuleOp:
        """A copy of the script with every choice decided: by `positions`, each an index into the options of its choice.
        Raises ValueError for another number of positions than choices."""
        script = self.script.clone()
        ops = list(_sequence(script).body.block.ops)
        for choice, position in zip(self.choices, positions, strict=True):
            chosen = choice.options[position]
            op = ops[choice.position]
            if applies(op, "sample_perfect_tile"):
                op.properties["decision"] = DenseArrayBase.from_list(i64, chosen)
            else:
                value = position if applies(op, "sample_categorical") else chosen[0]
                op.properties["decision"] = IntegerAttr(value, i64)
        return script

    def text(self, positions: Positions) -> str:
        """The text of `decided(positions)`."""
        return str(self.decided(positions))

    def columns(self, positions: np.ndarray) -> np.ndarray:
        """Return the integers (n, results) that positions (n, choices) choose: a column for each result of each choice,
        in order."""
        columns = []
        for number, choice in enumerate(self.choices):
            table = np.asarray(choice.options, np.int64)
            columns.append(table[positions[:, number]])
        return np.concatenate(columns, axis=1) if columns else np.zeros((len(positions), 0), np.int64)

    def traced_program(self, graph: TraceGraph, positions: Positions) -> Program:
        """Run the script on one candidate, the witness, whose option of each choice is at `positions`, with the sizes
        of its choices as traced numbers (trace.py); return the program. Each comparison of traced numbers on the way is
        added to `graph` as a guard: the program is also that of every candidate for which all of them come out the
        same. Legality is not checked: features of an illegal candidate are useless, and its measurement is refused.
        Raises ScheduleError if a primitive of the script refuses its step."""
        by_place = {choice.position: number for number, choice in enumerate(self.choices)}
        first = np.cumsum([0, *(len(choice.options[0]) for choice in self.choices)])

        def plan(state: State, place: int, op: SchedOp) -> Plan:
            if place not in by_place:
                return planned_step(state, place, op)
            number = by_place[place]
            return self._chosen(state, op, number, positions[number], graph, int(first[number]))

        return replayed_state(self.program, self.ops, plan).program

    def _chosen(self, state: State, op: SchedOp, number: int, position: int, graph: TraceGraph, column: int) -> Plan:
        """Plan the choice number `number` with the option at `position`, that of the witness. Its results are traced
        sizes, the inputs of `graph` from `column` on; for a choice of a loop, the witness's loop."""
        choice = self.choices[number]
        table = np.asarray(choice.options, np.int64)
        numbers: list[Number] = [
            graph.input(column + n, int(table[position, n]), int(table[:, n].min()), int(table[:, n].max()))
            for n in range(table.shape[1])
        ]
        if not choice.is_structural:
            return Plan(state.program, params=tuple(numbers))
        op.properties["decision"] = IntegerAttr(int(numbers[0]), i64)
        return primitive_of(op).planned(state, op)


PlanStep = Callable[[State, int, SchedOp], Plan]
"""A function that plans an op of a script, from the state before and its position among the ops."""


def planned_step(state: State, place: int, op: SchedOp) -> Plan:
    """Plan an op by its own primitive; `place` is not used. Raises ScheduleError for a refusal."""
    return primitive_of(op).planned(state, op)


def replayed_state(program: Program, ops: Sequence[Operation], plan: PlanStep = planned_step) -> State:
    """Replay the ops of a script, its final yield included, on a program; return the final state. Legality is not
    checked. `plan`: plans each op, by default by its own primitive; its errors are raised."""
    state = State(program, random.Random(0), empty_script()[1])
    body = ops[0].parent
    assert body is not None
    values: dict[SSAValue, SSAValue] = {body.args[0]: state.function}
    for position, op in enumerate(ops):
        if isinstance(op, YieldOp):
            break
        assert isinstance(op, SchedOp)
        copy = op.clone(values)
        state.take(copy, plan(state, position, copy))
    return state


def _sequence(script: ModuleOp) -> NamedSequenceOp:
    sequence = script.body.block.first_op
    assert isinstance(sequence, NamedSequenceOp)
    return sequence


def _position(op: Operation, choice: OpenChoice) -> int:
    """The position of an op's decision among the options of its choice."""
    decision = op.properties["decision"]
    if applies(op, "sample_categorical"):
        assert isinstance(decision, IntegerAttr)
        return int(decision.value.data)
    chosen = (decision.value.data,) if isinstance(decision, IntegerAttr) else tuple(decision.get_values())  # type: ignore[attr-defined]
    return choice.options.index(chosen)


def _name(op: Operation) -> str:
    if applies(op, "sample_location"):
        return "location"
    return next((value.name_hint or "" for value in op.results), "")


def _options(recorded: Schedule) -> dict[int, tuple[tuple[int, ...], ...]]:
    """The options of each choice of a schedule's script, by its position among the ops."""
    ops = enumerate(_sequence(recorded.script).body.block.ops)
    return {position: _options_of(recorded, op) for position, op in ops if applies(op, *CHOICES)}


def _options_of(recorded: Schedule, op: Operation) -> tuple[tuple[int, ...], ...]:
    assert isinstance(op, SchedOp)
    stated, (over, *_) = primitive_of(op).stated(op), (*op.operands, None)
    if over is None:
        return tuple((candidate,) for candidate in stated["candidates"])
    program, subject = recorded.when(op.results[0]), recorded.meaning(over)
    if isinstance(subject, int):
        return tuple(perfect_tiles(program.loops[subject].extent, len(op.results), stated["innermost"]))
    return tuple((n,) for n in range(ROOT, len(locations(program, subject))))
