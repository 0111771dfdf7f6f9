"""`names_of`: the program's names for the buffers and axes of a record's program, which is canonical."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from compiler.alternatives import Conditions
from compiler.database import Record
from compiler.dialects.functions import find_function
from compiler.driver.parts.forms import forms_of
from compiler.driver.parts.groups import OWN, grouped_program
from compiler.driver.parts.single import single_group
from compiler.graph.provenance import Provenance
from compiler.pipeline.loops import lower
from compiler.pipeline.source import parse
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.program.write import write
from compiler.support.errors import InputError
from compiler.types.machines import host


def names_of(x: object, record: Record) -> Provenance:
    """The mapping from the canonical names of a record to those of a te program, which is the record's or contains it
    as a group. `x` is a program as for `alternatives`. The comparison ignores constant inputs. Raises InputError for a
    record of another program."""
    record_text = _text(read(find_function(parse(record.program, "the program"))))
    for program, names in _parts(x, record.key.policy):
        if _text(program) == record_text:
            return names
    raise InputError(f"record {record.id}, of {record.name}, is of another program: no part of this one is the same")


def _parts(x: object, policy: str) -> Iterator[tuple[Program, Provenance]]:
    """Yield the canonical loops of a program, its groups and their forms, each with its map to the program's names."""
    program_of_groups = grouped_program(x, ())
    preferred = grouped_program(x, (), conditions=Conditions(host(), policy))
    for written in filter(None, (program_of_groups, preferred)):
        yield from ((group.tree, group.names) for group in written.groups)
    yield from ((group.tree, group.names) for group in forms_of(x))
    single = single_group(x)
    if single is not None:
        yield single.group.tree, single.group.names
    if program_of_groups is None:
        yield read(find_function(lower(x))), OWN


def _text(program: Program) -> str:
    """The text of loops, without the name of the function and without constants."""
    return str(write(replace(program, name="", constants=(), values=())))
