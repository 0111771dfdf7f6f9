"""`emitted_again`: compile the loops of a certificate anew, and compare the object code with its hashes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from compiler import universe
from compiler.certificate.text import GroupCertificate, VersionCertificate, digest_of, parse
from compiler.dialects.functions import find_function, functions
from compiler.dialects.modules import parsed
from compiler.driver.main.assemble import MAIN_LEVEL
from compiler.driver.nests import build_unit
from compiler.driver.units.compile import CompileJob, compile_unit, compiled
from compiler.driver.units.unit import UnitKey
from compiler.lowering.low_to_llvm import emit
from compiler.passes.split_constants import split_program
from compiler.pipeline.certified import Finding, beside
from compiler.pipeline.source import level_of
from compiler.program.read import read
from compiler.support import files
from compiler.targets.cpu.compile import object_code
from compiler.types.selection import compiling_for


def emitted_again(library: Path, certificate: Path | None = None) -> Iterator[Finding]:
    """Compile the groups and the main function of each version of a library anew, by this release of Strata and LLVM.
    Yields a finding for each; other releases give other code. certificate: its file; None for the file beside the
    library. Raises InputError for files that cannot be read, and for a certificate that is none."""
    path = certificate or beside(library)
    for version in parse(files.read(path), str(path)).versions:
        with compiling_for(version.target):
            yield from _findings(version)


def _findings(version: VersionCertificate) -> Iterator[Finding]:
    for group in version.groups:
        actual = _objects_of(group, version)
        words = "emitted again to the same code" if actual == group.objects else "emitted again to other code"
        yield Finding(f"{version.cpu}, group {group.name}", actual == group.objects, words)
    if version.main:
        module = parsed(universe.context(), version.main, "main of the certificate")
        elsewhere = [function.sym_name.data for function in functions(module) if not function.body.blocks]
        code = object_code(emit(module, version.target), version.target, MAIN_LEVEL, elsewhere)
        holds = digest_of(code.code) == version.main_object
        yield Finding(f"{version.cpu}, main", holds, f"emitted again to {'the same' if holds else 'other'} code")


def _objects_of(group: GroupCertificate, version: VersionCertificate) -> list[str]:
    """The SHA-256 of each object file of a group, compiled anew from the certificate's loops or, if these are at
    another level, as a program; with the version's policy and threads."""
    module = parsed(universe.context(), group.loops, f"@{group.name} of the certificate")
    if level_of(module) != "loop":
        codes = build_unit(module, version.threads, version.policy, group.name).codes
        return [digest_of(code.object.code) for code in codes]
    program = read(find_function(module))
    if not version.main:
        names = [buffer.name for buffer in program.arguments]
        constants = [names[position] for position in group.constants]
        parts = split_program(program, constants, apart=bool(constants or program.literals))
        codes = compiled(parts, names, version.policy, version.threads).codes
        return [digest_of(code.object.code) for code in codes]
    shared = tuple((source, target) for source, target in group.shared)
    key = UnitKey(
        group.te,
        group.script or None,
        tuple(group.constants),
        shared,
        version.policy,
        version.threads,
        f"{version.cpu} {version.features}",
    )
    unit = compile_unit(CompileJob(key, group.name, program))
    return [digest_of(code.object.code) for code in unit.codes]
