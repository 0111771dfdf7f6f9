"""`Schedule`: a loop function with the script of the primitives applied to it.

Its methods come from the declarations in `primitives/`; their types are in `schedule.pyi`, which `tools/docs.py`
writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp

from compiler.schedule.parameters import Handle, Size
from compiler.schedule.primitive import Primitive
from compiler.schedule.primitives import PRIMITIVES, of_plugins
from compiler.schedule.recorder import Recorder
from compiler.schedule.script import Script, script_of
from compiler.support.text import similar_names

ALIASES = {"compute_inline": "inline", "reverse_compute_inline": "reverse_inline"}
"""Map TVM's names of primitives to the names here."""
ELSEWHERE = {
    "tile": "split each loop, then reorder: the pass tile does both",
    "blockize": "tensorize matches the loops of a block as they are",
    "compute_root": "a block stands outside all loops until compute_at moves it",
    "store_at": "compute_at and set_scope say where a block is computed and kept",
    "transform_block_layout": "split, fuse and reorder change loops; transform_layout and pack change buffers",
    "set_axis_separator": "transform_layout with a map does it",
    "interchange": "reorder puts loops of a nest into another order",
    "mod": "a schedule has `module`, with the scheduled function",
    "show": "print(schedule.script) prints the script, print(schedule.module) the loops",
    "trace": "print(schedule.script) prints what was applied",
    "undo": "copy.copy(schedule) before a step is what to go back to",
    "as_python": "schedule.python() is the script as calls of a Schedule",
    "lower": "strata.build(schedule) compiles it, schedule.module has its loops",
}
"""Names that other compilers use, and the method here that does the same."""


class _WithPlugins(type):
    """The class of `Schedule`: its attributes are also the methods of plugins' primitives, for `help`."""

    def __getattr__(cls, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        added = of_plugins()
        if name in added:
            return _method(added[name])
        raise AttributeError(_unknown(name, [*PRIMITIVES, *added]))


class Schedule(Recorder, metaclass=_WithPlugins):
    """A loop-level function and the script that leads from the original to it.

    Each method is one op of the `sched` dialect: it is planned, judged by `legal`, applied and recorded. A refusal
    raises ScheduleError and changes nothing. `print(schedule.script)` replays to the same IR; `module` is the module
    with the scheduled function.

    `x` is a te function, which is lowered as it is written, a loop-level module, such as a result of `strata.lower`, or
    such a function as a tree (`strata.program.tree.Program`), which is not verified; `seed` is the seed of choices
    without a decision. Raises ScheduleError for a module that is not at the loop level, and for any other `x`,
    InputError for a module of several functions without `name`, the name of one, and for one without such a function,
    and VerifyException for an invalid module.

    A block is passed by its handle or its name, a loop by its handle, as "C.k", or as "k" where one loop only has that
    name; the script has the handle that get_block or get_loops returned.

    >>> A = te.placeholder((64,), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> outer, inner = s.split(s.get_loops("B")[0], [None, 16])
    >>> print(strata.schedule.outline(s.program))
    i0.0 = 4
      i0.1 = 16
        B = f(A)
    """

    def __getattr__(self, name: str) -> object:
        added = of_plugins()
        if name in added:
            return _method(added[name]).__get__(self)
        raise AttributeError(_unknown(name, [*PRIMITIVES, *added]))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *of_plugins()]


def _unknown(name: str, names: Sequence[str]) -> str:
    """The message for an unknown method: Strata's method for the same step, or methods with similar names."""
    hint = ELSEWHERE.get(name) or ", ".join(f"'{each}'" for each in similar_names(name, names, 3))
    suggestion = f"; did you mean {hint}?" if hint.startswith("'") else f"; {hint}" if hint else ""
    return f"there is no primitive '{name}'{suggestion}"


def _method(primitive: Primitive) -> Callable[..., Handle | list[Handle] | None]:
    """Return the method of Schedule that applies a primitive; the method returns None, a handle, or a list of
    handles."""

    def method(self: Schedule, *args: object, **kwargs: object) -> Handle | list[Handle] | None:
        handles = self.call(primitive, *args, **kwargs)
        return handles if primitive.gives_list else handles[0] if handles else None

    method.__name__, method.__doc__ = primitive.name, primitive.plan.__doc__
    method.__qualname__ = f"Schedule.{primitive.name}"
    method.__signature__ = primitive.method_signature  # type: ignore[attr-defined]
    return method


for _name, _primitive in PRIMITIVES.items():
    if not hasattr(Recorder, _name):
        setattr(Schedule, _name, _method(_primitive))
for _name, _meant in ALIASES.items():
    setattr(Schedule, _name, getattr(Schedule, _meant))


def replay(script: Script, x: ModuleOp | Schedule, name: str | None = None, seed: int = 0) -> Schedule:
    """Apply a script to a new schedule of a function, or of a Schedule's original. name: of the function; needed for a
    module of several. seed: of choices without a decision. Raises ScheduleError at the first refusal, for what is no
    script, and for a function that is not at the loop level; InputError if no function or several fit; VerifyException
    for an invalid module.

    >>> A = te.placeholder((64,), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> s.parallel(s.get_loops("B")[0])
    >>> strata.schedule.replay(s.script, s).program == s.program
    True
    """
    return Schedule(x.original if isinstance(x, Schedule) else x, name, seed).apply(script)


__all__ = ["Handle", "Schedule", "Size", "replay", "script_of"]
