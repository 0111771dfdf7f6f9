"""The facts of a worker, as plain data that any version of the package can read."""

from __future__ import annotations

import platform
import socket
from dataclasses import asdict, dataclass

from compiler.database.record import versions
from compiler.driver.cache.fingerprint import fingerprint
from compiler.targets.cpu.openmp import cores
from compiler.types.machines import Machine, host


@dataclass(frozen=True)
class WorkerFacts:
    """A worker's host, machine and number of builders. versions: of the package and of the tools that it compiles with,
    by name. sources: a digest of the package's files; empty if they cannot be read."""

    host: str
    machine: Machine
    builders: int
    versions: dict[str, str]
    sources: str


def own_facts(builders: int | None = None) -> dict[str, object]:
    """The facts of this process as plain data, a dict of the fields of WorkerFacts. builders: by default one a core."""
    all_versions = {**versions(), "python": platform.python_version()}
    return asdict(WorkerFacts(socket.gethostname(), host(), builders or cores(), all_versions, fingerprint() or ""))


def read_facts(plain: object) -> WorkerFacts | None:
    """The inverse of `own_facts`; None for malformed data, such as that of another version."""
    try:
        fields = dict(plain)  # type: ignore[call-overload]
        return WorkerFacts(**{**fields, "machine": Machine(**fields["machine"])})
    except (KeyError, TypeError, ValueError):
        return None


def difference(facts: WorkerFacts, ours: WorkerFacts) -> str | None:
    """Return a sentence that names the first version that differs, or that the files differ, so that a worker cannot
    measure for this process; None if all agree. Versions of Python agree if the first two numbers do, files if either
    digest is empty."""
    for name, version in ours.versions.items():
        theirs = facts.versions.get(name, "none")
        if name != "python" and theirs != version:
            return f"it has {name} {theirs}, this is {version}"
    if _minor(facts.versions) != _minor(ours.versions):
        return f"it has Python {facts.versions.get('python', 'none')}, this is {ours.versions['python']}"
    if facts.sources and ours.sources and facts.sources != ours.sources:
        return "its files of the package differ from those here"
    return None


def _minor(all_versions: dict[str, str]) -> str:
    return all_versions.get("python", "").rpartition(".")[0]
