"""`check_certificate`: the findings on a library: its hashes, its interface, and the proofs of its certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compiler.analysis.verify.prove import Verdict
from compiler.certificate.elf import sections
from compiler.certificate.text import SUFFIX, Certificate, GroupCertificate, VersionCertificate, digest_of, parse
from compiler.pipeline.certified.calls import calls_verdict
from compiler.pipeline.certified.division import division_verdict
from compiler.pipeline.certified.interface import LibraryInterface, interface_verdict, parsed_interface
from compiler.pipeline.certified.schedules import verdict_of
from compiler.support import files


@dataclass(frozen=True)
class Finding:
    """A result of a check: its subject, whether it holds, and a sentence. script: the schedule's script that it
    concerns; empty for none."""

    subject: str
    holds: bool
    words: str
    script: str = ""

    def __str__(self) -> str:
        return f"{self.subject}: {self.words}"


def check_certificate(library: Path, certificate: Path | None = None) -> Iterator[Finding]:
    """Check a library against its certificate, by default the file NAME.certificate.json beside it.

    Yields a finding for each of the library's hashes; for each version one for each group and those of `whole_findings`
    on the division into groups, the calls and the interface. Nothing of the library is run. Raises InputError for files
    that cannot be read, and for a certificate that is none.
    """
    path = certificate or beside(library)
    stated = parse(files.read(path), str(path))
    yield from _hashes(library, stated)
    interface = parsed_interface(stated.interface)
    for version in stated.versions:
        yield from schedule_findings(version)
        yield from whole_findings(version, interface, stated.error)


def beside(library: Path) -> Path:
    """Return the path of the certificate beside a library: NAME.certificate.json for libNAME.so or NAME.so, up to the
    first dot."""
    return library.parent / (library.name.partition(".")[0].removeprefix("lib") + SUFFIX)


def _hashes(library: Path, stated: Certificate) -> Iterator[Finding]:
    with files.read_errors(library):
        payload = library.read_bytes()
    has_digest = stated.digest.encode() in payload
    words = "names this certificate" if has_digest else "does not name this certificate: it belongs to another library"
    yield Finding(str(library), has_digest, words)
    has_interface = stated.interface.encode() in payload
    yield Finding(str(library), has_interface, f"has {'the' if has_interface else 'another'} interface")
    actual = {name: digest_of(content) for name, content in sections(payload, str(library)).items()}
    changed = sorted(name for name in {*actual, *stated.sections} if actual.get(name) != stated.sections.get(name))
    words = f"{', '.join(changed)} changed" if changed else f"{len(actual)} sections have their hashes"
    yield Finding(str(library), not changed, words)


def schedule_findings(version: VersionCertificate) -> Iterator[Finding]:
    """Yield for each group of a version whether its loops compute its te function; groups of equal texts are proved
    once."""
    proved = dict[tuple[str, str], Verdict]()
    for group in version.groups:
        key = (group.te, group.loops)
        if key not in proved:
            proved[key] = verdict_of(group)
        verdict = proved[key]
        words = f"{verdict} ({_origin(group, version)})"
        yield Finding(f"{version.cpu}, group {group.name}", bool(verdict), words, group.script)


def _origin(group: GroupCertificate, version: VersionCertificate) -> str:
    """Return a clause on the origin of a group's loops (a record, the rules, or as written), and on the law of its
    form."""
    origins = {"record": f"under a record of {version.target.name}", "model": "under the rules' schedule"}
    origin = origins.get(group.source, "as written")
    return f"in the form of the law '{group.law}', {origin}" if group.law else origin


def whole_findings(version: VersionCertificate, interface: LibraryInterface, error: float | None) -> Iterator[Finding]:
    """Yield whether the groups, the calls and the interface of a version are those of its te program; nothing for a
    program without te, and nothing on calls and interface if outputs are changed in place. `error`: the accepted
    rounding error of laws."""
    if not version.source:
        return
    if version.program:
        division = division_verdict(version, interface.weights_for(version.cpu), error)
        laws = f" (by the laws {', '.join(version.laws)})" if version.laws else ""
        yield Finding(f"{version.cpu}, division into groups", bool(division), f"{division}{laws}")
    if version.calls and interface.results:
        calls = calls_verdict(version, interface)
        yield Finding(f"{version.cpu}, calls", bool(calls), str(calls))
        arrays = interface_verdict(version, interface)
        yield Finding(f"{version.cpu}, interface", bool(arrays), str(arrays))
