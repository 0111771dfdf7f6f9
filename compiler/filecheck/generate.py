"""Generate the CHECK lines of a file from what its RUN lines print, as MLIR's generate-test-checks.

Each line of the output is a check, in order; each name of a value is a variable of filecheck from its definition on, so
that other names of values pass.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from compiler.filecheck.payload import FileCheckError
from compiler.filecheck.runner import RunLines, prefixes_of
from compiler.filecheck.shell import is_filecheck, pipes, run_pipe

_VALUE = re.compile(r"%([A-Za-z0-9_$.-]+)")
_FUNCTION = re.compile(r"^\s*(?:\w+\.)?func(?:\.func)?\s+(?:private\s+)?@([\w$.-]+)")
_SPECIAL = re.compile(r"\{\{|\[\[")
_DEFINED = r"[^ ,:)=]+"
"""The characters of a name in a definition."""


def updated(path: Path, substitutions: Mapping[str, str] | None = None) -> str:
    """Return the text of a file with the checks of each RUN line that ends in filecheck replaced by those of its
    output: before the function of the same name, or at the end of the file. `substitutions` are the caller's, by name.

    Raises FileCheckError for a file without such a line or with payloads, for a malformed line or an unknown
    substitution, for two such lines of one prefix whose outputs differ, and if a command fails.
    """
    file = RunLines.of(path)
    text = path.read_text(encoding="utf-8")
    if text != file.text:
        raise FileCheckError(f"{path}: a file with payloads is not updated")
    outputs = dict[str, str]()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / path.name).write_text(text, encoding="utf-8")
        for line in file.lines:
            for prefix, output in _outputs(file.substituted(line, Path(folder), substitutions or {}), path):
                if outputs.setdefault(prefix, output) != output:
                    raise FileCheckError(f"{path}: RUN lines with the prefix {prefix} print different texts")
    if not outputs:
        raise FileCheckError(f"{path}: no RUN line ends in filecheck")
    for prefix, output in outputs.items():
        text = _with_checks(_without_checks(text, prefix), list(_checks(output, prefix)))
    return text


def _outputs(line: str, path: Path) -> Iterator[tuple[str, str]]:
    """Run a line without its filecheck; yield the prefix of the checks and the output. Yield nothing for a line without
    filecheck, which is run too."""
    for commands in pipes(line):
        last = commands[-1].words
        if not is_filecheck(last[0]):
            run_pipe(commands, path)
            continue
        options = " ".join(last)
        file = re.search(r"--?input-file[= ](\S+)", options)
        output = Path(file[1]).read_text(encoding="utf-8") if file else run_pipe(commands[:-1], path)
        yield prefixes_of(options)[0], output


def _without_checks(text: str, prefix: str) -> str:
    check = re.compile(rf"^[ \t]*//[ \t]*{re.escape(prefix)}(-[A-Z0-9-]+)?(\{{LITERAL\}})?:.*\n", re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", check.sub("", text))


def _with_checks(text: str, groups: list[tuple[str | None, list[str]]]) -> str:
    """Insert groups of checks before the functions of their names in a text, those without a function at its end."""
    lines, trailing = text.rstrip("\n").split("\n"), list[str]()
    for name, checks in groups:
        position = next((n for n, line in enumerate(lines) if (m := _FUNCTION.match(line)) and m[1] == name), None)
        if name is None or position is None:
            trailing += ["", *checks]
        else:
            lines[position:position] = checks
    return "\n".join([*lines, *trailing]) + "\n"


def _checks(output: str, prefix: str) -> Iterator[tuple[str | None, list[str]]]:
    """Yield the checks of each function of an output, with its name; those before the first function have the name
    None. Lines without a word, such as braces, are checked only inside functions. prefix: the word of the directives,
    such as CHECK."""
    name: str | None = None
    checks: list[str] = []
    variables = _Variables()
    for line in output.splitlines():
        function = _FUNCTION.match(line)
        if function is not None:
            if checks:
                yield name, checks
            name, variables = function[1], _Variables()
            checks = list(_signature(line.strip(), prefix, variables))
        elif name is None and not re.search(r"\w", line):
            continue
        elif line.strip() and (name is not None or not line.startswith(("builtin.module", "module"))):
            directive = f"{prefix}-NEXT" if checks else prefix
            checks.append(f"// {directive}: {_margin(line)}{variables.checked(line.strip())}")
    while checks and checks[-1].endswith((": }", ":   }")):
        checks.pop()
    if checks:
        yield name, checks


def _margin(line: str) -> str:
    return " " * (len(line) - len(line.lstrip()))


def _signature(line: str, prefix: str, variables: _Variables) -> Iterator[str]:
    """Yield the checks of a function's first line: its name, and each argument."""
    head, opened, rest = line.partition("(")
    yield f"// {prefix}-LABEL: {_escaped(head + opened)}"
    for part in re.split(r"(?<=,) (?=%)|(?<=\)) (?=->)", rest):
        yield f"// {prefix}-SAME: {variables.checked(part)}"


class _Variables:
    """The variables of filecheck for the names of values of one function."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def checked(self, line: str) -> str:
        """Return the pattern of a line: each value becomes a variable, defined at the value's first occurrence in the
        function."""
        pieces, end = [], 0
        for match in _VALUE.finditer(line):
            pieces += [_escaped(line[end : match.start()]), f"%[[{self._variable(match[1])}]]"]
            end = match.end()
        return "".join([*pieces, _escaped(line[end:])])

    def _variable(self, value: str) -> str:
        if value in self._names:
            return self._names[value]
        stem = re.sub(r"\W+", "_", value).upper()
        stem = stem if stem[0].isalpha() else f"V{stem}"
        taken, number = set(self._names.values()), 0
        while (name := stem if not number else f"{stem}_{number}") in taken:
            number += 1
        self._names[value] = name
        return f"{name}:{_DEFINED}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: "{{" + re.sub(r"(.)", r"\\\1", match[0]) + "}}", text)
