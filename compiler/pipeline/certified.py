"""`check_certificate`: prove the schedules of a library anew from its certificate's texts, and compare the hashes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from compiler import universe
from compiler.analysis.verify.prove import Verdict, verify_schedule
from compiler.certificate.elf import sections
from compiler.certificate.text import SUFFIX, Certificate, GroupCertificate, digest_of, parse
from compiler.dialects.functions import find_function
from compiler.dialects.modules import parsed
from compiler.lowering.te_to_loop.nests import program_of
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.support import files


@dataclass(frozen=True)
class Finding:
    """A line of a check: its subject, whether it holds, and the words for it."""

    subject: str
    holds: bool
    words: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.words}"


def check_certificate(library: Path, certificate: Path | None = None) -> Iterator[Finding]:
    """Check a library against its certificate, by default the file NAME.certificate.json beside it.

    Yields a finding for the library's hashes, and one for each different group of each version. Nothing of the library
    is run. Raises InputError for files that cannot be read, and for a certificate that is none.
    """
    path = certificate or beside(library)
    stated = parse(files.read(path), str(path))
    yield from _hashes(library, stated)
    for version in stated.versions:
        proved = dict[tuple[str, str], Verdict]()
        for group in version.groups:
            key = (group.te, group.loops)
            if key not in proved:
                proved[key] = verdict_of(group)
            verdict = proved[key]
            yield Finding(f"{version.cpu}, group {group.name}", bool(verdict), f"{verdict}{_law(group)}")


def beside(library: Path) -> Path:
    """The path of the certificate beside a library."""
    return library.parent / (library.name.partition(".")[0].removeprefix("lib") + SUFFIX)


def _law(group: GroupCertificate) -> str:
    return f" (in the form of the law '{group.law}')" if group.law else ""


def _hashes(library: Path, stated: Certificate) -> Iterator[Finding]:
    with files.read_errors(library):
        payload = library.read_bytes()
    has_digest = stated.digest.encode() in payload
    words = "names this certificate" if has_digest else "does not name this certificate: it belongs to another library"
    yield Finding(str(library), has_digest, words)
    actual = {name: digest_of(content) for name, content in sections(payload, str(library)).items()}
    changed = sorted(name for name in {*actual, *stated.sections} if actual.get(name) != stated.sections.get(name))
    words = f"{', '.join(changed)} changed" if changed else f"{len(actual)} sections have their hashes"
    yield Finding(str(library), not changed, words)


def verdict_of(group: GroupCertificate) -> Verdict:
    """Prove that the loops of a group compute its te function. Raises xDSL's ParseError and VerifyException for
    texts that are no programs."""
    if not group.te:
        return Verdict("undecided", "it was given as loops, without a te function")
    original = program_of(find_function(_parsed(group.te, group.name)))
    return verify_schedule(_loops(group), original)


def _loops(group: GroupCertificate) -> Program:
    return read(find_function(_parsed(group.loops, group.name)))


def _parsed(text: str, name: str) -> ModuleOp:
    return parsed(universe.context(), text, f"@{name} of the certificate")
