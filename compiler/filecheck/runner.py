"""Run the RUN lines of an .mlir file.

In a line `%s` is the file, `%S` its folder, `%t` a path for a temporary file, `%T` a temporary folder, `%basename_t`
the name of the file, `%%` a per cent sign, and `%{name}` one of these or a substitution of the caller's. A file must
check something, and each directive must be one that filecheck obeys: a CHECK without a colon, a misspelt suffix or a
prefix of no RUN line is a failure. Where a file has shared payloads (payload.py), `%s` is the file with them.

`// REQUIRES: mlir-opt-22, x86_64` names programs of the PATH, the processor's architecture or the system; without them
the file is not run. `// UNSUPPORTED:` names what it is not run with; `// XFAIL: *` states that it fails.
"""

from __future__ import annotations

import platform
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from compiler.filecheck.payload import FileCheckError, expanded
from compiler.filecheck.shell import is_filecheck, program, run_line, tokens

_RUN = re.compile(r"//\s*RUN:\s*(.*?)\s*$", re.MULTILINE)
_WORD = re.compile(r"^\s*//\s*([A-Z][A-Z0-9_-]*)(\{LITERAL\})?(:?)")
_SUFFIX = re.compile(r"-(DAG|NOT|EMPTY|NEXT|SAME|LABEL|COUNT-[1-9]\d*)")
_PREFIXES = re.compile(r"--?check-prefix(?:es)?[= ](\S+)")
_SUBSTITUTION = re.compile(r"%(%|\{[\w.-]+\}|basename_t|[sStT](?![\w{]))")
_CONDITION = re.compile(r"^\s*//\s*(REQUIRES|UNSUPPORTED|XFAIL):\s*(.*?)\s*$", re.MULTILINE)
KEYWORDS = ("RUN", "COM", "REQUIRES", "UNSUPPORTED", "XFAIL")
COMPARING = ("diff", "cmp", "grep")
"""The programs that compare, beside filecheck."""


class Unsupported(FileCheckError):
    """Raised for a file that is not run here; the message names the missing requirement, or the system that is
    excluded."""


@dataclass(frozen=True)
class RunLines:
    """A FileCheck file: its path, its text with its payloads, and its RUN lines, continued ones joined."""

    path: Path
    text: str
    lines: tuple[str, ...]

    @classmethod
    def of(cls, path: Path) -> RunLines:
        """Read a file with its payloads and RUN lines. Raises FileCheckError for a malformed payload."""
        text = expanded(path)
        lines = [""]
        for line in _RUN.findall(text):
            lines[-1] += line.removesuffix("\\")
            if not line.endswith("\\"):
                lines.append("")
        return cls(path, text, tuple(line for line in lines if line))

    def substituted(self, line: str, folder: Path, substitutions: Mapping[str, str]) -> str:
        """Replace the substitutions of a line, the caller's, by name, before those of this module; `folder` is
        temporary and has the file with its payloads. Raises FileCheckError for an unknown name."""
        known = {
            "s": str(folder / self.path.name),
            "S": str(self.path.resolve().parent),
            "t": str(folder / "t"),
            "T": str(folder),
            "basename_t": self.path.stem,
            "%": "%",
            **substitutions,
        }

        def replaced(match: re.Match[str]) -> str:
            name = match[1].strip("{}")
            if name not in known:
                raise FileCheckError(f"{self.path}: there is no substitution '%{{{name}}}' in `{line}`")
            return known[name]

        return _SUBSTITUTION.sub(replaced, line)


def check(path: Path, substitutions: Mapping[str, str] | None = None) -> None:
    """Run every RUN line of a file, with the caller's substitutions by name.

    Raises FileCheckError for the first that fails; also, before any is run, for a file or a line that would pass with
    any output, and for a file that states that it fails and does not. Raises Unsupported for one that is not run here.
    """
    file = RunLines.of(path)
    for complaint in _vacuity_faults(file.text, list(file.lines)):
        raise FileCheckError(f"{path}: {complaint}")
    fails = _conditions(file)
    try:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / path.name).write_text(file.text, encoding="utf-8")
            for line in file.lines:
                run_line(file.substituted(line, Path(folder), substitutions or {}), path)
    except FileCheckError:
        if fails:
            return
        raise
    if fails:
        raise FileCheckError(f"{path}: it states XFAIL, and passes")


def _conditions(file: RunLines) -> bool:
    """Whether a file states that it fails here. Raises Unsupported for a file that is not run here."""
    fails = False
    for keyword, names in _CONDITION.findall(file.text):
        for name in filter(None, re.split(r"[\s,]+", names)):
            if keyword == "REQUIRES" and not _has(name):
                raise Unsupported(f"{file.path}: it requires {name}")
            if keyword == "UNSUPPORTED" and _has(name):
                raise Unsupported(f"{file.path}: it does not run with {name}")
            fails |= keyword == "XFAIL" and _has(name)
    return fails


def _has(name: str) -> bool:
    """Whether `name` is a program on this machine, or its architecture or system; True for `*`."""
    own = ("*", platform.machine().lower(), platform.system().lower())
    return name in own or program(name) is not None


def _vacuity_faults(text: str, commands: list[str]) -> Iterator[str]:
    """Yield the faults of a file that would let it, or one of its lines, pass with any output."""
    if not commands:
        yield "there is no RUN line"
    checking = [c for c in commands if any(is_filecheck(word) for word, _ in tokens(c))]
    compares = any(word in COMPARING for c in commands for word, _ in tokens(c))
    if not checking and not compares and not any("verify-diagnostics" in c for c in commands):
        yield "no RUN line ends in filecheck, compares, or says --verify-diagnostics"
    prefixes = {p for c in checking for p in prefixes_of(c)}
    used_prefixes = set()
    for number, line in enumerate(text.splitlines(), 1):
        word = _WORD.match(line)
        if word is None or word[1] in KEYWORDS:
            continue
        prefix = next((p for p in prefixes if word[1] == p or _SUFFIX.fullmatch(word[1].removeprefix(p))), None)
        if prefix is not None and word[3]:
            used_prefixes.add(prefix)
        elif word[3] or any(_alike(word[1], p) for p in prefixes):
            yield f"line {number} looks like a directive, and filecheck ignores it: {line.strip()}"
    for prefix in sorted(prefixes - used_prefixes):
        yield f"there is no {prefix} line"


def prefixes_of(command: str) -> list[str]:
    """The prefixes of the checks that a command with filecheck uses, CHECK by default."""
    options = _PREFIXES.findall(command)
    return [p for names in options for p in names.strip("'\"").split(",")] or ["CHECK"]


def _alike(word: str, prefix: str) -> bool:
    return word.startswith(prefix) or SequenceMatcher(None, word.split("-")[0], prefix).ratio() > 0.8
