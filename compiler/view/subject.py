"""`PageSubject`: a function to show, under the names of the user's program; the subjects of a kernel and of a
schedule."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.transform import NamedSequenceOp

from compiler.alternatives import Conditions
from compiler.dialects.functions import find_function
from compiler.driver.parts.groups import Group, te_module
from compiler.driver.parts.partition import alternatives
from compiler.driver.parts.single import single_group
from compiler.graph.provenance import Provenance
from compiler.graph.read import read as read_graph
from compiler.graph.user_names import graph_with_user_names, program_with_user_names, script_with_user_names
from compiler.graph.write import write as write_graph
from compiler.opt.diagnostics import PROGRAM_ERRORS
from compiler.pipeline.loops import tree_of
from compiler.pipeline.models import program_and_constants
from compiler.pipeline.source import parse
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.schedule.script import script_of
from compiler.support.errors import ScheduleError
from compiler.support.text import counted
from compiler.targets.groups import GroupFacts
from compiler.types.machines import host


@dataclass(frozen=True)
class PageSubject:
    """A function to show.

    te: its te program, None for loops. unscheduled: the loops to which the script applies, None without a script.
    script: None for the loops as written. module: what was compiled without a script, loops or the low level. facts:
    lines of the list of parts. original: the loops with which those of `module` are compared; None for no proof.
    """

    name: str
    te: ModuleOp | None = None
    unscheduled: Program | None = None
    script: ModuleOp | NamedSequenceOp | None = None
    module: ModuleOp | None = None
    facts: Sequence[str] = field(default_factory=tuple)
    original: Program | None = None


def subjects_of(
    certificate: Mapping[str, Any], facts: Sequence[GroupFacts], program: object = None, policy: str = "contract"
) -> Iterator[PageSubject]:
    """Yield the functions of a kernel from its certificate, in the order of their calls, those that run once first.
    program: the te program or model that was built, under `policy`; it has lines of source, which a certificate has
    not. Or the Schedule, which has a script."""
    if isinstance(program, Schedule):
        yield PageSubject(program.name, None, program.unscheduled, program.script)
        return
    function, constants = program_and_constants(program, None)
    source = _parsed(certificate["source"]) if program is None else te_module(function)
    by_name = {group.name: group for group in facts}
    is_single = source is not None and not certificate["main"]
    groups = {} if source is None or is_single else _groups_by_hash(function or source, tuple(constants or ()), policy)
    for group in certificate["groups"]:
        known = by_name.get(group["name"])
        if source is not None and is_single:
            yield _single(source, group, _facts(group, known))
        else:
            yield _named(group, groups.get(known.hash) if known else None, _facts(group, known))


def _facts(group: Mapping[str, Any], facts: GroupFacts | None) -> list[str]:
    """The lines of the list of parts: calls, the origin of the schedule, its verdict, and a law."""
    lines = [] if facts is None else [counted(facts.occurrences, "call")]
    lines += [f"schedule: {group['source']}"] + ([group["verdict"]] if group["verdict"] else [])
    return lines + ([f"law: {group['law']}"] if group["law"] else [])


def _parsed(text: str) -> ModuleOp | None:
    """The module of a te program's text; None for an empty text, and for one that has digests of large constants."""
    with suppress(*PROGRAM_ERRORS):
        return parse(text) if text else None
    return None


def _groups_by_hash(source: object, constants: Sequence[str], policy: str) -> dict[str, Group]:
    """The groups of a te program, as it is written and in the form that a build prefers, by their canonical hashes."""
    offers = alternatives(source, constants, conditions=Conditions(host(), policy))
    programs = (offers.program, offers.preferred.grouped)
    return {group.hash: group for program in programs if program is not None for group in program.groups if group.hash}


def _single(source: ModuleOp, group: Mapping[str, Any], facts: Sequence[str]) -> PageSubject:
    """The function of a program that is one group: its script is of the canonical form."""
    script = _script(group)
    form = None if script is None else single_group(source, _constants(source, group))
    if form is None or script is None:
        return PageSubject(group["name"], source, module=parse(group["loops"]), facts=facts)
    canonical = replace(form.with_program_signature(form.group.tree), name=group["name"])
    named = script_with_user_names(script, form.group.names)
    return _applicable(PageSubject(group["name"], source, form.unscheduled, named, facts=facts), canonical, script)


def _constants(source: ModuleOp, group: Mapping[str, Any]) -> list[str]:
    """The names of the inputs that are constant in all calls of a function."""
    arguments = find_function(source).body.block.args
    return [arguments[n].name_hint or f"arg{n}" for n in group["constants"] if n < len(arguments)]


def _named(group: Mapping[str, Any], known: Group | None, facts: Sequence[str]) -> PageSubject:
    """A group of a program, under the user's names if they are known."""
    name, script, names = group["name"], _script(group), Provenance() if known is None else known.names
    if not group["te"]:
        return PageSubject(name, module=parse(group["loops"]), facts=facts)
    te = parse(group["te"]) if known is None else known.module
    graph = replace(graph_with_user_names(read_graph(find_function(te)), names), name=name)
    if script is None:
        loops = program_with_user_names(read(find_function(parse(group["loops"]))), names, {})
        return PageSubject(name, ModuleOp([write_graph(graph)]), module=ModuleOp([write(loops)]), facts=facts)
    canonical = replace(tree_of(te), name=name)
    unscheduled, named = program_with_user_names(canonical, names, {}), script_with_user_names(script, names)
    subject = PageSubject(name, ModuleOp([write_graph(graph)]), unscheduled, named, facts=facts)
    return _applicable(subject, canonical, script)


def _applicable(subject: PageSubject, canonical: Program, script: ModuleOp) -> PageSubject:
    """A subject whose script applies to its loops; else, since a renamed script may not, that under canonical names."""
    try:
        assert subject.unscheduled is not None and subject.script is not None
        Schedule(subject.unscheduled).apply(subject.script, judged=False)
    except ScheduleError:
        return replace(subject, unscheduled=canonical, script=script)
    return subject


def _script(group: Mapping[str, Any]) -> ModuleOp | None:
    """The script of a group, parsed; None without one."""
    if not group["script"]:
        return None
    parent = script_of(group["script"]).parent_op()
    assert isinstance(parent, ModuleOp)
    return parent


def certificate_of(text: str) -> dict[str, Any]:
    """The certificate of a kernel as data."""
    content: dict[str, Any] = json.loads(text)
    return content
