"""`Schedule`: a loop function with the script of the primitives applied to it.

Its methods come from the declarations in `primitives/`; their types are in `schedule.pyi`, which `tools/docs.py`
writes.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.transform import NamedSequenceOp

from compiler.schedule.parameters import Handle, Size
from compiler.schedule.primitive import Primitive
from compiler.schedule.primitives import PRIMITIVES
from compiler.schedule.recorder import Recorder, script_of


class Schedule(Recorder):
    """A loop-level function and the script that leads from the original to it.

    Each method is one op of the `sched` dialect: it is planned, judged by `legal`, applied and recorded. A refusal
    raises ScheduleError and changes nothing. `print(schedule.script)` replays to the same IR; `module` is the module
    with the scheduled function.

    `x` is a loop-level module, such as `strata.lower` gives of a te function; `seed` is that of choices without a
    decision. Raises ScheduleError for a module that is not at the loop level, InputError for one with several
    functions unnamed.
    """


def _method(primitive: Primitive) -> Callable[..., Handle | list[Handle] | None]:
    """The method that applies a primitive: it gives nothing, a handle, or a list of handles."""

    def method(self: Schedule, *args: object, **kwargs: object) -> Handle | list[Handle] | None:
        results = self.call(primitive, *args, **kwargs)
        return results if primitive.gives_list else results[0] if results else None

    method.__name__, method.__doc__ = primitive.name, primitive.plan.__doc__
    method.__qualname__ = f"Schedule.{primitive.name}"
    method.__signature__ = primitive.method_signature  # type: ignore[attr-defined]
    return method


for _name, _primitive in PRIMITIVES.items():
    if not hasattr(Recorder, _name):
        setattr(Schedule, _name, _method(_primitive))


def replay(
    script: ModuleOp | NamedSequenceOp, x: ModuleOp | Schedule, name: str | None = None, seed: int = 0
) -> Schedule:
    """A new schedule of a function, or of a Schedule's original, by a script."""
    return Schedule(x.original if isinstance(x, Schedule) else x, name, seed).apply(script)


__all__ = ["Handle", "Schedule", "Size", "replay", "script_of"]
