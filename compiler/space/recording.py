"""Templates in Python: a function that schedules a program, recorded as a script with open choices."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from compiler.dialects.sched import SchedOp
from compiler.schedule.parameters import Handle, Size
from compiler.schedule.plan import Plan
from compiler.schedule.primitive import CHOICES, Primitive
from compiler.schedule.schedule import Schedule
from compiler.schedule.state import State
from compiler.support.errors import ScheduleError

ONCE = "an `if` on a choice is decided once, when the template is written; make a template for each way instead"
"""The advice for a template whose steps depend on a choice."""
COMPARED = 3
"""The number of templates, recorded with different random decisions, that are compared."""
DRAWS = 8
"""The maximum number of calls of a function, with different random decisions, to find draws without a refused step."""


class _Template(Schedule):
    """A schedule that records choices without deciding them: it continues with random decisions, and records `auto`
    without effect."""

    def __init__(self, module: ModuleOp, name: str, seed: int) -> None:
        super().__init__(module, name, seed)
        self.open: list[SchedOp] = []

    def call(self, primitive: Primitive, *args: object, **kwargs: object) -> list[Handle]:
        """Apply and record a primitive, and return its handles; a choice whose decision is not stated is open."""
        handles = super().call(primitive, *args, **kwargs)
        if primitive.name in CHOICES and primitive.signature.bind(*args, **kwargs).arguments.get("decision") is None:
            op = handles[0].owner
            assert isinstance(op, SchedOp)
            self.open.append(op)
        return handles

    def value(self, parameter: Size) -> int:
        """The integer of a parameter, a size or a handle of one. Raises ScheduleError for an open choice, whose random
        value is no decision."""
        if isinstance(parameter, Handle) and any(parameter.owner is op for op in self.open):
            raise ScheduleError(f"a choice has no value while a template is written: {ONCE}", "value")
        return super().value(parameter)

    def _planner(self, primitive: Primitive) -> Callable[[State, SchedOp], Plan]:
        if primitive.name == "auto":
            return lambda state, op: Plan(state.program)
        return super()._planner(primitive)


def recorded(function: Callable[[Schedule], object], schedule: Schedule) -> ModuleOp:
    """Record the calls of a function of a `Schedule` as a template; choices without a stated decision are open.

    The calls must not depend on the random decisions of open choices: an `if` is decided once, in Python. Raises
    ScheduleError if every draw has a refused step, if two draws write different steps, and for a choice that no step
    uses.
    """
    scripts: list[ModuleOp] = []
    for seed in range(DRAWS):
        template = _Template(schedule.original, schedule.name, seed)
        try:
            function(template)
        except ScheduleError as error:
            if not template.open:
                raise
            refusal = error
            continue
        for op in template.open:
            check_used(op)
            del op.properties["decision"]
        scripts.append(template.script)
        if not template.open or len(scripts) == COMPARED:
            break
    if not scripts:
        raise refusal
    if len(set(map(str, scripts))) > 1:
        raise ScheduleError(f"the steps of the template differ from draw to draw of its choices: {ONCE}")
    return scripts[0]


def check_used(choice: Operation) -> None:
    """Raise ScheduleError for a choice whose results no step of the script uses."""
    if not any(list(result.uses) for result in choice.results):
        names = ", ".join(f"'{result.name_hint}'" for result in choice.results if result.name_hint) or "of the template"
        raise ScheduleError(f"the choice {names} is used by no step: {ONCE}")
