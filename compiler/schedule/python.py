"""A script as Python: the calls of `Schedule` that record it."""

from __future__ import annotations

from keyword import iskeyword

from xdsl.dialects.transform import NamedSequenceOp
from xdsl.ir import SSAValue

from compiler.dialects.sched import SchedOp
from compiler.program.names import fresh
from compiler.schedule.include import IncludeOp, included
from compiler.schedule.primitive import CHOICES, applies, primitive_of
from compiler.schedule.script import Script, script_of
from compiler.support.errors import ScheduleError

GIVERS = ("get_block", "get_loops", "get_producers", "get_consumers", *CHOICES)
"""The primitives that only return handles: they leave the program as it is."""
UNUSED = "_"


def as_python(script: Script, schedule: str = "s") -> str:
    """Print a script, given as IR, text or file, as a Python function of a Schedule that records the same script.

    %c = sched.get_block %f "C"              ->  C = s.get_block("C")
    %i, %j = sched.get_loops %c : ...        ->  i, j = s.get_loops(C)
    %o, %n = sched.split %i by [-1, 8] : ... ->  i_0, i_1 = s.split(i, [None, 8])

    Handles that nothing uses have no name; ops whose handles are all unused, and which change nothing, are left out.
    Raises ScheduleError for what is no script, and if `schedule` is no name of Python.

    >>> A = te.placeholder((64,), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> outer, inner = s.split(s.get_loops("B")[0], [None, 16])
    >>> print(strata.schedule.as_python(s.script))
    def schedule(s):
        B = s.get_block('B')
        i0, = s.get_loops(B)
        s.split(i0, [None, 16])
    """
    sequence = script_of(script)
    if not isinstance(schedule, str) or not schedule.isidentifier() or iskeyword(schedule):
        raise ScheduleError(f"the name of the schedule is {schedule!r}, expected one of Python", "python")
    names: dict[SSAValue, str] = {}
    live, ops = _live(sequence)
    lines = [_line(op, schedule, names, live) for op in ops]
    body = "\n".join(f"    {line}" for line in lines) or "    pass"
    return f"def schedule({schedule}):\n{body}"


def _live(sequence: NamedSequenceOp) -> tuple[set[SSAValue], list[SchedOp]]:
    """The handles that printed ops use, and these ops: those that change the program or define such a handle."""
    live, ops = set[SSAValue](), list[SchedOp]()
    for op in reversed(list(sequence.body.block.ops)):
        if isinstance(op, SchedOp) and (not applies(op, *GIVERS) or live.intersection(op.results)):
            live.update(op.operands)
            ops.insert(0, op)
    return live, ops


def _line(op: SchedOp, schedule: str, names: dict[SSAValue, str], live: set[SSAValue]) -> str:
    """Print an op as one line of Python, a call of the variable `schedule`; only results in `live` get a variable,
    which is added to `names`."""
    if isinstance(op, IncludeOp):
        return f"{schedule}.{included(op, names[op.block])}"
    primitive = primitive_of(op)
    call = f"{schedule}.{primitive.call(op, names)}"
    if not live.intersection(op.results):
        return call
    results = ", ".join(_name(result, schedule, names) if result in live else UNUSED for result in op.results)
    comma = "," if primitive.gives_list and len(op.results) == 1 else ""
    return f"{results}{comma} = {call}"


def _name(value: SSAValue, schedule: str, names: dict[SSAValue, str]) -> str:
    hint = "".join(c if c.isalnum() else "_" for c in value.name_hint or "x")
    hint = f"_{hint}" if hint[0].isdigit() or iskeyword(hint) else hint
    name = fresh(hint, {schedule, UNUSED, *names.values()}).replace(".", "_")
    while name in names.values():
        name += "_"
    names[value] = name
    return name
