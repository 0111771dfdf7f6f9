"""`verify`: prove that one loop program computes the same as another."""

from __future__ import annotations

from compiler.analysis.verify.prove import Verdict, verify_schedule
from compiler.dialects.functions import find_function
from compiler.pipeline.source import level_of, module_of
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.schedule import Schedule
from compiler.support.errors import InputError


def verify(scheduled: object, original: object = None, name: str | None = None) -> Verdict:
    """Prove that a scheduled loop program computes the same as its original, or refute it; no script is needed.

    scheduled: a Schedule, or loops as a module, text or the path of an .mlir file, such as loops edited by hand.
    original: the original program, in one of these forms; by default the program that the Schedule began with.
    name: the function, where there are several.

    Returns a Verdict, which is true only if `proved`; a refutation gives an instance as its reason. Raises InputError
    for a program that is not at the loop level, or without an original.

    >>> A = te.placeholder((64, 48), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> outer, inner = s.split(s.get_loops("B")[0], [None, 10])
    >>> print(strata.verify(s))
    proved
    """
    if original is None:
        if not isinstance(scheduled, Schedule):
            raise InputError("verify needs the original program beside one that is no Schedule")
        return scheduled.verify()
    return verify_schedule(_loops(scheduled, name), _loops(original, name))


def _loops(x: object, name: str | None) -> Program:
    if isinstance(x, Schedule):
        return x.program
    module = module_of(x)
    if level_of(module) != "loop":
        raise InputError("verify compares programs at the loop level: strata.lower gives the loops of a te function")
    return read(find_function(module, name))
