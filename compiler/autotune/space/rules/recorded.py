"""Templates in Python: a function that schedules a program, recorded as a script with open choices."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.sched import SchedOp
from compiler.errors import ScheduleError
from compiler.schedule.parameters import Handle
from compiler.schedule.plan import Plan, unchanged
from compiler.schedule.primitive import CHOICES, Primitive
from compiler.schedule.schedule import Schedule
from compiler.schedule.state import State

DRAWS = 8
"""How often a function is called at most, with other decisions, until none of its steps is refused."""


class _Template(Schedule):
    """A schedule that leaves its choices open: it goes on with what is drawn, and takes `auto` as it is."""

    def __init__(self, module: ModuleOp, name: str, seed: int) -> None:
        super().__init__(module, name, seed)
        self.open: list[SchedOp] = []

    def call(self, primitive: Primitive, *args: object, **kwargs: object) -> list[Handle]:
        """Apply and record a primitive; a choice whose decision is not stated is open."""
        handles = super().call(primitive, *args, **kwargs)
        if primitive.name in CHOICES and primitive.signature.bind(*args, **kwargs).arguments.get("decision") is None:
            op = handles[0].owner
            assert isinstance(op, SchedOp)
            self.open.append(op)
        return handles

    def _planner(self, primitive: Primitive) -> Callable[[State, SchedOp], Plan]:
        return _left if primitive.name == "auto" else super()._planner(primitive)


def _left(state: State, op: SchedOp) -> Plan:
    return unchanged(state.program)


def recorded(function: Callable[[Schedule], object], schedule: Schedule) -> ModuleOp:
    """The template that a function of a `Schedule` writes: its calls, choices without the decisions that were drawn.

    The calls must not depend on what is drawn. Raises ScheduleError where each of some draws has a step refused.
    """
    for seed in range(DRAWS):
        template = _Template(schedule.original, schedule.name, seed)
        try:
            function(template)
        except ScheduleError as error:
            if not template.open or seed == DRAWS - 1:
                raise
            refusal = error
            continue
        for op in template.open:
            del op.properties["decision"]
        return template.script
    raise refusal
