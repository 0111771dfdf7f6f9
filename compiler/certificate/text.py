"""`Certificate`: the programs, groups, loops and hashes of a library, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from compiler.support.errors import InputError
from compiler.types.machines import Machine

FORMAT = 2
"""The number of the format."""
SUFFIX = ".certificate.json"
"""The suffix of a certificate beside the header NAME.h."""
NOT_PROVED = (
    "the lowering of the scheduled loops to machine code is hashed, not proved",
    "laws that change rounding are listed with their bounds, not proved",
    "the C text that passes the caller's arrays is compiled from the calls that the certificate states, not proved",
)
"""The limits of a certificate, which each one states."""


@dataclass(frozen=True)
class GroupCertificate:
    """A group of a program.

    te: its te function as text. loops: its scheduled loops as text. script: that was applied to the loops of `te`, for
    information; empty for the loops as written. source: the origin of the script: model, record or written. verdict: of
    the proof when the library was made. law: that made its form. constants, shared: positions of inputs that never
    change, and pairs of an input and an output that may be one array. objects: the SHA-256 of its object files. symbol,
    prepare: the symbols of the function of each call, and of the one that runs once; empty without one.
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
    symbol: str = ""
    prepare: str = ""


@dataclass(frozen=True)
class CallCertificate:
    """A call of a native function: its symbol, and its pointers in order, each a kind and a number: an `input`,
    `output` or `weight` by its position, `constant` or `scratch` memory at an offset in bytes."""

    symbol: str
    pointers: list[list[str | int]]


@dataclass(frozen=True)
class VersionCertificate:
    """A program for one processor.

    cpu, features: LLVM's names. machine: its facts as JSON. source: the te program as given, as text; empty for loops.
    program: the te program in groups, as text; empty for one function. main: the low-level function that calls the
    groups, as text; empty for one function. main_object: the SHA-256 of its object file. laws: those of the program and
    of groups, by name, each with its conditions in words. calls: the native calls, the preparations first, in order,
    then that of each run. copies: of weights to constants, by position, each with its offset in bytes.
    """

    cpu: str
    features: str
    machine: str
    policy: str
    threads: int
    source: str
    program: str
    groups: list[GroupCertificate]
    main: str = ""
    main_object: str = ""
    laws: dict[str, str] = field(default_factory=dict)
    calls: list[CallCertificate] = field(default_factory=list)
    copies: list[list[int]] = field(default_factory=list)

    @property
    def target(self) -> Machine:
        """The machine that the certificate describes. Raises InputError for a text that describes no machine."""
        try:
            return Machine(**json.loads(self.machine))
        except (ValueError, TypeError) as error:
            raise InputError(f"the certificate does not describe the machine {self.cpu}: {error}") from error


@dataclass(frozen=True)
class Certificate:
    """A certificate. library: the prefix of the library's functions. interface: its interface as JSON, as the library
    returns it. error: the rounding error of laws that the caller accepts; None for that of the written form. sections:
    the SHA-256 of the sections of the file that are loaded, by name; without them it is the part whose digest is in the
    library."""

    library: str
    versions: list[VersionCertificate]
    interface: str = ""
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
    """Parse the text of a certificate, called `source` in messages. Raises InputError if the text is no certificate, is
    of another format, or does not match its digest."""
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
    calls = [CallCertificate(**call) for call in facts.pop("calls")]
    version = VersionCertificate(groups=groups, calls=calls, **facts)
    texts = [version.source, version.program, version.main]
    texts += [text for group in groups for text in (group.name, group.te, group.loops)]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a program is no text")
    numbers = [n for pair in (*version.copies, *(p for group in groups for p in group.shared)) for n in _pair(pair)]
    numbers += [n for group in groups for n in group.constants]
    numbers += [n for call in calls for kind, n in map(_pair, call.pointers) if isinstance(kind, str)]
    if not groups or not all(isinstance(number, int) for number in numbers):
        raise TypeError("a position is no number")
    return version


def _pair(values: list[Any]) -> tuple[Any, Any]:
    first, second = values
    return first, second


def version(text: str) -> VersionCertificate:
    """The certificate of a version from its own JSON. Raises ValueError, TypeError or KeyError for another text."""
    return _version(json.loads(text))


def digest_of(payload: bytes) -> str:
    """The SHA-256 of bytes."""
    return sha256(payload).hexdigest()
