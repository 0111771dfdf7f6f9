"""`Certificate`: the programs, groups, loops and hashes of a library, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from compiler.support.errors import InputError

FORMAT = 1
"""The number of the format."""
SUFFIX = ".certificate.json"
"""The suffix of a certificate beside the header NAME.h."""
NOT_PROVED = (
    "the lowering of the scheduled loops to machine code is hashed, not proved",
    "laws that change rounding are listed with their bounds, not proved",
    "the division of the program into groups, and the order and memory of their calls, are stated, not proved",
)
"""The limits of a certificate, which each one states."""


@dataclass(frozen=True)
class GroupCertificate:
    """A group of a program.

    te: its te function as text. loops: its scheduled loops as text. script: that was applied to the loops of `te`, for
    information; empty for the loops as written. source: the origin of the script: model, record or written. verdict: of
    the proof when the library was made. law, where: the law that made its form, and its conditions in words. constants,
    shared: positions of inputs that never change, and pairs of an input and an output in one array. objects: the
    SHA-256 of its object files. emitted: the loops under the names of the program, if they differ from `loops`.
    """

    name: str
    te: str
    loops: str
    script: str
    source: str
    verdict: str
    law: str = ""
    constants: list[int] = field(default_factory=list)
    shared: list[list[int]] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)
    emitted: str = ""


@dataclass(frozen=True)
class VersionCertificate:
    """A program for one processor.

    cpu, features: LLVM's names. machine: its facts as JSON. program: the te program in groups, as text. main: the
    low-level function that calls the groups, as text; empty for one group. main_object: the SHA-256 of its object file.
    laws: those of the program and of groups, by name, each with its conditions in words.
    """

    cpu: str
    features: str
    machine: str
    policy: str
    threads: int
    program: str
    groups: list[GroupCertificate]
    main: str = ""
    main_object: str = ""
    laws: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Certificate:
    """A certificate. library: the prefix of the library's functions. error: the rounding error of laws that the caller
    accepts; None for that of the written form. sections: the SHA-256 of the sections of the file that are loaded, by
    name; without them it is the part whose digest is in the library."""

    library: str
    versions: list[VersionCertificate]
    error: float | None = None
    sections: Mapping[str, str] = field(default_factory=dict)
    not_proved: tuple[str, ...] = NOT_PROVED

    @property
    def digest(self) -> str:
        """The SHA-256 of all but the sections."""
        body = {name: value for name, value in asdict(self).items() if name != "sections"}
        return sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()

    def text(self) -> str:
        """The certificate as JSON."""
        return json.dumps({"strata_certificate": FORMAT, "digest": self.digest, **asdict(self)}, indent=1) + "\n"


def parse(text: str, source: str) -> Certificate:
    """Parse a certificate. Raises InputError for a text that is none, of another format, or changed by hand."""
    try:
        facts = json.loads(text)
        if facts.pop("strata_certificate") != FORMAT:
            raise InputError(f"{source} is a certificate of another format than {FORMAT}")
        digest = facts.pop("digest")
        versions = [_version(version) for version in facts.pop("versions")]
        facts["not_proved"] = tuple(facts["not_proved"])
        certificate = Certificate(versions=versions, **facts)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{source} is no certificate: {error}") from error
    if digest != certificate.digest:
        raise InputError(f"{source} was changed: its digest is not that of its text")
    return certificate


def _version(facts: dict[str, Any]) -> VersionCertificate:
    groups = [GroupCertificate(**group) for group in facts.pop("groups")]
    version = VersionCertificate(groups=groups, **facts)
    texts = [version.program, version.main, *(text for group in groups for text in (group.name, group.te, group.loops))]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a program is no text")
    return version


def version(text: str) -> VersionCertificate:
    """The certificate of a version from its own JSON."""
    return _version(json.loads(text))


def digest_of(payload: bytes) -> str:
    """The SHA-256 of bytes."""
    return sha256(payload).hexdigest()
