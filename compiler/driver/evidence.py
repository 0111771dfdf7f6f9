"""The evidence of a compiled program: its te functions, scheduled loops and object code, for a certificate."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from xdsl.dialects.builtin import ModuleOp

from compiler.alternatives import GROUP_LAWS, PROGRAM_LAWS
from compiler.certificate.text import GroupCertificate, VersionCertificate, digest_of
from compiler.driver.units.compile import CompileJob, loops_of
from compiler.driver.units.unit import Scheduled, Unit
from compiler.program.write import write
from compiler.targets.groups import GroupFacts
from compiler.types.machines import host, machine_facts


def group_certificate(job: CompileJob, unit: Unit, source: Scheduled, facts: GroupFacts) -> GroupCertificate:
    """The certificate of a unit that main calls."""
    key = job.key
    return GroupCertificate(
        job.name,
        key.text,
        str(ModuleOp([write(loops_of(job))])),
        key.script or "",
        source.origin,
        facts.verdict,
        facts.law,
        list(key.constants),
        [list(pair) for pair in key.shared],
        [digest_of(code.object.code) for code in unit.codes],
        unit.call.interface.symbol,
        _preparation(unit),
    )


def _preparation(unit: Unit) -> str:
    """The symbol of a unit's preparation; empty without one."""
    return "" if unit.prepare is None else unit.prepare.interface.symbol


def nest_certificate(
    te: str, loops: str, unit: Unit, source: Scheduled, facts: GroupFacts | None, constants: Sequence[int] = ()
) -> GroupCertificate:
    """Return the certificate of a program of one function. te: its te text, empty for a program that was built from
    loops. facts: None without a verdict. constants: the positions of its constant inputs."""
    return GroupCertificate(
        unit.call.name,
        te,
        loops,
        source.script or "",
        source.origin,
        "" if facts is None else facts.verdict,
        constants=list(constants),
        objects=[digest_of(code.object.code) for code in unit.codes],
        symbol=unit.call.interface.symbol,
        prepare=_preparation(unit),
    )


def version_text(
    source: str,
    groups: Sequence[GroupCertificate],
    policy: str,
    threads: int,
    main: Mapping[str, str] | None = None,
    laws: Sequence[str] = (),
) -> str:
    """The certificate of a program for this machine, as JSON, without its calls. source: the te program as given. main:
    the fields `program`, `main` and `main_object` of a program of groups. laws: those of the whole program."""
    machine = host()
    used = dict.fromkeys((*laws, *(group.law for group in groups if group.law)))
    version = VersionCertificate(
        machine.cpu, machine.features, machine_facts(machine), policy, threads, source, "", list(groups)
    )
    return json.dumps({**asdict(version), **(main or {}), "laws": {name: _conditions(name) for name in used}})


def _conditions(law: str) -> str:
    """The conditions of a law in words: its documentation without the sketches of IR; empty for an unknown law."""
    laws = {known.name: known for known in (*PROGRAM_LAWS, *GROUP_LAWS)}
    forms = laws[law].forms if law in laws else None
    paragraphs = (inspect.getdoc(getattr(forms, "func", forms)) or "").split("\n\n") if forms else []
    return " ".join(" ".join(text.split()) for text in paragraphs if not text.startswith(" "))
