"""The program's own names for the parts of a record's program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from compiler.alternatives import Conditions
from compiler.database import Record
from compiler.dialects.functions import find_function
from compiler.driver.parts.forms import forms_of
from compiler.driver.parts.groups import OWN, whole_of
from compiler.driver.parts.single import single_of
from compiler.graph.provenance import Provenance
from compiler.pipeline import lower, parse
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.program.write import write
from compiler.support.errors import InputError
from compiler.types.machines import host


def names_of(x: object, record: Record) -> Provenance:
    """What a te program calls the parts of what a record is of: of the program, or of one of its groups.

    Which inputs are constant does not matter. Raises InputError where the record is of another program.
    """
    wanted = _text(read(find_function(parse(record.program, "the program"))))
    for program, names in _parts(x, record.key.policy):
        if _text(program) == wanted:
            return names
    raise InputError(f"record {record.id}, of {record.name}, is of another program: no part of this one is the same")


def _parts(x: object, policy: str) -> Iterator[tuple[Program, Provenance]]:
    """The loops of a program and of its groups, as records have them, and what the program calls their parts."""
    program_of_groups = whole_of(x, ())
    preferred = whole_of(x, (), conditions=Conditions(host(), policy))
    for written in filter(None, (program_of_groups, preferred)):
        yield from ((group.tree, group.names) for group in written.groups)
    yield from ((group.tree, group.names) for group in forms_of(x))
    single = single_of(x)
    if single is not None:
        yield single.group.tree, single.group.names
    if program_of_groups is None:
        yield read(find_function(lower(x))), OWN


def _text(program: Program) -> str:
    """The text of loops, whatever they are called and whichever inputs are constant."""
    return str(write(replace(program, name="", constants=(), values=())))
