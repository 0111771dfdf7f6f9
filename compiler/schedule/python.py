"""A script as Python: the calls of `Schedule` that record it."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.transform import NamedSequenceOp
from xdsl.ir import SSAValue

from compiler.dialects.sched import SchedOp
from compiler.program.names import fresh
from compiler.schedule.primitive import primitive_of


def as_python(script: ModuleOp | NamedSequenceOp, schedule: str = "s") -> str:
    """A script as a Python function of a Schedule, one call an op, which records the same script.

    %c = sched.get_block %f "C"              ->  C = s.get_block("C")
    %i, %j = sched.get_loops %c : ...        ->  i, j = s.get_loops(C)
    %o, %n = sched.split %i by [-1, 8] : ... ->  i_0, i_1 = s.split(i, [None, 8])
    """
    sequence = script if isinstance(script, NamedSequenceOp) else script.body.block.first_op
    assert isinstance(sequence, NamedSequenceOp)
    names: dict[SSAValue, str] = {}
    lines = [_line(op, schedule, names) for op in sequence.body.block.ops if isinstance(op, SchedOp)]
    body = "\n".join(f"    {line}" for line in lines) or "    pass"
    return f"def schedule({schedule}):\n{body}"


def _line(op: SchedOp, schedule: str, names: dict[SSAValue, str]) -> str:
    """One call, its results named."""
    primitive = primitive_of(op)
    call = f"{schedule}.{primitive.call(op, names)}"
    results = ", ".join(_name(result, schedule, names) for result in op.results)
    comma = "," if primitive.gives_list and len(op.results) == 1 else ""
    return f"{results}{comma} = {call}" if results else call


def _name(result: SSAValue, schedule: str, names: dict[SSAValue, str]) -> str:
    hint = "".join(c if c.isalnum() else "_" for c in result.name_hint or "x")
    hint = f"_{hint}" if hint[0].isdigit() else hint
    name = fresh(hint, {schedule, *names.values()}).replace(".", "_")
    while name in names.values():
        name += "_"
    names[result] = name
    return name
